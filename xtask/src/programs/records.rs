//! The data of the tests of rocBLAS and rocSPARSE: a file of records of one size, hundreds of megabytes of them, which the
//! programs read from the first to the last byte once for each of their hundred families of tests, before the first test.
//! A selection makes that a matter of milliseconds.
//!
//! The file begins with the library's name and a record of a pattern, by which the program checks the layout; the name in
//! another spelling ends the header. A record has, among others, three texts of 64 bytes in a row: the function, the name
//! of the test, its category.

use anyhow::{Context as _, bail};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Size of a text in bytes.
const TEXT: usize = 64;

/// The header of a file, and the size of a record.
struct Layout {
    header: Vec<u8>,
    record: usize,
}

impl Layout {
    /// Reads the header of a file, whose first bytes are given.
    fn of(start: &[u8]) -> anyhow::Result<Layout> {
        let name = start.iter().position(|byte| *byte == 0).context("no name")? + 1;
        // `rocBLAS` and `ROCblas`.
        let swapped = start[..name].iter().map(|byte| match byte {
            byte if byte.is_ascii_lowercase() => byte.to_ascii_uppercase(),
            byte => byte.to_ascii_lowercase(),
        });
        let swapped: Vec<u8> = swapped.collect();
        let end = start.windows(name).position(|part| part == swapped).context("the header has no end")?;
        let (header, record) = (start[..end + name].to_vec(), end.saturating_sub(name));
        if record < 3 * TEXT {
            bail!("records of {record} bytes");
        }
        Ok(Layout { header, record })
    }
}

/// Returns the function and the name of a test, if it is of a category.
fn test_of<'a>(record: &'a [u8], category: &str) -> Option<&'a [u8]> {
    let text = [b"\0", category.as_bytes(), b"\0"].concat();
    let at = record.windows(text.len()).position(|part| part == text)? + 1;
    record.get(at.checked_sub(2 * TEXT)?..at)
}

/// Selects tests: of each function and name, at most `most` of a category, evenly spread.
fn select(mut data: impl Read, category: &str, most: usize) -> anyhow::Result<Vec<u8>> {
    let mut start = Vec::new();
    data.by_ref().take(4096).read_to_end(&mut start)?;
    let Layout { header, record } = Layout::of(&start)?;
    let mut rest = std::io::Cursor::new(start[header.len()..].to_vec()).chain(data);
    let mut tests: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut index: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut one = vec![0; record];
    while rest.read_exact(&mut one).is_ok() {
        let Some(test) = test_of(&one, category) else { continue };
        let at = *index.entry(test.to_vec()).or_insert_with(|| {
            tests.push(Vec::new());
            tests.len() - 1
        });
        tests[at].push(one.clone());
    }
    let mut out = header;
    for records in tests {
        let step = records.len().div_ceil(most).max(1);
        records.iter().step_by(step).for_each(|record| out.extend_from_slice(record));
    }
    Ok(out)
}

/// Writes a selection of a file of tests, unless it is there.
pub fn select_file(from: &Path, to: &Path, category: &str, most: usize) -> anyhow::Result<()> {
    if to.exists() {
        return Ok(());
    }
    let file = File::open(from).with_context(|| from.display().to_string())?;
    let selection = select(BufReader::with_capacity(1 << 20, file), category, most)
        .with_context(|| from.display().to_string())?;
    let new = to.with_extension("new");
    std::fs::write(&new, selection)?;
    Ok(std::fs::rename(new, to)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with texts behind other data.
    fn record(number: u8, function: &str, category: &str) -> Vec<u8> {
        let mut record = vec![0; 5 + 3 * TEXT];
        record[0] = number;
        for (at, text) in [function, "name", category].into_iter().enumerate() {
            record[5 + at * TEXT..][..text.len()].copy_from_slice(text.as_bytes());
        }
        record
    }

    #[test]
    fn each_function_keeps_some_tests() {
        let pattern: Vec<u8> = (0..5 + 3 * TEXT).map(|k| k as u8 ^ 0x55).collect();
        let header = [b"rocBLAS\0", &pattern[..], b"ROCblas\0"].concat();
        let mut data = header.clone();
        for number in 0..10 {
            data.extend(record(number, "axpy", "quick"));
            data.extend(record(number, "axpy", "nightly"));
        }
        data.extend(record(0, "dot", "quick"));
        let selected = select(&data[..], "quick", 4).unwrap();
        let size = 5 + 3 * TEXT;
        let kept: Vec<(u8, u8)> = selected[header.len()..].chunks_exact(size).map(|r| (r[0], r[5])).collect();
        assert_eq!(selected[..header.len()], header);
        assert_eq!(kept, [(0, b'a'), (3, b'a'), (6, b'a'), (9, b'a'), (0, b'd')]);
    }

    #[test]
    fn other_files_are_errors() {
        assert!(select(&b"rocBLAS\0 and nothing else"[..], "quick", 1).is_err());
        assert!(select(&[][..], "quick", 1).is_err());
    }
}
