//! Two bodies on the same numbers, by the reference evaluator: what differs in a test needs no proof, and what a solver
//! finds is seen to differ.

use super::fields::Fields;
use crate::samples::operand;
use isa_export::smtlib::{self, Field};
use isa_export::{BUFFER_END, role_name};
use isa_spec::arith::{FloatEnv, mask};
use isa_spec::eval::{self, Machine, Stop};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::{Role, Semantics, Shape, Space, State};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The tests of a pair.
const TESTS: usize = 300;

/// Bits of MODE that are no rounding and no mode of denormals: DX10_CLAMP, IEEE, FP16_OVFL (the manuals' table of MODE).
const OTHER_MODE_BITS: u128 = 1 << 8 | 1 << 9 | 1 << 23;

/// The time of all tests of a pair.
const TIME: Duration = Duration::from_secs(3);

/// The operands, state and memory of a test: numbers without a pattern, but for those that are given.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    pub test: usize,
    pub given: BTreeMap<String, u128>,
    /// What is not given is 0, but for memory.
    pub others_zero: bool,
    /// The scalar registers with the descriptor have that of this image, and coordinates are near its origin.
    pub image: Option<[u32; 8]>,
}

/// The number of the first register with the descriptor of an image.
const DESCRIPTOR: u64 = 16;

/// A body that is tried.
#[derive(Clone, Copy)]
pub(super) struct Tried<'a> {
    pub sem: &'a Semantics,
    pub widths: &'a BTreeMap<Role, u32>,
    pub fields: &'a Fields,
}

/// Inputs for which two bodies leave different results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// By the names of exports; bytes and registers of memories by their place, such as `memory[0x10]`.
    pub inputs: BTreeMap<String, u128>,
    pub result: String,
    pub values: [String; 2],
}

/// Looks for numbers for which the bodies differ. Random numbers are descriptors of no image, so that some tests have those
/// of the given ones.
pub(super) fn search(bodies: [Tried<'_>; 2], images: &[[u32; 8]]) -> Option<Difference> {
    let start = Instant::now();
    let tests = (0..TESTS).flat_map(|test| {
        let described = images.iter().filter(move |_| test < 16).map(Some);
        described.chain([None]).map(move |image| (test, image.copied()))
    });
    tests.take_while(|(test, _)| *test < 4 || start.elapsed() < TIME).find_map(|(test, image)| {
        let numbers = Numbers { test, given: BTreeMap::new(), others_zero: false, image };
        differ(bodies, &numbers).map(|_| smallest(bodies, numbers))
    })
}

/// Looks for a difference with these values, and 0 for others; contents of memory are tried.
pub(super) fn reproduce(bodies: [Tried<'_>; 2], given: &BTreeMap<String, u128>) -> Option<Difference> {
    (0..4).find_map(|test| {
        let numbers = Numbers { test, given: given.clone(), others_zero: true, image: None };
        differ(bodies, &numbers).map(|_| smallest(bodies, numbers))
    })
}

/// A difference with as many zeros as possible.
fn smallest(bodies: [Tried<'_>; 2], mut numbers: Numbers) -> Difference {
    let start = Instant::now();
    let mut found = differ(bodies, &numbers).unwrap_or_else(|| Difference {
        inputs: BTreeMap::new(),
        result: String::new(),
        values: Default::default(),
    });
    let names: Vec<String> = found.inputs.keys().cloned().collect();
    for name in names.into_iter().filter(|name| name != "wave_size") {
        if start.elapsed() > TIME {
            break;
        }
        let value = if name == "mode" { smtlib::MODE as u128 } else { 0 };
        let old = numbers.given.insert(name.clone(), value);
        match differ(bodies, &numbers) {
            Some(smaller) => found = smaller,
            None => {
                match old {
                    Some(old) => numbers.given.insert(name, old),
                    None => numbers.given.remove(&name),
                };
            }
        }
    }
    found
}

fn differ(bodies: [Tried<'_>; 2], numbers: &Numbers) -> Option<Difference> {
    let [a, b] = bodies.map(|body| run(body, numbers));
    let names = a.results.keys().chain(b.results.keys());
    let of = |run: &Run<'_>, name: &String| match run.results.get(name) {
        Some(value) => *value,
        // What is not written is what it was.
        None => run.number(name, run.width(name)),
    };
    let text = |run: &Run<'_>, name: &String| match run.results.get(name) {
        Some(value) => format!("{value:#x}"),
        None => "unwritten".to_string(),
    };
    let result = names.into_iter().find(|name| of(&a, name) != of(&b, name)).cloned();
    let (result, values) = match result {
        Some(name) => (name.clone(), [text(&a, &name), text(&b, &name)]),
        None if a.calls != b.calls => {
            let list = |run: &Run<'_>| match &run.calls[..] {
                [] => "nothing".to_string(),
                calls => calls.join(", "),
            };
            ("control".to_string(), [list(&a), list(&b)])
        }
        None => return None,
    };
    let mut inputs = a.used;
    inputs.extend(b.used);
    Some(Difference { inputs, result, values })
}

fn run<'a>(body: Tried<'a>, numbers: &'a Numbers) -> Run<'a> {
    let mut run = Run { body, numbers, used: BTreeMap::new(), results: BTreeMap::new(), calls: Vec::new() };
    let lane = (body.sem.shape == Shape::Lane).then(|| run.input("lane", 32) as u32);
    match eval::eval(body.sem, &mut run, lane) {
        Ok(()) | Err(Stop::Return | Stop::Machine(_)) => {}
        Err(Stop::TooLong) => run.calls.push("too many steps".into()),
    }
    run
}

/// The index of a dword of a register in the arrays of exports.
fn register(lane: u32, number: u32) -> u64 {
    (lane as u64 & 0xf_ffff) << 12 | (number as u64 & 1023) << 2
}

/// One body on the numbers of a test.
struct Run<'a> {
    body: Tried<'a>,
    numbers: &'a Numbers,
    used: BTreeMap<String, u128>,
    results: BTreeMap<String, u128>,
    /// The control builtins that were called, with their arguments.
    calls: Vec<String>,
}

