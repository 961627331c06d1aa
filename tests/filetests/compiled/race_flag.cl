// args: --grid 2 --block 64 --arg data:u32[64] --arg flag:u32[1] --arg out_y:u32[64]
// finds: race waits
// The flag is set first.
#include "device.h"
kernel void k(global uint *data, global atomic_uint *flag, global uint *y) {
  if (group == 0) {
    if (lid == 0) store(flag, 1, RELEASE, DEVICE);
    __asm__ volatile("" ::: "memory");
    data[lid] = lid + 1;
  } else {
    if (lid == 0)
      while (load(flag, ACQUIRE, DEVICE) == 0) {}
    meet();
    y[lid] = data[63 - lid];
  }
}
