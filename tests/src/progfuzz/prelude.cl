// The common start of every generated program. HOST is defined when the program is compiled for the host.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long i64; typedef unsigned long u64;
typedef half f16; typedef float f32; typedef double f64;
#define VECTOR(T, N) typedef T T##x##N __attribute__((ext_vector_type(N))); \
    struct __attribute__((packed)) packed_##T##x##N { T##x##N v; };
#define TYPE(T) struct __attribute__((packed)) packed_##T { T v; }; \
    VECTOR(T, 2) VECTOR(T, 3) VECTOR(T, 4) VECTOR(T, 8) VECTOR(T, 16)
TYPE(i8) TYPE(u8) TYPE(i16) TYPE(u16) TYPE(i32) TYPE(u32) TYPE(i64) TYPE(u64) TYPE(f16) TYPE(f32) TYPE(f64)
#define AS(T, x) __builtin_astype((x), T)
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
// An access at any byte address, and an aligned one.
#define LOAD(A, T, p) (((A const struct packed_##T *)(p))->v)
#define STORE(A, T, p, x) (((A struct packed_##T *)(p))->v = (x))
// NaNs are observed as one quiet NaN, and created quiet: their payloads and signs have no influence on results.
INLINE u32 bits_f32(f32 x) { return x != x ? 0x7fc00000u : AS(u32, x); }
INLINE u64 bits_f64(f64 x) { return x != x ? 0x7ff8000000000000ul : AS(u64, x); }
INLINE u16 bits_f16(f16 x) { return x != x ? (u16)0x7e00 : AS(u16, x); }
INLINE f32 make_f32(u32 x) { return AS(f32, (x & 0x7fffffffu) > 0x7f800000u ? x | 0x400000u : x); }
INLINE f64 make_f64(u64 x) {
    return AS(f64, (x & 0x7ffffffffffffffful) > 0x7ff0000000000000ul ? x | 0x8000000000000ul : x);
}
INLINE f16 make_f16(u16 x) { return AS(f16, (u16)((x & 0x7fff) > 0x7c00 ? x | 0x200 : x)); }
#ifdef HOST
INLINE f16 fma_f16(f16 a, f16 b, f16 c) {
    // The product is exact; the sum is rounded to odd, so that the second rounding is right.
    f64 p = (f64)a * (f64)b, s = p + (f64)c, t = s - p, e = (p - (s - t)) + ((f64)c - t);
    u64 u = AS(u64, s);
    if (s - s == 0 && e != 0 && !(u & 1)) s = AS(f64, (e > 0) == (s > 0) ? u + 1 : u - 1);
    return (f16)s;
}
INLINE u32 perm(u32 a, u32 b, u32 sel) {
    u64 both = (u64)a << 32 | b;
    u32 r = 0;
    for (u32 i = 0; i < 4; i++) {
        u32 s = sel >> 8 * i & 255, v;
        if (s < 8) v = both >> 8 * s & 255;
        else if (s < 12) v = both >> (16 * (s - 8) + 15) & 1 ? 255 : 0;
        else v = s == 12 ? 0 : 255;
        r |= v << 8 * i;
    }
    return r;
}
INLINE u32 sad_u8(u32 a, u32 b, u32 c) {
    for (u32 i = 0; i < 4; i++) {
        i32 d = (i32)(a >> 8 * i & 255) - (i32)(b >> 8 * i & 255);
        c += d < 0 ? -d : d;
    }
    return c;
}
INLINE u32 alignbyte(u32 a, u32 b, u32 n) { return (u32)(((u64)a << 32 | b) >> 8 * (n & 3)); }
INLINE u32 alignbit(u32 a, u32 b, u32 n) { return (u32)(((u64)a << 32 | b) >> (n & 31)); }
INLINE u32 lerp(u32 a, u32 b, u32 c) {
    u32 r = 0;
    for (u32 i = 0; i < 4; i++) r |= ((a >> 8 * i & 255) + (b >> 8 * i & 255) + (c >> 8 * i & 1)) >> 1 << 8 * i;
    return r;
}
INLINE u32 bfe(u32 x, u32 at, u32 n) { at &= 31; n &= 31; return n ? x >> at & ((1u << n) - 1) : 0; }
// Lane operations: the results of the active lanes of one wave. `x` and `y` are their operands.
extern u32 wave_size;
struct wave { u32 x[64], y[64]; u64 active, r[64]; };
#define EACH_LANE for (u32 i = 0; i < wave_size; i++) if (w->active >> i & 1)
static void wave_ballot(struct wave *w) {
    u64 all = 0;
    EACH_LANE all |= (u64)(w->x[i] & 1) << i;
    EACH_LANE w->r[i] = all;
}
static void wave_first(struct wave *w) { EACH_LANE w->r[i] = w->x[__builtin_ctzl(w->active)]; }
static void wave_count(struct wave *w) {
    EACH_LANE {
        u64 below = ((u64)w->y[i] << 32 | w->x[i]) & ((1ul << i) - 1);
        w->r[i] = __builtin_popcountl(wave_size == 64 ? below : below & ~0u);
    }
}
static void wave_read(struct wave *w) {
    u32 r = 0;
    for (u32 i = 0; i < 5; i++) r = r * 3 + w->x[i * 7 % wave_size];
    EACH_LANE w->r[i] = r;
}
static void wave_shuffle(struct wave *w) { EACH_LANE w->r[i] = w->x[(i & 32) | (w->y[i] & 31)]; }
static void wave_push(struct wave *w) { EACH_LANE w->r[(i & 32) | ((i * 5 + 3) & 31)] = w->x[i]; }
static void wave_swap(struct wave *w) { EACH_LANE w->r[i] = w->x[i ^ 5]; }
// DPP: `from` is the source's position in its row of 16, if it is in the row.
#define DPP(NAME, from, rows, banks, bound) static void wave_##NAME(struct wave *w) { \
    EACH_LANE { \
        i32 at = i & 15, source = (from); \
        u32 old = w->y[i], enabled = ((rows) >> (i >> 4) & 1) & ((banks) >> (at >> 2) & 1); \
        w->r[i] = !enabled ? old : source >= 0 && source < 16 ? w->x[(i & 48) | source] : (bound) ? 0 : old; \
    } \
}
DPP(quad, at ^ 3, 15, 15, 1)
DPP(shift, at - 3, 15, 15, 0)
DPP(rotate, (at - 5) & 15, 5, 15, 0)
DPP(mirror, 15 - at, 15, 6, 0)
DPP(zero, at + 4, 15, 15, 1)
#else
#define fma_f16(a, b, c) __builtin_elementwise_fma((f16)(a), (f16)(b), (f16)(c))
#define perm __builtin_amdgcn_perm
#define sad_u8 __builtin_amdgcn_sad_u8
#define alignbyte __builtin_amdgcn_alignbyte
#define alignbit __builtin_amdgcn_alignbit
#define lerp __builtin_amdgcn_lerp
#define bfe __builtin_amdgcn_ubfe
// LLVM 19 compiles kernels with few registers incorrectly.
#ifdef FEW_REGISTERS
#define REGISTERS(limit) __attribute__((limit))
#else
#define REGISTERS(limit)
#endif
#define BARRIER() (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
#if __AMDGCN_WAVEFRONT_SIZE == 64
#define LANE() __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0))
#define wave_ballot(x, y) __builtin_amdgcn_ballot_w64((x) & 1)
#else
#define LANE() __builtin_amdgcn_mbcnt_lo(~0u, 0)
#define wave_ballot(x, y) ((u64)__builtin_amdgcn_ballot_w32((x) & 1))
#endif
#define wave_first(x, y) ((u32)__builtin_amdgcn_readfirstlane(x))
#define wave_count(x, y) ((u32)(__builtin_amdgcn_mbcnt_hi(y, __builtin_amdgcn_mbcnt_lo(x, 0))))
INLINE u32 wave_read(u32 x, u32 y) {
    u32 r = 0;
    for (u32 i = 0; i < 5; i++) r = r * 3 + __builtin_amdgcn_readlane(x, i * 7 % __AMDGCN_WAVEFRONT_SIZE);
    return r;
}
#define wave_shuffle(x, y) ((u32)__builtin_amdgcn_ds_bpermute(((LANE() & 32) | ((y) & 31)) << 2, x))
#define wave_push(x, y) ((u32)__builtin_amdgcn_ds_permute(((LANE() & 32) | ((LANE() * 5 + 3) & 31)) << 2, x))
#define wave_swap(x, y) ((u32)__builtin_amdgcn_ds_swizzle(x, 0x1f | 5 << 10))
#define wave_quad(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x1b, 15, 15, 1))
#define wave_shift(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x113, 15, 15, 0))
#define wave_rotate(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x125, 5, 15, 0))
#define wave_mirror(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x140, 15, 6, 0))
#define wave_zero(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x104, 15, 15, 1))
#endif
