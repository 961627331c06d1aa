/* A switch, tables of numbers and of text in .rodata, tables of pointers to them. */
#include "ids.h"

constant int primes[16] = {1, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
constant char text[] = "hello, \"world\"\t\001 \\ and\0more";
constant float4 vectors[3] = {(float4)(1, 2, 3, 4), (float4)(0.5f, -1e30f, 3.5f, -0.0f), (float4)(0)};
constant double doubles[] = {1.0 / 3, 1e300, -5e-324};
constant int first[] = {1, 2, 3}, second[] = {4, 5, 6, 7};
constant int *constant tables[] = {first, second, primes + 4};

kernel void choose(global int *out) {
  int id = GLOBAL_ID, r;
  switch (out[id] & 15) {
  case 0: r = primes[id & 15]; break;
  case 1: r = id * 3; break;
  case 2: r = id ^ 5; break;
  case 3: r = text[id % 24]; break;
  case 4: r = id / 7; break;
  case 5: r = id % 13; break;
  case 6: r = (int)vectors[id % 3].y; break;
  case 7: r = __builtin_popcount(id); break;
  case 8: r = __builtin_clz(id); break;
  case 9: r = (int)doubles[id % 3]; break;
  case 10: r = tables[id % 3][id & 1]; break;
  default: r = -1;
  }
  out[id] = r;
}
