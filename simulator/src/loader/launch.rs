//! Launch descriptions (`wavesim-launch-1`): arguments in, expected outputs compared.

use super::code_object::{self, Kernel};
use super::prepared::{Buffer, Prepared, Shape};
use crate::arch::Arch;
use crate::exec::program::Program;
use crate::memory::Memory;
use crate::sched::dispatch::{InitialState, Layout};
use anyhow::{Context as _, Result, anyhow, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Deserialize)]
pub struct Launch {
    pub schema: String,
    pub kernel: String,
    /// In workgroups.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    #[serde(default)]
    pub dynamic_lds: u32,
    pub args: Vec<Arg>,
    #[serde(default)]
    pub expected: Vec<Expected>,
    pub code: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub struct Arg {
    pub name: String,
    #[serde(flatten)]
    pub kind: Kind,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kind {
    Buffer { dtype: String, shape: Vec<u64>, init: Init },
    Scalar { dtype: String, value: serde_json::Number },
    Struct { bytes: String },
    Local { size: u32 },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    File(String),
    Zeros(bool),
    Fill(serde_json::Number),
    Arange { start: serde_json::Number, step: serde_json::Number },
}

#[derive(Debug, Deserialize)]
pub struct Expected {
    pub arg: String,
    pub file: String,
    pub rtol: f64,
    pub atol: f64,
}

fn size_of(dtype: &str) -> Result<usize> {
    Ok(match dtype {
        "i8" | "u8" => 1,
        "f16" | "i16" | "u16" => 2,
        "f32" | "i32" | "u32" => 4,
        "f64" | "i64" | "u64" => 8,
        other => bail!("unknown dtype `{other}` (f16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64)"),
    })
}

/// A number as the dtype's bytes.
fn encode(dtype: &str, n: &serde_json::Number) -> Result<Vec<u8>> {
    let float = n.as_f64().unwrap_or(f64::NAN);
    let bytes = match dtype {
        "f16" => half::f16::from_f64(float).to_le_bytes().to_vec(),
        "f32" => (float as f32).to_le_bytes().to_vec(),
        "f64" => float.to_le_bytes().to_vec(),
        _ => {
            let bits = n.as_u64().or(n.as_i64().map(|v| v as u64));
            bits.ok_or_else(|| anyhow!("{n} is no {dtype}"))?.to_le_bytes().to_vec()
        }
    };
    Ok(bytes[..size_of(dtype)?].to_vec())
}

fn decode(dtype: &str, b: &[u8]) -> f64 {
    let mut wide = [0u8; 8];
    wide[..b.len()].copy_from_slice(b);
    let u = u64::from_le_bytes(wide);
    match dtype {
        "f16" => half::f16::from_bits(u as u16).to_f64(),
        "f32" => f32::from_bits(u as u32) as f64,
        "f64" => f64::from_bits(u),
        "i8" => u as i8 as f64,
        "i16" => u as i16 as f64,
        "i32" => u as i32 as f64,
        "i64" => u as i64 as f64,
        _ => u as f64,
    }
}

/// The data of a version 1.0 `.npy` in C order.
fn npy(path: &Path, len: usize) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let header = npyz::NpyHeader::from_reader(&bytes[..]).with_context(|| format!("{}", path.display()))?;
    if header.order() != npyz::Order::C {
        bail!("{}: only C order is supported", path.display());
    }
    let start = bytes.len().checked_sub(len).ok_or_else(|| anyhow!("{}: too short", path.display()))?;
    Ok(bytes[start..].to_vec())
}

/// A launch file read, its kernel ready to run.
pub struct Loaded {
    pub launch: Launch,
    /// Where the files it names are.
    folder: PathBuf,
    pub prepared: Prepared,
}

impl Loaded {
    /// One line per expected buffer that memory does not hold.
    pub fn mismatches(&self) -> Result<Vec<String>> {
        let mut mismatches = Vec::new();
        for e in &self.launch.expected {
            let buffer =
                self.prepared.buffer(&e.arg).ok_or_else(|| anyhow!("expected: no buffer `{}`", e.arg))?;
            let len = buffer.len_bytes as usize;
            let mut actual = vec![0; len];
            self.prepared.memory.read(buffer.address, &mut actual)?;
            if let Some(line) = compare(&actual, &npy(&self.folder.join(&e.file), len)?, &buffer.dtype, e)? {
                mismatches.push(line);
            }
        }
        Ok(mismatches)
    }
}

/// Reads `launch.json`, loads the target's code object and fills memory.
pub fn load(path: &Path, target: &str) -> Result<Loaded> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let launch: Launch = serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))?;
    if launch.schema != "wavesim-launch-1" {
        bail!("{}: schema `{}` is not `wavesim-launch-1`", path.display(), launch.schema);
    }
    let folder = path.parent().unwrap_or(Path::new(".")).to_path_buf();
    let file = launch.code.get(target).ok_or_else(|| {
        anyhow!(
            "no code for {target}; there is {}",
            launch.code.keys().cloned().collect::<Vec<_>>().join(", ")
        )
    })?;
    let object = std::fs::read(folder.join(file)).with_context(|| format!("reading {file}"))?;
    let kernel = code_object::load(&object, &launch.kernel).with_context(|| file.clone())?;
    let prepared = prepare(&kernel, &launch, &folder)?;
    Ok(Loaded { launch, folder, prepared })
}

