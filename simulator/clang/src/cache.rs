//! Results of compilations on disk. An entry is found by everything that goes into a compilation, and is used only
//! while the contents of the files that clang has read are the same.
//!
//! Any number of processes may share a cache: entries are written under a temporary name and renamed, read as a whole,
//! and end with a checksum. An entry that cannot be read or written is no error.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum total size of the entries in bytes. Beyond it, those that have not been used for the longest time are
/// removed.
const MAX_BYTES: u64 = 256 << 20;
/// Time between two changes of a file after which it has another time in every file system.
const COARSE_TIME: Duration = Duration::from_secs(3);
/// How exactly the time of the last use is known.
const RECENT: Duration = Duration::from_secs(600);
/// First bytes of an entry; the number is the version of the format.
const MAGIC: &[u8] = b"wavesim compilation 1\n";
/// Macros whose values differ from one compilation to the next.
const VOLATILE: [&[u8]; 3] = [b"__DATE__", b"__TIME__", b"__TIMESTAMP__"];

type Hash = [u8; 32];

/// A folder with entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
    max_bytes: u64,
}

/// What a compilation depends on, apart from the files that clang reads.
#[derive(Default)]
pub struct Key(Sha256);

/// The result of a compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Clang's output file.
    pub binary: Vec<u8>,
    /// Clang's messages.
    pub log: String,
}

impl Key {
    /// Adds a part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Adds a file that is too large to be read each time, such as the compiler, by its path, size and time.
    pub fn add_file(&mut self, path: &Path) {
        self.add(path.as_os_str().as_encoded_bytes());
        let found = std::fs::metadata(path).ok();
        let time = |meta: &Metadata| meta.modified().ok()?.duration_since(UNIX_EPOCH).ok();
        let time = found.as_ref().and_then(time).map_or(0, |time| time.as_nanos());
        self.add(&found.map_or(0, |meta| meta.len()).to_le_bytes());
        self.add(&time.to_le_bytes());
    }
}

impl Cache {
    /// Returns the cache of this user: the folder that `WAVESIM_CACHE` names, or `wavesim/compiled` in the user's folder
    /// for caches. `None` if the variable is 0, or there is no such folder.
    pub fn of_user() -> Option<Cache> {
        let folder = match crate::variable("WAVESIM_CACHE") {
            Some(off) if off == "0" => return None,
            Some(folder) => PathBuf::from(folder),
            None => crate::cache_folder()?.join("compiled"),
        };
        Some(Cache::new(folder, MAX_BYTES))
    }

    /// Returns the cache in a folder, which is created when the first entry is stored.
    pub fn new(folder: PathBuf, max_bytes: u64) -> Cache {
        Cache { folder, max_bytes }
    }

