//! Code for a unit. Between blocks, all state is in the wave; within one, scalar registers are values, and vector
//! instructions wait in a [`run`] that becomes one loop over packets of four lanes.

mod float;
mod once;
mod run;
mod stmt;
mod val;
mod value;

use crate::frame::{at, run_handlers};
use crate::plan::{Kind, Operations};
use crate::unit::{Block as Straight, Unit};
use cranelift_codegen::cursor::{Cursor, CursorPosition, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, BlockCall, Function, InstBuilder, JumpTableData, MemFlagsData, SigRef,
    Signature, Value,
};
use isa_lower::ir::Stmt;
use isa_lower::visit::any_stmt;
use isa_spec::pcode::ir::State;
use once::Scalars;
use run::Run;
use std::collections::{HashMap, HashSet};
use stmt::Env;
use wavesim_machine::exec::op::{Ext, Op};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::Flow;

/// What is not compiled. The operation is left to its handler, or the unit to the interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not compiled")]
pub struct Unsupported(pub &'static str);

pub type R<T> = Result<T, Unsupported>;

/// A builder of instructions at the emitter's position.
macro_rules! ins {
    ($e:expr) => {
        FuncCursor::new(&mut *$e.func).at_position($e.pos).ins()
    };
}
use ins;

/// For loads and stores of the wave's state: always there, and aligned.
pub const STATE: MemFlagsData = MemFlagsData::trusted();

/// What code is made for, beside the program.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    pub program: &'a Program,
    pub exts: &'a [Ext],
    pub consts: &'a [u32],
    /// Waves of 64.
    pub wide: bool,
    /// Denormals of f32 are flushed.
    pub flush: bool,
}

/// Where a jump goes.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// This byte of the program.
    Known(u64),
    /// An address.
    Computed(Value),
}

pub struct Emitter<'f> {
    pub func: &'f mut Function,
    pos: CursorPosition,
    block: Block,
    frame: Value,
    vectors: Value,
    sgprs: Value,
    machine: Machine<'f>,
    ops: &'f [Op],
    exts: &'f [Ext],
    wide_wave: bool,
    flush: bool,
    operations: &'f mut Operations,
    /// Blocks of the unit by their first operation.
    blocks: HashMap<u32, Block>,
    /// Returns its argument.
    leave: Block,
    call: SigRef,
    scalars: Scalars,
    run: Run,
    env: Env,
    /// While a loop over lanes is emitted: the block before it, and its own.
    looping: Option<(Block, Block)>,
    /// Number of the packet.
    packet: Option<Value>,
    /// Values in all lanes.
    spreads: HashMap<Value, Value>,
    /// Values without their denormals.
    flushes: HashMap<Value, Value>,
    /// Values that have no f32 denormal.
    normal: HashSet<Value>,
}

/// The signature of [`crate::frame::Code`].
pub fn signature(signature: &mut Signature) {
    signature.params.push(AbiParam::new(I64));
    signature.params.push(AbiParam::new(I32));
    signature.returns.push(AbiParam::new(I32));
}

/// Emits a unit as a function. Entry `n` is its `n`-th block.
pub fn unit(func: &mut Function, unit: &Unit, machine: Machine<'_>, operations: &mut Operations) -> R<()> {
    let mut own = Signature::new(func.signature.call_conv);
    own.params.extend([I64, I64, I32].map(AbiParam::new));
    own.returns.push(AbiParam::new(I32));
    let call = func.import_signature(own);
    let first = func.dfg.make_block();
    let leave = func.dfg.make_block();
    let (frame, entry) = (func.dfg.append_block_param(first, I64), func.dfg.append_block_param(first, I32));
    func.layout.append_block(first);
    let mut emitter = Emitter {
        func,
        pos: CursorPosition::After(first),
        block: first,
        frame,
        vectors: frame,
        sgprs: frame,
        machine,
        ops: machine.program.lowered().ops(),
        exts: machine.exts,
        wide_wave: machine.wide,
        flush: machine.flush,
        operations,
        blocks: HashMap::new(),
        leave,
        call,
        scalars: Scalars::default(),
        run: Run::default(),
        env: Env::default(),
        looping: None,
        packet: None,
        spreads: HashMap::new(),
        flushes: HashMap::new(),
        normal: HashSet::new(),
    };
    emitter.vectors = ins!(emitter).load(I64, STATE, frame, at::VECTORS);
    emitter.sgprs = ins!(emitter).load(I64, STATE, frame, at::SGPRS);
    emitter.all(unit, entry)
}

