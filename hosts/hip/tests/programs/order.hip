// A result that depends on the order of workgroups, unless the environment variable CLEAN is set.
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#endif
#include <cstdio>
#include <cstdlib>

__global__ void last(int *out, int distance) { out[blockIdx.x * distance] = blockIdx.x + 1; }

int main() {
  int *data, out[2] = {};
  if (hipMalloc(&data, sizeof(out)) != hipSuccess)
    return 1;
  hipMemcpy(data, out, sizeof(out), hipMemcpyHostToDevice);
  last<<<2, 1>>>(data, getenv("CLEAN") ? 1 : 0);
  hipMemcpy(out, data, sizeof(out), hipMemcpyDeviceToHost);
  printf("%d %d\n", out[0], out[1]);
}