/// The register or byte of an array of exports at an index, and the shift of the byte in it.
pub(super) fn place(array: &str, at: u64) -> (String, u32) {
    let (lane, number, byte) = (at >> 12, at >> 2 & 1023, at as u32 & 3);
    match array {
        "memory" | "lds" | "scratch" => (format!("{array}[{at:#x}]"), 0),
        "sgprs" => (format!("sgprs[{number}]"), 8 * byte),
        _ => (format!("{array}[{lane}][{number}]"), 8 * byte),
    }
}

impl Run<'_> {
    /// The width of a result.
    fn width(&self, name: &str) -> u32 {
        if name.starts_with(['m', 'l', 's']) && name.ends_with(']') && !name.starts_with("sgprs") {
            return 8;
        }
        let role = self.body.widths.iter().find(|(role, _)| role_name(**role) == name);
        match name {
            "exec" | "exec_out" | "vcc" | "VCC" | "VCC_OUT" | "pc" => 64,
            "scc" => 1,
            _ => role.map_or(32, |(_, width)| *width),
        }
    }

    /// The number that something has at the start.
    fn number(&self, name: &str, width: u32) -> u128 {
        if let Some(value) = self.numbers.given.get(name) {
            return *value & mask(width);
        }
        let hash =
            name.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(131).wrapping_add(byte as usize));
        let test = self.numbers.test;
        let value = operand(test, hash) | operand(test, !hash) << 64;
        let is_memory = name.ends_with(']');
        if let Some(words) = &self.numbers.image
            && let Some(part) = self.part_of_image(name, value as u32, words)
        {
            return part as u128;
        }
        match name {
            "wave_size" => 32 << (value & 1),
            "lane" => value & 31,
            "mode" if self.numbers.others_zero => smtlib::MODE as u128,
            "mode" => smtlib::MODE as u128 | (value & OTHER_MODE_BITS),
            _ if self.numbers.others_zero && !is_memory => 0,
            "exec" if self.number("wave_size", 32) == 32 => value & mask(32),
            _ => value & mask(width),
        }
    }

    /// What a test with the descriptor of an image has in the registers that concern it.
    fn part_of_image(&self, name: &str, random: u32, words: &[u32; 8]) -> Option<u32> {
        if name == format!("{}.index", role_name(Role::SAddr)) {
            return Some(DESCRIPTOR as u32);
        }
        if name.starts_with("vgprs[") {
            // Samples have floats, of which the fraction counts where an image is repeated.
            let near = random & 63;
            let sampled = self.body.fields.contains_key("SAMP");
            return Some(if sampled { (near as f32 + 0.3).to_bits() } else { near });
        }
        let first = |k: u64| place("sgprs", (DESCRIPTOR + k) << 2).0;
        (0..8).find(|k| name == first(*k)).map(|k| words[k as usize])
    }

    fn input(&mut self, name: &str, width: u32) -> u128 {
        let value = self.number(name, width);
        self.used.insert(name.to_string(), value);
        value
    }

    /// The current value.
    fn current(&mut self, name: &str, width: u32) -> u128 {
        match self.results.get(name) {
            Some(value) => *value,
            None => self.input(name, width),
        }
    }

    fn whole(&mut self, role: Role) -> u128 {
        let name = role_name(role);
        let width = self.width(&name);
        self.current(&name, width)
    }

    fn target(role: Role) -> String {
        if role == Role::Vcc { "VCC_OUT".into() } else { role_name(role) }
    }

    fn array(space: Space) -> &'static str {
        match space {
            Space::Lds => "lds",
            Space::Scratch => "scratch",
            _ => "memory",
        }
    }
}

