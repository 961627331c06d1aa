/* Measures the overhead of a launch with a kernel of few instructions, for queued launches and for launches that are waited for. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <time.h>

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(void) {
  enum { COUNT = 20000 };
  cl_platform_id platform;
  cl_device_id device;
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  const char *source = "__kernel void empty(__global int *x, int n) {}\n";
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  clBuildProgram(program, 0, NULL, "", NULL, NULL);
  cl_kernel kernel = clCreateKernel(program, "empty", NULL);
  cl_mem data = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, NULL);
  int n = 1;
  clSetKernelArg(kernel, 0, sizeof data, &data);
  clSetKernelArg(kernel, 1, sizeof n, &n);
  size_t items = 32;
  for (int waited = 0; waited < 2; waited++) {
    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL);
    clFinish(queue);
    double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < COUNT; i++) {
      clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL);
      if (waited) clFinish(queue);
    }
    cl_int status = clFinish(queue);
    start = now(CLOCK_MONOTONIC) - start, cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("OpenCL, %-13s %5.1f us a launch, %5.1f us of the CPU%s\n", waited ? "waited for" : "queued", start / COUNT,
           cpu / COUNT, status == CL_SUCCESS ? "" : ": failed");
  }
  return 0;
}
