// args: --grid 1 --block 64 --arg out_y:u32[64] --arg 1
// Constant tables, up to their ends and from there downwards, and variables in global memory.
#include "device.h"
constant uint first[65] = {1, 2, 3, 4, 5};
constant uint second[80] = {5, 4, 3, 2, 1};
global uint own[64];
global uint others[128];
kernel void k(global uint *y, uint n) {
  own[lid] = lid;
  others[lid + 64 * n] = lid;
  uint sum = first[lid + n] + second[lid + n - 1] + own[lid] + others[lid + 64];
  for (int i = 79; i >= 0; i--) sum += second[i];
  constant uint *from = lid & 1 ? &first[n] : &second[n];
  for (int i = 0; i < 64; i++) sum += from[i];
  y[lid] = sum;
}
