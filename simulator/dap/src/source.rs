//! Frames, source and disassembly.

use super::Host;
use super::protocol::{
    DisassembleArguments, FrameArguments, LineArguments, Source, SourceArguments, StackTraceArguments,
};
use super::session::{Answer, FRAME, Session};
use super::variables::Handle;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wavesim_debug::frames::{Frame, frames};
use wavesim_loader::debug_info::SourcePlace;
use wavesim_loader::prepared::Prepared;

/// The reference of the only source that the adapter provides itself: the disassembly of a kernel without
/// source, or a source text that is not a file.
const LISTING: i64 = 1;

/// The source that the client shows.
pub(super) struct Listing {
    /// The kernel's text, the files that its debug information names, or its disassembly.
    sources: Vec<Source>,
    /// The text of the only source, if the adapter provides it.
    text: Option<String>,
    /// Whether the source is the disassembly, with one instruction per line.
    disassembled: bool,
}

impl Listing {
    pub fn new(prepared: &Prepared, host: &dyn Host) -> Listing {
        let program = &prepared.program;
        let short = |name: &str| name.rsplit(['/', '\\']).next().map(str::to_string);
        if let Some(source) = &prepared.source {
            let path = host.path(&source.name);
            let text = path.is_none().then(|| source.text.clone());
            let source_reference = path.is_none().then_some(LISTING);
            let sources = vec![Source { name: short(&source.name), path, source_reference }];
            return Listing { sources, text, disassembled: false };
        }
        let file = |path: &str| Source {
            name: short(path),
            path: Some(host.path(path).unwrap_or_else(|| path.to_string())),
            source_reference: None,
        };
        let sources: Vec<Source> = program.source_files().iter().map(|f| file(&f.path)).collect();
        if !sources.is_empty() {
            return Listing { sources, text: None, disassembled: false };
        }
        let lines = program.pcs.iter().enumerate();
        let text =
            lines.map(|(at, pc)| format!("{:6x}: {}\n", program.address(*pc), program.text(at))).collect();
        let name = Some("disassembly".to_string());
        let sources = vec![Source { name, path: None, source_reference: Some(LISTING) }];
        Listing { sources, text: Some(text), disassembled: true }
    }

    /// Returns whether this is source, not disassembly.
    pub fn has_lines(&self) -> bool {
        !self.disassembled
    }

    /// Returns the index of the source that a source of the client designates.
    fn index(&self, wanted: &Source, host: &dyn Host) -> Option<usize> {
        self.sources.iter().position(|own| match (&own.path, &wanted.path) {
            (Some(own), Some(path)) => own == path || host.path(path).as_ref() == Some(own),
            (None, _) => wanted.source_reference == Some(LISTING),
            _ => false,
        })
    }

    /// Returns the source of an instruction and its line there, counted from 1; `None` if it has none.
    fn position(&self, prepared: &Prepared, index: usize) -> Option<(usize, i64)> {
        if self.disassembled {
            return Some((0, index as i64 + 1));
        }
        let file = prepared.program.source_line(index).map_or(0, |line| line.file as usize);
        let line = prepared.program.lines[index] as i64;
        (line > 0 && file < self.sources.len()).then_some((file, line))
    }

    /// Returns the source and the line of the instruction at a byte offset.
    pub fn line(&self, prepared: &Prepared, pc: u64) -> Option<(Source, i64)> {
        let (file, line) = self.position(prepared, prepared.program.inst_at(pc)?)?;
        Some((self.sources[file].clone(), line))
    }

    /// Returns the source of a place that debug information names, and the line.
    fn place(&self, prepared: &Prepared, place: &SourcePlace) -> Option<(Source, i64)> {
        let file = prepared.program.source_files().iter().position(|f| f.path == place.path)?;
        Some((self.sources.get(file)?.clone(), place.line as i64))
    }

    /// Returns the lines of a source that have instructions, each with the byte offset of its first
    /// instruction.
    ///
    /// # Errors
    /// The kernel does not come from this source.
    pub fn lines(
        &self,
        prepared: &Prepared,
        source: &Source,
        host: &dyn Host,
    ) -> Result<BTreeMap<i64, u64>, String> {
        let wanted = self.index(source, host).ok_or("this file is not the source of the kernel")?;
        let mut lines = BTreeMap::new();
        for (at, pc) in prepared.program.pcs.iter().enumerate() {
            if let Some((_, line)) = self.position(prepared, at).filter(|(file, _)| *file == wanted) {
                lines.entry(line).or_insert(*pc);
            }
        }
        Ok(lines)
    }
}

impl Session<'_, '_> {
    pub fn stack_trace(&mut self, arguments: StackTraceArguments) -> Answer {
        self.select_thread(arguments.thread_id)?;
        let all = frames(&self.debugger.timeline, self.debugger.focus.wave);
        let count = if arguments.levels == 0 { all.len() } else { arguments.levels };
        let listed = all.iter().enumerate().skip(arguments.start_frame).take(count);
        let listed: Vec<Value> =
            listed.map(|(at, frame)| self.frame(frame, arguments.thread_id + at as i64 * FRAME)).collect();
        Ok(json!({"stackFrames": listed, "totalFrames": all.len()}))
    }

