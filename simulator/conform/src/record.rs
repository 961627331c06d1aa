//! The reader of vector files: JSON Lines, plain or gzipped.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use wavesim_files::{self as files, FileError};
use wavesim_isa::arch::facts::SharedRecords;
use wavesim_isa::arch::{Arch, Processor};
use wavesim_isa::codec::decode;
use wavesim_isa::operand::ACC;
use wavesim_machine::exec::lower;

/// A conformance vector: one instruction or a few, with the state before and after. Numbers are hex strings
/// unless the field has a number type. State without an `_out` entry must be unchanged.
#[derive(Debug, Clone, Deserialize)]
pub struct Record {
    /// A stable name, for messages.
    pub id: String,
    /// `rdna3`, `rdna4`; vectors of unmodelled architectures are skipped.
    pub arch: String,
    /// Number of lanes: 32 or 64.
    pub wave: u32,
    /// The processor, if the instruction requires a later one than `arch` implies: `gfx1150`.
    #[serde(default)]
    pub target: Option<String>,
    /// Operation without `_e32` and `_e64`.
    pub op: String,
    /// The encoding and its variant: `VOP2`, `VOP2_LIT`, `VOP1_DPP16`.
    #[serde(default)]
    pub enc: String,
    /// The instruction in LLVM's syntax; `None` if LLVM does not print it.
    #[serde(default)]
    pub asm: Option<String>,
    /// The encoded dwords in memory order.
    pub words: Vec<String>,
    /// EXEC before.
    pub exec: String,
    /// VCC before; 0 if missing.
    #[serde(default)]
    pub vcc: Option<String>,
    /// SCC before.
    #[serde(default)]
    pub scc: u32,
    /// M0 before; 0 if missing.
    #[serde(default)]
    pub m0: Option<String>,
    /// MODE; if missing, round to nearest even, f32 denormals flushed, DX10_CLAMP and IEEE.
    #[serde(default)]
    pub mode: Option<String>,
    /// SGPRs before, by number in decimal.
    #[serde(default)]
    pub sgpr_in: BTreeMap<String, String>,
    /// VGPRs before, by number in decimal: 8 digits per lane, lane 0 first.
    #[serde(default)]
    pub vgpr_in: BTreeMap<String, String>,
    /// The mapped ranges of global memory.
    #[serde(default)]
    pub mem_in: Option<OneOrMany>,
    /// LDS before, from offset 0 on.
    #[serde(default)]
    pub lds_in: Option<Bytes>,
    /// Private memory before.
    #[serde(default)]
    pub scratch_in: Option<Scratch>,
    /// Size of LDS; 65536 if missing and the instruction accesses memory.
    #[serde(default)]
    pub lds_bytes: Option<u32>,
    /// Private memory per lane, unless `scratch_in` defines it; same default as `lds_bytes`.
    #[serde(default)]
    pub scratch_bytes: Option<u32>,
    /// Every SGPR written, by number in decimal.
    #[serde(default)]
    pub sgpr_out: BTreeMap<String, String>,
    /// Every VGPR written, by number in decimal, all lanes.
    #[serde(default)]
    pub vgpr_out: BTreeMap<String, String>,
    /// Accumulation VGPRs before.
    #[serde(default)]
    pub acc_in: BTreeMap<String, String>,
    /// Accumulation VGPRs written.
    #[serde(default)]
    pub acc_out: BTreeMap<String, String>,
    /// SCC after.
    #[serde(default)]
    pub scc_out: Option<u32>,
    /// VCC after.
    #[serde(default)]
    pub vcc_out: Option<String>,
    /// EXEC after.
    #[serde(default)]
    pub exec_out: Option<String>,
    /// M0 after.
    #[serde(default)]
    pub m0_out: Option<String>,
    /// Dwords of global memory that changed, by byte offset from the first range.
    #[serde(default)]
    pub mem_out: Option<BTreeMap<String, String>>,
    /// Dwords of LDS that changed, by byte offset.
    #[serde(default)]
    pub lds_out: Option<BTreeMap<String, String>>,
    /// Dwords of private memory that changed, by byte offset from lane 0's first byte.
    #[serde(default)]
    pub scratch_out: Option<BTreeMap<String, String>>,
    /// Bytes from the first instruction to the next one to execute.
    #[serde(default)]
    pub pc_out: Option<i64>,
    /// Mask of the lanes whose results are asserted in `vgpr_out` and in lane masks. All lanes if missing.
    #[serde(default)]
    pub lanes: Option<String>,
    /// The tolerance of results; bit-exact if missing.
    #[serde(default)]
    pub tol: Option<Tolerance>,
}

/// The forms of `mem_in` in files.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// A single range.
    One(Region),
    /// Several ranges; offsets of `mem_out` count from the first.
    Many(Vec<Region>),
}

/// A range of global memory.
#[derive(Debug, Clone, Deserialize)]
pub struct Region {
    /// Address of the first byte: a number, or hex text.
    pub base: serde_json::Value,
    /// The bytes, two digits each.
    pub hex: String,
}

/// Bytes of LDS.
#[derive(Debug, Clone, Deserialize)]
pub struct Bytes {
    /// Two digits per byte, from offset 0 on.
    pub hex: String,
}

