// args: --grid 1 --block 128 --arg x:u32[128]=arange(128) --arg out_y:u32[128] --check all,lanes
// finds: lanes
// A sum within each wave, without barriers.
#include "device.h"
__attribute__((reqd_work_group_size(128, 1, 1))) kernel void k(global uint *x, global uint *y) {
  local volatile uint sums[128];
  sums[lid] = x[lid];
  for (uint step = 16; step > 0; step /= 2)
    if (lid % 32 < step) sums[lid] = sums[lid] + sums[lid + step];
  y[lid] = sums[lid];
}
