/* Images and samplers through the system's libOpenCL. Each line of output checks one feature. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies of every kind of image, with reads of every type; and what kernels can ask of an image. */
static const char *source =
    "#define COPY(name, image, coord, f) \\\n"
    "  kernel void name##f(read_only image a, write_only image b) { coord; write_image##f(b, c, read_image##f(a, c)); }\n"
    "#define ALL(name, image, coord) COPY(name, image, coord, f) COPY(name, image, coord, i) COPY(name, image, coord, ui)\n"
    "#define X get_global_id(0)\n"
    "#define Y get_global_id(1)\n"
    "#define Z get_global_id(2)\n"
    "ALL(d1, image1d_t, int c = X)\n"
    "ALL(b1, image1d_buffer_t, int c = X)\n"
    "ALL(a1, image1d_array_t, int2 c = (int2)(X, Y))\n"
    "ALL(d2, image2d_t, int2 c = (int2)(X, Y))\n"
    "ALL(a2, image2d_array_t, int4 c = (int4)(X, Y, Z, 0))\n"
    "ALL(d3, image3d_t, int4 c = (int4)(X, Y, Z, 0))\n"
    "COPY(depth, image2d_depth_t, int2 c = (int2)(X, Y), f)\n"
    "kernel void ask(read_only image2d_t a, read_only image3d_t b, read_only image2d_array_t c, global int *out) {\n"
    "  out[0] = get_image_width(a); out[1] = get_image_height(a); out[2] = get_image_depth(b);\n"
    "  out[3] = get_image_array_size(c); out[4] = get_image_channel_data_type(a); out[5] = get_image_channel_order(c);\n"
    "  out[6] = get_image_dim(b).z; out[7] = get_image_num_mip_levels(a);\n"
    "}\n"
    "constant sampler_t nearest = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_NEAREST;\n"
    "kernel void sample(read_only image2d_t a, sampler_t s, global float4 *out) {\n"
    "  out[0] = read_imagef(a, s, (float2)(0.5f, 0.25f));\n"
    "  out[1] = read_imagef(a, nearest, (float2)(-0.125f, 1.125f));\n"
    "  out[2] = read_imagef(a, s, (float2)(-5.0f, 0.0f));\n"
    "}\n"
    "kernel void levels(read_only image2d_t a, global float *out) {\n"
    "  for (int k = 0; k < 3; k++) out[k] = read_imagef(a, nearest, (float2)(0.5f), (float)k).x;\n"
    "  out[3] = get_image_num_mip_levels(a);\n"
    "}\n"
    "kernel void increment(read_write image2d_t a) {\n"
    "  int2 c = (int2)(X, Y);\n"
    "  write_imageui(a, c, read_imageui(a, c) + 1u);\n"
    "}\n";

#define CHECK(call) check((call), #call)
static void check(cl_int status, const char *what) {
  if (status != CL_SUCCESS) printf("%s: %d\n", what, status), exit(1);
}

static cl_context context;
static cl_command_queue queue;
static cl_program program;

static cl_mem image(cl_mem_flags flags, cl_image_format format, cl_image_desc of, void *host) {
  cl_int status;
  cl_mem made = clCreateImage(context, flags, &format, &of, host, &status);
  CHECK(status);
  return made;
}

/* Clears the bits of texels that have no meaning. */
static void ignore_unused(cl_uint type, unsigned char *texels, size_t bytes) {
  if (type == CL_UNORM_SHORT_555)
    for (size_t n = 1; n < bytes; n += 2) texels[n] &= 0x7f;
  if (type == CL_UNORM_INT_101010)
    for (size_t n = 3; n < bytes; n += 4) texels[n] &= 0x3f;
}

