//! Breakpoints and watchpoints.

use super::expr::{self, Focus, Register};
use super::machine::{Machine, Search};
use wavesim_engine::sched::group::Status;
use wavesim_machine::exec::effects::{Effects, File};
use wavesim_machine::exec::program::Program;

/// Where and when to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakpoint {
    pub number: u32,
    pub pc: u64,
    /// As the user gave the place.
    pub place: String,
    pub condition: Option<String>,
    /// Only this wave.
    pub wave: Option<usize>,
    /// Gone after it was hit.
    pub temporary: bool,
    pub hits: u64,
}

/// What a watchpoint watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// A register of one wave; of a VGPR one lane, or all.
    Register {
        wave: usize,
        register: Register,
        lane: Option<u32>,
    },
    Memory {
        address: u64,
        len: u64,
    },
    Lds {
        offset: u64,
        len: u64,
    },
}

/// Stops when something changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watchpoint {
    pub number: u32,
    pub text: String,
    pub what: Watched,
    /// Content when last looked at; of a register of another workgroup it starts anew.
    pub last: Vec<u8>,
}

impl Watched {
    /// Its present content.
    pub fn content(&self, machine: &Machine<'_>) -> Vec<u8> {
        match self {
            Watched::Memory { address, len } => {
                let mut bytes = vec![0; *len as usize];
                // Unmapped bytes never change.
                let _ = machine.memory().read(*address, &mut bytes);
                bytes
            }
            Watched::Lds { offset, len } => {
                let lds = &machine.group.lds;
                let end = offset.saturating_add(*len).min(lds.len() as u64);
                lds.get(*offset as usize..end as usize).unwrap_or(&[]).to_vec()
            }
            Watched::Register { wave, register, lane } => {
                let w = machine.wave(*wave);
                let dwords: Vec<u32> = match *register {
                    Register::Sgpr(first, n) => (first..first + n).map(|r| w.sgpr(r as u32)).collect(),
                    Register::Vgpr(first, n) => {
                        let lanes = lane.map_or(0..w.size, |l| l..l + 1);
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

/// The PC of a place: a line (the first instruction at or behind it), a label, `*address`, or an instruction's byte offset `0x…`.
pub fn locate(text: &str, machine: &Machine<'_>) -> Result<u64, String> {
    let program = &machine.prepared.program;
    if let Some((_, pc)) = machine.prepared.labels.iter().find(|l| l.0 == text) {
        return Ok(*pc);
    }
    let address = text.strip_prefix('*').unwrap_or(text);
    if let Some(hex) = address.strip_prefix("0x") {
        let pc = u64::from_str_radix(hex, 16).map_err(|_| format!("`{text}` is no address"))?;
        return at_instruction(program, pc);
    }
    let Ok(number) = address.parse::<u32>() else {
        let labels: Vec<&str> = machine.prepared.labels.iter().map(|l| l.0.as_str()).collect();
        return Err(match expr::nearest(text, &labels) {
            Some(near) => format!("there is no label `{text}`; did you mean `{near}`?"),
            None => format!("`{text}` is no line, label or address (0x…)"),
        });
    };
    if text.starts_with('*') {
        return at_instruction(program, number as u64);
    }
    if machine.prepared.source.is_none() {
        return Err("the kernel has no source: give an address (0x…)".to_string());
    }
    let lines = program.lines.iter().enumerate().filter(|(_, l)| **l >= number);
    let first = lines.min_by_key(|(at, l)| (**l, *at));
    first
        .map(|(at, _)| program.pcs[at])
        .ok_or_else(|| format!("no instruction is at or behind line {number}"))
}

fn at_instruction(program: &Program, pc: u64) -> Result<u64, String> {
    let place = program.arch.byte_pc(pc);
    match program.inst_at(place) {
        Some(_) => Ok(place),
        None => Err(format!("no instruction begins at 0x{pc:x}")),
    }
}

impl Breakpoint {
    /// Whether a wave that is about to run an instruction stops here.
    pub fn hit(&self, machine: &Machine<'_>, focus: Focus) -> Result<bool, String> {
        if machine.wave(focus.wave).pc != self.pc || self.wave.is_some_and(|w| w != focus.wave) {
            return Ok(false);
        }
        match &self.condition {
            None => Ok(true),
            Some(text) => expr::evaluate(text, machine, focus).map(|v| v.truth()),
        }
    }
}

/// Looks for the last write of a register.
pub struct WriteSearch<'e> {
    pub effects: &'e [Effects],
    pub workgroup: [u32; 3],
    pub wave: usize,
    pub file: File,
    pub register: u16,
    pub lane: Option<u32>,
}

impl Search for WriteSearch<'_> {
    fn before(&mut self, machine: &Machine<'_>, wave: usize) -> bool {
        if wave != self.wave || machine.workgroup() != self.workgroup {
            return false;
        }
        let w = machine.wave(wave);
        let Some(index) = machine.prepared.program.inst_at(w.pc) else { return false };
        self.effects[index].writes.iter().any(|used| {
            let start = used.start(w);
            used.file == self.file
                && (start..start + used.count).contains(&self.register)
                && (self.file != File::Vgpr || self.lane.is_none_or(|l| used.lane_mask(w) >> l & 1 == 1))
        })
    }
}

/// Looks for the last change of something watched.
pub struct ChangeSearch {
    pub what: Watched,
    pub last: Vec<u8>,
}

impl Search for ChangeSearch {
    fn before(&mut self, machine: &Machine<'_>, _wave: usize) -> bool {
        self.last = self.what.content(machine);
        false
    }

    fn after(&mut self, machine: &Machine<'_>, _wave: usize) -> bool {
        self.what.content(machine) != self.last
    }
}

/// Looks for the last stop that going backwards would make.
pub struct StopSearch<'s> {
    pub breakpoints: &'s [Breakpoint],
    pub changes: Vec<ChangeSearch>,
    pub lane: u32,
}

impl Search for StopSearch<'_> {
    fn before(&mut self, machine: &Machine<'_>, wave: usize) -> bool {
        for change in &mut self.changes {
            change.before(machine, wave);
        }
        let focus = Focus { wave, lane: self.lane };
        self.breakpoints.iter().any(|b| b.hit(machine, focus).unwrap_or(true))
    }

    fn after(&mut self, machine: &Machine<'_>, wave: usize) -> bool {
        self.changes.iter_mut().any(|c| c.after(machine, wave))
    }
}

/// `runs`, `waits at the barrier`, `has ended`.
pub fn status_text(status: Status) -> String {
    match status {
        Status::Running => "runs".to_string(),
        Status::Waiting(0) => "waits at the barrier".to_string(),
        Status::Waiting(n) => format!("waits at barrier {n}"),
        Status::Ended => "has ended".to_string(),
    }
}
