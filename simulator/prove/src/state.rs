//! The state of a wave as terms. Registers that nothing has written are the inputs, by which both programs are
//! compared.

use crate::routes::Register;
use crate::setup::{Lanes, Setup};
use isa_export::smt::{Sort, Term, Terms, Unsupported};
use std::collections::BTreeMap;
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};

/// The prefix of variables that stand for what other lanes compute.
pub const OTHER_LANES: &str = "other";

/// A store or an atomic of the modelled lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The condition under which it happens.
    pub guard: Term,
    /// The address, and which memory it is in.
    pub address: Term,
    pub memory: MemoryId,
    /// The stored bytes.
    pub value: Term,
}

/// A memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryId {
    /// Device memory.
    Global,
    /// Device memory through a pointer, if that through other pointers is apart.
    Apart(Term),
    /// The workgroup's LDS.
    Lds,
    /// The private memory of a lane.
    Scratch(u32),
}

impl MemoryId {
    /// Bits of an address.
    pub fn address_bits(self) -> u32 {
        if matches!(self, MemoryId::Global | MemoryId::Apart(_)) { 64 } else { 32 }
    }
}

/// Registers and memory.
#[derive(Debug, Clone, Default)]
pub struct State {
    registers: BTreeMap<(u32, Register), Term>,
    memories: BTreeMap<MemoryId, Term>,
    /// Stores to shared memory, in order.
    pub events: Vec<Event>,
    /// A load of shared memory followed a store, or was part of an atomic: it may see the store of another lane.
    pub loads_after_stores: bool,
    /// The addresses of all accesses to global memory.
    pub addresses: Vec<Term>,
}

/// The name of a register in messages and variables.
pub fn register_name(register: Register) -> String {
    match register {
        Register::Vector(n) if n >= 256 => format!("a{}", n - 256),
        Register::Vector(n) => format!("v{n}"),
        Register::Scalar(n) => match n as usize {
            VCC_LO => "vcc_lo".into(),
            VCC_HI => "vcc_hi".into(),
            EXEC_LO => "exec_lo".into(),
            EXEC_HI => "exec_hi".into(),
            M0 => "m0".into(),
            n if TTMP.contains(&n) => format!("ttmp{}", n - TTMP.start),
            _ => format!("s{n}"),
        },
        Register::Scc => "scc".into(),
    }
}

/// The variable of a register at the start. In the model of one lane, a VGPR is that lane's.
pub fn initial(terms: &mut Terms, setup: &Setup, lanes: Lanes, lane: u32, register: Register) -> Term {
    match register {
        Register::Vector(_) => {
            let name = register_name(register);
            let name = if lanes == Lanes::All { format!("{name}.{lane}") } else { name };
            terms.var(&name, Sort::Bits(32))
        }
        Register::Scc => terms.var("scc", Sort::Bits(1)),
        Register::Scalar(n) if n as usize == NULL => terms.constant(0, 32),
        // Waves of 32 lanes have this register, but not as a part of EXEC.
        Register::Scalar(n) if n as usize == EXEC_HI && setup.wave_size == 32 => {
            terms.var(&register_name(register), Sort::Bits(32))
        }
        Register::Scalar(n) if [EXEC_LO, EXEC_HI].contains(&(n as usize)) => {
            if setup.full_exec {
                return terms.constant(u32::MAX as u128, 32);
            }
            let first = if n as usize == EXEC_LO { 0 } else { 32 };
            match lanes {
                Lanes::All => terms.var(&register_name(register), Sort::Bits(32)),
                // The lane's own bit, and those of others.
                Lanes::One(lane) => {
                    let word =
                        terms.var(&format!("{OTHER_LANES}.{}", register_name(register)), Sort::Bits(32));
                    if !(first..first + 32).contains(&lane) {
                        return word;
                    }
                    let bit = terms.var("active", Sort::Bits(1));
                    with_bit(terms, word, lane - first, bit)
                }
            }
        }
        Register::Scalar(_) => terms.var(&register_name(register), Sort::Bits(32)),
    }
}

