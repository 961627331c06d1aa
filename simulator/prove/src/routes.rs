//! Where the bits of operands come from, and where those of results go. Reading and writing an operand only moves
//! bits: halves are selected, signs are flipped, parts are extended. Which ones is learned from the reference
//! executor, which is asked with registers of known content, so that nothing is said twice about operands.

use crate::setup::Setup;
use isa_export::smt::Unsupported;
use isa_spec::arith::mask;
use isa_spec::pcode::ir::{Expr, ExprKind, Place, PlaceKind, Role, Semantics, Shape, Stmt, Ty, Uses};
use isa_spec::source::Span;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use wavesim_engine::reference;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{Code, Operand, code};
use wavesim_machine::exec::context::Context;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::wave::{ALL_VGPRS, EXEC_HI, EXEC_LO, NULL, SGPRS};
use wavesim_machine::state::{Wave, Workgroup};

/// A register of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Register {
    /// A VGPR of the lane.
    Vector(u32),
    /// An SGPR, by operand code.
    Scalar(u32),
    /// The scalar condition code.
    Scc,
}

/// The origin of a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bit {
    /// A constant.
    Constant(bool),
    /// A bit of a register.
    Register { register: Register, bit: u32, inverted: bool },
}

/// The origins of a value's bits, the lowest first.
pub type Route = Rc<Vec<Bit>>;

/// What a write does to the registers that it changes: for each, the new bits, of the value (`Ok`) or constant
/// (`Err`), by position in the register; positions that are missing keep their bits.
pub type Effect = Rc<Vec<(Register, u32, Result<u32, bool>)>>;

type Key = (u16, u16, Vec<u32>, bool, String);

/// Learns routes, each once.
#[derive(Default)]
pub struct Routes {
    sources: RefCell<HashMap<Key, Result<Route, Unsupported>>>,
    effects: RefCell<HashMap<Key, Result<Effect, Unsupported>>>,
    /// The waves of experiments, which are the same for all operands.
    waves: RefCell<HashMap<(Content, bool, u32, u32), Wave>>,
}

/// What the registers have in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Content {
    /// All bits are equal.
    All(bool),
    /// [`pattern`].
    Pattern(u32),
    /// [`noise`].
    Noise(u32),
}

impl Content {
    fn word(self, index: usize) -> u32 {
        match self {
            Content::All(bit) => 0_u32.wrapping_sub(bit as u32),
            Content::Pattern(k) => pattern(index, k),
            Content::Noise(variant) => noise(index, variant),
        }
    }
}

/// An instruction and the part of its semantics that matters to operands.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub inst: &'a Inst,
    pub sem: &'a Semantics,
    /// The second half of VOPD.
    pub second: bool,
}

const REGISTERS: usize = ALL_VGPRS + SGPRS + 1;

fn register(index: usize) -> Register {
    match index {
        _ if index < ALL_VGPRS => Register::Vector(index as u32),
        _ if index < ALL_VGPRS + SGPRS => Register::Scalar((index - ALL_VGPRS) as u32),
        _ => Register::Scc,
    }
}

/// Reads a register, of a vector register lane 0.
fn word_of(wave: &Wave, register: Register) -> u32 {
    match register {
        Register::Vector(n) => wave.vgpr(0, n),
        Register::Scalar(n) => wave.sgprs[n as usize],
        Register::Scc => wave.scc,
    }
}

/// Returns whether a register is the same in all experiments. EXEC selects the lanes that run bodies of lane shape.
fn is_fixed(register: Register, lanes: bool) -> bool {
    let Register::Scalar(n) = register else { return false };
    n as usize == NULL || lanes && [EXEC_LO, EXEC_HI].contains(&(n as usize))
}

/// A wave whose registers have this content in all lanes. If bodies run for lanes, only the first one is active.
fn wave(setup: &Setup, lanes: bool, content: Content) -> Wave {
    let word = |at: usize| content.word(at);
    let mut wave = Wave::new(setup.wave_size);
    wave.mode = setup.mode;
    for at in 0..REGISTERS {
        match register(at) {
            Register::Vector(n) => {
                wave.set_lane_vec(0, n as usize, wavesim_machine::state::LaneVec::splat(word(at)))
            }
            Register::Scalar(n) if !is_fixed(register(at), lanes) => wave.sgprs[n as usize] = word(at),
            Register::Scalar(_) => {}
            Register::Scc => wave.scc = word(at) & 1,
        }
    }
    if lanes {
        wave.set_exec(1);
    }
    wave
}

/// Words that differ by experiment: those of experiment `k` have bit `k` of the number of each bit.
fn pattern(index: usize, k: u32) -> u32 {
    (0..32).fold(0, |word, bit| word | (((index * 32 + bit) >> k & 1) as u32) << bit)
}

/// Words without a pattern, to test what was learned.
fn noise(index: usize, variant: u32) -> u32 {
    let seed = (index as u32 + 1).wrapping_mul(0x9e37_79b9) ^ (variant + 1).wrapping_mul(0x85eb_ca6b);
    let mixed = (seed ^ seed >> 15).wrapping_mul(0x2c1b_3c6d);
    mixed ^ mixed >> 13
}

/// Tests of what was learned. A value of one bit that is no bit of a register, such as VCCZ, agrees with a random one
/// in half of them.
const TESTS: u32 = 32;

const EXPERIMENTS: u32 = (REGISTERS * 32).ilog2() + 1;

impl Routes {
    /// Calls a function with the wave of an experiment, which it leaves as it was.
    fn with_wave<T>(
        &self,
        setup: &Setup,
        lanes: bool,
        content: Content,
        call: impl FnOnce(&mut Wave) -> T,
    ) -> T {
        let mut waves = self.waves.borrow_mut();
        let key = (content, lanes, setup.wave_size, setup.mode);
        call(waves.entry(key).or_insert_with(|| wave(setup, lanes, content)))
    }

    /// Returns the origins of the bits of an operand's value in the first lane. `what` reads the value from a wave, which it
    /// leaves as it was.
    fn learn(
        &self,
        setup: &Setup,
        width: u32,
        lanes: bool,
        name: &str,
        what: impl Fn(&mut Wave) -> Option<u128>,
    ) -> Result<Route, Unsupported> {
        let unknown = || Unsupported(format!("{name} does not only move bits of registers"));
        let read = |content: Content| {
            let value = self.with_wave(setup, lanes, content, &what);
            value.map(|value| value & mask(width)).ok_or_else(unknown)
        };
        let (zeros, ones) = (read(Content::All(false))?, read(Content::All(true))?);
        let mut numbers = vec![0_usize; width as usize];
        for k in 0..EXPERIMENTS {
            let value = read(Content::Pattern(k))?;
            for (bit, number) in numbers.iter_mut().enumerate() {
                *number |= ((value >> bit & 1) as usize) << k;
            }
        }
        let origin = |(bit, number): (usize, usize)| {
            let (zero, one) = (zeros >> bit & 1 == 1, ones >> bit & 1 == 1);
            if zero == one {
                return Bit::Constant(zero);
            }
            let number = if zero { number ^ ((1 << EXPERIMENTS) - 1) } else { number };
            let register = register((number / 32).min(REGISTERS - 1));
            Bit::Register { register, bit: (number % 32) as u32, inverted: zero }
        };
        let route: Vec<Bit> = numbers.into_iter().enumerate().map(origin).collect();
        // The hypothesis is tested with other contents.
        for variant in 0..TESTS {
            let expected = read(Content::Noise(variant))?;
            let value = self.with_wave(setup, lanes, Content::Noise(variant), |wave| {
                route.iter().rev().fold(0_u128, |value, bit| {
                    let bit = match *bit {
                        Bit::Constant(bit) => bit,
                        Bit::Register { register, bit, inverted } => {
                            (word_of(wave, register) >> bit & 1 == 1) != inverted
                        }
                    };
                    value << 1 | bit as u128
                })
            });
            if value != expected {
                return Err(unknown());
            }
        }
        Ok(Rc::new(route))
    }

