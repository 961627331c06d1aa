// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg out_y:u32[64]
// finds: mem
// A recursion that is too deep for the stack.
#include "device.h"
__attribute__((noinline)) uint walk(uint n, uint depth) {
  volatile uint saved[64];
  saved[n & 63] = n + depth;
  if (n == 0) return depth;
  uint below = walk(n - 1, depth + 1);
  return below + saved[n & 63];
}
kernel void k(global uint *x, global uint *y) { y[lid] = walk(x[lid] * 1000 + 1000, 0); }
