//! Checks widths: infers those of locals that are assigned in parts, and checks the bounds of slices.

use super::{Checker, R};
use crate::pcode::ast::{self, BinaryOp, StmtKind};
use crate::source::Span;

/// Loop variables in scope, with their first and last values.
type Loops = Vec<(String, i128, i128)>;

impl<'a> Checker<'a> {
    /// Infers the width of a local whose first assignment is to a part of it, from the parts assigned
    /// anywhere in the body.
    pub(super) fn infer_width(&mut self, name: &str, span: Span) -> R<u16> {
        let body = self.frames.last().map_or(&[][..], |f| f.body);
        let mut need = Some(0);
        parts(body, name, &mut Loops::new(), &mut need);
        match need {
            Some(bits @ 1..=128) => Ok(bits as u16),
            Some(bits) if bits > 128 => {
                self.error(span, format!("the parts of `{name}` take {bits} bits; at most 128 are possible"))
            }
            _ => self.error_help(
                span,
                format!(
                    "the width of `{name}` cannot be inferred: parts of it are assigned at positions that are not fixed"
                ),
                format!("declare it: declare {name} : 32'B"),
            ),
        }
    }

    /// Rejects bits `[lo + width - 1 : lo]` of a value of `base` bits if some of them are known to be out of
    /// bounds.
    pub(super) fn check_bounds(&mut self, lo: &ast::Expr, width: u16, base: u32, span: Span) -> R<()> {
        match interval(lo, &self.loops) {
            Some((_, last)) if last + width as i128 > base as i128 => {
                let top = last + width as i128 - 1;
                let what = if width == 1 { "this bit" } else { "this slice" };
                self.error(span, format!("{what} goes up to bit {top} of a value that has {base}"))
            }
            Some((first, _)) if first < 0 => self.error(span, "there are no bits below bit 0"),
            _ => Ok(()),
        }
    }

    /// Returns the range of values of `e`, if known.
    pub(super) fn range(&self, e: &ast::Expr) -> Option<(i128, i128)> {
        interval(e, &self.loops)
    }
}

/// Computes the width that assignments to parts of `name` require; `None` if a part's position is not fixed.
fn parts(list: &[ast::Stmt], name: &str, loops: &mut Loops, need: &mut Option<i128>) {
    for stmt in list {
        match &stmt.kind {
            StmtKind::Assign { place, .. } => part(place, name, loops, need),
            StmtKind::If { arms, otherwise } => {
                arms.iter().for_each(|arm| parts(&arm.1, name, loops, need));
                otherwise.iter().for_each(|body| parts(body, name, loops, need));
            }
            StmtKind::For { var, from, to, body } => {
                let bounds = interval(from, loops).zip(interval(to, loops));
                let depth = loops.len();
                if let Some(((first, _), (_, last))) = bounds {
                    loops.push((var.text.clone(), first, last.max(first)));
                } else {
                    loops.retain(|l| l.0 != var.text);
                }
                parts(body, name, loops, need);
                loops.truncate(depth);
            }
            StmtKind::While { body, .. } => parts(body, name, loops, need),
            _ => {}
        }
    }
}

fn part(place: &ast::Expr, name: &str, loops: &Loops, need: &mut Option<i128>) {
    let is = |e: &ast::Expr| base_name(e) == Some(name);
    let top = match &place.kind {
        ast::ExprKind::View(inner, _) | ast::ExprKind::Paren(inner) => return part(inner, name, loops, need),
        ast::ExprKind::Concat(places) => return places.iter().for_each(|p| part(p, name, loops, need)),
        ast::ExprKind::Slice(base, hi, _) if is(base) => interval(hi, loops).map(|i| i.1),
        ast::ExprKind::Index(base, at) if is(base) => interval(at, loops).map(|i| i.1),
        ast::ExprKind::Part(base, lo, width) if is(base) => {
            interval(lo, loops).zip(interval(width, loops)).map(|(lo, width)| lo.1 + width.1 - 1)
        }
        _ => return,
    };
    *need = match (*need, top) {
        (Some(need), Some(top)) => Some(need.max(top + 1)),
        _ => None,
    };
}

fn base_name(e: &ast::Expr) -> Option<&str> {
    match &e.kind {
        ast::ExprKind::Name(name) => Some(name),
        ast::ExprKind::View(inner, _) | ast::ExprKind::Paren(inner) => base_name(inner),
        _ => None,
    }
}

/// Returns the smallest and largest value of an expression over numbers and loop variables.
fn interval(e: &ast::Expr, loops: &Loops) -> Option<(i128, i128)> {
    match &e.kind {
        ast::ExprKind::Paren(inner) | ast::ExprKind::View(inner, _) | ast::ExprKind::Cast(_, inner) => {
            interval(inner, loops)
        }
        ast::ExprKind::Int { value, .. } => i128::try_from(*value).ok().map(|v| (v, v)),
        ast::ExprKind::Name(name) => {
            loops.iter().rev().find(|l| l.0 == *name).map(|&(_, first, last)| (first, last))
        }
        ast::ExprKind::Unary(ast::UnaryOp::Neg, inner) => {
            let (low, high) = interval(inner, loops)?;
            Some((high.checked_neg()?, low.checked_neg()?))
        }
        ast::ExprKind::Binary(op, a, b) => {
            let (al, ah) = interval(a, loops)?;
            let (bl, bh) = interval(b, loops)?;
            match op {
                BinaryOp::Add => Some((al.checked_add(bl)?, ah.checked_add(bh)?)),
                BinaryOp::Sub => Some((al.checked_sub(bh)?, ah.checked_sub(bl)?)),
                BinaryOp::Mul => {
                    let ends =
                        [al.checked_mul(bl)?, al.checked_mul(bh)?, ah.checked_mul(bl)?, ah.checked_mul(bh)?];
                    Some((*ends.iter().min()?, *ends.iter().max()?))
                }
                _ => None,
            }
        }
        _ => None,
    }
}
