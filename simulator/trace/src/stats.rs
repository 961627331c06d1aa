//! `--stats`: statistics of a run.
//!
//! Definitions, which the table also prints:
//! - lane utilisation: the ratio of active lanes to all lanes of vector instructions;
//! - divergence: an instruction that writes EXEC leaves some but not all of the active lanes;
//! - coalescing: the ratio of requested bytes to the bytes of the 128-byte lines that an instruction touches
//!   (the line size of RDNA's caches);
//! - LDS bank conflicts: there are 32 banks, each a dword wide; the cycles that the busiest bank needs beyond
//!   the minimum for the instruction's dwords. Lanes that request the same dword share the access.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_machine::exec::effects::{self, Class, Effects, File};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::state::wave::EXEC_LO;

/// Bytes of a cache line (RDNA manuals: the vector L0 cache).
const LINE_BYTES: u64 = 128;
const BANKS: u64 = 32;

/// Counters of a run.
pub struct Stats {
    effects: Vec<Effects>,
    writes_exec: Vec<bool>,
    names: Vec<&'static str>,
    branches: Vec<bool>,
    exec: u64,
    /// Executions of each instruction of the program.
    pub counts: Vec<u64>,
    by_class: BTreeMap<Class, u64>,
    vector: u64,
    lanes_active: u64,
    lanes_total: u64,
    branch_taken: u64,
    branch_total: u64,
    exec_writes: u64,
    divergences: u64,
    spaces: BTreeMap<Place, Traffic>,
    lines_bytes: u64,
    coalesced_bytes: u64,
    lds_instructions: u64,
    lds_conflicts: u64,
    barriers: u64,
    waves: u64,
    scratchpad: Vec<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Traffic {
    loads: u64,
    loaded_bytes: u64,
    stores: u64,
    stored_bytes: u64,
}

impl Stats {
    /// Creates counters of zero for this program and waves of `wave_size` lanes.
    pub fn new(program: &Program, wave_size: u32) -> Stats {
        let table = program.arch.table();
        let effects = effects::table(program, wave_size);
        Stats {
            writes_exec: effects
                .iter()
                .map(|e| e.writes.iter().any(|w| w.file == File::Sgpr && w.first as usize == EXEC_LO))
                .collect(),
            names: program.insts.iter().map(|i| i.instruction(table).name).collect(),
            branches: program.insts.iter().map(|i| i.instruction(table).flags().conditional_branch).collect(),
            exec: 0,
            counts: vec![0; program.insts.len()],
            by_class: BTreeMap::new(),
            vector: 0,
            lanes_active: 0,
            lanes_total: 0,
            branch_taken: 0,
            branch_total: 0,
            exec_writes: 0,
            divergences: 0,
            spaces: BTreeMap::new(),
            lines_bytes: 0,
            coalesced_bytes: 0,
            lds_instructions: 0,
            lds_conflicts: 0,
            barriers: 0,
            waves: 0,
            scratchpad: Vec::new(),
            effects,
        }
    }

