//! Live registers, and the accesses of a register that share a value.
//!
//! A *web* of a register is a largest set of writes and reads in which each read may see the value of some write of
//! the set, and no write outside of it: the unit that can be given another register. Lanes that are inactive at a
//! write keep the older value, so an older write stays in the web once EXEC has been changed: it is *hidden* until
//! then.

use crate::analysis::Code;
use std::collections::{BTreeMap, BTreeSet};
use wavesim_machine::exec::effects::{File, Lanes, Use, register_name};
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO, VCC_LO};

/// A register: its file and its number there.
pub type Register = (File, u16);

/// An access of a register by an instruction: the index of the instruction, and whether it writes.
pub type Access = (usize, bool);

/// A set of accesses that share values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Web {
    /// The accesses in code order.
    pub accesses: BTreeSet<Access>,
    /// The register may have its value from before the first instruction, or from code that is not known.
    pub external: bool,
    /// An instruction whose successors are unknown, and which the values may reach.
    pub escapes: Option<usize>,
}

/// A set of writes, as bits. Bit 0 stands for writes outside of the program.
type Bits = Vec<u64>;

fn add(to: &mut [u64], from: &[u64]) -> bool {
    let mut changed = false;
    for (to, from) in to.iter_mut().zip(from) {
        changed |= *from & !*to != 0;
        *to |= from;
    }
    changed
}

fn ones(bits: &[u64]) -> impl Iterator<Item = usize> {
    let words = bits.iter().enumerate();
    words.flat_map(|(at, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * at + bit))
}

/// Returns whether a use accesses a register.
fn touches(used: &Use, register: Register) -> bool {
    used.file == register.0 && (used.first..used.first.saturating_add(used.count)).contains(&register.1)
}

/// Returns whether an instruction may change which lanes are active.
fn writes_exec(code: &Code, index: usize) -> bool {
    code.effects[index]
        .writes
        .iter()
        .any(|w| touches(w, (File::Sgpr, EXEC_LO as u16)) || touches(w, (File::Sgpr, EXEC_HI as u16)))
}

/// How a write changes a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Not at all.
    None,
    /// Some bits, or not in every execution.
    Partly,
    /// In the active lanes.
    Active,
    /// Wholly.
    Wholly,
}

fn effect(code: &Code, index: usize, register: Register) -> Effect {
    let mut effect = Effect::None;
    for w in code.effects[index].writes.iter().filter(|w| touches(w, register)) {
        let whole = w.always && (w.bits == u32::MAX || w.file == File::Scc) && w.relative.is_none();
        effect = match (whole, w.file, w.lanes) {
            (true, File::Vgpr, Lanes::All) => Effect::Wholly,
            (true, File::Vgpr, Lanes::Active) => Effect::Active,
            (true, File::Sgpr | File::Scc, _) => Effect::Wholly,
            _ => Effect::Partly,
        };
        if effect != Effect::Partly {
            break;
        }
    }
    effect
}

/// Returns whether an instruction jumps to an address that is not known: an indirect jump, a return, a call.
pub fn jumps_anywhere(code: &Code, index: usize) -> bool {
    let flags = code.program.insts[index].instruction(code.program.arch.table()).flags();
    flags.branch && code.successors[index][1].is_none()
}

/// The writes that may reach each instruction.
struct Reaching {
    /// The instructions of the writes; bit `n + 1` of a set stands for the write `n`.
    writes: Vec<usize>,
    words: usize,
    /// The sets before each instruction: values in active lanes, and those in lanes that were inactive at a later
    /// write.
    visible: Vec<u64>,
    hidden: Vec<u64>,
}

