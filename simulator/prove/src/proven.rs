//! Questions that were answered before, by their digests: only what a change touches is asked again.

use isa_export::smt::{Term, Terms};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What is known of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The values are equal.
    Equal,
    /// No solver has decided it.
    Undecided,
}

/// The answers of earlier runs, and those of this one.
#[derive(Debug, Default)]
pub struct Proven {
    before: BTreeMap<u64, Known>,
    now: Mutex<BTreeMap<u64, Known>>,
}

impl Proven {
    /// Reads a list: a digest in each line, with `undecided` behind those that no solver has decided. Lines that begin with
    /// `#` are comments. `None` if another line is none of these.
    pub fn read(text: &str) -> Option<Proven> {
        let mut before = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (digest, known) = match line.split_once(' ') {
                None => (line, Known::Equal),
                Some((digest, "undecided")) => (digest, Known::Undecided),
                Some(_) => return None,
            };
            before.insert(u64::from_str_radix(digest, 16).ok()?, known);
        }
        Some(Proven { before, now: Mutex::default() })
    }

    /// The list of the questions of this run.
    pub fn list(&self) -> String {
        let line = |(digest, known): (&u64, &Known)| match known {
            Known::Equal => format!("{digest:016x}\n"),
            Known::Undecided => format!("{digest:016x} undecided\n"),
        };
        self.now.lock().unwrap_or_else(PoisonError::into_inner).iter().map(line).collect()
    }

    /// The number of questions of this run that were not known before.
    pub fn asked(&self) -> usize {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.keys().filter(|digest| !self.before.contains_key(digest)).count()
    }

    pub(crate) fn known(&self, digest: u64) -> Option<Known> {
        let known = *self.before.get(&digest)?;
        self.note(digest, known);
        Some(known)
    }

    pub(crate) fn note(&self, digest: u64, known: Known) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, known);
    }
}

/// The digest of a question whether two values are equal where conditions hold.
pub(crate) fn digest(terms: &Terms, conditions: &[Term], values: [Term; 2]) -> u64 {
    let roots: Vec<Term> = values.iter().chain(conditions).copied().collect();
    terms.digest(&roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let list =
            Proven::read("# questions\n00000000000000ff\n0123456789abcdef undecided\n").expect("a list");
        assert_eq!(list.known(255), Some(Known::Equal));
        assert_eq!(list.known(0x0123_4567_89ab_cdef), Some(Known::Undecided));
        assert_eq!(list.known(1), None);
        list.note(1, Known::Equal);
        assert_eq!(list.asked(), 1);
        assert_eq!(list.list(), "0000000000000001\n00000000000000ff\n0123456789abcdef undecided\n");
        assert!(Proven::read("twelve\n").is_none());
    }
}
