//! Compares the outputs of a run with expected outputs.

use wavesim_array::{Array, Num};

/// Maximum number of differing elements that are listed per output.
pub const LISTED: usize = 10;

/// Tolerance of a comparison: `|actual - expected| <= atol + rtol * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Relative to the expected value's magnitude.
    pub rtol: f64,
    /// Absolute.
    pub atol: f64,
}

/// An output that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// Name of the argument that was compared.
    pub output: String,
    /// Number of elements that differ.
    pub differing: usize,
    /// Number of elements in the output.
    pub total: usize,
    /// The first differing elements: index, expected, actual.
    pub first: Vec<(usize, Num, Num)>,
}

/// Compares element by element; both arrays have the same type and length. Elements agree if both are NaN, if
/// they are equal (zeros of either sign are), or if they are within the tolerance.
pub fn compare(output: &str, actual: &Array, expected: &Array, tolerance: Tolerance) -> Option<Mismatch> {
    let mut found =
        Mismatch { output: output.to_string(), differing: 0, total: expected.len(), first: Vec::new() };
    for (index, (a, e)) in actual.values().zip(expected.values()).enumerate() {
        if agree(a, e, tolerance) {
            continue;
        }
        found.differing += 1;
        if found.first.len() < LISTED {
            found.first.push((index, e, a));
        }
    }
    (found.differing != 0).then_some(found)
}

fn agree(actual: Num, expected: Num, Tolerance { rtol, atol }: Tolerance) -> bool {
    // 64-bit integers are not exact in f64.
    if let (Num::Int(a), Num::Int(e)) = (actual, expected)
        && (a == e || rtol == 0.0 && atol == 0.0)
    {
        return a == e;
    }
    let (a, e) = (actual.as_f64(), expected.as_f64());
    a.is_nan() && e.is_nan() || a == e || (a - e).abs() <= atol + rtol * e.abs()
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} of {} elements differ", self.output, self.differing, self.total)?;
        for (index, expected, actual) in &self.first {
            write!(f, "\n  [{index}]: expected {expected}, got {actual}")?;
        }
        if self.differing > self.first.len() {
            write!(f, "\n  …")?;
        }
        Ok(())
    }
}
