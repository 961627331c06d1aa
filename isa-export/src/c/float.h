/* Float arithmetic on bit patterns. MODE (rounding, denormals, overflow) is an argument; nothing depends on the
   host's floating point but the functions that hardware approximates: exp2, log2, sine, cosine, tanh. */

/* The rounding modes, as in MODE. */
enum { ISA_NEAREST, ISA_UP, ISA_DOWN, ISA_TOWARD_ZERO };

/* MODE with which nothing is flushed and all results round to nearest even. */
#define ISA_KEEP UINT32_C(0xf0)

/* The bits of MODE that a format follows. */
enum { ISA_SINGLE, ISA_HALF_DOUBLE, ISA_FIXED };

typedef struct {
    unsigned exponent_bits, fraction_bits;
    /* E4M3: no infinities, and one NaN. */
    bool finite_only;
    int mode_class;
    /* MODE.FP16_OVFL applies. */
    bool overflow_clamps;
} isa_format;

static const isa_format isa_f16 = {5, 10, false, ISA_HALF_DOUBLE, true};
static const isa_format isa_bf16 = {8, 7, false, ISA_SINGLE, true};
static const isa_format isa_f32 = {8, 23, false, ISA_SINGLE, false};
static const isa_format isa_f64 = {11, 52, false, ISA_HALF_DOUBLE, false};
static const isa_format isa_fp8 = {4, 3, true, ISA_FIXED, true};
static const isa_format isa_bf8 = {5, 2, false, ISA_FIXED, true};

static inline uint32_t isa_with_round(uint32_t mode, unsigned round)
{
    return (mode & ~UINT32_C(15)) | round | round << 2;
}

/* MODE for what hardware approximates: to nearest even, and f32 denormals are flushed. */
static inline uint32_t isa_approximated(uint32_t mode)
{
    return mode & ~UINT32_C(0x3f);
}

static inline unsigned isa_rounding(const isa_format *f, uint32_t mode)
{
    if (f->mode_class == ISA_FIXED)
        return ISA_NEAREST;
    return f->mode_class == ISA_SINGLE ? mode & 3 : mode >> 2 & 3;
}

static inline bool isa_flushes(const isa_format *f, uint32_t mode, unsigned bit)
{
    if (f->mode_class == ISA_FIXED)
        return false;
    return (mode >> (bit + (f->mode_class == ISA_SINGLE ? 0 : 2)) & 1) == 0;
}

static inline isa_u64 isa_sign_bit(const isa_format *f)
{
    return UINT64_C(1) << (f->exponent_bits + f->fraction_bits);
}

static inline isa_u64 isa_magnitude_mask(const isa_format *f)
{
    return isa_sign_bit(f) - 1;
}

static inline isa_u64 isa_fraction_mask(const isa_format *f)
{
    return isa_mask64(f->fraction_bits);
}

static inline isa_u64 isa_exponent_mask(const isa_format *f)
{
    return isa_magnitude_mask(f) & ~isa_fraction_mask(f);
}

static inline int isa_bias(const isa_format *f)
{
    return (1 << (f->exponent_bits - 1)) - 1;
}

static inline isa_u64 isa_max_finite(const isa_format *f)
{
    return (f->finite_only ? isa_magnitude_mask(f) : isa_exponent_mask(f)) - 1;
}

static inline isa_u64 isa_infinity(const isa_format *f)
{
    return f->finite_only ? isa_magnitude_mask(f) : isa_exponent_mask(f);
}

static inline isa_u64 isa_quiet_bit(const isa_format *f)
{
    return f->finite_only ? 0 : UINT64_C(1) << (f->fraction_bits - 1);
}

static inline isa_u64 isa_default_nan(const isa_format *f)
{
    return isa_sign_bit(f) | isa_infinity(f) | isa_quiet_bit(f);
}

static inline isa_u64 isa_one(const isa_format *f)
{
    return (isa_u64)isa_bias(f) << f->fraction_bits;
}

static inline bool isa_is_nan(const isa_format *f, isa_u64 x)
{
    isa_u64 magnitude = x & isa_magnitude_mask(f);
    return f->finite_only ? magnitude == isa_magnitude_mask(f) : magnitude > isa_exponent_mask(f);
}

