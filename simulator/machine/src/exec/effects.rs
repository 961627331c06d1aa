//! What an instruction does: which registers it reads and writes and in which lanes, which memory it accesses, what it calls.
//!
//! The facts are the body's ([`isa_spec::facts`]), compiled or given by the user. This module binds them to an instruction: operand
//! kinds and numbers, DPP, op_sel, null, and the size of lane masks. Where an instruction has no body, its operand list says what
//! it reads and writes. What is listed is a superset of what any execution touches; [`Use::always`] marks what each does. Relative addressing
//! (M0) is the exception that needs the wave's state: [`Use::relative`] marks it.

mod bind;
mod registers;

pub use registers::register_name;

use super::program::Program;
use crate::state::Wave;
use crate::state::wave::{ACC, EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};
use bind::Bind;
use isa_spec::facts::{self, Access, EncodedValue, Facts, M0Field, MemoryAccess, RegisterRange, Resource};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Space, State};
use isa_spec::tables::{EntryId, Role};
use std::borrow::Cow;
use wavesim_isa::arch::Arch;
use wavesim_isa::dpp;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Binding, Code, Fmt, Operand};
use wavesim_isa::relative::{self, GPR_IDX_EN};

/// Which file a register is in. SGPRs are by operand code, so VCC, M0 and EXEC are among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum File {
    /// Scalar registers by operand code.
    Sgpr,
    /// Vector registers, a value a lane.
    Vgpr,
    /// The scalar condition code, one bit.
    Scc,
}

/// Lanes of a VGPR that a use touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// Those that EXEC has on.
    Active,
    /// All of the wave, whatever EXEC says: matrix operands.
    All,
    /// The lowest active one, or lane 0.
    FirstActive,
    /// The lane that an SGPR or a constant names.
    Selected(Select),
    /// Those that the DPP control reads for the active ones.
    Dpp16 { arch: Arch, ctrl: u16, fetch: bool },
    /// As with DPP, eight lanes at a time.
    Dpp8 { lanes: [u8; 8], fetch: bool },
    /// Unknown before the instruction runs: other lanes, by data.
    Data,
}

/// A lane number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Select {
    /// The number that this SGPR (an operand code) has when the instruction runs.
    Sgpr(u16),
    /// This lane.
    Lane(u32),
}

/// How a register number is found when the instruction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relative {
    /// Bits of M0 are added. A source out of range is the register `otherwise`.
    M0 { index: M0Field, otherwise: u16 },
    /// While MODE.GPR_IDX_EN and this bit of M0 are set, the low bits of M0 are added (CDNA).
    Mode {
        /// The bit of M0.
        bit: u32,
    },
    /// By data: it may be any.
    Any,
}

/// Consecutive registers read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// The file of all of them.
    pub file: File,
    /// Number of the first: VGPR, or SGPR operand code.
    pub first: u16,
    /// How many there are.
    pub count: u16,
    /// Bits of each register.
    pub bits: u32,
    /// In which lanes; of no meaning for scalar registers.
    pub lanes: Lanes,
    /// The operand of the body that it is: S0, D0 …
    pub role: Role,
    /// Set if the register number is known only when the instruction runs.
    pub relative: Option<Relative>,
    /// Every execution touches it; another one only some.
    pub always: bool,
    /// Of the second half of a dual instruction.
    pub second: bool,
}

/// What kind of work an instruction is: the XML's functional group, and for memory what it does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Arithmetic of lanes.
    Valu,
    /// Matrix multiplication (WMMA), which ignores EXEC.
    Matrix,
    /// Arithmetic of scalars.
    Salu,
    /// Scalar loads.
    Smem,
    /// Buffer, global and other vector memory that is neither FLAT nor scratch.
    Vmem,
    /// FLAT addressing: global memory, LDS or scratch by the address.
    Flat,
    /// SCRATCH instructions: private memory of the lanes.
    Scratch,
    /// DS instructions: memory of the workgroup.
    Lds,
    /// Branches, and what else the XML puts in its group BRANCH.
    Branch,
    /// Waits for the wave's own operations: S_WAITCNT, S_WAIT_LOADCNT, S_WAIT_IDLE …
    Wait,
    /// Control of the wave, messages and traps: groups WAVE_CONTROL, MESSAGE and TRAP.
    Control,
    /// Exports.
    Export,
}

