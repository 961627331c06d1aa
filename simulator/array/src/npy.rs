//! NumPy's *npy format*: a header, which is a Python dictionary literal, followed by the elements.

use super::{Array, DType};
use std::io::{self, Read, Write};

/// The contents of a header.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// The element type as spelt in the header, with quotes.
    pub descr: String,
    /// Whether the first index varies fastest.
    pub fortran_order: bool,
    /// The length of each dimension.
    pub shape: Vec<u64>,
}

const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum size of a header in bytes.
const MAX_HEADER: u32 = 64 << 10;
/// Maximum number of dimensions, as in NumPy.
const MAX_DIMENSIONS: usize = 64;

impl Header {
    /// Reads the header and leaves `file` at the elements. `None` if the file is not a `.npy` file.
    pub fn read(mut file: impl Read) -> Option<Header> {
        let mut start = [0; 10];
        file.read_exact(&mut start).ok()?;
        let mut len = u16::from_le_bytes([start[8], start[9]]) as u32;
        // The length field has four bytes since version 2.
        if start[6] > 1 {
            let mut rest = [0; 2];
            file.read_exact(&mut rest).ok()?;
            len = u32::from_le_bytes([start[8], start[9], rest[0], rest[1]]);
        }
        if !start.starts_with(MAGIC) || len > MAX_HEADER {
            return None;
        }
        let mut text = vec![0; len as usize];
        file.read_exact(&mut text).ok()?;
        Header::parse(std::str::from_utf8(&text).ok()?)
    }

    fn parse(text: &str) -> Option<Header> {
        let mut literal = Literal(text);
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        literal.token("{")?;
        while literal.token("}").is_none() {
            let key = literal.value()?;
            literal.token(":")?;
            let value = literal.value()?;
            let key = key.strip_prefix(['\'', '"'])?;
            match key.get(..key.len() - 1)? {
                "descr" => descr = Some(value.to_string()),
                "fortran_order" => fortran_order = Some(value == "True"),
                "shape" => shape = Some(dimensions(value)?),
                _ => return None,
            }
            if literal.token(",").is_none() {
                literal.token("}")?;
                break;
            }
        }
        if !literal.0.trim().is_empty() {
            return None;
        }
        Some(Header { descr: descr?, fortran_order: fortran_order?, shape: shape? })
    }

    /// The element type. `wanted` resolves 16-bit elements that may be bf16.
    pub fn dtype(&self, wanted: Option<DType>) -> Option<DType> {
        let name = self.descr.strip_prefix(['\'', '"'])?.strip_suffix(['\'', '"'])?;
        if wanted == Some(DType::BF16) && matches!(name, "<u2" | "|V2") {
            return Some(DType::BF16);
        }
        // Byte order is irrelevant for one byte: `<u1` equals `|u1`.
        let single = name.strip_prefix(['<', '=', '>']).filter(|n| n.ends_with('1'));
        DType::ALL
            .into_iter()
            .find(|d| *d != DType::BF16 && (descr(*d) == name || descr(*d).get(1..) == single))
    }
}

/// Parses `(2, 3)`, `(2,)` or `()`.
fn dimensions(text: &str) -> Option<Vec<u64>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?.trim();
    let inner = inner.strip_suffix(',').unwrap_or(inner);
    if inner.is_empty() {
        return Some(Vec::new());
    }
    // Python 2 wrote `5L`.
    let dimension = |part: &str| part.trim().trim_end_matches('L').parse().ok();
    let shape: Vec<u64> = inner.split(',').map(dimension).collect::<Option<_>>()?;
    (shape.len() <= MAX_DIMENSIONS).then_some(shape)
}

/// The remaining text of a Python literal.
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn token(&mut self, token: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(token)?;
        Some(())
    }

    /// Reads a string, a word, or a bracketed value, which is not parsed further.
    fn value(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let (mut depth, mut quote) = (0u32, None);
        for (at, c) in text.char_indices() {
            match (c, quote) {
                (_, Some(open)) if c == open => quote = None,
                (_, Some(_)) => continue,
                ('\'' | '"', None) => {
                    quote = Some(c);
                    continue;
                }
                ('(' | '[', None) => {
                    depth += 1;
                    continue;
                }
                (')' | ']', None) => depth = depth.checked_sub(1)?,
                (':' | ',' | '}', None) if depth == 0 => {
                    self.0 = &text[at..];
                    return Some(text[..at].trim_end()).filter(|v| v.len() >= 2);
                }
                _ => continue,
            }
            if depth == 0 {
                self.0 = &text[at + c.len_utf8()..];
                return Some(&text[..at + c.len_utf8()]);
            }
        }
        None
    }
}

/// NumPy's name of an element type. bf16 has none; its bits are stored as u16.
fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "|u1",
        DType::U16 | DType::BF16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    }
}

/// Writes an array in version 1.0 of the format.
pub fn write(mut out: impl Write, array: &Array) -> io::Result<()> {
    let dims: String = array.shape.iter().map(|d| format!("{d},")).collect();
    let mut header =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({dims}), }}", descr(array.dtype));
    // Magic, version and length take 10 bytes. A line break ends the header, and the data starts at a
    // multiple of 64.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    out.write_all(&array.bytes)
}
