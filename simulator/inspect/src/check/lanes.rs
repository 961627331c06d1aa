//! `lanes`: races between lanes of one wave, which the languages forbid although hardware executes the lanes of
//! an instruction together.
//!
//! Two lanes that store different values to the same bytes in one instruction are reported in every run: as a note
//! of `race`, or, if the check is chosen, as an error. The rest is on demand. Lanes that exchange data through LDS
//! without a barrier are right on hardware, where LDS executes the operations of a wave in order. But a compiler
//! may reorder the accesses of its source, and another wave size may separate the lanes.

use super::kind::{Check, CheckState, Setup};
use super::report::{Finding, Report, Site, describe};
use isa_spec::tables::Role;
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Effects, File};
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::state::Wave;

/// Number of executions of a store whose lanes are compared in a run without the check.
const COMPARED: u8 = 64;

/// An access to a byte of LDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    /// The wave, and its number of barriers so far; `None` if there was no access.
    when: Option<(u32, u32)>,
    lane: u8,
    pc: u32,
    /// [`Step::time`] of the instruction.
    time: u64,
}

impl Cell {
    const NONE: Cell = Cell { when: None, lane: 0, pc: 0, time: 0 };
}

/// State of the check for the running workgroup.
pub struct Shadow {
    chosen: bool,
    /// Whether a workgroup has a single wave in code of a compiler, which omits the barriers of such workgroups.
    barriers_omitted: bool,
    lds_bytes: usize,
    /// By instruction: executions whose lanes have been compared.
    compared: Vec<u8>,
    group: LaneGroup,
}

/// The accesses to LDS of a workgroup.
#[derive(Default)]
pub struct LaneGroup {
    /// By byte of LDS: the last store and the last load.
    stores: Vec<Cell>,
    loads: Vec<Cell>,
    /// By wave: the number of its barriers so far.
    barriers: Vec<u32>,
}

impl CheckState for Shadow {
    type WorkgroupState = LaneGroup;

    fn new(setup: &Setup<'_>) -> Shadow {
        let shape = &setup.prepared.shape;
        let items: u32 = shape.block.iter().product();
        Shadow {
            chosen: setup.chosen.lanes,
            barriers_omitted: items <= shape.wave_size && setup.prepared.source.is_none(),
            lds_bytes: if setup.chosen.lanes { shape.lds_bytes as usize } else { 0 },
            compared: vec![0; setup.effects.len()],
            group: LaneGroup::default(),
        }
    }

    fn start(&mut self, _workgroup: [u32; 3], waves: usize) {
        for cells in [&mut self.group.stores, &mut self.group.loads] {
            cells.clear();
            cells.resize(self.lds_bytes, Cell::NONE);
        }
        self.group.barriers.clear();
        self.group.barriers.resize(waves, 0);
    }

    fn swap(&mut self, group: &mut LaneGroup) {
        std::mem::swap(&mut self.group, group);
    }

    fn after_control(&mut self, step: &Step<'_>, done: &Done<'_>, _report: &mut Report) {
        if done.calls.iter().any(|(bi, _)| bi.signals_barrier()) {
            self.group.barriers[step.wave.id as usize] += 1;
        }
    }

    fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        if effects.atomic || done.accesses.is_empty() {
            return;
        }
        if self.suspects(step.index, done.accesses) {
            self.compare(step, done, effects, prepared, report);
        }
        if self.chosen {
            self.record_lds(step, done, prepared, report);
        }
    }
}

impl Shadow {
    /// Returns whether lanes of a store may overlap, so that their values must be compared.
    #[inline(always)]
    pub fn suspects(&self, index: usize, accesses: &[Access]) -> bool {
        match accesses {
            [a] => a.write && a.lanes > 1 && a.stride < a.size_bytes && self.is_open(index),
            all => all.iter().any(|a| a.write) && may_overlap(all) && self.is_open(index),
        }
    }

    fn is_open(&self, index: usize) -> bool {
        self.chosen || self.compared.get(index).is_some_and(|n| *n < COMPARED)
    }

    /// Reports two lanes that have stored different values to the same byte.
    #[cold]
    fn compare(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        self.compared[step.index] = self.compared[step.index].saturating_add(1);
        let Some((a, before)) = differing(step.wave, done.accesses, effects) else { return };
        let kind = "lanes store different values";
        let check = if self.chosen { Check::Lanes } else { Check::Race };
        if !report.is_new(check, kind, step.pc, None) {
            return;
        }
        let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
        let (lane, other) = (a.lane.unwrap_or(0), before.lane.unwrap_or(0));
        let (lane, other) = (lane.max(other), lane.min(other));
        let message = format!(
            "lanes {other} and {lane} store different values to {what}: which of them remains is undefined in the languages"
        );
        let site = Site::new(step, Some(lane.into()));
        let finding = Finding::new(check, kind, message, site).address(a.address);
        report.add(match self.chosen {
            true => finding.hint("let one lane store, or use an atomic"),
            false => finding.note().hint("`--check lanes` makes it an error"),
        });
    }

