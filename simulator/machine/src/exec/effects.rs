//! What an instruction does: which registers it reads and writes and in which lanes, which memory it accesses, what it calls.
//!
//! The facts are the body's ([`isa_spec::facts`]), compiled or given by the user. This module binds them to an instruction: operand
//! kinds and numbers, DPP, op_sel, null, and the size of lane masks. Where an instruction has no body, its operand list says what
//! it reads and writes. What is listed is a superset of what any execution touches; [`Use::always`] marks what each does. Relative addressing
//! (M0) is the exception that needs the wave's state: [`Use::relative`] marks it.

use super::program::Program;
use crate::state::Wave;
use crate::state::wave::{ACC, EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};
use isa_spec::facts::{self, Facts, Index, MemoryTouch, Number, Of, Touch, What};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Space, State};
use isa_spec::tables::{EntryId, Role};
use std::borrow::Cow;
use wavesim_isa::arch::Arch;
use wavesim_isa::dpp;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Code, Fmt, Operand, Plan};

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
    M0 { index: Index, otherwise: u16 },
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
    pub memory: Vec<MemoryTouch>,
    /// Control builtins that it may call.
    pub calls: Vec<Control>,
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
    program.insts.iter().map(of).collect()
}

/// What `inst` does, by the facts of its entries' bodies.
pub fn effects<'f>(
    arch: Arch,
    inst: &Inst,
    wave_size: u32,
    facts: impl Fn(EntryId) -> Option<&'f Facts>,
) -> Effects {
    let plan = operand::plan(arch, inst.entry);
    let mut out = Effects {
        reads: Vec::new(),
        writes: Vec::new(),
        memory: Vec::new(),
        calls: Vec::new(),
        class: Class::Salu,
        atomic: false,
        compares: false,
        returns: false,
        coherent: coherent(arch, inst, plan),
    };
    let dual = !plan.y.is_empty();
    let halves = [Some(inst.entry), dual.then_some(inst.entry_y)];
    for (second, entry) in halves.into_iter().flatten().enumerate() {
        let second = second == 1;
        let plan = operand::plan(arch, entry);
        let operands = if second { &plan.y } else { &plan.operands };
        let facts = facts(entry).map_or_else(|| Cow::Owned(listed(arch, entry)), Cow::Borrowed);
        let bind = Bind { arch, inst, plan, operands, second, wave_size, facts: &facts };
        bind.add(&mut out);
        out.memory.extend(facts.memory.iter().filter(|m| bind.holds(&m.when)).cloned());
        out.calls.extend(facts.calls.iter());
        let listed_atomic = facts.memory.is_empty() && inst.instruction(arch.table()).subgroup == "ATOMIC";
        out.atomic |= facts.is_atomic() || listed_atomic;
        out.compares |= facts.is_atomic() && facts.compares;
    }
    out.class = class(arch, inst, &out);
    out.returns = out.class.is_memory() && out.writes.iter().any(|w| w.file != File::Scc);
    out
}

