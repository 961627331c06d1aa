// args: --grid 1 --block 64 --arg x:u32[64]=arange(64) --arg out_y:u32[64] --arg 3
// Arrays that are selected by adding their distance.
#include "device.h"
kernel void k(global uint *x, global uint *y, uint n) {
  local uint a[64];
  local uint b[64];
  local uint c[32];
  a[lid] = x[lid]; b[lid] = x[lid] + 1; if (lid < 32) c[lid] = 3;
  meet();
  local uint *p = x[lid] & 1 ? a : b;
  local uint *q = x[lid] & 2 ? c : a;
  local uint *r = n == 3 ? &b[32] : c;
  uint s = 0;
  for (uint i = 0; i < 32; i++) s += p[i * 2] + q[i] + r[i];
  y[lid] = s + p[lid] + q[lid & 31] + r[lid & 31];
}
