//! Distances of elements in units in the last place (ULP).

use wavesim_array::{Array, DType};

/// How far two elements are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The number of representable values between them, plus one; of integers, their difference.
    Ulp(u64),
    /// One of them is a NaN, the other one is not.
    Nan,
}

/// Returns the distance of the elements of a type, given by their bytes. All NaNs are equal, and so are zeros.
pub fn distance(dtype: DType, a: &[u8], b: &[u8]) -> Distance {
    let (x, y) = (bits(a), bits(b));
    if !dtype.is_float() {
        let number = |bytes: &[u8]| match dtype.decode(bytes) {
            wavesim_array::Num::Int(n) => n,
            _ => 0,
        };
        return Distance::Ulp(number(a).abs_diff(number(b)).min(u128::from(u64::MAX)) as u64);
    }
    let is_nan = |bytes: &[u8]| dtype.decode(bytes).as_f64().is_nan();
    match (is_nan(a), is_nan(b)) {
        (true, true) => Distance::Ulp(0),
        (false, false) => {
            Distance::Ulp(ordinal(dtype, x).abs_diff(ordinal(dtype, y)).min(u128::from(u64::MAX)) as u64)
        }
        _ => Distance::Nan,
    }
}

/// Returns the position of a float among those of its type; both zeros are at 0.
fn ordinal(dtype: DType, bits: u64) -> i128 {
    let sign = 1u64 << (8 * dtype.size() - 1);
    let magnitude = i128::from(bits & (sign - 1));
    if bits & sign != 0 { -magnitude } else { magnitude }
}

fn bits(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    u64::from_le_bytes(wide)
}

/// The largest distance of the elements of two arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Largest {
    /// The distance.
    pub distance: Distance,
    /// The element with this distance, the first one of several.
    pub index: usize,
    /// Number of elements that differ.
    pub differing: usize,
}

/// Returns the largest distance of two arrays of one type and length, if they differ.
pub fn largest(a: &Array, b: &Array) -> Option<Largest> {
    let size = a.dtype.size();
    let mut found: Option<Largest> = None;
    for (index, (x, y)) in a.bytes.chunks_exact(size).zip(b.bytes.chunks_exact(size)).enumerate() {
        let distance = distance(a.dtype, x, y);
        if distance == Distance::Ulp(0) {
            continue;
        }
        match &mut found {
            Some(found) => {
                found.differing += 1;
                if distance > found.distance {
                    (found.distance, found.index) = (distance, index);
                }
            }
            None => found = Some(Largest { distance, index, differing: 1 }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(a: f32, b: f32) -> Distance {
        distance(DType::F32, &a.to_le_bytes(), &b.to_le_bytes())
    }

    #[test]
    fn distances_count_representable_values() {
        assert_eq!(f32s(1.0, 1.0 + f32::EPSILON), Distance::Ulp(1));
        assert_eq!(f32s(1.0, 1.0 - f32::EPSILON / 2.0), Distance::Ulp(1));
        assert_eq!(f32s(0.0, -0.0), Distance::Ulp(0));
        assert_eq!(f32s(f32::from_bits(1), -f32::from_bits(1)), Distance::Ulp(2));
        assert_eq!(f32s(f32::MAX, f32::INFINITY), Distance::Ulp(1));
        assert_eq!(f32s(f32::NAN, -f32::NAN), Distance::Ulp(0));
        assert_eq!(f32s(f32::NAN, 1.0), Distance::Nan);
        assert!(Distance::Nan > Distance::Ulp(u64::MAX));
        assert_eq!(distance(DType::I32, &(-1i32).to_le_bytes(), &1i32.to_le_bytes()), Distance::Ulp(2));
        assert_eq!(distance(DType::F16, &[0, 0x3c], &[1, 0x3c]), Distance::Ulp(1));
    }

    #[test]
    fn the_largest_distance_of_arrays() {
        let array = |list: &[f32]| Array {
            dtype: DType::F32,
            shape: vec![list.len() as u64],
            bytes: list.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        let a = array(&[1.0, 2.0, 3.0]);
        assert_eq!(largest(&a, &a), None);
        let b = array(&[1.0, 2.0 + 2.0 * f32::EPSILON, 3.0 + 4.0 * f32::EPSILON]);
        assert_eq!(largest(&a, &b), Some(Largest { distance: Distance::Ulp(2), index: 2, differing: 2 }));
    }
}
