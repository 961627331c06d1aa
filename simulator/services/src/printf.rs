//! C's `printf` for arguments that a kernel has sent as 64-bit words.

use std::ffi::{CString, c_char, c_int};

/// Maximum width and precision of a conversion, which bounds its output.
const MAX_FIELD: u64 = 4096;

/// Maximum number of bytes that are collected before they are passed on. A short message can have a long output,
/// because each conversion can be as wide as [`MAX_FIELD`].
const MAX_COLLECTED: usize = 1 << 16;

/// Formats a message and passes the text to `sink`, in one or several parts. Returns the length of the text in
/// bytes.
///
/// The message consists of the format string, NUL-terminated and padded to whole words, followed by the
/// arguments; string arguments are encoded like the format string.
pub fn format(words: &[u64], sink: &mut dyn FnMut(&[u8])) -> u64 {
    let mut arguments = Arguments { words };
    let format = arguments.string();
    let (mut out, mut len) = (Vec::new(), 0);
    let mut pass_on = |out: &mut Vec<u8>| {
        sink(out);
        len += out.len() as u64;
        out.clear();
    };
    let mut rest = &format[..];
    while let Some(at) = rest.iter().position(|&c| c == b'%') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let Some(spec) = Spec::parse(rest, &mut arguments) else {
            break;
        };
        rest = &rest[spec.len..];
        spec.print(&mut arguments, &mut out);
        if out.len() >= MAX_COLLECTED {
            pass_on(&mut out);
        }
    }
    out.extend_from_slice(rest);
    pass_on(&mut out);
    len
}

/// The words that have not been consumed yet.
struct Arguments<'a> {
    words: &'a [u64],
}

impl Arguments<'_> {
    /// Consumes the next word. Returns 0 after the last one, because a kernel may pass too few arguments.
    fn word(&mut self) -> u64 {
        let Some((&first, rest)) = self.words.split_first() else { return 0 };
        self.words = rest;
        first
    }

    /// Consumes the words of a string.
    fn string(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some((&word, rest)) = self.words.split_first() {
            self.words = rest;
            let bytes = word.to_le_bytes();
            match bytes.iter().position(|&b| b == 0) {
                Some(end) => {
                    out.extend_from_slice(&bytes[..end]);
                    break;
                }
                None => out.extend(bytes),
            }
        }
        out
    }
}

/// A conversion specification, such as `%-8.3lf`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spec {
    /// Length in the format string in bytes.
    len: usize,
    flags: String,
    width: Option<u64>,
    precision: Option<u64>,
    /// Width of an integer argument in bits.
    bits: u32,
    conversion: u8,
}

impl Spec {
    /// Parses a conversion at the start of `text`; `*` consumes an argument.
    fn parse(text: &[u8], arguments: &mut Arguments<'_>) -> Option<Spec> {
        let mut at = 1;
        let mut flags = String::new();
        while let Some(&c) = text.get(at).filter(|c| b"-+ #0".contains(c)) {
            if !flags.contains(c as char) {
                flags.push(c as char);
            }
            at += 1;
        }
        let mut number = |at: &mut usize| {
            if text.get(*at) == Some(&b'*') {
                *at += 1;
                return Some(arguments.word() as i32 as i64);
            }
            let digits = text[*at..].iter().take_while(|c| c.is_ascii_digit()).count();
            let value = std::str::from_utf8(&text[*at..*at + digits]).ok()?.parse().ok();
            *at += digits;
            value
        };
        let width = number(&mut at);
        if width.is_some_and(|w| w < 0) && !flags.contains('-') {
            flags.push('-');
        }
        let precision = match text.get(at) {
            Some(b'.') => {
                at += 1;
                Some(number(&mut at).unwrap_or(0))
            }
            _ => None,
        };
        let modifiers = text[at..].iter().take_while(|c| b"hljztLq".contains(c)).count();
        let bits = match &text[at..at + modifiers] {
            b"hh" => 8,
            b"h" => 16,
            b"" => 32,
            _ => 64,
        };
        at += modifiers;
        let conversion = *text.get(at)?;
        Some(Spec {
            len: at + 1,
            flags,
            width: width.map(|w| w.unsigned_abs().min(MAX_FIELD)),
            precision: precision.and_then(|p| u64::try_from(p).ok()).map(|p| p.min(MAX_FIELD)),
            bits,
            conversion,
        })
    }

