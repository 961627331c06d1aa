// mcpu: gfx1201
.amdgcn_target "amdgcn-amd-amdhsa--gfx1201"
.amdhsa_code_object_version 5
.set kernargs, 40
.text
.globl k
.p2align 8
.type k,@function
k:
  v_mov_b32 v12, s17
  s_endpgm
.Lend:
.size k, .Lend-k
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_group_segment_fixed_size 1 << 10
  .amdhsa_kernarg_size kernargs
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_user_sgpr_dispatch_ptr 1
  .amdhsa_system_vgpr_workitem_id 2
  .amdhsa_next_free_vgpr .amdgcn.next_free_vgpr
  .amdhsa_next_free_sgpr .amdgcn.next_free_sgpr
  .amdhsa_float_denorm_mode_32 .amdgcn.gfx_generation_number - 9
  .amdhsa_wavefront_size32 1
.end_amdhsa_kernel