/// The functional group, with memory instructions split by where they go and waits and matrix instructions by what they do.
fn class(arch: Arch, inst: &Inst, effects: &Effects) -> Class {
    let goes = |space| effects.memory.iter().any(|m| m.space == space);
    match inst.instruction(arch.table()).group {
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
fn coherent(arch: Arch, inst: &Inst, plan: &Plan) -> bool {
    match arch {
        Arch::Rdna4 => inst.field(arch.table(), "SCOPE").unwrap_or(0) >= 1,
        Arch::Cdna3 | Arch::Cdna4 => cache_scope(arch, inst) >= 1,
        _ => plan.get(inst, plan.mods.glc) & 1 != 0,
    }
}

/// The scope that an access of CDNA asks for: 1 for the workgroup, 2 for the device, 3 for the system (CDNA 3 manual, *Memory Scopes and
/// Temporal Hints*). SC0 of an atomic returns a value instead.
pub fn cache_scope(arch: Arch, inst: &Inst) -> u32 {
    let field = |name| inst.field(arch.table(), name).unwrap_or(0);
    let returns = inst.instruction(arch.table()).subgroup == "ATOMIC";
    field("SC1") << 1 | if returns { 0 } else { field("SC0") }
}

/// What the operand list says of an entry that has no body.
fn listed(arch: Arch, entry: EntryId) -> Facts {
    let table = arch.table();
    let entry = &table.entries[entry as usize];
    let vector = !matches!(table.instructions[entry.inst as usize].group, "SALU" | "SMEM" | "BRANCH");
    let mut registers = Vec::new();
    for operand in table.signatures[entry.sig as usize] {
        let what = match operand.role {
            Role::Imm | Role::Other => continue,
            Role::State => match table.operand_types[operand.ty as usize].name {
                "OPR_SCC" => What::State(State::Scc),
                "OPR_VCC" => What::State(State::Vcc),
                "OPR_EXEC" => What::State(State::Exec),
                "OPR_SDST_M0" | "OPR_M0" => What::State(State::M0),
                _ => continue,
            },
            role => What::Operand(role),
        };
        let bits = mask(operand.size_bits.max(1) as u32);
        let lanes = if vector { facts::Lanes::Own } else { facts::Lanes::Once };
        let touch = |write| Touch { write, what, bits, lanes, when: Cow::Borrowed(&[]), always: true };
        registers.extend(operand.input.then(|| touch(false)));
        registers.extend(operand.output.then(|| touch(true)));
    }
    Facts { registers: registers.into(), ..Facts::default() }
}

fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// One half's facts and the instruction.
struct Bind<'a> {
    arch: Arch,
    inst: &'a Inst,
    plan: &'static Plan,
    operands: &'static [Operand],
    second: bool,
    wave_size: u32,
    facts: &'a Facts,
}

impl Bind<'_> {
    fn add(&self, out: &mut Effects) {
        for touch in self.facts.registers.iter().filter(|t| self.holds(&t.when)) {
            // An atomic that returns nothing.
            if touch.write && touch.what == What::Operand(Role::D0) && !self.plan.returns(self.inst) {
                continue;
            }
            let list = if touch.write { &mut out.writes } else { &mut out.reads };
            self.bind(touch, list);
        }
        self.kept_bits(out);
        join(&mut out.reads);
        join(&mut out.writes);
    }

    /// A mask that is an input too keeps the bits of lanes that are switched off.
    fn kept_bits(&self, out: &mut Effects) {
        let d0 = self.operands.iter().find(|o| o.role == Role::D0);
        let Some(operand) = d0.filter(|o| o.fmt == Fmt::Mask && o.input) else { return };
        let lanes = |t: &&Touch| t.write && t.what == What::Operand(Role::D0) && t.lanes == facts::Lanes::Own;
        if self.facts.registers.iter().any(|t| lanes(&t)) {
            self.mask(operand, true, &mut out.reads);
        }
    }

    fn holds(&self, when: &[facts::Condition]) -> bool {
        let value = |of| match of {
            Of::Field(name) => self.plan.named_field(self.inst, self.arch.table(), name),
            Of::Index(role) => self.index(role),
        };
        when.iter().all(|condition| condition.holds(value))
    }

    /// The number of an operand's register; what is not a register has null's.
    fn index(&self, role: Role) -> u32 {
        match self.operand(role).and_then(|o| self.code(o)) {
            Some(Code::Vgpr(reg) | Code::Fixed(reg) | Code::Sgpr(reg)) => reg as u32,
            _ => NULL as u32,
        }
    }

    fn operand(&self, role: Role) -> Option<&'static Operand> {
        self.operands.iter().find(|o| o.role == role)
    }

    fn code(&self, operand: &Operand) -> Option<Code> {
        Some(operand::code(self.arch, operand, self.plan.value(self.inst, operand)?))
    }

    fn bind(&self, touch: &Touch, out: &mut Vec<Use>) {
        let start = Use {
            file: File::Sgpr,
            first: 0,
            count: 1,
            bits: u32::MAX,
            lanes: Lanes::All,
            role: Role::State,
            relative: None,
            always: touch.always,
            second: self.second,
        };
        match touch.what {
            What::Operand(role) => self.of_operand(role, touch, start, out),
            What::Dwords { role, first, count } => {
                let Some(operand) = self.operand(role) else { return };
                self.registers(operand, first as u16, count as u16, touch, start, out);
            }
            What::State(state) => out.extend(self.state(state, touch, start)),
            What::Vgpr(number) => out.extend(self.number(File::Vgpr, number, touch, start)),
            What::Sgpr(number) => out.extend(self.number(File::Sgpr, number, touch, start)),
            What::AnyVgpr | What::AnySgpr => out.push(Use {
                file: if touch.what == What::AnyVgpr { File::Vgpr } else { File::Sgpr },
                relative: Some(Relative::Any),
                lanes: Lanes::Data,
                role: Role::Other,
                ..start
            }),
        }
    }

    fn of_operand(&self, role: Role, touch: &Touch, start: Use, out: &mut Vec<Use>) {
        let side = |o: &&Operand| o.role == role && if touch.write { o.output } else { o.input };
        if role == Role::Vcc {
            match self.operands.iter().find(side) {
                Some(operand) => self.mask(operand, touch.always, out),
                None => out.push(Use { first: VCC_LO as u16, count: self.mask_words(), role, ..start }),
            }
            return;
        }
        let Some(operand) = self.operand(role) else { return };
        if operand.fmt == Fmt::Mask {
            return self.mask(operand, touch.always, out);
        }
        let bits = self.placed(operand, touch);
        for k in 0..4 {
            let bits = (bits >> (32 * k)) as u32;
            if bits != 0 {
                self.registers(operand, k, 1, touch, Use { bits, ..start }, out);
            }
        }
    }

    /// A touch's bits where op_sel puts them.
    fn placed(&self, operand: &Operand, touch: &Touch) -> u128 {
        let named = self.facts.fields.contains(&"OPSEL");
        let result = touch.write || operand.role == Role::D0;
        // The body takes more than the half that is listed.
        if operand.size_bits == 16 && touch.bits > 0xffff {
            return touch.bits;
        }
        if operand.size_bits == 16 && !self.plan.packed && (result || !named) {
            let reg = match self.code(operand) {
                Some(Code::Vgpr(reg)) => reg,
                _ => 0,
            };
            return (touch.bits & 0xffff) << self.plan.half_shift(self.inst, operand, reg, result);
        }
        let numbered = matches!(operand.role, Role::S0 | Role::S1 | Role::S2 | Role::S3);
        if touch.write
            || named
            || !numbered
            || operand.size_bits > 32
            || !matches!(operand.fmt, Fmt::Packed(_))
        {
            return touch.bits;
        }
        if !self.plan.packed {
            return touch.bits;
        }
        let half = |field, bits: u128| {
            let high = self.plan.named_field(self.inst, self.arch.table(), field) >> operand.source & 1 == 1;
            (bits & 0xffff) << if high { 16 } else { 0 }
        };
        half("OPSEL", touch.bits) | half("OPSEL_HI", touch.bits >> 16)
    }

    fn mask_words(&self) -> u16 {
        (self.wave_size / 32) as u16
    }

    /// The registers of a lane mask.
    fn mask(&self, operand: &Operand, always: bool, out: &mut Vec<Use>) {
        let first = match self.plan.value(self.inst, operand) {
            Some(value) => operand::mask_register(operand, value),
            // A mask that the encoding fixes.
            None => VCC_LO as u16,
        };
        if first as usize != NULL && first as usize <= EXEC_HI {
            out.push(Use {
                file: File::Sgpr,
                first,
                count: self.mask_words(),
                bits: u32::MAX,
                lanes: Lanes::All,
                role: operand.role,
                relative: None,
                always,
                second: self.second,
            });
        }
    }

    /// Dwords of an operand, from `at` on; nothing of constants and null.
    fn registers(
        &self,
        operand: &Operand,
        at: u16,
        count: u16,
        touch: &Touch,
        start: Use,
        out: &mut Vec<Use>,
    ) {
        let used = Use { count, role: operand.role, ..start };
        let lanes = self.lanes(touch.lanes, operand.role == Role::S0 && !touch.write);
        match self.code(operand) {
            Some(Code::Vgpr(reg)) => {
                let first = self.plan.register(operand, reg) + at;
                out.push(Use { file: File::Vgpr, first, lanes, ..used });
            }
            Some(Code::Fixed(reg)) if !touch.write => {
                out.push(Use { file: File::Vgpr, first: reg + at, lanes, ..used });
            }
            Some(Code::Sgpr(reg)) if reg as usize == NULL => {}
            // A 16-bit scalar result clears the upper half.
            Some(Code::Sgpr(reg)) if reg as usize <= EXEC_HI => {
                let bits = if touch.write { u32::MAX } else { used.bits };
                out.push(Use { file: File::Sgpr, first: reg + at, bits, ..used });
            }
            Some(Code::Scc) if at == 0 && !touch.write => out.push(Use { file: File::Scc, ..used }),
            _ => {}
        }
    }

    fn lanes(&self, lanes: facts::Lanes, moved: bool) -> Lanes {
        match lanes {
            facts::Lanes::Own if moved && self.plan.has_dpp() => self.dpp(),
            facts::Lanes::Own | facts::Lanes::Active => Lanes::Active,
            facts::Lanes::All => Lanes::All,
            facts::Lanes::Once => Lanes::Selected(Select::Lane(0)),
            facts::Lanes::Lane(lane) => Lanes::Selected(Select::Lane(lane)),
            facts::Lanes::LowestActive => Lanes::FirstActive,
            facts::Lanes::Selected(role) => match self.operand(role).and_then(|o| self.code(o)) {
                Some(Code::Sgpr(reg)) => Lanes::Selected(Select::Sgpr(reg)),
                Some(Code::Int(lane)) => Lanes::Selected(Select::Lane(lane as u32)),
                _ => Lanes::Data,
            },
            facts::Lanes::Any => Lanes::Data,
        }
    }

    fn dpp(&self) -> Lanes {
        let m = &self.plan.mods;
        match m.lane_sel {
            Some(first) => Lanes::Dpp8 {
                lanes: std::array::from_fn(|k| self.inst.fields[first as usize + k] as u8),
                fetch: self.plan.get(self.inst, m.src0) == dpp::DPP8_FETCH_INACTIVE,
            },
            None => Lanes::Dpp16 {
                arch: self.arch,
                ctrl: self.plan.get(self.inst, m.dpp_ctrl) as u16,
                fetch: self.plan.get(self.inst, m.fi) != 0,
            },
        }
    }

    /// Registers that a body names.
    fn state(&self, state: State, touch: &Touch, start: Use) -> Option<Use> {
        let words = self.mask_words();
        let (file, first, count) = match state {
            State::Scc => (File::Scc, 0, 1),
            State::Vcc | State::Vccz => (File::Sgpr, VCC_LO, words),
            State::VccLo => (File::Sgpr, VCC_LO, 1),
            State::VccHi => (File::Sgpr, VCC_HI, 1),
            State::Exec | State::Execz => (File::Sgpr, EXEC_LO, words),
            State::ExecLo => (File::Sgpr, EXEC_LO, 1),
            State::ExecHi => (File::Sgpr, EXEC_HI, 1),
            State::M0 => (File::Sgpr, M0, 1),
            State::Pc
            | State::InstSize
            | State::Mode
            | State::Status
            | State::LaneId
            | State::Wave32
            | State::Wave64
            | State::WaveSize
            | State::VgprSize
            | State::WaveId
            | State::ScratchBase
            | State::SharedBase
            | State::PrivateBase
            | State::TrapBase => return None,
        };
        let bits = match state {
            // One bit that all bits of the mask make.
            State::Vccz | State::Execz => u32::MAX,
            _ if count == 1 => touch.bits as u32,
            _ => u32::MAX,
        };
        Some(Use { file, first: first as u16, count, bits, ..start })
    }

    /// Registers by number.
    fn number(&self, file: File, number: Number, touch: &Touch, start: Use) -> Option<Use> {
        let base = match number.base {
            Some(role) => self.index(role) & number.mask,
            None => 0,
        };
        // What goes to null goes nowhere.
        let alone = number.index.is_none() && number.count == 1;
        if file == File::Sgpr && alone && base.wrapping_add(number.first) as usize == NULL {
            return None;
        }
        let relative = number.index.map(|index| Relative::M0 {
            index,
            // A VGPR that the wave does not have is read as v0.
            otherwise: if file == File::Vgpr { 0 } else { number.otherwise.unwrap_or(0) as u16 },
        });
        let first = u16::try_from(base.wrapping_add(number.first)).ok()?;
        let lanes = if file == File::Vgpr { self.lanes(touch.lanes, false) } else { Lanes::All };
        let (count, bits) = (number.count as u16, touch.bits as u32);
        Some(Use {
            file,
            first,
            count,
            bits,
            lanes,
            role: number.base.unwrap_or(Role::Other),
            relative,
            ..start
        })
    }
}

/// Joins uses of consecutive registers that are alike.
fn join(list: &mut Vec<Use>) {
    list.dedup_by(|next, last| {
        let alike = Use { first: last.first, count: last.count, ..*next } == *last;
        let follows =
            next.relative.is_none() && last.first + last.count == next.first && next.file != File::Scc;
        if alike && follows {
            last.count += next.count;
        }
        alike && follows
    });
}

impl Use {
    /// A number that no register has.
    pub const NOWHERE: u16 = 0x4000;

    /// Number of the first register, M0 added where it counts; [`Use::NOWHERE`] if that leads out of range.
    pub fn start(&self, wave: &Wave) -> u16 {
        if self.relative == Some(Relative::Any) {
            return Use::NOWHERE;
        }
        let Some(index) = self.index(wave) else { return self.first };
        let first = self.first as u32;
        // How far the registers go that the first is one of (RDNA manuals, *SGPR* and *VGPR Out of Range Behavior*).
        let end = match (self.file, first as usize) {
            (File::Vgpr, _) => wave.vgpr_count(),
            (_, ..=VCC_HI) => TTMP.start as u32,
            (_, at) if TTMP.contains(&at) => TTMP.end as u32,
            _ => first + self.count as u32,
        };
        match index <= 255 && first + index + self.count as u32 <= end {
            true => (first + index) as u16,
            false => Use::NOWHERE,
        }
    }

