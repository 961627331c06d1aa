// Workgroups of two waves that proceed in reverse order: each waits until a ticket, which counts down once per
// workgroup, reaches its own value. Takes u32 *out: the ticket, then 64 results of each workgroup.

.macro kernel name
  .globl \name
  .p2align 8
  .type \name, @function
  .section .rodata, "a", @progbits
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_kernarg_size 8
    .amdhsa_user_sgpr_count 2
    .amdhsa_user_sgpr_kernarg_segment_ptr 1   // in s[0:1]
    .amdhsa_system_sgpr_workgroup_id_x 1      // in s2
    .amdhsa_group_segment_fixed_size 256
    .amdhsa_next_free_vgpr 16
    .amdhsa_next_free_sgpr 16
    .amdhsa_wavefront_size32 1
  .end_amdhsa_kernel
  .text
\name:
.endm

// The ticket counts down from 0: workgroup 3 waits for 0, workgroup 2 for -1, and so on; the last one resets it.
.macro body result
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0                 // byte offset of the work-item
  v_add_nc_u32_e32 v2, 1000, v0
  v_mov_b32_e32 v4, 0
  v_mov_b32_e32 v5, -1
  ds_store_b32 v1, v2                         // before the wait: LDS and registers must be there after it
  s_sub_u32 s6, s2, 3                         // the ticket that it waits for
  s_waitcnt lgkmcnt(0)
.Lwait\@:
  global_load_b32 v3, v4, s[4:5] glc
  s_waitcnt vmcnt(0)
  buffer_gl0_inv
  v_readfirstlane_b32 s7, v3
  s_cmp_eq_u32 s6, s7
  s_cbranch_scc0 .Lwait\@
  s_barrier
  ds_load_b32 v6, v1
  s_lshl_b32 s8, s2, 6
  s_waitcnt lgkmcnt(0)
  v_add_nc_u32_e32 v6, s8, \result
  v_lshl_add_u32 v8, s8, 2, v1
  global_store_b32 v8, v6, s[4:5] offset:4
  s_waitcnt_vscnt null, 0x0
  s_barrier
  v_cmp_eq_u32_e32 vcc_lo, 0, v0
  s_and_saveexec_b32 s9, vcc_lo
  s_cbranch_execz .Lend\@
  s_cmp_eq_u32 s2, 0
  s_cselect_b32 s10, 3, -1
  v_mov_b32_e32 v5, s10
  global_atomic_add_u32 v4, v5, s[4:5]
.Lend\@:
  s_endpgm
.endm

.text
kernel turns
  body v6

// v7 is uninitialised.
kernel turns_undefined
  body v7
