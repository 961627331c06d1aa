//! `print t# s[0:7]`: descriptors in SGPRs, with the fields of the pseudocode's records.

use super::{CommandResult, Debugger};
use crate::expr;
use isa_spec::arith::{block_format, buffer_format};
use std::fmt::Write;
use wavesim_machine::exec::image::{self, Dimension, Place};
use wavesim_machine::exec::record::{self, Layout};

/// The names of descriptors in AMD's manuals, and their records.
const KINDS: [(&str, &str); 4] =
    [("t#", "ImageDescriptor"), ("s#", "Sampler"), ("v#", "BufferDescriptor"), ("bvh#", "BvhDescriptor")];

impl Debugger<'_> {
    /// Prints a descriptor if `what` is one: its kind and its registers. Returns whether it is.
    pub(super) fn print_descriptor(&self, what: &str, out: &mut String) -> Result<bool, String> {
        let Some((kind, registers)) = what.split_once(char::is_whitespace) else { return Ok(false) };
        let kind = kind.to_ascii_lowercase();
        let Some((_, name)) = KINDS.iter().find(|(own, _)| *own == kind) else { return Ok(false) };
        let layout = record::layout(self.arch(), name)
            .ok_or_else(|| format!("{} has no {kind}", self.arch().name()))?;
        self.show_fields(layout, &kind, registers.trim(), out)?;
        Ok(true)
    }

    /// Prints a texel if `what` is `texel(s[0:7], x, …)`: the components of a load, and what is in memory. Returns whether
    /// it is.
    pub(super) fn print_texel(&self, what: &str, out: &mut String) -> Result<bool, String> {
        let inner = what.strip_prefix("texel(").and_then(|rest| rest.strip_suffix(')'));
        let Some(inner) = inner else { return Ok(false) };
        let mut parts = inner.split(',').map(str::trim);
        let words = self.scalars(parts.next().unwrap_or_default(), 8)?;
        let (image, base) = image::described(&words, self.arch()).map_err(|e| e.to_string())?;
        let evaluated = parts.map(|text| self.coordinate(text)).collect::<Result<Vec<u32>, String>>()?;
        let (size, layers, samples) = (image.size, image.layers, image.samples);
        let (bounds, names): (&[u32], _) = match image.dimension {
            Dimension::D2 if samples > 1 => (&[size[0], size[1], samples], "x, y, sample"),
            Dimension::D2Array if samples > 1 => {
                (&[size[0], size[1], layers, samples], "x, y, layer, sample")
            }
            Dimension::D1 => (&[size[0]], "x"),
            Dimension::D2 => (&[size[0], size[1]], "x, y"),
            Dimension::D3 => (&[size[0], size[1], size[2]], "x, y, z"),
            Dimension::Cube => (&[size[0], size[1], layers], "x, y, face"),
            Dimension::D1Array => (&[size[0], layers], "x, layer"),
            Dimension::D2Array => (&[size[0], size[1], layers], "x, y, layer"),
        };
        if evaluated.len() != bounds.len() {
            return Err(format!("expected texel(s[0:7], {names}), of level 0"));
        }
        if let Some((at, _)) = evaluated.iter().zip(bounds).find(|(at, most)| at >= most) {
            return Err(format!("{at} is outside of the image: {names} of {bounds:?} texels"));
        }
        let at = |k: usize| evaluated.get(k).copied().unwrap_or(0) as u64;
        let (y, layer, sample) = match image.dimension {
            Dimension::D1Array => (0, at(1), 0),
            Dimension::D2 if samples > 1 => (at(1), 0, at(2)),
            _ => (at(1), at(2), at(3)),
        };
        let (block, bytes) = (image.block() as u64, image.element_bytes() as u64);
        let layout = image.layout(self.arch()).map_err(|e| e.to_string())?;
        let place = Place { level: 0, x: at(0) as u32, y: y as u32, z: layer as u32, sample: sample as u32 };
        let address = base + layout.offset(place);
        let mut element = [0; 16];
        expr::Space::Global.read(&self.timeline, self.focus, address, &mut element[..bytes as usize])?;
        let stored = u128::from_le_bytes(element);
        let raw = match block {
            1 => stored,
            _ => block_format::block_texel(image.format, stored, (at(0) % block) as u32, (y % block) as u32),
        };
        let format = block_format::block_format(image.format);
        let is_integer = buffer_format::from_format(format, 0, 4) == 1;
        let component = |from: u8| {
            let word = match from {
                image::ZERO => 0,
                image::ONE => buffer_format::from_format(format, 0, 4),
                component => buffer_format::from_format(format, raw, component as u32),
            };
            if is_integer { format!("{}", word as i32) } else { format!("{}", f32::from_bits(word)) }
        };
        let components = image.swizzle.map(component).join(", ");
        let name = buffer_format::by_number(image.format).map(|format| format.name);
        let name = name.or(block_format::name(image.format)).unwrap_or("not supported");
        let hex: String = element[..bytes as usize].iter().rev().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(out, "{what} = [{components}]  ({name} 0x{hex} at 0x{address:x})");
        Ok(true)
    }

    /// The value of a coordinate, an expression.
    fn coordinate(&self, text: &str) -> Result<u32, String> {
        match expr::evaluate(text, &self.timeline, self.focus)? {
            expr::Value::Int(value) => {
                u32::try_from(value).map_err(|_| format!("{value} is not a coordinate"))
            }
            _ => Err(format!("`{text}` is not an integer")),
        }
    }

    fn show_fields(&self, layout: &Layout, kind: &str, registers: &str, out: &mut String) -> CommandResult {
        let words = self.scalars(registers, layout.dwords())?;
        let _ = writeln!(out, "{kind} {registers} ({})", layout.name);
        let width = layout.fields.iter().map(|field| field.names[0].len()).max().unwrap_or(0);
        for field in &layout.fields {
            let value = layout.get(field, &words);
            let name = &field.names[0];
            let note = note(&layout.name, name, value);
            let hex = if value > 9 { format!(" (0x{value:x})") } else { String::new() };
            let line = format!("  {name:width$}  {value}{hex}{note}");
            let _ = writeln!(out, "{}", line.trim_end());
        }
        Ok(())
    }

    /// The values of SGPRs, given as `s[8:15]` or by the first one, `s8`.
    fn scalars(&self, registers: &str, most: usize) -> Result<Vec<u32>, String> {
        let wrong = || format!("expected scalar registers, such as s[0:{}], not `{registers}`", most - 1);
        let rest = registers.strip_prefix('s').ok_or_else(wrong)?;
        let (first, count) = match rest.strip_prefix('[').and_then(|range| range.strip_suffix(']')) {
            Some(range) => {
                let (first, last) = range.split_once(':').ok_or_else(wrong)?;
                let parse = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
                let (first, last) = (parse(first)?, parse(last)?);
                (first, (last + 1).checked_sub(first).ok_or_else(wrong)?)
            }
            None => (rest.parse().map_err(|_| wrong())?, most),
        };
        // Image descriptors may have only their first half.
        if count > most || count < 4.min(most) {
            return Err(format!("a descriptor of {most} registers, not {count}"));
        }
        let wave = self.timeline.wave(self.focus.wave);
        (first..first + count).map(|at| wave.sgprs.get(at).copied().ok_or_else(wrong)).collect()
    }
}

