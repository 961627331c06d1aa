// Kernels of other formats than f32: f64, and products of f16 matrices. Compiled like kernels.cl; the same loops in Rust are in
// `src/bench/native.rs`.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define LID(d) ((int)__builtin_amdgcn_workitem_id_##d())
#define GRP(d) ((int)__builtin_amdgcn_workgroup_id_##d())
#define NB 256

typedef half v16h __attribute__((ext_vector_type(16)));
typedef float v8f __attribute__((ext_vector_type(8)));

#if defined(__gfx942__)
typedef half v4h __attribute__((ext_vector_type(4)));
typedef half v8h __attribute__((ext_vector_type(8)));
typedef float v16f __attribute__((ext_vector_type(16)));

// C = A * B, n x n row-major, n a multiple of 64: f32 out of f16. B is stored by columns. Grid (n/64, n/64), block 64: four tiles of 32 x 32
// for each wave. A lane loads eight numbers along K, four for each of two products: the order in which K is summed is another than 0 to n.
__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void matmul_mfma(__global const half *a, __global const half *b, __global float *c, int n) {
  int lane = LID(x), row = GRP(y) * 64, column = GRP(x) * 64;
  __global const half *x = a + (row + lane % 32) * n + lane / 32 * 8;
  __global const half *y = b + (column + lane % 32) * n + lane / 32 * 8;
  v16f sum[2][2] = {};
  for (int k = 0; k < n; k += 16) {
    v8h p[2] = {*(__global const v8h *)(x + k), *(__global const v8h *)(x + 32 * n + k)};
    v8h q[2] = {*(__global const v8h *)(y + k), *(__global const v8h *)(y + 32 * n + k)};
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++) {
        sum[i][j] = __builtin_amdgcn_mfma_f32_32x32x8f16(p[i].lo, q[j].lo, sum[i][j], 0, 0, 0);
        sum[i][j] = __builtin_amdgcn_mfma_f32_32x32x8f16(p[i].hi, q[j].hi, sum[i][j], 0, 0, 0);
      }
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int e = 0; e < 16; e++)
        c[(row + 32 * i + e / 4 * 8 + lane / 32 * 4 + e % 4) * n + column + 32 * j + lane % 32] = sum[i][j][e];
}
#elif __AMDGCN_WAVEFRONT_SIZE == 32 && defined(__GFX11__)
// C = A * B, n x n row-major, n a multiple of 64: f32 out of f16. B is stored by columns. Grid (n/64, n/64), block 32: 4 x 4 tiles for each
// wave, so that what a lane loads is used four times.
__attribute__((reqd_work_group_size(32, 1, 1)))
__kernel void matmul_f16(__global const half *a, __global const half *b, __global float *c, int n) {
  int lane = LID(x), row = GRP(y) * 64, column = GRP(x) * 64;
  __global const half *x = a + (row + lane % 16) * n;
  __global const half *y = b + (column + lane % 16) * n;
  v8f sum[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    v16h p[4], q[4];
    for (int i = 0; i < 4; i++) {
      p[i] = *(__global const v16h *)(x + 16 * i * n + k);
      q[i] = *(__global const v16h *)(y + 16 * i * n + k);
    }
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) sum[i][j] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(p[i], q[j], sum[i][j]);
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      for (int e = 0; e < 8; e++)
        c[(row + 16 * i + 2 * e + lane / 16) * n + column + 16 * j + lane % 16] = sum[i][j][e];
}
#endif

static double next(unsigned *state) {
  unsigned s = *state;
  s ^= s << 13;
  s ^= s >> 17;
  s ^= s << 5;
  *state = s;
  return s * 0x1p-32;
}

// Light that comes to each of width x width pixels from spheres (center, radius, emission, colour) that reflect it in all directions, along
// one path with at most six reflections. Additions, products, quotients and roots in f64: results are exact. Grid width * width / 256.
__attribute__((reqd_work_group_size(NB, 1, 1)))
__kernel void pathtrace(__global double *out, __global const double *spheres, int count, int width) {
  int i = GRP(x) * NB + LID(x);
  unsigned state = (unsigned)i * 747796405u + 2891336453u;
  double scale = 1.0 / width;
  double dx = (i % width + next(&state)) * scale - 0.5, dy = (i / width + next(&state)) * scale - 0.5, dz = 1.0;
  double length = __builtin_sqrt(dx * dx + dy * dy + dz * dz);
  dx /= length, dy /= length, dz /= length;
  double ox = 0, oy = 0, oz = -3, light[3] = {0, 0, 0}, weight[3] = {1, 1, 1};
  for (int depth = 0; depth < 6; depth++) {
    double best = 1e30;
    int hit = -1;
    for (int k = 0; k < count; k++) {
      __global const double *s = spheres + 8 * k;
      double x = s[0] - ox, y = s[1] - oy, z = s[2] - oz;
      double along = x * dx + y * dy + z * dz;
      double squared = along * along - (x * x + y * y + z * z) + s[3] * s[3];
      if (squared > 0) {
        double root = __builtin_sqrt(squared), t = along - root;
        if (t < 1e-6) t = along + root;
        if (t > 1e-6 && t < best) best = t, hit = k;
      }
    }
    if (hit < 0) break;
    __global const double *s = spheres + 8 * hit;
    ox += dx * best, oy += dy * best, oz += dz * best;
    double nx = (ox - s[0]) / s[3], ny = (oy - s[1]) / s[3], nz = (oz - s[2]) / s[3];
    if (nx * dx + ny * dy + nz * dz > 0) nx = -nx, ny = -ny, nz = -nz;
    for (int c = 0; c < 3; c++) {
      light[c] += weight[c] * s[4];
      weight[c] *= s[5 + c];
    }
    double u, v, w, q;
    do {
      u = 2 * next(&state) - 1, v = 2 * next(&state) - 1, w = 2 * next(&state) - 1;
      q = u * u + v * v + w * w;
    } while (q >= 1);
    q = __builtin_sqrt(q);
    dx = nx + u / q, dy = ny + v / q, dz = nz + w / q;
    length = __builtin_sqrt(dx * dx + dy * dy + dz * dz);
    dx /= length, dy /= length, dz /= length;
  }
  for (int c = 0; c < 3; c++) out[3 * i + c] = light[c];
}
