//! The meaning of the operations of the code generator's functions, as terms. Integers have 64 bits; vectors are eight
//! words. Intel's manual (SDM, volume 2) defines them; `tests/all/host.rs` compares with the execution of host code.

use crate::VerifyError;
use crate::unsupported;
use isa_export::smt::{Setting, Term, Terms, arithmetic};
use isa_spec::arith::FloatEnv;
use isa_spec::pcode::builtins::Pure;
use isa_spec::pcode::ir::Ty;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Int1, Int2, Width};

/// A vector: words of 32 bits, the lowest first.
pub type Vector = [Term; 8];

type Result<T> = std::result::Result<T, VerifyError>;

fn bits(width: Width) -> u32 {
    match width {
        Width::W32 => 32,
        Width::W64 => 64,
    }
}

/// A binary integer operation.
pub fn int2(t: &mut Terms, op: Int2, width: Width, a: Term, b: Term) -> Term {
    let width = bits(width);
    let (a, b) = (t.extract(a, 0, width), t.extract(b, 0, width));
    let count = |t: &mut Terms| {
        let most = t.constant(width as u128 - 1, width);
        t.and(b, most)
    };
    let value = match op {
        Int2::Add => t.add_bits(a, b),
        Int2::Sub => t.sub(a, b),
        Int2::Mul => t.mul(a, b),
        Int2::And => t.and(a, b),
        Int2::Or => t.or(a, b),
        Int2::Xor => t.xor(a, b),
        Int2::Shl => {
            let count = count(t);
            t.shl(a, count)
        }
        Int2::Shr => {
            let count = count(t);
            t.lshr(a, count)
        }
        Int2::Sar => {
            let count = count(t);
            t.ashr(a, count)
        }
    };
    t.zero_extend(value, 64)
}

fn pure(t: &mut Terms, builtin: Pure, a: Term) -> Term {
    let width = t.width(a);
    let setting = Setting { env: FloatEnv::KEEP, uninterpreted_float: true, max_terms: usize::MAX };
    arithmetic::pure(t, setting, builtin, &[a], &[Ty::U(width as u16)], width)
}

/// A unary integer operation.
pub fn int1(t: &mut Terms, op: Int1, width: Width, a: Term) -> Term {
    let width = bits(width);
    let whole = a;
    let a = t.extract(a, 0, width);
    let value = match op {
        Int1::Not => t.not(a),
        Int1::Neg => t.neg(a),
        Int1::CountOnes => pure(t, Pure::CountOnes, a),
        Int1::LeadingZeros => pure(t, Pure::CountLeadingZeros, a),
        Int1::TrailingZeros => pure(t, Pure::CountTrailingZeros, a),
        Int1::SwapBytes => {
            let parts: Vec<Term> = (0..width / 8).rev().map(|k| t.extract(a, 8 * k, 8)).collect();
            joined(t, &parts)
        }
        Int1::SignExtend32 => {
            let low = t.extract(whole, 0, 32);
            return t.sign_extend(low, 64);
        }
        Int1::ZeroExtend32 => t.extract(whole, 0, 32),
    };
    t.zero_extend(value, 64)
}

/// The condition of a comparison, one bit.
pub fn compare(t: &mut Terms, cc: Cc, width: Width, a: Term, b: Term) -> Term {
    let width = bits(width);
    let (a, b) = (t.extract(a, 0, width), t.extract(b, 0, width));
    let (value, inverted) = match cc {
        Cc::Eq => (t.eq(a, b), false),
        Cc::Ne => (t.eq(a, b), true),
        Cc::LtS => (t.slt(a, b), false),
        Cc::GeS => (t.slt(a, b), true),
        Cc::GtS => (t.slt(b, a), false),
        Cc::LeS => (t.slt(b, a), true),
        Cc::LtU => (t.ult(a, b), false),
        Cc::GeU => (t.ult(a, b), true),
        Cc::GtU => (t.ult(b, a), false),
        Cc::LeU => (t.ult(b, a), true),
    };
    if inverted { t.not(value) } else { value }
}

/// Whether any bit is set in both vectors, one bit.
pub fn any(t: &mut Terms, a: &Vector, b: &Vector) -> Term {
    let mut none = t.bool(true);
    for (a, b) in a.iter().zip(b) {
        let (both, zero) = (t.and(*a, *b), t.constant(0, 32));
        let empty = t.eq(both, zero);
        none = t.and(none, empty);
    }
    t.not(none)
}

