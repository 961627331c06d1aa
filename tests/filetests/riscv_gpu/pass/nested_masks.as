# A comparison writes the bits of its own threads and leaves the others: s2 collects both sides of a branch.
    s.addi s2, s0, 0
    sx.slti s1, x1, 16      # lower half
    sx.slti s2, x1, 8       # of it threads 0 to 7
    s.xori s1, s1, -1       # upper half
    addi x5, x1, -24
    sx.slt s2, x0, x5       # of it threads 25 to 31
    s.addi s1, s0, -1
    s.sw s2, 0(s0)
    sx.slti s3, x1, -1      # signed: none
    s.sw s3, 1(s0)
    s.addi s1, s0, 0        # nobody: vector instructions do nothing, scalar ones go on
    sw   x1, 100(x1)
    s.addi s4, s0, 7
    s.sw s4, 2(s0)
    halt
