//! Breakpoints of all kinds. Each request replaces the breakpoints of its kind, or of its source file.

use super::protocol::{
    Breakpoint, Breakpoints, DataBreakpoint, DataBreakpointInfoArguments, FunctionBreakpoint,
    InstructionBreakpoint, SetBreakpointsArguments, SetExceptionBreakpointsArguments, StopConditions,
};
use super::session::{Answer, Session};
use serde_json::json;
use wavesim_debug::breakpoint::{self, Access, HitCount};
use wavesim_inspect::check::Check;

/// Breakpoint kinds without a source, as reasons for a stop.
const FUNCTION: &str = "function breakpoint";
const INSTRUCTION: &str = "instruction breakpoint";

impl Session<'_, '_> {
    pub fn set_breakpoints(&mut self, arguments: SetBreakpointsArguments) -> Answer {
        let source = &arguments.source;
        let key = source.path.clone().unwrap_or_else(|| "source".to_string());
        self.clear(&key);
        let prepared = self.debugger.timeline.prepared;
        let lines = self.listing.lines(prepared, source, self.host);
        let mut list = Vec::new();
        for wanted in &arguments.breakpoints {
            let line = wanted.line + 1 - self.client.first_line;
            let found = lines.as_ref().map_err(Clone::clone).and_then(|lines| {
                let found = lines.range(line..).next();
                found.ok_or_else(|| "there is no instruction in this line or below".to_string())
            });
            let (line, pc) = match found {
                Ok((line, pc)) => (*line, *pc),
                Err(message) => {
                    list.push(Breakpoint::unverified(message));
                    continue;
                }
            };
            let pcs = breakpoint::instances(pc, &self.debugger.timeline);
            let mut set = self.set_at(&key, pcs, &wanted.when);
            set.line = set.verified.then_some(line - 1 + self.client.first_line);
            set.source = set.verified.then(|| source.clone());
            list.push(set);
        }
        Ok(json!({"breakpoints": list}))
    }

    pub fn set_function_breakpoints(&mut self, arguments: Breakpoints<FunctionBreakpoint>) -> Answer {
        self.clear(FUNCTION);
        let mut list = Vec::new();
        for wanted in &arguments.breakpoints {
            list.push(match breakpoint::locate_all(&wanted.name, &self.debugger.timeline) {
                Ok(pcs) => self.set_at(FUNCTION, pcs, &wanted.when),
                Err(message) => Breakpoint::unverified(message),
            });
        }
        Ok(json!({"breakpoints": list}))
    }

    pub fn set_instruction_breakpoints(&mut self, arguments: Breakpoints<InstructionBreakpoint>) -> Answer {
        self.clear(INSTRUCTION);
        let mut list = Vec::new();
        for wanted in &arguments.breakpoints {
            let pc = self.code_address(&wanted.instruction_reference);
            let pc = pc.map(|pc| pc.wrapping_add_signed(wanted.offset)).and_then(|pc| {
                let found = self.debugger.timeline.prepared.program.inst_at(pc);
                found.map(|_| pc).ok_or_else(|| format!("no instruction begins at 0x{pc:x}"))
            });
            list.push(match pc {
                Ok(pc) => self.set_at(INSTRUCTION, vec![pc], &wanted.when),
                Err(message) => Breakpoint::unverified(message),
            });
        }
        Ok(json!({"breakpoints": list}))
    }

    fn clear(&mut self, key: &str) {
        let old = self.breakpoints.remove(key).unwrap_or_default();
        self.debugger.breakpoints.retain(|b| !old.contains(&b.number));
    }

    /// Adds a breakpoint at instructions, of which there is at least one.
    fn set_at(&mut self, key: &str, pcs: Vec<u64>, when: &StopConditions) -> Breakpoint {
        let pc = pcs[0];
        let program = &self.debugger.timeline.prepared.program;
        let reference = format!("0x{:x}", program.address(pc));
        let location = program.place(pc);
        let added = count(when).and_then(|count| {
            let condition =
                non_empty(&when.condition).map(|text| self.debugger.condition(&text)).transpose()?;
            Ok(self.debugger.add_breakpoint(breakpoint::Breakpoint {
                number: 0,
                pc,
                more: pcs[1..].to_vec(),
                place: reference.clone(),
                location,
                condition,
                wave: None,
                temporary: false,
                hits: 0,
                count,
                message: non_empty(&when.log_message),
            }))
        });
        match added {
            Ok(number) => {
                self.breakpoints.entry(key.to_string()).or_default().push(number);
                Breakpoint {
                    id: Some(number),
                    verified: true,
                    instruction_reference: Some(reference),
                    ..Breakpoint::default()
                }
            }
            Err(message) => Breakpoint::unverified(message),
        }
    }

