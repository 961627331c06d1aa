/* Prints the nanoseconds of a short and of a long kernel, as events report them. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

static const char *source =
    "__kernel void repeat(__global float *x, int count) {\n"
    "  size_t i = get_global_id(0);\n"
    "  float value = x[i];\n"
    "  for (int n = 0; n < count; n++) value = fma(value, 0.5f, 1.0f);\n"
    "  x[i] = value;\n"
    "}\n";

int main(void) {
  enum { N = 256 };
  float x[N] = {0};
  cl_platform_id platform;
  cl_device_id device;
  char log[4096] = "";
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, NULL);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  if (clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) {
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    return printf("%s", log), 1;
  }
  cl_kernel kernel = clCreateKernel(program, "repeat", NULL);
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof x, x, NULL);
  clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
  for (cl_int count = 10; count <= 10000; count *= 1000) {
    size_t items = N;
    cl_event event;
    cl_ulong times[4];
    clSetKernelArg(kernel, 1, sizeof count, &count);
    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, &event);
    clWaitForEvents(1, &event);
    for (int n = 0; n < 4; n++)
      if (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + n, sizeof times[n], &times[n], NULL)) return 2;
    int ordered = times[0] <= times[1] && times[1] <= times[2] && times[2] < times[3];
    printf("%d %llu\n", ordered, (unsigned long long)(times[3] - times[2]));
    clReleaseEvent(event);
  }
  clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL);
  printf("%g\n", x[N - 1]);
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
