//! Places of values: linear scan over their lives, without splitting. A value is in one place for all its life.

use crate::function::Function;
use crate::inst::{Class, Inst, Mem, V};
use crate::live::{Again, Live};
use crate::operands::written;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Where a value is. Registers by their numbers in encodings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// It is not used.
    Nowhere,
    Register(u8),
    /// Number of a slot of its class.
    Slot(u32),
    /// An integer that is known.
    Int(u64),
    /// A constant of the function.
    Constant(u32),
    /// Where it is loaded from.
    Loaded(Mem),
}

/// Places of all values.
#[derive(Debug)]
pub(crate) struct Places {
    pub of: Vec<Place>,
    /// Numbers of slots.
    pub int_slots: u32,
    pub vec_slots: u32,
    /// Registers that the caller expects unchanged, and that are used: a bit each.
    pub saved: u16,
}

/// General registers that a call leaves.
pub(crate) const SAVED: [u8; 6] = [3, 5, 12, 13, 14, 15];
/// General registers for values that a call changes.
pub(crate) const CHANGED: [u8; 7] = [2, 6, 7, 8, 9, 10, 11];
/// General registers for values, those that calls change first. All but RSP, and RAX and RCX, which are scratch.
const INTS: [u8; 13] = [2, 6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15];
/// Vector registers for values: the others are scratch.
pub(crate) const VECS: [u8; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
/// General registers of arguments.
pub(crate) const ARGUMENTS: [u8; 6] = [7, 6, 2, 1, 8, 9];

/// Registers of one class, while places are given.
struct Registers {
    /// For each register, the value in it, and where that ends.
    owner: [Option<(V, u32)>; 16],
}

impl Registers {
    fn is_free(&self, register: u8, start: u32) -> bool {
        self.owner[register as usize].is_none_or(|(_, end)| end < start)
    }
}

struct Scan<'a> {
    function: &'a Function,
    live: &'a Live,
    of: Vec<Place>,
    ints: Registers,
    vecs: Registers,
}

pub(crate) fn allocate(function: &Function, live: &Live) -> Places {
    let mut scan = Scan {
        function,
        live,
        of: vec![Place::Nowhere; live.of.len()],
        ints: Registers { owner: [None; 16] },
        vecs: Registers { owner: [None; 16] },
    };
    let order = starts(function, live);
    for &(v, from) in &order {
        scan.place(v, from);
    }
    let mut used = 0;
    for (place, class) in scan.of.iter().zip(&function.classes) {
        if let (Place::Register(register), Class::Int) = (place, class) {
            used |= 1u16 << register;
        }
    }
    let saved = used & SAVED.into_iter().fold(0, |all, register| all | 1 << register);
    let mut places = Places { of: scan.of, int_slots: 0, vec_slots: 0, saved };
    slots(function, live, &order, &mut places);
    places
}

/// Used values in the order of their starts: those of the entry, then by the instructions that write them first.
fn starts<'a>(function: &'a Function, live: &Live) -> Vec<(V, Option<&'a Inst>)> {
    let early = (0..live.of.len() as u32).map(V).filter(|v| {
        let life = &live.of[v.0 as usize];
        life.start == 0 && life.reads + life.writes > 0 && !(life.reads == 0 && life.end == 0)
    });
    let mut order: Vec<_> = early.map(|v| (v, None)).collect();
    for (i, inst) in function.insts.iter().enumerate().filter(|&(i, _)| live.keep[i]) {
        if let Some(d) = written(inst)
            && live.of[d.0 as usize].start == 2 * i as u32 + 1
        {
            order.push((d, Some(inst)));
        }
    }
    order
}

