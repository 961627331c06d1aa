/* Variables of the program: initialised, zero, pointing to each other. */
#include "ids.h"

global int counter = 5, zeros[100];
global int *global place = &zeros[7];

kernel void first(global int *out) {
  out[GLOBAL_ID] = counter + *place;
  counter = GLOBAL_ID;
  zeros[GLOBAL_ID] = 3;
}

kernel void second(global int *out) {
  local int mine[128];
  mine[LOCAL_ID] = zeros[LOCAL_ID];
  __builtin_amdgcn_s_barrier();
  out[GLOBAL_ID] = mine[LOCAL_ID ^ 1];
}
