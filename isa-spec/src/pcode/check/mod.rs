//! The checker: converts the syntax tree of one instruction to its typed body. Resolves names, makes types
//! and conversions explicit, and expands calls.

mod address;
mod call;
mod call_body;
mod convert;
mod expr;
mod index;
mod names;
mod operator;
mod place;
mod record;
mod sequence;
mod stmt;
mod typed;
mod width;

use self::call_body::{Bodies, Progress, Scope, Shared};
use super::ir::{
    Definition, DefinitionKind, Expr, Local, LocalId, Place, PlaceKind, Role, Semantics, Shape, Space, State,
    Stmt, Ty, Uses,
};
use super::shape::is_lane_id;
use super::sig::{Family, InstrSig};
use super::visit::each_stmt;
use super::{ast, parse};
use crate::arith::decimal::Decimal;
use crate::diag::Diagnostic;
use crate::source::{SourceMap, Span};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// A source of definitions that a [`Library`] itself does not have.
pub trait Definitions {
    /// Returns the functions of this name, each for other architectures.
    fn functions(&self, name: &str) -> Vec<&ast::Function>;

    /// Returns the records of this name, each for other architectures.
    fn records(&self, name: &str) -> Vec<&ast::Record>;

    /// Returns the blocks of an instruction, given its upper-case name.
    fn blocks(&self, name: &str) -> Vec<&ast::Instruction>;
}

/// The definitions that bodies may call, besides builtins.
pub struct Library<'a> {
    /// Expressions checked so far.
    expressions: Cell<u64>,
    shared: Shared,
    fallback: Option<&'a dyn Definitions>,
    /// Functions by name, each with its architecture list.
    pub functions: BTreeMap<String, Vec<&'a ast::Function>>,
    /// Records by name, likewise.
    pub records: BTreeMap<String, Vec<&'a ast::Record>>,
    /// Upper-case name -> its blocks (with their architecture lists).
    pub instructions: BTreeMap<String, Vec<&'a ast::Instruction>>,
}

impl Default for Library<'_> {
    fn default() -> Self {
        Library {
            expressions: Cell::new(0),
            shared: Shared::default(),
            fallback: None,
            functions: BTreeMap::new(),
            records: BTreeMap::new(),
            instructions: BTreeMap::new(),
        }
    }
}

impl<'a> Library<'a> {
    /// Creates a library that falls back to other definitions.
    pub fn of(definitions: &'a dyn Definitions) -> Library<'a> {
        Library { fallback: Some(definitions), ..Library::default() }
    }

    /// Returns the number of expressions that have been checked with this library: a measure of the work that does not
    /// depend on the host. Those of a function count once for each combination of argument types.
    pub fn expressions(&self) -> u64 {
        self.expressions.get()
    }

    /// Returns the function of this name for an architecture.
    pub fn function(&self, name: &str, arch: Option<&str>) -> Option<&'a ast::Function> {
        let found = || self.fallback.map_or_else(Vec::new, |fallback| fallback.functions(name));
        select(self.functions.get(name).cloned().unwrap_or_else(found), arch, |one| &one.archs)
    }

    /// Returns the record of this name for an architecture.
    pub fn record(&self, name: &str, arch: Option<&str>) -> Option<&'a ast::Record> {
        let found = || self.fallback.map_or_else(Vec::new, |fallback| fallback.records(name));
        select(self.records.get(name).cloned().unwrap_or_else(found), arch, |one| &one.archs)
    }

    /// Returns whether a definition that was selected for one architecture is also that of another one.
    pub fn selects(&self, definition: &Definition, arch: &str) -> bool {
        let Definition { kind, name, span } = definition;
        let selected = match kind {
            DefinitionKind::Function => self.function(name, Some(arch)).map(|one| one.span),
            DefinitionKind::Record => self.record(name, Some(arch)).map(|one| one.span),
            DefinitionKind::Instruction => self.block(name, Some(arch)).map(|one| one.span),
        };
        selected == Some(*span)
    }

    /// Returns an instruction's block for an architecture, or that for another architecture if there is none.
    pub fn block(&self, name: &str, arch: Option<&str>) -> Option<&'a ast::Instruction> {
        let own = self.instructions.get(name).map_or(&[][..], Vec::as_slice);
        let found = own.is_empty().then(|| self.fallback.map(|fallback| fallback.blocks(name))).flatten();
        let blocks = found.as_deref().unwrap_or(own);
        let fits = |block: &&&ast::Instruction| {
            block.archs.is_empty()
                || arch.is_some_and(|arch| block.archs.iter().any(|name| name.text == arch))
        };
        blocks.iter().find(fits).or_else(|| blocks.first()).copied()
    }
}

