// CDNA 5: copies a tile of 16 rows of 32 f16 elements from a matrix of 100 columns to LDS, with the tensor data mover,
// and multiplies it by its own transpose.
#include <cstdio>
#include <vector>

typedef int v4i __attribute__((ext_vector_type(4)));
typedef int v8i __attribute__((ext_vector_type(8)));
typedef float v8f __attribute__((ext_vector_type(8)));
typedef _Float16 v8h __attribute__((ext_vector_type(8)));
typedef _Float16 v16h __attribute__((ext_vector_type(16)));

__global__ void product(const _Float16 *matrix, int columns, float *sums) {
  __shared__ _Float16 tile[16 * 32];
#ifdef __HIP_DEVICE_COMPILE__
  unsigned long long address = (unsigned long long)matrix;
  unsigned lds = (unsigned)(unsigned long long)(__attribute__((address_space(3))) void *)tile;
  // COUNT, LDS_ADDR, GLOBAL_ADDR, TYPE
  v4i group0 = {1, (int)lds, (int)address, (int)(address >> 32 & 0x1ffffff) | 2 << 30};
  // DATA_SIZE, TENSOR_DIM0, TENSOR_DIM1, TILE_DIM0, TILE_DIM1, TENSOR_DIM0_STRIDE
  v8i group1 = {1 << 16, columns << 16, 16 << 16, 32 << 16, 16, columns, 0, 0};
  __builtin_amdgcn_tensor_load_to_lds_d2(group0, group1, 0);
  __builtin_amdgcn_s_wait_tensorcnt(0);
  // Lane l has row l % 16, and of each 16 columns the first 8 or the others.
  int row = threadIdx.x % 16, half = threadIdx.x / 16;
  v16h a;
  for (int i = 0; i < 16; i++)
    a[i] = tile[row * 32 + i / 8 * 16 + half * 8 + i % 8];
  v8f sum = {};
  sum = __builtin_amdgcn_wmma_f32_16x16x32_f16(false, a, false, a, 0, sum, false, false);
  for (int i = 0; i < 8; i++)
    sums[(half * 8 + i) * 16 + row] = sum[i];
#endif
}

int main() {
  const int columns = 100;
  std::vector<_Float16> matrix(16 * columns);
  for (int i = 0; i < 16 * columns; i++)
    matrix[i] = i % 37 - 18;
  std::vector<float> sums(256);
  _Float16 *device;
  float *out;
  hipMalloc(&device, matrix.size() * sizeof(_Float16));
  hipMalloc(&out, 256 * sizeof(float));
  hipMemcpy(device, matrix.data(), matrix.size() * sizeof(_Float16), hipMemcpyHostToDevice);
  product<<<1, 32>>>(device, columns, out);
  hipMemcpy(sums.data(), out, 256 * sizeof(float), hipMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      float expected = 0;
      for (int k = 0; k < 32; k++)
        expected += (float)matrix[i * columns + k] * (float)matrix[j * columns + k];
      wrong += sums[i * 16 + j] != expected;
    }
  printf("wrong sums: %d of 256, sum[0] = %g, sum[255] = %g\n", wrong, sums[0], sums[255]);
}
