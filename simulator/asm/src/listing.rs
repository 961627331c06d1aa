//! Machine code as lines of assembly with labels at branch targets, as every disassembler shows it.
//!
//! ```
//! use wavesim_asm::{Options, listing::Listing};
//! use wavesim_isa::arch::Arch;
//! // s_branch to itself, and a word that is not an instruction.
//! let listing = Listing::new(Options::new(Arch::Rdna3), 0x100, &[0xbfa0_ffff, 0xffff_ffff], []);
//! let lines: Vec<_> = listing.lines().map(|line| (line.label, line.text)).collect();
//! assert_eq!(lines[0], (Some(".L100"), "s_branch .L100".to_string()));
//! assert_eq!(lines[1], (None, ".long 0xffffffff".to_string()));
//! ```

use super::print::{self, print};
use super::{NoSymbols, Options, parse};
use std::collections::{BTreeMap, BTreeSet};
use wavesim_isa::codec::{DecodeError, decode, encode};
use wavesim_isa::inst::Inst;

/// Decoded machine code and its labels.
pub struct Listing<'a> {
    options: Options,
    base: u64,
    words: &'a [u32],
    labels: BTreeMap<u64, String>,
}

/// An instruction, or a word that does not decode.
pub struct Line<'a> {
    /// Address of the first byte.
    pub address: u64,
    /// The symbol at this address, or a generated name if it is a branch target.
    pub label: Option<&'a str>,
    /// Text that assembles to the same words.
    pub text: String,
    /// The encoding.
    pub words: &'a [u32],
    /// The reason why the word does not decode.
    pub error: Option<DecodeError>,
}

impl<'a> Listing<'a> {
    /// Decodes `words`, which start at address `base`. Symbols that are not at the start of an instruction
    /// are ignored.
    pub fn new(
        options: Options,
        base: u64,
        words: &'a [u32],
        symbols: impl IntoIterator<Item = (u64, String)>,
    ) -> Self {
        let mut listing = Listing { options, base, words, labels: BTreeMap::new() };
        // A label must be at the start of an instruction.
        let (mut starts, mut targets) = (BTreeSet::new(), Vec::new());
        let mut at = 0;
        while at < words.len() {
            starts.insert(listing.address(at));
            let (decoded, next) = listing.step(at);
            targets.extend(decoded.ok().and_then(|inst| listing.target(&inst, next)));
            at = next;
        }
        let targets = targets.into_iter().map(|t| (t, format!(".L{t:x}")));
        listing.labels.extend(targets.chain(symbols).filter(|(at, _)| starts.contains(at)));
        listing
    }

    /// The lines in order of address.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let mut at = 0;
        let mut options = self.options;
        std::iter::from_fn(move || {
            (at < self.words.len()).then(|| {
                let address = self.address(at);
                // Like LLVM, follows the VGPR numbers along the code, and begins anew at each symbol.
                if self.labels.get(&address).is_some_and(|label| !label.starts_with(".L")) {
                    options.vgpr_msbs = 0;
                }
                let (decoded, next) = self.step(at);
                let words = &self.words[at..next];
                at = next;
                let (text, error) = match decoded {
                    Ok(inst) => {
                        let target = self.target(&inst, next).and_then(|t| self.labels.get(&t));
                        let text = exact(words, &inst, &options, target.map(String::as_str));
                        options.vgpr_msbs =
                            print::vgpr_msbs_after(&inst, &options).unwrap_or(options.vgpr_msbs);
                        (text, None)
                    }
                    Err(error) => (format!(".long 0x{:08x}", words[0]), Some(error)),
                };
                Line { address, label: self.labels.get(&address).map(String::as_str), text, words, error }
            })
        })
    }

    fn address(&self, position: usize) -> u64 {
        self.base.wrapping_add(4 * position as u64)
    }

    /// Decodes the instruction at a word. Returns the index of the next instruction.
    fn step(&self, position: usize) -> (Result<Inst, DecodeError>, usize) {
        let decoded = decode(self.options.arch, &self.words[position..]);
        let next = decoded.as_ref().map_or(position + 1, |inst| position + inst.size as usize / 4);
        (decoded, next)
    }

    /// The target address of a branch with an immediate.
    fn target(&self, inst: &Inst, next: usize) -> Option<u64> {
        let distance = print::branch_words(inst, &self.options)?;
        Some(self.address(next).wrapping_add_signed(4 * distance))
    }
}

/// Prints an instruction as text that assembles to exactly `words`. A literal that equals an inline constant
/// is printed as `lit(…)`: LLVM would print the constant, which assembles to a different, shorter
/// instruction. Words that no text assembles to, because unused bits are set or the hardware cannot execute
/// them, are printed as `.long` with the instruction in a comment.
pub fn exact(words: &[u32], inst: &Inst, options: &Options, label: Option<&str>) -> String {
    // Numbers that MODE extends are comments, which only files have.
    let plain = Options { vgpr_msbs: 0, ..*options };
    let parsed = parse(&print(inst, &plain, None, true), options, &NoSymbols);
    let again = parsed.ok().and_then(|p| encode(options.arch, &p.inst).ok());
    if again.is_some_and(|again| again[..] == *words) {
        return print(inst, options, label, true);
    }
    let numbers: Vec<String> = words.iter().map(|word| format!("0x{word:08x}")).collect();
    format!(".long {} // {}", numbers.join(", "), print(inst, options, label, false))
}
