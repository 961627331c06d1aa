// y[i] = factor * x[i]: a kernel in LLVM's assembly, with its descriptor. To run it:
//
//   wavesim run examples/scale.s --grid 2 --block 32 --arg 'x: f32[50]=arange(50)' --arg 'out_y: f32[50]' --arg 2.5 --arg i32=50
//
// Arguments: x, y (addresses), factor (f32), n (i32).

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
    .amdhsa_system_sgpr_workgroup_id_x 1      // in the next SGPR
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_wavefront_size32 1
  .end_amdhsa_kernel
  .text
\name:
.endm

kernel scale, 24
  s_load_b128 s[4:7], s[0:1], 0x0             // x, y
  s_load_b64 s[8:9], s[0:1], 0x10             // factor, n
  v_lshl_add_u32 v0, s2, 5, v0                // global id: 32 work-items per workgroup
  s_waitcnt lgkmcnt(0)
  v_cmp_gt_u32_e32 vcc_lo, s9, v0
  s_and_saveexec_b32 s10, vcc_lo
  s_cbranch_execz done
  v_lshlrev_b32_e32 v1, 2, v0
  global_load_b32 v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_mul_f32_e32 v2, s8, v2
  global_store_b32 v1, v2, s[6:7]
done:
  s_endpgm