/* Copies random texels of all formats with a kernel. Returns the number of formats. */
static int copy_all(const char *name, cl_mem_object_type type, size_t w, size_t h, size_t d, int depths) {
  cl_image_format formats[256];
  cl_uint count;
  CHECK(clGetSupportedImageFormats(context, CL_MEM_WRITE_ONLY, type, 256, formats, &count));
  int tested = 0;
  for (cl_uint k = 0; k < count; k++) {
    int depth = formats[k].image_channel_order == CL_DEPTH;
    if (depth != depths) continue;
    cl_uint t = formats[k].image_channel_data_type;
    int is_signed = t >= CL_SIGNED_INT8 && t <= CL_SIGNED_INT32;
    int is_unsigned = t >= CL_UNSIGNED_INT8 && t <= CL_UNSIGNED_INT32;
    char kernel_name[32];
    sprintf(kernel_name, "%s%s", name, is_signed ? "i" : is_unsigned ? "ui" : "f");
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, kernel_name, &status);
    CHECK(status);
    cl_image_desc of = {type, w, 0, 0, 0};
    if (type == CL_MEM_OBJECT_IMAGE1D_ARRAY) of.image_array_size = h;
    else if (type != CL_MEM_OBJECT_IMAGE1D && type != CL_MEM_OBJECT_IMAGE1D_BUFFER) of.image_height = h;
    if (type == CL_MEM_OBJECT_IMAGE3D) of.image_depth = d;
    if (type == CL_MEM_OBJECT_IMAGE2D_ARRAY) of.image_array_size = d;
    size_t element, bytes;
    cl_mem two[2], buffers[2] = {0};
    static unsigned char in[1 << 16], out[1 << 16];
    for (int n = 0; n < 2; n++) {
      if (type == CL_MEM_OBJECT_IMAGE1D_BUFFER) of.mem_object = buffers[n] = clCreateBuffer(context, 0, w * 16, NULL, NULL);
      two[n] = image(n ? CL_MEM_WRITE_ONLY : CL_MEM_READ_ONLY, formats[k], of, NULL);
    }
    CHECK(clGetImageInfo(two[0], CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL));
    bytes = element * w * h * d;
    /* Finite floats; fractions without the value that means the same as another one. */
    for (size_t n = 0; n < bytes; n++) in[n] = (n * 37 + k) % 96 + 16;
    ignore_unused(t, in, bytes);
    size_t origin[3] = {0}, size[3] = {w, h, d};
    CHECK(clEnqueueWriteImage(queue, two[0], CL_TRUE, origin, size, 0, 0, in, 0, NULL, NULL));
    for (int n = 0; n < 2; n++) CHECK(clSetKernelArg(kernel, n, sizeof(cl_mem), &two[n]));
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, size, NULL, 0, NULL, NULL));
    memset(out, 0xcc, bytes);
    CHECK(clEnqueueReadImage(queue, two[1], CL_TRUE, origin, size, 0, 0, out, 0, NULL, NULL));
    ignore_unused(t, out, bytes);
    if (memcmp(in, out, bytes) == 0) tested++;
    else printf("%s: order 0x%x, type 0x%x differs\n", name, formats[k].image_channel_order, t);
    for (int n = 0; n < 2; n++) {
      clReleaseMemObject(two[n]);
      if (buffers[n]) clReleaseMemObject(buffers[n]);
    }
    clReleaseKernel(kernel);
  }
  return tested;
}

