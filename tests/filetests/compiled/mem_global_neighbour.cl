// args: --grid 1 --block 64 --arg out_y:u32[64] --arg 1
// finds: mem
// A constant table is read beyond its end, where another one is.
#include "device.h"
constant uint first[48] = {1, 2, 3, 4, 5};
constant uint second[80] = {5, 4, 3, 2, 1};
kernel void k(global uint *y, uint n) { y[lid] = first[lid + n] + second[lid + n]; }
