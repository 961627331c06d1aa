; Descriptors with wrong fields: two of the tensor data mover, and one of a buffer.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1250"
	.text
	.globl	tensor
	.p2align	8
	.type	tensor,@function
tensor:
	s_load_b128 s[8:11], s[0:1], 0x0
	v_mov_b32_e32 v2, 0
	s_wait_kmcnt 0x0
	; Group 0: is_store, an LDS address that is no multiple of 4, and type 0.
	s_mov_b32 s16, 9
	s_mov_b32 s17, 2
	s_mov_b32 s18, s8
	s_mov_b32 s19, s9
	; Group 1: a mask, dwords, 4 dwords of padding after 8 bytes; lines of 8 in a tensor of 8 x 2, with a stride of 4.
	s_mov_b32 s20, 0x06120003
	s_mov_b32 s21, 0x00080000
	s_mov_b32 s22, 0x00020000
	s_mov_b32 s23, 0x00080000
	s_mov_b32 s24, 2
	s_mov_b32 s25, 4
	s_mov_b32 s26, 0
	s_mov_b32 s27, 0
	tensor_load_to_lds s[16:19], s[20:27]
	s_wait_tensorcnt 0x0
	; Lines of 9, of which the last is beyond the tensor, from an odd address.
	s_mov_b32 s16, 1
	s_mov_b32 s17, 0
	s_add_co_u32 s18, s8, 2
	s_or_b32 s19, s9, 0x80000000
	s_mov_b32 s20, 0x20000
	s_mov_b32 s23, 0x00090000
	s_mov_b32 s25, 9
	tensor_load_to_lds s[16:19], s[20:27]
	s_wait_tensorcnt 0x0
	; A tile that begins beyond the tensor.
	s_mov_b32 s18, s8
	s_mov_b32 s21, 0
	tensor_load_to_lds s[16:19], s[20:27]
	s_wait_tensorcnt 0x0
	; A buffer of type 1.
	s_mov_b32 s28, s8
	s_mov_b32 s29, s9
	s_mov_b32 s30, 64
	s_mov_b32 s31, 0x40000000
	buffer_load_b32 v1, v2, s[28:31], null offen
	s_wait_loadcnt 0x0
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
