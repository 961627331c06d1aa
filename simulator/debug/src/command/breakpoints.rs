//! Commands for breakpoints and watchpoints: `break`, `tbreak`, `watch`, `delete`.

use super::{CommandResult, Debugger};
use crate::breakpoint::{self, Access, Breakpoint, HitCount, Watched, Watchpoint};
use crate::expr::{self, Expression, Register, Scope, Space, Value};
use crate::view;
use std::fmt::Write as _;

impl Debugger<'_> {
    pub(super) fn set_break(&mut self, rest: &str, temporary: bool, out: &mut String) -> CommandResult {
        let (rest, message) = match rest.split_once("log ") {
            Some((rest, message)) if rest.is_empty() || rest.ends_with(' ') => (rest.trim(), Some(message)),
            _ => (rest, None),
        };
        let (head, condition) = match rest.split_once("if ") {
            Some((head, condition)) => (head.trim(), Some(self.condition(condition)?)),
            None => (rest, None),
        };
        let (head, count) = match head.split_once("hits ") {
            Some((head, count)) => (head.trim(), Some(HitCount::parse(count)?)),
            None => (head, None),
        };
        let (place, wave) = match head.split_once("wave ") {
            Some((place, wave)) => {
                let wave = wave.trim().parse::<usize>().ok().filter(|w| *w < self.timeline.waves());
                (place.trim(), Some(wave.ok_or("the workgroup does not have this wave")?))
            }
            None => (head, None),
        };
        let pcs = match place {
            "" => vec![self.timeline.wave(self.focus.wave).pc],
            place => breakpoint::locate_all(place, &self.timeline)?,
        };
        let (pc, more) = (pcs[0], pcs[1..].to_vec());
        let program = &self.timeline.prepared.program;
        let (location, place) = match (&more[..], place) {
            ([], "") => (program.place(pc), format!("0x{:x}", program.address(pc))),
            ([], place) => (program.place(pc), place.to_string()),
            _ => (place.to_string(), place.to_string()),
        };
        let number = self.add_breakpoint(Breakpoint {
            number: 0,
            pc,
            more,
            place: place.clone(),
            location,
            condition,
            wave,
            temporary,
            hits: 0,
            count,
            message: message.map(str::to_string),
        });
        let kind = if temporary { "temporary breakpoint" } else { "breakpoint" };
        let at = match pcs.len() {
            1 => view::instruction(&self.timeline, pc),
            n if breakpoint::locate(&place, &self.timeline).is_ok() => format!("{n} places of {place}"),
            n => format!("{n} instructions {place}"),
        };
        let _ = writeln!(out, "{kind} {number} at {at}");
        Ok(())
    }

    /// Parses a condition. An expression that cannot be evaluated is rejected now, not at the first hit.
    ///
    /// # Errors
    /// The expression is invalid or cannot be evaluated.
    pub fn condition(&self, text: &str) -> Result<Expression, String> {
        let condition = Expression::parse(text, self.timeline.prepared)?;
        // Variables of the source may come into scope where the condition is evaluated.
        if !condition.has_variables() {
            condition.evaluate(&Scope::new(&self.timeline, self.focus))?;
        }
        Ok(condition)
    }

    /// Adds a breakpoint and returns its number. The condition is appended to the displayed location.
    pub fn add_breakpoint(&mut self, mut breakpoint: Breakpoint) -> u32 {
        if let Some(condition) = &breakpoint.condition {
            let _ = write!(breakpoint.location, " if {condition}");
        }
        breakpoint.number = self.number();
        let number = breakpoint.number;
        self.breakpoints.push(breakpoint);
        number
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
        for (word, space) in [("mem ", Space::Global), ("lds ", Space::Lds), ("scratch ", Space::Scratch)] {
            if let Some(rest) = text.strip_prefix(word) {
                let (address, len) = rest.trim().rsplit_once(' ').unwrap_or((rest, "4"));
                let (at, len) = (int(address)?, int(len)?.clamp(1, 1 << 20));
                return match space {
                    Space::Global => self.watched_memory(at, len),
                    Space::Lds => self.watched_lds(at, len),
                    Space::Scratch => self.watched_scratch(at, len),
                };
            }
        }
        let wave = self.focus.wave;
        let wide = self.timeline.wave(wave).size() == 64;
        if let Some(register) = expr::register(text, wide, self.arch()) {
            return match register {
                Register::Pc | Register::Status => {
                    Err(format!("`{text}` cannot be watched: almost every instruction changes it"))
                }
                register => Ok(Watched::Register { wave, register, lane: None }),
            };
        }
        let first = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).find(|word| !word.is_empty());
        if first.is_some_and(|name| self.timeline.prepared.debug.has_variable(name))
            && let Some(object) = self.object(text, self.focus)?
        {
            return match object.memory() {
                Some((Space::Global, address, len)) => self.watched_memory(address, len.max(1)),
                Some((Space::Lds, offset, len)) => self.watched_lds(offset, len.max(1)),
                Some((Space::Scratch, offset, len)) => self.watched_scratch(offset, len.max(1)),
                None if object.of_start => Err(format!("`{text}` is optimised out here")),
                None => Err(format!("`{text}` is in a register now: watch that (`info locals`, `p`)")),
            };
        }
        let (name, index) = text.strip_suffix(']').and_then(|t| t.rsplit_once('[')).ok_or_else(|| {
            format!(
                "cannot watch `{text}`: expected a register, NAME[i], mem ADDRESS BYTES, lds OFFSET BYTES or scratch OFFSET BYTES"
            )
        })?;
        let at = int(index)?;
        if let Some(register @ Register::Vgpr(..)) = expr::register(name, wide, self.arch()) {
            let size = self.timeline.wave(wave).size() as u64;
            if at >= size {
                return Err(format!("there is no lane {at}; the wave has lanes 0 to {}", size - 1));
            }
            return Ok(Watched::Register { wave, register, lane: Some(at as u32) });
        }
        match name {
            "lds" => return self.watched_lds(at, 4),
            "mem" => return self.watched_memory(at, 4),
            "scratch" => return self.watched_scratch(at, 4),
            _ => {}
        }
        let buffer =
            self.timeline.prepared.buffer(name).ok_or_else(|| format!("there is no argument `{name}`"))?;
        let size = buffer.dtype.size() as u64;
        if at >= buffer.len_bytes / size {
            return Err(format!("{name} has {} elements", buffer.len_bytes / size));
        }
        Ok(Watched::Memory { address: buffer.address + at * size, len: size })
    }

    fn watched_lds(&self, offset: u64, len: u64) -> Result<Watched, String> {
        let size = self.timeline.group.lds.len() as u64;
        match offset.checked_add(len) {
            Some(end) if end <= size => Ok(Watched::Lds { offset, len }),
            _ => Err(format!("the workgroup has {size} bytes of LDS")),
        }
    }

    /// Bytes of the scratch of the selected lane.
    fn watched_scratch(&self, offset: u64, len: u64) -> Result<Watched, String> {
        Space::Scratch.range(&self.timeline, self.focus, offset, len as usize)?;
        Ok(Watched::Scratch { wave: self.focus.wave, lane: self.focus.lane, offset, len })
    }

    fn watched_memory(&self, address: u64, len: u64) -> Result<Watched, String> {
        let address = self.byte_address(address);
        let memory = self.timeline.memory();
        memory.read(address, &mut vec![0; len as usize]).map_err(|e| memory.explain(&e))?;
        Ok(Watched::Memory { address, len })
    }

    pub(super) fn watch(&mut self, text: &str, access: Access, out: &mut String) -> CommandResult {
        let (what, condition) = match text.split_once(" if ") {
            Some((what, condition)) => (what.trim(), Some(self.condition(condition)?)),
            None => (text, None),
        };
        let number = self.add_watchpoint(what, access, condition, None)?;
        let _ = writeln!(out, "watchpoint {number}: {text}");
        Ok(())
    }

    /// Checks that a value exists and can be watched.
    ///
    /// # Errors
    /// The value cannot be watched.
    pub fn can_watch(&self, text: &str) -> Result<(), String> {
        self.watched(text).map(drop)
    }

    /// Adds a watchpoint and returns its number.
    ///
    /// # Errors
    /// The value cannot be watched.
    pub fn add_watchpoint(
        &mut self,
        text: &str,
        access: Access,
        condition: Option<Expression>,
        count: Option<HitCount>,
    ) -> Result<u32, String> {
        let what = self.watched(text)?;
        let mut text = text.to_string();
        if let Some(condition) = &condition {
            let _ = write!(text, " if {condition}");
        }
        let last = what.read(&self.timeline);
        let number = self.number();
        self.watchpoints.push(Watchpoint {
            number,
            text,
            target: what,
            last,
            access,
            condition,
            hits: 0,
            count,
        });
        Ok(number)
    }

    pub(super) fn delete(&mut self, text: &str, out: &mut String) -> CommandResult {
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
