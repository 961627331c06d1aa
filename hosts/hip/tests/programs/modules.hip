// Managed variables of modules, launches on several devices whose grids wait for each other, and refused parameters.
#include <cstdio>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <string>
#include <vector>

static const char *source = R"(
__managed__ int counter = 5;
__managed__ double *pointer;
extern "C" __global__ void count(int *seen) {
  seen[0] = counter;
  counter = 9;
  if (pointer) pointer[1] = 2.5;
}
)";

// Each work-item stores its rank; after all grids have, each sums up everything.
__global__ void ranks(int *all, int *sums) {
  auto grids = cooperative_groups::this_multi_grid();
  all[grids.thread_rank()] = grids.thread_rank() + 1;
  grids.sync();
  int sum = 0;
  for (unsigned i = 0; i < grids.size(); i++) sum += all[i];
  atomicAdd(&sums[grids.grid_rank()], sum);
}

__global__ void store(int *to, int value) { to[threadIdx.x] = value; }

static const char *name(hipError_t status) { return hipGetErrorName(status); }

static void managed() {
  hiprtcProgram program;
  hiprtcCreateProgram(&program, source, "managed.hip", 0, nullptr, nullptr);
  const char *options[] = {"", "--offload-arch=gfx1100"};
  printf("compile %d\n", hiprtcCompileProgram(program, 2, options));
  size_t size = 0;
  hiprtcGetCodeSize(program, &size);
  std::vector<char> code(size);
  hiprtcGetCode(program, code.data());
  hipModule_t module;
  hipFunction_t count;
  hipModuleLoadData(&module, code.data());
  hipModuleGetFunction(&count, module, "count");
  int *counter, *seen;
  double **pointer, *numbers;
  hipModuleGetGlobal((hipDeviceptr_t *)&counter, &size, module, "counter");
  printf("counter %d, %zu bytes\n", *counter, size);
  hipModuleGetGlobal((hipDeviceptr_t *)&pointer, &size, module, "pointer");
  hipMallocManaged((void **)&seen, 4);
  hipMallocManaged((void **)&numbers, 16);
  *counter = 7;
  *pointer = numbers;
  void *arguments[] = {&seen};
  hipModuleLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
  hipDeviceSynchronize();
  printf("seen %d, counter %d, number %g\n", *seen, *counter, numbers[1]);
  hipPointerAttribute_t attributes;
  hipPointerGetAttributes(&attributes, counter);
  printf("managed %d\n", attributes.isManaged);
  size_t length = sizeof seen;
  void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &seen, HIP_LAUNCH_PARAM_BUFFER_SIZE, &length, HIP_LAUNCH_PARAM_END};
  auto launch = [&](unsigned x, unsigned y, unsigned block, void **pointers, void **buffer) {
    return name(hipModuleLaunchKernel(count, x, y, 1, block, 1, 1, 0, nullptr, pointers, buffer));
  };
  hipFunction_t again, symbols[2];
  hipModuleGetFunction(&again, module, "count");
  for (auto &symbol : symbols) hipGetFuncBySymbol(&symbol, (void *)store);
  printf("one handle: %d %d\n", again == count, symbols[0] == symbols[1]);
  printf("refused: %s %s %s %s %s\n", launch(0, 1, 1, arguments, nullptr), launch(1, 65537, 1, arguments, nullptr),
         launch(1, 1, 2048, arguments, nullptr), launch(1, 1, 1, arguments, extra),
         name(hipModuleLaunchCooperativeKernel(count, 0, 1, 1, 1, 1, 1, 0, nullptr, arguments)));
  printf("items: %s", name(hipHccModuleLaunchKernel(count, 4, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra)));
  hipDeviceSynchronize();
  printf(", seen %d, %s %s\n", *seen, name(hipHccModuleLaunchKernel(count, 1, 1, 1, 10, 1, 1, 0, nullptr, nullptr, extra)),
         name(hipHccModuleLaunchKernel(count, 3, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra)));
  *seen = 0;
  printf("70000 workgroups: %s", name(hipExtModuleLaunchKernel(count, 1, 70000, 1, 1, 1, 1, 0, nullptr, nullptr, extra, nullptr, nullptr)));
  hipDeviceSynchronize();
  printf(", seen %d\n", *seen);
  int version = 0;
  hipFuncGetAttribute(&version, HIP_FUNC_ATTRIBUTE_BINARY_VERSION, count);
  printf("version %d\n", version);
  hipDeviceptr_t address;
  printf("variables: %s %s %s\n", name(hipModuleGetGlobal(&address, &size, module, "")),
         name(hipModuleGetGlobal(nullptr, nullptr, module, "counter")),
         name(hipModuleGetGlobal(&address, &size, module, "nothing")));
  auto first = hipModuleUnload(module);
  printf("unload: %s %s %s, load: %s\n", name(first), name(hipModuleUnload(module)), name(hipModuleUnload(nullptr)),
         name(hipModuleLoad(&module, "")));
  hipPointerGetAttributes(&attributes, counter);
  printf("managed %d\n", attributes.isManaged);
}

int main() {
  managed();
  int *all, *sums, *stored;
  hipMallocManaged((void **)&all, 64 * sizeof *all);
  hipMallocManaged((void **)&sums, 2 * sizeof *sums);
  hipMallocManaged((void **)&stored, 4 * sizeof *stored);
  hipStream_t streams[2];
  hipLaunchParams list[2];
  void *arguments[] = {&all, &sums};
  int values[2] = {3, 4};
  int *places[2] = {stored, stored + 2};
  void *stores[2][2] = {{&places[0], &values[0]}, {&places[1], &values[1]}};
  for (int device = 0; device < 2; device++) {
    hipSetDevice(device);
    hipStreamCreate(&streams[device]);
    list[device] = {(void *)ranks, dim3(2), dim3(16), arguments, 0, streams[device]};
  }
  printf("grids: %s", name(hipLaunchCooperativeKernelMultiDevice(list, 2, 0)));
  // 64 work-items with the ranks 1 to 64: 32 of each grid add up 2080.
  printf(", sums %d %d\n", sums[0], sums[1]);
  list[1].gridDim = dim3(1);
  printf("of two shapes: %s\n", name(hipLaunchCooperativeKernelMultiDevice(list, 2, 0)));
  for (int device = 0; device < 2; device++)
    list[device] = {(void *)store, dim3(1), dim3(2 - device), stores[device], 0, streams[device]};
  printf("kernels: %s", name(hipExtLaunchMultiKernelMultiDevice(list, 2, 0)));
  printf(", stored %d %d %d %d\n", stored[0], stored[1], stored[2], stored[3]);
  printf("refused: %s %s %s", name(hipExtLaunchMultiKernelMultiDevice(list, 0, 0)),
         name(hipExtLaunchMultiKernelMultiDevice(list, 3, 0)), name(hipExtLaunchMultiKernelMultiDevice(list, 2, 4)));
  list[1].stream = streams[0];
  printf(" %s", name(hipExtLaunchMultiKernelMultiDevice(list, 2, 0)));
  list[1].stream = nullptr;
  printf(" %s\n", name(hipExtLaunchMultiKernelMultiDevice(list, 2, 0)));
}
