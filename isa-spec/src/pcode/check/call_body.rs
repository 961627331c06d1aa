//! The bodies of functions, lambdas and called instructions. A body is checked once for each [`Signature`], that is
//! for each combination of what its types depend on, and kept as [`Typed`]. Every other call with the signature copies
//! the typed body, with its own locals, so that the work of checking does not grow with the size of the expansion.
//!
//! Parameters have no types, and constants determine widths; therefore a signature has the values of constants, and
//! the expressions of operands and state, besides types. A body that accesses neither operands nor state of the
//! instruction is shared by all instructions.

use super::call::tail_returns;
use super::{Binding, CallResult, Checker, Frame, Lit, R, Rounding, TExpr};
use crate::diag::Diagnostic;
use crate::pcode::ast;
use crate::pcode::ir::{
    Definition, Expr, ExprKind, FieldName, Local, LocalId, Place, PlaceKind, Role, State, Stmt, Ty,
};
use crate::pcode::visit::{VisitorMut, walk_expr_mut, walk_place_mut, walk_stmt_mut};
use crate::source::Span;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Limit on the expressions of a body with its calls expanded. The project's largest bodies have some thousand.
const MAX_EXPRESSIONS: u32 = 20_000;

/// Limit on the depth of calls.
const MAX_DEPTH: usize = 33;

/// Identifies a body of the syntax tree, by its address. (The definitions of a template have one span.)
type BodyId = (usize, usize);

/// What the types in a body depend on.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Signature {
    body: BodyId,
    /// Of a lambda: which other lambdas it can call.
    lambdas: u32,
    arch: Option<String>,
    rounding: Rounding,
    arguments: Vec<Part>,
}

/// A part of an argument, outermost first.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Part {
    Int(i128),
    /// A float literal, as bits.
    Float([u64; 2]),
    Const(u128, Ty),
    Operand(Role, Ty),
    OperandIndex(Role),
    Field(FieldName, Ty),
    State(State, Ty),
    Bits(Ty),
    /// Any other value, with its number among the locals of the arguments: two records may share one.
    Local(Ty, usize),
    /// The name of a record, before the values that have its bits.
    Record(String),
}

/// What a typed body depends on besides its signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Scope {
    /// Nothing: it is the same in all instructions.
    #[default]
    All,
    /// The operands of the instruction.
    Instruction,
    /// The place of the call: where in the body it is, and which addresses have been computed.
    Call,
}

/// A checked body.
struct Typed {
    /// The locals of the caller that the body uses: its arguments.
    parameters: Vec<LocalId>,
    /// Number of the first of the body's own locals.
    first: LocalId,
    locals: Vec<TypedLocal>,
    stmts: Vec<Stmt>,
    /// `None` for an instruction without a result.
    result: Option<TExpr>,
    /// The result has the span of the call.
    result_at_call: bool,
    definitions: BTreeSet<Definition>,
    warnings: Vec<Diagnostic>,
    expressions: u32,
    /// The depth of its calls, at least 1.
    depth: usize,
}

struct TypedLocal {
    local: Local,
    span: (Span, Option<Span>),
    read: bool,
    assigned: bool,
}

/// The bodies that have been checked.
#[derive(Default)]
pub(super) struct Bodies {
    typed: RefCell<HashMap<Signature, Option<Rc<Typed>>>>,
}

/// What all instructions of a library share.
#[derive(Default)]
pub(super) struct Shared {
    bodies: Bodies,
    /// Bodies that are too large, with the error.
    too_large: RefCell<HashMap<BodyId, Diagnostic>>,
}

/// The state of the checker that belongs to the body being checked.
#[derive(Default)]
pub(super) struct Progress {
    /// Number of expressions, those of expanded calls included.
    pub(super) expressions: u32,
    /// The error about the limit has been reported.
    too_large: Option<Diagnostic>,
    pub(super) scope: Cell<Scope>,
    /// Depth of the calls so far.
    depth: usize,
}

impl Progress {
    /// Records that the types depend on more than the signature.
    pub(super) fn depends_on(&self, scope: Scope) {
        self.scope.set(self.scope.get().max(scope));
    }
}