impl Emitter<'_> {
    fn all(&mut self, unit: &Unit, entry: Value) -> R<()> {
        for block in &unit.blocks {
            let made = self.func.dfg.make_block();
            self.blocks.insert(block.first, made);
        }
        let calls: Vec<BlockCall> = unit
            .blocks
            .iter()
            .map(|b| BlockCall::new(self.blocks[&b.first], [], &mut self.func.dfg.value_lists))
            .collect();
        let table = self.func.create_jump_table(JumpTableData::new(calls[0], &calls));
        ins!(self).br_table(entry, table);
        for block in &unit.blocks {
            let made = self.blocks[&block.first];
            self.go_to(made);
            self.forget();
            self.straight(block)?;
        }
        let flow = self.func.dfg.append_block_param(self.leave, I32);
        self.go_to(self.leave);
        ins!(self).return_(&[flow]);
        Ok(())
    }

    /// Goes on in a block, which is appended.
    fn go_to(&mut self, block: Block) {
        self.func.layout.append_block(block);
        self.block = block;
        self.pos = CursorPosition::After(block);
    }

    /// Nothing is known of the state.
    fn forget(&mut self) {
        self.scalars = Scalars::default();
        self.spreads.clear();
        self.flushes.clear();
        self.normal.clear();
    }

    /// The operations of a block.
    fn straight(&mut self, block: &Straight) -> R<()> {
        let mut calls: Option<(u32, u32)> = None;
        for at in block.first..block.end {
            let op = self.ops[at as usize];
            let kind = self.operations.kind(&op, self.exts);
            if kind == Kind::Call {
                calls = Some(calls.map_or((at, 1), |(first, count)| (first, count + 1)));
                continue;
            }
            self.call_handlers(calls.take())?;
            self.env = Env::new(at);
            match kind {
                Kind::Nothing | Kind::Call => {}
                Kind::Once => self.once(&op)?,
                Kind::Lanes => self.buffer(at, &op)?,
                Kind::Branch => return self.branch(&op, block.next),
            }
        }
        self.call_handlers(calls.take())?;
        self.close_run()?;
        self.flush_scalars();
        self.fall_through(block.next);
        Ok(())
    }

    /// The next operation in order: in this unit, or outside of it.
    fn fall_through(&mut self, next: u32) {
        if let Some(block) = self.blocks.get(&next) {
            ins!(self).jump(*block, &[]);
            return;
        }
        self.stop_at(next, Flow::NEXT);
    }

    /// Leaves with a flow that belongs to an operation.
    fn stop_at(&mut self, op: u32, flow: Flow) {
        let op = self.op_address(op);
        ins!(self).store(STATE, op, self.frame, at::OP);
        let flow = ins!(self).iconst(I32, flow.0 as i64);
        ins!(self).jump(self.leave, &[BlockArg::Value(flow)]);
    }

    fn op_address(&mut self, at: u32) -> Value {
        let address = std::ptr::from_ref(&self.ops[at as usize]) as i64;
        ins!(self).iconst(I64, address)
    }

    /// Calls the handlers of some operations, if there are any, with all state in the wave.
    fn call_handlers(&mut self, calls: Option<(u32, u32)>) -> R<()> {
        let Some((first, count)) = calls else { return Ok(()) };
        self.close_run()?;
        self.flush_scalars();
        let op = self.op_address(first);
        let function = ins!(self).iconst(I64, run_handlers as *const () as i64);
        let count = ins!(self).iconst(I32, count as i64);
        let call = ins!(self).call_indirect(self.call, function, &[self.frame, op, count]);
        let flow = self.func.dfg.inst_results(call)[0];
        let on = self.func.dfg.make_block();
        ins!(self).brif(flow, self.leave, &[BlockArg::Value(flow)], on, &[]);
        self.go_to(on);
        self.forget();
        Ok(())
    }

    /// An operation that may write the PC, and ends the block.
    fn branch(&mut self, op: &Op, next: u32) -> R<()> {
        self.close_run()?;
        let handlers = self.operations.handlers(op);
        let once = crate::plan::once(&handlers, op).ok_or(Unsupported("a branch"))?;
        self.read_operands(once)?;
        let stmts: Vec<&Stmt> = once.body.iter().collect();
        self.path(&stmts, None, op, next)
    }

    /// One way through the statements of a branch.
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
                                let (yes, no) = (self.func.dfg.make_block(), self.func.dfg.make_block());
                                ins!(self).brif(truth, yes, &[], no, &[]);
                                let kept = (self.scalars.clone(), self.env.clone());
                                let caches =
                                    (self.spreads.clone(), self.flushes.clone(), self.normal.clone());
                                self.go_to(yes);
                                self.path(&list, jump, op, next)?;
                                (self.scalars, self.env) = kept;
                                (self.spreads, self.flushes, self.normal) = caches;
                                self.go_to(no);
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
                let base = ins!(self).load(I64, STATE, self.frame, at::CODE_BASE);
                let to = ins!(self).isub(to, base);
                self.leave_by_jump(to);
            }
        }
        Ok(())
    }

    /// Leaves for the interpreter to find out where a jump goes.
    fn leave_by_jump(&mut self, to: Value) {
        ins!(self).store(STATE, to, self.frame, at::JUMP);
        self.stop_at(self.env.at, Flow::JUMP);
    }

    /// A jump to a known place: within the unit, if the turn is not over by then.
    fn jump_to(&mut self, pc: u64, op: &Op) {
        let target = self.machine.program.op_at(pc);
        let index = target
            .map(|target| (std::ptr::from_ref(target).addr() - self.ops.as_ptr().addr()) / size_of::<Op>());
        let block = index.and_then(|index| self.blocks.get(&(index as u32)).copied());
        if let (Some(block), Some(target)) = (block, target) {
            let base = ins!(self).load(I64, STATE, self.frame, at::BASE);
            let count = ins!(self).iadd_imm_s(base, op.complete() as i64);
            let end = ins!(self).load(I64, STATE, self.frame, at::END);
            let over = ins!(self).icmp(IntCC::UnsignedGreaterThanOrEqual, count, end);
            let (out, on) = (self.func.dfg.make_block(), self.func.dfg.make_block());
            ins!(self).brif(over, out, &[], on, &[]);
            self.go_to(on);
            // The clock is brought up to date where the interpreter does it: at jumps.
            let clock = ins!(self).load(I64, STATE, self.frame, at::INSTRUCTIONS);
            ins!(self).store(STATE, count, clock, 0);
            let base = ins!(self).iadd_imm_s(count, -(target.number as i64));
            ins!(self).store(STATE, base, self.frame, at::BASE);
            ins!(self).jump(block, &[]);
            self.go_to(out);
        }
        let to = ins!(self).iconst(I64, pc as i64);
        self.leave_by_jump(to);
    }

    /// Where a value as PC leads.
    fn target(&mut self, to: &isa_lower::ir::Value, op: &Op) -> R<Target> {
        if let Some(place) = crate::plan::relative(to, op.pc as u64, op.imm) {
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

/// Whether a statement, or one in it, writes the PC.
pub fn writes_pc(stmt: &Stmt) -> bool {
    any_stmt(std::slice::from_ref(stmt), &|s| matches!(s, Stmt::SetState(State::Pc, _)))
}
