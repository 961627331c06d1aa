//! File access: which files an input may name (`.include`, `.incbin`, `file()`, `npy()`, launch
//! descriptions), and how much of a file is read.
//!
//! Every front end opens the files that its input names through [`Files`], so that one option
//! (`--files-below`) restricts all of them; SECURITY.md has the rules. [`read`] reads files that the user
//! names on the command line; [`write()`] and [`write_all`] write outputs. Text from foreign files is printed
//! through [`escape`].

#![warn(missing_docs)]

pub mod escape;
mod output;

pub use output::{Output, append, create, file_name, write, write_all};

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum size of a regular file in bytes.
pub const MAX_FILE: u64 = 4 << 30;
/// Maximum number of bytes read from pipes, devices and standard input.
pub const MAX_STREAM: u64 = 128 << 20;

/// The files that an input may name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// The folder that must contain the files, with links resolved; `None` for any file.
    below: Option<PathBuf>,
    /// No file may be named.
    none: bool,
}

/// The reason why a file cannot be read. Messages never quote the contents.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system reported an error.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The error.
        source: io::Error,
    },
    /// The input may not name this file.
    #[error("{path}: not below {folder} (--files-below)")]
    Outside {
        /// The file.
        path: String,
        /// The permitted folder.
        folder: String,
    },
    /// The input may not name any file.
    #[error("{0}: files cannot be named here")]
    Forbidden(String),
    /// A folder, pipe or device.
    #[error("{0}: not a regular file")]
    Irregular(String),
    /// The file is larger than the limit.
    #[error("{path}: larger than {mib} MiB")]
    TooLarge {
        /// The file.
        path: String,
        /// The limit.
        mib: u64,
    },
    /// The file should be text, but is not UTF-8.
    #[error("{0}: not text (UTF-8)")]
    NotText(String),
}

impl FileError {
    /// The message without the file name, for messages that already contain it.
    pub fn reason(&self) -> String {
        let whole = self.to_string();
        let (FileError::Io { path, .. }
        | FileError::Outside { path, .. }
        | FileError::Forbidden(path)
        | FileError::Irregular(path)
        | FileError::TooLarge { path, .. }
        | FileError::NotText(path)) = self;
        whole.strip_prefix(&format!("{path}: ")).unwrap_or(&whole).to_string()
    }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

fn too_large(path: &Path, limit: u64) -> FileError {
    FileError::TooLarge { path: display(path), mib: limit >> 20 }
}

impl Files {
    /// Permits any file, as assemblers and compilers do.
    pub fn any() -> Files {
        Files::default()
    }

    /// Permits only files below `folder`, with links resolved. No other user may modify the folder while
    /// files are opened.
    pub fn below(folder: &Path) -> Result<Files, FileError> {
        let io = |source| FileError::Io { path: display(folder), source };
        let real = folder.canonicalize().map_err(io)?;
        if !real.is_dir() {
            return Err(io(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Files { below: Some(real), none: false })
    }

    /// Permits no file, for untrusted inputs.
    pub fn none() -> Files {
        Files { below: None, none: true }
    }

    /// Opens a regular file and returns it with its length.
    pub fn open(&self, path: &Path) -> Result<(File, u64), FileError> {
        if self.none {
            return Err(FileError::Forbidden(display(path)));
        }
        let io = |source| FileError::Io { path: display(path), source };
        let real = match &self.below {
            None => path.to_path_buf(),
            Some(folder) => self.resolve(path, folder)?,
        };
        // Checked before opening, since opening a pipe blocks until its other end is opened.
        let meta = std::fs::metadata(&real).map_err(io)?;
        if !meta.is_file() {
            return Err(FileError::Irregular(display(path)));
        }
        Ok((File::open(&real).map_err(io)?, meta.len()))
    }

    /// Resolves the links of a path and checks that it is below the folder. The error does not reveal whether
    /// other files exist.
    fn resolve(&self, path: &Path, folder: &Path) -> Result<PathBuf, FileError> {
        let outside = || FileError::Outside { path: display(path), folder: display(folder) };
        match path.canonicalize() {
            Ok(real) if real.starts_with(folder) => Ok(real),
            Ok(_) => Err(outside()),
            Err(source) => {
                let parents = path.ancestors().skip(1);
                let parents = parents.map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
                match parents.filter_map(|p| p.canonicalize().ok()).next() {
                    Some(real) if real.starts_with(folder) => {
                        Err(FileError::Io { path: display(path), source })
                    }
                    _ => Err(outside()),
                }
            }
        }
    }

    /// Reads a regular file of at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
        let (mut file, len) = self.open(path)?;
        read_sized(&mut file, len, path, limit)
    }

    /// Reads a regular file of at most `limit` bytes as text.
    pub fn read_text(&self, path: &Path, limit: u64) -> Result<String, FileError> {
        into_text(self.read(path, limit)?, path)
    }
}

/// Returns whether a file is in the folder or a subfolder, with links resolved.
pub fn is_below(path: &Path, folder: &Path) -> bool {
    let resolved = |p: &Path| if p.as_os_str().is_empty() { Path::new(".") } else { p }.canonicalize();
    let (Ok(path), Ok(folder)) = (resolved(path), resolved(folder)) else { return false };
    path.starts_with(folder)
}

fn read_sized(file: &mut File, len: u64, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    if len > limit {
        return Err(too_large(path, limit));
    }
    // The file may grow while it is read, which reading one byte beyond the limit detects.
    let mut bytes = Vec::with_capacity(len as usize + 1);
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| FileError::Io { path: display(path), source })?;
    if bytes.len() as u64 > limit { Err(too_large(path, limit)) } else { Ok(bytes) }
}

fn into_text(bytes: Vec<u8>, path: &Path) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|_| FileError::NotText(display(path)))
}

