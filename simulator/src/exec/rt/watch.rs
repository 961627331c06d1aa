//! Watched memory: what an observed run puts in the place of global memory, LDS and scratch, to see every access.
//!
//! An observed wave runs with empty memory, LDS and scratch, so each access takes the way of those that are out of bounds. There,
//! and nowhere else, [`super::load`] and [`super::store`] ask for a watch. Plain runs pay nothing.

use super::context::{Cx, Flow};
use crate::exec::machine_ops::Event;
use crate::memory::{MemError, Memory, PRIVATE_BASE, SHARED_BASE};
use isa_spec::pcode::builtins::Bi;
use isa_spec::pcode::ir::Space;

/// Which memory an access reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    Global,
    Lds,
    Scratch,
    /// A buffer access beyond the descriptor's range, which does nothing.
    Nowhere,
}

impl Place {
    /// As in messages.
    pub fn name(self) -> &'static str {
        match self {
            Place::Global => "global memory",
            Place::Lds => "LDS",
            Place::Scratch => "scratch",
            Place::Nowhere => "out of the buffer's range",
        }
    }
}

/// One lane's access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub place: Place,
    /// Global address, or offset in LDS or in the lane's scratch.
    pub address: u64,
    pub size_bytes: u8,
    pub write: bool,
    /// Outside of what there is: nothing was moved.
    pub outside: bool,
    /// `None` for scalar memory.
    pub lane: Option<u8>,
}

/// The real memory of an observed run and what happened to it.
pub struct Watch<'a> {
    pub memory: &'a Memory,
    pub lds: &'a mut [u8],
    pub scratch: &'a mut [u8],
    pub scratch_stride: u32,
    /// Accesses of the running instruction, in order.
    pub log: Vec<Access>,
    /// Control builtins that it called, with the first argument.
    pub calls: Vec<(Bi, u32)>,
    /// Accesses outside of everything load zero and store nothing instead of ending the run.
    pub keep_going: bool,
}

fn place(space: Space, addr: u64) -> (Place, u64) {
    match space {
        Space::Lds => (Place::Lds, addr),
        Space::Scratch => (Place::Scratch, addr),
        Space::Flat if addr >> 32 == SHARED_BASE >> 32 => (Place::Lds, addr & 0xffff_ffff),
        Space::Flat if addr >> 32 == PRIVATE_BASE >> 32 => (Place::Scratch, addr & 0xffff_ffff),
        Space::Buffer if addr == u64::MAX => (Place::Nowhere, addr),
        _ => (Place::Global, addr),
    }
}

/// Bytes of `len` at `at` in LDS or in a lane's scratch.
fn local<'w>(watch: &'w mut Watch<'_>, place: Place, at: u64, len: usize, lane: u32) -> Option<&'w mut [u8]> {
    if place == Place::Lds {
        let end = at.checked_add(len as u64)?;
        return watch.lds.get_mut(at as usize..usize::try_from(end).ok()?);
    }
    let stride = watch.scratch_stride as u64;
    if at > stride || len as u64 > stride - at {
        return None;
    }
    let at = (lane as u64 * stride + at) as usize;
    watch.scratch.get_mut(at..at + len)
}

/// A load of `bytes.len()` bytes by the watch, if there is one.
#[cold]
#[inline(never)]
pub fn load(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
    bytes: &mut [u8],
) -> Option<Result<(), Flow>> {
    let mut watch = cx.watch.take()?;
    let (place, address) = place(space, addr);
    let done = match place {
        Place::Nowhere => true,
        Place::Global => watch.memory.read(address, bytes).is_ok(),
        _ => match local(&mut watch, place, address, bytes.len(), lane.unwrap_or(0)) {
            Some(from) => {
                bytes.copy_from_slice(from);
                true
            }
            None => false,
        },
    };
    let result = finish(cx, &mut watch, place, address, bytes.len(), lane, false, done);
    cx.watch = Some(watch);
    Some(result)
}

/// As [`load`].
#[cold]
#[inline(never)]
pub fn store(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
    bytes: &[u8],
) -> Option<Result<(), Flow>> {
    let mut watch = cx.watch.take()?;
    let (place, address) = place(space, addr);
    let done = match place {
        Place::Nowhere => true,
        Place::Global => {
            let done = watch.memory.write(address, bytes).is_ok();
            if done && space == Space::Word {
                watch.memory.touch(address, 1);
            }
            done
        }
        _ => match local(&mut watch, place, address, bytes.len(), lane.unwrap_or(0)) {
            Some(to) => {
                to.copy_from_slice(bytes);
                true
            }
            None => false,
        },
    };
    let result = finish(cx, &mut watch, place, address, bytes.len(), lane, true, done);
    cx.watch = Some(watch);
    Some(result)
}

/// Logs an access; one that failed ends the run unless it is to go on.
#[allow(clippy::too_many_arguments)]
fn finish(
    cx: &mut Cx<'_>,
    watch: &mut Watch<'_>,
    place: Place,
    address: u64,
    len: usize,
    lane: Option<u32>,
    write: bool,
    done: bool,
) -> Result<(), Flow> {
    let size_bytes = len as u8;
    watch.log.push(Access { place, address, size_bytes, write, outside: !done, lane: lane.map(|l| l as u8) });
    // LDS beyond its end reads zero and drops stores, without a fault.
    if done || watch.keep_going || place == Place::Lds {
        return Ok(());
    }
    let e = MemError { address, size_bytes: len as u32, write };
    let event = match place {
        Place::Scratch => Event::scratch_overflow(e, watch.scratch_stride, lane),
        _ => Event::out_of_bounds(watch.memory, e, lane),
    };
    Err(cx.fault(event))
}