impl Scan<'_> {
    /// Gives a place to a value that starts with the instruction `from`, or at the entry.
    fn place(&mut self, v: V, from: Option<&Inst>) {
        let life = &self.live.of[v.0 as usize];
        let class = self.function.class(v);
        let elsewhere = match life.again {
            // No register is better than one that is written once and read once.
            Again::Int(bits) if life.reads == 1 || !life.needs_register => Some(Place::Int(bits)),
            Again::Constant(n) if !life.hoisted => Some(Place::Constant(n)),
            Again::Loaded(from) if life.reads == 1 && !life.hoisted => Some(Place::Loaded(from)),
            _ => None,
        };
        if let Some(place) = elsewhere {
            self.of[v.0 as usize] = place;
            return;
        }
        let next_call = self.live.calls.partition_point(|&at| at < life.start);
        let crosses = self.live.calls.get(next_call).is_some_and(|&at| at < life.end);
        let candidates: &[u8] = match (class, crosses) {
            (Class::Int, false) => &INTS,
            (Class::Int, true) => &SAVED,
            (Class::Vec, false) => &VECS,
            (Class::Vec, true) => &[],
        };
        let hint = self.hint(v, from).filter(|hint| candidates.contains(hint));
        let registers = if class == Class::Int { &self.ints } else { &self.vecs };
        let mut free =
            hint.into_iter().chain(candidates.iter().copied()).filter(|&r| registers.is_free(r, life.start));
        let register = free.next().or_else(|| {
            // The least valuable of all goes to memory.
            let owners = candidates.iter().filter_map(|&r| Some((r, registers.owner[r as usize]?.0)));
            let density = |v: V| self.live.of[v.0 as usize].density();
            let (register, other) = owners.min_by(|a, b| density(a.1).total_cmp(&density(b.1)))?;
            (density(other) < density(v)).then_some(register)
        });
        let Some(register) = register else {
            self.of[v.0 as usize] = self.in_memory(v);
            return;
        };
        let registers = if class == Class::Int { &mut self.ints } else { &mut self.vecs };
        let before = registers.owner[register as usize].replace((v, life.end));
        self.of[v.0 as usize] = Place::Register(register);
        if let Some((other, end)) = before
            && end >= life.start
        {
            self.of[other.0 as usize] = self.in_memory(other);
        }
    }

    /// The place of a value that has no register. Slots are numbered later.
    fn in_memory(&self, v: V) -> Place {
        match self.live.of[v.0 as usize].again {
            Again::No => Place::Slot(u32::MAX),
            Again::Int(bits) => Place::Int(bits),
            Again::Constant(n) => Place::Constant(n),
            Again::Loaded(from) => Place::Loaded(from),
        }
    }

    /// The register that saves a move: of a source, if it ends here.
    fn hint(&self, v: V, from: Option<&Inst>) -> Option<u8> {
        let Some(inst) = from else {
            let n = self.function.params.iter().position(|&param| param == v)?;
            return ARGUMENTS.get(n).copied();
        };
        let start = self.live.of[v.0 as usize].start;
        let register = |v: V| match self.of[v.0 as usize] {
            Place::Register(register) if self.live.of[v.0 as usize].end < start => Some(register),
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

/// Numbers slots: those of values that have ended are used again.
fn slots(function: &Function, live: &Live, order: &[(V, Option<&Inst>)], places: &mut Places) {
    let mut busy = [BinaryHeap::new(), BinaryHeap::new()];
    for &(v, _) in order {
        let place = &mut places.of[v.0 as usize];
        if *place != Place::Slot(u32::MAX) {
            continue;
        }
        let life = &live.of[v.0 as usize];
        let (busy, count) = match function.class(v) {
            Class::Int => (&mut busy[0], &mut places.int_slots),
            Class::Vec => (&mut busy[1], &mut places.vec_slots),
        };
        let slot = match busy.peek() {
            Some(&Reverse((end, slot))) if end < life.start => {
                busy.pop();
                slot
            }
            _ => {
                *count += 1;
                *count - 1
            }
        };
        busy.push(Reverse((life.end, slot)));
        *place = Place::Slot(slot);
    }
}
