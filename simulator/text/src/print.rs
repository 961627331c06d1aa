//! `print [wave=<id>,] [thread=<id>|thread=all,] <arg>[, <arg>...]`: registers to print when execution
//! reaches the line. An argument is `s[n]`, `s[lo:hi]`, `v[n]`, `v[lo:hi]` (also `sN`, `vN`), `exec`, `vcc`,
//! `scc` or `m0`, with an optional element type after a colon: `v3:f32`.

use super::constant::TextError;
use std::ops::Range;
use wavesim_array::DType;

/// A directive at its position: it runs before the instruction at `pc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Print {
    /// Byte offset of the next instruction.
    pub pc: u64,
    /// A label separates the directive from the instruction, so branches to the label skip the directive.
    pub above_label: bool,
    /// Line number, from 1.
    pub line: u32,
    /// Index of the wave in its workgroup; `None` for all.
    pub wave: Option<u32>,
    /// Index of the work-item in its workgroup (x fastest); `None` for all.
    pub thread: Option<u32>,
    /// The registers to print in source order.
    pub args: Vec<PrintArg>,
}

/// A register to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintArg {
    /// The spelling in the source, without the type.
    pub text: String,
    /// The registers.
    pub register: PrintRegister,
    /// The element type; `None` selects the register's default.
    pub dtype: Option<DType>,
}

/// Registers that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintRegister {
    /// SGPRs: first and count.
    Sgpr(u16, u16),
    /// VGPRs: first and count.
    Vgpr(u16, u16),
    /// EXEC.
    Exec,
    /// VCC.
    Vcc,
    /// SCC.
    Scc,
    /// M0.
    M0,
}

/// The numbers of SGPRs and VGPRs that can be named.
const SGPRS: u16 = wavesim_isa::operand::VCC_LO as u16;
const VGPRS: u16 = 256;

/// Returns whether a line's text is a `print` directive.
pub fn is_print(text: &str) -> bool {
    text.strip_prefix("print").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// Parses a directive; `text` (without comment) starts at byte `base` of the file.
pub fn parse(text: &str, base: usize, line: u32) -> Result<Print, TextError> {
    let mut print = Print { pc: 0, above_label: false, line, wave: None, thread: None, args: Vec::new() };
    let list = &text["print".len()..];
    let mut at = base + text.len() - list.len();
    for piece in list.split(',') {
        let trimmed = piece.trim();
        let start = at + (piece.len() - piece.trim_start().len());
        let span = start..start + trimmed.len();
        at += piece.len() + 1;
        if let Some((key, value)) = trimmed.split_once('=') {
            let number = value.trim().parse::<u32>().ok();
            match (key.trim(), number, value.trim()) {
                _ if !print.args.is_empty() => {
                    return Err(TextError::new(span, "`wave=` and `thread=` come before the registers"));
                }
                ("wave", Some(n), _) => print.wave = Some(n),
                ("wave", None, "all") => print.wave = None,
                ("thread", Some(n), _) => print.thread = Some(n),
                ("thread", None, "all") => print.thread = None,
                ("wave" | "thread", ..) => {
                    return Err(TextError::new(span, format!("`{}` is not a number", value.trim())));
                }
                (other, ..) => {
                    return Err(TextError::new(
                        span,
                        format!("print takes `wave=` and `thread=`, not `{other}=`"),
                    ));
                }
            }
            continue;
        }
        print.args.push(argument(trimmed, span)?);
    }
    Ok(print)
}

fn argument(text: &str, span: Range<usize>) -> Result<PrintArg, TextError> {
    // The colon of a range is inside brackets.
    let bracket = text.find(']').unwrap_or(0);
    let (name, dtype) = match text[bracket..].find(':') {
        Some(colon) => {
            let (name, dtype) = text.split_at(bracket + colon);
            let dtype = dtype[1..].trim();
            let found = DType::from_name(dtype).ok_or_else(|| {
                TextError::new(span.clone(), format!("unknown type `{dtype}`"))
                    .help(format!("the types are {}", DType::names()))
            })?;
            (name.trim(), Some(found))
        }
        None => (text, None),
    };
    let register = register(name).ok_or_else(|| {
        let message = match name {
            "" => "a register is missing".to_string(),
            _ => format!("`{name}` cannot be printed"),
        };
        TextError::new(span, message)
            .help("print takes s[n], s[lo:hi], v[n], v[lo:hi], exec, vcc, scc and m0")
    })?;
    Ok(PrintArg { text: name.to_string(), register, dtype })
}

fn register(name: &str) -> Option<PrintRegister> {
    match name {
        "exec" => return Some(PrintRegister::Exec),
        "vcc" => return Some(PrintRegister::Vcc),
        "scc" => return Some(PrintRegister::Scc),
        "m0" => return Some(PrintRegister::M0),
        _ => {}
    }
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse::<u16>().ok().filter(|_| plain)
    };
    let (kind, rest) = (name.chars().next()?, name.get(1..)?.trim());
    let (low, high) = match rest.strip_prefix('[') {
        Some(inner) => {
            let inner = inner.strip_suffix(']')?;
            let (low, high) = inner.split_once(':').unwrap_or((inner, inner));
            (number(low.trim())?, number(high.trim())?)
        }
        None => (number(rest)?, number(rest)?),
    };
    let limit = if kind == 's' { SGPRS } else { VGPRS };
    if low > high || high >= limit {
        return None;
    }
    match kind {
        's' => Some(PrintRegister::Sgpr(low, high - low + 1)),
        'v' => Some(PrintRegister::Vgpr(low, high - low + 1)),
        _ => None,
    }
}
