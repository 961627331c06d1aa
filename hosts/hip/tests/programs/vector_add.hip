// Adds two vectors.
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#endif
#include <cstdio>
#include <vector>

__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i];
}

int main() {
  const int n = 1000;
  std::vector<float> a(n, 1.5f), b(n), c(n);
  for (int i = 0; i < n; i++)
    b[i] = i;
  float *da, *db, *dc;
  hipMalloc(&da, n * sizeof(float));
  hipMalloc(&db, n * sizeof(float));
  hipMalloc(&dc, n * sizeof(float));
  hipMemcpy(da, a.data(), n * sizeof(float), hipMemcpyHostToDevice);
  hipMemcpy(db, b.data(), n * sizeof(float), hipMemcpyHostToDevice);
  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  hipError_t status = hipMemcpy(c.data(), dc, n * sizeof(float), hipMemcpyDeviceToHost);
  hipDeviceProp_t properties = {};
  hipGetDeviceProperties(&properties, 0);
  printf("%s, %s: c[1] = %g, c[999] = %g\n", properties.name, hipGetErrorString(status), c[1], c[999]);
  hipFree(da);
  hipFree(db);
  hipFree(dc);
}