fn prepare(kernel: &Kernel, launch: &Launch, folder: &Path) -> Result<Prepared> {
    let mut memory = Memory::new(1 << 30)?;
    let code_base = map_image(kernel, &mut memory)?;
    let mut buffers = Vec::new();
    let mut kernarg = vec![0u8; kernel.kernarg_size as usize];
    let mut lds = kernel.group_segment.next_multiple_of(16);
    let explicit = kernel.args.iter().filter(|a| !a.kind.starts_with("hidden_"));
    for (arg, slot) in launch.args.iter().zip(explicit) {
        let value = match &arg.kind {
            Kind::Buffer { dtype, shape, init } => {
                let count = shape.iter().product::<u64>() as usize;
                let data = initial(folder, dtype, count, init).with_context(|| arg.name.clone())?;
                let address = memory.alloc(data.len() as u64, 256, &arg.name)?;
                memory.write(address, &data)?;
                buffers.push(Buffer {
                    name: arg.name.clone(),
                    address,
                    len_bytes: data.len() as u64,
                    dtype: dtype.clone(),
                    shape: shape.clone(),
                });
                address.to_le_bytes().to_vec()
            }
            Kind::Scalar { dtype, value } => encode(dtype, value)?,
            Kind::Struct { bytes } => hex(bytes).ok_or_else(|| anyhow!("{}: bad hex", arg.name))?,
            Kind::Local { size } => {
                let at = lds;
                lds += size.next_multiple_of(16);
                at.to_le_bytes().to_vec()
            }
        };
        put(&mut kernarg, slot.offset, slot.size, &value);
    }
    let dynamic = launch.dynamic_lds;
    hidden(kernel, launch, dynamic, &mut kernarg);
    let kernarg_at = memory.alloc(kernarg.len().max(1) as u64, 64, "kernarg")?;
    memory.write(kernarg_at, &kernarg)?;
    let packet_at = packet(&mut memory, launch, kernel, kernarg_at)?;
    let words: Vec<u32> =
        kernel.text.1.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
    Ok(Prepared {
        program: Program::from_words(kernel.arch, &words),
        memory,
        shape: Shape {
            grid: launch.grid,
            block: launch.block,
            wave_size: if kernel.properties >> 10 & 1 == 1 { 32 } else { 64 },
            lds_bytes: kernel.group_segment.next_multiple_of(16) + dynamic,
            scratch_bytes: kernel.private_segment.next_multiple_of(4),
            init: initial_state(kernel, kernarg_at, packet_at),
            entry_pc: kernel.entry - kernel.text.0,
            code_base,
        },
        buffers,
        source: None,
    })
}

/// The image at one base, so that code reaches its constants; gives the address of `.text`.
fn map_image(kernel: &Kernel, memory: &mut Memory) -> Result<u64> {
    let end = kernel.segments.iter().map(|(base, data)| base + data.len() as u64).max().unwrap_or(0);
    let base = memory.alloc(end, 4096, "code object")?;
    for (at, data) in &kernel.segments {
        memory.write(base + at, data)?;
    }
    Ok(base + kernel.text.0)
}

fn initial(folder: &Path, dtype: &str, count: usize, init: &Init) -> Result<Vec<u8>> {
    let size = size_of(dtype)?;
    Ok(match init {
        Init::File(name) => npy(&folder.join(name), count * size)?,
        Init::Zeros(_) => vec![0; count * size],
        Init::Fill(v) => encode(dtype, v)?.repeat(count),
        Init::Arange { start, step } => {
            let mut out = Vec::with_capacity(count * size);
            for i in 0..count {
                let v = if dtype.starts_with('f') {
                    let v = start.as_f64().unwrap_or(0.0) + i as f64 * step.as_f64().unwrap_or(0.0);
                    serde_json::Number::from_f64(v)
                } else {
                    let v = start
                        .as_i64()
                        .unwrap_or(0)
                        .wrapping_add(step.as_i64().unwrap_or(0).wrapping_mul(i as i64));
                    Some(v.into())
                };
                out.extend(encode(dtype, &v.ok_or_else(|| anyhow!("arange leaves the numbers"))?)?);
            }
            out
        }
    })
}

fn hex(text: &str) -> Option<Vec<u8>> {
    (0..text.len()).step_by(2).map(|k| u8::from_str_radix(text.get(k..k + 2)?, 16).ok()).collect()
}

