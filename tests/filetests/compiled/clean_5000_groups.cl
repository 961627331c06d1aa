// args: --grid 5000 --block 32 --arg x:u32[160000]=arange(160000) --arg counts:u32[64] --arg out_y:u32[160000] --check all,lanes,arith
// Many workgroups, which count with atomics.
#include "device.h"
kernel void k(global uint *x, global atomic_uint *counts, global uint *y) {
  uint at = group * 32 + lid;
  y[at] = x[at] * 3;
  if (lid == 0) add(&counts[group & 63], 1, RELAXED, DEVICE);
}
