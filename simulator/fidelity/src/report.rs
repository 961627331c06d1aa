//! The report of a run, as text and as JSON.

use crate::origin::{Cause, Origin, SetId};
use crate::perturb::Differences;
use crate::taint::{Fidelity, Sink};
use crate::ulp::Distance;
use isa_exactness::{Aspect, Bound, Class};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use wavesim_array::json as array_json;
use wavesim_inspect::check::Finding;
use wavesim_machine::exec::program::Program;

/// Version of the JSON report.
pub const SCHEMA: &str = "wavesim-fidelity-1";

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index in the program.
    pub index: usize,
    /// Byte offset.
    pub pc: u64,
    /// Its text.
    pub text: String,
    /// Its source position: `line 12`, `kernel.cl:12` or `pc 0x1640`.
    pub at: String,
    /// The file, if it is not the kernel's own text.
    pub file: Option<String>,
    /// The line; 0 if it is unknown.
    pub line: u32,
}

impl Place {
    fn of(program: &Program, index: usize) -> Place {
        let pc = program.pcs[index];
        let location = program.location(pc).unwrap_or_default();
        Place {
            index,
            pc: program.address(pc),
            text: program.text(index),
            at: program.place(pc),
            file: location.file.map(|file| file.to_string()),
            line: location.line,
        }
    }

    fn json(&self) -> Value {
        json!({ "pc": self.pc, "file": self.file, "line": self.line, "text": self.text })
    }
}

/// An instruction with inexact results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The instruction.
    pub place: Place,
    /// Why its results are inexact.
    pub cause: Cause,
    /// Number of executions.
    pub executed: u64,
    /// Number of inexact results, one for each lane and register.
    pub results: u64,
}

/// What inexact values have reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// Elements of an output.
    Output {
        /// Its name.
        name: String,
        /// Number of elements.
        elements: usize,
        /// Number of all elements.
        total: usize,
        /// The first one.
        first: usize,
        /// The instruction that has stored them.
        stored_by: Place,
    },
    /// Something else, at an instruction.
    Sink {
        /// What it is.
        sink: Sink,
        /// The instruction.
        at: Place,
        /// Number of executions.
        executed: u64,
    },
}

/// How far the results of a run can be trusted.
pub struct Report {
    /// Number of executed wave-instructions of each class.
    pub executed: BTreeMap<Class, u64>,
    /// The instructions with inexact results, in the order of the program.
    pub inexact: Vec<Row>,
    /// What inexact values have reached, and the instructions that they come from.
    pub reached: Vec<(Reached, Vec<(Place, Cause)>)>,
    /// Uses of undefined registers.
    pub undefined: Vec<Finding>,
    /// What perturbed runs have shown, and the approximations that they have not perturbed.
    pub perturbed: Option<(Differences, Vec<Place>)>,
    /// The program's instructions as text, for `perturbed`.
    places: Vec<Place>,
}

