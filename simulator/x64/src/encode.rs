//! Encodes instructions, and patches jumps, constants and tables at the end.

use crate::error::CompileError;
use crate::inst::Label;
use crate::reg::RegisterKind;
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};
use std::cell::Cell;

/// A register, identified by its number, or memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rm {
    Register(u8),
    /// A general register plus a displacement.
    Memory(u8, i32),
    /// A constant of the function.
    Constant(u32),
}

/// The target of a 32-bit displacement that is relative to the end of its instruction.
#[derive(Debug, Clone, Copy)]
enum Target {
    Label(Label),
    Constant(u32),
    Table(u32),
}

/// A displacement that must be patched.
struct Patch {
    at: u32,
    end: u32,
    target: Target,
}

/// The bytes of a function.
#[derive(Debug)]
pub(crate) struct Assembled {
    /// Code, tables, constants.
    pub bytes: Vec<u8>,
    /// The size of the code in bytes.
    pub code_size: usize,
}

thread_local! {
    /// The encoder of the last function. Creating one builds tables, which takes longer than encoding a small
    /// function.
    static ENCODER: Cell<Option<Encoder>> = const { Cell::new(None) };
}

pub(crate) struct Buffer {
    encoder: Encoder,
    position: usize,
    labels: Vec<u32>,
    patches: Vec<Patch>,
    tables: Vec<Vec<Label>>,
    /// The first error.
    error: Option<CompileError>,
}

impl Buffer {
    pub fn new(labels: u32, capacity: usize) -> Result<Buffer, CompileError> {
        let encoder = match ENCODER.take() {
            Some(mut encoder) => {
                encoder.set_buffer(Vec::with_capacity(capacity));
                encoder
            }
            None => Encoder::try_with_capacity(64, capacity).map_err(CompileError::Encoder)?,
        };
        Ok(Buffer {
            encoder,
            position: 0,
            labels: vec![u32::MAX; labels as usize],
            patches: Vec::new(),
            tables: Vec::new(),
            error: None,
        })
    }

    pub fn fail(&mut self, error: CompileError) {
        self.error.get_or_insert(error);
    }

    fn encode(&mut self, instruction: Result<Instruction, iced_x86::IcedError>) {
        let result = instruction.and_then(|instruction| {
            let encoded = self.encoder.encode(&instruction, self.position as u64);
            encoded.map_err(|error| (error, instruction.code())).map_err(|(error, code)| {
                self.error.get_or_insert(CompileError::Encode { code: code as u32, error: error.clone() });
                error
            })
        });
        match result {
            Ok(length) => self.position += length,
            Err(error) => self.fail(CompileError::Encoder(error)),
        }
    }

    /// Records that the displacement of the last instruction refers to `target`.
    fn patch(&mut self, target: Target, length_before: usize) {
        let offset = self.encoder.get_constant_offsets().displacement_offset();
        self.patches.push(Patch { at: (length_before + offset) as u32, end: self.position as u32, target });
    }

    /// Encodes an instruction with an operand that may be memory.
    fn encode_rm(
        &mut self,
        rm: Rm,
        kind: RegisterKind,
        make: impl FnOnce(Operand) -> Result<Instruction, iced_x86::IcedError>,
    ) {
        match rm {
            Rm::Register(number) => self.encode(make(Operand::Register(kind.register(number)))),
            Rm::Memory(base, disp) => {
                let base = RegisterKind::R64.register(base);
                self.encode(make(Operand::Memory(MemoryOperand::with_base_displ(base, disp.into()))));
            }
            Rm::Constant(n) => self.encode_relative(Target::Constant(n), make),
        }
    }

    fn encode_relative(
        &mut self,
        target: Target,
        make: impl FnOnce(Operand) -> Result<Instruction, iced_x86::IcedError>,
    ) {
        let before = self.position;
        let here = MemoryOperand::with_base_displ(Register::RIP, before as i64);
        self.encode(make(Operand::Memory(here)));
        self.patch(target, before);
    }

    pub fn bare(&mut self, code: Code) {
        self.encode(Ok(Instruction::with(code)));
    }

    pub fn r(&mut self, code: Code, a: Register) {
        self.encode(Instruction::with1(code, a));
    }

    pub fn rr(&mut self, code: Code, a: Register, b: Register) {
        self.encode(Instruction::with2(code, a, b));
    }

