//! Registers, masks and memories of a machine.

use super::{Machine, Result, unsupported};
use crate::routes::{Bit, Register, Route};
use crate::setup::Lanes;
use crate::state::MemoryId;
use isa_export::smt::{Op, Term, Terms};
use isa_spec::pcode::ir::{Role, Space};
use wavesim_isa::operand;
use wavesim_machine::state::wave::{EXEC_LO, NULL, SGPRS, VCC_LO};

impl Machine<'_> {
    pub(super) fn get(&self, terms: &mut Terms, lane: u32, register: Register) -> Term {
        let mut value = self.state.get(terms, self.setup, self.lanes, lane, register);
        // The body runs where the lane is active: what an inactive lane has does not matter.
        while let (Op::Ite, Some(active)) = (&terms.node(value).op, self.active)
            && terms.node(value).args[0] == active
        {
            value = terms.node(value).args[1];
        }
        value
    }

    /// An SGPR by operand code.
    pub(super) fn scalar(&self, terms: &mut Terms, code: u32) -> Term {
        if code as usize >= SGPRS {
            return terms.constant(0, 32);
        }
        self.get(terms, 0, Register::Scalar(code))
    }

    pub(super) fn pair(&self, terms: &mut Terms, code: u32) -> Term {
        let (low, high) = (self.scalar(terms, code), self.scalar(terms, code + 1));
        terms.concat(high, low)
    }

    pub(super) fn write_scalars(&mut self, terms: &mut Terms, code: u32, count: u32, value: Term) {
        // Writes beyond the file are dropped.
        let exists = |k: &u32| code as usize != NULL && ((code + k) as usize) < SGPRS;
        for k in (0..count).filter(exists) {
            let word = terms.extract(value, 32 * k, 32);
            self.state.set(0, Register::Scalar(code + k), word);
        }
    }

    pub(super) fn exec(&self, terms: &mut Terms) -> Term {
        self.mask(terms, EXEC_LO as u32)
    }

    /// A mask of lanes, of 64 bits.
    pub(super) fn mask(&self, terms: &mut Terms, code: u32) -> Term {
        if self.setup.wave_size == 64 && code as usize != NULL {
            return self.pair(terms, code);
        }
        let low = self.scalar(terms, code);
        terms.zero_extend(low, 64)
    }

    pub(super) fn mask_register(&self, role: Role, output: bool) -> u32 {
        let list = if self.second { &self.binding.y } else { &self.binding.operands };
        let operand = list.iter().find(|o| o.role == role && if output { o.output } else { o.input });
        match operand.and_then(|o| Some(operand::mask_register(o, self.binding.value(self.inst, o)?))) {
            Some(code) => code as u32,
            None => VCC_LO as u32,
        }
    }

    pub(super) fn read_mask(&self, terms: &mut Terms, role: Role) -> Term {
        let code = self.mask_register(role, false);
        self.mask(terms, code)
    }

    pub(super) fn write_mask(&mut self, terms: &mut Terms, role: Role, value: Term) {
        let code = self.mask_register(role, true);
        self.write_scalars(terms, code, self.setup.wave_size / 32, value);
    }

    /// Joins bits that are next to each other in a register.
    pub(super) fn follow(
        &self,
        terms: &mut Terms,
        route: &Route,
        get: &dyn Fn(&mut Terms, Register) -> Term,
    ) -> Term {
        let mut value: Option<Term> = None;
        let mut at = 0;
        while at < route.len() {
            let next = |from: Bit, k: u32| match from {
                Bit::Constant(_) => from,
                Bit::Register { register, bit, inverted } => {
                    Bit::Register { register, bit: bit + k, inverted }
                }
            };
            let same = (0..).zip(&route[at..]).take_while(|(k, bit)| **bit == next(route[at], *k)).count();
            let part = match route[at] {
                Bit::Constant(bit) => terms.constant(if bit { u128::MAX } else { 0 }, same as u32),
                Bit::Register { register, bit, inverted } => {
                    let whole = get(terms, register);
                    let part = terms.extract(whole, bit, same as u32);
                    if inverted { terms.not(part) } else { part }
                }
            };
            value = Some(value.map_or(part, |low| terms.concat(part, low)));
            at += same;
        }
        value.unwrap_or_else(|| terms.constant(0, 32))
    }

    /// The width in which an operand is read.
    pub(super) fn width_of(&self, role: Role) -> u32 {
        self.operand_of(role).map_or(32, |o| (o.size_bits as u32).div_ceil(32).clamp(1, 4) * 32)
    }

    /// A location that an address of an address space names.
    pub(super) fn place(
        &mut self,
        terms: &mut Terms,
        space: Space,
        address: Term,
        lane: Option<u32>,
    ) -> Result<(MemoryId, Term)> {
        let narrow = |terms: &mut Terms| terms.resize(address, 32);
        Ok(match space {
            Space::Global | Space::Flat | Space::Buffer | Space::Scalar => {
                let address = terms.resize(address, 64);
                self.state.addresses.push(address);
                if self.setup.apart {
                    let pointer = pointer(terms, address)?;
                    return Ok((MemoryId::Apart(pointer), address));
                }
                (MemoryId::Global, address)
            }
            Space::Lds => (MemoryId::Lds, narrow(terms)),
            Space::Scratch => {
                let lane = if self.lanes == Lanes::All { lane.unwrap_or(0) } else { 0 };
                (MemoryId::Scratch(lane), narrow(terms))
            }
            Space::Word => return unsupported("memory of words"),
        })
    }

    /// The condition that a buffer access is inside the buffer.
    pub(super) fn inside(&self, terms: &mut Terms, space: Space, address: Term) -> Term {
        if space != Space::Buffer {
            return terms.bool(true);
        }
        let address = terms.resize(address, 64);
        isa_export::smtlib::inside(terms, space, address)
    }
}

/// The pointer in an address, a sum: the only term of it that has more than 32 bits, and is the same in all lanes.
fn pointer(terms: &Terms, address: Term) -> Result<Term> {
    let (mut open, mut found) = (vec![address], Vec::new());
    while let Some(term) = open.pop() {
        let node = terms.node(term);
        match node.op {
            Op::Add => open.extend(&node.args),
            Op::Const(_) => {}
            // An offset that is extended.
            Op::Concat if terms.value(node.args[0]) == Some(0) && terms.width(node.args[0]) >= 32 => {}
            _ => found.push(term),
        }
    }
    let lane = |term: &Term| match &terms.node(*term).op {
        Op::Var(name) => name.starts_with('v') && !name.starts_with("vcc") || name == "active",
        _ => false,
    };
    match found[..] {
        [one] if !terms.reachable(&[one]).iter().any(lane) => Ok(one),
        _ => unsupported("an address of which the pointer is not known"),
    }
}
