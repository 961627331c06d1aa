//! Visitors of typed bodies. Analyses implement [`Visitor`], rewrites [`VisitorMut`]: they override the
//! methods for the nodes of interest and call the `walk_…` function to visit a node's children. Searches need
//! only [`any_expr`], [`each_expr`] and similar functions.
//!
//! Children are visited in source order, except that the value of an assignment precedes its place. The match
//! over the tree is exhaustive, so no analysis can miss a new kind of node. Code that depends on control flow
//! (the evaluator, the check of sequences) handles statements itself and uses the visitor for expressions.

use super::ir::*;

macro_rules! visitor {
    ($(#[$doc:meta])* $Visitor:ident, $List:ty, $stmts:ident $stmt:ident $place:ident $expr:ident $($mutable:ident)?) => {
        $(#[$doc])*
        pub trait $Visitor<'a> {
            /// Visits a list of statements: a body, branch or loop body.
            fn stmts(&mut self, list: &'a $($mutable)? $List) {
                $stmts(self, list);
            }
            /// Visits a statement.
            fn stmt(&mut self, stmt: &'a $($mutable)? Stmt) {
                $stmt(self, stmt);
            }
            /// Visits a place that is assigned, fully or in part.
            fn place(&mut self, place: &'a $($mutable)? Place) {
                $place(self, place);
            }
            /// Visits an expression.
            fn expr(&mut self, expr: &'a $($mutable)? Expr) {
                $expr(self, expr);
            }
        }

        /// Visits every statement of a list.
        pub fn $stmts<'a>(v: &mut (impl $Visitor<'a> + ?Sized), list: &'a $($mutable)? $List) {
            for stmt in list {
                v.stmt(stmt);
            }
        }

        /// Visits the children of a statement.
        pub fn $stmt<'a>(v: &mut (impl $Visitor<'a> + ?Sized), stmt: &'a $($mutable)? Stmt) {
            match stmt {
                Stmt::Assign { place, value, .. } => {
                    v.expr(value);
                    v.place(place);
                }
                Stmt::If { arms, otherwise, .. } => {
                    for (cond, body) in arms {
                        v.expr(cond);
                        v.stmts(body);
                    }
                    v.stmts(otherwise);
                }
                Stmt::For { from, to, body, .. } => {
                    v.expr(from);
                    v.expr(to);
                    v.stmts(body);
                }
                Stmt::While { cond, body, .. } => {
                    v.expr(cond);
                    v.stmts(body);
                }
                Stmt::Return { .. } => {}
                Stmt::Call { args, .. } => {
                    for arg in args {
                        v.expr(arg);
                    }
                }
            }
        }

        /// Visits the children of a place.
        pub fn $place<'a>(v: &mut (impl $Visitor<'a> + ?Sized), place: &'a $($mutable)? Place) {
            match &$($mutable)? place.kind {
                PlaceKind::Local(_) | PlaceKind::Operand(_) | PlaceKind::State(_) => {}
                PlaceKind::Element(_, e) | PlaceKind::Sgpr { reg: e } | PlaceKind::Mem { addr: e, .. } => v.expr(e),
                PlaceKind::Slice { base, lo } => {
                    v.place(base);
                    v.expr(lo);
                }
                PlaceKind::Vgpr { lane, reg } => {
                    v.expr(lane);
                    v.expr(reg);
                }
                PlaceKind::Concat(parts) => {
                    for part in parts {
                        v.place(part);
                    }
                }
            }
        }

        /// Visits the children of an expression.
        pub fn $expr<'a>(v: &mut (impl $Visitor<'a> + ?Sized), expr: &'a $($mutable)? Expr) {
            match &$($mutable)? expr.kind {
                ExprKind::Const(_)
                | ExprKind::Local(_)
                | ExprKind::Operand(_)
                | ExprKind::OperandIndex(_)
                | ExprKind::Field(_)
                | ExprKind::State(_) => {}
                ExprKind::Element(_, a)
                | ExprKind::Unary(_, a)
                | ExprKind::Convert(a)
                | ExprKind::Bits(a)
                | ExprKind::Sgpr { reg: a }
                | ExprKind::Mem { addr: a, .. } => v.expr(a),
                ExprKind::OperandLane { lane: a, index: b, .. }
                | ExprKind::Slice { base: a, lo: b }
                | ExprKind::Vgpr { lane: a, reg: b }
                | ExprKind::Binary(_, a, b) => {
                    v.expr(a);
                    v.expr(b);
                }
                ExprKind::Select(a, b, c) => {
                    v.expr(a);
                    v.expr(b);
                    v.expr(c);
                }
                ExprKind::Call(_, list) | ExprKind::Concat(list) => {
                    for e in list {
                        v.expr(e);
                    }
                }
            }
        }
    };
}

