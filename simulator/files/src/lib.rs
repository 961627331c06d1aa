//! Files that inputs name (`.include`, `.incbin`, `file()`, `npy()`, launch descriptions): which of them may be opened, and how much is
//! read. Every front end opens them through a [`Files`], so that one flag confines all of them; SECURITY.md has the rules.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a regular file at most.
pub const MAX_FILE: u64 = 4 << 30;
/// Bytes at most of what has no length beforehand: pipes, devices, standard input.
pub const MAX_STREAM: u64 = 128 << 20;

/// Which files an input may name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Links resolved.
    below: Option<PathBuf>,
}

/// Why a file cannot be read. It is named, its contents are not quoted: they may be none of the reader's business.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("{path}: not below {folder} (--files-below)")]
    Outside { path: String, folder: String },
    #[error("{0}: not a regular file")]
    Irregular(String),
    #[error("{path}: larger than {mib} MiB")]
    TooLarge { path: String, mib: u64 },
    #[error("{0}: not text (UTF-8)")]
    NotText(String),
}

impl FileError {
    /// The message without the file's name, for those who have just named it.
    pub fn reason(&self) -> String {
        let whole = self.to_string();
        let (FileError::Io { path, .. }
        | FileError::Outside { path, .. }
        | FileError::Irregular(path)
        | FileError::TooLarge { path, .. }
        | FileError::NotText(path)) = self;
        whole.strip_prefix(&format!("{path}: ")).unwrap_or(&whole).to_string()
    }
}

fn named(path: &Path) -> String {
    path.display().to_string()
}

fn too_large(path: &Path, limit: u64) -> FileError {
    FileError::TooLarge { path: named(path), mib: limit >> 20 }
}

impl Files {
    /// Any path, as assemblers and compilers have it.
    pub fn anywhere() -> Files {
        Files::default()
    }

    /// Only what lies in `folder` or deeper, links resolved. The folder must not be changed by others while files are opened.
    pub fn below(folder: &Path) -> Result<Files, FileError> {
        let io = |source| FileError::Io { path: named(folder), source };
        let real = folder.canonicalize().map_err(io)?;
        if !real.is_dir() {
            return Err(io(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Files { below: Some(real) })
    }

    /// A regular file and its length.
    pub fn open(&self, path: &Path) -> Result<(File, u64), FileError> {
        let io = |source| FileError::Io { path: named(path), source };
        let real = match &self.below {
            None => path.to_path_buf(),
            Some(folder) => self.resolved(path, folder)?,
        };
        // Before it is opened: opening a pipe waits for its other end.
        let meta = std::fs::metadata(&real).map_err(io)?;
        if !meta.is_file() {
            return Err(FileError::Irregular(named(path)));
        }
        Ok((File::open(&real).map_err(io)?, meta.len()))
    }

    /// The path without links, if it is below the folder. Outside of it, what exists and what does not give the same error.
    fn resolved(&self, path: &Path, folder: &Path) -> Result<PathBuf, FileError> {
        let outside = || FileError::Outside { path: named(path), folder: named(folder) };
        match path.canonicalize() {
            Ok(real) if real.starts_with(folder) => Ok(real),
            Ok(_) => Err(outside()),
            Err(source) => {
                let parents = path.ancestors().skip(1);
                let parents = parents.map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
                match parents.filter_map(|p| p.canonicalize().ok()).next() {
                    Some(real) if real.starts_with(folder) => {
                        Err(FileError::Io { path: named(path), source })
                    }
                    _ => Err(outside()),
                }
            }
        }
    }

    /// All of a regular file of at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
        let (mut file, len) = self.open(path)?;
        sized(&mut file, len, path, limit)
    }

    /// As [`Files::read`], of text.
    pub fn read_text(&self, path: &Path, limit: u64) -> Result<String, FileError> {
        text(self.read(path, limit)?, path)
    }
}

fn sized(file: &mut File, len: u64, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    if len > limit {
        return Err(too_large(path, limit));
    }
    // It may grow meanwhile; one byte more shows that the end was reached.
    let mut bytes = Vec::with_capacity(len as usize + 1);
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| FileError::Io { path: named(path), source })?;
    if bytes.len() as u64 > limit { Err(too_large(path, limit)) } else { Ok(bytes) }
}

fn text(bytes: Vec<u8>, path: &Path) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|_| FileError::NotText(named(path)))
}

/// All of what a person named: a file, a pipe or a device, of bounded size; `-` is standard input.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let shown = if path.as_os_str() == "-" { Path::new("standard input") } else { path };
    let io = |source| FileError::Io { path: named(shown), source };
    if path.as_os_str() == "-" {
        return stream(io::stdin().lock(), shown);
    }
    let mut file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    match meta.is_file() && meta.len() > 0 {
        true => sized(&mut file, meta.len(), path, MAX_FILE),
        // Files of /proc say that they are empty.
        false => stream(file, path),
    }
}

/// As [`read`], of text.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    text(read(path)?, path)
}

fn stream(from: impl Read, path: &Path) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    from.take(MAX_STREAM + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| FileError::Io { path: named(path), source })?;
    if bytes.len() as u64 > MAX_STREAM { Err(too_large(path, MAX_STREAM)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with `in/file`, and beside `in` a file `secret`.
    fn tree(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("wavesim-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("in/deeper")).unwrap();
        std::fs::write(root.join("in/file"), "inside").unwrap();
        std::fs::write(root.join("secret"), "outside").unwrap();
        root
    }

    #[test]
    fn a_folder_confines_with_links_resolved() {
        let root = tree("below");
        let files = Files::below(&root.join("in")).unwrap();
        let read = |path: &str| files.read(&root.join(path), 100);
        assert_eq!(read("in/file").unwrap(), b"inside");
        assert_eq!(read("in/deeper/../file").unwrap(), b"inside");
        let outside = |path: &str| matches!(read(path), Err(FileError::Outside { .. }));
        assert!(outside("secret") && outside("in/../secret"));
        // What is outside does not even say whether it exists.
        assert!(outside("nothing") && outside("in/../nothing/at/all"));
        assert!(matches!(read("in/nothing"), Err(FileError::Io { .. })));
        assert!(matches!(read("in/deeper"), Err(FileError::Irregular(_))));
        #[cfg(unix)]
        {
            let _ = std::os::unix::fs::symlink(root.join("secret"), root.join("in/link"));
            let _ = std::os::unix::fs::symlink(root.join("in/file"), root.join("in/own"));
            assert!(outside("in/link"));
            assert_eq!(read("in/own").unwrap(), b"inside");
        }
        assert_eq!(Files::anywhere().read(&root.join("secret"), 100).unwrap(), b"outside");
        assert!(Files::below(&root.join("secret")).is_err() && Files::below(&root.join("no")).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn sizes_are_bounded() {
        let root = tree("sizes");
        let read = |limit| Files::anywhere().read(&root.join("secret"), limit);
        assert_eq!(read(7).unwrap(), b"outside");
        assert!(matches!(read(6), Err(FileError::TooLarge { .. })));
        assert!(matches!(stream(io::repeat(0), Path::new("zeros")), Err(FileError::TooLarge { .. })));
        std::fs::write(root.join("secret"), [0xff; 9]).unwrap();
        assert!(matches!(read_text(&root.join("secret")), Err(FileError::NotText(_))));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
