//! The points at which a run of many instructions must return to the debugger.
//!
//! Between two such points, instructions execute without involving the debugger. The points are computed in
//! advance, from the effects of each instruction of the program.

use super::breakpoint::Watched;
use super::expr::{Expression, Register, Scope, Value};
use super::pages::Pages;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::exec::watch::{Access, Place};

/// The stop points of a program.
pub struct StopPoints {
    /// By instruction: whether the run stops before it.
    stops: Vec<bool>,
    /// By instruction: the number of instructions from it on that neither stop, jump, nor access memory.
    unobserved_len: Vec<u32>,
    /// Watched memory: address space, first byte, length.
    watched: Vec<(Place, u64, u64)>,
    /// Conditions, sorted by instruction. At an instruction with conditions, the run stops only if one of
    /// them holds.
    conditions: Vec<(usize, Condition)>,
}

/// A condition for stopping before an instruction, limited to state that is available while the wave runs.
pub struct Condition {
    /// The only wave that stops; `None` for all waves.
    pub wave: Option<usize>,
    /// The lane whose registers the expression reads.
    pub lane: u32,
    /// The expression, which must not be zero. It is [wave-local](Expression::is_wave_local).
    pub expression: Expression,
}

impl StopPoints {
    /// Creates the stop points of an empty program.
    pub(super) fn empty() -> StopPoints {
        StopPoints {
            stops: Vec::new(),
            unobserved_len: Vec::new(),
            watched: Vec::new(),
            conditions: Vec::new(),
        }
    }

    /// Creates stop points for a run that never stops.
    pub fn none(effects: &[Effects]) -> StopPoints {
        let mut stop_points = StopPoints { stops: vec![false; effects.len()], ..StopPoints::empty() };
        stop_points.finish(effects);
        stop_points
    }

