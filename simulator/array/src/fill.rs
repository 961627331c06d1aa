//! Arrays from initialisers, as used in headers and on the command line: `repeat`, `arange`, `rand`, lists.

use super::{Array, ArrayError, DType, Num, count, type_name};

/// The generator of `rand()`: SplitMix64 (Steele, Lea, Flood 2014). A seed produces the same data on every
/// host and in every version.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A float in [0, 1) or an integer in [0, 100). A float uses as many random bits as its type has
    /// precision, so it is never rounded up to 1.
    fn number(&mut self, dtype: DType) -> Num {
        let bits = self.next();
        if dtype.is_float() {
            let kept = dtype.precision();
            return Num::Float((bits >> (64 - kept)) as f64 / (1u64 << kept) as f64);
        }
        Num::Int((((bits >> 32) * 100) >> 32) as i128)
    }
}

/// Builds an array from a function of the row-major index.
fn build(dtype: DType, shape: &[u64], mut element: impl FnMut(usize) -> Num) -> Result<Array, ArrayError> {
    let count = count(shape)?;
    let mut bytes = Vec::with_capacity(count * dtype.size());
    for at in 0..count {
        dtype.encode(element(at), &mut bytes)?;
    }
    Ok(Array { dtype, shape: shape.to_vec(), bytes })
}

/// An array of equal elements.
pub fn repeat(dtype: DType, shape: &[u64], value: Num) -> Result<Array, ArrayError> {
    build(dtype, shape, |_| value)
}

/// An array of random elements.
pub fn rand(dtype: DType, shape: &[u64], random: &mut Random) -> Result<Array, ArrayError> {
    build(dtype, shape, |_| random.number(dtype))
}

/// An array of listed elements; their number must match the shape.
pub fn list(dtype: DType, shape: &[u64], values: &[Num]) -> Result<Array, ArrayError> {
    check_count("the list", &values.len().to_string(), values.len() as u128, dtype, shape)?;
    build(dtype, shape, |at| values[at])
}

/// `start`, `start + step`, … up to `end` (exclusive); the number of elements must match the shape.
pub fn arange(dtype: DType, shape: &[u64], start: Num, end: Num, step: Num) -> Result<Array, ArrayError> {
    let given = arange_count(start, end, step)?;
    check_count("arange", &given.to_string(), given, dtype, shape)?;
    progression(dtype, shape, start, step)
}

/// An array whose element i is `start + i * step`. Integers are exact; otherwise the value is computed in f64
/// and rounded to the type. The first element is `start` itself, which is rounded once.
pub fn progression(dtype: DType, shape: &[u64], start: Num, step: Num) -> Result<Array, ArrayError> {
    if let (Some(start), Some(step)) = (start.as_int(), step.as_int()) {
        return build(dtype, shape, |at| Num::Int(start.saturating_add(step.saturating_mul(at as i128))));
    }
    let (first, start, step) = (start, start.as_f64(), step.as_f64());
    build(dtype, shape, |at| if at == 0 { first } else { Num::Float(start + at as f64 * step) })
}

fn arange_count(start: Num, end: Num, step: Num) -> Result<u128, ArrayError> {
    if step.as_f64() == 0.0 {
        return Err(ArrayError::ZeroStep);
    }
    if let (Some(a), Some(b), Some(s)) = (start.as_int(), end.as_int(), step.as_int()) {
        let (length, step) =
            if s > 0 { (b.saturating_sub(a), s) } else { (a.saturating_sub(b), s.saturating_neg()) };
        return Ok(length.max(0).unsigned_abs().div_ceil(step.unsigned_abs()));
    }
    // `as` saturates and converts NaN to 0.
    Ok(((end.as_f64() - start.as_f64()) / step.as_f64()).ceil().max(0.0) as u128)
}

fn check_count(what: &str, text: &str, given: u128, dtype: DType, shape: &[u64]) -> Result<(), ArrayError> {
    let wanted = count(shape)?;
    if given == wanted as u128 {
        return Ok(());
    }
    Err(ArrayError::Count {
        what: what.to_string(),
        given: text.to_string(),
        wanted,
        wanted_type: type_name(dtype, shape),
    })
}
