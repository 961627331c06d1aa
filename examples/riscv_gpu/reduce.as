# Sums 256 words from address 0 on into address 600. Each warp reduces its 32 words in place, then stores its sum to 512 + warp
# and a flag to 528 + warp; the first warp of the last block polls the flags, which replace barriers, and adds the sums.
.blocks 4
.warps 2

    slli x5, x2, 6
    add  x5, x5, x1         # address of the thread's word
    andi x6, x1, 31         # thread in the warp
    addi x7, x0, 16         # distance
    s.addi s5, s0, 5        # rounds: 16, 8, 4, 2, 1
fold:
    sx.slt s1, x6, x7       # threads below the distance
    add  x8, x5, x7
    lw   x9, 0(x5)
    lw   x10, 0(x8)
    add  x9, x9, x10
    sw   x9, 0(x5)
    s.addi s1, s0, -1
    srli x7, x7, 1
    s.addi s5, s5, -1
    bne  s5, s0, fold

    sx.slti s1, x6, 1       # the warp's first thread
    srli x11, x5, 5         # warp of all blocks
    addi x12, x0, 1
    sw   x9, 512(x11)
    sw   x12, 528(x11)
    s.addi s1, s0, -1

    xori x13, x2, 3
    sx.slt s6, x0, x13      # no thread, in the last block
    bne  s6, s0, end
    sx.slti s7, x1, 32      # no thread, but in the first warp
    beq  s7, s0, end
    s.addi s8, s0, 0        # the sum
    s.addi s9, s0, 0        # warp
    s.addi s10, s0, 8       # warps
wait:
    s.lw s11, 528(s9)
    beq  s11, s0, wait
    s.lw s12, 512(s9)
    s.add s8, s8, s12
    s.addi s9, s9, 1
    blt  s9, s10, wait
    s.sw s8, 600(s0)
end:
    halt
