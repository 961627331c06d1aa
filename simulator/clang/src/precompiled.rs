//! The headers that every HIP program has, and their precompiled form in the [cache](crate::cache).
//!
//! A precompiled header depends on the compiler, the target, the options and the contents of the headers. Macros of a
//! program are a part of the options only if the headers test them: clang would not notice that the others change
//! nothing. Whatever clang refuses is compiled from the text instead.

use crate::cache::{self, Cache, Entry, Key};
use crate::{Clang, TempDir};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// What a HIP program includes first, as AMD's hiprtc does: the runtime, half precision and `hip_bfloat16`, complex
/// numbers, constants and cooperative groups. LLVM 22 no longer defines the macro of the wave size, which the headers of
/// HIP 6 use.
pub const PRELUDE: &str = "\
#ifndef __AMDGCN_WAVEFRONT_SIZE
#ifdef __GFX9__
#define __AMDGCN_WAVEFRONT_SIZE 64
#else
#define __AMDGCN_WAVEFRONT_SIZE 32
#endif
#endif
#include <hip/hip_runtime.h>
#if __has_include(<hip/hip_fp16.h>)
#include <hip/hip_fp16.h>
#endif
#if __has_include(<hip/hip_bfloat16.h>)
#include <hip/hip_bfloat16.h>
#endif
#if __has_include(<hip/hip_complex.h>)
#include <hip/hip_complex.h>
#endif
#if __has_include(<hip/hip_math_constants.h>)
#include <hip/hip_math_constants.h>
#endif
#if __has_include(<hip/hip_cooperative_groups.h>)
#include <hip/hip_cooperative_groups.h>
#endif
";

/// What a precompiled prelude is made for.
pub struct Request<'a> {
    pub clang: &'a Clang,
    pub cache: &'a Cache,
    /// For temporary files.
    pub folder: &'a TempDir,
    /// Arguments that select language, target and headers.
    pub base: &'a [String],
    /// Arguments that name the device libraries, which no header depends on.
    pub libraries: &'a [String],
    /// Further arguments of the program.
    pub program: &'a [String],
    /// Headers of the program: names and texts.
    pub headers: &'a [(String, String)],
    pub stop: &'a AtomicBool,
}

/// A precompiled prelude.
struct Found {
    path: PathBuf,
    /// The identifiers in the headers, one a line; after `#` if a condition of the preprocessor has it.
    names: String,
    /// The files of the headers.
    files: Vec<PathBuf>,
}

/// Caches that take no precompiled headers, since they are too small or cannot be written.
static REFUSING: Mutex<Vec<Cache>> = Mutex::new(Vec::new());

/// Returns whether clang's messages are about a precompiled header.
pub fn is_refused(log: &str) -> bool {
    [".pch", "PCH", "precompiled", "AST file"].iter().any(|word| log.contains(word))
}

/// Returns the macro that an argument (`-DNAME=1`, `-UNAME`) defines or removes.
fn macro_name(argument: &str) -> Option<&str> {
    let rest = argument.strip_prefix("-D").or_else(|| argument.strip_prefix("-U"))?;
    rest.split(['=', '(']).next()
}

impl Request<'_> {
    /// Returns the file for `-include-pch`, which is made if the cache does not have it. `None` if the program needs the
    /// text.
    pub fn find(&self) -> Option<PathBuf> {
        if REFUSING.lock().unwrap_or_else(PoisonError::into_inner).contains(self.cache) {
            return None;
        }
        let (macros, others): (Vec<_>, Vec<_>) =
            self.program.iter().partition(|argument| macro_name(argument).is_some());
        // Files that the program includes itself come later.
        let others: Vec<_> = others.into_iter().filter(|other| !other.starts_with("-include")).collect();
        let mut known = Vec::new();
        // Macros can make headers include others, which test more macros.
        for _ in 0..3 {
            let arguments = self.base.iter().chain(others.iter().copied()).chain(known.iter().copied());
            let found = self.with(&arguments.cloned().collect::<Vec<_>>())?;
            if self.headers.iter().any(|(name, _)| hides(name, &found.files)) {
                return None;
            }
            let now: Vec<_> = macros.iter().copied().filter(|given| found.has(given).is_some()).collect();
            if now == known {
                return Some(found.path);
            }
            // A macro that replaces words of the headers may have as many values as there are programs.
            if now.iter().any(|given| found.has(given) != Some(Use::Tested)) {
                return None;
            }
            known = now;
        }
        None
    }

    fn with(&self, arguments: &[String]) -> Option<Found> {
        let mut key = Key::default();
        key.add(b"precompiled");
        key.add(PRELUDE.as_bytes());
        key.add_file(&self.clang.path()?);
        key.add(std::env::current_dir().ok()?.as_os_str().as_encoded_bytes());
        arguments.iter().for_each(|argument| key.add(argument.as_bytes()));
        let path = self.cache.path(&key).with_extension("pch");
        let found = self.cache.find_with_files(&key).and_then(|(Entry { binary, log }, files)| {
            let names = String::from_utf8(binary).ok()?;
            let is_whole = cache::hexadecimal_of_file(&path)? == log;
            is_whole.then(|| Found { path: path.clone(), names, files })
        });
        if let Some(found) = found {
            cache::touch(&path);
            return Some(found);
        }
        let (bytes, files) = self.compile(arguments)?;
        let names = names(&files)?;
        let entry = Entry { binary: names.clone().into_bytes(), log: cache::hexadecimal(&bytes) };
        if self.cache.store_file(&path, &bytes).is_none() {
            REFUSING.lock().unwrap_or_else(PoisonError::into_inner).push(self.cache.clone());
            return None;
        }
        self.cache.store(&key, &files, &entry);
        Some(Found { path, names, files })
    }

    /// Compiles the prelude. Returns the result and the files of the headers.
    fn compile(&self, arguments: &[String]) -> Option<(Vec<u8>, Vec<PathBuf>)> {
        let prelude = self.folder.write("prelude.h", PRELUDE.as_bytes()).ok()?;
        let (out, rule) = (self.folder.path("prelude.pch"), self.folder.path("prelude.d"));
        let mut arguments = arguments.to_vec();
        // Clang checks the sizes of the headers; the cache checks their contents, whatever their times are.
        arguments.extend(self.libraries.iter().cloned());
        let form = ["-fsyntax-only", "-Xclang", "-fno-pch-timestamp", "-Xclang", "-emit-pch"];
        arguments.extend(form.map(String::from));
        let output = ["-Xclang", "-o", "-Xclang", &out.display().to_string()].map(String::from);
        arguments.extend(output);
        arguments.extend(cache::dependency_options(&rule));
        // A file would have to exist whenever the result is used; the standard input need not.
        arguments.push("-".to_string());
        let input = Stdio::from(std::fs::File::open(prelude).ok()?);
        let run = self.clang.run_until(self.folder, &arguments, input, self.stop).ok()??;
        let rule = std::fs::read_to_string(rule).ok().filter(|_| run.success)?;
        Some((std::fs::read(out).ok()?, cache::prerequisites(&rule, self.folder.root())))
    }
}

