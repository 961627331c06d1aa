//! Short links: a folder of shared programs, each in a file whose name is the hash of its contents.
//!
//! A host of static files can serve the same folder next to the page, as `links`.

use super::http::Answer;
use anyhow::Context as _;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum size of a program, as the page packs it, in bytes.
pub const MAX_LINK: u64 = 256 << 10;
/// Maximum size of all programs in bytes.
const MAX_FOLDER: u64 = 256 << 20;
/// Hexadecimal digits of a name: the first 80 bits of the SHA-256 of the contents.
const DIGITS: usize = 20;

/// The folder.
pub struct Links {
    folder: PathBuf,
    /// The size of all programs in bytes.
    bytes: AtomicU64,
}

/// Returns the name of a program.
fn name(packed: &str) -> String {
    let hash = Sha256::digest(packed.as_bytes());
    hash.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

impl Links {
    /// Opens a folder; creates it if there is none.
    pub fn open(folder: &Path) -> anyhow::Result<Links> {
        let context = || folder.display().to_string();
        std::fs::create_dir_all(folder).with_context(context)?;
        let mut bytes = 0;
        for entry in std::fs::read_dir(folder).with_context(context)? {
            bytes += entry?.metadata().with_context(context)?.len();
        }
        Ok(Links { folder: folder.to_path_buf(), bytes: AtomicU64::new(bytes) })
    }

    /// Keeps a program, which is the base64 text of a link. Answers with its name.
    pub fn keep(&self, packed: &str) -> Result<Answer, Answer> {
        if packed.is_empty() || !packed.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
            return Err(Answer::text(400, "this is not a program of a link"));
        }
        let name = name(packed);
        let path = self.folder.join(&name);
        if !path.is_file() {
            let size = packed.len() as u64;
            if self.bytes.fetch_add(size, Ordering::Relaxed) + size > MAX_FOLDER {
                self.bytes.fetch_sub(size, Ordering::Relaxed);
                return Err(Answer::text(503, "the folder of links is full"));
            }
            let failed = |e| Answer::text(503, format!("the link cannot be kept: {e}"));
            wavesim_files::write(&path, |out| out.write_all(packed.as_bytes())).map_err(failed)?;
        }
        Ok(Answer::text(200, name))
    }

    /// Answers with the program of a name.
    pub fn get(&self, name: &str) -> Answer {
        // No other file of the folder, nor of others.
        let valid =
            name.len() == DIGITS && name.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let text = if valid { std::fs::read(self.folder.join(name)).ok() } else { None };
        match text {
            Some(text) => Answer::text(200, text),
            None => Answer::text(404, "there is no such link here"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hashes() {
        // echo -n AAAA | sha256sum
        assert_eq!(name("AAAA"), "63c1dd951ffedf6f7fd9");
    }
}
