//! The panes of the lower right part, and their number formats.

/// A pane of the lower right part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    /// VGPRs by lane.
    Vgprs,
    /// Global memory.
    Memory,
    /// LDS of the workgroup.
    Lds,
    /// Scratch of the selected lane.
    Scratch,
    /// The output of the last command.
    Output,
    /// The help on keys.
    Keys,
}

impl Pane {
    /// All panes, in the order of their tabs.
    pub const ALL: [Pane; 6] =
        [Pane::Vgprs, Pane::Memory, Pane::Lds, Pane::Scratch, Pane::Output, Pane::Keys];

    /// Returns the name on the tab.
    pub fn name(self) -> &'static str {
        match self {
            Pane::Vgprs => "VGPRs",
            Pane::Memory => "Memory",
            Pane::Lds => "LDS",
            Pane::Scratch => "Scratch",
            Pane::Output => "Output",
            Pane::Keys => "Keys",
        }
    }

    /// Returns the pane of the next tab.
    pub fn next(self) -> Pane {
        Pane::ALL[(self as usize + 1) % Pane::ALL.len()]
    }

    /// Returns the pane of the previous tab.
    pub fn previous(self) -> Pane {
        Pane::ALL[(self as usize + Pane::ALL.len() - 1) % Pane::ALL.len()]
    }
}

/// The number format of a dword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what the types are")]
pub enum Numbers {
    Hex,
    U32,
    I32,
    F32,
    F16,
}

impl Numbers {
    const ALL: [Numbers; 5] = [Numbers::Hex, Numbers::U32, Numbers::I32, Numbers::F32, Numbers::F16];

    /// Returns the name in titles.
    pub fn name(self) -> &'static str {
        match self {
            Numbers::Hex => "hex",
            Numbers::U32 => "u32",
            Numbers::I32 => "i32",
            Numbers::F32 => "f32",
            Numbers::F16 => "f16 pairs",
        }
    }

    /// Returns the next format.
    pub fn next(self) -> Numbers {
        Numbers::ALL[(self as usize + 1) % Numbers::ALL.len()]
    }

    /// Returns the maximum width of a number in columns.
    pub fn width(self) -> usize {
        match self {
            Numbers::Hex => 8,
            Numbers::U32 => 10,
            Numbers::I32 => 11,
            Numbers::F32 => 12,
            Numbers::F16 => 17,
        }
    }

    /// Formats a dword.
    pub fn show(self, bits: u32) -> String {
        match self {
            Numbers::Hex => format!("{bits:08x}"),
            Numbers::U32 => bits.to_string(),
            Numbers::I32 => (bits as i32).to_string(),
            Numbers::F32 => format_general(f32::from_bits(bits) as f64),
            Numbers::F16 => {
                let half =
                    |bits: u32| match wavesim_debug::expr::read_as(bits as u64, wavesim_array::DType::F16) {
                        wavesim_debug::expr::Value::Float(v) => v.to_f64(),
                        wavesim_debug::expr::Value::Int(v) => v as f64,
                    };
                // Eight columns hold any f16 with five digits.
                format!("{} {}", format_short(half(bits & 0xffff)), format_short(half(bits >> 16)))
            }
        }
    }
}

fn format_short(value: f64) -> String {
    let text = format_general(value);
    if text.len() <= 8 { text } else { format!("{value:.1e}") }
}

/// Formats a number with six significant digits, like `%g` in C.
pub fn format_general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return match () {
            () if value.is_nan() => "nan".to_string(),
            () if value.is_infinite() => if value > 0.0 { "inf" } else { "-inf" }.to_string(),
            () => if value.is_sign_negative() { "-0" } else { "0" }.to_string(),
        };
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..6).contains(&exponent) {
        return trimmed(&format!("{value:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_c_prints_them() {
        // The right column is the output of printf("%g").
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (100000.0, "100000"),
            (1000000.0, "1e+06"),
            (123456789.0, "1.23457e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (999999.5, "1e+06"),
            (3.4028235e38, "3.40282e+38"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(format_general(value), text, "{value:?}");
        }
        for numbers in Numbers::ALL {
            for bits in [0, 1, 0xffff_ffff, 0x8000_0000, 0xff7f_ffff, 0x8000_0001, 0xfbff_83ff] {
                assert!(numbers.show(bits).len() <= numbers.width(), "{}", numbers.show(bits));
            }
        }
    }
}
