//! The meaning of every vector instruction, without a line of the code generator's. Of floats, it knows rounding to
//! nearest, with denormals or without.

#![allow(dead_code, reason = "not every test uses everything")]

use super::eval::{Vector, wide};
use wavesim_x64::Code;

fn words(a: Vector, b: Vector, f: impl Fn(u32, u32) -> u32) -> Vector {
    std::array::from_fn(|i| f(a[i], b[i]))
}

pub fn to_bytes(v: Vector) -> [u8; 32] {
    std::array::from_fn(|i| v[i / 4].to_le_bytes()[i % 4])
}

pub fn from_bytes(v: [u8; 32]) -> Vector {
    std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|k| v[4 * i + k])))
}

fn bytes(a: Vector, b: Vector, f: impl Fn(u8, u8) -> u8) -> Vector {
    let (a, b) = (to_bytes(a), to_bytes(b));
    from_bytes(std::array::from_fn(|i| f(a[i], b[i])))
}

fn to_halves(v: Vector) -> [u16; 16] {
    std::array::from_fn(|i| (v[i / 2] >> (16 * (i & 1))) as u16)
}

fn from_halves(v: [u16; 16]) -> Vector {
    std::array::from_fn(|i| u32::from(v[2 * i]) | u32::from(v[2 * i + 1]) << 16)
}

pub fn doubles(v: Vector) -> [u64; 4] {
    std::array::from_fn(|i| u64::from(v[2 * i]) | u64::from(v[2 * i + 1]) << 32)
}

pub fn from_doubles(v: [u64; 4]) -> Vector {
    std::array::from_fn(|i| (v[i / 2] >> (32 * (i & 1))) as u32)
}

fn mask(yes: bool) -> u32 {
    if yes { u32::MAX } else { 0 }
}

fn mask_wide(yes: bool) -> u64 {
    if yes { u64::MAX } else { 0 }
}

/// Applies a function to the elements that are selected from each half, four words of it.
fn each_half(a: Vector, b: Vector, f: impl Fn(&[u32], &[u32]) -> [u32; 4]) -> Vector {
    let [low, high] = [0, 4].map(|at| f(&a[at..at + 4], &b[at..at + 4]));
    std::array::from_fn(|i| if i < 4 { low[i] } else { high[i - 4] })
}

/// Returns the float without denormals, and the rules for NaNs of one format.
macro_rules! format {
    ($module:ident $bits:ident $float:ident $quiet:literal $infinity:literal $least:literal) => {
        pub mod $module {
            const SIGN: $bits = 1 << ($bits::BITS - 1);

            pub fn daz(x: $bits, zeros: bool) -> $bits {
                if zeros && x & !SIGN < $least { x & SIGN } else { x }
            }

            pub fn is_nan(x: $bits) -> bool {
                x & !SIGN > $infinity
            }

            /// Returns the first NaN, made quiet, or the result, whose NaN is negative.
            pub fn result(operands: &[$bits], f: impl Fn(&[$float]) -> $float) -> $bits {
                if let Some(nan) = operands.iter().find(|x| is_nan(**x)) {
                    return nan | $quiet;
                }
                let floats: Vec<$float> = operands.iter().map(|x| $float::from_bits(*x)).collect();
                let result = f(&floats);
                if result.is_nan() { SIGN | $infinity | $quiet } else { result.to_bits() }
            }

            pub fn compare(a: $bits, b: $bits, imm: u8) -> bool {
                let (x, y) = ($float::from_bits(a), $float::from_bits(b));
                let unordered = x.is_nan() || y.is_nan();
                let holds = match imm & 3 {
                    0 => x == y,
                    1 => x < y,
                    2 => x <= y,
                    _ => unordered,
                };
                match imm & 15 {
                    0..4 => holds,
                    4..8 => !holds,
                    8 => unordered || x == y,
                    9 => unordered || x < y,
                    10 => unordered || x <= y,
                    11 => false,
                    12 => !unordered && x != y,
                    13 => x >= y,
                    14 => x > y,
                    _ => true,
                }
            }

            pub fn round(x: $bits, imm: u8) -> $bits {
                result(&[x], |x| match imm & 7 {
                    1 => x[0].floor(),
                    2 => x[0].ceil(),
                    3 => x[0].trunc(),
                    _ => x[0].round_ties_even(),
                })
            }
        }
    };
}

format!(single u32 f32 0x0040_0000 0x7f80_0000 0x0080_0000);
format!(double u64 f64 0x0008_0000_0000_0000 0x7ff0_0000_0000_0000 0x0010_0000_0000_0000);

