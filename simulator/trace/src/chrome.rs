//! `--trace-format chrome`: the Trace Event format, which Perfetto and chrome://tracing open.
//!
//! A workgroup is a process and a wave is a thread. Each instruction takes one microsecond, in the order in
//! which the simulator executes them; this is not a timing model. A wait at a barrier is a slice from arrival
//! to resumption. Waits for counters have a category of their own.

use super::Filter;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_machine::exec::effects::{self, Class, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;

/// Writes the timeline during the run.
pub struct Chrome<W: Write> {
    out: W,
    filter: Filter,
    effects: Vec<Effects>,
    /// Waves at a barrier, with the time of arrival and the name of the slice.
    waiting: BTreeMap<([u32; 3], u32), (u64, String)>,
    named: BTreeSet<([u32; 3], u32)>,
    processes: BTreeMap<[u32; 3], u32>,
    first: bool,
    error: Option<io::Error>,
}

impl<W: Write> Chrome<W> {
    /// Creates a writer of the timeline of this program, whose waves have `wave_size` lanes. Instructions
    /// that `filter` excludes are omitted.
    pub fn new(out: W, program: &Program, wave_size: u32, filter: Filter) -> Chrome<W> {
        Chrome {
            out,
            filter,
            effects: effects::table(program, wave_size),
            waiting: BTreeMap::new(),
            named: BTreeSet::new(),
            processes: BTreeMap::new(),
            first: true,
            error: None,
        }
    }

    /// Ends the array, and returns the first write error, if there was one.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(e) = self.error.take() {
            return Err(e);
        }
        let end = if self.first { "[]\n" } else { "\n]\n" };
        self.out.write_all(end.as_bytes())?;
        self.out.flush()
    }

    fn emit(&mut self, event: &Value) {
        if self.error.is_none() {
            let before = if self.first { "[\n" } else { ",\n" };
            self.first = false;
            self.error = write!(self.out, "{before}{event}").err();
        }
    }

    /// Returns the process number of a workgroup. Names the track of a wave when the wave first appears.
    fn track(&mut self, step: &Step<'_>) -> u32 {
        let key = (step.wave.workgroup, step.wave.id);
        let next = self.processes.len() as u32;
        let pid = *self.processes.entry(key.0).or_insert(next);
        if pid == next {
            let [x, y, z] = key.0;
            let process = format!("workgroup {x},{y},{z}");
            self.emit(&json!({"ph":"M","name":"process_name","pid":pid,"args":{"name":process}}));
        }
        if self.named.insert(key) {
            let thread = format!("wave {}", key.1);
            self.emit(&json!({"ph":"M","name":"thread_name","pid":pid,"tid":key.1,"args":{"name":thread}}));
        }
        pid
    }
}

impl<W: Write> Observer for Chrome<W> {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        if let Some((since, name)) = self.waiting.remove(&(step.wave.workgroup, step.wave.id)) {
            let pid = self.track(step);
            let duration = (step.time + 1).saturating_sub(since);
            self.emit(&json!({"ph":"X","cat":"barrier","name":name,"pid":pid,"tid":step.wave.id,
                "ts":since,"dur":duration}));
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        if !self.filter.matches(step) {
            return;
        }
        let pid = self.track(step);
        let class = self.effects[step.index].class;
        let category = if class == Class::Wait { "wait" } else { class.name() };
        let text = step.program.text(step.index);
        let location = step.program.location(step.pc).unwrap_or_default();
        let mut args = json!({"pc": format!("{:x}", step.program.address(step.pc)), "line": location.line,
            "exec": format!("{:x}", step.wave.exec())});
        if let Some(file) = &location.file {
            args["file"] = json!(&**file);
        }
        self.emit(&json!({"ph":"X","cat":category,"name":text,"pid":pid,"tid":step.wave.id,
            "ts":step.time,"dur":1,"args":args}));
        if let Some(Event::BarrierWait(_)) = done.event {
            let name = format!("waits at {}", step.program.place(step.pc));
            self.waiting.insert((step.wave.workgroup, step.wave.id), (step.time + 1, name));
        }
    }
}
