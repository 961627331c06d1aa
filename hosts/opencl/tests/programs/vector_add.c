/* The example of docs/opencl.md: c = a + b, and with an argument, a launch of more work-items than the buffers have elements. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

static const char *source =
    "__kernel void add(__global const float *a, __global const float *b, __global float *c) {\n"
    "  size_t i = get_global_id(0);\n"
    "  c[i] = a[i] + b[i];\n"
    "}\n";

int main(int argc, char **argv) {
  enum { N = 1000 };
  float a[N], b[N], c[N];
  for (int i = 0; i < N; i++) a[i] = i, b[i] = 1.5f;
  cl_platform_id platform;
  cl_device_id device;
  char name[64], log[4096] = "";
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL);
  clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  if (clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) {
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    return printf("%s", log), 1;
  }
  cl_kernel kernel = clCreateKernel(program, "add", NULL);
  cl_mem_flags input = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
  cl_mem buffers[] = {
      clCreateBuffer(context, input, sizeof a, a, NULL),
      clCreateBuffer(context, input, sizeof b, b, NULL),
      clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof c, NULL, NULL),
  };
  for (int i = 0; i < 3; i++) clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[i]);
  size_t items = argc > 1 ? 1024 : N;
  clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
  cl_int status = clEnqueueReadBuffer(queue, buffers[2], CL_TRUE, 0, sizeof c, c, 0, NULL, NULL);
  if (status == CL_SUCCESS) printf("%s: c[1] = %g, c[999] = %g\n", name, c[1], c[999]);
  else printf("%s: status %d\n", name, status);
  for (int i = 0; i < 3; i++) clReleaseMemObject(buffers[i]);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
