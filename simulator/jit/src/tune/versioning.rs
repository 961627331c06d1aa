//! Loop versioning. In a loop that consists of one block, with loads or stores at offsets that
//! advance by a constant, an iteration that took the fast path is mostly followed by more of its kind: the
//! memory is the same, the lanes lie as before, and only the offsets move. Such iterations are emitted once
//! more, with one check for each offset register instead of the search for memory, the classification of
//! lanes and the comparison of loads with stores.
//!
//! A versioned iteration runs only if the loop goes on after it and the accesses of the iteration that follows
//! are inside memory, too. Registers that each iteration writes before it reads them are then not stored:
//! the next iteration writes them before anything can see them. If any check fails, the general code runs the
//! iteration instead; all checks precede the first effect.

use crate::arith::builder::{Bug, R};
use crate::arith::val::Val;
use crate::selected::{Access as AccessKind, Selected};
use crate::state::access::{Path, ResolvedAccesses};
use crate::state::emitter::{Emitter, Target};
use crate::state::loops::{LoopBlock, OffsetStep, Versioned, VersionedCode, VersionedOffsets};
use crate::unit::{Block, targets};
use isa_lower::ir::{self, HostWidth, Once, Stmt, Value, ValueKind};
use isa_lower::visit::{any_in, any_stmt, any_value};
use std::collections::BTreeSet;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::rt::EXEC_LO;
use wavesim_machine::state::wave::SGPRS;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Src, Width};

