//! One instruction on a state of terms: what the reference executor does with words.

mod access;
mod modifiers;
mod registers;

use crate::routes::{Reader, Register, Routes};
use crate::setup::{Lanes, Setup};
use crate::state::{OTHER_LANES, State, with_bit};
use isa_export::smt::{self, Setting, Sort, Term, Terms, Unsupported};
use isa_spec::arith::FloatEnv;
use isa_spec::pcode::ir::{Role, Semantics, Shape, State as Name};
use std::cell::Cell;
use std::collections::BTreeMap;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Binding, Fmt, Operand};
use wavesim_machine::state::wave::EXEC_LO;

/// The number of terms beyond which a proof is given up: about 1.5 GB.
const MAX_TERMS: usize = 2_500_000;

type Result<T> = std::result::Result<T, Unsupported>;

fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(Unsupported(what.into()))
}

/// What an instruction leaves.
pub struct After {
    pub state: State,
    /// The target of a jump, an address.
    pub jump: Option<Term>,
    /// The wave has ended.
    pub ended: bool,
}

/// The semantics of an instruction's first half, and of VOPD's second.
pub type Halves<'a> = (&'a Semantics, Option<&'a Semantics>);

/// Executes instructions.
pub struct Executor<'a> {
    pub setup: &'a Setup,
    pub lanes: Lanes,
    pub routes: &'a Routes,
    /// The semantics of both halves.
    pub semantics: &'a dyn Fn(&Inst) -> Option<Halves<'a>>,
    /// The number of the program, and of masks that it has written: what other lanes write has a name of its own
    /// each time.
    pub program: usize,
    pub masks: Cell<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MaskTarget {
    D0,
    Vcc,
    Exec,
}

impl Executor<'_> {
    /// Executes an instruction at an address.
    pub fn step(&self, terms: &mut Terms, inst: &Inst, pc: u64, state: &State) -> Result<After> {
        let table = self.setup.arch.table();
        let name = inst.instruction(table).name;
        let at = |e: Unsupported| Unsupported(format!("{}: {e}", name.to_lowercase()));
        let Some((first, second)) = (self.semantics)(inst) else {
            return unsupported(format!("{} has no semantics", name.to_lowercase()));
        };
        let mut after = After { state: state.clone(), jump: None, ended: false };
        let mut writes = Vec::new();
        for (second, sem) in [(false, Some(first)), (true, second)] {
            let Some(sem) = sem else { continue };
            let binding = operand::binding(self.setup.arch, if second { inst.entry_y } else { inst.entry });
            let machine = Machine {
                executor: (self.program, &self.masks),
                setup: self.setup,
                lanes: self.lanes,
                routes: self.routes,
                inst,
                plain: &modifiers::plain(inst, binding),
                sem,
                second,
                binding,
                pc,
                state: after.state,
                writes: BTreeMap::new(),
                masks: BTreeMap::new(),
                jump: None,
                ended: false,
                active: None,
            };
            let done = machine.run(terms).map_err(at)?;
            // Both halves read before either writes.
            writes.extend(done.writes);
            after = After { state: done.state, jump: done.jump, ended: done.ended };
        }
        for ((lane, number), value) in writes {
            after.state.set(lane, Register::Vector(number), value);
        }
        Ok(after)
    }
}

#[derive(Clone)]
struct Machine<'a> {
    executor: (usize, &'a Cell<u32>),
    setup: &'a Setup,
    lanes: Lanes,
    routes: &'a Routes,
    inst: &'a Inst,
    /// The instruction without DPP and output modifiers: what its operands are.
    plain: &'a Inst,
    sem: &'a Semantics,
    second: bool,
    binding: &'static Binding,
    pc: u64,
    state: State,
    /// VGPRs that the body has written, which it does not read.
    writes: BTreeMap<(u32, u32), Term>,
    masks: BTreeMap<MaskTarget, Term>,
    jump: Option<Term>,
    ended: bool,
    /// The condition that the lane is active, while a body runs for it.
    active: Option<Term>,
}

