// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg out_y:u32[64]
// finds: mem
// A function returns the address of a variable in its own frame.
#include "device.h"
__attribute__((noinline)) private volatile uint *fill(uint n) {
  volatile uint own[4];
  own[0] = own[1] = own[2] = own[3] = n;
  own[n & 3] = n + 1;
  private volatile uint *address = own;
  __asm__ volatile("" : "+v"(address));
  return address;
}
kernel void k(global uint *x, global uint *y) {
  private volatile uint *v = fill(x[lid]);
  y[lid] = v[x[lid] & 3];
}