/// Replaces a bit.
pub fn with_bit(terms: &mut Terms, word: Term, index: u32, bit: Term) -> Term {
    let width = terms.width(word);
    let mut result = bit;
    if index > 0 {
        let below = terms.extract(word, 0, index);
        result = terms.concat(result, below);
    }
    if index + 1 < width {
        let above = terms.extract(word, index + 1, width - index - 1);
        result = terms.concat(above, result);
    }
    result
}

impl State {
    /// Returns a register; `lane` matters for VGPRs only.
    pub fn get(&self, terms: &mut Terms, setup: &Setup, lanes: Lanes, lane: u32, register: Register) -> Term {
        let lane = if matches!(register, Register::Vector(_)) { lane } else { 0 };
        let found = self.registers.get(&(lane, register)).copied();
        found.unwrap_or_else(|| initial(terms, setup, lanes, lane, register))
    }

    /// Writes a register. Writes of null are dropped.
    pub fn set(&mut self, lane: u32, register: Register, value: Term) {
        let lane = if matches!(register, Register::Vector(_)) { lane } else { 0 };
        match register {
            Register::Scalar(n) if n as usize == NULL => {}
            _ => drop(self.registers.insert((lane, register), value)),
        }
    }

    /// Returns the registers that were written, with their lanes.
    pub fn written(&self) -> impl Iterator<Item = (u32, Register)> {
        self.registers.keys().copied()
    }

    /// Returns the contents of a memory.
    pub fn memory(&self, terms: &mut Terms, id: MemoryId) -> Term {
        let name = match id {
            MemoryId::Global => "memory".to_string(),
            MemoryId::Apart(pointer) => format!("memory.{}", pointer.number()),
            MemoryId::Lds => "lds".into(),
            MemoryId::Scratch(lane) => format!("scratch.{lane}"),
        };
        self.memories.get(&id).copied().unwrap_or_else(|| terms.var(&name, Sort::Memory(id.address_bits())))
    }

    /// Replaces the contents of a memory.
    pub fn set_memory(&mut self, id: MemoryId, contents: Term) {
        self.memories.insert(id, contents);
    }

    /// Returns the memories that were written.
    pub fn memories(&self) -> impl Iterator<Item = MemoryId> {
        self.memories.keys().copied()
    }

    /// Returns the state that is `self` where the condition holds, and `other` elsewhere.
    pub fn merge(
        mut self,
        terms: &mut Terms,
        setup: &Setup,
        lanes: Lanes,
        cond: Term,
        other: State,
    ) -> Result<State, Unsupported> {
        let keys: Vec<(u32, Register)> =
            self.registers.keys().chain(other.registers.keys()).copied().collect();
        for (lane, register) in keys {
            let yes = self.get(terms, setup, lanes, lane, register);
            let no = other.get(terms, setup, lanes, lane, register);
            let value = terms.ite(cond, yes, no);
            self.registers.insert((lane, register), value);
        }
        let ids: Vec<MemoryId> = self.memories.keys().chain(other.memories.keys()).copied().collect();
        for id in ids {
            let (yes, no) = (self.memory(terms, id), other.memory(terms, id));
            let contents = terms.ite(cond, yes, no);
            self.memories.insert(id, contents);
        }
        let shared = self.events.iter().zip(&other.events).take_while(|(a, b)| a == b).count();
        let not = terms.not(cond);
        for event in &mut self.events[shared..] {
            event.guard = terms.and(cond, event.guard);
        }
        for event in &other.events[shared..] {
            let guard = terms.and(not, event.guard);
            self.events.push(Event { guard, ..*event });
        }
        self.loads_after_stores |= other.loads_after_stores;
        self.addresses.extend(other.addresses);
        self.addresses.sort_unstable();
        self.addresses.dedup();
        Ok(self)
    }
}
