//! Registers, lanes, arguments and memory as variables, and expressions.

use super::protocol::{
    CompletionsArguments, EvaluateArguments, SetVariableArguments, ValueFormat, Variable, VariablesArguments,
};
use super::session::{Answer, Session};
use serde_json::{Value as Json, json};
use wavesim_array::{DType, show};
use wavesim_debug::command::{Command, Flow};
use wavesim_debug::expr::{self, Register, Value};
use wavesim_debug::variables::{Object, Part};
use wavesim_debug::view;
use wavesim_machine::exec::effects::{File, register_name};

/// The object of a variable reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handle {
    /// The arguments of the kernel.
    Arguments,
    /// The elements of an argument.
    Buffer(usize),
    /// PC, masks and modes of a wave.
    Wave(usize),
    Sgprs(usize),
    Vgprs(usize),
    /// The lanes of a VGPR.
    Lanes(usize, u16),
    /// The variables of the source in a frame of a wave.
    Locals(usize, usize),
    /// The members or elements of a variable, by its index among the session's objects.
    Object(usize),
    /// The dwords of LDS.
    Lds,
    /// The dwords of a lane's scratch.
    Scratch(usize, u32),
}

/// A variable of the source, or a part of one.
pub(super) struct NamedObject {
    object: Object,
    /// The expression that names it.
    name: String,
    wave: usize,
    frame: usize,
}

/// A variable in the debugger's syntax.
pub(super) struct Target {
    /// The argument of `set`.
    pub text: String,
    /// The argument of `watch`, if it differs.
    pub watched: Option<String>,
    /// The wave that owns the variable.
    pub wave: Option<usize>,
}

impl Session<'_, '_> {
    /// Returns the reference of a handle.
    pub fn reference(&mut self, handle: Handle) -> i64 {
        if let Some(at) = self.handles.iter().position(|h| *h == handle) {
            return at as i64 + 1;
        }
        self.handles.push(handle);
        self.handles.len() as i64
    }

    fn handle(&self, reference: i64) -> Result<Handle, String> {
        let at = usize::try_from(reference - 1).ok();
        let handle = at.and_then(|at| self.handles.get(at)).copied();
        handle.ok_or_else(|| "this variable is from before the kernel ran on".to_string())
    }

    /// Returns the number of indexed children of a handle.
    pub fn indexed(&self, handle: Handle) -> Option<u64> {
        let prepared = self.debugger.timeline.prepared;
        match handle {
            Handle::Buffer(at) => {
                let buffer = &prepared.buffers[at];
                Some(buffer.len_bytes / buffer.dtype.size() as u64)
            }
            Handle::Lanes(..) => Some(prepared.shape.wave_size as u64),
            Handle::Lds => Some(prepared.shape.lds_bytes as u64 / 4),
            Handle::Scratch(..) => Some(prepared.shape.scratch_bytes as u64 / 4),
            _ => None,
        }
    }

    pub fn variables(&mut self, arguments: VariablesArguments) -> Answer {
        let handle = self.handle(arguments.variables_reference)?;
        let format = arguments.format;
        let indexed = self.indexed(handle);
        if indexed.is_some() && arguments.filter.as_deref() == Some("named") {
            return Ok(json!({"variables": []}));
        }
        let total = indexed.unwrap_or(0);
        let start = (arguments.start.unwrap_or(0) as u64).min(total);
        let count =
            arguments.count.filter(|c| *c > 0).map_or(total - start, |c| (c as u64).min(total - start));
        let range = start..start + count.min(1 << 16);
        let list: Vec<Variable> = match handle {
            Handle::Arguments => {
                (0..self.debugger.timeline.prepared.buffers.len()).map(|at| self.argument(at)).collect()
            }
            Handle::Buffer(at) => range.map(|k| self.element(at, k, format)).collect(),
            Handle::Wave(wave) => self.wave_variables(wave, format),
            Handle::Sgprs(wave) => self.sgprs(wave, format),
            Handle::Vgprs(wave) => {
                let registers = self.vgprs(wave);
                registers.into_iter().map(|register| self.vgpr(wave, register)).collect()
            }
            Handle::Locals(wave, frame) => self.locals(wave, frame)?,
            Handle::Object(at) => self.parts(at)?,
            Handle::Lanes(wave, register) => {
                range.map(|lane| self.lane(wave, register, lane as u32, format)).collect()
            }
            Handle::Lds => range.map(|k| self.dword(handle, k, format)).collect(),
            Handle::Scratch(..) => range.map(|k| self.dword(handle, k, format)).collect(),
        };
        Ok(json!({"variables": list}))
    }

