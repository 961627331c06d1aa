//! `barrier`: waves of a workgroup that do not meet at the same barriers.
//!
//! Hardware counts arrivals only: two waves at different barrier instructions meet, and a wave that has ended delays no other. Both are
//! almost always mistakes, as is a barrier that some lanes of a wave never reach (OpenCL and HIP call it undefined).
//!
//! Split barriers (RDNA 4: S_BARRIER_SIGNAL, work, S_BARRIER_WAIT) are made for waves that do different things: a producer signals in its
//! code, a consumer in its own. Only barriers that are not split are expected to be the same instruction for all: S_BARRIER, and a
//! signal with its wait directly after it.

use super::Check;
use super::report::{Finding, Report, Site};
use isa_spec::pcode::builtins::Control;
use std::collections::VecDeque;
use wavesim_engine::observe::{Done, Step};
use wavesim_machine::exec::effects::Effects;
use wavesim_machine::exec::machine_ops::Event;

#[derive(Default)]
struct Wave {
    /// Arrivals at the workgroup's barrier so far.
    arrivals: u64,
    ended: Option<u64>,
    /// Where it signalled the barrier that it has not waited for yet.
    signalled: Option<u64>,
    /// Lanes at the start.
    lanes: Option<u64>,
}

/// One time that the workgroup meets.
struct Phase {
    /// First arrival, and whether its barrier is split.
    pc: u64,
    wave: u32,
    split: bool,
    /// Waves that have come.
    arrived: usize,
}

/// The workgroup's barrier, phase by phase.
pub struct Shadow {
    /// By instruction: signals a barrier without waiting there.
    split: Vec<bool>,
    waves: Vec<Wave>,
    /// Whether a wave has ended.
    ended: bool,
    /// Phases that not all waves have reached.
    phases: VecDeque<Phase>,
    /// Number of the first of `phases`.
    first: u64,
}

/// Waves of a workgroup, and the phases of its barriers.
#[derive(Default)]
pub struct Group {
    waves: Vec<Wave>,
    ended: bool,
    phases: VecDeque<Phase>,
    first: u64,
}

impl Shadow {
    /// Finds the barriers that are split into signal and wait; `effects` are the instructions'.
    pub fn new(effects: &[Effects]) -> Shadow {
        let calls = |at: usize, bi| effects.get(at).is_some_and(|e| e.calls.contains(&bi));
        let signals = |at| calls(at, Control::BarrierSignal) || calls(at, Control::BarrierSignalIsFirst);
        let split = |at| signals(at) && !calls(at + 1, Control::BarrierWait);
        Shadow {
            split: (0..effects.len()).map(split).collect(),
            waves: Vec::new(),
            ended: false,
            phases: VecDeque::new(),
            first: 0,
        }
    }

    /// A workgroup of so many waves begins.
    pub fn start(&mut self, waves: usize) {
        self.waves.clear();
        self.waves.resize_with(waves, Wave::default);
        self.ended = false;
        self.phases.clear();
        self.first = 0;
    }

