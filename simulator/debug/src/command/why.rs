//! `why`: the origin of a value. The search goes back from a register to the instruction that wrote it, from
//! there to its sources, from a load to the store of the same bytes, and so on. It ends at constants,
//! buffers, and unwritten registers and bytes.

use super::{CommandResult, Debugger};
use crate::expr::{self, Register};
use crate::search::{StoreSearch, WriteSearch};
use crate::view;
use isa_spec::tables::Role;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wavesim_inspect::check::initial_registers;
use wavesim_loader::debug_info::Register as Location;
use wavesim_machine::exec::effects::{File, register_name};
use wavesim_machine::exec::watch::{Access, Place};

/// A register of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Value {
    file: File,
    register: u16,
    wave: usize,
    lane: u32,
}

/// Where a value is whose origin is searched.
enum Origin {
    /// In memory; scratch is that of a wave and a lane.
    Bytes { place: Place, address: u64, len: u64, owner: Option<(usize, u32)> },
    /// In registers of the selected wave and lane.
    Registers(Vec<(File, u16)>),
}

/// State of the search of one command.
pub(super) struct Trace {
    /// Maximum depth of the tree.
    depth: u32,
    /// Writes that are already listed.
    seen: BTreeSet<(Value, u64)>,
    lines: usize,
}

/// Default limits of the tree, in levels and lines.
const DEPTH: u32 = 24;
const LINES: usize = 40;