    fn select_frame_of(&mut self, wave: usize, frame: usize) -> Result<(), String> {
        self.debugger.focus.wave = wave;
        self.debugger.select_frame(frame)
    }

    fn locals(&mut self, wave: usize, frame: usize) -> Result<Vec<Variable>, String> {
        self.select_frame_of(wave, frame)?;
        let mut list: Vec<Variable> = Vec::new();
        for (name, object) in self.debugger.frame_variables() {
            // Outer variables of the same name are hidden.
            if list.iter().any(|v| v.name == name) {
                continue;
            }
            list.push(match object {
                Ok(object) => self.object(name.clone(), name, object),
                Err(message) => Variable { name, value: format!("({message})"), ..Variable::default() },
            });
        }
        Ok(list)
    }

    /// Returns the members or elements of a variable.
    fn parts(&mut self, position: usize) -> Result<Vec<Variable>, String> {
        let NamedObject { object, name, wave, frame } = &self.objects[position];
        let (object, name, wave, frame) = (object.clone(), name.clone(), *wave, *frame);
        self.select_frame_of(wave, frame)?;
        let mut list = Vec::new();
        for (part_name, part) in object.parts() {
            let expression = match &part {
                Part::Member(member) => format!("{name}.{member}"),
                Part::Element(index) => format!("{name}[{index}]"),
                Part::Target => format!("*{name}"),
                Part::Address => format!("&{name}"),
            };
            let found = object.clone().part(&self.debugger.timeline, self.debugger.focus, &part);
            list.push(match found {
                Ok(found) => self.object(part_name, expression, found),
                Err(message) => Variable { name: part_name, value: message, ..Variable::default() },
            });
        }
        Ok(list)
    }

    /// Returns a variable of the source, in the selected frame.
    fn object(&mut self, name: String, expression: String, object: Object) -> Variable {
        let shown = object.show(&self.debugger.timeline, self.debugger.focus, None);
        let (kind, of_start) = (Some(object.kind.name.clone()), object.of_start);
        let wave = self.debugger.focus.wave;
        let frame = self.debugger.timeline.selected_frame(wave);
        let mut variables_reference = 0;
        if !object.parts().is_empty() {
            self.objects.push(NamedObject { object, name: expression.clone(), wave, frame });
            variables_reference = self.reference(Handle::Object(self.objects.len() - 1));
        }
        Variable {
            name,
            value: match shown {
                Ok(value) if of_start => format!("{value} (at the start)"),
                Ok(value) => value,
                Err(message) => format!("({message})"),
            },
            kind,
            evaluate_name: Some(expression),
            variables_reference,
            ..Variable::default()
        }
    }

    fn argument(&mut self, index: usize) -> Variable {
        let timeline = &self.debugger.timeline;
        let buffer = &timeline.prepared.buffers[index];
        let shape: Vec<String> = buffer.shape.iter().map(u64::to_string).collect();
        let kind = format!("{}[{}]", buffer.dtype.name(), shape.join(","));
        if buffer.shape.is_empty() {
            let mut variable = self.element(index, 0, ValueFormat::default());
            variable.name = self.debugger.timeline.prepared.buffers[index].name.clone();
            return variable;
        }
        let count = buffer.len_bytes / buffer.dtype.size() as u64;
        let first: Vec<String> = (0..count.min(8)).map(|k| self.element_text(index, k, false)).collect();
        let more = if count > 8 { ", …" } else { "" };
        let address = timeline.memory().own_address(buffer.address);
        Variable {
            name: buffer.name.clone(),
            value: format!("[{}{more}]", first.join(", ")),
            kind: Some(kind),
            evaluate_name: Some(buffer.name.clone()),
            variables_reference: self.reference(Handle::Buffer(index)),
            indexed_variables: Some(count),
            memory_reference: Some(format!("0x{address:x}")),
            presentation_hint: None,
        }
    }

    fn element_text(&self, position: usize, index: u64, hex: bool) -> String {
        let timeline = &self.debugger.timeline;
        let buffer = &timeline.prepared.buffers[position];
        let size = buffer.dtype.size();
        match timeline.memory().load_value(buffer.address + index * size as u64, size as u32) {
            Ok(bits) if hex => format!("0x{:0width$x}", bits as u64, width = 2 * size),
            Ok(bits) => show::bits(bits as u64, Some(buffer.dtype), 1),
            Err(e) => e.to_string(),
        }
    }

    fn element(&mut self, position: usize, index: u64, format: ValueFormat) -> Variable {
        let buffer = &self.debugger.timeline.prepared.buffers[position];
        let address = buffer.address + index * buffer.dtype.size() as u64;
        let address = self.debugger.timeline.memory().own_address(address);
        Variable {
            name: format!("[{index}]"),
            value: self.element_text(position, index, format.hex),
            kind: Some(buffer.dtype.name().to_string()),
            evaluate_name: Some(format!("{}[{index}]", buffer.name)),
            memory_reference: Some(format!("0x{address:x}")),
            ..Variable::default()
        }
    }

    fn wave_variables(&mut self, wave: usize, format: ValueFormat) -> Vec<Variable> {
        self.debugger.focus.wave = wave;
        let own = self.debugger.timeline.prepared.program.arch.machine().is_some();
        let names: &[&str] =
            if own { &["pc", "exec"] } else { &["pc", "exec", "vcc", "scc", "m0", "mode", "status"] };
        let size = self.debugger.timeline.wave(wave).size() as usize;
        let mut list: Vec<Variable> = names
            .iter()
            .map(|name| {
                let value = expr::evaluate(name, &self.debugger.timeline, self.debugger.focus);
                let value = match value {
                    Ok(Value::Int(v)) => match *name {
                        "exec" | "vcc" => format!("0x{:0width$x}", v as u64, width = size / 4),
                        "scc" if !format.hex => v.to_string(),
                        _ => format!("0x{:x}", v as u64),
                    },
                    Ok(value) => value.to_string(),
                    Err(message) => message,
                };
                let evaluate_name = Some((*name).to_string());
                Variable { name: (*name).to_string(), value, evaluate_name, ..Variable::default() }
            })
            .collect();
        list.push(Variable {
            name: "lane".to_string(),
            value: self.debugger.focus.lane.to_string(),
            kind: Some("the lane that expressions read".to_string()),
            evaluate_name: Some("lane".to_string()),
            ..Variable::default()
        });
        list.push(Variable {
            name: "step".to_string(),
            value: self.debugger.timeline.time().to_string(),
            kind: Some("instructions executed so far".to_string()),
            evaluate_name: Some("step".to_string()),
            presentation_hint: Some(json!({"attributes": ["readOnly"]})),
            ..Variable::default()
        });
        list
    }

    fn sgprs(&mut self, wave: usize, format: ValueFormat) -> Vec<Variable> {
        let timeline = &self.debugger.timeline;
        let arch = timeline.prepared.program.arch;
        let w = timeline.wave(wave);
        let shown = view::scalar_codes(arch)
            .into_iter()
            .filter(|code| w.sgpr(*code as u32) != 0 || self.debugger.uses(File::Sgpr, *code));
        shown
            .map(|code| {
                let name = register_name(arch, File::Sgpr, code, 1);
                let value = match timeline.is_sgpr_written(wave, code) {
                    true => dword(w.sgpr(code as u32), format),
                    false => "unwritten".to_string(),
                };
                let evaluate_name = Some(name.clone());
                Variable { name, value, evaluate_name, ..Variable::default() }
            })
            .collect()
    }

