/* Numbers of every width, conversions, atomics of every order and scope. */
#include "ids.h"
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

kernel void numbers(global double *d, global half *h, global long *l, global ulong4 *u, global short8 *s) {
  int id = GLOBAL_ID;
  d[id] = __builtin_fma(d[id], 2.5, (double)h[id]) / 3.0;
  h[id] = (half)d[id] * (half)1.5 + h[id + 1];
  l[id] = l[id] / (id + 3) + (long)d[id];
  u[id] = u[id] * 7 + (u[id] >> 13);
  s[id] = s[id] * (short)3 + __builtin_convertvector((int8)(id), short8);
}

kernel void atomics(global atomic_int *a, global atomic_ulong *b, local atomic_int *c) {
  int id = GLOBAL_ID, expected = 5;
  __opencl_atomic_fetch_add(a, id, __ATOMIC_SEQ_CST, __OPENCL_MEMORY_SCOPE_DEVICE);
  __opencl_atomic_fetch_min(a + 1, id, __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_WORK_GROUP);
  __opencl_atomic_fetch_add(b, (ulong)id, __ATOMIC_ACQ_REL, __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES);
  __opencl_atomic_fetch_xor(c + (id & 7), id, __ATOMIC_ACQUIRE, __OPENCL_MEMORY_SCOPE_WORK_GROUP);
  __opencl_atomic_store(a + 2, id, __ATOMIC_RELEASE, __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES);
  __opencl_atomic_compare_exchange_strong(a + 3, &expected, 9, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED,
                                          __OPENCL_MEMORY_SCOPE_WORK_GROUP);
  __opencl_atomic_store(a + 4, expected, __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE);
}
