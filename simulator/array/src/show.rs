//! Formats arrays as NumPy does: aligned columns, floats with the fewest digits that identify them (at most 8
//! after the point), and arrays of more than 1000 elements shortened to three entries at either end of each
//! axis.

use super::{Array, DType, Num};
use std::fmt::Write as _;

/// Larger arrays are shortened (NumPy's `threshold`).
const THRESHOLD: usize = 1000;
/// Entries that remain at either end of a shortened axis (NumPy's `edgeitems`).
const EDGE: usize = 3;
/// Columns in a line (NumPy's `linewidth`).
const WIDTH: usize = 75;
/// Maximum number of digits after the point (NumPy's `precision`).
const PRECISION: usize = 8;

/// Formats an array. `full` shows every element.
pub fn show(array: &Array, full: bool) -> String {
    if array.is_empty() {
        return "[]".to_string();
    }
    let elide = !full && array.len() > THRESHOLD;
    let shape: Vec<usize> = array.shape.iter().map(|&d| d as usize).collect();
    let mut shown = Vec::new();
    for_each_visible(&shape, 0, elide, &mut |at| shown.push(at));
    let values: Vec<Num> = shown.iter().filter_map(|&at| array.get(at)).collect();
    let texts = if array.dtype.is_float() { floats(array.dtype, &values) } else { integers(&values) };
    if shape.is_empty() {
        return scalar(array.dtype, values.first().copied());
    }
    let mut next = texts.into_iter();
    let mut printer = Printer { shape: &shape, elide, next: &mut next };
    printer.axis(0)
}

/// Formats the bits of `dwords` registers as a number of the given type, or in hexadecimal. An f32 has the
/// fewest digits that identify it.
pub fn bits(bits: u64, dtype: Option<DType>, dwords: u16) -> String {
    let Some(dtype) = dtype else {
        return format!("0x{bits:0width$x}", width = 8 * dwords.clamp(1, 2) as usize);
    };
    match dtype.decode(&bits.to_le_bytes()[..dtype.size()]) {
        Num::Float(v) if dtype == DType::F32 => format!("{:?}", v as f32),
        value => value.to_string(),
    }
}

/// Formats values by lane, as many per line as fit; values of inactive lanes are in parentheses.
pub fn lanes(list: &[(u32, String)], exec: u64) -> String {
    let cells: Vec<String> = list
        .iter()
        .map(|(l, v)| if exec >> l & 1 == 1 { format!(" {v} ") } else { format!("({v})") })
        .collect();
    let width = cells.iter().map(String::len).max().unwrap_or(1);
    let columns = [16, 8, 4, 2].into_iter().find(|c| c * (width + 1) <= 72).unwrap_or(1);
    let mut out = String::new();
    for (row, cells) in cells.chunks(columns).enumerate() {
        let first = list[row * columns].0;
        let _ = write!(out, "  {first:>2}:");
        for cell in cells {
            let _ = write!(out, " {cell:>width$}");
        }
        let end = out.trim_end().len();
        out.truncate(end);
        out.push('\n');
    }
    out
}

/// Calls `out` with the row-major index of each visible element.
fn for_each_visible(shape: &[usize], base: usize, elide: bool, out: &mut impl FnMut(usize)) {
    let Some((&len, rest)) = shape.split_first() else {
        return out(base);
    };
    for at in visible_entries(len, elide).into_iter().flatten() {
        for_each_visible(rest, base * len + at, elide, out);
    }
}

/// The visible entries of an axis; `None` is the ellipsis.
fn visible_entries(len: usize, elide: bool) -> Vec<Option<usize>> {
    if !elide || len <= 2 * EDGE {
        return (0..len).map(Some).collect();
    }
    (0..EDGE).map(Some).chain([None]).chain((len - EDGE..len).map(Some)).collect()
}

struct Printer<'a> {
    shape: &'a [usize],
    elide: bool,
    next: &'a mut dyn Iterator<Item = String>,
}

impl Printer<'_> {
    /// Formats one axis in brackets, indented by `axis + 1` columns.
    fn axis(&mut self, axis: usize) -> String {
        let Some(&len) = self.shape.get(axis) else { return String::new() };
        let entries = visible_entries(len, self.elide);
        let indent = " ".repeat(axis + 1);
        if axis + 1 == self.shape.len() {
            return self.row(&entries, &indent, WIDTH - WIDTH.min(axis + 1));
        }
        // One line break between rows, and one more for each inner axis.
        let gap = "\n".repeat(self.shape.len() - axis - 1) + &indent;
        let parts: Vec<String> = entries
            .iter()
            .map(|entry| match entry {
                Some(_) => self.axis(axis + 1),
                None => "...".to_string(),
            })
            .collect();
        format!("[{}]", parts.join(&gap))
    }

    /// Formats the innermost axis, wrapped at `room` columns.
    fn row(&mut self, entries: &[Option<usize>], indent: &str, room: usize) -> String {
        let (mut text, mut line) = (String::new(), indent.to_string());
        for (at, entry) in entries.iter().enumerate() {
            let word = match entry {
                Some(_) => self.next.next().unwrap_or_default(),
                None => "...".to_string(),
            };
            if line.len() > indent.len() && line.len() + word.len() > room {
                text += line.trim_end();
                text += "\n";
                line = indent.to_string();
            }
            line += &word;
            if at + 1 < entries.len() {
                line.push(' ');
            }
        }
        text += &line;
        format!("[{}]", &text[indent.len()..])
    }
}

