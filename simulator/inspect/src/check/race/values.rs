//! Stores that do not change memory: if two waves store the same value, the race is a note.
//!
//! Memory holds the result of the last earlier store. Suppose an older store races with the present one and
//! stored another value. Then either it races with that last store, which has been reported, or it happened
//! before that store, and the final bytes are the same in every order.

use wavesim_engine::observe::Done;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::memory::Memory;

/// Returns whether a completed store has left each of its bytes as it was before the instruction.
pub fn leaves_memory_unchanged(a: &Access, done: &Done<'_>, memory: &Memory) -> bool {
    (0..a.len_bytes()).all(|k| {
        let at = a.address.wrapping_add(k);
        let before = done.replaced.byte(a.place, at);
        before.is_some() && before == present(a.place, at, done, memory)
    })
}

/// Returns the current value of a byte.
pub fn present(place: Place, address: u64, done: &Done<'_>, memory: &Memory) -> Option<u8> {
    match place {
        Place::Lds => done.lds.get(usize::try_from(address).ok()?).copied(),
        Place::Global => memory.load::<1>(address).ok().map(|[byte]| byte),
        Place::Scratch | Place::Nowhere => None,
    }
}
