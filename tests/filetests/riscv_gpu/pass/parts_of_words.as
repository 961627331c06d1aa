# Bytes and halves are the low part of the word that the address counts.
lui  x5, 0x12345
addi x5, x5, 0x678
sw   x5, 0(x0)
sw   x5, 1(x0)
addi x6, x0, -1
sb   x6, 0(x0)          # 0x123456ff
sh   x6, 1(x0)          # 0x1234ffff
lb   x7, 0(x0)          # -1
sw   x7, 2(x0)
lh   x7, 1(x0)          # -1
sw   x7, 3(x0)
lui  x8, 0x80
sw   x8, 4(x0)          # 0x00080000
lh   x7, 4(x0)
sw   x7, 5(x0)          # 0
s.lui s5, 0xfffff
s.sw s5, 6(s0)
s.sb s0, 6(s0)
s.lw s6, 6(s0)
s.sw s6, 7(s0)          # 0xfffff000
halt
