// Global memory that nothing has written: bytes of an allocation between those of a launch and of the host.
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#endif
#include <cstdio>

__global__ void first(unsigned char *out) { out[threadIdx.x] = threadIdx.x; }

__global__ void sum(const unsigned char *in, int *out) {
  out[threadIdx.x] = in[threadIdx.x];
}

int main(int argc, char **) {
  unsigned char *data, rest[32] = {};
  int *sums;
  if (hipMalloc(&data, 64) != hipSuccess || hipMalloc(&sums, 64 * sizeof(int)) != hipSuccess)
    return 1;
  first<<<1, 32>>>(data);
  // All of the rest, or all but one byte.
  hipMemcpy(data + 32, rest, argc > 1 ? 32 : 31, hipMemcpyHostToDevice);
  sum<<<1, 64>>>(data, sums);
  printf("%s\n", hipGetErrorName(hipDeviceSynchronize()));
}
