// args: --grid 4 --block 64 --arg part:u32[4] --arg count:u32[1] --arg out_y:u32[1]
// orders: ascending reverse random:1
// The last workgroup to come adds up what the others have stored.
#include "device.h"
kernel void k(global uint *part, global atomic_uint *count, global uint *y) {
  if (lid == 0) {
    part[group] = group + 1;
    if (add(count, 1, __ATOMIC_ACQ_REL, DEVICE) == 3) {
      uint sum = 0;
      for (uint g = 0; g < 4; g++) sum += part[g];
      y[0] = sum;
    }
  }
}
