//! Remarks about code that needs no run: occupancy, missed dual instructions, delays, scratch, waits.

mod delays;
mod pairs;
mod resources;
mod waits;

use crate::class::{self, InstCost};
use crate::data::{ArchCost, CostError};
use crate::occupancy::{Occupancy, Resources};
use serde_json::{Value, json};
use std::fmt;
use wavesim_inspect::check::{Counters, Scoreboard, Successors, sarif, successors};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Effects, File};
use wavesim_machine::exec::program::Program;

/// How much a remark promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Information.
    Note,
    /// A change that makes the kernel faster, if the model is right.
    Warning,
}

impl Level {
    /// Returns the name in compilers' messages and in SARIF.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
        }
    }
}

/// The rules, each with a description.
pub const RULES: [(&str, &str); 8] = [
    ("occupancy", "the waves of a processor, and the resource that limits them"),
    ("dual-issue", "two vector instructions could be one dual instruction"),
    ("register-banks", "register banks prevent a dual instruction"),
    ("missing-delay", "a dependent instruction follows without s_delay_alu"),
    ("needless-delay", "s_delay_alu names an instruction that is no dependency"),
    ("scratch", "registers are spilled to memory, or arrays are in it"),
    ("strict-wait", "a wait is stricter than its uses need"),
    ("no-class", "an instruction has no class of costs, and gets the default"),
];

/// A remark about an instruction, or about the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// One of [`RULES`].
    pub rule: &'static str,
    /// How much it promises.
    pub level: Level,
    /// Index of the instruction in the program; `None` for the kernel.
    pub index: Option<usize>,
    /// What is remarkable.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// The remarks about a kernel.
pub struct Lint<'a> {
    program: &'a Program,
    input: String,
    /// Occupancy of the launch.
    pub occupancy: Occupancy,
    /// In code order; those about the kernel come first.
    pub remarks: Vec<Remark>,
}

/// What the rules look at.
struct Code<'a> {
    program: &'a Program,
    effects: Vec<Effects>,
    costs: Vec<InstCost>,
    waits: Vec<crate::waits::Waits>,
    /// The counters that count each instruction's operation.
    issued: Vec<Counters>,
    /// First and last instruction of each basic block that can be reached.
    blocks: Vec<(usize, usize)>,
}

impl<'a> Code<'a> {
    fn of(program: &'a Program, effects: Vec<Effects>, costs: Vec<InstCost>, entry: usize) -> Code<'a> {
        let waits = crate::waits::table(program, &effects);
        let scoreboard = Scoreboard::of(program, &effects, false);
        let issued = (0..effects.len()).map(|index| scoreboard.issued(index)).collect();
        Code { program, effects, costs, waits, issued, blocks: blocks(program, entry) }
    }

    /// Appends the remarks about instructions.
    fn check(&self, out: &mut Vec<Remark>) {
        for block in &self.blocks {
            pairs::check(self, *block, out);
            delays::check(self, *block, out);
            waits::check(self, *block, out);
        }
    }

    /// Returns the registers that an instruction reads, or writes, as dense indices.
    fn registers(&self, index: usize, write: bool) -> Vec<u16> {
        class::registers(&self.effects[index], write)
    }

    /// Returns whether an instruction uses what another one writes.
    fn depends(&self, later: usize, earlier: usize) -> bool {
        let written = self.registers(earlier, true);
        self.registers(later, false).iter().any(|r| written.contains(r))
    }
}

/// Returns the basic blocks that can be reached from an instruction, in code order.
fn blocks(program: &Program, entry: usize) -> Vec<(usize, usize)> {
    let count = program.insts.len();
    let next: Vec<Successors> = (0..count).map(|at| successors(program, at)).collect();
    let mut reached = vec![false; count];
    let mut leads = vec![false; count];
    let mut list = vec![entry];
    while let Some(at) = list.pop() {
        if at >= count || std::mem::replace(&mut reached[at], true) {
            continue;
        }
        for to in next[at].iter().flatten() {
            leads[*to] |= *to != at + 1 || next[at].iter().flatten().count() > 1;
            list.push(*to);
        }
    }
    let mut out: Vec<(usize, usize)> = Vec::new();
    for at in (0..count).filter(|at| reached[*at]) {
        let continues = at > 0 && reached[at - 1] && !leads[at] && next[at - 1].iter().flatten().eq([&at]);
        match out.last_mut().filter(|_| continues) {
            Some(block) => block.1 = at,
            None => out.push((at, at)),
        }
    }
    out
}

/// Returns the numbers of VGPRs and SGPRs that the reachable code names.
pub fn used_registers(program: &Program, effects: &[Effects], entry: usize) -> (u32, u32) {
    let mut used = (1, 1);
    for (first, last) in blocks(program, entry) {
        for e in &effects[first..=last] {
            for u in e.reads.iter().chain(&e.writes).filter(|u| u.relative.is_none()) {
                let end = u32::from(u.first) + u32::from(u.count);
                match u.file {
                    File::Vgpr => used.0 = used.0.max(end),
                    // Beyond are VCC, M0 and other special registers.
                    File::Sgpr if u.first <= program.arch.facts().scalar_codes.last_sgpr() => {
                        used.1 = used.1.max(end);
                    }
                    _ => {}
                }
            }
        }
    }
    used
}

/// Looks at a kernel. `input` is the name of its file.
///
/// # Errors
/// The architecture has no costs.
pub fn lint<'a>(prepared: &'a Prepared, input: &str) -> Result<Lint<'a>, CostError> {
    let program = &prepared.program;
    let cost = crate::data::arch(program.arch)?;
    let (effects, costs) = class::table(program, prepared.shape.wave_size, cost);
    let entry = program.inst_at(prepared.shape.entry_pc).unwrap_or(0);
    let resources = Resources::of(&prepared.shape, used_registers(program, &effects, entry));
    let code = Code::of(program, effects, costs, entry);
    let occupancy = crate::occupancy::occupancy(cost, &resources);
    let mut remarks = Vec::new();
    resources::check(&code, cost, &resources, &occupancy, prepared.shape.scratch_bytes, &mut remarks);
    no_class(&code, cost, &mut remarks);
    code.check(&mut remarks);
    remarks.sort_by_key(|r| r.index);
    Ok(Lint { program, input: input.to_string(), occupancy, remarks })
}

