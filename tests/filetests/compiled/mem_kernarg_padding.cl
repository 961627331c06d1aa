// args: --grid 1 --block 64 --arg 7 --arg out_y:u32[64]
// finds: mem
// The kernel uses bytes between its arguments.
#include "device.h"
kernel void k(uint a, global uint *y) {
  constant uint *arguments = (constant uint *)__builtin_amdgcn_kernarg_segment_ptr();
  y[lid] = a + arguments[1];
}