fn half_to_single(half: u16) -> u32 {
    let sign = u32::from(half & 0x8000) << 16;
    let (exponent, fraction) = (half >> 10 & 31, u32::from(half & 0x3ff));
    match exponent {
        0 => sign | (fraction as f32 / (1 << 24) as f32).to_bits(),
        31 if fraction == 0 => sign | 0x7f80_0000,
        31 => sign | 0x7fc0_0000 | fraction << 13,
        _ => sign | (u32::from(exponent) + 112) << 23 | fraction << 13,
    }
}

/// Rounds to nearest (0) or toward zero (3).
fn single_to_half(bits: u32, imm: u8) -> u16 {
    let sign = (bits >> 16 & 0x8000) as u16;
    if single::is_nan(bits) {
        return sign | 0x7e00 | (bits >> 13 & 0x3ff) as u16;
    }
    let magnitude = f64::from(f32::from_bits(bits & 0x7fff_ffff));
    if magnitude.is_infinite() {
        return sign | 0x7c00;
    }
    // In units of the least f16 in this binade.
    let exponent = if magnitude < 1.0 / 16384.0 { -24 } else { (bits >> 23 & 0xff) as i32 - 127 - 10 };
    let scaled = magnitude * (-f64::from(exponent)).exp2();
    let units = if imm == 0 { scaled.round_ties_even() } else { scaled.trunc() } as u64;
    let half = if exponent == -24 { units } else { units + ((exponent + 24) as u64 * 0x400) };
    sign | half.min(if imm == 0 { 0x7c00 } else { 0x7bff }) as u16
}

fn truncated(value: f64) -> u32 {
    if value.trunc() >= -2147483648.0 && value.trunc() < 2147483648.0 { value as i32 as u32 } else { 1 << 31 }
}

