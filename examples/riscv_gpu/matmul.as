# C = A * B for matrices of 8 by 8 words: A from address 0 on, B from 64, C from 128. Each thread computes one element.
# The machine has no multiplication: products are computed bit by bit, with the threads masked by the bit.
.blocks 1
.warps 2

    srli x5, x1, 3          # row
    slli x5, x5, 3          # address of A[row][0]
    andi x6, x1, 7          # address of B[0][column], less 64
    addi x7, x0, 0          # the sum
    s.addi s5, s0, 8        # elements left
element:
    lw   x8, 0(x5)
    lw   x9, 64(x6)
    s.addi s6, s0, 32       # bits left
bit:
    andi x10, x8, 1
    sx.slt s1, x0, x10      # threads whose bit is set
    add  x7, x7, x9
    s.addi s1, s0, -1       # all threads
    srli x8, x8, 1
    slli x9, x9, 1
    s.addi s6, s6, -1
    bne  s6, s0, bit
    addi x5, x5, 1
    addi x6, x6, 8
    s.addi s5, s5, -1
    bne  s5, s0, element
    sw   x7, 128(x1)
    halt
