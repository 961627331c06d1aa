//! Emits the code of a unit. Between blocks, all state is in the wave. Within a block, scalar registers are
//! SSA-like values, and vector instructions are buffered in a [`run`] that becomes one loop over packets of
//! eight lanes.

use crate::arith::builder::Builder;
use crate::arith::builder::R;
use crate::arith::facts::Facts;
use crate::arith::val::Val;
use crate::branch_target::static_target;
use crate::context::CompileContext;
use crate::effects;
use crate::frame::{
    RESUME, arrive_at_barrier, end_wave, frame_offset, run_and_switch, run_handlers, sync_vgpr_msbs,
    wait_for_barrier, wave_offset,
};
use crate::lowering::{StatementLowering, recognise_statement};
use crate::selected::Selections;
use crate::selected::{Access, Selected};
use crate::state::access::{Addresses, OffsetSlots};
use crate::state::emitter::UnitLabels;
use crate::state::emitter::{Emitter, Target};
use crate::state::env::Env;
use crate::state::loops::Loops;
use crate::state::run::Run;
use crate::state::scalars::Scalars;
use crate::state::sequences::SequenceVersions;
use crate::stats::CompiledPaths;
use crate::unit::{Block as BasicBlock, Unit};
use isa_lower::ir::{Once, Stmt};
use isa_lower::visit::any_stmt;
use isa_spec::pcode::ir::{Control, State};
use std::collections::{HashMap, HashSet};
use wavesim_isa::relative::VGPR_MSBS;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::rt::Flow;
use wavesim_x64::Function;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Size, Src, V, Width};

/// Emits a unit as a function, whose entry `n` is the `n`-th block. Also returns its special paths.
pub fn unit(
    unit: &Unit,
    context: CompileContext<'_>,
    selections: &Selections,
) -> R<(Function, CompiledPaths)> {
    let mut f = Function::new(2);
    let (frame, entry) = (f.param(0), f.param(1));
    let (dispatch, exit, flow) = (f.label(), f.label(), f.fresh(Class::Int));
    let vectors = f.load(Size::B8, frame, frame_offset::VECTORS);
    let sgprs = f.load(Size::B8, frame, frame_offset::SGPRS);
    [frame, vectors, sgprs].into_iter().for_each(|v| f.pin(v));
    let b = Builder {
        f,
        frame,
        vectors,
        sgprs,
        wave64: context.wave64,
        flush: context.flush,
        facts: Facts::default(),
        zero_extended_ints: HashSet::new(),
        packet: None,
        demanded: None,
        run_daz: false,
        daz: false,
    };
    let slots = OffsetSlots::of(unit, &context, selections);
    let msbs = context.program.tracks_msbs().then(|| unit.msbs.clone());
    let mut emitter = Emitter {
        b,
        context,
        ops: &context.program.ops,
        exts: &context.program.exts,
        selections,
        unit: UnitLabels {
            blocks: HashMap::new(),
            msbs,
            dispatch,
            entry,
            exit,
            flow,
            daz_between_blocks: false,
        },
        scalars: Scalars::default(),
        run: Run::default(),
        env: Env::default(),
        addresses: Addresses { slots, ..Addresses::default() },
        loops: Loops::default(),
        sequences: SequenceVersions::default(),
        paths: CompiledPaths::default(),
    };
    emitter.emit_blocks(unit)?;
    Ok((emitter.b.f, emitter.paths))
}

