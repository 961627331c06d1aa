//! Violations of rules in a function: those that [`verify`](crate::verify()) finds before allocation, and those
//! of the check of allocations.

use crate::function::Function;
use crate::text::{inst_text, value_name};
use std::fmt::{Display, Formatter};

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation<P> {
    /// The position of the instruction, if the violation is at one.
    pub position: Option<usize>,
    /// The instruction as text.
    pub text: String,
    /// What is wrong.
    pub problem: P,
}

impl<P> Violation<P> {
    /// Describes a problem of the instruction at a position, or of the whole function.
    pub(crate) fn new(function: &Function, position: Option<usize>, problem: P) -> Violation<P> {
        let inst = position.and_then(|i| function.insts.get(i));
        let text = inst.map_or(String::new(), |inst| inst_text(inst, &|v| value_name(function, v)));
        Violation { position, text, problem }
    }
}

/// Returns the violations in the order of the code, or `Ok` if there are none.
pub(crate) fn result<P>(mut violations: Vec<Violation<P>>) -> Result<(), Vec<Violation<P>>> {
    violations.sort_by_key(|violation| violation.position);
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

impl<P: Display> Display for Violation<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.position {
            Some(position) => write!(f, "instruction {position}, `{}`: {}", self.text, self.problem),
            None => write!(f, "{}", self.problem),
        }
    }
}

impl<P: Display + std::fmt::Debug> std::error::Error for Violation<P> {}
