//! Runs bodies from text on a machine of plain maps.

mod conversions;
mod integers;
mod manual;
mod statements;

use isa_spec::arith::{self, FloatEnv};
use isa_spec::canonical;
use isa_spec::eval::*;
use isa_spec::pcode::builtins::*;
use isa_spec::pcode::check::check;
use isa_spec::pcode::ir::*;
use isa_spec::pcode::sig::InstrSig;
use isa_spec::source::{SourceMap, Span};
use std::collections::BTreeMap;

/// A machine with operands, state, registers and memory in maps; absent entries read zero.
#[derive(Default)]
struct Fake {
    operands: BTreeMap<Role, u128>,
    fields: BTreeMap<String, u32>,
    states: BTreeMap<State, u128>,
    vgprs: BTreeMap<(u32, u32), u32>,
    sgprs: BTreeMap<u32, u32>,
    memory: BTreeMap<u64, u8>,
    mode: u32,
    clamp: bool,
    /// The control builtins called.
    calls: Vec<(Control, Vec<u128>)>,
    /// Assigned values and evaluated conditions, in order.
    trace: Vec<String>,
    /// Stores fail beyond this address.
    limit: Option<u64>,
}

impl Machine for Fake {
    fn operand(&mut self, role: Role, _: Option<u32>) -> u128 {
        self.operands.get(&role).copied().unwrap_or(0)
    }

    fn destination(&mut self, role: Role, _: Option<u32>) -> u128 {
        self.operands.get(&role).copied().unwrap_or(0)
    }

    fn set_operand(&mut self, role: Role, _: Option<u32>, value: u128, width: u32) {
        let old = self.operands.get(&role).copied().unwrap_or(0);
        self.operands.insert(role, old & !arith::mask(width) | value);
    }

    fn operand_index(&mut self, role: Role) -> u32 {
        match role {
            Role::S0 => 10,
            Role::D0 => 20,
            _ => 0,
        }
    }

    fn operand_lane(&mut self, role: Role, lane: u32, index: u32) -> u32 {
        let register = self.operand_index(role) + index;
        self.vgpr(lane, register)
    }

    fn field(&mut self, name: &str) -> u32 {
        self.fields.get(name).copied().unwrap_or(0)
    }

    fn state(&mut self, state: State, lane: Option<u32>) -> u128 {
        match state {
            State::LaneId => lane.unwrap_or(0) as u128,
            _ => self.states.get(&state).copied().unwrap_or(0),
        }
    }

    fn state_destination(&mut self, state: State) -> u128 {
        self.state(state, None)
    }

    fn set_state(&mut self, state: State, value: u128) -> Result<(), Stop> {
        if state == State::LaneId {
            return Err(Stop::Machine(7));
        }
        self.states.insert(state, value);
        Ok(())
    }

    fn vgpr(&mut self, lane: u32, reg: u32) -> u32 {
        self.vgprs.get(&(lane, reg)).copied().unwrap_or(0)
    }

    fn old_vgpr(&mut self, lane: u32, reg: u32) -> u32 {
        self.vgpr(lane, reg)
    }

    fn set_vgpr(&mut self, lane: u32, reg: u32, value: u32) {
        self.vgprs.insert((lane, reg), value);
    }

    fn sgpr(&mut self, reg: u32) -> u32 {
        self.sgprs.get(&reg).copied().unwrap_or(0)
    }

    fn set_sgpr(&mut self, reg: u32, value: u32) {
        self.sgprs.insert(reg, value);
    }

    fn load(&mut self, _: Space, addr: u64, bytes: u32, _: Option<u32>) -> Result<u128, Stop> {
        Ok((0..bytes as u64)
            .rev()
            .fold(0, |value, at| value << 8 | self.memory.get(&(addr + at)).copied().unwrap_or(0) as u128))
    }