    fn by_opcode(&self) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, count) in self.names.iter().zip(&self.counts) {
            *counts.entry(name).or_default() += count;
        }
        let mut list: Vec<(String, u64)> =
            counts.into_iter().filter(|c| c.1 != 0).map(|(n, c)| (n.to_lowercase(), c)).collect();
        list.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        list
    }

    /// Returns the number of executed wave-instructions.
    pub fn instructions(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the statistics in the schema `wavesim-stats-1`.
    pub fn json(&self) -> Value {
        let space = |place| {
            let t = self.spaces.get(&place).copied().unwrap_or_default();
            json!({"loads": t.loads, "loaded_bytes": t.loaded_bytes, "stores": t.stores, "stored_bytes": t.stored_bytes})
        };
        let classes: serde_json::Map<String, Value> =
            self.by_class.iter().map(|(c, n)| (c.name().to_string(), json!(n))).collect();
        let opcodes: serde_json::Map<String, Value> =
            self.by_opcode().into_iter().map(|(name, n)| (name, json!(n))).collect();
        json!({
            "schema": "wavesim-stats-1",
            "instructions": self.instructions(),
            "waves": self.waves,
            "classes": classes,
            "opcodes": opcodes,
            "vector_instructions": self.vector,
            "lane_utilisation": ratio(self.lanes_active, self.lanes_total),
            "branches": {"conditional": self.branch_total, "taken": self.branch_taken},
            "exec": {"writes": self.exec_writes, "divergent": self.divergences},
            "memory": {"global": space(Place::Global), "lds": space(Place::Lds), "scratch": space(Place::Scratch),
                "coalescing": ratio(self.coalesced_bytes, self.lines_bytes)},
            "lds": {"instructions": self.lds_instructions, "bank_conflict_cycles": self.lds_conflicts},
            "barriers": self.barriers,
        })
    }

    /// Returns the statistics as a table.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let total = self.instructions();
        let percent = |n: u64, of: u64| if of == 0 { 0.0 } else { 100.0 * n as f64 / of as f64 };
        // Writing to a string does not fail.
        let _ = writeln!(out, "wave-instructions       {total:>14}   of {} waves", self.waves);
        for (class, n) in &self.by_class {
            let _ = writeln!(out, "  {:<21} {n:>14}   {:5.1} %", class.name(), percent(*n, total));
        }
        let _ = writeln!(
            out,
            "lane utilisation        {:>14.1} % of the lanes of {} vector instructions",
            percent(self.lanes_active, self.lanes_total),
            self.vector
        );
        let _ = writeln!(
            out,
            "conditional branches    {:>14}   {:5.1} % taken",
            self.branch_total,
            percent(self.branch_taken, self.branch_total)
        );
        let _ = writeln!(
            out,
            "EXEC writes             {:>14}   {:5.1} % diverge (some but not all lanes remain active)",
            self.exec_writes,
            percent(self.divergences, self.exec_writes)
        );
        for (place, t) in self.spaces.iter().filter(|(p, _)| **p != Place::Nowhere) {
            let _ = writeln!(
                out,
                "{:<23} {:>14}   loads, {} bytes; {} stores, {} bytes",
                place.name(),
                t.loads,
                t.loaded_bytes,
                t.stores,
                t.stored_bytes
            );
        }
        let _ = writeln!(
            out,
            "coalescing              {:>14.1} % of the bytes of the {LINE_BYTES}-byte lines touched are requested",
            percent(self.coalesced_bytes, self.lines_bytes)
        );
        let _ = writeln!(
            out,
            "LDS bank conflicts      {:>14}   additional cycles in {} LDS instructions",
            self.lds_conflicts, self.lds_instructions
        );
        let _ = writeln!(out, "barriers                {:>14}   arrivals", self.barriers);
        let _ = writeln!(out, "opcodes");
        for (name, n) in self.by_opcode() {
            let _ = writeln!(out, "  {name:<28} {n:>14}   {:5.1} %", percent(n, total));
        }
        out
    }

    fn count_traffic(&mut self, class: Class, accesses: &[Access]) {
        for a in accesses {
            let t = self.spaces.entry(a.place).or_default();
            let (count, bytes) = match a.write {
                true => (&mut t.stores, &mut t.stored_bytes),
                false => (&mut t.loads, &mut t.loaded_bytes),
            };
            *count += 1;
            *bytes += a.size_bytes as u64;
        }
        if matches!(class, Class::Vmem | Class::Flat) {
            self.count_coalescing(accesses);
        }
        if accesses.iter().any(|a| a.place == Place::Lds) {
            self.lds_instructions += 1;
            self.count_bank_conflicts(accesses);
        }
    }

    /// Counts requested bytes and touched lines. An atomic's load and store are one request.
    fn count_coalescing(&mut self, accesses: &[Access]) {
        self.scratchpad.clear();
        let mut last = None;
        for a in accesses.iter().filter(|a| a.place == Place::Global) {
            if last != Some((a.lane, a.address)) {
                self.coalesced_bytes += a.size_bytes as u64;
            }
            last = Some((a.lane, a.address));
            let end = a.address + a.size_bytes.max(1) as u64 - 1;
            self.scratchpad.extend(a.address / LINE_BYTES..=end / LINE_BYTES);
        }
        self.scratchpad.sort_unstable();
        self.scratchpad.dedup();
        self.lines_bytes += self.scratchpad.len() as u64 * LINE_BYTES;
    }

    fn count_bank_conflicts(&mut self, accesses: &[Access]) {
        self.scratchpad.clear();
        for a in accesses.iter().filter(|a| a.place == Place::Lds) {
            let end = a.address + a.size_bytes.max(1) as u64 - 1;
            self.scratchpad.extend(a.address / 4..=end / 4);
        }
        self.scratchpad.sort_unstable();
        self.scratchpad.dedup();
        let mut load = [0u64; BANKS as usize];
        for dword in &self.scratchpad {
            load[(dword % BANKS) as usize] += 1;
        }
        let needed = (self.scratchpad.len() as u64).div_ceil(BANKS);
        self.lds_conflicts += load.iter().max().copied().unwrap_or(0).saturating_sub(needed);
    }
}

fn ratio(part: u64, whole: u64) -> Value {
    if whole == 0 { Value::Null } else { json!(part as f64 / whole as f64) }
}

impl Observer for Stats {
    fn group_started(&mut self, _workgroup: [u32; 3], waves: usize) {
        self.waves += waves as u64;
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.exec = step.wave.exec();
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.counts[step.index] += 1;
        let class = self.effects[step.index].class;
        *self.by_class.entry(class).or_default() += 1;
        if class.is_vector() {
            self.vector += 1;
            self.lanes_active += self.exec.count_ones() as u64;
            self.lanes_total += step.wave.size() as u64;
        }
        if self.branches[step.index] {
            self.branch_total += 1;
            self.branch_taken += done.jumped as u64;
        }
        if self.writes_exec[step.index] {
            let left = step.wave.exec() & self.exec;
            self.exec_writes += 1;
            self.divergences += (left != 0 && left != self.exec) as u64;
        }
        self.barriers += done.calls.iter().filter(|(bi, _)| bi.signals_barrier()).count() as u64;
        if !done.accesses.is_empty() {
            let accesses: Vec<Access> = done.accesses.iter().flat_map(|a| a.each()).collect();
            self.count_traffic(class, &accesses);
        }
    }

    fn performed(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let accesses: Vec<Access> = done.accesses.iter().flat_map(|a| a.each()).collect();
        self.count_traffic(self.effects[step.index].class, &accesses);
    }
}
