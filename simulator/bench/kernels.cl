// Realistic kernels, one source for three uses:
//  - clang -target amdgcn-amd-amdhsa -mcpu=gfx1100 (no device libraries needed),
//  - any OpenCL implementation (clBuildProgram of this text),
//  - the same loops as plain C are in `src/bench/native.rs`.
#if defined(__AMDGCN__)
#define LID(d) ((int)__builtin_amdgcn_workitem_id_##d())
#define GRP(d) ((int)__builtin_amdgcn_workgroup_id_##d())
#define BARRIER() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \
  __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
#define RSQRT(x) __builtin_amdgcn_rsqf(x)
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define IDX_x 0
#define IDX_y 1
#define LID(d) ((int)get_local_id(IDX_##d))
#define GRP(d) ((int)get_group_id(IDX_##d))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define RSQRT(x) rsqrt(x)
#define FMA(a, b, c) fma(a, b, c)
#endif
#define TS 16
#ifndef NB
#define NB 256
#endif

// C = A * B, n x n row-major f32, n a multiple of 16. Grid (n/16, n/16), block (16, 16).
__attribute__((reqd_work_group_size(TS, TS, 1)))
__kernel void matmul(__global const float *A, __global const float *B, __global float *C, int n) {
  __local float As[TS][TS], Bs[TS][TS];
  int lx = LID(x), ly = LID(y);
  int row = GRP(y) * TS + ly, col = GRP(x) * TS + lx;
  float acc = 0.0f;
  for (int t = 0; t < n; t += TS) {
    As[ly][lx] = A[row * n + t + lx];
    Bs[ly][lx] = B[(t + ly) * n + col];
    BARRIER();
    for (int k = 0; k < TS; k++) acc = FMA(As[ly][k], Bs[k][lx], acc);
    BARRIER();
  }
  C[row * n + col] = acc;
}

// One force evaluation over n bodies (float4: x y z mass), n a multiple of 256. Grid n/256, block 256.
__attribute__((reqd_work_group_size(NB, 1, 1)))
__kernel void nbody(__global const float *pos, __global float *acc, int n) {
  __local float sx[NB], sy[NB], sz[NB], sm[NB];
  int l = LID(x), i = GRP(x) * NB + l;
  float px = pos[4 * i], py = pos[4 * i + 1], pz = pos[4 * i + 2];
  float ax = 0, ay = 0, az = 0;
  for (int t = 0; t < n; t += NB) {
    sx[l] = pos[4 * (t + l)]; sy[l] = pos[4 * (t + l) + 1];
    sz[l] = pos[4 * (t + l) + 2]; sm[l] = pos[4 * (t + l) + 3];
    BARRIER();
#pragma unroll 4
    for (int j = 0; j < NB; j++) {
      float dx = sx[j] - px, dy = sy[j] - py, dz = sz[j] - pz;
      float d2 = FMA(dx, dx, FMA(dy, dy, FMA(dz, dz, 0.01f)));
      float inv = RSQRT(d2);
      float s = sm[j] * inv * inv * inv;
      ax = FMA(dx, s, ax); ay = FMA(dy, s, ay); az = FMA(dz, s, az);
    }
    BARRIER();
  }
  acc[4 * i] = ax; acc[4 * i + 1] = ay; acc[4 * i + 2] = az; acc[4 * i + 3] = 0;
}

// w x w pixels, w = 2^log2w >= 16; step = 3/w (computed by the host, so that no division is in the kernel).
// Grid w*w/256, block 256. Only multiplications and additions in f32: results are exact integers to compare.
__attribute__((reqd_work_group_size(NB, 1, 1)))
__kernel void mandelbrot(__global int *out, int log2w, int maxit, float step) {
  int i = GRP(x) * NB + LID(x);
  int px = i & ((1 << log2w) - 1), py = i >> log2w;
  float cx = FMA((float)px, step, -2.2f), cy = FMA((float)py, step, -1.5f);
  float x = 0, y = 0;
  int k = 0;
  for (; k < maxit; k++) {
    float x2 = x * x, y2 = y * y;
    if (x2 + y2 > 4.0f) break;
    y = FMA(2.0f * x, y, cy);
    x = x2 - y2 + cx;
  }
  out[i] = k;
}
