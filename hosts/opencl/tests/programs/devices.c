/* Two devices in one context: one computes, the other doubles the result. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

static const char *source =
    "__kernel void squares(__global int *a) { a[get_global_id(0)] = get_global_id(0) * get_global_id(0); }\n"
    "__kernel void twice(__global int *a) { a[get_global_id(0)] *= 2; }\n";

int main(void) {
  cl_platform_id platform;
  cl_device_id devices[4] = {0}, of;
  cl_uint count, in_context;
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 4, devices, &count);
  cl_context context = clCreateContext(NULL, count, devices, NULL, NULL, NULL);
  clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof in_context, &in_context, NULL);
  cl_context other = clCreateContext(NULL, 1, devices, NULL, NULL, NULL);
  cl_int status;
  clCreateCommandQueue(other, devices[1], 0, &status);
  printf("%u devices, %u in the context, different: %d, in another context: %d\n", count, in_context,
         devices[0] != devices[1], status);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  clBuildProgram(program, 0, NULL, "", NULL, NULL);
  size_t sizes[4];
  clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL);
  printf("binaries of equal size: %d\n", sizes[0] == sizes[1] && sizes[0] > 0);
  const char *names[] = {"squares", "twice"};
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 256, NULL, NULL);
  cl_event event = NULL, next;
  for (int k = 0; k < 2; k++) {
    cl_command_queue queue = clCreateCommandQueue(context, devices[k], 0, NULL);
    clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof of, &of, NULL);
    cl_kernel kernel = clCreateKernel(program, names[k], NULL);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    size_t items = 64;
    status = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, k, k ? &event : NULL, &next);
    event = next;
    printf("%s: %d, on its device: %d\n", names[k], status, of == devices[k]);
    if (k == 1) {
      int numbers[64];
      clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL);
      printf("twice the square of 9: %d\n", numbers[9]);
    }
  }
  return 0;
}
