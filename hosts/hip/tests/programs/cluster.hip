// CDNA 5: the workgroups of a cluster, of one wave each, exchange numbers at its barrier.
#include <cstdio>
#include <vector>

typedef decltype(hipSuccess) Status;

// The attribute of ROCm 7's headers, in the layout of `hipLaunchAttribute`.
struct Attribute {
  unsigned id;
  unsigned padding;
  unsigned value[16];
};
struct Config {
  dim3 grid, block;
  size_t lds;
  hipStream_t stream;
  Attribute *attributes;
  unsigned count;
};
extern "C" Status hipLaunchKernelExC(const Config *, const void *, void **);
const unsigned CLUSTER_DIMENSION = 4;

// Each workgroup adds up what the others of its cluster have stored before the barrier.
__global__ void exchange(unsigned *numbers, unsigned *sums) {
#ifdef __HIP_DEVICE_COMPILE__
  unsigned group = __builtin_amdgcn_workgroup_id_x();
  unsigned own = __builtin_amdgcn_cluster_workgroup_id_x();
  unsigned size = __builtin_amdgcn_cluster_workgroup_max_id_x() + 1;
  if (threadIdx.x == 0)
    numbers[group] = 100 * __builtin_amdgcn_cluster_id_x() + own;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "cluster");
  __builtin_amdgcn_s_cluster_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "cluster");
  unsigned sum = 0;
  for (unsigned i = 0; i < size; i++)
    sum += numbers[group - own + i];
  if (threadIdx.x == 0)
    sums[group] = sum;
#endif
}

int main() {
  unsigned *numbers, *sums;
  hipMalloc(&numbers, 8 * sizeof(unsigned));
  hipMalloc(&sums, 8 * sizeof(unsigned));
  void *arguments[] = {&numbers, &sums};
  Attribute attribute = {CLUSTER_DIMENSION, 0, {4, 1, 1}};
  Config config = {dim3(8), dim3(32), 0, nullptr, &attribute, 1};
  Status status = (Status)hipLaunchKernelExC(&config, (const void *)exchange, arguments);
  std::vector<unsigned> out(8);
  hipMemcpy(out.data(), sums, 8 * sizeof(unsigned), hipMemcpyDeviceToHost);
  printf("%s:", hipGetErrorString(status));
  for (unsigned sum : out)
    printf(" %u", sum);
  printf("\n");
}
