// mcpu: gfx1100
// Macros, repetitions and conditionals.
.macro add3 dst, a, b=v9, c:req
  v_add_f32 \dst, \a, \b
  v_add_f32 \dst, \dst, \c
.endm
.macro loop count, body:vararg
  s_mov_b32 s0, \count
.Lloop\@:
  \body
  s_sub_i32 s0, s0, 1
  s_cmp_lg_u32 s0, 0
  s_cbranch_scc1 .Lloop\@
.endm
.macro sized type, width=32
  v_mov_b\width v1, v2
  .if \width == 32
    v_add_\type\()_e32 v3, v4, v5
  .elseif \width == 16
    v_add_\type\()_e64 v3, v4, v5
  .else
    .error "no such width"
  .endif
.endm
  add3 v0, v1, v2, v3
  add3 v0, v1, , v3
  add3 v0 v1 c=v3
  add3 dst=v4, a=1.0, c=v5
  loop 3, v_add_f32 v1, v1, v2
  loop count=2 body=s_nop 1
  sized f32
  sized f16 32
.set n, 0
.rept 3
  s_mov_b32 s1, n
  .set n, n + 1
.endr
.irp reg, v1, v2, "v4"
  .ifc \reg, v2
    v_mov_b32 v6, s0
  .else
    v_mov_b32 \reg, \reg
  .endif
.endr
.irpc d, 0123
  s_mov_b32 s\d, s1\d
.endr
.macro twice what
  .rept 2
    .irp i, 1, 2
      \what v\i, v2\i
    .endr
  .endr
.endm
  twice v_mov_b32
.macro early n
  s_nop \n
  .if \n > 1
    .exitm
  .endif
  s_nop 7
.endm
  early 1
  early 2
.ifdef n
  s_nop 3
.else
  s_nop 4
.endif
.ifndef nowhere
  .ifeq n - 3
    s_nop 5
  .endif
.endif
.ifnb text
  s_nop 6
.endif
.if 0
  this is never read
  .if 1
    nor this
  .else
    nor this
  .endif
.elseif n == 3 && n != 4
  s_nop 8
.else
  nor this
.endif
.purgem early
.macro early
  s_nop 9
.endm
  early
  s_endpgm