/// A call of a body whose parameters are bound in a frame.
pub(super) struct Callee<'a, 'n> {
    pub(super) name: &'n str,
    pub(super) frame: Frame<'a>,
    /// The bindings of the parameters, in order.
    pub(super) arguments: Vec<Binding>,
    /// The span of the call.
    pub(super) span: Span,
}

impl<'a> Checker<'a> {
    /// Expands a body at a call. Returns its value; `None` for an instruction without a result.
    pub(super) fn expand_body(&mut self, callee: Callee<'a, '_>) -> R<Option<TExpr>> {
        let Callee { name, frame, arguments, span } = callee;
        let (mut parts, mut parameters) = (Vec::new(), Vec::new());
        let are_simple =
            arguments.iter().all(|argument| self.add_argument(argument, &mut parts, &mut parameters));
        let signature = Signature {
            body: (frame.body.as_ptr() as usize, frame.body.len()),
            lambdas: frame.scope,
            arch: self.arch.map(str::to_string),
            rounding: self.rounding,
            arguments: parts,
        };
        if let Some(error) = self.library.shared.too_large.borrow().get(&signature.body) {
            if !self.errors.contains(error) {
                self.errors.push(error.clone());
            }
            return Err(());
        }
        // Other arguments than simple ones are in locals (`parameter`).
        if !are_simple {
            self.progress.depends_on(Scope::Call);
            return self.check_body(name, frame, signature, None, span);
        }
        let known = self.bodies.get(&signature).or_else(|| self.library.shared.bodies.get(&signature));
        match known {
            Some(Some(typed)) => self.copy(&typed, &parameters, span),
            // Its errors have been reported.
            Some(None) => Err(()),
            None => self.check_body(name, frame, signature, Some(parameters), span),
        }
    }

    /// Adds the parts of an argument, and the locals that hold values of it. Returns whether its values are simple.
    fn add_argument(&self, argument: &Binding, parts: &mut Vec<Part>, locals: &mut Vec<LocalId>) -> bool {
        match argument {
            Binding::Local(id) => {
                parts.push(Part::Local(self.locals[*id as usize].ty, number_of(*id, locals)));
                true
            }
            Binding::Value(value) => match value.lit {
                Some(Lit::Int(value)) => {
                    parts.push(Part::Int(value));
                    true
                }
                Some(Lit::Float(value)) => {
                    parts.push(Part::Float(value.bits()));
                    true
                }
                None => add_parts(&value.expr, parts, locals),
            },
            Binding::Record(record) => {
                parts.push(Part::Record(record.name.clone()));
                record.parts.iter().all(|part| add_parts(part, parts, locals))
            }
        }
    }

    fn check_body(
        &mut self,
        name: &str,
        frame: Frame<'a>,
        signature: Signature,
        parameters: Option<Vec<LocalId>>,
        span: Span,
    ) -> R<Option<TExpr>> {
        self.enter(name, span)?;
        let first = self.locals.len();
        let (stmts, warnings) = (self.out.last().map_or(0, Vec::len), self.warnings.len());
        let rounding = self.rounding;
        // A body sees neither the loops nor the names of its caller.
        let loops = std::mem::take(&mut self.loops);
        let breaks = std::mem::take(&mut self.breaks);
        let definitions = std::mem::take(&mut self.definitions);
        let outer = std::mem::take(&mut self.progress);
        let errors = self.errors.len();
        let (body, instruction) = (frame.body, frame.instruction);
        self.frames.push(frame);
        let result = if instruction {
            self.instruction_body(body, name, span)
        } else {
            self.call_body(body, name, span).map(Some)
        };
        self.frames.pop();
        self.calls.pop();
        self.loops = loops;
        self.breaks = breaks;
        let definitions = std::mem::replace(&mut self.definitions, definitions);
        self.definitions.extend(definitions.iter().cloned());
        let own = std::mem::replace(&mut self.progress, outer);
        let depth = own.depth + 1;
        let scope = if self.rounding == rounding { own.scope.get() } else { Scope::Call };
        self.progress.depth = self.progress.depth.max(depth);
        self.progress.depends_on(scope);
        if let Some(error) = own.too_large {
            self.library.shared.too_large.borrow_mut().insert(signature.body, error);
            return Err(());
        }
        let failed = result.is_err() || self.errors.len() > errors;
        if let Some(parameters) = parameters.filter(|_| scope < Scope::Call) {
            let typed = (!failed).then(|| {
                let result = result.clone().unwrap_or_default();
                Rc::new(Typed {
                    parameters,
                    first: first as LocalId,
                    locals: (first..self.locals.len()).map(|at| self.typed_local(at)).collect(),
                    stmts: self.out.last().map_or(Vec::new(), |list| list[stmts..].to_vec()),
                    result_at_call: result.as_ref().is_some_and(|value| value.expr.span == span),
                    result,
                    definitions,
                    warnings: self.warnings[warnings..].to_vec(),
                    expressions: own.expressions,
                    depth,
                })
            });
            let is_shared = scope == Scope::All && signature.lambdas == 0 && !failed;
            let bodies = if is_shared { &self.library.shared.bodies } else { &self.bodies };
            bodies.typed.borrow_mut().insert(signature, typed);
        }
        self.add_expressions(own.expressions, span)?;
        result
    }

