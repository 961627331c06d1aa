//! Commands for frames and variables of the source: `backtrace`, `up`, `down`, `frame`, `info locals`, `ptype`.

use super::{CommandResult, Debugger, parse};
use crate::expr::{Expression, Focus, Scope};
use crate::frames::{Frame, frames};
use crate::variables::{self, Object};
use crate::view;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wavesim_loader::debug_info::{Type, TypeKind};

/// Maximum length of a parameter's value in a list of frames.
const MAX_PARAMETER: usize = 32;

impl Debugger<'_> {
    pub(super) fn backtrace(&mut self, out: &mut String) -> CommandResult {
        let wave = self.focus.wave;
        let selected = self.timeline.selected_frame(wave);
        let all = frames(&self.timeline, wave);
        for (index, frame) in all.iter().enumerate() {
            self.timeline.select_frame(wave, index);
            let mark = if index == selected { '*' } else { ' ' };
            let _ = writeln!(out, "{mark} #{index}  {}", self.frame_text(frame));
        }
        self.timeline.select_frame(wave, selected);
        Ok(())
    }

    /// Returns one line for the frame that is selected: the function with its parameters, and its place.
    fn frame_text(&self, frame: &Frame) -> String {
        let mut text = frame.name.clone();
        if frame.function.is_some() {
            let scope = variables::in_scope(&self.timeline, self.focus.wave);
            let parameters = scope.iter().filter(|v| v.parameter).map(|v| {
                let Ok(object) = variables::object(&self.timeline, self.focus, v) else {
                    return format!("{} = ?", v.name);
                };
                let mark = if object.of_start { "@start" } else { "" };
                match object.show(&self.timeline, self.focus, None) {
                    Ok(value) if value.len() <= MAX_PARAMETER => format!("{}{mark} = {value}", v.name),
                    Ok(_) => format!("{}{mark} = …", v.name),
                    Err(_) => format!("{} = ?", v.name),
                }
            });
            let parameters: Vec<String> = parameters.collect();
            let _ = write!(text, "({})", parameters.join(", "));
        }
        match &frame.place {
            Some(place) => {
                let _ = write!(text, " at {place}");
            }
            None => {
                let _ = write!(text, " at {}", view::instruction(&self.timeline, frame.pc));
            }
        }
        if frame.inlined {
            text.push_str(" (inlined)");
        }
        text
    }

    pub(super) fn up(&mut self, args: &str, out: &mut String) -> CommandResult {
        let n = parse::count(args)? as usize;
        let index = self.timeline.selected_frame(self.focus.wave);
        let last = frames(&self.timeline, self.focus.wave).len() - 1;
        if index == last {
            return Err("this is the outermost frame".to_string());
        }
        self.select_frame(index.saturating_add(n).min(last))?;
        self.show_frame(out);
        Ok(())
    }

    pub(super) fn down(&mut self, args: &str, out: &mut String) -> CommandResult {
        let n = parse::count(args)? as usize;
        let index = self.timeline.selected_frame(self.focus.wave);
        if index == 0 {
            return Err("this is the innermost frame".to_string());
        }
        self.select_frame(index.saturating_sub(n))?;
        self.show_frame(out);
        Ok(())
    }

    pub(super) fn frame(&mut self, args: &str, out: &mut String) -> CommandResult {
        if !args.is_empty() {
            let number = args.trim_start_matches('#');
            self.select_frame(number.parse().map_err(|_| format!("`{args}` is not a number of a frame"))?)?;
        }
        self.show_frame(out);
        Ok(())
    }

    /// Selects a frame of the selected wave; the innermost one is 0.
    ///
    /// # Errors
    /// The wave does not have that many frames.
    pub fn select_frame(&mut self, index: usize) -> Result<(), String> {
        let wave = self.focus.wave;
        if self.timeline.select_frame(wave, index) {
            return Ok(());
        }
        let last = frames(&self.timeline, wave).len() - 1;
        Err(format!("the wave has frames 0 to {last}"))
    }

    fn show_frame(&mut self, out: &mut String) {
        let index = self.timeline.selected_frame(self.focus.wave);
        if let Some(frame) = frames(&self.timeline, self.focus.wave).get(index) {
            let _ = writeln!(out, "#{index}  {}", self.frame_text(frame));
            if let Some(line) = frame.place.as_ref().and_then(|place| self.source_line(place)) {
                let _ = writeln!(out, "{line}");
            }
        }
    }

    pub(super) fn locals(&self, out: &mut String) -> CommandResult {
        if self.timeline.prepared.debug.is_empty() {
            return Err("the kernel has no debug information (clang's -g adds it)".to_string());
        }
        let mut names = BTreeSet::new();
        for (name, object) in self.frame_variables() {
            // Outer variables of the same name are hidden.
            if !names.insert(name.clone()) {
                continue;
            }
            let shown = object.and_then(|object| {
                let mark = if object.of_start { "@start" } else { "" };
                object.show(&self.timeline, self.focus, None).map(|value| (mark, value))
            });
            match shown {
                Ok((mark, value)) => {
                    let _ = writeln!(out, "{name}{mark} = {value}");
                }
                Err(message) => {
                    let _ = writeln!(out, "{name}: {}", message.trim_start_matches(&format!("`{name}` is ")));
                }
            }
        }
        if names.is_empty() {
            out.push_str("no variables in scope\n");
        }
        Ok(())
    }

    /// Returns the variables of the selected frame, parameters first, then those of outer blocks before inner
    /// ones.
    pub fn frame_variables(&self) -> Vec<(String, Result<Object, String>)> {
        let mut scope = variables::in_scope(&self.timeline, self.focus.wave);
        scope.sort_by_key(|v| !v.parameter);
        let object = |v: &_| variables::object(&self.timeline, self.focus, v);
        scope.iter().map(|v| (v.name.clone(), object(v))).collect()
    }

    pub(super) fn show_type(&mut self, text: &str, out: &mut String) -> CommandResult {
        let expression = Expression::parse(text, self.timeline.prepared)?;
        let scope = Scope::new(&self.timeline, self.focus);
        let object = expression.object(&scope);
        let object = object.ok_or_else(|| format!("`{text}` is not a variable of the source"))??;
        type_text(&object.kind, 0, out);
        out.push('\n');
        Ok(())
    }

    /// Returns the variable, or the part of one, that an expression names; `None` if it is something else.
    ///
    /// # Errors
    /// The expression is invalid, or the variable cannot be read.
    pub fn object(&self, text: &str, focus: Focus) -> Result<Option<Object>, String> {
        let expression = Expression::parse(text, self.timeline.prepared)?;
        expression.object(&Scope::new(&self.timeline, focus)).transpose()
    }
}

/// Writes a type as C declares it.
fn type_text(kind: &Type, depth: usize, out: &mut String) {
    let TypeKind::Struct(members) = &kind.kind else {
        out.push_str(&kind.name);
        return;
    };
    let pad = "  ".repeat(depth + 1);
    let _ = writeln!(out, "{} {{", kind.name);
    for member in members {
        let nested = member.name.is_empty() && depth < 4;
        out.push_str(&pad);
        match nested {
            true => type_text(&member.kind, depth + 1, out),
            false => out.push_str(&declaration(&member.kind.name, &member.name)),
        }
        let bits = member.bits.map_or(String::new(), |(_, size)| format!(" : {size}"));
        let _ = writeln!(out, "{bits};  // offset {}", member.offset);
    }
    let _ = write!(out, "{}}}", "  ".repeat(depth));
}

/// Returns a declaration: the dimensions of an array follow the name.
fn declaration(kind: &str, name: &str) -> String {
    match kind.split_once('[') {
        Some((element, dimensions)) => format!("{element} {name}[{dimensions}"),
        None => format!("{kind} {name}"),
    }
}