impl Debugger<'_> {
    pub(super) fn why(&mut self, text: &str, out: &mut String) -> CommandResult {
        if text.is_empty() {
            return self.why_finding(out);
        }
        let (what, depth) = match text.rsplit_once(' ') {
            Some((what, depth)) if depth.parse::<u32>().is_ok() => (what.trim(), depth.parse().ok()),
            _ => (text, None),
        };
        let wide = self.timeline.wave(self.focus.wave).size() == 64;
        let (name, lane) = match what.strip_suffix(']').and_then(|t| t.rsplit_once('[')) {
            Some((name, lane)) if name.len() > 1 && expr::register(name, wide, self.arch()).is_some() => {
                let lane =
                    lane.trim().parse().ok().filter(|l| *l < self.timeline.wave(self.focus.wave).size());
                (name, lane.ok_or_else(|| format!("there is no lane in `{what}`"))?)
            }
            _ => (what, self.focus.lane),
        };
        let wave = self.focus.wave;
        let now = self.timeline.time();
        // Right after `last-write`, the question is about that write, which is the next step.
        let written = self.last_write.clone().filter(|(_, time)| *time == now);
        if written.is_some_and(|(target, _)| self.watched(what).is_ok_and(|what| what == target)) {
            self.timeline.go_to(now + 1);
        }
        let mut trace = Trace::new(depth);
        let (file, register) = match expr::register(name, wide, self.arch()) {
            Some(Register::Sgpr(first, _)) => (File::Sgpr, first),
            Some(Register::Vgpr(first, _)) => (File::Vgpr, first),
            Some(Register::Scc) => (File::Scc, 0),
            Some(_) => return Err(format!("writes of `{what}` are not recorded")),
            None => {
                match self.origin_of(what)? {
                    Origin::Bytes { place, address, len, owner } => {
                        self.trace_bytes(place, address, len, owner, 0, &mut trace, out);
                    }
                    Origin::Registers(registers) => {
                        for (file, register) in registers {
                            self.timeline.go_to(now);
                            self.trace_back(Value { file, register, wave, lane }, 0, &mut trace, out);
                        }
                    }
                }
                self.timeline.go_to(now);
                return Ok(());
            }
        };
        self.trace_back(Value { file, register, wave, lane }, 0, &mut trace, out);
        self.timeline.go_to(now);
        Ok(())
    }

    /// Returns what `out_y[3]`, `lds OFFSET BYTES`, `mem ADDRESS BYTES` or a variable of the source designates.
    fn origin_of(&self, text: &str) -> Result<Origin, String> {
        use crate::breakpoint::Watched;
        if let Some(registers) = self.registers_of(text) {
            return Ok(Origin::Registers(registers));
        }
        let bytes = |place, address, len, owner| Ok(Origin::Bytes { place, address, len, owner });
        match self.watched(text) {
            Ok(Watched::Memory { address, len }) => bytes(Place::Global, address, len, None),
            Ok(Watched::Lds { offset, len }) => bytes(Place::Lds, offset, len, None),
            Ok(Watched::Scratch { wave, lane, offset, len }) => {
                bytes(Place::Scratch, offset, len, Some((wave, lane)))
            }
            _ => Err(format!("`{text}` is not a register or memory whose writes are recorded")),
        }
    }

    /// Returns the registers that hold a variable of the source.
    fn registers_of(&self, text: &str) -> Option<Vec<(File, u16)>> {
        let name = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        if !self.timeline.prepared.debug.has_variable(name) {
            return None;
        }
        let registers = self.object(text, self.focus).ok()??.registers()?;
        let of = |register| match register {
            Location::Sgpr(code) => (File::Sgpr, code),
            Location::Vgpr(register) => (File::Vgpr, register),
        };
        Some(registers.into_iter().map(of).collect())
    }

    /// Does the work of [`Debugger::trace_back`] for a register of a wave, and of a lane if it is a VGPR.
    pub(super) fn trace_register(
        &mut self,
        (file, register): (File, u16),
        wave: usize,
        lane: u32,
        indent: usize,
        trace: &mut Trace,
        out: &mut String,
    ) {
        self.trace_back(Value { file, register, wave, lane }, indent, trace, out);
    }

    /// Lists the last write of a register and the origins of its sources. Leaves the timeline in the past.
    fn trace_back(&mut self, value: Value, indent: usize, trace: &mut Trace, out: &mut String) {
        let Value { file, register, wave, lane } = value;
        let name = register_name(self.arch(), file, register, 1);
        let pad = "  ".repeat(indent);
        let mut lane_text = if file == File::Vgpr { format!(" (lane {lane})") } else { String::new() };
        if wave != self.focus.wave {
            lane_text.push_str(&format!(" (wave {wave})"));
        }
        let effects = std::mem::take(&mut self.effects);
        let start = self.timeline.group_start(self.timeline.position().0).unwrap_or(0);
        let workgroup = self.timeline.workgroup();
        let lane_wanted = (file == File::Vgpr).then_some(lane);
        let mut search = WriteSearch::new(&effects, workgroup, wave, (file, register), lane_wanted);
        let found = self.timeline.find_back(start, &mut search);
        self.effects = effects;
        trace.lines += 1;
        let Some(time) = found else {
            let _ = writeln!(out, "{pad}{name}{lane_text}: {}", self.unwritten(file, register));
            return;
        };
        self.timeline.go_to(time);
        let pc = self.timeline.wave(wave).pc;
        let instruction = view::instruction(&self.timeline, pc);
        if !trace.seen.insert((value, time)) {
            let _ = writeln!(out, "{pad}{name}{lane_text}: step {time}, as above");
            return;
        }
        let _ = writeln!(out, "{pad}{name}{lane_text}: step {time}, {instruction}");
        if !trace.descends(indent, out) {
            return;
        }
        let Some(at) = self.timeline.prepared.program.inst_at(pc) else { return };
        if self.effects[at].class.is_memory() && self.effects[at].returns {
            // A load returns the data that was stored there, regardless of the address computation.
            if let Some(read) = self.load_of(value, at) {
                let owner = (read.place == Place::Scratch).then_some((wave, lane));
                let len = read.len_bytes();
                self.timeline.go_to(time);
                self.trace_bytes(read.place, read.address, len, owner, indent + 1, trace, out);
                self.timeline.go_to(time);
            }
        }
        self.trace_sources(value, at, time, indent, trace, out);
    }

    /// Lists the origins of an instruction's sources. The timeline must be just before the instruction.
    fn trace_sources(
        &mut self,
        value: Value,
        index: usize,
        time: u64,
        indent: usize,
        trace: &mut Trace,
        out: &mut String,
    ) {
        let w = self.timeline.wave(value.wave);
        let exec = wavesim_machine::state::wave::EXEC_LO as u16;
        let sources: Vec<Value> = self.effects[index]
            .reads
            .iter()
            // EXEC determines which lanes run, not their values.
            .filter(|r| !(r.file == File::Sgpr && r.first == exec && r.role == Role::State))
            .map(|r| {
                let lanes = r.lane_mask(w);
                let own = lanes >> value.lane & 1 == 1 || lanes == 0;
                let lane = if own { value.lane } else { lanes.trailing_zeros() };
                Value { file: r.file, register: r.start(w), wave: value.wave, lane }
            })
            .collect();
        for source in sources {
            self.trace_back(source, indent + 1, trace, out);
            self.timeline.go_to(time);
            if trace.lines > LINES {
                return;
            }
        }
    }

    /// Returns the access of the current load that fills a register.
    fn load_of(&mut self, value: Value, index: usize) -> Option<Access> {
        let used = self.effects[index].writes.iter().find(|u| {
            let start = u.start(self.timeline.wave(value.wave));
            u.file == value.file && (start..start + u.count).contains(&value.register)
        })?;
        let first = used.start(self.timeline.wave(value.wave));
        let recorded = std::mem::replace(&mut self.timeline.record_accesses, true);
        self.timeline.repeat();
        self.timeline.record_accesses = recorded;
        let lane = (value.file == File::Vgpr).then_some(value.lane as u8);
        let mut reads: Vec<Access> = self
            .timeline
            .accesses()
            .iter()
            .filter(|a| !a.write && !a.outside)
            .flat_map(|a| a.each())
            .filter(|a| lane.is_none() || a.lane == lane)
            .collect();
        // Registers are filled in the order of the accesses; an access of several dwords fills several
        // registers.
        let mut skip = 4 * (value.register - first) as u64;
        while reads.len() > 1 && skip >= reads[0].len_bytes() {
            skip -= reads[0].len_bytes();
            reads.remove(0);
        }
        let read = reads.first()?;
        let skip = skip.min(read.len_bytes().saturating_sub(1));
        let size_bytes = (read.size_bytes as u64 - skip).min(4) as u8;
        Some(Access { address: read.address + skip, size_bytes, ..*read })
    }

    /// Lists the last store to some bytes and the origins of its data.
    #[expect(clippy::too_many_arguments)]
    fn trace_bytes(
        &mut self,
        place: Place,
        address: u64,
        len: u64,
        owner: Option<(usize, u32)>,
        indent: usize,
        trace: &mut Trace,
        out: &mut String,
    ) {
        let pad = "  ".repeat(indent);
        let name = self.name_of(place, address, len);
        let start = self.timeline.group_start(self.timeline.position().0).unwrap_or(0);
        // The contents of LDS and scratch begin with the workgroup.
        let earliest = if place == Place::Global { 0 } else { start };
        let mut search = StoreSearch::new(&self.timeline, &self.effects, (place, address, len), owner);
        let found = self.timeline.find_back(earliest, &mut search);
        trace.lines += 1;
        let Some(time) = found else {
            let what = match place {
                Place::Global if self.timeline.memory().describe(address).is_some() => {
                    "initial contents: nothing has stored here before"
                }
                Place::Global => "outside of every argument",
                _ => "uninitialised: nothing has stored here before",
            };
            let _ = writeln!(out, "{pad}{name}: {what}");
            return;
        };
        let lane = search.lane.map_or(0, u32::from);
        let wave = self.timeline.wave_of_step(time).unwrap_or(self.focus.wave);
        self.timeline.go_to(time);
        let pc = self.timeline.wave(wave).pc;
        let [x, y, z] = self.timeline.workgroup();
        let _ = writeln!(
            out,
            "{pad}{name}: step {time}, {}   (workgroup ({x},{y},{z}), wave {wave}, lane {lane})",
            view::instruction(&self.timeline, pc)
        );
        if !trace.descends(indent, out) {
            return;
        }
        let Some(at) = self.timeline.prepared.program.inst_at(pc) else { return };
        let w = self.timeline.wave(wave);
        let data: Vec<Value> = self.effects[at]
            .reads
            .iter()
            .filter(|r| matches!(r.role, Role::Data | Role::Data1 | Role::D0))
            .map(|r| Value { file: r.file, register: r.start(w), wave, lane })
            .collect();
        for source in data {
            self.trace_back(source, indent + 1, trace, out);
            self.timeline.go_to(time);
        }
    }

    /// Returns a name for bytes of memory: the element of an argument, or an offset.
    fn name_of(&self, place: Place, address: u64, len: u64) -> String {
        match place {
            Place::Lds => return format!("lds 0x{address:x}"),
            Place::Scratch => return format!("scratch 0x{address:x}"),
            _ => {}
        }
        let buffers = &self.timeline.prepared.buffers;
        let inside = buffers.iter().find(|b| (b.address..b.address + b.len_bytes).contains(&address));
        match inside {
            Some(b) if len <= b.dtype.size() as u64 && !b.shape.is_empty() => {
                format!("{}[{}]", b.name, (address - b.address) / b.dtype.size() as u64)
            }
            Some(b) => b.name.clone(),
            None => match self.timeline.memory().describe(address) {
                Some(name) => name,
                None => format!("mem 0x{address:x}"),
            },
        }
    }

    /// Describes the state of a register that no instruction of its wave has written.
    fn unwritten(&self, file: File, register: u16) -> &'static str {
        let (sgprs, vgprs) = initial_registers(&self.timeline.prepared.shape);
        let set = match file {
            _ if self.arch().machine().is_some() => true,
            File::Vgpr => (register as usize) < vgprs,
            File::Sgpr => sgprs.checked_shr(register as u32).unwrap_or(0) & 1 == 1,
            File::Scc => false,
        };
        if set { "set when the wave starts" } else { "uninitialised: not written since the wave's start" }
    }
}

impl Trace {
    /// Creates the state with a maximum depth.
    pub(super) fn new(depth: Option<u32>) -> Trace {
        Trace { depth: depth.unwrap_or(DEPTH), seen: BTreeSet::new(), lines: 0 }
    }

    /// Returns whether the next level is listed, too. Writes an ellipsis if the list is cut.
    fn descends(&mut self, indent: usize, out: &mut String) -> bool {
        if self.lines > LINES {
            let _ = writeln!(out, "{}…", "  ".repeat(indent + 1));
        }
        self.lines <= LINES && indent as u32 + 1 < self.depth
    }
}
