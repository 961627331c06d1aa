// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg out_y:u32[64] --check all,lanes,arith
// A recursive function with a frame on the stack. The indirect call makes the size of the stack dynamic.
#include "device.h"
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
__attribute__((noinline)) uint walk(uint n, uint depth) {
  volatile uint saved[4];
  saved[n & 3] = n + depth;
  if (n == 0) return depth;
  uint below = walk(n - 1, depth + 1);
  return below + saved[n & 3];
}
kernel void k(global uint *x, global uint *y) {
  uint (*volatile start)(uint, uint) = walk;
  y[lid] = start(x[lid] & 7, 0);
}