    /// Returns the origins of an operand's bits.
    pub fn source(
        &self,
        setup: &Setup,
        reader: Reader<'_>,
        role: Role,
        width: u32,
    ) -> Result<Route, Unsupported> {
        let Reader { inst, second, .. } = reader;
        let key = key(reader, format!("{role:?} {width}"));
        if let Some(found) = self.sources.borrow().get(&key) {
            return found.clone();
        }
        let only = bare(reader, Vec::new());
        // Without FI, DPP reads lanes only if they are active.
        let binding = wavesim_isa::operand::binding(setup.arch, inst.entry);
        let lanes = binding.mods.dpp_ctrl.is_some() && binding.mods.fi.is_none();
        if lanes && names_exec(setup, inst) {
            return Err(Unsupported("EXEC as an operand of lanes".into()));
        }
        let route = self.learn(setup, width, lanes, &format!("operand {role:?}"), |wave| {
            let values = reference::operands(setup.arch, inst, &only, second, wave, &[role], 1);
            values.first().map(|lanes| lanes.first().copied().unwrap_or(0))
        });
        self.sources.borrow_mut().insert(key, route.clone());
        route
    }

    /// Returns the origins of a dword of an operand, as another lane has it.
    pub fn dword(
        &self,
        setup: &Setup,
        reader: Reader<'_>,
        role: Role,
        index: u32,
    ) -> Result<Route, Unsupported> {
        let key = key(reader, format!("{role:?}[{index}]"));
        if let Some(found) = self.sources.borrow().get(&key) {
            return found.clone();
        }
        let constant = |value: u32| Box::new(expr(ExprKind::Const(value as u128), Ty::U(32)));
        let value = ExprKind::OperandLane { role, lane: constant(0), index: constant(index) };
        let body = to_sgpr(value);
        let lanes = runs_lanes(reader);
        if lanes && names_exec(setup, reader.inst) {
            return Err(Unsupported("EXEC as an operand of lanes".into()));
        }
        let route = self.learn(setup, 32, lanes, &format!("operand {role:?}"), |wave| {
            let (before, scc, pc) = (wave.sgprs[0], wave.scc, wave.pc);
            run(setup, reader, &body, wave)?;
            (wave.scc, wave.pc) = (scc, pc);
            Some(std::mem::replace(&mut wave.sgprs[0], before) as u128)
        });
        self.sources.borrow_mut().insert(key, route.clone());
        route
    }

    /// Returns the number of an operand's register.
    pub fn index(&self, setup: &Setup, reader: Reader<'_>, role: Role) -> Result<u32, Unsupported> {
        let mut wave = wave(setup, runs_lanes(reader), Content::All(false));
        run(setup, reader, &to_sgpr(ExprKind::OperandIndex(role)), &mut wave)
            .map(|()| wave.sgprs[0])
            .ok_or_else(|| Unsupported(format!("the number of operand {role:?}")))
    }

    /// Returns what writing a value of a width to an operand does.
    pub fn effect(
        &self,
        setup: &Setup,
        reader: Reader<'_>,
        role: Role,
        width: u32,
    ) -> Result<Effect, Unsupported> {
        let key = key(reader, format!("write {role:?} {width}"));
        if let Some(found) = self.effects.borrow().get(&key) {
            return found.clone();
        }
        let effect = self.learn_effect(setup, reader, role, width);
        self.effects.borrow_mut().insert(key, effect.clone());
        effect
    }

