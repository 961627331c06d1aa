# x0 to x3 and s0 keep what they hold.
.blocks 2
.warps 2
addi x0, x0, 5
addi x1, x1, 5
addi x2, x2, 5
lw   x3, 0(x0)
s.addi s0, s0, 5
slli x5, x2, 6
add  x5, x5, x1         # one word a thread
slli x6, x2, 16
slli x7, x3, 8
or   x6, x6, x7
or   x6, x6, x1
add  x6, x6, x0
sw   x6, 0(x5)          # block, block size, thread
s.sw s0, 200(s0)
halt
