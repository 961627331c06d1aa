//! Machines other than AMD's: register files, initial register values and assembly syntax, which the ISA
//! description does not define. The types here are generic; the definition of each machine is in a file of
//! its own.
//!
//! The rest of the simulator has a single representation of waves: lanes of vector registers, and scalar
//! registers by operand code, including null and EXEC (`machine::wave`). A [`Machine`] maps its registers to
//! it.

use crate::registers::{EXEC_LO, NULL};

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
    /// For use in a constant or static, where a `count` other than 32 or 64 is a compile error.
    pub const fn new(count: u32) -> WaveLanes {
        assert!(count == 32 || count == 64, "a wave has 32 or 64 lanes");
        WaveLanes(count)
    }

    /// The number of lanes: 32 or 64.
    pub const fn count(self) -> u32 {
        self.0
    }
}

/// The register files and the assembly syntax of a machine.
#[derive(Debug)]
pub struct Machine {
    /// Lanes per wave.
    pub lanes: WaveLanes,
    /// The vector registers.
    pub vector: VectorFile,
    /// The scalar registers: one value per wave.
    pub scalar: ScalarFile,
    /// Bytes per unit of the program counter.
    pub pc_bytes: u64,
    /// Maximum number of waves per workgroup; the simulator's limit if the machine has none.
    pub max_waves: u32,
    /// The assembly syntax.
    pub assembly: Assembly,
}

/// A vector register file. Register n is VGPR n of a wave.
#[derive(Debug)]
pub struct VectorFile {
    /// Register prefix: `x` of `x5`.
    pub prefix: char,
    /// Number of registers.
    pub count: u16,
    /// XML operand types of the registers.
    pub operand_types: &'static [&'static str],
    /// Contents of read-only registers, which are the first ones of the file.
    pub read_only: &'static [ReadOnlyValue],
}

/// The contents of a read-only register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyValue {
    /// Zero in every lane.
    Zero,
    /// Index of the lane's work-item in its workgroup.
    ItemId,
    /// Index of the workgroup.
    GroupId,
    /// Number of work-items in a workgroup.
    GroupSize,
}

/// A scalar register file. Register n is the scalar register with operand code n, except for special
/// registers.
#[derive(Debug)]
pub struct ScalarFile {
    /// Register prefix: `s` of `s5`.
    pub prefix: char,
    /// Number of registers.
    pub count: u16,
    /// XML operand types of the registers.
    pub operand_types: &'static [&'static str],
    /// Special registers by number.
    pub special: &'static [(u16, Special)],
}

/// Scalar registers that map to a special register of the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// Reads as zero; writes are ignored.
    Zero,
    /// The mask of active lanes; initially all.
    ExecMask,
}

/// The syntax of programs: a mnemonic, followed by operands separated by commas.
#[derive(Debug)]
pub struct Assembly {
    /// File extension of programs.
    pub extension: &'static str,
    /// The character that starts a comment.
    pub comment: char,
    /// The character that replaces `_` of the XML names in mnemonics.
    pub separator: char,
    /// Directive for the number of workgroups; the default is 1.
    pub groups: &'static str,
    /// Directive for the number of waves per workgroup; the default is 1.
    pub waves: &'static str,
    /// Operand syntaxes by encoding, in terms of field names; the first alternative is used for printing.
    /// Encodings not listed here have comma-separated operands in the order of the XML.
    pub operands: &'static [(&'static str, &'static [&'static str])],
}

impl ScalarFile {
    /// The operand code of register `n`.
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

    /// The assembly name of the register with an operand code; `scalar` and the code if there is none.
    pub fn name(&self, code: u16) -> String {
        match self.number(code) {
            Some(n) => format!("{}{n}", self.prefix),
            None => format!("scalar {code}"),
        }
    }
}

impl VectorFile {
    /// The assembly name of register `n`.
    pub fn name(&self, n: u16) -> String {
        format!("{}{n}", self.prefix)
    }
}

/// Parses a register name such as `x5`; `None` unless it is one of `count` registers with this prefix.
pub fn register_number(text: &str, prefix: char, count: u16) -> Option<u16> {
    let digits = text.strip_prefix(prefix)?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok())?.filter(|n| *n < count)
}