impl<'a> Machine<'a> {
    fn reader(&self) -> Reader<'a> {
        Reader { inst: self.plain, sem: self.sem, second: self.second }
    }

    fn setting(&self) -> Setting {
        Setting {
            env: FloatEnv::from_mode(self.setup.mode),
            uninterpreted_float: self.setup.uninterpreted_float,
            max_terms: MAX_TERMS,
        }
    }

    fn run(mut self, terms: &mut Terms) -> Result<Self> {
        if self.sem.shape != Shape::Lane && (self.binding.has_dpp() || self.binding.mods.sdwa.is_some()) {
            return unsupported("DPP of a body that selects lanes itself");
        }
        if self.binding.has_dpp() && self.lanes != Lanes::All {
            return unsupported("lanes that see each other");
        }
        if self.sem.shape != Shape::Lane {
            if self.sem.shape == Shape::Wave && self.lanes != Lanes::All {
                return unsupported("lanes that see each other");
            }
            let setting = self.setting();
            return smt::evaluate(terms, self.sem, self, None, setting);
        }
        let uses = &self.sem.uses;
        if uses.writes.contains(&Role::D0)
            && let Some(o) = self.operand_of(Role::D0).filter(|o| o.fmt == Fmt::Mask)
        {
            let old = if o.input {
                let old = self.read_mask(terms, Role::D0);
                let exec = self.exec(terms);
                let inactive = terms.not(exec);
                terms.and(old, inactive)
            } else {
                terms.constant(0, 64)
            };
            self.masks.insert(MaskTarget::D0, old);
        }
        for (used, target) in [
            (uses.writes.contains(&Role::Vcc), MaskTarget::Vcc),
            (uses.state_writes.contains(&Name::Exec), MaskTarget::Exec),
        ] {
            if used {
                let zero = terms.constant(0, 64);
                self.masks.insert(target, zero);
            }
        }
        let exec = self.exec(terms);
        let list = match self.lanes {
            Lanes::One(lane) => lane..lane + 1,
            Lanes::All => 0..self.setup.wave_size,
        };
        for lane in list {
            let mut active = terms.extract(exec, lane, 1);
            if self.binding.has_dpp() {
                let enabled = self.is_enabled(terms, lane);
                active = terms.and(active, enabled);
            }
            if terms.truth(active) == Some(false) {
                continue;
            }
            let (before, setting) = (self.clone(), self.setting());
            self.active = Some(active);
            let mut after = smt::evaluate(terms, self.sem, self, Some(lane), setting)?;
            after.active = None;
            self = <Machine<'_> as smt::Machine>::merge(terms, active, after, before)?;
        }
        for (target, value) in std::mem::take(&mut self.masks) {
            let value = match self.lanes {
                Lanes::All => value,
                // Only the lane's own bit is known. The name says which instruction the others are of.
                Lanes::One(lane) => {
                    let (program, masks) = self.executor;
                    masks.set(masks.get() + 1);
                    let name = format!("{OTHER_LANES}.{program}.{}", masks.get());
                    let others = terms.var(&name, Sort::Bits(64));
                    let bit = terms.extract(value, lane, 1);
                    with_bit(terms, others, lane, bit)
                }
            };
            match target {
                MaskTarget::Exec => {
                    self.write_scalars(terms, EXEC_LO as u32, self.setup.wave_size / 32, value)
                }
                MaskTarget::D0 => self.write_mask(terms, Role::D0, value),
                MaskTarget::Vcc => self.write_mask(terms, Role::Vcc, value),
            }
        }
        Ok(self)
    }

    fn operand_of(&self, role: Role) -> Option<Operand> {
        let list = if self.second { &self.binding.y } else { &self.binding.operands };
        list.iter().find(|o| o.role == role).copied()
    }
}

/// The variable that is the address of the first instruction.
pub const CODE: &str = "code";

/// The address of the first instruction, of which nothing is known.
pub fn code_base(terms: &mut Terms) -> Term {
    terms.var(CODE, Sort::Bits(64))
}
