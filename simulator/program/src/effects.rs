//! Effects of an instruction: the registers that it reads and writes and in which lanes, the memory that it
//! accesses, and the builtins that it calls.
//!
//! The facts come from the semantics ([`isa_spec::facts`]), compiled or user-supplied. This module binds them
//! to an instruction: operand kinds and numbers, DPP, op_sel, null, and the size of lane masks. An
//! instruction without semantics gets its reads and writes from its operand list. Effects are a superset of
//! what any execution accesses; [`Use::always`] marks what every execution does. They are independent of the
//! wave's state except for relative addressing (M0), which [`Use::relative`] marks.

mod bind;
mod registers;

pub use registers::register_name;

use super::program::Program;
use bind::Bind;
use isa_spec::facts::{self, Access, EncodedValue, Facts, M0Field, MemoryAccess, RegisterRange, Resource};
use isa_spec::mnemonic::{self, ImageSuffixes};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Space, State};
use isa_spec::tables::{EntryId, Role};
use std::borrow::Cow;
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::facts::Coherence;
use wavesim_isa::dpp;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Binding, Code, Fmt, Operand};
use wavesim_isa::relative::{self, GPR_IDX_EN, VGPR_MSBS};
use wavesim_state::Wave;
use wavesim_state::wave::{ACC, EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};

/// The file that a register belongs to. SGPRs are numbered by operand code, so VCC, M0 and EXEC are among
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum File {
    /// Scalar registers by operand code.
    Sgpr,
    /// Vector registers with one value per lane.
    Vgpr,
    /// The scalar condition code, one bit.
    Scc,
}

/// The lanes of a VGPR that a use accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// The lanes that are set in EXEC.
    Active,
    /// All lanes of the wave, regardless of EXEC, as for matrix operands.
    All,
    /// The lowest active lane, or lane 0 if none is active.
    FirstActive,
    /// The lane selected by an SGPR or a constant.
    Selected(Select),
    /// The lanes that the DPP control reads for the active ones.
    Dpp16 { arch: Arch, ctrl: u16, fetch: bool },
    /// As with DPP, within groups of eight lanes.
    Dpp8 { lanes: [u8; 8], fetch: bool },
    /// Depends on data: unknown before the instruction runs.
    Data,
}

/// A lane number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Select {
    /// The value of this SGPR (an operand code) when the instruction runs.
    Sgpr(u16),
    /// This lane.
    Lane(u32),
}

/// How a register number is computed when the instruction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relative {
    /// A bit field of M0 is added. A source that is out of range becomes the register `otherwise`.
    M0 { index: M0Field, otherwise: u16 },
    /// While MODE.GPR_IDX_EN and this bit of M0 are set, the low bits of M0 are added (CDNA).
    Mode {
        /// The bit of M0.
        bit: u32,
    },
    /// The two bits at this position of MODE extend the number (CDNA 5).
    Msb {
        /// The lower bit.
        position: u8,
    },
    /// Depends on data: any register.
    Any,
}

/// Consecutive registers read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// The register file.
    pub file: File,
    /// Number of the first register: VGPR, or SGPR operand code.
    pub first: u16,
    /// Number of registers.
    pub count: u16,
    /// Mask of the accessed bits of each register.
    pub bits: u32,
    /// The accessed lanes; meaningless for scalar registers.
    pub lanes: Lanes,
    /// The operand of the semantics: S0, D0 …
    pub role: Role,
    /// Set if the register number depends on the wave's state.
    pub relative: Option<Relative>,
    /// Every execution accesses the registers, rather than only some.
    pub always: bool,
    /// Belongs to the second half of a dual instruction.
    pub second: bool,
}

/// The class of an instruction: the XML's functional group, with memory instructions split by address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Vector arithmetic.
    Valu,
    /// Matrix multiplication (WMMA), which ignores EXEC.
    Matrix,
    /// Scalar arithmetic.
    Salu,
    /// Scalar loads.
    Smem,
    /// Buffer, global and other vector memory that is neither FLAT nor scratch.
    Vmem,
    /// FLAT addressing: global memory, LDS or scratch by the address.
    Flat,
    /// SCRATCH instructions: memory private to each lane.
    Scratch,
    /// DS instructions: memory shared by the workgroup.
    Lds,
    /// Branches, and whatever else is in the XML's group BRANCH.
    Branch,
    /// Waits for the wave's own operations: S_WAITCNT, S_WAIT_LOADCNT, S_WAIT_IDLE …
    Wait,
    /// Control of the wave, messages and traps: groups WAVE_CONTROL, MESSAGE and TRAP.
    Control,
    /// Exports.
    Export,
}

impl Class {
    /// Returns the name used in statistics.
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

    /// Returns whether instructions of the class access memory.
    pub fn is_memory(self) -> bool {
        matches!(self, Class::Smem | Class::Vmem | Class::Flat | Class::Scratch | Class::Lds)
    }

    /// Returns whether instructions of the class work on lanes.
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

/// What the texture unit does for an instruction besides loads and stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texture {
    /// It samples an image.
    Sample,
    /// It intersects a ray with a node.
    Intersect,
}

/// Returns what the texture unit does for an instruction.
fn texture(arch: Arch, inst: &Inst) -> Option<Texture> {
    let instruction = inst.instruction(arch.table());
    let suffixes = ImageSuffixes::of(instruction.name);
    match instruction.subgroup() {
        "BVH" if mnemonic::is_image(instruction.name) => Some(Texture::Intersect),
        _ => suffixes.has(ImageSuffixes::SAMPLED).then_some(Texture::Sample),
    }
}

