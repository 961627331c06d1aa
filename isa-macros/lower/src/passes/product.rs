//! Sums of products: the innermost three loops of a matrix product become one [`Stmt::Product`], which keeps sums in
//! vectors of the host while it goes along K. Each sum still has its terms in the same order.

use crate::ir::*;
use crate::visit::{any_in, each_value, rewrite};
use isa_spec::pcode::ir::{LocalId, Ty};

/// Rewrites the loops of a body, after [`super::vector`].
pub fn run(once: &mut Once) {
    let uses = count(&once.body);
    list(&mut once.body, &uses);
}

fn list(body: &mut [Stmt], uses: &[u32]) {
    for stmt in body {
        match convert(stmt, uses) {
            Some(product) => *stmt = product,
            None => crate::visit::stmt_lists_mut(stmt, &mut |inner| list(inner, uses)),
        }
    }
}

/// How often each local is read.
fn count(body: &[Stmt]) -> Vec<u32> {
    let mut uses = Vec::new();
    each_value(body, &mut |v| {
        if let ValueKind::Var(Var::Local(id)) = v.kind {
            uses.resize(uses.len().max(id as usize + 1), 0);
            uses[id as usize] += 1;
        }
    });
    uses
}

/// A loop from zero over one statement.
fn counted(stmt: &Stmt) -> Option<(LocalId, u32, &Stmt)> {
    let Stmt::For { var, from, to, body } = stmt else { return None };
    let ValueKind::Const(last) = to.kind else { return None };
    match &body[..] {
        [inner] if from.kind == ValueKind::Const(0) => Some((*var, last as u32 + 1, inner)),
        _ => None,
    }
}

fn convert(stmt: &Stmt, uses: &[u32]) -> Option<Stmt> {
    let (k, depth, rows) = counted(stmt)?;
    let (i, height, row) = counted(rows)?;
    let Stmt::Vector(vector) = row else { return None };
    let [write] = &vector.writes[..] else { return None };
    let ValueKind::Float { op: op @ (FloatOp::Fma | FloatOp::FmaNearest), ty: Ty::F32, args } =
        &write.value.kind
    else {
        return None;
    };
    let read = |value: &Value, own: bool| match value.kind {
        ValueKind::VectorRead { read, at: VectorAt::Own } if own => vector.reads.get(read),
        ValueKind::VectorRead { read, at: VectorAt::Same } if !own => vector.reads.get(read),
        _ => None,
    };
    let VectorRead::Same(Value { kind: ValueKind::Element(a, a_at), .. }) = read(args.first()?, false)?
    else {
        return None;
    };
    let VectorRead::Place(VectorPlace::Elements { id: b, start: b_at }) = read(args.get(1)?, true)? else {
        return None;
    };
    let VectorRead::Place(sum) = read(args.get(2)?, true)? else { return None };
    let VectorPlace::Elements { id: d, start: d_at } = &write.to else { return None };
    let plain = vector.from == 0 && !vector.lanes && write.when.is_none() && *sum == write.to;
    let inside = count(std::slice::from_ref(stmt));
    let own = |id: LocalId| inside.get(id as usize) == uses.get(id as usize);
    let apart = [a, b].iter().all(|id| **id != *d);
    if !plain || !apart || vector.reads.len() != 3 || ![k, i, vector.var].into_iter().all(own) {
        return None;
    }
    let loops = [k, i, vector.var];
    let strides = |at: &Value| Some([factor(at, k)?, factor(at, i)?, factor(at, vector.var)?]);
    let ([a_depth, a_row, 0], [b_depth, 0, 1], [0, d_row, 1]) =
        (strides(a_at)?, strides(b_at)?, strides(d_at)?)
    else {
        return None;
    };
    let start = |at: &Value| {
        let mut at = at.clone();
        rewrite(&mut at, &mut |v| match v.kind {
            ValueKind::Var(Var::Local(id)) if loops.contains(&id) => v.kind = ValueKind::Const(0),
            _ => {}
        });
        at
    };
    let values = [start(a_at), start(b_at), start(d_at)];
    // Where the arrays begin must not be what the loops write.
    let steady = |v: &Value| {
        !any_in(v, &|v| !matches!(v.kind, ValueKind::Const(_) | ValueKind::Var(_) | ValueKind::Op2(..)))
    };
    if !values.iter().all(steady) {
        return None;
    }
    let [a_at, b_at, d_at] = values;
    Some(Stmt::Product(Box::new(Product {
        nearest: *op == FloatOp::FmaNearest,
        depth,
        rows: height,
        columns: vector.count,
        a: ProductPart { id: *a, start: a_at, depth: a_depth, row: a_row },
        b: ProductPart { id: *b, start: b_at, depth: b_depth, row: 0 },
        d: ProductPart { id: *d, start: d_at, depth: 0, row: d_row },
    })))
}

/// By how much a value grows with a variable; none if not by the same each time.
fn factor(value: &Value, var: LocalId) -> Option<u32> {
    let is_var = |v: &Value| v.kind == ValueKind::Var(Var::Local(var));
    if !any_in(value, &is_var) {
        return Some(0);
    }
    match &value.kind {
        ValueKind::Var(_) => Some(1),
        ValueKind::Op2(Op2::Add, a, b) => Some(factor(a, var)?.wrapping_add(factor(b, var)?)),
        ValueKind::Op2(Op2::Sub, a, b) => Some(factor(a, var)?.wrapping_sub(factor(b, var)?)),
        ValueKind::Op2(Op2::Mul, a, b) => match (&a.kind, &b.kind) {
            (_, ValueKind::Const(n)) => Some(factor(a, var)?.wrapping_mul(*n as u32)),
            (ValueKind::Const(n), _) => Some(factor(b, var)?.wrapping_mul(*n as u32)),
            _ => None,
        },
        ValueKind::ShlConst(a, n) => Some(factor(a, var)?.wrapping_shl(*n)),
        _ => None,
    }
}
