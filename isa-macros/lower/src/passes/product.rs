//! Finds matrix products: the innermost three loops of one become a [`Stmt::Product`], which keeps
//! accumulators in host vectors along K. Each accumulator still adds its terms in the same order.

use crate::ir::*;
use crate::visit::{any_in, any_stmt, any_value, rewrite};
use isa_spec::pcode::ir::{LocalId, Ty};

/// Rewrites the loops of a body; runs after [`super::vector`].
pub fn run(once: &mut Once) {
    list(&mut once.body);
}

fn list(body: &mut [Stmt]) {
    for stmt in body {
        match convert(stmt) {
            Some(product) => *stmt = product,
            None => crate::visit::stmt_lists_mut(stmt, &mut |inner| list(inner)),
        }
    }
}

/// Returns whether a body depends on the f32 bits of MODE outside of products, which test MODE at run time.
pub fn depends_on_f32(once: &Once) -> bool {
    let single = |ty: &Ty| matches!(ty, Ty::F32 | Ty::BF16);
    // Conversions that neither produce nor read f32 denormals.
    let exact =
        |c: &Conversion| matches!(c, Conversion::F16ToF32 | Conversion::Fp8ToF32 | Conversion::Bf8ToF32);
    let products = any_stmt(&once.body, &|s| matches!(s, Stmt::Product(_)));
    let values = any_value(&once.body, &|v| match &v.kind {
        ValueKind::Float { ty, .. } | ValueKind::FloatBits { ty, .. } => single(ty),
        ValueKind::Conversion(conversion, _) => !exact(conversion),
        ValueKind::Convert { from, to, .. } => {
            (single(from) || single(to)) && !matches!(from, Ty::F16 | Ty::FP8 | Ty::BF8)
        }
        ValueKind::Pow { .. } | ValueKind::Simd { .. } => true,
        ValueKind::Pure { types, .. } => types.iter().any(single),
        _ => false,
    });
    let vectors = any_stmt(&once.body, &|s| match s {
        Stmt::Vector(vector) => {
            vector.reads.iter().any(|read| matches!(read, VectorRead::Converted(of, _) if !exact(of)))
        }
        _ => false,
    });
    !products || values || vectors
}

/// Matches a loop from zero over one statement; returns variable, count and statement.
fn match_counted_loop(stmt: &Stmt) -> Option<(LocalId, u32, &Stmt)> {
    let Stmt::For { var, from, to, body } = stmt else { return None };
    let ValueKind::Const(last) = to.kind else { return None };
    match &body[..] {
        [inner] if from.kind == ValueKind::Const(0) => Some((*var, last as u32 + 1, inner)),
        _ => None,
    }
}

fn convert(stmt: &Stmt) -> Option<Stmt> {
    let (k, depth, rows) = match_counted_loop(stmt)?;
    let (i, height, row) = match_counted_loop(rows)?;
    let Stmt::Vector(vector) = row else { return None };
    let [write] = &vector.writes[..] else { return None };
    let (element, [a, b, sum]) = match_multiply_add(&write.value)?;
    let read = |value: &Value| match value.kind {
        ValueKind::VectorRead { read, .. } => vector.reads.get(read),
        _ => None,
    };
    let VectorRead::Same(factor) = read(a)? else { return None };
    let factor = if element == ElementType::Integer { match_sign_extension(factor)? } else { factor };
    let ValueKind::Element(a, a_at) = &factor.kind else { return None };
    let VectorRead::Place(VectorPlace::Elements { id: b, start: b_at }) = read(b)? else { return None };
    let VectorRead::Place(sum) = read(sum)? else { return None };
    let VectorPlace::Elements { id: d, start: d_at } = &write.to else { return None };
    let plain = vector.from == 0 && !vector.lanes && write.when.is_none() && *sum == write.to;
    let loops = [k, i, vector.var];
    let part = |id: LocalId, at: &Value| {
        let [depth, row, column] = [stride_of(at, k)?, stride_of(at, i)?, stride_of(at, vector.var)?];
        let mut start = at.clone();
        rewrite(&mut start, &mut |v| match v.kind {
            ValueKind::Var(Var::Local(id)) if loops.contains(&id) => v.kind = ValueKind::Const(0),
            _ => {}
        });
        // The loops must not write the start indices of the arrays.
        let is_invariant =
            |v: &Value| matches!(v.kind, ValueKind::Const(_) | ValueKind::Var(_) | ValueKind::Op2(..));
        let invariant = !any_in(&start, &|v| !is_invariant(v));
        invariant.then_some((ProductPart { id, start, depth, row }, column))
    };
    let (sparse_rows, b_at) = match match_indexed_row(b_at) {
        Some((id, at, stride, rest)) => {
            let (numbers, 0) = part(id, at)? else { return None };
            (Some(SparseRows { numbers, stride }), rest)
        }
        None => (None, b_at.clone()),
    };
    let ((a, 0), (b, 1), (d, 1)) = (part(*a, a_at)?, part(*b, &b_at)?, part(*d, d_at)?) else { return None };
    let disjoint =
        [a.id, b.id].into_iter().chain(sparse_rows.as_ref().map(|rows| rows.numbers.id)).all(|id| id != d.id);
    let strides_match = (b.row, d.depth) == (0, 0) && (sparse_rows.is_none() || b.depth == 0);
    if !plain || !disjoint || !strides_match {
        return None;
    }
    let (rows, columns) = (height, vector.count);
    Some(Stmt::Product(Box::new(Product { element, depth, rows, columns, a, b, sparse_rows, d })))
}

