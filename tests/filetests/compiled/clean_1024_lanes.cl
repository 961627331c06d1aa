// args: --grid 2 --block 1024 --arg x:u32[2048]=arange(2048) --arg out_y:u32[2048] --check all,lanes,arith
// The largest workgroup: its lanes are reversed through LDS.
#include "device.h"
__attribute__((reqd_work_group_size(1024, 1, 1))) kernel void k(global uint *x, global uint *y) {
  local uint tile[1024];
  tile[lid] = x[group * 1024 + lid];
  meet();
  y[group * 1024 + lid] = tile[1023 - lid];
}
