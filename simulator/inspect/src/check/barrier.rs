//! `barrier`: barrier divergence, that is, waves of a workgroup that do not synchronise at the same barriers.
//!
//! Hardware only counts arrivals: two waves at different barrier instructions synchronise with each other,
//! and a wave that has ended no longer delays the others. Both are almost always errors, and so is a barrier
//! that some lanes of a wave never reach (undefined behaviour in OpenCL and HIP).
//!
//! Split barriers (RDNA 4: S_BARRIER_SIGNAL, work, S_BARRIER_WAIT) serve waves with different roles: a
//! producer and a consumer each signal in their own code. Only barriers that are not split are expected to be
//! the same instruction for all waves: S_BARRIER, and a signal directly followed by its wait.
//!
//! Of a cluster's workgroups, each signals the cluster's barrier once (CDNA5 manual, *Cluster Barriers*). Named barriers
//! that the kernel has not declared do nothing (CDNA5 manual, *Barrier Instructions*).

use super::kind::{Check, CheckState, Setup};
use super::report::{Finding, Report, Site};
use isa_spec::pcode::builtins::Control;
use std::collections::VecDeque;
use wavesim_engine::observe::{Done, Step};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::state::barrier::{CLUSTER_BARRIER, CLUSTER_INDEX, WORKGROUP_BARRIER};

#[derive(Default)]
struct Wave {
    /// Number of arrivals at the workgroup's barrier so far.
    arrivals: u64,
    ended: Option<u64>,
    /// PC of the signal that the wave has not waited for yet.
    signalled: Option<u64>,
    /// Active lanes at the start.
    lanes: Option<u64>,
}

/// One phase of the workgroup's barrier.
struct Phase {
    /// The first arrival, and whether its barrier is split.
    pc: u64,
    wave: u32,
    split: bool,
    /// Number of waves that have arrived.
    arrived: usize,
}

/// The workgroup's barrier, phase by phase.
pub struct Shadow {
    /// By instruction: whether it signals a barrier without waiting there.
    split: Vec<bool>,
    waves: Vec<Wave>,
    /// Whether any wave has ended.
    ended: bool,
    /// Phases at which not all waves have arrived.
    phases: VecDeque<Phase>,
    /// Number of the first phase in `phases`.
    first_phase: u64,
    cluster: Option<ClusterSignal>,
}

/// The last signal of the cluster's barrier by the workgroup.
#[derive(Clone, Copy)]
struct ClusterSignal {
    /// The completions of the barrier before.
    phase: u32,
    pc: u64,
    wave: u32,
}

/// Waves of a workgroup, and the phases of its barrier.
#[derive(Default)]
pub struct BarrierGroup {
    waves: Vec<Wave>,
    ended: bool,
    phases: VecDeque<Phase>,
    first_phase: u64,
    cluster: Option<ClusterSignal>,
}

impl CheckState for Shadow {
    type WorkgroupState = BarrierGroup;

    /// Creates the check for a program whose instructions have these effects.
    fn new(setup: &Setup<'_>) -> Shadow {
        let effects = setup.effects;
        let calls = |at: usize, bi| effects.get(at).is_some_and(|e| e.calls.contains(&bi));
        let signals = |at| calls(at, Control::BarrierSignal) || calls(at, Control::BarrierSignalIsFirst);
        let split = |at| signals(at) && !calls(at + 1, Control::BarrierWait);
        Shadow {
            split: (0..effects.len()).map(split).collect(),
            waves: Vec::new(),
            ended: false,
            phases: VecDeque::new(),
            first_phase: 0,
            cluster: None,
        }
    }

    fn start(&mut self, _workgroup: [u32; 3], waves: usize) {
        self.waves.clear();
        self.waves.resize_with(waves, Wave::default);
        self.ended = false;
        self.phases.clear();
        self.first_phase = 0;
        self.cluster = None;
    }

    fn swap(&mut self, group: &mut BarrierGroup) {
        std::mem::swap(&mut self.waves, &mut group.waves);
        std::mem::swap(&mut self.ended, &mut group.ended);
        std::mem::swap(&mut self.phases, &mut group.phases);
        std::mem::swap(&mut self.first_phase, &mut group.first_phase);
        std::mem::swap(&mut self.cluster, &mut group.cluster);
    }