    fn typed_local(&self, index: usize) -> TypedLocal {
        let id = index as LocalId;
        TypedLocal {
            local: self.locals[index].clone(),
            span: self.spans[index],
            read: self.read_locals.contains(&id),
            assigned: self.assigned_locals.contains(&id),
        }
    }

    /// Copies a typed body to the end of the caller's statements.
    fn copy(&mut self, typed: &Typed, parameters: &[LocalId], span: Span) -> R<Option<TExpr>> {
        if self.calls.len() + typed.depth > MAX_DEPTH {
            return self.error(span, "calls are nested too deeply");
        }
        self.add_expressions(typed.expressions, span)?;
        self.progress.depth = self.progress.depth.max(typed.depth);
        let first = self.locals.len() as LocalId;
        for (id, local) in (first..).zip(&typed.locals) {
            self.locals.push(local.local.clone());
            self.spans.push(local.span);
            if local.read {
                self.read_locals.insert(id);
            }
            if local.assigned {
                self.assigned_locals.insert(id);
            }
        }
        let mut renumber = Renumber { from: &typed.parameters, to: parameters, old: typed.first, new: first };
        let mut stmts = typed.stmts.clone();
        renumber.stmts(&mut stmts);
        if let Some(list) = self.out.last_mut() {
            list.append(&mut stmts);
        }
        self.definitions.extend(typed.definitions.iter().cloned());
        self.warnings.extend(typed.warnings.iter().cloned());
        let mut result = typed.result.clone();
        if let Some(value) = &mut result {
            renumber.expr(&mut value.expr);
            if typed.result_at_call {
                value.expr.span = span;
            }
        }
        Ok(result)
    }

    fn enter(&mut self, name: &str, span: Span) -> R<()> {
        if self.calls.iter().any(|c| c == name) {
            return self.error(span, format!("`{name}` calls itself"));
        }
        if self.calls.len() >= MAX_DEPTH {
            return self.error(span, "calls are nested too deeply");
        }
        self.calls.push(name.to_string());
        Ok(())
    }

    /// Counts an expression that is checked.
    pub(super) fn count_expression(&mut self, span: Span) -> R<()> {
        self.library.expressions.set(self.library.expressions.get() + 1);
        self.add_expressions(1, span)
    }

    /// Adds to the size of the body. A few lines can expand to millions of expressions, which would be slow to copy and to
    /// compile.
    fn add_expressions(&mut self, count: u32, span: Span) -> R<()> {
        if self.progress.too_large.is_some() {
            return Err(());
        }
        self.progress.expressions = self.progress.expressions.saturating_add(count);
        if self.progress.expressions <= MAX_EXPRESSIONS {
            return Ok(());
        }
        let message =
            format!("this body is too large when its calls are expanded: over {MAX_EXPRESSIONS} expressions");
        let error = Diagnostic::error(span, message).help("functions and lambdas are expanded at each call");
        self.progress.too_large = Some(error.clone());
        self.errors.push(error);
        Err(())
    }

