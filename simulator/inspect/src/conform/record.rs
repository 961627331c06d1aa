//! Reading vector files: JSON Lines, plain or gzip.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use wavesim_files::{self as files, FileError};
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::decode;
use wavesim_isa::operand::ACC;
use wavesim_machine::exec::lower;

/// A conformance vector: one instruction, or a few, with the state before and after. Numbers are hex texts unless they are of a number's
/// type; what has no `_out` entry must be unchanged.
#[derive(Debug, Clone, Deserialize)]
pub struct Record {
    /// A name that stays the same, for messages.
    pub id: String,
    /// `rdna3`, `rdna4`; other architectures have vectors that are skipped.
    pub arch: String,
    /// Lanes: 32 or 64.
    pub wave: u32,
    /// The processor, where the instruction needs a later one than `arch` names: `gfx1150`.
    #[serde(default)]
    pub target: Option<String>,
    /// Operation without `_e32` and `_e64`.
    pub op: String,
    /// Encoding, with what it has beside its operands: `VOP2`, `VOP2_LIT`, `VOP1_DPP16`.
    #[serde(default)]
    pub enc: String,
    /// LLVM's syntax of it; `None` if LLVM does not print it.
    #[serde(default)]
    pub asm: Option<String>,
    /// The encoded dwords, the first one first.
    pub words: Vec<String>,
    /// EXEC before.
    pub exec: String,
    /// VCC before; 0 if it is missing.
    #[serde(default)]
    pub vcc: Option<String>,
    /// SCC before.
    #[serde(default)]
    pub scc: u32,
    /// M0 before; 0 if it is missing.
    #[serde(default)]
    pub m0: Option<String>,
    /// MODE; if it is missing, nearest even with f32 denormals flushed, DX10_CLAMP and IEEE.
    #[serde(default)]
    pub mode: Option<String>,
    /// SGPRs before, by number in decimal.
    #[serde(default)]
    pub sgpr_in: BTreeMap<String, String>,
    /// VGPRs before, by number in decimal: 8 digits a lane, lane 0 first.
    #[serde(default)]
    pub vgpr_in: BTreeMap<String, String>,
    /// The ranges of global memory that there are.
    #[serde(default)]
    pub mem_in: Option<OneOrMany>,
    /// LDS before, from offset 0 on.
    #[serde(default)]
    pub lds_in: Option<Bytes>,
    /// Private memory before.
    #[serde(default)]
    pub scratch_in: Option<Scratch>,
    /// Size of LDS; 65536 if it is missing and the instruction accesses memory.
    #[serde(default)]
    pub lds_bytes: Option<u32>,
    /// Private memory of a lane, where `scratch_in` does not say; 65536 likewise.
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
    /// Bytes from the first instruction to the one that is next.
    #[serde(default)]
    pub pc_out: Option<i64>,
    /// Mask of the lanes whose results are asserted: of `vgpr_out`, and the bits of masks. All if it is missing.
    #[serde(default)]
    pub lanes: Option<String>,
    /// How near results must be; bit exact if it is missing.
    #[serde(default)]
    pub tol: Option<Tolerance>,
}

/// `mem_in` as files have it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// A single range.
    One(Region),
    /// Several; offsets of `mem_out` count from the first.
    Many(Vec<Region>),
}

/// A range of global memory.
#[derive(Debug, Clone, Deserialize)]
pub struct Region {
    /// Address of the first byte: a number, or hex text.
    pub base: serde_json::Value,
    /// Its bytes, two digits each.
    pub hex: String,
}

/// Bytes of LDS.
#[derive(Debug, Clone, Deserialize)]
pub struct Bytes {
    /// Two digits a byte, from offset 0 on.
    pub hex: String,
}

/// Private memory of a wave.
#[derive(Debug, Clone, Deserialize)]
pub struct Scratch {
    /// Bytes of a lane: lane `l` owns those from `l * stride` on.
    pub stride: u32,
    /// Two digits a byte, from lane 0's first on.
    pub hex: String,
}