    #[inline]
    /// Records the active lanes of a wave that has just started.
    fn arrive(&mut self, step: &Step<'_>) {
        let lanes = &mut self.waves[step.wave.id as usize].lanes;
        if lanes.is_none() {
            *lanes = Some(step.wave.exec());
        }
    }

    /// Reports waves that arrive at different barriers or with lanes missing, that signal twice without a
    /// wait, or that end without arriving at a barrier where others wait.
    fn after_control(&mut self, step: &Step<'_>, done: &Done<'_>, report: &mut Report) {
        for (bi, number) in done.calls {
            let number = *number as i32;
            if bi.signals_barrier() && number == CLUSTER_BARRIER && step.group.cluster().is_some() {
                self.check_cluster_signal(step, report);
            }
            let named = bi.signals_barrier() || matches!(bi, Control::BarrierInit | Control::BarrierJoin);
            if named && number > 0 && step.group.own_index(number).is_none() {
                check_undeclared(step, number, report);
            }
        }
        for (bi, number) in done.calls {
            let arrives = match bi {
                Control::Barrier => true,
                Control::BarrierSignal | Control::BarrierSignalIsFirst => *number as i32 == WORKGROUP_BARRIER,
                _ => false,
            };
            if arrives {
                self.arrive(step, report);
            }
            match bi {
                Control::BarrierSignal | Control::BarrierSignalIsFirst if arrives => {
                    self.check_signal(step, report);
                }
                Control::BarrierWait if *number as i32 == WORKGROUP_BARRIER => {
                    self.waves[step.wave.id as usize].signalled = None;
                }
                _ => {}
            }
        }
        if matches!(done.event, Some(Event::EndPgm)) {
            self.end(step, report);
        }
    }
}

