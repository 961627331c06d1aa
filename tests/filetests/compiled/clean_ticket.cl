// args: --grid 4 --block 64 --arg count:u32[2] --arg sum:u32[1] --arg out_y:u32[4]
// orders: ascending reverse random:1
// A ticket lock in global memory: a workgroup releases to the next one.
#include "device.h"
kernel void k(global atomic_uint *lock, global uint *sum, global uint *y) {
  if (lid == 0) {
    uint t = add(&lock[0], 1, RELAXED, DEVICE);
    while (load(&lock[1], ACQUIRE, DEVICE) != t) {}
    sum[0] += t + 1;
    y[t] = sum[0];
    store(&lock[1], t + 1, RELEASE, DEVICE);
  }
}
