//! Whether an instruction that writes EXEC only removes lanes, according to its body.

use isa_spec::pcode::ir::{BinOp, Expr, ExprKind, LocalId, Place, PlaceKind, Semantics, State, Stmt};
use isa_spec::tables::Role;
use std::collections::HashSet;
use wavesim_machine::exec::effects::{Effects, File, Use};
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO};

/// Returns whether an operand is a half of EXEC, or all of it.
pub fn is_exec(used: &Use) -> bool {
    used.file == File::Sgpr && (EXEC_LO..=EXEC_HI).contains(&(used.first as usize))
}

/// The state of the walk through a body.
struct Walk<'a> {
    effects: &'a Effects,
    /// Locals whose bits are among those of EXEC.
    within: HashSet<LocalId>,
    /// Whether all writes of EXEC so far only remove lanes; `None` if there are none.
    narrows: Option<bool>,
}

/// Returns whether all bits that a body writes to EXEC are among those that EXEC had: a conjunction with EXEC, or the bits of
/// the active lanes. `effects` say which operands are EXEC.
pub fn only_removes_lanes(sem: &Semantics, effects: &Effects) -> bool {
    let mut walk = Walk { effects, within: HashSet::new(), narrows: None };
    sem.body.iter().for_each(|stmt| walk.stmt(stmt));
    walk.narrows == Some(true)
}

impl Walk<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { place, value, .. } => {
                let within = self.is_within(value);
                match &place.kind {
                    PlaceKind::Local(id) if within => drop(self.within.insert(*id)),
                    PlaceKind::Local(id) => drop(self.within.remove(id)),
                    // A bit of an active lane.
                    PlaceKind::Slice { base, lo } if self.is_exec_place(base) => {
                        self.record(matches!(lo.kind, ExprKind::State(State::LaneId)));
                    }
                    _ if self.is_exec_place(place) => self.record(within),
                    _ => {}
                }
            }
            // What writes EXEC has neither; the value of a local would depend on the path.
            _ => self.narrows = Some(false),
        }
    }

    fn record(&mut self, narrows: bool) {
        self.narrows = Some(narrows && self.narrows != Some(false));
    }

    fn is_exec_place(&self, place: &Place) -> bool {
        match &place.kind {
            PlaceKind::State(state) => is_exec_state(*state),
            PlaceKind::Operand(role) => self.effects.writes.iter().any(|w| w.role == *role && is_exec(w)),
            _ => false,
        }
    }

    /// Returns whether the bits of a value are among those that EXEC had.
    fn is_within(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::State(state) => is_exec_state(*state),
            ExprKind::Operand(role) => self.is_exec_operand(*role),
            ExprKind::Local(id) => self.within.contains(id),
            ExprKind::Binary(BinOp::And, a, b) => self.is_within(a) || self.is_within(b),
            ExprKind::Bits(base) => self.is_within(base),
            _ => false,
        }
    }

    fn is_exec_operand(&self, role: Role) -> bool {
        self.effects.reads.iter().any(|r| r.role == role && is_exec(r))
    }
}

fn is_exec_state(state: State) -> bool {
    matches!(state, State::Exec | State::ExecLo | State::ExecHi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_isa::arch::Arch;
    use wavesim_machine::exec::effects;
    use wavesim_machine::exec::program::Program;

    #[test]
    fn conjunctions_with_exec_only_remove_lanes() {
        // Of RDNA 3, as LLVM encodes them.
        let removes = |word: u32| {
            let program = Program::from_bytes(Arch::Rdna3, &word.to_le_bytes()).unwrap().for_wave_size(32);
            let effects = &effects::table(&program, 32)[0];
            assert!(effects.writes.iter().any(is_exec), "{word:x}");
            only_removes_lanes(program.semantics(0).unwrap().1, effects)
        };
        // s_and_saveexec_b32 s5, vcc_lo; s_and_b32 exec_lo, exec_lo, vcc_lo; s_and_not1_b32 exec_lo, exec_lo, vcc_lo;
        // s_and_not0_saveexec_b32 s5, vcc_lo; v_cmpx_lt_u32 v0, v1
        for word in [0xbe85_206a, 0x8b7e_6a7e, 0x917e_6a7e, 0xbe85_2c6a, 0x7d92_0300] {
            assert!(removes(word), "{word:x}");
        }
        // s_or_saveexec_b32 s5, vcc_lo; s_and_b32 exec_lo, s5, vcc_lo; s_or_b32 exec_lo, exec_lo, s5;
        // s_mov_b32 exec_lo, s5; s_and_not1_b32 exec_lo, vcc_lo, exec_lo
        for word in [0xbe85_226a, 0x8b7e_6a05, 0x8c7e_057e, 0xbefe_0005, 0x917e_7e6a] {
            assert!(!removes(word), "{word:x}");
        }
    }
}
