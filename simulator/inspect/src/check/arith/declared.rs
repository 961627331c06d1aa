//! Instructions whose result is a signed variable of the source, according to debug information. The code of a sum is the
//! same for signed and unsigned integers.

use isa_spec::pcode::ir::{ExprKind, PlaceKind, Stmt};
use isa_spec::tables::Role;
use std::collections::HashMap;
use wavesim_isa::operand;
use wavesim_loader::debug_info::Register;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Class, Effects, File, Use};
use wavesim_machine::exec::program::Program;

/// Maximum number of instructions between a result and the store to its variable, in code that is not optimised.
const MAX_DISTANCE: usize = 12;

/// A signed variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// The code is not optimised: it does what the source says, in that order.
    pub is_exact: bool,
}

/// Returns the variables that instructions set, by the index of the instruction.
pub fn declared(prepared: &Prepared, effects: &[Effects]) -> HashMap<usize, Declared> {
    let program = &prepared.program;
    let mut found = HashMap::new();
    let debug = &prepared.objects.debug;
    for result in debug.signed_results() {
        let next = program.inst_at(program.pc_at(result.address));
        let Some(at) = next.and_then(|next| next.checked_sub(1)) else { continue };
        if result_of(&effects[at]) == Some(result.register) {
            found.insert(at, Declared { name: result.name, is_exact: false });
        }
    }
    for frame in debug.frames() {
        for at in 0..effects.len() {
            if !frame.code.contains(&program.address(program.pcs[at])) {
                continue;
            }
            let Some(offset) = stored_to(program, effects, at, frame.register) else { continue };
            if let Some((_, name)) = frame.signed.iter().find(|(start, _)| *start == offset) {
                found.insert(at, Declared { name: name.clone(), is_exact: true });
            }
        }
    }
    found
}

/// Returns the register of a result of 32 bits.
fn result_of(effects: &Effects) -> Option<Register> {
    let mut results =
        effects.writes.iter().filter(|w| w.role == Role::D0 && w.relative.is_none() && w.count == 1);
    match (effects.class, results.next(), results.next()) {
        (Class::Valu | Class::Salu, Some(w), None) => register_of(w),
        _ => None,
    }
}

fn register_of(used: &Use) -> Option<Register> {
    match used.file {
        File::Sgpr => Some(Register::Sgpr(used.first)),
        File::Vgpr => Some(Register::Vgpr(used.first)),
        File::Scc => None,
    }
}

/// Returns the offset in the frame to which the result of an instruction is stored, soon after it and perhaps after a
/// copy, if nothing but the frame's register is its address.
fn stored_to(program: &Program, effects: &[Effects], index: usize, frame: u32) -> Option<u64> {
    let mut holders = vec![result_of(&effects[index])?];
    for (next, e) in effects.iter().enumerate().skip(index + 1).take(MAX_DISTANCE) {
        let holds = |used: &Use| register_of(used).is_some_and(|register| holders.contains(&register));
        match e.class {
            Class::Branch => return None,
            Class::Scratch if !e.returns => {
                let stored = e.reads.iter().any(|r| r.role == Role::Data && r.count == 1 && holds(r));
                let addressed = |role| e.reads.iter().find(|r| r.role == role);
                let base = addressed(Role::SAddr).is_some_and(|r| u32::from(r.first) == frame);
                if stored && base && addressed(Role::VAddr).is_none() {
                    let inst = &program.insts[next];
                    let binding = operand::binding(program.arch, inst.entry);
                    return Some(u64::from(binding.named_field(inst, program.arch.table(), "OFFSET")));
                }
            }
            _ => {}
        }
        let copies = is_copy(program, next) && e.reads.iter().any(|r| r.role == Role::S0 && holds(r));
        let written: Vec<Register> = e.writes.iter().filter_map(register_of).collect();
        holders.retain(|holder| !written.contains(holder));
        if copies {
            holders.extend(result_of(e));
        }
        if holders.is_empty() {
            return None;
        }
    }
    None
}

/// Returns whether an instruction only copies its first source: its body is `D0 = S0`.
fn is_copy(program: &Program, index: usize) -> bool {
    let Some((_, body, None)) = program.semantics(program.pcs[index]) else { return false };
    let [Stmt::Assign { place, value, .. }] = &body.body[..] else { return false };
    let source = match &value.kind {
        ExprKind::Bits(base) => &base.kind,
        kind => kind,
    };
    matches!((&place.kind, source), (PlaceKind::Operand(Role::D0), ExprKind::Operand(Role::S0)))
}