    fn learn_effect(
        &self,
        setup: &Setup,
        reader: Reader<'_>,
        role: Role,
        width: u32,
    ) -> Result<Effect, Unsupported> {
        let lanes = runs_lanes(reader);
        let unknown = || Unsupported(format!("the write of operand {role:?} does not only move bits"));
        let mut scratch = self.with_wave(setup, lanes, Content::All(false), |wave| wave.clone());
        let mut after = |content: Content, value: u128| -> Result<Vec<u32>, Unsupported> {
            let wave = &mut scratch;
            self.with_wave(setup, lanes, content, |start| wave.clone_from(start));
            let place = Place { kind: PlaceKind::Operand(role), ty: Ty::B(width as u16) };
            let value = expr(ExprKind::Const(value & mask(width)), Ty::B(width as u16));
            let body = vec![Stmt::Assign { place, value, span: Span::default() }];
            run(setup, reader, &body, wave).ok_or_else(unknown)?;
            Ok((0..REGISTERS).map(|at| word_of(wave, register(at))).collect())
        };
        let (clear, set) = (Content::All(false), Content::All(true));
        let [clear0, clear1, set0, set1] =
            [after(clear, 0)?, after(clear, u128::MAX)?, after(set, 0)?, after(set, u128::MAX)?];
        let bits = (0..7).map(|k| (0..128).fold(0_u128, |value, bit| value | (bit >> k & 1) << bit));
        let experiments = bits.map(|value| after(clear, value)).collect::<Result<Vec<_>, _>>()?;
        let mut effect = Vec::new();
        for at in (0..REGISTERS).filter(|at| !is_fixed(register(*at), lanes)) {
            let bits = if register(at) == Register::Scc { 1 } else { 32 };
            for bit in 0..bits {
                let [a, b, c, d] = [&clear0, &clear1, &set0, &set1].map(|words| words[at] >> bit & 1 == 1);
                let origin = match (a, b, c, d) {
                    (false, false, true, true) => continue,
                    (false, true, false, true) => {
                        let number = (0..).zip(&experiments);
                        Ok(number.fold(0, |sum, (k, words)| sum | (words[at] >> bit & 1) << k))
                    }
                    (a, b, c, d) if [b, c, d] == [a; 3] => Err(a),
                    _ => return Err(unknown()),
                };
                effect.push((register(at), bit, origin));
            }
        }
        // The hypothesis is tested with another value and other contents.
        let value = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210_u128.rotate_left(13);
        let mut expected: Vec<u32> = self.with_wave(setup, lanes, Content::Noise(0), |wave| {
            (0..REGISTERS).map(|at| word_of(wave, register(at))).collect()
        });
        let index = |register: Register| match register {
            Register::Vector(n) => n as usize,
            Register::Scalar(n) => ALL_VGPRS + n as usize,
            Register::Scc => REGISTERS - 1,
        };
        for (register, bit, origin) in &effect {
            let new = match origin {
                Ok(from) => value >> from & 1 == 1,
                Err(constant) => *constant,
            };
            let word = &mut expected[index(*register)];
            *word = *word & !(1 << bit) | (new as u32) << bit;
        }
        if after(Content::Noise(0), value)? == expected { Ok(Rc::new(effect)) } else { Err(unknown()) }
    }
}

/// Returns whether EXEC is an operand.
fn names_exec(setup: &Setup, inst: &Inst) -> bool {
    let binding = wavesim_isa::operand::binding(setup.arch, inst.entry);
    let exec = |o: &Operand| {
        let code = binding.value(inst, o).map(|value| code(setup.arch, o, value));
        matches!(code, Some(Code::Sgpr(n)) if [EXEC_LO, EXEC_HI].contains(&(n as usize)))
    };
    binding.operands.iter().any(exec)
}

fn runs_lanes(reader: Reader<'_>) -> bool {
    reader.sem.shape == Shape::Lane
}

fn key(reader: Reader<'_>, what: String) -> Key {
    let what = format!("{what} {:?} {:?}", reader.sem.shape, reader.sem.uses.fields);
    (reader.inst.entry, reader.inst.entry_y, reader.inst.fields.to_vec(), reader.second, what)
}

fn expr(kind: ExprKind, ty: Ty) -> Expr {
    Expr { kind, ty, span: Span::default() }
}

/// A body that writes a value to s0.
fn to_sgpr(value: ExprKind) -> Vec<Stmt> {
    let reg = Box::new(expr(ExprKind::Const(0), Ty::U(32)));
    let place = Place { kind: PlaceKind::Sgpr { reg }, ty: Ty::B(32) };
    vec![Stmt::Assign { place, value: expr(value, Ty::B(32)), span: Span::default() }]
}

/// Another body for an instruction, which has the same operands.
fn bare(reader: Reader<'_>, body: Vec<Stmt>) -> Semantics {
    Semantics {
        names: Vec::new(),
        shape: reader.sem.shape,
        locals: Vec::new(),
        body,
        uses: Uses { fields: reader.sem.uses.fields.clone(), ..Uses::default() },
        ignores_mode: false,
        definitions: Default::default(),
        text: String::new(),
        span: Span::default(),
    }
}

/// Runs another body with the operands of an instruction.
fn run(setup: &Setup, reader: Reader<'_>, body: &[Stmt], wave: &mut Wave) -> Option<()> {
    let sem = bare(reader, body.to_vec());
    let nothing = Semantics { body: Vec::new(), ..sem.clone() };
    let (memory, mut workgroup) = (Memory::empty(), Workgroup::new(1));
    let mut context = Context::new(&memory, &mut [], &mut workgroup);
    let halves = if reader.second { (&nothing, Some(&sem)) } else { (&sem, None) };
    reference::step(setup.arch, reader.inst, halves.0, halves.1, wave, &mut context).ok()
}
