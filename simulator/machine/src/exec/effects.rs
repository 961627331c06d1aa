//! What an instruction does to registers, told from its operands alone: which it reads, which it writes, in which lanes.
//!
//! The source is the operand lists of the XML (`IsImplicit` operands included) and the instruction's fields; no pseudocode is looked
//! at, so a table costs nothing to make and holds for instructions without semantics. Relative addressing (M0) is the exception
//! that needs the wave's state: [`Use::relative`] marks it.

use super::program::Program;
use crate::state::Wave;
use crate::state::wave::{EXEC_LO, M0, NULL, VCC_LO};
use isa_spec::tables::Role;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Code, Fmt, Operand, Plan};

/// Which file a register is in. SGPRs are by operand code, so VCC, M0 and EXEC are among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum File {
    Sgpr,
    Vgpr,
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
    Dpp16 { ctrl: u16, fetch: bool },
    /// As with DPP, eight lanes at a time.
    Dpp8 { lanes: [u8; 8], fetch: bool },
    /// Unknown before the instruction runs: other lanes, by data.
    Data,
}

/// A lane number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Select {
    Sgpr(u16),
    Lane(u32),
}

/// How M0 moves a register number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relative {
    /// M0 is added.
    M0,
    /// M0[9:0] is added: the source of instructions with two indices.
    M0Low,
    /// M0[25:16] is added: the destination of those.
    M0High,
}

/// Consecutive registers read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    pub file: File,
    /// Number of the first: VGPR, or SGPR operand code.
    pub first: u16,
    pub count: u16,
    pub lanes: Lanes,
    pub role: Role,
    pub relative: Option<Relative>,
}

/// What kind of work an instruction is: the XML's functional group, and for memory what it does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    Valu,
    Matrix,
    Salu,
    Smem,
    Vmem,
    Flat,
    Scratch,
    Lds,
    Branch,
    Wait,
    Control,
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

/// One instruction's effects on registers.
#[derive(Debug, Clone)]
pub struct Effects {
    pub reads: Vec<Use>,
    pub writes: Vec<Use>,
    pub class: Class,
    /// Reads, changes and writes memory in one step.
    pub atomic: bool,
    /// Gives a value back: a load, or an atomic that returns.
    pub returns: bool,
    /// Asks memory to keep to the order of other waves (GLC, or a scope beyond the wave's).
    pub coherent: bool,
}

/// The effects of each instruction of a program.
pub fn table(program: &Program, wave_size: u32) -> Vec<Effects> {
    program.insts.iter().map(|inst| effects(program.arch, inst, wave_size)).collect()
}

/// What `inst` does.
pub fn effects(arch: Arch, inst: &Inst, wave_size: u32) -> Effects {
    let table = arch.table();
    let plan = operand::plan(arch, inst.entry);
    let name = inst.instruction(table).name;
    let mut out = Effects {
        reads: Vec::new(),
        writes: Vec::new(),
        class: class(arch, inst),
        atomic: inst.instruction(table).subgroup == "ATOMIC",
        returns: false,
        coherent: coherent(arch, inst, plan),
    };
    let mut gather = Gather { arch, inst, wave_size, out: &mut out };
    gather.half(plan, &plan.operands, name);
    if !plan.y.is_empty() {
        let y = operand::plan(arch, inst.entry_y);
        let name = table.instructions[table.entries[inst.entry_y as usize].inst as usize].name;
        gather.half(y, &y.y, name);
    }
    out.returns = out.class.is_memory() && out.writes.iter().any(|w| w.file != File::Scc);
    out
}

/// The functional group, with the memory instructions split by where they go.
fn class(arch: Arch, inst: &Inst) -> Class {
    let table = arch.table();
    let info = inst.instruction(table);
    let name = info.name;
    match info.group {
        "VALU" if name.contains("WMMA") => Class::Matrix,
        "VALU" => Class::Valu,
        "SMEM" => Class::Smem,
        "LDS" => Class::Lds,
        "VMEM" if name.starts_with("FLAT_") => Class::Flat,
        "VMEM" if name.starts_with("SCRATCH_") => Class::Scratch,
        "VMEM" => Class::Vmem,
        "BRANCH" => Class::Branch,
        "EXPORT" => Class::Export,
        _ if name.starts_with("S_WAIT") && name != "S_WAIT_EVENT" => Class::Wait,
        "WAVE_CONTROL" | "MESSAGE" | "TRAP" => Class::Control,
        _ => Class::Salu,
    }
}

/// GLC of a load on RDNA 3; a scope of the workgroup or wider on RDNA 4 (manuals, *Memory Scopes*).
fn coherent(arch: Arch, inst: &Inst, plan: &Plan) -> bool {
    match arch {
        Arch::Rdna4 => inst.field(arch.table(), "SCOPE").unwrap_or(0) >= 1,
        _ => plan.get(inst, plan.mods.glc) & 1 != 0,
    }
}

struct Gather<'a> {
    arch: Arch,
    inst: &'a Inst,
    wave_size: u32,
    out: &'a mut Effects,
}

impl Gather<'_> {
    fn half(&mut self, plan: &'static Plan, operands: &[Operand], name: &'static str) {
        let vector = matches!(self.out.class, Class::Valu | Class::Matrix);
        let fixed = self.fixed();
        let mut states = fixed.iter();
        // M0 is in no operand list.
        let relative = name.contains("MOVREL") || name.contains("SWAPREL");
        if relative {
            self.read(File::Sgpr, M0 as u16, 1, Role::State);
        }
        for operand in operands {
            if operand.role == Role::State {
                let Some(name) = states.next() else { continue };
                self.state(name, operand);
                continue;
            }
            if operand.role == Role::Imm || operand.role == Role::Other {
                continue;
            }
            let Some(mut used) = self.register(plan, operand, vector) else { continue };
            if relative {
                used.relative = relative_to(name, operand);
            }
            if vector && self.out.class == Class::Matrix {
                used.lanes = Lanes::All;
            }
            let source = used;
            if operand.input && self.reads_it(plan, operand) {
                self.out.reads.push(self.source_lanes(plan, operand, name, source));
            }
            if operand.output && (plan.returns(self.inst) || operand.role != Role::D0) {
                if name == "V_WRITELANE_B32" {
                    used.lanes = Lanes::Selected(self.select(plan));
                }
                self.out.writes.push(used);
            }
        }
        // V_WRITELANE keeps the other lanes: nothing of its destination is used.
        if name == "V_WRITELANE_B32" {
            self.out.reads.retain(|r| r.role != Role::D0);
        }
    }

    /// Type names of the operands that no field holds, in the order of the list.
    fn fixed(&self) -> Vec<&'static str> {
        let table = self.arch.table();
        let entry = self.inst.entry(table);
        table.signatures[entry.sig as usize]
            .iter()
            .filter(|o| o.role == Role::State)
            .map(|o| table.operand_types[o.ty as usize].name)
            .collect()
    }

    fn state(&mut self, name: &str, operand: &Operand) {
        let dwords = (self.wave_size / 32) as u16;
        let (file, first, count) = match name {
            "OPR_SCC" => (File::Scc, 0, 1),
            "OPR_VCC" => (File::Sgpr, VCC_LO as u16, dwords),
            "OPR_EXEC" => (File::Sgpr, EXEC_LO as u16, dwords),
            "OPR_SDST_M0" | "OPR_M0" => (File::Sgpr, M0 as u16, 1),
            _ => return,
        };
        let used = Use { file, first, count, lanes: Lanes::All, role: Role::State, relative: None };
        if operand.input {
            self.out.reads.push(used);
        }
        if operand.output {
            self.out.writes.push(used);
        }
    }

    fn read(&mut self, file: File, first: u16, count: u16, role: Role) {
        self.out.reads.push(Use { file, first, count, lanes: Lanes::All, role, relative: None });
    }

    /// The registers an operand names; `None` for constants and null.
    fn register(&self, plan: &'static Plan, operand: &Operand, vector: bool) -> Option<Use> {
        let mask = operand.fmt == Fmt::Mask && vector;
        let count = if mask { (self.wave_size / 32) as u16 } else { operand.size_bits.div_ceil(32).max(1) };
        let used = |file, first, count| {
            let lanes = if file == File::Vgpr { Lanes::Active } else { Lanes::All };
            Some(Use { file, first, count, lanes, role: operand.role, relative: None })
        };
        let Some(field) = operand.field else {
            // A mask that the encoding fixes.
            let is_vcc = operand.fmt == Fmt::Mask && matches!(operand.role, Role::Vcc | Role::D0);
            return if is_vcc { used(File::Sgpr, VCC_LO as u16, count) } else { None };
        };
        let value = self.inst.fields[field as usize];
        let code = match mask {
            true => Code::Sgpr(operand::mask_register(operand, value)),
            false => operand::code(self.arch, operand, value),
        };
        match code {
            Code::Vgpr(reg) => used(File::Vgpr, plan.register(operand, reg), self.clip(operand, count)),
            Code::Fixed(reg) if !operand.output => used(File::Vgpr, reg, count),
            Code::Sgpr(reg) if reg as usize == NULL => None,
            Code::Sgpr(reg) if reg as usize == EXEC_LO && count == 2 && self.wave_size == 32 && vector => {
                used(File::Sgpr, reg, 1)
            }
            Code::Sgpr(reg) if (reg as usize) < 128 => used(File::Sgpr, reg, count),
            Code::Scc => used(File::Scc, 0, 1),
            _ => None,
        }
    }

    /// Address operands are as wide as their addressing mode, which the XML's size does not say.
    fn clip(&self, operand: &Operand, count: u16) -> u16 {
        if operand.role != Role::VAddr {
            return count;
        }
        let table = self.arch.table();
        let field = |name| self.inst.field(table, name);
        match self.out.class {
            Class::Vmem if field("IDXEN").is_some() => {
                (field("IDXEN").unwrap_or(0) + field("OFFEN").unwrap_or(0)) as u16
            }
            // A scalar base leaves a 32-bit offset.
            Class::Vmem if field("SADDR").is_some_and(|s| s as usize != NULL) => 1,
            Class::Scratch => 1,
            _ => count,
        }
    }

    /// Whether a source takes part at all.
    fn reads_it(&self, _plan: &Plan, operand: &Operand) -> bool {
        let table = self.arch.table();
        match operand.role {
            Role::VAddr if self.out.class == Class::Scratch => {
                self.inst.field(table, "SVE").is_none_or(|on| on != 0)
            }
            Role::VAddr if self.out.class == Class::Vmem => self.clip(operand, 1) != 0,
            _ => true,
        }
    }

    fn source_lanes(&self, plan: &'static Plan, operand: &Operand, name: &str, mut used: Use) -> Use {
        if used.file != File::Vgpr {
            return used;
        }
        match name {
            "V_READFIRSTLANE_B32" => used.lanes = Lanes::FirstActive,
            "V_READLANE_B32" if operand.role == Role::S0 => used.lanes = Lanes::Selected(self.select(plan)),
            "DS_BPERMUTE_B32" | "DS_BPERMUTE_FI_B32" if operand.role == Role::Data => {
                used.lanes = Lanes::Data
            }
            "DS_SWIZZLE_B32" => used.lanes = Lanes::Data,
            n if n.starts_with("V_PERMLANE") && operand.role == Role::S0 => used.lanes = Lanes::Data,
            _ if operand.role == Role::S0 && plan.has_dpp() => {
                let m = &plan.mods;
                let fetch = plan.get(self.inst, m.fi) != 0;
                used.lanes = match m.lane_sel {
                    Some(first) => Lanes::Dpp8 {
                        lanes: std::array::from_fn(|k| self.inst.fields[first as usize + k] as u8),
                        fetch: plan.get(self.inst, m.src0) == 234,
                    },
                    None => Lanes::Dpp16 { ctrl: plan.get(self.inst, m.dpp_ctrl) as u16, fetch },
                };
            }
            _ => {}
        }
        used
    }

    /// The lane that S1 of V_READLANE and V_WRITELANE names.
    fn select(&self, plan: &'static Plan) -> Select {
        let operand = plan.operands.iter().find(|o| o.role == Role::S1);
        let code =
            operand.and_then(|o| Some(operand::code(self.arch, o, self.inst.fields[o.field? as usize])));
        match code {
            Some(Code::Sgpr(reg)) => Select::Sgpr(reg),
            Some(Code::Int(lane)) => Select::Lane(lane as u32),
            _ => Select::Lane(0),
        }
    }
}