    /// Returns the VGPRs that the program names, and others that are not zero.
    fn vgprs(&self, wave: usize) -> Vec<u16> {
        let w = self.debugger.timeline.wave(wave);
        let used = |r: &u16| {
            self.debugger.uses(File::Vgpr, *r) || (0..w.size()).any(|lane| w.vgpr(lane, *r as u32) != 0)
        };
        (0..w.vgpr_count().min(256) as u16).filter(used).collect()
    }

    fn vgpr(&mut self, wave: usize, register: u16) -> Variable {
        let timeline = &self.debugger.timeline;
        let w = timeline.wave(wave);
        let name = register_name(timeline.prepared.program.arch, File::Vgpr, register, 1);
        let first: Vec<String> = (0..8.min(w.size()))
            .map(|lane| {
                let value = format!("0x{:x}", w.vgpr(lane, register as u32));
                if w.exec() >> lane & 1 == 1 { value } else { format!("({value})") }
            })
            .collect();
        let size = w.size() as u64;
        let value = match w.is_written(register as u32) {
            true => format!("[{}, …]", first.join(", ")),
            false => "unwritten".to_string(),
        };
        Variable {
            value,
            kind: Some(format!("b32[{size}]")),
            evaluate_name: Some(name.clone()),
            variables_reference: self.reference(Handle::Lanes(wave, register)),
            indexed_variables: Some(size),
            name,
            ..Variable::default()
        }
    }

    fn lane(&self, wave: usize, register: u16, lane: u32, format: ValueFormat) -> Variable {
        let timeline = &self.debugger.timeline;
        let w = timeline.wave(wave);
        let name = register_name(timeline.prepared.program.arch, File::Vgpr, register, 1);
        let active = w.exec() >> lane & 1 == 1;
        Variable {
            name: format!("[{lane}]{}", if active { "" } else { " (inactive)" }),
            value: dword(w.vgpr(lane, register as u32), format),
            evaluate_name: Some(format!("{name}[{lane}]")),
            ..Variable::default()
        }
    }

    fn dword(&self, handle: Handle, index: u64, format: ValueFormat) -> Variable {
        let timeline = &self.debugger.timeline;
        let (space, mut focus, name) = match handle {
            Handle::Lds => (expr::Space::Lds, self.debugger.focus, "lds"),
            _ => (expr::Space::Scratch, self.debugger.focus, "scratch"),
        };
        if let Handle::Scratch(wave, lane) = handle {
            focus = expr::Focus { wave, lane };
        }
        let mut bytes = [0; 4];
        let value = match space.read(timeline, focus, 4 * index, &mut bytes) {
            Ok(()) => dword(u32::from_le_bytes(bytes), format),
            Err(message) => message,
        };
        let memory_reference = match handle {
            Handle::Scratch(wave, lane) => format!("scratch:{wave}:{lane}+0x{:x}", 4 * index),
            _ => format!("lds+0x{:x}", 4 * index),
        };
        Variable {
            name: format!("[0x{:x}]", 4 * index),
            value,
            evaluate_name: Some(format!("{name}[0x{:x}]", 4 * index)),
            memory_reference: Some(memory_reference),
            ..Variable::default()
        }
    }

