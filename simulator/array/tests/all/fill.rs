//! Initialisers.

use wavesim_array::fill::{Random, arange, rand};
use wavesim_array::{Array, DType, Num};

fn ints(a: &Array) -> Vec<i128> {
    a.values().map(|n| n.as_int().unwrap()).collect()
}

#[test]
fn arange_supports_start_and_step() {
    let up = arange(DType::I32, &[4], Num::Int(0), Num::Int(4), Num::Int(1)).unwrap();
    assert_eq!(ints(&up), [0, 1, 2, 3]);
    let down = arange(DType::I8, &[3], Num::Int(5), Num::Int(-1), Num::Int(-2)).unwrap();
    assert_eq!(ints(&down), [5, 3, 1]);
    let parts = arange(DType::F32, &[2, 2], Num::Int(0), Num::Int(1), Num::Float(0.25)).unwrap();
    assert_eq!(parts.values().map(Num::as_f64).collect::<Vec<_>>(), [0.0, 0.25, 0.5, 0.75]);
    assert_eq!(
        arange(DType::I32, &[4], Num::Int(0), Num::Int(5), Num::Int(1)).unwrap_err().to_string(),
        "arange gives 5 values, i32[4] has 4"
    );
    assert!(arange(DType::I32, &[4], Num::Int(0), Num::Int(5), Num::Int(0)).is_err());
}

#[test]
fn rand_is_in_range_and_deterministic() {
    for dtype in DType::ALL {
        let a = rand(dtype, &[4096], &mut Random::new(7)).unwrap();
        let high = if dtype.is_float() { 1.0 } else { 100.0 };
        assert!(a.values().all(|n| (0.0..high).contains(&n.as_f64())), "{}", dtype.name());
        assert_eq!(a, rand(dtype, &[4096], &mut Random::new(7)).unwrap());
        assert_ne!(a, rand(dtype, &[4096], &mut Random::new(8)).unwrap());
    }
}

#[test]
fn splitmix_matches_the_reference() {
    // The first outputs for seed 1234567 of Vigna's reference implementation.
    let reference = [6457827717110365317u64, 3203168211198807973];
    // A float has the upper bits of an output, as many as its type has precision.
    let expected = reference.map(|bits| Num::Float((bits >> 11) as f64 / (1u64 << 53) as f64));
    let found = rand(DType::F64, &[2], &mut Random::new(1234567)).unwrap();
    assert!(found.values().eq(expected), "{found:?}");
}
