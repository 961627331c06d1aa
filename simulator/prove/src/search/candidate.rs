//! Instructions as functions of their source operands.

use super::values::Inputs;
use crate::assume;
use crate::routes::Register;
use crate::setup::Setup;
use isa_export::smt::Tape;
use isa_export::smtlib;
use isa_spec::arith::{self, FloatEnv};
use isa_spec::pcode::ir::{Role, Shape, Ty};
use std::collections::BTreeSet;
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::operand::{self, Fmt, Operand};
use wavesim_machine::isa;

/// An argument for a source operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// The source operand of the instruction that is searched for, by number.
    Input(usize),
    /// An inline constant.
    Constant(Constant),
    /// The result of the first instruction of a pair.
    First,
}

/// An inline constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    Integer(i32),
    /// In halves: 2 is 1.0. The bits depend on the operand.
    Float(i32),
}

impl Constant {
    /// The bits that an operand reads.
    pub fn bits(self, slot: Slot) -> u128 {
        match (self, slot.float) {
            (Constant::Integer(value), _) => value as i128 as u128,
            (Constant::Float(value), Some(ty)) => {
                let [value, two] =
                    [value, 2].map(|value| arith::from_int(value as i128 as u128, true, ty, &FloatEnv::KEEP));
                arith::div_float(value, two, ty, &FloatEnv::KEEP)
            }
            (Constant::Float(_), None) => 0,
        }
    }
}

/// A source operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub role: Role,
    /// Words of 32 bits.
    pub words: u32,
    /// The format, if it is a float.
    pub float: Option<Ty>,
}

/// What an input of a tape is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A source operand, by number.
    Source(usize),
    /// A field of the encoding, whose value is that of an instruction without modifiers.
    Field,
    /// State, or the destination's old value.
    State,
}

/// How an operand is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// A source, by number.
    Source(usize),
    /// The destination.
    Destination,
    /// The mask that is read or written next to the data.
    Mask,
}

/// An instruction that can be searched for, or be an answer.
pub struct Candidate {
    pub name: String,
    pub shape: Shape,
    /// The results, in the order of [`Candidate::outputs`].
    pub tape: Tape,
    /// What the tape's inputs are.
    pub places: Vec<Place>,
    /// Source operands that are written in assembly.
    pub sources: Vec<Slot>,
    pub outputs: Vec<Output>,
    syntax: Vec<Written>,
    prefix: char,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// As exports name it: `D0`, `scc`, `VCC_OUT`.
    pub name: String,
    pub words: u32,
}

/// The larger operands are descriptors and matrices.
const MAX_BITS: u16 = 64;

