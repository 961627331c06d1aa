// Run-time compilation of kernels: template names, headers, options, logs, and a launch through the module API.
#include <cstdio>
#include <cstring>
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <string>
#include <vector>

static const char *source = R"(
#include "factor.h"
__constant__ float offset;
template <typename T> __global__ void scale(T *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * FACTOR + MORE + offset;
}
)";

// Two programs whose bitcode is linked: a kernel, and a function that the kernel calls.
static int linked() {
  const char *sources[] = {"__device__ int twice(int x);\n"
                           "template <int N> __global__ void add(int *x) { x[threadIdx.x] = twice(x[threadIdx.x]) + N; }",
                           "__device__ int twice(int x) { return 2 * x; }"};
  const char *option = "-fgpu-rdc", *expression = "add<3>", *lowered;
  hiprtcLinkState link;
  hiprtcProgram programs[2];
  printf("link %d\n", hiprtcLinkCreate(0, nullptr, nullptr, &link));
  for (int k = 0; k < 2; k++) {
    hiprtcCreateProgram(&programs[k], sources[k], "part.hip", 0, nullptr, nullptr);
    if (k == 0) hiprtcAddNameExpression(programs[k], expression);
    printf("part %d", hiprtcCompileProgram(programs[k], 1, &option));
    size_t size;
    printf(" %d", hiprtcGetCodeSize(programs[k], &size));
    printf(" %d", hiprtcGetBitcodeSize(programs[k], &size));
    std::vector<char> bitcode(size);
    printf(" %d", hiprtcGetBitcode(programs[k], bitcode.data()));
    printf(" %d\n", hiprtcLinkAddData(link, HIPRTC_JIT_INPUT_LLVM_BITCODE, bitcode.data(), size, "part", 0, nullptr, nullptr));
  }
  printf("kind %d\n", hiprtcLinkAddData(link, HIPRTC_JIT_INPUT_OBJECT, sources, 8, "object", 0, nullptr, nullptr));
  printf("no bitcode %d\n", hiprtcLinkAddData(link, HIPRTC_JIT_INPUT_LLVM_BITCODE, sources, 8, "text", 0, nullptr, nullptr));
  printf("file %d\n", hiprtcLinkAddFile(link, HIPRTC_JIT_INPUT_LLVM_BITCODE, "/nothing.bc", 0, nullptr, nullptr));
  void *code;
  size_t size;
  printf("complete %d\n", hiprtcLinkComplete(link, &code, &size));
  hipModule_t module;
  hipFunction_t function;
  printf("load %d\n", hipModuleLoadData(&module, code));
  hiprtcGetLoweredName(programs[0], expression, &lowered);
  printf("function %s %d\n", lowered, hipModuleGetFunction(&function, module, lowered));
  int *x;
  (void)hipMallocManaged(&x, 32 * sizeof *x);
  for (int i = 0; i < 32; i++) x[i] = i;
  void *arguments[] = {&x};
  (void)hipModuleLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  (void)hipDeviceSynchronize();
  printf("x[31] = %d\n", x[31]);
  printf("destroy %d %d\n", hiprtcLinkDestroy(link), hiprtcLinkDestroy(link));
  return 0;
}

int main() {
  int major, minor;
  hiprtcVersion(&major, &minor);
  const char *header = "#define FACTOR 2\n", *name = "factor.h";
  hiprtcProgram program;
  printf("create %d\n", hiprtcCreateProgram(&program, source, "scale.hip", 1, &header, &name));
  const char *expression = "scale<float>", *lowered;
  hiprtcAddNameExpression(program, expression);
  hiprtcAddNameExpression(program, "offset");
  printf("too early %d\n", hiprtcGetLoweredName(program, expression, &lowered));
  const char *options[] = {"-DMORE=1", "-O3"};
  hiprtcResult result = hiprtcCompileProgram(program, 2, options);
  if (result) {
    size_t size;
    hiprtcGetProgramLogSize(program, &size);
    std::string log(size, 0);
    hiprtcGetProgramLog(program, &log[0]);
    printf("compile: %s\n%s\n", hiprtcGetErrorString(result), log.c_str());
    return 1;
  }
  size_t size;
  hiprtcGetCodeSize(program, &size);
  std::vector<char> code(size);
  hiprtcGetCode(program, code.data());
  hipModule_t module;
  hipFunction_t function;
  printf("load %d\n", hipModuleLoadData(&module, code.data()));
  hiprtcGetLoweredName(program, expression, &lowered);
  printf("function %s %d\n", lowered, hipModuleGetFunction(&function, module, lowered));
  hiprtcGetLoweredName(program, "offset", &lowered);
  hipDeviceptr_t address;
  size_t bytes;
  printf("variable %s %d %zu\n", lowered, hipModuleGetGlobal(&address, &bytes, module, lowered), bytes);
  float offset = 0.5f, x[64];
  (void)hipMemcpyHtoD(address, &offset, sizeof offset);
  for (int i = 0; i < 64; i++) x[i] = i;
  void *memory;
  (void)hipMalloc(&memory, sizeof x);
  (void)hipMemcpy(memory, x, sizeof x, hipMemcpyHostToDevice);
  int n = 64;
  void *arguments[] = {&memory, &n};
  printf("launch %d\n", hipModuleLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  (void)hipMemcpy(x, memory, sizeof x, hipMemcpyDeviceToHost);
  printf("x[63] = %g\n", x[63]);
  printf("name %d\n", hiprtcGetLoweredName(program, "none", &lowered));
  printf("late %d\n", hiprtcAddNameExpression(program, "none"));
  printf("destroy %d %d\n", hiprtcDestroyProgram(&program), hiprtcDestroyProgram(&program));

  hiprtcCreateProgram(&program, "__global__ void f(int *x) { *x = y; }", "wrong.hip", 0, nullptr, nullptr);
  result = hiprtcCompileProgram(program, 0, nullptr);
  hiprtcGetProgramLogSize(program, &size);
  std::string log(size, 0);
  hiprtcGetProgramLog(program, &log[0]);
  printf("wrong: %s, %.*s\n", hiprtcGetErrorString(result), (int)log.find('\n'), log.c_str());
  printf("code %d\n", hiprtcGetCodeSize(program, &size));
  const char *output = "-o";
  printf("option %d\n", hiprtcCompileProgram(program, 1, &output));
  return linked();
}
