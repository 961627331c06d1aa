// Two kernels with the same resources: one writes values to all of them, the other stores the initial values. Both take u32 *out.

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
    .amdhsa_group_segment_fixed_size 1024
    .amdhsa_private_segment_fixed_size 16
    .amdhsa_enable_private_segment 1
    .amdhsa_next_free_vgpr 256
    .amdhsa_next_free_sgpr 104
    .amdhsa_wavefront_size32 1
  .end_amdhsa_kernel
  .text
\name:
.endm

.text
kernel leave
  s_movk_i32 s90, 0x1234
  s_mov_b32 vcc_lo, s90
  s_mov_b32 m0, s90
  v_mov_b32_e32 v4, 0x00001234              // a denormal
  v_mov_b32_e32 v200, v4
  v_mov_b32_e32 v255, s90
  v_lshlrev_b32_e32 v1, 2, v0
  ds_store_b32 v1, v4
  scratch_store_b32 off, v4, off offset:4
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0x35
  s_cmp_eq_u32 s90, s90
  s_mov_b32 exec_lo, 5
  v_mov_b32_e32 v8, v4
  s_endpgm

// 32 words for each of: v4, v200, v255, v8, s90, vcc, m0, MODE, SCC, EXEC, LDS, scratch.
kernel look
  s_cselect_b32 s8, 1, 0
  s_mov_b32 s9, exec_lo
  s_mov_b32 s10, m0
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  ds_load_b32 v2, v1
  scratch_load_b32 v3, off, off offset:4
  s_getreg_b32 s7, hwreg(HW_REG_MODE)
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_b32 v1, v4, s[4:5]
  global_store_b32 v1, v200, s[4:5] offset:128
  global_store_b32 v1, v255, s[4:5] offset:256
  global_store_b32 v1, v8, s[4:5] offset:384
  v_mov_b32_e32 v5, s90
  global_store_b32 v1, v5, s[4:5] offset:512
  v_mov_b32_e32 v5, vcc_lo
  global_store_b32 v1, v5, s[4:5] offset:640
  v_mov_b32_e32 v5, s10
  global_store_b32 v1, v5, s[4:5] offset:768
  v_mov_b32_e32 v5, s7
  global_store_b32 v1, v5, s[4:5] offset:896
  v_mov_b32_e32 v5, s8
  global_store_b32 v1, v5, s[4:5] offset:1024
  v_mov_b32_e32 v5, s9
  global_store_b32 v1, v5, s[4:5] offset:1152
  global_store_b32 v1, v2, s[4:5] offset:1280
  global_store_b32 v1, v3, s[4:5] offset:1408
  s_endpgm
