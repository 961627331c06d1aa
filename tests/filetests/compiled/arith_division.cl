// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg out_y:u32[64] --check arith
// finds: arith
// The first element is 0.
#include "device.h"
kernel void k(global uint *x, global uint *y) { y[lid] = 1000 / x[lid]; }
