//! Breakpoints and watchpoints.

use super::expr::{self, Expression, Focus, Register, Scope, Space};
use super::timeline::Timeline;
use wavesim_machine::exec::effects::{Effects, File};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch as memory;
use wavesim_machine::state::Wave;

/// A location at which waves stop, optionally under a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakpoint {
    /// The number that `delete` takes.
    pub number: u32,
    /// Byte offset of the instruction; of the first one, if there are several.
    pub pc: u64,
    /// Byte offsets of further instructions: a breakpoint may be at all instructions of a name.
    pub more: Vec<u64>,
    /// The location, as the commands take it.
    pub place: String,
    /// The location and condition, for display.
    pub location: String,
    /// A condition: an expression that must not be zero.
    pub condition: Option<Expression>,
    /// The only wave that stops; `None` for all waves.
    pub wave: Option<usize>,
    /// Whether the breakpoint is deleted when it is hit.
    pub temporary: bool,
    /// Number of times that a wave has reached it with the condition true, whether or not it stopped.
    pub hits: u64,
    /// Selects the hits that stop; `None` for all.
    pub count: Option<HitCount>,
    /// A message to log instead of stopping. Expressions in braces are replaced with their values.
    pub message: Option<String>,
}

/// A selection of a breakpoint's hits: `5` (the fifth and later ones), `== 5`, `> 5`, `>= 5`, `< 5`, `<= 5`,
/// `% 5` (every fifth).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HitCount {
    operator: &'static str,
    number: u64,
}

impl HitCount {
    /// Parses a hit count.
    pub fn parse(text: &str) -> Result<HitCount, String> {
        let text = text.trim();
        let found = ["==", ">=", "<=", ">", "<", "%", "="].into_iter().find(|o| text.starts_with(o));
        let digits = text[found.map_or(0, str::len)..].trim();
        let operator = match found {
            None => ">=",
            Some("=") => "==",
            Some(operator) => operator,
        };
        let number = digits.parse().ok().filter(|n| operator != "%" || *n > 0);
        let number =
            number.ok_or_else(|| format!("`{text}` is not a number of hits: 5, == 5, > 5, % 5 …"))?;
        Ok(HitCount { operator, number })
    }

    /// Returns whether the hit with this number, counted from 1, stops.
    pub fn stops(self, hit: u64) -> bool {
        match self.operator {
            "==" => hit == self.number,
            ">" => hit > self.number,
            "<" => hit < self.number,
            "<=" => hit <= self.number,
            "%" => hit.is_multiple_of(self.number),
            _ => hit >= self.number,
        }
    }
}

impl std::fmt::Display for HitCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.operator, self.number)
    }
}

/// The kind of access at which a watchpoint stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A change of the value.
    Change,
    /// A read of the value.
    Read,
    /// A read or a change.
    Any,
}

/// The value that a watchpoint watches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Watched {
    /// A register of one wave. Of a VGPR, one lane or all lanes.
    Register { wave: usize, register: Register, lane: Option<u32> },
    /// Bytes of global memory.
    Memory { address: u64, len: u64 },
    /// Bytes of LDS.
    Lds { offset: u64, len: u64 },
    /// Bytes of the scratch of one lane.
    Scratch { wave: usize, lane: u32, offset: u64, len: u64 },
}

/// A watchpoint: stops the run when a value changes or is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watchpoint {
    /// The number that `delete` takes.
    pub number: u32,
    /// The value as the user wrote it.
    pub text: String,
    /// The watched value.
    pub target: Watched,
    /// The value after the previous step.
    pub last: Vec<u8>,
    /// The kind of access that stops.
    pub access: Access,
    /// A condition for stopping: an expression that must not be zero.
    pub condition: Option<Expression>,
    /// Number of hits.
    pub hits: u64,
    /// Selects the hits that stop; `None` for all.
    pub count: Option<HitCount>,
}

impl Watched {
    /// Returns whether the value differs from `last` after a step of the workgroup `group`. Registers, LDS and scratch
    /// are not compared across a switch of workgroups.
    pub fn has_changed(&self, timeline: &Timeline<'_>, group: u64, last: &[u8]) -> bool {
        let comparable = matches!(self, Watched::Memory { .. }) || !timeline.has_switched(group);
        comparable && self.read(timeline) != last
    }

