//! Writing of outputs: files are complete or unchanged; devices and pipes are written directly.
//!
//! Everything that the project writes for a user is written here. A test searches the other code for writers.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An output being written. A file has a temporary name, which [`Output::commit`] renames and `drop` removes.
/// A device or pipe is written directly, since renaming would replace it by a file.
#[derive(Debug)]
pub struct Output {
    out: BufWriter<File>,
    partial: Option<Partial>,
}

#[derive(Debug)]
struct Partial {
    path: PathBuf,
    to: PathBuf,
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Best effort: the original error is reported. After the rename there is nothing to remove.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Output {
    /// Creates an output at `path`. A link to a file is replaced.
    fn create(path: &Path) -> io::Result<Output> {
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
        if !is_link && is_special(path) {
            // Appends, which keeps earlier output of a device such as a terminal.
            let file = OpenOptions::new().append(true).open(path)?;
            return Ok(Output { out: BufWriter::new(file), partial: None });
        }
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy();
        let (partial, file) = create_partial(path, &name)?;
        if let Ok(meta) = std::fs::metadata(path) {
            // As if the file were overwritten.
            let _ = file.set_permissions(meta.permissions());
        }
        let partial = Some(Partial { path: partial, to: path.to_path_buf() });
        Ok(Output { out: BufWriter::new(file), partial })
    }

    /// Creates an output at the file that `path` names, following links.
    fn follow(path: &Path) -> io::Result<Output> {
        // `/dev/stdout` and similar names are links to an open file of the process, which has no path if it
        // is a pipe.
        if is_special(path) || path.starts_with("/dev") || path.starts_with("/proc") {
            let file = OpenOptions::new().append(true).open(path)?;
            return Ok(Output { out: BufWriter::new(file), partial: None });
        }
        let mut to = path.to_path_buf();
        // Writing through a link whose target does not exist creates the target, so `canonicalize` cannot be
        // used.
        for _ in 0..MAX_LINKS {
            match std::fs::read_link(&to) {
                Ok(next) => to = to.with_file_name("").join(next),
                Err(_) => return Output::create(&to),
            }
        }
        Err(io::Error::other("too many links"))
    }

    /// Returns whether the output will become the file `path`.
    fn writes_to(&self, path: &Path) -> bool {
        self.partial.as_ref().is_some_and(|partial| partial.to == path)
    }

    /// Completes the output: the file has its name from now on.
    ///
    /// # Errors
    /// The rest cannot be written, or the file cannot be renamed. An older file is left unchanged.
    pub fn commit(mut self) -> io::Result<()> {
        self.out.flush()?;
        self.rename()
    }

    fn rename(&self) -> io::Result<()> {
        self.partial.as_ref().map_or(Ok(()), |partial| std::fs::rename(&partial.path, &partial.to))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Creates a file with a temporary name next to `path`, whose file name is `name`. Other threads and processes may write
/// the same output.
fn create_partial(path: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    let id = std::process::id();
    for number in 0..MAX_PARTIALS {
        let partial = path.with_file_name(format!(".{name}.{id}.{number}"));
        // `create_new` does not follow an existing link.
        match File::create_new(&partial) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (partial, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Maximum number of unfinished outputs of one name and process.
const MAX_PARTIALS: u32 = 1000;

/// Maximum number of links followed for one name, as on Linux.
const MAX_LINKS: usize = 40;

/// Returns whether `path` is a device, pipe or socket.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

/// Writes a file named by the user. On an error the file is left unchanged. Links are followed; devices and
/// pipes are written directly.
pub fn write(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut output = create(path)?;
    write(&mut output)?;
    output.commit()
}

/// Appends to a file named by the user, which several processes may do at the same time, in one call: their parts do not
/// mix. This is for logs, of which a part is useful; all other outputs use [`write`].
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::options().create(true).append(true).open(path)?.write_all(bytes)
}

/// Creates an output of a file named by the user, like [`write`]. The file changes with [`Output::commit`].
///
/// # Errors
/// The file cannot be written.
pub fn create(path: &Path) -> io::Result<Output> {
    Output::follow(path)
}

/// Maximum length of an output's file name in bytes, leaving room for the extension.
const MAX_NAME: usize = 200;

/// The file name of an output. The output's name may come from a foreign file, so characters that could leave
/// the folder, hide the file or control a terminal or shell are percent-encoded, as in URLs. `None` if the
/// name is empty or too long.
pub fn file_name(name: &str) -> Option<String> {
    let mut out = String::new();
    for (at, byte) in name.bytes().enumerate() {
        let unescaped = byte.is_ascii_alphanumeric() || b"_-+=,@$".contains(&byte) || byte == b'.' && at > 0;
        match unescaped {
            true => out.push(byte as char),
            false => out += &format!("%{byte:02x}"),
        }
    }
    (!out.is_empty() && out.len() <= MAX_NAME).then_some(out)
}

/// Writes outputs to `DIR/NAME.EXTENSION` (see [`file_name`]). All files are first written under temporary
/// names and then renamed, so that an error leaves none of them. Devices and pipes are written directly.
/// Links are replaced and not followed, since the names may come from a foreign file.
pub fn write_all<'a, W: FnOnce(&mut dyn Write) -> io::Result<()>>(
    dir: &Path,
    extension: &str,
    outputs: impl IntoIterator<Item = (&'a str, W)>,
) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut written: Vec<Output> = Vec::new();
    for (name, write) in outputs {
        let file = file_name(name).ok_or_else(|| {
            io::Error::other(format!(
                "the name of an output has {} bytes, too many for a file name",
                name.len()
            ))
        })?;
        let to = dir.join(format!("{file}.{extension}"));
        if written.iter().any(|other| other.writes_to(&to)) {
            return Err(io::Error::other(format!("two outputs have the name `{name}`")));
        }
        let mut output = Output::create(&to)?;
        write(&mut output.out)?;
        output.out.flush()?;
        written.push(output);
    }
    written.iter().try_for_each(Output::rename)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty folder.
    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("wavesim-output-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn one(out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"1")
    }

    fn fail(out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"half")?;
        Err(io::Error::other("refused"))
    }

    #[test]
    fn file_names_cannot_leave_the_folder() {
        let name = |n: &str| file_name(n).unwrap();
        assert_eq!(name("out_y"), "out_y");
        assert_eq!(name("a.b"), "a.b");
        assert_eq!(name("./../evil"), "%2e%2f..%2fevil");
        assert_eq!(name(".."), "%2e.");
        assert_eq!(name("/etc/passwd"), "%2fetc%2fpasswd");
        assert_eq!(name("a\\b\0c\x1b"), "a%5cb%00c%1b");
        // Different names are different files.
        assert_ne!(name("%2e"), name("."));
        assert!(file_name("").is_none() && file_name(&"x".repeat(300)).is_none());
    }

    #[test]
    fn duplicate_output_names_are_an_error() {
        let dir = folder("twice");
        assert!(write_all(&dir, "npy", [("x", one), ("x", one)]).is_err());
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn an_error_leaves_the_file_unchanged() {
        let dir = folder("error");
        let file = dir.join("file");
        write(&file, one).unwrap();
        assert!(write(&file, fail).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"1");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        // Two at a time; the one that is completed last wins.
        let [mut first, mut second] = [create(&file).unwrap(), create(&file).unwrap()];
        first.write_all(b"first").unwrap();
        second.write_all(b"second").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"1");
        first.commit().unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"first");
        drop(second);
        assert_eq!(std::fs::read(&file).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn pipes_are_written_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let dir = folder("pipe");
        let pipe = dir.join("x.npy");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let link = dir.join("link");
        std::os::unix::fs::symlink("x.npy", &link).unwrap();
        let writers: [&dyn Fn() -> io::Result<()>; 3] =
            [&|| write(&pipe, one), &|| write(&link, one), &|| write_all(&dir, "npy", [("x", one)])];
        for writer in writers {
            let read = std::thread::spawn({
                let pipe = pipe.clone();
                move || std::fs::read(pipe).unwrap()
            });
            writer().unwrap();
            // If the pipe were replaced, the reader would wait forever.
            assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
            assert_eq!(read.join().unwrap(), b"1");
        }
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn user_links_are_followed_and_others_replaced() {
        let dir = folder("links");
        std::fs::create_dir_all(dir.join("in")).unwrap();
        let is_link = |name: &str| std::fs::symlink_metadata(dir.join(name)).unwrap().is_symlink();
        for (name, target) in [("link", "in/file"), ("twice", "link"), ("in/loop", "loop")] {
            std::os::unix::fs::symlink(target, dir.join(name)).unwrap();
        }
        // Initially the links' target does not exist.
        for name in ["twice", "link"] {
            write(&dir.join(name), |out| out.write_all(name.as_bytes())).unwrap();
            assert_eq!(std::fs::read(dir.join("in/file")).unwrap(), name.as_bytes());
            assert!(is_link("link") && is_link("twice") && !is_link("in/file"));
        }
        assert!(write(&dir.join("in/loop"), one).is_err());
        std::os::unix::fs::symlink("in/file", dir.join("x.npy")).unwrap();
        write_all(&dir, "npy", [("x", one)]).unwrap();
        assert!(!is_link("x.npy"));
        assert_eq!(std::fs::read(dir.join("in/file")).unwrap(), b"link");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