/// Returns the remarks about the instructions of a program that starts at an instruction, in code order.
pub(crate) fn of_instructions(
    program: &Program,
    wave_size: u32,
    cost: &ArchCost,
    entry: usize,
) -> Vec<Remark> {
    let (effects, costs) = class::table(program, wave_size, cost);
    let mut remarks = Vec::new();
    Code::of(program, effects, costs, entry).check(&mut remarks);
    remarks.sort_by_key(|r| r.index);
    remarks
}

fn no_class(code: &Code<'_>, cost: &ArchCost, out: &mut Vec<Remark>) {
    let all = code.blocks.iter().flat_map(|(first, last)| *first..=*last);
    for index in all.filter(|index| cost.is_default(code.costs[*index].class)) {
        let name = code.program.insts[index].instruction(code.program.arch.table()).name;
        let row = &cost.classes[code.costs[index].class];
        let (busy, latency) = (row.busy.value(), row.latency.value());
        let message =
            format!("{name} has no class of costs: {busy} clocks and a latency of {latency} are assumed");
        out.push(Remark { rule: "no-class", level: Level::Note, index: Some(index), message, help: None });
    }
}

impl Lint<'_> {
    /// Returns the file and the line of a remark; line 0 if there is none.
    fn place(&self, remark: &Remark) -> (String, u32) {
        let location = remark.index.and_then(|index| self.program.location(self.program.pcs[index]));
        match location {
            Some(location) => (location.file.map_or(self.input.clone(), |f| f.to_string()), location.line),
            None => (self.input.clone(), 0),
        }
    }

    /// Returns the results in SARIF, and the rules that they refer to.
    pub fn sarif(&self) -> (Vec<Value>, Vec<Value>) {
        let rule = |(id, text): &(&str, &str)| json!({"id": format!("lint/{id}"), "shortDescription": {"text": text}});
        let used = |(id, _): &&(&str, &str)| self.remarks.iter().any(|r| r.rule == *id);
        let rules = RULES.iter().filter(used).map(rule).collect();
        let result = |remark: &Remark| {
            let (file, line) = self.place(remark);
            let mut physical = json!({"artifactLocation": {"uri": file}});
            match (line, remark.index) {
                (0, Some(index)) => {
                    let address = self.program.address(self.program.pcs[index]);
                    physical["address"] = json!({"absoluteAddress": address});
                }
                (0, None) => {}
                (line, _) => physical["region"] = json!({"startLine": line}),
            }
            json!({
                "ruleId": format!("lint/{}", remark.rule),
                "level": remark.level.name(),
                "message": {"text": text_of(remark)},
                "locations": [{"physicalLocation": physical}],
            })
        };
        (rules, self.remarks.iter().map(result).collect())
    }

    /// Returns the remarks as JSON.
    pub fn json(&self) -> Value {
        let remark = |r: &Remark| {
            let (file, line) = self.place(r);
            json!({
                "rule": r.rule, "level": r.level.name(), "file": file, "line": line,
                "pc": r.index.map(|index| format!("{:x}", self.program.address(self.program.pcs[index]))),
                "instruction": r.index.map(|index| self.program.text(index)),
                "message": r.message, "help": r.help,
            })
        };
        let o = &self.occupancy;
        json!({
            "schema": "wavesim-lint-1",
            "file": self.input,
            "occupancy": {"waves_per_simd": o.waves_of_simd, "most": o.most, "workgroups": o.workgroups,
                "limit": o.limit.name()},
            "remarks": self.remarks.iter().map(remark).collect::<Vec<_>>(),
        })
    }
}

/// Returns the message with its help.
pub(crate) fn text_of(remark: &Remark) -> String {
    match &remark.help {
        Some(help) => format!("{}; {help}", remark.message),
        None => remark.message.clone(),
    }
}

/// Returns one log of SARIF of several files.
pub fn sarif_of_files(lints: &[Lint<'_>], version: &str) -> Value {
    let (mut rules, mut results): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for lint in lints {
        let (own, list) = lint.sarif();
        rules.extend(own.into_iter().filter(|rule| !rules.contains(rule)).collect::<Vec<_>>());
        results.extend(list);
    }
    sarif::wrap(rules, results, version)
}

impl fmt::Display for Lint<'_> {
    /// One line a remark, as compilers write them: `file:line: warning: text [rule]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for remark in &self.remarks {
            let (file, line) = self.place(remark);
            let place = match (line, remark.index) {
                (0, Some(index)) => format!("{file}:0x{:x}", self.program.address(self.program.pcs[index])),
                (0, None) => file,
                (line, _) => format!("{file}:{line}"),
            };
            writeln!(f, "{place}: {}: {} [{}]", remark.level.name(), text_of(remark), remark.rule)?;
        }
        Ok(())
    }
}
