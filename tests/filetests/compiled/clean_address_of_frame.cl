// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg out_y:u32[64]
// A function writes to the frame of its caller.
#include "device.h"
__attribute__((noinline)) void fill(private uint *to, uint n) {
  volatile uint own[4];
  own[n & 3] = n;
  to[n & 3] = own[n & 3] + 1;
}
kernel void k(global uint *x, global uint *y) {
  uint v[4] = {0, 0, 0, 0};
  fill(v, x[lid]);
  y[lid] = v[x[lid] & 3];
}
