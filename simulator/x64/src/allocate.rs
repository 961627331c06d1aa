//! Register allocation: linear scan over live ranges, without splitting. A value has one location for its
//! whole life.

use crate::function::Function;
use crate::inst::{Class, Inst, Mem, V};
use crate::live::{Liveness, Remat};
use crate::operands::written;
use crate::target::{REGISTERS, Target};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The location of a value. Registers are identified by their numbers in encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    /// The value is not used.
    Unused,
    Register(u8),
    /// The number of a stack slot of its class.
    Slot(u32),
    /// A constant integer, rematerialised at its uses.
    Const(u64),
    /// A constant of the function.
    VecConst(u32),
    /// The memory that it is loaded from, at each use.
    Folded(Mem),
}

/// The locations of all values.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub locations: Vec<Location>,
    /// The numbers of stack slots.
    pub int_slots: u32,
    pub vec_slots: u32,
    /// Callee-saved registers that are used: a bit each.
    pub callee_saved: u32,
}

/// The registers of one class during allocation.
struct Registers {
    /// For each register, the value in it and the end of its live range.
    owner: [Option<(V, u32)>; REGISTERS],
}

impl Registers {
    /// Returns whether no live range in this register reaches `start`.
    fn is_free(&self, register: u8, start: u32) -> bool {
        self.owner[register as usize].is_none_or(|(_, end)| end < start)
    }
}

struct Scan<'a> {
    function: &'a Function,
    live: &'a Liveness,
    target: &'static Target,
    locations: Vec<Location>,
    ints: Registers,
    vecs: Registers,
}

pub(crate) fn allocate(function: &Function, live: &Liveness, target: &'static Target) -> Allocation {
    let mut scan = Scan {
        function,
        live,
        target,
        locations: vec![Location::Unused; live.ranges.len()],
        ints: Registers { owner: [None; REGISTERS] },
        vecs: Registers { owner: [None; REGISTERS] },
    };
    let order = by_start(function, live);
    for &(v, from) in &order {
        scan.allocate_value(v, from);
    }
    let mut used = 0;
    for (location, class) in scan.locations.iter().zip(&function.classes) {
        if let (Location::Register(register), Class::Int) = (location, class) {
            used |= 1u32 << register;
        }
    }
    let saved = used & target.callee_saved.iter().fold(0, |all, register| all | 1 << register);
    let mut allocation =
        Allocation { locations: scan.locations, int_slots: 0, vec_slots: 0, callee_saved: saved };
    assign_slots(function, live, &order, &mut allocation);
    allocation
}

/// Returns the used values in the order in which their live ranges start: first those that are live at the
/// entry, then by the instructions that define them.
fn by_start<'a>(function: &'a Function, live: &Liveness) -> Vec<(V, Option<&'a Inst>)> {
    let early = (0..live.ranges.len() as u32).map(V).filter(|v| {
        let range = &live.ranges[v.0 as usize];
        range.start == 0 && range.reads + range.writes > 0 && !(range.reads == 0 && range.end == 0)
    });
    let mut order: Vec<_> = early.map(|v| (v, None)).collect();
    for (i, inst) in function.insts.iter().enumerate().filter(|&(i, _)| live.keep[i]) {
        if let Some(d) = written(inst)
            && live.ranges[d.0 as usize].start == 2 * i as u32 + 1
        {
            order.push((d, Some(inst)));
        }
    }
    order
}

