//! Accesses that are meant for one object and reach another, a part of `mem`: from one array in LDS into its
//! neighbour, beyond a variable in global memory, or beyond a variable in a frame.
//!
//! The bounds of objects are in symbols and in debug information. Which object an access is meant for follows from the
//! code ([`provenance`]); where it does not, nothing is reported.

mod body;
mod mask;
mod provenance;
mod value;

use super::kind::{Check, Setup};
use super::report::{Finding, Report, Site, access_name, describe};
use provenance::Meant;
use std::collections::BTreeMap;
use value::Target;
use wavesim_engine::observe::Step;
use wavesim_loader::objects::{Object, Objects};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::watch::{Access, Place};

/// State of the check.
#[derive(Default)]
pub struct Shadow {
    objects: Objects,
    /// By instruction; empty if nothing is known.
    meant: Vec<Option<Box<[Meant]>>>,
    /// The objects that accesses whose addresses have a distance have reached first: by instruction, and by their
    /// number among those of a lane.
    seen: BTreeMap<(usize, usize), Target>,
    /// What is added to an address of the file to get one in memory.
    moved: u64,
    /// Whether an access to LDS is among them.
    pub watches_lds: bool,
}

fn object(objects: &Objects, target: Target) -> &Object {
    match target {
        Target::Global(at) => &objects.global[at as usize],
        Target::Lds(at) => &objects.lds[at as usize],
        Target::Frame(frame, at) => &objects.frames[frame as usize].variables[at as usize],
    }
}

impl Shadow {
    /// Creates the state for a launch.
    pub fn new(setup: &Setup<'_>) -> Shadow {
        let prepared = setup.prepared;
        if !setup.chosen.mem {
            return Shadow::default();
        }
        let objects = prepared.objects.read();
        if objects.is_empty() {
            return Shadow::default();
        }
        let known = provenance::meant(prepared, setup.effects, &objects);
        let watches_lds = known.values().flatten().any(|meant| matches!(meant.target, Target::Lds(_)));
        let mut meant = Vec::new();
        if !known.is_empty() {
            meant.resize_with(prepared.program.insts.len(), || None);
        }
        known.into_iter().for_each(|(at, of)| meant[at] = Some(of.into()));
        let moved = prepared.shape.code_base.wrapping_sub(prepared.program.address(0));
        Shadow { objects, meant, seen: BTreeMap::new(), moved, watches_lds }
    }

    /// Returns whether accesses of an instruction, given by its index, are meant for known objects.
    #[inline(always)]
    pub fn watches(&self, index: usize) -> bool {
        self.meant.get(index).is_some_and(Option::is_some)
    }

    /// Reports the accesses of an instruction that leave their object.
    pub fn after(
        &mut self,
        step: &Step<'_>,
        accesses: &[Access],
        atomic: bool,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let Some(Some(all)) = self.meant.get(step.index) else { return };
        let kernel = prepared.program.address(prepared.shape.entry_pc);
        // The accesses of each lane are in the order of the instruction's.
        let mut counts = [0usize; 64];
        for a in accesses.iter().flat_map(|a| a.each()) {
            let count = &mut counts[a.lane.unwrap_or(0) as usize % 64];
            let number = *count % all.len();
            *count += 1;
            let Meant { target: first, is_start } = all[number];
            let base = match (first, a.place) {
                _ if a.outside => continue,
                (Target::Global(_), Place::Global) => self.moved,
                (Target::Lds(_), Place::Lds) => 0,
                (Target::Frame(frame, _), Place::Scratch) => {
                    let frame = &self.objects.frames[frame as usize];
                    match frame.code.contains(&kernel) {
                        true => 0,
                        false => u64::from(step.wave.sgpr(frame.register)),
                    }
                }
                _ => continue,
            };
            let start = a.address.wrapping_sub(base);
            let end = start.saturating_add(u64::from(a.size_bytes));
            let holds = |target: Target| {
                let bytes = &object(&self.objects, target).bytes;
                bytes.start <= start && end <= bytes.end
            };
            let reached = reached(&self.objects, first, start);
            let own = match is_start {
                true => first,
                // The constant may be in the object before: `b[i - 1]`. The accesses tell, if they are not all in one.
                false => *self.seen.entry((step.index, number)).or_insert(reached.unwrap_or(first)),
            };
            // Loops may count from the end of an object, which is the start of the next one.
            if holds(own) || is_start && start < object(&self.objects, own).bytes.start {
                continue;
            }
            let found = Reached { own, reached: reached.filter(|other| *other != own), start };
            found.report(&self.objects, step, &a, atomic, prepared, report);
        }
    }
}

/// Returns the object at a position, of the same kind as another one.
fn reached(objects: &Objects, like: Target, address: u64) -> Option<Target> {
    let address = u32::try_from(address).ok()?;
    Some(match like {
        Target::Global(_) => Target::Global(value::find(&objects.global, address)?),
        Target::Lds(_) => Target::Lds(value::find(&objects.lds, address)?),
        Target::Frame(frame, _) => {
            Target::Frame(frame, value::find(&objects.frames[frame as usize].variables, address)?)
        }
    })
}

/// An access that has left its object.
struct Reached {
    own: Target,
    reached: Option<Target>,
    start: u64,
}

impl Reached {
    fn report(
        &self,
        objects: &Objects,
        step: &Step<'_>,
        a: &Access,
        atomic: bool,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let kind = "wrong object";
        if !report.is_new(Check::Mem, kind, step.pc, None) {
            return;
        }
        let own = object(objects, self.own);
        let what = describe(prepared, a.place, a.address, u32::from(a.size_bytes));
        let size = own.bytes.end - own.bytes.start;
        let distance = match self.start.checked_sub(own.bytes.end) {
            Some(beyond) => format!("starts {beyond} bytes beyond its end"),
            None if self.start < own.bytes.start => {
                format!("starts {} bytes before it", own.bytes.start - self.start)
            }
            None => format!("ends beyond it, {} bytes after its start", self.start - own.bytes.start),
        };
        let mut message = format!("{} of {what} is outside of `{}`", access_name(a, atomic), own.name);
        if let Some(reached) = self.reached {
            message += &format!(", in `{}`", object(objects, reached).name);
        }
        let finding = Finding::new(Check::Mem, kind, message, Site::new(step, a.lane.map(u32::from)));
        let hint = format!("`{}` has {size} bytes; the access {distance}", own.name);
        report.add(finding.address(a.address).hint(hint));
    }
}
