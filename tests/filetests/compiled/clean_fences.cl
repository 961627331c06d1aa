// args: --grid 3 --block 64 --arg data:u32[64] --arg flag:u32[1] --arg out_y:u32[128]
// orders: ascending reverse random:1
// A relaxed flag between fences, with two consumers.
#include "device.h"
kernel void k(global uint *data, global atomic_uint *flag, global uint *y) {
  if (group == 0) {
    data[lid] = lid + 1;
    meet();
    if (lid == 0) { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent"); store(flag, 1, RELAXED, DEVICE); }
  } else {
    if (lid == 0) { while (load(flag, RELAXED, DEVICE) == 0) {} __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent"); }
    meet();
    y[(group - 1) * 64 + lid] = data[63 - lid];
  }
}
