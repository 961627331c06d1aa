// mcpu: gfx1201
/* Labels, symbols, expressions;
   and names that are flags elsewhere. */
start:
  s_cbranch_execz done
1: s_nop 0
  s_cbranch_scc0 1b
  s_cbranch_scc1 1f
  s_branch gds
1:
2: s_nop 1
  s_branch 2b
  s_branch 1b
  s_cbranch_vccz off
off:
vcc_done: s_nop 2
  s_cbranch_vccnz vcc_done
gds:
  s_branch glc
glc: clamp: tfe:
  s_branch clamp
done:
  s_nop 3
.set size, done - start
.equ half, size / 2
twice = size * 2
  s_mov_b32 s0, size
  s_mov_b32 s1, half + (twice << 1) - ~3
  s_add_u32 s2, s2, later & 0xff
later = 0x1234
  s_mov_b32 s3, later
  v_mov_b32 v[1 + 2], s[2*2]
end: s_endpgm
.if . - start == 4
  .error "sizes are known"
.endif
.set length, end - start
.long length, end - done, . - start
.long -1, 0xffffffff
