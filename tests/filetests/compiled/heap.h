/* A small allocator with the names and the interface of that of ROCm's device libraries, in memory of the kernel. */
#include "device.h"
__attribute__((noinline)) ulong __ockl_dm_alloc(ulong size, global uint *heap) {
  uint at = __opencl_atomic_fetch_add((global atomic_uint *)heap, (uint)(size + 31) / 16 * 16, RELAXED, DEVICE);
  return (ulong)heap + 64 + at;
}
__attribute__((noinline)) void __ockl_dm_dealloc(ulong block, global uint *heap) {
  __opencl_atomic_fetch_add((global atomic_uint *)heap + 1, (uint)block, RELAXED, DEVICE);
}
#define allocate(size) (global uint *)__ockl_dm_alloc((size), heap)
#define release(p) __ockl_dm_dealloc((ulong)(p), heap)
