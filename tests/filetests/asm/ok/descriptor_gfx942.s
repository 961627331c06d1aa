// mcpu: gfx942
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
  v_accvgpr_write_b32 a12, v4
  v_mfma_f32_16x16x4_f32 a[0:3], v0, a2, a[4:7] cbsz:2 abid:3 blgp:7
  s_endpgm
.Lend:
.size k, .Lend-k
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_group_segment_fixed_size 1 << 10
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_user_sgpr_kernarg_preload_length 3
  .amdhsa_user_sgpr_kernarg_preload_offset 1
  .amdhsa_next_free_vgpr 33
  .amdhsa_accum_offset 20
  .amdhsa_next_free_sgpr 27
  .amdhsa_reserve_xnack_mask 1
  .amdhsa_tg_split 1
  .amdhsa_ieee_mode 0
.end_amdhsa_kernel
.p2align 6
.amdhsa_kernel l
  .amdhsa_next_free_vgpr 8
  .amdhsa_accum_offset 4
  .amdhsa_next_free_sgpr 10
  .amdhsa_reserve_vcc 0
.end_amdhsa_kernel
l:
