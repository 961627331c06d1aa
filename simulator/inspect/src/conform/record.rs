//! Reading vector files: JSON Lines, plain or gzip.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use wavesim_files::{self as files, FileError};
use wavesim_isa::arch::Arch;
use wavesim_isa::operand::ACC;

#[derive(Debug, Clone, Deserialize)]
pub struct Record {
    pub id: String,
    pub arch: String,
    pub wave: u32,
    #[serde(default)]
    pub target: Option<String>,
    pub op: String,
    #[serde(default)]
    pub enc: String,
    #[serde(default)]
    pub asm: Option<String>,
    pub words: Vec<String>,
    pub exec: String,
    #[serde(default)]
    pub vcc: Option<String>,
    #[serde(default)]
    pub scc: u32,
    #[serde(default)]
    pub m0: Option<String>,
    #[serde(default)]
    pub mode: Option<String>,
    #[serde(default)]
    pub sgpr_in: BTreeMap<String, String>,
    #[serde(default)]
    pub vgpr_in: BTreeMap<String, String>,
    #[serde(default)]
    pub mem_in: Option<OneOrMany>,
    #[serde(default)]
    pub lds_in: Option<Bytes>,
    #[serde(default)]
    pub scratch_in: Option<Scratch>,
    #[serde(default)]
    pub lds_bytes: Option<u32>,
    #[serde(default)]
    pub scratch_bytes: Option<u32>,
    #[serde(default)]
    pub sgpr_out: BTreeMap<String, String>,
    #[serde(default)]
    pub vgpr_out: BTreeMap<String, String>,
    /// Accumulation VGPRs.
    #[serde(default)]
    pub acc_in: BTreeMap<String, String>,
    #[serde(default)]
    pub acc_out: BTreeMap<String, String>,
    #[serde(default)]
    pub scc_out: Option<u32>,
    #[serde(default)]
    pub vcc_out: Option<String>,
    #[serde(default)]
    pub exec_out: Option<String>,
    #[serde(default)]
    pub m0_out: Option<String>,
    #[serde(default)]
    pub mem_out: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub lds_out: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub scratch_out: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub pc_out: Option<i64>,
    #[serde(default)]
    pub lanes: Option<String>,
    #[serde(default)]
    pub tol: Option<Tolerance>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    One(Region),
    Many(Vec<Region>),
}

#[derive(Debug, Clone, Deserialize)]
pub struct Region {
    pub base: serde_json::Value,
    pub hex: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Bytes {
    pub hex: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Scratch {
    pub stride: u32,
    pub hex: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Tolerance {
    pub t: String,
    #[serde(default)]
    pub nan: Option<String>,
    #[serde(default)]
    pub ulp: Option<u64>,
}

/// Why a vector file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    File(#[from] FileError),
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

    /// Makes the record one of `arch` if it can be: records of RDNA 3 serve RDNA 3.5 as well.
    pub fn choose(&mut self, arch: Arch) -> bool {
        let own = self.architecture();
        if own == Some(Arch::Rdna3) && arch == Arch::Rdna35 {
            self.target = Some("gfx1150".to_string());
            return true;
        }
        own == Some(arch)
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

    pub fn mem_in(&self) -> &[Region] {
        match &self.mem_in {
            None => &[],
            Some(OneOrMany::One(region)) => std::slice::from_ref(region),
            Some(OneOrMany::Many(list)) => list,
        }
    }
}

impl Region {
    pub fn base(&self) -> Option<u64> {
        match &self.base {
            serde_json::Value::Number(n) => n.as_u64(),
            serde_json::Value::String(s) => hex64(s),
            _ => None,
        }
    }
}

pub fn hex64(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

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
