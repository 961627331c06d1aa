//! Bundles of code objects for several targets, as clang creates them for HIP (LLVM: *Clang Offload Bundler*,
//! sections *Bundled Binary File Layout* and *Compression and Decompression*), including compressed bundles
//! and host executables that contain bundles.

use super::error::LoadError;
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use wavesim_isa::arch::{Arch, GENERIC_TARGETS};

const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED: &[u8] = b"CCOB";
/// Section of a HIP executable that holds its bundles.
const FAT_SECTION: &str = ".hip_fatbin";
/// Limits of the size of a decompressed bundle: this many bytes, or this multiple of the file size if
/// greater. Real bundles are far smaller.
const MAX_CONTENT: u64 = 128 << 20;
const MAX_RATIO: u64 = 32;
/// Compilers align consecutive bundles to pages.
const PAGE: usize = 4096;

/// The target for which to select a code object, if a file contains several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetRequest {
    /// LLVM's name of the processor. At most one of this and [`TargetRequest::arch`] is given.
    pub processor: Option<String>,
    /// Any processor of this architecture.
    pub arch: Option<Arch>,
}

impl fmt::Display for TargetRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.processor, self.arch) {
            (Some(processor), _) => write!(f, "{processor}"),
            (None, Some(arch)) => write!(f, "{}", arch.name()),
            (None, None) => write!(f, "any target of this simulator"),
        }
    }
}

/// A code object in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// `hipv4-amdgcn-amd-amdhsa--gfx1100`.
    pub id: String,
    /// The bytes of the code object.
    pub object: &'a [u8],
}

impl Entry<'_> {
    /// The processor part of the ID, without features (`:xnack+`): `gfx1100`, `gfx11-generic`.
    pub fn processor(&self) -> Option<&str> {
        let at = self.id.rfind("gfx")?;
        self.id[at..].split(':').next()
    }

    fn arch(&self) -> Option<Arch> {
        self.processor().and_then(Arch::from_mcpu)
    }

    /// Returns whether the entry is for exactly the requested target.
    fn fits(&self, request: &TargetRequest) -> bool {
        match (&request.processor, request.arch) {
            (Some(processor), _) => self.processor() == Some(processor),
            (None, Some(arch)) => self.arch() == Some(arch),
            (None, None) => self.arch().is_some(),
        }
    }

    /// Returns whether the entry is generic code that includes the requested target.
    fn generic_for(&self, request: &TargetRequest) -> bool {
        let arch = request.arch.or(request.processor.as_deref().and_then(Arch::from_mcpu));
        let target = GENERIC_TARGETS.into_iter().find(|target| self.processor() == Some(target.0));
        target.is_some_and(|(_, _, archs)| arch.is_none_or(|arch| archs.contains(&arch)))
    }
}

/// Returns whether the bytes start with a bundle.
pub fn is_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(COMPRESSED)
}

/// Selects the code object for a target. A file that contains no bundle is returned unchanged.
pub fn select<'a>(bytes: &'a [u8], request: &TargetRequest) -> Result<Cow<'a, [u8]>, LoadError> {
    if is_bundle(bytes) {
        return from_bundles(bytes, request);
    }
    match fat_section(bytes) {
        Some(section) => from_bundles(section, request),
        None => Ok(Cow::Borrowed(bytes)),
    }
}

/// The bundle section, if the file is a host executable.
fn fat_section(bytes: &[u8]) -> Option<&[u8]> {
    let file = object::File::parse(bytes).ok()?;
    file.section_by_name(FAT_SECTION)?.data().ok()
}

/// Selects from one or more consecutive bundles.
fn from_bundles<'a>(bytes: &'a [u8], request: &TargetRequest) -> Result<Cow<'a, [u8]>, LoadError> {
    let (mut available, mut found): (Vec<String>, Option<Cow<'a, [u8]>>) = (Vec::new(), None);
    let mut rest = bytes;
    while is_bundle(rest) && found.is_none() {
        let (content, len) = match rest.starts_with(COMPRESSED) {
            true => decompress(rest).map(|(content, len)| (Cow::Owned(content), len))?,
            false => (Cow::Borrowed(rest), end(rest)?),
        };
        let list = entries(&content)?;
        available.extend(list.iter().filter_map(Entry::processor).map(str::to_string));
        let chosen = list.iter().find(|e| e.fits(request)).or(list.iter().find(|e| e.generic_for(request)));
        if let Some(entry) = chosen {
            found = Some(match &content {
                Cow::Borrowed(_) => {
                    // The same bytes with the lifetime of the input.
                    let at = entry.object.as_ptr() as usize - rest.as_ptr() as usize;
                    Cow::Borrowed(&rest[at..at + entry.object.len()])
                }
                Cow::Owned(_) => Cow::Owned(entry.object.to_vec()),
            });
        }
        let next = len.max(1).next_multiple_of(PAGE);
        rest = rest.get(next..).unwrap_or_default();
    }
    found.ok_or_else(|| LoadError::NotInBundle {
        requested: request.to_string(),
        available: available.join(", "),
    })
}

fn number(bytes: &[u8], index: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(index..index.checked_add(8)?)?.try_into().ok()?))
}

fn corrupt(what: &str) -> LoadError {
    LoadError::Bad(format!("bundle: {what}"))
}

/// The entries of an uncompressed bundle. Entries for the host are included.
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, LoadError> {
    let mut out = Vec::new();
    let mut at = MAGIC.len() + 8;
    let count = number(bytes, MAGIC.len()).ok_or_else(|| corrupt("the header is truncated"))?;
    for index in 0..count {
        let entry = header(bytes, &mut at)
            .ok_or_else(|| corrupt(&format!("the header of entry {index} is cut off")))?;
        let (offset, size, id) = entry;
        let object = offset.checked_add(size).and_then(|end| bytes.get(offset..end));
        let object = object
            .ok_or_else(|| corrupt(&format!("{size} bytes at {offset} for {id} are beyond its end")))?;
        out.push(Entry { id, object });
    }
    Ok(out)
}