/// The address of a byte of an access; `None` outside of a buffer.
fn address(space: Space, address: u64, byte: u32) -> Option<u64> {
    let at = address.wrapping_add(byte as u64);
    match space {
        Space::Buffer if address >= BUFFER_END => None,
        Space::Lds | Space::Scratch => Some(at as u32 as u64),
        _ => Some(at),
    }
}

impl Machine for Run<'_> {
    fn operand(&mut self, role: Role, _lane: Option<u32>) -> u128 {
        self.whole(role)
    }

    fn destination(&mut self, role: Role, _lane: Option<u32>) -> u128 {
        let name = Self::target(role);
        let width = self.width(&name);
        self.current(&name, width)
    }

    fn set_operand(&mut self, role: Role, lane: Option<u32>, value: u128, width: u32) {
        let old = self.destination(role, lane);
        let name = Self::target(role);
        let all = mask(self.width(&name));
        self.results.insert(name, (old & !mask(width) | value & mask(width)) & all);
    }

    fn operand_index(&mut self, role: Role) -> u32 {
        self.input(&format!("{}.index", role_name(role)), 32) as u32
    }

    fn operand_lane(&mut self, role: Role, lane: u32, index: u32) -> u32 {
        let (name, _) = place(&format!("{}.lanes", role_name(role)), register(lane, index));
        self.input(&name, 32) as u32
    }

    fn field(&mut self, name: &str) -> u32 {
        let argument = format!("field.{}", name.to_lowercase());
        match self.body.fields.get(name) {
            _ if argument == "field.clamp" => self.input("clamp", 1) as u32,
            Some(Field::Fixed(value)) => *value,
            Some(Field::Bits { width, signed: false }) => self.input(&argument, *width) as u32,
            Some(Field::Bits { width, signed: true }) => {
                isa_spec::arith::sign_extend(self.input(&argument, *width), *width) as u32
            }
            None => self.input(&argument, 32) as u32,
        }
    }

    fn state(&mut self, state: State, _lane: Option<u32>) -> u128 {
        let named = |this: &mut Self, name: &str| {
            let width = this.width(name);
            this.current(name, width)
        };
        match state {
            State::ExecLo => named(self, "exec") & mask(32),
            State::ExecHi => named(self, "exec") >> 32,
            State::Execz => (named(self, "exec") == 0) as u128,
            State::VccLo => named(self, "vcc") & mask(32),
            State::VccHi => named(self, "vcc") >> 32,
            State::Vccz => (named(self, "vcc") == 0) as u128,
            State::Wave32 => (named(self, "wave_size") == 32) as u128,
            State::Wave64 => (named(self, "wave_size") == 64) as u128,
            State::LaneId => named(self, "lane"),
            State::ScratchBase | State::SharedBase | State::PrivateBase | State::TrapBase => {
                self.current(&isa_export::snake(&format!("{state:?}")), 64)
            }
            _ => named(self, &isa_export::snake(&format!("{state:?}"))),
        }
    }

    fn state_destination(&mut self, state: State) -> u128 {
        match state {
            State::Exec if self.body.sem.shape == Shape::Lane => self.current("exec_out", 64),
            _ => self.state(state, None),
        }
    }

    fn set_state(&mut self, state: State, value: u128) -> Result<(), Stop> {
        let part = |this: &mut Self, name: &str, high: bool| {
            let old = this.current(name, 64);
            let (own, other) =
                if high { (value << 32, old & mask(32)) } else { (value & mask(32), old >> 32 << 32) };
            this.results.insert(name.into(), (own | other) & mask(64));
        };
        match state {
            State::ExecLo | State::ExecHi => part(self, "exec", state == State::ExecHi),
            State::VccLo | State::VccHi => part(self, "vcc", state == State::VccHi),
            State::Exec if self.body.sem.shape == Shape::Lane => {
                self.results.insert("exec_out".into(), value & mask(64));
            }
            State::Exec | State::Vcc | State::Scc | State::M0 | State::Pc | State::Mode => {
                let name = isa_export::snake(&format!("{state:?}"));
                let value = value & mask(self.width(&name));
                self.results.insert(name, value);
            }
            _ => return Err(Stop::Machine(0)),
        }
        Ok(())
    }

    fn vgpr(&mut self, lane: u32, reg: u32) -> u32 {
        self.current(&place("vgprs", register(lane, reg)).0, 32) as u32
    }

    fn old_vgpr(&mut self, lane: u32, reg: u32) -> u32 {
        self.vgpr(lane, reg)
    }

    fn set_vgpr(&mut self, lane: u32, reg: u32, value: u32) {
        self.results.insert(place("vgprs", register(lane, reg)).0, value as u128);
    }

    fn sgpr(&mut self, reg: u32) -> u32 {
        self.current(&place("sgprs", register(0, reg)).0, 32) as u32
    }

    fn set_sgpr(&mut self, reg: u32, value: u32) {
        self.results.insert(place("sgprs", register(0, reg)).0, value as u128);
    }

    fn load(&mut self, space: Space, offset: u64, bytes: u32, _lane: Option<u32>) -> Result<u128, Stop> {
        let mut value = 0;
        for k in 0..bytes {
            if let Some(offset) = address(space, offset, k) {
                value |= self.current(&place(Self::array(space), offset).0, 8) << (8 * k);
            }
        }
        Ok(value)
    }

    fn store(
        &mut self,
        space: Space,
        offset: u64,
        bytes: u32,
        value: u128,
        _lane: Option<u32>,
    ) -> Result<(), Stop> {
        for k in 0..bytes {
            if let Some(offset) = address(space, offset, k) {
                self.results.insert(place(Self::array(space), offset).0, value >> (8 * k) & 0xff);
            }
        }
        Ok(())
    }

    fn control(&mut self, builtin: Control, args: &[u128]) -> Result<u128, Stop> {
        if smtlib::has_no_effect(builtin) {
            return Ok(0);
        }
        let list: Vec<String> = args.iter().map(|arg| format!("{arg:#x}")).collect();
        self.calls.push(format!("{}({})", builtin.def().name, list.join(", ")));
        if isa_export::smt::ends(builtin) {
            return Err(Stop::Machine(0));
        }
        // Some value, which depends on the calls so far.
        Ok(self.number(&format!("result of {}", self.calls.join(", ")), 64))
    }

    fn env(&self) -> FloatEnv {
        FloatEnv::from_mode(smtlib::MODE)
    }

    fn clamp(&self) -> bool {
        self.number("clamp", 1) != 0
    }
}
