//! Files of small programs with the state before and after each run: `tests/filetests/run`.
//!
//! ```text
//! ; target rdna3 rdna4 wave32 wave64
//!
//! v_add_f32 v0, v1, v2 clamp
//! ; run: v1=0.75 v2=[0.5 -2.0] => v0=[1.0 0.0]
//! ```
//!
//! The lines of a program (LLVM syntax, with labels) are followed by one or more `; run:` lines. Other
//! comments are ignored. `; target` applies from its line on. State that a run does not set starts with
//! distinct, recognisable values. State that is not named after `=>` must be unchanged: all registers, SCC,
//! VCC, EXEC, M0, MODE, LDS and memory.
//!
//! - Locations: `v0`, `v[0:1]` (64 bits), `s0`, `s[0:1]`, `vcc`, `exec`, `m0`, `scc`, `mode`, `lds[8]`,
//!   `mem[8]` (a dword at a byte offset).
//! - Numbers: `7`, `-7`, `0x7f`; `1.5` (f32), `h1.5` (f16), `d1.5` (f64); `lane` (the lane's index); `mem`,
//!   `mem+8` (an address).
//! - Lane values: `[1 2]` repeats over the wave; `5,3:6,4:7` is 5 except in lanes 3 and 4; `,3:6` is
//!   unchanged except in lane 3.

use crate::random::{GLOBAL_BASE, SCRATCH};
use crate::{compiled, with_context};
use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::asm::{self, Options, Symbols};
use wavesim::codec::{decode, encode};
use wavesim::conform::run::semantics;
use wavesim::exec::machine_ops::Event;
use wavesim::exec::program::Program;
use wavesim::exec::{interp, reference};
use wavesim::state::{VGPRS, Wave};

const LDS: usize = 1024;
const GLOBAL: usize = 4096;
const SGPRS: u32 = 106;
/// Large enough for compiled code, which is not used for short runs.
const MAX_STEPS: usize = 10_000;

/// The state that a case can set and check.
#[derive(Clone)]
struct State {
    wave: Wave,
    lds: Vec<u8>,
    global: Vec<u8>,
    scratch: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Engine {
    Handlers,
    Compiled,
    Evaluator,
}

/// A program with its first line and its runs.
struct Block {
    line: usize,
    code: Vec<String>,
    runs: Vec<(usize, String)>,
    targets: Vec<(Arch, u32)>,
}

/// Runs every case. Returns the number of runs, or the failures, one per line.
pub fn check(text: &str) -> Result<usize, String> {
    let mut failures = Vec::new();
    let mut count = 0;
    for block in blocks(text)? {
        for &(arch, size) in &block.targets {
            let at = |line: usize, what: &str| format!("line {line}: {} wave{size}: {what}", arch.name());
            let words = match assemble(&block.code, arch, size) {
                Ok(words) => words,
                Err(e) => {
                    failures.push(at(block.line, &e));
                    continue;
                }
            };
            for (line, run) in &block.runs {
                for engine in [Engine::Handlers, Engine::Compiled, Engine::Evaluator] {
                    count += 1;
                    if let Err(e) = case(&words, run, arch, size, engine) {
                        failures.push(at(*line, &format!("{engine:?}: {e}")));
                    }
                }
            }
        }
    }
    if failures.is_empty() { Ok(count) } else { Err(failures.join("\n")) }
}

fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut targets = vec![(Arch::Rdna3, 32), (Arch::Rdna35, 32), (Arch::Rdna4, 32)];
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if let Some(run) = text.strip_prefix("; run:") {
            let block = blocks.last_mut().ok_or(format!("line {line}: a run without a program"))?;
            block.runs.push((line, run.to_string()));
            open = false;
        } else if let Some(list) = text.strip_prefix("; target") {
            targets = self::targets(list).map_err(|e| format!("line {line}: {e}"))?;
        } else if !text.is_empty() && !text.starts_with(';') {
            if !open {
                blocks.push(Block { line, code: Vec::new(), runs: Vec::new(), targets: targets.clone() });
            }
            open = true;
            blocks.last_mut().expect("pushed").code.push(text.to_string());
        }
    }
    match blocks.iter().find(|b| b.runs.is_empty()) {
        Some(block) => Err(format!("line {}: a program without a run", block.line)),
        None if blocks.is_empty() => Err("there are no cases".to_string()),
        None => Ok(blocks),
    }
}

fn targets(list: &str) -> Result<Vec<(Arch, u32)>, String> {
    let (mut archs, mut sizes) = (Vec::new(), Vec::new());
    for word in list.split_whitespace() {
        match word.strip_prefix("wave") {
            Some(size) => sizes.push(size.parse().map_err(|_| format!("`{word}` is not a size"))?),
            None => archs.push(Arch::from_name(word).ok_or(format!("`{word}` is not a target"))?),
        }
    }
    if archs.is_empty() {
        archs = Arch::RDNA.to_vec();
    }
    if sizes.is_empty() {
        sizes = vec![32];
    }
    Ok(archs.iter().flat_map(|a| sizes.iter().map(|s| (*a, *s))).collect())
}

struct Labels(BTreeMap<String, i64>);

impl Symbols for Labels {
    fn value(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }
}

/// Assembles a program and appends S_ENDPGM.
fn assemble(code: &[String], arch: Arch, size: u32) -> Result<Vec<u32>, String> {
    let options = Options::new(arch).wave(size);
    let mut labels = Labels(BTreeMap::new());
    let mut parsed = Vec::new();
    let mut at = 0;
    for line in code.iter().map(String::as_str).chain(["s_endpgm"]) {
        match line.strip_suffix(':') {
            Some(label) => {
                labels.0.insert(label.to_string(), at);
            }
            None => {
                let one = asm::parse(line, &options, &Labels(BTreeMap::new()))
                    .map_err(|e| format!("{line}: {e}"))?;
                at += one.inst.size as i64;
                parsed.push((line, one, at));
            }
        }
    }
    let mut words = Vec::new();
    for (line, mut one, next) in parsed {
        for fixup in &one.fixups {
            fixup.apply(&mut one.inst, next, &labels).map_err(|e| format!("{line}: {e}"))?;
        }
        words.extend_from_slice(&encode(arch, &one.inst).map_err(|e| format!("{line}: {e}"))?);
    }
    Ok(words)
}

fn case(words: &[u32], run: &str, arch: Arch, size: u32, engine: Engine) -> Result<(), String> {
    let (before, after) = run.split_once("=>").ok_or("a run is `before => after`")?;
    let mut state = initial_state(size);
    let mut named = Vec::new();
    set(&mut state, before, &mut named)?;
    let mut expected = state.clone();
    named.clear();
    set(&mut expected, after, &mut named)?;
    execute(words, arch, engine, &mut state)?;
    compare(&state, &expected, &named)
}

/// Returns the initial state. The registers have distinct values, derived from their numbers.
fn initial_state(size: u32) -> State {
    let mut wave = Wave::new(size);
    for reg in 0..VGPRS as u32 {
        for lane in 0..size {
            wave.set_vgpr(lane, reg, 0xa500_0000 | reg << 8 | lane);
        }
    }
    for reg in 0..SGPRS {
        wave.set_sgpr(reg, 0x5a00_0000 | reg);
    }
    let scratch = vec![0; SCRATCH as usize * size as usize];
    State { wave, lds: vec![0; LDS], global: vec![0; GLOBAL], scratch }
}