/// How near a result must be to the expected one.
#[derive(Debug, Clone, Deserialize)]
pub struct Tolerance {
    /// Type of the results: `f32`, `f16`, `f64`, `f16x2` …
    pub t: String,
    /// `any`: any NaN is as good as any other.
    #[serde(default)]
    pub nan: Option<String>,
    /// Distance allowed, in units of the last place.
    #[serde(default)]
    pub ulp: Option<u64>,
}

/// Why a vector file cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum ReadError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// This line (1-based) is not a record.
    #[error("{path}:{line}: not a conformance record: {source}")]
    Json { path: String, line: usize, source: serde_json::Error },
}

/// All records of a file.
pub fn read_file(path: &Path) -> Result<Vec<Record>, ReadError> {
    let io = |source| FileError::Io { path: path.display().to_string(), source };
    let mut bytes = files::read(path)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        // A bound against archives that unpack without end: as much as a pipe may give.
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
    /// The architecture the record asks for; `None` for machines not modelled.
    pub fn architecture(&self) -> Option<Arch> {
        if let Some(target) = &self.target {
            return Arch::from_mcpu(target);
        }
        Arch::from_name(&self.arch)
    }

    /// Makes the record one of `arch` if it can be: records of RDNA 3 serve RDNA 3.5 as well, and those of CDNA 4 serve CDNA 3 if the
    /// instruction is the same there.
    pub fn choose(&mut self, arch: Arch) -> bool {
        let own = self.architecture();
        if own == Some(Arch::Rdna3) && arch == Arch::Rdna35 {
            self.target = Some("gfx1150".to_string());
            return true;
        }
        if own == Some(Arch::Cdna4) && arch == Arch::Cdna3 && self.is_shared(Arch::Cdna4, Arch::Cdna3) {
            self.target = Some("gfx942".to_string());
            return true;
        }
        own == Some(arch)
    }

    /// Whether its words are the same operation of two architectures, under the same name.
    fn is_shared(&self, a: Arch, b: Arch) -> bool {
        let words: Result<Vec<u32>, _> = self.words.iter().map(|w| u32::from_str_radix(w, 16)).collect();
        let Ok(words) = words else { return false };
        let instruction = |arch: Arch| {
            let inst = decode(arch, &words).ok()?;
            Some((inst.instruction(arch.table()).name, lower::operation(arch, inst.entry)?))
        };
        instruction(a).is_some_and(|found| instruction(b) == Some(found))
    }

    /// VGPRs of both kinds that it lists, by their number in the wave's file.
    pub fn vgprs<'a>(
        vgprs: &'a BTreeMap<String, String>,
        accumulation: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = (Option<u32>, &'a String)> {
        let number = |reg: &String, first: usize| Some(reg.parse::<u32>().ok()? + first as u32);
        let vgprs = vgprs.iter().map(move |(reg, values)| (number(reg, 0), values));
        vgprs.chain(accumulation.iter().map(move |(reg, values)| (number(reg, ACC), values)))
    }

    /// Global memory before.
    pub fn mem_in(&self) -> &[Region] {
        match &self.mem_in {
            None => &[],
            Some(OneOrMany::One(region)) => std::slice::from_ref(region),
            Some(OneOrMany::Many(list)) => list,
        }
    }
}

impl Region {
    /// The address; `None` if the text is not a number.
    pub fn base(&self) -> Option<u64> {
        match &self.base {
            serde_json::Value::Number(n) => n.as_u64(),
            serde_json::Value::String(s) => hex64(s),
            _ => None,
        }
    }
}

/// A number in hex, with or without `0x`.
pub fn hex64(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// Bytes of two hex digits each; `None` for an odd number of digits, or for others.
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

/// One string of 8 hex digits a lane.
pub fn lanes(text: &str) -> Option<Vec<u32>> {
    if !text.is_ascii() {
        return None;
    }
    (0..text.len() / 8).map(|at| u32::from_str_radix(&text[at * 8..at * 8 + 8], 16).ok()).collect()
}
