// args: --grid 1 --block 64 --arg x:u32[64]=repeat(4294967290) --arg out_y:i32[64] --check arith
// Unsigned sums wrap; signed ones are within their range.
#include "device.h"
kernel void k(global const uint *x, global int *y) {
  uint sum = x[lid] + lid;
  int difference = (int)lid - 64;
  int product = difference * 30;
  y[lid] = (int)sum + product;
}
