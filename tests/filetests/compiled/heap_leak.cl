// args: --grid 2 --block 64 --arg heap:u32[4096] --arg out_y:u32[128]
// notes: mem: 126 blocks of `malloc`, 2016 bytes, never freed
// Most lanes do not free their blocks.
#include "heap.h"
kernel void k(global uint *heap, global uint *y) {
  global uint *p = allocate(16);
  p[0] = lid;
  y[group * 64 + lid] = p[0];
  if (lid == 5) release(p);
}
