//! Emits the code of a unit. Between blocks, all state is in the wave. Within a block, scalar registers are
//! SSA-like values, and vector instructions are buffered in a [`run`] that becomes one loop over packets of
//! eight lanes.

mod bytes;
mod convert;
pub mod cross_lane;
mod dpp;
mod exponent;
mod fast_path;
mod fields;
mod float;
pub mod half;
mod kept;
mod known;
mod lanes;
mod lined;
mod memory;
mod modifiers;
mod moves;
mod once;
mod ops;
pub mod output;
mod packet;
mod pairs;
mod parts;
mod polynomial;
mod rare;
mod run;
mod scratch;
mod shift;
mod stmt;
mod val;
mod value;
mod wave_memory;

use crate::frame::{TURN, at, meet, of_wave, run_handlers, run_turn, wait};
use crate::plan::{self, Kind, Operations};
use crate::relative::relative;
use crate::source::Source;
use crate::unit::{Block as Straight, Unit};
use isa_lower::ir::Stmt;
use isa_lower::visit::any_stmt;
use isa_spec::pcode::ir::{Control, State};
use known::Known;
use memory::Offsets;
use once::Scalars;
use packet::PacketAt;
use run::Run;
use std::collections::{HashMap, HashSet};
use stmt::Env;
use wavesim_machine::exec::op::{Ext, Op};
use wavesim_machine::exec::rt::Flow;
use wavesim_x64::Function;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Size, Src, V, Width};

/// A construct that the emitter does not support. The operation falls back to its handler, or the unit to the
/// interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not compiled")]
pub struct Unsupported(pub &'static str);

pub type R<T> = Result<T, Unsupported>;

/// What code is specialised for, besides the program.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    pub source: &'a Source,
    /// Wave64.
    pub wide: bool,
    /// f32 denormals are flushed.
    pub flush: bool,
    /// MODE.IEEE is set.
    pub ieee: bool,
}

/// The destination of a jump.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// A byte offset in the program.
    Known(u64),
    /// A computed address.
    Computed(V),
}

pub struct Emitter<'f> {
    pub f: Function,
    frame: V,
    vectors: V,
    sgprs: V,
    machine: Machine<'f>,
    ops: &'f [Op],
    exts: &'f [Ext],
    wide_wave: bool,
    flush: bool,
    operations: &'f mut Operations,
    /// Labels of the unit's blocks, by their first operation.
    blocks: HashMap<u32, Label>,
    /// The dispatch: jumps to the block whose number is in `entry`.
    top: Label,
    entry: V,
    /// The exit: returns `flow`.
    leave: Label,
    flow: V,
    scalars: Scalars,
    run: Run,
    env: Env,
    /// The current packet, while a loop over packets is emitted.
    packet: Option<PacketAt>,
    /// The lanes whose result is used, while one operand of a select is emitted.
    only: Option<V>,
    /// The current run executes with MXCSR.DAZ set.
    daz: bool,
    /// MXCSR.DAZ is set at this program point.
    zeros: bool,
    /// MXCSR.DAZ is set between blocks.
    zeros_between: bool,
    /// The number of global memory accesses emitted so far. It spreads them over the cached ranges.
    ranges: usize,
    /// The base operands of scalar loads. Each gets a cached range of its own.
    bases: Vec<[u16; 4]>,
    /// Classified lane offsets, by offset register and, for 64-bit addresses, the words of their origin.
    offsets: HashMap<(u16, Option<[V; 2]>), Offsets>,
    /// The offsets whose classification is cached across blocks.
    numbers: kept::Numbers,
    known: Known,
    /// Integers whose high word is zero.
    words: HashSet<V>,
    /// The EXEC value that was last compared with all ones, and the result.
    full: Option<(V, V)>,
}

