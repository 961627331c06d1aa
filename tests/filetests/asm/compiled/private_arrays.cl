/* Arrays in scratch, reached by computed indices, of scalars and of vectors. */
#include "ids.h"

kernel void scalars(global int *out, global const int *in, int n) {
  int a[32], id = GLOBAL_ID, sum = 0;
  for (int i = 0; i < 32; i++) a[i] = in[(id + i) % n];
  for (int i = 0; i < 32; i++) sum += a[(sum + i * id) & 31];
  out[id] = sum;
}

kernel void vectors(global float4 *out, global const float4 *in, int n) {
  float4 a[8];
  for (int i = 0; i < 8; i++) a[i] = in[i * n] * 0.1f;
  for (int i = 0; i < n; i++) a[i & 7].yz = a[(i + n) & 7].xw;
  out[GLOBAL_ID] = a[LOCAL_ID & 7];
}
