// args: --grid 2 --block 64 --arg heap:u32[4096] --arg out_y:u32[128]
// Blocks of several sizes, used to their ends and freed.
#include "heap.h"
kernel void k(global uint *heap, global uint *y) {
  uint n = 1 + (lid & 3);
  global uint *p = allocate(4 * n);
  for (uint i = 0; i < n; i++) p[i] = lid + i;
  uint sum = 0;
  for (uint i = 0; i < n; i++) sum += p[i];
  if (lid & 1) {
    global uint *q = allocate(16);
    q[3] = sum;
    sum += q[3];
    release(q);
  }
  release(p);
  y[group * 64 + lid] = sum;
}