    pub fn rm(&mut self, code: Code, rm: Rm, kind: RegisterKind) {
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(b) => Instruction::with1(code, b),
            Operand::Memory(b) => Instruction::with1(code, b),
        });
    }

    pub fn r_rm(&mut self, code: Code, a: Register, rm: Rm, kind: RegisterKind) {
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(b) => Instruction::with2(code, a, b),
            Operand::Memory(b) => Instruction::with2(code, a, b),
        });
    }

    pub fn rm_r(&mut self, code: Code, rm: Rm, kind: RegisterKind, b: Register) {
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(a) => Instruction::with2(code, a, b),
            Operand::Memory(a) => Instruction::with2(code, a, b),
        });
    }

    pub fn rm_r_imm(&mut self, code: Code, rm: Rm, kind: RegisterKind, b: Register, imm: u8) {
        let imm = u32::from(imm);
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(a) => Instruction::with3(code, a, b, imm),
            Operand::Memory(a) => Instruction::with3(code, a, b, imm),
        });
    }

    pub fn rm_imm(&mut self, code: Code, rm: Rm, kind: RegisterKind, imm: i32) {
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(a) => Instruction::with2(code, a, imm),
            Operand::Memory(a) => Instruction::with2(code, a, imm),
        });
    }

    pub fn r_imm32(&mut self, code: Code, a: Register, imm: u32) {
        self.encode(Instruction::with2(code, a, imm));
    }

    pub fn r_imm64(&mut self, code: Code, a: Register, imm: u64) {
        self.encode(Instruction::with2(code, a, imm));
    }

    pub fn r_rm_imm(&mut self, code: Code, a: Register, rm: Rm, kind: RegisterKind, imm: i32) {
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(b) => Instruction::with3(code, a, b, imm),
            Operand::Memory(b) => Instruction::with3(code, a, b, imm),
        });
    }

    /// With a register after the register-or-memory operand.
    pub fn r_rm_r(&mut self, code: Code, a: Register, rm: Rm, kind: RegisterKind, c: Register) {
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(b) => Instruction::with3(code, a, b, c),
            Operand::Memory(b) => Instruction::with3(code, a, b, c),
        });
    }

    pub fn rr_rm(&mut self, code: Code, a: Register, b: Register, rm: Rm, kind: RegisterKind) {
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(c) => Instruction::with3(code, a, b, c),
            Operand::Memory(c) => Instruction::with3(code, a, b, c),
        });
    }

    pub fn rr_rm_imm(&mut self, code: Code, a: Register, b: Register, rm: Rm, kind: RegisterKind, imm: u8) {
        let imm = u32::from(imm);
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(c) => Instruction::with4(code, a, b, c, imm),
            Operand::Memory(c) => Instruction::with4(code, a, b, c, imm),
        });
    }

    pub fn rr_rm_r(&mut self, code: Code, a: Register, b: Register, rm: Rm, kind: RegisterKind, d: Register) {
        self.encode_rm(rm, kind, |rm| match rm {
            Operand::Register(c) => Instruction::with4(code, a, b, c, d),
            Operand::Memory(c) => Instruction::with4(code, a, b, c, d),
        });
    }

    /// Encodes the sum of two registers and a displacement.
    pub fn lea(
        &mut self,
        code: Code,
        a: Register,
        base: Register,
        index: Option<Register>,
        scale: u32,
        disp: i32,
    ) {
        let size = u32::from(disp != 0);
        let index = index.unwrap_or(Register::None);
        self.encode(Instruction::with2(
            code,
            a,
            MemoryOperand::new(base, index, scale, disp.into(), size, false, Register::None),
        ));
    }

    /// Encodes a gather of words at a base plus offsets, in the elements whose mask has the highest bit set.
    pub fn gather(&mut self, a: Register, base: Register, offsets: Register, disp: i32, mask: Register) {
        let from =
            MemoryOperand::new(base, offsets, 1, disp.into(), u32::from(disp != 0), false, Register::None);
        self.encode(Instruction::with3(Code::VEX_Vpgatherdd_ymm_vm32y_ymm, a, from, mask));
    }

    /// Encodes a jump or a conditional jump.
    pub fn jump(&mut self, code: Code, to: Label) {
        let before = self.position;
        self.encode(Instruction::with_branch(code, before as u64));
        // The displacement is in the last four bytes.
        self.patches.push(Patch {
            at: self.position as u32 - 4,
            end: self.position as u32,
            target: Target::Label(to),
        });
    }

    /// Encodes a load of the address of a new jump table, whose entries are relative to the table.
    pub fn table(&mut self, a: Register, labels: Vec<Label>) {
        self.tables.push(labels);
        let n = self.tables.len() as u32 - 1;
        self.encode_relative(Target::Table(n), |rm| match rm {
            Operand::Register(b) => Instruction::with2(Code::Lea_r64_m, a, b),
            Operand::Memory(b) => Instruction::with2(Code::Lea_r64_m, a, b),
        });
    }

    pub fn label(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.position as u32;
    }

    /// Returns the offset of the next instruction.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns all bytes: code, tables, constants. Constants are aligned to 32 bytes if the whole is.
    pub fn finish(mut self, constants: &[[u32; 8]]) -> Result<Assembled, CompileError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut bytes = self.encoder.take_buffer();
        ENCODER.set(Some(self.encoder));
        let label_at = |label: Label| match self.labels[label.0 as usize] {
            u32::MAX => Err(CompileError::Label(label.0)),
            at => Ok(at),
        };
        bytes.resize(bytes.len().next_multiple_of(4), 0xcc);
        let mut tables = Vec::new();
        for labels in &self.tables {
            let base = bytes.len() as u32;
            tables.push(base);
            for &label in labels {
                bytes.extend(label_at(label)?.wrapping_sub(base).to_le_bytes());
            }
        }
        let mut constant_offsets = vec![u32::MAX; constants.len()];
        bytes.resize(bytes.len().next_multiple_of(32), 0xcc);
        for patch in &self.patches {
            let target = match patch.target {
                Target::Label(label) => label_at(label)?,
                Target::Table(n) => tables[n as usize],
                Target::Constant(n) => {
                    if constant_offsets[n as usize] == u32::MAX {
                        constant_offsets[n as usize] = bytes.len() as u32;
                        bytes.extend(constants[n as usize].iter().flat_map(|word| word.to_le_bytes()));
                    }
                    constant_offsets[n as usize]
                }
            };
            bytes[patch.at as usize..][..4].copy_from_slice(&target.wrapping_sub(patch.end).to_le_bytes());
        }
        Ok(Assembled { bytes, code_size: self.position })
    }
}

/// A register or memory operand of the encoder.
enum Operand {
    Register(Register),
    Memory(MemoryOperand),
}