    /// Returns the file of an entry.
    pub fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(digits(&key.0.clone().finalize()))
    }

    /// Returns the entry of a key if the files that clang has read are unchanged.
    pub fn find(&self, key: &Key) -> Option<Entry> {
        Some(self.find_with_files(key)?.0)
    }

    /// The same, and the files.
    pub fn find_with_files(&self, key: &Key) -> Option<(Entry, Vec<PathBuf>)> {
        let path = self.path(key);
        let bytes = std::fs::read(&path).ok()?;
        let (content, checksum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
        if hash(content)[..] != *checksum {
            return None;
        }
        let mut rest = content.strip_prefix(MAGIC)?;
        let mut files = Vec::new();
        for _ in 0..number(&mut rest)? {
            let (file, expected) = (field(&mut rest)?, rest.split_off(..32)?);
            // Paths on Unix are any bytes; those of other systems are text.
            let file = std::str::from_utf8(file).ok()?;
            if Content::of_file(Path::new(file))?.hash[..] != *expected {
                return None;
            }
            files.push(PathBuf::from(file));
        }
        let log = String::from_utf8(field(&mut rest)?.to_vec()).ok()?;
        let binary = field(&mut rest)?.to_vec();
        touch(&path);
        Some((Entry { binary, log }, files))
    }

    /// Stores the result of a compilation that has read these files, unless it can differ the next time.
    pub fn store(&self, key: &Key, files: &[PathBuf], entry: &Entry) {
        let _ = self.try_store(key, files, entry);
    }

    fn try_store(&self, key: &Key, files: &[PathBuf], entry: &Entry) -> Option<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((files.len() as u64).to_le_bytes());
        for file in files {
            let Content { hash, is_volatile } = Content::of_file(file)?;
            if is_volatile {
                return None;
            }
            put(&mut bytes, file.to_str()?.as_bytes());
            bytes.extend(hash);
        }
        put(&mut bytes, entry.log.as_bytes());
        put(&mut bytes, &entry.binary);
        let checksum = hash(&bytes);
        bytes.extend(checksum);
        self.store_file(&self.path(key), &bytes)
    }

    /// Writes a file in the folder, unless it is too large.
    pub fn store_file(&self, path: &Path, bytes: &[u8]) -> Option<()> {
        if bytes.len() as u64 > self.max_bytes / 4 {
            return None;
        }
        create_private(&self.folder)?;
        self.make_room(bytes.len() as u64);
        wavesim_files::write(path, |out| out.write_all(bytes)).ok()
    }

    /// Removes the entries that have not been used for the longest time, until `bytes` more fit. Files that processes
    /// have left unfinished are removed in the same way.
    fn make_room(&self, bytes: u64) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let meta = entry.metadata().ok()?;
                meta.is_file().then_some((meta.modified().ok()?, meta.len(), entry.path()))
            })
            .collect();
        let mut total = bytes + files.iter().map(|file| file.1).sum::<u64>();
        if total <= self.max_bytes {
            return;
        }
        files.sort();
        // More than needed, so that the folder is not listed in vain by each of the next compilations.
        for (_, size, path) in files {
            if total <= self.max_bytes / 4 * 3 {
                break;
            }
            if std::fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

/// Returns whether a text mentions a macro whose value differs from one compilation to the next.
pub fn is_volatile(text: &[u8]) -> bool {
    // Most files have no such word, and `__` is rare.
    text.windows(2)
        .enumerate()
        .any(|(at, pair)| pair == b"__" && VOLATILE.iter().any(|name| text[at..].starts_with(name)))
}

/// Returns the options with which clang writes all files that it has read as a rule of a Makefile. The driver of clang 21
/// ignores `-MF` for HIP, so these are options of the compiler itself.
pub fn dependency_options(rule: &Path) -> Vec<String> {
    let rule = rule.display().to_string();
    let options = ["-dependency-file", &rule, "-MT", "result", "-sys-header-deps"];
    options.iter().flat_map(|option| ["-Xclang".to_string(), option.to_string()]).collect()
}

/// Returns the files that a rule of a Makefile names as prerequisites, without those in `except`.
pub fn prerequisites(rule: &str, except: &Path) -> Vec<PathBuf> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut chars = rule.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            // The end of a line that goes on.
            ('\\', Some('\n')) => {}
            ('\\', Some(' ' | '#')) | ('$', Some('$')) => word.extend(chars.next()),
            (' ' | '\n', _) => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            (other, _) => word.push(other),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    let mut files: Vec<PathBuf> = words.into_iter().map(PathBuf::from).collect();
    // The first word is the target with its colon.
    files.drain(..files.len().min(1));
    files.retain(|file| !file.starts_with(except));
    files.sort();
    files.dedup();
    files
}

fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the SHA-256 hash of some bytes in hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    digits(&hash(bytes))
}

/// The same for a file's content.
pub fn hexadecimal_of_file(path: &Path) -> Option<String> {
    Some(digits(&Content::of_file(path)?.hash))
}

/// What the cache knows of the content of a file.
#[derive(Clone, Copy)]
struct Content {
    hash: Hash,
    /// See [`is_volatile`].
    is_volatile: bool,
}

impl Content {
    /// Reads a file. A process reads it once while its size and time are the same: HIP's headers and their precompiled
    /// form are 17 MB.
    fn of_file(path: &Path) -> Option<Content> {
        static KNOWN: Mutex<BTreeMap<PathBuf, (u64, SystemTime, Content)>> = Mutex::new(BTreeMap::new());
        let meta = std::fs::metadata(path).ok()?;
        let (size, time) = (meta.len(), meta.modified().ok()?);
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, content)) = known().get(path).filter(|known| (known.0, known.1) == (size, time)) {
            return Some(*content);
        }
        let bytes = std::fs::read(path).ok()?;
        let content = Content { hash: hash(&bytes), is_volatile: is_volatile(&bytes) };
        // What has just changed can change again without another time.
        if SystemTime::now().duration_since(time).is_ok_and(|age| age > COARSE_TIME) {
            known().insert(path.to_path_buf(), (size, time, content));
        }
        Some(content)
    }
}

/// Notes that a file is in use, so that it is removed late.
pub fn touch(path: &Path) {
    let Ok(file) = std::fs::File::options().append(true).open(path) else { return };
    let time = file.metadata().and_then(|meta| meta.modified());
    let is_recent = |time: SystemTime| SystemTime::now().duration_since(time).is_ok_and(|age| age < RECENT);
    if !time.is_ok_and(is_recent) {
        let _ = file.set_modified(SystemTime::now());
    }
}

