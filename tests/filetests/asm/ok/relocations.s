// mcpu: gfx1100
// Addresses, each reached in another way. `tests/relocations.rs` runs this: the kernel stores what it found.
.macro wait
.if .amdgcn.gfx_generation_number >= 12
  s_wait_kmcnt 0x0
.else
  s_waitcnt lgkmcnt(0)
.endif
.endm
.macro address register, high, symbol, how, addend=0
  s_getpc_b64 s[\register:\high]
  s_add_u32 s\register, s\register, \symbol\how@lo+4+\addend
  s_addc_u32 s\high, s\high, \symbol\how@hi+12+\addend
.endm

.text
.globl k
.protected k
.p2align 8
.type k,@function
k:
  s_load_b64 s[2:3], s[0:1], 0x0
  // A table that is read only, from the program counter.
  address 4, 5, table, @rel32, 4
  s_load_b32 s8, s[4:5], 0x0
  // Pointers in data.
  address 4, 5, pointers, @rel32
  s_load_b64 s[6:7], s[4:5], 0x8
  s_load_b64 s[12:13], s[4:5], 0x10
  wait
  s_load_b32 s9, s[6:7], 0x0
  s_load_b32 s16, s[12:13], 0x0
  // The global offset table.
  address 4, 5, elsewhere, @gotpcrel32
  s_load_b64 s[4:5], s[4:5], 0x0
  address 6, 7, nowhere, @gotpcrel32
  s_load_b64 s[6:7], s[6:7], 0x0
  wait
  s_load_b32 s10, s[4:5], 0x0
  s_or_b32 s17, s6, s7
  // The address itself, in halves.
  s_mov_b32 s4, table@abs32@lo+12
  s_mov_b32 s5, table@abs32@hi+12
  s_load_b32 s11, s[4:5], 0x0
  s_mov_b32 s4, elsewhere@abs32@lo+4
  s_mov_b32 s5, elsewhere@abs32@hi+4
  s_load_b32 s18, s[4:5], 0x0
  // Distances that are known.
  s_mov_b32 s19, after - k
after:
  address 4, 5, distances, @rel32
  wait
  s_load_b32 s20, s[4:5], 0x0
  s_load_b64 s[22:23], s[4:5], 0x8
  wait
  s_sub_u32 s21, s22, s20
  v_mov_b32_e32 v8, 0
  v_mov_b32_e32 v0, s8
  v_mov_b32_e32 v1, s9
  v_mov_b32_e32 v2, s10
  v_mov_b32_e32 v3, s11
  v_mov_b32_e32 v4, s16
  v_mov_b32_e32 v5, s17
  v_mov_b32_e32 v6, s18
  v_mov_b32_e32 v7, s21
  global_store_b128 v8, v[0:3], s[2:3]
  global_store_b128 v8, v[4:7], s[2:3] offset:16
  s_endpgm
.Lend:
.size k, .Lend - k

.section .rodata.tables,"a",@progbits
.p2align 4
table:
  .long 100, 101, 102, 103
distances:
  .long k - distances
  .long after - k
  .quad k - distances + 8
  .byte after - k

.section .data.rel.ro,"aw",@progbits
.p2align 3
pointers:
  .quad k, .Lhere+4, elsewhere+8
.Lhere:
  .long 0, 201

.data
.globl elsewhere
.type elsewhere,@object
.p2align 2
elsewhere:
  .long 300, 301, 302
  .long table, k@abs32@lo, k@abs32@hi
  .quad elsewhere@rel64
.weak nowhere
  .quad nowhere

.section .rodata,"a",@progbits
.p2align 6
.amdhsa_kernel k
  .amdhsa_kernarg_size 8
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 9
  .amdhsa_next_free_sgpr 24
.end_amdhsa_kernel
