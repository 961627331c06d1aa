// Runs each kernel of kernels.cl on the first OpenCL device, and the same computation on the host, compares their
// results, and prints a line for each kernel: its name, the milliseconds of a launch, and those of the host. Times are
// CPU time of the process, the least of several launches after warm ones. run.py makes a table of them.
//
//     cc -O3 -march=native bench.c native.c -lOpenCL -lm -o bench
//     ./bench kernels.cl [KERNEL...]
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include "bench.h"
#include <CL/cl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Seconds of launches before those that are measured, and of these.
#define WARM 0.15
#define MEASURED 0.3
#define MIN_LAUNCHES 5

// What a buffer holds before the first launch. A result is compared with the host's.
typedef enum { NONE, RANDOM, REAL, MATRIX_STARTS, MATRIX_COLUMNS, PERMUTATION, DISTANCES, RESULT, REAL_RESULT } Contents;

typedef struct {
    Contents contents;
    size_t words;
} Buffer;

typedef struct {
    const char *name;
    size_t global[2], local[2];
    Buffer buffers[5];
    // Arguments after the buffers.
    size_t numbers, first[2];
    // The last argument is the number of the launch, below this; a measured launch is then all of them.
    size_t launches;
    // Buffers are reset before each launch: one would see what earlier ones have stored.
    int resets;
} Kernel;

#define NONZEROS (ROWS * 32)

static const Kernel kernels[] = {
    // `a` is 1.5.
    {"saxpy", {SAXPY}, {256}, {{REAL, SAXPY}, {REAL_RESULT, SAXPY}}, 2, {0x3fc00000, SAXPY}, .resets = 1},
    {"histogram_global", {HISTOGRAM}, {256}, {{RANDOM, HISTOGRAM}, {RESULT, 256}}, .resets = 1},
    {"histogram_local", {HISTOGRAM / 32}, {256}, {{RANDOM, HISTOGRAM}, {RESULT, 256}}, 1, {32}, .resets = 1},
    {"stencil", {STENCIL, STENCIL}, {64, 4}, {{REAL, STENCIL * STENCIL}, {REAL_RESULT, STENCIL * STENCIL}}, 1, {STENCIL}},
    {"spmv", {ROWS}, {256}, {{MATRIX_STARTS, ROWS + 1}, {MATRIX_COLUMNS, 2 * NONZEROS}, {REAL, 2 * NONZEROS}, {REAL, ROWS}, {REAL_RESULT, ROWS}}, 1, {ROWS}},
    {"switch_interpreter", {MACHINES}, {256}, {{RANDOM, 64}, {RESULT, MACHINES}}, 1, {STEPS}},
    {"sort_private", {LISTS}, {256}, {{RANDOM, 32 * LISTS}, {RESULT, 32 * LISTS}}},
    {"copy16", {COPY}, {256}, {{RANDOM, 4 * COPY}, {RESULT, 4 * COPY}}},
    {"transpose", {TRANSPOSE, TRANSPOSE}, {64, 4}, {{REAL, TRANSPOSE * TRANSPOSE}, {REAL_RESULT, TRANSPOSE * TRANSPOSE}}, 1, {TRANSPOSE}},
    {"gather", {GATHER}, {256}, {{PERMUTATION, GATHER}, {REAL, GATHER}, {REAL_RESULT, GATHER}}},
    {"path_tracer", {IMAGE * IMAGE}, {64}, {{REAL_RESULT, IMAGE * IMAGE}}, 2, {IMAGE, SAMPLES}},
    {"collatz", {COLLATZ}, {256}, {{RESULT, COLLATZ}}},
    {"reduce", {GROUPS * 256}, {256}, {{REAL, REDUCE}, {REAL_RESULT, GROUPS}}, 1, {REDUCE}},
    {"tree_reduction", {TREE}, {256}, {{REAL, TREE}, {REAL_RESULT, TREE / 256}}},
    {"matmul_local", {MATMUL, MATMUL}, {16, 16}, {{REAL, MATMUL * MATMUL}, {REAL, MATMUL * MATMUL}, {REAL_RESULT, MATMUL * MATMUL}}, 1, {MATMUL}},
    {"gemm_registers", {GEMM / 4, GEMM / 4}, {32, 4}, {{REAL, GEMM * GEMM}, {REAL, GEMM * GEMM}, {REAL_RESULT, GEMM * GEMM}}, 1, {GEMM}},
    {"mandelbrot", {MANDELBROT, MANDELBROT}, {16, 16}, {{RESULT, MANDELBROT * MANDELBROT}}, 1, {MANDELBROT}},
    {"sha256", {MESSAGES}, {256}, {{RESULT, MESSAGES}}},
    {"scan", {SCAN}, {256}, {{RANDOM, SCAN}, {RESULT, SCAN}}},
    {"bitonic", {BITONIC}, {256}, {{RANDOM, BITONIC}, {RESULT, BITONIC}}},
    {"layer_norm", {NORM / 4}, {256}, {{REAL, NORM}, {REAL_RESULT, NORM}}},
    {"nbody", {BODIES}, {256}, {{REAL, 4 * BODIES}, {REAL_RESULT, 4 * BODIES}}, 1, {BODIES}},
    {"floyd", {FLOYD, FLOYD}, {64, 4}, {{DISTANCES, FLOYD * FLOYD}}, 1, {FLOYD}, .launches = 8, .resets = 1},
    {"bit_count", {COUNT}, {256}, {{RANDOM, COUNT}, {RESULT, COUNT}}, 1, {COUNT}},
};