fn put(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend((field.len() as u64).to_le_bytes());
    bytes.extend(field);
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(rest.split_off(..8)?.try_into().ok()?))
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(number(rest)?).ok()?;
    rest.split_off(..len)
}

/// Creates a folder that only the current user can access, and its parents.
fn create_private(folder: &Path) -> Option<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TempDir;

    fn key(text: &str) -> Key {
        let mut key = Key::default();
        key.add(text.as_bytes());
        key
    }

    fn entry(size: usize) -> Entry {
        Entry { binary: vec![7; size], log: "a warning".to_string() }
    }

    #[test]
    fn entries_depend_on_the_files_that_were_read() {
        let folder = TempDir::new().unwrap();
        let cache = Cache::new(folder.path("cache"), 1 << 20);
        let header = folder.write("a.h", b"int a;").unwrap();
        assert_eq!(cache.find(&key("x")), None);
        cache.store(&key("x"), std::slice::from_ref(&header), &entry(100));
        assert_eq!((cache.find(&key("x")), cache.find(&key("y"))), (Some(entry(100)), None));
        // Another process stores the same.
        cache.store(&key("x"), std::slice::from_ref(&header), &entry(100));
        assert_eq!(cache.find(&key("x")), Some(entry(100)));
        folder.write("a.h", b"int b;").unwrap();
        assert_eq!(cache.find(&key("x")), None);
        folder.write("a.h", b"int a;").unwrap();
        assert_eq!(cache.find(&key("x")), Some(entry(100)));
        std::fs::remove_file(&header).unwrap();
        assert_eq!(cache.find(&key("x")), None);
        // What is different each time is not stored.
        let header = folder.write("a.h", b"char *a = __DATE__;").unwrap();
        cache.store(&key("z"), &[header], &entry(100));
        assert_eq!(cache.find(&key("z")), None);
    }

    #[test]
    fn hashes_of_files_are_those_of_their_contents() {
        let folder = TempDir::new().unwrap();
        let file = folder.write("a.h", b"int a;").unwrap();
        let at = |seconds: u64| {
            let file = std::fs::File::options().append(true).open(&file).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        for (text, seconds) in [("int a;", 0), ("int b;", 0), ("int c;", 60), ("int d;", 30), ("int dd;", 30)]
        {
            folder.write("a.h", text.as_bytes()).unwrap();
            at(seconds);
            for _ in 0..2 {
                assert_eq!(Content::of_file(&file).unwrap().hash, hash(text.as_bytes()), "{text}");
            }
        }
        // It is in use, and not only since then.
        at(700);
        touch(&file);
        let used = std::fs::metadata(&file).unwrap().modified().unwrap();
        assert!(used.elapsed().unwrap() < Duration::from_secs(600));
        touch(&file);
        assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), used);
        std::fs::remove_file(&file).unwrap();
        assert!(Content::of_file(&file).is_none());
    }

    #[test]
    fn damaged_entries_are_not_used() {
        let folder = TempDir::new().unwrap();
        let cache = Cache::new(folder.path("cache"), 1 << 20);
        cache.store(&key("x"), &[], &entry(100));
        let path = cache.path(&key("x"));
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(cache.find(&key("x")), None, "byte {at}");
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert_eq!(cache.find(&key("x")), None, "{at} bytes");
        }
    }

    #[test]
    fn the_size_is_bounded() {
        let folder = TempDir::new().unwrap();
        let cache = Cache::new(folder.path("cache"), 10_000);
        for number in 0..20 {
            cache.store(&key(&number.to_string()), &[], &entry(1000));
            let files = std::fs::read_dir(folder.path("cache")).unwrap();
            assert!(files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>() <= 10_000);
        }
        assert!(cache.find(&key("0")).is_none() && cache.find(&key("19")).is_some());
        // One entry does not displace all others.
        cache.store(&key("large"), &[], &entry(5000));
        assert!(cache.find(&key("large")).is_none() && cache.find(&key("19")).is_some());
    }

    #[test]
    fn rules_are_parsed() {
        let rule =
            "/tmp/t/program.out: /tmp/t/program.cl /usr/a.h \\\n  /usr/with\\ space.h /usr/$$b.h /usr/a.h\n";
        let expected = ["/usr/$b.h", "/usr/a.h", "/usr/with space.h"].map(PathBuf::from);
        assert_eq!(prerequisites(rule, Path::new("/tmp/t")), expected);
        assert!(prerequisites("", Path::new("/tmp/t")).is_empty());
    }
}
