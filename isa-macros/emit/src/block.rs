//! Bodies that move whole registers between memory and the lanes, and do nothing else: where every lane is active they need no rows of
//! addresses, and where lanes are neighbours in memory all of them are one block.

use super::expr::Emit;
use super::handler::slot;
use super::rows::{self, Access, Sum, is_uniform};
use isa_spec::pcode::ir::*;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

pub enum Block<'a> {
    /// Global memory at a sum.
    Global { sum: Sum<'a>, store: bool, dwords: usize },
    /// LDS at the lanes' addresses, each plus a number of the instruction. Loads go to one register after the other.
    Lds { lanes: Role, plus: Vec<&'a Expr>, store: bool, dwords: usize },
}

impl<'a> Block<'a> {
    pub fn of(sem: &'a Semantics) -> Option<Block<'a>> {
        let mut list = rows::accesses(sem)?.0;
        let (store, width) = (list[0].store, list[0].width);
        let dwords = width as usize / 32;
        if width % 32 != 0 || list.iter().any(|a| a.width != width) || !moves(sem, &list) {
            return None;
        }
        if list[0].space != Space::Lds {
            let sum = list.pop()?.sum?;
            return Some(Block::Global { sum, store, dwords });
        }
        let mut lanes = None;
        let mut plus = Vec::new();
        for access in &list {
            let (role, number) = lds_sum(address(sem, access.addr))?;
            if lanes.is_some_and(|lanes| lanes != role) {
                return None;
            }
            lanes = Some(role);
            plus.push(number);
        }
        Some(Block::Lds { lanes: lanes?, plus, store, dwords })
    }

    /// Tries it, in the memory of a watch or in the wave's own, and leaves everything else to `otherwise`.
    pub fn tokens(&self, emit: &Emit<'_>, watched: bool, otherwise: &Ident) -> TokenStream {
        let data = slot(Role::Data);
        let (before, moved) = match self {
            Block::Global { sum, store, dwords } => {
                let offsets = slot(sum.offsets);
                let base = sum.base(emit, quote! { unsafe { rt::plain_scalar2(cx, op.src[1]) } });
                let unless = sum.unless.map(|unless| {
                    let unless = emit.expr(unless);
                    quote! { if #unless != 0 { return unsafe { #otherwise(cx, op) }; } }
                });
                let moved = if *store {
                    quote! { rt::store_block::<#watched, #dwords>(cx, base, #offsets, #data) }
                } else {
                    quote! { rt::load_block::<#watched, #dwords>(cx, base, #offsets, op.d) }
                };
                (quote! { #unless #base }, moved)
            }
            Block::Lds { lanes, plus, store, dwords } => {
                let lanes = slot(*lanes);
                let plus = plus.iter().map(|number| emit.expr(number));
                let moved = if *store {
                    quote! { rt::store_lds_block::<#watched, #dwords>(cx, #lanes, #(#plus)*, #data) }
                } else {
                    let count = plus.len();
                    quote! { rt::load_lds_block::<#watched, #count, #dwords>(cx, #lanes, [#(#plus),*], op.d) }
                };
                (quote! {}, moved)
            }
        };
        quote! {
            #before
            if unsafe { #moved } { Flow::NEXT } else { unsafe { #otherwise(cx, op) } }
        }
    }
}

/// What an address stands for, if it is a local that the first statement assigns.
fn address<'a>(sem: &'a Semantics, addr: &'a Expr) -> &'a Expr {
    match (&addr.kind, sem.body.first()) {
        (
            ExprKind::Local(id),
            Some(Stmt::Assign { place: Place { kind: PlaceKind::Local(to), .. }, value, .. }),
        ) if id == to => value,
        _ => addr,
    }
}

/// An LDS address as the lanes' 32-bit part and a number that is added to it.
fn lds_sum(addr: &Expr) -> Option<(Role, &Expr)> {
    let ExprKind::Convert(sum) = &addr.kind else { return None };
    let ExprKind::Binary(BinOp::Add, lanes, number) = &sum.kind else { return None };
    match lanes.kind {
        ExprKind::Operand(role) if sum.ty == Ty::U(32) && is_uniform(number) => Some((role, number)),
        _ => None,
    }
}

/// Whether the body is: an address at most; loads; and their values to the destination as they are, the first lowest, or one store.
fn moves(sem: &Semantics, list: &[Access<'_>]) -> bool {
    let Some((Stmt::Assign { place, value, .. }, before)) = sem.body.split_last() else { return false };
    let to_locals = |count: usize| {
        let assigns =
            |s: &Stmt| matches!(s, Stmt::Assign { place: Place { kind: PlaceKind::Local(_), .. }, .. });
        before.len() == count && before.iter().all(assigns)
    };
    let width = list[0].width;
    // A local that is loaded, and not the address, would be one more access.
    let only = list.len() == 1 && to_locals(1);
    match (&place.kind, &value.kind) {
        (PlaceKind::Operand(Role::D0), ExprKind::Mem { .. }) => only && place.ty.width() == width,
        (PlaceKind::Mem { .. }, ExprKind::Operand(Role::Data)) => only && value.ty.width() == width,
        (PlaceKind::Operand(Role::D0), ExprKind::Concat(parts)) => {
            // Each part the local of a statement that is nothing but a load.
            let from = |(stmt, part): (&Stmt, &Expr)| {
                let Stmt::Assign { place, value, .. } = stmt else { return false };
                match (&place.kind, &value.kind, &part.kind) {
                    (PlaceKind::Local(to), ExprKind::Mem { .. }, ExprKind::Local(id)) => {
                        to == id && part.ty.width() == width && value.ty.width() == width
                    }
                    _ => false,
                }
            };
            to_locals(list.len())
                && parts.len() == list.len()
                && before.iter().zip(parts.iter().rev()).all(from)
        }
        _ => false,
    }
}
