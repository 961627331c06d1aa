// Looks up functions by name with hipGetProcAddress.
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#endif
#include <cstdio>
#include <dlfcn.h>

__global__ void nothing() {}

typedef int (*Lookup)(const char *, void **, int, unsigned long, int *);

int main() {
  auto lookup = (Lookup)dlsym(RTLD_DEFAULT, "hipGetProcAddress");
  void *function = nullptr, *other = nullptr;
  int found = -1, count = 0;
  int status = lookup("hipGetDeviceCount", &function, 600, 0, &found);
  if (function) ((int (*)(int *))function)(&count);
  printf("hipGetDeviceCount: %d %d, %d device\n", status, found, count);
  status = lookup("hipNothing", &function, 600, 0, &found);
  printf("hipNothing: %d %d, %s\n", status, found, function ? "something" : "nothing");
  printf("flags: %d\n", lookup("hipMalloc", &function, 600, 3, &found));
  lookup("hipGetDeviceProperties", &function, 600, 0, &found);
  lookup("hipGetDeviceProperties", &other, 507, 0, &found);
  printf("properties: %s function before 6.0\n", function && other && function != other ? "another" : "the same");
  lookup("hipMemcpy", &function, 600, 0, &found);
  lookup("hipMemcpy", &other, 600, 2, &found);
  printf("stream of the thread: %s function\n", function && other && function != other ? "another" : "the same");
  return 0;
}
