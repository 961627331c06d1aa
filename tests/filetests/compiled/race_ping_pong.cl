// args: --grid 1 --block 128 --arg x:u32[1024]=arange(1024) --arg out_y:u32[128]
// finds: race
// One tile where two are needed.
#include "device.h"
kernel void k(global const uint *x, global uint *y) {
  local uint tile[128];
  uint i = lid, sum = 0;
  for (uint t = 0; t < 8; t++) {
    tile[i] = x[t * 128 + i];
    meet();
    for (uint n = 0; n < 128; n += 9) sum += tile[(i + n) & 127];
  }
  y[i] = sum;
}
