// args: --grid 2 --block 64 --arg heap:u32[4096] --arg out_y:u32[128]
// finds: mem
// A block is used after it has been freed.
#include "heap.h"
kernel void k(global uint *heap, global uint *y) {
  global uint *p = allocate(16);
  p[0] = lid;
  release(p);
  y[group * 64 + lid] = *(volatile global uint *)p;
}
