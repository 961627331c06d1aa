// What kernels.cl computes, as a C programmer would write it for the host.
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void saxpy(void **p, uint32_t launch) {
    const float *restrict x = p[0];
    float *restrict y = p[1];
    for (size_t i = 0; i < SAXPY; i++)
        y[i] = 1.5f * x[i] + y[i];
}

static void histogram(void **p, uint32_t launch) {
    const uint32_t *data = p[0];
    uint32_t *bins = p[1];
    for (size_t i = 0; i < HISTOGRAM; i++)
        bins[data[i] & 255]++;
}

static void stencil(void **p, uint32_t launch) {
    enum { n = STENCIL };
    const float *restrict in = p[0];
    float *restrict out = p[1];
    for (size_t y = 1; y < n - 1; y++)
        for (size_t x = 1; x < n - 1; x++) {
            size_t i = y * n + x;
            out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
        }
}

static void spmv(void **p, uint32_t launch) {
    const uint32_t *start = p[0], *column = p[1];
    const float *value = p[2], *x = p[3];
    float *y = p[4];
    for (size_t row = 0; row < ROWS; row++) {
        float sum = 0;
        for (uint32_t i = start[row]; i < start[row + 1]; i++)
            sum += value[i] * x[column[i]];
        y[row] = sum;
    }
}

static void switch_interpreter(void **p, uint32_t launch) {
    const uint32_t *code = p[0];
    uint32_t *out = p[1];
    for (uint32_t item = 0; item < MACHINES; item++) {
        uint32_t a = item, b = item * 7 + 3, pc = item & 63;
        for (int step = 0; step < STEPS; step++) {
            uint32_t op = code[pc & 63], t;
            switch (op & 7) {
            case 0: a += b; break;
            case 1: b ^= a << 3; break;
            case 2: a = a * 5 + 1; break;
            case 3: b -= a >> 2; break;
            case 4: if (a & 1) pc += op >> 29; break;
            case 5: a = (a << 7) | (a >> 25); break;
            case 6: t = a; a = b; b = t; break;
            case 7: b += op >> 8; break;
            }
            pc++;
        }
        out[item] = a ^ b;
    }
}

static void sort_private(void **p, uint32_t launch) {
    const uint32_t *in = p[0];
    uint32_t *out = p[1];
    for (size_t item = 0; item < LISTS; item++) {
        uint32_t list[32];
        for (size_t i = 0; i < 32; i++)
            list[i] = in[i * LISTS + item];
        for (size_t i = 1; i < 32; i++) {
            uint32_t v = list[i];
            size_t j = i;
            for (; j > 0 && list[j - 1] > v; j--)
                list[j] = list[j - 1];
            list[j] = v;
        }
        for (size_t i = 0; i < 32; i++)
            out[i * LISTS + item] = list[i];
    }
}

static void copy16(void **p, uint32_t launch) {
    memcpy(p[1], p[0], 16 * COPY);
}

static void transpose(void **p, uint32_t launch) {
    enum { n = TRANSPOSE };
    const float *restrict in = p[0];
    float *restrict out = p[1];
    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++)
            out[x * n + y] = in[y * n + x];
}

static void gather(void **p, uint32_t launch) {
    const uint32_t *restrict index = p[0];
    const float *restrict in = p[1];
    float *restrict out = p[2];
    for (size_t i = 0; i < GATHER; i++)
        out[i] = in[index[i]];
}

typedef struct { double x, y, z; } Vec;
static Vec vec(double x, double y, double z) { Vec v = {x, y, z}; return v; }
static Vec plus(Vec a, Vec b) { return vec(a.x + b.x, a.y + b.y, a.z + b.z); }
static Vec times(Vec a, double s) { return vec(a.x * s, a.y * s, a.z * s); }
static double dot3(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static double unit_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state * (1.0 / 4294967296.0);
}

