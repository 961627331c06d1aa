/* Elements of typed buffers, by their format's number; and segments of 2/pi. */

static inline bool isa_has_format(isa_u64 number)
{
    return number < sizeof isa_buffer_formats / sizeof *isa_buffer_formats;
}

static inline isa_u64 isa_format_bytes(isa_u64 number)
{
    isa_u64 bits = 0;
    for (unsigned k = 0; isa_has_format(number) && k < isa_buffer_formats[number].count; k++)
        bits += isa_buffer_formats[number].widths[k];
    return bits / 8;
}

/* The float format of a component; those of 10 and 11 bits have no sign. */
static inline isa_format isa_component_format(unsigned width)
{
    isa_format f = isa_f16;
    if (width == 32)
        return isa_f32;
    if (width != 16) {
        f.fraction_bits = width - 5;
        f.mode_class = ISA_FIXED;
        f.overflow_clamps = false;
    }
    return f;
}

static inline isa_u64 isa_from_norm(const isa_format *f, isa_u64 magnitude, bool negative, isa_u64 scale)
{
    isa_number x = {ISA_IS_FINITE, negative, 0, 0}, y = {ISA_IS_FINITE, false, 0, 0};
    x.sig = magnitude < scale ? magnitude : scale;
    y.sig = scale;
    if (x.sig == 0)
        return 0;
    return isa_pack(f, isa_div_exact(x, y), ISA_NEAREST, false);
}

/* Component `index` of an element, as an integer or a float of the register's format. */
static inline isa_u64 isa_read_component(const isa_format *f, isa_u64 number, isa_u128 element, isa_u64 index)
{
    const isa_buffer_format *format;
    unsigned offset = 0, width;
    isa_u64 bits, value;
    bool negative;
    isa_format from;
    if (!isa_has_format(number) || isa_buffer_formats[number].count == 0)
        return 0;
    format = &isa_buffer_formats[number];
    if (index >= format->count) {
        if (index != 3)
            return 0;
        return format->number == ISA_UINT || format->number == ISA_SINT ? 1 : isa_one(f);
    }
    for (unsigned k = 0; k < index; k++)
        offset += format->widths[k];
    width = format->widths[index];
    bits = (isa_u64)(element >> offset) & isa_mask64(width);
    value = isa_sign_extend64(bits, width, 32);
    negative = isa_is_negative(bits, width);
    switch (format->number) {
    case ISA_UINT:
        return bits;
    case ISA_SINT:
        return value;
    case ISA_USCALED:
        return isa_from_integer(f, bits, 32, false, ISA_KEEP);
    case ISA_SSCALED:
        return isa_from_integer(f, value, 32, true, ISA_KEEP);
    case ISA_UNORM:
        return isa_from_norm(f, bits, false, isa_mask64(width));
    case ISA_SNORM:
        return isa_from_norm(f, (isa_u64)isa_absolute(value, 32), negative, isa_mask64(width - 1));
    default:
        from = isa_component_format(width);
        if (from.exponent_bits == f->exponent_bits && from.fraction_bits == f->fraction_bits)
            return bits;
        return isa_convert(&from, f, bits, true,
                           width == 32 ? isa_with_round(ISA_KEEP, ISA_TOWARD_ZERO) : ISA_KEEP);
    }
}

static inline isa_u64 isa_small_float(const isa_format *f, isa_u64 value, unsigned width)
{
    isa_format to = isa_component_format(width);
    isa_number x = isa_unpack(f, value);
    if (x.kind == ISA_IS_NAN)
        return isa_infinity(&to) | isa_quiet_bit(&to);
    if (x.negative || x.kind == ISA_IS_ZERO)
        return 0;
    return x.kind == ISA_IS_INFINITE ? isa_infinity(&to) : isa_pack(&to, x, ISA_TOWARD_ZERO, false);
}

static inline isa_u64 isa_encode_component(const isa_format *f, int number, unsigned width, isa_u64 value)
{
    isa_format to;
    switch (number) {
    case ISA_UINT:
        return (isa_u64)isa_narrow(value, 32, false, width, false, true);
    case ISA_SINT:
        return (isa_u64)isa_narrow(value, 32, true, width, true, true);
    case ISA_USCALED:
        return (isa_u64)isa_to_integer(f, value, width, false, ISA_NEAREST, ISA_KEEP);
    case ISA_SSCALED:
        return (isa_u64)isa_to_integer(f, value, width, true, ISA_NEAREST, ISA_KEEP);
    case ISA_UNORM:
        return isa_to_norm(f, value, false, width, ISA_KEEP);
    case ISA_SNORM:
        return isa_to_norm(f, value, true, width, ISA_KEEP);
    default:
        if (width < 16)
            return isa_small_float(f, value, width);
        to = isa_component_format(width);
        if (to.exponent_bits == f->exponent_bits && to.fraction_bits == f->fraction_bits)
            return value;
        return isa_convert(f, &to, value, true, ISA_KEEP);
    }
}

/* An element of four components, which have `bits` bits each. */
static inline isa_u128 isa_write_element(const isa_format *f, isa_u64 number, isa_u128 components, unsigned bits)
{
    const isa_buffer_format *format;
    isa_u128 element = 0;
    unsigned offset = 0;
    if (!isa_has_format(number))
        return 0;
    format = &isa_buffer_formats[number];
    for (unsigned k = 0; k < format->count; k++) {
        isa_u64 value = (isa_u64)(components >> (bits * k)) & isa_mask64(bits);
        if (format->number == ISA_SINT)
            value = isa_sign_extend64(value, bits, 32);
        value = isa_encode_component(f, format->number, format->widths[k], value);
        element |= (isa_u128)(value & isa_mask64(format->widths[k])) << offset;
        offset += format->widths[k];
    }
    return element;
}

static inline isa_u64 isa_from_format(isa_u64 number, isa_u128 element, isa_u64 index)
{
    return isa_read_component(&isa_f32, number, element, index);
}

static inline isa_u64 isa_from_format16(isa_u64 number, isa_u128 element, isa_u64 index)
{
    return isa_read_component(&isa_f16, number, element, index) & 0xffff;
}

static inline isa_u128 isa_to_format(isa_u64 number, isa_u128 components)
{
    return isa_write_element(&isa_f32, number, components, 32);
}

static inline isa_u128 isa_to_format16(isa_u64 number, isa_u128 components)
{
    return isa_write_element(&isa_f16, number, components, 16);
}

static inline isa_u64 isa_two_over_pi_word(unsigned at)
{
    unsigned count = sizeof isa_two_over_pi / sizeof *isa_two_over_pi;
    return at < count ? isa_two_over_pi[at] : 0;
}

/* A segment of 2/pi for an argument, scaled. */
static inline isa_u64 isa_trig_preop(isa_u64 a, isa_u64 segment, uint32_t mode)
{
    unsigned exponent = (unsigned)isa_exponent_field(&isa_f64, a);
    unsigned shift = (unsigned)(segment & 31) * 53 + (exponent > 1077 ? exponent - 1077 : 0);
    isa_u128 window = isa_wide(isa_two_over_pi_word(shift / 64), isa_two_over_pi_word(shift / 64 + 1));
    isa_u64 bits = (isa_u64)((window << (shift % 64)) >> 75);
    int scale = -53 - (int)shift + (exponent >= 1968 ? 128 : 0);
    return isa_ldexp(&isa_f64, isa_from_integer(&isa_f64, bits, 64, false, ISA_KEEP), (uint32_t)scale, mode);
}