impl Class {
    /// As in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Class::Valu => "VALU",
            Class::Matrix => "matrix",
            Class::Salu => "SALU",
            Class::Smem => "SMEM",
            Class::Vmem => "VMEM",
            Class::Flat => "FLAT",
            Class::Scratch => "scratch",
            Class::Lds => "LDS",
            Class::Branch => "branch",
            Class::Wait => "wait",
            Class::Control => "control",
            Class::Export => "export",
        }
    }

    /// Accesses memory of any kind.
    pub fn is_memory(self) -> bool {
        matches!(self, Class::Smem | Class::Vmem | Class::Flat | Class::Scratch | Class::Lds)
    }

    /// Works on lanes.
    pub fn is_vector(self) -> bool {
        matches!(
            self,
            Class::Valu
                | Class::Matrix
                | Class::Vmem
                | Class::Flat
                | Class::Scratch
                | Class::Lds
                | Class::Export
        )
    }
}

/// What one instruction does.
#[derive(Debug, Clone)]
pub struct Effects {
    /// Registers that it may read, implicit ones among them.
    pub reads: Vec<Use>,
    /// Registers that it may write.
    pub writes: Vec<Use>,
    /// Memory that it may access, by space and size.
    pub memory: Vec<MemoryAccess>,
    /// Control builtins that it may call.
    pub calls: Vec<Control>,
    /// Bits of MODE that its body may write.
    pub mode: u32,
    /// What kind of work it is.
    pub class: Class,
    /// Reads, changes and writes memory in one step.
    pub atomic: bool,
    /// An atomic that stores only if it finds what it expects.
    pub compares: bool,
    /// Gives a value back: a load, or an atomic that returns.
    pub returns: bool,
    /// Asks memory to keep to the order of other waves (GLC, or a scope beyond the wave's).
    pub coherent: bool,
}

/// The effects of each instruction of a program.
pub fn table(program: &Program, wave_size: u32) -> Vec<Effects> {
    let of = |inst| effects(program.arch, inst, wave_size, |entry| program.facts(entry, wave_size));
    let mut out: Vec<Effects> = program.insts.iter().map(of).collect();
    // Whatever the order in which they run.
    if program.arch.is_cdna() && out.iter().any(|e| e.mode & GPR_IDX_EN != 0) {
        out.iter_mut().for_each(make_relative);
    }
    out
}

/// Marks the VGPRs of vector arithmetic that M0 can offset.
fn make_relative(effects: &mut Effects) {
    if !matches!(effects.class, Class::Valu | Class::Matrix) {
        return;
    }
    for used in effects.reads.iter_mut().chain(&mut effects.writes) {
        if used.file == File::Vgpr && used.relative.is_none() && (used.first as usize) < ACC {
            used.relative = relative::enable_bit(used.role).map(|bit| Relative::Mode { bit });
        }
    }
}

/// What `inst` does, by the facts of its entries' bodies.
pub fn effects<'f>(
    arch: Arch,
    inst: &Inst,
    wave_size: u32,
    facts: impl Fn(EntryId) -> Option<&'f Facts>,
) -> Effects {
    let binding = operand::binding(arch, inst.entry);
    let mut out = Effects {
        reads: Vec::new(),
        writes: Vec::new(),
        memory: Vec::new(),
        calls: Vec::new(),
        mode: 0,
        class: Class::Salu,
        atomic: false,
        compares: false,
        returns: false,
        coherent: coherent(arch, inst, binding),
    };
    let dual = !binding.y.is_empty();
    let halves = [Some(inst.entry), dual.then_some(inst.entry_y)];
    for (second, entry) in halves.into_iter().flatten().enumerate() {
        let second = second == 1;
        let binding = operand::binding(arch, entry);
        let operands = if second { &binding.y } else { &binding.operands };
        let facts = facts(entry).map_or_else(|| Cow::Owned(listed(arch, entry)), Cow::Borrowed);
        let bind = Bind { arch, inst, binding, operands, second, wave_size, facts: &facts };
        bind.add(&mut out);
        out.memory.extend(facts.memory.iter().filter(|m| bind.holds(&m.conditions)).cloned());
        out.calls.extend(facts.calls.iter());
        let mode = |t: &&Access| t.write && t.resource == Resource::State(State::Mode);
        out.mode |= facts.registers.iter().filter(mode).fold(0, |bits, t| bits | t.bits as u32);
        let listed_atomic = facts.memory.is_empty() && inst.instruction(arch.table()).subgroup() == "ATOMIC";
        out.atomic |= facts.is_atomic() || listed_atomic;
        out.compares |= facts.is_atomic() && facts.is_compare_swap;
    }
    out.class = class(arch, inst, &out);
    out.returns = out.class.is_memory() && out.writes.iter().any(|w| w.file != File::Scc);
    out
}

