// mcpu: gfx942
  v_fma_f32 v0, s1, s2, v3
  v_add_f64 v[1:2], v[2:3], v[4:5]
  global_load_dwordx2 a[1:2], v[2:3], off
  flat_atomic_add a0, v[2:3], v4 sc0
  v_mfma_f32_16x16x4_f32 a[0:3], v0, a2, v[4:7]
  v_mfma_f32_32x32x1_2b_f32 a[0:31], v0, v1, a[16:47]
  v_mov_b64_dpp v[0:1], v[2:3] row_shl:1
  v_add_f32_dpp v0, v1, v2 row_share:3
  v_add_f32_dpp v0, v1, v2 row_bcast:16
  v_accvgpr_read_b32 v0, v1
  v_add_u32_e64 v0, sext(v1), v2
  v_add_f32_sdwa v0, sext(v1), v2
  s_mov_b32 s102, 0
  s_set_gpr_idx_mode 0x13
  s_sendmsg sendmsg(MSG_GS)
  ds_read2_b32 a[0:1], v0 gds
.amdhsa_kernel k
  .amdhsa_wavefront_size32 1
  .amdhsa_accum_offset 6
.end_amdhsa_kernel
k:
