//! Emits the code of a unit. Between blocks, all state is in the wave. Within a block, scalar registers are
//! SSA-like values, and vector instructions are buffered in a [`run`] that becomes one loop over packets of
//! eight lanes.

mod byte_permute;
mod convert;
pub mod cross_lane;
mod dpp;
mod exact;
mod facts;
mod fast_path;
mod float;
mod frexp;
pub mod half;
mod lane_calls;
mod load_store;
mod memory;
mod modifiers;
mod multi_store;
mod names;
mod offset_cache;
mod ops;
pub mod output;
mod packet;
mod polynomial;
mod prefetch;
mod run;
mod scalar;
mod scalar_memory;
mod scratch;
mod shift;
mod steady;
mod stmt;
mod subword;
mod unit_stride;
mod val;
mod value;

pub use names::names;

use crate::CompiledPaths;
use crate::branch_target::static_target;
use crate::effects;
use crate::frame::{
    RESUME, arrive_at_barrier, end_wave, frame_offset, run_and_switch, run_handlers, wait_for_barrier,
    wave_offset,
};
use crate::lowering::{StatementLowering, Why, recognise_statement};
use crate::select::Selections;
use crate::selected::{Access, Selected};
use crate::snapshot::ProgramSnapshot;
use crate::unit::{Block as BasicBlock, Unit};
use facts::Facts;
use isa_lower::ir::{Once, Stmt};
use isa_lower::visit::any_stmt;
use isa_spec::pcode::ir::{Control, State};
use memory::OffsetSummary;
use packet::PacketPosition;
use run::Run;
use scalar::Scalars;
use std::collections::{HashMap, HashSet};
use steady::{LoopBlock, SteadyCode};
use stmt::Env;
use wavesim_machine::exec::op::{Ext, Op};
use wavesim_machine::exec::rt::Flow;
use wavesim_x64::Function;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Size, Src, V, Width};

/// Selection has chosen code for something that emission cannot emit. The unit is left to the interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} was selected but cannot be emitted")]
pub struct Bug(pub &'static str);

impl From<Why> for Bug {
    fn from(why: Why) -> Bug {
        Bug(why.0)
    }
}

pub type R<T> = Result<T, Bug>;

/// The program, and the mode that its code is specialised for.
#[derive(Clone, Copy)]
pub struct CompileContext<'a> {
    pub program: &'a ProgramSnapshot,
    /// Wave64.
    pub wide: bool,
    /// f32 denormals are flushed.
    pub flush: bool,
    /// MODE.IEEE is set.
    pub ieee: bool,
    /// Code checks the cached facts that it uses: see [`crate::frame::find_violation`].
    pub checked: bool,
}

/// The destination of a jump.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// A byte offset in the program.
    Static(u64),
    /// A computed address.
    Computed(V),
}

pub struct Emitter<'f> {
    pub f: Function,
    frame: V,
    vectors: V,
    sgprs: V,
    context: CompileContext<'f>,
    ops: &'f [Op],
    exts: &'f [Ext],
    wide_wave: bool,
    flush: bool,
    selections: &'f Selections,
    /// Labels of the unit's blocks, by their first operation.
    blocks: HashMap<u32, Label>,
    /// The dispatch: jumps to the block whose number is in `entry`.
    dispatch: Label,
    entry: V,
    /// The exit: returns `flow`.
    exit: Label,
    flow: V,
    scalars: Scalars,
    run: Run,
    env: Env,
    /// The current packet, while a loop over packets is emitted.
    packet: Option<PacketPosition>,
    /// The lanes whose result is used, while one operand of a select is emitted.
    demanded: Option<V>,
    /// The current run executes with MXCSR.DAZ set.
    run_daz: bool,
    /// MXCSR.DAZ is set at this program point.
    daz: bool,
    /// MXCSR.DAZ is set between blocks.
    daz_between_blocks: bool,
    /// The number of global memory accesses emitted so far. It spreads them over the cached ranges.
    range_count: usize,
    /// The base operands of scalar loads. Each gets a cached range of its own.
    scalar_bases: Vec<[u16; 4]>,
    /// Classified lane offsets, by offset register and, for 64-bit addresses, the words of their origin.
    offset_summaries: HashMap<(u16, Option<[V; 2]>), OffsetSummary>,
    /// The offsets whose classification is cached across blocks.
    offset_slots: offset_cache::OffsetSlots,
    facts: Facts,
    /// Integers whose high word is zero.
    zero_extended_ints: HashSet<V>,
    /// The EXEC value that was last compared with all ones, and the result.
    exec_full: Option<(V, V)>,
    /// The block that is being emitted, if it may have steady iterations.
    loop_block: Option<LoopBlock>,
    /// The steady iterations, while they are emitted.
    steady: Option<SteadyCode>,
    /// The special paths emitted so far.
    paths: CompiledPaths,
}

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
    let offset_slots = offset_cache::OffsetSlots::of(unit, &context, selections);
    let mut emitter = Emitter {
        f,
        frame,
        vectors,
        sgprs,
        context,
        ops: &context.program.ops,
        exts: &context.program.exts,
        wide_wave: context.wide,
        flush: context.flush,
        selections,
        blocks: HashMap::new(),
        dispatch,
        entry,
        exit,
        flow,
        scalars: Scalars::default(),
        run: Run::default(),
        env: Env::default(),
        packet: None,
        demanded: None,
        run_daz: false,
        daz: false,
        daz_between_blocks: false,
        range_count: 0,
        scalar_bases: Vec::new(),
        offset_summaries: HashMap::new(),
        offset_slots,
        facts: Facts::default(),
        zero_extended_ints: HashSet::new(),
        exec_full: None,
        loop_block: None,
        steady: None,
        paths: CompiledPaths::default(),
    };
    emitter.emit_blocks(unit)?;
    Ok((emitter.f, emitter.paths))
}

impl Emitter<'_> {
    fn emit_blocks(&mut self, unit: &Unit) -> R<()> {
        for block in &unit.blocks {
            let label = self.f.label();
            self.blocks.insert(block.first, label);
        }
        let to = unit.blocks.iter().map(|block| self.blocks[&block.first]).collect();
        self.daz_between_blocks = self.flush && self.has_flushed_floats(unit);
        self.set_daz(self.daz_between_blocks);
        self.f.push(Inst::Label(self.dispatch));
        self.f.push(Inst::Table { index: self.entry, to });
        for block in &unit.blocks {
            self.f.push(Inst::Label(self.blocks[&block.first]));
            self.forget_state();
            self.loop_block = self.loop_block(block);
            self.basic_block(block)?;
            self.steady_loop(block)?;
        }
        self.f.push(Inst::Label(self.exit));
        self.set_daz(false);
        self.f.push(Inst::Return { v: Src::Value(self.flow) });
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
    fn forget_state(&mut self) {
        self.scalars = Scalars::default();
        self.offset_summaries.clear();
        self.exec_full = None;
        self.forget_vectors();
    }

    /// Drops the facts about vector values, which hold within one packet only.
    fn forget_vectors(&mut self) {
        self.facts = Facts::default();
    }

    /// Emits the operations of a block.
    fn basic_block(&mut self, block: &BasicBlock) -> R<()> {
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
        self.fall_through(block.next);
        Ok(())
    }

    /// Emits an operation that neither calls its handler nor ends its block.
    fn operation(&mut self, at: u32) -> R<()> {
        let op = self.ops[at as usize];
        self.env = Env::new(at);
        match &self.selections.of(at).how {
            Selected::Scalar(once) => self.scalar_op(once),
            Selected::Lanes(_) | Selected::Access(Access::Scratch(..)) => self.buffer(at, &op),
            Selected::Access(access) => self.buffer_access(at, &op, access),
            Selected::Nop | Selected::Call(_) | Selected::Branch(_) => Ok(()),
        }
    }

    /// Continues with the next operation in program order, inside or outside of this unit.
    fn fall_through(&mut self, next: u32) {
        self.set_daz(self.daz_between_blocks);
        if let Some(block) = self.blocks.get(&next) {
            self.f.push(Inst::Jump(*block));
            return;
        }
        self.exit_at(next, Flow::NEXT);
    }

    /// Exits with a flow that belongs to operation `op`.
    fn exit_at(&mut self, op: u32, flow: Flow) {
        self.set_daz(self.daz_between_blocks);
        let op = self.op_address(op);
        self.f.store(Size::B8, self.frame, frame_offset::OP, op);
        self.f.push(Inst::Const { d: self.flow, bits: flow.0 as u64 });
        self.f.push(Inst::Jump(self.exit));
    }

    fn op_address(&mut self, at: u32) -> V {
        self.f.iconst(self.context.program.address_of(at))
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
        match if may_switch { self.switching_function(first + count - 1)? } else { None } {
            Some((function, constants)) => {
                self.call_handler_range(first, count - 1, false);
                let op = self.op_address(first + count - 1);
                let constants = constants.into_iter().map(|n| Src::Imm(n as i32));
                let args: Vec<Src> = [self.frame, op].map(Src::Value).into_iter().chain(constants).collect();
                self.call_for_flow(function, &args, true);
            }
            None => self.call_handler_range(first, count, may_switch),
        }
        self.forget_state();
        Ok(())
    }

    /// Returns the function for an operation that only ends the wave or waits for a barrier, and its
    /// arguments after the frame and the operation.
    fn switching_function(&mut self, at: u32) -> R<Option<(*const (), Vec<u32>)>> {
        let handlers = &self.selections.of(at).handlers;
        let Some((builtin, number)) = effects::switching_builtin(handlers) else { return Ok(None) };
        let complete = self.ops[at as usize].complete();
        let after = self.ops[(at as usize + 1).min(self.ops.len() - 1)].pc;
        Ok(match (builtin, number) {
            (Control::EndPgm, _) => Some((end_wave as *const (), Vec::new())),
            (Control::Barrier, _) => Some((arrive_at_barrier as *const (), vec![complete, after])),
            (_, Some(number)) => {
                self.env = Env::new(at);
                match self.value(number)? {
                    val::Val::Const(number) => {
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
            let args = [Src::Value(self.frame), Src::Value(op), Src::Imm(count as i32)];
            self.call_for_flow(function, &args, may_switch);
        }
    }

    /// Calls a function that returns a flow, and falls through on [`Flow::NEXT`]. `may_switch`: the function
    /// may have switched to another wave.
    fn call_for_flow(&mut self, function: *const (), args: &[Src], may_switch: bool) {
        self.set_daz(false);
        let flow = self.f.call(function as u64, args);
        self.set_daz(self.daz_between_blocks);
        self.f.assign(self.flow, flow);
        if may_switch {
            let join = self.f.label();
            self.f.branch(Cc::Eq, Width::W32, flow, 0, join);
            self.f.branch(Cc::Ne, Width::W32, flow, RESUME.0 as i32, self.exit);
            self.resume_wave();
            self.f.push(Inst::Label(join));
        } else {
            self.f.branch(Cc::Ne, Width::W32, flow, 0, self.exit);
        }
    }

    /// Reloads the per-wave pointers and continues with the wave that is now in the frame.
    fn resume_wave(&mut self) {
        let reloads = [
            (Size::B8, frame_offset::VECTORS, self.vectors),
            (Size::B8, frame_offset::SGPRS, self.sgprs),
            (Size::B4, frame_offset::ENTRY, self.entry),
        ];
        for (size, offset, v) in reloads {
            let of_wave = self.f.load(size, self.frame, offset);
            self.f.assign(v, of_wave);
        }
        self.f.push(Inst::Jump(self.dispatch));
    }

    /// Emits an operation that may write the PC and ends its block.
    fn branch(&mut self, once: &Once, at: u32, next: u32) -> R<()> {
        self.close_run()?;
        self.set_daz(self.daz_between_blocks);
        self.read_operands(once)?;
        let stmts: Vec<&Stmt> = once.body.iter().collect();
        self.branch_path(&stmts, None, &self.ops[at as usize], next)
    }

    /// Emits one path through the statements of a branch; conditional PC writes split it.
    fn branch_path(&mut self, stmts: &[&Stmt], mut jump: Option<Target>, op: &Op, next: u32) -> R<()> {
        for (at, stmt) in stmts.iter().enumerate() {
            match recognise_statement(stmt)?.0 {
                StatementLowering::Jump(to) => jump = Some(self.jump_target(to, op)?),
                StatementLowering::If { arms, otherwise } if writes_pc(stmt) => {
                    let rest = &stmts[at + 1..];
                    for (cond, body) in arms {
                        let v = self.value(cond)?;
                        let cond = self.boolean(v, cond.hold)?;
                        let list: Vec<&Stmt> = body.iter().chain(rest.iter().copied()).collect();
                        match constant_bool(cond) {
                            Some(false) => continue,
                            Some(true) => return self.branch_path(&list, jump, op, next),
                            None => {
                                let cond = self.branch_on(cond)?;
                                let no = self.f.label();
                                self.f.branch(Cc::Eq, Width::W32, cond, 0, no);
                                let saved = (self.scalars.clone(), self.env.clone());
                                self.forget_vectors();
                                self.branch_path(&list, jump, op, next)?;
                                (self.scalars, self.env) = saved;
                                self.forget_vectors();
                                self.f.push(Inst::Label(no));
                            }
                        }
                    }
                    let list: Vec<&Stmt> = otherwise.iter().chain(rest.iter().copied()).collect();
                    return self.branch_path(&list, jump, op, next);
                }
                _ => self.stmt(stmt)?,
            }
        }
        if self.end_steady_path(jump, op)? {
            return Ok(());
        }
        self.flush_scalars();
        match jump {
            None => self.fall_through(next),
            Some(Target::Static(pc)) => self.jump_to(pc, op)?,
            Some(Target::Computed(to)) => {
                let base = self.f.load(Size::B8, self.sgprs, wave_offset::CODE_BASE);
                let to = self.f.int2(Int2::Sub, Width::W64, to, base);
                self.exit_by_jump(to);
            }
        }
        Ok(())
    }

    /// Exits and lets the interpreter resolve the jump target.
    fn exit_by_jump(&mut self, to: V) {
        self.f.store(Size::B8, self.frame, frame_offset::JUMP, to);
        self.exit_at(self.env.op_index, Flow::JUMP);
    }

    /// Emits a jump to a known offset. It stays within the unit unless the turn ends at the jump.
    fn jump_to(&mut self, pc: u64, op: &Op) -> R<()> {
        let target = self.context.program.op_at(pc);
        let block = target.and_then(|target| self.blocks.get(&target).copied());
        if let (Some(block), Some(target)) = (block, target) {
            let out = self.f.label();
            let executed = self.branch_at_end_of_turn(op, out);
            self.set_clock(executed, target);
            if !self.enter_steady_loop(target, block)? {
                self.f.push(Inst::Jump(block));
            }
            self.f.push(Inst::Label(out));
        }
        let to = self.f.iconst(pc);
        self.exit_by_jump(to);
        Ok(())
    }

    /// Branches to a label if the turn ends at a jump. Returns the number of executed instructions.
    fn branch_at_end_of_turn(&mut self, jump: &Op, out: Label) -> V {
        let base = self.f.load(Size::B8, self.frame, frame_offset::BASE);
        let executed = self.add_imm(base, jump.complete() as i64);
        let end = self.f.load(Size::B8, self.frame, frame_offset::END);
        self.f.branch(Cc::GeU, Width::W64, executed, end, out);
        executed
    }

    /// Advances the clock where the interpreter advances it: at jumps.
    fn set_clock(&mut self, executed: V, target: u32) {
        let clock = self.f.load(Size::B8, self.frame, frame_offset::INSTRUCTIONS);
        self.f.store(Size::B8, clock, 0, executed);
        let base = self.add_imm(executed, -(self.ops[target as usize].number as i64));
        self.f.store(Size::B8, self.frame, frame_offset::BASE, base);
    }

    /// Resolves the value written to the PC.
    fn jump_target(&mut self, to: &isa_lower::ir::Value, op: &Op) -> R<Target> {
        if let Some(pc) = static_target(to, op.pc as u64, op.imm) {
            return Ok(Target::Static(pc));
        }
        let v = self.value(to)?;
        Ok(Target::Computed(self.uniform(v, isa_lower::ir::Hold::W64)?))
    }
}

fn constant_bool(val: val::Val) -> Option<bool> {
    match val {
        val::Val::Const(bits) => Some(bits != 0),
        _ => None,
    }
}

/// Returns whether a statement, or one nested in it, writes the PC.
pub fn writes_pc(stmt: &Stmt) -> bool {
    any_stmt(std::slice::from_ref(stmt), &|s| matches!(s, Stmt::SetState(State::Pc, _)))
}
