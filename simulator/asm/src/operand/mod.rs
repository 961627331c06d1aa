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
use isa_spec::arith::decimal::Decimal;
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
    Float(Decimal),
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
    /// A string in quotes.
    Text(&'t str),
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
