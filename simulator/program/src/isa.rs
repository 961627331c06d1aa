//! The operations, and the semantics that they were generated from.

use isa_spec::canonical;
use isa_spec::data::Loaded;
use isa_spec::facts::Facts;
use isa_spec::on_demand::OnDemand;
use isa_spec::tables::EntryId;
use std::sync::{LazyLock, OnceLock};
use wavesim_isa::arch::Arch;

pub use wavesim_rt::operations::*;

/// The pseudocode that the handlers were compiled from, with the compiled tables. None of it is read from
/// files at run time, so it cannot differ from the handlers.
static LOADED: LazyLock<Loaded> = LazyLock::new(|| {
    let mut loaded = Loaded { tables: wavesim_isa::tables::TABLES.to_vec(), ..Loaded::default() };
    loaded.pcode = PSEUDOCODE.iter().map(|(name, text)| loaded.sources.add(*name, *text)).collect();
    loaded
});

/// Returns everything that the handlers were compiled from, with its sources.
pub fn loaded() -> &'static Loaded {
    &LOADED
}

/// Returns the facts of an entry's compiled semantics in waves of this size.
pub fn facts(arch: Arch, entry: EntryId, wave_size: u32) -> Option<&'static Facts> {
    let at = arch.table().entries[entry as usize].inst as usize;
    let info = OPERATIONS.get(BY_ARCH[arch as usize][at] as usize)?;
    Some(&FACTS[info.facts[(wave_size == 64) as usize] as usize])
}

/// Returns the checked semantics of an operation, for the reference executor, the compiled engine and the
/// listing commands. They are parsed and checked when they are first requested. (The macro has reported any
/// errors in them.)
pub fn operation(number: u16) -> Option<&'static canonical::Operation> {
    static PSEUDOCODE: LazyLock<OnDemand<'static>> =
        LazyLock::new(|| OnDemand::new(&LOADED.sources, &LOADED.pcode));
    static READ: LazyLock<Box<[OnceLock<Option<canonical::Operation>>]>> =
        LazyLock::new(|| OPERATIONS.iter().map(|_| OnceLock::new()).collect());
    let read = || {
        let info = &OPERATIONS[number as usize];
        // As at compile time: for the first architecture whose instruction of this name maps to this
        // operation.
        let has = |arch: &&Arch| {
            let at = arch.table().instructions.iter().position(|inst| inst.name == info.name);
            at.is_some_and(|at| self::number(**arch, at) == Some(number))
        };
        let arch = Arch::ALL.iter().find(has)?;
        PSEUDOCODE.operation(info.file, arch.table(), info.name)
    };
    READ.get(number as usize)?.get_or_init(read).as_ref()
}

/// Returns the number of the operation of an instruction in the architecture's table; `None` if it has no
/// semantics.
pub fn number(arch: Arch, instruction: usize) -> Option<u16> {
    BY_ARCH[arch as usize].get(instruction).copied().filter(|number| *number != u16::MAX)
}

/// Returns the source text of an operation's semantics, with template parameters substituted.
pub fn text(number: u16) -> &'static str {
    operation(number).map_or("", |op| &op.sem.text)
}

/// Returns the lines of `pseudocode/unsupported.txt`: the architecture, if the line is for a single one; the
/// name, or a prefix with `*`; and the reason.
fn unsupported() -> impl Iterator<Item = (Option<&'static str>, &'static str, &'static str)> {
    let lines = UNSUPPORTED.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(':')).map(|(name, reason)| match name.trim().split_once(' ') {
        Some((arch, name)) => (Some(arch), name, reason.trim()),
        None => (None, name.trim(), reason.trim()),
    })
}

/// Returns the reason why an instruction has no semantics.
pub fn unsupported_reason(name: &str) -> Option<&'static str> {
    unsupported().find(|(_, pattern, _)| matches_pattern(pattern, name)).map(|(_, _, reason)| reason)
}

fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// Returns `file:line` of a position in the pseudocode.
pub fn location(span: isa_spec::source::Span) -> String {
    let (line, _) = LOADED.sources.line_col(span.file, span.start);
    format!("{}:{line}", LOADED.sources.file(span.file).name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The semantics read at run time are those that the handlers were compiled from, under the same numbers.
    #[test]
    fn semantics_match_the_compiled_ones() {
        let (set, diagnostics) = canonical::load_set(&LOADED.sources, &LOADED.pcode, &LOADED.tables);
        assert_eq!(diagnostics.len(), 0);
        for ((number, op), compiled) in (0..).zip(&set.operations).zip(OPERATIONS) {
            let read = operation(number).expect(compiled.name);
            assert_eq!((&read.name, read.file), (&op.name, op.file));
            assert_eq!(format!("{:?}", (&read.sig, &read.sem)), format!("{:?}", (&op.sig, &op.sem)));
            let (line, _) = LOADED.sources.line_col(op.file, op.sem.span.start);
            let file = LOADED.sources.file(op.file).name.as_str();
            let compiled = (compiled.name, compiled.shape, compiled.file, compiled.line);
            assert_eq!((op.name.as_str(), op.sem.shape, file, line as u32), compiled);
        }
        for (at_run_time, compiled) in set.by_arch.iter().zip(BY_ARCH) {
            let codes: Vec<u16> = at_run_time.iter().map(|op| op.map_or(u16::MAX, |op| op as u16)).collect();
            assert_eq!(codes, compiled);
        }
    }

    /// Every instruction without semantics has a reason, and every reason is used.
    #[test]
    fn unsupported_instructions_have_reasons() {
        let mut used = BTreeSet::new();
        for arch in Arch::ALL {
            for (inst, code) in arch.table().instructions.iter().zip(BY_ARCH[arch as usize]) {
                let of_arch = |only: Option<&str>| only.is_none_or(|only| only == arch.name());
                let line = unsupported()
                    .find(|(only, pattern, _)| of_arch(*only) && matches_pattern(pattern, inst.name));
                let reason = line.map(|(.., reason)| reason);
                assert_eq!(*code == u16::MAX, reason.is_some(), "{}: {}: {reason:?}", arch.name(), inst.name);
                used.extend(reason);
            }
        }
        let unused: Vec<_> = unsupported().filter(|(_, _, reason)| !used.contains(reason)).collect();
        assert_eq!(unused, [], "lines of unsupported.txt that nothing needs");
    }
}
