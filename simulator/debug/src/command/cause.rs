//! The cause of an error that a check has reported: the output of `why` without a name, and of a key of the
//! full-screen debugger.

use super::why::Trace;
use super::{CommandResult, Debugger};
use crate::search::Search;
use crate::stop::Stop;
use crate::stop_points::StopPoints;
use crate::timeline::Timeline;
use crate::view;
use isa_spec::tables::Role;
use std::fmt::Write as _;
use wavesim_inspect::check::{Check, Finding, Site};
use wavesim_machine::exec::effects::File;
use wavesim_machine::state::wave::EXEC_LO;

/// Finds the last time at which a wave reached an instruction.
struct SiteSearch {
    workgroup: [u32; 3],
    wave: usize,
    pc: u64,
    stop_points: StopPoints,
}

impl Search for SiteSearch {
    fn stop_points(&self) -> &StopPoints {
        &self.stop_points
    }

    fn before(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        wave == self.wave && timeline.workgroup() == self.workgroup && timeline.wave(wave).pc == self.pc
    }
}

impl Debugger<'_> {
    /// Shows the origin of the error at which the run has stopped.
    pub(super) fn why_finding(&mut self, out: &mut String) -> CommandResult {
        let finding = self.stops.iter().find_map(|stop| match stop {
            Stop::Finding(finding) => Some(finding.clone()),
            _ => None,
        });
        let Some(finding) = finding else {
            return Err(
                "`why` needs the name of a value here: the run has not stopped at an error of a check \
                        (`why v5`, `why out_y[3]`)"
                    .to_string(),
            );
        };
        let now = self.timeline.time();
        let _ = writeln!(out, "{}: {}", finding.check.name(), finding.message);
        self.cause(&finding, out);
        self.timeline.go_to(now);
        Ok(())
    }

    fn cause(&mut self, finding: &Finding, out: &mut String) {
        // The end of the step with the finding.
        let step = self.timeline.findings().find(|found| found.1 == *finding).map(|found| found.0);
        if let Some(step) = step {
            self.timeline.go_to(step + 1);
        }
        let now = self.timeline.time();
        let site = &finding.site;
        let Some(at) = self.show_site("at", site, out) else { return };
        let lane = site.lane.unwrap_or(self.focus.lane);
        let wave = site.wave as usize;
        let mut trace = Trace::new(None);
        if let Some((file, register)) = finding.register {
            self.trace_register((file, register), wave, lane, 1, &mut trace, out);
        } else if let (Check::Mem, Some(index)) = (finding.check, at) {
            // The registers from which the address is computed.
            let exec = EXEC_LO as u16;
            let wave_now = self.timeline.wave(wave);
            let sources: Vec<(File, u16)> = self.effects[index]
                .reads
                .iter()
                .filter(|r| !matches!(r.role, Role::Data | Role::Data1 | Role::D0))
                .filter(|r| !(r.file == File::Sgpr && r.first == exec && r.role == Role::State))
                .flat_map(|r| r.registers(wave_now, false).map(|register| (r.file, register)))
                .collect();
            let time = self.timeline.time();
            for source in sources {
                self.trace_register(source, wave, lane, 1, &mut trace, out);
                self.timeline.go_to(time);
            }
        }
        if let Some(other) = &finding.other {
            self.timeline.go_to(now);
            self.show_site(other.role, &other.site, out);
        }
    }

    /// Goes to the last time at which a wave reached an instruction, and writes the number of that step.
    /// Returns the index of the instruction, or `None` if the wave has not reached it.
    fn show_site(&mut self, role: &str, site: &Site, out: &mut String) -> Option<Option<usize>> {
        let program = &self.timeline.prepared.program;
        let pc = program.pc_at(site.pc);
        let index = program.inst_at(pc);
        let effects = std::mem::take(&mut self.effects);
        let stop_points = StopPoints::new(&effects, |at| Some(at) == index, std::iter::empty());
        let mut search = SiteSearch { workgroup: site.workgroup, wave: site.wave as usize, pc, stop_points };
        let found = self.timeline.find_back(0, &mut search);
        self.effects = effects;
        let [x, y, z] = site.workgroup;
        let lane = site.lane.map_or(String::new(), |lane| format!(", lane {lane}"));
        let place = format!("(workgroup ({x},{y},{z}), wave {}{lane})", site.wave);
        match found {
            Some(time) => {
                self.timeline.go_to(time);
                let instruction = view::instruction(&self.timeline, pc);
                let _ = writeln!(out, "{role}: step {time}, {instruction}   {place}");
                Some(index)
            }
            None => {
                let _ = writeln!(out, "{role}: {}: {}   {place}", site.place(), site.text);
                None
            }
        }
    }
}
