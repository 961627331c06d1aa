/* The example of docs/images.md: halves the size of a picture with linear samples. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

static const char *source =
    "constant sampler_t s = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;\n"
    "kernel void halve(read_only image2d_t in, write_only image2d_t out) {\n"
    "  int2 c = (int2)(get_global_id(0), get_global_id(1));\n"
    "  float2 middle = (convert_float2(c) + 0.5f) / convert_float2(get_image_dim(out));\n"
    "  write_imagef(out, c, read_imagef(in, s, middle));\n"
    "}\n";

int main(void) {
  unsigned char in[4][4] = {{0, 100, 10, 10}, {100, 200, 10, 10}, {0, 0, 50, 60}, {0, 0, 70, 80}}, out[2][2];
  cl_platform_id platform;
  cl_device_id device;
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  clBuildProgram(program, 1, &device, "", NULL, NULL);
  cl_kernel kernel = clCreateKernel(program, "halve", NULL);
  cl_image_format format = {CL_R, CL_UNORM_INT8};
  cl_image_desc large = {CL_MEM_OBJECT_IMAGE2D, 4, 4}, small = {CL_MEM_OBJECT_IMAGE2D, 2, 2};
  cl_mem a = clCreateImage(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &format, &large, in, NULL);
  cl_mem b = clCreateImage(context, CL_MEM_WRITE_ONLY, &format, &small, NULL, NULL);
  clSetKernelArg(kernel, 0, sizeof a, &a);
  clSetKernelArg(kernel, 1, sizeof b, &b);
  size_t origin[3] = {0, 0, 0}, size[3] = {2, 2, 1};
  clEnqueueNDRangeKernel(queue, kernel, 2, NULL, size, NULL, 0, NULL, NULL);
  clEnqueueReadImage(queue, b, CL_TRUE, origin, size, 0, 0, out, 0, NULL, NULL);
  printf("%d %d\n%d %d\n", out[0][0], out[0][1], out[1][0], out[1][1]);
}