impl Reaching {
    fn of(code: &Code, register: Register) -> Reaching {
        let count = code.program.insts.len();
        let effects: Vec<Effect> = (0..count).map(|at| effect(code, at, register)).collect();
        let writes: Vec<usize> = (0..count).filter(|at| effects[*at] != Effect::None).collect();
        let words = (writes.len() + 1).div_ceil(64);
        let mut out =
            Reaching { words, visible: vec![0; words * count], hidden: vec![0; words * count], writes };
        for at in code.entries.iter().filter(|at| **at < count) {
            out.visible[at * words] |= 1;
        }
        let mut next_write: BTreeMap<usize, usize> = BTreeMap::new();
        next_write.extend(out.writes.iter().enumerate().map(|(bit, at)| (*at, bit + 1)));
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (at, effect) in effects.iter().enumerate() {
                let slot = at * words..(at + 1) * words;
                let (mut visible, mut hidden) =
                    (out.visible[slot.clone()].to_vec(), out.hidden[slot].to_vec());
                if visible.iter().chain(&hidden).all(|word| *word == 0) {
                    continue;
                }
                let mut own: Bits = vec![0; words];
                if let Some(bit) = next_write.get(&at) {
                    own[bit / 64] |= 1 << (bit % 64);
                }
                match effect {
                    Effect::None => {}
                    Effect::Partly => drop(add(&mut visible, &own)),
                    Effect::Active => {
                        add(&mut hidden, &visible);
                        visible = own;
                    }
                    Effect::Wholly => {
                        visible = own;
                        hidden.fill(0);
                    }
                }
                if writes_exec(code, at) {
                    add(&mut visible, &hidden);
                    hidden.fill(0);
                }
                for next in code.successors[at].into_iter().flatten() {
                    let slot = next * words..(next + 1) * words;
                    changed |= add(&mut out.visible[slot.clone()], &visible);
                    changed |= add(&mut out.hidden[slot], &hidden);
                }
            }
        }
        out
    }

    /// Returns the writes whose values the instruction may read.
    fn read_by(&self, code: &Code, index: usize, register: Register) -> Bits {
        let slot = index * self.words..(index + 1) * self.words;
        let mut bits = self.visible[slot.clone()].to_vec();
        let uses = || code.effects[index].reads.iter().filter(|used| touches(used, register));
        if uses().any(|used| used.file == File::Vgpr && used.lanes != Lanes::Active) {
            add(&mut bits, &self.hidden[slot]);
        }
        bits
    }

    /// Returns all writes whose values an instruction may find in some lane.
    fn found_by(&self, index: usize) -> Bits {
        let slot = index * self.words..(index + 1) * self.words;
        let mut bits = self.visible[slot.clone()].to_vec();
        add(&mut bits, &self.hidden[slot]);
        bits
    }
}

/// Returns whether an instruction may read a register.
pub fn reads(code: &Code, index: usize, register: Register) -> bool {
    code.effects[index].reads.iter().any(|used| touches(used, register))
}

/// Returns whether an instruction may write a register.
pub fn writes(code: &Code, index: usize, register: Register) -> bool {
    code.effects[index].writes.iter().any(|used| touches(used, register))
}

/// Returns the webs of a register.
pub fn webs(code: &Code, register: Register) -> Vec<Web> {
    let reaching = Reaching::of(code, register);
    let mut groups = Groups((0..=reaching.writes.len()).collect());
    let mut read: Vec<(usize, Option<usize>)> = Vec::new();
    for index in 0..code.program.insts.len() {
        if reads(code, index, register) {
            let bits = reaching.read_by(code, index, register);
            let mut seen = ones(&bits);
            let first = seen.next();
            if let Some(first) = first {
                seen.for_each(|other| groups.join(first, other));
            }
            read.push((index, first));
        }
    }
    let mut found: BTreeMap<usize, Web> = BTreeMap::new();
    let mut lost = Vec::new();
    let empty = || Web { accesses: BTreeSet::new(), external: false, escapes: None };
    for (number, index) in reaching.writes.iter().enumerate() {
        found.entry(groups.root(number + 1)).or_insert_with(empty).accesses.insert((*index, true));
    }
    for (index, first) in read {
        match first {
            Some(write) => {
                found.entry(groups.root(write)).or_insert_with(empty).accesses.insert((index, false));
            }
            // Code that nothing reaches.
            None => lost.push(Web { accesses: BTreeSet::from([(index, false)]), ..empty() }),
        }
    }
    if let Some(web) = found.get_mut(&groups.root(0)) {
        web.external = true;
    }
    for index in (0..code.program.insts.len()).filter(|index| jumps_anywhere(code, *index)) {
        for write in ones(&reaching.found_by(index)) {
            if let Some(web) = found.get_mut(&groups.root(write)) {
                web.escapes = Some(index);
            }
        }
    }
    found.into_values().chain(lost).collect()
}

/// Disjoint sets.
struct Groups(Vec<usize>);

