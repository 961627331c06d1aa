//! OpenCL's `printf`: kernels put their arguments into a buffer, with the number of a format that the code object has.

use crate::status::Outcome;
use wavesim_runtime::{Kernel, message, printf};

/// Bytes of a launch's buffer, with its head: bytes taken, and bytes that there are.
pub const BYTES: u64 = 1 << 20;
const HEAD: u64 = 8;

/// The buffer of a launch.
pub struct PrintBuffer {
    kernel: Kernel,
    address: u64,
}

impl PrintBuffer {
    /// An empty one.
    pub fn new(kernel: &Kernel) -> Outcome<PrintBuffer> {
        let device = kernel.device();
        let address = device.alloc(BYTES, "printf buffer")?;
        let buffer = PrintBuffer { kernel: kernel.clone(), address };
        device.write(address + 4, &((BYTES - HEAD) as u32).to_le_bytes())?;
        Ok(buffer)
    }

    /// Its address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Prints what is in it.
    pub fn print(&self) -> Outcome {
        let mut taken = [0; 4];
        let device = self.kernel.device();
        device.read(self.address, &mut taken)?;
        let taken = u32::from_le_bytes(taken) as u64;
        let mut bytes = vec![0; taken.min(BYTES - HEAD) as usize];
        device.read(self.address + HEAD, &mut bytes)?;
        let text = messages(self.kernel.module().printf_formats(), &bytes);
        crate::platform::print(&text);
        if taken > BYTES - HEAD {
            message::complain(&format!("printf: {taken} bytes, of which the buffer has {}", BYTES - HEAD));
        }
        Ok(())
    }
}

impl Drop for PrintBuffer {
    fn drop(&mut self) {
        // It was allocated.
        let _ = self.kernel.device().free(self.address);
    }
}

/// A format of the metadata: `NUMBER:COUNT:SIZE:…:TEXT`.
struct Format {
    number: u32,
    sizes: Vec<usize>,
    text: String,
}

/// Undoes the escapes of the metadata: letters as in C, and octal numbers, which colons are.
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

/// All messages of a buffer. It ends where a message is that no format explains.
pub fn messages(formats: &[String], mut bytes: &[u8]) -> Vec<u8> {
    let formats: Vec<Format> = formats.iter().filter_map(|line| Format::parse(line)).collect();
    let mut out = Vec::new();
    while let Some((number, rest)) = bytes.split_at_checked(4) {
        let number = u32::from_le_bytes(number.try_into().unwrap_or_default());
        let Some(format) = formats.iter().find(|format| format.number == number) else { break };
        let mut values = Vec::new();
        bytes = rest;
        for size in &format.sizes {
            // Arguments have multiples of 4 bytes.
            let Some((value, rest)) = bytes.split_at_checked(size.next_multiple_of(4)) else { return out };
            values.push(value);
            bytes = rest;
        }
        out.extend(message_of(&format.text, &values));
    }
    out
}

/// A conversion of OpenCL: what C has, with the length of a vector.
struct Conversion<'a> {
    /// Flags, width and precision.
    head: &'a str,
    /// Elements; 1 without `v`.
    elements: usize,
    /// `h`, `hl`, `l` …
    length: &'a str,
    conversion: char,
    rest: &'a str,
}

impl<'a> Conversion<'a> {
    /// What follows a `%`.
    fn parse(text: &'a str) -> Option<Conversion<'a>> {
        let split = |text: &'a str, part: fn(char) -> bool| {
            text.split_at(text.find(|c| !part(c)).unwrap_or(text.len()))
        };
        let (head, rest) = split(text, |c| "-+ #.*".contains(c) || c.is_ascii_digit());
        let (elements, rest) = match rest.strip_prefix('v') {
            Some(rest) => split(rest, |c| c.is_ascii_digit()),
            None => ("1", rest),
        };
        let (length, rest) = split(rest, |c| "hl".contains(c));
        let conversion = rest.chars().next()?;
        let elements = elements.parse().ok()?;
        Some(Conversion { head, elements, length, conversion, rest: &rest[conversion.len_utf8()..] })
    }
}

/// Formats a message: the arguments become those of C's `printf`, in words of 64 bits.
fn message_of(text: &str, values: &[&[u8]]) -> Vec<u8> {
    let (mut format, mut words) = (String::new(), Vec::new());
    let mut values = values.iter();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        format.push_str(&rest[..at]);
        let Some(conversion) = Conversion::parse(&rest[at + 1..]) else { break };
        rest = conversion.rest;
        if conversion.conversion == '%' {
            format.push_str("%%");
            continue;
        }
        for _ in conversion.head.matches('*') {
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
            format.push_str(conversion.head);
            push(&mut format, &mut words, &conversion, part);
        }
    }
    format.push_str(rest);
    printf::format(&[string(format.as_bytes()), words].concat())
}

/// One value of a conversion.
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

/// A number of `size` bytes.
fn integer(bytes: &[u8], size: usize, signed: bool) -> u64 {
    let mut word = [0; 8];
    let size = size.min(bytes.len()).min(8);
    word[..size].copy_from_slice(&bytes[..size]);
    if signed && size > 0 && bytes[size - 1] & 0x80 != 0 {
        word[size..].fill(0xff);
    }
    u64::from_le_bytes(word)
}

/// A string as words, with its zero byte.
fn string(text: &[u8]) -> Vec<u64> {
    let mut bytes = text.to_vec();
    bytes.resize((text.len() + 1).next_multiple_of(8), 0);
    bytes.chunks(8).map(|chunk| integer(chunk, 8, false)).collect()
}