/// Emits a unit as a function. Entry `n` is its `n`-th block.
pub fn unit(unit: &Unit, machine: Machine<'_>, operations: &mut Operations) -> R<Function> {
    let mut f = Function::new(2);
    let (frame, entry) = (f.param(0), f.param(1));
    let (top, leave, flow) = (f.label(), f.label(), f.fresh(Class::Int));
    let vectors = f.load(Size::B8, frame, at::VECTORS);
    let sgprs = f.load(Size::B8, frame, at::SGPRS);
    [frame, vectors, sgprs].into_iter().for_each(|v| f.pin(v));
    let numbers = kept::Numbers::of(unit, &machine, operations);
    let mut emitter = Emitter {
        f,
        frame,
        vectors,
        sgprs,
        machine,
        ops: &machine.source.ops,
        exts: &machine.source.exts,
        wide_wave: machine.wide,
        flush: machine.flush,
        operations,
        blocks: HashMap::new(),
        top,
        entry,
        leave,
        flow,
        scalars: Scalars::default(),
        run: Run::default(),
        env: Env::default(),
        packet: None,
        only: None,
        daz: false,
        zeros: false,
        zeros_between: false,
        ranges: 0,
        bases: Vec::new(),
        offsets: HashMap::new(),
        numbers,
        known: Known::default(),
        words: HashSet::new(),
        full: None,
    };
    emitter.all(unit)?;
    Ok(emitter.f)
}

