// The image functions of OpenCL C, which libclc does not have for AMD GPUs. An image is the address of a descriptor of
// eight words, which the channel type (8), the channel order (9) and the width (10) follow, as in AMD's runtime; the
// image of a buffer is the address of a buffer descriptor, followed by the same words. A sampler is the address of a
// descriptor of four words.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable
#pragma OPENCL EXTENSION cl_khr_depth_images : enable
typedef __constant uint *__wavesim_words;
#define __WAVESIM_FN inline __attribute__((overloadable, always_inline))
#define __WAVESIM_WORDS(x) __builtin_astype(x, __wavesim_words)
#define __WAVESIM_IMAGE(t) (*(__constant uint8 *)(t))
#define __WAVESIM_SAMPLER(s) (*(__constant uint4 *)(s))

// Instructions.
#define __WAVESIM_OPS(dim, floats, ints) \
  float4 __wavesim_sample_##dim(int, floats, uint8, uint4, bool, int, int) __asm("llvm.amdgcn.image.sample.lz." #dim \
    ".v4f32.f32"); \
  float4 __wavesim_level_##dim(int, floats, float, uint8, uint4, bool, int, int) __asm("llvm.amdgcn.image.sample.l." \
    #dim ".v4f32.f32"); \
  float4 __wavesim_load_##dim(int, ints, uint8, int, int) __asm("llvm.amdgcn.image.load." #dim ".v4f32.i32"); \
  float4 __wavesim_load_mip_##dim(int, ints, int, uint8, int, int) __asm("llvm.amdgcn.image.load.mip." #dim ".v4f32.i32"); \
  void __wavesim_store_##dim(float4, int, ints, uint8, int, int) __asm("llvm.amdgcn.image.store." #dim ".v4f32.i32"); \
  void __wavesim_store_mip_##dim(float4, int, ints, int, uint8, int, int) __asm("llvm.amdgcn.image.store.mip." #dim \
    ".v4f32.i32");
#define __WAVESIM_2(T) T, T
#define __WAVESIM_3(T) T, T, T
#define __WAVESIM_COMMA ,
__WAVESIM_OPS(1d, float, int)
__WAVESIM_OPS(1darray, __WAVESIM_2(float), __WAVESIM_2(int))
__WAVESIM_OPS(2d, __WAVESIM_2(float), __WAVESIM_2(int))
__WAVESIM_OPS(2darray, __WAVESIM_3(float), __WAVESIM_3(int))
__WAVESIM_OPS(3d, __WAVESIM_3(float), __WAVESIM_3(int))
float4 __wavesim_gradient_1d(int, float, float, float, uint8, uint4, bool, int, int)
    __asm("llvm.amdgcn.image.sample.d.1d.v4f32.f32.f32");
float4 __wavesim_gradient_1darray(int, float, float, float, float, uint8, uint4, bool, int, int)
    __asm("llvm.amdgcn.image.sample.d.1darray.v4f32.f32.f32");
float4 __wavesim_gradient_2d(int, float, float, float, float, float, float, uint8, uint4, bool, int, int)
    __asm("llvm.amdgcn.image.sample.d.2d.v4f32.f32.f32");
float4 __wavesim_gradient_2darray(int, float, float, float, float, float, float, float, uint8, uint4, bool, int, int)
    __asm("llvm.amdgcn.image.sample.d.2darray.v4f32.f32.f32");
float4 __wavesim_gradient_3d(int, float, float, float, float, float, float, float, float, float, uint8, uint4, bool,
    int, int) __asm("llvm.amdgcn.image.sample.d.3d.v4f32.f32.f32");
float4 __wavesim_load_buffer(uint4, int, int, int, int) __asm("llvm.amdgcn.struct.buffer.load.format.v4f32");
void __wavesim_store_buffer(float4, uint4, int, int, int, int) __asm("llvm.amdgcn.struct.buffer.store.format.v4f32");

