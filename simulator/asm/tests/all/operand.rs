//! Operands and modifiers as written.

use wavesim_asm::error::Span;
use wavesim_asm::expr::NoSymbols;
use wavesim_asm::operand::{ArgValue, Half, Line, ModifierValue, Operand, Reg, RegBase, Value, parse_line};
use wavesim_asm::scan::Scanner;

fn operand(text: &str) -> Operand<'_> {
    let s = &mut Scanner::new(text);
    let mut line = Line::new("x", Span::default());
    line.read_rest(s, &NoSymbols).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(line.operands.len(), 1, "{text}");
    line.operands[0].clone()
}

fn value(text: &str) -> Value<'_> {
    operand(text).value
}

#[test]
fn registers() {
    assert_eq!(value("v1"), Value::Reg(Reg::vgpr(1, 1)));
    assert_eq!(value("v[1:4]"), Value::Reg(Reg::vgpr(1, 4)));
    assert_eq!(value("s[2*2]"), Value::Reg(Reg::sgpr(4, 1)));
    assert_eq!(value("[s2,s3]"), Value::Reg(Reg::sgpr(2, 2)));
    assert_eq!(value("[vcc_lo, vcc_hi]"), value("vcc"));
    assert_eq!(value("ttmp[4:5]"), Value::Reg(Reg { base: RegBase::Ttmp(4), count: 2, half: None }));
    assert_eq!(value("v7.h"), Value::Reg(Reg { half: Some(Half::High), ..Reg::vgpr(7, 1) }));
    assert!(matches!(value("vcc_lo.h"), Value::Reg(Reg { half: Some(Half::High), count: 1, .. })));
    assert_eq!(value("[v1, v2]"), Value::List(vec![Reg::vgpr(1, 1), Reg::vgpr(2, 1)]));
    assert_eq!(value("vmem"), Value::Word("vmem"));
}

#[test]
fn signs() {
    let o = operand("-|v1|");
    assert!(o.neg && o.abs);
    let o = operand("neg(abs(v[1:2]))");
    assert!(o.neg && o.abs);
    let o = operand("-v[1:2]");
    assert!(o.neg && !o.abs);
    assert!(operand("|-1.5|").abs);
    assert_eq!(value("-1"), Value::Int(-1));
    assert_eq!(value("-1.5e-1"), Value::Float((-0.15).into()));
    assert_eq!(value("0x7f+1"), Value::Int(128));
    assert!(operand("lit(1)").literal);
    assert_eq!(value("1|2"), Value::Int(3));
}

#[test]
fn modifiers_and_calls() {
    let line = parse_line("ds_x v1, v2 offset:4+4 gds", &NoSymbols).unwrap();
    assert_eq!(line.modifiers[0].value, ModifierValue::Int(8));
    assert_eq!(line.modifiers[1].name, "gds");
    let line = parse_line("v_x v1 quad_perm:[0,1,2,3] dim:2D", &NoSymbols).unwrap();
    assert_eq!(line.modifiers[0].value, ModifierValue::List([0, 1, 2, 3].map(ArgValue::Int).to_vec()));
    assert_eq!(line.modifiers[1].value, ModifierValue::Word("2D"));
    let line = parse_line("s_waitcnt vmcnt(0) & lgkmcnt(1)", &NoSymbols).unwrap();
    assert_eq!(line.operands.len(), 2);
    let line = parse_line("v_dual_a v1, v2 :: v_dual_b v3, v4", &NoSymbols).unwrap();
    assert_eq!(line.second.unwrap().operands.len(), 2);
}

#[test]
fn errors_have_spans() {
    for (text, column) in [("s_x s[3:1]", 5), ("s_x 12ab", 5), ("s_x s1,", 8), ("s_x |v1", 8)] {
        let e = parse_line(text, &NoSymbols).unwrap_err();
        assert_eq!(e.column(text), column, "{text}: {e}");
    }
}
