// mcpu: gfx1201
.if 1
  s_nop 0
.else
  s_nop 1
.else
.endif
.endif
.rept -1
.endr
.macro m a
  .if \a
.endm
  m 1
.include "nothing.s"
.sectoin .text
.fill 100000000, 8
.long 1 +
1: s_branch 2f
  s_branch 2b
.set a, later_on_somewhere
  s_mov_b32 s0, a
.amdhsa_kernel k
  .amdhsa_next_free_vgprs 4
  .amdhsa_next_free_vgpr n
  s_nop 0
.end_amdhsa_kernel
.ifdef nothing
  s_nop 0
