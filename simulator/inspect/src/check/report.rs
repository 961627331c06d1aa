//! Findings: what is wrong, where, and beside what; as text and as JSON.

use super::Check;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use wavesim_engine::observe::Step;
use wavesim_machine::exec::program::Program;
use wavesim_machine::fault::Fault;
use wavesim_machine::memory::Memory;

/// An instruction of a wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    pub pc: u64,
    /// 0 without source.
    pub line: u32,
    /// The source file, where debug information names one.
    pub file: Option<Arc<str>>,
    pub text: String,
    pub workgroup: [u32; 3],
    pub wave: u32,
    pub lane: Option<u32>,
}

impl Site {
    pub fn new(step: &Step<'_>, lane: Option<u32>) -> Site {
        Site { lane, ..Site::at(step, step.pc, step.wave.workgroup, step.wave.id) }
    }

    pub fn of_fault(fault: &Fault, program: &Program) -> Site {
        Site {
            pc: program.pc_at(fault.pc),
            line: fault.line,
            file: fault.file.clone(),
            text: fault.instruction.clone(),
            workgroup: fault.workgroup,
            wave: fault.wave,
            lane: fault.lane,
        }
    }

    /// An instruction of the same program elsewhere.
    pub fn at(step: &Step<'_>, pc: u64, workgroup: [u32; 3], wave: u32) -> Site {
        let index = step.program.inst_at(pc);
        let location = step.program.location(pc).unwrap_or_default();
        Site {
            pc,
            line: location.line,
            file: location.file,
            text: index.map_or_else(String::new, |i| step.program.text(i)),
            workgroup,
            wave,
            lane: None,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (_, 0) => write!(f, "pc 0x{:x}: {}", self.pc, self.text)?,
            (None, line) => write!(f, "line {line}: {}", self.text)?,
            (Some(file), line) => write!(f, "{file}:{line}: {}", self.text)?,
        }
        let [x, y, z] = self.workgroup;
        write!(f, "   (workgroup ({x},{y},{z}), wave {}", self.wave)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        write!(f, ")")
    }
}

/// The second of two accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// What it is to the first: "earlier store", "the load" …
    pub role: &'static str,
    pub site: Site,
}

/// One mistake. Repetitions at the same place are counted, not repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub check: Check,
    /// Tells kinds of mistakes of one check apart.
    pub kind: &'static str,
    pub message: String,
    pub site: Site,
    pub other: Option<Other>,
    pub address: Option<u64>,
    /// What to do.
    pub hint: Option<String>,
    /// How often it happened.
    pub count: u64,
}

impl Finding {
    pub fn new(check: Check, kind: &'static str, message: String, site: Site) -> Finding {
        Finding { check, kind, message, site, other: None, address: None, hint: None, count: 1 }
    }

    pub fn other(mut self, role: &'static str, site: Site) -> Finding {
        self.other = Some(Other { role, site });
        self
    }

    pub fn address(mut self, address: u64) -> Finding {
        self.address = Some(address);
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hint = Some(hint.into());
        self
    }

    /// As machine output.
    pub fn json(&self) -> Value {
        let other = self.other.as_ref().map(|o| {
            json!({"line": o.site.line, "file": o.site.file.as_deref(), "pc": o.site.pc, "workgroup": o.site.workgroup, "wave": o.site.wave,
                "lane": o.site.lane, "text": o.site.text, "role": o.role})
        });
        json!({
            "check": self.check.name(),
            "kind": self.kind,
            "message": self.message,
            "line": self.site.line,
            "file": self.site.file.as_deref(),
            "pc": self.site.pc,
            "text": self.site.text,
            "workgroup": self.site.workgroup,
            "wave": self.site.wave,
            "lane": self.site.lane,
            "address": self.address.map(|a| format!("{a:x}")),
            "other": other,
            "hint": self.hint,
            "count": self.count,
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.check.name(), self.message)?;
        write!(f, "  at {}", self.site)?;
        if let Some(other) = &self.other {
            write!(f, "\n  {} {}", other.role, other.site)?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  = {hint}")?;
        }
        if self.count > 1 {
            write!(f, "\n  = seen {} times; the first is shown", self.count)?;
        }
        Ok(())
    }
}

type Key = (Check, &'static str, u64, Option<u64>);

/// Collects findings, one for each place.
#[derive(Debug)]
pub struct Report {
    /// Findings of other checks are dropped: a check may come upon what is another's.
    enabled: Vec<Check>,
    findings: Vec<Finding>,
    seen: HashMap<Key, usize>,
}

impl Report {
    pub fn new(enabled: &[Check]) -> Report {
        Report { enabled: enabled.to_vec(), findings: Vec::new(), seen: HashMap::new() }
    }

    /// Counts a repetition; true if the place is new, and [`Report::add`] is to be called.
    pub fn is_new(&mut self, check: Check, kind: &'static str, pc: u64, other: Option<u64>) -> bool {
        if !self.enabled.contains(&check) {
            return false;
        }
        match self.seen.get(&(check, kind, pc, other)) {
            Some(&at) => {
                self.findings[at].count += 1;
                false
            }
            None => true,
        }
    }

    pub fn add(&mut self, finding: Finding) {
        let other = finding.other.as_ref().map(|o| o.site.pc);
        let key = (finding.check, finding.kind, finding.site.pc, other);
        self.seen.insert(key, self.findings.len());
        self.findings.push(finding);
    }

    /// Those so far, in the order they were found.
    pub fn found(&self) -> &[Finding] {
        &self.findings
    }

    /// In the order they were found; places in the program as listings show them.
    pub fn finish(mut self, program: &Program) -> Vec<Finding> {
        for finding in &mut self.findings {
            finding.site.pc = program.address(finding.site.pc);
            if let Some(other) = &mut finding.other {
                other.site.pc = program.address(other.site.pc);
            }
        }
        self.findings
    }
}

/// `16 bytes at y+0x10 (0x7000…)`, `4 bytes at LDS offset 0x40`.
pub fn describe(
    memory: &Memory,
    place: wavesim_machine::exec::watch::Place,
    address: u64,
    size: u32,
) -> String {
    use wavesim_machine::exec::watch::Place;
    let mut out = format!("{size} byte{} at ", if size == 1 { "" } else { "s" });
    // Writing to a string does not fail.
    let _ = match place {
        Place::Global if memory.counts_words() => write!(out, "address {}", memory.own_address(address)),
        Place::Global => match memory.describe(address) {
            Some(name) => write!(out, "{name} (0x{address:x})"),
            None => write!(out, "0x{address:x}"),
        },
        Place::Lds => write!(out, "LDS offset 0x{address:x}"),
        Place::Scratch => write!(out, "scratch offset 0x{address:x}"),
        Place::Nowhere => write!(out, "an address outside of the buffer"),
    };
    out
}