    /// Exchanges the workgroup that it follows.
    pub fn swap(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.waves, &mut group.waves);
        std::mem::swap(&mut self.ended, &mut group.ended);
        std::mem::swap(&mut self.phases, &mut group.phases);
        std::mem::swap(&mut self.first, &mut group.first);
    }

    /// Notes the lanes of a wave that has just started.
    #[inline]
    pub fn before(&mut self, step: &Step<'_>) {
        let lanes = &mut self.waves[step.wave.id as usize].lanes;
        if lanes.is_none() {
            *lanes = Some(step.wave.exec());
        }
    }

    /// Reports waves that meet at different barriers, lack lanes there, signal twice before a wait, or end without a barrier of the others.
    pub fn after(&mut self, step: &Step<'_>, done: &Done<'_>, report: &mut Report) {
        if self.waves.len() < 2 {
            return;
        }
        for (bi, number) in done.calls {
            let arrives = match bi {
                Control::Barrier => true,
                Control::BarrierSignal | Control::BarrierSignalIsFirst => {
                    *number as i32 == wavesim_machine::state::barrier::WORKGROUP_BARRIER
                }
                _ => false,
            };
            if arrives {
                self.arrive(step, report);
            }
            match bi {
                Control::BarrierSignal | Control::BarrierSignalIsFirst if arrives => {
                    self.signalled(step, report);
                }
                Control::BarrierWait => self.waves[step.wave.id as usize].signalled = None,
                _ => {}
            }
        }
        if matches!(done.event, Some(Event::EndPgm)) {
            self.end(step, report);
        }
    }

    fn arrive(&mut self, step: &Step<'_>, report: &mut Report) {
        let id = step.wave.id as usize;
        let phase = self.waves[id].arrivals;
        self.waves[id].arrivals += 1;
        self.lanes(step, id, report);
        let ended = if self.ended { &self.waves[..] } else { &[] };
        for (other, wave) in ended.iter().enumerate() {
            if let (Some(pc), true) = (wave.ended, wave.arrivals <= phase) {
                missing(step, step.pc, step.wave.id, pc, other as u32, wave.arrivals, report);
            }
        }
        let at = (phase - self.first) as usize;
        let split = self.split[step.index];
        if at >= self.phases.len() {
            self.phases.push_back(Phase { pc: step.pc, wave: step.wave.id, split, arrived: 0 });
        }
        self.phases[at].arrived += 1;
        let Phase { pc, wave: first, split: first_split, .. } = self.phases[at];
        let kind = "different barriers";
        if pc != step.pc && !split && !first_split && report.is_new(Check::Barrier, kind, step.pc, Some(pc)) {
            let message = format!(
                "wave {} meets wave {first} at another barrier than it: the workgroup has diverged",
                step.wave.id
            );
            let other = Site::at(step, pc, step.wave.workgroup, first);
            report.add(
                Finding::new(Check::Barrier, kind, message, Site::new(step, None))
                    .other("other barrier", other),
            );
        }
        while self.phases.front().is_some_and(|p| p.arrived >= self.waves.len()) {
            self.phases.pop_front();
            self.first += 1;
        }
    }

    /// A wave signals once for each wait: a second signal counts for a wave that has not come.
    fn signalled(&mut self, step: &Step<'_>, report: &mut Report) {
        let id = step.wave.id;
        let Some(pc) = self.waves[id as usize].signalled.replace(step.pc) else { return };
        let kind = "signalled twice";
        if report.is_new(Check::Barrier, kind, step.pc, Some(pc)) {
            let message = format!(
                "wave {id} signals the barrier again before it has waited for it: others go on before all have come"
            );
            let first = Site::at(step, pc, step.wave.workgroup, id);
            report.add(
                Finding::new(Check::Barrier, kind, message, Site::new(step, None))
                    .other("first signal", first)
                    .hint("an `s_barrier_wait` belongs between the two signals"),
            );
        }
    }

    /// Lanes that the wave started with and that are off now.
    fn lanes(&self, step: &Step<'_>, id: usize, report: &mut Report) {
        // No barrier changes EXEC.
        let exec = step.wave.exec();
        let start = self.waves[id].lanes.unwrap_or(exec);
        let absent = start & !exec;
        let kind = "lanes missing";
        if absent == 0 || !report.is_new(Check::Barrier, kind, step.pc, None) {
            return;
        }
        let message = format!(
            "wave {id} is at the barrier with {} of its {} lanes: {} never {} here",
            exec.count_ones(),
            start.count_ones(),
            lanes_text(absent),
            if absent.is_power_of_two() { "comes" } else { "come" }
        );
        let site = Site::new(step, Some(absent.trailing_zeros()));
        report.add(
            Finding::new(Check::Barrier, kind, message, site)
                .hint("a barrier belongs where all work-items pass: restore EXEC before it"),
        );
    }

    fn end(&mut self, step: &Step<'_>, report: &mut Report) {
        let id = step.wave.id as usize;
        self.waves[id].ended = Some(step.pc);
        self.ended = true;
        let arrivals = self.waves[id].arrivals;
        // A wave has come to a barrier that this wave will never reach.
        if let Some(&Phase { pc, wave: first, .. }) =
            self.phases.get(arrivals.wrapping_sub(self.first) as usize)
        {
            missing(step, pc, first, step.pc, step.wave.id, arrivals, report);
        }
    }
}

/// A wave arrived at a barrier that another ended without.
fn missing(step: &Step<'_>, arrival: u64, wave: u32, end: u64, ended: u32, count: u64, report: &mut Report) {
    let kind = "missing barrier";
    if !report.is_new(Check::Barrier, kind, arrival, Some(end)) {
        return;
    }
    let message = format!(
        "wave {wave} comes to barrier number {} of its run, but wave {ended} has ended after {count}",
        count + 1
    );
    let at = Site::at(step, arrival, step.wave.workgroup, wave);
    let other = Site::at(step, end, step.wave.workgroup, ended);
    report.add(
        Finding::new(Check::Barrier, kind, message, at)
            .other("ended at", other)
            .hint("hardware lets the others pass; OpenCL, HIP and other hardware do not"),
    );
}

fn lanes_text(mask: u64) -> String {
    let list: Vec<String> = (0..64).filter(|l| mask >> l & 1 == 1).map(|l| l.to_string()).collect();
    match list.len() {
        1 => format!("lane {}", list[0]),
        n if n > 8 => format!("lanes {}, … ({n} lanes)", list[..4].join(", ")),
        _ => format!("lanes {}", list.join(", ")),
    }
}
