# Every line that is wrong is told, with its place.
.blocks 0
.warps many
.block 2
.blocks 2 3
addi x5, x1
adi x5, x1, 1
addi s5, x1, 1
s.addi s5, x1, 1
addi x5, x1, 2048
slli x5, x1, 32
lw x5, 4[x1]
lw x5, 4(x32)
addi x5 x1, 1
addi x5, x1, 0x1g
beq s1, s0, nowhere
here: there: halt
here: halt
jal s0, ther
sw x5, 0(x1) again
5: halt
add x5, x6, 7
jal x1, here
