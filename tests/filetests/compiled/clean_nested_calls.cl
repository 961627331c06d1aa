// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg out_y:u32[64] --check all,lanes,arith
// Nested calls, each function with a frame on the stack, which the next call of its depth uses again.
#include "device.h"
#define FUNCTION(name, body)                                                                       \
  __attribute__((noinline)) uint name(uint n) {                                                    \
    volatile uint saved[4];                                                                        \
    saved[n & 3] = n;                                                                              \
    uint result = body;                                                                            \
    return result + saved[n & 3];                                                                  \
  }
FUNCTION(first, n * 3)
FUNCTION(second, first(n) + first(n + 1))
FUNCTION(third, second(n) + first(n + 2) + second(n + 3))
FUNCTION(fourth, third(n) + third(n + 1))
kernel void k(global uint *x, global uint *y) { y[lid] = fourth(x[lid]) + first(lid); }
