/* Functions that are not inlined: structures by value and by address, recursion, generic pointers, aligned frames. */
#include "ids.h"

typedef struct {
  float x, y;
  int k[5];
} S;

__attribute__((noinline)) float length_of(S s) { return s.x * s.x + s.y * s.y + s.k[3]; }
__attribute__((noinline)) void update(S *s, int i) { s->x += i; s->k[i % 5] = i; }
__attribute__((noinline)) static long mix(long a, int b, float c, double d, uchar e) {
  return a * b + (long)c + (long)d + e;
}
__attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__attribute__((noinline)) static void fill(int16 *v, int k) {
  for (int i = 0; i < 4; i++) v[i] = (int16)(k + i);
}
__attribute__((noinline)) int pair(const int *p) { return *p + p[1]; }

kernel void structures(global float *out, global long *more, int n) {
  int id = GLOBAL_ID;
  S s = {id, n, {1, 2, 3, 4, 5}};
  for (int i = 0; i < n; i++) update(&s, i);
  out[id] = length_of(s);
  more[id] = mix(id, n, s.x, s.y, s.k[0]);
}

kernel void recursion(global int *out) {
  int16 v[4];
  fill(v, out[0]);
  out[GLOBAL_ID] = fibonacci(LOCAL_ID & 7) + v[out[1] & 3].s7;
}

kernel void generic_pointers(global int *g, local int *l) {
  int p[4] = {1, 2, 3, GLOBAL_ID};
  l[LOCAL_ID] = p[3];
  __builtin_amdgcn_s_barrier();
  const int *q = (g[0] & 1) ? (const int *)g : (g[1] & 1) ? (const int *)l : (const int *)p;
  g[GLOBAL_ID] = pair(q);
}
