/* Exercises most of the API through the system's libOpenCL. Each line of output checks one feature. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *source =
    "#include \"twice.h\"\n"
    "__kernel void sum(__global const int *in, __global int *out, __local int *part, int n) {\n"
    "  int l = get_local_id(0), i = get_global_id(0);\n"
    "  part[l] = i < n ? in[i] : 0;\n"
    "  for (int step = get_local_size(0) / 2; step; step /= 2) {\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (l < step) part[l] += part[l + step];\n"
    "  }\n"
    "  if (l == 0) atomic_add(out, part[0]);\n"
    "}\n"
    "__kernel void ids(__global int *out) {\n"
    "  int at = (get_global_id(1) - get_global_offset(1)) * get_global_size(0) + get_global_id(0) - get_global_offset(0);\n"
    "  out[at] = get_global_id(0) * 100 + get_global_id(1) * 10 + get_num_groups(0);\n"
    "}\n"
    "__kernel __attribute__((reqd_work_group_size(8, 4, 1))) void text(float4 v, __constant int *c) {\n"
    "  if (get_local_id(0) == 7 && get_local_id(1) == 3)\n"
    "    printf(\"v = %.1v4hlf, c = %d: %s %%\\n\", v, c[1], \"text\");\n"
    "}\n"
    "__kernel void doubled(__global int *out) { out[get_global_id(0)] = TWICE(out[get_global_id(0)]); }\n";

#define CHECK(call) check((call), #call)
static void check(cl_int status, const char *what) {
  if (status != CL_SUCCESS) printf("%s: %d\n", what, status), exit(1);
}
static void CL_CALLBACK called(cl_event event, cl_int status, void *data) { *(int *)data = 7 + status; }

int main(void) {
  cl_platform_id platform;
  cl_device_id device;
  CHECK(clGetPlatformIDs(1, &platform, NULL));
  CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
  cl_int status;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, properties, &status);
  CHECK(status);

  /* Compile with a header, then link. */
  const char *twice = "#define TWICE(x) ((x) * FACTOR)\n", *name = "twice.h";
  cl_program header = clCreateProgramWithSource(context, 1, &twice, NULL, &status);
  cl_program object = clCreateProgramWithSource(context, 1, &source, NULL, &status);
  CHECK(clCompileProgram(object, 0, NULL, "-D FACTOR=2", 1, &header, &name, NULL, NULL));
  cl_program program = clLinkProgram(context, 0, NULL, "", 1, &object, NULL, NULL, &status);
  CHECK(status);

  /* A library of two programs, and a kernel that calls one of its functions, which calls another one. */
  const char *parts[] = {"int twice(int x) { return 2 * x; }\n",
                         "int twice(int x);\nint four_times(int x) { return twice(twice(x)); }\n",
                         "int four_times(int x);\n__kernel void f(__global int *x) { *x = four_times(*x); }\n"};
  cl_program compiled[3];
  for (int i = 0; i < 3; i++) {
    compiled[i] = clCreateProgramWithSource(context, 1, &parts[i], NULL, &status);
    CHECK(clCompileProgram(compiled[i], 0, NULL, "", 0, NULL, NULL, NULL, NULL));
  }
  cl_program library = clLinkProgram(context, 0, NULL, "-create-library", 2, compiled, NULL, NULL, &status);
  CHECK(status);
  cl_program_binary_type type;
  CHECK(clGetProgramBuildInfo(library, device, CL_PROGRAM_BINARY_TYPE, sizeof type, &type, NULL));
  cl_program inputs[] = {library, compiled[2]};
  cl_program user = clLinkProgram(context, 0, NULL, "", 2, inputs, NULL, NULL, &status);
  CHECK(status);
  cl_kernel f = clCreateKernel(user, "f", &status);
  int value = 5;
  cl_mem cell = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof value, &value, &status);
  CHECK(clSetKernelArg(f, 0, sizeof cell, &cell));
  CHECK(clEnqueueTask(queue, f, 0, NULL, NULL));
  CHECK(clEnqueueReadBuffer(queue, cell, CL_TRUE, 0, sizeof value, &value, 0, NULL, NULL));
  printf("library %d, %d\n", type == CL_PROGRAM_BINARY_TYPE_LIBRARY, value);
  char names[256];
  CHECK(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof names, names, NULL));
  printf("kernels %s\n", names);

  /* A reduction: local memory, atomics, events. */
  enum { N = 5000 };
  int in[N], out = 0, zero = 0, n = N;
  for (int i = 0; i < N; i++) in[i] = i;
  cl_mem input = clCreateBuffer(context, CL_MEM_READ_ONLY, sizeof in, NULL, &status);
  cl_mem result = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof out, NULL, &status);
  cl_event gate = clCreateUserEvent(context, &status), events[3];
  CHECK(clEnqueueWriteBuffer(queue, input, CL_FALSE, 0, sizeof in, in, 1, &gate, &events[0]));
  CHECK(clEnqueueFillBuffer(queue, result, &zero, sizeof zero, 0, sizeof out, 0, NULL, &events[1]));
  cl_kernel sum = clCreateKernel(program, "sum", &status);
  CHECK(clSetKernelArg(sum, 0, sizeof input, &input));
  CHECK(clSetKernelArg(sum, 1, sizeof result, &result));
  CHECK(clSetKernelArg(sum, 2, 128 * sizeof(int), NULL));
  CHECK(clSetKernelArg(sum, 3, sizeof n, &n));
  size_t global = 5120, local = 128;
  CHECK(clEnqueueNDRangeKernel(queue, sum, 1, NULL, &global, &local, 2, events, &events[2]));
  int told = 0;
  CHECK(clSetEventCallback(events[2], CL_COMPLETE, called, &told));
  cl_int state;
  CHECK(clGetEventInfo(events[2], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
  printf("waits %d\n", state > CL_COMPLETE);
  CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
  CHECK(clEnqueueReadBuffer(queue, result, CL_TRUE, 0, sizeof out, &out, 0, NULL, NULL));
  CHECK(clFinish(queue));
  cl_ulong start, end;
  CHECK(clGetEventProfilingInfo(events[2], CL_PROFILING_COMMAND_START, sizeof start, &start, NULL));
  CHECK(clGetEventProfilingInfo(events[2], CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
  printf("sum %d, callback %d, time %d\n", out, told, end > start);

  /* Two dimensions with offsets, sub-buffers, maps, rectangles. */
  cl_mem grid = clCreateBuffer(context, CL_MEM_READ_WRITE, 1024, NULL, &status);
  cl_kernel ids = clCreateKernel(program, "ids", &status);
  cl_buffer_region region = {512, 512};
  cl_mem upper = clCreateSubBuffer(grid, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
  CHECK(status);
  CHECK(clSetKernelArg(ids, 0, sizeof upper, &upper));
  size_t offset2[] = {3, 2}, global2[] = {4, 2}, local2[] = {2, 1};
  CHECK(clEnqueueNDRangeKernel(queue, ids, 2, offset2, global2, local2, 0, NULL, NULL));
  int *mapped = clEnqueueMapBuffer(queue, grid, CL_TRUE, CL_MAP_READ, 512, 32, 0, NULL, NULL, &status);
  CHECK(status);
  printf("ids %d %d %d\n", mapped[0], mapped[3], mapped[7]);
  CHECK(clEnqueueUnmapMemObject(queue, grid, mapped, 0, NULL, NULL));
  int square[4] = {0};
  size_t origin[] = {512 + 4, 0, 0}, corner[] = {0, 0, 0}, size[] = {8, 2, 1};
  CHECK(clEnqueueReadBufferRect(queue, grid, CL_TRUE, origin, corner, size, 16, 0, 8, 0, square, 0, NULL, NULL));
  printf("square %d %d %d %d\n", square[0], square[1], square[2], square[3]);

  /* printf, constants, vectors; arguments by name. */
  int constants[] = {4, 5};
  cl_float4 vector = {{1, 2.5f, -3, 4}};
  cl_mem table = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof constants, constants, &status);
  cl_kernel text = clCreateKernel(program, "text", &status);
  CHECK(clSetKernelArg(text, 0, sizeof vector, &vector));
  CHECK(clSetKernelArg(text, 1, sizeof table, &table));
  size_t global3[] = {8, 4, 1}, required[3];
  CHECK(clGetKernelWorkGroupInfo(text, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required, required, NULL));
  CHECK(clGetKernelArgInfo(text, 1, CL_KERNEL_ARG_NAME, sizeof names, names, NULL));
  CHECK(clEnqueueNDRangeKernel(queue, text, 3, NULL, global3, NULL, 0, NULL, NULL));
  CHECK(clFinish(queue));
  printf("workgroup %zu %zu, argument %s\n", required[0], required[1], names);

  /* Shared virtual memory. */
  int *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, 64 * sizeof(int), 0);
  for (int i = 0; i < 64; i++) shared[i] = i;
  cl_kernel doubled = clCreateKernel(program, "doubled", &status);
  CHECK(clSetKernelArgSVMPointer(doubled, 0, shared));
  size_t items = 64;
  CHECK(clEnqueueNDRangeKernel(queue, doubled, 1, NULL, &items, NULL, 0, NULL, NULL));
  CHECK(clFinish(queue));
  printf("shared %d\n", shared[63]);
  clSVMFree(context, shared);

  /* A program created from the binary of another program. */
  size_t length;
  CHECK(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof length, &length, NULL));
  unsigned char *binary = malloc(length);
  CHECK(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL));
  cl_program again = clCreateProgramWithBinary(context, 1, &device, &length, (const unsigned char **)&binary, NULL, &status);
  CHECK(status);
  CHECK(clBuildProgram(again, 0, NULL, NULL, NULL, NULL));
  cl_uint kernels;
  CHECK(clCreateKernelsInProgram(again, 0, NULL, &kernels));
  printf("binary with %u kernels\n", kernels);

  /* Invalid uses. */
  clReleaseMemObject(input);
  printf("released buffer %d\n", clEnqueueNDRangeKernel(queue, sum, 1, NULL, &global, &local, 0, NULL, NULL));
  printf("released handle %d\n", clRetainMemObject(input));
  printf("argument %d %d\n", clSetKernelArg(sum, 4, 4, &n), clSetKernelArg(sum, 3, 8, &n));
  size_t odd = 7;
  printf("workgroup %d\n", clEnqueueNDRangeKernel(queue, ids, 1, NULL, &items, &odd, 0, NULL, NULL));
  printf("beyond %d\n", clEnqueueReadBuffer(queue, result, CL_TRUE, 4, 4, &out, 0, NULL, NULL));
  clCreatePipe(context, CL_MEM_READ_WRITE, 4, 4, NULL, &status);
  printf("pipe %d\n", status);
  const char *wrong = "__kernel void f(__global int *x) { x[0] = y; }\n";
  cl_program bad = clCreateProgramWithSource(context, 1, &wrong, NULL, &status);
  status = clBuildProgram(bad, 0, NULL, "", NULL, NULL);
  char log[4096] = "";
  CHECK(clGetProgramBuildInfo(bad, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL));
  printf("build %d, %.*s\n", status, (int)strcspn(log, "\n"), log);
  return 0;
}
