// mcpu: gfx1100
  v_fma_f32 v0, s1, s2, s3
  v_add_f32_e64 v0, s1, s1
  v_cndmask_b32_e32 v0, s1, v2, vcc_lo
  v_cndmask_b32_e64 v0, s1, s2, s3
  v_lshlrev_b64 v[0:1], s1, s[2:3]
  v_div_fmas_f32 v0, s1, 0x12345, v3
  v_dual_add_f32 v0, v4, v1 :: v_dual_mul_f32 v1, v8, v2
  v_dual_add_f32 v0, v4, v1 :: v_dual_mul_f32 v1, v5, v5
  v_dual_add_f32 v0, s4, v1 :: v_dual_fmaak_f32 v1, s5, v2, 0x1234
  v_dual_mov_b32 v0, v4 :: v_dual_mov_b32 v1, v8
