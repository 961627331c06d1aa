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
  // The first error.
  hipError_t status = hipSuccess;
  auto check = [&](hipError_t now) { status = status == hipSuccess ? now : status; };
  float *da, *db, *dc;
  check(hipMalloc(&da, n * sizeof(float)));
  check(hipMalloc(&db, n * sizeof(float)));
  check(hipMalloc(&dc, n * sizeof(float)));
  check(hipMemcpy(da, a.data(), n * sizeof(float), hipMemcpyHostToDevice));
  check(hipMemcpy(db, b.data(), n * sizeof(float), hipMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  check(hipGetLastError());
  check(hipMemcpy(c.data(), dc, n * sizeof(float), hipMemcpyDeviceToHost));
  check(hipFree(da));
  check(hipFree(db));
  check(hipFree(dc));
  hipDeviceProp_t properties = {};
  check(hipGetDeviceProperties(&properties, 0));
  printf("%s, %s: c[1] = %g, c[999] = %g\n", properties.name, hipGetErrorString(status), c[1], c[999]);
}
