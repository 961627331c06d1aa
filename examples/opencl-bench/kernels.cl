// The kernels that bench.c measures: ordinary code, as programs have it. native.c computes the same.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void saxpy(global const float *x, global float *y, float a, uint n) {
    uint i = get_global_id(0);
    if (i < n)
        y[i] = a * x[i] + y[i];
}

kernel void histogram_global(global const uint *data, global uint *bins) {
    uint i = get_global_id(0);
    atomic_inc(&bins[data[i] & 255]);
}

kernel void histogram_local(global const uint *data, global uint *bins, uint per_item) {
    local uint own[256];
    uint item = get_local_id(0), group = get_group_id(0);
    own[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < per_item; i++)
        atomic_inc(&own[data[(group * per_item + i) * 256 + item] & 255]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&bins[item], own[item]);
}

kernel void stencil(global const float *in, global float *out, uint n) {
    uint x = get_global_id(0), y = get_global_id(1);
    if (x == 0 || y == 0 || x >= n - 1 || y >= n - 1)
        return;
    uint i = y * n + x;
    out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}

kernel void spmv(global const uint *row_start, global const uint *column, global const float *value,
                 global const float *x, global float *y, uint rows) {
    uint row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0;
    for (uint i = row_start[row]; i < row_start[row + 1]; i++)
        sum += value[i] * x[column[i]];
    y[row] = sum;
}

kernel void switch_interpreter(global const uint *code, global uint *out, uint steps) {
    uint item = get_global_id(0), a = item, b = item * 7 + 3, pc = item & 63;
    for (uint step = 0; step < steps; step++) {
        uint op = code[pc & 63];
        switch (op & 7) {
        case 0: a += b; break;
        case 1: b ^= a << 3; break;
        case 2: a = a * 5 + 1; break;
        case 3: b -= a >> 2; break;
        case 4: if (a & 1) pc += op >> 29; break;
        case 5: a = (a << 7) | (a >> 25); break;
        case 6: { uint t = a; a = b; b = t; break; }
        case 7: b += op >> 8; break;
        }
        pc++;
    }
    out[item] = a ^ b;
}

kernel void sort_private(global const uint *in, global uint *out) {
    uint item = get_global_id(0), count = get_global_size(0);
    uint list[32];
    for (uint i = 0; i < 32; i++)
        list[i] = in[i * count + item];
    for (uint i = 1; i < 32; i++) {
        uint v = list[i], j = i;
        for (; j > 0 && list[j - 1] > v; j--)
            list[j] = list[j - 1];
        list[j] = v;
    }
    for (uint i = 0; i < 32; i++)
        out[i * count + item] = list[i];
}

kernel void copy16(global const uint4 *in, global uint4 *out) {
    out[get_global_id(0)] = in[get_global_id(0)];
}

kernel void transpose(global const float *in, global float *out, uint n) {
    uint x = get_global_id(0), y = get_global_id(1);
    out[x * n + y] = in[y * n + x];
}

kernel void gather(global const uint *index, global const float *in, global float *out) {
    uint i = get_global_id(0);
    out[i] = in[index[i]];
}

