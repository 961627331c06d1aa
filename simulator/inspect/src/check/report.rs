//! Findings: the error, its program point and a related one, as text and as JSON.

use super::Check;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use wavesim_engine::observe::Step;
use wavesim_loader::prepared::{Buffer, Prepared};
use wavesim_machine::exec::effects::File;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::fault::Fault;

/// A program point of a wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Byte offset in the program; in a finished report, the address given by [`Program::address`].
    pub pc: u64,
    /// Line number; 0 without source.
    pub line: u32,
    /// The source file, where debug information names one.
    pub file: Option<Arc<str>>,
    /// The call sites that the compiler has inlined here, innermost first; only in a finished report.
    pub inlined: Vec<String>,
    /// The instruction.
    pub text: String,
    /// Coordinates of the workgroup in the grid.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup.
    pub wave: u32,
    /// The lane; `None` if the finding does not concern a single lane.
    pub lane: Option<u32>,
}

impl Site {
    /// Returns the program point of a step.
    pub fn new(step: &Step<'_>, lane: Option<u32>) -> Site {
        Site { lane, ..Site::at(step, step.pc, step.wave.workgroup, step.wave.id) }
    }

    /// Returns the program point at which a fault occurred.
    pub fn of_fault(fault: &Fault, program: &Program) -> Site {
        Site {
            pc: program.pc_at(fault.pc),
            line: fault.line,
            file: fault.file.clone(),
            inlined: Vec::new(),
            text: fault.instruction.clone(),
            workgroup: fault.workgroup,
            wave: fault.wave,
            lane: fault.lane,
        }
    }

    /// Returns another program point of the same program.
    pub fn at(step: &Step<'_>, pc: u64, workgroup: [u32; 3], wave: u32) -> Site {
        let index = step.program.inst_at(pc);
        let location = step.program.location(pc).unwrap_or_default();
        Site {
            pc,
            line: location.line,
            file: location.file,
            inlined: Vec::new(),
            text: index.map_or_else(String::new, |i| step.program.text(i)),
            workgroup,
            wave,
            lane: None,
        }
    }
}

impl Site {
    /// Replaces the byte offset with the address that listings show, and finds inlined calls.
    fn resolve(&mut self, prepared: &Prepared) {
        self.pc = prepared.program.address(self.pc);
        self.inlined = prepared.debug.inlined_calls(self.pc);
    }

    /// Returns the source position, as in `line 12`, `kernel.cl:12` or `pc 0x1640`.
    pub fn place(&self) -> String {
        match (&self.file, self.line) {
            (_, 0) => format!("pc 0x{:x}", self.pc),
            (None, line) => format!("line {line}"),
            (Some(file), line) => format!("{file}:{line}"),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place())?;
        if !self.inlined.is_empty() {
            write!(f, " (inlined at {})", self.inlined.join(", "))?;
        }
        write!(f, ": {}", self.text)?;
        let [x, y, z] = self.workgroup;
        write!(f, "   (workgroup ({x},{y},{z}), wave {}", self.wave)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        write!(f, ")")
    }
}

/// A related program point, such as the second of two accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// The role in relation to the first one: "earlier store", "the load" …
    pub role: &'static str,
    /// The instruction.
    pub site: Site,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The kernel is incorrect here.
    Error,
    /// Useful information, but no error in itself.
    Note,
}

impl Severity {
    /// Returns the name used in machine output.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Note => "note",
        }
    }
}

/// An error or a note. Repetitions at the same program point are only counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The check that found it.
    pub check: Check,
    /// Error or note.
    pub severity: Severity,
    /// The kind of error, one of those that the check reports.
    pub kind: &'static str,
    /// A sentence that describes the error, without the program point.
    pub message: String,
    /// The program point.
    pub site: Site,
    /// The second program point, if there is one, such as the other access of a race.
    pub other: Option<Other>,
    /// The accessed address: in global memory, or an offset in LDS or in the lane's scratch.
    pub address: Option<u64>,
    /// The register with the erroneous value, in the lane of the site.
    pub register: Option<(File, u16)>,
    /// A proposed correction.
    pub hint: Option<String>,
    /// Number of occurrences.
    pub count: u64,
}

impl Finding {
    /// Creates an error that has occurred once.
    pub fn new(check: Check, kind: &'static str, message: String, site: Site) -> Finding {
        let severity = Severity::Error;
        Finding {
            check,
            severity,
            kind,
            message,
            site,
            other: None,
            address: None,
            register: None,
            hint: None,
            count: 1,
        }
    }

