// The mean of each element and its neighbours. docs/debugging.md finds the error, in a session of twelve tasks.
//
// Compiled with
//   clang-19 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -O1 -g -nogpulib -cl-std=CL2.0 \
//     -fdebug-compilation-dir=/src smooth.cl -o smooth.co
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half half2 __attribute__((ext_vector_type(2)));

typedef struct {
  float sum;
  int count;
} Mean;

static inline float mean_of(const Mean *mean, int radius) {
  return mean->sum / (2 * radius + 1);
}

__attribute__((noinline)) static float smooth(local const float *tile, int i, int radius) {
  Mean mean = {0.0f, 0};
  for (int k = -radius; k <= radius; k++) {
    int at = i + k;
    if (at >= 0 && at < 64) {
      mean.sum += tile[at];
      mean.count += 1;
    }
  }
  return mean_of(&mean, radius);
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void
blur(global const float *x, global float *out_y, global half2 *out_pair, int radius) {
  local float tile[64];
  int i = __builtin_amdgcn_workitem_id_x();
  float own = x[i];
  tile[i] = own;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  float mean = smooth(tile, i, radius);
  half2 pair = {(half)own, (half)mean};
  out_pair[i] = pair;
  out_y[i] = mean;
}