fn relative_to(name: &str, operand: &Operand) -> Option<Relative> {
    let swaps = name.contains("SWAPREL");
    let two = swaps || name.contains("_2_");
    // Both of what is swapped are results.
    match operand.role {
        Role::D0 if swaps || name.contains("RELD") || name.contains("RELSD") => {
            Some(if two { Relative::M0High } else { Relative::M0 })
        }
        Role::D0 => None,
        _ if swaps || name.contains("MOVRELS") => Some(if two { Relative::M0Low } else { Relative::M0 }),
        _ => None,
    }
}

impl Use {
    /// A number that no register has.
    pub const NOWHERE: u16 = 0x4000;

    /// Number of the first register, M0 added where it counts; [`Use::NOWHERE`] if that leads out of range.
    pub fn start(&self, wave: &Wave) -> u16 {
        let Some(index) = self.index(wave) else { return self.first };
        let first = self.first as u32;
        // How far the registers go that the first is one of (RDNA manuals, *SGPR* and *VGPR Out of Range Behavior*).
        let end = match (self.file, first) {
            (File::Vgpr, _) => wave.vgpr_count(),
            (_, ..=107) => 108,
            (_, ..=123) => 124,
            _ => first + self.count as u32,
        };
        match index <= 255 && first + index + self.count as u32 <= end {
            true => (first + index) as u16,
            false => Use::NOWHERE,
        }
    }

    /// What is added to the number, if something is.
    pub fn index(&self, wave: &Wave) -> Option<u32> {
        let m0 = wave.sgprs[M0];
        let index = match self.relative? {
            Relative::M0 => m0,
            Relative::M0Low => m0 & 0x3ff,
            Relative::M0High => m0 >> 16 & 0x3ff,
        };
        // Pairs of SGPRs have an even index.
        Some(if self.file == File::Sgpr && self.count == 2 { index & !1 } else { index })
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
            Lanes::Dpp16 { ctrl, fetch } => {
                gather_lanes(wave, exec, fetch, |lane| operand::dpp16_source(ctrl as u32, lane))
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
        File::Vgpr if count == 1 => format!("v{first}"),
        File::Vgpr => format!("v[{first}:{}]", first + count - 1),
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
        107 => "vcc_hi".to_string(),
        108..=123 if count == 1 => format!("ttmp{}", first - 108),
        108..=123 => format!("ttmp[{}:{}]", first - 108, first - 108 + count - 1),
        NULL => "null".to_string(),
        M0 => "m0".to_string(),
        EXEC_LO => pair("exec"),
        127 => "exec_hi".to_string(),
        _ if count == 1 => format!("s{first}"),
        _ => format!("s[{first}:{}]", first + count - 1),
    }
}
