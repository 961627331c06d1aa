// args: --grid 1 --block 64 --arg out_y:u32[64] --arg 8
// finds: mem
// level: -O0
// A loop goes beyond an array in the frame.
#include "device.h"
kernel void k(global uint *y, uint n) {
  volatile uint a[8];
  volatile uint b[8];
  for (uint i = 0; i < 8; i++) a[i] = b[i] = i;
  for (uint i = 0; i <= n; i++) a[i] += lid;
  y[lid] = a[lid & 7] + b[lid & 7];
}