/// Formats a scalar as Python does.
fn scalar(dtype: DType, value: Option<Num>) -> String {
    match value {
        Some(Num::Float(v)) if v.is_finite() => {
            if v == 0.0 || (1e-4..1e16).contains(&v.abs()) {
                let text = positional(dtype, v);
                return if text.contains('.') { text } else { text + ".0" };
            }
            let (digits, exponent) = scientific(dtype, v);
            let digits = digits.strip_suffix('.').unwrap_or(&digits);
            format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        Some(Num::Float(v)) => special(v).to_string(),
        Some(v) => v.to_string(),
        None => String::new(),
    }
}

/// Formats integers, right-aligned.
fn integers(values: &[Num]) -> Vec<String> {
    let texts: Vec<String> = values.iter().map(Num::to_string).collect();
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    texts.into_iter().map(|t| format!("{t:>width$}")).collect()
}

/// Formats floats aligned at the point; all in scientific notation if any of them requires it.
fn floats(dtype: DType, values: &[Num]) -> Vec<String> {
    let values: Vec<f64> = values.iter().map(|n| n.as_f64()).collect();
    let sizes = || values.iter().map(|v| v.abs()).filter(|v| v.is_finite() && *v != 0.0);
    let (low, high) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let long = sizes().next().is_some() && (high >= 1e8 || low < 1e-4 || high / low > 1000.0);
    let texts = if long { format_scientific(dtype, &values) } else { format_positional(dtype, &values) };
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    texts.into_iter().map(|t| format!("{t:>width$}")).collect()
}

fn format_scientific(dtype: DType, values: &[f64]) -> Vec<String> {
    let parts: Vec<Option<(String, i32)>> =
        values.iter().map(|v| v.is_finite().then(|| scientific(dtype, *v))).collect();
    // The number of digits after the point.
    let fraction = |digits: &str| digits.len() - digits.find('.').map_or(digits.len(), |at| at + 1);
    let longest = parts.iter().flatten().map(|(digits, _)| fraction(digits)).max().unwrap_or(0);
    let exponent_digits =
        parts.iter().flatten().map(|(_, e)| e.unsigned_abs().to_string().len()).max().unwrap_or(0).max(2);
    parts
        .into_iter()
        .zip(values)
        .map(|(part, v)| match part {
            Some((digits, e)) => {
                let zeros = "0".repeat(longest - fraction(&digits));
                format!("{digits}{zeros}e{}{:0exponent_digits$}", if e < 0 { '-' } else { '+' }, e.abs())
            }
            None => special(*v).to_string(),
        })
        .collect()
}

fn format_positional(dtype: DType, values: &[f64]) -> Vec<String> {
    let texts: Vec<Option<String>> =
        values.iter().map(|v| v.is_finite().then(|| positional(dtype, *v))).collect();
    let fraction = |t: &str| t.len() - t.find('.').map_or(t.len(), |at| at + 1);
    let longest = texts.iter().flatten().map(|t| fraction(t)).max();
    texts
        .into_iter()
        .zip(values)
        .map(|(text, v)| match (text, longest) {
            (Some(text), Some(longest)) => {
                let point = if text.contains('.') { "" } else { "." };
                format!("{text}{point}{}", " ".repeat(longest - fraction(&text)))
            }
            _ => special(*v).to_string(),
        })
        .collect()
}

fn special(v: f64) -> &'static str {
    match v {
        f64::INFINITY => "inf",
        f64::NEG_INFINITY => "-inf",
        _ => "nan",
    }
}

/// The significand, always with a point, and the exponent: `1.5` and -3. Has the fewest digits that
/// round-trip in the type, at most [`PRECISION`] after the point.
fn scientific(dtype: DType, v: f64) -> (String, i32) {
    let mut text = shortest(dtype, v);
    let digits = |t: &str| t.split('e').next().unwrap_or_default().trim_start_matches('-').len();
    if digits(&text) > PRECISION + 2 {
        text = format!("{v:.PRECISION$e}");
    }
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let trimmed = if digits.contains('.') { digits.trim_end_matches('0') } else { digits };
    let point = if trimmed.contains('.') { "" } else { "." };
    (format!("{trimmed}{point}"), exponent.parse().unwrap_or(0))
}

/// Formats without exponent, and without a point if the value is an integer.
fn positional(dtype: DType, v: f64) -> String {
    let text = match dtype {
        DType::F32 => (v as f32).to_string(),
        DType::F64 => v.to_string(),
        // Such a short decimal is printed unchanged as f64.
        _ => shortest(dtype, v).parse().unwrap_or(v).to_string(),
    };
    let fraction = text.len() - text.find('.').map_or(text.len(), |at| at + 1);
    if fraction <= PRECISION {
        return text;
    }
    let cut = format!("{v:.PRECISION$}");
    cut.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The fewest digits that round-trip in the type, in the format of Rust's `{:e}`.
fn shortest(dtype: DType, v: f64) -> String {
    match dtype {
        DType::F32 => format!("{:e}", v as f32),
        DType::F64 => format!("{v:e}"),
        _ => (0..=5)
            .map(|digits| format!("{v:.digits$e}"))
            .find(|text| {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                let back = text.parse().map_or(Num::Int(0), Num::Float);
                dtype.encode(back, &mut a).is_ok() && dtype.encode(Num::Float(v), &mut b).is_ok() && a == b
            })
            .unwrap_or_else(|| format!("{v:e}")),
    }
}
