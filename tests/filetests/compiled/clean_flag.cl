// args: --grid 2 --block 64 --arg data:u32[64] --arg flag:u32[1] --arg out_y:u32[64]
// orders: ascending reverse random:1
// One workgroup produces, the other waits for its flag.
#include "device.h"
kernel void k(global uint *data, global atomic_uint *flag, global uint *y) {
  if (group == 0) {
    data[lid] = lid + 1;
    meet();
    if (lid == 0) store(flag, 1, RELEASE, DEVICE);
  } else {
    if (lid == 0)
      while (load(flag, ACQUIRE, DEVICE) == 0) {}
    meet();
    y[lid] = data[63 - lid];
  }
}