static cl_context context;
static cl_command_queue queue;

static void check(cl_int status, const char *what) {
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s: status %d\n", what, status);
        exit(1);
    }
}

// Processor time of all threads, or the time that passes if BENCH_CLOCK is `wall`.
static double seconds_now(void) {
    const char *clock = getenv("BENCH_CLOCK");
    struct timespec t;
    clock_gettime(clock && !strcmp(clock, "wall") ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint32_t next_random(void) {
    static uint32_t state = 1;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static int is_result(Contents contents) {
    return contents == RESULT || contents == REAL_RESULT || contents == DISTANCES;
}

static void fill(const Buffer *buffer, uint32_t *words) {
    size_t n = buffer->words;
    float *reals = (float *)words;
    uint32_t at = 0;
    for (size_t i = 0; i < n; i++)
        switch (buffer->contents) {
        case RANDOM: words[i] = next_random(); break;
        case REAL: reals[i] = next_random() % 1000 / 1000.0f; break;
        // Rows of 1 to 63 elements.
        case MATRIX_STARTS: words[i] = at, at += 1 + next_random() % 63; break;
        case MATRIX_COLUMNS: words[i] = next_random() % ROWS; break;
        // Any odd factor makes a permutation of a power of two.
        case PERMUTATION: words[i] = (uint32_t)i * 2654435761u % n; break;
        case DISTANCES: words[i] = 1 + next_random() % 1000; break;
        default: words[i] = 0;
        }
}

static int equal(const Buffer *buffer, const uint32_t *a, const uint32_t *b) {
    const float *x = (const float *)a, *y = (const float *)b;
    size_t wrong = 0;
    for (size_t i = 0; i < buffer->words; i++)
        if (buffer->contents == REAL_RESULT)
            wrong += !(fabsf(x[i] - y[i]) <= 1e-3f * (1 + fabsf(y[i])));
        else
            wrong += a[i] != b[i];
    // A path that grazes a sphere, or an orbit that grazes the bound, depends on rounding.
    return wrong <= buffer->words / 200;
}

static const Native *native_of(const char *name) {
    const Native *native = natives;
    while (native->name && strcmp(native->name, name))
        native++;
    return native;
}

typedef struct {
    const Kernel *kernel;
    cl_kernel handle;
    const Native *native;
    cl_mem memory[5];
    void *host[5], *initial[5];
    size_t buffers, arguments;
} Run;

static void reset(Run *run, int on_host) {
    for (size_t i = 0; i < run->buffers; i++) {
        const Buffer *buffer = &run->kernel->buffers[i];
        if (!is_result(buffer->contents))
            continue;
        if (on_host)
            memcpy(run->host[i], run->initial[i], 4 * buffer->words);
        else
            check(clEnqueueWriteBuffer(queue, run->memory[i], CL_TRUE, 0, 4 * buffer->words, run->initial[i], 0,
                                       NULL, NULL), "clEnqueueWriteBuffer");
    }
}

static void launch(Run *run, int on_host) {
    const Kernel *kernel = run->kernel;
    size_t launches = kernel->launches ? kernel->launches : 1;
    for (cl_uint i = 0; i < launches; i++) {
        if (on_host) {
            run->native->run(run->host, i);
            continue;
        }
        if (kernel->launches)
            check(clSetKernelArg(run->handle, run->arguments, sizeof i, &i), "clSetKernelArg");
        check(clEnqueueNDRangeKernel(queue, run->handle, kernel->global[1] ? 2 : 1, NULL, kernel->global,
                                     kernel->local, 0, NULL, NULL), kernel->name);
    }
    if (!on_host)
        check(clFinish(queue), kernel->name);
}

// Returns the CPU seconds of a launch.
static double measure(Run *run, int on_host) {
    double least = 1e9, spent = 0;
    for (int warm = 0, count = 0; count < MIN_LAUNCHES || spent < MEASURED;) {
        if (run->kernel->resets)
            reset(run, on_host);
        double begun = seconds_now();
        launch(run, on_host);
        double seconds = seconds_now() - begun;
        spent += seconds;
        if (warm) {
            least = seconds < least ? seconds : least;
            count++;
        } else if (spent >= WARM) {
            warm = 1, spent = 0;
        }
    }
    return least;
}

static int bench(const Kernel *kernel, cl_program program) {
    cl_int status;
    Run run = {kernel, clCreateKernel(program, kernel->name, &status), native_of(kernel->name)};
    check(status, kernel->name);
    for (; run.buffers < 5 && kernel->buffers[run.buffers].words; run.buffers++) {
        size_t i = run.buffers, bytes = 4 * kernel->buffers[i].words;
        run.host[i] = malloc(bytes), run.initial[i] = malloc(bytes);
        fill(&kernel->buffers[i], run.initial[i]);
        memcpy(run.host[i], run.initial[i], bytes);
        run.memory[i] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, bytes, run.initial[i], &status);
        check(status, "clCreateBuffer");
        check(clSetKernelArg(run.handle, i, sizeof(cl_mem), &run.memory[i]), "clSetKernelArg");
    }
    run.arguments = run.buffers;
    for (size_t i = 0; i < kernel->numbers; i++) {
        cl_uint number = kernel->first[i];
        check(clSetKernelArg(run.handle, run.arguments++, sizeof number, &number), "clSetKernelArg");
    }
    double device = measure(&run, 0), host = measure(&run, 1);
    int right = 1;
    for (size_t i = 0; i < run.buffers; i++) {
        const Buffer *buffer = &kernel->buffers[i];
        if (is_result(buffer->contents)) {
            uint32_t *result = malloc(4 * buffer->words);
            check(clEnqueueReadBuffer(queue, run.memory[i], CL_TRUE, 0, 4 * buffer->words, result, 0, NULL, NULL),
                  "clEnqueueReadBuffer");
            right &= equal(buffer, result, run.host[i]);
            free(result);
        }
        clReleaseMemObject(run.memory[i]);
        free(run.host[i]), free(run.initial[i]);
    }
    clReleaseKernel(run.handle);
    printf("%s %.4f %.4f%s\n", kernel->name, 1e3 * device, 1e3 * host, right ? "" : " wrong");
    fflush(stdout);
    return right;
}

static char *read_file(const char *name) {
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        perror(name);
        exit(1);
    }
    long size = ftell(file);
    char *text = calloc(size + 1, 1);
    rewind(file);
    if (fread(text, 1, size, file) != (size_t)size) {
        perror(name);
        exit(1);
    }
    fclose(file);
    return text;
}

static int is_chosen(const char *name, int count, char **names) {
    int chosen = count == 0;
    for (int i = 0; i < count; i++)
        chosen |= !strcmp(name, names[i]);
    return chosen;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench kernels.cl [KERNEL...]\n");
        return 2;
    }
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    char version[256] = "", driver[256] = "";
    clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version, version, NULL);
    clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof driver, driver, NULL);
    printf("# %s; driver %s\n", version, driver);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");
    char *source = read_file(argv[1]);
    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &status);
    check(status, "clCreateProgramWithSource");
    status = clBuildProgram(program, 1, &device, "", NULL, NULL);
    if (status != CL_SUCCESS) {
        char log[8192] = "";
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        fputs(log, stderr);
        check(status, "clBuildProgram");
    }
    int right = 1;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (is_chosen(kernels[i].name, argc - 2, argv + 2))
            right &= bench(&kernels[i], program);
    return !right;
}
