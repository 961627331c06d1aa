# A loop without an end meets the limit on instructions.
loop: jal s0, loop
