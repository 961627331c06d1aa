//! The reference executor: runs one instruction on one wave through the evaluator, reading operands lane by
//! lane from the instruction's fields. Slow, obvious, and independent of lowering and handlers.

mod access_set;
mod machine;
mod operands;

pub use access_set::AccessSet;

use crate::faults;
use isa_spec::arith::FloatEnv;
use isa_spec::eval::{self, Machine, Stop};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Role, Semantics, Shape, Space, State, Ty, Uses};
use isa_spec::source::Span;
use isa_spec::tables::ArchTable;
use std::collections::{BTreeMap, BTreeSet};
use wavesim_isa::arch::Arch;
use wavesim_isa::dpp;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Binding, Code, Fmt, Half, Operand};
use wavesim_isa::relative::{self, OutOfRange, VSKIP};
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::hwreg;
use wavesim_machine::exec::lower;
use wavesim_machine::exec::machine_ops::{self, Event};
use wavesim_machine::exec::op::{Part, Sdwa};
use wavesim_machine::exec::output;
use wavesim_machine::exec::rt::watch::Watch;
use wavesim_machine::fault::FaultKind;
use wavesim_machine::memory::{self, MemError, Memory, PRIVATE_BASE, Place, SHARED_BASE};
use wavesim_machine::state::scratch;
use wavesim_machine::state::wave::{EXEC_LO, M0, NULL, VCC_LO, VGPRS};
use wavesim_machine::state::{Wave, Workgroup};

