//! Stretches: straight lines of instructions that no check has anything to say about, run as fast as without checks.
//!
//! An instruction is *calm* if, when it ran, it did nothing but compute: no access, no jump, no call but a hint. It is *settled* in a
//! wave if it reads nothing unwritten ([`super::init`]). Calm and settled instructions in a row are a stretch; it can be run as a whole
//! wherever the lanes that are on were all looked at, and nothing that is outstanding writes one of its registers ([`super::waits`]).

use super::waits::{self, Counter, Registers};
use wavesim_engine::observe::{Done, Step};
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::exec::machine_ops::does_nothing;
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::wave::EXEC_LO;

/// Longer ones are taken in parts: a program of straight lines would have too many that overlap.
const LONGEST: usize = 128;

/// What is known of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calm {
    /// It has not run.
    Unknown,
    No,
    Yes,
    /// But nothing behind it belongs to the same stretch: it changes EXEC, or a gap follows.
    Last,
    /// A wait: calm where nothing is outstanding.
    Wait,
}

/// Calm and settled instructions in a row, from one on.
struct Stretch {
    /// Instructions.
    len: usize,
    /// Lanes with which they are settled.
    lanes: u64,
    registers: Registers,
    /// There is a wait among them.
    waits: bool,
}

/// A wave's stretches.
#[derive(Default)]
struct Wave {
    /// By instruction: number of its stretch, from 1; 0: none yet. Empty before the first.
    at: Vec<u32>,
    list: Vec<Stretch>,
}

/// The stretches of every wave of the workgroup.
pub struct Stretches {
    calm: Vec<Calm>,
    waves: Vec<Wave>,
}

impl Stretches {
    /// `concerned`: instructions that a check wants to see each time.
    pub fn new(program: &Program, effects: &[Effects], concerned: impl Fn(usize) -> bool) -> Stretches {
        let candidate = |at: usize| {
            let computes =
                matches!(effects[at].class, Class::Valu | Class::Salu | Class::Control | Class::Wait);
            if computes && !concerned(at) && program.replaced(program.pcs[at]).is_none() {
                Calm::Unknown
            } else {
                Calm::No
            }
        };
        Stretches { calm: (0..program.insts.len()).map(candidate).collect(), waves: Vec::new() }
    }

    pub fn start(&mut self, waves: usize) {
        self.waves.clear();
        self.waves.resize_with(waves, Wave::default);
    }

    /// A wave's registers are not all that they were: what was settled is not any more.
    pub fn forget(&mut self, wave: u32) {
        self.waves[wave as usize] = Wave::default();
    }

    /// Instructions from this one on that need not be looked at. `settled`: lanes with which an instruction of this wave is.
    #[inline]
    pub fn here(
        &mut self,
        step: &Step<'_>,
        waits: &waits::Shadow,
        settled: impl Fn(usize) -> Option<u64>,
    ) -> usize {
        let (id, exec) = (step.wave.id, step.wave.exec());
        if matches!(self.calm[step.index], Calm::No | Calm::Unknown) {
            return 0;
        }
        let wave = &mut self.waves[id as usize];
        let number = wave.at.get(step.index).copied().unwrap_or(0) as usize;
        let found = match number.checked_sub(1) {
            Some(known) => &wave.list[known],
            None => {
                let Some(new) = stretch(&self.calm, step.index, waits, settled) else { return 0 };
                wave.at.resize(self.calm.len(), 0);
                wave.list.push(new);
                wave.at[step.index] = wave.list.len() as u32;
                &wave.list[wave.list.len() - 1]
            }
        };
        let free = waits.is_quiet(id) || !found.waits && waits.spares(id, &found.registers);
        if free && exec & !found.lanes == 0 { found.len } else { 0 }
    }

    /// An instruction has run; `effects` are its own.
    #[inline]
    pub fn after(&mut self, step: &Step<'_>, done: &Done<'_>, effects: &Effects) {
        if self.calm[step.index] == Calm::Unknown {
            self.calm[step.index] = calm(step, done, effects);
        }
    }
}

#[cold]
fn calm(step: &Step<'_>, done: &Done<'_>, effects: &Effects) -> Calm {
    let hints = done.calls.iter().all(|(bi, _)| does_nothing(*bi));
    if !hints || !done.accesses.is_empty() || done.event.is_some() || done.jumped {
        return Calm::No;
    }
    let program = step.program;
    let end = step.pc + program.insts[step.index].size as u64;
    let exec = EXEC_LO as u16..EXEC_LO as u16 + 2;
    let narrows = effects.writes.iter().any(|w| {
        w.file == File::Sgpr && (w.relative.is_some() || w.first < exec.end && exec.start < w.first + w.count)
    });
    if done.calls.iter().any(|(bi, _)| Counter::of(*bi).is_some()) {
        Calm::Wait
    } else if narrows || program.pcs.get(step.index + 1) != Some(&end) {
        Calm::Last
    } else {
        Calm::Yes
    }
}

/// The stretch that starts at an instruction, if it is calm and settled.
#[cold]
fn stretch(
    calm: &[Calm],
    from: usize,
    waits: &waits::Shadow,
    settled: impl Fn(usize) -> Option<u64>,
) -> Option<Stretch> {
    let mut out = Stretch { len: 0, lanes: u64::MAX, registers: Registers::default(), waits: false };
    for at in (from..calm.len()).take(LONGEST) {
        let (Calm::Yes | Calm::Last | Calm::Wait, Some(lanes)) = (calm[at], settled(at)) else { break };
        // Waits and the rest apart: a stretch without waits runs while operations are outstanding.
        if out.len > 0 && (calm[at] == Calm::Wait) != out.waits {
            break;
        }
        out.len += 1;
        out.lanes &= lanes;
        out.registers.join(waits.touched(at));
        out.waits |= calm[at] == Calm::Wait;
        if calm[at] == Calm::Last {
            break;
        }
    }
    (out.len > 0).then_some(out)
}