fn execute(words: &[u32], arch: Arch, engine: Engine, state: &mut State) -> Result<(), String> {
    let State { wave, lds, global, scratch } = state;
    let global = Some((GLOBAL_BASE, &mut global[..]));
    with_context(global, lds, (scratch, SCRATCH), |cx| {
        let end = match engine {
            Engine::Handlers => {
                let program = Program::from_words(arch, words).expect("small").for_wave_size(wave.size());
                interp::run(&program, wave, cx, MAX_STEPS as u64, &mut 0)
            }
            Engine::Compiled => {
                let program = Program::from_words(arch, words).expect("small").for_wave_size(wave.size());
                let (code, alone) = (compiled(&program), &mut interp::SingleWave);
                interp::run_waves(&program, wave, cx, MAX_STEPS as u64, &mut 0, code.as_deref(), alone)
            }
            Engine::Evaluator => {
                let none = BTreeMap::new();
                (0..MAX_STEPS).try_for_each(|_| {
                    let inst = decode(arch, &words[(wave.pc / 4) as usize..]).expect("assembled");
                    let (sem, sem_y) =
                        semantics(arch, &inst, &none).expect("assembled from what has a meaning");
                    reference::step(arch, &inst, sem, sem_y, wave, cx)
                })
            }
        };
        match end {
            Err(Event::EndPgm) => Ok(()),
            other => Err(format!("the program ends with {other:?}")),
        }
    })
}

fn compare(state: &State, expected: &State, named: &[String]) -> Result<(), String> {
    let mut failures = Vec::new();
    let mut differ = |location: String, found: u64, expected: u64| {
        if found != expected {
            let named = named.iter().any(|n| location == *n || location.starts_with(&format!("{n} ")));
            let note = if named { "" } else { " (unchanged)" };
            failures.push(format!("{location}: {found:x}, expected {expected:x}{note}"));
        }
    };
    let (a, b) = (&state.wave, &expected.wave);
    for reg in 0..VGPRS as u32 {
        if let Some(lane) = (0..a.size()).find(|l| a.vgpr(*l, reg) != b.vgpr(*l, reg)) {
            differ(format!("v{reg} lane {lane}"), a.vgpr(lane, reg) as u64, b.vgpr(lane, reg) as u64);
        }
    }
    for reg in 0..SGPRS {
        differ(format!("s{reg}"), a.sgpr(reg) as u64, b.sgpr(reg) as u64);
    }
    differ("vcc".to_string(), a.vcc(), b.vcc());
    differ("exec".to_string(), a.exec(), b.exec());
    differ("m0".to_string(), a.sgpr(125) as u64, b.sgpr(125) as u64);
    differ("scc".to_string(), a.scc as u64, b.scc as u64);
    differ("mode".to_string(), a.mode as u64, b.mode as u64);
    for (name, found, expected) in
        [("lds", &state.lds, &expected.lds), ("mem", &state.global, &expected.global)]
    {
        let words = |bytes: &[u8]| {
            let word = |w: &[u8]| u32::from_le_bytes([w[0], w[1], w[2], w[3]]);
            bytes.chunks_exact(4).map(word).collect::<Vec<u32>>()
        };
        for (at, (x, y)) in words(found).into_iter().zip(words(expected)).enumerate() {
            differ(format!("{name}[{}]", at * 4), x as u64, y as u64);
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures[..failures.len().min(6)].join("; ")) }
}

/// Applies `location=value` items. Values may contain spaces inside brackets.
fn set(state: &mut State, list: &str, named: &mut Vec<String>) -> Result<(), String> {
    let mut depth = 0;
    let items = list.split(|c: char| {
        depth += (c == '[') as i32 - (c == ']') as i32;
        c.is_whitespace() && depth == 0
    });
    for item in items.filter(|i| !i.is_empty()) {
        let (location, value) =
            item.split_once('=').ok_or_else(|| format!("`{item}` is not location=value"))?;
        set_location(state, location, value)?;
        named.push(location.to_string());
    }
    Ok(())
}

