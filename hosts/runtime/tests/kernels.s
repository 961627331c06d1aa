// Kernels for the launch tests. The comment before each kernel gives its arguments.

.macro kernel name, kernarg_bytes
  .globl \name
  .p2align 8
  .type \name, @function
  .section .rodata, "a", @progbits
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_kernarg_size \kernarg_bytes
    .amdhsa_user_sgpr_count 2
    .amdhsa_user_sgpr_kernarg_segment_ptr 1   // in s[0:1]
    .amdhsa_system_sgpr_workgroup_id_x 1      // in s2
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_wavefront_size32 1
  .end_amdhsa_kernel
  .text
\name:
.endm

.text
// u32 *out: out[lane] = lane
kernel iota, 8
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_store_b32 v1, v0, s[4:5]
  s_endpgm

// u32 *flag: every workgroup except the fourth waits until the fourth has set the flag.
kernel wait_for_fourth, 8
  s_load_b64 s[4:5], s[0:1], 0x0
  v_mov_b32_e32 v0, 0
  v_mov_b32_e32 v1, 1
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s2, 3
  s_cbranch_scc0 wait
  global_store_b32 v0, v1, s[4:5]
  s_endpgm
wait:
  global_load_b32 v2, v0, s[4:5] glc
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s6, v2
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 wait
  s_endpgm

// Stores to LDS at an unaligned address, which compute drivers permit.
kernel unaligned, 8
  v_mov_b32_e32 v0, 1
  ds_store_b32 v0, v0
  s_endpgm

// u32 flag[2]: sets the second and waits until the host has set the first.
kernel wait_for_host, 8
  s_load_b64 s[4:5], s[0:1], 0x0
  v_mov_b32_e32 v0, 0
  v_mov_b32_e32 v1, 1
  s_waitcnt lgkmcnt(0)
  global_store_b32 v0, v1, s[4:5] offset:4
wait_host:
  global_load_b32 v2, v0, s[4:5] glc
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s6, v2
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 wait_host
  s_endpgm

// u32 *out: adds 1 to the variable `counter` and stores it.
kernel count, 8
  s_load_b64 s[4:5], s[0:1], 0x0
  s_getpc_b64 s[6:7]
  s_add_u32 s6, s6, counter@rel32@lo+4
  s_addc_u32 s7, s7, counter@rel32@hi+12
  v_mov_b32_e32 v0, 0
  global_load_b32 v1, v0, s[6:7]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_add_nc_u32_e32 v1, 1, v1
  global_store_b32 v0, v1, s[6:7]
  global_store_b32 v0, v1, s[4:5]
  s_endpgm

.section .data, "aw", @progbits
.globl counter
.p2align 2
.type counter, @object
counter:
  .long 41
.size counter, 4

// u32 *in, u32 *out: out[lane] = in[lane]
kernel transfer, 16
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_b32 v1, v2, s[6:7]
  s_endpgm

// Stores to its own code.
kernel overwrite_code, 8
  s_getpc_b64 s[4:5]
  v_mov_b32_e32 v0, 0
  global_store_b32 v0, v0, s[4:5]
  s_endpgm
