//! Numbers of launch descriptions are the nearest values of their types.

use proptest::prelude::*;
use wavesim_array::DType;
use wavesim_loader::launch::{ArgumentKind, TargetSelection, parse};

/// The bytes of a scalar that a description gives as `text`, directly or in `per_target`.
fn scalar(dtype: DType, text: &str, override_args: bool) -> Vec<u8> {
    let args =
        format!(r#"[{{"name": "x", "kind": "scalar", "dtype": "{}", "value": {text}}}]"#, dtype.name());
    let (base, own) =
        if override_args { ("[]", format!(r#""args": {args}"#)) } else { (&*args, String::new()) };
    let description = format!(
        r#"{{"schema": "wavesim-launch-1", "kernel": "k", "grid": [1, 1, 1], "block": [1, 1, 1],
            "args": {base}, "code": {{"gfx1100": "k.co"}}, "per_target": {{"gfx1100": {{{own}}}}}}}"#
    );
    let (launch, _) = parse(&description, &TargetSelection::default()).unwrap();
    let ArgumentKind::Scalar { value, .. } = &launch.args[0].kind else { panic!("not a scalar") };
    let mut bytes = Vec::new();
    dtype.encode(value.0, &mut bytes).unwrap();
    bytes
}

#[test]
fn numbers_are_not_rounded_twice() {
    // Just above the middle between 1 and its successor.
    for override_args in [false, true] {
        let bits = |dtype, text| scalar(dtype, text, override_args);
        assert_eq!(bits(DType::F32, "1.000000059604644775390626"), 1.000_000_1_f32.to_le_bytes());
        assert_eq!(bits(DType::F16, "1.00048828125000000000001"), [0x01, 0x3c]);
        assert_eq!(bits(DType::BF16, "-1.00390625000000000000001"), [0x81, 0xbf]);
        assert_eq!(bits(DType::F64, "\"-inf\""), f64::NEG_INFINITY.to_le_bytes());
        assert_eq!(bits(DType::F32, "-0"), (-0.0_f32).to_le_bytes());
        assert_eq!(bits(DType::U64, "18446744073709551615"), [0xff; 8]);
    }
}

proptest! {
    #[test]
    fn floats_are_nearest(value in any::<f64>(), text in "-?[1-9][0-9]{0,20}\\.[0-9]{1,20}") {
        if value.is_finite() {
            assert_eq!(scalar(DType::F64, &format!("{value:e}"), false), value.to_le_bytes());
        }
        assert_eq!(scalar(DType::F64, &text, false), text.parse::<f64>().unwrap().to_le_bytes());
        assert_eq!(scalar(DType::F32, &text, false), text.parse::<f32>().unwrap().to_le_bytes());
    }
}
