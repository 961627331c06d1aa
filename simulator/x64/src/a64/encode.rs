//! A buffer of instructions, with labels, jump tables and constants that are patched at the end.

use crate::a64::rows::Row;
use crate::encode::Assembled;
use crate::error::CompileError;
use crate::inst::Label;
use std::collections::HashMap;

/// What the distance in an instruction leads to.
#[derive(Debug, Clone, Copy)]
enum Destination {
    Label(Label),
    /// The index of an instruction.
    Instruction(u32),
    Constant(u32),
    Table(u32),
}

/// A distance that must be patched.
struct Patch {
    /// The index of the instruction.
    at: u32,
    row: Row,
    to: Destination,
}

/// A jump to code that follows later.
#[must_use]
pub struct Forward {
    at: u32,
    row: Row,
}

pub struct Buffer {
    words: Vec<u32>,
    labels: Vec<u32>,
    patches: Vec<Patch>,
    tables: Vec<Vec<Label>>,
    constants: Vec<[u32; 4]>,
    constant_numbers: HashMap<[u32; 4], u32>,
    /// The first error.
    error: Option<CompileError>,
}

/// Returns a register's number at the positions of the result, the sources and the second register of a pair.
pub fn d(register: u8) -> u32 {
    u32::from(register)
}
pub fn n(register: u8) -> u32 {
    u32::from(register) << 5
}
pub fn m(register: u8) -> u32 {
    u32::from(register) << 16
}
pub fn a(register: u8) -> u32 {
    u32::from(register) << 10
}

/// The bit of instructions on 64 bits.
pub const WIDE: u32 = 1 << 31;

/// Returns the fields of a mask that is an immediate of logical operations: runs of ones that are repeated
/// (*DecodeBitMasks* in Arm's manual).
pub fn bit_mask(value: u64, wide: bool) -> Option<u32> {
    let value = if wide { value } else { value & 0xffff_ffff | value << 32 };
    if value == 0 || value == u64::MAX {
        return None;
    }
    let repeats = |size: &u32| value.rotate_right(*size) == value;
    let size = [2u32, 4, 8, 16, 32, 64].into_iter().find(repeats)?;
    let all = u64::MAX >> (64 - size);
    let element = value & all;
    let ones = element.count_ones();
    let run = u64::MAX >> (64 - ones);
    let rotated = |by: &u32| (element << by | element.checked_shr(size - by).unwrap_or(0)) & all == run;
    let rotation = (0..size).find(rotated)?;
    let imms = 0x3f & !(2 * size - 1) | (ones - 1);
    Some(u32::from(size == 64) << 22 | rotation << 16 | imms << 10)
}

impl Buffer {
    pub fn new(labels: u32, capacity: usize) -> Buffer {
        Buffer {
            words: Vec::with_capacity(capacity),
            labels: vec![u32::MAX; labels as usize],
            patches: Vec::new(),
            tables: Vec::new(),
            constants: Vec::new(),
            constant_numbers: HashMap::new(),
            error: None,
        }
    }

    pub fn fail(&mut self, error: CompileError) {
        self.error.get_or_insert(error);
    }

    /// Appends an instruction with its fields.
    pub fn emit(&mut self, row: Row, fields: u32) {
        debug_assert!(row.word() & fields == 0, "{row:?} {fields:#x}");
        self.words.push(row.word() | fields);
    }

    pub fn dn(&mut self, row: Row, to: u8, from: u8) {
        self.emit(row, d(to) | n(from));
    }

    pub fn dnm(&mut self, row: Row, to: u8, first: u8, second: u8) {
        self.emit(row, d(to) | n(first) | m(second));
    }

    /// Moves a general register of 64 bits.
    pub fn mov(&mut self, to: u8, from: u8) {
        if to != from {
            self.emit(Row::MOV, WIDE | d(to) | m(from));
        }
    }

    /// Moves a vector register.
    pub fn vmov(&mut self, to: u8, from: u8) {
        if to != from {
            self.emit(Row::VMOV, d(to) | n(from) | m(from));
        }
    }

    /// Loads an immediate. Preserves the flags.
    pub fn load_imm(&mut self, to: u8, bits: u64) {
        let parts: [u32; 4] = std::array::from_fn(|k| (bits >> (16 * k)) as u32 & 0xffff);
        let different = |from: u32| parts.iter().filter(|part| **part != from).count();
        let (zeros, ones) = (different(0), different(0xffff));
        if zeros.min(ones) > 1 {
            for (row, wide) in [(Row::ORR_IMM, false), (Row::ORR_IMM, true)] {
                let fits = wide || bits >> 32 == 0;
                if let Some(mask) = bit_mask(bits, wide).filter(|_| fits) {
                    return self.emit(row, u32::from(wide) << 31 | mask | d(to) | n(31));
                }
            }
        }
        let (first, skipped) = if ones < zeros { (Row::MOVN, 0xffff) } else { (Row::MOVZ, 0) };
        let mut row = first;
        for (k, part) in (0u32..).zip(parts).filter(|(_, part)| *part != skipped) {
            let part = if row == Row::MOVN { !part & 0xffff } else { part };
            self.emit(row, WIDE | d(to) | part << 5 | k << 21);
            row = Row::MOVK;
        }
        if row == first {
            self.emit(row, WIDE | d(to));
        }
    }