int main(void) {
  cl_platform_id platform;
  cl_device_id device;
  CHECK(clGetPlatformIDs(1, &platform, NULL));
  CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
  cl_bool support;
  CHECK(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof support, &support, NULL));
  printf("support %d\n", support);
  cl_int status;
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  CHECK(status);
  cl_image_format rgba = {CL_RGBA, CL_UNORM_INT8}, uints = {CL_R, CL_UNSIGNED_INT32};
  cl_image_desc flat = {CL_MEM_OBJECT_IMAGE2D, 4, 2};
  if (!support) {
    clCreateImage(context, 0, &rgba, &flat, NULL, &status);
    return printf("create %d\n", status), 0;
  }
  queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
  CHECK(status);
  program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
  if (clBuildProgram(program, 0, NULL, "-cl-std=CL3.0", NULL, NULL) != CL_SUCCESS) {
    static char log[1 << 16];
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    return printf("%s\n", log), 1;
  }

  printf("formats %d", copy_all("d1", CL_MEM_OBJECT_IMAGE1D, 33, 1, 1, 0));
  printf(" %d", copy_all("b1", CL_MEM_OBJECT_IMAGE1D_BUFFER, 33, 1, 1, 0));
  printf(" %d", copy_all("a1", CL_MEM_OBJECT_IMAGE1D_ARRAY, 9, 3, 1, 0));
  printf(" %d", copy_all("d2", CL_MEM_OBJECT_IMAGE2D, 9, 5, 1, 0));
  printf(" %d", copy_all("a2", CL_MEM_OBJECT_IMAGE2D_ARRAY, 5, 4, 3, 0));
  printf(" %d", copy_all("d3", CL_MEM_OBJECT_IMAGE3D, 5, 4, 3, 0));
  printf(" %d\n", copy_all("depth", CL_MEM_OBJECT_IMAGE2D, 9, 5, 1, 1));

  /* Queries in kernels. */
  cl_image_desc volume = {CL_MEM_OBJECT_IMAGE3D, 5, 6, 7}, array = {CL_MEM_OBJECT_IMAGE2D_ARRAY, 8, 9, 0, 10};
  cl_mem asked[4] = {image(CL_MEM_READ_ONLY, rgba, flat, NULL), image(CL_MEM_READ_ONLY, rgba, volume, NULL),
                     image(CL_MEM_READ_ONLY, uints, array, NULL), clCreateBuffer(context, 0, 256, NULL, NULL)};
  cl_kernel ask = clCreateKernel(program, "ask", &status);
  size_t one = 1;
  int answers[8];
  for (int n = 0; n < 4; n++) CHECK(clSetKernelArg(ask, n, sizeof(cl_mem), &asked[n]));
  CHECK(clEnqueueNDRangeKernel(queue, ask, 1, NULL, &one, NULL, 0, NULL, NULL));
  CHECK(clEnqueueReadBuffer(queue, asked[3], CL_TRUE, 0, sizeof answers, answers, 0, NULL, NULL));
  printf("sizes %d %d %d %d %d %d, type %x, order %x\n", answers[0], answers[1], answers[2], answers[3], answers[6],
         answers[7], answers[4], answers[5]);

  /* Samples: linear between four texels, nearest with a literal sampler, the border. */
  unsigned char texels[2][4][4] = {{{0, 10, 20, 255}, {40, 50, 60, 255}, {80, 90, 100, 255}, {120, 130, 140, 255}},
                                   {{200, 0, 0, 255}, {0, 200, 0, 255}, {0, 0, 200, 255}, {50, 60, 70, 80}}};
  size_t origin[3] = {0}, size[3] = {4, 2, 1};
  CHECK(clEnqueueWriteImage(queue, asked[0], CL_TRUE, origin, size, 0, 0, texels, 0, NULL, NULL));
  cl_sampler_properties properties[] = {CL_SAMPLER_NORMALIZED_COORDS, CL_TRUE,          CL_SAMPLER_ADDRESSING_MODE,
                                        CL_ADDRESS_CLAMP,             CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, 0};
  cl_sampler sampler = clCreateSamplerWithProperties(context, properties, &status);
  CHECK(status);
  cl_kernel sample = clCreateKernel(program, "sample", &status);
  float samples[3][4];
  CHECK(clSetKernelArg(sample, 0, sizeof(cl_mem), &asked[0]));
  CHECK(clSetKernelArg(sample, 1, sizeof sampler, &sampler));
  CHECK(clSetKernelArg(sample, 2, sizeof(cl_mem), &asked[3]));
  CHECK(clEnqueueNDRangeKernel(queue, sample, 1, NULL, &one, NULL, 0, NULL, NULL));
  CHECK(clEnqueueReadBuffer(queue, asked[3], CL_TRUE, 0, sizeof samples, samples, 0, NULL, NULL));
  printf("linear %g %g, repeated %g %g, border %g %g\n", samples[0][0] * 255, samples[0][3] * 255, samples[1][0] * 255,
         samples[1][3] * 255, samples[2][0], samples[2][3]);

  /* Levels of detail, and an image whose rows are in a buffer. */
  cl_image_format real = {CL_R, CL_FLOAT};
  cl_image_desc pyramid = {CL_MEM_OBJECT_IMAGE2D, 4, 4};
  pyramid.num_mip_levels = 3;
  cl_mem deep = image(CL_MEM_READ_ONLY, real, pyramid, NULL);
  float values[16];
  for (size_t level = 0; level < 3; level++) {
    for (int n = 0; n < 16; n++) values[n] = 10 * (level + 1);
    size_t at[3] = {0, 0, level}, extent[3] = {4 >> level, 4 >> level, 1};
    CHECK(clEnqueueWriteImage(queue, deep, CL_TRUE, at, extent, 0, 0, values, 0, NULL, NULL));
  }
  cl_kernel levels = clCreateKernel(program, "levels", &status);
  CHECK(clSetKernelArg(levels, 0, sizeof(cl_mem), &deep));
  CHECK(clSetKernelArg(levels, 1, sizeof(cl_mem), &asked[3]));
  CHECK(clEnqueueNDRangeKernel(queue, levels, 1, NULL, &one, NULL, 0, NULL, NULL));
  CHECK(clEnqueueReadBuffer(queue, asked[3], CL_TRUE, 0, 16, values, 0, NULL, NULL));
  printf("levels %g %g %g of %g\n", values[0], values[1], values[2], values[3]);
  cl_uint rows[2][256];
  for (int n = 0; n < 512; n++) rows[n / 256][n % 256] = n;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof rows, rows, &status);
  cl_image_desc inside = {CL_MEM_OBJECT_IMAGE2D, 4, 2, 0, 0, sizeof rows[0]};
  inside.mem_object = buffer;
  cl_mem in_buffer = image(0, uints, inside, NULL);
  cl_kernel add = clCreateKernel(program, "increment", &status);
  CHECK(clSetKernelArg(add, 0, sizeof(cl_mem), &in_buffer));
  CHECK(clEnqueueNDRangeKernel(queue, add, 2, NULL, size, NULL, 0, NULL, NULL));
  CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof rows, rows, 0, NULL, NULL));
  printf("in buffer %u %u %u %u\n", rows[0][3], rows[0][4], rows[1][3], rows[1][4]);
  /* The product of pitch and height exceeds 64 bits. */
  inside.image_row_pitch = (size_t)1 << 50;
  inside.image_height = 16384;
  clCreateImage(context, 0, &uints, &inside, NULL, &status);
  printf("pitch %d\n", status);

  /* Fills, copies of regions, copies from and to buffers, maps, memory of the program, reads and writes in one kernel. */
  cl_uint host[2][8] = {{0}}, read[2][4], color[4] = {7, 0, 0, 0};
  flat.image_row_pitch = sizeof host[0];
  cl_mem target = image(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, uints, flat, host);
  flat.image_row_pitch = 0;
  cl_mem other = image(CL_MEM_READ_WRITE, uints, flat, NULL);
  CHECK(clEnqueueFillImage(queue, other, color, origin, size, 0, NULL, NULL));
  size_t corner[3] = {1, 1, 0}, part[3] = {2, 1, 1};
  CHECK(clEnqueueCopyImage(queue, other, target, origin, corner, part, 0, NULL, NULL));
  cl_kernel increment = clCreateKernel(program, "increment", &status);
  CHECK(clSetKernelArg(increment, 0, sizeof(cl_mem), &target));
  CHECK(clEnqueueNDRangeKernel(queue, increment, 2, NULL, size, NULL, 0, NULL, NULL));
  size_t row;
  cl_uint *mapped = clEnqueueMapImage(queue, target, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, corner, part, &row, NULL, 0, NULL,
                                      NULL, &status);
  CHECK(status);
  printf("mapped at %d, row %zu, %u %u\n", (int)(mapped - host[0]), row, mapped[0], mapped[1]);
  mapped[1] = 99;
  CHECK(clEnqueueUnmapMemObject(queue, target, mapped, 0, NULL, NULL));
  CHECK(clEnqueueCopyImageToBuffer(queue, target, asked[3], origin, size, 16, 0, NULL, NULL));
  CHECK(clEnqueueReadBuffer(queue, asked[3], CL_TRUE, 16, sizeof read, read, 0, NULL, NULL));
  printf("image %u %u %u %u, %u %u %u %u\n", read[0][0], read[0][1], read[0][2], read[0][3], read[1][0], read[1][1],
         read[1][2], read[1][3]);
  CHECK(clEnqueueCopyBufferToImage(queue, asked[3], other, 16, origin, size, 0, NULL, NULL));
  CHECK(clEnqueueReadImage(queue, other, CL_TRUE, corner, part, 0, 0, read, 0, NULL, NULL));
  printf("copied %u %u\n", read[0][0], read[0][1]);

  /* Invalid uses. */
  size_t far[3] = {3, 1, 0};
  cl_image_format odd = {CL_RGB, CL_UNORM_INT8};
  printf("beyond %d\n", clEnqueueReadImage(queue, other, CL_TRUE, far, part, 0, 0, read, 0, NULL, NULL));
  printf("formats %d", clEnqueueCopyImage(queue, asked[0], other, origin, origin, part, 0, NULL, NULL));
  clCreateImage(context, 0, &odd, &flat, NULL, &status);
  printf(" %d", status);
  odd.image_channel_order = 1;
  clCreateImage(context, 0, &odd, &flat, NULL, &status);
  printf(" %d\n", status);
  printf("overlap %d\n", clEnqueueCopyImage(queue, other, other, origin, origin, part, 0, NULL, NULL));
  cl_kernel other_type = clCreateKernel(program, "d3f", &status);
  printf("type %d\n", clSetKernelArg(other_type, 0, sizeof(cl_mem), &asked[0]));
  printf("buffer %d, image %d\n", clEnqueueReadImage(queue, asked[3], CL_TRUE, origin, size, 0, 0, read, 0, NULL, NULL),
         clEnqueueReadBuffer(queue, other, CL_TRUE, 0, 4, read, 0, NULL, NULL));
  flat.image_width = 20000;
  clCreateImage(context, 0, &rgba, &flat, NULL, &status);
  printf("size %d\n", status);
  properties[1] = CL_FALSE, properties[3] = CL_ADDRESS_REPEAT;
  clCreateSamplerWithProperties(context, properties, &status);
  printf("sampler %d\n", status);
  return 0;
}
