// Kernel arguments in SGPRs at the start: s[2:3] is the buffer, s4 and s5 two numbers. A processor that has put them there starts 256 bytes
// after the entry; what stands at the entry, for one that has not, ends the wave, so that the result is missing.
  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl preload
  .p2align 8
  .type preload,@function
preload:
  s_endpgm
  .p2align 8
  s_lshl_b32 s7, s6, 6
  v_add_u32 v0, s7, v0
  v_mov_b32 v1, s4
  v_mad_u32_u24 v1, v0, s5, v1
  v_lshlrev_b32 v2, 2, v0
  global_store_dword v2, v1, s[2:3]
  s_endpgm
  .size preload, .-preload

  .rodata
  .p2align 6
  .amdhsa_kernel preload
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_user_sgpr_kernarg_preload_length 4
    .amdhsa_user_sgpr_kernarg_preload_offset 0
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_kernarg_size 16
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
  .end_amdhsa_kernel

  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: preload
    .symbol: preload.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - {.name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: first, .offset: 8, .size: 4, .value_kind: by_value}
      - {.name: step, .offset: 12, .size: 4, .value_kind: by_value}
...
  .end_amdgpu_metadata
