// args: --grid 2 --block 64 --arg heap:u32[4096] --arg out_y:u32[128]
// finds: mem
// The element after the last one of a block.
#include "heap.h"
kernel void k(global uint *heap, global uint *y) {
  global uint *p = allocate(16);
  for (uint i = 0; i <= 4; i++) p[i] = lid + i;
  y[group * 64 + lid] = p[3];
  release(p);
}
