//! Machines that are not AMD's: register files, the registers' initial values and the assembly syntax, which
//! the ISA description leaves open. The types here fit any such machine; the values of one are in a file of
//! their own beside this one.
//!
//! The rest of the simulator has one kind of wave: lanes of registers, and scalar registers by operand code
//! with null, EXEC and so on among them (`machine::wave`). A [`Machine`] maps its own registers to that.

use crate::operand::{EXEC_LO, NULL};

/// Lanes of a wave. A description with another number than the simulator has waves of does not compile:
///
/// ```
/// const LANES: wavesim_isa::arch::machine::WaveLanes = wavesim_isa::arch::machine::WaveLanes::new(64);
/// ```
/// ```compile_fail
/// const LANES: wavesim_isa::arch::machine::WaveLanes = wavesim_isa::arch::machine::WaveLanes::new(16);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaveLanes(u32);

impl WaveLanes {
    /// For a constant or a static: a `count` other than 32 or 64 is a compile error there.
    pub const fn new(count: u32) -> WaveLanes {
        assert!(count == 32 || count == 64, "a wave has 32 or 64 lanes");
        WaveLanes(count)
    }

    /// 32 or 64.
    pub const fn count(self) -> u32 {
        self.0
    }
}

/// A machine by its register files and its assembly.
#[derive(Debug)]
pub struct Machine {
    /// Lanes of every wave.
    pub lanes: WaveLanes,
    /// Registers that every lane has.
    pub vector: VectorFile,
    /// Registers of the wave, one value for all lanes.
    pub scalar: ScalarFile,
    /// Bytes of an instruction that its program counter counts as one.
    pub pc_bytes: u64,
    /// Upper bound of waves in a workgroup: the simulator's own where the machine has none.
    pub max_waves: u32,
    /// How programs are written.
    pub assembly: Assembly,
}

/// A register file of the lanes. Register n is VGPR n of a wave.
#[derive(Debug)]
pub struct VectorFile {
    /// `x` of `x5`.
    pub prefix: char,
    /// Number of registers.
    pub count: u16,
    /// XML operand types that name its registers.
    pub operand_types: &'static [&'static str],
    /// Registers that nothing can write, from the first on, with their contents.
    pub read_only: &'static [Held],
}

/// What a read-only register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Zero in every lane.
    Zero,
    /// Index of the lane's work-item in its workgroup.
    ItemId,
    /// Index of the workgroup.
    GroupId,
    /// Work-items of a workgroup.
    GroupSize,
}

/// A register file of the wave. Register n is the scalar register with operand code n, but for those with a
/// place of their own.
#[derive(Debug)]
pub struct ScalarFile {
    /// `s` of `s5`.
    pub prefix: char,
    /// Number of registers.
    pub count: u16,
    /// XML operand types that name its registers.
    pub operand_types: &'static [&'static str],
    /// Registers with a place of their own, by number.
    pub special: &'static [(u16, Special)],
}

/// Scalar registers with a place of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// Reads zero; writes are dropped.
    Zero,
    /// The lanes that execute, one bit per lane. All of them at the start.
    ExecMask,
}

/// How programs are written: a mnemonic, then operands divided by commas.
#[derive(Debug)]
pub struct Assembly {
    /// File extension of programs.
    pub extension: &'static str,
    /// Starts a comment, which ends with the line.
    pub comment: char,
    /// The character that mnemonics have where the XML's names have `_`.
    pub separator: char,
    /// Directive for the number of workgroups; 1 in programs without it.
    pub groups: &'static str,
    /// Directive for the number of waves in a workgroup; 1 in programs without it.
    pub waves: &'static str,
    /// How the operands of an encoding are written, by the names of its fields; the first is the one printed.
    /// Encodings that are not here have their operands one after another in the order of the XML.
    pub operands: &'static [(&'static str, &'static [&'static str])],
}

impl ScalarFile {
    /// Operand code of register `n`.
    pub fn code(&self, n: u16) -> u16 {
        match self.special.iter().find(|s| s.0 == n) {
            Some((_, Special::Zero)) => NULL as u16,
            Some((_, Special::ExecMask)) => EXEC_LO as u16,
            None => n,
        }
    }

    /// The register with an operand code.
    pub fn number(&self, code: u16) -> Option<u16> {
        (0..self.count).find(|n| self.code(*n) == code)
    }

    /// The register with an operand code, as in assembly; `scalar` and the code if there is none.
    pub fn name(&self, code: u16) -> String {
        match self.number(code) {
            Some(n) => format!("{}{n}", self.prefix),
            None => format!("scalar {code}"),
        }
    }
}

impl VectorFile {
    /// Register `n` as in assembly.
    pub fn name(&self, n: u16) -> String {
        format!("{}{n}", self.prefix)
    }
}

/// `x5` as a number, if it is one of `count` registers with this prefix.
pub fn register_number(text: &str, prefix: char, count: u16) -> Option<u16> {
    let digits = text.strip_prefix(prefix)?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok())?.filter(|n| *n < count)
}
