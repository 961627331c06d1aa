// Measures the overhead of a launch with a kernel of few instructions, for queued launches and for launches that are waited for.
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#endif
#include <cstdio>
#include <time.h>

static double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

__global__ void empty(int *, int) {}

int main() {
  const int count = 20000;
  int *data;
  (void)hipMalloc(&data, 4096);
  for (int waited = 0; waited < 2; waited++) {
    empty<<<1, 32>>>(data, 1);
    (void)hipDeviceSynchronize();
    double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < count; i++) {
      empty<<<1, 32>>>(data, 1);
      if (waited) (void)hipDeviceSynchronize();
    }
    hipError_t status = hipDeviceSynchronize();
    start = now(CLOCK_MONOTONIC) - start, cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("HIP, %-16s %5.1f us a launch, %5.1f us of the CPU%s\n", waited ? "waited for" : "queued", start / count,
           cpu / count, status == hipSuccess ? "" : ": failed");
  }
}
