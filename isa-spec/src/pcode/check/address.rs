//! Checks addresses of memory accesses: expands `ADDR` and the address builtins for each address space.

use super::call_body::Scope;
use super::convert::constant;
use super::place::local_name;
use super::{Binding, Checker, R, TExpr};
use crate::mnemonic;
use crate::pcode::ast::{self, BinaryOp};
use crate::pcode::ir::{Expr, ExprKind, Place, PlaceKind, Space, Stmt, Ty};
use crate::pcode::sig::Family;
use crate::source::Span;

impl<'a> Checker<'a> {
    /// Returns the address of `MEM[index]`, accessed as `ty`.
    pub(super) fn address(&mut self, space: Space, index: &'a ast::Expr, ty: Ty) -> R<Expr> {
        let addr = match self.offset_in_buffer(space, index) {
            Some((local, extra)) => {
                if let Some(local) = local {
                    // Mark the local as read: it determines the address.
                    self.expr(local)?;
                }
                self.buffer_address(extra, ty.width() / 8, index.span)?
            }
            None => self.expr(index)?,
        };
        Ok(self.cast(addr, Ty::U(64)))
    }

    /// If `index` is the effective address of a buffer access plus a constant, returns the local that holds
    /// the address, if any, and the constant in bytes. The range check of such an access covers the bytes
    /// accessed there (RDNA ISA manuals, *Range Checking*).
    fn offset_in_buffer(&self, space: Space, index: &'a ast::Expr) -> Option<(Option<&'a ast::Expr>, u128)> {
        if space != Space::Buffer || self.sig().family != Family::Memory(Space::Buffer) {
            return None;
        }
        match &index.kind {
            ast::ExprKind::Paren(inner) => self.offset_in_buffer(space, inner),
            ast::ExprKind::Binary(BinaryOp::Add, base, offset) => {
                let ast::ExprKind::Int { value, .. } = offset.kind else { return None };
                let (local, extra) = self.offset_in_buffer(space, base)?;
                Some((local, extra.checked_add(value).filter(|sum| *sum <= u32::MAX as u128)?))
            }
            ast::ExprKind::Name(name) if name == "ADDR" => Some((None, 0)),
            ast::ExprKind::Name(name) => self.is_address(name).then_some((Some(index), 0)),
            ast::ExprKind::Call(name, _) => (name.text == "CalcBufferAddr").then_some((None, 0)),
            _ => None,
        }
    }

    /// Returns whether the only assignment to a local in the body is `addr = CalcBufferAddr(…)`.
    fn is_address(&self, name: &str) -> bool {
        let Some(frame) = self.frames.last() else { return false };
        let mut values = frame.body.iter().filter_map(|s| match &s.kind {
            ast::StmtKind::Assign { place, op, value } if local_name(place).is_some_and(|n| n.0 == name) => {
                Some((op, value))
            }
            _ => None,
        });
        let is_address_call =
            |e: &ast::Expr| matches!(&e.kind, ast::ExprKind::Call(f, _) if f.text == "CalcBufferAddr");
        values.next().is_some_and(|(op, value)| op.is_none() && is_address_call(value))
            && values.next().is_none()
    }

    /// Returns the address of a buffer access of `bytes` bytes, `extra` bytes above the effective address.
    fn buffer_address(&mut self, extra: u128, bytes: u32, span: Span) -> R<TExpr> {
        let args = [extra, bytes as u128].map(|n| TExpr { expr: constant(n, Ty::U(32), span), lit: None });
        self.computed_once("buffer_address", args.to_vec(), &format!("buffer_address {extra} {bytes}"), span)
    }

    /// Expands `ADDR`: calls the address function of this instruction's family.
    pub(super) fn effective_address(&mut self, span: Span) -> R<TExpr> {
        let Family::Memory(space) = self.sig().family else { return self.unknown_name("ADDR", span) };
        let name = match space {
            _ if mnemonic::is_image(&self.sig().name) => "CalcImageAddr",
            Space::Lds if self.adds_offsets() => "CalcDsBase",
            Space::Lds => "CalcDsAddr",
            Space::Global => "CalcGlobalAddr",
            Space::Flat => "CalcFlatAddr",
            Space::Scratch => "CalcScratchAddr",
            Space::Buffer => "CalcBufferAddr",
            Space::Scalar => "CalcSmemAddr",
            Space::Word => "CalcWordAddr",
        };
        let scaled = match name {
            "CalcGlobalAddr" => "CalcScaledGlobalAddr",
            "CalcFlatAddr" => "CalcScaledFlatAddr",
            "CalcScratchAddr" => "CalcScaledScratchAddr",
            "CalcSmemAddr" => "CalcScaledSmemAddr",
            _ => name,
        };
        if self.sig().offset_scale > 0 && scaled != name {
            let bytes = constant(self.sig().offset_scale as u128, Ty::U(32), span);
            return self.computed_once(scaled, vec![TExpr { expr: bytes, lit: None }], scaled, span);
        }
        self.computed_once(name, Vec::new(), name, span)
    }

    /// Calls an address function at its first use in a body; later uses share the value.
    fn computed_once(&mut self, name: &str, args: Vec<TExpr>, key: &str, span: Span) -> R<TExpr> {
        self.progress.depends_on(Scope::Call);
        let Some(function) = self.function(name) else {
            return self.error_help(
                span,
                format!("`ADDR` needs a function called `{name}`"),
                "it is defined in pseudocode/memory/address.pcode",
            );
        };
        let key = format!("{key}$");
        if let Some(found) = self.frames.first().and_then(|f| f.names.get(&key)).cloned() {
            return Ok(match found {
                Binding::Local(id) => TExpr::of(ExprKind::Local(id), self.locals[id as usize].ty, span),
                Binding::Value(v) => v,
                Binding::Record(_) => return Err(()),
            });
        }
        let value = self.expand_values(name, &function.parameters, &function.body, args, span, false)?;
        let ty = value.ty();
        let id = self.hidden_local("addr", ty, span);
        let value: Expr = value.expr;
        self.emit(Stmt::Assign { place: Place { kind: PlaceKind::Local(id), ty }, value, span });
        // Share the value only if it is computed at the top level, which dominates every later statement.
        if self.out.len() == 1
            && let Some(frame) = self.frames.first_mut()
        {
            frame.names.insert(key, Binding::Local(id));
        }
        Ok(TExpr::of(ExprKind::Local(id), ty, span))
    }
}
