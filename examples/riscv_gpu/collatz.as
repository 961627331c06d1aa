# Counts the Collatz steps (n / 2 if even, 3n + 1 if odd) from each n from 1 to 64 to 1. Threads leave the loop one by
# one: s1 is the mask of the threads in the loop, and the warp continues until it is zero.
.warps 2

    addi x5, x1, 1          # the number
    addi x6, x0, 0          # steps
    addi x7, x0, 1
again:
    sx.slt s1, x7, x5       # threads with a number above 1
    beq  s1, s0, done
    s.add s2, s1, s0        # the round's threads
    andi x8, x5, 1
    sx.slt s1, x0, x8       # odd
    slli x9, x5, 1
    add  x5, x5, x9
    addi x5, x5, 1
    s.xor s1, s1, s2        # even
    srli x5, x5, 1
    s.add s1, s2, s0        # both
    addi x6, x6, 1
    jal  s0, again
done:
    s.addi s1, s0, -1
    sw   x6, 0(x1)
    halt