    fn store(&mut self, _: Space, addr: u64, bytes: u32, value: u128, _: Option<u32>) -> Result<(), Stop> {
        if self.limit.is_some_and(|limit| addr >= limit) {
            return Err(Stop::Machine(1));
        }
        for at in 0..bytes {
            self.memory.insert(addr + at as u64, (value >> (8 * at)) as u8);
        }
        Ok(())
    }

    fn control(&mut self, builtin: Control, args: &[u128]) -> Result<u128, Stop> {
        self.calls.push((builtin, args.to_vec()));
        if builtin == Control::EndPgm { Err(Stop::Machine(2)) } else { Ok(5) }
    }

    fn env(&self) -> FloatEnv {
        FloatEnv::from_mode(self.mode)
    }

    fn clamp(&self) -> bool {
        self.clamp
    }

    fn assigned(&mut self, _: &Stmt, value: u128, _: Option<u32>) {
        self.trace.push(format!("={value:x}"));
    }

    fn decided(&mut self, _: Span, taken: bool, _: Option<u32>) {
        self.trace.push(format!("?{}", taken as u32));
    }
}

/// Compiles the body of a vector instruction that is in no XML, so that every operand is allowed.
fn compile(body: &str) -> Semantics {
    compile_as("V_TEST", body)
}

/// Like [`compile`], for another instruction; `S_…` is a scalar one.
pub(crate) fn compile_as(name: &str, body: &str) -> Semantics {
    compile_text(name, &format!("instruction {name} {{\n{body}\n}}\n"))
}

/// Like [`compile`], with definitions that the body uses.
pub(crate) fn compile_with(definitions: &str, body: &str) -> Semantics {
    compile_text("V_TEST", &format!("{definitions}instruction V_TEST {{\n{body}\n}}\n"))
}

fn compile_text(name: &str, text: &str) -> Semantics {
    let mut sources = SourceMap::default();
    let file = sources.add("test.pcode", text.to_string());
    let (parsed, errors) = canonical::parse_all(&sources, &[file]);
    assert!(errors.is_empty(), "{errors:?}");
    let (library, errors) = parsed.library();
    assert!(errors.is_empty(), "{errors:?}");
    let blocks = parsed.blocks();
    let Some((_, block)) = blocks.first() else { panic!("no instruction in {text}") };
    match check(&sources, &library, block, &InstrSig::permissive(name), None) {
        Ok((sem, _)) => sem,
        Err(errors) => panic!("{errors:?}"),
    }
}

/// Runs a body on `machine`, as lane 0 if it is lane-shaped.
fn run(body: &str, machine: &mut Fake) -> Result<(), Stop> {
    let sem = compile(body);
    eval(&sem, machine, (sem.shape == Shape::Lane).then_some(0))
}

/// Runs a body with these S0, S1, S2 and returns D0.
pub(crate) fn run_sem(sem: &Semantics, inputs: &[u128]) -> u128 {
    // Nearest even, denormals kept.
    let mut machine = Fake { mode: 0xf0, ..Fake::default() };
    machine.operands = [Role::S0, Role::S1, Role::S2].into_iter().zip(inputs.iter().copied()).collect();
    eval(sem, &mut machine, (sem.shape == Shape::Lane).then_some(0)).unwrap();
    machine.operands.get(&Role::D0).copied().unwrap_or(0)
}

/// Compiles and runs a body with these S0, S1, S2 and returns D0.
fn eval_body(body: &str, inputs: &[u128]) -> u128 {
    run_sem(&compile(body), inputs)
}

#[track_caller]
fn check_cases(cases: &[(&str, &[u128], u128)]) {
    for &(body, inputs, expected) in cases {
        let got = eval_body(body, inputs);
        assert_eq!(got, expected, "{body} with {inputs:x?}: {got:x}, expected {expected:x}");
    }
}

fn f32_bits(x: f32) -> u128 {
    x.to_bits() as u128
}

fn f64_bits(x: f64) -> u128 {
    x.to_bits() as u128
}