    /// Returns the variable that a child of a reference denotes.
    pub fn target_of(&self, reference: i64, name: &str) -> Result<Target, String> {
        let handle = self.handle(reference)?;
        let timeline = &self.debugger.timeline;
        let arch = timeline.prepared.program.arch;
        // For lanes, the text after the index marks inactive ones.
        let index = name.split_once(']').and_then(|(head, _)| head.strip_prefix('['));
        let index_of = || index.ok_or_else(|| format!("`{name}` is not an element"));
        let target = |text: String, wave| Ok(Target { text, watched: None, wave });
        match handle {
            Handle::Arguments => {
                let buffer = timeline.prepared.buffer(name).ok_or_else(|| format!("there is no `{name}`"))?;
                let len = if buffer.shape.is_empty() { buffer.dtype.size() as u64 } else { buffer.len_bytes };
                let address = timeline.memory().own_address(buffer.address);
                let watched = Some(format!("mem 0x{address:x} {len}"));
                Ok(Target { text: format!("{name}[0]"), watched, wave: None })
            }
            Handle::Buffer(at) => {
                target(format!("{}[{}]", timeline.prepared.buffers[at].name, index_of()?), None)
            }
            Handle::Wave(wave) | Handle::Sgprs(wave) | Handle::Vgprs(wave) => {
                target(name.to_string(), Some(wave))
            }
            Handle::Locals(wave, _) => target(name.to_string(), Some(wave)),
            Handle::Object(at) => {
                let owner = &self.objects[at];
                let text = match index {
                    Some(index) => format!("{}[{index}]", owner.name),
                    None if name == "*" => format!("*{}", owner.name),
                    None => format!("{}.{name}", owner.name),
                };
                target(text, Some(owner.wave))
            }
            Handle::Lanes(wave, register) => {
                let register = register_name(arch, File::Vgpr, register, 1);
                target(format!("{register}[{}]", index_of()?), Some(wave))
            }
            Handle::Lds => {
                let watched = Some(format!("lds {} 4", index_of()?));
                Ok(Target { text: format!("lds[{}]", index_of()?), watched, wave: None })
            }
            Handle::Scratch(wave, _) => target(format!("scratch[{}]", index_of()?), Some(wave)),
        }
    }

    pub fn set_variable(&mut self, arguments: SetVariableArguments) -> Answer {
        let target = self.target_of(arguments.variables_reference, &arguments.name)?;
        self.debugger.focus.wave = target.wave.unwrap_or(self.debugger.focus.wave);
        match self.handle(arguments.variables_reference) {
            Ok(Handle::Locals(wave, frame)) => self.select_frame_of(wave, frame)?,
            Ok(Handle::Object(at)) => {
                let (wave, frame) = (self.objects[at].wave, self.objects[at].frame);
                self.select_frame_of(wave, frame)?;
            }
            _ => {}
        }
        if let (Ok(Handle::Wave(_)), "lane") =
            (self.handle(arguments.variables_reference), &arguments.name[..])
        {
            self.debugger.execute(&format!("lane {}", arguments.value)).0?;
            return Ok(json!({"value": arguments.value}));
        }
        let before = self.debugger.focus.lane;
        if let Ok(Handle::Scratch(_, lane)) = self.handle(arguments.variables_reference) {
            self.debugger.focus.lane = lane;
        }
        let done = self.debugger.assign(&target.text, &arguments.value);
        let shown = self.evaluate_to_variable(&target.text, ValueFormat::default());
        self.debugger.focus.lane = before;
        done?;
        Ok(json!({"value": shown?.value}))
    }

    pub fn set_expression(&mut self, arguments: EvaluateArguments) -> Answer {
        self.select(arguments.frame_id)?;
        self.debugger.assign(&arguments.expression, &arguments.value)?;
        Ok(json!({"value": self.evaluate_to_variable(&arguments.expression, arguments.format)?.value}))
    }

    pub fn evaluate(&mut self, arguments: EvaluateArguments) -> Answer {
        self.select(arguments.frame_id)?;
        let text = arguments.expression.trim();
        if arguments.context.as_deref() == Some("repl") {
            let word = text.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or("");
            if Command::find(word).is_some() {
                return self.command(text);
            }
        }
        let shown = self.evaluate_to_variable(text, arguments.format)?;
        let mut out = json!({"result": shown.value, "variablesReference": shown.variables_reference});
        for (key, value) in [("type", json!(shown.kind)), ("memoryReference", json!(shown.memory_reference))]
        {
            if !value.is_null() {
                out[key] = value;
            }
        }
        if let Some(count) = shown.indexed_variables {
            out["indexedVariables"] = json!(count);
        }
        Ok(out)
    }

