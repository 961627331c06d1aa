//! The observer that counts.

use crate::file::{Coverage, Instruction, Program};
use fnv::FnvHasher;
use isa_spec::tables::Role;
use std::hash::Hasher as _;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Code, Operand, OperandKind};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{File, register_name};
use wavesim_machine::state::wave::{ACC, EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};

/// Counts what runs of a program.
pub struct Recorder {
    program: Program,
    exec: u64,
    is_conditional: Vec<bool>,
    /// The end of the kernel's code. Padding after it never runs.
    end: usize,
    modes: [u64; 256],
}

impl Recorder {
    /// Creates counts of zero for a launch. `name` is the kernel, or the file that it was read from.
    pub fn new(prepared: &Prepared, name: &str) -> Recorder {
        let program = &prepared.program;
        let table = program.arch.table();
        let own = prepared.source.as_ref().map(|source| source.name.clone());
        let paths = |name: &str| {
            let files = program.source_files().iter();
            files.clone().find(|file| &*file.name == name).map(|file| file.path.clone())
        };
        let mut instructions = Vec::new();
        let mut is_conditional = Vec::new();
        let mut end = 0;
        for (index, inst) in program.insts.iter().enumerate() {
            let pc = program.pcs[index];
            let location = program.location(pc);
            let line = location.as_ref().map_or(0, |location| location.line);
            let file = location.and_then(|location| match location.file {
                Some(name) => Some(paths(&name).unwrap_or_else(|| name.to_string())),
                None => own.clone(),
            });
            let flags = inst.instruction(table).flags();
            if flags.terminator || flags.branch || flags.indirect_branch || line != 0 {
                end = index + 1;
            }
            let conditional = flags.conditional_branch;
            is_conditional.push(conditional);
            instructions.push(Instruction {
                address: program.address(pc),
                text: program.text(index),
                encoding: encoding(program.arch, inst),
                operands: operands(program.arch, inst),
                file,
                line,
                branch: conditional.then_some([0; 2]),
                ..Instruction::default()
            });
        }
        let end = if end == 0 { instructions.len() } else { end };
        let identity = identity(&instructions[..end]);
        Recorder {
            program: Program {
                name: name.to_string(),
                arch: program.arch.name().to_string(),
                wave_size: prepared.shape.wave_size,
                identity: format!("{identity:016x}"),
                launches: 1,
                waves: 0,
                modes: Default::default(),
                instructions,
            },
            exec: 0,
            is_conditional,
            end,
            modes: [0; 256],
        }
    }

    /// Returns the coverage of the run.
    pub fn finish(mut self) -> Coverage {
        let used = (0..=u8::MAX).zip(self.modes).filter(|(_, count)| *count > 0);
        self.program.modes = used.collect();
        self.program.instructions.truncate(self.end);
        Coverage { launches: 1, programs: vec![self.program], ..Coverage::default() }
    }
}

/// Returns a number that identifies instructions and their lines (FNV-1a).
fn identity(list: &[Instruction]) -> u64 {
    let mut hash = FnvHasher::default();
    let mut add = |bytes: &[u8]| hash.write(bytes);
    for inst in list {
        add(inst.text.as_bytes());
        add(inst.file.as_deref().unwrap_or_default().as_bytes());
        add(&inst.line.to_le_bytes());
        add(&inst.address.to_le_bytes());
    }
    hash.finish()
}

/// Returns the name of the encoding.
fn encoding(arch: Arch, inst: &Inst) -> String {
    let table = arch.table();
    let entry = &table.entries[inst.entry as usize];
    let name = table.encodings[entry.enc as usize].name;
    name.strip_prefix("ENC_").unwrap_or(name).to_lowercase()
}

/// Returns the kinds of the operands: `source VGPR`, `result SGPR`.
fn operands(arch: Arch, inst: &Inst) -> Vec<String> {
    let mut list = Vec::new();
    let first = operand::binding(arch, inst.entry);
    let mut add = |operand: &Operand| {
        let Some(value) = first.value(inst, operand) else { return };
        let kind = kind(arch, operand, value);
        for (has, what) in [(operand.input, "source"), (operand.output, "result")] {
            if has {
                list.push(format!("{what} {kind}"));
            }
        }
    };
    first.operands.iter().for_each(&mut add);
    if first.dual {
        operand::binding(arch, inst.entry_y).y.iter().for_each(&mut add);
    }
    list.sort_unstable();
    list.dedup();
    list
}

fn kind(arch: Arch, operand: &Operand, value: u32) -> String {
    // Labels and counts have other fields than sources.
    if operand.role == Role::Imm {
        return "immediate".to_string();
    }
    match operand::code(arch, operand, value) {
        Code::Sgpr(register) => match usize::from(register) {
            VCC_LO..=VCC_HI => "VCC".to_string(),
            EXEC_LO..=EXEC_HI => "EXEC".to_string(),
            M0 => "M0".to_string(),
            NULL => "null".to_string(),
            register if TTMP.contains(&register) => "TTMP".to_string(),
            _ => "SGPR".to_string(),
        },
        Code::Vgpr(register) if usize::from(register) >= ACC => "AGPR".to_string(),
        Code::Vgpr(_) | Code::Fixed(_) => "VGPR".to_string(),
        Code::Int(_) if matches!(operand.kind, OperandKind::Number { .. }) => "immediate".to_string(),
        Code::Int(_) => "inline integer".to_string(),
        Code::Float(_) => "inline float".to_string(),
        Code::Literal | Code::Literal64 => "literal".to_string(),
        Code::Scc => register_name(arch, File::Scc, 0, 1),
        Code::Vccz => "VCCZ".to_string(),
        Code::Execz => "EXECZ".to_string(),
        Code::SharedBase
        | Code::SharedLimit
        | Code::PrivateBase
        | Code::PrivateLimit
        | Code::ScratchBase { .. } => "aperture".to_string(),
        Code::Invalid => "invalid".to_string(),
    }
}

impl Observer for Recorder {
    fn group_started(&mut self, _workgroup: [u32; 3], waves: usize) {
        self.program.waves += waves as u64;
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.exec = step.wave.exec();
        self.modes[usize::from(step.wave.mode as u8)] += 1;
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let inst = &mut self.program.instructions[step.index];
        inst.executed += 1;
        inst.lanes += u64::from(self.exec.count_ones());
        inst.lane_mask |= self.exec;
        if self.is_conditional[step.index] {
            let branch = inst.branch.get_or_insert([0; 2]);
            branch[usize::from(!done.jumped)] += 1;
        }
    }
}
