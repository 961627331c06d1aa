// Compares hipCUB's device-wide and workgroup algorithms with results computed on the host.
#include <algorithm>
#include <cstdio>
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>
#include <numeric>
#include <vector>

const int n = 20000;

struct Odd {
  __host__ __device__ bool operator()(int x) const { return x & 1; }
};

__global__ void sums(const int *in, int *out) {
  using Scan = hipcub::BlockScan<int, 128>;
  __shared__ Scan::TempStorage storage;
  int i = blockIdx.x * 128 + threadIdx.x, sum;
  Scan(storage).InclusiveSum(i < n ? in[i] : 0, sum);
  if (i < n) out[i] = sum;
}

// Calls an algorithm twice, as hipCUB requires: to query the size of temporary storage, then to run it.
template <class F> static void run(F algorithm) {
  size_t bytes = 0;
  void *memory = nullptr;
  (void)algorithm(memory, bytes);
  (void)hipMalloc(&memory, bytes);
  (void)algorithm(memory, bytes);
  (void)hipFree(memory);
}

static void tell(const char *what, const std::vector<int> &expected, const int *device, int count) {
  std::vector<int> got(count);
  (void)hipMemcpy(got.data(), device, count * sizeof(int), hipMemcpyDeviceToHost);
  printf("%s: %s\n", what, got == expected ? "as the host" : "not as the host");
}

int main() {
  std::vector<int> in(n), out(n);
  unsigned state = 1;
  for (int &x : in) x = (state = state * 1664525 + 1013904223) >> 16;
  int *a, *b, *count, selected;
  (void)hipMalloc(&a, n * sizeof(int));
  (void)hipMalloc(&b, n * sizeof(int));
  (void)hipMalloc(&count, sizeof(int));
  (void)hipMemcpy(a, in.data(), n * sizeof(int), hipMemcpyHostToDevice);

  run([&](void *m, size_t &s) { return hipcub::DeviceReduce::Sum(m, s, a, b, n); });
  tell("reduce", {std::accumulate(in.begin(), in.end(), 0)}, b, 1);

  std::partial_sum(in.begin(), in.end(), out.begin());
  run([&](void *m, size_t &s) { return hipcub::DeviceScan::InclusiveSum(m, s, a, b, n); });
  tell("scan", out, b, n);

  for (int i = 0; i < n; i++) out[i] = in[i] + (i % 128 ? out[i - 1] : 0);
  sums<<<(n + 127) / 128, 128>>>(a, b);
  tell("scans of workgroups", out, b, n);

  out.clear();
  std::copy_if(in.begin(), in.end(), std::back_inserter(out), Odd());
  run([&](void *m, size_t &s) { return hipcub::DeviceSelect::If(m, s, a, b, count, n, Odd()); });
  (void)hipMemcpy(&selected, count, sizeof(int), hipMemcpyDeviceToHost);
  tell("select", out, b, selected);

  // The elements that are not selected follow in reverse order.
  for (int i = n - 1; i >= 0; i--)
    if (!Odd()(in[i])) out.push_back(in[i]);
  run([&](void *m, size_t &s) { return hipcub::DevicePartition::If(m, s, a, b, count, n, Odd()); });
  tell("partition", out, b, n);

  out = in;
  std::sort(out.begin(), out.end());
  run([&](void *m, size_t &s) { return hipcub::DeviceRadixSort::SortKeys(m, s, a, b, n); });
  tell("radix sort", out, b, n);
}
