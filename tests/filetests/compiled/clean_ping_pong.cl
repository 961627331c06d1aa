// args: --grid 2 --block 64 --arg x:u32[1024]=arange(1024) --arg out_y:u32[128]
// Tiles of LDS, one filled while the other is used.
#include "device.h"
kernel void k(global const uint *x, global uint *y) {
  local uint tile[2][64];
  uint i = lid, sum = 0;
  tile[0][i] = x[group * 512 + i];
  meet();
  for (uint t = 0; t < 8; t++) {
    if (t + 1 < 8) tile[(t + 1) & 1][i] = x[group * 512 + (t + 1) * 64 + i];
    for (uint n = 0; n < 64; n += 9) sum += tile[t & 1][(i + n) & 63];
    meet();
  }
  y[group * 64 + i] = sum;
}