impl Candidate {
    /// An instruction of an architecture; the reason if it is none that can be searched for.
    pub fn of(options: &Options, instruction: usize) -> Result<Candidate, String> {
        let (arch, table) = (options.arch, options.arch.table());
        let name = table.instructions[instruction].name.to_lowercase();
        let operation = isa::number(arch, instruction).and_then(isa::operation);
        let sem = &operation.ok_or("it has no semantics")?.sem;
        let uses = &sem.uses;
        if sem.shape == Shape::Wave {
            return Err("it sees other lanes, or works on the wave as a whole".into());
        }
        if uses.memory_read || uses.memory_write {
            return Err("it accesses memory".into());
        }
        if uses.control || uses.registers || !uses.indexed.is_empty() {
            return Err("it is no function of its operands".into());
        }
        let results = smtlib::evaluate(sem).map_err(|e| e.to_string())?;
        let (names, roots): (Vec<&String>, Vec<_>) = results.values.iter().unzip();
        if !results.values.contains_key("D0") {
            return Err("it writes no register".into());
        }
        if let Some(state) = names.iter().find(|name| !["D0", "scc", "VCC_OUT"].contains(&name.as_str())) {
            return Err(format!("it writes {state}"));
        }
        let tape = Tape::of(&results.terms, &roots).ok_or("it accesses memory")?;
        let prefix = if sem.shape == Shape::Lane { 'v' } else { 's' };
        let entries = (0..table.entries.len() as u16).filter(|id| {
            let entry = &table.entries[*id as usize];
            entry.inst as usize == instruction && !table.encodings[entry.enc as usize].name.contains("VOPD")
        });
        for entry in entries {
            let binding = operand::binding(arch, entry);
            if binding.has_dpp() || binding.mods.sdwa.is_some() || binding.dual {
                continue;
            }
            let mut one = Candidate {
                name: name.clone(),
                shape: sem.shape,
                tape: tape.clone(),
                places: Vec::new(),
                sources: Vec::new(),
                outputs: Vec::new(),
                syntax: Vec::new(),
                prefix,
            };
            let Some(destination) = binding.operands.iter().find(|o| o.role == Role::D0) else { continue };
            if !binding.operands.iter().all(|operand| one.add(operand)) {
                continue;
            }
            one.places = tape.inputs().iter().map(|(name, _)| one.place(name)).collect();
            let words = words(destination, options);
            one.outputs = names
                .iter()
                .map(|name| Output {
                    name: name.to_string(),
                    words: match name.as_str() {
                        "D0" => words,
                        "VCC_OUT" => options.wave / 32,
                        _ => 1,
                    },
                })
                .collect();
            let example = one.text(&one.own_args(), &Inputs::registers(&one));
            if destination.fmt != Fmt::Mask && parse(&example, options, &NoSymbols).is_ok() {
                return Ok(one);
            }
        }
        Err("its operands are not only registers of 32 or 64 bits".into())
    }

    /// A function of registers that several instructions compute, to be searched for.
    pub fn window(shape: Shape, tape: Tape, outputs: Vec<Output>) -> Candidate {
        let count = tape.inputs().len();
        let sources = (0..count).map(|_| Slot { role: Role::S0, words: 1, float: None }).collect();
        let prefix = if shape == Shape::Lane { 'v' } else { 's' };
        let places = (0..count).map(Place::Source).collect();
        Candidate { name: String::new(), shape, tape, places, sources, outputs, syntax: Vec::new(), prefix }
    }

    /// Whether this is no instruction, but a function that several compute.
    pub fn is_window(&self) -> bool {
        self.name.is_empty()
    }

    /// Adds an operand in the order of assembly; false if it is none that a search knows.
    fn add(&mut self, operand: &Operand) -> bool {
        let written = match operand.role {
            _ if operand.role == Role::Vcc || operand.fmt == Fmt::Mask && operand.role != Role::D0 => {
                Written::Mask
            }
            // SCC and other state.
            _ if operand.field.is_none() => return true,
            Role::D0 => Written::Destination,
            Role::S0 | Role::S1 | Role::S2 | Role::S3 if operand.size_bits <= MAX_BITS => {
                let words = (operand.size_bits as u32).div_ceil(32).max(1);
                let float = match operand.fmt {
                    Fmt::F16 => Some(Ty::F16),
                    Fmt::F32 => Some(Ty::F32),
                    Fmt::F64 => Some(Ty::F64),
                    _ => None,
                };
                self.sources.push(Slot { role: operand.role, words, float });
                Written::Source(self.sources.len() - 1)
            }
            _ => return false,
        };
        self.syntax.push(written);
        operand.size_bits <= MAX_BITS
    }

    /// The instruction's own operands in their places.
    pub fn own_args(&self) -> Vec<Arg> {
        (0..self.sources.len()).map(Arg::Input).collect()
    }

    /// The instruction as text. The first of a pair writes the destination, too, which the second reads.
    pub fn text(&self, args: &[Arg], inputs: &Inputs) -> String {
        let register = |first: u32, words: u32| match words {
            1 => format!("{}{first}", self.prefix),
            _ => format!("{}[{first}:{}]", self.prefix, first + words - 1),
        };
        let words = self.outputs.iter().find(|output| output.name == "D0").map_or(1, |output| output.words);
        let list: Vec<String> = self
            .syntax
            .iter()
            .map(|written| match written {
                Written::Destination => register(0, words),
                Written::Mask => if inputs.wave_size == 64 { "vcc" } else { "vcc_lo" }.to_string(),
                Written::Source(at) => match args[*at] {
                    Arg::Input(input) => register(inputs.first_register(input), self.sources[*at].words),
                    Arg::Constant(Constant::Integer(value)) => value.to_string(),
                    Arg::Constant(Constant::Float(halves)) => format!("{:.1}", halves as f32 / 2.0),
                    Arg::First => register(0, self.sources[*at].words),
                },
            })
            .collect();
        format!("{} {}", self.name, list.join(", "))
    }

