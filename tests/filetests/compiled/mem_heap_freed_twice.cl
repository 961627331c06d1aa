// args: --grid 2 --block 64 --arg heap:u32[4096] --arg out_y:u32[128]
// finds: mem
// Some lanes free their blocks twice.
#include "heap.h"
kernel void k(global uint *heap, global uint *y) {
  global uint *p = allocate(16);
  p[0] = lid;
  y[group * 64 + lid] = p[0];
  release(p);
  if (lid == 7) release(p);
}
