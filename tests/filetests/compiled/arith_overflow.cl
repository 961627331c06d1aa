// args: --grid 1 --block 64 --arg x:i32[64]=repeat(2147483600) --arg out_y:i32[64] --check arith
// finds: arith note
// A sum of type int is beyond its range in some lanes.
#include "device.h"
kernel void k(global const int *x, global int *y) {
  int from = x[lid];
  int sum = from + (int)lid;
  y[lid] = sum;
  if (sum < 0) y[lid] = sum / 2;
}