static inline bool isa_is_infinite(const isa_format *f, isa_u64 x)
{
    return !f->finite_only && (x & isa_magnitude_mask(f)) == isa_exponent_mask(f);
}

static inline bool isa_is_quiet_nan(const isa_format *f, isa_u64 x)
{
    return isa_is_nan(f, x) && (f->finite_only || (x & isa_quiet_bit(f)) != 0);
}

static inline bool isa_is_signal_nan(const isa_format *f, isa_u64 x)
{
    return isa_is_nan(f, x) && !isa_is_quiet_nan(f, x);
}

static inline bool isa_is_denormal(const isa_format *f, isa_u64 x)
{
    return (x & isa_exponent_mask(f)) == 0 && (x & isa_fraction_mask(f)) != 0;
}

static inline isa_u64 isa_quiet(const isa_format *f, isa_u64 x)
{
    return isa_is_nan(f, x) ? x | isa_quiet_bit(f) : x;
}

/* Denormals become the zero of their sign. */
static inline isa_u64 isa_flush(const isa_format *f, isa_u64 x)
{
    return (x & isa_exponent_mask(f)) == 0 ? x & isa_sign_bit(f) : x;
}

static inline isa_u64 isa_flush_input(const isa_format *f, isa_u64 x, uint32_t mode)
{
    return isa_flushes(f, mode, 4) ? isa_flush(f, x) : x;
}

static inline isa_u64 isa_flush_output(const isa_format *f, isa_u64 x, uint32_t mode)
{
    return isa_flushes(f, mode, 5) ? isa_flush(f, x) : x;
}

static inline isa_u64 isa_exponent_field(const isa_format *f, isa_u64 x)
{
    return (x & isa_exponent_mask(f)) >> f->fraction_bits;
}

/* A number: `sig * 2^exp`, with the sign. Before rounding, the lowest bit stands for all bits below it. */
typedef enum { ISA_IS_NAN, ISA_IS_INFINITE, ISA_IS_ZERO, ISA_IS_FINITE } isa_kind;

typedef struct {
    isa_kind kind;
    bool negative;
    int exp;
    isa_u128 sig;
} isa_number;

static inline isa_number isa_unpack(const isa_format *f, isa_u64 x)
{
    isa_u64 fraction = x & isa_fraction_mask(f);
    int biased = (int)isa_exponent_field(f, x);
    isa_number n = {ISA_IS_FINITE, (x & isa_sign_bit(f)) != 0, 0, 0};
    if (isa_is_nan(f, x)) {
        n.kind = ISA_IS_NAN;
    } else if (isa_is_infinite(f, x)) {
        n.kind = ISA_IS_INFINITE;
    } else if (biased != 0) {
        n.exp = biased - isa_bias(f) - (int)f->fraction_bits;
        n.sig = fraction | UINT64_C(1) << f->fraction_bits;
    } else if (fraction != 0) {
        n.exp = 1 - isa_bias(f) - (int)f->fraction_bits;
        n.sig = fraction;
    } else {
        n.kind = ISA_IS_ZERO;
    }
    return n;
}

static inline isa_number isa_operand_of(const isa_format *f, isa_u64 x, uint32_t mode)
{
    return isa_unpack(f, isa_flush_input(f, x, mode));
}

static inline isa_u128 isa_shift_right_sticky(isa_u128 sig, unsigned count)
{
    if (count == 0)
        return sig;
    if (count >= 128)
        return sig != 0;
    return sig >> count | ((sig << (128 - count)) != 0);
}

/* Moves the highest bit to a position. */
static inline isa_number isa_with_top(isa_number x, int top)
{
    int have = isa_top(x.sig);
    x.sig = have <= top ? x.sig << (top - have) : isa_shift_right_sticky(x.sig, (unsigned)(have - top));
    x.exp += have - top;
    return x;
}

static inline isa_u128 isa_round_off(bool negative, isa_u128 sig, unsigned drop, unsigned round)
{
    isa_u128 kept = 0, rest = sig, half;
    bool up = false;
    if (drop == 0)
        return sig;
    if (drop > 127) {
        /* Less than half a unit. */
        half = ~(isa_u128)0;
    } else {
        kept = sig >> drop;
        rest = sig & isa_mask(drop);
        half = (isa_u128)1 << (drop - 1);
    }
    if (round == ISA_NEAREST)
        up = rest > half || (rest == half && (kept & 1) != 0);
    else if (round == ISA_UP)
        up = !negative && rest != 0;
    else if (round == ISA_DOWN)
        up = negative && rest != 0;
    return kept + up;
}