fn put(kernarg: &mut [u8], offset: u32, size: u32, value: &[u8]) {
    let at = offset as usize;
    let len = value.len().min(size as usize).min(kernarg.len().saturating_sub(at));
    kernarg[at..at + len].copy_from_slice(&value[..len]);
}

/// Hidden arguments (LLVM AMDGPUUsage, *Code Object V5 Metadata*); those that need a runtime stay 0.
fn hidden(kernel: &Kernel, launch: &Launch, dynamic: u32, kernarg: &mut [u8]) {
    for arg in &kernel.args {
        let dim = match arg.kind.as_bytes().last() {
            Some(b'y') => 1,
            Some(b'z') => 2,
            _ => 0,
        };
        let value: u64 = match arg.kind.as_str() {
            k if k.starts_with("hidden_block_count_") => launch.grid[dim] as u64,
            k if k.starts_with("hidden_group_size_") => launch.block[dim] as u64,
            "hidden_grid_dims" => {
                (0..3).rev().find(|d| launch.grid[*d] * launch.block[*d] > 1).map_or(1, |d| d as u64 + 1)
            }
            "hidden_dynamic_lds_size" => dynamic as u64,
            "hidden_private_base" => crate::memory::PRIVATE_BASE >> 32,
            "hidden_shared_base" => crate::memory::SHARED_BASE >> 32,
            _ => continue,
        };
        put(kernarg, arg.offset, arg.size, &value.to_le_bytes());
    }
}

/// An AQL dispatch packet (HSA Platform System Architecture, *Kernel Dispatch Packet*).
fn packet(memory: &mut Memory, launch: &Launch, kernel: &Kernel, kernarg: u64) -> Result<u64> {
    let mut p = [0u8; 64];
    for d in 0..3 {
        p[4 + 2 * d..6 + 2 * d].copy_from_slice(&(launch.block[d] as u16).to_le_bytes());
        let items = launch.grid[d] * launch.block[d];
        p[12 + 4 * d..16 + 4 * d].copy_from_slice(&items.to_le_bytes());
    }
    p[24..28].copy_from_slice(&kernel.private_segment.to_le_bytes());
    p[28..32].copy_from_slice(&(kernel.group_segment + launch.dynamic_lds).to_le_bytes());
    p[40..48].copy_from_slice(&kernarg.to_le_bytes());
    let at = memory.alloc(64, 64, "dispatch packet")?;
    memory.write(at, &p)?;
    Ok(at)
}

/// User SGPRs in the descriptor's order, then MODE and ids (LLVM AMDGPUUsage, *Initial Kernel Execution State*).
fn initial_state(kernel: &Kernel, kernarg: u64, packet: u64) -> InitialState {
    let mut values = Vec::new();
    let mut pair = |bit: u32, value: u64| {
        if kernel.properties >> bit & 1 == 1 {
            values.extend([value as u32, (value >> 32) as u32]);
        }
    };
    pair(1, packet);
    pair(2, 0);
    pair(3, kernarg);
    pair(4, 0);
    if kernel.properties >> 6 & 1 == 1 {
        values.push(kernel.private_segment);
    }
    let (r1, r2) = (kernel.rsrc1, kernel.rsrc2);
    let gfx12 = kernel.arch == Arch::Rdna4;
    let mut mode = r1 >> 12 & 0xff;
    if !gfx12 {
        mode |= (r1 >> 21 & 1) << 8 | (r1 >> 23 & 1) << 9;
    }
    InitialState {
        layout: Layout::Hsa {
            first_system_sgpr: (r2 >> 1 & 31) as u16,
            group_ids: [r2 >> 7 & 1 == 1, r2 >> 8 & 1 == 1, r2 >> 9 & 1 == 1],
            architected: gfx12,
            item_id_dims: (r2 >> 11 & 3) as u8,
        },
        mode,
        sgprs: vec![(0, values)],
    }
}

fn compare(actual: &[u8], expected: &[u8], dtype: &str, e: &Expected) -> Result<Option<String>> {
    let size = size_of(dtype)?;
    let mut wrong = 0;
    let mut first = None;
    for (i, (a, b)) in actual.chunks_exact(size).zip(expected.chunks_exact(size)).enumerate() {
        if a == b {
            continue;
        }
        let (x, y) = (decode(dtype, a), decode(dtype, b));
        let float = dtype.starts_with('f');
        let near = (x - y).abs() <= e.atol + e.rtol * y.abs();
        if (float || e.atol != 0.0 || e.rtol != 0.0) && (x.is_nan() && y.is_nan() || x == y || near) {
            continue;
        }
        wrong += 1;
        first.get_or_insert((i, x, y));
    }
    Ok(first.map(|(i, x, y)| {
        format!(
            "{}: {wrong} of {} elements differ; first [{i}]: expected {y}, got {x}",
            e.arg,
            actual.len() / size
        )
    }))
}