    /// Returns the current value.
    pub fn read(&self, timeline: &Timeline<'_>) -> Vec<u8> {
        match self {
            Watched::Memory { address, len } => {
                let mut bytes = vec![0; *len as usize];
                // Unmapped bytes read as zero.
                let _ = timeline.memory().read(*address, &mut bytes);
                bytes
            }
            Watched::Lds { offset, len } => {
                let lds = &timeline.group.lds;
                let end = offset.saturating_add(*len).min(lds.len() as u64);
                lds.get(*offset as usize..end as usize).unwrap_or(&[]).to_vec()
            }
            Watched::Scratch { wave, lane, offset, len } => {
                let focus = Focus { wave: *wave, lane: *lane };
                let mut bytes = vec![0; *len as usize];
                // The watchpoint was set within the lane's scratch.
                let _ = Space::Scratch.read(timeline, focus, *offset, &mut bytes);
                bytes
            }
            Watched::Register { wave, register, lane } => {
                let w = timeline.wave(*wave);
                let dwords: Vec<u32> = match *register {
                    Register::Sgpr(first, n) => (first..first + n).map(|r| w.sgpr(r as u32)).collect(),
                    Register::Vgpr(first, n) => {
                        let lanes = lane.map_or(0..w.size(), |l| l..l + 1);
                        let regs = move |l| (first..first + n).map(move |r| (l, r as u32));
                        lanes.flat_map(regs).map(|(l, r)| w.vgpr(l, r)).collect()
                    }
                    Register::Scc => vec![w.scc],
                    Register::Mode => vec![w.mode],
                    Register::Pc | Register::Status => vec![],
                };
                dwords.iter().flat_map(|d| d.to_le_bytes()).collect()
            }
        }
    }
}

impl Watched {
    /// Returns whether the instruction that the wave is about to execute reads the register.
    pub fn is_read_by(&self, effects: &Effects, wave: usize, w: &Wave) -> bool {
        let Watched::Register { wave: watched, register, lane } = self else { return false };
        let (file, first, count) = match *register {
            Register::Sgpr(first, count) => (File::Sgpr, first, count),
            Register::Vgpr(first, count) => (File::Vgpr, first, count),
            Register::Scc => (File::Scc, 0, 1),
            _ => return false,
        };
        *watched == wave
            && effects.reads.iter().any(|used| {
                let registers = used.registers(w, false);
                used.file == file
                    && registers.start < first + count
                    && first < registers.end
                    && (file != File::Vgpr || lane.is_none_or(|l| used.lane_mask(w) >> l & 1 == 1))
            })
    }

    /// Returns whether one of these accesses of a wave reads the bytes.
    pub fn is_read_in(&self, accesses: &[memory::Access], wave: usize) -> bool {
        let (place, start, len) = match *self {
            Watched::Memory { address, len } => (memory::Place::Global, address, len),
            Watched::Lds { offset, len } => (memory::Place::Lds, offset, len),
            Watched::Scratch { wave: own, .. } if own != wave => return false,
            Watched::Scratch { offset, len, .. } => (memory::Place::Scratch, offset, len),
            Watched::Register { .. } => return false,
        };
        // Accesses to scratch are those of single lanes.
        let other = |a: &memory::Access| match *self {
            Watched::Scratch { lane, .. } => a.lane.is_some_and(|of| u32::from(of) != lane),
            _ => false,
        };
        accesses.iter().any(|a| {
            !other(a)
                && !a.write
                && a.place == place
                && a.address < start + len
                && start < a.address + a.len_bytes()
        })
    }
}

/// Returns the PCs of a location: that of [`locate`] and those where the compiler has inlined the same line or
/// function, or those of the instructions of a name.
///
/// # Errors
/// There is no such location.
pub fn locate_all(text: &str, timeline: &Timeline<'_>) -> Result<Vec<u64>, String> {
    let function = function(text, timeline);
    if !function.is_empty() {
        return Ok(function);
    }
    let is_line = text.rsplit(':').next().is_some_and(|line| line.parse::<u32>().is_ok());
    match locate(text, timeline) {
        Ok(pc) if is_line => Ok(instances(pc, timeline)),
        Ok(pc) => Ok(vec![pc]),
        Err(message) => {
            let named = instructions(text, &timeline.prepared.program);
            if named.is_empty() { Err(message) } else { Ok(named) }
        }
    }
}

