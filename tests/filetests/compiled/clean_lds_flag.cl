// args: --grid 2 --block 128 --arg out_y:u32[2] --arg 1
// The last wave produces, the first one waits for its flag, the address of which is computed.
#include "device.h"
kernel void k(global uint *y, uint place) {
  local atomic_uint flags[4];
  local uint data[64];
  if (lid < 4) store(&flags[lid], 0, RELAXED, WORKGROUP);
  meet();
  if (lid >= 64) {
    data[lid - 64] = lid;
    if (lid == 64) {
      store(&flags[place], 1, RELEASE, WORKGROUP);
    }
  } else if (lid == 0) {
    while (load(&flags[place], ACQUIRE, WORKGROUP) == 0) {}
    y[group] = data[0];
  }
}
