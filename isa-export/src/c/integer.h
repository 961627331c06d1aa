/* Integers of any width up to 128 bits, in the low bits of 64 or 128 bits; the bits above are zero. */

typedef uint64_t isa_u64;
__extension__ typedef unsigned __int128 isa_u128;
__extension__ typedef __int128 isa_i128;

/* The low `width` bits. */
static inline isa_u64 isa_mask64(unsigned width)
{
    return width >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1;
}

static inline isa_u128 isa_mask(unsigned width)
{
    return width >= 128 ? ~(isa_u128)0 : ((isa_u128)1 << width) - 1;
}

static inline isa_u128 isa_wide(isa_u64 high, isa_u64 low)
{
    return (isa_u128)high << 64 | low;
}

/* Shifts by any count; beyond the width, nothing is left. */
static inline isa_u64 isa_shl64(isa_u64 x, isa_u64 count, unsigned width)
{
    return count >= width ? 0 : (x << count) & isa_mask64(width);
}

static inline isa_u128 isa_shl(isa_u128 x, isa_u64 count, unsigned width)
{
    return count >= width ? 0 : (x << count) & isa_mask(width);
}

static inline isa_u64 isa_shr64(isa_u64 x, isa_u64 count)
{
    return count >= 64 ? 0 : x >> count;
}

static inline isa_u128 isa_shr(isa_u128 x, isa_u64 count)
{
    return count >= 128 ? 0 : x >> count;
}

/* Copies bit `from - 1` to the bits from `from` to `to - 1`. */
static inline isa_u128 isa_sign_extend(isa_u128 x, unsigned from, unsigned to)
{
    if (from >= to || from == 0 || (x >> (from - 1) & 1) == 0)
        return x & isa_mask(to);
    return (x | ~isa_mask(from)) & isa_mask(to);
}

static inline isa_u64 isa_sign_extend64(isa_u64 x, unsigned from, unsigned to)
{
    return (isa_u64)isa_sign_extend(x, from, to);
}

/* Shifts right by any count, with copies of the sign. */
static inline isa_u128 isa_sar(isa_u128 x, isa_u64 count, unsigned width)
{
    isa_u128 wide = isa_sign_extend(x, width, 128), sign = wide >> 127 ? ~(isa_u128)0 : 0;
    if (count >= 128)
        return sign & isa_mask(width);
    return (count == 0 ? wide : wide >> count | sign << (128 - count)) & isa_mask(width);
}

static inline bool isa_equal(isa_u128 a, isa_u128 b)
{
    return a == b;
}

static inline bool isa_less(isa_u128 a, isa_u128 b)
{
    return a < b;
}

/* Signed numbers of `width` bits. */
static inline bool isa_less_signed(isa_u128 a, isa_u128 b, unsigned width)
{
    isa_u128 sign = (isa_u128)1 << (width - 1);
    return (a ^ sign) < (b ^ sign);
}

/* A quotient by zero is all ones. */
static inline isa_u128 isa_divide(isa_u128 a, isa_u128 b, unsigned width)
{
    return b == 0 ? isa_mask(width) : a / b;
}

/* A remainder by zero is the dividend. */
static inline isa_u128 isa_remainder(isa_u128 a, isa_u128 b)
{
    return b == 0 ? a : a % b;
}

static inline isa_u128 isa_negate(isa_u128 a, unsigned width)
{
    return (0 - a) & isa_mask(width);
}

static inline bool isa_is_negative(isa_u128 a, unsigned width)
{
    return (a >> (width - 1) & 1) != 0;
}

static inline isa_u128 isa_absolute(isa_u128 a, unsigned width)
{
    return isa_is_negative(a, width) ? isa_negate(a, width) : a;
}

static inline isa_u128 isa_divide_signed(isa_u128 a, isa_u128 b, unsigned width)
{
    isa_u128 quotient;
    if (b == 0)
        return isa_mask(width);
    quotient = isa_absolute(a, width) / isa_absolute(b, width);
    return isa_is_negative(a, width) != isa_is_negative(b, width) ? isa_negate(quotient, width) : quotient;
}

