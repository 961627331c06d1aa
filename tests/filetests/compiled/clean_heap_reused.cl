// args: --grid 2 --block 64 --arg heap:u32[4096] --arg out_y:u32[128] --check all,lanes,arith
// Blocks that other waves have used and freed. The allocator itself orders nothing, and its records race.
#include "device.h"
__attribute__((noinline)) ulong __ockl_dm_alloc(ulong size, global uint *heap) {
  if (size > 16) return 0;
  for (uint at = lid & 7;; at = (at + 1) & 7) {
    uint old = __opencl_atomic_fetch_or((global atomic_uint *)heap + at, 1, RELAXED, DEVICE);
    if (old & 1) continue;
    heap[16 + at] = heap[16 + ((at + 1) & 7)] + lid;
    return (ulong)(heap + 64 + 16 * at);
  }
}
__attribute__((noinline)) void __ockl_dm_dealloc(ulong block, global uint *heap) {
  uint at = (uint)((block - (ulong)(heap + 64)) / 64);
  __opencl_atomic_fetch_and((global atomic_uint *)heap + at, ~1u, RELAXED, DEVICE);
}
kernel void k(global uint *heap, global uint *y) {
  uint sum = 0;
  for (uint i = 0; i < 2; i++) {
    for (uint turn = 0; turn < 64; turn++) {
      if (turn != lid) continue;
      global uint *p = (global uint *)__ockl_dm_alloc(16, heap);
      p[0] = lid + i;
      p[3] = p[0] * 2;
      sum += p[3];
      __ockl_dm_dealloc((ulong)p, heap);
    }
  }
  y[group * 64 + lid] = sum;
}
