//! Directives that emit data or describe symbols, sections and the target.

use super::descriptor::Descriptor;
use super::link::fits;
use super::program::{Memory, PendingKind, PlacedDescriptor, SectionAddresses, SymbolInfo, Values};
use super::reader::{Block, Reader, file_name};
use isa_spec::arith::decimal::Decimal;
use wavesim_asm::error::{AsmError, Span, suggest};
use wavesim_asm::expr::Expr;
use wavesim_asm::scan::{Number, Scanner};
use wavesim_isa::codec::encode;

/// Candidates for suggesting a directive.
const KNOWN: [&str; 44] = [
    ".text",
    ".rodata",
    ".data",
    ".bss",
    ".section",
    ".pushsection",
    ".popsection",
    ".previous",
    ".globl",
    ".weak",
    ".hidden",
    ".protected",
    ".type",
    ".size",
    ".set",
    ".p2align",
    ".balign",
    ".org",
    ".byte",
    ".short",
    ".long",
    ".quad",
    ".float",
    ".double",
    ".zero",
    ".fill",
    ".ascii",
    ".asciz",
    ".incbin",
    ".macro",
    ".endm",
    ".rept",
    ".irp",
    ".endr",
    ".if",
    ".ifdef",
    ".else",
    ".endif",
    ".include",
    ".amdgcn_target",
    ".amdhsa_kernel",
    ".end_amdhsa_kernel",
    ".amdgpu_metadata",
    ".amdhsa_code_object_version",
];