static void path_tracer(void **p, uint32_t launch) {
    float *out = p[0];
    for (uint32_t i = 0; i < IMAGE * IMAGE; i++) {
        uint32_t state = i * 2654435761u + 1;
        double sum = 0;
        for (int sample = 0; sample < SAMPLES; sample++) {
            Vec at = vec(0, 1, -6);
            Vec to = vec((i % IMAGE) / (double)IMAGE - 0.5, (i / IMAGE) / (double)IMAGE - 0.5, 1);
            to = times(to, 1 / sqrt(dot3(to, to)));
            double weight = 1;
            for (int bounce = 0; bounce < 5; bounce++) {
                double nearest = 1e20;
                Vec normal = vec(0, 1, 0);
                if (to.y < -1e-4)
                    nearest = (-1 - at.y) / to.y;
                for (int s = 0; s < 16; s++) {
                    Vec centre = vec((s & 3) * 1.5 - 2.25, 0, (s >> 2) * 1.5);
                    Vec from = plus(at, times(centre, -1));
                    double b = dot3(from, to), c = dot3(from, from) - 0.36, d = b * b - c;
                    if (d > 0) {
                        double t = -b - sqrt(d);
                        if (t > 1e-4 && t < nearest) {
                            nearest = t;
                            normal = times(plus(plus(at, times(to, t)), times(centre, -1)), 1 / 0.6);
                        }
                    }
                }
                if (nearest > 1e19) {
                    sum += weight * (0.5 + 0.5 * to.y);
                    break;
                }
                at = plus(at, times(to, nearest));
                Vec any;
                any.x = unit_random(&state) - 0.5;
                any.y = unit_random(&state) - 0.5;
                any.z = unit_random(&state) - 0.5;
                to = plus(normal, any);
                to = times(to, 1 / sqrt(dot3(to, to)));
                at = plus(at, times(normal, 1e-3));
                weight *= 0.7;
            }
        }
        out[i] = sum / SAMPLES;
    }
}

static void collatz(void **p, uint32_t launch) {
    uint32_t *out = p[0];
    for (uint32_t i = 0; i < COLLATZ; i++) {
        uint32_t n = i + 1, steps = 0;
        for (; n != 1; steps++)
            n = n & 1 ? 3 * n + 1 : n >> 1;
        out[i] = steps;
    }
}

static void reduce(void **p, uint32_t launch) {
    const float *in = p[0];
    float *out = p[1];
    for (size_t group = 0; group < GROUPS; group++) {
        float sums[256] = {0}, sum = 0;
        for (size_t i = group * 256; i < REDUCE; i += GROUPS * 256)
            for (size_t item = 0; item < 256; item++)
                sums[item] += in[i + item];
        for (size_t item = 0; item < 256; item++)
            sum += sums[item];
        out[group] = sum;
    }
}

static void tree_reduction(void **p, uint32_t launch) {
    const float *in = p[0];
    float *out = p[1];
    for (size_t group = 0; group < TREE / 256; group++) {
        float part[256];
        memcpy(part, in + group * 256, sizeof part);
        for (size_t step = 128; step > 0; step >>= 1)
            for (size_t item = 0; item < step; item++)
                part[item] += part[item + step];
        out[group] = part[0];
    }
}

// Blocked for the L1 cache.
static void matmul(const float *restrict a, const float *restrict b, float *restrict c, size_t n) {
    memset(c, 0, n * n * sizeof *c);
    for (size_t k0 = 0; k0 < n; k0 += 64)
        for (size_t row = 0; row < n; row += 4)
            for (size_t k = k0; k < k0 + 64; k++)
                for (size_t column = 0; column < n; column++)
                    for (size_t i = 0; i < 4; i++)
                        c[(row + i) * n + column] += a[(row + i) * n + k] * b[k * n + column];
}

static void matmul_local(void **p, uint32_t launch) {
    matmul(p[0], p[1], p[2], MATMUL);
}

static void gemm_registers(void **p, uint32_t launch) {
    matmul(p[0], p[1], p[2], GEMM);
}

static void mandelbrot(void **p, uint32_t launch) {
    uint32_t *out = p[0];
    for (uint32_t y = 0; y < MANDELBROT; y++)
        for (uint32_t x = 0; x < MANDELBROT; x++) {
            float cr = x * 3.0f / MANDELBROT - 2, ci = y * 2.0f / MANDELBROT - 1, zr = 0, zi = 0;
            uint32_t steps = 0;
            for (; steps < 200 && zr * zr + zi * zi < 4; steps++) {
                float next = zr * zr - zi * zi + cr;
                zi = 2 * zr * zi + ci;
                zr = next;
            }
            out[y * MANDELBROT + x] = steps;
        }
}

