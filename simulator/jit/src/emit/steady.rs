//! Steady iterations of loops. In a loop that consists of one block, with loads or stores at offsets that
//! advance by a constant, an iteration that took the fast path is mostly followed by more of its kind: the
//! memory is the same, the lanes lie as before, and only the offsets move. Such iterations are emitted once
//! more, with one check for each offset register instead of the search for memory, the classification of
//! lanes and the comparison of loads with stores.
//!
//! A steady iteration runs only if the loop goes on after it and the accesses of the iteration that follows
//! are inside memory, too. Registers that each iteration writes before it reads them are then not stored:
//! the next iteration writes them before anything can see them. If any check fails, the general code runs the
//! iteration instead; all checks precede the first effect.

use super::memory::{Access, Path, ResolvedAccesses};
use super::packet::DenormalFree;
use super::val::Val;
use super::{Bug, Emitter, R, Target};
use crate::selected::{Access as AccessKind, Selected};
use crate::unit::{Block, targets};
use isa_lower::ir::{self, Hold, Once, Stmt, Value, ValueKind};
use isa_lower::visit::{any_in, any_stmt, any_value};
use std::collections::BTreeSet;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::rt::EXEC_LO;
use wavesim_machine::state::wave::SGPRS;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Src, V, Width};

/// The number that stands for SCC among the operand codes of SGPRs.
pub const SCC: usize = SGPRS;

/// A block that jumps to itself, while its general code is emitted.
pub struct LoopBlock {
    /// Its first operation.
    first: u32,
    /// The scalar state that the addresses of its accesses depend on, by operand code.
    inputs: BTreeSet<usize>,
    /// The scalar state that it writes, likewise.
    written: BTreeSet<usize>,
    /// Addresses are being emitted: what is read now is an input of them.
    in_address: bool,
    runs: usize,
    /// The run, if it has accesses.
    run: Option<FastRun>,
    /// The steady iterations, once the general code has a jump to them.
    steady: Option<Steady>,
}

/// A run on its fast path.
pub struct FastRun {
    pub resolved: ResolvedAccesses,
    /// For each offset register that the run writes, what is added to it.
    pub steps: Vec<OffsetStep>,
    pub denormal_free: DenormalFree,
    /// 1 if the last iteration took the fast path.
    pub taken: V,
}

/// What a run adds to the offsets in a register, and their bounds before that.
pub struct OffsetStep {
    pub register: u16,
    pub step: Val,
    pub min: V,
    pub max: V,
}

/// Steady iterations.
pub struct Steady {
    head: Label,
    pub run: FastRun,
    pub offsets: Vec<SteadyOffsets>,
}

/// Offsets that advance.
#[derive(Clone, Copy)]
pub struct SteadyOffsets {
    pub register: u16,
    /// What is added in each iteration, sign-extended.
    pub step: V,
    /// The lowest offset.
    pub low: V,
    /// The highest value of `low` with all lanes inside memory.
    pub room: V,
}

/// What the emission of steady iterations needs.
pub struct SteadyCode {
    steady: Steady,
    /// The loop's first operation.
    first: u32,
    /// The general code runs the iteration.
    leave: Label,
    /// The iteration has been emitted.
    done: bool,
}

impl FastRun {
    /// Returns what is added to the offsets in a register.
    fn step(&self, register: u16) -> Option<Val> {
        self.steps.iter().find(|step| step.register == register).map(|step| step.step)
    }

    /// Returns whether each store keeps its distance from the other accesses of the same memory.
    fn stores_keep_distance(&self) -> bool {
        let all = || self.resolved.accesses.iter().map(|location| &location.access);
        let alike = |a: &Access, b: &Access| {
            a.is_in_lds() != b.is_in_lds() || self.step(a.register) == self.step(b.register)
        };
        all().filter(|access| access.store).all(|store| all().all(|other| alike(store, other)))
    }
}

impl LoopBlock {
    /// Records a run.
    pub fn record_run(&mut self, run: Option<FastRun>) {
        self.runs += 1;
        self.run = run;
    }
}