static inline isa_u64 isa_pack(const isa_format *f, isa_number x, unsigned round, bool saturate)
{
    isa_u64 sign = x.negative ? isa_sign_bit(f) : 0, hidden = UINT64_C(1) << f->fraction_bits, rounded, magnitude;
    int leading = x.exp + isa_top(x.sig), least = 1 - isa_bias(f);
    int last = (leading > least ? leading : least) - (int)f->fraction_bits;
    bool finite;
    if (last > x.exp)
        rounded = (isa_u64)isa_round_off(x.negative, x.sig, (unsigned)(last - x.exp), round);
    else
        rounded = (isa_u64)(x.sig << (x.exp - last));
    if (rounded < hidden) {
        magnitude = rounded;
    } else {
        /* A carry of the rounding goes to the exponent. */
        isa_u64 biased = (isa_u64)(last + (int)f->fraction_bits + isa_bias(f));
        magnitude = biased >> f->exponent_bits ? isa_infinity(f) : (biased << f->fraction_bits) + (rounded - hidden);
    }
    if (magnitude <= isa_max_finite(f))
        return sign | magnitude;
    finite = saturate || round == ISA_TOWARD_ZERO || (round == ISA_UP && x.negative) ||
             (round == ISA_DOWN && !x.negative);
    return sign | (finite ? isa_max_finite(f) : isa_infinity(f));
}

static inline bool isa_saturates(const isa_format *f, uint32_t mode)
{
    return f->overflow_clamps && (mode >> 23 & 1) != 0;
}

static inline isa_u64 isa_finish(const isa_format *f, isa_number x, uint32_t mode)
{
    return isa_flush_output(f, isa_pack(f, x, isa_rounding(f, mode), isa_saturates(f, mode)), mode);
}

static inline isa_u64 isa_zero_of(const isa_format *f, bool negative)
{
    return negative ? isa_sign_bit(f) : 0;
}

static inline isa_u64 isa_infinity_of(const isa_format *f, bool negative)
{
    return isa_zero_of(f, negative) | isa_infinity(f);
}

/* The sum; `sig` is 0 if they cancel. */
static inline isa_number isa_add_exact(isa_number a, isa_number b)
{
    isa_number big, small;
    isa_u128 aligned;
    a = isa_with_top(a, 125);
    b = isa_with_top(b, 125);
    if (a.exp > b.exp || (a.exp == b.exp && a.sig >= b.sig)) {
        big = a;
        small = b;
    } else {
        big = b;
        small = a;
    }
    aligned = isa_shift_right_sticky(small.sig, (unsigned)(big.exp - small.exp));
    big.sig = big.negative == small.negative ? big.sig + aligned : big.sig - aligned;
    return big;
}

static inline isa_number isa_mul_exact(isa_number a, isa_number b)
{
    isa_number product = {ISA_IS_FINITE, a.negative != b.negative, a.exp + b.exp, a.sig * b.sig};
    return product;
}

static inline isa_number isa_div_exact(isa_number a, isa_number b)
{
    isa_number quotient = {ISA_IS_FINITE, a.negative != b.negative, 0, 0};
    a = isa_with_top(a, 125);
    b = isa_with_top(b, 60);
    quotient.exp = a.exp - b.exp;
    quotient.sig = a.sig / b.sig | (a.sig % b.sig != 0);
    return quotient;
}

static inline isa_u64 isa_finish_sum(const isa_format *f, isa_number a, isa_number b, int by, uint32_t mode)
{
    isa_number sum = isa_add_exact(a, b);
    if (sum.sig == 0)
        return isa_zero_of(f, isa_rounding(f, mode) == ISA_DOWN);
    sum.exp += by;
    return isa_finish(f, sum, mode);
}

static inline bool isa_zero_sum(bool a, bool b, unsigned round)
{
    return a == b ? a : round == ISA_DOWN;
}