/// Selects by the highest bit of each element of the mask: `b`, else `a`.
pub fn blend(t: &mut Terms, wide: bool, a: &Vector, b: &Vector, mask: &Vector) -> Vector {
    let mut all = *a;
    for (k, to) in all.iter_mut().enumerate() {
        let sign = t.extract(mask[if wide { k | 1 } else { k }], 31, 1);
        *to = t.ite(sign, b[k], a[k]);
    }
    all
}

/// The highest bits of the words, as an integer.
pub fn sign_bits(t: &mut Terms, a: &Vector) -> Term {
    let parts: Vec<Term> = a.iter().map(|word| t.extract(*word, 31, 1)).collect();
    let bits = joined(t, &parts);
    t.zero_extend(bits, 64)
}

/// Joins parts, the lowest first.
fn joined(t: &mut Terms, parts: &[Term]) -> Term {
    let mut parts = parts.iter();
    let first = *parts.next().expect("at least one part");
    parts.fold(first, |low, high| t.concat(*high, low))
}

/// The elements of a width, the lowest first.
fn elements(t: &mut Terms, v: &[Term], width: u32) -> Vec<Term> {
    match width {
        64 => v.chunks(2).map(|pair| t.concat(pair[1], pair[0])).collect(),
        128 => v.chunks(4).map(|four| joined(t, four)).collect(),
        _ => v
            .iter()
            .flat_map(|word| (0..32 / width).map(|k| (*word, k * width)).collect::<Vec<_>>())
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(word, lo)| t.extract(word, lo, width))
            .collect(),
    }
}

/// The words that elements make, of which there are as many as a vector has.
fn words(t: &mut Terms, elements: &[Term]) -> Vector {
    let width = t.width(elements[0]);
    let list: Vec<Term> = match width {
        32 => elements.to_vec(),
        _ if width > 32 => elements
            .iter()
            .flat_map(|e| (0..width / 32).map(|k| (*e, 32 * k)).collect::<Vec<_>>())
            .map(|(e, lo)| t.extract(e, lo, 32))
            .collect(),
        _ => elements.chunks(32 / width as usize).map(|parts| joined(t, parts)).collect(),
    };
    std::array::from_fn(|k| list[k])
}

/// Applies an operation to each pair of elements of a width.
fn each(
    t: &mut Terms,
    width: u32,
    a: &Vector,
    b: &Vector,
    mut op: impl FnMut(&mut Terms, Term, Term) -> Term,
) -> Vector {
    let (a, b) = (elements(t, a, width), elements(t, b, width));
    let results: Vec<Term> = a.iter().zip(&b).map(|(a, b)| op(t, *a, *b)).collect();
    words(t, &results)
}

fn mask(t: &mut Terms, cond: Term, width: u32) -> Term {
    t.sign_extend(cond, width)
}

/// The larger or smaller of two elements.
fn pick(t: &mut Terms, signed: bool, larger: bool, a: Term, b: Term) -> Term {
    let less = if signed { t.slt(a, b) } else { t.ult(a, b) };
    if larger { t.ite(less, b, a) } else { t.ite(less, a, b) }
}

/// Narrows a signed element, with saturation to a signed or an unsigned range.
fn saturated(t: &mut Terms, a: Term, to: u32, signed: bool) -> Term {
    let width = t.width(a);
    let (least, most) = if signed {
        ((-(1_i128 << (to - 1))) as u128, (1_u128 << (to - 1)) - 1)
    } else {
        (0, (1_u128 << to) - 1)
    };
    let (least, most) = (t.constant(least, width), t.constant(most, width));
    let a = pick(t, true, true, a, least);
    let a = pick(t, true, false, a, most);
    t.extract(a, 0, to)
}

/// Narrows the elements of two vectors, in each half those of `a` first.
fn pack(t: &mut Terms, a: &Vector, b: &Vector, from: u32, signed: bool) -> Vector {
    let (a, b) = (elements(t, a, from), elements(t, b, from));
    let half = a.len() / 2;
    let mut all = Vec::new();
    for range in [0..half, half..2 * half] {
        for v in [&a, &b] {
            for e in &v[range.clone()] {
                all.push(saturated(t, *e, from / 2, signed));
            }
        }
    }
    words(t, &all)
}

/// Selects words within each half.
fn shuffle(v: &Vector, of: impl Fn(usize) -> usize) -> Vector {
    std::array::from_fn(|k| v[k / 4 * 4 + of(k % 4)])
}

/// The two bits of an immediate for a position.
fn two(imm: u8, index: usize) -> usize {
    (imm >> (2 * index) & 3) as usize
}