    /// Whether the instruction writes all that another one writes. Outputs are in the order of their names.
    pub fn covers(&self, target: &Candidate) -> bool {
        self.outputs.starts_with(&target.outputs)
    }

    /// What the instruction writes and another one does not.
    pub fn extra(&self, target: &Candidate) -> Vec<String> {
        let more = self.outputs.iter().filter(|output| !target.outputs.contains(output));
        more.map(|output| if output.name == "VCC_OUT" { "vcc".into() } else { output.name.clone() }).collect()
    }

    /// The registers that the instruction writes.
    pub fn written(&self, setup: &Setup) -> BTreeSet<Register> {
        let mut names = Vec::new();
        for output in &self.outputs {
            match output.name.as_str() {
                "D0" => names.extend((0..output.words).map(|k| format!("{}{k}", self.prefix))),
                "VCC_OUT" if setup.wave_size == 64 => names.extend(["vcc_lo".into(), "vcc_hi".into()]),
                "VCC_OUT" => names.push("vcc_lo".into()),
                name => names.push(name.to_string()),
            }
        }
        names.iter().filter_map(|name| assume::register(name)).collect()
    }

    /// Whether the instruction depends on its sources alone and has one result besides SCC: it can be part of a pair.
    pub fn is_plain(&self) -> bool {
        self.outputs[0].name == "D0"
            && self.outputs.iter().all(|output| output.name != "VCC_OUT")
            && !self.places.contains(&Place::State)
    }

    fn place(&self, name: &str) -> Place {
        match self.sources.iter().position(|slot| format!("{:?}", slot.role) == name) {
            Some(at) => Place::Source(at),
            None if name == "clamp" || name.starts_with("field.") => Place::Field,
            None => Place::State,
        }
    }

    /// All arguments with at most so many constants.
    pub fn arguments(&self, target: &Candidate, constants: &[Constant], most: usize) -> Vec<Vec<Arg>> {
        self.fill(target, constants, most, None)
    }

    /// Arguments with the result of a first instruction in a place, and at most one constant.
    pub fn other_arguments(&self, index: usize, target: &Candidate, constants: &[Constant]) -> Vec<Vec<Arg>> {
        self.fill(target, constants, 1, Some(index))
    }

    fn fill(
        &self,
        target: &Candidate,
        constants: &[Constant],
        most: usize,
        first: Option<usize>,
    ) -> Vec<Vec<Arg>> {
        let mut all: Vec<(Vec<Arg>, usize)> = vec![(Vec::new(), 0)];
        for (at, slot) in self.sources.iter().enumerate() {
            let mut next = Vec::new();
            for (args, used) in &all {
                let mut add = |arg: Arg, used: usize| {
                    let mut args = args.clone();
                    args.push(arg);
                    next.push((args, used));
                };
                if first == Some(at) {
                    add(Arg::First, *used);
                    continue;
                }
                for (input, own) in target.sources.iter().enumerate() {
                    if own.words == slot.words {
                        add(Arg::Input(input), *used);
                    }
                }
                if *used < most {
                    let fit =
                        |value: &&Constant| matches!(value, Constant::Integer(_)) || slot.float.is_some();
                    constants.iter().filter(fit).for_each(|value| add(Arg::Constant(*value), used + 1));
                }
            }
            all = next;
        }
        all.into_iter().map(|(args, _)| args).collect()
    }
}

fn words(operand: &Operand, options: &Options) -> u32 {
    match operand.fmt {
        Fmt::Mask => options.wave / 32,
        _ => (operand.size_bits as u32).div_ceil(32).max(1),
    }
}
