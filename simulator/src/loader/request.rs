//! What a compiled kernel is launched with, whoever says it (a launch file, the command line), and making it ready.

use super::abi;
use super::code_object::{self, Kernel};
use super::prepared::{Buffer, Prepared, Shape};
use crate::array::{Array, DType, Num, file};
use crate::exec::program::Program;
use crate::memory::Memory;
use crate::text::Options;
use crate::text::constant::Constants;
use crate::text::header::HeaderParser;
use anyhow::{Context as _, Result, anyhow, bail};
use std::path::Path;

/// A value for a kernel's parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// In global memory; the kernel gets its address.
    Buffer(Array),
    /// By value.
    Bytes(Vec<u8>),
    /// By value, in the parameter's size.
    Number(Num),
    /// So many bytes of LDS; the kernel gets their offset.
    Local(u32),
}

/// A launch.
#[derive(Debug, Clone)]
pub struct Request {
    /// In workgroups.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_lds: u32,
    /// In the order of the kernel's parameters.
    pub args: Vec<(String, Given)>,
    /// Buffers shown after the run; none named: all.
    pub outputs: Vec<String>,
}

/// Buffers begin at multiples of this, as real runtimes have it.
const ALIGN: u64 = 256;

impl Request {
    /// Fills memory and describes the launch.
    pub fn prepare(&self, kernel: &Kernel, mut memory: Memory) -> Result<Prepared> {
        let code_base = abi::map_image(kernel, &mut memory)?;
        let mut buffers = Vec::new();
        let mut kernarg = vec![0u8; kernel.kernarg_size as usize];
        let round = |n: u32| n.checked_next_multiple_of(16).ok_or_else(|| anyhow!("{n} bytes of LDS"));
        let fixed = round(kernel.group_segment)?;
        let mut lds = fixed;
        let explicit: Vec<&code_object::Arg> =
            kernel.args.iter().filter(|a| !a.kind.starts_with("hidden_")).collect();
        if explicit.len() != self.args.len() {
            bail!("the kernel has {} arguments, {} are given", explicit.len(), self.args.len());
        }
        for ((name, given), parameter) in self.args.iter().zip(explicit) {
            let value = match given {
                Given::Buffer(array) => {
                    let output = self.outputs.is_empty() || self.outputs.contains(name);
                    let buffer = Buffer::place(name, array, output, ALIGN, &mut memory)?;
                    let address = buffer.address;
                    buffers.push(buffer);
                    address.to_le_bytes().to_vec()
                }
                Given::Bytes(bytes) => bytes.clone(),
                Given::Number(n) => number(*n, parameter.size).with_context(|| name.clone())?,
                Given::Local(size) => {
                    let at = lds;
                    lds = at
                        .checked_add(round(*size)?)
                        .ok_or_else(|| anyhow!("{name}: {size} bytes of LDS"))?;
                    at.to_le_bytes().to_vec()
                }
            };
            abi::put(&mut kernarg, parameter.offset, parameter.size, &value);
        }
        let dynamic_lds = self.dynamic_lds.max(lds - fixed);
        let shape = abi::Shape { grid: self.grid, block: self.block, dynamic_lds };
        abi::hidden(kernel, &shape, &mut kernarg);
        let kernarg_at = memory.alloc(kernarg.len().next_multiple_of(16).max(16) as u64, 64, "kernarg")?;
        memory.write(kernarg_at, &kernarg)?;
        let packet_at = abi::packet(&mut memory, &shape, kernel, kernarg_at)?;
        let words: Vec<u32> =
            kernel.text.1.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        let wave_size = if kernel.properties >> 10 & 1 == 1 { 32 } else { 64 };
        Ok(Prepared {
            program: Program::from_words(kernel.arch, &words).for_wave_size(wave_size),
            memory,
            shape: Shape {
                grid: self.grid,
                block: self.block,
                wave_size,
                lds_bytes: fixed.saturating_add(dynamic_lds),
                scratch_bytes: kernel.private_segment.checked_next_multiple_of(4).unwrap_or(!3),
                init: abi::initial_state(kernel, kernarg_at, packet_at),
                entry_pc: kernel.entry - kernel.text.0,
                code_base,
            },
            buffers,
            source: None,
            labels: Vec::new(),
            prints: Vec::new(),
        })
    }
}