    /// Creates stop points before the instructions that `stops` selects, at those that may change or read a
    /// watched register, and after accesses to watched memory.
    pub fn new<'w>(
        effects: &[Effects],
        stops: impl Fn(usize) -> bool,
        watched: impl Iterator<Item = &'w Watched>,
    ) -> StopPoints {
        let mut stop_points =
            StopPoints { stops: (0..effects.len()).map(stops).collect(), ..StopPoints::empty() };
        for what in watched {
            stop_points.watch(what, effects);
        }
        stop_points.finish(effects);
        stop_points
    }

    /// Creates stop points after accesses to bytes of memory.
    pub fn memory(effects: &[Effects], place: Place, start: u64, len: u64) -> StopPoints {
        StopPoints { watched: vec![(place, start, len)], ..StopPoints::none(effects) }
    }

    /// Restricts the stops at these instructions to those where a condition holds.
    pub fn only_if(mut self, mut conditions: Vec<(usize, Condition)>) -> StopPoints {
        conditions.sort_by_key(|c| c.0);
        self.conditions = conditions;
        self
    }

    /// Returns whether the run stops before an instruction.
    fn stops_before(&self, step: &Step<'_>, prepared: &Prepared) -> bool {
        self.stops[step.index] && (self.conditions.is_empty() || self.holds(step, prepared))
    }

    fn holds(&self, step: &Step<'_>, prepared: &Prepared) -> bool {
        let first = self.conditions.partition_point(|c| c.0 < step.index);
        let mut here = self.conditions[first..].iter().take_while(|c| c.0 == step.index).peekable();
        here.peek().is_none()
            || here.any(|(_, c)| {
                let scope = Scope::for_running_wave(prepared, step.wave, c.lane);
                // A condition that cannot be evaluated stops the run.
                c.wave.is_none_or(|wave| wave as u32 == step.wave.id)
                    && c.expression.evaluate(&scope).map_or(true, Value::truth)
            })
    }

    fn watch(&mut self, what: &Watched, effects: &[Effects]) {
        let (file, first, count) = match *what {
            Watched::Memory { address, len } => return self.watched.push((Place::Global, address, len)),
            Watched::Lds { offset, len } => return self.watched.push((Place::Lds, offset, len)),
            Watched::Scratch { offset, len, .. } => return self.watched.push((Place::Scratch, offset, len)),
            Watched::Register { register, .. } => match register {
                Register::Sgpr(first, count) => (File::Sgpr, first, count),
                Register::Vgpr(first, count) => (File::Vgpr, first, count),
                Register::Scc => (File::Scc, 0, 1),
                // The effects do not say which instructions change these.
                Register::Pc | Register::Mode | Register::Status => return self.stops.fill(true),
            },
        };
        for (stop, effects) in self.stops.iter_mut().zip(effects) {
            *stop |= effects.reads.iter().chain(&effects.writes).any(|used| {
                let overlaps = used.first < first + count && first < used.first + used.count;
                used.file == file && (used.relative.is_some() || overlaps)
            });
        }
    }

    fn finish(&mut self, effects: &[Effects]) {
        self.unobserved_len = vec![0; effects.len()];
        let mut count = 0;
        for (at, effects) in effects.iter().enumerate().rev() {
            let only_computes = matches!(effects.class, Class::Valu | Class::Matrix | Class::Salu)
                && effects.memory.is_empty()
                && effects.calls.is_empty();
            count = if only_computes && !self.stops[at] { count + 1 } else { 0 };
            self.unobserved_len[at] = count;
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

/// An observer that stops the run at stop points.
pub(super) struct StopObserver<'o> {
    /// The stop points.
    pub stop_points: &'o StopPoints,
    /// The kernel, whose state conditions read.
    pub prepared: &'o Prepared,
    /// Whether the first instruction runs even if it is a stop point.
    pub leave: bool,
    /// Whether the run stops before the next instruction.
    pub reached: bool,
    /// Whether execution continues after accesses outside of all memory.
    pub keeps_going: bool,
    /// Receives the accesses, to mark the pages that stores change.
    pub pages: &'o mut Pages,
    /// Receives the accesses of the last instruction that had any, if they are to be recorded.
    pub accesses: Option<&'o mut Vec<Access>>,
    /// They are those of delayed operations, to which those of the instruction are added.
    pub performed: bool,
}

impl StopObserver<'_> {
    /// Records accesses, and stops after those that are watched.
    fn accessed_memory(&mut self, list: &[Access]) {
        self.pages.mark(list);
        if let Some(accesses) = &mut self.accesses {
            accesses.extend_from_slice(list);
        }
        self.reached |= list.iter().any(|access| self.stop_points.watches(access));
    }
}

impl Observer for StopObserver<'_> {
    fn skip(&mut self, step: &Step<'_>) -> Skip {
        if self.reached {
            return Skip::default();
        }
        let unobserved_len = self.stop_points.unobserved_len[step.index];
        self.leave &= unobserved_len == 0;
        Skip { count: unobserved_len as usize, ..Skip::default() }
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let leave = std::mem::take(&mut self.leave);
        if self.reached || !leave && self.stop_points.stops_before(step, self.prepared) {
            return ControlFlow::Break(());
        }
        if leave && self.stop_points.stops[step.index] {
            // The debugger must examine the effect before another instruction runs.
            self.reached = true;
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, _step: &Step<'_>, done: &Done<'_>) {
        let performed = std::mem::take(&mut self.performed);
        if let Some(accesses) = self.accesses.as_mut().filter(|_| !performed) {
            accesses.clear();
        }
        self.accessed_memory(done.accesses);
    }

    fn performed(&mut self, _step: &Step<'_>, done: &Done<'_>) {
        let performed = std::mem::replace(&mut self.performed, true);
        if let Some(accesses) = self.accesses.as_mut().filter(|_| !performed) {
            accesses.clear();
        }
        self.accessed_memory(done.accesses);
    }

    fn keeps_going(&self) -> bool {
        self.keeps_going
    }
}
