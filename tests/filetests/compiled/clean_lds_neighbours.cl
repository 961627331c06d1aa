// args: --grid 1 --block 64 --arg out_y:u32[64]
// Accesses at the ends of arrays in LDS, with distances before and after; one of two buffers, by turns and by lane; a
// pointer that counts up.
#include "device.h"
kernel void k(global uint *y) {
  local uint a[64];
  local uint b[32];
  local uint turns[2][64];
  a[lid] = lid;
  if (lid < 32) b[lid] = 7;
  turns[0][lid] = lid;
  meet();
  uint sum = lid < 63 ? a[lid + 1] : 0;
  if (lid >= 1 && lid < 33) sum += b[lid - 1];
  local uint *one = lid & 1 ? &a[3] : &b[3];
  sum += one[lid & 7];
  for (local uint *at = b; at != b + 32; at++) sum += *at;
  for (int i = 31; i >= 0; i--) sum -= b[i];
  for (int step = 0; step < 4; step++) {
    turns[~step & 1][lid] = turns[step & 1][63 - lid] + sum;
    meet();
  }
  y[lid] = turns[0][lid];
}
