//! The frames of a wave: the functions that it executes, innermost first. Calls are known from the run
//! ([`Timeline::calls`]), as LLVM emits no rules for unwinding AMDGPU code; functions that the compiler has
//! inlined, from debug information.
//!
//! The registers of an outer frame are those at its call, which a replay of the run provides; memory is that of
//! now.

use super::timeline::Timeline;
use wavesim_engine::sched::group::Status;
use wavesim_loader::debug_info::{Function, SourcePlace};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::state::Wave;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The function: its name in the source, or the label before the instruction.
    pub name: String,
    /// Byte offset of the instruction: the next one, or the call of the inner frame.
    pub pc: u64,
    /// The place in the source files that debug information names.
    pub place: Option<SourcePlace>,
    /// The function, if debug information describes it.
    pub function: Option<Function>,
    /// Number of calls between this frame and the innermost one.
    pub level: usize,
    /// Whether the function is inlined into the next frame.
    pub inlined: bool,
}

/// An outer frame that the user has selected.
pub(crate) struct Selected {
    /// The wave.
    pub wave: usize,
    /// Index of the frame.
    pub index: usize,
    /// The time at which it was selected; it is not valid at any other.
    time: u64,
    /// Byte offset of the instruction.
    pc: u64,
    /// The wave at its call; `None` for the innermost function.
    state: Option<Box<Wave>>,
}

/// Returns the frames of a wave, innermost first. There is at least one.
pub fn frames(timeline: &Timeline<'_>, wave: usize) -> Vec<Frame> {
    let program = &timeline.prepared.program;
    let mut pc = timeline.wave(wave).pc;
    if timeline.status(wave) == Status::Ended {
        // The last instruction, at which the wave ended.
        pc = program.pcs.iter().copied().filter(|p| *p < pc).max().unwrap_or(pc);
    }
    let calls = timeline.calls(wave).iter().rev().map(|call| call.pc);
    let mut out = Vec::new();
    for (level, pc) in std::iter::once(pc).chain(calls).enumerate() {
        let mut place = source_place(timeline.prepared, pc);
        let functions = timeline.prepared.debug.functions(program.address(pc));
        if functions.is_empty() {
            let name = function_name(timeline.prepared, pc);
            out.push(Frame { name, pc, place, function: None, level, inlined: false });
            continue;
        }
        for function in functions {
            let next = function.call.clone();
            let (name, inlined) = (function.name.clone(), function.inlined);
            out.push(Frame { name, pc, place, function: Some(function), level, inlined });
            place = next;
        }
    }
    out
}

/// Returns the place of an instruction in the source files that debug information names.
pub fn source_place(prepared: &Prepared, pc: u64) -> Option<SourcePlace> {
    let line = prepared.program.source_line(prepared.program.inst_at(pc)?)?;
    let file = prepared.program.source_files().get(line.file as usize)?;
    Some(SourcePlace { file: file.name.to_string(), path: file.path.clone(), line: line.line })
}

/// Returns the label before an instruction, with the distance from it.
pub fn function_name(prepared: &Prepared, pc: u64) -> String {
    match prepared.labels.iter().filter(|l| l.1 <= pc).max_by_key(|l| l.1) {
        Some((name, at)) if *at == pc => name.clone(),
        Some((name, at)) => format!("{name}+0x{:x}", pc - at),
        None => format!("0x{:x}", prepared.program.address(pc)),
    }
}

impl Timeline<'_> {
    /// Selects a frame of a wave, by its index. Returns false if there is no such frame.
    pub fn select_frame(&mut self, wave: usize, index: usize) -> bool {
        let frames = frames(self, wave);
        let Some(frame) = frames.get(index) else { return false };
        let time = self.time();
        let call = frame.level.checked_sub(1).and_then(|n| self.calls(wave).iter().rev().nth(n)).copied();
        let state = call.map(|call| {
            self.go_to(call.time);
            let state = Box::new(self.wave(wave).clone());
            self.go_to(time);
            state
        });
        self.selected = Some(Selected { wave, index, time, pc: frame.pc, state });
        true
    }

    /// Selects the innermost frame: the run goes on, or back.
    pub(crate) fn leave_frame(&mut self) {
        self.selected = None;
    }

    /// Returns the index of the selected frame of a wave; the innermost one is 0.
    pub fn selected_frame(&self, wave: usize) -> usize {
        self.selection(wave).map_or(0, |selected| selected.index)
    }

    /// Returns the state of a wave in its selected frame.
    pub fn frame_wave(&self, wave: usize) -> &Wave {
        self.selection(wave).and_then(|selected| selected.state.as_deref()).unwrap_or(self.wave(wave))
    }

    /// Returns whether the registers of the selected frame of a wave are those of the past.
    pub fn is_outer_frame(&self, wave: usize) -> bool {
        self.selection(wave).is_some_and(|selected| selected.state.is_some())
    }

    /// Returns the byte offset of the instruction of the selected frame of a wave.
    pub fn frame_pc(&self, wave: usize) -> u64 {
        self.selection(wave).map_or(self.wave(wave).pc, |selected| selected.pc)
    }

    fn selection(&self, wave: usize) -> Option<&Selected> {
        self.selected.as_ref().filter(|selected| selected.wave == wave && selected.time == self.time())
    }
}
