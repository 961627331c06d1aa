//! Finds vectors without a register that several instructions in a row read, to load them to a scratch register once.
//! Hosts execute fewer vector loads than arithmetic instructions in a cycle.

use crate::allocate::{Allocation, Location};
use crate::function::Function;
use crate::inst::{Class, Inst, V};
use crate::live::Liveness;
use crate::operands::{Read, each_read, each_target, written};

/// The least number of reads for which a load pays off.
const LEAST_READS: u32 = 4;

/// A vector in memory that instructions `first..=last` read. None of them reads another one, so that they do not
/// need the scratch register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shared {
    pub first: usize,
    pub last: usize,
    pub vector: Vector,
}

/// A vector in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vector {
    pub v: V,
    pub location: Location,
}

impl Vector {
    /// Returns whether another value is the same vector. Values at one location may differ, unless that is a
    /// constant's: the memory of folded loads is written between their live ranges.
    pub fn is(self, v: V, location: Location) -> bool {
        v == self.v || location == self.location && matches!(location, Location::VecConst(_))
    }
}

pub(crate) fn shared(function: &Function, live: &Liveness, allocation: &Allocation) -> Vec<Shared> {
    let in_memory = |v: V| {
        let location = allocation.locations[v.0 as usize];
        let is_memory = matches!(location, Location::Slot(_) | Location::VecConst(_) | Location::Folded(_));
        (function.class(v) == Class::Vec && is_memory).then_some(location)
    };
    let mut found = Vec::new();
    let mut current: Option<(Shared, u32)> = None;
    let mut close = |current: &mut Option<(Shared, u32)>| {
        found.extend(current.take().filter(|(_, reads)| *reads >= LEAST_READS).map(|(shared, _)| shared));
    };
    for (i, inst) in function.insts.iter().enumerate().filter(|&(i, _)| live.keep[i]) {
        let (mut only, mut reads, mut distinct) = (None, 0, true);
        each_read(inst, |Read { v, .. }| {
            if let Some(location) = in_memory(v) {
                distinct &= only.is_none_or(|only: Vector| only.is(v, location));
                only = Some(Vector { v, location });
                reads += 1;
            }
        });
        if !distinct || uses_scratch(inst) {
            close(&mut current);
            continue;
        }
        if let Some(vector) = only {
            match &mut current {
                Some((shared, count)) if shared.vector.is(vector.v, vector.location) => {
                    shared.last = i;
                    *count += reads;
                }
                _ => {
                    close(&mut current);
                    current = Some((Shared { first: i, last: i, vector }, reads));
                }
            }
        }
        // Constants and folded loads are not stored anywhere.
        let written = written(inst).and_then(in_memory).filter(|to| matches!(to, Location::Slot(_)));
        if current.as_ref().is_some_and(|(shared, _)| written == Some(shared.vector.location)) {
            close(&mut current);
        }
    }
    close(&mut current);
    found
}

/// Returns whether an instruction needs the scratch register, or ends a basic block.
fn uses_scratch(inst: &Inst) -> bool {
    let mut jumps = false;
    each_target(inst, |_| jumps = true);
    let calls = matches!(inst, Inst::Call { .. } | Inst::ColdCall { .. } | Inst::Return { .. });
    jumps || calls || matches!(inst, Inst::Label(_) | Inst::Gather { .. })
}