/// The effects of one instruction.
#[derive(Debug, Clone)]
pub struct Effects {
    /// Registers that the instruction may read, including implicit ones.
    pub reads: Vec<Use>,
    /// Registers that the instruction may write.
    pub writes: Vec<Use>,
    /// Memory that the instruction may access, by space and size.
    pub memory: Vec<MemoryAccess>,
    /// Control builtins that the instruction may call.
    pub calls: Vec<Control>,
    /// Bits of MODE that the semantics may write.
    pub mode: u32,
    /// The instruction's class.
    pub class: Class,
    /// The instruction is an atomic read-modify-write.
    pub atomic: bool,
    /// The instruction is an atomic that stores conditionally, after a comparison.
    pub compares: bool,
    /// The instruction returns a value: a load, or an atomic with return.
    pub returns: bool,
    /// The part of the texture unit that executes the instruction, if it is no plain access.
    pub texture: Option<Texture>,
    /// The access is ordered with those of other waves (GLC, or a scope beyond the wave's).
    pub coherent: bool,
}

impl Effects {
    /// Returns whether the instruction loads from global memory to LDS, without a register in between (CDNA).
    pub fn loads_to_lds(&self) -> bool {
        self.class == Class::Vmem && self.memory.iter().any(|m| m.space == Space::Lds)
    }
}

/// Returns the effects of each instruction of a program.
pub fn table(program: &Program, wave_size: u32) -> Vec<Effects> {
    let of = |inst| effects(program.arch, inst, wave_size, |entry| program.facts(entry, wave_size));
    let mut out: Vec<Effects> = program.insts.iter().map(of).collect();
    // The order in which the instructions run is unknown.
    if program.arch.facts().instruction_modes && out.iter().any(|e| e.mode & GPR_IDX_EN != 0) {
        out.iter_mut().for_each(make_relative);
    }
    if program.arch.facts().vgprs.msbs && out.iter().all(|e| e.mode & VGPR_MSBS == 0) {
        let uses = out.iter_mut().flat_map(|e| e.reads.iter_mut().chain(&mut e.writes));
        let extended = uses.filter(|used| matches!(used.relative, Some(Relative::Msb { .. })));
        extended.for_each(|used| used.relative = None);
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

/// The bits in MODE that extend VGPR numbers after an instruction of a program that does nothing but set them from its
/// immediate (S_SET_VGPR_MSB); `None` for other instructions.
pub fn vgpr_msbs_after(program: &Program, inst: usize) -> Option<u32> {
    let inst = &program.insts[inst];
    if !program.arch.facts().vgprs.msbs {
        return None;
    }
    let facts = program.facts(inst.entry, program.wave_size)?;
    let is_mode = |t: &Access| t.write && t.resource == Resource::State(State::Mode);
    let bits = facts.registers.iter().filter(|t| is_mode(t)).fold(0, |bits, t| bits | t.bits as u32);
    let immediate = inst.field(program.arch.table(), "SIMM16").filter(|_| bits == VGPR_MSBS)?;
    Some(relative::vgpr_msbs_of(immediate))
}

/// Returns the effects of `inst`, given the facts of its entries' semantics.
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
        texture: texture(arch, inst),
        coherent: coherent(arch, inst, binding),
    };
    let dual = binding.dual;
    let halves = [Some(inst.entry), dual.then_some(inst.entry_y)];
    for (second, entry) in halves.into_iter().flatten().enumerate() {
        let second = second == 1;
        let binding = operand::binding(arch, entry);
        let operands = if second { &binding.y } else { &binding.operands };
        let facts = facts(entry).map_or_else(|| Cow::Owned(signature_facts(arch, entry)), Cow::Borrowed);
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

/// Returns the class of an instruction: its functional group, refined by its effects for memory, wait and
/// matrix instructions.
fn class(arch: Arch, inst: &Inst, effects: &Effects) -> Class {
    let goes = |space| effects.memory.iter().any(|m| m.space == space);
    match inst.instruction(arch.table()).group() {
        // Matrix operands are read in all lanes, regardless of EXEC.
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

/// Returns whether an access is coherent with other waves: GLC of a load on RDNA 3; a scope of the workgroup
/// or wider on RDNA 4 (manuals, *Memory Scopes*).
fn coherent(arch: Arch, inst: &Inst, binding: &Binding) -> bool {
    match arch.facts().coherence {
        Coherence::Scope => inst.field(arch.table(), "SCOPE").unwrap_or(0) >= 1,
        Coherence::ScBits => cache_scope(arch, inst) >= 1,
        Coherence::Glc => binding.get(inst, binding.mods.glc) & 1 != 0,
    }
}

/// Returns the scope of a CDNA access: 1 for the workgroup, 2 for the device, 3 for the system (CDNA 3
/// manual, *Memory Scopes and Temporal Hints*). In an atomic, SC0 requests the return value instead.
pub fn cache_scope(arch: Arch, inst: &Inst) -> u32 {
    let field = |name| inst.field(arch.table(), name).unwrap_or(0);
    let returns = inst.instruction(arch.table()).subgroup() == "ATOMIC";
    field("SC1") << 1 | if returns { 0 } else { field("SC0") }
}

/// Derives the facts of an entry without semantics from its operand list.
fn signature_facts(arch: Arch, entry: EntryId) -> Facts {
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
