//! The machine whose operands, state and memory are the arguments of exported functions.

use crate::smt::{self, Sort, Term, Terms, Unsupported};
use crate::{BUFFER_END, role_name, snake};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::*;
use isa_spec::pcode::visit::{self, Visitor};
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, Unsupported>;

fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(Unsupported(what.into()))
}

/// What a body leaves, by the names of what it has written: operands (`D0`), state (`scc`), memory.
#[derive(Clone)]
pub(super) struct Symbolic<'a> {
    pub shape: Shape,
    pub widths: &'a BTreeMap<Role, u32>,
    /// The values of fields; without them, any, and there are no control builtins.
    pub fields: Option<&'a BTreeMap<FieldName, Field>>,
    pub written: BTreeMap<String, Term>,
}

/// The values that a field of an encoding has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// This one.
    Fixed(u32),
    /// Those of so many bits, of which the highest is repeated if they are signed.
    Bits {
        /// The number of bits, from 1 to 32.
        width: u32,
        /// Whether they are signed.
        signed: bool,
    },
}

/// The result that stands for the control builtins that were called.
const CONTROL: &str = "control";

/// Returns the largest width in which a body accesses each operand.
pub fn widths(sem: &Semantics) -> BTreeMap<Role, u32> {
    struct Widths(BTreeMap<Role, u32>);
    impl Widths {
        fn add(&mut self, role: Role, width: u32) {
            let known = self.0.entry(role).or_insert(0);
            *known = width.max(*known);
        }
    }
    impl<'a> Visitor<'a> for Widths {
        fn place(&mut self, place: &'a Place) {
            if let PlaceKind::Operand(role) = place.kind {
                self.add(role, place.ty.width());
            }
            visit::walk_place(self, place);
        }
        fn expr(&mut self, expr: &'a Expr) {
            if let ExprKind::Operand(role) = expr.kind {
                self.add(role, expr.ty.width());
            }
            visit::walk_expr(self, expr);
        }
    }
    let mut widths = Widths(BTreeMap::new());
    visit::walk_stmts(&mut widths, &sem.body);
    widths.0
}

impl Symbolic<'_> {
    fn get(&self, terms: &mut Terms, name: &str, sort: Sort) -> Term {
        match self.written.get(name) {
            Some(value) => *value,
            None => terms.var(name, sort),
        }
    }

    /// The current value of something that is written, or the argument.
    fn whole(&self, terms: &mut Terms, name: &str) -> Term {
        self.get(terms, name, sort(name, self.widths))
    }

    /// Bytes from an address on.
    fn bytes(&self, terms: &mut Terms, name: &str, address: Term, count: u32) -> Term {
        let memory = self.whole(terms, name);
        let width = terms.width(address);
        let mut value: Option<Term> = None;
        for k in 0..count {
            let offset = terms.constant(k as u128, width);
            let at = terms.add_bits(address, offset);
            let byte = terms.select(memory, at);
            value = Some(value.map_or(byte, |low| terms.concat(byte, low)));
        }
        value.unwrap_or_else(|| terms.constant(0, 8))
    }

    fn set_bytes(&mut self, terms: &mut Terms, name: &str, address: Term, value: Term, guard: Term) {
        let before = self.whole(terms, name);
        let (mut memory, width) = (before, terms.width(address));
        for k in 0..terms.width(value) / 8 {
            let offset = terms.constant(k as u128, width);
            let at = terms.add_bits(address, offset);
            let byte = terms.extract(value, 8 * k, 8);
            memory = terms.store(memory, at, byte);
        }
        let memory = terms.ite(guard, memory, before);
        self.written.insert(name.to_string(), memory);
    }

    /// The dword of a register: an array has bytes by lane (20 bits), number (10 bits) and byte (2 bits).
    fn register(&self, terms: &mut Terms, name: &str, lane: Term, number: Term) -> Term {
        let array = self.whole(terms, name);
        let mut value: Option<Term> = None;
        for k in 0..4 {
            let at = place_of_register(terms, lane, number, k);
            let byte = terms.select(array, at);
            value = Some(value.map_or(byte, |low| terms.concat(byte, low)));
        }
        value.unwrap_or(number)
    }

    fn set_register(&mut self, terms: &mut Terms, name: &str, lane: Term, number: Term, value: Term) {
        let mut array = self.whole(terms, name);
        for k in 0..4 {
            let at = place_of_register(terms, lane, number, k);
            let byte = terms.extract(value, 8 * k, 8);
            array = terms.store(array, at, byte);
        }
        self.written.insert(name.to_string(), array);
    }

    /// The array of an address space, and the address in it.
    fn place(&self, terms: &mut Terms, space: Space, address: Term) -> Result<(&'static str, Term)> {
        Ok(match space {
            Space::Global | Space::Flat | Space::Buffer | Space::Scalar => {
                ("memory", terms.resize(address, 64))
            }
            Space::Lds => ("lds", terms.resize(address, 32)),
            Space::Scratch => ("scratch", terms.resize(address, 32)),
            Space::Word => return unsupported("memory of words"),
        })
    }
}

