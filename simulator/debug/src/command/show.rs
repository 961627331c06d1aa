//! Commands that select and display: `info`, `wave`, `lane`, `group`, `print`, `x`, `list`, `registers`, `explain`.

use super::{Debugger, Done, parse};
use crate::expr::{self, Value};
use crate::{breakpoint, explain, view};
use std::fmt::Write as _;
use wavesim_array::DType;
use wavesim_inspect::check::Outstanding;
use wavesim_machine::memory::WORD;

impl Debugger<'_> {
    pub(super) fn info(&mut self, what: &str, out: &mut String) -> Done {
        match what {
            "" => self.show_position(out),
            "w" | "waves" => out.push_str(&view::waves(&self.timeline, self.focus)),
            "r" | "registers" => return self.registers(out),
            "c" | "counters" => self.counters(out),
            "b" | "breakpoints" => {
                for b in &self.breakpoints {
                    let _ = writeln!(out, "{}: {}, hit {} times", b.number, b.place, b.hits);
                }
                for w in &self.watchpoints {
                    let _ = writeln!(out, "{}: watch {}", w.number, w.text);
                }
                if self.breakpoints.is_empty() && self.watchpoints.is_empty() {
                    out.push_str("no breakpoints\n");
                }
            }
            "a" | "args" => {
                for b in &self.timeline.prepared.buffers {
                    let shape: Vec<String> = b.shape.iter().map(u64::to_string).collect();
                    let _ = writeln!(
                        out,
                        "{}: {}[{}] at 0x{:x}",
                        b.name,
                        b.dtype.name(),
                        shape.join(","),
                        self.timeline.memory().own_address(b.address)
                    );
                }
            }
            other => {
                return Err(format!(
                    "there is no `info {other}`; there are waves, breakpoints, args, registers and counters"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn registers(&self, out: &mut String) -> Done {
        out.push_str(&view::registers(&self.timeline, self.focus));
        Ok(())
    }

    /// The wait counters as hardware would have them, with the operations that they count.
    fn counters(&mut self, out: &mut String) {
        let prepared = self.timeline.prepared;
        let mut outstanding = Outstanding::new(&prepared.program, prepared.shape.wave_size);
        self.timeline.replay_group(&mut outstanding);
        for (name, pcs) in outstanding.of_wave(self.focus.wave as u32) {
            let _ = writeln!(out, "{name} {}", pcs.len());
            for pc in pcs {
                let _ = writeln!(out, "  {}", view::instruction(&self.timeline, pc));
            }
        }
    }

    pub(super) fn select_wave(&mut self, text: &str, out: &mut String) -> Done {
        let n = self.timeline.waves();
        let wave = text.parse::<usize>().ok().filter(|w| *w < n);
        self.focus.wave = wave.ok_or_else(|| format!("the workgroup has waves 0 to {}", n - 1))?;
        self.show_position(out);
        Ok(())
    }

    pub(super) fn select_lane(&mut self, text: &str, out: &mut String) -> Done {
        let size = self.timeline.wave(self.focus.wave).size;
        let lane = text.parse::<u32>().ok().filter(|l| *l < size);
        self.focus.lane = lane.ok_or_else(|| format!("the wave has lanes 0 to {}", size - 1))?;
        let on = self.timeline.wave(self.focus.wave).exec() >> self.focus.lane & 1 == 1;
        let _ = writeln!(out, "lane {}{}", self.focus.lane, if on { "" } else { " (inactive)" });
        Ok(())
    }

    pub(super) fn select_group(&mut self, text: &str, out: &mut String) -> Done {
        let wanted = wavesim_engine::sched::dispatch::parse_group(text)?;
        let dims = self.timeline.prepared.shape.grid;
        if (0..3).any(|d| wanted[d] >= dims[d]) {
            let [x, y, z] = dims;
            return Err(format!("the grid has {x} x {y} x {z} workgroups"));
        }
        let index = |g: [u32; 3]| g[0] as u64 + dims[0] as u64 * (g[1] as u64 + dims[1] as u64 * g[2] as u64);
        // Workgroups run in order: an earlier one is in the past.
        if index(wanted) <= self.timeline.position().0 {
            let start = self.timeline.group_start(index(wanted)).unwrap_or(0);
            self.travel(start);
        } else {
            while self.timeline.position().0 < index(wanted) {
                let Some(wave) = self.timeline.next_wave() else { break };
                let outcome = self.timeline.step(wave);
                if self.stops_after(&outcome, out) || self.interrupted(out) {
                    break;
                }
            }
        }
        self.focus.wave = 0;
        self.show_position(out);
        Ok(())
    }

    pub(super) fn print(&mut self, text: &str, out: &mut String) -> Done {
        let (text, lanes) = match text.split_once(" lanes ") {
            Some((head, range)) => (head.trim(), Some(parse::lane_range(range)?)),
            None => (text, None),
        };
        let (what, dtype) = match text.rsplit_once(" as ") {
            Some((head, ty)) => {
                let dtype = DType::from_name(ty.trim());
                (
                    head.trim(),
                    Some(dtype.ok_or_else(|| format!("`{ty}` is not a type; types are {}", DType::names()))?),
                )
            }
            None => (text, None),
        };
        let wide = self.timeline.wave(self.focus.wave).size == 64;
        if let Some(register) = expr::register(what, wide, self.arch()) {
            out.push_str(&view::register(&self.timeline, self.focus, register, dtype, lanes)?);
            return Ok(());
        }
        if let Some(buffer) = self.timeline.prepared.buffer(what) {
            let array = buffer.read(self.timeline.memory()).map_err(|e| e.to_string())?;
            let _ = writeln!(out, "{what} = {}", wavesim_array::show::show(&array, false));
            return Ok(());
        }
        let mut value = expr::evaluate(what, &self.timeline, self.focus)?;
        if let (Some(dtype), Value::Int(bits)) = (dtype, value) {
            value = expr::read_as(bits as u64, dtype);
        }
        let hex = match value {
            Value::Int(v) if !(-9..=9).contains(&v) && dtype.is_none() => format!(" (0x{:x})", v as u64),
            _ => String::new(),
        };
        let _ = writeln!(out, "{what} = {value}{hex}");
        Ok(())
    }

    pub(super) fn examine(&mut self, text: &str, out: &mut String) -> Done {
        let usage = "expected x/COUNT TYPE ADDRESS, as in x/8f32 out_y";
        let text = text.strip_prefix('/').ok_or(usage)?;
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let n: u64 = if digits == 0 { 1 } else { text[..digits].parse().map_err(|_| usage)? };
        let rest = text[digits..].trim_start();
        let (ty, address) = rest.split_once(' ').ok_or(usage)?;
        let dtype = DType::from_name(ty)
            .ok_or_else(|| format!("`{ty}` is not a type; types are {}", DType::names()))?;
        let len = (n.min(1 << 16) as usize) * dtype.size();
        let (space, address) = match address.trim().split_once(' ') {
            Some((space @ ("lds" | "scratch"), address)) => (space, address.trim()),
            _ => ("", address.trim()),
        };
        let at = match expr::evaluate(address, &self.timeline, self.focus)? {
            Value::Int(v) => v as u64,
            Value::Float(_) => return Err("an address must be an integer".to_string()),
        };
        let mut bytes = vec![0; len];
        match space {
            "" => {
                let memory = self.timeline.memory();
                let read = memory.read(self.byte_address(at), &mut bytes);
                read.map_err(|e| memory.explain(&e))?;
            }
            _ => {
                let shape = &self.timeline.prepared.shape;
                let (memory, start, size) = if space == "lds" {
                    (&self.timeline.group.lds, 0, shape.lds_bytes as u64)
                } else {
                    let lane = self.focus.wave as u64 * shape.wave_size as u64 + self.focus.lane as u64;
                    (
                        &self.timeline.group.scratch,
                        lane * shape.scratch_bytes as u64,
                        shape.scratch_bytes as u64,
                    )
                };
                let end = at.checked_add(len as u64).filter(|end| *end <= size);
                let end = end.ok_or_else(|| format!("{space} has {size} bytes"))?;
                bytes.copy_from_slice(&memory[(start + at) as usize..(start + end) as usize]);
            }
        }
        let unit = if space.is_empty() && self.timeline.memory().counts_words() { WORD } else { 1 };
        out.push_str(&view::memory(&bytes, at, unit, dtype));
        Ok(())
    }

    pub(super) fn explain(&mut self, text: &str, out: &mut String) -> Done {
        let lanes = match text.strip_prefix("lanes ").or(text.strip_prefix("lane ")) {
            Some(range) => Some(parse::lane_range(range)?),
            None if text == "all" => Some(0..=self.timeline.wave(self.focus.wave).size - 1),
            None if text.is_empty() => None,
            None => return Err("expected `explain [lanes A..B|all]`".to_string()),
        };
        out.push_str(&explain::explain(&self.timeline, self.focus, lanes)?);
        Ok(())
    }

    pub(super) fn list(&mut self, place: &str, out: &mut String) -> Done {
        let pc = match place {
            "" => self.timeline.wave(self.focus.wave).pc,
            place => breakpoint::locate(place, &self.timeline)?,
        };
        out.push_str(&view::listing(&self.timeline, pc, 5, &self.breakpoints));
        Ok(())
    }
}
