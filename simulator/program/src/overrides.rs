//! Instructions whose semantics a user's pseudocode file replaces at run time. The evaluator runs them;
//! others run as compiled.

use crate::isa;
use isa_spec::canonical;
use isa_spec::diag::{self, Severity};
use isa_spec::facts::Facts;
use isa_spec::pcode::ir::Semantics;
use isa_spec::tables::EntryId;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use wavesim_isa::arch::Arch;

/// Replacement semantics by architecture and instruction name.
#[derive(Debug, Default)]
pub struct Overrides {
    by_arch: Vec<BTreeMap<String, Replacement>>,
}

/// Replacement semantics and their facts in waves of 32 and of 64.
#[derive(Debug)]
struct Replacement {
    semantics: Semantics,
    /// Computed for the instructions that a program uses: a file may define thousands.
    facts: [OnceLock<Facts>; 2],
}

/// The reason why a pseudocode file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OverrideError {
    /// The file has errors; the rendered diagnostics.
    #[error("{0}")]
    Wrong(String),
}

impl Overrides {
    /// Returns an empty set: everything runs as compiled.
    pub fn none() -> &'static Overrides {
        static NONE: Overrides = Overrides { by_arch: Vec::new() };
        &NONE
    }

    /// Parses and checks the text of a pseudocode file, which `name` identifies in diagnostics. The file may
    /// call the project's functions and instructions. Returns rendered warnings, if there are any.
    pub fn parse(name: String, text: String) -> Result<(Overrides, Option<String>), OverrideError> {
        let loaded = isa::loaded();
        let mut sources = loaded.sources.clone();
        let file = sources.add(name, text);
        let canonical::Replacements { by_arch, diagnostics, .. } =
            canonical::replacements(&sources, &loaded.pcode, file, &loaded.tables);
        let shown = || diag::render_all(&sources, &diagnostics);
        if diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return Err(OverrideError::Wrong(shown()));
        }
        let warnings = (!diagnostics.is_empty()).then(shown);
        let replacement = |semantics: Semantics| Replacement { semantics, facts: Default::default() };
        let by_name = |names: BTreeMap<String, Semantics>| {
            names.into_iter().map(|(name, semantics)| (name, replacement(semantics))).collect()
        };
        Ok((Overrides { by_arch: by_arch.into_iter().map(by_name).collect() }, warnings))
    }

    /// Returns the replacements of `base`, and those of an architecture's instructions that `semantics` has by their
    /// upper-case names, which take precedence.
    pub fn with(base: Option<&Overrides>, arch: Arch, semantics: BTreeMap<String, Semantics>) -> Overrides {
        let replacement = |semantics: Semantics| Replacement { semantics, facts: Default::default() };
        let copy = |names: &BTreeMap<String, Replacement>| {
            let names = names.iter().map(|(name, own)| (name.clone(), replacement(own.semantics.clone())));
            names.collect::<BTreeMap<_, _>>()
        };
        let mut by_arch: Vec<_> = base.map_or_else(Vec::new, |base| base.by_arch.iter().map(copy).collect());
        let count = by_arch.len().max(arch as usize + 1);
        by_arch.resize_with(count, BTreeMap::new);
        by_arch[arch as usize].extend(semantics.into_iter().map(|(name, own)| (name, replacement(own))));
        Overrides { by_arch }
    }

    /// Returns the instructions of an architecture whose semantics are replaced.
    pub fn names(&self, arch: Arch) -> impl Iterator<Item = &str> {
        self.by_arch.get(arch as usize).into_iter().flat_map(|names| names.keys().map(String::as_str))
    }

    /// Returns the replacement semantics of an instruction, by its upper-case name, if there are any.
    pub fn get(&self, arch: Arch, instruction: &str) -> Option<&Semantics> {
        self.replacement(arch, instruction).map(|r| &r.semantics)
    }

    /// Returns the facts of an instruction's replacement semantics.
    pub fn facts(&self, arch: Arch, instruction: &str, wave_size: u32) -> Option<&Facts> {
        let replacement = self.replacement(arch, instruction)?;
        let (slot, lanes) = if wave_size == 64 { (1, 64) } else { (0, 32) };
        Some(replacement.facts[slot].get_or_init(|| Facts::of(&replacement.semantics, lanes)))
    }

    fn replacement(&self, arch: Arch, instruction: &str) -> Option<&Replacement> {
        self.by_arch.get(arch as usize)?.get(instruction)
    }

    /// Returns the semantics of an entry's instruction: the user's, else the project's, if there are any.
    pub fn semantics(&self, arch: Arch, entry: EntryId) -> Option<&Semantics> {
        let table = arch.table();
        let at = table.entries[entry as usize].inst as usize;
        if let Some(sem) = self.get(arch, table.instructions[at].name) {
            return Some(sem);
        }
        compiled(arch, entry)
    }
}

