//! Replaces tests of EXEC bits in loops over lanes: on hosts with SIMD vectors, they read the wave's lane
//! mask, which has one word per lane, instead of shifting 64 bits in every lane.

use crate::ir::*;
use crate::visit::{rewrite, stmt_lists_mut};
use isa_spec::pcode::ir::{LocalId, State};

/// Rewrites the statements for hosts with SIMD vectors. Runs after [`super::vector`].
pub fn run(once: &mut Once) {
    let mut body = once.with_vectors.as_ref().unwrap_or(&once.body).clone();
    if list(&mut body) {
        once.with_vectors = Some(body);
    }
}

/// Rewrites a list of statements; returns whether it contained tests of EXEC bits.
fn list(body: &mut [Stmt]) -> bool {
    let mut found = false;
    for stmt in body {
        stmt_lists_mut(stmt, &mut |inner| found |= list(inner));
        let Stmt::Vector(vector) = stmt else { continue };
        let Vector { var, lanes: true, reads, writes, .. } = &mut **vector else { continue };
        for write in writes {
            for value in write.when.iter_mut().chain([&mut write.value]) {
                rewrite(value, &mut |v| {
                    if let ValueKind::Op2(Op2::And, bits, one) = &mut v.kind
                        && one.kind == ValueKind::Const(1)
                        && is_exec_of_lane(bits, *var, reads)
                    {
                        let read = super::vector::add_read(reads, VectorRead::Active);
                        bits.kind = ValueKind::VectorRead { read, at: VectorAt::Own };
                        found = true;
                    }
                });
            }
        }
    }
    found
}

/// Returns true if a value is EXEC, shifted so that its lowest bit is that of the iteration's lane.
fn is_exec_of_lane(value: &Value, var: LocalId, reads: &[VectorRead]) -> bool {
    let ValueKind::Extract { value, lo } = &value.kind else { return false };
    let ValueKind::VectorRead { read, at: VectorAt::Same } = value.kind else { return false };
    lo.kind == ValueKind::Var(Var::Local(var))
        && matches!(&reads[read], VectorRead::Same(of) if of.kind == ValueKind::State(State::Exec))
}
