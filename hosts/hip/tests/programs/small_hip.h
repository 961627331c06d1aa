// The subset of HIP's headers that the tests need if the headers are not installed.
#pragma once
#include <cstddef>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))

struct dim3 {
  unsigned x, y, z;
  __host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

enum hipError_t { hipSuccess = 0 };
enum hipMemcpyKind { hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice };
typedef struct ihipStream_t *hipStream_t;
// hipDeviceProp_t of HIP 6: only the name, with padding for the other fields.
struct hipDeviceProp_t {
  char name[256];
  char rest[1216];
};

extern "C" {
hipError_t hipMalloc(void **, size_t);
hipError_t hipFree(void *);
hipError_t hipMemcpy(void *, const void *, size_t, hipMemcpyKind);
hipError_t hipIpcCloseMemHandle(void *);
hipError_t hipDeviceSynchronize();
hipError_t hipDeviceReset();
hipError_t hipStreamSynchronize(hipStream_t);
hipError_t hipGetLastError();
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *, int);
const char *hipGetErrorString(hipError_t);
const char *hipGetErrorName(hipError_t);
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, size_t, hipStream_t);
hipError_t __hipPushCallConfiguration(dim3, dim3, size_t = 0, hipStream_t = nullptr);
hipError_t __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, hipStream_t *);
}
#define hipGetDeviceProperties hipGetDevicePropertiesR0600
template <class T> hipError_t hipMalloc(T **pointer, size_t size) { return hipMalloc((void **)pointer, size); }

#define DIMENSION(name, f)                                                                         \
  struct name##_t {                                                                                \
    __declspec(property(get = get)) unsigned x;                                                    \
    __device__ unsigned get() const { return f; }                                                  \
  };                                                                                               \
  extern const __device__ __attribute__((weak)) name##_t name;
DIMENSION(threadIdx, __builtin_amdgcn_workitem_id_x())
DIMENSION(blockIdx, __builtin_amdgcn_workgroup_id_x())
DIMENSION(blockDim, __builtin_amdgcn_workgroup_size_x())
#undef DIMENSION
