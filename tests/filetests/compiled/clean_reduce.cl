// args: --grid 3 --block 128 --arg x:u32[384]=arange(384) --arg out_y:u32[3]
// A sum in LDS, in a tree.
#include "device.h"
kernel void k(global const uint *x, global uint *y) {
  local uint s[128];
  uint i = lid;
  s[i] = x[group * 128 + i];
  for (uint n = 64; n > 0; n >>= 1) {
    meet();
    if (i < n) s[i] += s[i + n];
  }
  if (i == 0) y[group] = s[0];
}
