// A kernel that does nothing. Its metadata note precedes that of `second`.
  .text
  .globl first
  .p2align 8
  .type first,@function
first:
  s_endpgm
  .size first, .-first
  .rodata
  .p2align 6
  .amdhsa_kernel first
    .amdhsa_next_free_vgpr 1
    .amdhsa_next_free_sgpr 1
  .end_amdhsa_kernel
  .amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: first
    .symbol: first.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .max_flat_workgroup_size: 32
    .sgpr_count: 1
    .vgpr_count: 1
    .args: []
  .end_amdgpu_metadata
