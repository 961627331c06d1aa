# Scalar and vector instructions give the same; shifts use five bits, comparisons are signed.
    s.addi s5, s0, -100
    s.addi s6, s0, 35
    s.sra s7, s5, s6        # by 3
    s.sw s7, 0(s0)
    s.srl s7, s5, s6
    s.sw s7, 1(s0)
    s.sll s7, s5, s6
    s.sw s7, 2(s0)
    s.slt s7, s5, s6
    s.sw s7, 3(s0)
    s.slti s7, s5, -101
    s.sw s7, 4(s0)
    s.srai s7, s5, 0x1f
    s.sw s7, 5(s0)
    s.sub s7, s5, s6
    s.sw s7, 6(s0)
    s.andi s7, s5, -2048
    s.sw s7, 7(s0)
    s.ori s7, s6, 0b1000000
    s.sw s7, 8(s0)
    s.xor s7, s5, s6
    s.sw s7, 9(s0)
    addi x5, x0, -100
    addi x6, x0, 35
    sra  x7, x5, x6
    sw   x7, 10(x0)
    srl  x7, x5, x6
    sw   x7, 11(x0)
    sll  x7, x5, x6
    sw   x7, 12(x0)
    slt  x7, x6, x5
    sw   x7, 13(x0)
    auipc x7, 1             # 4096 + 32
    sw   x7, 14(x0)
    halt