    /// Checks a body. Most helpers are a single `return`, whose expression replaces the call; the statements
    /// of longer bodies run before it.
    fn call_body(&mut self, body: &'a [ast::Stmt], name: &str, span: Span) -> R<TExpr> {
        let (last, before) = match body.split_last() {
            Some((ast::Stmt { kind: ast::StmtKind::Return(Some(value)), .. }, before))
                if !before.iter().any(super::call::has_return) =>
            {
                (Some(value), before)
            }
            _ => (None, body),
        };
        if last.is_none() && !tail_returns(body) {
            return self.error_help(
                span,
                format!("`{name}` does not return a value on every path, or returns before its end"),
                "put the return last in each branch",
            );
        }
        self.stmts(before);
        if let Some(value) = last {
            return self.expr(value);
        }
        self.take_result(name, span)
    }

    /// Checks the body of a called instruction, whose D0 is the result, if assigned.
    fn instruction_body(&mut self, body: &'a [ast::Stmt], name: &str, span: Span) -> R<Option<TExpr>> {
        self.stmts(body);
        let has_result = self.frames.last().and_then(|f| f.result.as_ref()).is_some_and(|r| r.returned);
        if has_result { self.take_result(name, span).map(Some) } else { Ok(None) }
    }

    fn take_result(&mut self, name: &str, span: Span) -> R<TExpr> {
        let result = self.frames.last().and_then(|f| f.result.clone()).unwrap_or_default();
        match result {
            CallResult { local: Some(id), ty: Some(ty), returned: true } => {
                self.read_locals.insert(id);
                Ok(TExpr::of(ExprKind::Local(id), ty, span))
            }
            // Errors in the body have been reported.
            _ if !self.errors.is_empty() => Err(()),
            _ => self.error(span, format!("`{name}` returns no value")),
        }
    }
}

impl Bodies {
    fn get(&self, signature: &Signature) -> Option<Option<Rc<Typed>>> {
        self.typed.borrow().get(signature).cloned()
    }
}

/// Adds the parts of a simple value, and the local that holds it, if any. Returns whether the value is simple.
fn add_parts(value: &Expr, parts: &mut Vec<Part>, locals: &mut Vec<LocalId>) -> bool {
    parts.push(match value.kind {
        ExprKind::Const(bits) => Part::Const(bits, value.ty),
        ExprKind::Operand(role) => Part::Operand(role, value.ty),
        ExprKind::OperandIndex(role) => Part::OperandIndex(role),
        ExprKind::Field(name) => Part::Field(name, value.ty),
        ExprKind::State(state) => Part::State(state, value.ty),
        ExprKind::Local(id) => Part::Local(value.ty, number_of(id, locals)),
        ExprKind::Bits(ref inner) => {
            parts.push(Part::Bits(value.ty));
            return add_parts(inner, parts, locals);
        }
        _ => return false,
    });
    true
}

/// Returns the index of a local in a list, to which it is added if it is new.
fn number_of(id: LocalId, locals: &mut Vec<LocalId>) -> usize {
    locals.iter().position(|local| *local == id).unwrap_or_else(|| {
        locals.push(id);
        locals.len() - 1
    })
}

/// Gives the locals of a typed body new numbers.
struct Renumber<'t> {
    from: &'t [LocalId],
    to: &'t [LocalId],
    old: LocalId,
    new: LocalId,
}

impl Renumber<'_> {
    fn local(&self, id: &mut LocalId) {
        if *id >= self.old {
            *id = *id - self.old + self.new;
        } else if let Some(at) = self.from.iter().position(|from| from == id) {
            *id = self.to[at];
        }
    }
}

impl<'t> VisitorMut<'t> for Renumber<'_> {
    fn stmt(&mut self, stmt: &'t mut Stmt) {
        if let Stmt::For { var, .. } = stmt {
            self.local(var);
        }
        walk_stmt_mut(self, stmt);
    }

    fn place(&mut self, place: &'t mut Place) {
        if let PlaceKind::Local(id) | PlaceKind::Element(id, _) = &mut place.kind {
            self.local(id);
        }
        walk_place_mut(self, place);
    }

    fn expr(&mut self, expr: &'t mut Expr) {
        if let ExprKind::Local(id) | ExprKind::Element(id, _) = &mut expr.kind {
            self.local(id);
        }
        walk_expr_mut(self, expr);
    }
}
