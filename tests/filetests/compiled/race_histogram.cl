// args: --grid 1 --block 128 --arg x:u32[128]=arange(0,896,7) --arg out_y:u32[16]
// finds: race
// Counts without atomics.
#include "device.h"
kernel void k(global const uint *x, global uint *y) {
  local volatile uint count[16];
  uint i = lid;
  if (i < 16) count[i] = 0;
  meet();
  count[x[i] & 15] += 1;
  meet();
  if (i < 16) y[i] = count[i];
}
