//! The instructions in SMT-LIB 2.6: a function for each result of an operation. `docs/exports.md` describes the form.

mod machine;
mod text;

use crate::Export;
use crate::smt::{self, Setting, Term, Terms, Unsupported};
use isa_spec::arith::FloatEnv;
use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::{FieldName, Role, Semantics, Shape};
use machine::Symbolic;
pub use machine::{Field, has_no_effect, inside, widths};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// MODE of the exported functions, that of compute kernels: nearest even, denormals kept.
pub const MODE: u32 = 0xf0;

/// Bodies with more terms are not exported: matrix products.
const MAX_TERMS: usize = 30_000;

/// The results of a body as terms of its arguments.
pub struct Results {
    /// The terms.
    pub terms: Terms,
    /// By name: operands (`D0`), state (`scc`), memory.
    pub values: BTreeMap<String, Term>,
}

/// Evaluates a body to terms of its arguments, whose names `docs/exports.md` lists.
///
/// # Errors
/// The body has an effect that is none on operands, state or memory, or too many terms.
pub fn evaluate(sem: &Semantics) -> Result<Results, Unsupported> {
    let mut terms = Terms::default();
    let values = evaluate_in(&mut terms, sem)?;
    Ok(Results { terms, values })
}

/// As [`evaluate`], with the terms among others.
///
/// # Errors
/// As those of [`evaluate`].
pub fn evaluate_in(terms: &mut Terms, sem: &Semantics) -> Result<BTreeMap<String, Term>, Unsupported> {
    evaluate_symbolic(terms, sem, &machine::widths(sem), None)
}

/// As [`evaluate_in`], of a certain instruction: operands have these widths, which may be larger than those in which the
/// body accesses them, and fields these values. Control builtins are functions of which nothing is known; that they were
/// called is a result, `control`.
///
/// # Errors
/// The body accesses memory in words, or has too many terms.
pub fn evaluate_instruction(
    terms: &mut Terms,
    sem: &Semantics,
    widths: &BTreeMap<Role, u32>,
    fields: &BTreeMap<FieldName, Field>,
) -> Result<BTreeMap<String, Term>, Unsupported> {
    evaluate_symbolic(terms, sem, widths, Some(fields))
}

fn evaluate_symbolic(
    terms: &mut Terms,
    sem: &Semantics,
    widths: &BTreeMap<Role, u32>,
    fields: Option<&BTreeMap<FieldName, Field>>,
) -> Result<BTreeMap<String, Term>, Unsupported> {
    let setting =
        Setting { env: FloatEnv::from_mode(MODE), uninterpreted_float: false, max_terms: MAX_TERMS };
    let symbolic = Symbolic { shape: sem.shape, widths, fields, written: BTreeMap::new() };
    let lane = (sem.shape == Shape::Lane).then_some(0);
    Ok(smt::evaluate(terms, sem, symbolic, lane, setting)?.written)
}

impl Export<'_> {
    /// Writes functions in SMT-LIB, a group for each operation, which is called as the first instruction that it
    /// belongs to.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_smtlib(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "; Instructions of AMD GPUs as functions. Written by `wavesim isa export --format smtlib`."
        )?;
        writeln!(out, "(set-info :smt-lib-version 2.6)\n(set-logic ALL)")?;
        let mut declared = BTreeMap::new();
        for (operation, users) in self.operations.iter().zip(self.users()) {
            let Some((name, others)) = users.split_first() else { continue };
            let (file, line) = (self.place)(operation);
            writeln!(out, "\n; {name}  ({file}:{line})")?;
            let others: BTreeSet<&String> = others.iter().filter(|other| *other != name).collect();
            for other in others {
                writeln!(out, "; also {other}")?;
            }
            out.write_all(group(operation, name, &mut declared).as_bytes())?;
        }
        Ok(())
    }
}

/// The functions of an operation, or a comment that says why there are none.
fn group(operation: &Operation, name: &str, declared: &mut BTreeMap<String, String>) -> String {
    let results = match evaluate(&operation.sem) {
        Ok(results) => results,
        Err(e) => return format!("; not exported: {e}\n"),
    };
    let mut out = String::new();
    if results.values.is_empty() {
        out.push_str("; no results\n");
    }
    let _ = text::functions(&results.terms, &results.values, name, declared, &mut out);
    out
}
