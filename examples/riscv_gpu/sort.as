# Each block sorts 32 signed words in place: block n those from address 32 n on. This is odd-even transposition sort: adjacent
# words that are out of order are exchanged, alternately in even and in odd pairs.
.blocks 4

    slli x5, x2, 5
    add  x5, x5, x1         # address of the thread's word
    andi x6, x1, 1          # side of the thread
    addi x7, x0, 0          # side of the round
    addi x8, x0, 31
    s.addi s5, s0, 32       # rounds left
round:
    xor  x9, x6, x7
    sx.slti s1, x9, 1       # threads of the round's side
    sx.slt s1, x1, x8       # but the last, which has no neighbour
    lw   x10, 0(x5)
    lw   x11, 1(x5)
    sx.slt s1, x11, x10     # those out of order
    sw   x11, 0(x5)
    sw   x10, 1(x5)
    s.addi s1, s0, -1
    xori x7, x7, 1
    s.addi s5, s5, -1
    bne  s5, s0, round
    halt
