//! The data directory: maps architectures to their files and reads these with overlays and pseudocode.

use crate::diag::Diagnostic;
use crate::source::{FileId, SourceMap, Span};
use crate::tables::ArchTable;
use crate::xml;
use std::path::{Path, PathBuf};

/// Short name and XML file of each of AMD's architectures.
pub const AMD: &[(&str, &str)] = &[
    ("rdna3", "isa_rdna3.xml"),
    ("rdna3.5", "isa_rdna35.xml"),
    ("rdna4", "isa_rdna4.xml"),
    ("cdna3", "isa_cdna3.xml"),
    ("cdna4", "isa_cdna4.xml"),
    ("cdna5", "isa_cdna5.xml"),
];

/// Every architecture: AMD's, then those described by the project's own documents.
pub const ALL: &[(&str, &str)] =
    &[AMD[0], AMD[1], AMD[2], AMD[3], AMD[4], AMD[5], ("riscv_gpu", "isa_riscv_gpu.xml")];

/// The result of [`load`].
#[derive(Default)]
pub struct Loaded {
    /// Every file read: XML, overlays, pseudocode.
    pub sources: SourceMap,
    /// The architectures' tables, in the order of the request.
    pub tables: Vec<&'static ArchTable>,
    /// The pseudocode files, in [`Loaded::sources`].
    pub pcode: Vec<FileId>,
    /// The path of each file read, for rebuild tracking.
    pub paths: Vec<PathBuf>,
    /// Diagnostics in the order of reading.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the architectures' XML from `isa_dir`, the overlays, and every `.pcode` file below `pcode_dir`. A
/// document that AMD does not publish comes from the project's `data/` if `isa_dir` lacks it. `root`, the
/// project's directory, is stripped from file names in messages.
pub fn load(
    archs: &[(&str, &str)],
    isa_dir: &Path,
    overlay_dir: &Path,
    pcode_dir: &Path,
    root: &Path,
) -> Loaded {
    let mut out = Loaded::default();
    let overlays: Vec<FileId> =
        files_below(overlay_dir, "xml").iter().filter_map(|p| out.read(p, root)).collect();
    for (name, file) in archs {
        let mut path = isa_dir.join(file);
        if !path.exists() && AMD.iter().all(|published| published.0 != *name) {
            path = root.join("data").join(file);
        }
        let Some(id) = out.read(&path, root) else { continue };
        match xml::load_into(&out.sources, id) {
            Ok(mut spec) => {
                for &overlay in &overlays {
                    if let Err(mut e) = xml::apply_overlay(&out.sources, overlay, name, &mut spec) {
                        out.diagnostics.append(&mut e);
                    }
                }
                xml::apply_errata(&mut spec);
                out.tables.push(xml::to_tables(&spec, name));
            }
            Err(mut e) => out.diagnostics.append(&mut e),
        }
    }
    for path in files_below(pcode_dir, "pcode") {
        if let Some(id) = out.read(&path, root) {
            out.pcode.push(id);
        }
    }
    out
}

impl Loaded {
    /// Returns the displayed name and the path of each pseudocode file.
    pub fn pcode_paths(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.pcode.iter().filter_map(|&id| {
            let name = self.sources.file(id).name.as_str();
            let path = self.paths.iter().find(|p| p.ends_with(name));
            path.map(|p| (name, p.as_path()))
        })
    }

    fn read(&mut self, path: &Path, root: &Path) -> Option<FileId> {
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        self.paths.push(path.to_path_buf());
        match std::fs::read_to_string(path) {
            Ok(text) => Some(self.sources.add(name, text)),
            Err(e) => {
                let id = self.sources.add(name.clone(), String::new());
                self.diagnostics
                    .push(Diagnostic::error(Span::new(id, 0, 0), format!("cannot read {name}: {e}")));
                None
            }
        }
    }
}

/// Returns the files below `dir` that have an extension, sorted by path.
pub fn files_below(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}