visitor! {
    /// An analysis of a body.
    Visitor, [Stmt], walk_stmts walk_stmt walk_place walk_expr
}

visitor! {
    /// A rewrite of a body in place.
    VisitorMut, Vec<Stmt>, walk_stmts_mut walk_stmt_mut walk_place_mut walk_expr_mut mut
}

struct EachExpr<F>(F);

impl<'a, F: FnMut(&'a Expr)> Visitor<'a> for EachExpr<F> {
    fn expr(&mut self, expr: &'a Expr) {
        (self.0)(expr);
        walk_expr(self, expr);
    }
}

/// Calls `f` for every expression of a body, including those in places, in pre-order.
pub fn each_expr<'a>(list: &'a [Stmt], f: impl FnMut(&'a Expr)) {
    EachExpr(f).stmts(list);
}

/// Calls `f` for an expression and all its subexpressions.
pub fn each_in<'a>(expr: &'a Expr, f: impl FnMut(&'a Expr)) {
    EachExpr(f).expr(expr);
}

/// Returns whether `wanted` holds for any expression of a body.
pub fn any_expr(list: &[Stmt], mut wanted: impl FnMut(&Expr) -> bool) -> bool {
    let mut found = false;
    each_expr(list, |e| found = found || wanted(e));
    found
}

/// Returns whether `wanted` holds for an expression or any of its subexpressions.
pub fn any_in(expr: &Expr, mut wanted: impl FnMut(&Expr) -> bool) -> bool {
    let mut found = false;
    each_in(expr, |e| found = found || wanted(e));
    found
}

struct EachStmt<F>(F);

impl<'a, F: FnMut(&'a Stmt)> Visitor<'a> for EachStmt<F> {
    fn stmt(&mut self, stmt: &'a Stmt) {
        (self.0)(stmt);
        walk_stmt(self, stmt);
    }
    // Expressions contain no statements.
    fn place(&mut self, _: &'a Place) {}
    fn expr(&mut self, _: &'a Expr) {}
}

/// Calls `f` for every statement of a body at any depth, in pre-order.
pub fn each_stmt<'a>(list: &'a [Stmt], f: impl FnMut(&'a Stmt)) {
    EachStmt(f).stmts(list);
}

/// Returns whether `wanted` holds for any statement of a body at any depth.
pub fn any_stmt(list: &[Stmt], mut wanted: impl FnMut(&Stmt) -> bool) -> bool {
    let mut found = false;
    each_stmt(list, |s| found = found || wanted(s));
    found
}

struct EachExprMut<F>(F);

impl<'a, F: FnMut(&mut Expr)> VisitorMut<'a> for EachExprMut<F> {
    fn expr(&mut self, expr: &'a mut Expr) {
        walk_expr_mut(self, expr);
        (self.0)(expr);
    }
}

/// Calls `f` for every expression of a body, in post-order.
pub fn each_expr_mut(list: &mut Vec<Stmt>, f: impl FnMut(&mut Expr)) {
    EachExprMut(f).stmts(list);
}

struct EachListMut<F>(F);

impl<'a, F: FnMut(&mut Vec<Stmt>)> VisitorMut<'a> for EachListMut<F> {
    fn stmts(&mut self, list: &'a mut Vec<Stmt>) {
        walk_stmts_mut(self, list);
        (self.0)(list);
    }
    fn place(&mut self, _: &'a mut Place) {}
    fn expr(&mut self, _: &'a mut Expr) {}
}

/// Calls `f` for every list of statements, inner lists first.
pub fn each_list_mut(list: &mut Vec<Stmt>, f: impl FnMut(&mut Vec<Stmt>)) {
    EachListMut(f).stmts(list);
}