/// What the value of a field stands for.
fn note(record: &str, field: &str, value: u64) -> String {
    let one_of = |names: &[&str]| names.get(value as usize).copied().unwrap_or("reserved").to_string();
    let text = match (record, field) {
        ("ImageDescriptor", "base") | ("BvhDescriptor", "base") => format!("address 0x{:x}", value << 8),
        ("ImageDescriptor", "width" | "height") => format!("{} texels", value + 1),
        ("ImageDescriptor", "max_mip") => format!("{} levels", value + 1),
        ("ImageDescriptor", "format") => {
            let texel = buffer_format::by_number(value as u32).map(|format| format.name);
            texel.or(block_format::name(value as u32)).unwrap_or("not supported").to_string()
        }
        ("ImageDescriptor", "type") => match value {
            8..=15 => ["1d", "2d", "3d", "cube", "1d array", "2d array", "2d msaa", "2d msaa array"]
                [value as usize - 8]
                .to_string(),
            0 => "buffer".to_string(),
            _ => "reserved".to_string(),
        },
        (_, "dst_sel_x" | "dst_sel_y" | "dst_sel_z" | "dst_sel_w") => {
            one_of(&["0", "1", "reserved", "reserved", "R", "G", "B", "A"])
        }
        ("ImageDescriptor", "sw_mode") if value == 0 => "linear".to_string(),
        ("Sampler", "clamp_x" | "clamp_y" | "clamp_z") => one_of(&[
            "wrap",
            "mirror",
            "clamp to the last texel",
            "mirror once, then the last texel",
            "clamp to half of the border",
            "mirror once, then half of the border",
            "border",
            "mirror once, then the border",
        ]),
        ("Sampler", "xy_mag_filter" | "xy_min_filter") => {
            one_of(&["point", "bilinear", "anisotropic point", "anisotropic linear"])
        }
        ("Sampler", "z_filter" | "mip_filter") => one_of(&["none", "point", "linear"]),
        ("Sampler", "filter_mode") => one_of(&["blend", "minimum", "maximum"]),
        ("Sampler", "min_lod" | "max_lod") => format!("{}", value as f32 / 256.0),
        ("Sampler", "depth_compare_func") => one_of(&[
            "never",
            "less",
            "equal",
            "less or equal",
            "greater",
            "not equal",
            "greater or equal",
            "always",
        ]),
        ("Sampler", "border_color_type") => {
            one_of(&["transparent black", "opaque black", "opaque white", "register"])
        }
        _ => return String::new(),
    };
    format!("  {text}")
}
