// Invalid uses of the API and of memory, with the returned statuses.
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#endif
#include <cstdio>
#include <vector>

__global__ void fill(int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = n;
}

static void tell(const char *what, hipError_t status) { printf("%s: %s\n", what, hipGetErrorName(status)); }

int main() {
  int *data, local[4];
  if (hipMalloc(&data, 40 * sizeof(int)) != hipSuccess)
    return 1;
  tell("copy beyond the end", hipMemcpy(data, local, 1000, hipMemcpyHostToDevice));
  tell("copy to the host's memory", hipMemcpy(local, local, 16, hipMemcpyHostToDevice));
  fill<<<1, 2000>>>(data, 1);
  tell("too many work-items", hipGetLastError());
  fill<<<0, 32>>>(data, 1);
  tell("no workgroups", hipGetLastError());
  tell("stale stream", hipStreamSynchronize((hipStream_t)0x123450));
  tell("unknown function", hipLaunchKernel((void *)local, dim3(1), dim3(1), nullptr, 0, 0));
  tell("another process", hipIpcCloseMemHandle(data));
  fill<<<1, 64>>>(data, 1);
  tell("beyond the allocation", hipDeviceSynchronize());
  tell("after that", hipMemcpy(local, data, 16, hipMemcpyDeviceToHost));
  tell("reset", hipDeviceReset());
  tell("free", hipFree(data));
  tell("free twice", hipFree(data));
  fill<<<1, 32>>>(data, 1);
  tell("freed memory", hipDeviceSynchronize());
}
