// args: --grid 1 --block 128 --arg x:u32[128]=arange(128) --arg out_y:u32[128]
// finds: race
// Prefix sums in place: a wave stores what another still loads.
#include "device.h"
kernel void k(global const uint *x, global uint *y) {
  local uint s[128];
  uint i = lid;
  s[i] = x[i];
  meet();
  for (uint n = 1; n < 128; n <<= 1) {
    s[i] += i >= n ? s[i - n] : 0;
    meet();
  }
  y[i] = s[i];
}
