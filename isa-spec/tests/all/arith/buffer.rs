//! Buffer formats: the table's shape, and conversions both ways.

use isa_spec::arith::buffer_format::{Number, by_number};
use isa_spec::arith::*;

fn float(x: f32) -> u32 {
    x.to_bits()
}

/// The widths in a format's name are those of the row, high bits first, and every element has a whole number
/// of bytes.
#[test]
fn names_agree_with_rows() {
    for number in 1..=63 {
        let format = by_number(number).unwrap();
        let mut parts: Vec<&str> = format.name.split('_').collect();
        let kind = parts.pop().unwrap();
        let expected = match kind {
            "UNORM" => Number::Unorm,
            "SNORM" => Number::Snorm,
            "USCALED" => Number::Uscaled,
            "SSCALED" => Number::Sscaled,
            "UINT" => Number::Uint,
            "SINT" => Number::Sint,
            _ => Number::Float,
        };
        assert_eq!(format.number, expected, "{}", format.name);
        let widths: Vec<u8> = parts.iter().rev().map(|w| w.parse().unwrap()).collect();
        assert_eq!(format.widths, widths, "{}", format.name);
        assert!([1, 2, 4, 8, 12, 16].contains(&format.size_bytes()), "{}", format.name);
    }
    // Those that follow are formats of images; these are none, or blocks of texels.
    for number in [0, 73, 74, 82, 89, 109, 115, 122, 205, 206] {
        assert!(by_number(number).is_none(), "{number}");
    }

    assert_eq!(by_number(22).unwrap().name, "32_FLOAT");
    assert_eq!(by_number(36).unwrap().name, "2_10_10_10_UNORM");
    assert_eq!(by_number(63).unwrap().name, "32_32_32_32_FLOAT");
}

#[test]
fn reads() {
    // 8_8_8_8_UNORM
    assert_eq!(from_format(42, 0x8000_80ff, 0), float(1.0));
    assert_eq!(from_format(42, 0x8000_80ff, 1), float(128.0 / 255.0));
    assert_eq!(from_format(42, 0x8000_80ff, 2), 0);
    // 8_8_SNORM: -128 and -127 are both -1; missing Z is 0, missing W is 1.
    assert_eq!(from_format(15, 0x8180, 0), float(-1.0));
    assert_eq!(from_format(15, 0x8180, 1), float(-1.0));
    assert_eq!((from_format(15, 0x8180, 2), from_format(15, 0x8180, 3)), (0, float(1.0)));
    // 2_10_10_10_SINT: X in the low bits, W in the top two.
    assert_eq!(from_format(41, 0x8000_03ff, 0) as i32, -1);
    assert_eq!(from_format(41, 0x8000_03ff, 3) as i32, -2);
    // 16_16_SSCALED, 8_USCALED, 16_UINT (missing W is the integer one)
    assert_eq!(from_format(26, 0xfffe_0003, 1), float(-2.0));
    assert_eq!(from_format(3, 200, 0), float(200.0));
    assert_eq!(from_format(11, 7, 3), 1);
    // 10_11_11_FLOAT: 1.0 is exponent 15.
    assert_eq!(from_format(30, 15 << 6, 0), float(1.0));
    assert_eq!(from_format(30, (15 << 5 | 16) << 22, 2), float(1.5));
    assert_eq!(from_format(30, 1, 0), float(2f32.powi(-20)));
    assert_eq!(from_format(30, 31 << 6, 0), float(f32::INFINITY));
    // 32_FLOAT copies the bits, including signalling NaNs.
    assert_eq!(from_format(22, 0x7f80_0001, 0), 0x7f80_0001);
    assert_eq!(from_format(0, 0xff, 0), 0);
}

#[test]
fn reads_16() {
    // A 32-bit float is truncated, other formats round to nearest even once.
    assert_eq!(from_format16(22, 0x3f80_1fff, 0), 0x3c00);
    assert_eq!(from_format16(7, 0xfffe, 0), 0x3c00);
    assert_eq!(from_format16(42, 0xff, 0), 0x3c00);
    assert_eq!(from_format16(13, 0x7c01, 0), 0x7c01);
    assert_eq!(from_format16(12, 0x8000, 0), 0x8000);
    assert_eq!((from_format16(1, 0, 3), from_format16(5, 0, 3)), (0x3c00, 1));
}