impl Groups {
    fn root(&mut self, mut index: usize) -> usize {
        while self.0[index] != index {
            self.0[index] = self.0[self.0[index]];
            index = self.0[index];
        }
        index
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// For each read of some registers, the writes whose value it may see: `None` for those outside of the program.
/// Reads are named by instruction, half of a dual instruction, operand, and position in the operand, so that the
/// chains of a program are those of the same program with other registers.
pub type Chains = BTreeMap<(usize, bool, String, u16), BTreeSet<Option<usize>>>;

/// Returns the chains of registers.
pub fn chains(code: &Code, registers: &BTreeSet<Register>) -> Chains {
    let mut out = Chains::new();
    for &register in registers {
        let reaching = Reaching::of(code, register);
        let seen = |bits: &[u64]| -> BTreeSet<Option<usize>> {
            ones(bits).map(|bit| bit.checked_sub(1).map(|write| reaching.writes[write])).collect()
        };
        for (index, effects) in code.effects.iter().enumerate() {
            for used in effects.reads.iter().filter(|used| touches(used, register)) {
                let same = |other: &&Use| {
                    (other.role, other.second, other.file) == (used.role, used.second, used.file)
                };
                let first = effects.reads.iter().filter(same).map(|other| other.first).min().unwrap_or(0);
                let key = (index, used.second, format!("{:?}", used.role), register.1 - first);
                out.entry(key).or_default().extend(seen(&reaching.read_by(code, index, register)));
            }
            if jumps_anywhere(code, index) {
                let key = (index, false, format!("{register:?}"), 0);
                out.entry(key).or_default().extend(seen(&reaching.found_by(index)));
            }
        }
    }
    out
}

/// Registers as a bit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegisterSet([u64; SET_WORDS]);

const SET_WORDS: usize = 20;
const FIRST_VGPR: usize = 128;

impl RegisterSet {
    fn index(register: Register) -> Option<usize> {
        let index = match register.0 {
            File::Sgpr if register.1 < 128 => register.1 as usize,
            File::Vgpr => FIRST_VGPR + register.1 as usize,
            _ => return None,
        };
        (index < 64 * SET_WORDS).then_some(index)
    }

    fn insert(&mut self, register: Register) {
        if let Some(index) = RegisterSet::index(register) {
            self.0[index / 64] |= 1 << (index % 64);
        }
    }

    fn remove(&mut self, register: Register) {
        if let Some(index) = RegisterSet::index(register) {
            self.0[index / 64] &= !(1 << (index % 64));
        }
    }

    /// Returns whether a register is in the set.
    pub fn contains(&self, register: Register) -> bool {
        RegisterSet::index(register).is_some_and(|index| self.0[index / 64] >> (index % 64) & 1 == 1)
    }

    /// Returns the registers in order: SGPRs, then VGPRs.
    pub fn iter(&self) -> impl Iterator<Item = Register> {
        ones(&self.0).map(|index| match index < FIRST_VGPR {
            true => (File::Sgpr, index as u16),
            false => (File::Vgpr, (index - FIRST_VGPR) as u16),
        })
    }

    /// Formats the registers as operands: `s[0:3], vcc_lo, v0`.
    pub fn text(&self, arch: wavesim_isa::arch::Arch) -> String {
        let mut runs: Vec<(Register, u16)> = Vec::new();
        for register in self.iter() {
            let (file, number) = register;
            match runs.last_mut() {
                Some(((last, first), count))
                    if *last == file
                        && *first + *count == number
                        // Names of their own.
                        && (file == File::Vgpr || number < VCC_LO as u16) =>
                {
                    *count += 1
                }
                _ => runs.push((register, 1)),
            }
        }
        let names = runs.into_iter().map(|((file, first), count)| register_name(arch, file, first, count));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the registers that are live before each instruction: those whose value may be read later. As in a
/// compiler, a write to the active lanes ends the older value.
pub fn live(code: &Code) -> Vec<RegisterSet> {
    let count = code.program.insts.len();
    let mut live = vec![RegisterSet::default(); count];
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for at in (0..count).rev() {
            let mut set = RegisterSet::default();
            for next in code.successors[at].into_iter().flatten() {
                add(&mut set.0, &live[next].0);
            }
            let registers = |used: &Use| {
                let file = used.file;
                (used.first..used.first.saturating_add(used.count)).map(move |number| (file, number))
            };
            for register in code.effects[at].writes.iter().flat_map(registers) {
                if matches!(effect(code, at, register), Effect::Active | Effect::Wholly) {
                    set.remove(register);
                }
            }
            let named = code.effects[at].reads.iter().filter(|used| used.relative.is_none());
            named.flat_map(registers).for_each(|register| set.insert(register));
            // EXEC is always in use.
            (EXEC_LO..=EXEC_HI).for_each(|code| set.remove((File::Sgpr, code as u16)));
            changed |= add(&mut live[at].0, &set.0);
        }
    }
    live
}

impl RegisterSet {
    /// Adds the registers of a use whose numbers are known.
    pub fn extend(&mut self, used: &Use) {
        if used.relative.is_none() {
            let numbers = used.first..used.first.saturating_add(used.count);
            numbers.for_each(|number| self.insert((used.file, number)));
        }
    }
}

/// Formats one register.
pub fn name(arch: wavesim_isa::arch::Arch, register: Register) -> String {
    register_name(arch, register.0, register.1, 1)
}