typedef struct { double x, y, z; } Vec;
Vec vec(double x, double y, double z) { Vec v = {x, y, z}; return v; }
Vec plus(Vec a, Vec b) { return vec(a.x + b.x, a.y + b.y, a.z + b.z); }
Vec times(Vec a, double s) { return vec(a.x * s, a.y * s, a.z * s); }
double dot3(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
uint next_random(uint *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}
double unit_random(uint *state) { return next_random(state) * (1.0 / 4294967296.0); }

// Spheres of a 4 by 4 grid above a floor, lit by the sky.
kernel void path_tracer(global float *out, uint width, uint samples) {
    uint i = get_global_id(0), state = i * 2654435761u + 1;
    double sum = 0;
    for (uint sample = 0; sample < samples; sample++) {
        Vec at = vec(0, 1, -6);
        Vec to = vec((i % width) / (double)width - 0.5, (i / width) / (double)width - 0.5, 1);
        to = times(to, 1 / sqrt(dot3(to, to)));
        double weight = 1;
        for (uint bounce = 0; bounce < 5; bounce++) {
            double nearest = 1e20;
            Vec normal = vec(0, 1, 0);
            if (to.y < -1e-4)
                nearest = (-1 - at.y) / to.y;
            for (uint s = 0; s < 16; s++) {
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
    out[i] = sum / samples;
}

kernel void collatz(global uint *out) {
    uint n = get_global_id(0) + 1, steps = 0;
    for (; n != 1; steps++)
        n = n & 1 ? 3 * n + 1 : n >> 1;
    out[get_global_id(0)] = steps;
}

kernel void reduce(global const float *in, global float *out, uint n) {
    local float part[256];
    uint item = get_local_id(0);
    float sum = 0;
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        sum += in[i];
    part[item] = sum;
    for (uint step = 128; step > 0; step >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < step)
            part[item] += part[item + step];
    }
    if (item == 0)
        out[get_group_id(0)] = part[0];
}

kernel void tree_reduction(global const float *in, global float *out) {
    local float part[256];
    uint item = get_local_id(0);
    part[item] = in[get_global_id(0)];
    for (uint step = 128; step > 0; step >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < step)
            part[item] += part[item + step];
    }
    if (item == 0)
        out[get_group_id(0)] = part[0];
}

kernel void matmul_local(global const float *a, global const float *b, global float *c, uint n) {
    local float left[16][16], right[16][16];
    uint x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (uint tile = 0; tile < n; tile += 16) {
        left[y][x] = a[row * n + tile + x];
        right[y][x] = b[(tile + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < 16; k++)
            sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

// A work-item computes four rows and four columns.
kernel void gemm_registers(global const float *a, global const float *b, global float *c, uint n) {
    uint column = get_global_id(0), row = get_global_id(1) * 4, step = n / 4;
    float sum[4][4] = {{0}};
    for (uint k = 0; k < n; k++) {
        float left[4], right[4];
        for (uint i = 0; i < 4; i++) {
            left[i] = a[(row + i) * n + k];
            right[i] = b[k * n + column + i * step];
        }
        for (uint i = 0; i < 4; i++)
            for (uint j = 0; j < 4; j++)
                sum[i][j] += left[i] * right[j];
    }
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++)
            c[(row + i) * n + column + j * step] = sum[i][j];
}

kernel void mandelbrot(global uint *out, uint width) {
    uint x = get_global_id(0), y = get_global_id(1), steps = 0;
    float cr = x * 3.0f / width - 2, ci = y * 2.0f / width - 1, zr = 0, zi = 0;
    for (; steps < 200 && zr * zr + zi * zi < 4; steps++) {
        float next = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = next;
    }
    out[y * width + x] = steps;
}

constant uint sha_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))

// The digest's first word, of a message that is the work-item's number.
kernel void sha256(global uint *out) {
    uint w[16] = {get_global_id(0), 0x80000000};
    w[15] = 32;
    uint h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], k = h[7];
    for (uint i = 0; i < 64; i++) {
        if (i >= 16) {
            uint x = w[(i + 1) & 15], y = w[(i + 14) & 15];
            w[i & 15] += (ROTATE(x, 7) ^ ROTATE(x, 18) ^ x >> 3) + w[(i + 9) & 15]
                + (ROTATE(y, 17) ^ ROTATE(y, 19) ^ y >> 10);
        }
        uint one = k + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + ((e & f) ^ (~e & g))
            + sha_constants[i] + w[i & 15];
        uint two = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        k = g; g = f; f = e; e = d + one; d = c; c = b; b = a; a = one + two;
    }
    out[get_global_id(0)] = h[0] + a;
}

// The inclusive prefix sums of each workgroup.
kernel void scan(global const uint *in, global uint *out) {
    local uint sums[256];
    uint item = get_local_id(0), sum = in[get_global_id(0)];
    sums[item] = sum;
    for (uint step = 1; step < 256; step <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint other = item >= step ? sums[item - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += other;
        sums[item] = sum;
    }
    out[get_global_id(0)] = sum;
}

kernel void bitonic(global const uint *in, global uint *out) {
    local uint list[256];
    uint item = get_local_id(0);
    list[item] = in[get_global_id(0)];
    for (uint size = 2; size <= 256; size <<= 1)
        for (uint step = size >> 1; step > 0; step >>= 1) {
            barrier(CLK_LOCAL_MEM_FENCE);
            uint other = item ^ step;
            if (other > item) {
                uint a = list[item], b = list[other];
                if ((a > b) == ((item & size) == 0)) {
                    list[item] = b;
                    list[other] = a;
                }
            }
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = list[item];
}

float sum_of_group(local float *part, uint item, float v) {
    part[item] = v;
    for (uint step = 128; step > 0; step >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < step)
            part[item] += part[item + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

// A workgroup for each row of 1024.
kernel void layer_norm(global const float *in, global float *out) {
    local float part[256];
    uint item = get_local_id(0), row = get_group_id(0) * 1024;
    float v[4], sum = 0, squares = 0;
    for (uint i = 0; i < 4; i++)
        sum += v[i] = in[row + i * 256 + item];
    float mean = sum_of_group(part, item, sum) / 1024;
    for (uint i = 0; i < 4; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    float scale = 1 / sqrt(sum_of_group(part, item, squares) / 1024 + 1e-5f);
    for (uint i = 0; i < 4; i++)
        out[row + i * 256 + item] = (v[i] - mean) * scale;
}

kernel void nbody(global const float4 *bodies, global float4 *out, uint n) {
    uint i = get_global_id(0);
    float4 own = bodies[i];
    float x = 0, y = 0, z = 0;
    for (uint j = 0; j < n; j++) {
        float4 other = bodies[j];
        float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        float inverse = rsqrt(dx * dx + dy * dy + dz * dz + 0.01f);
        float force = other.w * inverse * inverse * inverse;
        x += dx * force;
        y += dy * force;
        z += dz * force;
    }
    out[i] = (float4)(x, y, z, 0);
}

// Shortest paths over the node `via`.
kernel void floyd(global uint *distance, uint n, uint via) {
    uint x = get_global_id(0), y = get_global_id(1);
    uint through = distance[y * n + via] + distance[via * n + x];
    if (through < distance[y * n + x])
        distance[y * n + x] = through;
}

kernel void bit_count(global const uint *in, global uint *out, uint n) {
    uint i = get_global_id(0);
    if (i >= n)
        return;
    uint v = in[i];
    v = v - (v >> 1 & 0x55555555);
    v = (v & 0x33333333) + (v >> 2 & 0x33333333);
    out[i] = ((v + (v >> 4) & 0x0f0f0f0f) * 0x01010101 >> 24) + popcount(in[i] & 0xff);
}