/// Reads offset, size and ID of the entry whose header is at `index`.
fn header(bytes: &[u8], position: &mut usize) -> Option<(usize, usize, String)> {
    let field = |k: usize| usize::try_from(number(bytes, *position + 8 * k)?).ok();
    let (offset, size, len) = (field(0)?, field(1)?, field(2)?);
    let name = *position + 24;
    let id = bytes.get(name..name.checked_add(len)?)?;
    *position = name + len;
    Some((offset, size, String::from_utf8_lossy(id).into_owned()))
}

/// The end of a bundle.
fn end(bytes: &[u8]) -> Result<usize, LoadError> {
    let ends = entries(bytes)?
        .iter()
        .map(|e| e.object.as_ptr() as usize - bytes.as_ptr() as usize + e.object.len())
        .max();
    Ok(ends.unwrap_or(MAGIC.len()))
}

/// Determines the size of a bundle or an ELF file of which only the address is known, as in a program's
/// memory. `read` returns bytes at an offset; only headers are read. `None` for other data.
pub fn size(read: &mut dyn FnMut(usize, usize) -> Vec<u8>) -> Option<usize> {
    let usize_at = |bytes: &[u8], at: usize| usize::try_from(number(bytes, at)?).ok();
    let magic = read(0, 4);
    if magic == COMPRESSED {
        let version = read(4, 2);
        return match *version.first()? {
            2 => usize::try_from(u32::from_le_bytes(read(8, 4).try_into().ok()?)).ok(),
            3 => usize_at(&read(8, 8), 0),
            // Version 1 does not store the size.
            _ => None,
        };
    }
    if magic == b"\x7fELF" {
        // Linkers write the section headers last, after the segments.
        let header = read(0, 64);
        let sections = usize_at(&header, 40)?;
        let half = |at: usize| Some(u16::from_le_bytes(header.get(at..at + 2)?.try_into().ok()?) as usize);
        let mut end = sections.checked_add(half(58)?.checked_mul(half(60)?)?)?;
        let programs = usize_at(&header, 32)?;
        for index in 0..half(56)? {
            let at = programs.checked_add(index * half(54)?)?;
            let segment = read(at, 56);
            end = end.max(usize_at(&segment, 8)?.checked_add(usize_at(&segment, 32)?)?);
        }
        return Some(end);
    }
    if read(0, MAGIC.len()) != MAGIC {
        return None;
    }
    let (mut at, mut end) = (MAGIC.len() + 8, 0);
    for _ in 0..usize_at(&read(MAGIC.len(), 8), 0)?.min(MAX_ENTRIES) {
        let header = read(at, 24);
        let (offset, size, name) = (usize_at(&header, 0)?, usize_at(&header, 8)?, usize_at(&header, 16)?);
        end = end.max(offset.checked_add(size)?);
        at = at.checked_add(24)?.checked_add(name)?;
    }
    Some(end.max(at))
}

/// Maximum number of entries in a bundle of unknown size.
const MAX_ENTRIES: usize = 4096;

/// Decompresses a bundle. Returns the content, and the size of the bundle in the file. The header consists of
/// magic, version (u16), method (u16: 0 zlib, 1 Zstandard), the file size (since version 2) and the content
/// size (both u32; u64 since version 3), and 8 bytes of a hash.
fn decompress(bytes: &[u8]) -> Result<(Vec<u8>, usize), LoadError> {
    let short = || corrupt("the header is truncated");
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as u64);
    let version = half(4).ok_or_else(short)?;
    let method = half(6).ok_or_else(short)?;
    let (file_size, size, header) = match version {
        1 => (Some(bytes.len() as u64), word(8), 20),
        2 => (word(8), word(12), 24),
        3 => (number(bytes, 8), number(bytes, 16), 32),
        other => {
            return Err(corrupt(&format!(
                "version {other} of the compressed format is unknown; 1 to 3 are known"
            )));
        }
    };
    let (file_size, size) = file_size.zip(size).ok_or_else(short)?;
    let len = usize::try_from(file_size).ok().filter(|len| (header..=bytes.len()).contains(len));
    let len = len.ok_or_else(|| {
        corrupt(&format!("its stated size is {file_size} bytes, but the file has {}", bytes.len()))
    })?;
    if size > MAX_CONTENT.max(len as u64 * MAX_RATIO) {
        return Err(corrupt(&format!("{size} bytes of content")));
    }
    let packed = &bytes[header..len];
    let mut content = Vec::new();
    // Reading one byte beyond the stated size detects excess data.
    let unpacked = match method {
        0 => flate2::read::ZlibDecoder::new(packed).take(size + 1).read_to_end(&mut content),
        1 => match ruzstd::decoding::StreamingDecoder::new(packed) {
            Ok(decoder) => decoder.take(size + 1).read_to_end(&mut content),
            Err(e) => return Err(corrupt(&format!("Zstandard: {e}"))),
        },
        other => {
            return Err(corrupt(&format!(
                "compression method {other} is unknown; 0 (zlib) and 1 (Zstandard) are known"
            )));
        }
    };
    unpacked.map_err(|e| corrupt(&format!("damaged: {e}")))?;
    if content.len() as u64 != size {
        return Err(corrupt(&format!("its content does not have the stated size of {size} bytes")));
    }
    Ok((content, len))
}
