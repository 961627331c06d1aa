//! Compilation of source code, by a compiler that the server has installed. A page without a server has none.

use crate::diagnose::{Message, Text};
use crate::disassemble;
use crate::program::{arch, check_size, encode};
use isa_spec::diag::Severity;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::atomic::AtomicBool;
use wavesim_isa::arch::Arch;

/// Maximum number of bytes of the compiler's messages in an answer.
const MAX_LOG: usize = 64 << 10;
/// Maximum number of diagnostics in an answer.
const MAX_DIAGNOSTICS: usize = 200;

/// A language of source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// OpenCL C.
    Opencl,
    /// HIP.
    Hip,
}

impl Language {
    /// The name of a source file, as messages and line tables show it.
    pub fn file_name(self) -> &'static str {
        match self {
            Language::Opencl => "kernel.cl",
            Language::Hip => "kernel.hip",
        }
    }
}

/// A source text and how to compile it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceCode {
    /// The language.
    pub language: Language,
    /// The source text.
    pub text: String,
    /// The architecture; the default one if none is given.
    #[serde(default)]
    pub arch: Option<String>,
    /// The wave size; the compiler's default if none is given.
    #[serde(default)]
    pub wave: Option<u32>,
    /// The name of a [compiler](Compiler::compilers); the first one if none is given.
    #[serde(default)]
    pub compiler: Option<String>,
    /// Options of the compiler, separated by white space.
    #[serde(default)]
    pub options: String,
}

/// What a compiler made of a source.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The code object; `None` if the source has errors.
    pub object: Option<Vec<u8>>,
    /// The compiler's messages.
    pub log: String,
}

/// A compiler of source code.
pub trait Compiler: Debug + Send + Sync {
    /// Returns the names of the installed compilers that support an architecture, the preferred one first, each with its
    /// version.
    fn compilers(&self, arch: Arch) -> Vec<(String, String)>;

    /// Compiles a source until it is interrupted.
    ///
    /// # Errors
    /// The source cannot be compiled here; the message is for the page. Errors in the source are in the result.
    fn compile(&self, source: &SourceCode, arch: Arch, interrupt: &AtomicBool) -> Result<Compiled, String>;
}

/// Lists the compilers for an architecture: names and versions.
pub fn compilers(compiler: Option<&dyn Compiler>, wanted: Option<&str>) -> Result<Value, String> {
    let arch = wanted.map_or(Ok(Arch::DEFAULT), arch)?;
    let list = compiler.map_or_else(Vec::new, |compiler| compiler.compilers(arch));
    let list: Vec<Value> =
        list.iter().map(|(name, version)| json!({"name": name, "version": version})).collect();
    Ok(json!({"available": compiler.is_some(), "compilers": list}))
}

/// Compiles a source. Returns the code object with its disassembly, and the compiler's messages.
pub fn compile(
    compiler: Option<&dyn Compiler>,
    source: &SourceCode,
    interrupt: &AtomicBool,
) -> Result<Value, String> {
    check_size(&source.text)?;
    let arch = source.arch.as_deref().map_or(Ok(Arch::DEFAULT), arch)?;
    let compiler = compiler.ok_or(
        "compiling needs a server with a compiler: `wavesim serve` on a machine with clang shows this page with one",
    )?;
    let compiled = compiler.compile(source, arch, interrupt)?;
    let name = source.language.file_name();
    let mut log = compiled.log;
    let end = (0..=log.len().min(MAX_LOG)).rev().find(|at| log.is_char_boundary(*at)).unwrap_or(0);
    log.truncate(end);
    let diagnostics: Vec<Value> = diagnostics(&log, name, &source.text);
    let object = compiled.object.as_deref();
    let disassembly = object.map(|object| disassemble::code(object, None, Some(name))).transpose()?;
    Ok(json!({
        "object": object.map(encode), "name": name, "log": log, "diagnostics": diagnostics, "disassembly": disassembly,
    }))
}

/// Returns the messages of a log (`kernel.cl:3:5: error: …`) that are about a file, with their ranges in its text.
fn diagnostics(log: &str, name: &str, text: &str) -> Vec<Value> {
    let place = Text::new(text);
    let mut found = Vec::new();
    for line in log.lines() {
        let Some((line, column, severity, message)) = diagnostic(line, name) else { continue };
        if let Some(range) = place.word(line, column) {
            let severity = if severity == "warning" { Severity::Warning } else { Severity::Error };
            let (from, to, text) = (range.start, range.end, message.to_string());
            found.push(place.json(&Message { from, to, severity, text, help: None }));
        }
    }
    found.truncate(MAX_DIAGNOSTICS);
    found
}

/// Splits a message into its line, its column, its severity and its text.
fn diagnostic<'a>(line: &'a str, name: &str) -> Option<(usize, usize, &'a str, &'a str)> {
    let rest = line.strip_prefix(name)?.strip_prefix(':')?;
    let (number, rest) = rest.split_once(':')?;
    let (column, rest) = rest.split_once(": ")?;
    let (severity, message) = rest.split_once(": ")?;
    let known = ["error", "fatal error", "warning"].contains(&severity);
    known.then_some((number.parse().ok()?, column.parse().ok()?, severity, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_source_have_ranges() {
        let text = "kernel void f() {\n  größe = 1;\n}\n";
        let log = "kernel.cl:2:3: error: use of undeclared identifier 'größe'\n    2 |   größe = 1;\n\
                   other.h:1:1: error: not here\nkernel.cl:1:1: note: no\n1 error generated.\n";
        let found = diagnostics(log, "kernel.cl", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&found[0]["from"], &found[0]["to"]), (&json!(20), &json!(25)));
        assert_eq!(found[0]["message"], "use of undeclared identifier 'größe'");
    }
}
