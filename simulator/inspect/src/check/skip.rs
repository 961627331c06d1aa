//! The skip cache: straight-line regions that need no check, run as fast as without checks.
//!
//! An instruction is *simple* if, when it ran, it only computed: no access, no call but a hint. A branch is the last of its region. It is *proven* in a
//! wave if it reads nothing unwritten ([`super::init`]). Consecutive simple and proven instructions are a region. A wave skips the checks of
//! a region if each active lane is proven, and if no outstanding operation writes one of its registers ([`super::waits`]).

use super::waits::{self, Counter, Registers};
use isa_spec::pcode::builtins::Control;
use wavesim_engine::observe::{Done, Step};
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::exec::machine_ops::does_nothing;
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::wave::EXEC_LO;

/// Longer regions are split: a long straight-line program would have too many that overlap.
const LONGEST: usize = 128;

/// What an instruction did when it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has not run.
    Unseen,
    /// More than computing: it is always observed.
    Observed,
    Simple,
    /// Simple, and the last of its region: it changes EXEC or jumps, or a gap follows.
    Last,
    /// A wait: simple where nothing is outstanding.
    Wait,
}

/// Consecutive simple and proven instructions.
struct Region {
    /// Instructions.
    len: usize,
    /// Lanes with which they are proven.
    lanes: u64,
    registers: Registers,
    /// There is a wait among them.
    waits: bool,
}

/// A wave's regions.
#[derive(Default)]
struct Wave {
    /// By instruction: number of the region that starts there, from 1; 0: none yet. Empty before the first.
    at: Vec<u32>,
    list: Vec<Region>,
}

/// What is known of the waves of a workgroup.
#[derive(Default)]
pub struct Group(Vec<Wave>);

/// The regions of every wave of the workgroup.
pub struct SkipCache {
    kinds: Vec<Kind>,
    waves: Vec<Wave>,
}

impl SkipCache {
    /// `observed`: instructions that a check observes each time.
    pub fn new(program: &Program, effects: &[Effects], observed: impl Fn(usize) -> bool) -> SkipCache {
        let candidate = |at: usize| {
            let computes = matches!(
                effects[at].class,
                Class::Valu | Class::Salu | Class::Control | Class::Wait | Class::Branch
            );
            if computes && !observed(at) && program.replaced(program.pcs[at]).is_none() {
                Kind::Unseen
            } else {
                Kind::Observed
            }
        };
        SkipCache { kinds: (0..program.insts.len()).map(candidate).collect(), waves: Vec::new() }
    }

    /// A workgroup of so many waves begins, with nothing proven.
    pub fn start(&mut self, waves: usize) {
        self.waves.clear();
        self.waves.resize_with(waves, Wave::default);
    }

    /// Exchanges the workgroup that it follows.
    pub fn swap(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    /// A register of the wave became unwritten: nothing is proven any more.
    pub fn invalidate(&mut self, wave: u32) {
        self.waves[wave as usize] = Wave::default();
    }

    /// How many instructions from this one on need no check. `proven`: lanes with which an instruction of this wave is proven.
    #[inline]
    pub fn skippable(
        &mut self,
        step: &Step<'_>,
        waits: &waits::Scoreboard,
        proven: impl Fn(usize) -> Option<u64>,
    ) -> usize {
        let (id, exec) = (step.wave.id, step.wave.exec());
        if matches!(self.kinds[step.index], Kind::Observed | Kind::Unseen) {
            return 0;
        }
        let wave = &mut self.waves[id as usize];
        let number = wave.at.get(step.index).copied().unwrap_or(0) as usize;
        let found = match number.checked_sub(1) {
            Some(region) => &wave.list[region],
            None => {
                let Some(new) = region(&self.kinds, step.index, waits, proven) else { return 0 };
                wave.at.resize(self.kinds.len(), 0);
                wave.list.push(new);
                wave.at[step.index] = wave.list.len() as u32;
                &wave.list[wave.list.len() - 1]
            }
        };
        let free = waits.is_idle(id) || !found.waits && waits.is_clear_of(id, &found.registers);
        if free && exec & !found.lanes == 0 { found.len } else { 0 }
    }

    /// An instruction has run; `effects` are its own.
    #[inline]
    pub fn after(&mut self, step: &Step<'_>, done: &Done<'_>, effects: &Effects) {
        if self.kinds[step.index] == Kind::Unseen {
            self.kinds[step.index] = kind(step, done, effects);
        }
    }
}

#[cold]
fn kind(step: &Step<'_>, done: &Done<'_>, effects: &Effects) -> Kind {
    let hints = done.calls.iter().all(|(bi, _)| does_nothing(*bi) && *bi != Control::InvalidateCaches);
    let jumps = effects.class == Class::Branch;
    if !hints || !done.accesses.is_empty() || done.event.is_some() || done.jumped && !jumps {
        return Kind::Observed;
    }
    let program = step.program;
    let end = step.pc + program.insts[step.index].size as u64;
    let exec = EXEC_LO as u16..EXEC_LO as u16 + 2;
    let narrows = effects.writes.iter().any(|w| {
        w.file == File::Sgpr && (w.relative.is_some() || w.first < exec.end && exec.start < w.first + w.count)
    });
    if done.calls.iter().any(|(bi, _)| Counter::of(*bi).is_some()) {
        Kind::Wait
    } else if narrows || jumps || program.pcs.get(step.index + 1) != Some(&end) {
        Kind::Last
    } else {
        Kind::Simple
    }
}

/// The region that starts at an instruction, if it is simple and proven.
#[cold]
fn region(
    kinds: &[Kind],
    from: usize,
    waits: &waits::Scoreboard,
    proven: impl Fn(usize) -> Option<u64>,
) -> Option<Region> {
    let mut out = Region { len: 0, lanes: u64::MAX, registers: Registers::default(), waits: false };
    for at in (from..kinds.len()).take(LONGEST) {
        let (Kind::Simple | Kind::Last | Kind::Wait, Some(lanes)) = (kinds[at], proven(at)) else { break };
        // Waits have regions of their own: one without waits is skipped while operations are outstanding.
        if out.len > 0 && (kinds[at] == Kind::Wait) != out.waits {
            break;
        }
        out.len += 1;
        out.lanes &= lanes;
        out.registers.join(waits.touched(at));
        out.waits |= kinds[at] == Kind::Wait;
        if kinds[at] == Kind::Last {
            break;
        }
    }
    (out.len > 0).then_some(out)
}