impl Emitter<'_> {
    /// Records that the block being emitted reads scalar state, by operand code.
    pub fn record_read(&mut self, code: usize) {
        if let Some(block) = self.loop_block.as_mut().filter(|block| block.in_address) {
            block.inputs.insert(code);
        }
    }

    /// Records that it writes scalar state.
    pub fn record_write(&mut self, code: usize) {
        self.loop_block.iter_mut().for_each(|block| block.written.extend([code]));
    }

    /// From now on, what it reads is part of an address, or not.
    pub fn record_address(&mut self, in_address: bool) {
        self.loop_block.iter_mut().for_each(|block| block.in_address = in_address);
    }

    /// Returns the state to record a block in, if all of its operations can be part of steady iterations.
    pub fn loop_block(&mut self, block: &Block) -> Option<LoopBlock> {
        let last = block.end - 1;
        let loops = targets(last, &self.context, self.selections).contains(&block.first);
        let plain = loops && (block.first..last).all(|at| self.is_plain(at));
        plain.then(|| LoopBlock {
            first: block.first,
            inputs: BTreeSet::new(),
            written: BTreeSet::new(),
            in_address: false,
            runs: 0,
            run: None,
            steady: None,
        })
    }

    /// Returns whether an operation accesses no memory but by [`super::memory::Access`], and registers of
    /// lanes only as part of a run, without masks.
    fn is_plain(&self, at: u32) -> bool {
        let op = &self.ops[at as usize];
        match &self.selections.of(at).how {
            Selected::Nop | Selected::Access(AccessKind::Words(_)) => true,
            Selected::Scalar(once) => is_plain_scalar(once),
            Selected::Lanes(lanes) => {
                let dpp = op.flags & Op::MODIFY != 0 && self.exts[op.ext as usize].dpp.is_some();
                lanes.masks.is_empty() && !dpp
            }
            Selected::Access(AccessKind::Subword(subword)) => !matches!(
                subword.block,
                ir::Block::Global { store: true, .. } | ir::Block::Lds { store: true, .. }
            ),
            Selected::Access(AccessKind::MultiStore(_) | AccessKind::Scratch(..))
            | Selected::Branch(_)
            | Selected::Call(_) => false,
        }
    }

    /// Continues with the next iteration of the block that is being emitted: a steady one if possible.
    /// Returns false if its iterations are never steady.
    pub fn enter_steady_loop(&mut self, target: u32, general: Label) -> R<bool> {
        let Some(mut block) = self.loop_block.take().filter(|block| block.first == target) else {
            return Ok(false);
        };
        let entered = block.steady.is_none() && self.emit_entry(&mut block, general)?;
        self.loop_block = Some(block);
        Ok(entered)
    }

    fn emit_entry(&mut self, block: &mut LoopBlock, general: Label) -> R<bool> {
        let w = Width::W64;
        let halves = if self.wide_wave { 2 } else { 1 };
        let varying = |code: usize| block.written.contains(&code);
        let exec = (EXEC_LO..EXEC_LO + halves).any(varying);
        if block.runs != 1 || exec || block.inputs.iter().copied().any(varying) {
            return Ok(false);
        }
        let Some(run) = block.run.take() else { return Ok(false) };
        let is_constant = |val: &Val| match val {
            Val::Const(_) => true,
            val => (0..SGPRS)
                .any(|code| !varying(code) && self.scalars.words[code].is_some_and(|word| word.val == *val)),
        };
        if !run.steps.iter().all(|step| is_constant(&step.step)) || !run.stores_keep_distance() {
            return Ok(false);
        }
        self.f.branch(Cc::Eq, Width::W32, run.taken, 0, general);
        let mut offsets = Vec::new();
        for &OffsetStep { register, step, min, max } in &run.steps {
            let step = match step {
                Val::Const(bits) => self.f.iconst(bits as u32 as i32 as i64 as u64),
                step => {
                    let step = self.uniform(step, Hold::W32)?;
                    self.f.int1(Int1::SignExtend32, w, step)
                }
            };
            // Steps are signed, so that offsets end at 2 GiB; in larger memory, the general code allows more.
            let mut limit = self.f.iconst(i32::MAX as u64);
            for location in run.resolved.accesses.iter().filter(|one| one.access.register == register) {
                let less = self.f.compare(Cc::LtU, w, location.limit, limit);
                limit = self.f.select(less, location.limit, limit);
            }
            // Otherwise the span may exceed the limit, and the room would wrap around.
            self.f.branch(Cc::LtU, w, limit, max, general);
            let span = self.f.int2(Int2::Sub, w, max, min);
            let room = self.f.int2(Int2::Sub, w, limit, span);
            let low = self.f.fresh(Class::Int);
            self.f.push(Inst::Int2 { op: Int2::Add, width: w, d: low, a: min, b: Src::Value(step) });
            offsets.push(SteadyOffsets { register, step, low, room });
        }
        let head = self.f.label();
        self.f.push(Inst::Jump(head));
        block.steady = Some(Steady { head, run, offsets });
        Ok(true)
    }

    /// Emits the steady iterations of the block that was emitted last, if its code has a jump to them.
    pub fn steady_loop(&mut self, block: &Block) -> R<()> {
        let Some(steady) = self.loop_block.take().and_then(|block| block.steady) else { return Ok(()) };
        self.paths.steady_loops += 1;
        let (head, leave) = (steady.head, self.f.label());
        self.f.push(Inst::Label(head));
        self.forget_state();
        self.steady = Some(SteadyCode { steady, first: block.first, leave, done: false });
        let last = block.end - 1;
        for at in block.first..last {
            self.operation(at)?;
        }
        let op = self.ops[last as usize];
        self.env = super::stmt::Env::new(last);
        let once = self.selections.of(last).branch().ok_or(Bug("a branch"))?;
        self.read_operands(once)?;
        let stmts: Vec<&Stmt> = once.body.iter().collect();
        self.branch_path(&stmts, None, &op, block.next)?;
        self.steady.take().ok_or(Bug("a loop"))?;
        self.f.push(Inst::Label(leave));
        self.f.push(Inst::Jump(self.blocks[&block.first]));
        Ok(())
    }

    /// Emits the end of a path through the branch of a steady iteration: the iteration itself if the path
    /// leads to the next one, otherwise the way back to the general code. Returns false elsewhere.
    pub fn end_steady_path(&mut self, jump: Option<Target>, op: &Op) -> R<bool> {
        let Some(code) = &self.steady else { return Ok(false) };
        let next = match jump {
            Some(Target::Static(pc)) => self.context.program.op_at(pc) == Some(code.first),
            _ => false,
        };
        if next && !code.done {
            self.steady_iteration(op)?;
        } else {
            self.f.push(Inst::Jump(code.leave));
        }
        Ok(true)
    }

    fn steady_iteration(&mut self, branch: &Op) -> R<()> {
        let w = Width::W64;
        let Some(mut code) = self.steady.take() else { return Ok(()) };
        let Steady { head, run, offsets } = &code.steady;
        let mut next = Vec::new();
        for SteadyOffsets { low, step, room, .. } in offsets {
            let after = self.f.int2(Int2::Add, w, *low, *step);
            self.f.branch(Cc::GtU, w, after, *room, code.leave);
            next.push(after);
        }
        let executed = self.branch_at_end_of_turn(branch, code.leave);
        let prefetches = self.prefetch_steadily(&code.steady);
        let pending = std::mem::take(&mut self.run);
        let exec = self.uniform(pending.exec.unwrap_or(Val::Const(0)), self.mask_hold())?;
        let same = pending.accesses.len() == run.resolved.accesses.len();
        debug_assert!(same, "a block is emitted twice in the same way");
        if !same {
            return Err(Bug("a loop"));
        }
        self.begin_floats(&pending);
        let resolved = ResolvedAccesses { prefetches, ..run.resolved.on(Path::Steady) };
        let results = self.packets(&pending.ops, [exec; 2], &resolved, &[]);
        self.run_daz = false;
        let results = results?;
        if results.denormal_free != run.denormal_free {
            self.set_flags(None, &results.denormal_free);
        }
        self.set_daz(self.daz_between_blocks);
        self.flush_scalars();
        for (SteadyOffsets { low, .. }, next) in offsets.iter().zip(next) {
            self.f.assign(*low, next);
        }
        self.set_clock(executed, code.first);
        self.f.push(Inst::Jump(*head));
        code.done = true;
        self.steady = Some(code);
        Ok(())
    }
}