    fn print(&self, arguments: &mut Arguments<'_>, out: &mut Vec<u8>) {
        match self.conversion {
            b'%' => out.push(b'%'),
            b's' => {
                let mut text = arguments.string();
                text.truncate(self.precision.map_or(text.len(), |p| p as usize));
                self.pad(text, out);
            }
            b'c' => self.pad(vec![arguments.word() as u8], out),
            b'd' | b'i' => {
                let unused = 64 - self.bits;
                let value = (arguments.word() << unused) as i64 >> unused;
                self.convert("ll", Value::Integer(value as u64), out);
            }
            b'u' | b'o' | b'x' | b'X' => {
                let unused = 64 - self.bits;
                self.convert("ll", Value::Integer(arguments.word() << unused >> unused), out);
            }
            b'p' => self.convert("", Value::Integer(arguments.word()), out),
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                self.convert("", Value::Float(f64::from_bits(arguments.word())), out);
            }
            // `%n` would write to memory, so its argument is skipped.
            b'n' => {
                arguments.word();
            }
            other => out.extend([b'%', other]),
        }
    }

    /// Pads text to the field width.
    fn pad(&self, text: Vec<u8>, out: &mut Vec<u8>) {
        let fill = (self.width.unwrap_or(0) as usize).saturating_sub(text.len());
        let spaces = std::iter::repeat_n(b' ', fill);
        if self.flags.contains('-') {
            out.extend(text);
            out.extend(spaces);
        } else {
            out.extend(spaces);
            out.extend(text);
        }
    }

    /// Formats a number with the C library.
    fn convert(&self, length: &str, value: Value, out: &mut Vec<u8>) {
        let width = self.width.map(|w| w.to_string()).unwrap_or_default();
        let precision = self.precision.map(|p| format!(".{p}")).unwrap_or_default();
        let spec = format!("%{}{width}{precision}{length}{}", self.flags, self.conversion as char);
        // The specification contains no NUL.
        let Ok(spec) = CString::new(spec) else { return };
        // `%f` of the largest double has 309 digits before the decimal point.
        let mut buffer = vec![0u8; 2 * MAX_FIELD as usize + 512];
        let (to, size) = (buffer.as_mut_ptr().cast::<c_char>(), buffer.len());
        let len: c_int = match value {
            // SAFETY: `spec` has one conversion for a 64-bit integer or a pointer, which matches the only
            // argument; the output is bounded by `size`.
            Value::Integer(n) => unsafe { libc::snprintf(to, size, spec.as_ptr(), n) },
            // SAFETY: as above, for a double.
            Value::Float(x) => unsafe { libc::snprintf(to, size, spec.as_ptr(), x) },
        };
        let len = usize::try_from(len).unwrap_or(0).min(buffer.len() - 1);
        out.extend_from_slice(&buffer[..len]);
    }
}

enum Value {
    Integer(u64),
    Float(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a string as kernels send it.
    fn string(text: &str) -> Vec<u64> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect()
    }

    fn format(words: &[u64]) -> Vec<u8> {
        let mut text = Vec::new();
        let len = super::format(words, &mut |part| text.extend_from_slice(part));
        assert_eq!(len, text.len() as u64);
        text
    }

    fn check(format: &str, arguments: &[Vec<u64>], expected: &str) {
        let words = [string(format), arguments.concat()].concat();
        assert_eq!(String::from_utf8_lossy(&self::format(&words)), expected);
    }

    #[test]
    fn conversions() {
        let x = |x: f64| vec![x.to_bits()];
        check("plain", &[], "plain");
        check("%d %u %x|", &[vec![-5i64 as u64], vec![u64::MAX], vec![0xabc]], "-5 4294967295 abc|");
        check("%lld %hhd %hx", &[vec![1 << 40], vec![0x1ff], vec![0x12345]], "1099511627776 -1 2345");
        check("%5d|%-5d|%05d|%+d", &[vec![42], vec![42], vec![42], vec![42]], "   42|42   |00042|+42");
        check(
            "%g %.2f %e %8.3f",
            &[x(0.5), x(1.0 / 3.0), x(12345.0), x(-2.0)],
            "0.5 0.33 1.234500e+04   -2.000",
        );
        check(
            "[%s] [%4s] [%.2s] [%-4s]",
            &[string("abc"), string("x"), string("abcdefgh"), string("y")],
            "[abc] [   x] [ab] [y   ]",
        );
        check(
            "%*d %.*f %c %p %%",
            &[vec![4], vec![7], vec![1], x(2.5), vec![65], vec![0x7f00]],
            "   7 2.5 A 0x7f00 %",
        );
    }

    #[test]
    fn malformed_messages_are_harmless() {
        assert_eq!(format(&[]), b"");
        check("%d %s %f", &[], "0  0.000000");
        check("100%", &[], "100%");
        check("%n%d", &[vec![1], vec![2]], "2");
        check("%y", &[], "%y");
        let wide = format(&string("%999999999d"));
        assert_eq!(wide.len(), MAX_FIELD as usize);
        let precise = [string("%.999999999f"), vec![f64::MAX.to_bits()]].concat();
        assert!(format(&precise).len() > 4096);
    }

    #[test]
    fn long_output_is_not_collected() {
        let words = string(&"%4096d".repeat(20_000));
        let (mut parts, mut longest) = (0, 0);
        let len = super::format(&words, &mut |part| {
            parts += 1;
            longest = longest.max(part.len());
        });
        assert_eq!(len, 20_000 * MAX_FIELD);
        assert!(parts > 1000 && longest <= MAX_COLLECTED + MAX_FIELD as usize, "{parts} {longest}");
    }
}