static inline isa_u64 isa_add(const isa_format *f, isa_u64 a, isa_u64 b, uint32_t mode)
{
    isa_number x = isa_operand_of(f, a, mode), y = isa_operand_of(f, b, mode);
    if (x.kind == ISA_IS_NAN)
        return isa_quiet(f, a);
    if (y.kind == ISA_IS_NAN)
        return isa_quiet(f, b);
    if (x.kind == ISA_IS_INFINITE || y.kind == ISA_IS_INFINITE) {
        if (x.kind == y.kind && x.negative != y.negative)
            return isa_default_nan(f);
        return isa_infinity_of(f, x.kind == ISA_IS_INFINITE ? x.negative : y.negative);
    }
    if (x.kind == ISA_IS_ZERO && y.kind == ISA_IS_ZERO)
        return isa_zero_of(f, isa_zero_sum(x.negative, y.negative, isa_rounding(f, mode)));
    if (x.kind == ISA_IS_ZERO || y.kind == ISA_IS_ZERO)
        return isa_finish(f, x.kind == ISA_IS_ZERO ? y : x, mode);
    return isa_finish_sum(f, x, y, 0, mode);
}

/* A NaN keeps its sign. */
static inline isa_u64 isa_sub(const isa_format *f, isa_u64 a, isa_u64 b, uint32_t mode)
{
    if (isa_is_nan(f, b))
        return isa_is_nan(f, a) ? isa_quiet(f, a) : isa_quiet(f, b);
    return isa_add(f, a, b ^ isa_sign_bit(f), mode);
}

static inline isa_u64 isa_mul(const isa_format *f, isa_u64 a, isa_u64 b, uint32_t mode)
{
    isa_number x = isa_operand_of(f, a, mode), y = isa_operand_of(f, b, mode);
    bool negative = x.negative != y.negative;
    if (x.kind == ISA_IS_NAN)
        return isa_quiet(f, a);
    if (y.kind == ISA_IS_NAN)
        return isa_quiet(f, b);
    if (x.kind == ISA_IS_INFINITE || y.kind == ISA_IS_INFINITE) {
        if (x.kind == ISA_IS_ZERO || y.kind == ISA_IS_ZERO)
            return isa_default_nan(f);
        return isa_infinity_of(f, negative);
    }
    if (x.kind == ISA_IS_ZERO || y.kind == ISA_IS_ZERO)
        return isa_zero_of(f, negative);
    return isa_finish(f, isa_mul_exact(x, y), mode);
}

static inline isa_u64 isa_div(const isa_format *f, isa_u64 a, isa_u64 b, uint32_t mode)
{
    isa_number x = isa_operand_of(f, a, mode), y = isa_operand_of(f, b, mode);
    bool negative = x.negative != y.negative;
    if (x.kind == ISA_IS_NAN)
        return isa_quiet(f, a);
    if (y.kind == ISA_IS_NAN)
        return isa_quiet(f, b);
    if (x.kind == y.kind && x.kind != ISA_IS_FINITE)
        return isa_default_nan(f);
    if (x.kind == ISA_IS_INFINITE || y.kind == ISA_IS_ZERO)
        return isa_infinity_of(f, negative);
    if (x.kind == ISA_IS_ZERO || y.kind == ISA_IS_INFINITE)
        return isa_zero_of(f, negative);
    return isa_finish(f, isa_div_exact(x, y), mode);
}

