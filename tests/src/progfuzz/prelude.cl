// The common start of every generated program. HOST is defined when the program is compiled for the host.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long i64; typedef unsigned long u64;
typedef half f16; typedef float f32; typedef double f64;
typedef __int128 i128; typedef unsigned __int128 u128;
#define VECTOR(T, N) typedef T T##x##N __attribute__((ext_vector_type(N))); \
    struct __attribute__((packed)) packed_##T##x##N { T##x##N v; };
#define TYPE(T) struct __attribute__((packed)) packed_##T { T v; }; \
    VECTOR(T, 2) VECTOR(T, 3) VECTOR(T, 4) VECTOR(T, 8) VECTOR(T, 16)
TYPE(i8) TYPE(u8) TYPE(i16) TYPE(u16) TYPE(i32) TYPE(u32) TYPE(i64) TYPE(u64) TYPE(f16) TYPE(f32) TYPE(f64)
#ifdef __gfx942__
#define CDNA
#endif
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
// Integer functions of OpenCL. W is wide enough for a product and a sum.
#define INTEGER(T, U, W, BITS, LEAST, GREATEST) \
INLINE T hadd_##T(T a, T b) { return (T)((a >> 1) + (b >> 1) + (a & b & 1)); } \
INLINE T rhadd_##T(T a, T b) { return (T)((a >> 1) + (b >> 1) + ((a | b) & 1)); } \
INLINE U abs_diff_##T(T a, T b) { return a > b ? (U)((U)a - (U)b) : (U)((U)b - (U)a); } \
INLINE T mul_hi_##T(T a, T b) { return (T)((W)a * (W)b >> BITS); } \
INLINE T mad_hi_##T(T a, T b, T c) { return (T)((U)mul_hi_##T(a, b) + (U)c); } \
INLINE T mad_sat_##T(T a, T b, T c) { \
    W r = (W)a * (W)b + (W)c; \
    return (T)(r < (W)(LEAST) ? (W)(LEAST) : r > (W)(GREATEST) ? (W)(GREATEST) : r); \
} \
INLINE T bitselect_##T(T a, T b, T c) { return (T)((a & ~c) | (b & c)); } \
INLINE U clz_##T(T a) { return (U)((U)a ? __builtin_clzl((u64)(U)a) - (64 - BITS) : BITS); } \
INLINE U ctz_##T(T a) { return (U)((U)a ? __builtin_ctzl((u64)(U)a) : BITS); }
INTEGER(i8, u8, i32, 8, -0x80, 0x7f) INTEGER(u8, u8, u32, 8, 0, 0xff)
INTEGER(i16, u16, i32, 16, -0x8000, 0x7fff) INTEGER(u16, u16, u64, 16, 0, 0xffff)
INTEGER(i32, u32, i64, 32, -0x80000000l, 0x7fffffff) INTEGER(u32, u32, u64, 32, 0, 0xffffffffu)
INTEGER(i64, u64, i128, 64, -0x7fffffffffffffffl - 1, 0x7fffffffffffffffl) INTEGER(u64, u64, u128, 64, 0, ~0ul)
// Conversions to a smaller float, rounded to zero, up and down: from the nearest value by one step. The sum
// makes zeros positive, which LLVM 19 may take for the other one.
#define ROUNDINGS(F, U, FROM) \
INLINE F F##_step(F r, U sign) { \
    U bits = AS(U, r), top = (U)1 << (sizeof(U) * 8 - 1); \
    if (r == 0) return AS(F, (U)(sign ? top | 1 : 1)); \
    return AS(F, (U)((bits & top) == (sign ? top : 0) ? bits + 1 : bits - 1)); \
} \
INLINE F F##_rtp(FROM x) { F r = (F)x; return ((FROM)r < x ? F##_step(r, 0) : r) + (F)0; } \
INLINE F F##_rtn(FROM x) { F r = (F)x; return ((FROM)r > x ? F##_step(r, 1) : r) + (F)0; } \
INLINE F F##_rtz(FROM x) { return x > 0 ? F##_rtn(x) : F##_rtp(x); }
ROUNDINGS(f32, u32, f64) ROUNDINGS(f16, u16, f32)
// The middle one of three numbers.
#define MED3(T) INLINE T med3_##T(T a, T b, T c) { \
    a = a != a ? 0 : a; b = b != b ? 0 : b; c = c != c ? 0 : c; \
    T low = a < b ? a : b, high = a < b ? b : a; \
    return (c < low ? low : c > high ? high : c) + 0; \
}
MED3(f32) MED3(f16)
INLINE f32 frexp_f32(f32 x, u32 part) {
    if (x - x != 0) return 1;
    i32 e;
    f32 m = __builtin_frexpf(x, &e);
    return part & 1 ? m : (f32)e;
}
INLINE f64 frexp_f64(f64 x, u32 part) {
    if (x - x != 0) return 1;
    i32 e;
    f64 m = __builtin_frexp(x, &e);
    return part & 1 ? m : (f64)e;
}
#ifdef HOST
#define CALLEE(f) (f)
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
// Beyond bit 31, the field has copies of this bit.
INLINE u32 sbfe(u32 x, u32 at, u32 n) {
    u32 r = bfe((u32)((i32)x >> (at & 31)), 0, n), top = (n & 31) ? 1u << ((n & 31) - 1) : 0;
    return (r ^ top) - top;
}
INLINE u32 sad_hi_u8(u32 a, u32 b, u32 c) { return (sad_u8(a, b, 0) << 16) + c; }
INLINE u32 sad_u16(u32 a, u32 b, u32 c) {
    i32 low = (i32)(a & 0xffff) - (i32)(b & 0xffff), high = (i32)(a >> 16) - (i32)(b >> 16);
    return c + (low < 0 ? -low : low) + (high < 0 ? -high : high);
}
// Bytes of the reference `b` that are 0 do not count.
INLINE u32 msad_u8(u32 a, u32 b, u32 c) {
    for (u32 i = 0; i < 4; i++) {
        i32 d = (i32)(a >> 8 * i & 255) - (i32)(b >> 8 * i & 255);
        if (b >> 8 * i & 255) c += d < 0 ? -d : d;
    }
    return c;
}
#define QSAD(NAME, SAD) INLINE u64 NAME(u64 a, u32 b, u64 c) { \
    u64 r = 0; \
    for (u32 i = 0; i < 4; i++) r |= (u64)(u16)SAD((u32)(a >> 8 * i), b, c >> 16 * i & 0xffff) << 16 * i; \
    return r; \
}
QSAD(qsad, sad_u8)
QSAD(mqsad, msad_u8)
INLINE u32x4 mqsad_u32(u64 a, u32 b, u32x4 c) {
    for (u32 i = 0; i < 4; i++) c[i] = msad_u8((u32)(a >> 8 * i), b, c[i]);
    return c;
}
#define DOT(NAME, N, A, B) INLINE u32 NAME(u32 a, u32 b, u32 c) { \
    for (u32 i = 0; i < 32; i += N) c += (u32)A(a, i, N) * (u32)B(b, i, N); \
    return c; \
}
DOT(udot4, 8, bfe, bfe) DOT(udot8, 4, bfe, bfe) DOT(sdot4, 8, sbfe, sbfe) DOT(sdot8, 4, sbfe, sbfe)
DOT(usdot4, 8, bfe, sbfe) DOT(usdot8, 4, bfe, sbfe)
INLINE f16x2 pkrtz(f32 a, f32 b) { return (f16x2)(f16_rtz(a), f16_rtz(b)); }
#define ATOMIC_INC(p, v) ({ u32 old_ = *(p); *(p) = old_ >= (v) ? 0 : old_ + 1; old_; })
#define ATOMIC_DEC(p, v) ({ u32 old_ = *(p); *(p) = old_ == 0 || old_ > (v) ? (v) : old_ - 1; old_; })
#define APPEND(p) ((void)++*(p))
#define CONSUME(p) ((void)--*(p))
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
// The value of a lane: `i` is the reading one, `old` its `y`.
#define FROM(NAME, source) static void wave_##NAME(struct wave *w) { \
    EACH_LANE { u32 old = w->y[i]; w->r[i] = (source) < 64 ? w->x[(source) & 63] : old; } \
}
FROM(uniform, w->y[0] % wave_size)
FROM(row_share, (i & 48) | 3)
FROM(row_xmask, i ^ 5)
FROM(eighth, (i & 56) | ((i & 7) * 3 + 1 & 7))
FROM(permlane, (i & 48) | ((i & 15) * 7 + 2 & 15))
FROM(permlanex, ((i & 48) ^ 16) | ((i & 15) * 7 + 2 & 15))
FROM(halves, wave_size == 64 ? i ^ 32 : i)
FROM(quad_swizzle, (i & 60) | (i + 1 & 3))
FROM(last_of_row, i >= 16 ? (i & 48) - 1 : 64)
FROM(wave_shift, i > 0 ? i - 1 : 64)
static void wave_write(struct wave *w) {
    EACH_LANE w->r[i] = w->y[i];
    w->r[w->y[0] % wave_size] = w->x[0];
}
static void wave_inclusive_sum(struct wave *w) { u32 sum = 0; EACH_LANE w->r[i] = sum += w->x[i]; }
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
#define sbfe(a, b, c) ((u32)__builtin_amdgcn_sbfe(a, b, c))
#define sad_hi_u8 __builtin_amdgcn_sad_hi_u8
#define sad_u16 __builtin_amdgcn_sad_u16
#define msad_u8 __builtin_amdgcn_msad_u8
#define qsad __builtin_amdgcn_qsad_pk_u16_u8
#define mqsad __builtin_amdgcn_mqsad_pk_u16_u8
#define mqsad_u32(a, b, c) AS(u32x4, __builtin_amdgcn_mqsad_u32_u8(a, b, c))
#define udot4(a, b, c) ((u32)__builtin_amdgcn_udot4(a, b, c, 0))
#define udot8(a, b, c) ((u32)__builtin_amdgcn_udot8(a, b, c, 0))
#ifdef CDNA
#define sdot4(a, b, c) ((u32)__builtin_amdgcn_sdot4(a, b, c, 0))
#define sdot8(a, b, c) ((u32)__builtin_amdgcn_sdot8(a, b, c, 0))
INLINE u32 usdot4(u32 a, u32 b, u32 c) {
    for (u32 i = 0; i < 32; i += 8) c += (a >> i & 255) * (u32)(i32)(i8)(b >> i);
    return c;
}
INLINE u32 usdot8(u32 a, u32 b, u32 c) {
    for (u32 i = 0; i < 32; i += 4) c += bfe(a, i, 4) * sbfe(b, i, 4);
    return c;
}
#else
#define sdot4(a, b, c) ((u32)__builtin_amdgcn_sudot4(1, a, 1, b, c, 0))
#define sdot8(a, b, c) ((u32)__builtin_amdgcn_sudot8(1, a, 1, b, c, 0))
#define usdot4(a, b, c) ((u32)__builtin_amdgcn_sudot4(0, a, 1, b, c, 0))
#define usdot8(a, b, c) ((u32)__builtin_amdgcn_sudot8(0, a, 1, b, c, 0))
#endif
#define pkrtz(a, b) (AS(f16x2, __builtin_amdgcn_cvt_pkrtz(a, b)) + (f16)0)
#define ATOMIC_INC(p, v) ((u32)__builtin_amdgcn_atomic_inc32(p, v, __ATOMIC_RELAXED, "agent"))
#define ATOMIC_DEC(p, v) ((u32)__builtin_amdgcn_atomic_dec32(p, v, __ATOMIC_RELAXED, "agent"))
#define APPEND(p) ((void)__builtin_amdgcn_ds_append((LDS i32 *)(p)))
#define CONSUME(p) ((void)__builtin_amdgcn_ds_consume((LDS i32 *)(p)))
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
#define SOURCE(i, x) ((u32)__builtin_amdgcn_ds_bpermute((i) << 2, x))
// LLVM 19 calls the first lane's function for all lanes if one pointer is called five times: each call has its own.
#define CALLEE(f) ({ __typeof__(f) callee_ = (f); __asm__ volatile("" : "+v"(callee_)); callee_; })
// LLVM 19 moves some lane operations into the branch that uses their result.
#define KEEP(x) ({ u32 kept_ = (x); __asm__ volatile("" : "+v"(kept_)); kept_; })
#define DPP(x, y, control) ((u32)__builtin_amdgcn_update_dpp(y, x, control, 15, 15, 0))
#define FIRST(x) ((u32)__builtin_amdgcn_readfirstlane(x))
#define wave_uniform(x, y) ((u32)__builtin_amdgcn_readlane(x, FIRST(y) % __AMDGCN_WAVEFRONT_SIZE))
#define wave_quad_swizzle(x, y) ((u32)__builtin_amdgcn_ds_swizzle(x, 0x8039))
INLINE u32 wave_write(u32 x, u32 y) {
    u32 value = FIRST(x), lane = FIRST(y) % __AMDGCN_WAVEFRONT_SIZE;
    return LANE() == lane ? value : y;
}
INLINE u32 wave_inclusive_sum(u32 x, u32 y) {
    for (u32 n = 1; n < __AMDGCN_WAVEFRONT_SIZE; n *= 2) {
        u32 other = SOURCE(LANE() - n, x);
        x += LANE() >= n ? other : 0;
    }
    return x;
}
#ifdef CDNA
#define wave_row_share(x, y) SOURCE((LANE() & 48) | 3, x)
#define wave_row_xmask(x, y) SOURCE(LANE() ^ 5, x)
#define wave_eighth(x, y) SOURCE((LANE() & 56) | ((LANE() & 7) * 3 + 1 & 7), x)
#define wave_permlane(x, y) SOURCE((LANE() & 48) | ((LANE() & 15) * 7 + 2 & 15), x)
#define wave_permlanex(x, y) SOURCE(((LANE() & 48) ^ 16) | ((LANE() & 15) * 7 + 2 & 15), x)
#define wave_halves(x, y) SOURCE(LANE() ^ 32, x)
#define wave_last_of_row(x, y) DPP(x, y, 0x142)
#define wave_wave_shift(x, y) DPP(x, y, 0x138)
#else
#define wave_row_share(x, y) DPP(x, y, 0x153)
#define wave_row_xmask(x, y) DPP(x, y, 0x165)
#define wave_eighth(x, y) KEEP(__builtin_amdgcn_mov_dpp8(x, 0xcc55e1))
#define wave_permlane(x, y) KEEP(__builtin_amdgcn_permlane16(y, x, 0x3c5e7092u, 0xb4d6f81au, 0, 0))
#define wave_permlanex(x, y) KEEP(__builtin_amdgcn_permlanex16(y, x, 0x3c5e7092u, 0xb4d6f81au, 0, 0))
// In a wave of 32 lanes, the instruction does nothing: LLVM 19's result is then what the register contained.
#define wave_halves(x, y) KEEP(__AMDGCN_WAVEFRONT_SIZE == 64 ? __builtin_amdgcn_permlane64(x) : (x))
INLINE u32 wave_last_of_row(u32 x, u32 y) {
    u32 r = SOURCE((LANE() & 48) - 1, x);
    return LANE() >= 16 ? r : y;
}
INLINE u32 wave_wave_shift(u32 x, u32 y) {
    u32 r = SOURCE(LANE() - 1, x);
    return LANE() > 0 ? r : y;
}
#endif
#define wave_swap(x, y) ((u32)__builtin_amdgcn_ds_swizzle(x, 0x1f | 5 << 10))
#define wave_quad(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x1b, 15, 15, 1))
#define wave_shift(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x113, 15, 15, 0))
#define wave_rotate(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x125, 5, 15, 0))
#define wave_mirror(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x140, 15, 6, 0))
#define wave_zero(x, y) ((u32)__builtin_amdgcn_update_dpp(y, x, 0x104, 15, 15, 1))
#endif
