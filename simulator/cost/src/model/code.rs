//! What the model needs of each instruction, in dense form.

use super::cache::ticks;
use crate::class::{self, InstCost};
use crate::data::{ArchCost, UnitKind};
use isa_spec::pcode::builtins::Control;
use wavesim_asm::dialect::advice::{self, Idle};
use wavesim_inspect::check::{Clause, Scoreboard, clause};
use wavesim_isa::arch::facts::Counter;
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::program::Program;

/// What an instruction does to the workgroup's barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierPart {
    /// Nothing.
    None,
    /// Arrives, and waits for the others.
    Both,
    /// Arrives.
    Signal,
    /// Waits for the others.
    Wait,
}

/// An instruction.
#[derive(Debug, Clone)]
pub struct Inst {
    /// What executes it.
    pub unit: UnitKind,
    /// The class of its effects.
    pub group: Class,
    /// Ticks for which the unit is busy.
    pub busy: u64,
    /// Ticks until a dependent instruction.
    pub latency: u64,
    /// Dense indices of the registers that it reads.
    pub uses: Vec<u16>,
    /// Dense indices of those that it writes.
    pub writes: Vec<u16>,
    /// Counters, as positions in [`Code::counters`], that count its operation.
    pub counted: Vec<u8>,
    /// Counters that it waits for, with the number of operations that may be outstanding.
    pub waits: Vec<(u8, u32)>,
    /// Its part in a barrier.
    pub barrier: BarrierPart,
    /// It is an atomic.
    pub atomic: bool,
    /// It uses the memory unit's result in order.
    pub ordered: bool,
    /// The line of code that it begins in.
    pub fetch: u64,
    /// Clocks that `s_nop` and `s_sleep` add.
    pub idle: u64,
    /// The clause that it begins.
    pub clause: Option<Clause>,
}

/// The instructions of a program.
pub struct Code {
    /// By index.
    pub insts: Vec<Inst>,
    /// The counters of the architecture.
    pub counters: Vec<Counter>,
    /// The costs, for reports.
    pub costs: Vec<InstCost>,
    /// The effects, for reports.
    pub effects: Vec<Effects>,
}

impl Code {
    /// Analyses a program.
    pub fn of(program: &Program, wave_size: u32, cost: &ArchCost) -> Code {
        let (effects, costs) = class::table(program, wave_size, cost);
        let waits = crate::waits::table(program, &effects);
        let counters: Vec<Counter> = program.arch.facts().counters.all.to_vec();
        let scoreboard = Scoreboard::of(program, &effects, false);
        let line = cost.issue.instruction_line_bytes.count().max(4);
        let position = |counter: Counter| counters.iter().position(|c| *c == counter).map(|at| at as u8);
        let of = |(index, e): (usize, &Effects)| {
            let writes = class::registers(e, true);
            let uses = class::registers(e, false);
            let memory = e.class.is_memory();
            let counted = scoreboard.issued(index);
            let calls = |bi| e.calls.contains(&bi);
            let barrier = match () {
                () if calls(Control::Barrier) => BarrierPart::Both,
                () if calls(Control::BarrierSignal) || calls(Control::BarrierSignalIsFirst) => {
                    BarrierPart::Signal
                }
                () if calls(Control::BarrierWait) => BarrierPart::Wait,
                () => BarrierPart::None,
            };
            Inst {
                unit: costs[index].unit,
                group: e.class,
                busy: ticks(costs[index].busy),
                latency: ticks(costs[index].latency),
                // Software waits for what memory returns; the scoreboard is for arithmetic.
                writes: if memory { Vec::new() } else { writes },
                uses,
                counted: counters
                    .iter()
                    .filter(|c| counted.contains(**c))
                    .filter_map(|c| position(*c))
                    .collect(),
                waits: waits[index].iter().filter_map(|(c, n)| Some((position(*c)?, *n))).collect(),
                barrier,
                atomic: e.atomic,
                ordered: e.class != Class::Smem,
                fetch: program.pcs[index] / line,
                idle: idle(program, index, e, cost),
                clause: clause(program, index),
            }
        };
        let insts = effects.iter().enumerate().map(of).collect();
        Code { insts, counters, costs, effects }
    }
}

/// Returns the ticks that an instruction does nothing, which are in its immediate.
fn idle(program: &Program, index: usize, effects: &Effects, cost: &ArchCost) -> u64 {
    let inst = &program.insts[index];
    let table = program.arch.table();
    if effects.class != Class::Control || !effects.calls.contains(&Control::Nop) {
        return 0;
    }
    let immediate = inst.field(table, "SIMM16").unwrap_or(0);
    let (units, clocks) = match advice::idle(inst.instruction(table).name, immediate) {
        Some(Idle::Nop(units)) => (units, &cost.issue.nop),
        Some(Idle::Sleep(units)) => (units, &cost.issue.sleep),
        None => return 0,
    };
    ticks(f64::from(units) * clocks.value())
}
