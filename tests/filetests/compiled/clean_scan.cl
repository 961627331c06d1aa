// args: --grid 2 --block 128 --arg x:u32[256]=arange(256) --arg out_y:u32[256]
// Prefix sums in LDS, from one half of it to the other.
#include "device.h"
kernel void k(global const uint *x, global uint *y) {
  local uint s[2][128];
  uint i = lid, from = 0;
  s[0][i] = x[group * 128 + i];
  meet();
  for (uint n = 1; n < 128; n <<= 1) {
    s[from ^ 1][i] = s[from][i] + (i >= n ? s[from][i - n] : 0);
    from ^= 1;
    meet();
  }
  y[group * 128 + i] = s[from][i];
}