    /// Turns the finding into a note.
    pub fn note(mut self) -> Finding {
        self.severity = Severity::Note;
        self
    }

    /// Adds a second program point with its role.
    pub fn other(mut self, role: &'static str, site: Site) -> Finding {
        self.other = Some(Other { role, site });
        self
    }

    /// Adds the accessed address.
    pub fn address(mut self, address: u64) -> Finding {
        self.address = Some(address);
        self
    }

    /// Adds the register with the erroneous value.
    pub fn register(mut self, file: File, register: u16) -> Finding {
        self.register = Some((file, register));
        self
    }

    /// Adds a proposed correction.
    pub fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hint = Some(hint.into());
        self
    }

    /// Converts program points to the addresses that listings show.
    pub fn resolve(&mut self, prepared: &Prepared) {
        self.site.resolve(prepared);
        if let Some(other) = &mut self.other {
            other.site.resolve(prepared);
        }
    }

    /// Returns the finding as machine output.
    pub fn json(&self) -> Value {
        let other = self.other.as_ref().map(|o| {
            let mut other = json!({"line": o.site.line, "file": o.site.file.as_deref(), "pc": o.site.pc, "workgroup": o.site.workgroup, "wave": o.site.wave,
                "lane": o.site.lane, "text": o.site.text, "role": o.role});
            if !o.site.inlined.is_empty() {
                other["inlined"] = json!(o.site.inlined);
            }
            other
        });
        let mut out = json!({
            "schema": "wavesim-check-1",
            "check": self.check.name(),
            "severity": self.severity.name(),
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
        });
        if !self.site.inlined.is_empty() {
            out["inlined"] = json!(self.site.inlined);
        }
        out
    }
}

/// Returns a fault as machine output; addresses are in hexadecimal.
pub fn fault_json(fault: &Fault) -> Value {
    json!({
        "kind": fault.kind.name(),
        "message": fault.message,
        "line": fault.line,
        "file": fault.file.as_deref(),
        "pc": fault.pc,
        "text": fault.instruction,
        "workgroup": fault.workgroup,
        "wave": fault.wave,
        "lane": fault.lane,
        "address": fault.address.map(|a| format!("{a:x}")),
    })
}

/// Returns a fault in the form of a finding's machine output.
pub fn fault_as_finding(fault: &Fault) -> Value {
    let mut out = fault_json(fault);
    out["schema"] = json!("wavesim-check-1");
    out["check"] = json!("fault");
    out["severity"] = json!(Severity::Error.name());
    out
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.severity == Severity::Note { "note: " } else { "" };
        writeln!(f, "{note}{}: {}", self.check.name(), self.message)?;
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

/// A collection of findings, one per kind and program point.
#[derive(Debug)]
pub struct Report {
    /// The enabled checks. Findings of others are dropped, since one check may detect an error that belongs
    /// to another.
    enabled: Vec<Check>,
    findings: Vec<Finding>,
    seen: HashMap<Key, usize>,
    /// The waves that execute code of the device libraries.
    muted: HashSet<([u32; 3], u32)>,
}

/// The checks whose findings in the device libraries are dropped: nobody who uses these can do anything about them.
const MUTED: [Check; 5] = [Check::Init, Check::Race, Check::Waits, Check::Lanes, Check::Arith];

impl Report {
    /// Creates a report that accepts findings of the enabled checks only.
    pub fn new(enabled: &[Check]) -> Report {
        let (findings, seen, muted) = (Vec::new(), HashMap::new(), HashSet::new());
        Report { enabled: enabled.to_vec(), findings, seen, muted }
    }

    /// Returns whether a finding is new and must be passed to [`Report::add`]; otherwise counts the
    /// repetition.
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

    /// Drops most findings of a wave until it has left the device libraries.
    pub fn mute(&mut self, workgroup: [u32; 3], wave: u32, muted: bool) {
        match muted {
            true => self.muted.insert((workgroup, wave)),
            false => self.muted.remove(&(workgroup, wave)),
        };
    }

    /// Adds a finding and returns its number, for [`Report::demote`].
    pub fn add(&mut self, finding: Finding) -> usize {
        let wave = (finding.site.workgroup, finding.site.wave);
        if !self.muted.is_empty() && MUTED.contains(&finding.check) && self.muted.contains(&wave) {
            return usize::MAX;
        }
        let other = finding.other.as_ref().map(|o| o.site.pc);
        let key = (finding.check, finding.kind, finding.site.pc, other);
        self.seen.insert(key, self.findings.len());
        self.findings.push(finding);
        self.findings.len() - 1
    }

    /// Turns a finding into a note, for the given reason.
    pub fn demote(&mut self, number: usize, reason: &str) {
        if let Some(finding) = self.findings.get_mut(number) {
            finding.severity = Severity::Note;
            finding.hint = Some(reason.to_string());
        }
    }

    /// Returns the findings so far, in the order in which they were found.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns all findings in the order in which they were found, with the addresses that listings show.
    pub fn finish(mut self, prepared: &Prepared) -> Vec<Finding> {
        self.findings.iter_mut().for_each(|finding| finding.resolve(prepared));
        self.findings
    }
}

/// Returns the name of an access in messages.
pub fn access_name(a: &Access, atomic: bool) -> &'static str {
    match (atomic, a.write) {
        (true, _) => "atomic",
        (false, true) => "store",
        (false, false) => "load",
    }
}

