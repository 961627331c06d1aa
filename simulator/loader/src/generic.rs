//! Programs for machines with a description of their own: an assembly file and the initial contents of
//! memory.

use super::prepared::{Buffer, Modes, Prepared, Shape, Source};
use wavesim_array::DType;
use wavesim_asm::error::{AsmError, Span};
use wavesim_asm::generic::number;
use wavesim_assembler::generic;
use wavesim_assembler::program::LineError;
use wavesim_engine::sched::dispatch::{InitialState, Layout, Registers};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::Machine;
use wavesim_machine::exec::program::{Program, TooLarge};
use wavesim_machine::memory::{AllocError, Memory, OWNED_BASE, WORD, word_address};

/// Initial memory contents: address and value of each word.
pub type Data = Vec<(u32, u32)>;

/// Parses a data file: lines `address: value`, both decimal, hexadecimal or binary; `#` starts a comment.
pub fn data(text: &str) -> Result<Data, Vec<LineError>> {
    let mut out = Vec::new();
    let mut errors = Vec::new();
    for (line, full) in (1..).zip(text.lines()) {
        let content = full.split('#').next().unwrap_or("");
        if content.trim().is_empty() {
            continue;
        }
        match entry(content) {
            Ok(entry) => out.push(entry),
            Err(error) => errors.push(LineError::on_line(line, full, error)),
        }
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}

fn entry(line: &str) -> Result<(u32, u32), AsmError> {
    let trimmed = |from: usize, to: usize| {
        let part = &line[from..to];
        let start = from + part.len() - part.trim_start().len();
        (part.trim(), Span::new(start, start + part.trim().len()))
    };
    let Some(colon) = line.find(':') else {
        return Err(AsmError::new(trimmed(0, line.len()).1, "a line of data is an address, `:` and a value"));
    };
    let word = |from, to, low: i64, what: &str| {
        let (text, span) = trimmed(from, to);
        let value = number(text).ok_or_else(|| AsmError::new(span, format!("`{text}` is not a {what}")))?;
        let fits = (low..=u32::MAX as i64).contains(&value);
        fits.then_some(value as u32)
            .ok_or_else(|| AsmError::new(span, format!("{value} does not fit 32 bits")))
    };
    Ok((word(0, colon, 0, "address")?, word(colon + 1, line.len(), i32::MIN as i64, "value")?))
}

/// Splits a file of raw bytes into words, starting at address 0.
pub fn raw_data(bytes: &[u8]) -> Data {
    let words = bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    });
    (0..).zip(words).collect()
}

/// The reason why a program cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum PrepareError {
    /// The host has no memory of the requested size.
    #[error(transparent)]
    Memory(#[from] AllocError),
    /// The code is too large.
    #[error(transparent)]
    Program(#[from] TooLarge),
    /// The first word of the data outside of the memory of `words` words.
    #[error(
        "the data contains a word at address {address}, but memory has {words} words (--global-memsize MB sets the size)"
    )]
    Data { address: u32, words: u64 },
}

/// Prepares a program to run: allocates memory and fills it with `data`.
pub fn prepare(
    unit: generic::Unit,
    arch: Arch,
    machine: &'static Machine,
    source: Source,
    data: &Data,
    bytes: u64,
) -> Result<Prepared, PrepareError> {
    // Memory beyond the reach of 32-bit addresses would never be used.
    let words = (bytes / WORD).min(1 << 32);
    let memory = Memory::word_addressed(words)?;
    for &(address, value) in data {
        let location = word_address(address as u64);
        if memory.write(location, &value.to_le_bytes()).is_err() {
            return Err(PrepareError::Data { address, words });
        }
        memory.touch(location, 1);
    }
    let buffer = Buffer {
        name: "memory".to_string(),
        address: OWNED_BASE,
        len_bytes: words * WORD,
        dtype: DType::U32,
        shape: vec![words],
        output: false,
        surface: None,
    };
    Ok(Prepared {
        program: Program::new(arch, unit.insts)?
            .for_wave_size(machine.lanes.count())
            .with_syntax(wavesim_asm::print::syntax),
        memory,
        shape: Shape {
            grid: [unit.groups, 1, 1],
            cluster: [1; 3],
            block: [unit.waves * machine.lanes.count(), 1, 1],
            wave_size: machine.lanes.count(),
            named_barriers: 0,
            lds_bytes: 0,
            scratch_bytes: 0,
            registers: Registers { vgprs: machine.vector.count, ..Registers::ALL },
            // The floating-point mode, which is unused.
            init: InitialState { layout: Layout::Own(&machine.vector), mode: 0xf0, sgprs: Vec::new() },
            entry_pc: 0,
            code_base: 0,
        },
        buffers: vec![buffer],
        source: Some(source),
        labels: unit.labels,
        prints: Vec::new(),
        modes: Modes::default(),
        debug: Default::default(),
        padding: Vec::new(),
        constant: Vec::new(),
        objects: Default::default(),
    })
}