impl Shadow {
    fn arrive(&mut self, step: &Step<'_>, report: &mut Report) {
        let id = step.wave.id as usize;
        let phase = self.waves[id].arrivals;
        self.waves[id].arrivals += 1;
        self.check_lanes(step, id, report);
        let ended = if self.ended { &self.waves[..] } else { &[] };
        for (other, wave) in ended.iter().enumerate() {
            if let (Some(pc), true) = (wave.ended, wave.arrivals <= phase) {
                report_missing(step, step.pc, step.wave.id, pc, other as u32, wave.arrivals, report);
            }
        }
        let at = (phase - self.first_phase) as usize;
        let split = self.split[step.index];
        if at >= self.phases.len() {
            self.phases.push_back(Phase { pc: step.pc, wave: step.wave.id, split, arrived: 0 });
        }
        self.phases[at].arrived += 1;
        let Phase { pc, wave: first, split: first_split, .. } = self.phases[at];
        let kind = "different barriers";
        if pc != step.pc && !split && !first_split && report.is_new(Check::Barrier, kind, step.pc, Some(pc)) {
            let message = format!(
                "waves {} and {first} synchronise at different barriers: the workgroup has diverged",
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
            self.first_phase += 1;
        }
    }

    /// Checks that the wave has waited since its last signal: a second signal would count as the arrival of
    /// another wave.
    fn check_signal(&mut self, step: &Step<'_>, report: &mut Report) {
        let id = step.wave.id;
        let Some(pc) = self.waves[id as usize].signalled.replace(step.pc) else { return };
        let kind = "signalled twice";
        if report.is_new(Check::Barrier, kind, step.pc, Some(pc)) {
            let message = format!(
                "wave {id} signals the barrier twice without waiting: other waves can pass before all have arrived"
            );
            let first = Site::at(step, pc, step.wave.workgroup, id);
            report.add(
                Finding::new(Check::Barrier, kind, message, Site::new(step, None))
                    .other("first signal", first)
                    .hint("an `s_barrier_wait` belongs between the two signals"),
            );
        }
    }

    /// Checks that the workgroup has not signalled the cluster's barrier since its last completion: a second signal
    /// counts as that of another workgroup.
    fn check_cluster_signal(&mut self, step: &Step<'_>, report: &mut Report) {
        let state = step.group.barrier(CLUSTER_INDEX);
        // `completed` already counts the signal that completes the barrier.
        let phase = if state.signals == 0 { state.completed.wrapping_sub(1) } else { state.completed };
        let signal = ClusterSignal { phase, pc: step.pc, wave: step.wave.id };
        let Some(first) = self.cluster.replace(signal).filter(|first| first.phase == phase) else { return };
        let kind = "cluster signalled twice";
        if report.is_new(Check::Barrier, kind, step.pc, Some(first.pc)) {
            let message =
                "the workgroup signals the cluster's barrier twice: other workgroups can pass before all \
                           have arrived"
                    .to_string();
            let other = Site::at(step, first.pc, step.wave.workgroup, first.wave);
            report.add(
                Finding::new(Check::Barrier, kind, message, Site::new(step, None))
                    .other("first signal", other)
                    .hint("one wave of each workgroup signals it, after a barrier of the workgroup"),
            );
        }
    }

    /// Reports lanes that were active at the wave's start and are inactive now.
    fn check_lanes(&self, step: &Step<'_>, id: usize, report: &mut Report) {
        // No barrier changes EXEC.
        let exec = step.wave.exec();
        let start = self.waves[id].lanes.unwrap_or(exec);
        let absent = start & !exec;
        let kind = "lanes missing";
        if absent == 0 || !report.is_new(Check::Barrier, kind, step.pc, None) {
            return;
        }
        // A workgroup of one wave does not wait at a barrier, so that the lanes may reach it in turn.
        let message = format!(
            "wave {id} arrives at the barrier with {} of its {} lanes: {} never {} it",
            exec.count_ones(),
            start.count_ones(),
            lanes_text(absent),
            if absent.is_power_of_two() { "reaches" } else { "reach" }
        );
        let site = Site::new(step, Some(absent.trailing_zeros()));
        report.add(
            Finding::new(Check::Barrier, kind, message, site)
                .hint("all work-items must reach a barrier: restore EXEC before it"),
        );
    }

    fn end(&mut self, step: &Step<'_>, report: &mut Report) {
        let id = step.wave.id as usize;
        self.waves[id].ended = Some(step.pc);
        self.ended = true;
        if let Some(pc) = self.waves[id].signalled {
            report_no_wait(step, pc, report);
        }
        let arrivals = self.waves[id].arrivals;
        // Another wave has arrived at a barrier that this wave will never reach.
        if let Some(&Phase { pc, wave: first, .. }) =
            self.phases.get(arrivals.wrapping_sub(self.first_phase) as usize)
        {
            report_missing(step, pc, first, step.pc, step.wave.id, arrivals, report);
        }
    }
}

/// Reports a wave that ends although it has not waited for the barrier that it has signalled.
fn report_no_wait(step: &Step<'_>, pc: u64, report: &mut Report) {
    let kind = "signalled and ended";
    if !report.is_new(Check::Barrier, kind, step.pc, Some(pc)) {
        return;
    }
    let message = format!("wave {} ends without waiting for the barrier that it has signalled", step.wave.id);
    let other = Site::at(step, pc, step.wave.workgroup, step.wave.id);
    report.add(
        Finding::new(Check::Barrier, kind, message, Site::new(step, None))
            .other("signalled", other)
            .hint("an `s_barrier_wait` belongs between the two: the barrier may be unusable for other waves"),
    );
}

/// Reports the use of a named barrier that the kernel has not declared.
fn check_undeclared(step: &Step<'_>, number: i32, report: &mut Report) {
    let kind = "undeclared barrier";
    let declared = step.group.named_barriers();
    if !step.group.is_multi_wave() || !report.is_new(Check::Barrier, kind, step.pc, None) {
        return;
    }
    let message =
        format!("the instruction does nothing: barrier {number} is none of the kernel's {declared}");
    let finding = Finding::new(Check::Barrier, kind, message, Site::new(step, None));
    report.add(finding.hint("`.amdhsa_named_barrier_count` declares them, in units of 4"));
}

/// Reports that one wave arrived at a barrier and another ended before it.
fn report_missing(
    step: &Step<'_>,
    arrival: u64,
    wave: u32,
    end: u64,
    ended: u32,
    count: u64,
    report: &mut Report,
) {
    let kind = "missing barrier";
    if !report.is_new(Check::Barrier, kind, arrival, Some(end)) {
        return;
    }
    let message = format!(
        "wave {wave} arrives at its barrier number {}, but wave {ended} ended after {count}",
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
