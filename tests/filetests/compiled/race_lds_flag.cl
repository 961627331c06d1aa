// args: --grid 1 --block 128 --arg out_y:u32[1] --arg 1
// finds: race
// The flag is set before the data.
#include "device.h"
kernel void k(global uint *y, uint place) {
  local atomic_uint flags[4];
  local volatile uint data[64];
  if (lid < 4) store(&flags[lid], 0, RELAXED, WORKGROUP);
  meet();
  if (lid == 64) {
    store(&flags[place], 1, RELEASE, WORKGROUP);
    data[0] = lid;
  } else if (lid == 0) {
    while (load(&flags[place], ACQUIRE, WORKGROUP) == 0) {}
    y[group] = data[0];
  }
}