// Sizes and channels, from the descriptor.
__WAVESIM_FN int __wavesim_width(__wavesim_words t) { return t[10]; }
__WAVESIM_FN int __wavesim_height(__wavesim_words t) { return ((t[2] >> 14) & 0x3fff) + 1; }
__WAVESIM_FN int __wavesim_depth(__wavesim_words t) { return (t[4] & 0x1fff) + 1; }
__WAVESIM_FN int __wavesim_levels(__wavesim_words t) { return t[11]; }
// The low bytes of OpenCL's numbers, by those of HSA.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wstatic-in-inline"
static __constant uchar __wavesim_types[16] = {0xd0, 0xd1, 0xd2, 0xd3, 0xdf, 0xd5, 0xd4, 0xd6, 0xd7, 0xd8, 0xd9, 0xda,
    0xdb, 0xdc, 0xdd, 0xde};
static __constant uchar __wavesim_orders[20] = {0xb1, 0xb0, 0xba, 0xb2, 0xbb, 0xb3, 0xb4, 0xbc, 0xb5, 0xb6, 0xb7, 0xc3,
    0xbf, 0xc0, 0xc1, 0xc2, 0xb8, 0xb9, 0xbd, 0xbe};
__WAVESIM_FN int __wavesim_channel_type(__wavesim_words t) { return 0x1000 | __wavesim_types[t[8] & 15]; }
__WAVESIM_FN int __wavesim_channel_order(__wavesim_words t) { return 0x1000 | __wavesim_orders[t[9] < 20 ? t[9] : 0]; }

// The middle of the texel that a nearest sample selects, so that the instruction's rounding of coordinates has no effect.
__WAVESIM_FN float __wavesim_place(float c, int size, __wavesim_words s) {
  float scale = s[0] & 0x8000 ? 1.0f : (float)size;
  return s[2] & 0x100000 ? c : (__builtin_floorf(c * scale) + 0.5f) * __builtin_amdgcn_rcpf(scale);
}

// Samples with the instruction `op`, whose own arguments come first; loads and stores.
#define __WAVESIM_TAIL(t, s) __WAVESIM_IMAGE(t), __WAVESIM_SAMPLER(s), 0, 0, 0
#define __WAVESIM_X(c) __wavesim_place(c, __wavesim_width(t), s)
#define __WAVESIM_XY(c) __wavesim_place(c.x, __wavesim_width(t), s), __wavesim_place(c.y, __wavesim_height(t), s)
#define __WAVESIM_XYZ(c) __WAVESIM_XY(c), __wavesim_place(c.z, __wavesim_depth(t), s)
#define __WAVESIM_XA(c) __wavesim_place(c.x, __wavesim_width(t), s), c.y
#define __WAVESIM_XYA(c) __WAVESIM_XY(c), c.z

#define __WAVESIM_SAMPLES(dim, F, I, place, to_float, G, gradients, ints) \
  __WAVESIM_FN float4 __wavesim_sampled_##dim(__wavesim_words t, __wavesim_words s, F c) { \
    return __wavesim_sample_##dim(15, place(c), __WAVESIM_TAIL(t, s)); \
  } \
  __WAVESIM_FN float4 __wavesim_sampled_##dim(__wavesim_words t, __wavesim_words s, I c) { \
    return __wavesim_sampled_##dim(t, s, to_float(c)); \
  } \
  __WAVESIM_FN float4 __wavesim_leveled_##dim(__wavesim_words t, __wavesim_words s, F c, float level) { \
    return __wavesim_level_##dim(15, __WAVESIM_PLAIN_##dim(c), level, __WAVESIM_TAIL(t, s)); \
  } \
  __WAVESIM_FN float4 __wavesim_graded_##dim(__wavesim_words t, __wavesim_words s, F c, G x, G y) { \
    return __wavesim_gradient_##dim(15, gradients, __WAVESIM_PLAIN_##dim(c), __WAVESIM_TAIL(t, s)); \
  } \
  __WAVESIM_FN float4 __wavesim_loaded_##dim(__wavesim_words t, I c) { \
    return __wavesim_load_##dim(15, ints, __WAVESIM_IMAGE(t), 0, 0); \
  } \
  __WAVESIM_FN void __wavesim_stored_##dim(__wavesim_words t, I c, float4 v) { \
    __wavesim_store_##dim(v, 15, ints, __WAVESIM_IMAGE(t), 0, 0); \
  } \
  __WAVESIM_FN void __wavesim_stored_##dim(__wavesim_words t, I c, int level, float4 v) { \
    __wavesim_store_mip_##dim(v, 15, ints, level, __WAVESIM_IMAGE(t), 0, 0); \
  }