impl Scan<'_> {
    /// Allocates a location for a value that is defined by the instruction `from`, or at the entry.
    fn allocate_value(&mut self, v: V, from: Option<&Inst>) {
        let range = &self.live.ranges[v.0 as usize];
        let class = self.function.class(v);
        let without_register = match range.remat {
            // For a value that is used once, no register is better than one that is defined and used once.
            Remat::Int(bits) if range.reads == 1 || !range.needs_register => Some(Location::Const(bits)),
            Remat::Constant(n) if !range.hoisted => Some(Location::VecConst(n)),
            Remat::Loaded(from) if range.reads == 1 && !range.hoisted => Some(Location::Folded(from)),
            _ => None,
        };
        if let Some(location) = without_register {
            self.locations[v.0 as usize] = location;
            return;
        }
        let next_call = self.live.calls.partition_point(|&at| at < range.start);
        let crosses = self.live.calls.get(next_call).is_some_and(|&at| at < range.end);
        let candidates: &[u8] = match (class, crosses) {
            (Class::Int, false) => self.target.ints,
            (Class::Int, true) => self.target.callee_saved,
            (Class::Vec, false) => self.target.vecs,
            (Class::Vec, true) => &[],
        };
        let hint = self.hint(v, from).filter(|hint| candidates.contains(hint));
        let registers = if class == Class::Int { &self.ints } else { &self.vecs };
        // An operand is read just before the result is written.
        let separate = class == Class::Vec && self.target.separates_results && hint.is_none();
        let mut apart = candidates
            .iter()
            .copied()
            .filter(|&r| separate && registers.is_free(r, range.start.saturating_sub(1)));
        let mut free =
            hint.into_iter().chain(candidates.iter().copied()).filter(|&r| registers.is_free(r, range.start));
        let register = apart.next().or_else(|| free.next()).or_else(|| {
            // Spill the value with the lowest density.
            let owners = candidates.iter().filter_map(|&r| Some((r, registers.owner[r as usize]?.0)));
            let density = |v: V| self.live.ranges[v.0 as usize].density();
            let (register, other) = owners.min_by(|a, b| density(a.1).total_cmp(&density(b.1)))?;
            (density(other) < density(v)).then_some(register)
        });
        let Some(register) = register else {
            self.locations[v.0 as usize] = self.spill_location(v);
            return;
        };
        let registers = if class == Class::Int { &mut self.ints } else { &mut self.vecs };
        let before = registers.owner[register as usize].replace((v, range.end));
        self.locations[v.0 as usize] = Location::Register(register);
        if let Some((other, end)) = before
            && end >= range.start
        {
            self.locations[other.0 as usize] = self.spill_location(other);
        }
    }

    /// Returns the location of a value without a register. Slots are numbered later.
    fn spill_location(&self, v: V) -> Location {
        match self.live.ranges[v.0 as usize].remat {
            Remat::Never => Location::Slot(u32::MAX),
            Remat::Int(bits) => Location::Const(bits),
            Remat::Constant(n) => Location::VecConst(n),
            Remat::Loaded(from) => Location::Folded(from),
        }
    }

    /// Returns the register that saves a move: that of an operand whose live range ends here.
    fn hint(&self, v: V, from: Option<&Inst>) -> Option<u8> {
        let Some(inst) = from else {
            let n = self.function.params.iter().position(|&param| param == v)?;
            return self.target.arguments.get(n).copied();
        };
        let start = self.live.ranges[v.0 as usize].start;
        let register = |v: V| match self.locations[v.0 as usize] {
            Location::Register(register) if self.live.ranges[v.0 as usize].end < start => Some(register),
            _ => None,
        };
        match *inst {
            Inst::Move { a, .. } | Inst::Int2 { a, .. } | Inst::Int1 { a, .. } => register(a),
            Inst::Select { a, b, .. } => register(b).or_else(|| register(a)),
            Inst::Fma { a, b, c, .. } => register(c).or_else(|| register(a)).or_else(|| register(b)),
            _ => None,
        }
    }
}

/// Numbers the stack slots; slots of values whose live ranges have ended are reused.
fn assign_slots(
    function: &Function,
    live: &Liveness,
    order: &[(V, Option<&Inst>)],
    allocation: &mut Allocation,
) {
    let mut busy = [BinaryHeap::new(), BinaryHeap::new()];
    for &(v, _) in order {
        let location = &mut allocation.locations[v.0 as usize];
        if *location != Location::Slot(u32::MAX) {
            continue;
        }
        let range = &live.ranges[v.0 as usize];
        let (busy, count) = match function.class(v) {
            Class::Int => (&mut busy[0], &mut allocation.int_slots),
            Class::Vec => (&mut busy[1], &mut allocation.vec_slots),
        };
        let slot = match busy.peek() {
            Some(&Reverse((end, slot))) if end < range.start => {
                busy.pop();
                slot
            }
            _ => {
                *count += 1;
                *count - 1
            }
        };
        busy.push(Reverse((range.end, slot)));
        *location = Location::Slot(slot);
    }
}
