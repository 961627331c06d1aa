//! The halves of a dual instruction: two instructions that issue together.

use super::{Bit, Slot, forms};
use crate::Options;
use isa_spec::tables::EntryId;

/// The operands of one half of a dual instruction, with the fields of that half. `None` if the entry cannot
/// be that half.
pub fn half_slots(options: &Options, entry: EntryId, second: bool) -> Option<Vec<Slot>> {
    const FIELDS: [(&str, &str); 4] =
        [("VDSTX", "VDSTY"), ("SRCX0", "SRCY0"), ("VSRCX1", "VSRCY1"), ("VSRCX2", "VSRCY2")];
    let table = options.arch.table();
    let form = forms(options.arch).get(entry);
    let encoding = &table.encodings[table.entries[entry as usize].enc as usize];
    let name = |s: &Slot| s.field.map(|f| encoding.fields[f as usize].name);
    let only_second = !form.slots.iter().any(|s| name(s) == Some("VDSTX"));
    if only_second {
        return second.then(|| form.slots.clone());
    }
    let position = |wanted: &str| encoding.fields.iter().position(|f| f.name == wanted).map(|at| at as u8);
    let first: Vec<Slot> =
        form.slots.iter().filter(|s| !FIELDS.iter().any(|f| name(s) == Some(f.1))).cloned().collect();
    if !second {
        return Some(first);
    }
    if !form.slots.iter().any(|s| name(s) == Some("VDSTY")) {
        return None;
    }
    let moved = |s: &Slot| {
        let y = FIELDS.iter().find(|f| name(s) == Some(f.0)).map(|f| f.1);
        let neg = s.neg.and_then(|bit| Some(Bit { field: position("NEGY")?, ..bit }));
        Slot { field: y.map_or(s.field, position), neg, ..s.clone() }
    };
    Some(first.iter().map(moved).collect())
}
