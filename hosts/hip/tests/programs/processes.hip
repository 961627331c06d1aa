// Two processes share memory and an event: the parent scales what the child has written, and the child waits for it.
#include <cstdio>
#include <unistd.h>

struct Handle {
  char bytes[64];
};
extern "C" {
hipError_t hipIpcGetMemHandle(Handle *, void *);
hipError_t hipIpcOpenMemHandle(void **, Handle, unsigned);
hipError_t hipIpcCloseMemHandle(void *);
hipError_t hipIpcGetEventHandle(Handle *, struct ihipEvent_t *);
hipError_t hipIpcOpenEventHandle(struct ihipEvent_t **, Handle);
hipError_t hipEventCreateWithFlags(struct ihipEvent_t **, unsigned);
hipError_t hipEventRecord(struct ihipEvent_t *, hipStream_t);
hipError_t hipStreamWaitEvent(hipStream_t, struct ihipEvent_t *, unsigned);
}

__global__ void scale(int *numbers, int factor) { numbers[threadIdx.x] *= factor; }

static const char *name(hipError_t status) { return hipGetErrorName(status); }

int main() {
  int down[2], up[2], numbers[64], back[64];
  pipe(down);
  pipe(up);
  char word;
  Handle handles[2];
  if (fork() == 0) {
    read(down[0], handles, sizeof handles);
    int *memory;
    struct ihipEvent_t *event;
    hipError_t opened = hipIpcOpenMemHandle((void **)&memory, handles[0], 1);
    printf("child: %s %s\n", name(opened), name(hipIpcOpenEventHandle(&event, handles[1])));
    scale<<<1, 64>>>(memory, 3);
    hipDeviceSynchronize();
    write(up[1], "1", 1);
    read(down[0], &word, 1);
    // The parent has recorded its event.
    hipStreamWaitEvent(nullptr, event, 0);
    scale<<<1, 64>>>(memory, 7);
    hipMemcpy(back, memory, sizeof back, hipMemcpyDeviceToHost);
    printf("child: %d\n", back[10]);
    printf("child: %s, again %s\n", name(hipIpcCloseMemHandle(memory)), name(hipIpcCloseMemHandle(memory)));
    fflush(stdout);
    write(up[1], "2", 1);
    _exit(0);
  }
  for (int k = 0; k < 64; k++) numbers[k] = k;
  int *memory, *own;
  struct ihipEvent_t *event, *local;
  hipMalloc(&memory, sizeof numbers);
  hipMemcpy(memory, numbers, sizeof numbers, hipMemcpyHostToDevice);
  hipEventCreateWithFlags(&event, 4 | 2);
  hipEventCreateWithFlags(&local, 0);
  hipError_t exported = hipIpcGetMemHandle(&handles[0], memory);
  printf("parent: %s %s\n", name(exported), name(hipIpcGetEventHandle(&handles[1], event)));
  Handle other;
  printf("parent: a local event: %s\n", name(hipIpcGetEventHandle(&other, local)));
  printf("parent: its own handle: %s\n", name(hipIpcOpenMemHandle((void **)&own, handles[0], 1)));
  fflush(stdout);
  write(down[1], handles, sizeof handles);
  read(up[0], &word, 1);
  scale<<<1, 64>>>(memory, 5);
  hipEventRecord(event, nullptr);
  write(down[1], "1", 1);
  read(up[0], &word, 1);
  hipMemcpy(back, memory, sizeof back, hipMemcpyDeviceToHost);
  printf("parent: %d\n", back[10]);
}
