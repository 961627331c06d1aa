# A function that is called twice; the return address goes on in s31. Links count instructions.
        s.addi s5, s0, 100
        jal  s31, double
        s.sw s31, 1(s0)         # 2: the instruction behind the call
        jal  s31, double
        s.sw s5, 0(s0)
        s.auipc s6, 0
        s.sw s6, 2(s0)          # 5: AUIPC's own number
        s.addi s8, s0, 9
        jalr s8, 2(s8)          # the base may be the register that is written: to instruction 11
        s.sw s5, 9(s0)
        s.sw s5, 10(s0)
        s.sw s8, 3(s0)          # 9
        halt
double: s.add s5, s5, s5
        jalr s0, 0(s31)
