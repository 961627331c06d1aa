//! The lines of LLVM's own tests of its assembler and disassembler, in both directions, if `WAVESIM_LLVM_TESTS` names the
//! folder `llvm/test/MC` of the sources of the LLVM that is installed.
//!
//! For each test that names the processor, `llvm-mc` says what each line is: words, a text, or an error.

use super::referee::{disassemble_for, llvm_for, replies, text_of, words_of};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wavesim::arch::{Arch, Processor};
use wavesim::asm::{self, NoSymbols, Options};
use wavesim::codec::words;

/// The processor whose lines are compared.
const PROCESSOR: &str = "gfx1250";
/// The least share of lines that agree with LLVM, in percent: those that it accepts, and those that it rejects.
const LEAST: [f64; 3] = [99.5, 99.5, 99.0];

/// How a test runs `llvm-mc`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    /// The value of `-mattr`.
    features: String,
    disassembles: bool,
}

impl Run {
    /// Returns the runs for a processor in the `RUN` lines of a test.
    fn of_test(text: &str, processor: &str) -> BTreeSet<Run> {
        let mut runs = BTreeSet::new();
        for line in text.lines().filter(|line| line.contains("RUN:")) {
            // What follows a pipe reads the output.
            let command = line.split('|').next().unwrap_or_default();
            let value = |name: &str| command.split_whitespace().find_map(|word| word.strip_prefix(name));
            if value("-mcpu=") == Some(processor) && command.contains("llvm-mc") {
                let features = value("-mattr=").unwrap_or_default().to_string();
                runs.insert(Run { features, disassembles: command.contains("-disassemble") });
            }
        }
        runs
    }

    /// Returns the wave size; `None` if the architecture has no such waves.
    fn wave(&self, arch: Arch) -> Option<u32> {
        let wave = if self.features.to_lowercase().contains("+wavefrontsize64") { 64 } else { 32 };
        let named = self.features.to_lowercase().contains("wavefrontsize");
        match named {
            true => arch.wave_sizes().contains(&wave).then_some(wave),
            false => arch.wave_sizes().first().copied(),
        }
    }

    fn arguments(&self) -> Vec<String> {
        if self.features.is_empty() { Vec::new() } else { vec![format!("-mattr={}", self.features)] }
    }
}

/// Lines that agree with LLVM.
#[derive(Debug, Default)]
struct Count {
    right: usize,
    all: usize,
}

impl Count {
    fn add(&mut self, right: bool) {
        self.right += usize::from(right);
        self.all += 1;
    }

    /// Prints the count and returns the percentage.
    fn print(&self, what: &str) -> f64 {
        let percent = 100.0 * self.right as f64 / self.all.max(1) as f64;
        println!("{what}: {} of {} ({percent:.2} %)", self.right, self.all);
        percent
    }
}

/// The comparisons of all tests of a processor.
struct Suite {
    arch: Arch,
    /// Options and inputs that have been compared.
    known: BTreeSet<(String, String)>,
    assembled: Count,
    printed: Count,
    rejected: Count,
    differences: Vec<String>,
}

#[test]
fn lines_of_llvms_tests_agree() {
    let Some(folder) = std::env::var_os("WAVESIM_LLVM_TESTS").map(PathBuf::from) else {
        println!("skipped: WAVESIM_LLVM_TESTS does not name llvm/test/MC");
        return;
    };
    let arch = Processor::from_name(PROCESSOR).unwrap().arch;
    let counts = [(); 3].map(|()| Count::default());
    let [assembled, printed, rejected] = counts;
    let (known, differences) = (BTreeSet::new(), Vec::new());
    let mut suite = Suite { arch, known, assembled, printed, rejected, differences };
    let mut tests = 0;
    for part in ["AMDGPU", "Disassembler/AMDGPU"] {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder.join(part)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.is_file()) {
            let bytes = std::fs::read(file).unwrap();
            let Some(runs) = suite.test(file, &String::from_utf8_lossy(&bytes)) else {
                println!("skipped: LLVM is not installed");
                return;
            };
            tests += usize::from(runs);
        }
    }
    println!("{}", suite.differences.join("\n"));
    println!("{tests} tests of {PROCESSOR}");
    let counts = [
        suite.assembled.print("lines that assemble to LLVM's words"),
        suite.printed.print("words that disassemble to LLVM's text"),
        suite.rejected.print("lines that LLVM rejects, and wavesim too"),
    ];
    assert!(tests > 100 && suite.assembled.all > 20_000, "LLVM 22 has more tests");
    assert!(counts.iter().zip(LEAST).all(|(count, least)| *count >= least), "{counts:?}");
}

impl Suite {
    /// Compares the lines of a test; returns whether it runs for the processor, and `None` if LLVM is not installed.
    fn test(&mut self, file: &Path, text: &str) -> Option<bool> {
        let runs = Run::of_test(text, PROCESSOR);
        for run in &runs {
            let Some(wave) = run.wave(self.arch) else { continue };
            let options = Options::new(self.arch).wave(wave);
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if run.disassembles {
                let lines = text.lines().filter_map(bytes_of).collect();
                self.words(&name, run, &options, lines)?;
            } else {
                let lines = text.lines().filter_map(instruction_of).map(str::to_string).collect();
                self.lines(&name, run, &options, lines)?;
            }
        }
        Some(!runs.is_empty())
    }