/// Returns the definition for an architecture; without one, the first.
fn select<'a, T>(
    list: Vec<&'a T>,
    arch: Option<&str>,
    archs: impl Fn(&T) -> &Vec<ast::Name>,
) -> Option<&'a T> {
    let fits = |one: &&T| {
        let names = archs(one);
        names.is_empty() || arch.is_none_or(|arch| names.iter().any(|name| name.text == arch))
    };
    list.into_iter().find(fits)
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
        sources,
        library,
        sig,
        arch,
        locals: Vec::new(),
        definitions: BTreeSet::new(),
        body_span: Some(block.body_span),
        frames: vec![Frame { body: &block.body, ..Frame::default() }],
        errors: Vec::new(),
        warnings: Vec::new(),
        out: vec![Vec::new()],
        calls: Vec::new(),
        read_locals: BTreeSet::new(),
        breaks: Vec::new(),
        unreadable: BTreeSet::new(),
        assigned_locals: BTreeSet::new(),
        spans: Vec::new(),
        loops: Vec::new(),
        rounding: Rounding::Mode,
        bodies: Bodies::default(),
        lambdas: 0,
        progress: Progress::default(),
    };
    c.stmts(&block.body);
    let body = c.out.pop().unwrap_or_default();
    c.report_locals();
    if !c.errors.is_empty() {
        return Err(c.errors);
    }
    let mut sem = Semantics {
        names: block.names.iter().map(|n| n.text.to_uppercase()).collect(),
        shape: Shape::Scalar,
        locals: c.locals,
        body,
        uses: Uses::default(),
        ignores_mode: false,
        definitions: c.definitions,
        text: dedent(&parse::fill(sources.text(block.body_span), &block.rows)),
        span: block.span,
    };
    super::shape::infer(&mut sem, sig);
    let mut errors: Vec<Diagnostic> = check_number_and_value(&sem).into_iter().collect();
    errors.extend(check_lane_id_in_scalar(&sem, sig));
    errors.extend(check_mask_bits(&sem, sig));
    errors.extend(sequence::check(&mut sem));
    if errors.is_empty() { Ok((sem, c.warnings)) } else { Err(errors) }
}

/// Reports `laneId` in a body that runs once per wave and therefore has no current lane.
fn check_lane_id_in_scalar(sem: &Semantics, sig: &InstrSig) -> Option<Diagnostic> {
    let once = matches!(sig.family, Family::Scalar | Family::Memory(Space::Scalar));
    if sig.permissive || !once || !sem.uses.state_reads.contains(&State::LaneId) {
        return None;
    }
    let message = format!("`laneId` in {}, which runs once per wave", sig.name);
    Some(Diagnostic::error(sem.span, message).help("only vector instructions run once per lane"))
}

/// Reports an assignment of other bits of a mask than the lane's own: a mask consists of the bits that the
/// lanes compute.
fn check_mask_bits(sem: &Semantics, sig: &InstrSig) -> Option<Diagnostic> {
    fn other_bits(place: &Place, sig: &InstrSig) -> Option<&'static str> {
        match &place.kind {
            PlaceKind::Operand(Role::Vcc) => Some("VCC"),
            PlaceKind::Operand(Role::D0) if sig.operands.get(&Role::D0).is_some_and(|d| d.mask) => Some("D0"),
            PlaceKind::State(State::Exec) => Some("EXEC"),
            PlaceKind::Slice { base, lo } => {
                let own = is_lane_id(lo) && place.ty.width() == 1;
                if own && !matches!(base.kind, PlaceKind::Slice { .. } | PlaceKind::Concat(_)) {
                    return None;
                }
                other_bits(base, sig)
            }
            PlaceKind::Concat(parts) => parts.iter().find_map(|part| other_bits(part, sig)),
            _ => None,
        }
    }
    let mut found = None;
    if sem.shape == Shape::Lane {
        each_stmt(&sem.body, |stmt| {
            if let Stmt::Assign { place, span, .. } = stmt
                && let Some(mask) = other_bits(place, sig)
            {
                found.get_or_insert((mask, *span));
            }
        });
    }
    let (mask, span) = found?;
    let message = format!("a lane assigns bits of the mask `{mask}` other than its own");
    Some(
        Diagnostic::error(span, message)
            .help(format!("each lane computes one bit: `{mask}.u64[laneId] = …`")),
    )
}

/// Reports a body that uses both the number and the value of a source that may be a constant: compiled
/// operations keep only one of them.
fn check_number_and_value(sem: &Semantics) -> Option<Diagnostic> {
    let sources = [Role::S0, Role::S1, Role::S2, Role::S3];
    let at = sources.iter().position(|s| sem.uses.indexed.contains(s) && sem.uses.reads.contains(s))?;
    let message =
        format!("a body uses both `SRC{at}`, the operand's register number, and `S{at}`, its value");
    Some(
        Diagnostic::error(sem.span, message)
            .help(format!("`VGPR[lane][SRC{at}]` is the value of a register; `S{at}` that of any operand")),
    )
}

/// Removes common indentation and outer blank lines.
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

