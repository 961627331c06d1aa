//! Stores that leave memory as it was: two waves that store the same value, and not different ones, are a note.
//!
//! Memory has what the last of the earlier stores left. An older one that races with the present store, and stored something else, either
//! races with that last one, which was reported when it ran, or happened before it: then the same bytes are left in every order.

use wavesim_engine::observe::Done;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::memory::Memory;

/// Whether a store, which is done, has left each of its bytes as it was before the instruction.
pub fn unchanged(a: &Access, done: &Done<'_>, memory: &Memory) -> bool {
    (0..a.len_bytes()).all(|k| {
        let at = a.address.wrapping_add(k);
        let before = done.replaced.byte(a.place, at);
        before.is_some() && before == present(a.place, at, done, memory)
    })
}

/// A byte as it is now.
fn present(place: Place, at: u64, done: &Done<'_>, memory: &Memory) -> Option<u8> {
    match place {
        Place::Lds => done.lds.get(usize::try_from(at).ok()?).copied(),
        Place::Global => memory.load::<1>(at).ok().map(|[byte]| byte),
        Place::Scratch | Place::Nowhere => None,
    }
}
