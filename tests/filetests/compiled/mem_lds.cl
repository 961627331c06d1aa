// args: --grid 1 --block 64 --arg out_y:u32[64]
// finds: mem
// A part of LDS that nothing has written.
#include "device.h"
kernel void k(global uint *y) {
  local volatile uint s[64];
  if (lid < 63) s[lid] = lid;
  meet();
  y[lid] = s[lid];
}
