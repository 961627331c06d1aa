//! Functions of `wavesim isa export --format smtlib` on the operands of conformance vectors: what the reference
//! evaluator computes, as assertions for solvers.

use isa_spec::arith::{FloatEnv, mask};
use isa_spec::eval::{self, Machine, Stop};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Role, Semantics, Shape, Space, State};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

/// One execution of a body, by the names of the exported functions' arguments and results.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    inputs: BTreeMap<String, u128>,
    /// Bytes of memory and registers that the body has read before it wrote them.
    bytes: BTreeMap<(&'static str, u64), u8>,
    /// Bytes of operands in any lane.
    lanes: BTreeMap<(String, u64), u8>,
    results: BTreeMap<String, u128>,
    stores: BTreeMap<(&'static str, u64), u8>,
}

/// The executions of each body, by the body's address.
pub type Cases = HashMap<usize, BTreeSet<Case>>;

thread_local! {
    static CASES: RefCell<Cases> = RefCell::default();
}

/// The number of executions that are kept of a body.
pub const PER_BODY: usize = 24;

/// Returns the executions since the last call.
pub fn taken() -> Cases {
    CASES.take()
}

/// Runs a body by the reference evaluator in the MODE of the exported functions, and keeps what it has done.
pub fn record(sem: &Semantics, machine: &mut dyn Machine, lane: Option<u32>) -> Result<(), Stop> {
    let mut recorder = Recorder { inner: machine, shape: sem.shape, case: Case::default() };
    let clamp = recorder.inner.clamp();
    recorder.case.inputs.insert("clamp".into(), clamp as u128);
    recorder.case.inputs.insert("lane".into(), lane.unwrap_or(0) as u128);
    eval::eval(sem, &mut recorder, lane)?;
    let case = recorder.case;
    CASES.with_borrow_mut(|cases| {
        let list = cases.entry(std::ptr::from_ref(sem) as usize).or_default();
        if list.len() < PER_BODY {
            list.insert(case);
        }
    });
    Ok(())
}

struct Recorder<'a> {
    inner: &'a mut dyn Machine,
    shape: Shape,
    case: Case,
}

/// The place of a dword among the bytes of registers.
fn register(lane: u32, number: u32) -> u64 {
    lane as u64 * 4096 + number as u64 * 4
}

/// The name of the argument that holds a state.
fn argument(state: State) -> Option<(&'static str, State)> {
    Some(match state {
        State::Exec | State::ExecLo | State::ExecHi | State::Execz => ("exec", State::Exec),
        State::Vcc | State::VccLo | State::VccHi | State::Vccz => ("vcc", State::Vcc),
        State::Scc => ("scc", State::Scc),
        State::M0 => ("m0", State::M0),
        State::Pc => ("pc", State::Pc),
        State::InstSize => ("inst_size", State::InstSize),
        State::Mode => ("mode", State::Mode),
        State::Status => ("status", State::Status),
        State::Wave32 | State::Wave64 | State::WaveSize => ("wave_size", State::WaveSize),
        State::VgprSize => ("vgpr_size", State::VgprSize),
        State::WaveId => ("wave_id", State::WaveId),
        State::LdsSize => ("lds_size", State::LdsSize),
        State::ScratchBase => ("scratch_base", State::ScratchBase),
        State::SharedBase => ("shared_base", State::SharedBase),
        State::PrivateBase => ("private_base", State::PrivateBase),
        State::TrapBase => ("trap_base", State::TrapBase),
        State::LaneId => return None,
    })
}

fn array(space: Space) -> &'static str {
    match space {
        Space::Lds => "lds",
        Space::Scratch => "scratch",
        _ => "memory",
    }
}

impl Recorder<'_> {
    fn input(&mut self, name: String, value: u128) {
        if !self.case.results.contains_key(&name) {
            self.case.inputs.entry(name).or_insert(value);
        }
    }

    fn result(&mut self, name: &str, value: u128) {
        self.case.results.insert(name.into(), value);
    }

    fn read(&mut self, name: &'static str, address: u64, bytes: &[u8]) {
        for (k, byte) in (address..).zip(bytes) {
            if !self.case.stores.contains_key(&(name, k)) {
                self.case.bytes.entry((name, k)).or_insert(*byte);
            }
        }
    }

    fn wrote(&mut self, name: &'static str, address: u64, bytes: &[u8]) {
        self.case.stores.extend((address..).zip(bytes).map(|(k, byte)| ((name, k), *byte)));
    }
}

