// args: --grid 2 --block 64 --arg data:u32[128] --arg count:u32[1] --arg out_y:u32[128]
// orders: ascending reverse random:1
// A barrier of all workgroups, as cooperative groups have one.
#include "device.h"
kernel void k(global uint *data, global atomic_uint *count, global uint *y) {
  uint i = group * 64 + lid;
  data[i] = i;
  meet();
  if (lid == 0) {
    add(count, 1, __ATOMIC_ACQ_REL, DEVICE);
    while (load(count, ACQUIRE, DEVICE) != 2) {}
  }
  meet();
  y[i] = data[127 - i];
}
