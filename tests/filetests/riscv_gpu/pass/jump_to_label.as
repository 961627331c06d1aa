# JALR takes a label for its instruction's number; x0 stands for s0 there. Labels may share a line with an instruction.
.blocks 1
.warps 1

jalr x0, second
first:
addi x5, x5, 10
sw x5, 0(x0)
second: addi x5, x5, 50
sw x5, 1(x0)
third:
fourth: jal s0, past
sw x5, 2(x0)
past: halt