impl Machine for Recorder<'_> {
    fn operand(&mut self, role: Role, lane: Option<u32>) -> u128 {
        let value = self.inner.operand(role, lane);
        self.input(format!("{role:?}").to_uppercase(), value);
        value
    }

    fn destination(&mut self, role: Role, lane: Option<u32>) -> u128 {
        let value = self.inner.destination(role, lane);
        self.input(destination(role), value);
        value
    }

    fn set_operand(&mut self, role: Role, lane: Option<u32>, value: u128, width: u32) {
        let name = destination(role);
        let old = match self.case.results.get(&name) {
            Some(old) => *old,
            None => self.destination(role, lane),
        };
        self.case.results.insert(name, old & !mask(width) | value);
        self.inner.set_operand(role, lane, value, width);
    }

    fn operand_index(&mut self, role: Role) -> u32 {
        let value = self.inner.operand_index(role);
        self.input(
            format!("{role:?}.index").replace(&format!("{role:?}"), &format!("{role:?}").to_uppercase()),
            value as u128,
        );
        value
    }

    fn operand_lane(&mut self, role: Role, lane: u32, index: u32) -> u32 {
        let value = self.inner.operand_lane(role, lane, index);
        let name = format!("{}.lanes", format!("{role:?}").to_uppercase());
        for (at, byte) in (register(lane, index)..).zip(value.to_le_bytes()) {
            self.case.lanes.insert((name.clone(), at), byte);
        }
        value
    }

    fn field(&mut self, name: &str) -> u32 {
        let value = self.inner.field(name);
        self.input(format!("field.{}", name.to_lowercase()), value as u128);
        value
    }

    fn state(&mut self, state: State, lane: Option<u32>) -> u128 {
        if let Some((name, whole)) = argument(state) {
            let value = self.inner.state(whole, lane);
            self.input(name.into(), value);
        }
        self.inner.state(state, lane)
    }

    fn state_destination(&mut self, state: State) -> u128 {
        let value = self.inner.state_destination(state);
        if state == State::Exec && self.shape == Shape::Lane {
            self.input("exec_out".into(), value);
            return value;
        }
        self.state(state, None)
    }

    fn set_state(&mut self, state: State, value: u128) -> Result<(), Stop> {
        let lane = state == State::Exec && self.shape == Shape::Lane;
        if let Some((name, whole)) = argument(state).filter(|_| !lane) {
            // A part that is not written is that of before.
            let old = self.inner.state(whole, None);
            self.input(name.into(), old);
        }
        self.inner.set_state(state, value)?;
        if lane {
            self.result("exec_out", value);
        } else if state == State::Pc {
            self.result("pc", value);
        } else if let Some((name, whole)) = argument(state) {
            let new = if whole == state { value } else { self.inner.state(whole, None) };
            self.result(name, new);
        }
        Ok(())
    }

    fn vgpr(&mut self, lane: u32, reg: u32) -> u32 {
        let value = self.inner.vgpr(lane, reg);
        self.read("vgprs", register(lane, reg), &value.to_le_bytes());
        value
    }

    fn old_vgpr(&mut self, lane: u32, reg: u32) -> u32 {
        let value = self.inner.old_vgpr(lane, reg);
        self.read("vgprs", register(lane, reg), &value.to_le_bytes());
        value
    }

    fn set_vgpr(&mut self, lane: u32, reg: u32, value: u32) {
        self.wrote("vgprs", register(lane, reg), &value.to_le_bytes());
        self.inner.set_vgpr(lane, reg, value);
    }

    fn sgpr(&mut self, reg: u32) -> u32 {
        let value = self.inner.sgpr(reg);
        self.read("sgprs", register(0, reg), &value.to_le_bytes());
        value
    }

    fn set_sgpr(&mut self, reg: u32, value: u32) {
        self.wrote("sgprs", register(0, reg), &value.to_le_bytes());
        self.inner.set_sgpr(reg, value);
    }

    fn load(&mut self, space: Space, addr: u64, bytes: u32, lane: Option<u32>) -> Result<u128, Stop> {
        let value = self.inner.load(space, addr, bytes, lane)?;
        if space != Space::Buffer || addr >> 63 == 0 {
            self.read(array(space), addr, &value.to_le_bytes()[..bytes as usize]);
        }
        Ok(value)
    }

    fn store(
        &mut self,
        space: Space,
        addr: u64,
        bytes: u32,
        value: u128,
        lane: Option<u32>,
    ) -> Result<(), Stop> {
        self.inner.store(space, addr, bytes, value, lane)?;
        if space != Space::Buffer || addr >> 63 == 0 {
            self.wrote(array(space), addr, &value.to_le_bytes()[..bytes as usize]);
        }
        Ok(())
    }

    fn control(&mut self, builtin: Control, args: &[u128]) -> Result<u128, Stop> {
        self.inner.control(builtin, args)
    }

    fn env(&self) -> FloatEnv {
        FloatEnv::from_mode(isa_export::smtlib::MODE)
    }

    fn clamp(&self) -> bool {
        self.inner.clamp()
    }
}

fn destination(role: Role) -> String {
    if role == Role::Vcc { "VCC_OUT".into() } else { format!("{role:?}").to_uppercase() }
}