#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))
static const uint32_t sha_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void sha256(void **p, uint32_t launch) {
    uint32_t *out = p[0];
    for (uint32_t item = 0; item < MESSAGES; item++) {
        uint32_t w[16] = {item, 0x80000000};
        w[15] = 32;
        uint32_t a = 0x6a09e667, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a, e = 0x510e527f, f = 0x9b05688c,
                 g = 0x1f83d9ab, k = 0x5be0cd19;
        for (uint32_t i = 0; i < 64; i++) {
            if (i >= 16) {
                uint32_t x = w[(i + 1) & 15], y = w[(i + 14) & 15];
                w[i & 15] += (ROTATE(x, 7) ^ ROTATE(x, 18) ^ x >> 3) + w[(i + 9) & 15]
                    + (ROTATE(y, 17) ^ ROTATE(y, 19) ^ y >> 10);
            }
            uint32_t one = k + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + ((e & f) ^ (~e & g))
                + sha_constants[i] + w[i & 15];
            uint32_t two = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            k = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
        }
        out[item] = 0x6a09e667 + a;
    }
}

static void scan(void **p, uint32_t launch) {
    const uint32_t *in = p[0];
    uint32_t *out = p[1], sum = 0;
    for (size_t i = 0; i < SCAN; i++) {
        sum = i % 256 ? sum + in[i] : in[i];
        out[i] = sum;
    }
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void bitonic(void **p, uint32_t launch) {
    uint32_t *out = p[1];
    memcpy(out, p[0], BITONIC * sizeof *out);
    for (size_t i = 0; i < BITONIC; i += 256)
        qsort(out + i, 256, sizeof *out, compare);
}

static void layer_norm(void **p, uint32_t launch) {
    const float *in = p[0];
    float *out = p[1];
    for (size_t row = 0; row < NORM; row += 1024) {
        float sums[8] = {0}, sum = 0, squares = 0;
        for (size_t i = 0; i < 1024; i++)
            sums[i % 8] += in[row + i];
        for (size_t i = 0; i < 8; i++)
            sum += sums[i], sums[i] = 0;
        float mean = sum / 1024;
        for (size_t i = 0; i < 1024; i++)
            sums[i % 8] += (in[row + i] - mean) * (in[row + i] - mean);
        for (size_t i = 0; i < 8; i++)
            squares += sums[i];
        float scale = 1 / sqrtf(squares / 1024 + 1e-5f);
        for (size_t i = 0; i < 1024; i++)
            out[row + i] = (in[row + i] - mean) * scale;
    }
}

static void nbody(void **p, uint32_t launch) {
    const float(*bodies)[4] = p[0];
    float(*out)[4] = p[1];
    for (size_t i = 0; i < BODIES; i++) {
        float x = 0, y = 0, z = 0;
        for (size_t j = 0; j < BODIES; j++) {
            float dx = bodies[j][0] - bodies[i][0], dy = bodies[j][1] - bodies[i][1];
            float dz = bodies[j][2] - bodies[i][2];
            float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float force = bodies[j][3] * inverse * inverse * inverse;
            x += dx * force;
            y += dy * force;
            z += dz * force;
        }
        out[i][0] = x, out[i][1] = y, out[i][2] = z, out[i][3] = 0;
    }
}

static void floyd(void **p, uint32_t via) {
    uint32_t *distance = p[0];
    for (size_t y = 0; y < FLOYD; y++)
        for (size_t x = 0; x < FLOYD; x++) {
            uint32_t through = distance[y * FLOYD + via] + distance[via * FLOYD + x];
            if (through < distance[y * FLOYD + x])
                distance[y * FLOYD + x] = through;
        }
}

static void bit_count(void **p, uint32_t launch) {
    const uint32_t *restrict in = p[0];
    uint32_t *restrict out = p[1];
    for (size_t i = 0; i < COUNT; i++)
        out[i] = __builtin_popcount(in[i]) + __builtin_popcount(in[i] & 0xff);
}

const Native natives[] = {
    {"saxpy", saxpy}, {"histogram_global", histogram}, {"histogram_local", histogram}, {"stencil", stencil},
    {"spmv", spmv}, {"switch_interpreter", switch_interpreter}, {"sort_private", sort_private},
    {"copy16", copy16}, {"transpose", transpose}, {"gather", gather}, {"path_tracer", path_tracer},
    {"collatz", collatz}, {"reduce", reduce}, {"tree_reduction", tree_reduction},
    {"matmul_local", matmul_local}, {"gemm_registers", gemm_registers}, {"mandelbrot", mandelbrot},
    {"sha256", sha256}, {"scan", scan}, {"bitonic", bitonic}, {"layer_norm", layer_norm}, {"nbody", nbody},
    {"floyd", floyd}, {"bit_count", bit_count}, {NULL, NULL},
};