#define __WAVESIM_PLAIN_1d(c) c
#define __WAVESIM_PLAIN_1darray(c) c.x, c.y
#define __WAVESIM_PLAIN_2d(c) c.x, c.y
#define __WAVESIM_PLAIN_2darray(c) c.x, c.y, c.z
#define __WAVESIM_PLAIN_3d(c) c.x, c.y, c.z
#define __WAVESIM_GRADIENT_1 x, y
#define __WAVESIM_GRADIENT_2 x.x, x.y, y.x, y.y
#define __WAVESIM_GRADIENT_3 x.x, x.y, x.z, y.x, y.y, y.z
#define __WAVESIM_INT_1 c
#define __WAVESIM_INT_2 c.x, c.y
#define __WAVESIM_INT_3 c.x, c.y, c.z
#define __WAVESIM_FLOAT_2(c) ((float2)((float)c.x, (float)c.y))
#define __WAVESIM_FLOAT_4(c) ((float4)((float)c.x, (float)c.y, (float)c.z, 0.0f))
__WAVESIM_SAMPLES(1d, float, int, __WAVESIM_X, (float), float, __WAVESIM_GRADIENT_1, __WAVESIM_INT_1)
__WAVESIM_SAMPLES(1darray, float2, int2, __WAVESIM_XA, __WAVESIM_FLOAT_2, float, __WAVESIM_GRADIENT_1, __WAVESIM_INT_2)
__WAVESIM_SAMPLES(2d, float2, int2, __WAVESIM_XY, __WAVESIM_FLOAT_2, float2, __WAVESIM_GRADIENT_2, __WAVESIM_INT_2)
__WAVESIM_SAMPLES(2darray, float4, int4, __WAVESIM_XYA, __WAVESIM_FLOAT_4, float2, __WAVESIM_GRADIENT_2, __WAVESIM_INT_3)
__WAVESIM_SAMPLES(3d, float4, int4, __WAVESIM_XYZ, __WAVESIM_FLOAT_4, float4, __WAVESIM_GRADIENT_3, __WAVESIM_INT_3)
__WAVESIM_FN float4 __wavesim_loaded_buffer(__wavesim_words t, int c) {
  return __wavesim_load_buffer(*(__constant uint4 *)t, c, 0, 0, 0);
}
__WAVESIM_FN void __wavesim_stored_buffer(__wavesim_words t, int c, float4 v) {
  __wavesim_store_buffer(v, *(__constant uint4 *)t, c, 0, 0, 0);
}

// The half of a float of the texture unit. A store rounds a half no further.
__WAVESIM_FN half4 __wavesim_half(float4 v) { return (half4)((half)v.x, (half)v.y, (half)v.z, (half)v.w); }
__WAVESIM_FN float4 __wavesim_float(half4 v) { return (float4)(v.x, v.y, v.z, v.w); }