impl Emitter<'_> {
    fn emit_blocks(&mut self, unit: &Unit) -> R<()> {
        for block in &unit.blocks {
            let label = self.b.f.label();
            self.unit.blocks.insert(block.first, label);
        }
        let to = unit.blocks.iter().map(|block| self.unit.blocks[&block.first]).collect();
        self.unit.daz_between_blocks = self.flush && self.has_flushed_floats(unit);
        self.b.set_daz(self.unit.daz_between_blocks);
        self.expect_sequences(unit);
        self.b.f.push(Inst::Label(self.unit.dispatch));
        self.b.f.push(Inst::Table { index: self.unit.entry, to });
        for block in &unit.blocks {
            self.b.f.push(Inst::Label(self.unit.blocks[&block.first]));
            self.forget_state();
            self.loops.block = self.loop_block(block);
            self.block_versions(block, unit)?;
            self.versioned_loop(block)?;
        }
        self.b.f.push(Inst::Label(self.unit.exit));
        self.set_daz(false);
        self.b.f.push(Inst::Return { v: Src::Value(self.unit.flow) });
        Ok(())
    }

    /// Returns whether any run of the unit flushes f32 denormals, so that the host should treat them as
    /// zeros.
    fn has_flushed_floats(&self, unit: &Unit) -> bool {
        unit.blocks.iter().flat_map(|block| block.first..block.end).any(|at| {
            match &self.selections.of(at).how {
                Selected::Lanes(lanes) => effects::floats(lanes).flushed,
                _ => false,
            }
        })
    }

    /// Drops all facts about the wave's state.
    pub fn forget_state(&mut self) {
        self.scalars = Scalars::default();
        self.addresses.summaries.clear();
        self.addresses.exec_full = None;
        self.forget_vectors();
    }

    /// Drops the facts about vector values, which hold within one packet only.
    pub fn forget_vectors(&mut self) {
        self.b.facts = Facts::default();
    }

    /// Emits the operations of a block.
    pub fn basic_block(&mut self, block: &BasicBlock) -> R<()> {
        let mut calls: Option<(u32, u32)> = None;
        for at in block.first..block.end {
            let selection = self.selections.of(at);
            if selection.how.is_call() {
                calls = Some(calls.map_or((at, 1), |(first, count)| (first, count + 1)));
                continue;
            }
            self.call_handlers(calls.take(), false)?;
            if let Some(once) = selection.branch() {
                self.env = Env::new(at);
                return self.branch(once, at, block.next);
            }
            self.operation(at)?;
        }
        let may_switch = self.selections.of(block.end - 1).may_end_turn;
        self.call_handlers(calls.take(), may_switch)?;
        self.close_run()?;
        self.flush_scalars();
        self.fall_through(block.end - 1, block.next);
        Ok(())
    }

    /// Emits an operation that neither calls its handler nor ends its block.
    pub fn operation(&mut self, op_index: u32) -> R<()> {
        let op = self.ops[op_index as usize];
        self.env = Env::new(op_index);
        match &self.selections.of(op_index).how {
            Selected::Scalar(once) => {
                self.end_sequences_before(once)?;
                self.scalar_op(once)
            }
            Selected::Lanes(_) | Selected::Access(Access::Scratch(..)) => self.buffer(op_index, &op),
            Selected::Access(access) => self.buffer_access(op_index, &op, access),
            Selected::Atomic(found) => self.atomic(op_index, &op, found),
            Selected::Nop | Selected::Call(_) | Selected::Branch(_) => Ok(()),
        }
    }

    /// Continues after operation `last` with the next one in program order, inside or outside of this unit.
    fn fall_through(&mut self, last: u32, next: u32) {
        self.b.set_daz(self.unit.daz_between_blocks);
        let msbs = self.msbs_after(last);
        if let Some(block) = self.block_at(next, msbs) {
            self.b.f.push(Inst::Jump(block));
            return;
        }
        self.write_msbs(msbs);
        self.exit_flow(next, Flow::NEXT);
    }

    /// The label of the unit's block at an operation, if it is for these bits that extend VGPR numbers.
    fn block_at(&self, op_index: u32, msbs: Option<u32>) -> Option<Label> {
        let same = msbs.is_none() || self.msbs_before(op_index) == msbs;
        self.unit.blocks.get(&op_index).copied().filter(|_| same)
    }

    /// MODE's bits that extend VGPR numbers before an operation of the unit, if they are tracked.
    pub fn msbs_before(&self, op_index: u32) -> Option<u32> {
        self.unit.msbs.as_ref()?.get(&op_index).copied()
    }

    /// The same after it.
    pub fn msbs_after(&self, op_index: u32) -> Option<u32> {
        self.msbs_before(op_index).map(|before| self.context.program.sets_msbs(op_index).unwrap_or(before))
    }

    /// Writes MODE's bits that extend VGPR numbers, which code tracks instead, before code ends.
    fn write_msbs(&mut self, msbs: Option<u32>) {
        let Some(bits) = msbs else { return };
        let mode = self.b.f.load(Size::B4, self.b.sgprs, wave_offset::MODE);
        let others = self.b.f.int2(Int2::And, Width::W32, mode, !VGPR_MSBS as i32);
        let mode = self.b.f.int2(Int2::Or, Width::W32, others, bits as i32);
        self.b.f.store(Size::B4, self.b.sgprs, wave_offset::MODE, mode);
    }

    /// Exits with a flow that belongs to operation `op` of the unit.
    pub fn exit_at(&mut self, op: u32, flow: Flow) {
        self.write_msbs(self.msbs_before(op));
        self.exit_flow(op, flow);
    }

    fn exit_flow(&mut self, op: u32, flow: Flow) {
        self.b.set_daz(self.unit.daz_between_blocks);
        let op = self.op_address(op);
        self.b.f.store(Size::B8, self.b.frame, frame_offset::OP, op);
        self.b.f.push(Inst::Const { d: self.unit.flow, bits: flow.0 as u64 });
        self.b.f.push(Inst::Jump(self.unit.exit));
    }

    pub fn op_address(&mut self, op_index: u32) -> V {
        self.b.f.iconst(self.context.program.address_of(op_index))
    }

    /// Calls the handlers of consecutive operations, with all state in the wave. `may_switch`: other waves
    /// may run after the last one.
    fn call_handlers(&mut self, calls: Option<(u32, u32)>, may_switch: bool) -> R<()> {
        let Some((first, count)) = calls else { return Ok(()) };
        self.close_run()?;
        self.flush_scalars();
        let selections = self.selections;
        if !(first..first + count).all(|at| effects::preserves_vgprs(&selections.of(at).handlers)) {
            // This must happen first: afterwards the current wave may be another one.
            self.forget_cached_offsets(|_| true);
        }
        self.sync_msbs_before(first);
        match if may_switch { self.switching_function(first + count - 1)? } else { None } {
            Some((function, constants)) => {
                self.call_handler_range(first, count - 1, false);
                let op = self.op_address(first + count - 1);
                let constants = constants.into_iter().map(|n| Src::Imm(n as i32));
                let args: Vec<Src> =
                    [self.b.frame, op].map(Src::Value).into_iter().chain(constants).collect();
                self.call_for_flow(function, &args, true);
            }
            None => self.call_handler_range(first, count, may_switch),
        }
        self.forget_state();
        Ok(())
    }

    /// Writes MODE's bits that extend VGPR numbers, which code tracks instead, before a handler runs.
    pub fn sync_msbs_before(&mut self, op_index: u32) {
        if let Some(bits) = self.msbs_before(op_index) {
            self.set_daz(false);
            self.b
                .f
                .call(sync_vgpr_msbs as *const () as u64, &[Src::Value(self.b.frame), Src::Imm(bits as i32)]);
        }
    }

    /// Returns the function for an operation that only ends the wave or waits for a barrier, and its
    /// arguments after the frame and the operation.
    fn switching_function(&mut self, op_index: u32) -> R<Option<(*const (), Vec<u32>)>> {
        let handlers = &self.selections.of(op_index).handlers;
        let Some((builtin, number)) = effects::switching_builtin(handlers) else { return Ok(None) };
        let complete = self.ops[op_index as usize].complete();
        let after = self.ops[(op_index as usize + 1).min(self.ops.len() - 1)].pc;
        Ok(match (builtin, number) {
            (Control::EndPgm, _) => Some((end_wave as *const (), vec![complete, after])),
            (Control::Barrier, _) => Some((arrive_at_barrier as *const (), vec![complete, after])),
            (_, Some(number)) => {
                self.env = Env::new(op_index);
                match self.value(number)? {
                    Val::Const(number) => {
                        Some((wait_for_barrier as *const (), vec![complete, after, number as u32]))
                    }
                    _ => None,
                }
            }
            (_, None) => None,
        })
    }

    /// Calls the handlers of `count` operations. `may_switch`: see [`Emitter::call_for_flow`].
    fn call_handler_range(&mut self, first: u32, count: u32, may_switch: bool) {
        if count > 0 {
            let function = if may_switch { run_and_switch as *const () } else { run_handlers as *const () };
            let op = self.op_address(first);
            let args = [Src::Value(self.b.frame), Src::Value(op), Src::Imm(count as i32)];
            self.call_for_flow(function, &args, may_switch);
        }
    }

    /// Calls a function that returns a flow, and falls through on [`Flow::NEXT`]. `may_switch`: the function
    /// may have switched to another wave.
    pub fn call_for_flow(&mut self, function: *const (), args: &[Src], may_switch: bool) {
        self.set_daz(false);
        let flow = self.b.f.call(function as u64, args);
        self.b.set_daz(self.unit.daz_between_blocks);
        self.b.f.assign(self.unit.flow, flow);
        if may_switch {
            let join = self.b.f.label();
            self.b.f.branch(Cc::Eq, Width::W32, flow, 0, join);
            self.b.f.branch(Cc::Ne, Width::W32, flow, RESUME.0 as i32, self.unit.exit);
            self.resume_wave();
            self.b.f.push(Inst::Label(join));
        } else {
            self.b.f.branch(Cc::Ne, Width::W32, flow, 0, self.unit.exit);
        }
    }

    /// Reloads the per-wave pointers and continues with the wave that is now in the frame.
    fn resume_wave(&mut self) {
        let reloads = [
            (Size::B8, frame_offset::VECTORS, self.b.vectors),
            (Size::B8, frame_offset::SGPRS, self.b.sgprs),
            (Size::B4, frame_offset::ENTRY, self.unit.entry),
        ];
        for (size, offset, v) in reloads {
            let of_wave = self.b.f.load(size, self.b.frame, offset);
            self.b.f.assign(v, of_wave);
        }
        self.b.f.push(Inst::Jump(self.unit.dispatch));
    }

    /// Emits an operation that may write the PC and ends its block.
    fn branch(&mut self, once: &Once, op_index: u32, next: u32) -> R<()> {
        self.close_run()?;
        self.b.set_daz(self.unit.daz_between_blocks);
        self.read_operands(once)?;
        let stmts: Vec<&Stmt> = once.body.iter().collect();
        self.branch_path(&stmts, None, &self.ops[op_index as usize], next)
    }

    /// Emits one path through the statements of a branch; conditional PC writes split it.
    pub fn branch_path(&mut self, stmts: &[&Stmt], mut jump: Option<Target>, op: &Op, next: u32) -> R<()> {
        for (at, stmt) in stmts.iter().enumerate() {
            match recognise_statement(stmt)?.0 {
                StatementLowering::Jump(to) => jump = Some(self.jump_target(to, op)?),
                StatementLowering::If { arms, otherwise } if writes_pc(stmt) => {
                    let rest = &stmts[at + 1..];
                    for (cond, body) in arms {
                        let v = self.value(cond)?;
                        let cond = self.boolean(v, cond.host_width)?;
                        let list: Vec<&Stmt> = body.iter().chain(rest.iter().copied()).collect();
                        match constant_bool(cond) {
                            Some(false) => continue,
                            Some(true) => return self.branch_path(&list, jump, op, next),
                            None => {
                                let cond = self.branch_on(cond)?;
                                let no = self.b.f.label();
                                self.b.f.branch(Cc::Eq, Width::W32, cond, 0, no);
                                let saved = (self.scalars.clone(), self.env.clone());
                                self.forget_vectors();
                                self.branch_path(&list, jump, op, next)?;
                                (self.scalars, self.env) = saved;
                                self.forget_vectors();
                                self.b.f.push(Inst::Label(no));
                            }
                        }
                    }
                    let list: Vec<&Stmt> = otherwise.iter().chain(rest.iter().copied()).collect();
                    return self.branch_path(&list, jump, op, next);
                }
                _ => self.stmt(stmt)?,
            }
        }
        if self.end_versioned_path(jump, op)? {
            return Ok(());
        }
        self.flush_scalars();
        match jump {
            None => self.fall_through(self.env.op_index, next),
            Some(Target::Static(pc)) => self.jump_to(pc, op)?,
            Some(Target::Computed(to)) => {
                let base = self.b.f.load(Size::B8, self.b.sgprs, wave_offset::CODE_BASE);
                let to = self.b.f.int2(Int2::Sub, Width::W64, to, base);
                self.exit_by_jump(to);
            }
        }
        Ok(())
    }

    /// Exits and lets the interpreter resolve the jump target.
    fn exit_by_jump(&mut self, to: V) {
        self.b.f.store(Size::B8, self.b.frame, frame_offset::JUMP, to);
        self.exit_at(self.env.op_index, Flow::JUMP);
    }

    /// Emits a jump to a known offset. It stays within the unit unless the turn ends at the jump.
    fn jump_to(&mut self, pc: u64, op: &Op) -> R<()> {
        let target = self.context.program.op_at(pc);
        let msbs = self.msbs_after(self.env.op_index);
        let block = target.and_then(|target| self.block_at(target, msbs));
        if let (Some(block), Some(target)) = (block, target) {
            let out = self.b.f.label();
            let executed = self.branch_at_end_of_turn(op, out);
            self.set_clock(executed, target);
            if !self.enter_versioned_loop(target, block)? {
                self.b.f.push(Inst::Jump(block));
            }
            self.b.f.push(Inst::Label(out));
        }
        let to = self.b.f.iconst(pc);
        self.exit_by_jump(to);
        Ok(())
    }

    /// Branches to a label if the turn ends at a jump. Returns the number of executed instructions.
    pub fn branch_at_end_of_turn(&mut self, jump: &Op, out: Label) -> V {
        let base = self.b.f.load(Size::B8, self.b.frame, frame_offset::BASE);
        let executed = self.add_imm(base, jump.complete() as i64);
        let end = self.b.f.load(Size::B8, self.b.frame, frame_offset::END);
        self.b.f.branch(Cc::GeU, Width::W64, executed, end, out);
        executed
    }

    /// Advances the clock where the interpreter advances it: at jumps.
    pub fn set_clock(&mut self, executed: V, target: u32) {
        let clock = self.b.f.load(Size::B8, self.b.frame, frame_offset::INSTRUCTIONS);
        self.b.f.store(Size::B8, clock, 0, executed);
        let base = self.b.add_imm(executed, -(self.ops[target as usize].number as i64));
        self.b.f.store(Size::B8, self.b.frame, frame_offset::BASE, base);
    }

    /// Resolves the value written to the PC.
    fn jump_target(&mut self, to: &isa_lower::ir::Value, op: &Op) -> R<Target> {
        if let Some(pc) = static_target(to, op.pc as u64, op.imm) {
            return Ok(Target::Static(pc));
        }
        let v = self.value(to)?;
        Ok(Target::Computed(self.uniform(v, isa_lower::ir::HostWidth::W64)?))
    }
}

fn constant_bool(val: Val) -> Option<bool> {
    match val {
        Val::Const(bits) => Some(bits != 0),
        _ => None,
    }
}

/// Returns whether a statement, or one nested in it, writes the PC.
pub fn writes_pc(stmt: &Stmt) -> bool {
    any_stmt(std::slice::from_ref(stmt), &|s| matches!(s, Stmt::SetState(State::Pc, _)))
}