    fn frame(&self, frame: &Frame, id: i64) -> Value {
        let prepared = self.debugger.timeline.prepared;
        let reference = format!("0x{:x}", prepared.program.address(frame.pc));
        let name = if frame.inlined { format!("{} (inlined)", frame.name) } else { frame.name.clone() };
        let mut out = json!({
            "id": id, "name": name, "line": 0, "column": 0, "instructionPointerReference": reference,
        });
        // The frame around an inlined function is at the call, not at the instruction.
        let place = frame.place.as_ref().and_then(|place| self.listing.place(prepared, place));
        if let Some((source, line)) = place.or_else(|| self.listing.line(prepared, frame.pc)) {
            out["line"] = json!(line - 1 + self.client.first_line);
            out["column"] = json!(self.client.first_column);
            out["source"] = json!(source);
        }
        out
    }

    pub fn scopes(&mut self, arguments: FrameArguments) -> Answer {
        self.select(Some(arguments.frame_id))?;
        let wave = self.debugger.focus.wave;
        let mut list = vec![
            ("Wave", Handle::Wave(wave), Some("registers")),
            ("SGPRs", Handle::Sgprs(wave), Some("registers")),
            ("VGPRs", Handle::Vgprs(wave), Some("registers")),
        ];
        let prepared = self.debugger.timeline.prepared;
        if !prepared.buffers.is_empty() {
            list.insert(0, ("Arguments", Handle::Arguments, Some("arguments")));
        }
        if !prepared.debug.is_empty() {
            let frame = self.debugger.timeline.selected_frame(wave);
            list.insert(0, ("Locals", Handle::Locals(wave, frame), Some("locals")));
        }
        if prepared.shape.lds_bytes > 0 {
            list.push(("LDS", Handle::Lds, None));
        }
        if prepared.shape.scratch_bytes > 0 {
            list.push(("Scratch", Handle::Scratch(wave, self.debugger.focus.lane), None));
        }
        let scopes: Vec<Value> = list
            .into_iter()
            .map(|(name, handle, hint)| {
                let mut scope = json!({"name": name, "expensive": false});
                if let Some(count) = self.indexed(handle) {
                    scope["indexedVariables"] = json!(count);
                }
                scope["variablesReference"] = json!(self.reference(handle));
                if let Some(hint) = hint {
                    scope["presentationHint"] = json!(hint);
                }
                scope
            })
            .collect();
        Ok(json!({"scopes": scopes}))
    }

    pub fn source(&mut self, arguments: SourceArguments) -> Answer {
        let reference =
            arguments.source.and_then(|s| s.source_reference).unwrap_or(arguments.source_reference);
        match &self.listing.text {
            Some(text) if reference == LISTING => {
                Ok(json!({"content": text, "mimeType": "text/x-rdna-assembly"}))
            }
            _ => Err("this source is a file".to_string()),
        }
    }

    pub fn breakpoint_locations(&mut self, arguments: LineArguments) -> Answer {
        let first = arguments.line;
        let last = arguments.end_line.unwrap_or(first);
        let lines = self.listing.lines(self.debugger.timeline.prepared, &arguments.source, self.host);
        let lines = lines.unwrap_or_default().into_keys().map(|line| line - 1 + self.client.first_line);
        let found: Vec<Value> =
            lines.filter(|line| (first..=last).contains(line)).map(|line| json!({"line": line})).collect();
        Ok(json!({"breakpoints": found}))
    }

    /// Returns the instructions around an address. The protocol requires entries for positions before and
    /// after the program, too.
    pub fn disassemble(&mut self, arguments: DisassembleArguments) -> Answer {
        let prepared = self.debugger.timeline.prepared;
        let program = &prepared.program;
        let start = self.code_address(&arguments.memory_reference)?.wrapping_add_signed(arguments.offset);
        let first = program.pcs.partition_point(|pc| *pc < start) as i64 + arguments.instruction_offset;
        let count = arguments.instruction_count.min(1 << 16) as i64;
        let end = program.pcs.len() as i64;
        // The source of the last instruction that has one.
        let mut last: Option<(Option<String>, i64)> = None;
        let list: Vec<Value> = (first..first + count)
            .map(|at| {
                if !(0..end).contains(&at) {
                    // A dword before or after the program.
                    let offset = if at < 0 { at * 4 } else { program.end() as i64 + (at - end) * 4 };
                    let address =
                        if offset < 0 { format!("-0x{:x}", -offset) } else { format!("0x{offset:x}") };
                    return json!({
                        "address": address, "instruction": "(no instruction)", "presentationHint": "invalid",
                    });
                }
                let at = at as usize;
                let pc = program.pcs[at];
                let address = format!("0x{:x}", program.address(pc));
                let mut out = json!({"address": address, "instruction": program.text(at)});
                if let Some((name, _)) = prepared.labels.iter().find(|l| l.1 == pc) {
                    out["symbol"] = json!(name);
                }
                if let Some((source, line)) =
                    self.listing.line(prepared, pc).filter(|_| self.listing.has_lines())
                {
                    if last.as_ref().is_none_or(|(path, _)| *path != source.path) {
                        out["location"] = json!(source);
                    }
                    out["line"] = json!(line - 1 + self.client.first_line);
                    last = Some((source.path, line));
                }
                out
            })
            .collect();
        Ok(json!({"instructions": list}))
    }

    /// Returns the byte offset in the program that a reference denotes.
    pub fn code_address(&self, reference: &str) -> Result<u64, String> {
        let digits = reference.trim();
        let number = match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        let number = number.map_err(|_| format!("`{reference}` is not an address in the program"))?;
        Ok(self.debugger.timeline.prepared.program.pc_at(number))
    }
}