/// Reads a file, pipe or device named by the user, up to the size limit; `-` is standard input.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let shown = if path.as_os_str() == "-" { Path::new("standard input") } else { path };
    let io = |source| FileError::Io { path: display(shown), source };
    if path.as_os_str() == "-" {
        return read_stream(io::stdin().lock(), shown);
    }
    let mut file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    match meta.is_file() && meta.len() > 0 {
        true => read_sized(&mut file, meta.len(), path, MAX_FILE),
        // Files in /proc have a length of 0.
        false => read_stream(file, path),
    }
}

/// Reads a file, pipe or device named by the user as text.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    into_text(read(path)?, path)
}

fn read_stream(from: impl Read, path: &Path) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    from.take(MAX_STREAM + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| FileError::Io { path: display(path), source })?;
    if bytes.len() as u64 > MAX_STREAM { Err(too_large(path, MAX_STREAM)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with `in/file`, and a file `secret` next to `in`.
    fn tree(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("wavesim-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("in/deeper")).unwrap();
        std::fs::write(root.join("in/file"), "inside").unwrap();
        std::fs::write(root.join("secret"), "outside").unwrap();
        root
    }

    #[test]
    fn files_below_resolves_links() {
        let root = tree("below");
        let files = Files::below(&root.join("in")).unwrap();
        let read = |path: &str| files.read(&root.join(path), 100);
        assert_eq!(read("in/file").unwrap(), b"inside");
        assert_eq!(read("in/deeper/../file").unwrap(), b"inside");
        let outside = |path: &str| matches!(read(path), Err(FileError::Outside { .. }));
        assert!(outside("secret") && outside("in/../secret"));
        // The error does not reveal whether a file outside exists.
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
        assert_eq!(Files::any().read(&root.join("secret"), 100).unwrap(), b"outside");
        let nothing = Files::none().read(&root.join("secret"), 100);
        assert!(matches!(nothing, Err(FileError::Forbidden(_))), "{nothing:?}");
        assert!(Files::below(&root.join("secret")).is_err() && Files::below(&root.join("no")).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn sizes_are_bounded() {
        let root = tree("sizes");
        let read = |limit| Files::any().read(&root.join("secret"), limit);
        assert_eq!(read(7).unwrap(), b"outside");
        assert!(matches!(read(6), Err(FileError::TooLarge { .. })));
        assert!(matches!(read_stream(io::repeat(0), Path::new("zeros")), Err(FileError::TooLarge { .. })));
        std::fs::write(root.join("secret"), [0xff; 9]).unwrap();
        assert!(matches!(read_text(&root.join("secret")), Err(FileError::NotText(_))));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