/* (a * b + c) * 2^by, rounded once. */
static inline isa_u64 isa_fma_ldexp(const isa_format *f, isa_u64 a, isa_u64 b, isa_u64 c, isa_u64 count, uint32_t mode)
{
    isa_number x = isa_operand_of(f, a, mode), y = isa_operand_of(f, b, mode), z = isa_operand_of(f, c, mode), product;
    bool negative = x.negative != y.negative;
    int by = (int)(int32_t)(uint32_t)count;
    by = by < -0x4000 ? -0x4000 : by > 0x4000 ? 0x4000 : by;
    if (x.kind == ISA_IS_NAN)
        return isa_quiet(f, a);
    if (y.kind == ISA_IS_NAN)
        return isa_quiet(f, b);
    if (z.kind == ISA_IS_NAN)
        return isa_quiet(f, c);
    if (x.kind == ISA_IS_INFINITE || y.kind == ISA_IS_INFINITE) {
        if (x.kind == ISA_IS_ZERO || y.kind == ISA_IS_ZERO)
            return isa_default_nan(f);
        if (z.kind == ISA_IS_INFINITE && z.negative != negative)
            return isa_default_nan(f);
        return isa_infinity_of(f, negative);
    }
    if (z.kind == ISA_IS_INFINITE)
        return isa_infinity_of(f, z.negative);
    if (x.kind == ISA_IS_ZERO || y.kind == ISA_IS_ZERO) {
        if (z.kind == ISA_IS_ZERO)
            return isa_zero_of(f, isa_zero_sum(negative, z.negative, isa_rounding(f, mode)));
        z.exp += by;
        return isa_finish(f, z, mode);
    }
    product = isa_mul_exact(x, y);
    if (z.kind == ISA_IS_ZERO) {
        product.exp += by;
        return isa_finish(f, product, mode);
    }
    return isa_finish_sum(f, product, z, by, mode);
}

static inline isa_u64 isa_fma(const isa_format *f, isa_u64 a, isa_u64 b, isa_u64 c, uint32_t mode)
{
    return isa_fma_ldexp(f, a, b, c, 0, mode);
}

/* The integer part of a square root. */
static inline isa_u128 isa_integer_root(isa_u128 x)
{
    isa_u128 root = 0;
    for (int bit = 126; bit >= 0; bit -= 2) {
        isa_u128 trial = root + ((isa_u128)1 << bit);
        bool fits = x >= trial;
        x -= fits ? trial : 0;
        root = root >> 1 | (fits ? (isa_u128)1 << bit : 0);
    }
    return root;
}

static inline isa_u64 isa_rcp(const isa_format *f, isa_u64 a, uint32_t mode)
{
    return isa_div(f, isa_one(f), a, isa_approximated(mode));
}

static inline isa_u64 isa_sqrt(const isa_format *f, isa_u64 a, uint32_t mode)
{
    isa_number x, y = {ISA_IS_FINITE, false, 0, 0};
    isa_u128 root;
    mode = isa_approximated(mode);
    x = isa_operand_of(f, a, mode);
    if (x.kind == ISA_IS_NAN)
        return isa_quiet(f, a);
    if (x.kind == ISA_IS_ZERO)
        return isa_zero_of(f, x.negative);
    if (x.negative)
        return isa_default_nan(f);
    if (x.kind == ISA_IS_INFINITE)
        return isa_infinity(f);
    x = isa_with_top(x, 124);
    if (x.exp & 1) {
        x.sig <<= 1;
        x.exp--;
    }
    root = isa_integer_root(x.sig);
    y.sig = root << 1 | (root * root != x.sig);
    y.exp = x.exp / 2 - 1;
    return isa_finish(f, y, mode);
}

static inline isa_u64 isa_rsq(const isa_format *f, isa_u64 a, uint32_t mode)
{
    isa_number x, y = {ISA_IS_FINITE, false, 0, 0};
    isa_u128 high, rest, quotient, root;
    mode = isa_approximated(mode);
    x = isa_operand_of(f, a, mode);
    if (x.kind == ISA_IS_NAN)
        return isa_quiet(f, a);
    if (x.kind == ISA_IS_ZERO)
        return isa_infinity_of(f, x.negative);
    if (x.negative)
        return isa_default_nan(f);
    if (x.kind == ISA_IS_INFINITE)
        return 0;
    x = isa_with_top(x, 59);
    if (x.exp & 1) {
        x.sig <<= 1;
        x.exp--;
    }
    /* The integer part of sqrt(2^186 / sig). */
    high = ((isa_u128)1 << 122) / x.sig;
    rest = ((isa_u128)1 << 122) % x.sig;
    quotient = (high << 64) + (rest << 64) / x.sig;
    root = isa_integer_root(quotient);
    y.sig = root << 1 | !(root * root == quotient && (rest << 64) % x.sig == 0);
    y.exp = -93 - x.exp / 2 - 1;
    return isa_finish(f, y, mode);
}

