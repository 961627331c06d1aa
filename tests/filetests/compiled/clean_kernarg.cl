// args: --grid 1 --block 64 --arg 7 --arg 8 --arg x:u32[64]=arange(64) --arg 9 --arg out_y:u32[64]
// Small arguments have padding, which the kernel loads but does not use.
#include "device.h"
kernel void k(char a, short b, global uint *x, uchar c, global uint *y) { y[lid] = x[lid] * a + b - c; }
