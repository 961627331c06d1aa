// args: --grid 1 --block 64 --arg x:f32[64]=arange(64) --arg out_y:f32[64] --check arith
// finds: arith
// The first element is 0.
#include "device.h"
kernel void k(global float *x, global float *y) { y[lid] = 1000.0f / x[lid]; }