/// The scope of a body being expanded: that of the instruction itself, or of a function, lambda or other
/// instruction.
#[derive(Default)]
struct Frame<'a> {
    /// The whole body.
    body: &'a [ast::Stmt],
    names: BTreeMap<String, Binding>,
    lambdas: BTreeMap<String, &'a ast::Stmt>,
    /// Number of the last declaration in `lambdas`, over all frames; 0 if there is none.
    scope: u32,
    /// In an expanded call: the destination of `return` (or of D0).
    result: Option<CallResult>,
    /// The body is that of another instruction, whose operands are bound in `names`.
    instruction: bool,
}

#[derive(Clone)]
enum Binding {
    Local(LocalId),
    /// A parameter bound to a simple expression.
    Value(TExpr),
    Record(record::Bound),
}

#[derive(Clone, Default)]
struct CallResult {
    local: Option<LocalId>,
    ty: Option<Ty>,
    returned: bool,
}

/// A typed expression, or a literal whose type may still adapt.
#[derive(Clone, Debug)]
struct TExpr {
    expr: Expr,
    lit: Option<Lit>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lit {
    Int(i128),
    Float(Decimal),
}

/// The rounding mode of conversions in the statements being checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rounding {
    Mode,
    /// After `ROUND_MODE = ROUND_TOWARD_ZERO`.
    Zero,
    /// After `ROUND_MODE = ROUND_NEAREST_EVEN`.
    Even,
}

struct Checker<'a> {
    sources: &'a SourceMap,
    library: &'a Library<'a>,
    sig: &'a InstrSig,
    arch: Option<&'a str>,
    /// The definitions for some architectures only that the body uses.
    definitions: BTreeSet<Definition>,
    locals: Vec<Local>,
    /// Span of the instruction's own body.
    body_span: Option<Span>,
    frames: Vec<Frame<'a>>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    /// Statement lists being built, innermost last.
    out: Vec<Vec<Stmt>>,
    /// Names of the calls being expanded, to reject recursion.
    calls: Vec<String>,
    read_locals: BTreeSet<LocalId>,
    /// The flags of enclosing loops that contain a `break`.
    breaks: Vec<LocalId>,
    /// Names whose only assignments have errors, which have been reported.
    unreadable: BTreeSet<String>,
    assigned_locals: BTreeSet<LocalId>,
    /// Where each local was introduced, and where it was first read.
    spans: Vec<(Span, Option<Span>)>,
    /// The enclosing loops with constant bounds: variable, first and last value.
    loops: Vec<(String, i128, i128)>,
    rounding: Rounding,
    /// The called bodies that have been checked, besides those of the library.
    bodies: Bodies,
    /// Number of lambdas declared so far.
    lambdas: u32,
    progress: Progress,
}

type R<T> = Result<T, ()>;

impl<'a> Checker<'a> {
    fn error<T>(&mut self, span: Span, message: impl Into<String>) -> R<T> {
        self.errors.push(Diagnostic::error(span, message));
        Err(())
    }

    fn error_help<T>(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) -> R<T> {
        self.errors.push(Diagnostic::error(span, message).help(help));
        Err(())
    }

    /// Returns the operands of the instruction. What is checked then depends on them.
    fn sig(&self) -> &'a InstrSig {
        self.progress.depends_on(Scope::Instruction);
        self.sig
    }

    fn emit(&mut self, stmt: Stmt) {
        if let Some(list) = self.out.last_mut() {
            list.push(stmt);
        }
    }

    fn new_local(&mut self, name: &str, ty: Ty, len: Option<u32>, span: Span) -> LocalId {
        self.locals.push(Local { name: name.to_string(), ty, len });
        self.spans.push((span, None));
        self.locals.len() as LocalId - 1
    }

    /// Creates a local of the checker; its name has a `$`, which names in the language cannot have.
    fn hidden_local(&mut self, name: &str, ty: Ty, span: Span) -> LocalId {
        let id = self.new_local(&format!("{name}$"), ty, None, span);
        self.assigned_locals.insert(id);
        self.read_locals.insert(id);
        id
    }

    /// Reports locals that are never read, and locals that are read but never assigned.
    fn report_locals(&mut self) {
        for (id, local) in self.locals.iter().enumerate() {
            let id = id as LocalId;
            if local.name.contains('$') {
                continue;
            }
            let (declared, read) = self.spans[id as usize];
            if !self.read_locals.contains(&id) {
                self.warnings.push(Diagnostic::warning(
                    declared,
                    format!("`{}` is assigned but never read", local.name),
                ));
            } else if !self.assigned_locals.contains(&id) && self.errors.is_empty() {
                self.errors.push(
                    Diagnostic::error(
                        read.unwrap_or(declared),
                        format!("`{}` is read but never assigned", local.name),
                    )
                    .also(declared, "declared here"),
                );
            }
        }
    }
}
