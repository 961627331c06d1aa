//! Breakpoints and watchpoints.

use super::expr::{self, Focus, Register};
use super::timeline::Timeline;
use wavesim_machine::exec::program::Program;

/// A place at which waves stop, possibly under a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakpoint {
    /// The number that `delete` takes.
    pub number: u32,
    /// Byte offset of the instruction.
    pub pc: u64,
    /// The place and condition, for display.
    pub place: String,
    /// An expression that must not be zero.
    pub condition: Option<String>,
    /// The only wave that stops; `None`: all.
    pub wave: Option<usize>,
    /// Whether it is deleted once it is hit.
    pub temporary: bool,
    /// How often it was hit.
    pub hits: u64,
}

/// What a watchpoint watches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Watched {
    /// A register of one wave; of a VGPR one lane, or all lanes.
    Register { wave: usize, register: Register, lane: Option<u32> },
    /// Bytes of global memory.
    Memory { address: u64, len: u64 },
    /// Bytes of LDS.
    Lds { offset: u64, len: u64 },
}

/// Stops the run when a value changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watchpoint {
    /// The number that `delete` takes.
    pub number: u32,
    /// What the user wrote.
    pub text: String,
    /// What is compared.
    pub what: Watched,
    /// The value after the previous step.
    pub last: Vec<u8>,
}

impl Watched {
    /// The present value.
    pub fn content(&self, timeline: &Timeline<'_>) -> Vec<u8> {
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
            Watched::Register { wave, register, lane } => {
                let w = timeline.wave(*wave);
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

/// The PC of a place: a line (the first instruction at or after it), a label, or an address (`0x…`, `*N`).
pub fn locate(text: &str, timeline: &Timeline<'_>) -> Result<u64, String> {
    let program = &timeline.prepared.program;
    if let Some((_, pc)) = timeline.prepared.labels.iter().find(|l| l.0 == text) {
        return Ok(*pc);
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
            None => format!("`{text}` is not a line, label or address (0x…)"),
        });
    };
    if text.starts_with('*') {
        return at_instruction(program, number as u64);
    }
    if timeline.prepared.source.is_none() {
        return Err("the kernel has no source; give an address (0x…)".to_string());
    }
    let lines = program.lines.iter().enumerate().filter(|(_, l)| **l >= number);
    let first = lines.min_by_key(|(at, l)| (**l, *at));
    first
        .map(|(at, _)| program.pcs[at])
        .ok_or_else(|| format!("there is no instruction at or after line {number}"))
}

fn at_instruction(program: &Program, pc: u64) -> Result<u64, String> {
    let place = program.pc_at(pc);
    match program.inst_at(place) {
        Some(_) => Ok(place),
        None => Err(format!("no instruction begins at 0x{pc:x}")),
    }
}

impl Breakpoint {
    /// Whether the wave, which is about to execute an instruction, stops here.
    pub fn hit(&self, timeline: &Timeline<'_>, focus: Focus) -> Result<bool, String> {
        if timeline.wave(focus.wave).pc != self.pc || self.wave.is_some_and(|w| w != focus.wave) {
            return Ok(false);
        }
        match &self.condition {
            None => Ok(true),
            Some(text) => expr::evaluate(text, timeline, focus).map(|v| v.truth()),
        }
    }
}