/// Executes `inst` with the semantics `sem` (of its first half) and, for VOPD, `sem_y`, and advances the PC.
pub fn step(
    arch: Arch,
    inst: &Inst,
    sem: &Semantics,
    sem_y: Option<&Semantics>,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Result<(), Event> {
    step_observed(arch, inst, sem, sem_y, wave, context, Observe::Nothing)
}

/// Runs a body once for a lane, or for the wave: `isa_spec::eval::eval`, or what shall be compared with it.
pub type Evaluate = fn(&Semantics, &mut dyn Machine, Option<u32>) -> Result<(), Stop>;

/// As [`step`], with another evaluator of bodies.
pub fn step_with(
    arch: Arch,
    inst: &Inst,
    halves: [Option<&Semantics>; 2],
    wave: &mut Wave,
    context: &mut Context<'_>,
    evaluate: Evaluate,
) -> Result<(), Event> {
    execute(arch, inst, halves, wave, context, (Observe::Nothing, evaluate))
}

/// Selects what an execution reports besides its results.
pub enum Observe<'o, 'w> {
    /// Nothing.
    Nothing,
    /// Accesses and calls; memory accesses go through the watch.
    Accesses(&'o mut Watch<'w>),
    /// The registers and memory that the semantics access.
    AccessSet(&'o mut AccessSet),
}

/// As [`step`], and reports to `observe`.
pub fn step_observed(
    arch: Arch,
    inst: &Inst,
    sem: &Semantics,
    sem_y: Option<&Semantics>,
    wave: &mut Wave,
    context: &mut Context<'_>,
    observe: Observe<'_, '_>,
) -> Result<(), Event> {
    execute(arch, inst, [Some(sem), sem_y], wave, context, (observe, eval::eval))
}

fn execute(
    arch: Arch,
    inst: &Inst,
    halves: [Option<&Semantics>; 2],
    wave: &mut Wave,
    context: &mut Context<'_>,
    (observe, evaluate): (Observe<'_, '_>, Evaluate),
) -> Result<(), Event> {
    let (mut access_set, mut watch) = match observe {
        Observe::Nothing => (None, None),
        Observe::Accesses(watch) => (None, Some(watch)),
        Observe::AccessSet(access_set) => (Some(access_set), None),
    };
    let pc = wave.pc;
    if wave.mode & VSKIP != 0 && relative::is_skipped(arch, inst) {
        wave.pc += inst.size as u64;
        return Ok(());
    }
    if let Some(code) = operand::unlisted_code(arch, inst) {
        return Err(faults::unlisted_code(Some(inst.instruction(arch.table()).name), code));
    }
    let inst = &resolved(arch, inst, wave)
        .map_err(|e| Event::fault(FaultKind::IllegalInstruction, e.to_string()))?;
    let mut writes = BTreeMap::new();
    let mut event = Ok(());
    let mut jumped = None;
    for (at, sem) in halves.into_iter().flatten().enumerate() {
        let mut machine = RefMachine {
            arch,
            table: arch.table(),
            inst,
            binding: operand::binding(arch, if at == 0 { inst.entry } else { inst.entry_y }),
            second: at == 1,
            exec: wave.exec(),
            env: FloatEnv::from_mode(wave.mode),
            sem,
            evaluate,
            wave: &mut *wave,
            context: &mut *context,
            writes: BTreeMap::new(),
            masks: BTreeMap::new(),
            disabled: 0,
            jump: None,
            event: None,
            vcc_written: false,
            result_written: false,
            states_written: BTreeSet::new(),
            access_set: access_set.as_deref_mut(),
            watch: watch.as_deref_mut(),
        };
        event = machine.run();
        jumped = machine.jump;
        // Both halves read before either writes.
        writes.append(&mut machine.writes);
        if event.is_err() {
            break;
        }
    }
    for ((lane, reg), value) in writes {
        wave.set_vgpr(lane, reg, value);
    }
    wave.pc = jumped.unwrap_or(pc + inst.size as u64);
    event
}

/// Returns the instruction with relative register numbers resolved.
fn resolved(arch: Arch, inst: &Inst, wave: &Wave) -> Result<Inst, OutOfRange> {
    relative::resolved(arch, inst, wave.mode, wave.sgprs[M0], wave.vgpr_count().min(VGPRS as u32))
}

/// Returns the value of an operand in a lane as the semantics see it, with DPP, halves and modifiers applied;
/// `None` if the instruction has no such operand. Only the shape of the semantics and the encoding fields
/// that they name matter. `second` selects the second half of VOPD.
pub fn operand(
    arch: Arch,
    inst: &Inst,
    (shape, fields): (Shape, &[&'static str]),
    second: bool,
    wave: &Wave,
    role: Role,
    lane: u32,
) -> Option<u128> {
    let uses = Uses { fields: fields.iter().copied().collect(), ..Uses::default() };
    let sem = Semantics {
        names: Vec::new(),
        shape,
        locals: Vec::new(),
        body: Vec::new(),
        uses,
        ignores_mode: false,
        definitions: Default::default(),
        text: String::new(),
        span: Span::default(),
    };
    operands(arch, inst, &sem, second, &mut wave.clone(), &[role], 1 << lane).pop()?.pop()
}

/// Returns the values of some operands, each in the lanes of a mask, in ascending order, as the semantics see them;
/// no values for an operand that the instruction does not have. `second` selects the second half of VOPD. The wave is
/// not changed.
pub fn operands(
    arch: Arch,
    inst: &Inst,
    sem: &Semantics,
    second: bool,
    wave: &mut Wave,
    roles: &[Role],
    lanes: u64,
) -> Vec<Vec<u128>> {
    let (memory, mut workgroup) = (Memory::empty(), Workgroup::default());
    let mut context = Context::new(&memory, &mut [], &mut workgroup);
    let Ok(inst) = &resolved(arch, inst, wave) else { return vec![Vec::new(); roles.len()] };
    let mut machine = RefMachine {
        arch,
        table: arch.table(),
        inst,
        binding: operand::binding(arch, if second { inst.entry_y } else { inst.entry }),
        second,
        exec: wave.exec(),
        env: FloatEnv::from_mode(wave.mode),
        sem,
        evaluate: eval::eval,
        wave,
        context: &mut context,
        writes: BTreeMap::new(),
        masks: BTreeMap::new(),
        disabled: 0,
        jump: None,
        event: None,
        vcc_written: false,
        result_written: false,
        states_written: BTreeSet::new(),
        access_set: None,
        watch: None,
    };
    let mut of = |role: Role| -> Vec<u128> {
        if role != Role::Vcc && machine.operand_of(role).is_none() {
            return Vec::new();
        }
        let lanes = (0..64).filter(|lane| lanes >> lane & 1 == 1);
        lanes.map(|lane| Machine::operand(&mut machine, role, Some(lane))).collect()
    };
    roles.iter().map(|role| of(*role)).collect()
}

struct RefMachine<'a, 'c, 'w> {
    arch: Arch,
    table: &'static ArchTable,
    inst: &'a Inst,
    binding: &'static Binding,
    /// This is the second half of VOPD.
    second: bool,
    /// EXEC when the instruction started.
    exec: u64,
    env: FloatEnv,
    sem: &'a Semantics,
    evaluate: Evaluate,
    wave: &'a mut Wave,
    context: &'a mut Context<'c>,
    /// VGPR writes of lane-shaped bodies, applied at the end: sources are read before any result is written.
    writes: BTreeMap<(u32, u32), u32>,
    /// Lane masks being built.
    masks: BTreeMap<MaskTarget, u64>,
    /// Lanes that DPP disables.
    disabled: u64,
    jump: Option<u64>,
    event: Option<Event>,
    /// Semantics that run once have assigned the mask operand.
    vcc_written: bool,
    /// The semantics have assigned D0 in this lane.
    result_written: bool,
    states_written: BTreeSet<State>,
    access_set: Option<&'a mut AccessSet>,
    /// The watch of an observed run, which accesses memory.
    watch: Option<&'a mut Watch<'w>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MaskTarget {
    D0,
    Vcc,
    Exec,
}

impl RefMachine<'_, '_, '_> {
    fn run(&mut self) -> Result<(), Event> {
        match self.sem.shape {
            Shape::Lane => {
                let uses = &self.sem.uses;
                if uses.writes.contains(&Role::D0)
                    && let Some(o) = self.operand_of(Role::D0).filter(|o| o.fmt == Fmt::Mask)
                {
                    // A mask that is also read keeps the bits of inactive lanes.
                    if o.input {
                        self.note_mask(false, Role::D0);
                    }
                    let old = if o.input { self.read_mask(Role::D0) & !self.exec } else { 0 };
                    self.masks.insert(MaskTarget::D0, old);
                }
                if uses.writes.contains(&Role::Vcc) {
                    self.masks.insert(MaskTarget::Vcc, 0);
                }
                if uses.state_writes.contains(&State::Exec) {
                    self.masks.insert(MaskTarget::Exec, 0);
                }
                self.find_disabled();
                for lane in 0..self.wave.size() {
                    if self.exec >> lane & 1 == 0 || self.disabled >> lane & 1 == 1 {
                        continue;
                    }
                    // A single lane may take long.
                    if self.context.is_cancelled() {
                        return Err(Event::fault(FaultKind::Interrupted, "stopped within an instruction"));
                    }
                    self.result_written = false;
                    self.evaluate(Some(lane))?;
                }
                for (target, value) in std::mem::take(&mut self.masks) {
                    match target {
                        MaskTarget::Exec => {
                            self.note_state(true, State::Exec);
                            self.wave.set_exec(value);
                        }
                        MaskTarget::D0 => self.write_mask(Role::D0, value),
                        MaskTarget::Vcc => self.write_mask(Role::Vcc, value),
                    }
                }
                Ok(())
            }
            Shape::Wave if self.binding.has_dpp() => {
                Err(faults::dpp_unsupported(Some(self.inst.instruction(self.table).name)))
            }
            Shape::Wave | Shape::Scalar => self.evaluate(None),
        }
    }

    fn evaluate(&mut self, lane: Option<u32>) -> Result<(), Event> {
        let sem = self.sem;
        match (self.evaluate)(sem, self, lane) {
            Ok(()) | Err(Stop::Return) => Ok(()),
            Err(Stop::Machine(_)) => Err(self.event.take().unwrap_or(Event::EndPgm)),
            Err(Stop::TooLong) => {
                Err(Event::fault(FaultKind::Other, "the instruction's pseudocode does not terminate"))
            }
        }
    }

    fn stop<T>(&mut self, event: Event) -> Result<T, Stop> {
        self.event = Some(event);
        Err(Stop::Machine(0))
    }
}