/// The functional group, with memory instructions split by where they go and waits and matrix instructions by what they do.
fn class(arch: Arch, inst: &Inst, effects: &Effects) -> Class {
    let goes = |space| effects.memory.iter().any(|m| m.space == space);
    match inst.instruction(arch.table()).group() {
        // Its operands are the wave's, whatever EXEC is.
        "VALU" if effects.writes.iter().any(|w| w.file == File::Vgpr && w.lanes == Lanes::All) => {
            Class::Matrix
        }
        "VALU" => Class::Valu,
        "SMEM" => Class::Smem,
        "LDS" => Class::Lds,
        "VMEM" if goes(Space::Flat) => Class::Flat,
        "VMEM" if goes(Space::Scratch) => Class::Scratch,
        "VMEM" => Class::Vmem,
        "BRANCH" => Class::Branch,
        "EXPORT" => Class::Export,
        _ if effects.calls.iter().any(|bi| bi.is_wait()) => Class::Wait,
        "WAVE_CONTROL" | "MESSAGE" | "TRAP" => Class::Control,
        _ => Class::Salu,
    }
}

/// GLC of a load on RDNA 3; a scope of the workgroup or wider on RDNA 4 (manuals, *Memory Scopes*).
fn coherent(arch: Arch, inst: &Inst, binding: &Binding) -> bool {
    match arch {
        Arch::Rdna4 => inst.field(arch.table(), "SCOPE").unwrap_or(0) >= 1,
        Arch::Cdna3 | Arch::Cdna4 => cache_scope(arch, inst) >= 1,
        _ => binding.get(inst, binding.mods.glc) & 1 != 0,
    }
}

/// The scope that an access of CDNA asks for: 1 for the workgroup, 2 for the device, 3 for the system (CDNA 3 manual, *Memory Scopes and
/// Temporal Hints*). SC0 of an atomic returns a value instead.
pub fn cache_scope(arch: Arch, inst: &Inst) -> u32 {
    let field = |name| inst.field(arch.table(), name).unwrap_or(0);
    let returns = inst.instruction(arch.table()).subgroup() == "ATOMIC";
    field("SC1") << 1 | if returns { 0 } else { field("SC0") }
}

/// What the operand list says of an entry that has no body.
fn listed(arch: Arch, entry: EntryId) -> Facts {
    let table = arch.table();
    let entry = &table.entries[entry as usize];
    let vector = !matches!(table.instructions[entry.inst as usize].group(), "SALU" | "SMEM" | "BRANCH");
    let mut registers = Vec::new();
    for operand in table.signatures[entry.sig as usize] {
        let resource = match operand.role {
            Role::Imm | Role::Other => continue,
            Role::State => match table.operand_types[operand.ty as usize].name {
                "OPR_SCC" => Resource::State(State::Scc),
                "OPR_VCC" => Resource::State(State::Vcc),
                "OPR_EXEC" => Resource::State(State::Exec),
                "OPR_SDST_M0" | "OPR_M0" => Resource::State(State::M0),
                _ => continue,
            },
            role => Resource::Operand(role),
        };
        let bits = mask(operand.size_bits.max(1) as u32);
        let lanes = if vector { facts::Lanes::Own } else { facts::Lanes::Once };
        let touch =
            |write| Access { write, resource, bits, lanes, conditions: Cow::Borrowed(&[]), always: true };
        registers.extend(operand.input.then(|| touch(false)));
        registers.extend(operand.output.then(|| touch(true)));
    }
    Facts { registers: registers.into(), ..Facts::default() }
}

fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}