/// Returns the project's own semantics of an entry's instruction.
pub fn compiled(arch: Arch, entry: EntryId) -> Option<&'static Semantics> {
    let at = arch.table().entries[entry as usize].inst as usize;
    isa::number(arch, at).and_then(isa::operation).map(|op| &op.sem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Overrides, Option<String>), OverrideError> {
        Overrides::parse("mine.pcode".to_string(), text.to_string())
    }

    #[test]
    fn a_file_replaces_the_instructions_it_names() {
        let (own, warnings) = parse("instruction V_ADD_F32 for rdna4 { D0.f32 = S0.f32 - S1.f32; }").unwrap();
        assert_eq!(warnings, None);
        assert!(own.get(Arch::Rdna4, "V_ADD_F32").is_some());
        assert!(own.get(Arch::Rdna3, "V_ADD_F32").is_none());
        assert!(own.get(Arch::Rdna4, "V_SUB_F32").is_none());
        let entry = Arch::Rdna4.table().instruction("V_SUB_F32").map(|i| i.entries.0).unwrap();
        assert!(own.semantics(Arch::Rdna4, entry as EntryId).is_some(), "the project's");
    }

    /// The facts of a large file would take longer than everything else.
    #[test]
    fn facts_are_computed_on_demand() {
        let (own, _) = parse("instruction V_ADD_F32, V_SUB_F32 { D0.f32 = S0.f32 - S1.f32; }").unwrap();
        let computed = || {
            let all = own.by_arch.iter().flat_map(BTreeMap::values).flat_map(|r| &r.facts);
            all.filter(|facts| facts.get().is_some()).count()
        };
        assert_eq!(computed(), 0);
        assert!(own.facts(Arch::Rdna4, "V_ADD_F32", 64).is_some());
        assert!(own.facts(Arch::Rdna4, "V_ADD_F32", 64).is_some());
        assert_eq!(computed(), 1);
    }

    #[test]
    fn replacements_are_added_to_others() {
        let (base, _) = parse("instruction V_ADD_F32, V_SUB_F32 { D0.f32 = S0.f32; }").unwrap();
        let (other, _) = parse("instruction V_SUB_F32 { D0.f32 = S1.f32; }").unwrap();
        let sub = other.get(Arch::Rdna4, "V_SUB_F32").unwrap().clone();
        let more = [("V_SUB_F32".to_string(), sub.clone())].into();
        let both = Overrides::with(Some(&base), Arch::Rdna4, more);
        assert_eq!(both.get(Arch::Rdna4, "V_SUB_F32"), Some(&sub));
        assert_eq!(both.get(Arch::Rdna4, "V_ADD_F32"), base.get(Arch::Rdna4, "V_ADD_F32"));
        assert_ne!(both.get(Arch::Rdna3, "V_SUB_F32"), Some(&sub));
    }

    /// Replacing all instructions costs at most as much as replacing one half and then the other (whose functions both
    /// check), also if each body has an error.
    #[test]
    fn the_work_is_proportional_to_the_file() {
        let work = |text: String| {
            let loaded = isa::loaded();
            let mut sources = loaded.sources.clone();
            let file = sources.add("mine.pcode", text);
            let all = canonical::replacements(&sources, &loaded.pcode, file, &loaded.tables);
            (all.expressions, all.diagnostics.iter().filter(|d| d.severity == Severity::Error).count())
        };
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pseudocode");
        let mut halves = [String::new(), String::new()];
        for family in ["control", "matrix", "memory", "scalar", "vector"] {
            let files = std::fs::read_dir(root.join(family)).unwrap();
            let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
            files.sort();
            for (at, file) in files.iter().enumerate() {
                halves[at % 2] += &std::fs::read_to_string(file).unwrap();
            }
        }
        let whole = halves.concat();
        let wrong = whole.replace("S0.", "S9.");
        let [first, second] = halves.map(|half| work(half).0);
        let (expressions, errors) = work(whole);
        assert_eq!(errors, 0);
        assert!(
            expressions > 100_000 && first.min(second) > expressions / 10,
            "{first} + {second} = {expressions}"
        );
        assert!(
            expressions <= first + second && expressions > (first + second) * 9 / 10,
            "{first} + {second}"
        );
        let (of_wrong, errors) = work(wrong);
        assert!(errors > 1000 && of_wrong <= expressions, "{errors} errors after {of_wrong} expressions");
    }

    #[test]
    fn errors_show_the_location() {
        let Err(OverrideError::Wrong(text)) =
            parse("instruction V_ADD_F32 {\n  D0.f32 = S0.f32 + S9.f32;\n}")
        else {
            panic!("accepted");
        };
        assert!(text.contains("mine.pcode:2:21"), "{text}");
    }

    #[test]
    fn unknown_instructions_are_warnings() {
        let (_, warnings) = parse("instruction V_NO_SUCH_F32 { D0.f32 = S0.f32; }").unwrap();
        assert!(warnings.unwrap().contains("V_NO_SUCH_F32"));
    }
}