/* -1, 0 or 1; 2 with a NaN. */
static inline int isa_order(const isa_format *f, isa_u64 a, isa_u64 b, uint32_t mode)
{
    isa_i128 x, y;
    if (isa_is_nan(f, a) || isa_is_nan(f, b))
        return 2;
    a = isa_flush_input(f, a, mode);
    b = isa_flush_input(f, b, mode);
    x = (isa_i128)(a & isa_magnitude_mask(f));
    y = (isa_i128)(b & isa_magnitude_mask(f));
    x = a & isa_sign_bit(f) ? -x : x;
    y = b & isa_sign_bit(f) ? -y : y;
    return x < y ? -1 : x > y;
}

static inline isa_u64 isa_min_max(const isa_format *f, isa_u64 a, isa_u64 b, bool max, bool nan_wins, uint32_t mode)
{
    int order;
    bool first;
    a = isa_flush_input(f, a, mode);
    b = isa_flush_input(f, b, mode);
    if (isa_is_nan(f, a))
        return isa_is_nan(f, b) || nan_wins ? isa_quiet(f, a) : b;
    if (isa_is_nan(f, b))
        return nan_wins ? isa_quiet(f, b) : a;
    order = isa_order(f, a, b, mode);
    /* Equal numbers differ at most in the sign of a zero. */
    first = order == 0 ? ((a & isa_sign_bit(f)) != 0) == !max : order == (max ? 1 : -1);
    return first ? a : b;
}

static inline isa_u64 isa_integral(const isa_format *f, isa_u64 a, unsigned round, uint32_t mode)
{
    isa_number x;
    a = isa_flush_input(f, a, mode);
    x = isa_unpack(f, a);
    if (x.kind == ISA_IS_NAN)
        return isa_quiet(f, a);
    if (x.kind != ISA_IS_FINITE || x.exp >= 0)
        return a;
    x.sig = isa_round_off(x.negative, x.sig, (unsigned)-x.exp, round);
    x.exp = 0;
    return x.sig == 0 ? a & isa_sign_bit(f) : isa_pack(f, x, ISA_TOWARD_ZERO, false);
}

static inline isa_u64 isa_fract(const isa_format *f, isa_u64 a, uint32_t mode)
{
    isa_u64 floor, rest;
    if (isa_is_infinite(f, a))
        return isa_default_nan(f);
    floor = isa_integral(f, a, ISA_DOWN, mode);
    rest = isa_sub(f, a, floor, isa_with_round(mode, ISA_NEAREST));
    return isa_is_nan(f, rest) || (rest & isa_magnitude_mask(f)) < isa_one(f) ? rest : isa_one(f) - 1;
}

/* The magnitude of the nearest integer, at most 2^126. */
static inline isa_u128 isa_to_magnitude(isa_number x, unsigned round)
{
    isa_u128 limit = (isa_u128)1 << 126, magnitude;
    if (x.exp < 0)
        magnitude = isa_round_off(x.negative, x.sig, (unsigned)-x.exp, round);
    else if (x.exp >= 126 - isa_top(x.sig))
        magnitude = limit;
    else
        magnitude = x.sig << x.exp;
    return magnitude < limit ? magnitude : limit;
}

/* Rounds to an integer of `width` bits (saturating at 64 bits); a NaN gives 0. */
static inline isa_u128 isa_to_integer(const isa_format *f, isa_u64 a, unsigned width, bool is_signed, unsigned round,
                                      uint32_t mode)
{
    isa_number x = isa_operand_of(f, a, mode);
    unsigned bits = width > 64 ? 64 : width;
    isa_u128 max = isa_mask(is_signed ? bits - 1 : bits), min = is_signed ? max + 1 : 0, magnitude;
    if (x.kind == ISA_IS_NAN || x.kind == ISA_IS_ZERO)
        return 0;
    magnitude = x.kind == ISA_IS_INFINITE ? (isa_u128)1 << 126 : isa_to_magnitude(x, round);
    if (x.negative)
        return isa_negate(magnitude < min ? magnitude : min, width);
    return magnitude < max ? magnitude : max;
}

/* From an integer of `width` bits. */
static inline isa_u64 isa_from_integer(const isa_format *f, isa_u128 x, unsigned width, bool is_signed, uint32_t mode)
{
    isa_number n = {ISA_IS_FINITE, is_signed && isa_is_negative(x, width), 0, 0};
    n.sig = n.negative ? isa_negate(x, width) : x;
    return n.sig == 0 ? 0 : isa_finish(f, isa_with_top(n, 125), mode);
}