    /// Returns the reason for a stop at a breakpoint.
    pub fn kind_of(&self, number: u32) -> &'static str {
        let has = |key: &str| self.breakpoints.get(key).is_some_and(|list| list.contains(&number));
        match () {
            () if has(FUNCTION) => FUNCTION,
            () if has(INSTRUCTION) => INSTRUCTION,
            () => "breakpoint",
        }
    }

    /// Returns the data id of a value: the wave, and the argument of the debugger's `watch`.
    pub fn data_breakpoint_info(&mut self, arguments: DataBreakpointInfoArguments) -> Answer {
        self.select(arguments.frame_id)?;
        let mut text = arguments.name.clone();
        let mut wave = self.debugger.focus.wave;
        if arguments.as_address {
            text = format!("mem {text} {}", arguments.bytes.unwrap_or(4));
        } else if let Some(reference) = arguments.variables_reference.filter(|r| *r > 0) {
            let target = self.target_of(reference, &arguments.name)?;
            wave = target.wave.unwrap_or(wave);
            text = target.watched.unwrap_or(target.text);
        }
        self.debugger.focus.wave = wave;
        if let Err(message) = self.debugger.can_watch(&text) {
            return Ok(json!({"dataId": null, "description": message}));
        }
        Ok(json!({
            "dataId": format!("{wave}:{text}"),
            "description": text,
            "accessTypes": ["read", "write", "readWrite"],
            "canPersist": false,
        }))
    }

    pub fn set_data_breakpoints(&mut self, arguments: Breakpoints<DataBreakpoint>) -> Answer {
        let old = std::mem::take(&mut self.watched);
        self.debugger.watchpoints.retain(|w| !old.contains(&w.number));
        let mut list = Vec::new();
        for wanted in &arguments.breakpoints {
            list.push(match self.watch(wanted) {
                Ok(number) => {
                    self.watched.push(number);
                    Breakpoint { id: Some(number), verified: true, ..Breakpoint::default() }
                }
                Err(message) => Breakpoint::unverified(message),
            });
        }
        Ok(json!({"breakpoints": list}))
    }

    fn watch(&mut self, wanted: &DataBreakpoint) -> Result<u32, String> {
        let (wave, text) = wanted.data_id.split_once(':').ok_or("this is not a data id of this adapter")?;
        let waves = self.debugger.timeline.waves();
        let wave = wave.parse().ok().filter(|w| *w < waves).ok_or("the workgroup does not have this wave")?;
        let access = match wanted.access_type.as_deref() {
            None | Some("write") => Access::Change,
            Some("read") => Access::Read,
            Some("readWrite") => Access::Any,
            Some(other) => return Err(format!("there is no access type `{other}`")),
        };
        let before = std::mem::replace(&mut self.debugger.focus.wave, wave);
        let count = count(&wanted.when);
        let added = count.and_then(|count| {
            let text_of = non_empty(&wanted.when.condition);
            let condition = text_of.map(|text| self.debugger.condition(&text)).transpose()?;
            self.debugger.add_watchpoint(text, access, condition, count)
        });
        self.debugger.focus.wave = before;
        added
    }

    pub fn set_exception_breakpoints(&mut self, arguments: SetExceptionBreakpointsArguments) -> Answer {
        let options = arguments.filter_options.iter().map(|o| o.filter_id.as_str());
        let mut chosen = Vec::new();
        for name in arguments.filters.iter().map(String::as_str).chain(options) {
            let check = Check::from_name(name).ok_or_else(|| {
                let names: Vec<&str> = Check::ALL.iter().map(|c| c.name()).collect();
                format!("there is no check `{name}`; checks are {}", names.join(", "))
            })?;
            chosen.push(check);
        }
        let possible = Check::of(self.debugger.timeline.prepared.program.arch);
        chosen.retain(|check| possible.contains(check));
        self.debugger.stop_at = Some(chosen.clone());
        if self.debugger.timeline.checks() != chosen {
            self.debugger.timeline.check(&chosen).map_err(|e| e.to_string())?;
        }
        Ok(json!({}))
    }
}

fn count(when: &StopConditions) -> Result<Option<HitCount>, String> {
    non_empty(&when.hit_condition).map(|text| HitCount::parse(&text)).transpose()
}

/// Treats empty texts as absent: clients send empty ones for conditions that the user has deleted.
fn non_empty(text: &Option<String>) -> Option<String> {
    text.clone().filter(|t| !t.trim().is_empty())
}
