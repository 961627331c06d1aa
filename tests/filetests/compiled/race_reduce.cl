// args: --grid 1 --block 128 --arg x:u32[128]=arange(128) --arg out_y:u32[1]
// finds: race
// A tree without the barriers.
#include "device.h"
kernel void k(global const uint *x, global uint *y) {
  local uint s[128];
  uint i = lid;
  s[i] = x[i];
  for (uint n = 64; n > 0; n >>= 1) {
    if (i < n) s[i] += s[i + n];
  }
  if (i == 0) y[group] = s[0];
}
