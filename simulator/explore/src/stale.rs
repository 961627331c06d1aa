//! Accesses that did not see the newest value: what a cache has kept, and which store was not written back.

use crate::cause::describe_range;
use crate::delay::Delay;
use crate::footprint::{Range, Space};
use crate::machine::Machine;
use crate::minimise::Found;
use wavesim_engine::caches::{Caches, Reason, Source, Stale};

/// Describes the stale accesses of a run, each instruction once.
pub fn describe(machine: &Machine<'_>, found: &Found) -> Vec<Delay> {
    let mut seen = Vec::new();
    let all = found.events.iter().flat_map(|event| &event.stale);
    let first = all.filter(|stale| {
        let new = !seen.contains(&stale.load);
        seen.push(stale.load);
        new
    });
    first.map(|stale| one(machine, stale)).collect()
}

fn one(machine: &Machine<'_>, stale: &Stale) -> Delay {
    let program = &machine.prepared.program;
    let at = |source: &Source| {
        let pc = program.pcs.get(source.index).copied().unwrap_or_default();
        format!("{} {}: {}", machine.name_of(source.wave), program.place(pc), program.text(source.index))
    };
    let (space, start) = (Space::Global, stale.address);
    let range = Range { space, start, end: start.saturating_add(stale.bytes) };
    let bytes = describe_range(machine.prepared, range);
    let why = match &stale.reason {
        Reason::Hit(cache, filled) => {
            let name = match *cache {
                Caches::L0 => "its L0 cache",
                Caches::SCALAR => "its scalar cache",
                _ => "its L1 cache",
            };
            format!("gets {bytes} from {name}, filled by {}", at(filled))
        }
        Reason::NotWrittenBack(store) => {
            format!("does not see {bytes}, as nothing has written back what {} has stored", at(store))
        }
    };
    Delay { operation: at(&stale.load), why: vec![why] }
}