#[test]
fn writes() {
    let pack = |c: [u32; 4]| c.iter().rev().fold(0u128, |sum, &x| sum << 32 | x as u128);
    // 8_8_8_8_UNORM: clamped, nearest even, NaN 0.
    let rgba = pack([float(1.5), float(-1.0), float(0.5), float(f32::NAN)]);
    assert_eq!(to_format(42, rgba), 0x0080_00ff);
    // 10_10_10_2_UINT saturates; X is the low two bits.
    assert_eq!(to_format(34, pack([7, 2000, 1, 3])), 3 << 22 | 1 << 12 | 1023 << 2 | 3);
    // 8_8_SINT
    assert_eq!(to_format(19, pack([-200i32 as u32, 100, 0, 0])), 0x6480);
    // 16_16_FLOAT to nearest even.
    assert_eq!(to_format(29, pack([float(1.0), float(65520.0), 0, 0])), 0x7c00_3c00);
    // 10_11_11_FLOAT: toward zero, no negatives, largest finite number beyond the range.
    let small = pack([float(1e9), float(-2.0), float(1.999), 0]);
    assert_eq!(to_format(30, small), (15 << 5 | 31) << 22 | (30 << 6 | 63));
    // 8_USCALED, 8_SSCALED
    assert_eq!(to_format(3, pack([float(300.0), 0, 0, 0])), 255);
    assert_eq!(to_format(4, pack([float(-300.0), 0, 0, 0])), 0x80);
    assert_eq!(to_format(0, u128::MAX), 0);
}

#[test]
fn writes_16() {
    // f16 1.0 and -1.0 to 8_8_SNORM.
    assert_eq!(to_format16(15, 0xbc00_3c00), 0x817f);
    // A 16-bit integer is extended by the format's sign: 32_32_SINT and 32_32_UINT.
    assert_eq!(to_format16(49, 0x8000_ffff), 0xffff_8000_ffff_ffff);
    assert_eq!(to_format16(48, 0x8000_ffff), 0x0000_8000_0000_ffff);
    // f16 widened to 32_FLOAT.
    assert_eq!(to_format16(22, 0x3c00), float(1.0) as u128);
}

/// Reading an element and writing it back returns the same element.
#[test]
fn round_trips() {
    let mut seed = 1u128;
    for number in 1..=63 {
        let format = by_number(number).unwrap();
        for _ in 0..200 {
            seed = seed
                .wrapping_mul(0x2545_f491_4f6c_dd1d_5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            let bits = format.size_bytes() * 8;
            let element = (seed ^ seed >> 64) & mask(bits);
            let components: Vec<u32> = (0..4).map(|i| from_format(number, element, i)).collect();
            let packed = components.iter().rev().fold(0u128, |sum, &x| sum << 32 | x as u128);
            let back = to_format(number, packed);
            let again: Vec<u32> = (0..4).map(|i| from_format(number, back, i)).collect();
            // NaN payloads and the second pattern of -1.0 may change; the values may not.
            let nan = |x: u32| f32::from_bits(x).is_nan();
            let integer = matches!(format.number, Number::Uint | Number::Sint);
            for (a, b) in components.iter().zip(&again) {
                assert!(a == b || !integer && nan(*a) && nan(*b), "{} {element:x}", format.name);
            }
        }
    }
}

/// How a component is read, for code that reads it of many elements, is how `from_format` reads it.
#[test]
fn components_are_those_of_from_format() {
    let mut seen = [0; 4];
    let mut element = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210u128;
    for number in 0..=255 {
        for index in 0..=5 {
            for _ in 0..8 {
                element = element.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                let field = |offset: u32, width: u32| {
                    assert!(offset % 32 + width <= 32, "{number} {index}");
                    (element >> offset) as u32 & ((1u64 << width) - 1) as u32
                };
                let (kind, value) = match component(number, index) {
                    Component::Unorm { offset, width } => {
                        let most = ((1u64 << width) - 1) as f32;
                        (0, Some((field(offset, width) as f32 / most).to_bits()))
                    }
                    Component::Bits { offset, width } => (1, Some(field(offset, width))),
                    Component::Missing(value) => (2, Some(value)),
                    Component::Other => (3, None),
                };
                seen[kind] += 1;
                if let Some(value) = value {
                    assert_eq!(value, from_format(number, element, index), "{number} {index} {element:x}");
                }
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}
