//! Bits of EXEC in loops over lanes: hosts with vectors read them from the mask that the wave keeps, a word
//! for each lane, instead of shifting 64 bits in every lane.

use crate::ir::*;
use crate::visit::{rewrite, stmt_lists_mut};
use isa_spec::pcode::ir::{LocalId, State};

/// Rewrites what hosts with vectors run, after [`super::vector`].
pub fn run(once: &mut Once) {
    let mut body = once.with_vectors.as_ref().unwrap_or(&once.body).clone();
    if list(&mut body) {
        once.with_vectors = Some(body);
    }
}

/// Whether there was something to rewrite.
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
                        && is_own_bits(bits, *var, reads)
                    {
                        let read = super::vector::add(reads, VectorRead::Active);
                        bits.kind = ValueKind::VectorRead { read, at: VectorAt::Own };
                        found = true;
                    }
                });
            }
        }
    }
    found
}

/// Whether a value is EXEC from the bit of the iteration's lane on.
fn is_own_bits(value: &Value, var: LocalId, reads: &[VectorRead]) -> bool {
    let ValueKind::Extract { value, lo } = &value.kind else { return false };
    let ValueKind::VectorRead { read, at: VectorAt::Same } = value.kind else { return false };
    lo.kind == ValueKind::Var(Var::Local(var))
        && matches!(&reads[read], VectorRead::Same(of) if of.kind == ValueKind::State(State::Exec))
}