    /// The registers that this touches in the wave as it is before the instruction, those in place of one out of range included.
    pub fn registers(&self, wave: &Wave, write: bool) -> std::ops::Range<u16> {
        match (self.relative, self.start(wave)) {
            (Some(Relative::Any), _) if self.file == File::Vgpr => 0..wave.vgpr_count() as u16,
            (Some(Relative::Any), _) => 0..EXEC_HI as u16 + 1,
            (Some(Relative::M0 { .. }), Use::NOWHERE) if write => 0..0,
            (Some(Relative::M0 { otherwise, .. }), Use::NOWHERE) => otherwise..otherwise + self.count,
            (_, start) => start..start + self.count,
        }
    }

    /// What is added to the number, if something is.
    pub fn index(&self, wave: &Wave) -> Option<u32> {
        match self.relative? {
            Relative::M0 { index, .. } => Some(wave.sgprs[M0] >> index.shift & index.mask),
            Relative::Any => None,
        }
    }

    /// Lanes of a VGPR that this touches, as a mask, for the wave as it is before the instruction.
    pub fn lane_mask(&self, wave: &Wave) -> u64 {
        let exec = wave.exec();
        match self.lanes {
            Lanes::Active => exec,
            Lanes::All => wave.full_mask(),
            Lanes::FirstActive => match exec {
                0 => 1,
                e => e & e.wrapping_neg(),
            },
            Lanes::Selected(select) => {
                let lane = match select {
                    Select::Sgpr(reg) => wave.sgpr(reg as u32),
                    Select::Lane(lane) => lane,
                };
                1 << (lane & (wave.size - 1))
            }
            Lanes::Dpp16 { arch, ctrl, fetch } => {
                gather_lanes(wave, exec, fetch, |lane| dpp::source(arch, ctrl as u32, lane))
            }
            Lanes::Dpp8 { lanes, fetch } => {
                gather_lanes(wave, exec, fetch, |lane| Some(lane & !7 | lanes[(lane & 7) as usize] as u32))
            }
            // What data picks is not known; nothing is claimed.
            Lanes::Data => 0,
        }
    }
}

