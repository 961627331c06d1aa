// out[i] = in[i] * factor. As in the kernels of Tensile, the descriptor has no kernarg size; the metadata has.
  .text
  .globl second
  .p2align 8
  .type second,@function
second:
  s_clause 0x1
  s_load_b128 s[4:7], s[0:1], 0x0
  s_load_b32 s8, s[0:1], 0x10
  v_lshlrev_b32_e32 v0, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v1, v0, s[4:5]
  s_waitcnt vmcnt(0)
  v_mul_lo_u32 v1, v1, s8
  global_store_b32 v0, v1, s[6:7]
  s_endpgm
  .size second, .-second
  .rodata
  .p2align 6
  .amdhsa_kernel second
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_wavefront_size32 1
    .amdhsa_next_free_vgpr 2
    .amdhsa_next_free_sgpr 9
  .end_amdhsa_kernel
  .amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: second
    .symbol: second.kd
    .kernarg_segment_size: 24
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .max_flat_workgroup_size: 32
    .sgpr_count: 9
    .vgpr_count: 2
    .args:
      - { .name: in, .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global }
      - { .name: out, .size: 8, .offset: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: factor, .size: 4, .offset: 16, .value_kind: by_value }
  .end_amdgpu_metadata