/// Matches a multiply-accumulate; returns the factor of the row, the factor of the column and the
/// accumulator.
fn match_multiply_add(value: &Value) -> Option<(ElementType, [&Value; 3])> {
    match &value.kind {
        ValueKind::Float { op: op @ (FloatOp::Fma | FloatOp::FmaNearest), ty: Ty::F32, args } => {
            let [a, b, sum] = &args[..] else { return None };
            let nearest = *op == FloatOp::FmaNearest;
            Some((if nearest { ElementType::F32Nearest } else { ElementType::F32 }, [a, b, sum]))
        }
        ValueKind::Op2(Op2::Add, sum, product) => {
            let ValueKind::Op2(Op2::Mul, a, b) = &product.kind else { return None };
            Some((ElementType::Integer, [a, match_sign_extension(b)?, sum]))
        }
        _ => None,
    }
}

/// Matches a sign extension from 32 to 64 bits; returns the 32-bit value.
fn match_sign_extension(value: &Value) -> Option<&Value> {
    match &value.kind {
        ValueKind::SignExtend { value: inner, width: 32 } if value.host_width == HostWidth::W64 => {
            Some(inner)
        }
        _ => None,
    }
}

/// Matches an index `array[i] * factor + rest`; returns array, index `i`, factor and rest.
fn match_indexed_row(start: &Value) -> Option<(LocalId, &Value, u32, Value)> {
    let ValueKind::Op2(Op2::Add, row, rest) = &start.kind else { return None };
    let ValueKind::Op2(Op2::Mul, element, step) = &row.kind else { return None };
    match (&element.kind, &step.kind) {
        (ValueKind::Element(id, at), ValueKind::Const(step)) => {
            Some((*id, at, *step as u32, (**rest).clone()))
        }
        _ => None,
    }
}

/// Returns the stride of a value in a variable; `None` if it is not linear.
fn stride_of(value: &Value, var: LocalId) -> Option<u32> {
    let is_var = |v: &Value| v.kind == ValueKind::Var(Var::Local(var));
    if !any_in(value, &is_var) {
        return Some(0);
    }
    match &value.kind {
        ValueKind::Var(_) => Some(1),
        ValueKind::Op2(Op2::Add, a, b) => Some(stride_of(a, var)?.wrapping_add(stride_of(b, var)?)),
        ValueKind::Op2(Op2::Mul, a, b) => match (&a.kind, &b.kind) {
            (_, ValueKind::Const(n)) => Some(stride_of(a, var)?.wrapping_mul(*n as u32)),
            (ValueKind::Const(n), _) => Some(stride_of(b, var)?.wrapping_mul(*n as u32)),
            _ => None,
        },
        _ => None,
    }
}