/// Whether a builtin changes no operands, state or memory: waits, and what concerns caches.
pub fn has_no_effect(builtin: Control) -> bool {
    let nothing = matches!(builtin, Control::Nop | Control::InvalidateCaches | Control::WriteBackCaches);
    nothing || builtin.is_wait()
}

/// The condition that an access takes place: those of buffers with the highest bit of the address set do not.
pub fn inside(terms: &mut Terms, space: Space, address: Term) -> Term {
    if space != Space::Buffer {
        return terms.bool(true);
    }
    let outside = terms.extract(address, BUFFER_END.trailing_zeros(), 1);
    terms.not(outside)
}

/// The index of a byte of a register.
fn place_of_register(terms: &mut Terms, lane: Term, number: Term, byte: u32) -> Term {
    let (lane, number, byte) =
        (terms.resize(lane, 20), terms.resize(number, 10), terms.constant(byte as u128, 2));
    let below = terms.concat(number, byte);
    terms.concat(lane, below)
}

/// The sort of an argument.
pub(super) fn sort(name: &str, widths: &BTreeMap<Role, u32>) -> Sort {
    match name {
        "memory" => Sort::Memory(64),
        "lds" | "scratch" | "vgprs" | "sgprs" => Sort::Memory(32),
        "scc" | "clamp" => Sort::Bits(1),
        CONTROL | "exec" | "exec_out" | "vcc" | "VCC" | "VCC_OUT" | "pc" => Sort::Bits(64),
        "scratch_base" | "shared_base" | "private_base" | "trap_base" => Sort::Bits(64),
        _ if name.ends_with(".lanes") => Sort::Memory(32),
        _ => Sort::Bits(
            widths.iter().find(|(one, _)| role_name(**one) == name).map_or(32, |(_, width)| *width),
        ),
    }
}

