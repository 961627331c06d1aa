//! A function with all decisions about where its values are: what remains is to spell them in host instructions.

use crate::allocate::{Allocation, Location, allocate};
use crate::function::Function;
use crate::inst::{Cc, Class, Inst, Mem, Src, V};
use crate::live::{Liveness, analyse};
use crate::share::{Shared, shared};
use crate::target::Target;

/// A function with the locations of its values.
#[derive(Debug)]
pub(crate) struct Allocated<'a> {
    pub function: &'a Function,
    pub target: &'static Target,
    pub live: Liveness,
    pub allocation: Allocation,
    /// Vectors that are loaded to a scratch register once for several instructions, in order.
    pub shared: Vec<Shared>,
    /// The cold calls: their indices in the function, and the general and vector registers that are live
    /// across them, a bit each.
    pub cold_calls: Vec<(usize, [u32; 2])>,
    /// The comparisons whose results exist only in the flags, in order.
    pub in_flags: Vec<usize>,
}

impl<'a> Allocated<'a> {
    pub fn new(function: &'a Function, target: &'static Target) -> Allocated<'a> {
        let live = analyse(function);
        let allocation = allocate(function, &live, target);
        let shared = shared(function, &live, &allocation);
        let cold_calls = cold_calls(function, &live, &allocation);
        let in_flags = in_flags(function, &live);
        Allocated { function, target, live, allocation, shared, cold_calls, in_flags }
    }

    /// Decides again what follows from the locations.
    pub fn follow(&mut self) {
        self.shared = shared(self.function, &self.live, &self.allocation);
        self.cold_calls = cold_calls(self.function, &self.live, &self.allocation);
    }

    /// Returns a value's location as text.
    pub fn location_text(&self, v: V) -> String {
        match (self.location(v), self.function.class(v)) {
            (Location::Unused, _) => "unused".into(),
            (Location::Register(register), Class::Int) => (self.target.int_name)(register),
            (Location::Register(register), Class::Vec) => (self.target.vec_name)(register),
            (Location::Slot(n), Class::Int) => format!("slot{n}"),
            (Location::Slot(n), Class::Vec) => format!("vslot{n}"),
            (Location::Const(bits), _) => format!("{bits:#x}"),
            (Location::VecConst(n), _) => format!("c{n}"),
            (Location::Folded(Mem { base, disp }), _) => format!("[{} + {disp}]", self.location_text(base)),
        }
    }

    pub fn location(&self, v: V) -> Location {
        self.allocation.locations[v.0 as usize]
    }

    /// Returns the next instruction that is not dead.
    pub fn next(&self, i: usize) -> Option<&'a Inst> {
        next(self.function, &self.live, i)
    }
}

fn next<'a>(function: &'a Function, live: &Liveness, i: usize) -> Option<&'a Inst> {
    let mut rest = function.insts[i + 1..].iter().zip(&live.keep[i + 1..]);
    rest.find(|(_, keep)| **keep).map(|(inst, _)| inst)
}

/// Returns the cold calls with the registers that are live across them: see [`Allocated::cold_calls`].
fn cold_calls(function: &Function, live: &Liveness, allocation: &Allocation) -> Vec<(usize, [u32; 2])> {
    let all = function.insts.iter().enumerate();
    let mut calls: Vec<(usize, [u32; 2])> =
        all.filter(|(_, inst)| matches!(inst, Inst::ColdCall { .. })).map(|(i, _)| (i, [0; 2])).collect();
    if calls.is_empty() {
        return calls;
    }
    for (v, (range, location)) in live.ranges.iter().zip(&allocation.locations).enumerate() {
        let Location::Register(register) = location else { continue };
        let first = calls.partition_point(|(i, _)| 2 * (*i as u32) < range.start);
        for (_, live_registers) in calls[first..].iter_mut().take_while(|(i, _)| 2 * (*i as u32) < range.end)
        {
            live_registers[usize::from(function.classes[v] == Class::Vec)] |= 1 << register;
        }
    }
    calls
}

/// Returns the comparisons whose result is read only by the next instruction, which only tests it for 0: then it
/// can stay in the flags.
fn in_flags(function: &Function, live: &Liveness) -> Vec<usize> {
    let stays = |i: usize, d: V| {
        let range = &live.ranges[d.0 as usize];
        range.reads == 1
            && range.writes == 1
            && match next(function, live, i) {
                Some(Inst::Select { cond, a, b, .. }) => *cond == d && *a != d && *b != d,
                Some(Inst::Branch { cc: Cc::Ne | Cc::Eq, a, b: Src::Imm(0), .. }) => *a == d,
                _ => false,
            }
    };
    let all = function.insts.iter().enumerate().filter(|&(i, _)| live.keep[i]);
    all.filter(|&(i, inst)| matches!(*inst, Inst::Compare { d, .. } if stays(i, d))).map(|(i, _)| i).collect()
}
