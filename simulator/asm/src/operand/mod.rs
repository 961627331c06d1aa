//! One line of assembly as written: mnemonic, operands, modifiers. This module parses registers, numbers and
//! expressions, and must not know any instruction.
//!
//! [`parse_line`] is the entry point. [`matching`](super::matching) decides which operands an instruction
//! takes.

mod line;
mod register;
mod value;

pub use line::parse_line;
pub use register::{Half, Reg, RegBase, Special, consecutive, parse_register};
pub use value::parse_operand;

use super::error::Span;
use super::expr::Expr;
use smallvec::SmallVec;

/// Operands of a line; nearly all instructions fit without an allocation.
pub type Operands<'t> = SmallVec<[Operand<'t>; 4]>;
/// Modifiers of a line; one fits without an allocation.
pub type Modifiers<'t> = SmallVec<[Modifier<'t>; 1]>;

/// A line that holds one instruction or the two halves of a dual instruction. Names and words borrow from the
/// text.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'t> {
    /// The first word.
    pub mnemonic: &'t str,
    /// The mnemonic's span.
    pub mnemonic_span: Span,
    /// The operands in source order.
    pub operands: Operands<'t>,
    /// The modifiers in source order.
    pub modifiers: Modifiers<'t>,
    /// The half after `::`.
    pub second: Option<Box<Line<'t>>>,
    /// The span of the line, without surrounding space.
    pub span: Span,
}

/// An operand with its sign modifiers.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand<'t> {
    /// The operand without signs.
    pub value: Value<'t>,
    /// `-v1`, `neg(v1)`. The sign of a number is part of its value.
    pub neg: bool,
    /// `|v1|`, `abs(v1)`.
    pub abs: bool,
    /// `lit(…)`: forces a literal even where an inline constant would do.
    pub literal: bool,
    /// `sext(v1)`: sign-extend the part of the register that SDWA selects.
    pub sext: bool,
    /// `--1`: a number with two signs, which LLVM accepts only for integers.
    pub doubled: bool,
    /// The span of the operand, signs included.
    pub span: Span,
}

/// The forms of an operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'t> {
    /// A register or a range of registers.
    Reg(Reg),
    /// An integer, or an expression that could be evaluated.
    Int(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// An expression over symbols that have no value yet.
    Expr(Box<Expr>),
    /// A word that is not a register: `off`, `mrt0`, `attr3.x`, a label.
    Word(&'t str),
    /// `vmcnt(0)`, `hwreg(HW_REG_MODE, 0, 4)`, `sendmsg(MSG_INTERRUPT)`.
    Call(Box<Call<'t>>),
    /// A list of registers that is not a range (`[v1, v5, v[7:8]]`): the addresses of an image instruction.
    List(Vec<Reg>),
}

/// A name with arguments in parentheses, or a structure in braces ([`STRUCTURE`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Call<'t> {
    /// The word before the parenthesis.
    pub name: &'t str,
    /// The arguments in source order.
    pub args: Vec<Arg<'t>>,
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Arg<'t> {
    /// The value.
    pub value: ArgValue<'t>,
    /// The span of the argument.
    pub span: Span,
}

/// The forms of an argument or a list element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArgValue<'t> {
    /// An integer, or an expression that could be evaluated.
    Int(i64),
    /// Any other word.
    Word(&'t str),
}

/// A modifier, which follows the operands: `glc`, `offset:16`.
#[derive(Debug, Clone, PartialEq)]
pub struct Modifier<'t> {
    /// The word before the colon; for a negated flag (`noglc`), without `no`.
    pub name: &'t str,
    /// The value after the colon.
    pub value: ModifierValue<'t>,
    /// The span of the whole modifier.
    pub span: Span,
    /// The span of the value.
    pub value_span: Span,
}

/// The value of a modifier.
#[derive(Debug, Clone, PartialEq)]
pub enum ModifierValue<'t> {
    /// A flag that is set.
    None,
    /// A flag that is cleared: `noglc`.
    No,
    /// `offset:16`.
    Int(i64),
    /// `dim:SQ_RSRC_IMG_2D`.
    Word(&'t str),
    /// `quad_perm:[0,1,2,3]`.
    List(Vec<ArgValue<'t>>),
    /// `offset:swizzle(…)`
    Call(Box<Call<'t>>),
}

/// An operand without signs and with an empty span.
#[inline]
pub fn unsigned(value: Value<'_>) -> Operand<'_> {
    Operand {
        value,
        neg: false,
        abs: false,
        literal: false,
        sext: false,
        doubled: false,
        span: Span::default(),
    }
}

/// The name given to a call that is written in braces.
pub const STRUCTURE: &str = "{}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::NoSymbols;
    use crate::scan::Scanner;

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
        assert_eq!(value("-1.5e-1"), Value::Float(-0.15));
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
}