    /// Adds a displacement to a base, which may be the stack pointer, as the result may.
    pub fn add_imm(&mut self, to: u8, base: u8, disp: i64) {
        let row = if disp < 0 { Row::SUB_IMM } else { Row::ADD_IMM };
        let (mut rest, mut from) = (disp.unsigned_abs(), base);
        while rest >= 4096 {
            let part = (rest >> 12).min(0xfff);
            self.emit(row, WIDE | d(to) | n(from) | (part as u32) << 10 | 1 << 22);
            rest -= part << 12;
            from = to;
        }
        if rest > 0 || from != to {
            self.emit(row, WIDE | d(to) | n(from) | (rest as u32) << 10);
        }
    }

    /// Moves the bits of a register from `lsb` on, `width` of them, to the lowest of another one.
    pub fn ubfx(&mut self, to: u8, from: u8, lsb: u32, width: u32) {
        self.emit(Row::UBFM, d(to) | n(from) | lsb << 16 | (lsb + width - 1) << 10);
    }

    /// Inserts the lowest bits of a register into another one.
    pub fn bfi(&mut self, to: u8, from: u8, lsb: u32, width: u32) {
        self.emit(Row::BFM, d(to) | n(from) | ((32 - lsb) & 31) << 16 | (width - 1) << 10);
    }

    /// Emits a jump, with the register or the condition in `fields`.
    pub fn jump(&mut self, row: Row, fields: u32, to: Label) {
        self.patch(row, fields, Destination::Label(to));
    }

    /// Emits a jump to code that is emitted later.
    pub fn forward(&mut self, row: Row, fields: u32) -> Forward {
        let at = self.position();
        self.emit(row, fields);
        Forward { at, row }
    }

    /// The next instruction is what a jump leads to.
    pub fn arrive(&mut self, forward: Forward) {
        let to = Destination::Instruction(self.position());
        self.patches.push(Patch { at: forward.at, row: forward.row, to });
    }

    /// Emits a jump to an instruction that has been emitted.
    pub fn back(&mut self, row: Row, fields: u32, to: u32) {
        self.patch(row, fields, Destination::Instruction(to));
    }

    /// Loads half of a constant vector.
    pub fn load_constant(&mut self, to: u8, words: [u32; 4]) {
        let number = *self.constant_numbers.entry(words).or_insert_with(|| {
            self.constants.push(words);
            self.constants.len() as u32 - 1
        });
        self.patch(Row::LDR_Q_LITERAL, d(to), Destination::Constant(number));
    }

    /// Loads the address of a new jump table, whose entries are relative to the table.
    pub fn table(&mut self, to: u8, labels: Vec<Label>) {
        self.tables.push(labels);
        self.patch(Row::ADR, d(to), Destination::Table(self.tables.len() as u32 - 1));
    }

    fn patch(&mut self, row: Row, fields: u32, to: Destination) {
        self.patches.push(Patch { at: self.position(), row, to });
        self.emit(row, fields);
    }

    pub fn label(&mut self, label: Label) {
        self.labels[label.index()] = self.position();
    }

    /// Returns the index of the next instruction.
    pub fn position(&self) -> u32 {
        self.words.len() as u32
    }

    /// Returns all bytes: code, tables, constants, which are aligned to 16 bytes if the whole is.
    pub fn finish(mut self) -> Result<Assembled, CompileError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let code = self.words.len();
        let label_at = |label: Label| match self.labels[label.index()] {
            u32::MAX => Err(CompileError::Label(label.0)),
            at => Ok(at),
        };
        let (mut tables, mut after) = (Vec::new(), Vec::new());
        for labels in &self.tables {
            let base = (code + after.len()) as u32;
            tables.push(base);
            for &label in labels {
                after.push(label_at(label)?.wrapping_sub(base).wrapping_mul(4));
            }
        }
        after.resize((code + after.len()).next_multiple_of(4) - code, Row::BRK.word());
        let constants = (code + after.len()) as u32;
        after.extend(self.constants.iter().flatten());
        for patch in &self.patches {
            let to = match patch.to {
                Destination::Label(label) => label_at(label)?,
                Destination::Instruction(at) => at,
                Destination::Table(number) => tables[number as usize],
                Destination::Constant(number) => constants + 4 * number,
            };
            let distance = to as i32 - patch.at as i32;
            let (limit, field) = match patch.row {
                Row::B | Row::BL => (1 << 25, distance as u32 & 0x3ff_ffff),
                // In bytes, whose lowest two bits are elsewhere.
                Row::ADR => (1 << 18, (distance as u32 & 0x7_ffff) << 5),
                _ => (1 << 18, (distance as u32 & 0x7_ffff) << 5),
            };
            if !(-limit..limit).contains(&distance) {
                return Err(CompileError::TooFar(4 * code as u64));
            }
            self.words[patch.at as usize] |= field;
        }
        let bytes = self.words.iter().chain(&after).flat_map(|word| word.to_le_bytes()).collect();
        Ok(Assembled { bytes, code_size: 4 * code })
    }
}
