//! The text of instructions.

use crate::a64::encode::bit_mask;
use crate::a64::rows::{FIELDS, POSITIONS, Row};

/// Returns the bits of a field by its name in text.
fn field(name: &str) -> u32 {
    if let Some((_, bits)) = FIELDS.iter().find(|(field, _)| *field == name) {
        return *bits;
    }
    let Some((kind, position)) = register(name) else { return 0 };
    31 << position | if matches!(kind, "r" | "s") { 1 << 31 } else { 0 }
}

/// Returns the kind and the position of a register by its name in text.
fn register(name: &str) -> Option<(&str, u32)> {
    let letter = name.chars().next_back()?;
    let (_, position) = POSITIONS.iter().find(|(of, _)| *of == letter)?;
    Some((&name[..name.len() - 1], *position))
}

/// Calls `visit` with the parts of a text: what is printed as it is, and the names of fields.
fn parts<'a>(text: &'a str, mut visit: impl FnMut(&'a str, Option<&'a str>)) {
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        // A brace of the text itself is followed by a space.
        let end = match rest[start..].starts_with("{ ") {
            true => None,
            false => rest[start..].find('}').map(|end| start + end),
        };
        match end {
            Some(end) => {
                visit(&rest[..start], Some(&rest[start + 1..end]));
                rest = &rest[end + 1..];
            }
            None => {
                visit(&rest[..=start], None);
                rest = &rest[start + 1..];
            }
        }
    }
    visit(rest, None);
}

/// Returns the bits of an instruction that its operands are in.
pub(crate) fn operand_bits(row: Row) -> u32 {
    let mut bits = 0;
    parts(row.text(), |_, name| bits |= name.map_or(0, field));
    bits
}

/// Returns the text of an instruction. Jumps are shown with their distance in bytes.
pub(crate) fn text(word: u32) -> String {
    let same_sources = word >> 5 & 31 == word >> 16 & 31;
    let found = Row::ALL.iter().find(|row| {
        word & !operand_bits(**row) == row.word() && (same_sources || !row.text().contains("{nm}"))
    });
    let Some(row) = found else { return format!(".inst {word:#010x}") };
    let mut out = String::new();
    parts(row.text(), |plain, name| {
        out.push_str(plain);
        if let Some(name) = name {
            out.push_str(&operand(name, word));
        }
    });
    out
}

fn operand(name: &str, word: u32) -> String {
    let bits = FIELDS.iter().find(|(of, _)| *of == name).map(|(_, bits)| *bits);
    let Some(bits) = bits else { return register_text(name, word) };
    let value = if bits == 0 { 0 } else { (word & bits) >> bits.trailing_zeros() };
    let signed = |width: u32| i64::from((value << (32 - width)) as i32 >> (32 - width));
    let target = |width: u32| format!("#{}", 4 * signed(width));
    match name {
        "lsl12" => if value == 1 { ", lsl #12" } else { "" }.into(),
        "hw" => format!(", lsl #{}", 16 * value),
        "N" => String::new(),
        "c" | "c0" => {
            let names = [
                "eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al",
                "nv",
            ];
            names[value as usize].into()
        }
        "o1" | "o2" | "o4" | "o8" | "o16" => (value * name[1..].parse::<u32>().unwrap_or(1)).to_string(),
        "i9" => signed(9).to_string(),
        "i7x8" => (8 * signed(7)).to_string(),
        "i7x16" => (16 * signed(7)).to_string(),
        "rel19" => target(19),
        "rel26" => target(26),
        "rel21" => format!("#{}", i64::from((word >> 5 << 13) as i32 >> 11) | i64::from(word >> 29 & 3)),
        "u8" => (word >> 5 & 31 | (word >> 16 & 7) << 5).to_string(),
        "bytes" => {
            let value = word >> 5 & 31 | (word >> 16 & 7) << 5;
            let bytes = (0..8).map(|k| if value >> k & 1 == 1 { 0xff << (8 * k) } else { 0u64 });
            format!("{:#x}", bytes.fold(0, |all, byte| all | byte))
        }
        "bits" => bit_mask_text(word),
        "r32" => (32 - value).to_string(),
        "r64" => (64 - value).to_string(),
        "n1" => (((word >> 5) + 1) & 31).to_string(),
        "nm" => (value & 31).to_string(),
        _ => value.to_string(),
    }
}

/// Returns the text of the mask of a logical operation.
fn bit_mask_text(word: u32) -> String {
    let (n, rotation, imms) = (word >> 22 & 1, word >> 16 & 63, word >> 10 & 63);
    let length = 31 - (n << 6 | !imms & 63).leading_zeros().min(31);
    let size = 1 << length;
    let (ones, rotation) = ((imms & (size - 1)) + 1, rotation & (size - 1));
    let run = u64::MAX >> (64 - ones);
    let all = u64::MAX >> (64 - size);
    let element = (run >> rotation | run.checked_shl(size - rotation).unwrap_or(0)) & all;
    let mut mask = element;
    let mut filled = size;
    while filled < 64 {
        mask |= mask << filled;
        filled *= 2;
    }
    format!("{:#x}", if word >> 31 == 1 { mask } else { mask & 0xffff_ffff })
}

fn register_text(name: &str, word: u32) -> String {
    let Some((kind, position)) = register(name) else { return format!("{{{name}}}") };
    let number = word >> position & 31;
    let wide = word >> 31 == 1;
    let (prefix, last) = match kind {
        "w" => ("w", "wzr"),
        "x" => ("x", "xzr"),
        "b" => ("x", "sp"),
        "r" => {
            if wide {
                ("x", "xzr")
            } else {
                ("w", "wzr")
            }
        }
        "s" => {
            if wide {
                ("x", "sp")
            } else {
                ("w", "wsp")
            }
        }
        _ => return number.to_string(),
    };
    if number == 31 { last.into() } else { format!("{prefix}{number}") }
}

/// Returns an instance of every instruction, with operands from random bits: the words and their text, for a comparison
/// with another assembler.
#[doc(hidden)]
pub fn a64_samples(mut random: impl FnMut() -> u32) -> Vec<(u32, String)> {
    let mut sample = |row: &Row| {
        let has = |name: &str| row.text().contains(&format!("{{{name}}}"));
        let mut word = row.word() | random() & operand_bits(*row);
        let wide = word >> 31 == 1;
        if has("N") {
            word = word & !(1 << 22) | u32::from(wide) << 22;
        }
        // Words have fewer bits.
        if !wide && has("immr") {
            word &= !(1 << 21 | 1 << 15);
        }
        if !wide && has("hw") {
            word &= !(1 << 22);
        }
        if has("bits") {
            let run = (u64::MAX >> (1 + random() % 30)).rotate_left(random());
            let mask = bit_mask(run, wide).or(bit_mask(0xff, wide)).unwrap_or(0);
            word = word & !(0x1fff << 10) | mask;
        }
        if has("nm") {
            word = word & !(31 << 16) | (word >> 5 & 31) << 16;
        }
        // The registers of a pair differ.
        if (has("a") || has("xa")) && word & 31 == word >> 10 & 31 {
            word ^= 1;
        }
        (word, text(word))
    };
    Row::ALL.iter().map(&mut sample).collect()
}
