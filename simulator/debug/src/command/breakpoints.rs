//! Commands for breakpoints and watchpoints: `break`, `tbreak`, `watch`, `delete`.

use super::{Debugger, Done};
use crate::breakpoint::{self, Breakpoint, Watched, Watchpoint};
use crate::expr::{self, Register, Value};
use crate::view;
use std::fmt::Write as _;

impl Debugger<'_> {
    pub(super) fn set_break(&mut self, rest: &str, temporary: bool, out: &mut String) -> Done {
        let (head, condition) = match rest.split_once("if ") {
            Some((head, condition)) => (head.trim(), Some(condition.trim().to_string())),
            None => (rest, None),
        };
        let (place, wave) = match head.split_once("wave ") {
            Some((place, wave)) => {
                let wave = wave.trim().parse::<usize>().ok().filter(|w| *w < self.timeline.waves());
                (place.trim(), Some(wave.ok_or("the workgroup does not have this wave")?))
            }
            None => (head, None),
        };
        let pc = match place {
            "" => self.timeline.wave(self.focus.wave).pc,
            place => breakpoint::locate(place, &self.timeline)?,
        };
        if let Some(text) = &condition {
            // A wrong condition is reported now, not at the first hit.
            expr::evaluate(text, &self.timeline, self.focus)?;
        }
        let number = self.number();
        let mut text = self.timeline.prepared.program.place(pc);
        if let Some(condition) = &condition {
            let _ = write!(text, " if {condition}");
        }
        let kind = if temporary { "temporary breakpoint" } else { "breakpoint" };
        let _ = writeln!(out, "{kind} {number} at {}", view::instruction(&self.timeline, pc));
        self.breakpoints.push(Breakpoint { number, pc, place: text, condition, wave, temporary, hits: 0 });
        Ok(())
    }

    pub(super) fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number - 1
    }

    pub(super) fn watched(&self, text: &str) -> Result<Watched, String> {
        let int = |text: &str| match expr::evaluate(text, &self.timeline, self.focus)? {
            Value::Int(v) => u64::try_from(v).map_err(|_| format!("{v} is not an address")),
            Value::Float(_) => Err("expected an integer".to_string()),
        };
        for (word, lds) in [("mem ", false), ("lds ", true)] {
            if let Some(rest) = text.strip_prefix(word) {
                let (address, len) = rest.trim().rsplit_once(' ').unwrap_or((rest, "4"));
                let (at, len) = (int(address)?, int(len)?.clamp(1, 1 << 20));
                return Ok(if lds {
                    Watched::Lds { offset: at, len }
                } else {
                    Watched::Memory { address: self.byte_address(at), len }
                });
            }
        }
        let wave = self.focus.wave;
        let wide = self.timeline.wave(wave).size == 64;
        if let Some(register) = expr::register(text, wide, self.arch()) {
            return Ok(Watched::Register { wave, register, lane: None });
        }
        let (name, index) = text.strip_suffix(']').and_then(|t| t.rsplit_once('[')).ok_or_else(|| {
            format!(
                "cannot watch `{text}`: expected a register, NAME[i], mem ADDRESS BYTES or lds OFFSET BYTES"
            )
        })?;
        if let Some(register @ Register::Vgpr(..)) = expr::register(name, wide, self.arch()) {
            let lane = int(index)? as u32;
            return Ok(Watched::Register { wave, register, lane: Some(lane) });
        }
        let buffer =
            self.timeline.prepared.buffer(name).ok_or_else(|| format!("there is no argument `{name}`"))?;
        let (size, address) = (buffer.dtype.size() as u64, buffer.address);
        Ok(Watched::Memory { address: address.wrapping_add(int(index)?.wrapping_mul(size)), len: size })
    }

    pub(super) fn watch(&mut self, text: &str, out: &mut String) -> Done {
        let what = self.watched(text)?;
        let last = what.content(&self.timeline);
        let number = self.number();
        let _ = writeln!(out, "watchpoint {number}: {text}");
        self.watchpoints.push(Watchpoint { number, text: text.to_string(), what, last });
        Ok(())
    }

    pub(super) fn delete(&mut self, text: &str, out: &mut String) -> Done {
        if text.is_empty() {
            self.breakpoints.clear();
            self.watchpoints.clear();
            out.push_str("all breakpoints and watchpoints deleted\n");
            return Ok(());
        }
        let number: u32 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
        let before = self.breakpoints.len() + self.watchpoints.len();
        self.breakpoints.retain(|b| b.number != number);
        self.watchpoints.retain(|w| w.number != number);
        if self.breakpoints.len() + self.watchpoints.len() == before {
            return Err(format!("there is no breakpoint or watchpoint {number}"));
        }
        Ok(())
    }
}
