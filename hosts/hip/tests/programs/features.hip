// A sample of each feature: a reduction in LDS, atomics, printf, malloc, variables, streams and events, a graph, a matrix product, an N-body step.
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    hipError_t status = (call);                                                                    \
    if (status != hipSuccess) {                                                                    \
      printf("%s: %s\n", #call, hipGetErrorString(status));                                        \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

__global__ void reduce(const int *in, int *out, int n) {
  extern __shared__ int part[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? in[i] : 0;
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step)
      part[threadIdx.x] += part[threadIdx.x + step];
  }
  if (threadIdx.x == 0)
    atomicAdd(out, part[0]);
}

__device__ int scale = 3;
__constant__ int offset = 4;
__managed__ int managed = 5;

__global__ void variables(int *out) {
  *out = scale * 100 + offset * 10 + managed;
  scale++;
  managed++;
}

__global__ void histogram(const unsigned char *in, unsigned *bins, unsigned long long *sum, float *most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&bins[in[i] % 16], 1u);
    atomicAdd(sum, (unsigned long long)in[i]);
    atomicMax(most, (float)in[i]);
  }
}

__global__ void talk() {
  if (threadIdx.x % 32 == 1)
    printf("block %d, thread %3d: %s %.2f %c %%\n", blockIdx.x, threadIdx.x, "text", threadIdx.x / 4.0, 'x');
}

struct Node {
  Node *next;
  int value;
};

// Each work-item builds a list on the heap, then allocates a block that is too large for the device libraries, so the host provides it.
__global__ void lists(int *out) {
  Node *first = nullptr;
  int sum = 0;
  for (int k = 0; k < threadIdx.x % 5; k++) {
    Node *node = (Node *)malloc(sizeof(Node));
    *node = {first, k + (int)threadIdx.x};
    first = node;
  }
  while (first) {
    Node *next = first->next;
    sum += first->value;
    free(first);
    first = next;
  }
  int *large = (int *)malloc(10000 * sizeof(int));
  large[9999] = sum;
  out[blockIdx.x * blockDim.x + threadIdx.x] = large[9999];
  free(large);
}

