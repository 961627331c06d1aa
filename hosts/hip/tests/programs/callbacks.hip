// Calls functions of another code object by their addresses, as rocFFT calls callbacks of programs. The other code
// object is a second instance of the program's own, whose file is the argument.
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#else
typedef struct ihipModule_t *hipModule_t;
typedef void *hipDeviceptr_t;
extern "C" {
hipError_t hipModuleLoad(hipModule_t *, const char *);
hipError_t hipModuleUnload(hipModule_t);
hipError_t hipModuleGetGlobal(hipDeviceptr_t *, size_t *, hipModule_t, const char *);
hipError_t hipMemcpyFromSymbol(void *, const void *, size_t, size_t, hipMemcpyKind);
}
#endif
#include <cstdio>

typedef int (*Callback)(int, int);

__device__ int factor = 3;
__device__ __attribute__((noinline)) int more(int x) { return x + factor; }
__device__ __attribute__((noinline)) int scaled(int x, int lane) { return x * factor + lane; }
__device__ __attribute__((noinline)) int summed(int x, int lane) {
  int sum = 0;
  for (int i = 0; i < lane; i++) sum += more(x);
  return sum;
}
__device__ Callback callbacks[2] = {scaled, summed};

__global__ void apply(int *data, const Callback *table, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = table[i % count](data[i], threadIdx.x) + 1;
}

int main(int, char **arguments) {
  const int n = 256;
  int *data, host[n], five = 5;
  Callback table[4], *device;
  hipModule_t other;
  hipDeviceptr_t address;
  size_t size;
  hipMalloc(&data, sizeof host);
  hipMalloc(&device, sizeof table);
  hipMemcpyFromSymbol(table, callbacks, sizeof callbacks, 0, hipMemcpyDeviceToHost);
  if (hipModuleLoad(&other, arguments[1]) != hipSuccess) return 1;
  hipModuleGetGlobal(&address, &size, other, "callbacks");
  hipMemcpy(table + 2, (void *)address, size, hipMemcpyDeviceToHost);
  hipModuleGetGlobal(&address, &size, other, "factor");
  hipMemcpy((void *)address, &five, sizeof five, hipMemcpyHostToDevice);
  hipMemcpy(device, table, sizeof table, hipMemcpyHostToDevice);
  int wrong = 0;
  for (int launch = 0; launch < 40; launch++) {
    for (int i = 0; i < n; i++) host[i] = i;
    hipMemcpy(data, host, sizeof host, hipMemcpyHostToDevice);
    apply<<<n / 64, 64>>>(data, device, 4);
    hipMemcpy(host, data, sizeof host, hipMemcpyDeviceToHost);
    for (int i = 0; i < n; i++) {
      int factor = i % 4 < 2 ? 3 : 5, lane = i % 64;
      wrong += host[i] != (i % 2 == 0 ? i * factor + lane : (i + factor) * lane) + 1;
    }
  }
  printf("own and other functions: %d wrong\n", wrong);
  hipModuleUnload(other);
  apply<<<1, 64>>>(data, device, 4);
  printf("after unloading: %s\n", hipGetErrorName(hipDeviceSynchronize()));
  return 0;
}
