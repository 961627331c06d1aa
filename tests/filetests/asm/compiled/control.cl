/* Loops that are left and resumed, cases that fall through, goto. */
#include "ids.h"

kernel void control(global int *out, global const int *in, int n) {
  int id = GLOBAL_ID, acc = 0;
  for (int i = 0; i < n; i++) {
    int v = in[i];
    if (v == id) continue;
    if (v < 0) break;
    switch (v % 5) {
    case 0: acc += v;
    case 1: acc ^= v; break;
    case 2:
      if (acc > 100) goto end;
      acc *= 2;
      break;
    case 3:
      for (int j = v; j > 1; j = j & 1 ? 3 * j + 1 : j / 2) acc++;
      break;
    default: acc--;
    }
  }
end:
  out[id] = acc;
}
