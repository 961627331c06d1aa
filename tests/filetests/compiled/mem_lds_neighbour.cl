// args: --grid 1 --block 64 --arg out_y:u32[64]
// finds: mem
// The last lane reads beyond the first array, which is in LDS before the second one.
#include "device.h"
kernel void k(global uint *y) {
  local uint a[64];
  local uint b[32];
  a[lid] = lid;
  if (lid < 32) b[lid] = 7;
  meet();
  y[lid] = a[lid + 1] + b[lid & 31];
}
