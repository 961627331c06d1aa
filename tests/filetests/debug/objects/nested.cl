#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
typedef struct {
  float weight;
  int count;
} Part;

static __attribute__((always_inline)) float square(float q) { return q * q; }

__attribute__((noinline)) static int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }

__attribute__((noinline)) static float mix(local const float *tile, Part *part, int i) {
  float sum = square(tile[i]);
  for (int k = 0; k < part->count; k++) {
    sum += square(part->weight);
  }
  return sum;
}

kernel void nested(global float *out, int n) {
  local float tile[32];
  local int small[4];
  int i = __builtin_amdgcn_workitem_id_x();
  Part part = {0.5f, n};
  // The indirect call makes the size of the stack dynamic.
  int (*volatile start)(int) = factorial;
  if (i < 4) small[i] = start(i + 1);
  tile[i] = i;
  __builtin_amdgcn_s_barrier();
  out[i] = mix(tile, &part, i) + small[i & 3];
}