/// Shifts by a constant; what is shifted out is lost.
fn shift_by(t: &mut Terms, width: u32, a: &Vector, left: bool, arithmetic: bool, imm: u8) -> Vector {
    each(t, width, a, a, |t, a, _| {
        let count = t.constant(imm as u128, width);
        match (left, arithmetic) {
            (true, _) => t.shl(a, count),
            (_, true) => t.ashr(a, count),
            _ => t.lshr(a, count),
        }
    })
}

/// An instruction with one source.
pub fn rm(t: &mut Terms, code: Code, b: &Vector, imm: Option<u8>) -> Result<Vector> {
    use Code::*;
    let n = imm.unwrap_or(0);
    let zero = t.constant(0, 32);
    Ok(match code {
        VEX_Vpabsd_ymm_ymmm256 => each(t, 32, b, b, |t, b, _| {
            let (sign, negative) = (t.extract(b, 31, 1), t.neg(b));
            t.ite(sign, negative, b)
        }),
        VEX_Vpslld_ymm_ymm_imm8 => shift_by(t, 32, b, true, false, n),
        VEX_Vpsllq_ymm_ymm_imm8 => shift_by(t, 64, b, true, false, n),
        VEX_Vpsrld_ymm_ymm_imm8 => shift_by(t, 32, b, false, false, n),
        VEX_Vpsrlq_ymm_ymm_imm8 => shift_by(t, 64, b, false, false, n),
        VEX_Vpsrad_ymm_ymm_imm8 => shift_by(t, 32, b, false, true, n),
        VEX_Vpsrldq_ymm_ymm_imm8 => shift_by(t, 128, b, false, false, n.min(16) * 8),
        VEX_Vpshufd_ymm_ymmm256_imm8 => shuffle(b, |k| two(n, k)),
        VEX_Vmovsldup_ymm_ymmm256 => shuffle(b, |k| k & !1),
        VEX_Vpermq_ymm_ymmm256_imm8 => std::array::from_fn(|k| b[2 * two(n, k / 2) + k % 2]),
        VEX_Vpbroadcastd_ymm_xmmm32 => [b[0]; 8],
        VEX_Vpbroadcastq_ymm_xmmm64 => std::array::from_fn(|k| b[k % 2]),
        VEX_Vpmovzxdq_ymm_xmmm128 => std::array::from_fn(|k| if k % 2 == 0 { b[k / 2] } else { zero }),
        VEX_Vpmovsxdq_ymm_xmmm128 => {
            let wide: Vec<Term> = b[..4].iter().map(|word| t.sign_extend(*word, 64)).collect();
            words(t, &wide)
        }
        VEX_Vpmovzxwd_ymm_xmmm128 | VEX_Vpmovzxbd_ymm_xmmm64 => {
            let width = if code == VEX_Vpmovzxwd_ymm_xmmm128 { 16 } else { 8 };
            let small = elements(t, b, width);
            let wide: Vec<Term> = small[..8].iter().map(|e| t.zero_extend(*e, 32)).collect();
            words(t, &wide)
        }
        _ => return unsupported(format!("float arithmetic ({})", code.name())),
    })
}