/// Returns the result of an instruction; `b` is the only source of those of one. If `zeros`, denormals are flushed.
/// `None` for an estimate.
pub fn meaning(code: Code, imm: u8, a: Vector, b: Vector, zeros: bool) -> Option<Vector> {
    use Code::*;
    let fields = [0, 2, 4, 6].map(|at| usize::from(imm >> at & 3));
    let singles = |f: &dyn Fn(&[f32]) -> f32| {
        words(a, b, |x, y| single::result(&[single::daz(x, zeros), single::daz(y, zeros)], f))
    };
    let doubles_of = |f: &dyn Fn(&[f64]) -> f64| {
        wide(a, b, |x, y| double::result(&[double::daz(x, zeros), double::daz(y, zeros)], f))
    };
    let select = |f: &dyn Fn(f32, f32) -> bool| {
        words(a, b, |x, y| {
            let (x, y) = (single::daz(x, zeros), single::daz(y, zeros));
            if f(f32::from_bits(x), f32::from_bits(y)) { x } else { y }
        })
    };
    let select_wide = |f: &dyn Fn(f64, f64) -> bool| {
        wide(a, b, |x, y| {
            let (x, y) = (double::daz(x, zeros), double::daz(y, zeros));
            if f(f64::from_bits(x), f64::from_bits(y)) { x } else { y }
        })
    };
    let shift = |count: u64, bits: u32, f: &dyn Fn(u32, u32) -> u32| {
        b.map(|x| if count < u64::from(bits) { f(x, count as u32) } else { 0 })
    };
    let pack = |most: i64, least: i64| {
        let saturated = |x: u32| i64::from(x as i32).clamp(least, most) as u16;
        from_halves(std::array::from_fn(|i| {
            let from = if i & 4 == 0 { a } else { b };
            saturated(from[i / 8 * 4 + (i & 3)])
        }))
    };
    Some(match code {
        VEX_Vaddps_ymm_ymm_ymmm256 => singles(&|x| x[0] + x[1]),
        VEX_Vsubps_ymm_ymm_ymmm256 => singles(&|x| x[0] - x[1]),
        VEX_Vmulps_ymm_ymm_ymmm256 => singles(&|x| x[0] * x[1]),
        VEX_Vdivps_ymm_ymm_ymmm256 => singles(&|x| x[0] / x[1]),
        VEX_Vminps_ymm_ymm_ymmm256 => select(&|x, y| x < y),
        VEX_Vmaxps_ymm_ymm_ymmm256 => select(&|x, y| x > y),
        VEX_Vaddpd_ymm_ymm_ymmm256 => doubles_of(&|x| x[0] + x[1]),
        VEX_Vsubpd_ymm_ymm_ymmm256 => doubles_of(&|x| x[0] - x[1]),
        VEX_Vmulpd_ymm_ymm_ymmm256 => doubles_of(&|x| x[0] * x[1]),
        VEX_Vdivpd_ymm_ymm_ymmm256 => doubles_of(&|x| x[0] / x[1]),
        VEX_Vminpd_ymm_ymm_ymmm256 => select_wide(&|x, y| x < y),
        VEX_Vmaxpd_ymm_ymm_ymmm256 => select_wide(&|x, y| x > y),
        VEX_Vcmpps_ymm_ymm_ymmm256_imm8 => {
            words(a, b, |x, y| mask(single::compare(single::daz(x, zeros), single::daz(y, zeros), imm)))
        }
        VEX_Vcmppd_ymm_ymm_ymmm256_imm8 => {
            wide(a, b, |x, y| mask_wide(double::compare(double::daz(x, zeros), double::daz(y, zeros), imm)))
        }
        VEX_Vsqrtps_ymm_ymmm256 => b.map(|x| single::result(&[single::daz(x, zeros)], |x| x[0].sqrt())),
        VEX_Vsqrtpd_ymm_ymmm256 => {
            wide(b, b, |x, _| double::result(&[double::daz(x, zeros)], |x| x[0].sqrt()))
        }
        VEX_Vroundps_ymm_ymmm256_imm8 => b.map(|x| single::round(single::daz(x, zeros), imm)),
        VEX_Vroundpd_ymm_ymmm256_imm8 => wide(b, b, |x, _| double::round(double::daz(x, zeros), imm)),
        VEX_Vrsqrtps_ymm_ymmm256 => return None,
        VEX_Vcvtdq2pd_ymm_xmmm128 => from_doubles(std::array::from_fn(|i| f64::from(b[i] as i32).to_bits())),
        VEX_Vcvtdq2ps_ymm_ymmm256 => b.map(|x| (x as i32 as f32).to_bits()),
        VEX_Vcvtpd2ps_xmm_ymmm256 => {
            let b = doubles(b);
            std::array::from_fn(|i| match b.get(i) {
                Some(&x) if double::is_nan(x) => {
                    (x >> 32) as u32 & 1 << 31 | 0x7fc0_0000 | (x >> 29) as u32 & 0x3f_ffff
                }
                Some(&x) => (f64::from_bits(double::daz(x, zeros)) as f32).to_bits(),
                None => 0,
            })
        }
        VEX_Vcvtps2pd_ymm_xmmm128 => from_doubles(std::array::from_fn(|i| {
            let x = single::daz(b[i], zeros);
            match single::is_nan(x) {
                true => u64::from(x & 1 << 31) << 32 | 0x7ff8 << 48 | u64::from(x & 0x7f_ffff) << 29,
                false => f64::from(f32::from_bits(x)).to_bits(),
            }
        })),
        VEX_Vcvtph2ps_ymm_xmmm128 => std::array::from_fn(|i| half_to_single(to_halves(b)[i])),
        VEX_Vcvtps2ph_xmmm128_ymm_imm8 => from_halves(std::array::from_fn(|i| {
            b.get(i).map_or(0, |x| single_to_half(single::daz(*x, zeros), imm))
        })),
        VEX_Vcvttpd2dq_xmm_ymmm256 => {
            std::array::from_fn(|i| doubles(b).get(i).map_or(0, |x| truncated(f64::from_bits(*x))))
        }
        VEX_Vcvttps2dq_ymm_ymmm256 => b.map(|x| truncated(f32::from_bits(x).into())),
        VEX_Vinserti128_ymm_ymm_xmmm128_imm8 => {
            std::array::from_fn(|i| if i / 4 == usize::from(imm & 1) { b[i & 3] } else { a[i] })
        }
        VEX_Vmovsldup_ymm_ymmm256 => std::array::from_fn(|i| b[i & 6]),
        VEX_Vpabsd_ymm_ymmm256 => b.map(|x| (x as i32).unsigned_abs()),
        VEX_Vpackssdw_ymm_ymm_ymmm256 => pack(0x7fff, -0x8000),
        VEX_Vpackusdw_ymm_ymm_ymmm256 => pack(0xffff, 0),
        VEX_Vpackuswb_ymm_ymm_ymmm256 => {
            let (a, b) = (to_halves(a), to_halves(b));
            from_bytes(std::array::from_fn(|i| {
                let from = if i & 8 == 0 { a } else { b };
                (from[i / 16 * 8 + (i & 7)] as i16).clamp(0, 255) as u8
            }))
        }
        VEX_Vpaddb_ymm_ymm_ymmm256 => bytes(a, b, u8::wrapping_add),
        VEX_Vpaddd_ymm_ymm_ymmm256 => words(a, b, u32::wrapping_add),
        VEX_Vpaddq_ymm_ymm_ymmm256 => wide(a, b, u64::wrapping_add),
        VEX_Vpaddusb_ymm_ymm_ymmm256 => bytes(a, b, u8::saturating_add),
        VEX_Vpand_ymm_ymm_ymmm256 => words(a, b, |x, y| x & y),
        VEX_Vpandn_ymm_ymm_ymmm256 => words(a, b, |x, y| !x & y),
        VEX_Vpblendd_ymm_ymm_ymmm256_imm8 => {
            std::array::from_fn(|i| if imm >> i & 1 == 1 { b[i] } else { a[i] })
        }
        VEX_Vpbroadcastd_ymm_xmmm32 => [b[0]; 8],
        VEX_Vpbroadcastq_ymm_xmmm64 => std::array::from_fn(|i| b[i & 1]),
        VEX_Vpcmpeqb_ymm_ymm_ymmm256 => bytes(a, b, |x, y| if x == y { 0xff } else { 0 }),
        VEX_Vpcmpeqd_ymm_ymm_ymmm256 => words(a, b, |x, y| mask(x == y)),
        VEX_Vpcmpeqq_ymm_ymm_ymmm256 => wide(a, b, |x, y| mask_wide(x == y)),
        VEX_Vpcmpgtb_ymm_ymm_ymmm256 => bytes(a, b, |x, y| if x as i8 > y as i8 { 0xff } else { 0 }),
        VEX_Vpcmpgtd_ymm_ymm_ymmm256 => words(a, b, |x, y| mask(x as i32 > y as i32)),
        VEX_Vpcmpgtq_ymm_ymm_ymmm256 => wide(a, b, |x, y| mask_wide(x as i64 > y as i64)),
        VEX_Vperm2i128_ymm_ymm_ymmm256_imm8 => std::array::from_fn(|i| {
            let field = imm >> (4 * (i / 4));
            let from = if field & 2 == 0 { a } else { b };
            if field & 8 == 0 { from[usize::from(field & 1) * 4 + (i & 3)] } else { 0 }
        }),
        VEX_Vpermd_ymm_ymm_ymmm256 => a.map(|x| b[x as usize & 7]),
        VEX_Vpermq_ymm_ymmm256_imm8 => from_doubles(fields.map(|field| doubles(b)[field])),
        VEX_Vpmaddubsw_ymm_ymm_ymmm256 => {
            let (a, b) = (to_bytes(a), to_bytes(b));
            from_halves(std::array::from_fn(|i| {
                let product = |k: usize| i32::from(a[k]) * i32::from(b[k] as i8);
                (product(2 * i) + product(2 * i + 1)).clamp(-0x8000, 0x7fff) as u16
            }))
        }
        VEX_Vpmaddwd_ymm_ymm_ymmm256 => {
            let (a, b) = (to_halves(a), to_halves(b));
            std::array::from_fn(|i| {
                let product = |k: usize| i32::from(a[k] as i16) * i32::from(b[k] as i16);
                product(2 * i).wrapping_add(product(2 * i + 1)) as u32
            })
        }
        VEX_Vpmaxsd_ymm_ymm_ymmm256 => words(a, b, |x, y| (x as i32).max(y as i32) as u32),
        VEX_Vpmaxud_ymm_ymm_ymmm256 => words(a, b, u32::max),
        VEX_Vpminsd_ymm_ymm_ymmm256 => words(a, b, |x, y| (x as i32).min(y as i32) as u32),
        VEX_Vpminud_ymm_ymm_ymmm256 => words(a, b, u32::min),
        VEX_Vpmovsxdq_ymm_xmmm128 => from_doubles(std::array::from_fn(|i| b[i] as i32 as u64)),
        VEX_Vpmovzxbd_ymm_xmmm64 => std::array::from_fn(|i| to_bytes(b)[i].into()),
        VEX_Vpmovzxdq_ymm_xmmm128 => from_doubles(std::array::from_fn(|i| b[i].into())),
        VEX_Vpmovzxwd_ymm_xmmm128 => std::array::from_fn(|i| to_halves(b)[i].into()),
        VEX_Vpmuldq_ymm_ymm_ymmm256 => wide(a, b, |x, y| (i64::from(x as i32) * i64::from(y as i32)) as u64),
        VEX_Vpmulld_ymm_ymm_ymmm256 => words(a, b, u32::wrapping_mul),
        VEX_Vpmuludq_ymm_ymm_ymmm256 => wide(a, b, |x, y| u64::from(x as u32) * u64::from(y as u32)),
        VEX_Vpor_ymm_ymm_ymmm256 => words(a, b, |x, y| x | y),
        VEX_Vpsadbw_ymm_ymm_ymmm256 => {
            let (a, b) = (to_bytes(a), to_bytes(b));
            from_doubles(std::array::from_fn(|i| {
                (8 * i..8 * i + 8).map(|k| u64::from(a[k].abs_diff(b[k]))).sum()
            }))
        }
        VEX_Vpshufb_ymm_ymm_ymmm256 => {
            let (a, b) = (to_bytes(a), to_bytes(b));
            from_bytes(std::array::from_fn(|i| {
                if b[i] > 127 { 0 } else { a[i / 16 * 16 + usize::from(b[i] & 15)] }
            }))
        }
        VEX_Vpshufd_ymm_ymmm256_imm8 => each_half(b, b, |b, _| fields.map(|field| b[field])),
        VEX_Vpslld_ymm_ymm_imm8 => shift(imm.into(), 32, &|x, count| x << count),
        VEX_Vpsrld_ymm_ymm_imm8 => shift(imm.into(), 32, &|x, count| x >> count),
        VEX_Vpsrad_ymm_ymm_imm8 => b.map(|x| (x as i32 >> imm.min(31)) as u32),
        VEX_Vpsllq_ymm_ymm_imm8 => wide(b, b, |x, _| x.checked_shl(imm.into()).unwrap_or(0)),
        VEX_Vpsrlq_ymm_ymm_imm8 => wide(b, b, |x, _| x.checked_shr(imm.into()).unwrap_or(0)),
        VEX_Vpsrldq_ymm_ymm_imm8 => {
            let b = to_bytes(b);
            let at = |i: usize| (i % 16 + usize::from(imm) < 16).then(|| b[i + usize::from(imm)]);
            from_bytes(std::array::from_fn(|i| at(i).unwrap_or(0)))
        }
        VEX_Vpsllvd_ymm_ymm_ymmm256 => words(a, b, |x, y| x.checked_shl(y).unwrap_or(0)),
        VEX_Vpsrlvd_ymm_ymm_ymmm256 => words(a, b, |x, y| x.checked_shr(y).unwrap_or(0)),
        VEX_Vpsravd_ymm_ymm_ymmm256 => words(a, b, |x, y| (x as i32 >> y.min(31)) as u32),
        VEX_Vpsllvq_ymm_ymm_ymmm256 => wide(a, b, |x, y| if y < 64 { x << y } else { 0 }),
        VEX_Vpsrlvq_ymm_ymm_ymmm256 => wide(a, b, |x, y| if y < 64 { x >> y } else { 0 }),
        VEX_Vpsrld_ymm_ymm_xmmm128 => {
            let count = doubles(b)[0];
            a.map(|x| if count < 32 { x >> count } else { 0 })
        }
        VEX_Vpsubd_ymm_ymm_ymmm256 => words(a, b, u32::wrapping_sub),
        VEX_Vpsubq_ymm_ymm_ymmm256 => wide(a, b, u64::wrapping_sub),
        VEX_Vpunpckhdq_ymm_ymm_ymmm256 => each_half(a, b, |a, b| [a[2], b[2], a[3], b[3]]),
        VEX_Vpunpckhqdq_ymm_ymm_ymmm256 => each_half(a, b, |a, b| [a[2], a[3], b[2], b[3]]),
        VEX_Vpunpckldq_ymm_ymm_ymmm256 => each_half(a, b, |a, b| [a[0], b[0], a[1], b[1]]),
        VEX_Vpunpcklqdq_ymm_ymm_ymmm256 => each_half(a, b, |a, b| [a[0], a[1], b[0], b[1]]),
        VEX_Vpxor_ymm_ymm_ymmm256 => words(a, b, |x, y| x ^ y),
        VEX_Vshufps_ymm_ymm_ymmm256_imm8 => {
            each_half(a, b, |a, b| [a[fields[0]], a[fields[1]], b[fields[2]], b[fields[3]]])
        }
    })
}
