// Each workgroup of 64 work-items sums 64 elements in shared memory.
extern "C" __global__ void sum(const float *x, float *out_sums) {
  __shared__ float part[64];
  int lane = threadIdx.x;
  part[lane] = x[blockIdx.x * 64 + lane];
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (lane < half) part[lane] += part[lane + half];
    __syncthreads();
  }
  if (lane == 0) out_sums[blockIdx.x] = part[0];
}
