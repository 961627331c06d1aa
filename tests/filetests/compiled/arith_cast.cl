// args: --grid 1 --block 64 --arg x:i32[64]=repeat(2147483600) --arg out_y:i32[64] --check arith
// notes: the signed result
// level: -O0
// A sum of unsigned integers that is converted: its code is that of a signed sum.
#include "device.h"
kernel void k(global const int *x, global int *y) {
  int from = x[lid];
  int sum = (int)((uint)from + lid);
  y[lid] = sum;
}
