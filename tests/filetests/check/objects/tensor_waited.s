; A tile of 2 rows of 16 dwords of x; the load into LDS is waited.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1250"
	.text
	.globl	tensor
	.p2align	8
	.type	tensor,@function
tensor:
	s_load_b128 s[8:11], s[0:1], 0x0
	s_mov_b32 s16, 1
	s_mov_b32 s17, 0
	s_mov_b32 s20, 0x20000
	s_mov_b32 s21, 0x100000
	s_mov_b32 s22, 0x20000
	s_mov_b32 s23, 0x100000
	s_mov_b32 s24, 2
	s_mov_b32 s25, 16
	s_mov_b32 s26, 0
	s_mov_b32 s27, 0
	s_wait_kmcnt 0x0
	s_mov_b32 s18, s8
	s_or_b32 s19, s9, 0x80000000
	tensor_load_to_lds s[16:19], s[20:27]
	v_lshlrev_b32_e32 v1, 2, v0
  s_wait_tensorcnt 0x0
	ds_load_b32 v2, v1
	s_wait_dscnt 0x0
	global_store_b32 v1, v2, s[10:11]
	s_endpgm
.Lend:
	.size	tensor, .Lend-tensor
	.rodata
	.p2align	6
	.amdhsa_kernel tensor
		.amdhsa_group_segment_fixed_size 256
		.amdhsa_kernarg_size 16
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 8
		.amdhsa_next_free_sgpr 32
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: tensor
    .symbol: tensor.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 256
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 32
    .vgpr_count: 8
    .max_flat_workgroup_size: 1024
    .args:
      - { .name: x, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: out_y, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global }
...
	.end_amdgpu_metadata
