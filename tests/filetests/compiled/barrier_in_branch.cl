// args: --grid 1 --block 128 --arg out_y:u32[128]
// finds: barrier
// Two of the waves come to the barrier.
#include "device.h"
kernel void k(global uint *y) {
  if (lid < 64) meet();
  y[lid] = lid;
}