/// Returns the PCs of the source line of an instruction: the first of each function, and of each inlined call.
pub fn instances(pc: u64, timeline: &Timeline<'_>) -> Vec<u64> {
    let (program, debug) = (&timeline.prepared.program, &timeline.prepared.debug);
    let line = |at: usize| program.source_line(at).map(|l| (l.file, l.line));
    let Some(wanted) = program.inst_at(pc).and_then(line) else { return vec![pc] };
    let (mut seen, mut pcs) = (Vec::new(), Vec::new());
    for at in 0..program.pcs.len() {
        if line(at) != Some(wanted) || at > 0 && line(at - 1) == Some(wanted) {
            continue;
        }
        let function = debug.functions(program.address(program.pcs[at])).into_iter().next();
        if !seen.contains(&function) {
            seen.push(function);
            pcs.push(program.pcs[at]);
        }
    }
    pcs
}

/// Returns the PCs of the instructions of a name, with or without the suffix of its encoding.
fn instructions(name: &str, program: &Program) -> Vec<u64> {
    let named = |at: &usize| {
        let text = program.text(*at);
        let own = text.split_whitespace().next().unwrap_or_default();
        let plain = ["_e32", "_e64", "_dpp", "_sdwa", "_e64_dpp"].iter().find_map(|s| own.strip_suffix(s));
        own == name || plain == Some(name)
    };
    (0..program.insts.len()).filter(named).map(|at| program.pcs[at]).collect()
}

/// Returns the PC of a location: a line (the first instruction at or after it), a label, a function, or an
/// address (`0x…`, `*N`).
pub fn locate(text: &str, timeline: &Timeline<'_>) -> Result<u64, String> {
    let program = &timeline.prepared.program;
    if let Some(pc) = function(text, timeline).first() {
        return Ok(*pc);
    }
    if let Some((_, pc)) = timeline.prepared.labels.iter().find(|l| l.0 == text) {
        return Ok(*pc);
    }
    if let Some((name, line)) = text.rsplit_once(':') {
        return in_file(program, name, line);
    }
    let address = text.strip_prefix('*').unwrap_or(text);
    if let Some(hex) = address.strip_prefix("0x") {
        let pc = u64::from_str_radix(hex, 16).map_err(|_| format!("`{text}` is not an address"))?;
        return at_instruction(program, pc);
    }
    let Ok(number) = address.parse::<u32>() else {
        let labels: Vec<&str> = timeline.prepared.labels.iter().map(|l| l.0.as_str()).collect();
        return Err(match expr::nearest(text, &labels) {
            Some(near) => format!("there is no label `{text}`; did you mean `{near}`?"),
            None => format!("`{text}` is not a line, label, function, instruction or address (0x…)"),
        });
    };
    if text.starts_with('*') {
        return at_instruction(program, number as u64);
    }
    if timeline.prepared.source.is_none() && program.source_files().is_empty() {
        return Err("the kernel has no source; give an address (0x…)".to_string());
    }
    let own = kernel_file(timeline);
    let first = |own: Option<u32>| {
        let lines = program.lines.iter().enumerate().filter(|(_, l)| **l >= number);
        let lines = lines.filter(|(at, _)| own.is_none() || program.source_line(*at).map(|l| l.file) == own);
        lines.min_by_key(|(at, l)| (**l, *at))
    };
    first(own)
        .or_else(|| first(None))
        .map(|(at, _)| program.pcs[at])
        .ok_or_else(|| format!("there is no instruction at or after line {number}"))
}

/// Returns the number of the file that has the kernel: its first instructions may be of functions of a header.
fn kernel_file(timeline: &Timeline<'_>) -> Option<u32> {
    let (prepared, program) = (timeline.prepared, &timeline.prepared.program);
    let at = program.inst_at(prepared.shape.entry_pc)?;
    let functions = prepared.debug.functions(program.address(program.pcs[at]));
    let call = functions.iter().rev().nth(1).and_then(|function| function.call.as_ref());
    let files = program.source_files();
    let of_call = call.and_then(|call| files.iter().position(|file| file.path == call.path));
    of_call.map(|file| file as u32).or_else(|| program.source_line(at).map(|line| line.file))
}

/// Returns the instructions at which a function begins that debug information names: where its frame has been set up,
/// and where it is inlined.
fn function(name: &str, timeline: &Timeline<'_>) -> Vec<u64> {
    let (program, debug) = (&timeline.prepared.program, &timeline.prepared.debug);
    let own = debug.function_addresses(name).and_then(|addresses| body(addresses, timeline));
    let inlined = debug.inlined_starts(name).into_iter().map(|address| program.pc_at(address));
    own.into_iter().chain(inlined.filter(|pc| program.inst_at(*pc).is_some())).collect()
}

