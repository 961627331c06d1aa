// Arrays, textures and surfaces. Each line of output checks one feature.
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call) check((call), #call)
static void check(hipError_t status, const char *what) {
  if (status != hipSuccess) printf("%s: %s\n", what, hipGetErrorName(status)), exit(1);
}

__global__ void fetch(hipTextureObject_t t, float4 *out) { out[threadIdx.x] = tex1Dfetch<float4>(t, threadIdx.x); }
__global__ void one(hipTextureObject_t t, float *out) { out[threadIdx.x] = tex1D<float>(t, threadIdx.x + 0.5f); }
__global__ void two(hipTextureObject_t t, float *out, int w, float dx) {
  out[threadIdx.y * blockDim.x + threadIdx.x] = tex2D<float>(t, (threadIdx.x + dx) / w, (threadIdx.y + 0.5f) / blockDim.y);
}
__global__ void ints(hipTextureObject_t t, int *out) {
  short2 v = tex2D<short2>(t, threadIdx.x, threadIdx.y);
  out[threadIdx.y * blockDim.x + threadIdx.x] = v.x * 1000 + v.y;
}
__global__ void three(hipTextureObject_t t, float *out) {
  out[(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x] =
      tex3D<float>(t, threadIdx.x + 0.5f, threadIdx.y + 0.5f, threadIdx.z + 0.5f);
}
__global__ void layered(hipTextureObject_t t, hipTextureObject_t t1, float *out) {
  out[threadIdx.z * 4 + threadIdx.x] = tex2DLayered<float>(t, threadIdx.x + 0.5f, 1.5f, threadIdx.z);
  out[8 + threadIdx.z * 4 + threadIdx.x] = tex1DLayered<float>(t1, threadIdx.x + 0.5f, threadIdx.z);
}
__global__ void levels(hipTextureObject_t t, float *out) { out[threadIdx.x] = tex2DLod<float>(t, 0.5f, 0.5f, threadIdx.x * 0.5f); }
// A direction of each face, and the opposite corner of the first one. The device libraries divide by the signed axis, so
// that faces 1, 3 and 5 are turned by half a turn.
__device__ const float directions[7][3] = {{1, .5, .5}, {1, -.5, -.5}, {-1, .5, .5}, {.5, 1, .5}, {.5, -1, .5}, {.5, .5, 1}, {.5, .5, -1}};
__global__ void cubes(hipTextureObject_t t, hipTextureObject_t of_layers, float *out) {
  const float *d = directions[threadIdx.x];
  out[threadIdx.x] = texCubemap<float>(t, d[0], d[1], d[2]);
  out[7 + threadIdx.x] = texCubemapLayered<float>(of_layers, d[0], d[1], d[2], 1);
}
__global__ void layer(hipTextureObject_t t, float *out) { out[threadIdx.x] = tex2DLayered<float>(t, threadIdx.x + 0.5f, 1.5f, 0); }
__global__ void surface(hipSurfaceObject_t s) {
  uchar4 v;
  surf2Dread(&v, s, threadIdx.x * 4, threadIdx.y);
  v.x += 1, v.w = 100 + threadIdx.y;
  surf2Dwrite(v, s, threadIdx.x * 4, threadIdx.y);
}

// References: variables of the program.
texture<float, hipTextureType2D, hipReadModeElementType> plane;
texture<unsigned char, hipTextureType1D, hipReadModeNormalizedFloat> line;
__global__ void by_reference(float *out) {
  out[threadIdx.y * blockDim.x + threadIdx.x] = tex2D(plane, threadIdx.x + 0.75f, threadIdx.y + 0.5f);
}
__global__ void of_line(float *out) { out[threadIdx.x] = tex1Dfetch(line, threadIdx.x); }

// Derivatives of seven texels to the right and one down, in an image of 16 by 2.
__global__ void wide(hipTextureObject_t t, float *out) {
  out[threadIdx.x] = tex2DGrad<float>(t, 0.5f, 0.5f, make_float2(7.0f / 16, 0), make_float2(0, 0.5f));
}
static hipTextureObject_t textured(hipResourceDesc resource, bool linear, bool normalized, hipTextureReadMode mode,
                                  hipTextureAddressMode address = hipAddressModeClamp, hipResourceViewDesc *view = nullptr) {
  hipTextureDesc settings = {};
  for (auto &a : settings.addressMode) a = address;
  settings.filterMode = linear ? hipFilterModeLinear : hipFilterModePoint;
  settings.readMode = mode;
  settings.normalizedCoords = normalized;
  settings.mipmapFilterMode = hipFilterModeLinear;
  settings.maxMipmapLevelClamp = 8;
  hipTextureObject_t object;
  CHECK(hipCreateTextureObject(&object, &resource, &settings, view));
  return object;
}
static hipResourceDesc of(hipArray_t array) {
  hipResourceDesc resource = {};
  resource.resType = hipResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}
template <class T> static void print(const char *name, T *device, int count) {
  std::vector<T> host(count);
  CHECK(hipMemcpy(host.data(), device, count * sizeof(T), hipMemcpyDeviceToHost));
  printf("%s", name);
  for (T x : host) printf(" %g", (double)x);
  printf("\n");
}

// A texel of 8 among zeros, between whose middle and the next one the place of the sample is.
static void anisotropy(float *out) {
  float texels[32] = {};
  texels[8] = texels[24] = 8;
  hipArray_t array;
  hipChannelFormatDesc floats = hipCreateChannelDesc<float>();
  CHECK(hipMallocArray(&array, &floats, 16, 2));
  CHECK(hipMemcpy2DToArray(array, 0, 0, texels, 64, 64, 2, hipMemcpyHostToDevice));
  for (unsigned most : {0, 8}) {
    hipResourceDesc resource = of(array);
    hipTextureDesc settings = {};
    settings.filterMode = hipFilterModeLinear, settings.normalizedCoords = 1, settings.maxAnisotropy = most;
    hipTextureObject_t object;
    CHECK(hipCreateTextureObject(&object, &resource, &settings, nullptr));
    wide<<<1, 1>>>(object, out);
    print(most ? "wide" : "narrow", out, 1);
    CHECK(hipDestroyTextureObject(object));
  }
  CHECK(hipFreeArray(array));
}

int main() {
  float *out;
  CHECK(hipMalloc(&out, 4096));
  float ramp[64];
  for (int i = 0; i < 64; i++) ramp[i] = i;

  // Memory.
  unsigned char bytes[16] = {0, 51, 102, 255, 255, 0, 0, 0, 51, 51, 51, 51, 1, 2, 3, 4}, *linear;
  CHECK(hipMalloc(&linear, 16));
  CHECK(hipMemcpy(linear, bytes, 16, hipMemcpyHostToDevice));
  hipResourceDesc resource = {};
  resource.resType = hipResourceTypeLinear;
  resource.res.linear.devPtr = linear;
  resource.res.linear.desc = hipCreateChannelDesc<uchar4>();
  resource.res.linear.sizeInBytes = 16;
  hipTextureObject_t t = textured(resource, false, false, hipReadModeNormalizedFloat);
  fetch<<<1, 3>>>(t, (float4 *)out);
  print("fetch", out, 12);
  CHECK(hipDestroyTextureObject(t));
  float *rows;
  size_t pitch;
  CHECK(hipMallocPitch(&rows, &pitch, 16, 2));
  CHECK(hipMemcpy2D(rows, pitch, ramp, 16, 16, 2, hipMemcpyHostToDevice));
  resource = {};
  resource.resType = hipResourceTypePitch2D;
  resource.res.pitch2D.devPtr = rows;
  resource.res.pitch2D.desc = hipCreateChannelDesc<float>();
  resource.res.pitch2D.width = 4, resource.res.pitch2D.height = 2, resource.res.pitch2D.pitchInBytes = pitch;
  two<<<1, dim3(4, 2)>>>(textured(resource, true, true, hipReadModeElementType), out, 4, 0.75f);
  print("pitched", out, 8);

  // Arrays of one to three dimensions.
  hipArray_t array;
  hipChannelFormatDesc floats = hipCreateChannelDesc<float>();
  CHECK(hipMallocArray(&array, &floats, 6));
  CHECK(hipMemcpyToArray(array, 0, 0, ramp, 24, hipMemcpyHostToDevice));
  one<<<1, 8>>>(textured(of(array), false, false, hipReadModeElementType), out);
  print("one", out, 8);
  CHECK(hipFreeArray(array));
  CHECK(hipMallocArray(&array, &floats, 4, 2));
  CHECK(hipMemcpy2DToArray(array, 0, 0, ramp, 16, 16, 2, hipMemcpyHostToDevice));
  two<<<1, dim3(4, 2)>>>(textured(of(array), true, true, hipReadModeElementType, hipAddressModeWrap), out, 4, 0.25f);
  print("two", out, 8);
  anisotropy(out);
  float part[2] = {0, 0};
  CHECK(hipMemcpy2DFromArray(part, 8, array, 4, 1, 8, 1, hipMemcpyDeviceToHost));
  printf("part %g %g\n", part[0], part[1]);
  CHECK(hipFreeArray(array));
  hipChannelFormatDesc shorts = hipCreateChannelDesc<short2>();
  short pairs[8] = {1, -2, 3, -4, 5, 6, -7, 8};
  CHECK(hipMallocArray(&array, &shorts, 2, 2));
  CHECK(hipMemcpy2DToArray(array, 0, 0, pairs, 8, 8, 2, hipMemcpyHostToDevice));
  ints<<<1, dim3(2, 2)>>>(textured(of(array), false, false, hipReadModeElementType), (int *)out);
  print("ints", (int *)out, 4);
  CHECK(hipMalloc3DArray(&array, &floats, make_hipExtent(3, 2, 2), hipArrayDefault));
  hipMemcpy3DParms copy = {};
  copy.srcPtr = make_hipPitchedPtr(ramp, 12, 3, 2);
  copy.dstArray = array;
  copy.extent = make_hipExtent(3, 2, 2);
  copy.kind = hipMemcpyHostToDevice;
  CHECK(hipMemcpy3D(&copy));
  three<<<1, dim3(3, 2, 2)>>>(textured(of(array), false, false, hipReadModeElementType), out);
  print("three", out, 12);

  // Layers, levels of detail.
  hipArray_t flat;
  CHECK(hipMalloc3DArray(&array, &floats, make_hipExtent(4, 2, 2), hipArrayLayered));
  CHECK(hipMalloc3DArray(&flat, &floats, make_hipExtent(4, 0, 2), hipArrayLayered));
  copy.srcPtr = make_hipPitchedPtr(ramp, 16, 4, 2);
  copy.dstArray = array;
  copy.extent = make_hipExtent(4, 2, 2);
  CHECK(hipMemcpy3D(&copy));
  copy.srcPtr = make_hipPitchedPtr(ramp + 20, 16, 4, 1);
  copy.dstArray = flat;
  copy.extent = make_hipExtent(4, 0, 2);
  hipError_t status = hipMemcpy3D(&copy);
  if (status != hipSuccess) printf("flat %s\n", hipGetErrorName(status));
  layered<<<1, dim3(4, 1, 2)>>>(textured(of(array), false, false, hipReadModeElementType),
                               textured(of(flat), false, false, hipReadModeElementType), out);
  print("layered", out, 16);
  hipResourceViewDesc view = {};
  view.format = hipResViewFormatFloat1;
  view.width = 4, view.height = 2, view.firstLayer = view.lastLayer = 1;
  layer<<<1, 4>>>(textured(of(array), false, false, hipReadModeElementType, hipAddressModeClamp, &view), out);
  print("layer", out, 4);
  hipMipmappedArray_t mipmapped;
  CHECK(hipMallocMipmappedArray(&mipmapped, &floats, make_hipExtent(4, 4, 0), 3, 0));
  for (int level = 0; level < 3; level++) {
    hipArray_t own;
    float values[16];
    for (float &v : values) v = 10 * (level + 1);
    CHECK(hipGetMipmappedArrayLevel(&own, mipmapped, level));
    CHECK(hipMemcpy2DToArray(own, 0, 0, values, 16 >> level, 16 >> level, 4 >> level, hipMemcpyHostToDevice));
  }
  resource = {};
  resource.resType = hipResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmapped;
  levels<<<1, 5>>>(textured(resource, true, true, hipReadModeElementType), out);
  print("levels", out, 5);
  view = {};
  view.firstMipmapLevel = 1, view.lastMipmapLevel = 2;
  levels<<<1, 5>>>(textured(resource, true, true, hipReadModeElementType, hipAddressModeClamp, &view), out);
  print("smaller", out, 5);

  // Cubes.
  hipArray_t six, twelve;
  CHECK(hipMalloc3DArray(&six, &floats, make_hipExtent(2, 2, 6), hipArrayCubemap));
  CHECK(hipMalloc3DArray(&twelve, &floats, make_hipExtent(2, 2, 12), hipArrayCubemap | hipArrayLayered));
  copy.srcPtr = make_hipPitchedPtr(ramp, 8, 2, 2);
  copy.dstArray = six;
  copy.extent = make_hipExtent(2, 2, 6);
  CHECK(hipMemcpy3D(&copy));
  copy.dstArray = twelve;
  copy.extent = make_hipExtent(2, 2, 12);
  CHECK(hipMemcpy3D(&copy));
  cubes<<<1, 7>>>(textured(of(six), false, true, hipReadModeElementType),
                  textured(of(twelve), false, true, hipReadModeElementType), out);
  print("cubes", out, 14);

  // Surfaces.
  hipChannelFormatDesc pixels = hipCreateChannelDesc<uchar4>();
  CHECK(hipMallocArray(&array, &pixels, 2, 2, hipArraySurfaceLoadStore));
  CHECK(hipMemcpy2DToArray(array, 0, 0, bytes, 8, 8, 2, hipMemcpyHostToDevice));
  resource = of(array);
  hipSurfaceObject_t writable;
  CHECK(hipCreateSurfaceObject(&writable, &resource));
  surface<<<1, dim3(2, 2)>>>(writable);
  CHECK(hipMemcpy2DFromArray(bytes, 8, array, 0, 0, 8, 2, hipMemcpyDeviceToHost));
  printf("surface");
  for (unsigned char b : bytes) printf(" %d", b);
  printf("\n");
  CHECK(hipDestroySurfaceObject(writable));

  // References, which are bound to an array and to memory.
  hipArray_t plain;
  CHECK(hipMallocArray(&plain, &floats, 4, 2));
  CHECK(hipMemcpy2DToArray(plain, 0, 0, ramp, 16, 16, 2, hipMemcpyHostToDevice));
  CHECK(hipBindTextureToArray(plane, plain));
  by_reference<<<1, dim3(4, 2)>>>(out);
  print("nearest", out, 8);
  plane.filterMode = hipFilterModeLinear;
  CHECK(hipBindTextureToArray(plane, plain));
  by_reference<<<1, dim3(4, 2)>>>(out);
  print("filtered", out, 8);
  CHECK(hipTexRefSetFilterMode(&plane, hipFilterModePoint));
  by_reference<<<1, dim3(4, 2)>>>(out);
  print("changed", out, 8);
  size_t offset = 1;
  CHECK(hipBindTexture2D(&offset, plane, rows, 4, 2, pitch));
  by_reference<<<1, dim3(4, 2)>>>(out);
  print("rows", out, 8);
  CHECK(hipBindTexture(&offset, line, linear, 4));
  of_line<<<1, 5>>>(out);
  print("line", out, 5);
  hipDeviceptr_t address;
  CHECK(hipTexRefGetAddress(&address, &line));
  const textureReference *found;
  CHECK(hipGetTextureReference(&found, &line));
  printf("bound %d %d %zu %s\n", address == linear, found == &line, offset,
         hipGetErrorName(hipTexRefGetArray(&plain, &line)));
  CHECK(hipUnbindTexture(line));
  printf("unbound %s\n", hipGetErrorName(hipTexRefGetAddress(&address, &line)));

  // The reference of a module, which has the structure of the header; and an object of the driver API.
  const char *source = "struct Reference { char bytes[72]; unsigned long object; int format[2]; };"
                       "__device__ Reference own;"
                       "extern \"C\" __global__ void look(unsigned long *out) { *out = own.object; }";
  static_assert(offsetof(textureReference, textureObject) == 72 && sizeof(textureReference) == 88);
  hiprtcProgram program;
  size_t bytes_of_code;
  if (hiprtcCreateProgram(&program, source, "own.hip", 0, nullptr, nullptr) != HIPRTC_SUCCESS ||
      hiprtcCompileProgram(program, 0, nullptr) != HIPRTC_SUCCESS ||
      hiprtcGetCodeSize(program, &bytes_of_code) != HIPRTC_SUCCESS) {
    char log[4096] = "";
    hiprtcGetProgramLog(program, log);
    printf("hiprtc: %s\n", log);
    return 1;
  }
  std::vector<char> code(bytes_of_code);
  hiprtcGetCode(program, code.data());
  hipModule_t module;
  hipFunction_t look;
  textureReference *own;
  CHECK(hipModuleLoadData(&module, code.data()));
  CHECK(hipModuleGetFunction(&look, module, "look"));
  CHECK(hipModuleGetTexRef(&own, module, "own"));
  CHECK(hipTexRefSetFormat(own, HIP_AD_FORMAT_UNSIGNED_INT8, 4));
  CHECK(hipTexRefSetFlags(own, 0));
  CHECK(hipTexRefSetAddress(&offset, own, (hipDeviceptr_t)linear, 16));
  void *arguments[] = {&out};
  CHECK(hipModuleLaunchKernel(look, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  unsigned long handle;
  CHECK(hipMemcpy(&handle, out, 8, hipMemcpyDeviceToHost));
  printf("own %d\n", handle == (unsigned long)own->textureObject);
  fetch<<<1, 3>>>(own->textureObject, (float4 *)out);
  print("fetch", out, 12);
  HIP_RESOURCE_DESC of_driver = {};
  of_driver.resType = HIP_RESOURCE_TYPE_LINEAR;
  of_driver.res.linear = {linear, HIP_AD_FORMAT_UNSIGNED_INT8, 4, 16};
  HIP_TEXTURE_DESC settings_of_driver = {}, returned;
  settings_of_driver.flags = HIP_TRSF_NORMALIZED_COORDINATES;
  CHECK(hipTexObjectCreate(&t, &of_driver, &settings_of_driver, nullptr));
  CHECK(hipTexObjectGetTextureDesc(&returned, t));
  fetch<<<1, 3>>>(t, (float4 *)out);
  print("fetch", out, 12);
  printf("flags %u\n", returned.flags);
  CHECK(hipTexObjectDestroy(t));

  // Queries, invalid uses.
  hipExtent extent;
  unsigned flags;
  hipChannelFormatDesc format;
  CHECK(hipArrayGetInfo(&format, &extent, &flags, array));
  printf("info %d %d %zu %zu %u\n", format.x, format.f, extent.width, extent.height, flags);
  CHECK(hipFreeArray(array));
  printf("freed %s\n", hipGetErrorName(hipFreeArray(array)));
  CHECK(hipMallocArray(&array, &pixels, 2, 2));
  printf("beyond %s\n", hipGetErrorName(hipMemcpy2DToArray(array, 4, 0, bytes, 8, 8, 2, hipMemcpyHostToDevice)));
  hipTextureDesc settings = {};
  settings.filterMode = hipFilterModeLinear;
  resource = of(array);
  printf("linear %s\n", hipGetErrorName(hipCreateTextureObject(&t, &resource, &settings, nullptr)));
  format = {8, 8, 8, 0, hipChannelFormatKindUnsigned};
  printf("channels %s\n", hipGetErrorName(hipMallocArray(&array, &format, 2, 2)));
}
