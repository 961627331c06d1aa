// args: --grid 2 --block 128 --arg out_y:u32[2]
// orders: ascending reverse random:1
// A lock in LDS: two waves count under it.
#include "device.h"
kernel void k(global uint *y) {
  local atomic_uint lock;
  local uint count;
  if (lid == 0) {
    store(&lock, 0, RELAXED, WORKGROUP);
    count = 0;
  }
  meet();
  if (lid % 64 == 0) {
    for (bool done = false; !done;) {
      uint expected = 0;
      if (__opencl_atomic_compare_exchange_strong(&lock, &expected, 1, ACQUIRE, RELAXED, WORKGROUP)) {
        count += 1;
        store(&lock, 0, RELEASE, WORKGROUP);
        done = true;
      }
    }
  }
  meet();
  if (lid == 0) y[group] = count;
}