static inline isa_u64 isa_ldexp(const isa_format *f, isa_u64 a, isa_u64 count, uint32_t mode)
{
    isa_number x;
    int by = (int)(int32_t)(uint32_t)count;
    a = isa_flush_input(f, a, mode);
    x = isa_unpack(f, a);
    if (x.kind == ISA_IS_NAN)
        return isa_quiet(f, a);
    if (x.kind != ISA_IS_FINITE)
        return a;
    x.exp += by < -0x4000 ? -0x4000 : by > 0x4000 ? 0x4000 : by;
    return isa_finish(f, x, mode);
}

static inline isa_u64 isa_frexp_mant(const isa_format *f, isa_u64 a, uint32_t mode)
{
    isa_number x;
    a = isa_flush_input(f, a, mode);
    x = isa_unpack(f, a);
    if (x.kind != ISA_IS_FINITE)
        return isa_quiet(f, a);
    x.exp = -(isa_top(x.sig) + 1);
    return isa_pack(f, x, ISA_TOWARD_ZERO, false);
}

static inline isa_u64 isa_frexp_exp(const isa_format *f, isa_u64 a, uint32_t mode)
{
    isa_number x = isa_operand_of(f, a, mode);
    return x.kind == ISA_IS_FINITE ? (uint32_t)(x.exp + isa_top(x.sig) + 1) : 0;
}

static inline isa_u64 isa_convert_nan(const isa_format *from, const isa_format *to, isa_u64 a, bool quiet)
{
    isa_u64 fraction = a & isa_fraction_mask(from);
    if (to->finite_only || from->finite_only)
        return isa_infinity(to) | isa_quiet_bit(to);
    if (to->fraction_bits >= from->fraction_bits)
        fraction <<= to->fraction_bits - from->fraction_bits;
    else
        fraction >>= from->fraction_bits - to->fraction_bits;
    return isa_exponent_mask(to) | fraction | (quiet || fraction == 0 ? isa_quiet_bit(to) : 0);
}

/* Converts between formats; if `quiet`, signalling NaNs become quiet. */
static inline isa_u64 isa_convert(const isa_format *from, const isa_format *to, isa_u64 a, bool quiet, uint32_t mode)
{
    isa_number x;
    isa_u64 sign;
    a = isa_flush_input(from, a, mode);
    x = isa_unpack(from, a);
    sign = x.negative ? isa_sign_bit(to) : 0;
    switch (x.kind) {
    case ISA_IS_NAN:
        return sign | isa_convert_nan(from, to, a, quiet);
    case ISA_IS_ZERO:
        return sign;
    case ISA_IS_INFINITE:
        return sign | ((mode >> 23 & 1) != 0 && to->mode_class == ISA_FIXED ? isa_max_finite(to) : isa_infinity(to));
    default:
        return isa_finish(to, x, mode);
    }
}

/* Scales a number in [-1, 1] or [0, 1] to an integer of `width` bits. */
static inline isa_u64 isa_to_norm(const isa_format *f, isa_u64 a, bool is_signed, unsigned width, uint32_t mode)
{
    isa_number x = isa_operand_of(f, a, mode), scale = {ISA_IS_FINITE, false, 0, 0};
    isa_u64 max = isa_mask64(is_signed ? width - 1 : width);
    isa_u128 magnitude;
    if (x.kind == ISA_IS_NAN || x.kind == ISA_IS_ZERO)
        return 0;
    scale.sig = max;
    magnitude = x.kind == ISA_IS_INFINITE ? max : isa_to_magnitude(isa_mul_exact(x, scale), ISA_NEAREST);
    magnitude = magnitude < max ? magnitude : max;
    if (x.negative)
        return is_signed ? (isa_u64)isa_negate(magnitude, width) : 0;
    return (isa_u64)magnitude;
}