    /// Compares the accesses to LDS with earlier ones of other lanes of the wave, and records them.
    fn record_lds(&mut self, step: &Step<'_>, done: &Done<'_>, prepared: &Prepared, report: &mut Report) {
        let wave = step.wave.id;
        let when = Some((wave, self.group.barriers[wave as usize]));
        for a in done.accesses.iter().filter(|a| a.place == Place::Lds && !a.outside).flat_map(|a| a.each()) {
            let me = Cell { when, lane: a.lane.unwrap_or(0), pc: step.pc as u32, time: step.time };
            let mut found = None;
            for byte in a.address as usize..(a.address + a.size_bytes as u64) as usize {
                let (Some(store), Some(load)) =
                    (self.group.stores.get_mut(byte), self.group.loads.get_mut(byte))
                else {
                    continue;
                };
                let conflicts =
                    |other: &Cell| other.when == when && other.lane != me.lane && other.time != me.time;
                let other = match a.write {
                    true => [(*store, true), (*load, false)].into_iter().find(|(cell, _)| conflicts(cell)),
                    false => Some((*store, true)).filter(|(cell, _)| conflicts(cell)),
                };
                *(if a.write { store } else { load }) = me;
                found = found.or(other);
            }
            if let Some((other, stored)) = found {
                report_exchange(step, &a, (&other, stored), self.barriers_omitted, prepared, report);
            }
        }
    }
}

fn report_exchange(
    step: &Step<'_>,
    a: &Access,
    (other, stored): (&Cell, bool),
    barriers_omitted: bool,
    prepared: &Prepared,
    report: &mut Report,
) {
    let kind = "exchange without a barrier";
    if !report.is_new(Check::Lanes, kind, step.pc, Some(other.pc.into())) {
        return;
    }
    let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
    let (verb, role) = match (a.write, stored) {
        (true, true) => ("overwrites what", "earlier store"),
        (true, false) => ("overwrites what", "earlier load"),
        (false, _) => ("loads what", "earlier store"),
    };
    let did = if stored { "has stored" } else { "has loaded" };
    let lane = a.lane.unwrap_or(0);
    let message =
        format!("lane {lane} {verb} lane {} of the same wave {did}, {what}, without a barrier", other.lane);
    let mut site = Site::at(step, other.pc.into(), step.wave.workgroup, step.wave.id);
    site.lane = Some(other.lane.into());
    let finding = Finding::new(Check::Lanes, kind, message, Site::new(step, Some(lane.into())))
        .other(role, site)
        .address(a.address);
    report.add(match barriers_omitted {
        true => {
            finding.note().hint("compilers omit the barriers of workgroups of one wave: look at the source")
        }
        false => finding.hint("a barrier between the two orders them"),
    });
}

/// Returns whether stores of different lanes may overlap: those whose addresses ascend do not.
fn may_overlap(accesses: &[Access]) -> bool {
    let mut end = None;
    accesses.iter().any(|a| {
        let overlaps = a.lanes > 1 && a.stride < a.size_bytes || end.is_some_and(|end| a.address < end);
        end = Some(a.address.saturating_add(a.len_bytes()));
        overlaps
    })
}

/// Returns two lanes' stores that leave different values in a byte.
fn differing(wave: &Wave, accesses: &[Access], effects: &Effects) -> Option<(Access, Access)> {
    // The accesses of a lane store its data from the first byte on.
    let mut next = [0usize; 64];
    let mut stores: Vec<(Access, Vec<u8>)> = Vec::new();
    for a in accesses.iter().filter(|a| a.write && !a.outside).flat_map(|a| a.each()) {
        let lane = a.lane.filter(|_| matches!(a.place, Place::Lds | Place::Global))?;
        let from = &mut next[lane as usize & 63];
        let data = data(wave, effects, lane.into());
        // Where the data is not in registers, nothing is known of it.
        let bytes = data.get(*from..*from + a.size_bytes as usize)?;
        *from += a.size_bytes as usize;
        stores.push((a, bytes.to_vec()));
    }
    stores.sort_by_key(|(a, _)| (a.place == Place::Lds, a.address));
    let mut found = stores.windows(2).filter_map(|pair| {
        let [(first, bytes), (second, others)] = pair else { return None };
        let at = second.address.wrapping_sub(first.address) as usize;
        let overlap = bytes.get(at..).filter(|_| first.place == second.place && first.lane != second.lane)?;
        let differ = overlap.iter().zip(others).any(|(a, b)| a != b);
        differ.then_some((*second, *first))
    });
    found.next()
}

/// Returns the bytes that a lane stores.
fn data(wave: &Wave, effects: &Effects, lane: u32) -> Vec<u8> {
    let sources = effects.reads.iter().filter(|used| matches!(used.role, Role::Data | Role::Data1));
    let mut out = Vec::new();
    for used in sources.filter(|used| used.file == File::Vgpr && used.bits != 0) {
        let shift = used.bits.trailing_zeros();
        let bytes = (used.bits >> shift).count_ones().div_ceil(8) as usize;
        for register in used.registers(wave, false) {
            let value = (wave.vgpr(lane, register.into()) & used.bits) >> shift;
            out.extend(&value.to_le_bytes()[..bytes]);
        }
    }
    out
}