#define __WAVESIM_READS(image, dim, F, I, G) \
  __WAVESIM_FN float4 read_imagef(read_only image i, sampler_t s, F c) { return \
    __wavesim_sampled_##dim(__WAVESIM_WORDS(i), __WAVESIM_WORDS(s), c); } \
  __WAVESIM_FN float4 read_imagef(read_only image i, sampler_t s, I c) { return \
    __wavesim_sampled_##dim(__WAVESIM_WORDS(i), __WAVESIM_WORDS(s), c); } \
  __WAVESIM_FN half4 read_imageh(read_only image i, sampler_t s, F c) { return __wavesim_half(read_imagef(i, s, c)); } \
  __WAVESIM_FN half4 read_imageh(read_only image i, sampler_t s, I c) { return __wavesim_half(read_imagef(i, s, c)); } \
  __WAVESIM_FN int4 read_imagei(read_only image i, sampler_t s, F c) { return __builtin_astype(read_imagef(i, s, c), \
    int4); } \
  __WAVESIM_FN int4 read_imagei(read_only image i, sampler_t s, I c) { return __builtin_astype(read_imagef(i, s, c), \
    int4); } \
  __WAVESIM_FN uint4 read_imageui(read_only image i, sampler_t s, F c) { return __builtin_astype(read_imagef(i, s, c), \
    uint4); } \
  __WAVESIM_FN uint4 read_imageui(read_only image i, sampler_t s, I c) { return __builtin_astype(read_imagef(i, s, c), \
    uint4); } \
  __WAVESIM_FN float4 read_imagef(read_only image i, sampler_t s, F c, float level) { return \
    __wavesim_leveled_##dim(__WAVESIM_WORDS(i), __WAVESIM_WORDS(s), c, level); } \
  __WAVESIM_FN int4 read_imagei(read_only image i, sampler_t s, F c, float level) { return \
    __builtin_astype(read_imagef(i, s, c, level), int4); } \
  __WAVESIM_FN uint4 read_imageui(read_only image i, sampler_t s, F c, float level) { return \
    __builtin_astype(read_imagef(i, s, c, level), uint4); } \
  __WAVESIM_FN float4 read_imagef(read_only image i, sampler_t s, F c, G x, G y) { return \
    __wavesim_graded_##dim(__WAVESIM_WORDS(i), __WAVESIM_WORDS(s), c, x, y); } \
  __WAVESIM_FN int4 read_imagei(read_only image i, sampler_t s, F c, G x, G y) { return __builtin_astype(read_imagef(i, \
    s, c, x, y), int4); } \
  __WAVESIM_FN uint4 read_imageui(read_only image i, sampler_t s, F c, G x, G y) { return \
    __builtin_astype(read_imagef(i, s, c, x, y), uint4); }
__WAVESIM_READS(image1d_t, 1d, float, int, float)
__WAVESIM_READS(image1d_array_t, 1darray, float2, int2, float)
__WAVESIM_READS(image2d_t, 2d, float2, int2, float2)
__WAVESIM_READS(image2d_array_t, 2darray, float4, int4, float2)
__WAVESIM_READS(image3d_t, 3d, float4, int4, float4)

#define __WAVESIM_LOADS(access, image, dim, I) \
  __WAVESIM_FN float4 read_imagef(access image i, I c) { return __wavesim_loaded_##dim(__WAVESIM_WORDS(i), c); } \
  __WAVESIM_FN half4 read_imageh(access image i, I c) { return __wavesim_half(read_imagef(i, c)); } \
  __WAVESIM_FN int4 read_imagei(access image i, I c) { return __builtin_astype(read_imagef(i, c), int4); } \
  __WAVESIM_FN uint4 read_imageui(access image i, I c) { return __builtin_astype(read_imagef(i, c), uint4); }
#define __WAVESIM_STORES(access, image, dim, I) \
  __WAVESIM_FN void write_imagef(access image i, I c, float4 v) { __wavesim_stored_##dim(__WAVESIM_WORDS(i), c, v); } \
  __WAVESIM_FN void write_imageh(access image i, I c, half4 v) { write_imagef(i, c, __wavesim_float(v)); } \
  __WAVESIM_FN void write_imagei(access image i, I c, int4 v) { write_imagef(i, c, __builtin_astype(v, float4)); } \
  __WAVESIM_FN void write_imageui(access image i, I c, uint4 v) { write_imagef(i, c, __builtin_astype(v, float4)); }
#define __WAVESIM_LEVEL_STORES(access, image, dim, I) \
  __WAVESIM_FN void write_imagef(access image i, I c, int level, float4 v) { __wavesim_stored_##dim(__WAVESIM_WORDS(i), \
    c, level, v); } \
  __WAVESIM_FN void write_imagei(access image i, I c, int level, int4 v) { write_imagef(i, c, level, \
    __builtin_astype(v, float4)); } \
  __WAVESIM_FN void write_imageui(access image i, I c, int level, uint4 v) { write_imagef(i, c, level, \
    __builtin_astype(v, float4)); }
#define __WAVESIM_QUERIES(access, image) \
  __WAVESIM_FN int get_image_width(access image i) { return __wavesim_width(__WAVESIM_WORDS(i)); } \
  __WAVESIM_FN int get_image_channel_data_type(access image i) { return __wavesim_channel_type(__WAVESIM_WORDS(i)); } \
  __WAVESIM_FN int get_image_channel_order(access image i) { return __wavesim_channel_order(__WAVESIM_WORDS(i)); }
#define __WAVESIM_HEIGHT(access, image) \
  __WAVESIM_FN int get_image_height(access image i) { return __wavesim_height(__WAVESIM_WORDS(i)); }
#define __WAVESIM_DIM2(access, image) __WAVESIM_HEIGHT(access, image) \
  __WAVESIM_FN int2 get_image_dim(access image i) { return (int2)(get_image_width(i), get_image_height(i)); }
#define __WAVESIM_ARRAY(access, image) \
  __WAVESIM_FN size_t get_image_array_size(access image i) { return __wavesim_depth(__WAVESIM_WORDS(i)); }
#define __WAVESIM_LEVELS(access, image) \
  __WAVESIM_FN int get_image_num_mip_levels(access image i) { return __wavesim_levels(__WAVESIM_WORDS(i)); }
#define __WAVESIM_ALL_QUERIES(access) \
  __WAVESIM_QUERIES(access, image1d_t) \
  __WAVESIM_QUERIES(access, image1d_buffer_t) \
  __WAVESIM_QUERIES(access, image1d_array_t) __WAVESIM_ARRAY(access, image1d_array_t) \
  __WAVESIM_QUERIES(access, image2d_t) __WAVESIM_DIM2(access, image2d_t) \
  __WAVESIM_QUERIES(access, image2d_array_t) __WAVESIM_DIM2(access, image2d_array_t) __WAVESIM_ARRAY(access, \
    image2d_array_t) \
  __WAVESIM_QUERIES(access, image2d_depth_t) __WAVESIM_DIM2(access, image2d_depth_t) \
  __WAVESIM_QUERIES(access, image2d_array_depth_t) __WAVESIM_DIM2(access, image2d_array_depth_t) \
    __WAVESIM_ARRAY(access, image2d_array_depth_t) \
  __WAVESIM_QUERIES(access, image3d_t) __WAVESIM_HEIGHT(access, image3d_t) \
  __WAVESIM_FN int get_image_depth(access image3d_t i) { return __wavesim_depth(__WAVESIM_WORDS(i)); } \
  __WAVESIM_FN int4 get_image_dim(access image3d_t i) { return (int4)(get_image_width(i), get_image_height(i), \
    get_image_depth(i), 0); } \
  __WAVESIM_LEVELS(access, image1d_t) __WAVESIM_LEVELS(access, image1d_array_t) __WAVESIM_LEVELS(access, image2d_t) \
  __WAVESIM_LEVELS(access, image2d_array_t) __WAVESIM_LEVELS(access, image3d_t)
#define __WAVESIM_ALL_LOADS(access) \
  __WAVESIM_LOADS(access, image1d_t, 1d, int) \
  __WAVESIM_LOADS(access, image1d_buffer_t, buffer, int) \
  __WAVESIM_LOADS(access, image1d_array_t, 1darray, int2) \
  __WAVESIM_LOADS(access, image2d_t, 2d, int2) \
  __WAVESIM_LOADS(access, image2d_array_t, 2darray, int4) \
  __WAVESIM_LOADS(access, image3d_t, 3d, int4) \
  __WAVESIM_FN float read_imagef(access image2d_depth_t i, int2 c) { return __wavesim_loaded_2d(__WAVESIM_WORDS(i), c).x; } \
  __WAVESIM_FN float read_imagef(access image2d_array_depth_t i, int4 c) { return \
    __wavesim_loaded_2darray(__WAVESIM_WORDS(i), c).x; }
#define __WAVESIM_ALL_STORES(access) \
  __WAVESIM_STORES(access, image1d_t, 1d, int) \
  __WAVESIM_STORES(access, image1d_buffer_t, buffer, int) \
  __WAVESIM_STORES(access, image1d_array_t, 1darray, int2) \
  __WAVESIM_STORES(access, image2d_t, 2d, int2) \
  __WAVESIM_STORES(access, image2d_array_t, 2darray, int4) \
  __WAVESIM_STORES(access, image3d_t, 3d, int4) \
  __WAVESIM_LEVEL_STORES(access, image1d_t, 1d, int) \
  __WAVESIM_LEVEL_STORES(access, image1d_array_t, 1darray, int2) \
  __WAVESIM_LEVEL_STORES(access, image2d_t, 2d, int2) \
  __WAVESIM_LEVEL_STORES(access, image2d_array_t, 2darray, int4) \
  __WAVESIM_LEVEL_STORES(access, image3d_t, 3d, int4) \
  __WAVESIM_FN void write_imagef(access image2d_depth_t i, int2 c, float v) { __wavesim_stored_2d(__WAVESIM_WORDS(i), \
    c, (float4)(v)); } \
  __WAVESIM_FN void write_imagef(access image2d_array_depth_t i, int4 c, float v) { \
    __wavesim_stored_2darray(__WAVESIM_WORDS(i), c, (float4)(v)); }
#define __WAVESIM_DEPTH_READS(image, dim, F, I) \
  __WAVESIM_FN float read_imagef(read_only image i, sampler_t s, F c) { return \
    __wavesim_sampled_##dim(__WAVESIM_WORDS(i), __WAVESIM_WORDS(s), c).x; } \
  __WAVESIM_FN float read_imagef(read_only image i, sampler_t s, I c) { return \
    __wavesim_sampled_##dim(__WAVESIM_WORDS(i), __WAVESIM_WORDS(s), c).x; }
__WAVESIM_DEPTH_READS(image2d_depth_t, 2d, float2, int2)
__WAVESIM_DEPTH_READS(image2d_array_depth_t, 2darray, float4, int4)
__WAVESIM_ALL_QUERIES(read_only)
__WAVESIM_ALL_QUERIES(write_only)
__WAVESIM_ALL_LOADS(read_only)
__WAVESIM_ALL_STORES(write_only)
#ifdef __opencl_c_read_write_images
__WAVESIM_ALL_QUERIES(read_write)
__WAVESIM_ALL_LOADS(read_write)
__WAVESIM_ALL_STORES(read_write)
#endif

// Samplers in the source, which clang passes as numbers: bit 0 normalised coordinates, bits 3 to 1 the addressing mode,
// bit 5 linear filters. The words of their descriptors are those of the device.
static __constant uint __wavesim_samplers[80] __attribute__((aligned(16))) = { __WAVESIM_SAMPLERS };
inline __attribute__((always_inline)) __wavesim_words __translate_sampler_initializer(int value) {
  return __wavesim_samplers + 4 * ((value & 15) + (value & 32 ? 10 : 0));
}
#pragma clang diagnostic pop
#pragma OPENCL EXTENSION cl_khr_fp16 : disable