static inline isa_u128 isa_remainder_signed(isa_u128 a, isa_u128 b, unsigned width)
{
    isa_u128 rest;
    if (b == 0)
        return a;
    rest = isa_absolute(a, width) % isa_absolute(b, width);
    return isa_is_negative(a, width) ? isa_negate(rest, width) : rest;
}

/* A power; `power` has `bits` bits, and a negative one returns 0. */
static inline isa_u128 isa_integer_power(isa_u128 base, isa_u128 power, unsigned bits, bool is_signed, unsigned width)
{
    isa_u128 result = 1;
    if (is_signed && isa_is_negative(power, bits))
        return 0;
    for (; power != 0; power >>= 1, base *= base) {
        if (power & 1)
            result *= base;
    }
    return result & isa_mask(width);
}

/* Replaces `width` bits from `lo` on, of a value of `of` bits; those beyond the end are dropped. */
static inline isa_u128 isa_insert(isa_u128 old, isa_u128 value, isa_u64 lo, unsigned width, unsigned of)
{
    isa_u128 bits = lo >= of ? 0 : (isa_mask(width) << lo) & isa_mask(of);
    return lo >= of ? old : (old & ~bits) | ((value << lo) & bits);
}

/* Elements of arrays: an index out of range reads 0 and writes nothing. */
static inline isa_u64 isa_element64(const isa_u64 *array, unsigned count, isa_u64 index)
{
    return index < count ? array[index] : 0;
}

static inline isa_u128 isa_element(const isa_u128 *array, unsigned count, isa_u64 index)
{
    return index < count ? array[index] : 0;
}

static inline void isa_set_element64(isa_u64 *array, unsigned count, isa_u64 index, isa_u64 value)
{
    if (index < count)
        array[index] = value;
}

static inline void isa_set_element(isa_u128 *array, unsigned count, isa_u64 index, isa_u128 value)
{
    if (index < count)
        array[index] = value;
}

/* The position of the highest bit of a value that is not 0. */
static inline int isa_top(isa_u128 x)
{
    isa_u64 high = (isa_u64)(x >> 64);
    return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll((isa_u64)x);
}

static inline isa_u64 isa_count_ones(isa_u128 x)
{
    return (isa_u64)(__builtin_popcountll((isa_u64)x) + __builtin_popcountll((isa_u64)(x >> 64)));
}

static inline isa_u64 isa_leading_zeros(isa_u128 x, unsigned width)
{
    return x == 0 ? width : width - 1 - (unsigned)isa_top(x);
}

static inline isa_u64 isa_trailing_zeros(isa_u128 x, unsigned width)
{
    return x == 0 ? width : (unsigned)isa_top(x & (0 - x));
}

static inline isa_u128 isa_reverse_bits(isa_u128 x, unsigned width)
{
    isa_u128 result = 0;
    for (unsigned k = 0; k < width; k++)
        result = result << 1 | (x >> k & 1);
    return result;
}

/* The low `count` bits as a signed number. */
static inline isa_u128 isa_sign_extend_from(isa_u128 x, isa_u64 count, unsigned width)
{
    if (count == 0)
        return 0;
    return count >= width ? x : isa_sign_extend(x & isa_mask((unsigned)count), (unsigned)count, width);
}

/* Each byte of `at` selects a byte of `high:low`; 8 and above give zero. */
static inline isa_u64 isa_select_bytes(isa_u64 high, isa_u64 low, isa_u64 at)
{
    isa_u64 table = high << 32 | low, result = 0;
    for (unsigned k = 0; k < 32; k += 8) {
        isa_u64 from = at >> k & 0xff;
        result |= (from < 8 ? table >> (8 * from) & 0xff : 0) << k;
    }
    return result;
}

/* Converts an integer of `from` bits to `width` bits: saturates if `clamp`, else wraps. */
static inline isa_u128 isa_narrow(isa_u128 x, unsigned from, bool from_signed, unsigned width, bool is_signed,
                                  bool clamp)
{
    isa_u128 max = isa_mask(is_signed ? width - 1 : width);
    if (!clamp)
        return x & isa_mask(width);
    if (from_signed && isa_is_negative(x, from)) {
        isa_u128 magnitude = isa_negate(x, from);
        if (!is_signed)
            return 0;
        return isa_negate(magnitude > max + 1 ? max + 1 : magnitude, width);
    }
    return x > max ? max : x;
}