/// Source lanes of the active lanes. Inactive sources are read only with fetch-inactive.
fn gather_lanes(wave: &Wave, exec: u64, fetch: bool, source: impl Fn(u32) -> Option<u32>) -> u64 {
    let mut mask = 0;
    for lane in (0..wave.size).filter(|l| exec >> l & 1 == 1) {
        mask |= source(lane).filter(|from| *from < wave.size).map_or(0, |from| 1 << from);
    }
    if fetch { mask } else { mask & exec }
}

/// `v3`, `s[2:3]`, `vcc_lo`; the machine's own name where it has a description.
pub fn register_name(arch: Arch, file: File, first: u16, count: u16) -> String {
    if let Some(machine) = arch.machine() {
        return match file {
            File::Vgpr => machine.vector.name(first),
            _ => machine.scalar.name(first),
        };
    }
    match file {
        File::Scc => "scc".to_string(),
        File::Vgpr => {
            let (kind, first) = if first < ACC as u16 { ('v', first) } else { ('a', first - ACC as u16) };
            match count {
                1 => format!("{kind}{first}"),
                _ => format!("{kind}[{first}:{}]", first + count - 1),
            }
        }
        File::Sgpr => sgpr_name(first, count),
    }
}

fn sgpr_name(first: u16, count: u16) -> String {
    let pair = |name: &str| match count {
        1 => format!("{name}_lo"),
        _ => name.to_string(),
    };
    match first as usize {
        VCC_LO => pair("vcc"),
        VCC_HI => "vcc_hi".to_string(),
        code if TTMP.contains(&code) => match (code - TTMP.start, count as usize) {
            (at, 1) => format!("ttmp{at}"),
            (at, count) => format!("ttmp[{at}:{}]", at + count - 1),
        },
        NULL => "null".to_string(),
        M0 => "m0".to_string(),
        EXEC_LO => pair("exec"),
        EXEC_HI => "exec_hi".to_string(),
        _ if count == 1 => format!("s{first}"),
        _ => format!("s[{first}:{}]", first + count - 1),
    }
}
