//! Hoists SIMD builtins: those for which hosts have an instruction that compilers do not select, and those
//! too long to be inlined in every handler. They are called for many lanes ahead of the lane loop, which
//! reads the results from lane vectors.

use crate::ir::*;
use crate::visit::{any_in, any_value, each_value, each_value_mut, parts};
use isa_spec::tables::Role;

/// Hoists the calls if one assignment contains all of them and only locals are set before it.
pub fn run(lanes: &mut Lanes) {
    let Some(at) = lanes.steps.iter().position(|step| matches!(step, Step::Loop(_))) else { return };
    let Step::Loop(main) = &mut lanes.steps[at] else { return };
    let Some(before) = only_statement(&main.body) else { return };
    let setup = main.body[..before].to_vec();
    let (mut calls, mut function) = (Vec::new(), None);
    // The calls are made even if not needed, since they have no side effects. Calls of another builtin stay
    // in the loop.
    each_value_mut(&mut main.body[before..=before], &mut |v| {
        if let ValueKind::Simd { builtin, ty, args } = &mut v.kind
            && *function.get_or_insert((*builtin, *ty)) == (*builtin, *ty)
        {
            calls.push(std::mem::take(args));
            v.kind = ValueKind::SimdResult { call: calls.len() - 1 };
        }
    });
    let Some((builtin, ty)) = function else { return };
    let lane_loop = LaneLoop {
        active_only: false,
        reads: main.reads.clone(),
        result: None,
        bits: Vec::new(),
        body: setup,
        leaves: false,
        retries: false,
        outer: Outer::default(),
    };
    lanes.steps.insert(at, Step::Simd { builtin, ty, calls, lanes: lane_loop });
}

fn is_call(v: &Value) -> bool {
    matches!(v.kind, ValueKind::Simd { .. })
}

/// Returns the index of the statement that contains all calls.
fn only_statement(body: &[Stmt]) -> Option<usize> {
    let mut found = None;
    for (at, stmt) in body.iter().enumerate() {
        if matches!(
            stmt,
            Stmt::If { .. } | Stmt::For { .. } | Stmt::While { .. } | Stmt::Leave | Stmt::Control { .. }
        ) {
            return None;
        }
        if any_value(std::slice::from_ref(stmt), &is_call) && found.replace(at).is_some() {
            return None;
        }
    }
    let at = found?;
    let locals = body[..at].iter().all(|s| matches!(s, Stmt::Set(Var::Local(_), _)));
    let (mut nested, mut result) = (false, false);
    each_value(&body[..=at], &mut |v| {
        result |= v.kind == ValueKind::Var(Var::Operand(Role::D0));
        if is_call(v) {
            parts(v, &mut |arg| nested |= any_in(arg, &is_call));
        }
    });
    // The old value of the result is available in the lane loop only.
    (locals && !nested && !result).then_some(at)
}