/// A number in a parameter of `size` bytes: a float where it is written as one.
fn number(n: Num, size: u32) -> Result<Vec<u8>> {
    let dtype = match (n, size) {
        (Num::Float(_), 2) => DType::F16,
        (Num::Float(_), 4) => DType::F32,
        (Num::Float(_), 8) => DType::F64,
        (Num::Float(_), _) => bail!("{n} for a parameter of {size} bytes"),
        (n, size) => {
            let bytes = n.as_int().unwrap_or_default().to_le_bytes();
            return bytes
                .get(..size as usize)
                .map(<[u8]>::to_vec)
                .ok_or_else(|| anyhow!("{n} for a parameter of {size} bytes"));
        }
    };
    let mut out = Vec::new();
    dtype.encode(n, &mut out)?;
    Ok(out)
}

/// An argument as the command line gives it: `f32[1024]=arange(1024)`, `file:x.npy`, `local:4096`, `1000`, `2.5`, `i64=-1`; before it, if
/// wanted, a name and a colon.
pub fn argument(text: &str, index: usize, global_bytes: u64) -> Result<(String, Given)> {
    let (name, spec) = match text.split_once(':') {
        Some((name, spec)) if !matches!(name.trim(), "file" | "local") && is_name(name.trim()) => {
            (name.trim().to_string(), spec.trim())
        }
        _ => (format!("arg{index}"), text.trim()),
    };
    let given = spec_value(&name, spec, global_bytes).with_context(|| format!("--arg {text}"))?;
    Ok((name, given))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn spec_value(name: &str, spec: &str, global_bytes: u64) -> Result<Given> {
    if let Some(path) = spec.strip_prefix("file:") {
        return Ok(Given::Buffer(file::npy(Path::new(path), None)?));
    }
    if let Some(size) = spec.strip_prefix("local:") {
        return Ok(Given::Local(size.trim().parse().map_err(|_| anyhow!("`{size}` is no number of bytes"))?));
    }
    let mut constants = Constants::default();
    if constants.define(&format!("value={spec}")).is_ok()
        && let Some(n) = constants.get("value")
    {
        return Ok(Given::Number(n));
    }
    let options = Options { global_bytes, ..Options::default() };
    let mut parser = HeaderParser::new(&options);
    let line = format!("{name}: {spec}");
    parser.line(&line, 0, 1).map_err(|wrong| {
        let help = wrong.help.map(|h| format!(" ({h})")).unwrap_or_default();
        anyhow!("{}{help}", wrong.message)
    })?;
    let arg = parser.finish().args.pop().ok_or_else(|| anyhow!("not an argument"))?;
    Ok(if arg.array.shape.is_empty() { Given::Bytes(arg.array.bytes) } else { Given::Buffer(arg.array) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_the_command_line() {
        let one = |text: &str| argument(text, 3, 1 << 20).unwrap();
        assert_eq!(one("1000"), ("arg3".to_string(), Given::Number(Num::Int(1000))));
        assert_eq!(one("n: -2.5"), ("n".to_string(), Given::Number(Num::Float(-2.5))));
        assert_eq!(one("local:64").1, Given::Local(64));
        assert_eq!(one("u8=7").1, Given::Bytes(vec![7]));
        let (name, given) = one("x:f32[4]=arange(4)");
        assert!(name == "x" && matches!(given, Given::Buffer(a) if a.shape == [4]));
        for bad in ["f33[4]", "file:/no/such.npy", "local:x", "f32[2]=1,2,3", ""] {
            assert!(argument(bad, 0, 1 << 20).is_err(), "{bad}");
        }
    }
}
