//! Wrong allocations, to test the check of allocations: each is what a bug in one decision would do.

use crate::allocate::{Location, allocate};
use crate::allocated::Allocated;
use crate::backend::assemble;
use crate::check::{CheckError, check};
use crate::compile::Compiled;
use crate::error::CompileError;
use crate::function::Function;
use crate::host::Host;
use crate::inst::{Class, Inst, V};
use crate::live::{Remat, analyse};
use crate::operands::{visit_reads, written};

/// A change of one decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// None: the allocation as it is.
    None,
    /// The live range of a value ends where it starts.
    ShortenRange(V),
    /// Live ranges end at the last access in the order of the code: loops do not extend them, nor folded loads those
    /// of base addresses.
    ForgetLoops,
    /// Values may stay in caller-saved registers across calls.
    ForgetCalls,
    /// Two values are in one register.
    ShareRegister(V, V),
    /// All values of a class that are spilled are in one slot.
    ShareSlots(Class),
    /// The `n`-th vector that is loaded once for several instructions is still read by instructions after that.
    ShareLonger(usize),
    /// The same, also by those for which it is loaded the next time.
    ShareAcross(usize),
    /// No register is saved around the `n`-th cold call.
    DropSaves(usize),
    /// The function does not save the registers that it must preserve.
    ForgetCalleeSaved,
    /// The result of a comparison is only in the flags.
    KeepInFlags(usize),
    /// An instruction is left out.
    Drop(usize),
    /// A value is rematerialised as it was first assigned.
    Rematerialise(V),
}

/// A function after a mutation.
#[derive(Debug)]
pub struct Mutant {
    /// The result of the check.
    pub checked: Result<(), Vec<CheckError>>,
    /// The code, which must not run if the check fails.
    pub code: Result<Compiled, CompileError>,
}

/// Compiles a function with a mutation. Returns `None` if it changes nothing.
pub fn mutate(function: &Function, mutation: Mutation, host: &Host) -> Option<Mutant> {
    let mut code = Allocated::new(function, host.target);
    match mutation {
        Mutation::None => {}
        Mutation::ShortenRange(v) => {
            let mut live = analyse(function);
            let range = &mut live.ranges[v.index()];
            if range.start >= range.end {
                return None;
            }
            range.end = range.start;
            code.allocation = allocate(function, &live, host.target);
        }
        Mutation::ForgetLoops => {
            let mut live = analyse(function);
            live.ranges.iter_mut().filter(|range| range.is_used()).for_each(|range| range.end = range.start);
            for (i, inst) in (0..).zip(&function.insts).filter(|&(i, _)| live.keep[i as usize]) {
                let mut access = |v: V, at: u32| {
                    let range = &mut live.ranges[v.index()];
                    range.end = range.end.max(at);
                };
                visit_reads(inst, &mut |read| access(read.v, 2 * i));
                written(inst).into_iter().for_each(|d| access(d, 2 * i + 1));
            }
            code.allocation = allocate(function, &live, host.target);
        }
        Mutation::ForgetCalls => {
            let mut live = analyse(function);
            if live.calls.is_empty() {
                return None;
            }
            live.calls.clear();
            code.allocation = allocate(function, &live, host.target);
        }
        Mutation::ShareRegister(a, b) => {
            let same_class = a != b && function.class(a) == function.class(b);
            let (Location::Register(_), Location::Register(to)) = (code.location(a), code.location(b)) else {
                return None;
            };
            if !same_class || code.location(a) == code.location(b) {
                return None;
            }
            code.allocation.locations[a.index()] = Location::Register(to);
        }
        Mutation::ShareSlots(class) => {
            let slots =
                if class == Class::Int { code.allocation.int_slots } else { code.allocation.vec_slots };
            if slots < 2 {
                return None;
            }
            for (location, of) in code.allocation.locations.iter_mut().zip(&function.classes) {
                if let (Location::Slot(n), true) = (location, *of == class) {
                    *n = 0;
                }
            }
        }
        Mutation::ShareLonger(n) => {
            let next = code.shared.get(n + 1).map_or(function.insts.len(), |next| next.first);
            let last = code.live.keep[..next].iter().rposition(|keep| *keep)?;
            let shared = code.shared.get_mut(n)?;
            if last == shared.last {
                return None;
            }
            shared.last = last;
        }
        Mutation::ShareAcross(n) => {
            let last = code.shared.get(n + 1)?.last;
            code.shared.remove(n + 1);
            code.shared[n].last = last;
        }
        Mutation::DropSaves(n) => {
            let saves = &mut code.cold_calls.get_mut(n)?.1;
            if *saves == [0; 2] {
                return None;
            }
            *saves = [0; 2];
        }
        Mutation::ForgetCalleeSaved => {
            if code.allocation.callee_saved == 0 {
                return None;
            }
            code.allocation.callee_saved = 0;
        }
        Mutation::KeepInFlags(i) => {
            if !matches!(function.insts.get(i)?, Inst::Compare { .. }) || !code.live.keep[i] {
                return None;
            }
            let at = code.in_flags.binary_search(&i).err()?;
            code.in_flags.insert(at, i);
        }
        Mutation::Drop(i) => {
            let inst = function.insts.get(i)?;
            if !code.live.keep[i] || matches!(inst, Inst::Label(_)) {
                return None;
            }
            code.live.keep[i] = false;
        }
        Mutation::Rematerialise(v) => {
            let first = function.insts.iter().find(|inst| written(inst) == Some(v))?;
            let location = match *first {
                Inst::Const { bits, .. } => Location::Const(bits),
                Inst::VecConst { constant, .. } => Location::VecConst(constant),
                Inst::VecLoad { from, .. } => Location::Folded(from),
                _ => return None,
            };
            if code.location(v) == location || code.live.ranges[v.index()].remat != Remat::Never {
                return None;
            }
            code.allocation.locations[v.index()] = location;
        }
    }
    // Decisions that follow from the locations.
    if let Mutation::ShortenRange(_)
    | Mutation::ForgetLoops
    | Mutation::ForgetCalls
    | Mutation::ShareRegister(..)
    | Mutation::ShareSlots(_)
    | Mutation::Rematerialise(_) = mutation
    {
        code.follow();
    }
    let checked = check(&code);
    let code = match &checked {
        Ok(()) => assemble(&code, |_, _| ()).map(|assembled| Compiled { bytes: assembled.bytes }),
        Err(errors) => Err(CompileError::Allocation(errors.clone())),
    };
    Some(Mutant { checked, code })
}
