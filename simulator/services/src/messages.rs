//! OpenCL's `printf`. Kernels append messages to a buffer: the number of a format string in the code object,
//! and the arguments.

use crate::printf;

/// Size of a launch's buffer in bytes, including its header: the number of bytes used, and the capacity.
pub const BYTES: u64 = 1 << 20;
/// Size of the header.
pub const HEADER_BYTES: u64 = 8;

/// Returns the header of an empty buffer.
pub fn header() -> [u8; HEADER_BYTES as usize] {
    (((BYTES - HEADER_BYTES) as u32 as u64) << 32).to_le_bytes()
}

/// Formats all messages of a launch's buffer, which is in memory that `read` reads, and returns what is to be reported.
///
/// # Errors
/// Those of `read`.
pub fn print<E>(
    formats: &[String],
    address: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<Option<String>, E> {
    let mut used = [0; 4];
    read(address, &mut used)?;
    let used = u64::from(u32::from_le_bytes(used));
    let capacity = BYTES - HEADER_BYTES;
    let mut bytes = vec![0; used.min(capacity) as usize];
    read(address + HEADER_BYTES, &mut bytes)?;
    messages(formats, &bytes, sink);
    Ok((used > capacity)
        .then(|| format!("printf: {used} bytes of output exceed the buffer of {capacity} bytes")))
}

/// A format string of the metadata: `NUMBER:COUNT:SIZE:…:TEXT`.
struct Format {
    number: u32,
    sizes: Vec<usize>,
    text: String,
}

/// Decodes the escape sequences of the metadata: letters as in C, and octal numbers, which encode colons.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let mut number = None;
        while let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)).filter(|_| number < Some(32)) {
            number = Some(number.unwrap_or(0) * 8 + digit);
            chars.next();
        }
        if let Some(number) = number {
            out.push(char::from(number as u8));
            continue;
        }
        out.extend(chars.next().map(|c| match c {
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            other => other,
        }));
    }
    out
}

impl Format {
    fn parse(line: &str) -> Option<Format> {
        let (number, mut rest) = line.split_once(':')?;
        let (count, after) = rest.split_once(':')?;
        rest = after;
        let mut sizes = Vec::new();
        for _ in 0..count.parse::<u32>().ok()? {
            let (size, after) = rest.split_once(':')?;
            sizes.push(size.parse().ok()?);
            rest = after;
        }
        Some(Format { number: number.parse().ok()?, sizes, text: unescape(rest) })
    }
}

/// Formats all messages of a buffer and passes the text to `sink`, in parts. Stops at a message with an unknown
/// format.
pub fn messages(formats: &[String], mut bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
    let formats: Vec<Format> = formats.iter().filter_map(|line| Format::parse(line)).collect();
    while let Some((number, rest)) = bytes.split_at_checked(4) {
        let number = u32::from_le_bytes(number.try_into().unwrap_or_default());
        let Some(format) = formats.iter().find(|format| format.number == number) else { break };
        let mut values = Vec::new();
        bytes = rest;
        for size in &format.sizes {
            // Arguments are padded to multiples of 4 bytes.
            let padded = size.checked_next_multiple_of(4);
            let Some((value, rest)) = padded.and_then(|size| bytes.split_at_checked(size)) else { return };
            values.push(value);
            bytes = rest;
        }
        format_message(&format.text, &values, sink);
    }
}

/// Maximum number of elements of a vector.
const MAX_ELEMENTS: usize = 16;

/// A conversion specification of OpenCL: as in C, with a vector length.
struct Conversion<'a> {
    /// Flags, width and precision.
    prefix: &'a str,
    /// Number of vector elements; 1 for scalars.
    elements: usize,
    /// `h`, `hl`, `l` …
    length: &'a str,
    conversion: char,
    rest: &'a str,
}

impl<'a> Conversion<'a> {
    /// Parses the text after a `%`.
    fn parse(text: &'a str) -> Option<Conversion<'a>> {
        let split = |text: &'a str, part: fn(char) -> bool| {
            text.split_at(text.find(|c| !part(c)).unwrap_or(text.len()))
        };
        let (prefix, rest) = split(text, |c| "-+ #.*".contains(c) || c.is_ascii_digit());
        let (elements, rest) = match rest.strip_prefix('v') {
            Some(rest) => split(rest, |c| c.is_ascii_digit()),
            None => ("1", rest),
        };
        let (length, rest) = split(rest, |c| "hl".contains(c));
        let conversion = rest.chars().next()?;
        let elements = elements.parse().ok().filter(|n| (1..=MAX_ELEMENTS).contains(n))?;
        Some(Conversion { prefix, elements, length, conversion, rest: &rest[conversion.len_utf8()..] })
    }
}

/// Formats a message, by converting it to a format and 64-bit arguments for C's `printf`.
fn format_message(text: &str, values: &[&[u8]], sink: &mut dyn FnMut(&[u8])) {
    let (mut format, mut words) = (String::new(), Vec::new());
    let mut values = values.iter();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        format.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(conversion) = Conversion::parse(&rest[1..]) else { break };
        rest = conversion.rest;
        if conversion.conversion == '%' {
            format.push_str("%%");
            continue;
        }
        for _ in conversion.prefix.matches('*') {
            words.push(values.next().map_or(0, |value| integer(value, 4, true)));
        }
        let value = values.next().copied().unwrap_or_default();
        for element in 0..conversion.elements {
            if element != 0 {
                format.push(',');
            }
            let size = match conversion.elements {
                1 => value.len(),
                3 => value.len() / 4,
                n => value.len() / n,
            };
            let start = (element * size).min(value.len());
            let part = &value[start..(start + size).min(value.len())];
            format.push('%');
            format.push_str(conversion.prefix);
            push(&mut format, &mut words, &conversion, part);
        }
    }
    format.push_str(rest);
    printf::format(&[string(format.as_bytes()), words].concat(), sink);
}

/// Appends the conversion of one element and its argument.
fn push(format: &mut String, words: &mut Vec<u64>, conversion: &Conversion, part: &[u8]) {
    match conversion.conversion {
        's' => {
            format.push('s');
            let len = part.iter().position(|b| *b == 0).unwrap_or(part.len());
            words.extend(string(&part[..len]));
        }
        c @ ('a' | 'A' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G') => {
            format.push(c);
            words.push(match *part {
                [a, b] => f64::from(half::f16::from_le_bytes([a, b])).to_bits(),
                [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])).to_bits(),
                _ => integer(part, 8, false),
            });
        }
        c => {
            let length = match conversion.length {
                "hl" => "",
                "l" => "ll",
                other => other,
            };
            format.push_str(length);
            format.push(c);
            words.push(integer(part, part.len(), "di".contains(c)));
        }
    }
}

/// Reads an integer of `size` bytes.
fn integer(bytes: &[u8], size: usize, signed: bool) -> u64 {
    let mut word = [0; 8];
    let size = size.min(bytes.len()).min(8);
    word[..size].copy_from_slice(&bytes[..size]);
    if signed && size > 0 && bytes[size - 1] & 0x80 != 0 {
        word[size..].fill(0xff);
    }
    u64::from_le_bytes(word)
}

/// Encodes a NUL-terminated string as words.
fn string(text: &[u8]) -> Vec<u64> {
    let mut bytes = text.to_vec();
    bytes.resize((text.len() + 1).next_multiple_of(8), 0);
    bytes.chunks(8).map(|chunk| integer(chunk, 8, false)).collect()
}
