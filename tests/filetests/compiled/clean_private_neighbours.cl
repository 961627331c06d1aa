// args: --grid 1 --block 64 --arg out_y:u32[64] --arg 8
// Arrays in frames of the kernel and of a function, up to their ends.
#include "device.h"
__attribute__((noinline)) uint of(uint n, uint m) {
  volatile uint a[8];
  volatile uint b[4];
  for (uint i = 0; i < n; i++) a[i] = i + m;
  for (uint i = 0; i < n / 2; i++) b[i] = i;
  return a[n - 1] + b[m & 3];
}
kernel void k(global uint *y, uint n) {
  volatile uint a[8];
  volatile uint b[8];
  for (uint i = 0; i < 8; i++) a[i] = b[i] = i;
  for (uint i = 0; i < n; i++) a[i] += lid;
  volatile uint *one = lid & 1 ? a : b;
  y[lid] = a[lid & 7] + b[n - 1] + one[lid & 7] + of(n, lid);
}