/// Private memory of a wave.
#[derive(Debug, Clone, Deserialize)]
pub struct Scratch {
    /// Bytes per lane: those of lane `l` begin at `l * stride`.
    pub stride: u32,
    /// Two digits per byte, from the first byte of lane 0 on.
    pub hex: String,
}

/// The tolerance of a result.
#[derive(Debug, Clone, Deserialize)]
pub struct Tolerance {
    /// Type of the results: `f32`, `f16`, `f64`, `f16x2` …
    pub t: String,
    /// `any`: all NaNs are equivalent.
    #[serde(default)]
    pub nan: Option<String>,
    /// Maximum distance in units in the last place.
    #[serde(default)]
    pub ulp: Option<u64>,
}

/// The reason why a vector file cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum ReadError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The line (1-based) is not a record.
    #[error("{path}:{line}: not a conformance record: {source}")]
    Json { path: String, line: usize, source: serde_json::Error },
}

/// Reads all records of a file.
pub fn read_file(path: &Path) -> Result<Vec<Record>, ReadError> {
    let io = |source| FileError::Io { path: path.display().to_string(), source };
    let mut bytes = files::read(path)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        // Bounds decompression bombs: the same limit as for data from a pipe.
        let mut unpacked = Vec::new();
        let archive = flate2::read::MultiGzDecoder::new(&bytes[..]);
        archive.take(files::MAX_STREAM + 1).read_to_end(&mut unpacked).map_err(io)?;
        if unpacked.len() as u64 > files::MAX_STREAM {
            let (path, mib) = (path.display().to_string(), files::MAX_STREAM >> 20);
            return Err(FileError::TooLarge { path, mib }.into());
        }
        bytes = unpacked;
    }
    let text = String::from_utf8(bytes).map_err(|_| FileError::NotText(path.display().to_string()))?;
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|source| ReadError::Json {
                path: path.display().to_string(),
                line: at + 1,
                source,
            })
        })
        .collect()
}

impl Record {
    /// Returns the architecture that the record requires; `None` for machines that are not modelled.
    pub fn architecture(&self) -> Option<Arch> {
        if let Some(target) = &self.target {
            return Arch::from_mcpu(target);
        }
        Arch::from_name(&self.arch)
    }

    /// Retargets the record to `arch` if possible: records of some architectures also apply to others
    /// ([`SharedRecords`](wavesim_isa::arch::facts::SharedRecords)).
    pub fn retarget(&mut self, arch: Arch) -> bool {
        let own = self.architecture();
        let applies = |shared: &&SharedRecords| {
            own == Some(shared.of) && (!shared.only_common || self.is_shared(shared.of, arch))
        };
        if arch.facts().records.as_ref().filter(applies).is_some() {
            self.target = Processor::of_arch(arch).map(|p| p.name.to_string());
            return true;
        }
        own == Some(arch)
    }

    /// Returns whether the record's words encode the same operation in two architectures, under the same
    /// name.
    fn is_shared(&self, a: Arch, b: Arch) -> bool {
        let words: Result<Vec<u32>, _> = self.words.iter().map(|w| u32::from_str_radix(w, 16)).collect();
        let Ok(words) = words else { return false };
        let instruction = |arch: Arch| {
            let inst = decode(arch, &words).ok()?;
            Some((inst.instruction(arch.table()).name, lower::operation(arch, inst.entry)?))
        };
        instruction(a).is_some_and(|found| instruction(b) == Some(found))
    }

    /// Returns the VGPRs of both kinds in a record, by their number in the wave's register file.
    pub fn vgprs<'a>(
        vgprs: &'a BTreeMap<String, String>,
        accumulation: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = (Option<u32>, &'a String)> {
        let number = |reg: &String, first: usize| Some(reg.parse::<u32>().ok()? + first as u32);
        let vgprs = vgprs.iter().map(move |(reg, values)| (number(reg, 0), values));
        vgprs.chain(accumulation.iter().map(move |(reg, values)| (number(reg, ACC), values)))
    }

    /// Returns global memory before.
    pub fn mem_in(&self) -> &[Region] {
        match &self.mem_in {
            None => &[],
            Some(OneOrMany::One(region)) => std::slice::from_ref(region),
            Some(OneOrMany::Many(list)) => list,
        }
    }
}

impl Region {
    /// Returns the address; `None` if the text is not a number.
    pub fn base(&self) -> Option<u64> {
        match &self.base {
            serde_json::Value::Number(n) => n.as_u64(),
            serde_json::Value::String(s) => hex64(s),
            _ => None,
        }
    }
}

/// Parses a hexadecimal number with or without `0x`.
pub fn hex64(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// Parses bytes of two hex digits each; returns `None` for an odd number of digits or for other characters.
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| {
            let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
            Some(digit(pair[0])? << 4 | digit(pair[1])?)
        })
        .collect()
}

/// Parses 8 hex digits per lane.
pub fn lanes(text: &str) -> Option<Vec<u32>> {
    if !text.is_ascii() {
        return None;
    }
    (0..text.len() / 8).map(|at| u32::from_str_radix(&text[at * 8..at * 8 + 8], 16).ok()).collect()
}
