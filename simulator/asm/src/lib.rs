//! Assembly text <-> [`Inst`]: for AMD's machines in LLVM's AMDGPU syntax, for others as their description
//! says ([`plain`]).
//!
//! ```text
//! text --operand::parse_line--> Line --matching::assemble--> Parsed::inst --codec::encode--> words
//! words --codec::decode--> Inst --print::instruction--> text
//! ```
//!
//! [`parse`] does the first line in one call. A front end with rules of its own calls the two steps itself:
//! it may change the [`operand::Line`] between them (another spelling of an operand, a default), or read operands
//! one by one with [`operand::parse_operand`], [`operand::parse_register`] and `parse_modifier` on
//! a [`scan::Scanner`].
//!
//! ```
//! use wavesim_asm::{self as asm, Options};
//! use wavesim_isa::{arch::Arch, codec};
//! let options = Options::new(Arch::Rdna3);
//! let parsed = asm::parse("v_add_f32 v0, 1.0, v1", &options, &asm::expr::NoSymbols).unwrap();
//! assert_eq!(codec::encode(Arch::Rdna3, &parsed.inst).unwrap()[..], [0x0600_02f2]);
//! assert_eq!(asm::print::instruction(&parsed.inst, &options), "v_add_f32_e32 v0, 1.0, v1");
//! ```
//!
//! Symbols: one that `symbols` defines is a number at once. One that it does not (a label further down)
//! becomes a [`Fixup`]: the instruction's size is already final, and [`Fixup::apply`] fills the field in when
//! addresses are known.
//!
//! Both directions walk one description, [`form::Form`], made of the ISA tables: nothing here depends on
//! where a field's bits lie.
#![warn(missing_docs)]
// No files, threads, processes or clocks: clippy.toml has the list.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod conditional;
pub mod constant;
pub mod describe;
pub mod descriptor;
pub mod dialect;
mod directive;
pub mod error;
pub mod expand;
pub mod expr;
pub mod form;
pub mod image;
pub mod legal;
pub mod link;
pub mod listing;
pub mod macros;
pub mod matching;
mod matrix;
pub mod message;
pub mod metadata;
pub mod modifier;
pub mod names;
pub mod object;
pub mod operand;
pub mod plain;
pub mod print;
pub mod program;
mod reader;
pub mod scan;
pub mod source;
pub mod swizzle;
pub mod symbolic;
mod target;

pub use error::{AsmError, Span};
pub use expr::{Expr, NoSymbols, Symbols};

use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;

/// The machine to assemble for, and how strictly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The instruction set.
    pub arch: Arch,
    /// 32 or 64: how many registers a lane mask takes, and the registers of matrices.
    pub wave: u32,
    /// Accept what fields can say though hardware cannot do it ([`legal`]), as recorded instructions may have
    /// it.
    pub lenient: bool,
    /// Which pairs of scalar registers may start at an odd one.
    pub odd_pairs: OddPairs,
    /// Search for the nearest name to a misspelt one. Off beyond the errors that anyone reads.
    pub suggest: bool,
}

impl Options {
    /// Wave32, and no more than hardware can do: what LLVM accepts.
    pub fn new(arch: Arch) -> Options {
        Options { arch, wave: arch.wave_sizes()[0], lenient: false, odd_pairs: OddPairs::None, suggest: true }
    }

    /// The same options for waves of 32 or 64 lanes.
    pub fn wave(self, wave: u32) -> Options {
        Options { wave, ..self }
    }
}

/// Pairs of scalar registers that start at an odd one, which hardware does not have. The text format has: its
/// kernels start with an address in `s[3:4]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddPairs {
    /// No pair: what hardware can do.
    None,
    /// Only the addresses of scalar loads.
    Bases,
    /// Any pair.
    All,
}

/// An instruction, and which of its fields wait for symbols.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The instruction; fields that wait for symbols are not final.
    pub inst: Inst,
    /// Fields that wait for symbols.
    pub fixups: Vec<Fixup>,
}

/// A field whose value is an expression over symbols that were not known.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixup {
    /// Index in the encoding's fields.
    pub field: u8,
    /// How the value becomes the field's.
    pub kind: FixupKind,
    /// The value, over symbols.
    pub expr: Expr,
    /// Where the expression is in the line.
    pub span: Span,
}

/// How the value of a [`Fixup`] becomes a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixupKind {
    /// Words from the next instruction.
    Branch,
    /// 32 bits of a literal.
    Literal,
    /// A small immediate.
    Absolute,
}

impl Fixup {
    /// Sets the field. `next` is the address of the next instruction, in the same unit as labels: bytes.
    pub fn apply(&self, inst: &mut Inst, next: i64, symbols: &dyn Symbols) -> Result<(), AsmError> {
        self.set(inst, next, self.expr.eval(symbols)?)
    }

    /// As [`Fixup::apply`] with the expression's value.
    pub fn set(&self, inst: &mut Inst, next: i64, value: i64) -> Result<(), AsmError> {
        let value = match self.kind {
            FixupKind::Literal if (-(1i64 << 31)..1 << 32).contains(&value) => value as u32,
            FixupKind::Literal => {
                return Err(AsmError::new(self.span, format!("{value} does not fit 32 bits")));
            }
            FixupKind::Absolute if (-0x8000..=0xffff).contains(&value) => value as u32 & 0xffff,
            FixupKind::Absolute => {
                return Err(AsmError::new(self.span, format!("{value} does not fit 16 bits")));
            }
            FixupKind::Branch => {
                let distance = value.wrapping_sub(next);
                if distance % 4 != 0 {
                    return Err(AsmError::new(
                        self.span,
                        "the target is not an instruction: it is not aligned to 4 bytes",
                    ));
                }
                if !(-0x8000..=0x7fff).contains(&(distance / 4)) {
                    return Err(AsmError::new(self.span, format!("the target is too far: {distance} bytes")));
                }
                (distance / 4) as u32 & 0xffff
            }
        };
        inst.fields[self.field as usize] = value;
        Ok(())
    }
}

/// One instruction from a line without label and comment. In the syntax of a machine of its own, symbols are
/// places in the program.
pub fn parse(text: &str, options: &Options, symbols: &dyn Symbols) -> Result<Parsed, AsmError> {
    if let Some(machine) = options.arch.machine() {
        let label = |name: &str| symbols.value(name).and_then(|v| u64::try_from(v).ok()).ok_or(None);
        let inst = plain::instruction(text, options.arch, machine, 0, &label)?;
        return Ok(Parsed { inst, fixups: Vec::new() });
    }
    matching::assemble(&operand::parse_line(text, symbols)?, options)
}
