// args: --grid 2 --block 256 --arg data:u32[256] --arg flag:u32[1] --arg out_y:u32[256]
// orders: ascending reverse random:1
// As clean_flag, with several waves: the wave that releases covers the stores of the others before the barrier.
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
    y[lid] = data[255 - lid];
  }
}
