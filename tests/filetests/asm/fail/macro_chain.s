// mcpu: gfx1100
.macro inner reg, value
  v_mov_b32 \reg, \value
  s_mov_b33 s0, \value
.endm
.macro outer value
  .rept 2
    inner s1, \value
  .endr
.endm
  s_nop 0
  outer 7
  inner v1
  inner v1, 2, 3
  outer 1 ; the same again
  s_branch nowhere
