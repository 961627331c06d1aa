//! Tree -> typed IR of one instruction: names resolved, types and conversions explicit, calls expanded.

mod call;
mod convert;
mod expr;
mod names;
mod stmt;

use super::ir::{Expr, Local, LocalId, Role, Semantics, Shape, Stmt, Ty, Uses};
use super::sig::InstrSig;
use super::{ast, parse};
use crate::diag::Diagnostic;
use crate::source::{SourceMap, Span};
use std::collections::{BTreeMap, BTreeSet};

/// What bodies may call besides builtins.
#[derive(Default)]
pub struct Library<'a> {
    pub functions: BTreeMap<String, &'a ast::Function>,
    /// Upper-case name -> its blocks (with their architecture lists).
    pub instructions: BTreeMap<String, Vec<&'a ast::Instruction>>,
}

/// Checks one block against one instruction's operands.
pub fn check(
    sources: &SourceMap,
    library: &Library<'_>,
    block: &ast::Instruction,
    sig: &InstrSig,
    arch: Option<&str>,
) -> Result<(Semantics, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut c = Checker {
        library,
        sig,
        arch,
        locals: Vec::new(),
        frames: vec![Frame::default()],
        errors: Vec::new(),
        warnings: Vec::new(),
        out: vec![Vec::new()],
        calls: Vec::new(),
        read_locals: BTreeSet::new(),
        breaks: Vec::new(),
        unreadable: BTreeSet::new(),
    };
    c.stmts(&block.body);
    let body = c.out.pop().unwrap_or_default();
    c.warn_unused(block.span);
    if !c.errors.is_empty() {
        return Err(c.errors);
    }
    let mut sem = Semantics {
        names: block.names.iter().map(|n| n.text.to_uppercase()).collect(),
        shape: Shape::Scalar,
        locals: c.locals,
        body,
        uses: Uses::default(),
        text: dedent(&parse::fill(sources.text(block.body_span), &block.rows)),
        span: block.span,
    };
    super::shape::infer(&mut sem, sig);
    match number_and_value(&sem) {
        Some(error) => Err(vec![error]),
        None => Ok((sem, c.warnings)),
    }
}

/// A source that may be a constant has either a number or a value in a body: compiled operations keep one of them.
fn number_and_value(sem: &Semantics) -> Option<Diagnostic> {
    let sources = [Role::S0, Role::S1, Role::S2, Role::S3];
    let at = sources.iter().position(|s| sem.uses.indexed.contains(s) && sem.uses.reads.contains(s))?;
    let message = format!("`SRC{at}`, the operand's number, and `S{at}`, its value, in one body");
    Some(
        Diagnostic::error(sem.span, message)
            .help(format!("`VGPR[lane][SRC{at}]` is the value of a register; `S{at}` that of any operand")),
    )
}

/// The body's text without its common indentation and outer blank lines.
fn dedent(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let indent = lines
        .iter()
        .filter(|l| !l.trim().is_empty())
        .map(|l| l.len() - l.trim_start().len())
        .min()
        .unwrap_or(0);
    let body: Vec<&str> = lines.iter().map(|l| l.get(indent..).unwrap_or("").trim_end()).collect();
    body.join("\n").trim_matches('\n').to_string()
}

/// One body being expanded: the instruction's own, or that of a function, lambda or other instruction.
#[derive(Default)]
struct Frame<'a> {
    names: BTreeMap<String, Binding>,
    lambdas: BTreeMap<String, &'a ast::Stmt>,
    /// In an expanded call: where `return` (or D0) goes.
    result: Option<CallResult>,
    /// Expanding another instruction: its operand names are bound in `names`.
    instruction: bool,
}

#[derive(Clone)]
enum Binding {
    Local(LocalId),
    /// A parameter bound to a simple expression.
    Value(TExpr),
}

#[derive(Clone, Default)]
struct CallResult {
    local: Option<LocalId>,
    ty: Option<Ty>,
    returned: bool,
}

/// A typed expression, or a literal whose type is still open.
#[derive(Clone, Debug)]
struct TExpr {
    expr: Expr,
    lit: Option<Lit>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lit {
    Int(i128),
    Float(f64),
}

struct Checker<'a> {
    library: &'a Library<'a>,
    sig: &'a InstrSig,
    arch: Option<&'a str>,
    locals: Vec<Local>,
    frames: Vec<Frame<'a>>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    /// Statement lists being built, innermost last.
    out: Vec<Vec<Stmt>>,
    /// Names being expanded, to refuse recursion.
    calls: Vec<String>,
    read_locals: BTreeSet<LocalId>,
    /// The flags of the loops around the current statement that hold a `break`.
    breaks: Vec<LocalId>,
    /// Names whose only assignments have been reported as wrong.
    unreadable: BTreeSet<String>,
}

type R<T> = Result<T, ()>;

impl Checker<'_> {
    fn error<T>(&mut self, span: Span, message: impl Into<String>) -> R<T> {
        self.errors.push(Diagnostic::error(span, message));
        Err(())
    }

    fn error_help<T>(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) -> R<T> {
        self.errors.push(Diagnostic::error(span, message).help(help));
        Err(())
    }

    fn emit(&mut self, stmt: Stmt) {
        if let Some(list) = self.out.last_mut() {
            list.push(stmt);
        }
    }

    fn new_local(&mut self, name: &str, ty: Ty, len: Option<u32>) -> LocalId {
        self.locals.push(Local { name: name.to_string(), ty, len });
        self.locals.len() as LocalId - 1
    }

    fn warn_unused(&mut self, span: Span) {
        for (id, local) in self.locals.iter().enumerate() {
            let synthetic = local.name.contains('$');
            if !synthetic && !self.read_locals.contains(&(id as LocalId)) {
                self.warnings
                    .push(Diagnostic::warning(span, format!("`{}` is assigned but never read", local.name)));
            }
        }
    }
}
