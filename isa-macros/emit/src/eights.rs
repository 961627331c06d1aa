//! Builtins for which hosts have an instruction that the compiler does not find: called for eight lanes at once, ahead of the lane loop,
//! which then reads their values from rows.

use super::expr::Emit;
use isa_spec::pcode::ir::*;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// Such calls of one statement, by their arguments.
pub struct Eights<'a> {
    calls: Vec<&'a [Expr]>,
    /// Statements that the arguments may depend on.
    before: &'a [Stmt],
}

impl<'a> Eights<'a> {
    /// Those of a body that has them in one assignment, with nothing but locals assigned before it.
    pub fn of(sem: &'a Semantics) -> Option<Eights<'a>> {
        let mut found = None;
        for (at, stmt) in sem.body.iter().enumerate() {
            let Stmt::Assign { value, .. } = stmt else { return None };
            let mut calls = Vec::new();
            collect(value, &mut calls)?;
            if !calls.is_empty() && found.replace(Eights { calls, before: &sem.body[..at] }).is_some() {
                return None;
            }
        }
        let local =
            |stmt: &Stmt| matches!(stmt, Stmt::Assign { place: Place { kind: PlaceKind::Local(_), .. }, .. });
        // The result's old value is declared in the lane loop only.
        found.filter(|f| !sem.uses.reads.contains(&Role::D0) && f.before.iter().all(local))
    }

    /// The row that holds a call's values.
    pub fn row(&self, args: &[Expr]) -> Option<Ident> {
        let at = self.calls.iter().position(|call| std::ptr::eq(*call, args))?;
        Some(format_ident!("eights{at}"))
    }

    /// What comes before the lane loop; `read` declares a lane's sources.
    pub fn tokens(&self, emit: &Emit<'_>, read: &TokenStream, locals: &TokenStream) -> TokenStream {
        let statements = emit.stmts(self.before);
        let (mut rows, mut lists) = (TokenStream::new(), TokenStream::new());
        let (mut fill, mut call) = (TokenStream::new(), TokenStream::new());
        for (at, args) in self.calls.iter().enumerate() {
            let (row, list) = (format_ident!("eights{at}"), format_ident!("args{at}"));
            let (count, nth) = (args.len(), 0..args.len());
            let values = args.iter().map(|arg| emit.expr(arg));
            rows.extend(quote! { let mut #row = LaneVec::ZERO; });
            lists.extend(quote! { let mut #list = [rt::U32x8::ZERO; #count]; });
            fill.extend(quote! { #(#list[#nth].0[k] = #values;)* });
            call.extend(quote! { rt::select_bytes_x8(#list).put(&mut #row, eight); });
        }
        quote! {
            #rows
            for eight in 0..4usize {
                #lists
                for k in 0..8usize {
                    let l = 8 * eight + k;
                    let lane: u32 = lane_base + l as u32;
                    #read
                    #locals
                    #statements
                    #fill
                }
                #call
            }
        }
    }
}

/// Adds the calls in an expression, always made or not: they do nothing else. `None` if one is an argument of another.
fn collect<'a>(e: &'a Expr, calls: &mut Vec<&'a [Expr]>) -> Option<()> {
    match &e.kind {
        ExprKind::Call(builtin, args) => {
            let mut inner = Vec::new();
            args.iter().try_for_each(|arg| collect(arg, &mut inner))?;
            if *builtin == Builtin::Pure(Pure::SelectBytes) {
                return inner.is_empty().then(|| calls.push(args));
            }
            calls.append(&mut inner);
            Some(())
        }
        ExprKind::Unary(_, a) | ExprKind::Convert(a) | ExprKind::Bits(a) => collect(a, calls),
        ExprKind::Binary(_, a, b) => {
            collect(a, calls)?;
            collect(b, calls)
        }
        ExprKind::Select(a, b, c) => [a, b, c].into_iter().try_for_each(|e| collect(e, calls)),
        _ => Some(()),
    }
}
