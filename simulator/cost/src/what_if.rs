//! `--what-if`: changed figures of the kernel and of the device.

use crate::data::{CostError, Quantity};
use crate::profile::Costs;

/// Changes of a prediction's figures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// VGPRs of the kernel.
    pub vgprs: Option<u32>,
    /// LDS of a workgroup in bytes.
    pub lds: Option<u32>,
    /// Keys of the tables with their new values.
    pub constants: Vec<(String, f64)>,
    /// Another device.
    pub device: Option<String>,
}

/// Short names of constants: of the architecture, and of the device.
const SHORT: [(&str, &str); 4] = [
    ("banks", "lds.banks"),
    ("slots", "processor.wave-slots"),
    ("clock", "chip.clock"),
    ("bandwidth", "memory.bandwidth"),
];

impl Changes {
    /// Parses `vgprs=96,lds=32k,banks=64,l2=8M`.
    ///
    /// # Errors
    /// A change is not `key=value`, or the value is not a number.
    pub fn parse(text: &str) -> Result<Changes, String> {
        let mut out = Changes::default();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("`{part}`: a change is KEY=VALUE"));
            };
            let (key, value) = (key.trim(), value.trim());
            if matches!(key, "arch" | "device") {
                out.device = Some(value.to_string());
                continue;
            }
            let number = number(value).ok_or_else(|| format!("`{value}` is not a number (96, 32k, 8M)"))?;
            match key {
                "vgprs" => out.vgprs = Some(number as u32),
                "lds" => out.lds = Some(number as u32),
                _ => {
                    let long = SHORT.iter().find(|(short, _)| *short == key).map_or(key, |(_, long)| long);
                    out.constants.push((long.to_string(), number));
                }
            }
        }
        Ok(out)
    }

    /// Applies the changes of constants.
    ///
    /// # Errors
    /// There is no such constant.
    pub fn apply(&self, costs: &mut Costs) -> Result<(), CostError> {
        for (key, value) in &self.constants {
            let quantity = find(costs, key).ok_or_else(|| {
                let advice = "`wavesim isa cost` lists those of architectures, with --device those of a device";
                CostError::Change(format!(
                    "there is no constant `{key}`: {advice}; vgprs, lds, device and names of caches (l2) also work"
                ))
            })?;
            quantity.set(*value);
        }
        Ok(())
    }
}

/// Parses a number with a suffix `k` or `M` (1024, 1024²).
fn number(text: &str) -> Option<f64> {
    let (digits, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1024.0),
        'm' | 'M' => (&text[..text.len() - 1], 1024.0 * 1024.0),
        _ => (text, 1.0),
    };
    digits.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).map(|n| n * factor)
}

/// Returns the constant with a key; the name of a cache stands for its bytes.
fn find<'a>(costs: &'a mut Costs, key: &str) -> Option<&'a mut Quantity> {
    let Costs { arch, device, model, .. } = costs;
    if let Some(at) = device.caches.iter().position(|c| c.name.eq_ignore_ascii_case(key)) {
        return Some(&mut device.caches[at].bytes);
    }
    let (table, field) = key.split_once('.')?;
    match table {
        "processor" => arch.processor.by_key_mut(field),
        "issue" => arch.issue.by_key_mut(field),
        "lds" => arch.lds.by_key_mut(field),
        "vector-memory" => arch.vector_memory.by_key_mut(field),
        "chip" => device.chip.by_key_mut(field),
        "memory" => device.memory.by_key_mut(field),
        "launch" => device.launch.by_key_mut(field),
        "range" => device.range.by_key_mut(field),
        "sample" => model.sample.by_key_mut(field),
        "bound" => model.bound.by_key_mut(field),
        "sets" => model.sets.by_key_mut(field),
        "class" => {
            let (name, field) = field.rsplit_once('.')?;
            arch.classes.iter_mut().find(|c| c.name == name)?.by_key_mut(field)
        }
        "cache" => {
            let (name, field) = field.rsplit_once('.')?;
            device.caches.iter_mut().find(|c| c.name.eq_ignore_ascii_case(name))?.by_key_mut(field)
        }
        "tlb" => {
            let (name, field) = field.rsplit_once('.')?;
            device.tlbs.iter_mut().find(|c| c.name.eq_ignore_ascii_case(name))?.by_key_mut(field)
        }
        _ => None,
    }
}