impl Emitter<'_> {
    fn all(&mut self, unit: &Unit) -> R<()> {
        for block in &unit.blocks {
            let label = self.f.label();
            self.blocks.insert(block.first, label);
        }
        let to = unit.blocks.iter().map(|block| self.blocks[&block.first]).collect();
        self.zeros_between = self.flush && self.has_flushed_floats(unit);
        self.take_for_zeros(self.zeros_between);
        self.f.push(Inst::Label(self.top));
        self.f.push(Inst::Table { index: self.entry, to });
        for block in &unit.blocks {
            self.f.push(Inst::Label(self.blocks[&block.first]));
            self.forget();
            self.straight(block)?;
        }
        self.f.push(Inst::Label(self.leave));
        self.take_for_zeros(false);
        self.f.push(Inst::Return { v: Src::Value(self.flow) });
        Ok(())
    }

    /// Returns whether any run of the unit flushes f32 denormals, so that the host should treat them as
    /// zeros.
    fn has_flushed_floats(&mut self, unit: &Unit) -> bool {
        unit.blocks.iter().flat_map(|block| block.first..block.end).any(|at| {
            let op = self.ops[at as usize];
            let lanes = self.operations.kind(&op, self.exts) == Kind::Lanes;
            let handlers = self.operations.handlers(&op);
            lanes && plan::lanes(&handlers).is_some_and(|lanes| plan::floats(lanes).flushed)
        })
    }

    /// Drops all facts about the wave's state.
    fn forget(&mut self) {
        self.scalars = Scalars::default();
        self.offsets.clear();
        self.full = None;
        self.forget_vectors();
    }

    /// Drops the facts about vector values, which hold within one packet only.
    fn forget_vectors(&mut self) {
        self.known = Known::default();
    }

    /// Emits the operations of a block.
    fn straight(&mut self, block: &Straight) -> R<()> {
        let mut calls: Option<(u32, u32)> = None;
        for at in block.first..block.end {
            let op = self.ops[at as usize];
            let kind = self.operations.kind(&op, self.exts);
            if kind == Kind::Call {
                calls = Some(calls.map_or((at, 1), |(first, count)| (first, count + 1)));
                continue;
            }
            self.call_handlers(calls.take(), false)?;
            self.env = Env::new(at);
            match kind {
                Kind::Nothing | Kind::Call => {}
                Kind::Once => self.once(&op)?,
                Kind::Lanes => self.buffer(at, &op)?,
                Kind::Access => self.buffer_access(at, &op)?,
                Kind::Branch => return self.branch(&op, block.next),
            }
        }
        let last = self.ops[block.end as usize - 1];
        let others = self.operations.stops(&last) && self.operations.goes_on(&last);
        self.call_handlers(calls.take(), others)?;
        self.close_run()?;
        self.flush_scalars();
        self.fall_through(block.next);
        Ok(())
    }

    /// Continues with the next operation in program order, inside or outside of this unit.
    fn fall_through(&mut self, next: u32) {
        self.take_for_zeros(self.zeros_between);
        if let Some(block) = self.blocks.get(&next) {
            self.f.push(Inst::Jump(*block));
            return;
        }
        self.stop_at(next, Flow::NEXT);
    }

    /// Exits with a flow that belongs to operation `op`.
    fn stop_at(&mut self, op: u32, flow: Flow) {
        self.take_for_zeros(self.zeros_between);
        let op = self.op_address(op);
        self.f.store(Size::B8, self.frame, at::OP, op);
        self.f.push(Inst::Const { d: self.flow, bits: flow.0 as u64 });
        self.f.push(Inst::Jump(self.leave));
    }

    fn op_address(&mut self, at: u32) -> V {
        self.f.iconst(self.machine.source.address_of(at))
    }

    /// Calls the handlers of consecutive operations, with all state in the wave. `others`: other waves may
    /// run after the last one.
    fn call_handlers(&mut self, calls: Option<(u32, u32)>, others: bool) -> R<()> {
        let Some((first, count)) = calls else { return Ok(()) };
        self.close_run()?;
        self.flush_scalars();
        let leaves =
            |e: &mut Self, at: u32| plan::leaves_registers(&e.operations.handlers(&e.ops[at as usize]));
        if !(first..first + count).all(|at| leaves(self, at)) {
            // This must happen first: afterwards the current wave may be another one.
            self.forget_kept(|_| true);
        }
        match if others { self.barrier(first + count - 1)? } else { None } {
            Some((function, number)) => {
                self.handlers_of(first, count - 1, false);
                let at = first + count - 1;
                let op = self.op_address(at);
                let after = self.ops[(at as usize + 1).min(self.ops.len() - 1)].pc;
                let known = [Some(self.ops[at as usize].complete()), Some(after), number];
                let known = known.into_iter().flatten().map(|known| Src::Imm(known as i32));
                let args: Vec<Src> = [self.frame, op].map(Src::Value).into_iter().chain(known).collect();
                self.called(function, &args, true);
            }
            None => self.handlers_of(first, count, others),
        }
        self.forget();
        Ok(())
    }

    /// Returns the function for an operation that only waits for a barrier, and the barrier's number, if it
    /// has one.
    fn barrier(&mut self, at: u32) -> R<Option<(*const (), Option<u32>)>> {
        let handlers = self.operations.handlers(&self.ops[at as usize]);
        let Some((builtin, number)) = plan::waits(&handlers) else { return Ok(None) };
        let Some(number) = number else {
            return Ok((builtin == Control::Barrier).then_some((meet as *const (), None)));
        };
        self.env = Env::new(at);
        let number = self.value(number)?;
        Ok(match number {
            val::Val::Known(number) => Some((wait as *const (), Some(number as u32))),
            _ => None,
        })
    }

    /// Calls the handlers of `count` operations. `others`: see [`Emitter::call_for_flow`].
    fn handlers_of(&mut self, first: u32, count: u32, others: bool) {
        if count > 0 {
            let function = if others { run_turn as *const () } else { run_handlers as *const () };
            let op = self.op_address(first);
            let args = [Src::Value(self.frame), Src::Value(op), Src::Imm(count as i32)];
            self.called(function, &args, others);
        }
    }

    /// Calls a function that returns a flow, and falls through on [`Flow::NEXT`]. `others`: the function may
    /// have switched to another wave.
    fn called(&mut self, function: *const (), args: &[Src], others: bool) {
        self.take_for_zeros(false);
        let flow = self.f.call(function as u64, args);
        self.take_for_zeros(self.zeros_between);
        self.f.assign(self.flow, flow);
        if others {
            let on = self.f.label();
            self.f.branch(Cc::Eq, Width::W32, flow, 0, on);
            self.f.branch(Cc::Ne, Width::W32, flow, TURN.0 as i32, self.leave);
            self.take_turn();
            self.f.push(Inst::Label(on));
        } else {
            self.f.branch(Cc::Ne, Width::W32, flow, 0, self.leave);
        }
    }

    /// Reloads the per-wave pointers and continues with the wave that is now in the frame.
    fn take_turn(&mut self) {
        let parts = [
            (Size::B8, at::VECTORS, self.vectors),
            (Size::B8, at::SGPRS, self.sgprs),
            (Size::B4, at::ENTRY, self.entry),
        ];
        for (size, place, v) in parts {
            let of_wave = self.f.load(size, self.frame, place);
            self.f.assign(v, of_wave);
        }
        self.f.push(Inst::Jump(self.top));
    }

    /// Emits an operation that may write the PC and ends its block.
    fn branch(&mut self, op: &Op, next: u32) -> R<()> {
        self.close_run()?;
        self.take_for_zeros(self.zeros_between);
        let handlers = self.operations.handlers(op);
        let once = plan::once(&handlers, op).ok_or(Unsupported("a branch"))?;
        self.read_operands(once)?;
        let stmts: Vec<&Stmt> = once.body.iter().collect();
        self.path(&stmts, None, op, next)
    }

    /// Emits one path through the statements of a branch; conditional PC writes split it.
    fn path(&mut self, stmts: &[&Stmt], mut jump: Option<Target>, op: &Op, next: u32) -> R<()> {
        for (at, stmt) in stmts.iter().enumerate() {
            match stmt {
                Stmt::SetState(State::Pc, to) => jump = Some(self.target(to, op)?),
                Stmt::If { arms, otherwise } if writes_pc(stmt) => {
                    let rest = &stmts[at + 1..];
                    for (cond, body) in arms {
                        let v = self.value(cond)?;
                        let truth = self.truth(v, cond.hold)?;
                        let list: Vec<&Stmt> = body.iter().chain(rest.iter().copied()).collect();
                        match known(truth) {
                            Some(false) => continue,
                            Some(true) => return self.path(&list, jump, op, next),
                            None => {
                                let truth = self.branch_on(truth)?;
                                let no = self.f.label();
                                self.f.branch(Cc::Eq, Width::W32, truth, 0, no);
                                let kept = (self.scalars.clone(), self.env.clone());
                                self.forget_vectors();
                                self.path(&list, jump, op, next)?;
                                (self.scalars, self.env) = kept;
                                self.forget_vectors();
                                self.f.push(Inst::Label(no));
                            }
                        }
                    }
                    let list: Vec<&Stmt> = otherwise.iter().chain(rest.iter().copied()).collect();
                    return self.path(&list, jump, op, next);
                }
                stmt => self.stmt(stmt)?,
            }
        }
        self.flush_scalars();
        match jump {
            None => self.fall_through(next),
            Some(Target::Known(pc)) => self.jump_to(pc, op),
            Some(Target::Computed(to)) => {
                let base = self.f.load(Size::B8, self.sgprs, of_wave::CODE_BASE);
                let to = self.f.int2(Int2::Sub, Width::W64, to, base);
                self.leave_by_jump(to);
            }
        }
        Ok(())
    }

    /// Exits and lets the interpreter resolve the jump target.
    fn leave_by_jump(&mut self, to: V) {
        self.f.store(Size::B8, self.frame, at::JUMP, to);
        self.stop_at(self.env.at, Flow::JUMP);
    }

    /// Emits a jump to a known offset. It stays within the unit unless the turn ends at the jump.
    fn jump_to(&mut self, pc: u64, op: &Op) {
        let target = self.machine.source.at(pc);
        let block = target.and_then(|target| self.blocks.get(&target).copied());
        if let (Some(block), Some(target)) = (block, target) {
            let target = &self.ops[target as usize];
            let base = self.f.load(Size::B8, self.frame, at::BASE);
            let count = self.plus(base, op.complete() as i64);
            let end = self.f.load(Size::B8, self.frame, at::END);
            let out = self.f.label();
            self.f.branch(Cc::GeU, Width::W64, count, end, out);
            // The clock advances where the interpreter advances it: at jumps.
            let clock = self.f.load(Size::B8, self.frame, at::INSTRUCTIONS);
            self.f.store(Size::B8, clock, 0, count);
            let base = self.plus(count, -(target.number as i64));
            self.f.store(Size::B8, self.frame, at::BASE, base);
            self.f.push(Inst::Jump(block));
            self.f.push(Inst::Label(out));
        }
        let to = self.f.iconst(pc);
        self.leave_by_jump(to);
    }

    /// Resolves the value written to the PC.
    fn target(&mut self, to: &isa_lower::ir::Value, op: &Op) -> R<Target> {
        if let Some(place) = relative(to, op.pc as u64, op.imm) {
            return Ok(Target::Known(place));
        }
        let v = self.value(to)?;
        Ok(Target::Computed(self.one(v, isa_lower::ir::Hold::W64)?))
    }
}

fn known(val: val::Val) -> Option<bool> {
    match val {
        val::Val::Known(bits) => Some(bits != 0),
        _ => None,
    }
}

/// Returns whether a statement, or one nested in it, writes the PC.
pub fn writes_pc(stmt: &Stmt) -> bool {
    any_stmt(std::slice::from_ref(stmt), &|s| matches!(s, Stmt::SetState(State::Pc, _)))
}