/// The functions of one operation.
#[derive(Debug, Clone, Default)]
pub struct OperationFunctions {
    /// The name before the dot.
    pub name: String,
    /// The arguments and their sorts.
    pub arguments: Vec<(String, String)>,
    /// The results' names and sorts.
    pub results: Vec<(String, String)>,
    /// There is a function `where`.
    pub has_where: bool,
    /// It calls functions of which nothing is known.
    pub unknown: bool,
}

/// Returns the functions of an export, by operation. `unknown` are found by the names that are declared before.
pub fn groups(text: &str) -> Vec<OperationFunctions> {
    let mut groups: Vec<OperationFunctions> = Vec::new();
    let mut declared: BTreeSet<&str> = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("(declare-fun ") {
            declared.extend(rest.split(' ').next());
        } else if let Some(rest) = line.strip_prefix("(define-fun ") {
            let (name, rest) = rest.split_once(' ').unwrap_or_default();
            let (operation, result) = name.trim_matches('|').split_once('.').unwrap_or_default();
            if groups.last().is_none_or(|last| last.name != operation) {
                groups.push(OperationFunctions { name: operation.into(), ..OperationFunctions::default() });
            }
            let (arguments, sort) = parts(rest);
            if let Some(group) = groups.last_mut() {
                group.arguments = arguments;
                match result {
                    "where" => group.has_where = true,
                    _ => group.results.push((result.into(), sort)),
                }
            }
        } else if let Some(group) = groups.last_mut().filter(|_| !line.starts_with(';')) {
            group.unknown |= declared.iter().any(|name| line.contains(&format!("({name} ")));
        }
    }
    groups
}

/// The arguments of a function, and the sort of its result.
fn parts(text: &str) -> (Vec<(String, String)>, String) {
    let (mut depth, mut start) = (0, 0);
    let mut arguments = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' => {
                depth += 1;
                if depth == 2 {
                    start = at + 1;
                }
            }
            ')' => {
                if depth == 2 {
                    let (name, sort) = text[start..at].split_once(' ').unwrap_or_default();
                    arguments.push((name.trim_matches('|').to_string(), sort.to_string()));
                }
                depth -= 1;
                if depth == 0 {
                    return (arguments, text[at + 1..].trim().to_string());
                }
            }
            _ => {}
        }
    }
    (arguments, String::new())
}

/// The width of a bit vector; `None` of an array.
fn width(sort: &str) -> Option<u32> {
    sort.strip_prefix("(_ BitVec ")?.strip_suffix(')')?.parse().ok()
}

fn constant(value: u128, width: u32) -> String {
    format!("#b{:0digits$b}", value & mask(width), digits = width as usize)
}

/// The assertion that the functions differ from a case, which no solver may find satisfiable.
pub fn question(group: &OperationFunctions, case: &Case) -> String {
    let mut out = String::from("(push 1)\n");
    let mut texts = Vec::new();
    for (name, sort) in &group.arguments {
        match width(sort) {
            Some(_) if name.starts_with('f') && name[1..].chars().all(|c| c.is_ascii_digit()) => {
                let _ = writeln!(out, "(declare-const {name} {sort})");
                texts.push(name.clone());
            }
            Some(width) => texts.push(constant(case.inputs.get(name).copied().unwrap_or(0), width)),
            None => texts.push(memory(name, sort, case)),
        }
    }
    let call = |result: &str| {
        let name = format!("{}.{result}", group.name);
        if texts.is_empty() { name } else { format!("({name} {})", texts.join(" ")) }
    };
    let mut equal = Vec::new();
    for (result, sort) in &group.results {
        match width(sort) {
            Some(width) => {
                let value = case.results.get(result).or(case.inputs.get(result));
                if let Some(value) = value {
                    equal.push(format!("(= {} {})", call(result), constant(*value, width)));
                }
            }
            None => {
                let bits = if sort.starts_with("(Array (_ BitVec 64)") { 64 } else { 32 };
                for ((_, at), byte) in case.stores.iter().filter(|((name, _), _)| name == result) {
                    let (at, byte) = (constant(*at as u128, bits), constant(*byte as u128, 8));
                    equal.push(format!("(= (select {} {at}) {byte})", call(result)));
                }
            }
        }
    }
    if group.has_where {
        let _ = writeln!(out, "(assert {})", call("where"));
    }
    let _ = writeln!(out, "(assert (not (and true {})))\n(check-sat)\n(pop 1)", equal.join(" "));
    out
}

/// An array with the bytes that a case has read.
fn memory(name: &str, sort: &str, case: &Case) -> String {
    let bits = if sort.starts_with("(Array (_ BitVec 64)") { 64 } else { 32 };
    let own = case.bytes.iter().filter(|((array, _), _)| *array == name).map(|((_, at), byte)| (*at, *byte));
    let lanes = case.lanes.iter().filter(|((array, _), _)| array == name).map(|((_, at), byte)| (*at, *byte));
    own.chain(lanes).fold(format!("((as const {sort}) #x00)"), |array, (at, byte)| {
        format!("(store {array} {} {})", constant(at as u128, bits), constant(byte as u128, 8))
    })
}
