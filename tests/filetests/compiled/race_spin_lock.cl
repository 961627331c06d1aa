// args: --grid 1 --block 128 --arg out_y:u32[1]
// finds: race
// The lock is given back before what it guards is changed.
#include "device.h"
kernel void k(global uint *y) {
  local atomic_uint lock;
  local volatile uint count;
  if (lid == 0) {
    store(&lock, 0, RELAXED, WORKGROUP);
    count = 0;
  }
  meet();
  if (lid % 64 == 0) {
    for (bool done = false; !done;) {
      uint expected = 0;
      if (__opencl_atomic_compare_exchange_strong(&lock, &expected, 1, ACQUIRE, RELAXED, WORKGROUP)) {
        store(&lock, 0, RELEASE, WORKGROUP);
        count += 1;
        done = true;
      }
    }
  }
  meet();
  if (lid == 0) y[group] = count;
}
