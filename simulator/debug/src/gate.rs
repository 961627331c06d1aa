//! Where a run of many instructions has to stop and look.
//!
//! Between two such places instructions run in one go, without the debugger: the places are known before, from what each
//! instruction of the program can touch.

use super::breakpoint::Watched;
use super::expr::{Expression, Register, Scope, Value};
use super::pages::Pages;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::exec::watch::{Access, Place};

/// The places of a program at which something may have to stop.
pub struct Gate {
    /// By instruction: whether the run stops in front of it.
    stops: Vec<bool>,
    /// By instruction: how many from it on neither stop, nor jump, nor access memory.
    straight: Vec<u32>,
    /// Memory that is watched: place, first byte, length.
    watched: Vec<(Place, u64, u64)>,
    /// Conditions, in the order of their instructions. An instruction with conditions stops only where one of them holds.
    conditions: Vec<(usize, Condition)>,
}

/// When a run stops in front of an instruction: what can be known while the wave runs.
pub struct Condition {
    /// The only wave; `None`: all.
    pub wave: Option<usize>,
    /// The lane whose registers the expression reads.
    pub lane: u32,
    /// What must not be zero. It is [`Expression::is_of_wave`].
    pub expression: Expression,
}

impl Gate {
    /// Of no program.
    pub(super) fn nowhere() -> Gate {
        Gate { stops: Vec::new(), straight: Vec::new(), watched: Vec::new(), conditions: Vec::new() }
    }

    /// A run that stops nowhere.
    pub fn open(effects: &[Effects]) -> Gate {
        let mut gate = Gate { stops: vec![false; effects.len()], ..Gate::nowhere() };
        gate.finish(effects);
        gate
    }

    /// A run that stops in front of the instructions that `stops` names, after those that may change or access what is
    /// watched, and after those that access watched memory.
    pub fn new<'w>(
        effects: &[Effects],
        stops: impl Fn(usize) -> bool,
        watched: impl Iterator<Item = &'w Watched>,
    ) -> Gate {
        let mut gate = Gate { stops: (0..effects.len()).map(stops).collect(), ..Gate::nowhere() };
        for what in watched {
            gate.watch(what, effects);
        }
        gate.finish(effects);
        gate
    }

    /// A run that stops after accesses to bytes of memory.
    pub fn memory(effects: &[Effects], place: Place, start: u64, len: u64) -> Gate {
        Gate { watched: vec![(place, start, len)], ..Gate::open(effects) }
    }

    /// Stops at these instructions only where a condition holds.
    pub fn only_if(mut self, mut conditions: Vec<(usize, Condition)>) -> Gate {
        conditions.sort_by_key(|c| c.0);
        self.conditions = conditions;
        self
    }

    /// Whether the run stops in front of an instruction.
    fn stops_before(&self, step: &Step<'_>, prepared: &Prepared) -> bool {
        self.stops[step.index] && (self.conditions.is_empty() || self.holds(step, prepared))
    }

    fn holds(&self, step: &Step<'_>, prepared: &Prepared) -> bool {
        let first = self.conditions.partition_point(|c| c.0 < step.index);
        let mut here = self.conditions[first..].iter().take_while(|c| c.0 == step.index).peekable();
        here.peek().is_none()
            || here.any(|(_, c)| {
                let scope = Scope::of_wave(prepared, step.wave, c.lane);
                // What cannot be evaluated stops.
                c.wave.is_none_or(|wave| wave as u32 == step.wave.id)
                    && c.expression.evaluate(&scope).map_or(true, Value::truth)
            })
    }

    fn watch(&mut self, what: &Watched, effects: &[Effects]) {
        let (file, first, count) = match *what {
            Watched::Memory { address, len } => return self.watched.push((Place::Global, address, len)),
            Watched::Lds { offset, len } => return self.watched.push((Place::Lds, offset, len)),
            Watched::Register { register, .. } => match register {
                Register::Sgpr(first, count) => (File::Sgpr, first, count),
                Register::Vgpr(first, count) => (File::Vgpr, first, count),
                Register::Scc => (File::Scc, 0, 1),
                // Nothing says which instructions change these.
                Register::Pc | Register::Mode | Register::Status => return self.stops.fill(true),
            },
        };
        for (stop, effects) in self.stops.iter_mut().zip(effects) {
            *stop |= effects.reads.iter().chain(&effects.writes).any(|used| {
                let near = used.first < first + count && first < used.first + used.count;
                used.file == file && (used.relative.is_some() || near)
            });
        }
    }

    fn finish(&mut self, effects: &[Effects]) {
        self.straight = vec![0; effects.len()];
        let mut count = 0;
        for (at, effects) in effects.iter().enumerate().rev() {
            let plain = matches!(effects.class, Class::Valu | Class::Matrix | Class::Salu)
                && effects.memory.is_empty()
                && effects.calls.is_empty();
            count = if plain && !self.stops[at] { count + 1 } else { 0 };
            self.straight[at] = count;
        }
    }

    fn watches(&self, access: &Access) -> bool {
        self.watched.iter().any(|&(place, start, len)| {
            place == access.place
                && access.address < start + len
                && start < access.address + access.len_bytes()
        })
    }
}

/// Stops the run at the places of a gate.
pub(super) struct Gated<'o> {
    /// Where to stop.
    pub gate: &'o Gate,
    /// The kernel that runs, for what conditions read of it.
    pub prepared: &'o Prepared,
    /// Whether the first instruction runs even if it is such a place.
    pub leave: bool,
    /// The run ends in front of the next instruction.
    pub reached: bool,
    /// Accesses outside of all memory do not end the run.
    pub keeps_going: bool,
    /// What stores reach.
    pub pages: &'o mut Pages,
    /// Accesses of the last instruction that had any, if they are kept.
    pub accesses: Option<&'o mut Vec<Access>>,
}

impl Observer for Gated<'_> {
    fn skip(&mut self, step: &Step<'_>) -> Skip {
        if self.reached {
            return Skip::default();
        }
        let straight = self.gate.straight[step.index];
        self.leave &= straight == 0;
        Skip { count: straight as usize, ..Skip::default() }
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let leave = std::mem::take(&mut self.leave);
        if self.reached || !leave && self.gate.stops_before(step, self.prepared) {
            return ControlFlow::Break(());
        }
        if leave && self.gate.stops[step.index] {
            // What it does is looked at before anything else runs.
            self.reached = true;
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, _step: &Step<'_>, done: &Done<'_>) {
        self.pages.mark(done.accesses);
        if let Some(accesses) = &mut self.accesses {
            accesses.clear();
            accesses.extend_from_slice(done.accesses);
        }
        self.reached |= done.accesses.iter().any(|a| self.gate.watches(a));
    }

    fn keeps_going(&self) -> bool {
        self.keeps_going
    }
}