impl Fidelity<'_> {
    /// Returns the report of the run. `undefined` are the findings of the check of undefined registers.
    pub fn report(self, undefined: Vec<Finding>) -> Report {
        let program = &self.prepared.program;
        let mut executed: BTreeMap<Class, u64> = BTreeMap::new();
        let mut inexact = Vec::new();
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let halves = || self.sites[index].halves.iter().flatten();
            let class = halves().map(|half| half.exactness.class()).max().unwrap_or(Class::Exact);
            *executed.entry(class).or_default() += count;
            let mut causes: BTreeSet<Cause> = BTreeSet::new();
            for half in halves() {
                causes.extend(half.approximate.map(|(bound, _)| Cause::Approximation(bound)));
                causes.extend(half.whole);
                causes.extend(half.exactness.order_dependent.then_some(Cause::Order));
            }
            let results =
                |cause| self.results.get(&Origin { index: index as u32, cause }).copied().unwrap_or(0);
            let sometimes = [Cause::Left(Aspect::Conversion), Cause::Left(Aspect::Nan)];
            causes.extend(sometimes.into_iter().filter(|cause| results(*cause) > 0));
            inexact.extend(causes.into_iter().map(|cause| Row {
                place: Place::of(program, index),
                cause,
                executed: *count,
                results: results(cause),
            }));
        }
        let mut reached = self.outputs();
        let mut sinks: BTreeMap<(Sink, u32), (u64, BTreeSet<Origin>)> = BTreeMap::new();
        for ((sink, index, set), count) in &self.sinks {
            let (executed, origins) = sinks.entry((*sink, *index)).or_default();
            *executed += count;
            origins.extend(self.sets.get(*set));
        }
        let named = self.prepared.buffers.iter().any(|buffer| buffer.output);
        for ((sink, index), (executed, origins)) in sinks {
            // What outputs contain says more than which stores have run.
            if sink == Sink::Store && named {
                continue;
            }
            let at = Place::of(program, index as usize);
            reached.push((Reached::Sink { sink, at, executed }, self.places(origins)));
        }
        let places = (0..program.insts.len()).map(|index| Place::of(program, index)).collect();
        Report { executed, inexact, reached, undefined, perturbed: None, places }
    }

    /// Returns the inexact elements of the outputs.
    fn outputs(&self) -> Vec<(Reached, Vec<(Place, Cause)>)> {
        let mut out = Vec::new();
        for buffer in self.prepared.buffers.iter().filter(|buffer| buffer.output) {
            // The elements of an image are arranged in another order.
            let size = if buffer.surface.is_some() { 4 } else { buffer.dtype.size() as u64 };
            let total = (buffer.len_bytes / size.max(1)) as usize;
            let mut groups: BTreeMap<(SetId, u32), BTreeSet<usize>> = BTreeMap::new();
            for (address, cell) in self.memory.range(buffer.address, buffer.address + buffer.len_bytes) {
                for byte in (0..4).filter(|byte| cell.bits >> (8 * byte) & 0xff != 0) {
                    let Some(offset) = (address + byte).checked_sub(buffer.address) else { continue };
                    let element = (offset / size) as usize;
                    if element < total {
                        groups.entry((cell.set, cell.stored_by)).or_default().insert(element);
                    }
                }
            }
            // Several sets have been stored by one instruction, in different iterations.
            let mut stores: BTreeMap<(u32, BTreeSet<Origin>), BTreeSet<usize>> = BTreeMap::new();
            for ((set, stored_by), elements) in groups {
                let origins = self.sets.get(set).iter().copied().collect();
                stores.entry((stored_by, origins)).or_default().extend(elements);
            }
            for ((stored_by, origins), elements) in stores {
                let reached = Reached::Output {
                    name: buffer.name.clone(),
                    elements: elements.len(),
                    total,
                    first: elements.first().copied().unwrap_or(0),
                    stored_by: Place::of(&self.prepared.program, stored_by as usize),
                };
                out.push((reached, self.places(origins)));
            }
        }
        out
    }

    fn places(&self, origins: impl IntoIterator<Item = Origin>) -> Vec<(Place, Cause)> {
        let place = |origin: Origin| (Place::of(&self.prepared.program, origin.index as usize), origin.cause);
        origins.into_iter().map(place).collect()
    }

    /// Returns the number of executions of each instruction.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

impl Sink {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Sink::Store => "global memory",
            Sink::Address => "address",
            Sink::Branch => "branch",
            Sink::Exec => "EXEC",
            Sink::Control => "control",
        }
    }
}

/// The origins that are printed of a value, at most.
const SHOWN: usize = 4;

