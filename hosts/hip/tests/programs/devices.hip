// Several devices: allocations, peers, copies, streams and events, variables. Prints what each step did.
#include <cstdio>

extern "C" {
hipError_t hipGetDeviceCount(int *);
hipError_t hipSetDevice(int);
hipError_t hipGetDevice(int *);
hipError_t hipDeviceCanAccessPeer(int *, int, int);
hipError_t hipDeviceEnablePeerAccess(int, unsigned);
hipError_t hipDeviceDisablePeerAccess(int);
hipError_t hipMemcpyPeer(void *, int, const void *, int, size_t);
hipError_t hipMemcpyPeerAsync(void *, int, const void *, int, size_t, hipStream_t);
hipError_t hipHostMalloc(void **, size_t, unsigned);
hipError_t hipStreamCreate(hipStream_t *);
hipError_t hipStreamGetDevice(hipStream_t, int *);
hipError_t hipStreamWaitEvent(hipStream_t, struct ihipEvent_t *, unsigned);
hipError_t hipEventCreate(struct ihipEvent_t **);
hipError_t hipEventRecord(struct ihipEvent_t *, hipStream_t);
hipError_t hipMemcpyToSymbol(const void *, const void *, size_t, size_t, hipMemcpyKind);
hipError_t hipDeviceGetPCIBusId(char *, int, int);
}

__device__ int factor = 1;

__global__ void scale(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x] * factor; }

static const char *name(hipError_t status) { return hipGetErrorName(status); }

// A box of a copy between devices, as in ROCm 7.1's headers.
struct Box { size_t x, y, z; };
struct Pitched { void *pointer; size_t pitch, width, height; };
struct Boxes {
  void *fromArray; Box fromPosition; Pitched from; int fromDevice;
  void *toArray; Box toPosition; Pitched to; int toDevice;
  Box extent;
};
extern "C" hipError_t hipMemset(void *, int, size_t);
extern "C" hipError_t hipMemcpy3DPeer(const Boxes *);
extern "C" hipError_t hipMemcpy3DPeerAsync(const Boxes *, hipStream_t);

int main() {
  int count = 0, current = -1, can = -1;
  hipGetDeviceCount(&count);
  hipGetDevice(&current);
  hipDeviceCanAccessPeer(&can, 0, 1);
  char bus[16];
  hipDeviceGetPCIBusId(bus, sizeof bus, 1);
  printf("%d devices, current %d, peers %d, device 1 at %s\n", count, current, can, bus);
  printf("no device 7: %s\n", name(hipSetDevice(7)));

  int numbers[64], back[64];
  for (int k = 0; k < 64; k++) numbers[k] = k;
  int *memory[2];
  hipStream_t streams[2];
  for (int device = 0; device < 2; device++) {
    hipSetDevice(device);
    hipMalloc(&memory[device], sizeof numbers);
    hipStreamCreate(&streams[device]);
    int value = device + 2;
    hipMemcpyToSymbol(&factor, &value, sizeof value, 0, hipMemcpyHostToDevice);
  }
  // Each device has its own variable; the stream decides which device runs the kernel.
  hipMemcpy(memory[0], numbers, sizeof numbers, hipMemcpyHostToDevice);
  scale<<<1, 64, 0, streams[0]>>>(memory[0], memory[0]);
  hipStreamSynchronize(streams[0]);
  hipMemcpyPeer(memory[1], 1, memory[0], 0, sizeof numbers);
  scale<<<1, 64, 0, streams[1]>>>(memory[1], memory[1]);
  hipStreamSynchronize(streams[1]);
  hipMemcpy(back, memory[1], sizeof back, hipMemcpyDeviceToHost);
  printf("times 2 and 3: %d\n", back[10]);

  // Host memory belongs to all devices; a stream waits for an event of another device.
  int *host;
  hipHostMalloc((void **)&host, sizeof numbers, 0);
  struct ihipEvent_t *event;
  hipSetDevice(0);
  hipEventCreate(&event);
  scale<<<1, 64, 0, streams[0]>>>(host, memory[0]);
  printf("an event of another device: %s\n", name(hipEventRecord(event, streams[1])));
  hipEventRecord(event, streams[0]);
  hipStreamWaitEvent(streams[1], event, 0);
  scale<<<1, 64, 0, streams[1]>>>(host, host);
  int of = -1;
  hipStreamGetDevice(streams[1], &of);
  hipStreamSynchronize(streams[1]);
  printf("in turn on host memory: %d, the second stream is of device %d\n", host[10], of);

  printf("enable: %s, again: %s\n", name(hipDeviceEnablePeerAccess(1, 0)), name(hipDeviceEnablePeerAccess(1, 0)));
  scale<<<1, 64, 0, streams[0]>>>(memory[0], memory[1]);
  printf("from the peer: %s\n", name(hipStreamSynchronize(streams[0])));
  hipMemcpy(back, memory[0], sizeof back, hipMemcpyDeviceToHost);
  printf("times 2: %d\n", back[10]);
  printf("disable: %s\n", name(hipDeviceDisablePeerAccess(1)));
  scale<<<1, 64, 0, streams[0]>>>(memory[0], memory[1]);
  printf("without access: %s\n", name(hipStreamSynchronize(streams[0])));
  // The other device goes on.
  hipSetDevice(1);
  scale<<<1, 64, 0, streams[1]>>>(memory[1], memory[1]);
  printf("on device 1: %s\n", name(hipDeviceSynchronize()));
  // 2 x 2 x 2 numbers of 4 x 4 x 4, from the far corner to the near one.
  hipMemcpy(memory[0], numbers, sizeof numbers, hipMemcpyHostToDevice);
  hipMemset(memory[1], 0, sizeof numbers);
  Boxes boxes = {0, {8, 2, 2}, {memory[0], 16, 16, 4}, 0, 0, {0, 0, 0}, {memory[1], 16, 16, 4}, 1, {8, 2, 2}};
  printf("box: %s,", name(hipMemcpy3DPeer(&boxes)));
  boxes.toPosition = {8, 0, 0};
  printf(" %s,", name(hipMemcpy3DPeerAsync(&boxes, streams[1])));
  hipStreamSynchronize(streams[1]);
  hipMemcpy(back, memory[1], sizeof back, hipMemcpyDeviceToHost);
  for (int k = 0; k < 24; k++) printf(" %d", back[k]);
  boxes.toDevice = 7;
  printf(", to device 7: %s\n", name(hipMemcpy3DPeer(&boxes)));
  printf("free: %s %s\n", name(hipFree(memory[0])), name(hipFree(memory[1])));
}