/// An instruction with two sources.
pub fn rvm(t: &mut Terms, code: Code, a: &Vector, b: &Vector, imm: Option<u8>) -> Result<Vector> {
    use Code::*;
    let n = imm.unwrap_or(0);
    Ok(match code {
        VEX_Vpaddb_ymm_ymm_ymmm256 => each(t, 8, a, b, Terms::add_bits),
        VEX_Vpaddd_ymm_ymm_ymmm256 => each(t, 32, a, b, Terms::add_bits),
        VEX_Vpaddq_ymm_ymm_ymmm256 => each(t, 64, a, b, Terms::add_bits),
        VEX_Vpsubd_ymm_ymm_ymmm256 => each(t, 32, a, b, Terms::sub),
        VEX_Vpsubq_ymm_ymm_ymmm256 => each(t, 64, a, b, Terms::sub),
        VEX_Vpmulld_ymm_ymm_ymmm256 => each(t, 32, a, b, Terms::mul),
        VEX_Vpand_ymm_ymm_ymmm256 => each(t, 32, a, b, Terms::and),
        VEX_Vpor_ymm_ymm_ymmm256 => each(t, 32, a, b, Terms::or),
        VEX_Vpxor_ymm_ymm_ymmm256 => each(t, 32, a, b, Terms::xor),
        VEX_Vpandn_ymm_ymm_ymmm256 => each(t, 32, a, b, |t, a, b| {
            let a = t.not(a);
            t.and(a, b)
        }),
        VEX_Vpaddusb_ymm_ymm_ymmm256 => each(t, 8, a, b, |t, a, b| {
            let (a, b) = (t.zero_extend(a, 9), t.zero_extend(b, 9));
            let sum = t.add_bits(a, b);
            let most = t.constant(255, 9);
            let sum = pick(t, false, false, sum, most);
            t.extract(sum, 0, 8)
        }),
        VEX_Vpcmpeqb_ymm_ymm_ymmm256 | VEX_Vpcmpeqd_ymm_ymm_ymmm256 | VEX_Vpcmpeqq_ymm_ymm_ymmm256 => {
            let width = match code {
                VEX_Vpcmpeqb_ymm_ymm_ymmm256 => 8,
                VEX_Vpcmpeqd_ymm_ymm_ymmm256 => 32,
                _ => 64,
            };
            each(t, width, a, b, |t, a, b| {
                let equal = t.eq(a, b);
                mask(t, equal, width)
            })
        }
        VEX_Vpcmpgtb_ymm_ymm_ymmm256 | VEX_Vpcmpgtd_ymm_ymm_ymmm256 | VEX_Vpcmpgtq_ymm_ymm_ymmm256 => {
            let width = match code {
                VEX_Vpcmpgtb_ymm_ymm_ymmm256 => 8,
                VEX_Vpcmpgtd_ymm_ymm_ymmm256 => 32,
                _ => 64,
            };
            each(t, width, a, b, |t, a, b| {
                let greater = t.slt(b, a);
                mask(t, greater, width)
            })
        }
        VEX_Vpmaxsd_ymm_ymm_ymmm256 => each(t, 32, a, b, |t, a, b| pick(t, true, true, a, b)),
        VEX_Vpmaxud_ymm_ymm_ymmm256 => each(t, 32, a, b, |t, a, b| pick(t, false, true, a, b)),
        VEX_Vpminsd_ymm_ymm_ymmm256 => each(t, 32, a, b, |t, a, b| pick(t, true, false, a, b)),
        VEX_Vpminud_ymm_ymm_ymmm256 => each(t, 32, a, b, |t, a, b| pick(t, false, false, a, b)),
        VEX_Vpmuludq_ymm_ymm_ymmm256 | VEX_Vpmuldq_ymm_ymm_ymmm256 => {
            let signed = code == VEX_Vpmuldq_ymm_ymm_ymmm256;
            each(t, 64, a, b, |t, a, b| {
                let [a, b] = [a, b].map(|one| {
                    let low = t.extract(one, 0, 32);
                    if signed { t.sign_extend(low, 64) } else { t.zero_extend(low, 64) }
                });
                t.mul(a, b)
            })
        }
        VEX_Vpsllvd_ymm_ymm_ymmm256 => each(t, 32, a, b, Terms::shl),
        VEX_Vpsllvq_ymm_ymm_ymmm256 => each(t, 64, a, b, Terms::shl),
        VEX_Vpsrlvd_ymm_ymm_ymmm256 => each(t, 32, a, b, Terms::lshr),
        VEX_Vpsrlvq_ymm_ymm_ymmm256 => each(t, 64, a, b, Terms::lshr),
        VEX_Vpsravd_ymm_ymm_ymmm256 => each(t, 32, a, b, Terms::ashr),
        VEX_Vpsrld_ymm_ymm_xmmm128 => {
            let count = t.concat(b[1], b[0]);
            let width = t.constant(32, 64);
            let inside = t.ult(count, width);
            let (low, zero) = (t.extract(count, 0, 32), t.constant(0, 32));
            each(t, 32, a, a, |t, a, _| {
                let shifted = t.lshr(a, low);
                t.ite(inside, shifted, zero)
            })
        }
        VEX_Vpackssdw_ymm_ymm_ymmm256 => pack(t, a, b, 32, true),
        VEX_Vpackusdw_ymm_ymm_ymmm256 => pack(t, a, b, 32, false),
        VEX_Vpackuswb_ymm_ymm_ymmm256 => pack(t, a, b, 16, false),
        VEX_Vpblendd_ymm_ymm_ymmm256_imm8 => {
            std::array::from_fn(|k| if n >> k & 1 == 1 { b[k] } else { a[k] })
        }
        VEX_Vperm2i128_ymm_ymm_ymmm256_imm8 => {
            let zero = t.constant(0, 32);
            std::array::from_fn(|k| {
                let select = n >> (4 * (k / 4));
                let from = if select & 2 == 0 { a } else { b };
                if select & 8 != 0 { zero } else { from[4 * (select & 1) as usize + k % 4] }
            })
        }
        VEX_Vinserti128_ymm_ymm_xmmm128_imm8 => {
            std::array::from_fn(|k| if k / 4 == (n & 1) as usize { b[k % 4] } else { a[k] })
        }
        VEX_Vpermd_ymm_ymm_ymmm256 => {
            let mut all = *b;
            for (k, to) in all.iter_mut().enumerate() {
                let index = t.extract(a[k], 0, 3);
                let mut value = b[7];
                for (at, word) in b.iter().enumerate().take(7).rev() {
                    let number = t.constant(at as u128, 3);
                    let here = t.eq(index, number);
                    value = t.ite(here, *word, value);
                }
                *to = value;
            }
            all
        }
        VEX_Vpshufb_ymm_ymm_ymmm256 => {
            let (bytes, control) = (elements(t, a, 8), elements(t, b, 8));
            let mut all = Vec::new();
            for (k, control) in control.iter().enumerate() {
                let half = &bytes[k / 16 * 16..][..16];
                let index = t.extract(*control, 0, 4);
                let mut value = half[15];
                for (at, byte) in half.iter().enumerate().take(15).rev() {
                    let number = t.constant(at as u128, 4);
                    let here = t.eq(index, number);
                    value = t.ite(here, *byte, value);
                }
                let (high, zero) = (t.extract(*control, 7, 1), t.constant(0, 8));
                all.push(t.ite(high, zero, value));
            }
            words(t, &all)
        }
        VEX_Vshufps_ymm_ymm_ymmm256_imm8 => std::array::from_fn(|k| {
            let from = if k % 4 < 2 { a } else { b };
            from[k / 4 * 4 + two(n, k % 4)]
        }),
        VEX_Vpunpckldq_ymm_ymm_ymmm256 | VEX_Vpunpckhdq_ymm_ymm_ymmm256 => {
            let first = if code == VEX_Vpunpckhdq_ymm_ymm_ymmm256 { 2 } else { 0 };
            std::array::from_fn(|k| {
                let from = if k % 2 == 0 { a } else { b };
                from[k / 4 * 4 + first + k % 4 / 2]
            })
        }
        VEX_Vpunpcklqdq_ymm_ymm_ymmm256 | VEX_Vpunpckhqdq_ymm_ymm_ymmm256 => {
            let first = if code == VEX_Vpunpckhqdq_ymm_ymm_ymmm256 { 2 } else { 0 };
            std::array::from_fn(|k| {
                let from = if k % 4 < 2 { a } else { b };
                from[k / 4 * 4 + first + k % 2]
            })
        }
        VEX_Vpsadbw_ymm_ymm_ymmm256 => {
            let (a, b) = (elements(t, a, 8), elements(t, b, 8));
            let mut sums = Vec::new();
            for first in (0..32).step_by(8) {
                let mut sum = t.constant(0, 64);
                for k in first..first + 8 {
                    let less = t.ult(a[k], b[k]);
                    let (up, down) = (t.sub(b[k], a[k]), t.sub(a[k], b[k]));
                    let distance = t.ite(less, up, down);
                    let distance = t.zero_extend(distance, 64);
                    sum = t.add_bits(sum, distance);
                }
                sums.push(sum);
            }
            words(t, &sums)
        }
        VEX_Vpmaddwd_ymm_ymm_ymmm256 => {
            let (a, b) = (elements(t, a, 16), elements(t, b, 16));
            let products: Vec<Term> = a
                .iter()
                .zip(&b)
                .map(|(a, b)| {
                    let (a, b) = (t.sign_extend(*a, 32), t.sign_extend(*b, 32));
                    t.mul(a, b)
                })
                .collect();
            let sums: Vec<Term> = products.chunks(2).map(|pair| t.add_bits(pair[0], pair[1])).collect();
            words(t, &sums)
        }
        VEX_Vpmaddubsw_ymm_ymm_ymmm256 => {
            let (a, b) = (elements(t, a, 8), elements(t, b, 8));
            let products: Vec<Term> = a
                .iter()
                .zip(&b)
                .map(|(a, b)| {
                    let (a, b) = (t.zero_extend(*a, 32), t.sign_extend(*b, 32));
                    t.mul(a, b)
                })
                .collect();
            let sums: Vec<Term> = products
                .chunks(2)
                .map(|pair| {
                    let sum = t.add_bits(pair[0], pair[1]);
                    saturated(t, sum, 16, true)
                })
                .collect();
            words(t, &sums)
        }
        _ => return unsupported(format!("float arithmetic ({})", code.name())),
    })
}