/* An f32 to an 8-bit float with stochastic rounding. */
static inline isa_u64 isa_to_float8_stochastic(const isa_format *to, isa_u64 a, isa_u64 seed, uint32_t mode)
{
    unsigned dropped = 23 - to->fraction_bits;
    isa_u64 magnitude = a & 0x7fffffff, cut, truncated;
    isa_number x;
    if (magnitude >= 0x7f800000)
        return isa_convert(&isa_f32, to, a, true, mode);
    cut = ((magnitude + (seed >> (32 - dropped))) & ~isa_mask64(dropped)) | (a & UINT64_C(0x80000000));
    cut &= UINT64_C(0xffffffff);
    x = isa_unpack(&isa_f32, cut);
    if (x.kind != ISA_IS_FINITE)
        return isa_convert(&isa_f32, to, cut, true, mode);
    truncated = isa_pack(to, x, ISA_TOWARD_ZERO, false);
    if ((truncated & isa_magnitude_mask(to)) == isa_max_finite(to))
        return isa_convert(&isa_f32, to, cut, true, mode);
    return truncated;
}

static inline double isa_to_double(const isa_format *f, isa_u64 a)
{
    isa_u64 bits = isa_convert(f, &isa_f64, a, true, ISA_KEEP);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline isa_u64 isa_from_double(const isa_format *f, double value)
{
    isa_u64 bits;
    memcpy(&bits, &value, sizeof bits);
    return isa_convert(&isa_f64, f, bits, true, ISA_KEEP);
}

/* Sine or cosine of an argument in turns, by the quarter that it is in. */
static inline double isa_turns(double x, bool cosine)
{
    double turn = 6.283185307179586476925286766559, fraction = x - floor(x), quarter = floor(fraction * 4 + 0.5);
    double angle = (fraction - quarter * 0.25) * turn;
    int which = (int)quarter + (cosine ? 1 : 0);
    double value = which & 1 ? cos(angle) : sin(angle);
    return which & 2 ? 0 - value : value;
}

typedef enum { ISA_EXP2, ISA_LOG2, ISA_SIN, ISA_COS, ISA_TANH } isa_function_name;

/* What hardware approximates; to nearest even in every mode. */
static inline isa_u64 isa_approximate(isa_function_name name, const isa_format *f, isa_u64 a, uint32_t mode)
{
    bool single = f->exponent_bits == 8 && f->fraction_bits == 23 && name != ISA_SIN;
    isa_u64 result;
    isa_number x;
    double value;
    a = single ? isa_flush(f, a) : isa_flush_input(f, a, mode);
    x = isa_unpack(f, a);
    value = isa_to_double(f, a);
    if (x.kind == ISA_IS_NAN)
        return isa_quiet(f, a);
    if ((name == ISA_SIN || name == ISA_COS) && x.kind == ISA_IS_INFINITE)
        return isa_default_nan(f);
    if (name == ISA_LOG2 && x.negative && x.kind != ISA_IS_ZERO)
        return isa_default_nan(f);
    if ((name == ISA_SIN || name == ISA_TANH) && x.kind == ISA_IS_ZERO)
        return a;
    if (name == ISA_LOG2 && x.kind == ISA_IS_ZERO)
        return isa_infinity_of(f, true);
    switch (name) {
    case ISA_EXP2:
        value = exp2(value);
        break;
    case ISA_LOG2:
        value = log2(value);
        break;
    case ISA_TANH:
        value = tanh(value);
        break;
    default:
        value = isa_turns(value, name == ISA_COS);
        /* An exact zero is positive. */
        value = value == 0 ? 0 : value;
        break;
    }
    result = isa_from_double(f, value);
    return single ? isa_flush(f, result) : isa_flush_output(f, result, mode);
}

/* A power of floats. Powers of two and small integer powers are exact or rounded once. */
static inline isa_u64 isa_float_power(const isa_format *f, isa_u64 base, isa_u64 power, const isa_format *power_format,
                                      uint32_t mode)
{
    bool two = base == isa_from_double(f, 2.0);
    if (power_format == NULL) {
        int n = (int)(int32_t)(uint32_t)power;
        if (two)
            return isa_ldexp(f, isa_one(f), power, mode);
        if (n == 0)
            return isa_one(f);
        if (n == 1)
            return base;
        return n == 2 ? isa_mul(f, base, base, mode) : isa_from_double(f, pow(isa_to_double(f, base), n));
    }
    if (two && power_format == f)
        return isa_approximate(ISA_EXP2, f, power, mode);
    return isa_from_double(f, pow(isa_to_double(f, base), isa_to_double(power_format, power)));
}
