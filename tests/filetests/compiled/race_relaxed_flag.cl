// args: --grid 2 --block 128 --arg data:u32[128] --arg flag:u32[1] --arg out_y:u32[128]
// finds: race waits
// As clean_flag, but the flag is stored without a release.
#include "device.h"
kernel void k(global uint *data, global atomic_uint *flag, global uint *y) {
  if (group == 0) {
    data[lid] = lid + 1;
    meet();
    if (lid == 0) store(flag, 1, RELAXED, DEVICE);
  } else {
    if (lid == 0)
      while (load(flag, ACQUIRE, DEVICE) == 0) {}
    meet();
    y[lid] = data[127 - lid];
  }
}