fn origins_text(origins: &[(Place, Cause)]) -> String {
    let one = |(place, cause): &(Place, Cause)| {
        let name = place.text.split_whitespace().next().unwrap_or_default();
        format!("{name} at {} ({})", place.at, cause.detail())
    };
    let mut list: Vec<String> = origins.iter().take(SHOWN).map(one).collect();
    if origins.len() > SHOWN {
        list.push(format!("{} others", origins.len() - SHOWN));
    }
    list.join(", ")
}

/// `1 time`, `2 times`.
fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

impl Report {
    /// Returns the report as text.
    pub fn text(&self) -> String {
        // Writing to a string does not fail.
        let mut out = String::new();
        let classes: Vec<String> =
            self.executed.iter().map(|(class, count)| format!("{count} {}", class.name())).collect();
        let _ = writeln!(out, "executed instructions: {}", classes.join(", "));
        for row in &self.inexact {
            let Row { place, cause, executed, results } = row;
            let _ = writeln!(out, "  {}: {}", place.at, place.text);
            let results = match cause {
                Cause::Order => format!("{} after the first one at its address", count(*results, "sum")),
                _ => count(*results, "result"),
            };
            let (class, detail) = (cause.class().name(), cause.detail());
            let _ = writeln!(out, "    {class} ({detail}), executed {}: {results}", count(*executed, "time"));
        }
        for finding in &self.undefined {
            let _ = writeln!(out, "  {}: {}", finding.site.place(), finding.site.text);
            let class = Class::ImplementationDefined.name();
            let _ = writeln!(out, "    {class} (undefined bits): {}", finding.message);
        }
        match self.reached.is_empty() {
            true => out += "no inexact value has reached an output, an address, a branch or EXEC\n",
            false => out += "inexact values have reached\n",
        }
        for (reached, origins) in &self.reached {
            match reached {
                Reached::Output { name, elements, total, first, stored_by } => {
                    let _ = writeln!(
                        out,
                        "  output {name}: {elements} of {total} elements, from {name}[{first}] on, stored at {}",
                        stored_by.at
                    );
                }
                Reached::Sink { sink, at, executed } => {
                    let times = count(*executed, "time");
                    let _ = writeln!(out, "  {} at {}, {times}: {}", sink.name(), at.at, at.text);
                }
            }
            let _ = writeln!(out, "    from {}", origins_text(origins));
        }
        if let Some((differences, left)) = &self.perturbed {
            out += &self.perturbed_text(differences, left);
        }
        out
    }

