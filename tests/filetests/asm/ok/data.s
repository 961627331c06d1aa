// mcpu: gfx1150
.text
  s_nop 0
.p2align 4
  s_nop 1
.p2align 3, , 2
  s_nop 2
.balign 16
  s_nop 3
.p2alignl 6, 0xbf9f0000
.fill 4, 4, 3214868480
.section .rodata,"a",@progbits
.byte 1, -1, 0xff
.short 1, -2, 0xfffe
.2byte 3
.long 1, 0x12345678
.int 5
.quad 0x123456789abcdef0, -1
.p2align 3, 0xcc
.ascii "text; // no comment /* nor this */\n", "\x41\102\t\"\\"
.asciz "zero"
.string "é"
.zero 3
.space 2, 0x55
.skip 1
.fill 2
.fill 2, 2, 0x1234
.fill 2, 8, 0x123456789abcdef0
.balignw 4, 0x1122
.float 1.0, -2.5, 1e-3
.double 3.14159
.uleb128 0, 127, 128, 624485
.sleb128 0, 63, 64, -1, -64, -65, -123456
.org 400
.byte 7
.org 410, 0xee
.byte 8
.pushsection .data
.quad 1
.popsection
.byte 9
.data
.long 2
.previous
.byte 10