impl smt::Machine for Symbolic<'_> {
    fn operand(&mut self, terms: &mut Terms, one: Role, _lane: Option<u32>) -> Result<Term> {
        Ok(self.whole(terms, &role_name(one)))
    }

    fn destination(&mut self, terms: &mut Terms, one: Role, lane: Option<u32>) -> Result<Term> {
        match one {
            Role::Vcc => Ok(self.whole(terms, "VCC_OUT")),
            _ => self.operand(terms, one, lane),
        }
    }

    fn set_operand(&mut self, terms: &mut Terms, one: Role, _lane: Option<u32>, value: Term) -> Result<()> {
        let name = if one == Role::Vcc { "VCC_OUT".to_string() } else { role_name(one) };
        let old = self.whole(terms, &name);
        let (of, width) = (terms.width(old), terms.width(value));
        let value = if width < of {
            let above = terms.extract(old, width, of - width);
            terms.concat(above, value)
        } else {
            terms.resize(value, of)
        };
        self.written.insert(name, value);
        Ok(())
    }

    fn operand_index(&mut self, terms: &mut Terms, one: Role) -> Result<Term> {
        Ok(terms.var(&format!("{}.index", role_name(one)), Sort::Bits(32)))
    }

    fn operand_lane(&mut self, terms: &mut Terms, one: Role, lane: Term, index: Term) -> Result<Term> {
        Ok(self.register(terms, &format!("{}.lanes", role_name(one)), lane, index))
    }

    fn field(&mut self, terms: &mut Terms, name: &str) -> Term {
        let (of_any, own) = (format!("field.{}", name.to_lowercase()), "clamp");
        match self.fields.map(|fields| fields.get(name)) {
            Some(_) if name.to_lowercase() == own => {
                let clamp = terms.var(own, Sort::Bits(1));
                terms.zero_extend(clamp, 32)
            }
            Some(Some(Field::Fixed(value))) => terms.constant(*value as u128, 32),
            Some(Some(Field::Bits { width, signed })) => {
                let bits = terms.var(&of_any, Sort::Bits(*width));
                if *signed { terms.sign_extend(bits, 32) } else { terms.zero_extend(bits, 32) }
            }
            Some(None) | None => terms.var(&of_any, Sort::Bits(32)),
        }
    }

    fn clamp(&mut self, terms: &mut Terms) -> Term {
        terms.var("clamp", Sort::Bits(1))
    }

    fn state(&mut self, terms: &mut Terms, state: State, _lane: Option<u32>) -> Result<Term> {
        let low = |terms: &mut Terms, whole: Term| terms.extract(whole, 0, 32);
        let is = |this: &Self, terms: &mut Terms, name: &str, value: u128| {
            let whole = this.whole(terms, name);
            let number = terms.constant(value, terms.width(whole));
            terms.eq(whole, number)
        };
        Ok(match state {
            State::ExecLo | State::VccLo => {
                let whole = self.whole(terms, if state == State::ExecLo { "exec" } else { "vcc" });
                low(terms, whole)
            }
            State::ExecHi | State::VccHi => {
                let whole = self.whole(terms, if state == State::ExecHi { "exec" } else { "vcc" });
                terms.extract(whole, 32, 32)
            }
            State::Execz => is(self, terms, "exec", 0),
            State::Vccz => is(self, terms, "vcc", 0),
            State::Wave32 => is(self, terms, "wave_size", 32),
            State::Wave64 => is(self, terms, "wave_size", 64),
            State::LaneId => terms.var("lane", Sort::Bits(32)),
            // The state that a body may write keeps its name.
            _ => self.whole(terms, &snake(&format!("{state:?}"))),
        })
    }

    fn state_destination(&mut self, terms: &mut Terms, state: State) -> Result<Term> {
        match state {
            State::Exec if self.shape == Shape::Lane => Ok(self.whole(terms, "exec_out")),
            _ => self.state(terms, state, None),
        }
    }

    fn set_state(&mut self, terms: &mut Terms, state: State, value: Term) -> Result<()> {
        let part = |this: &mut Self, terms: &mut Terms, name: &str, high: bool| {
            let old = this.whole(terms, name);
            let (lo, hi) = (terms.extract(old, 0, 32), terms.extract(old, 32, 32));
            let word = terms.resize(value, 32);
            let whole = if high { terms.concat(word, lo) } else { terms.concat(hi, word) };
            this.written.insert(name.to_string(), whole);
        };
        match state {
            State::ExecLo | State::ExecHi => part(self, terms, "exec", state == State::ExecHi),
            State::VccLo | State::VccHi => part(self, terms, "vcc", state == State::VccHi),
            State::Exec | State::Vcc | State::Scc | State::M0 | State::Pc | State::Mode => {
                let lane = state == State::Exec && self.shape == Shape::Lane;
                let name = if lane { "exec_out".to_string() } else { snake(&format!("{state:?}")) };
                let Sort::Bits(width) = sort(&name, self.widths) else { return Ok(()) };
                let value = terms.resize(value, width);
                self.written.insert(name, value);
            }
            _ => return unsupported("the pseudocode writes state that is read-only"),
        }
        Ok(())
    }

    fn mask_position(&self, _lane: Option<u32>) -> Option<u32> {
        None
    }

    fn vgpr(&mut self, terms: &mut Terms, lane: Term, reg: Term) -> Result<Term> {
        Ok(self.register(terms, "vgprs", lane, reg))
    }

    fn set_vgpr(&mut self, terms: &mut Terms, lane: Term, reg: Term, value: Term) -> Result<()> {
        let value = terms.resize(value, 32);
        self.set_register(terms, "vgprs", lane, reg, value);
        Ok(())
    }

    fn sgpr(&mut self, terms: &mut Terms, reg: Term) -> Result<Term> {
        let zero = terms.constant(0, 32);
        Ok(self.register(terms, "sgprs", zero, reg))
    }

    fn set_sgpr(&mut self, terms: &mut Terms, reg: Term, value: Term) -> Result<()> {
        let (zero, value) = (terms.constant(0, 32), terms.resize(value, 32));
        self.set_register(terms, "sgprs", zero, reg, value);
        Ok(())
    }

    fn load(
        &mut self,
        terms: &mut Terms,
        space: Space,
        address: Term,
        bytes: u32,
        _lane: Option<u32>,
    ) -> Result<Term> {
        let (name, address) = self.place(terms, space, address)?;
        let inside = inside(terms, space, address);
        let value = self.bytes(terms, name, address, bytes);
        let zero = terms.constant(0, terms.width(value));
        Ok(terms.ite(inside, value, zero))
    }

    fn store(
        &mut self,
        terms: &mut Terms,
        space: Space,
        address: Term,
        value: Term,
        _lane: Option<u32>,
    ) -> Result<()> {
        let (name, address) = self.place(terms, space, address)?;
        let inside = inside(terms, space, address);
        self.set_bytes(terms, name, address, value, inside);
        Ok(())
    }

    fn control(&mut self, terms: &mut Terms, builtin: Control, args: &[Term]) -> Result<Term> {
        if has_no_effect(builtin) {
            return Ok(terms.constant(0, 64));
        }
        let mut name = builtin.def().name.to_string();
        if self.fields.is_none() {
            return unsupported(format!("`{name}` is no function of operands and state"));
        }
        // Nothing is known of it but that it depends on its arguments, and on all that was done before. After what ends the
        // body, that is compared anyway.
        let mut from = args.to_vec();
        from.push(self.whole(terms, CONTROL));
        let ends = smt::ends(builtin);
        for (written, value) in self.written.iter().filter(|(written, _)| !ends && *written != CONTROL) {
            name += &format!(".{written}");
            from.push(*value);
        }
        let after = terms.apply(&format!("{name}.control"), from.clone(), 64);
        self.written.insert(CONTROL.into(), after);
        Ok(terms.apply(&name, from, 64))
    }

    fn merge(terms: &mut Terms, cond: Term, yes: Self, no: Self) -> Result<Self> {
        let mut merged = yes.clone();
        for name in yes.written.keys().chain(no.written.keys()) {
            let (a, b) = (yes.whole(terms, name), no.whole(terms, name));
            let value = terms.ite(cond, a, b);
            merged.written.insert(name.clone(), value);
        }
        Ok(merged)
    }
}