/// Returns a description of the accessed bytes, as in `16 bytes at y[2] (offset 0x20, 0x7000…)` or `4 bytes
/// at LDS offset 0x40`.
pub fn describe(prepared: &Prepared, place: Place, address: u64, size: u32) -> String {
    let s = if size == 1 { "" } else { "s" };
    let memory = &prepared.memory;
    let place = match place {
        Place::Global if memory.is_word_addressed() => format!("address {}", memory.own_address(address)),
        Place::Global => global_place(prepared, address),
        Place::Lds => format!("LDS offset 0x{address:x}"),
        Place::Scratch => format!("scratch offset 0x{address:x}"),
        Place::Nowhere => "an address outside of the buffer".to_string(),
    };
    format!("{size} byte{s} at {place}")
}

/// Maximum distance in bytes at which an address is described relative to an allocation.
const NEAR_BYTES: u64 = 4096;

/// Returns a description of a global address relative to the allocation that contains it, or else to the
/// nearest one.
fn global_place(prepared: &Prepared, address: u64) -> String {
    let regions = prepared.memory.regions();
    let next = regions.partition_point(|r| r.base <= address);
    let previous = next.checked_sub(1).map(|at| &regions[at]);
    if let Some(region) = previous.filter(|r| address - r.base < r.len) {
        let offset = address - region.base;
        return match prepared.buffers.iter().find(|b| b.address == region.base && b.name == region.name) {
            Some(buffer) => format!("{} (offset 0x{offset:x}, 0x{address:x})", element(buffer, offset)),
            None => format!("{}+0x{offset:x} (0x{address:x})", region.name),
        };
    }
    let past_end = previous.map(|r| (address - r.base - r.len, r)).filter(|(n, _)| *n < NEAR_BYTES);
    let before_start = regions.get(next).map(|r| (r.base - address, r)).filter(|(n, _)| *n < NEAR_BYTES);
    match (past_end, before_start) {
        (past_end, Some((n, next))) if past_end.is_none_or(|(m, _)| n < m) => {
            format!("{n} bytes before {} (0x{address:x})", next.name)
        }
        (Some((0, region)), _) => format!("just beyond the end of {} (0x{address:x})", region.name),
        (Some((n, region)), _) => format!("{n} bytes beyond the end of {} (0x{address:x})", region.name),
        _ => format!("0x{address:x}"),
    }
}

/// Returns the name of an element of a buffer, as in `x[3]` or `y[1, 2]`; `x[3]+2` is a byte within an
/// element.
fn element(buffer: &Buffer, offset: u64) -> String {
    let size = buffer.dtype.size() as u64;
    let mut rest = offset / size;
    let mut index: Vec<String> = Vec::new();
    for &length in buffer.shape.iter().skip(1).rev() {
        index.push((rest % length.max(1)).to_string());
        rest /= length.max(1);
    }
    index.push(rest.to_string());
    index.reverse();
    let part = match offset % size {
        0 => String::new(),
        n => format!("+{n}"),
    };
    match buffer.shape.is_empty() {
        true => format!("{}{part}", buffer.name),
        false => format!("{}[{}]{part}", buffer.name, index.join(", ")),
    }
}