impl Emitter<'_> {
    /// Records that the block being emitted reads scalar state, by operand code.
    pub fn record_read(&mut self, code: usize) {
        if let Some(block) = self.loops.block.as_mut().filter(|block| block.in_address) {
            block.inputs.insert(code);
        }
    }

    /// Records that it writes scalar state.
    pub fn record_write(&mut self, code: usize) {
        self.loops.block.iter_mut().for_each(|block| block.written.extend([code]));
    }

    /// From now on, what it reads is part of an address, or not.
    pub fn record_address(&mut self, in_address: bool) {
        self.loops.block.iter_mut().for_each(|block| block.in_address = in_address);
    }

    /// Returns the state to record a block in, if all of its operations can be part of versioned iterations.
    pub fn loop_block(&mut self, block: &Block) -> Option<LoopBlock> {
        let last = block.end - 1;
        let loops = targets(last, &self.context, self.selections).contains(&block.first);
        let loops = loops && self.msbs_before(block.first) == self.msbs_after(last);
        let plain = loops && (block.first..last).all(|at| self.is_plain(at));
        plain.then(|| LoopBlock {
            first: block.first,
            inputs: BTreeSet::new(),
            written: BTreeSet::new(),
            in_address: false,
            runs: 0,
            run: None,
            versioned: None,
        })
    }

    /// Returns whether an operation accesses no memory but by [`crate::state::access::Access`], and registers of
    /// lanes only as part of a run, without masks.
    fn is_plain(&self, op_index: u32) -> bool {
        let op = &self.ops[op_index as usize];
        match &self.selections.of(op_index).how {
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
            | Selected::Atomic(_)
            | Selected::Call(_) => false,
        }
    }

    /// Continues with the next iteration of the block that is being emitted: a versioned one if possible.
    /// Returns false if its iterations are never versioned.
    pub fn enter_versioned_loop(&mut self, target: u32, general: Label) -> R<bool> {
        let Some(mut block) = self.loops.block.take().filter(|block| block.first == target) else {
            return Ok(false);
        };
        let entered = block.versioned.is_none() && self.emit_entry(&mut block, general)?;
        self.loops.block = Some(block);
        Ok(entered)
    }

    fn emit_entry(&mut self, block: &mut LoopBlock, general: Label) -> R<bool> {
        let w = Width::W64;
        let halves = if self.wave64 { 2 } else { 1 };
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
        self.b.f.branch(Cc::Eq, Width::W32, run.taken, 0, general);
        let mut offsets = Vec::new();
        for &OffsetStep { offsets: of, step, min, max } in &run.steps {
            let step = match step {
                Val::Const(bits) => self.b.f.iconst(((bits as u32 as i32 as i64) << of.shift) as u64),
                step => {
                    let step = self.uniform(step, HostWidth::W32)?;
                    let step = self.b.f.int1(Int1::SignExtend32, w, step);
                    if of.shift > 0 { self.b.f.int2(Int2::Shl, w, step, of.shift as i32) } else { step }
                }
            };
            // Steps are signed, so that offsets end at 2 GiB; in larger memory, the general code allows more.
            let mut limit = self.b.f.iconst(i32::MAX as u64);
            for location in run.resolved.accesses.iter().filter(|one| one.access.offsets() == of) {
                let less = self.b.f.compare(Cc::LtU, w, location.limit, limit);
                limit = self.b.f.select(less, location.limit, limit);
            }
            // Otherwise the span may exceed the limit, and the room would wrap around.
            self.b.f.branch(Cc::LtU, w, limit, max, general);
            let span = self.b.f.int2(Int2::Sub, w, max, min);
            let room = self.b.f.int2(Int2::Sub, w, limit, span);
            let low = self.b.f.fresh(Class::Int);
            self.b.f.push(Inst::Int2 { op: Int2::Add, width: w, d: low, a: min, b: Src::Value(step) });
            offsets.push(VersionedOffsets { offsets: of, step, low, room });
        }
        let head = self.b.f.label();
        self.b.f.push(Inst::Jump(head));
        block.versioned = Some(Versioned { head, run, offsets });
        Ok(true)
    }

    /// Emits the versioned iterations of the block that was emitted last, if its code has a jump to them.
    pub fn versioned_loop(&mut self, block: &Block) -> R<()> {
        let Some(versioned) = self.loops.block.take().and_then(|block| block.versioned) else {
            return Ok(());
        };
        self.paths.versioned_loops += 1;
        let (head, leave) = (versioned.head, self.b.f.label());
        self.b.f.push(Inst::Label(head));
        self.forget_state();
        self.loops.versioned = Some(VersionedCode { versioned, first: block.first, leave, done: false });
        let last = block.end - 1;
        for at in block.first..last {
            self.operation(at)?;
        }
        let op = self.ops[last as usize];
        self.env = crate::state::env::Env::new(last);
        let once = self.selections.of(last).branch().ok_or(Bug("a branch"))?;
        self.read_operands(once)?;
        let stmts: Vec<&Stmt> = once.body.iter().collect();
        self.branch_path(&stmts, None, &op, block.next)?;
        self.loops.versioned.take().ok_or(Bug("a loop"))?;
        self.b.f.push(Inst::Label(leave));
        self.b.f.push(Inst::Jump(self.unit.blocks[&block.first]));
        Ok(())
    }

    /// Emits the end of a path through the branch of a versioned iteration: the iteration itself if the path
    /// leads to the next one, otherwise the way back to the general code. Returns false elsewhere.
    pub fn end_versioned_path(&mut self, jump: Option<Target>, op: &Op) -> R<bool> {
        let Some(code) = &self.loops.versioned else { return Ok(false) };
        let next = match jump {
            Some(Target::Static(pc)) => self.context.program.op_at(pc) == Some(code.first),
            _ => false,
        };
        if next && !code.done {
            self.versioned_iteration(op)?;
        } else {
            self.b.f.push(Inst::Jump(code.leave));
        }
        Ok(true)
    }

    fn versioned_iteration(&mut self, branch: &Op) -> R<()> {
        let w = Width::W64;
        let Some(mut code) = self.loops.versioned.take() else { return Ok(()) };
        let Versioned { head, run, offsets } = &code.versioned;
        let mut next = Vec::new();
        for VersionedOffsets { low, step, room, .. } in offsets {
            let after = self.b.f.int2(Int2::Add, w, *low, *step);
            self.b.f.branch(Cc::GtU, w, after, *room, code.leave);
            next.push(after);
        }
        let executed = self.branch_at_end_of_turn(branch, code.leave);
        let prefetches = self.prefetch_versioned(&code.versioned);
        let pending = std::mem::take(&mut self.run);
        let exec = self.b.uniform(pending.exec.unwrap_or(Val::Const(0)), self.b.mask_width())?;
        let same = pending.accesses.len() == run.resolved.accesses.len();
        debug_assert!(same, "a block is emitted twice in the same way");
        if !same {
            return Err(Bug("a loop"));
        }
        self.begin_floats(&pending);
        let resolved = ResolvedAccesses { prefetches, ..run.resolved.on(Path::Versioned) };
        let results = self.packets(&pending.ops, [exec; 2], &resolved, &[]);
        self.run_daz = false;
        let results = results?;
        if results.denormal_free != run.denormal_free {
            self.set_flags(None, &results.denormal_free);
        }
        self.b.set_daz(self.unit.daz_between_blocks);
        self.flush_scalars();
        for (VersionedOffsets { low, .. }, next) in offsets.iter().zip(next) {
            self.b.f.assign(*low, next);
        }
        self.set_clock(executed, code.first);
        self.b.f.push(Inst::Jump(*head));
        code.done = true;
        self.loops.versioned = Some(code);
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
                | ValueKind::LaneElement(..)
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
