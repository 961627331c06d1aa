//! Visitors of the lane-loop representation: analyses use [`each_value`] and similar functions, passes
//! rewrite with [`each_value_mut`]. The matches are exhaustive.

use crate::ir::*;

macro_rules! parts {
    ($(#[$doc:meta])* $parts:ident $values:ident $vector:ident $lists:ident $($mutable:ident)?) => {
        $(#[$doc])*
        pub fn $parts<'a>(value: &'a $($mutable)? Value, f: &mut dyn FnMut(&'a $($mutable)? Value)) {
            match &$($mutable)? value.kind {
                ValueKind::Const(_)
                | ValueKind::Var(_)
                | ValueKind::Field(_)
                | ValueKind::SourceBit { .. }
                | ValueKind::OperandNumber(_)
                | ValueKind::State(_)
                | ValueKind::LaneBit(_)
                | ValueKind::MaskOperand(_)
                | ValueKind::Scalar { .. }
                | ValueKind::Loaded { .. }
                | ValueKind::SimdResult { .. } => {}
                ValueKind::Element(_, a)
                | ValueKind::LaneElement(_, a)
                | ValueKind::StagedLane { lane: a, .. }
                | ValueKind::StagedDword { index: a, .. }
                | ValueKind::Sgpr { reg: a }
                | ValueKind::Load { addr: a, .. }
                | ValueKind::WordAddress(a)
                | ValueKind::Resize(a)
                | ValueKind::SignExtend { value: a, .. }
                | ValueKind::Op1(_, a)
                | ValueKind::ShlConst(a, _)
                | ValueKind::ShrConst(a, _)
                | ValueKind::Saturate { value: a, .. }
                | ValueKind::FloatBits { value: a, .. }
                | ValueKind::Conversion(_, a)
                | ValueKind::Convert { value: a, .. } => f(a),
                ValueKind::OperandLane { lane: a, index: b, .. }
                | ValueKind::Vgpr { lane: a, reg: b }
                | ValueKind::Op2(_, a, b)
                | ValueKind::Div { a, b, .. }
                | ValueKind::Shl(a, b)
                | ValueKind::Shr(a, b)
                | ValueKind::Sar { value: a, count: b, .. }
                | ValueKind::Compare { a, b, .. }
                | ValueKind::LogicalAnd(a, b)
                | ValueKind::LogicalOr(a, b)
                | ValueKind::Extract { value: a, lo: b }
                | ValueKind::Pow { base: a, power: b, .. } => {
                    f(a);
                    f(b);
                }
                ValueKind::Select(a, b, c) | ValueKind::Insert { old: a, value: b, lo: c, .. } => {
                    f(a);
                    f(b);
                    f(c);
                }
                ValueKind::VectorRead { at, .. } => {
                    if let VectorAt::Lane(a) = at {
                        f(a);
                    }
                }
                ValueKind::Concat(list) => {
                    for (a, _) in list {
                        f(a);
                    }
                }
                ValueKind::Float { args, .. }
                | ValueKind::Simd { args, .. }
                | ValueKind::Pure { args, .. }
                | ValueKind::Control { args, .. } => {
                    for a in args {
                        f(a);
                    }
                }
            }
        }

        /// Calls `f` for the values of a statement itself, excluding those of nested statements.
        pub fn $values<'a>(stmt: &'a $($mutable)? Stmt, f: &mut dyn FnMut(&'a $($mutable)? Value)) {
            match stmt {
                Stmt::Set(_, a)
                | Stmt::SetLow { value: a, .. }
                | Stmt::SetBit(_, a)
                | Stmt::SetState(_, a)
                | Stmt::SetScalar { value: a, .. }
                | Stmt::SetMaskOperand(a)
                | Stmt::Parts { value: a, .. }
                | Stmt::SetAddress { addr: a, .. }
                | Stmt::While { cond: a, .. } => f(a),
                Stmt::SetElement { index: a, value: b, .. }
                | Stmt::SetLaneElement { index: a, value: b, .. }
                | Stmt::SetSgpr { reg: a, value: b }
                | Stmt::Store { addr: a, value: b, .. }
                | Stmt::Exchange { addr: a, value: b, .. }
                | Stmt::For { from: a, to: b, .. } => {
                    f(a);
                    f(b);
                }
                Stmt::SetVgpr { lane, reg, value } => {
                    f(lane);
                    f(reg);
                    f(value);
                }
                Stmt::If { arms, .. } => {
                    for (cond, _) in arms {
                        f(cond);
                    }
                }
                Stmt::SetStored { address, value, .. } => {
                    if let Some((_, addr)) = address {
                        f(addr);
                    }
                    f(value);
                }
                Stmt::Vector(vector) => $vector(vector, f),
                Stmt::Product(product) => {
                    let Product { a, b, d, sparse_rows, .. } = &$($mutable)? **product;
                    f(&$($mutable)? a.start);
                    f(&$($mutable)? b.start);
                    if let Some(sparse_rows) = sparse_rows {
                        f(&$($mutable)? sparse_rows.numbers.start);
                    }
                    f(&$($mutable)? d.start);
                }
                Stmt::MoveLanes(moves) => {
                    let MoveLanes { direction, lanes, source, to } = &$($mutable)? **moves;
                    $vector(lanes, f);
                    if let MoveDirection::Pull { fetch, bound } = direction {
                        f(fetch);
                        f(bound);
                    }
                    if let MoveSource::Vgpr(register) = source {
                        f(register);
                    }
                    f(to);
                }
                Stmt::Leave => {}
                Stmt::Control { args, .. } => {
                    for a in args {
                        f(a);
                    }
                }
            }
        }

        /// Calls `f` for the operands of a vector loop.
        fn $vector<'a>(vector: &'a $($mutable)? Vector, f: &mut dyn FnMut(&'a $($mutable)? Value)) {
            let Vector { reads, writes, .. } = vector;
            for read in reads {
                match read {
                    VectorRead::Place(VectorPlace::Elements { start: a, .. }) | VectorRead::Same(a) => f(a),
                    VectorRead::Converted(_, a) => f(a),
                    VectorRead::Active => {}
                    VectorRead::Wave { index: a, .. } | VectorRead::WaveVgpr { reg: a } => f(a),
                    VectorRead::Place(VectorPlace::Vgpr { lane: a, reg: b })
                    | VectorRead::Lanes { lane: a, index: b, .. } => {
                        f(a);
                        f(b);
                    }
                }
            }
            for write in writes {
                match &$($mutable)? write.to {
                    VectorPlace::Elements { start, .. } => f(start),
                    VectorPlace::Vgpr { lane, reg } => {
                        f(lane);
                        f(reg);
                    }
                }
                if let Some(when) = &$($mutable)? write.when {
                    f(when);
                }
                f(&$($mutable)? write.value);
            }
        }

        /// Calls `f` for the lists of nested statements of a statement.
        pub fn $lists<'a>(stmt: &'a $($mutable)? Stmt, f: &mut dyn FnMut(&'a $($mutable)? Vec<Stmt>)) {
            match stmt {
                Stmt::If { arms, otherwise } => {
                    for (_, body) in arms {
                        f(body);
                    }
                    f(otherwise);
                }
                Stmt::For { body, .. } | Stmt::While { body, .. } | Stmt::Parts { parts: body, .. } => f(body),
                Stmt::Set(..)
                | Stmt::SetLow { .. }
                | Stmt::SetElement { .. }
                | Stmt::SetLaneElement { .. }
                | Stmt::SetBit(..)
                | Stmt::SetState(..)
                | Stmt::SetVgpr { .. }
                | Stmt::SetSgpr { .. }
                | Stmt::SetScalar { .. }
                | Stmt::SetMaskOperand(_)
                | Stmt::Store { .. }
                | Stmt::Exchange { .. }
                | Stmt::SetStored { .. }
                | Stmt::SetAddress { .. }
                | Stmt::Vector(_)
                | Stmt::Product(_)
                | Stmt::MoveLanes(_)
                | Stmt::Leave
                | Stmt::Control { .. } => {}
            }
        }
    };
}

parts! {
    /// Calls `f` for the operands of a value.
    parts stmt_values vector_values stmt_lists
}

parts! {
    /// Calls `f` for the operands of a value.
    parts_mut stmt_values_mut vector_values_mut stmt_lists_mut mut
}

/// Calls `f` for a value and all values in it, in pre-order.
pub fn each_in<'a>(value: &'a Value, f: &mut dyn FnMut(&'a Value)) {
    f(value);
    parts(value, &mut |v| each_in(v, f));
}

/// Calls `f` for every value of a list of statements.
pub fn each_value<'a>(list: &'a [Stmt], f: &mut dyn FnMut(&'a Value)) {
    each_stmt(list, &mut |stmt| stmt_values(stmt, &mut |v| each_in(v, f)));
}

/// Calls `f` for every statement of a list at any depth.
pub fn each_stmt<'a>(list: &'a [Stmt], f: &mut dyn FnMut(&'a Stmt)) {
    for stmt in list {
        f(stmt);
        stmt_lists(stmt, &mut |inner| each_stmt(inner, f));
    }
}

/// Returns whether `wanted` holds for a value or any value in it.
pub fn any_in(value: &Value, wanted: &dyn Fn(&Value) -> bool) -> bool {
    let mut found = false;
    each_in(value, &mut |v| found = found || wanted(v));
    found
}

/// Returns whether `wanted` holds for any value of a list of statements.
pub fn any_value(list: &[Stmt], wanted: &dyn Fn(&Value) -> bool) -> bool {
    let mut found = false;
    each_value(list, &mut |v| found = found || wanted(v));
    found
}

/// Returns whether `wanted` holds for any statement of a list at any depth.
pub fn any_stmt(list: &[Stmt], wanted: &dyn Fn(&Stmt) -> bool) -> bool {
    let mut found = false;
    each_stmt(list, &mut |s| found = found || wanted(s));
    found
}

/// Rewrites a value in post-order.
pub fn rewrite(value: &mut Value, f: &mut dyn FnMut(&mut Value)) {
    parts_mut(value, &mut |v| rewrite(v, f));
    f(value);
}

/// Rewrites every value of a list of statements in post-order.
pub fn each_value_mut(list: &mut [Stmt], f: &mut dyn FnMut(&mut Value)) {
    for stmt in list {
        stmt_values_mut(stmt, &mut |v| rewrite(v, f));
        stmt_lists_mut(stmt, &mut |inner| each_value_mut(inner, f));
    }
}