    /// Returns whether an input has not been compared with these options.
    fn is_new(&mut self, run: &Run, input: String) -> bool {
        self.known.insert((format!("{} {}", run.features, run.disassembles), input))
    }

    /// Compares lines of assembly, and the texts of the words that LLVM makes of them.
    fn lines(&mut self, test: &str, run: &Run, options: &Options, lines: Vec<String>) -> Option<()> {
        let lines: Vec<String> = lines.into_iter().filter(|line| self.is_new(run, line.clone())).collect();
        let mut input = String::new();
        for (at, line) in lines.iter().enumerate() {
            input += &format!("{line}\ns_nop 0x{:x}\n", at & 0xffff);
        }
        let arguments = run.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = llvm_for(PROCESSOR, self.arch, &arguments, input)?;
        let mut all = Vec::new();
        for (line, reply) in lines.iter().zip(replies(&output, lines.len())) {
            // Lines with symbols that are not defined here are neither.
            let parsed = asm::parse(line, options, &NoSymbols);
            if parsed.is_ok_and(|parsed| !parsed.fixups.is_empty()) {
                continue;
            }
            let own = words_of(line, options);
            match reply {
                Some((_, theirs)) => {
                    let right = own.as_ref() == Ok(&theirs);
                    self.assembled.add(right);
                    if !right {
                        self.differs(test, run, "asm", line, &hex(own), &hex(Ok(theirs.clone())));
                    }
                    all.push(theirs);
                }
                None => {
                    self.rejected.add(own.is_err());
                    if own.is_ok() {
                        self.differs(test, run, "reject", line, &hex(own), "rejected");
                    }
                }
            }
        }
        self.words(test, run, options, all)
    }

    /// Compares the texts of words.
    fn words(&mut self, test: &str, run: &Run, options: &Options, list: Vec<Vec<u32>>) -> Option<()> {
        let list: Vec<Vec<u32>> =
            list.into_iter().filter(|words| self.is_new(run, hex(Ok(words.clone())))).collect();
        let arguments = run.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let inputs = list.iter().map(Vec::as_slice);
        let theirs = disassemble_for(PROCESSOR, self.arch, &arguments, inputs)?;
        for (words, reply) in list.iter().zip(theirs) {
            let own = text_of(words, options);
            match reply {
                Some((theirs, known)) if known == *words => {
                    let theirs = plain(&theirs, run);
                    let right = own.as_ref().is_ok_and(|own| plain(own, run) == theirs);
                    self.printed.add(right);
                    if !right {
                        let own = own.unwrap_or_else(|error| error);
                        self.differs(test, run, "text", &hex(Ok(words.clone())), &own, &theirs);
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    fn differs(&mut self, test: &str, run: &Run, kind: &str, input: &str, own: &str, theirs: &str) {
        let features = &run.features;
        self.differences
            .push(format!("{kind}: {test} {features}: {input}\n    own  {own}\n    LLVM {theirs}"));
    }
}

/// Returns the instruction of a line of assembly; `None` for comments, directives and labels.
fn instruction_of(line: &str) -> Option<&str> {
    let line = line.split("//").next().unwrap_or_default();
    let line = line.split(';').next().unwrap_or_default().trim();
    let first = line.chars().next()?;
    (first.is_ascii_alphabetic() && !line.ends_with(':') && !line.contains('=')).then_some(line)
}

/// Returns the words of a line of bytes.
fn bytes_of(line: &str) -> Option<Vec<u32>> {
    let line = line.split('#').next()?.trim();
    let line = line.trim_start_matches('[').trim_end_matches(']');
    let bytes: Option<Vec<u8>> = line
        .split([',', ' '])
        .filter(|byte| !byte.is_empty())
        .map(|byte| u8::from_str_radix(byte.strip_prefix("0x")?, 16).ok())
        .collect();
    bytes.filter(|bytes| !bytes.is_empty() && bytes.len() % 4 == 0).map(|bytes| words(&bytes))
}

/// Returns a text without what depends on options: `v1.l` is `v1`, and `v1.h` too where LLVM names no halves; comments are
/// gone.
fn plain(text: &str, run: &Run) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once(" /*") {
        plain += before;
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain += rest;
    let halves: &[&str] = if run.features.contains("+real-true16") { &[".l"] } else { &[".l", ".h"] };
    let stripped = |word: &str| {
        let (name, comma) = word.strip_suffix(',').map_or((word, ""), |name| (name, ","));
        // With an absolute value, a bar follows.
        let (name, bar) = name.strip_suffix('|').map_or((name, ""), |name| (name, "|"));
        let name = halves.iter().find_map(|half| name.strip_suffix(half)).unwrap_or(name);
        format!("{name}{bar}{comma}")
    };
    plain.split_whitespace().map(stripped).collect::<Vec<_>>().join(" ")
}

fn hex(words: Result<Vec<u32>, String>) -> String {
    match words {
        Ok(words) => words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" "),
        Err(error) => error.lines().next().unwrap_or_default().to_string(),
    }
}