    fn perturbed_text(&self, differences: &Differences, left: &[Place]) -> String {
        let mut out = String::new();
        let (runs, orders) = (differences.runs, differences.orders);
        if runs + orders == 0 {
            out += "perturbed: nothing, as no operation has a documented error\n";
        } else {
            if runs > 0 {
                let _ =
                    writeln!(out, "perturbed: {runs} runs with approximations at the ends of their error");
            }
            if orders > 0 {
                let _ = writeln!(out, "perturbed: {orders} runs in which atomics add floats in other orders");
            }
            if differences.outputs.is_empty() && differences.faults.is_empty() {
                out += "  the outputs are equal in all of them\n";
            }
        }
        for one in &differences.outputs {
            let (index, name) = (one.largest.index, &one.name);
            let value = |array: &wavesim_array::Array| {
                array.get(index).map_or_else(String::new, |number| number.to_string())
            };
            let distance = match one.largest.distance {
                Distance::Nan => "a NaN in one of them".to_string(),
                Distance::Ulp(n) if one.expected.dtype.is_float() => format!("{n} ULP"),
                Distance::Ulp(n) => format!("{n}"),
            };
            let _ = writeln!(
                out,
                "  output {name}: {} of {} elements differ; the largest difference is {distance}: {name}[{index}] is {}, and {} ({})",
                one.largest.differing,
                one.expected.len(),
                value(&one.expected),
                value(&one.actual),
                one.end
            );
        }
        if let Some((index, end, before, after)) = differences.control {
            let place = &self.places[index];
            let _ = writeln!(
                out,
                "  control flow differs ({end}): {} is executed {}, and {}: {}",
                place.at,
                count(before, "time"),
                count(after, "time"),
                place.text
            );
        }
        for (end, fault) in &differences.faults {
            let _ = writeln!(out, "  the run faults ({end}): {fault}");
        }
        for place in left {
            let _ =
                writeln!(out, "  not perturbed, as no bound is documented: {} at {}", place.text, place.at);
        }
        out
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        let executed: serde_json::Map<String, Value> =
            self.executed.iter().map(|(class, count)| (class.name().to_string(), json!(count))).collect();
        let cause = |cause: &Cause, mut value: Value| {
            value["class"] = json!(cause.class().name());
            match cause {
                Cause::Approximation(Bound::Ulp(ulp)) => value["ulp"] = json!(ulp),
                Cause::Approximation(Bound::Undocumented) => value["ulp"] = Value::Null,
                Cause::Left(aspect) => value["aspect"] = json!(aspect.name()),
                Cause::Order => {}
            }
            value
        };
        let row = |row: &Row| {
            let mut value = cause(&row.cause, row.place.json());
            value["executed"] = json!(row.executed);
            value["results"] = json!(row.results);
            value
        };
        let reached = |(reached, origins): &(Reached, Vec<(Place, Cause)>)| {
            let mut value = match reached {
                Reached::Output { name, elements, total, first, stored_by } => json!({
                    "kind": "output", "name": name, "elements": elements, "total": total, "first": first,
                    "at": stored_by.json(),
                }),
                Reached::Sink { sink, at, executed } => {
                    json!({ "kind": sink.name(), "at": at.json(), "executed": executed })
                }
            };
            let origins = origins.iter().map(|(place, own)| cause(own, place.json()));
            value["from"] = origins.collect();
            value
        };
        let mut value = json!({
            "schema": SCHEMA,
            "executed": executed,
            "inexact": self.inexact.iter().map(row).collect::<Vec<_>>(),
            "undefined": self.undefined.iter().map(Finding::json).collect::<Vec<_>>(),
            "reached": self.reached.iter().map(reached).collect::<Vec<_>>(),
        });
        if let Some((differences, left)) = &self.perturbed {
            value["perturbed"] = self.perturbed_json(differences, left);
        }
        value
    }

    fn perturbed_json(&self, differences: &Differences, left: &[Place]) -> Value {
        let output = |one: &crate::perturb::OutputDifference| {
            let number = |array: &wavesim_array::Array| {
                array.get(one.largest.index).map(|number| array_json::number(array.dtype, number))
            };
            let largest = match one.largest.distance {
                Distance::Ulp(n) => json!(n),
                Distance::Nan => json!("nan"),
            };
            json!({
                "name": one.name, "differing": one.largest.differing, "total": one.expected.len(),
                "largest": largest, "index": one.largest.index, "end": one.end.to_string(),
                "expected": number(&one.expected), "actual": number(&one.actual),
            })
        };
        let control = differences.control.map(|(index, end, before, after)| {
            let mut value = self.places[index].json();
            value["end"] = json!(end.to_string());
            value["executed"] = json!([before, after]);
            value
        });
        json!({
            "runs": differences.runs,
            "orders": differences.orders,
            "outputs": differences.outputs.iter().map(output).collect::<Vec<_>>(),
            "control": control,
            "faults": differences.faults.iter()
                .map(|(end, fault)| json!({ "end": end.to_string(), "message": fault.message }))
                .collect::<Vec<_>>(),
            "not_perturbed": left.iter().map(Place::json).collect::<Vec<_>>(),
        })
    }

    /// Adds what perturbed runs have shown; `left` are the instructions that they have not perturbed.
    pub fn set_perturbed(&mut self, differences: Differences, left: &[usize]) {
        let left = left.iter().map(|index| self.places[*index].clone()).collect();
        self.perturbed = Some((differences, left));
    }
}