/// Returns the instruction of a function at which its frame has been set up: the end of the prologue, or else the first
/// one of the second line.
fn body(addresses: std::ops::Range<u64>, timeline: &Timeline<'_>) -> Option<u64> {
    let program = &timeline.prepared.program;
    let marked = timeline.prepared.debug.body(&addresses).map(|address| program.pc_at(address));
    if let Some(pc) = marked.filter(|pc| program.inst_at(*pc).is_some()) {
        return Some(pc);
    }
    let start = program.inst_at(program.pc_at(addresses.start))?;
    let end = program.pc_at(addresses.end);
    let line = |at: usize| program.source_line(at).map(|l| (l.file, l.line));
    let mut inside = (start..program.insts.len()).take_while(|at| program.pcs[*at] < end);
    let second = inside.find(|at| line(*at).is_some() && line(*at) != line(start));
    Some(program.pcs[second.unwrap_or(start)])
}

/// Returns whether an instruction comes before the frame of its function is set up.
pub fn is_in_prologue(pc: u64, timeline: &Timeline<'_>) -> bool {
    let (program, debug) = (&timeline.prepared.program, &timeline.prepared.debug);
    let address = program.address(pc);
    let addresses = debug.addresses_around(address);
    addresses.and_then(|of| debug.body(&of)).is_some_and(|body| address < body)
}

/// Returns the PC of a line of a file that debug information names: `kernel.cl:12`.
fn in_file(program: &Program, name: &str, line: &str) -> Result<u64, String> {
    let number: u32 = line.parse().map_err(|_| format!("`{line}` is not a line"))?;
    let files = program.source_files();
    let named = |path: &str| path == name || path.strip_suffix(name).is_some_and(|head| head.ends_with('/'));
    let Some(file) = files.iter().position(|f| named(&f.path) || named(&f.name)) else {
        let names: Vec<&str> = files.iter().map(|f| &*f.name).collect();
        return Err(match &names[..] {
            [] => "the kernel has no debug information that names files".to_string(),
            names => format!("there is no file `{name}`; files are {}", names.join(", ")),
        });
    };
    let lines = (0..program.pcs.len()).filter_map(|at| Some((program.source_line(at)?, at)));
    let first = lines
        .filter(|(l, _)| l.file as usize == file && l.line >= number)
        .min_by_key(|(l, at)| (l.line, *at));
    first
        .map(|(_, at)| program.pcs[at])
        .ok_or_else(|| format!("there is no instruction at or after line {number} of {name}"))
}

fn at_instruction(program: &Program, pc: u64) -> Result<u64, String> {
    let place = program.pc_at(pc);
    match program.inst_at(place) {
        Some(_) => Ok(place),
        None => Err(format!("no instruction begins at 0x{pc:x}")),
    }
}

impl Breakpoint {
    /// Returns whether the breakpoint is at an instruction, given by its byte offset.
    pub fn is_at(&self, pc: u64) -> bool {
        self.pc == pc || self.more.contains(&pc)
    }

    /// Returns the byte offsets of its instructions.
    pub fn pcs(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.pc).chain(self.more.iter().copied())
    }

    /// Returns whether the breakpoint is hit by the wave, which is about to execute an instruction.
    pub fn is_hit(&self, timeline: &Timeline<'_>, focus: Focus) -> Result<bool, String> {
        if !self.is_at(timeline.wave(focus.wave).pc) || self.wave.is_some_and(|w| w != focus.wave) {
            return Ok(false);
        }
        match &self.condition {
            None => Ok(true),
            Some(condition) => condition.evaluate(&Scope::new(timeline, focus)).map(|v| v.truth()),
        }
    }

    /// Returns the message with its expressions replaced by their values.
    pub fn format_message(&self, timeline: &Timeline<'_>, focus: Focus) -> Option<String> {
        let mut out = String::new();
        let mut rest = self.message.as_deref()?;
        while let Some((text, tail)) = rest.split_once('{') {
            out.push_str(text);
            let Some((expression, tail)) = tail.split_once('}') else {
                out.push('{');
                rest = tail;
                break;
            };
            match expr::evaluate(expression, timeline, focus) {
                Ok(value) => out.push_str(&value.to_string()),
                Err(message) => out.push_str(&format!("{{{message}}}")),
            }
            rest = tail;
        }
        out.push_str(rest);
        Some(out)
    }
}
