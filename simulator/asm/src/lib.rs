//! The syntax of instructions: converts between a line of assembly and [`Inst`]. AMD machines use LLVM's AMDGPU
//! syntax; other machines use the syntax of their description ([`generic`]). Files (directives, macros, sections,
//! symbols, objects) are the matter of the crate `wavesim-assembler`.
//!
//! ```text
//! text --operand::parse_line--> Line --matching::assemble--> Parsed::inst --codec::encode--> words
//! words --codec::decode--> Inst --print::instruction--> text
//! ```
//!
//! [`parse`] performs the first line in one call. A front end with rules of its own calls the two steps
//! separately: it can modify the [`operand::Line`] between them (an alternative spelling of an operand, a
//! default), or parse single operands with [`operand::parse_operand`], [`operand::parse_register`] and
//! `parse_modifier` on a [`scan::Scanner`].
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
//! Symbols: a symbol that `symbols` defines is replaced by its value. A symbol without a value (a label
//! defined further down) becomes a [`Fixup`]: the instruction's size is already final, and [`Fixup::apply`]
//! fills in the field once addresses are known.
//!
//! Both directions use the same description, [`form::Form`], which is built from the ISA tables; nothing here
//! depends on the bit positions of fields.
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod constant;
pub mod describe;
pub mod dialect;
pub mod error;
pub mod expr;
pub mod form;
pub mod generic;
pub mod image;
pub mod legal;
pub mod listing;
pub mod matching;
mod matrix;
pub mod message;
pub mod modifier;
pub mod names;
pub mod operand;
pub mod print;
pub mod scan;
pub mod swizzle;
pub mod symbolic;

pub use error::{AsmError, Span};
pub use expr::{Expr, NoSymbols, Symbols};

use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;

/// The target machine, and how strictly instructions are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The instruction set.
    pub arch: Arch,
    /// The wave size, 32 or 64. It decides how many registers a lane mask and a matrix take.
    pub wave: u32,
    /// Accept encodings that the hardware cannot execute ([`legal`]); recorded instructions may contain them.
    pub lenient: bool,
    /// Which scalar register pairs may start at an odd register.
    pub odd_pairs: OddPairs,
    /// Suggest the nearest name for a misspelt one. Switched off after [`error::MAX_SUGGESTIONS`] errors.
    pub suggest: bool,
    /// The bits of MODE that extend VGPR numbers (CDNA 5), which printing adds in comments: `v0 /*v256*/`.
    pub vgpr_msbs: u32,
}

impl Options {
    /// Options for wave32 with the hardware's restrictions enforced, as LLVM does.
    pub fn new(arch: Arch) -> Options {
        Options {
            arch,
            wave: arch.wave_sizes()[0],
            lenient: false,
            odd_pairs: OddPairs::None,
            suggest: true,
            vgpr_msbs: 0,
        }
    }

    /// Returns the same options with a wave size of 32 or 64.
    pub fn wave(self, wave: u32) -> Options {
        Options { wave, ..self }
    }
}

/// Whether scalar register pairs may start at an odd register. Hardware has no such pairs, but the text
/// format does: its kernels receive an address in `s[3:4]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddPairs {
    /// No pair, as in hardware.
    None,
    /// Only the base addresses of scalar loads.
    Bases,
    /// Any pair.
    All,
}

/// An instruction, and the fixups of its fields that depend on undefined symbols.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The instruction; fields with a fixup are not final.
    pub inst: Inst,
    /// The fields that depend on undefined symbols.
    pub fixups: Vec<Fixup>,
}

/// A field whose value is an expression over symbols that are not yet defined.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixup {
    /// Index into the encoding's fields.
    pub field: u8,
    /// How the expression's value is converted to the field's value.
    pub kind: FixupKind,
    /// The expression.
    pub expr: Expr,
    /// The span of the expression in the line.
    pub span: Span,
}

/// How the value of a [`Fixup`] is converted to the field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixupKind {
    /// A distance in 32-bit words from the next instruction.
    Branch,
    /// A 32-bit literal.
    Literal,
    /// A 16-bit immediate.
    Absolute,
}

impl Fixup {
    /// Evaluates the expression and sets the field. `next` is the address of the next instruction in bytes,
    /// the unit of labels.
    pub fn apply(&self, inst: &mut Inst, next: i64, symbols: &dyn Symbols) -> Result<(), AsmError> {
        self.set(inst, next, self.expr.eval(symbols)?)
    }

    /// Sets the field from the expression's value. `next` is as in [`Fixup::apply`].
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

/// Parses one instruction; `text` has neither label nor comment. For a machine with its own syntax, symbols
/// are byte offsets in the program.
pub fn parse(text: &str, options: &Options, symbols: &dyn Symbols) -> Result<Parsed, AsmError> {
    if let Some(machine) = options.arch.machine() {
        let label = |name: &str| symbols.value(name).and_then(|v| u64::try_from(v).ok()).ok_or(None);
        let inst = generic::instruction(text, options.arch, machine, 0, &label)?;
        return Ok(Parsed { inst, fixups: Vec::new() });
    }
    matching::assemble(&operand::parse_line(text, symbols)?, options)
}
