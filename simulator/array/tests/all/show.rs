//! Arrays as text.

use wavesim_array::show::show;
use wavesim_array::{Array, DType, Num};

fn f32s(values: &[f64]) -> String {
    let mut bytes = Vec::new();
    values.iter().for_each(|v| DType::F32.encode(Num::Float(*v), &mut bytes).unwrap());
    show(&Array { dtype: DType::F32, shape: vec![values.len() as u64], bytes }, false)
}

/// The expected texts are those of NumPy 2.4.
#[test]
fn floats_are_formatted_as_numpy_does() {
    let nan = f64::NAN;
    let inf = f64::INFINITY;
    for (values, text) in [
        (&[1e10, 1.5, -3e-5][..], "[ 1.0e+10  1.5e+00 -3.0e-05]"),
        (&[1e10, nan, -3e-5], "[ 1.e+10     nan -3.e-05]"),
        (&[1.5, nan, -3.0, inf, -inf], "[ 1.5  nan -3.   inf -inf]"),
        (&[nan, inf, -inf], "[ nan  inf -inf]"),
        (&[0.0, 0.0], "[0. 0.]"),
        (&[0.1, 0.25, 100.0], "[  0.1    0.25 100.  ]"),
        (&[0.1, 0.25, 1000.0], "[1.0e-01 2.5e-01 1.0e+03]"),
        (&[1.0 / 3.0, -0.0], "[ 0.33333334 -0.        ]"),
    ] {
        assert_eq!(f32s(values), text);
    }
}

#[test]
fn long_arrays_are_elided_and_rows_wrap() {
    let mut bytes = Vec::new();
    (0..2000).for_each(|v| DType::I32.encode(Num::Int(v), &mut bytes).unwrap());
    let a = Array { dtype: DType::I32, shape: vec![20, 100], bytes };
    let text = show(&a, false);
    assert!(text.starts_with("[[   0    1    2 ...   97   98   99]\n [ 100"), "{text}");
    assert!(text.contains("\n ...\n"), "{text}");
    let numbers = |t: &str| t.split(|c: char| !c.is_ascii_digit()).filter(|w| !w.is_empty()).count();
    assert_eq!((numbers(&show(&a, true)), numbers(&text)), (2000, 36));
    let row = Array { dtype: DType::I32, shape: vec![25], bytes: a.bytes[..100].to_vec() };
    assert_eq!(
        show(&row, false),
        "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24]"
    );
}

#[test]
fn scalars_are_formatted_as_python_does() {
    let one = |v: f64| {
        let mut bytes = Vec::new();
        DType::F32.encode(Num::Float(v), &mut bytes).unwrap();
        show(&Array { dtype: DType::F32, shape: vec![], bytes }, false)
    };
    assert_eq!([one(1.0), one(0.1), one(-2.5e20)], ["1.0", "0.1", "-2.5e+20"]);
}
