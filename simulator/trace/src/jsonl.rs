//! `--trace`: JSON Lines, one line per executed instruction.
//!
//! `{"step":N,"workgroup":[x,y,z],"wave":N,"pc":N,"line":N,"text":"…","exec":"hex","writes":{"s4":"hex","v[2:3]":[["hex","hex"],null,…]},
//! "memory":[…]}`. `line` is absent without source. `exec` is the mask under which the instruction ran. An
//! SGPR value is a hex string, or an array of them for several registers. A VGPR value is an array by lane,
//! with `null` for inactive lanes. With delayed memory, an operation has a second line when it accesses memory, with
//! `"performed":true`, its accesses and its results; those in the line of its issue are the registers' contents then.

use super::Filter;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{self, Effects, File, Use, register_name};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch::Access;
use wavesim_machine::state::Wave;

/// Writes the trace during the run.
pub struct Jsonl<W> {
    out: W,
    filter: Filter,
    effects: Vec<Effects>,
    /// EXEC and the numbers of the written registers, as before the instruction.
    exec: u64,
    starts: Vec<u16>,
    error: Option<io::Error>,
}

impl<W: Write> Jsonl<W> {
    /// Creates a writer of the trace of this program, whose waves have `wave_size` lanes. Instructions that
    /// `filter` excludes are omitted.
    pub fn new(out: W, program: &Program, wave_size: u32, filter: Filter) -> Jsonl<W> {
        let effects = effects::table(program, wave_size);
        Jsonl { out, filter, effects, exec: 0, starts: Vec::new(), error: None }
    }

    /// Flushes the output, and returns the first write error, if there was one.
    pub fn finish(mut self) -> io::Result<()> {
        match self.error.take() {
            Some(e) => Err(e),
            None => self.out.flush(),
        }
    }

    fn line(&self, step: &Step<'_>, done: &Done<'_>) -> Value {
        let mut line = Map::new();
        line.insert("step".into(), json!(step.time));
        line.insert("workgroup".into(), json!(step.wave.workgroup));
        line.insert("wave".into(), json!(step.wave.id));
        line.insert("pc".into(), json!(step.program.address(step.pc)));
        if let Some(location) = step.program.location(step.pc) {
            if let Some(file) = location.file {
                line.insert("file".into(), json!(&*file));
            }
            line.insert("line".into(), json!(location.line));
        }
        line.insert("text".into(), json!(step.program.text(step.index)));
        line.insert("exec".into(), json!(format!("{:x}", self.exec)));
        let mut writes = Map::new();
        for (used, &start) in self.effects[step.index].writes.iter().zip(&self.starts) {
            let name = register_name(step.program.arch, used.file, start, used.count);
            writes.insert(name, self.value(used, start, step.wave));
        }
        line.insert("writes".into(), Value::Object(writes));
        if !done.accesses.is_empty() {
            line.insert(
                "memory".into(),
                done.accesses.iter().flat_map(|a| a.each()).map(|a| access(step.program.arch, &a)).collect(),
            );
        }
        Value::Object(line)
    }

    fn value(&self, used: &Use, start: u16, wave: &Wave) -> Value {
        let many = |f: &dyn Fn(u16) -> u32| match used.count {
            1 => hex(f(start)),
            n => (start..start + n).map(|r| hex(f(r))).collect(),
        };
        match used.file {
            File::Scc => json!(wave.scc),
            File::Sgpr => many(&|r| wave.sgpr(r as u32)),
            File::Vgpr => {
                let lane = |l: u32| match self.exec >> l & 1 {
                    1 => many(&|r| wave.vgpr(l, r as u32)),
                    _ => Value::Null,
                };
                (0..wave.size()).map(lane).collect()
            }
        }
    }
}

fn hex(value: u32) -> Value {
    Value::String(format!("{value:x}"))
}

fn access(arch: Arch, a: &Access) -> Value {
    json!({
        "space": a.place.name(),
        "address": format!("{:x}", wavesim_machine::memory::own_address(arch, a.address)),
        "bytes": a.size_bytes,
        "write": a.write,
        "lane": a.lane,
    })
}

impl<W: Write> Observer for Jsonl<W> {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        if self.filter.matches(step) {
            self.exec = step.wave.exec();
            self.starts.clear();
            self.starts.extend(self.effects[step.index].writes.iter().map(|w| w.start(step.wave)));
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        if self.error.is_none() && self.filter.matches(step) {
            let line = self.line(step, done);
            self.error = writeln!(self.out, "{line}").err();
        }
    }

    fn performed(&mut self, step: &Step<'_>, done: &Done<'_>) {
        if self.error.is_some() || !self.filter.matches(step) {
            return;
        }
        // Another instruction may be about to end.
        let starts = self.effects[step.index].writes.iter().map(|w| w.start(step.wave)).collect();
        let starts = std::mem::replace(&mut self.starts, starts);
        let exec = std::mem::replace(&mut self.exec, step.wave.exec());
        let mut line = self.line(step, done);
        line["performed"] = json!(true);
        self.error = writeln!(self.out, "{line}").err();
        (self.starts, self.exec) = (starts, exec);
    }
}
