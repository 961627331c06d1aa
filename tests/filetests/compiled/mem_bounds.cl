// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg out_y:u32[64]
// finds: mem
// The right neighbour of the last element.
#include "device.h"
kernel void k(global const uint *x, global uint *y) { y[lid] = x[lid] + x[lid + 1]; }