impl Reader<'_> {
    pub(super) fn directive(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<(), AsmError> {
        if matches!(self.block, Block::Kernel(_)) && !matches!(name, ".set" | ".error" | ".err") {
            return self.kernel_directive(name, span, s);
        }
        match name {
            ".text" | ".data" | ".rodata" | ".bss" => {
                self.section(name, default_memory(name));
                s.skip(s.rest().len());
            }
            ".section" | ".pushsection" => {
                let saved = (self.current, self.previous);
                self.named_section(s)?;
                if name == ".pushsection" {
                    self.pushed.push(saved);
                }
            }
            ".popsection" => {
                let saved = self.pushed.pop();
                (self.current, self.previous) =
                    saved.ok_or_else(|| AsmError::new(span, "`.popsection` without `.pushsection`"))?;
            }
            ".previous" => std::mem::swap(&mut self.current, &mut self.previous),
            ".amdgcn_target" => self.target(s)?,
            ".amdhsa_code_object_version" => {
                let (version, at) = self.value(s)?;
                if !(4..=6).contains(&version) {
                    return Err(AsmError::new(at, "code object versions are 4, 5 and 6"));
                }
                self.program.code_object_version = version as u32;
            }
            ".amdhsa_kernel" => {
                let name = symbol(s)?;
                self.block = Block::Kernel(Descriptor::new(name, self.options.arch));
            }
            ".amdgpu_metadata" => self.block = Block::Metadata(String::new()),
            ".globl" | ".global" | ".weak" | ".protected" | ".hidden" | ".internal" | ".local" | ".type"
            | ".size" => self.symbol_directive(name, s)?,
            ".set" | ".equ" | ".equiv" => {
                let start = s.next_span();
                let symbol = symbol(s)?;
                if name == ".equiv" && self.program.symbols.contains_key(symbol) {
                    return Err(AsmError::new(start, format!("`{symbol}` is defined already")));
                }
                s.expect(',')?;
                self.define(symbol, start, s)?;
            }
            ".align" | ".balign" | ".balignw" | ".balignl" | ".p2align" | ".p2alignw" | ".p2alignl" => {
                self.align(name, span, s)?;
            }
            ".org" => {
                s.skip_space();
                let start = s.position();
                let target = wavesim_asm::expr::parse(s, true)?;
                let at = s.span_since(start);
                // Labels evaluate to offsets in their section.
                let target = self
                    .bind_position(target)
                    .eval(&Values::new(&self.program.symbols, SectionAddresses::Spaced(0)))?;
                let fill = if s.eat(',') { self.value(s)?.0 as u8 } else { 0 };
                let distance = u64::try_from(target).ok();
                let distance = distance.and_then(|t| t.checked_sub(self.offset()));
                let distance = distance.ok_or_else(|| AsmError::new(at, "`.org` cannot move backwards"))?;
                self.fill(usize::try_from(distance).unwrap_or(usize::MAX), &[fill], at)?;
            }
            ".byte" | ".1byte" => self.data(s, 1)?,
            ".short" | ".2byte" | ".hword" | ".value" | ".half" => self.data(s, 2)?,
            ".long" | ".int" | ".4byte" | ".word" => self.data(s, 4)?,
            ".quad" | ".8byte" | ".xword" | ".dword" => self.data(s, 8)?,
            ".uleb128" | ".sleb128" => self.leb128(name == ".sleb128", s)?,
            ".float" | ".single" | ".double" => self.floats(name == ".double", s)?,
            ".zero" | ".space" | ".skip" => {
                let (count, at) = self.value(s)?;
                let value = if s.eat(',') { self.value(s)?.0 as u8 } else { 0 };
                self.fill(non_negative(count, at)?, &[value], at)?;
            }
            ".fill" => self.fill_directive(s)?,
            ".ascii" | ".asciz" | ".string" => loop {
                let start = s.position();
                let mut bytes = s.string()?;
                if name != ".ascii" {
                    bytes.push(0);
                }
                self.push(&bytes, s.span_since(start))?;
                if !s.eat(',') {
                    break;
                }
            },
            ".incbin" => self.incbin(s)?,
            ".comm" | ".lcomm" => self.common(span, s)?,
            ".error" => {
                let text = if s.at_end() { Vec::new() } else { s.string()? };
                let text = String::from_utf8_lossy(&text).into_owned();
                return Err(AsmError::new(span, if text.is_empty() { ".error".to_string() } else { text }));
            }
            ".err" => return Err(AsmError::new(span, ".err")),
            // No effect on the code: debug information, and messages printed while assembling.
            ".file" | ".loc" | ".ident" | ".addrsig" | ".addrsig_sym" | ".print" | ".warning" | ".reloc" => {
                s.skip(s.rest().len());
            }
            _ if name.starts_with(".cfi_") => s.skip(s.rest().len()),
            ".amdgpu_lds" => {
                return Err(AsmError::new(span, "symbols in LDS require a loader that allocates them")
                    .help("a kernel's LDS is .amdhsa_group_segment_fixed_size"));
            }
            _ => {
                let error = AsmError::new(span, format!("there is no directive `{name}`"));
                return Err(match suggest(name, KNOWN) {
                    Some(help) => error.help(help),
                    None => error,
                });
            }
        }
        Ok(())
    }

    // Kernel descriptor and target.

    fn kernel_directive(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<(), AsmError> {
        if name == ".end_amdhsa_kernel" {
            let Block::Kernel(descriptor) = std::mem::replace(&mut self.block, Block::None) else {
                return Ok(());
            };
            return self.descriptor(descriptor, span);
        }
        let Some(own) = name.strip_prefix(".amdhsa_") else {
            return Err(AsmError::new(span, "only .amdhsa_ directives belong in an .amdhsa_kernel block"));
        };
        let value = self.expression(s)?;
        match &mut self.block {
            Block::Kernel(descriptor) => descriptor.set(own, value, span),
            _ => Ok(()),
        }
    }

    /// Emits the descriptor in the current section if it is read-only data, otherwise in `.rodata`.
    fn descriptor(&mut self, descriptor: Descriptor, span: Span) -> Result<(), AsmError> {
        let saved = (self.current, self.previous);
        if self.program.sections[self.current].memory != Memory::ReadOnly {
            self.section(".rodata", Memory::ReadOnly);
        }
        let pad = self.offset().next_multiple_of(64) - self.offset();
        self.fill(pad as usize, &[0], span)?;
        let section = &mut self.program.sections[self.current];
        section.align = section.align.max(64);
        let name = format!("{}.kd", descriptor.kernel);
        let offset = self.offset();
        self.label(&name, span)?;
        let kernel = self.program.info.get(&descriptor.kernel).cloned().unwrap_or_default();
        let info = SymbolInfo {
            object: true,
            function: false,
            size: Some(Expr::Int(64)),
            // The loader finds the kernel by this symbol.
            global: true,
            hidden: false,
            ..kernel
        };
        self.program.info.insert(name, info);
        self.fill(64, &[0], span)?;
        let (section, location, line) = (self.current, self.location, self.line.clone());
        self.program.descriptors.push(PlacedDescriptor { section, offset, location, line, descriptor });
        (self.current, self.previous) = saved;
        Ok(())
    }

    // Symbols and sections.

    /// Handles `.section NAME[, "FLAGS"[, @TYPE[, …]]]`.
    fn named_section(&mut self, s: &mut Scanner) -> Result<(), AsmError> {
        s.skip_space();
        let start = s.position();
        let name = match s.peek() {
            Some('"') => file_name(s)?.0,
            _ => {
                let rest = s.rest();
                let len = rest.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(rest.len());
                s.skip(len);
                rest[..len].to_string()
            }
        };
        if name.is_empty() {
            return Err(AsmError::new(s.next_span(), "expected a section's name"));
        }
        // ELF strings end at the first NUL.
        if name.contains('\0') {
            return Err(AsmError::new(s.span_since(start), "a section's name cannot contain NUL"));
        }
        let mut memory = default_memory(&name);
        if s.eat(',') && {
            s.skip_space();
            s.peek() == Some('"')
        } {
            let flags = s.string()?;
            let has = |flag: u8| flags.contains(&flag);
            memory = match (has(b'a'), has(b'x'), has(b'w')) {
                (false, ..) => Memory::None,
                (_, true, _) => Memory::Code,
                (_, _, true) => Memory::Writable,
                _ => Memory::ReadOnly,
            };
        }
        // Type, entry size and group are ignored.
        s.skip(s.rest().len());
        self.section(&name, memory);
        Ok(())
    }

    fn symbol_directive(&mut self, name: &str, s: &mut Scanner) -> Result<(), AsmError> {
        loop {
            let symbol = symbol(s)?.to_string();
            let size = if name == ".size" {
                s.expect(',')?;
                Some(self.expression(s)?)
            } else {
                None
            };
            let info = self.program.info.entry(symbol).or_default();
            match name {
                ".globl" | ".global" => info.global = true,
                ".weak" => (info.global, info.weak) = (true, true),
                ".local" => info.global = false,
                ".protected" => info.protected = true,
                ".hidden" | ".internal" => info.hidden = true,
                ".type" => {
                    s.expect(',')?;
                    s.skip_space();
                    let rest = s.rest();
                    let len = rest.find([' ', ',']).unwrap_or(rest.len());
                    let kind = rest[..len].trim_matches(['@', '%', '"', '#']);
                    info.function = matches!(kind, "function" | "STT_FUNC");
                    info.object = matches!(kind, "object" | "STT_OBJECT");
                    s.skip(len);
                }
                _ => info.size = size,
            }
            if !s.eat(',') {
                return Ok(());
            }
        }
    }

    /// Handles `.comm NAME, SIZE[, ALIGN]`: zeros in `.bss`.
    fn common(&mut self, span: Span, s: &mut Scanner) -> Result<(), AsmError> {
        let start = s.next_span();
        let name = symbol(s)?;
        s.expect(',')?;
        let (size, at) = self.value(s)?;
        let align = if s.eat(',') { self.value(s)?.0 } else { 4 };
        let saved = (self.current, self.previous);
        self.section(".bss", Memory::Writable);
        let aligned = u64::try_from(align).ok().filter(|a| a.is_power_of_two() && *a <= 1 << 16);
        let align =
            aligned.ok_or_else(|| AsmError::new(span, "alignments are powers of two up to 64 KiB"))?;
        let result = self.pad_to(align, &[0], None, at).and_then(|()| {
            self.label(name, start)?;
            self.fill(non_negative(size, at)?, &[0], at)
        });
        (self.current, self.previous) = saved;
        result
    }

    // Data.

    /// Handles `.p2align N[, FILL[, MAX]]` and its variants; the last letter selects the width of the fill
    /// value.
    fn align(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<(), AsmError> {
        let (value, at) = self.value(s)?;
        let bytes = match name.starts_with(".p2") {
            true => u32::try_from(value).ok().and_then(|n| 1u64.checked_shl(n)),
            false => u64::try_from(value).ok(),
        };
        // An alignment of 0 counts as 1.
        let bytes = bytes.map(|b| b.max(1)).filter(|b| b.is_power_of_two() && *b <= 1 << 16);
        let bytes = bytes.ok_or_else(|| AsmError::new(at, "alignments are powers of two up to 64 KiB"))?;
        let (mut fill, mut max_padding) = (None, None);
        if s.eat(',') {
            if !s.rest().trim_start().starts_with(',') {
                fill = Some(self.value(s)?.0);
            }
            if s.eat(',') {
                max_padding = Some(self.value(s)?.0.max(0) as u64);
            }
        }
        let width = match name.as_bytes().last() {
            Some(b'w') => 2,
            Some(b'l') => 4,
            _ => 1,
        };
        let nop = encode_nop(self);
        // Code is padded with no-op instructions.
        if self.program.sections[self.current].memory == Memory::Code && fill.unwrap_or(0) == 0 {
            let zeros = self.offset().next_multiple_of(4) - self.offset();
            let pad = self.offset().next_multiple_of(bytes) - self.offset();
            if max_padding.is_some_and(|m| pad > m) {
                return Ok(());
            }
            self.fill(zeros.min(pad) as usize, &[0], span)?;
            return self.pad_to(bytes, &nop, None, span);
        }
        self.pad_to(bytes, &fill.unwrap_or(0).to_le_bytes()[..width], max_padding, span)
    }

    fn pad_to(
        &mut self,
        align: u64,
        pattern: &[u8],
        max_padding: Option<u64>,
        span: Span,
    ) -> Result<(), AsmError> {
        let pad = self.offset().next_multiple_of(align) - self.offset();
        if max_padding.is_some_and(|m| pad > m) {
            return Ok(());
        }
        let section = &mut self.program.sections[self.current];
        section.align = section.align.max(align);
        if !pad.is_multiple_of(pattern.len() as u64) {
            return Err(AsmError::new(span, format!("{pad} bytes are not a multiple of the fill's size")));
        }
        self.fill((pad / pattern.len() as u64) as usize, pattern, span)
    }

    fn data(&mut self, s: &mut Scanner, width: usize) -> Result<(), AsmError> {
        loop {
            s.skip_space();
            let start = s.position();
            // `.byte` also accepts strings.
            if width == 1 && s.peek() == Some('"') {
                let bytes = s.string()?;
                self.push(&bytes, s.span_since(start))?;
            } else {
                let e = self.expression(s)?;
                let span = s.span_since(start);
                let offset = self.offset();
                let known = if let Expr::Int(v) = e { v } else { 0 };
                if !fits(known, width) {
                    return Err(AsmError::new(span, format!("{known} does not fit {width} bytes")));
                }
                self.push(&known.to_le_bytes()[..width], span)?;
                if !matches!(e, Expr::Int(_)) {
                    self.add_pending(offset, PendingKind::Data { width, expr: e, span });
                }
            }
            if !s.eat(',') {
                break;
            }
        }
        match s.at_end() {
            true => Ok(()),
            false => {
                Err(AsmError::new(s.next_span(), "expected `,` and another value, or the end of the line"))
            }
        }
    }

    fn leb128(&mut self, signed: bool, s: &mut Scanner) -> Result<(), AsmError> {
        loop {
            let (mut value, at) = self.value(s)?;
            let mut bytes = Vec::new();
            loop {
                let byte = (value & 0x7f) as u8;
                // The upper bits of an unsigned number are zeros.
                value = if signed { value >> 7 } else { ((value as u64) >> 7) as i64 };
                let last = if signed { value == -((byte >> 6 & 1) as i64) } else { value == 0 };
                bytes.push(if last { byte } else { byte | 0x80 });
                if last {
                    break;
                }
            }
            self.push(&bytes, at)?;
            if !s.eat(',') {
                return Ok(());
            }
        }
    }

    fn floats(&mut self, double: bool, s: &mut Scanner) -> Result<(), AsmError> {
        loop {
            s.skip_space();
            let start = s.position();
            let negative = s.eat('-');
            let value = match s.number()? {
                Number::Int(v) => Decimal::from(v as i128),
                Number::Float(v) => v,
            };
            let value = if negative { -value } else { value };
            let span = s.span_since(start);
            match double {
                true => self.push(&value.to_f64().to_le_bytes(), span)?,
                false => self.push(&value.to_f32().to_le_bytes(), span)?,
            }
            if !s.eat(',') {
                return Ok(());
            }
        }
    }

    /// Handles `.fill COUNT[, SIZE[, VALUE]]`; beyond 4 bytes, zeros follow the value, as in GNU as.
    fn fill_directive(&mut self, s: &mut Scanner) -> Result<(), AsmError> {
        let (count, at) = self.value(s)?;
        let size = if s.eat(',') { self.value(s)?.0 } else { 1 };
        let value = if s.eat(',') { self.value(s)?.0 } else { 0 };
        if size < 0 {
            return Err(AsmError::new(at, ".fill takes a count, a size up to 8 and a value"));
        }
        let size = size.min(8) as usize;
        self.fill(non_negative(count, at)?, &(value as u32 as u64).to_le_bytes()[..size], at)
    }

    /// Handles `.incbin "FILE"[, SKIP[, COUNT]]`.
    fn incbin(&mut self, s: &mut Scanner) -> Result<(), AsmError> {
        let (name, span) = file_name(s)?;
        let (mut skip, mut count) = (0, None);
        if s.eat(',') {
            let (n, at) = self.value(s)?;
            skip = non_negative(n, at)?;
            if s.eat(',') {
                let (n, at) = self.value(s)?;
                count = Some(non_negative(n, at)?);
            }
        }
        let bytes = (self.file.open)(&name).map_err(|e| AsmError::new(span, format!("{name}: {e}")))?;
        let rest = bytes.get(skip..).unwrap_or(&[]);
        self.push(&rest[..count.unwrap_or(rest.len()).min(rest.len())], span)
    }
}

fn symbol<'t>(s: &mut Scanner<'t>) -> Result<&'t str, AsmError> {
    s.ident().map(|i| i.0).ok_or_else(|| AsmError::new(s.next_span(), "expected a symbol"))
}

fn non_negative(count: i64, span: Span) -> Result<usize, AsmError> {
    usize::try_from(count).map_err(|_| AsmError::new(span, "a count must not be negative"))
}

/// The memory of a section according to its name.
fn default_memory(name: &str) -> Memory {
    let is = |base: &str| name == base || name.strip_prefix(base).is_some_and(|r| r.starts_with('.'));
    match name {
        _ if is(".text") => Memory::Code,
        _ if is(".rodata") => Memory::ReadOnly,
        _ if is(".data") || is(".bss") => Memory::Writable,
        _ => Memory::None,
    }
}

fn encode_nop(reader: &Reader) -> [u8; 4] {
    let nop =
        wavesim_asm::parse(wavesim_asm::dialect::PADDING, &reader.options, &wavesim_asm::NoSymbols).ok();
    let words = nop.and_then(|p| encode(reader.options.arch, &p.inst).ok());
    words.and_then(|w| w.first().copied()).unwrap_or(0).to_le_bytes()
}
