//! Decimal numbers are rounded once, to the nearest value of each type. `rustc_apfloat` parses the same texts.

use isa_spec::arith::decimal::Decimal;
use proptest::prelude::*;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, Round};

fn reference<F: Float>(text: &str) -> u128 {
    F::from_str_r(text, Round::NearestTiesToEven).unwrap().value.to_bits()
}

fn agrees(text: &str) {
    let number = Decimal::parse(text).unwrap_or_else(|| panic!("{text}"));
    let bits = [
        number.to_f64().to_bits() as u128,
        number.to_f32().to_bits() as u128,
        number.to_f16().to_bits() as u128,
        number.to_bf16().to_bits() as u128,
    ];
    let expected = [
        reference::<Double>(text),
        reference::<Single>(text),
        reference::<Half>(text),
        reference::<BFloat>(text),
    ];
    assert_eq!(bits, expected, "{text}");
}

/// The exact decimal expansion of a value.
fn exact(value: f64) -> String {
    format!("{value:.1100}")
}

/// Texts at and around the middle between two neighbours, which rounding to f64 first would make a tie.
fn around(middle: f64) -> [String; 3] {
    let text = exact(middle);
    // The last digit of the expansion is a zero that is far below the precision of f64.
    let above = format!("{}1", text);
    let below = exact(middle.next_down());
    // A number between the middle and the f64 below it, closer to the middle.
    let between = {
        let digits = text.trim_end_matches('0');
        let (head, last) = digits.split_at(digits.len() - 1);
        match last {
            "." => below,
            _ => format!("{head}{}9999999999999999999999", last.parse::<u8>().unwrap() - 1),
        }
    };
    [text, above, between]
}

#[test]
fn known_ties() {
    for text in [
        "0",
        "-0.0",
        "1e-400",
        "1e400",
        "-1e400",
        "1.00000005960464477539062500000000000000001",
        "1.000000059604644775390625",
        "16777217.0000000000000000001",
        "1.00048828125000000000000000000000001",
        "1.0004882812500001",
        "1.003906250000000000000000000001",
        "65519.99999999999999999999999",
        "65520",
        "340282356779733661637539395458142568447.9999",
        "340282356779733661637539395458142568448",
        "7.006492321624085354618e-46",
        "7.0064923216240853546186479164495806564013097093825788587853e-46",
        "2.98023223876953125e-8",
        "2.980232238769531250000000000000000000001e-8",
        "00012.5e-0003",
        ".5",
        "5.",
        "1e99999999999999999999",
        "0e99999999999999999999",
    ] {
        agrees(text);
        agrees(&format!("-{}", text.trim_start_matches('-')));
    }
    for text in ["", "e5", "nan", "inf", "1.5f", "0x1p3", "1_000", "--1", "."] {
        assert_eq!(Decimal::parse(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn any_digits(text in "-?[0-9]{1,25}(\\.[0-9]{0,40})?(e-?[0-9]{1,2})?") {
        agrees(&text);
    }

    #[test]
    fn middles_of_f32(bits in 0u32..0x7f80_0000) {
        let middle = (f32::from_bits(bits) as f64 + f32::from_bits(bits + 1) as f64) / 2.0;
        if middle.is_finite() && middle != 0.0 {
            around(middle).iter().for_each(|text| agrees(text));
        }
    }

    #[test]
    fn middles_of_f16_and_bf16(bits in 0u16..0x7c00, wide in 0u16..0x7f80) {
        let half = |bits| half::f16::from_bits(bits).to_f64();
        let brain = |bits| half::bf16::from_bits(bits).to_f64();
        for middle in [(half(bits) + half(bits + 1)) / 2.0, (brain(wide) + brain(wide + 1)) / 2.0] {
            if middle.is_finite() && middle != 0.0 {
                around(middle).iter().for_each(|text| agrees(text));
            }
        }
    }

    #[test]
    fn unsigned_integers(value in any::<u128>(), shift in 0u32..128) {
        let value = value >> shift;
        let (ours, text) = (Decimal::from(value), value.to_string());
        assert_eq!(ours.to_f64().to_bits() as u128, reference::<Double>(&text), "{text}");
        assert_eq!(ours.to_f32().to_bits() as u128, reference::<Single>(&text), "{text}");
        assert_eq!(ours.to_f16().to_bits() as u128, reference::<Half>(&text), "{text}");
    }

    #[test]
    fn integers(value in any::<i128>(), shift in 0u32..127) {
        let value = value >> shift;
        let (ours, text) = (Decimal::from(value), value.to_string());
        assert_eq!(ours.to_f64().to_bits() as u128, reference::<Double>(&text), "{text}");
        assert_eq!(ours.to_f32().to_bits() as u128, reference::<Single>(&text), "{text}");
        assert_eq!(ours.to_bf16().to_bits() as u128, reference::<BFloat>(&text), "{text}");
    }
}