__global__ void product(const float *a, const float *b, float *c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[y][x] = a[row * n + k + x];
    tb[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; j++)
      sum += ta[y][j] * tb[j][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void accelerate(const float4 *bodies, float4 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = bodies[i], sum = make_float4(0, 0, 0, 0);
  for (int j = 0; j < n; j++) {
    float4 other = bodies[j];
    float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    float force = other.w * inverse * inverse * inverse;
    sum.x += force * dx, sum.y += force * dy, sum.z += force * dz;
  }
  out[i] = sum;
}

__global__ void add_one(int *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    data[i]++;
}

__global__ void meet(int *count, int *out) {
  atomicAdd(count, 1);
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0)
    out[blockIdx.x] = *(volatile int *)count;
}

static int calls;

int main() {
  const int n = 5000;
  int *data, *out;
  CHECK(hipMallocManaged(&data, n * sizeof(int)));
  CHECK(hipMallocManaged(&out, sizeof(int)));
  for (int i = 0; i < n; i++)
    data[i] = i;
  *out = 0;
  reduce<<<(n + 127) / 128, 128, 128 * sizeof(int)>>>(data, out, n);
  CHECK(hipDeviceSynchronize());
  printf("reduce %d\n", *out);

  int three = 7, four = 6;
  CHECK(hipMemcpyToSymbol(HIP_SYMBOL(scale), &three, sizeof(int)));
  CHECK(hipMemcpyToSymbol(HIP_SYMBOL(offset), &four, sizeof(int)));
  managed = 8;
  variables<<<1, 1>>>(out);
  CHECK(hipMemcpyFromSymbol(&three, HIP_SYMBOL(scale), sizeof(int)));
  printf("variables %d %d %d\n", *out, three, managed);

  unsigned char *bytes;
  unsigned *bins;
  unsigned long long *sum;
  float *most;
  CHECK(hipMallocManaged(&bytes, n));
  CHECK(hipMallocManaged(&bins, 16 * sizeof(unsigned)));
  CHECK(hipMallocManaged(&sum, sizeof(*sum)));
  CHECK(hipMallocManaged(&most, sizeof(float)));
  CHECK(hipMemset(bins, 0, 16 * sizeof(unsigned)));
  for (int i = 0; i < n; i++)
    bytes[i] = i % 251;
  histogram<<<(n + 255) / 256, 256>>>(bytes, bins, sum, most, n);
  CHECK(hipDeviceSynchronize());
  printf("atomics %u %u %llu %g\n", bins[0], bins[15], *sum, *most);

  talk<<<2, 64>>>();
  CHECK(hipDeviceSynchronize());

  for (int round = 0; round < 2; round++)
    lists<<<4, 64>>>(data);
  CHECK(hipDeviceSynchronize());
  int differ = 0;
  for (int i = 0; i < 256; i++) {
    int id = i % 64, count = id % 5;
    differ += data[i] != count * id + count * (count - 1) / 2;
  }
  printf("lists: %d wrong\n", differ);

  hipStream_t first, second;
  hipEvent_t start, stop;
  CHECK(hipStreamCreate(&first));
  CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
  CHECK(hipEventCreate(&start));
  CHECK(hipEventCreate(&stop));
  int *pinned, *device;
  CHECK(hipHostMalloc((void **)&pinned, n * sizeof(int), 0));
  CHECK(hipMalloc(&device, n * sizeof(int)));
  for (int i = 0; i < n; i++)
    pinned[i] = i;
  CHECK(hipEventRecord(start, first));
  CHECK(hipMemcpyAsync(device, pinned, n * sizeof(int), hipMemcpyHostToDevice, first));
  for (int k = 0; k < 5; k++)
    add_one<<<(n + 255) / 256, 256, 0, first>>>(device, n);
  CHECK(hipEventRecord(stop, first));
  CHECK(hipStreamWaitEvent(second, stop, 0));
  add_one<<<(n + 255) / 256, 256, 0, second>>>(device, n);
  CHECK(hipMemcpyAsync(pinned, device, n * sizeof(int), hipMemcpyDeviceToHost, second));
  CHECK(hipStreamSynchronize(second));
  float milliseconds = -1;
  CHECK(hipEventElapsedTime(&milliseconds, start, stop));
  printf("streams %d %d %s\n", pinned[0], pinned[n - 1], milliseconds > 0 ? "time" : "no time");

  hipGraph_t graph;
  hipGraphExec_t run;
  CHECK(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
  add_one<<<(n + 255) / 256, 256, 0, first>>>(device, n);
  CHECK(hipLaunchHostFunc(first, [](void *count) { ++*(int *)count; }, &calls));
  CHECK(hipMemcpyAsync(pinned, device, n * sizeof(int), hipMemcpyDeviceToHost, first));
  CHECK(hipStreamEndCapture(first, &graph));
  CHECK(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
  for (int k = 0; k < 3; k++)
    CHECK(hipGraphLaunch(run, first));
  CHECK(hipStreamSynchronize(first));
  printf("graph %d %d\n", pinned[0], calls);

  *out = 0;
  void *arguments[] = {&out, &data};
  CHECK(hipLaunchCooperativeKernel((void *)meet, dim3(8), dim3(64), arguments, 0, 0));
  CHECK(hipDeviceSynchronize());
  printf("grid %d %d\n", data[0], data[7]);

  const int m = 64;
  std::vector<float> a(m * m), b(m * m), c(m * m);
  for (int i = 0; i < m * m; i++)
    a[i] = i % 7, b[i] = i % 5;
  float *da, *db, *dc;
  CHECK(hipMalloc(&da, m * m * sizeof(float)));
  CHECK(hipMalloc(&db, m * m * sizeof(float)));
  CHECK(hipMalloc(&dc, m * m * sizeof(float)));
  CHECK(hipMemcpy(da, a.data(), m * m * sizeof(float), hipMemcpyHostToDevice));
  CHECK(hipMemcpy(db, b.data(), m * m * sizeof(float), hipMemcpyHostToDevice));
  product<<<dim3(m / 16, m / 16), dim3(16, 16)>>>(da, db, dc, m);
  CHECK(hipMemcpy(c.data(), dc, m * m * sizeof(float), hipMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++) {
      float expected = 0;
      for (int k = 0; k < m; k++)
        expected += a[i * m + k] * b[k * m + j];
      wrong += c[i * m + j] != expected;
    }
  printf("product: %d wrong\n", wrong);

  float4 *bodies, *forces;
  CHECK(hipMallocManaged(&bodies, 128 * sizeof(float4)));
  CHECK(hipMallocManaged(&forces, 128 * sizeof(float4)));
  for (int i = 0; i < 128; i++)
    bodies[i] = make_float4(sinf(i), cosf(i), i / 64.0f, 1);
  accelerate<<<2, 64>>>(bodies, forces, 128);
  CHECK(hipDeviceSynchronize());
  double total = 0;
  for (int i = 0; i < 128; i++)
    total += forces[i].x + forces[i].y + forces[i].z;
  // Actions and reactions.
  printf("bodies: %s\n", fabs(total) < 0.05 ? "balanced" : "unbalanced");
}