/// Returns whether scalar code neither accesses memory nor reads registers of lanes, calls nothing, and does
/// not depend on the float modes.
fn is_plain_scalar(once: &Once) -> bool {
    let plain = |s: &Stmt| {
        matches!(
            s,
            Stmt::Set(..)
                | Stmt::SetLow { .. }
                | Stmt::SetState(..)
                | Stmt::SetScalar { .. }
                | Stmt::SetMaskOperand(_)
                | Stmt::Parts { .. }
                | Stmt::If { .. }
        )
    };
    let special = |v: &Value| {
        matches!(
            v.kind,
            ValueKind::Element(..)
                | ValueKind::LaneBit(_)
                | ValueKind::MaskOperand(_)
                | ValueKind::StagedLane { .. }
                | ValueKind::StagedDword { .. }
                | ValueKind::OperandLane { .. }
                | ValueKind::Vgpr { .. }
                | ValueKind::Sgpr { .. }
                | ValueKind::Load { .. }
                | ValueKind::Loaded { .. }
                | ValueKind::VectorRead { .. }
                | ValueKind::SimdResult { .. }
                | ValueKind::Float { .. }
                | ValueKind::Conversion(..)
                | ValueKind::Convert { .. }
                | ValueKind::Pow { .. }
                | ValueKind::Simd { .. }
                | ValueKind::Pure { .. }
                | ValueKind::Control { .. }
        )
    };
    let operands = once.operands.iter().any(|(_, value)| any_in(value, &special));
    !operands && !any_value(&once.body, &special) && !any_stmt(&once.body, &|s| !plain(s))
}