/// How headers use a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// In a condition of the preprocessor.
    Tested,
    /// Elsewhere only.
    Other,
}

impl Found {
    /// Returns how the headers use the macro of an argument.
    fn has(&self, argument: &str) -> Option<Use> {
        let name = macro_name(argument)?;
        self.names.lines().find_map(|line| match line.strip_prefix('#') {
            Some(tested) => (tested == name).then_some(Use::Tested),
            None => (line == name).then_some(Use::Other),
        })
    }
}

/// Returns whether a header of the program could be found in the place of one of these files.
fn hides(name: &str, files: &[PathBuf]) -> bool {
    // Components without `.`; `ends_with` compares whole ones.
    let name: PathBuf = Path::new(name).components().filter(|c| c.as_os_str() != ".").collect();
    files.iter().any(|file| file.ends_with(&name))
}

/// Returns the identifiers of the prelude and its files, in the form of [`Found`].
fn names(files: &[PathBuf]) -> Option<String> {
    let mut out = BTreeMap::new();
    collect(PRELUDE.as_bytes(), &mut out);
    for file in files {
        collect(&std::fs::read(file).ok()?, &mut out);
    }
    let line = |(name, used): (String, Use)| match used {
        Use::Tested => format!("#{name}\n"),
        Use::Other => format!("{name}\n"),
    };
    Some(out.into_iter().map(line).collect())
}

/// Adds the identifiers of a text.
fn collect(text: &[u8], names: &mut BTreeMap<String, Use>) {
    let mut is_continued = false;
    let mut used = Use::Other;
    for line in text.split(|byte| *byte == b'\n') {
        if !is_continued {
            let directive = line.trim_ascii_start().strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
            let tests = directive.is_some_and(|text| text.starts_with(b"if") || text.starts_with(b"elif"));
            used = if tests { Use::Tested } else { Use::Other };
        }
        is_continued = line.trim_ascii_end().ends_with(b"\\");
        for word in line.split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_')) {
            if word.first().is_none_or(u8::is_ascii_digit) {
                continue;
            }
            let word = String::from_utf8_lossy(word).into_owned();
            let known = names.entry(word).or_insert(used);
            if used == Use::Tested {
                *known = used;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headers() {
        let mut names = BTreeMap::new();
        let text =
            b"  # if defined(A) && \\\n  B > 1x\n#define A C /* D */\nint E = F;\n#elif __G\n#ifndef H\nA";
        collect(text, &mut names);
        let tested = |name: &str| names.get(name).copied();
        for name in ["A", "B", "__G", "H"] {
            assert_eq!(tested(name), Some(Use::Tested), "{name}");
        }
        for name in ["C", "D", "E", "F"] {
            assert_eq!(tested(name), Some(Use::Other), "{name}");
        }
        assert_eq!(tested("x"), None);
        let found = |names: &str| Found { path: PathBuf::new(), names: names.into(), files: Vec::new() };
        assert_eq!(found("#A\nB\n").has("-DA=1"), Some(Use::Tested));
        assert_eq!(found("#A\nB\n").has("-UB"), Some(Use::Other));
        assert_eq!(found("#AB\nBC\n").has("-DA(x)=B"), None);
    }

    #[test]
    fn headers_of_programs_that_hide_others() {
        let files = [PathBuf::from("/opt/include/hip/hip_runtime.h")];
        for (name, expected) in [
            ("hip/hip_runtime.h", true),
            ("./hip/./hip_runtime.h", true),
            ("hip_runtime.h", true),
            ("runtime.h", false),
            ("other/hip_runtime.h", false),
        ] {
            assert_eq!(hides(name, &files), expected, "{name}");
        }
    }
}
