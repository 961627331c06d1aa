//! Comparison with expected outputs.

use wavesim_array::{DType, Num, fill};
use wavesim_loader::compare::{Tolerance, compare};

/// Returns whether single elements agree.
fn agree(actual: Num, expected: Num, tolerance: Tolerance) -> bool {
    let one = |n: Num| {
        let dtype = if matches!(n, Num::Int(_)) { DType::I64 } else { DType::F64 };
        fill::list(dtype, &[1], &[n]).unwrap()
    };
    let found = compare("out", &one(actual), &one(expected), tolerance);
    assert!(found.iter().all(|found| (found.differing, found.total, found.first.len()) == (1, 1, 1)));
    found.is_none()
}

#[test]
fn tolerances_are_applied() {
    let exact = Tolerance { rtol: 0.0, atol: 0.0 };
    let loose = Tolerance { rtol: 0.1, atol: 0.0 };
    let (nan, inf) = (Num::Float(f64::NAN), Num::Float(f64::INFINITY));
    assert!(agree(nan, nan, exact) && agree(inf, inf, exact));
    assert!(!agree(inf, Num::Float(1.0), loose) && !agree(Num::Float(1.0), nan, loose));
    assert!(agree(Num::Float(-0.0), Num::Float(0.0), exact));
    assert!(
        agree(Num::Float(1.05), Num::Float(1.0), loose) && !agree(Num::Float(1.05), Num::Float(1.0), exact)
    );
    let big = 1i128 << 60;
    assert!(!agree(Num::Int(big + 1), Num::Int(big), exact));
}
