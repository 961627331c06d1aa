# c[i] = a[i] + b[i] for 256 words: a from address 0 on, b from 256, c from 512.
.blocks 4
.warps 2

slli x5, x2, 6          # 64 threads a block
add  x5, x5, x1         # i
lw   x6, 0(x5)
lw   x7, 256(x5)
add  x6, x6, x7
sw   x6, 512(x5)
halt