    /// Returns the value of an expression. Whole registers and arguments have their lanes and elements as
    /// children.
    fn evaluate_to_variable(&mut self, text: &str, format: ValueFormat) -> Result<Variable, String> {
        let timeline = &self.debugger.timeline;
        let focus = self.debugger.focus;
        let prepared = timeline.prepared;
        let hidden = wavesim_debug::variables::hides_argument(timeline, focus.wave, text);
        if let Some(at) = prepared.buffers.iter().position(|b| b.name == text && !hidden) {
            return Ok(self.argument(at));
        }
        let wide = timeline.wave(focus.wave).size() == 64;
        if let Some(Register::Vgpr(register, 1)) = expr::register(text, wide, prepared.program.arch) {
            return Ok(self.vgpr(focus.wave, register));
        }
        if !format.hex
            && let Some(object) = self.debugger.object(text, focus)?
        {
            return Ok(self.object(text.to_string(), text.to_string(), object));
        }
        let timeline = &self.debugger.timeline;
        let value = match expr::evaluate(text, timeline, focus)? {
            // Typed and small values have no hexadecimal form.
            Value::Int(v) if format.hex => format!("0x{:x}", v as u64),
            Value::Int(v) if text.contains('.') || (-9..=9).contains(&v) => v.to_string(),
            Value::Int(v) => match u32::try_from(v) {
                Ok(bits) => dword(bits, format),
                Err(_) => format!("{v} (0x{:x})", v as u64),
            },
            value => value.to_string(),
        };
        Ok(Variable { value, ..Variable::default() })
    }

    /// Executes a command of the debugger.
    fn command(&mut self, text: &str) -> Answer {
        if self.run.is_some() {
            return Err("the kernel runs; `pause` stops it".to_string());
        }
        let state = |s: &Self| (s.debugger.timeline.time(), s.debugger.focus);
        let before = state(self);
        let (result, flow) = self.debugger.execute(text);
        if flow == Flow::Quit {
            self.terminated();
            return Ok(json!({"result": "", "variablesReference": 0}));
        }
        let output = result?;
        if state(self) != before {
            self.forget_handles();
            self.ended = false;
            // The title of the stop is part of the output.
            self.report("goto");
        } else if self.client.invalidated {
            self.sender.event("invalidated", json!({"areas": ["all"]}));
        }
        Ok(json!({"result": output.trim_end(), "variablesReference": 0}))
    }

    pub fn completions(&mut self, arguments: CompletionsArguments) -> Answer {
        // Columns count UTF-16 code units.
        let column = arguments.column.saturating_sub(self.client.first_column as usize);
        let mut units = 0;
        let cursor = arguments.text.char_indices().find(|(_, c)| {
            let here = units >= column;
            units += c.len_utf16();
            here
        });
        let cursor = cursor.map_or(arguments.text.len(), |(at, _)| at);
        let (start, names) = self.debugger.complete(&arguments.text, cursor);
        let length = arguments.text[start..cursor].encode_utf16().count();
        let from = arguments.text[..start].encode_utf16().count() as i64 + self.client.first_column;
        let targets: Vec<Json> =
            names.iter().map(|name| json!({"label": name, "start": from, "length": length})).collect();
        Ok(json!({"targets": targets}))
    }
}

/// Formats a dword as an integer, in hexadecimal, and as f32.
fn dword(bits: u32, format: ValueFormat) -> String {
    if format.hex {
        return format!("0x{bits:08x}");
    }
    format!("{bits} (0x{bits:x}, {}f)", show::bits(bits as u64, Some(DType::F32), 1))
}
