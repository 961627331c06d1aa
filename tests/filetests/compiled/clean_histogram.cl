// args: --grid 4 --block 64 --arg x:u32[256]=arange(0,1792,7) --arg out_y:u32[16]
// Counts by atomics in LDS, then in global memory.
#include "device.h"
kernel void k(global const uint *x, global atomic_uint *y) {
  local atomic_uint count[16];
  uint i = lid;
  if (i < 16) store(&count[i], 0, RELAXED, WORKGROUP);
  meet();
  add(&count[x[group * 64 + i] & 15], 1, RELAXED, WORKGROUP);
  meet();
  if (i < 16) add(&y[i], load(&count[i], RELAXED, WORKGROUP), RELAXED, DEVICE);
}
