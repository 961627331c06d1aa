//! Patterns of `ds_swizzle_b32`.

use wavesim_asm::expr::NoSymbols;
use wavesim_asm::operand::{ModifierValue, parse_line};
use wavesim_asm::swizzle::{parse, print};
use wavesim_isa::arch::Arch;

#[test]
fn every_swizzle_pattern_round_trips() {
    for value in 0..=u16::MAX {
        let text = print(value, Arch::Cdna5);
        let text = format!("x offset:{text}");
        let line = parse_line(&text, &NoSymbols).unwrap();
        let back = match &line.modifiers[0].value {
            ModifierValue::Call(call) => parse(call, line.span, Arch::Cdna5).unwrap(),
            ModifierValue::Int(v) => *v as u16,
            other => panic!("{other:?}"),
        };
        // FFT and ROTATE have unused bits. Different masks can describe the same permutation.
        let unused = value >= 0xc000 && print(back, Arch::Cdna5) == print(value, Arch::Cdna5);
        let lanes = |v: u16| (0..32).map(|l| (l & v & 31 | v >> 5 & 31) ^ v >> 10 & 31).collect::<Vec<_>>();
        assert!(back == value || unused || value & 0x8000 == 0 && lanes(back) == lanes(value), "{text}");
    }
}
