// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg f:f32[64]=arange(64) --arg out_y:u32[64] --arg out_g:f32[64] --arg out_d:f64[64] --check arith
// Divisions, roots and shifts, whose code has infinities and NaNs that are not selected.
#include "device.h"
kernel void k(global uint *x, global float *f, global uint *y, global float *g, global double *d) {
  uint n = x[lid];
  y[lid] = n == 0 ? 0 : 1000 / n + 1000 % n + (1000u << (n & 15));
  g[lid] = f[lid] / (f[lid] + 1) + __builtin_sqrtf(f[lid]);
  d[lid] = __builtin_sqrt((double)f[lid]) / (f[lid] + 2);
}
