// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg out_y:u32[64]
// The kernel only loads constant data, and stores to a variable.
#include "device.h"
constant uint table[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
global uint variable = 3;
kernel void k(global uint *x, global uint *y) {
  constant uint *from = &table[x[lid] & 15];
  y[lid] = *from;
  __asm__ volatile("" : "+v"(from));
  if (lid == 3) *(global volatile uint *)&variable = 7;
}
