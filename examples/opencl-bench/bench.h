// Problem sizes, in elements unless stated otherwise: a launch takes some milliseconds on any of the platforms.
#include <stddef.h>
#include <stdint.h>

enum {
    SAXPY = 1 << 20,
    HISTOGRAM = 1 << 19,
    STENCIL = 1024, // rows and columns
    ROWS = 1 << 15, // of a sparse matrix
    MACHINES = 1 << 14, // interpreted by switch_interpreter
    STEPS = 128, // of each of them
    LISTS = 1 << 14, // of 32 numbers
    COPY = 1 << 19, // of 16 bytes
    TRANSPOSE = 1024, // rows and columns
    GATHER = 1 << 20,
    IMAGE = 128, // rows and columns
    SAMPLES = 2, // of each pixel
    COLLATZ = 1 << 16,
    REDUCE = 1 << 21,
    GROUPS = 64, // of reduce
    TREE = 1 << 19,
    MATMUL = 256, // rows and columns
    GEMM = 256, // rows and columns
    MANDELBROT = 256, // rows and columns
    MESSAGES = 1 << 15,
    SCAN = 1 << 18,
    BITONIC = 1 << 16,
    NORM = 1 << 19,
    BODIES = 1024,
    FLOYD = 256, // nodes
    COUNT = 1 << 20,
};

// Computes a launch on the host, from the kernel's buffers.
typedef struct {
    const char *name;
    void (*run)(void **buffers, uint32_t launch);
} Native;

// The last one has no name.
extern const Native natives[];