fn set_location(state: &mut State, location: &str, value: &str) -> Result<(), String> {
    let bad = || format!("`{location}` is not a location");
    let wave = &mut state.wave;
    let (name, index) = match location.strip_suffix(']').and_then(|p| p.split_once('[')) {
        Some((name, index)) => (name, index.to_string()),
        None => {
            let digits = location.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            (&location[..location.len() - digits.len()], digits.to_string())
        }
    };
    let first: u32 = index.split(':').next().unwrap_or_default().parse().unwrap_or(0);
    let wide = index.contains(':');
    let scalar = || Ok::<u64, String>(lanes(value, 1, |_| 0)?[0]);
    match name {
        "v" => {
            let old = |lane| wave.vgpr(lane, first) as u64 | (wave.vgpr(lane, first + 1) as u64) << 32;
            for (lane, value) in (0..).zip(lanes(value, wave.size(), old)?) {
                wave.set_vgpr(lane, first, value as u32);
                if wide {
                    wave.set_vgpr(lane, first + 1, (value >> 32) as u32);
                }
            }
        }
        "s" => {
            let value = scalar()?;
            wave.set_sgpr(first, value as u32);
            if wide {
                wave.set_sgpr(first + 1, (value >> 32) as u32);
            }
        }
        "vcc" => {
            let value = scalar()?;
            wave.set_sgpr(106, value as u32);
            wave.set_sgpr(107, (value >> 32) as u32);
        }
        "m" if first == 0 => wave.set_sgpr(125, scalar()? as u32),
        "exec" => wave.set_exec(scalar()?),
        "scc" => wave.scc = scalar()? as u32,
        "mode" => wave.mode = scalar()? as u32,
        "lds" | "mem" => {
            let bytes = if name == "lds" { &mut state.lds } else { &mut state.global };
            let at = first as usize;
            bytes.get_mut(at..at + 4).ok_or_else(bad)?.copy_from_slice(&(scalar()? as u32).to_le_bytes());
        }
        _ => return Err(bad()),
    }
    Ok(())
}

/// Parses a value for each lane.
fn lanes(text: &str, size: u32, old: impl Fn(u32) -> u64) -> Result<Vec<u64>, String> {
    let mut parts = text.split(',');
    let base = parts.next().unwrap_or_default();
    let list: Vec<&str> = match base.strip_prefix('[').and_then(|b| b.strip_suffix(']')) {
        Some(list) => list.split_whitespace().collect(),
        None => vec![base],
    };
    let of = |lane: u32| match list.get(lane as usize % list.len().max(1)) {
        None | Some(&"") => Ok(old(lane)),
        Some(value) => number(value, lane),
    };
    let mut out: Vec<u64> = (0..size).map(of).collect::<Result<_, _>>()?;
    for part in parts {
        let (lane, value) = part.split_once(':').ok_or_else(|| format!("`{part}` is not lane:value"))?;
        let lane: usize = lane.parse().map_err(|_| format!("`{lane}` is not a lane"))?;
        *out.get_mut(lane).ok_or_else(|| format!("there is no lane {lane}"))? = number(value, lane as u32)?;
    }
    Ok(out)
}

fn number(text: &str, lane: u32) -> Result<u64, String> {
    let bad = |_| format!("`{text}` is not a number");
    if text == "lane" {
        return Ok(lane as u64);
    }
    if let Some(rest) = text.strip_prefix("mem") {
        let offset: u64 = if rest.is_empty() { 0 } else { rest[1..].parse().map_err(|_| bad(()))? };
        return Ok(GLOBAL_BASE + offset);
    }
    let float = |text: &str| text.parse::<f64>().map_err(|_| bad(()));
    if let Some(half) = text.strip_prefix('h') {
        return Ok(half::f16::from_f64(float(half)?).to_bits() as u64);
    }
    if let Some(double) = text.strip_prefix('d') {
        return Ok(float(double)?.to_bits());
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).map_err(|_| bad(()));
    }
    if text.contains('.') {
        return Ok((float(text)? as f32).to_bits() as u64);
    }
    text.parse::<i64>().map(|v| v as u64).map_err(|_| bad(()))
}
