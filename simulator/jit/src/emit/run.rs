//! Runs of vector instructions: a loop over packets of four lanes, in which registers are values from the first
//! instruction to the last. That is right because lanes of such instructions do not depend on each other. Lanes that
//! are switched off are computed too, and not written back.

use super::stmt::{Env, mask_code};
use super::val::Val;
use super::{Emitter, R, STATE, Unsupported, ins};
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES, at, search};
use crate::plan;
use cranelift_codegen::cursor::{Cursor, CursorPosition, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I32X4, I64};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value as V};
use isa_lower::ir::{Handlers, Hold, LaneLoop, Lanes, Mask, Start, Step};
use isa_spec::tables::Role;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wavesim_machine::exec::op::{Op, Place};
use wavesim_machine::exec::rt::EXEC_LO;
use wavesim_machine::state::wave::{CONSTS, MAX_CONSTS, NO_DENORMALS, NULL, SCALARS, SGPRS, STAGE};

/// Instructions of one loop at most: beyond, values no longer fit into the host's registers anyway.
const LONGEST: usize = 64;

/// Vector instructions that have not been emitted yet.
#[derive(Default)]
pub struct Run {
    ops: Vec<Buffered>,
    /// Mask registers that they write, by operand code.
    masks: Vec<usize>,
    /// EXEC of all of them.
    exec: Option<Val>,
}

/// An instruction with what it reads of the wave.
struct Buffered {
    at: u32,
    handlers: Arc<Handlers>,
    sources: Vec<(Role, Staged)>,
    carry: Option<Bits>,
}

/// A source, dword by dword.
struct Staged {
    words: Vec<Lane>,
    /// Bits kept and flipped of the last word of those that modifiers apply to.
    modified: Option<(usize, u32, u32)>,
}

#[derive(Clone, Copy)]
enum Lane {
    Register(u16),
    One(Val),
}

/// A mask that lanes read their bits of.
enum Bits {
    /// As the wave has it.
    Wave(Val),
    /// That of an instruction of the same run.
    Run(usize),
}

impl Emitter<'_> {
    /// Before a register is read or written: what waits and writes it is emitted.
    pub fn settle(&mut self, code: usize, words: usize) -> R<()> {
        let words_of_mask = if self.wide_wave { 2 } else { 1 };
        let overlaps = |mask: &usize| code < mask + words_of_mask && *mask < code + words;
        if self.looping.is_none() && self.run.masks.iter().any(overlaps) { self.close_run() } else { Ok(()) }
    }

    /// Takes in a vector instruction.
    pub fn buffer(&mut self, at: u32, op: &Op) -> R<()> {
        let handlers = self.operations.handlers(op);
        let lanes = plan::lanes(&handlers).ok_or(Unsupported("an operation"))?;
        // Of masks that overlap in part, the order would matter; one of which bits stay is read.
        let width = if self.wide_wave { 2 } else { 1 };
        let clashes = |mask: &Mask, waiting: &usize| {
            let code = mask_register(*mask, op);
            let kept = matches!(gather(lanes, *mask), Step::Gather { keep: true, .. });
            *waiting != code && waiting.abs_diff(code) < width || *waiting == code && kept
        };
        if lanes.masks.iter().any(|mask| self.run.masks.iter().any(|waiting| clashes(mask, waiting))) {
            self.close_run()?;
        }
        let exec = self.mask_register(EXEC_LO)?;
        if self.run.exec.is_some_and(|other| other != exec) || self.run.ops.len() >= LONGEST {
            self.close_run()?;
        }
        self.run.exec = Some(exec);
        let (mut sources, mut carry) = (Vec::new(), None);
        for step in &lanes.steps {
            match step {
                Step::Stage { role, slot, dwords, .. } => {
                    sources.push((*role, self.staged(op, *role, *slot, *dwords as usize)?));
                }
                Step::ReadMask => {
                    let Place::Scalar(code) = op.src[3].place() else { return Err(Unsupported("a mask")) };
                    let waits = code != NULL && self.run.masks.contains(&code);
                    carry = Some(if waits && code < SGPRS {
                        Bits::Run(code)
                    } else {
                        let low = self.source_word(op.src[3], 0)?;
                        Bits::Wave(if self.wide_wave {
                            let high = self.source_word(op.src[3], 1)?;
                            self.pair(low, high)?
                        } else {
                            low
                        })
                    });
                }
                _ => {}
            }
        }
        // Reading the operands may have closed the run that EXEC is of.
        self.run.exec = Some(exec);
        self.run.masks.extend(lanes.masks.iter().map(|mask| mask_register(*mask, op)));
        let new_exec = lanes.masks.contains(&Mask::Exec)
            || lanes.masks.iter().any(|mask| mask_register(*mask, op) + 1 >= EXEC_LO);
        self.run.ops.push(Buffered { at, handlers: handlers.clone(), sources, carry });
        if new_exec { self.close_run() } else { Ok(()) }
    }

    fn staged(&mut self, op: &Op, role: Role, slot: usize, dwords: usize) -> R<Staged> {
        let source = op.src[slot];
        let mut words = Vec::new();
        for k in 0..dwords {
            words.push(match source.place() {
                Place::Vector(first) if first + k < STAGE => Lane::Register((first + k) as u16),
                Place::Vector(first) if (CONSTS..CONSTS + MAX_CONSTS).contains(&(first + k)) => {
                    let value =
                        self.machine.consts.get(first + k - CONSTS).ok_or(Unsupported("a constant"))?;
                    Lane::One(Val::Known(*value as u128))
                }
                Place::Vector(first) if (SCALARS..SCALARS + SGPRS).contains(&(first + k)) => {
                    Lane::One(self.sgpr(first + k - SCALARS)?)
                }
                Place::Vector(_) => return Err(Unsupported("a hidden register")),
                _ => Lane::One(self.source_word(source, k)?),
            });
        }
        let ext = &self.exts[op.ext as usize];
        let bit = |bits: u8| (bits >> slot & 1) as u32;
        let numbered = [Role::S0, Role::S1, Role::S2, Role::S3].contains(&role);
        let modified = (op.flags & Op::MODIFY != 0 && numbered && bit(ext.abs_bits | ext.neg_bits) == 1)
            .then(|| {
                let sign = 1u32 << (ext.sign_at[slot] & 31);
                let last = if ext.sign_at[slot] == 63 { 1 } else { 0 };
                (last, !(sign * bit(ext.abs_bits)), sign * bit(ext.neg_bits))
            });
        Ok(Staged { words, modified })
    }

    /// Emits the instructions that wait.
    pub fn close_run(&mut self) -> R<()> {
        let run = std::mem::take(&mut self.run);
        if run.ops.is_empty() {
            return Ok(());
        }
        let env = self.env.clone();
        let hold = self.mask_hold();
        let exec = self.one(run.exec.unwrap_or(Val::Known(0)), hold)?;
        let all = if self.wide_wave { u64::MAX } else { u32::MAX as u64 };
        let all = self.constant(self.func.dfg.value_type(exec), all);
        let full = ins!(self).icmp(IntCC::Equal, exec, all);
        let masks: Vec<usize> = {
            let mut masks: Vec<usize> = run.masks.iter().copied().filter(|code| *code != NULL).collect();
            masks.sort_unstable();
            masks.dedup();
            masks
        };
        let done = self.func.dfg.make_block();
        let ty = self.ty(exec);
        let sums: Vec<V> = masks.iter().map(|_| self.func.dfg.append_block_param(done, ty)).collect();
        let registers = if self.flush && !self.wide_wave { self.float_inputs(&run) } else { Vec::new() };
        let mut kept = None;
        if !registers.is_empty() {
            // Sources that have no denormals need not be flushed: mostly, that is known.
            let [normal, searched, others] = [(); 3].map(|()| self.func.dfg.make_block());
            let flags = ins!(self).load(I64, STATE, self.frame, at::FLAGS);
            let mut known = ins!(self).load(I8, STATE, flags, registers[0] as i32);
            for register in &registers[1..] {
                let flag = ins!(self).load(I8, STATE, flags, *register as i32);
                known = ins!(self).band(known, flag);
            }
            let known = ins!(self).band_imm_u(known, NO_DENORMALS as i64);
            ins!(self).brif(known, normal, &[], searched, &[]);
            self.go_to(searched);
            let function = ins!(self).iconst(I64, search as *const () as i64);
            let (list, count) = self.operations.keep(&registers);
            let (list, count) = (ins!(self).iconst(I64, list as i64), ins!(self).iconst(I32, count as i64));
            let call = ins!(self).call_indirect(self.call, function, &[self.frame, list, count]);
            let found = self.func.dfg.inst_results(call)[0];
            ins!(self).brif(found, normal, &[], others, &[]);
            self.go_to(normal);
            kept = Some(self.packets(&run, [exec, full], true, false, &masks, done)?);
            self.go_to(others);
        }
        let last = self.packets(&run, [exec, full], false, kept.is_some(), &masks, done)?;
        let keeps = kept.unwrap_or(last);
        self.go_to(done);
        self.env = env;
        for ((code, keep), sum) in masks.into_iter().zip(keeps).zip(sums) {
            let mut bits = ins!(self).band(sum, exec);
            if keep {
                let old = self.mask_register(code)?;
                let old = self.one(old, hold)?;
                let old = ins!(self).band_not(old, exec);
                bits = ins!(self).bor(bits, old);
            }
            let wide = self.resized(Val::One(bits), hold, Hold::W64)?;
            let words = self.words_of(wide)?;
            let words = if self.wide_wave { &words[..] } else { &words[..1] };
            self.set_sgprs(code, words)?;
        }
        Ok(())
    }

    /// Registers that operations on f32 read before the run writes them.
    fn float_inputs(&mut self, run: &Run) -> Vec<u16> {
        let (mut inputs, mut written) = (BTreeSet::new(), BTreeSet::new());
        for buffered in &run.ops {
            if buffered.handlers.floats_f32 {
                for word in buffered.sources.iter().flat_map(|(_, staged)| &staged.words) {
                    if let Lane::Register(register) = word
                        && !written.contains(register)
                    {
                        inputs.insert(*register);
                    }
                }
                let d = self.ops[buffered.at as usize].d;
                if plan::lanes(&buffered.handlers).is_some_and(|l| l.steps.contains(&Step::StageOld)) {
                    let old = (0..buffered.handlers.result_dwords() as u16).map(|k| d + k);
                    inputs.extend(old.filter(|register| !written.contains(register)));
                }
            }
            let d = self.ops[buffered.at as usize].d;
            written.extend((0..buffered.handlers.result_dwords() as u16).map(|k| d + k));
        }
        inputs.into_iter().collect()
    }

    /// The loop over packets, which goes on in `done` with the masks. `normal`: what f32 operations read of the wave has
    /// no denormals. `rare`: code of half the size is better. Gives for each mask whether the bits of lanes that are switched off stay.
    fn packets(
        &mut self,
        run: &Run,
        [exec, full]: [V; 2],
        normal: bool,
        rare: bool,
        masks: &[usize],
        done: Block,
    ) -> R<Vec<bool>> {
        self.spreads.clear();
        self.flushes.clear();
        self.normal.clear();
        let before = self.block;
        let ty = self.ty(exec);
        let body = self.func.dfg.make_block();
        let n = self.func.dfg.append_block_param(body, I64);
        let sums: Vec<V> = masks.iter().map(|_| self.func.dfg.append_block_param(body, ty)).collect();
        self.go_to(body);
        (self.looping, self.packet) = (Some((before, body)), Some(n));
        let mut packet = Packet::new(self.packet_base(n), normal);
        for op in &run.ops {
            self.packet_op(op, &mut packet)?;
        }
        // The masks of these four lanes, at their place.
        let (mut gathered, mut keeps) = (Vec::new(), Vec::new());
        for (code, sum) in masks.iter().zip(&sums) {
            let mask = packet.masks.get(code).ok_or(Unsupported("a mask"))?;
            let (truth, keep) = (mask.truth, mask.keep);
            let bits = self.mask(truth)?;
            let bits = ins!(self).vhigh_bits(I32, bits);
            let bits = if self.wide_wave { ins!(self).uextend(I64, bits) } else { bits };
            let up = ins!(self).ishl_imm_u(n, 2);
            let bits = ins!(self).ishl(bits, up);
            gathered.push(BlockArg::Value(ins!(self).bor(*sum, bits)));
            keeps.push(keep);
        }
        let written = self.write_back(&packet, exec, full, rare)?;
        // The next packet.
        let (next, out) = (ins!(self).iadd_imm_s(n, 1), self.func.dfg.make_block());
        let count = if self.wide_wave { 16 } else { 8 };
        let more = ins!(self).icmp_imm_u(IntCC::NotEqual, next, count);
        let mut args = vec![BlockArg::Value(next)];
        args.extend(gathered.iter().copied());
        ins!(self).brif(more, body, &args, out, &[]);
        // Into the loop.
        (self.looping, self.packet) = (None, None);
        self.pos = CursorPosition::After(before);
        let (zero, none) = (ins!(self).iconst(I64, 0), self.constant(ty, 0));
        let mut args = vec![BlockArg::Value(zero)];
        args.extend(masks.iter().map(|_| BlockArg::Value(none)));
        ins!(self).jump(body, &args);
        self.go_to(out);
        self.spreads.clear();
        self.flushes.clear();
        self.normal.clear();
        self.set_flags(full, &written);
        ins!(self).jump(done, &gathered);
        Ok(keeps)
    }

    /// Where the lanes of a packet are in the first register.
    fn packet_base(&mut self, n: V) -> V {
        let own = if self.wide_wave { ins!(self).band_imm_u(n, 7) } else { n };
        let mut base = ins!(self).ishl_imm_u(own, 4);
        if self.wide_wave {
            let half = ins!(self).ushr_imm_u(n, 3);
            let half = ins!(self).imul_imm_s(half, HALF_BYTES as i64);
            base = ins!(self).iadd(base, half);
        }
        ins!(self).iadd(self.vectors, base)
    }

    /// Numbers of the lanes.
    pub fn lane_id(&mut self) -> R<Val> {
        let n = self.packet.ok_or(Unsupported("a lane's number"))?;
        let first = ins!(self).ireduce(I32, n);
        let first = ins!(self).ishl_imm_u(first, 2);
        let first = ins!(self).splat(I32X4, first);
        let each = self.words([0, 1, 2, 3]);
        Ok(Val::Lanes(ins!(self).iadd(first, each)))
    }

    /// The bits of four lanes as a mask.
    fn lanes_of(&mut self, bits: V) -> R<V> {
        let n = self.packet.ok_or(Unsupported("a lane's bit"))?;
        let up = ins!(self).ishl_imm_u(n, 2);
        let bits = ins!(self).ushr(bits, up);
        let bits = if self.ty(bits) == I64 { ins!(self).ireduce(I32, bits) } else { bits };
        let (all, own) = (ins!(self).splat(I32X4, bits), self.words([1, 2, 4, 8]));
        let own_bits = ins!(self).band(all, own);
        Ok(ins!(self).icmp(IntCC::Equal, own_bits, own))
    }

    /// This lane's bit of a mask operand.
    pub fn lane_bit(&mut self, mask: Mask) -> R<Val> {
        match mask {
            Mask::Vcc => self.env.carry.ok_or(Unsupported("a mask")),
            Mask::D0 | Mask::Exec => Err(Unsupported("a mask")),
        }
    }

    fn register(&mut self, packet: &mut Packet, register: u16) -> V {
        if let Some(v) = packet.registers.get(&register) {
            return v.0;
        }
        let v = ins!(self).load(I32X4, STATE, packet.base, register as i32 * LANE_VEC_BYTES as i32);
        packet.registers.insert(register, (v, false));
        if packet.normal && packet.float {
            self.normal.insert(v);
        }
        v
    }

    fn packet_op(&mut self, buffered: &Buffered, packet: &mut Packet) -> R<()> {
        let op = self.ops[buffered.at as usize];
        let lanes = plan::lanes(&buffered.handlers).ok_or(Unsupported("an operation"))?;
        self.env = Env::new(buffered.at);
        packet.float = buffered.handlers.floats_f32;
        if packet.normal && packet.float {
            // Registers that another instruction has read before: they were searched for this one.
            let registers = buffered.sources.iter().flat_map(|(_, staged)| &staged.words);
            for word in registers {
                if let Lane::Register(register) = word
                    && let Some((v, false)) = packet.registers.get(register)
                {
                    self.normal.insert(*v);
                }
            }
        }
        let mut sources: Vec<(Role, Vec<Val>)> = Vec::new();
        for (role, staged) in &buffered.sources {
            let mut words = Vec::new();
            for (k, word) in staged.words.iter().enumerate() {
                let mut v = match word {
                    Lane::Register(register) => Val::Lanes(self.register(packet, *register)),
                    Lane::One(val) => *val,
                };
                if let Some((last, keep, flip)) = staged.modified
                    && last == k
                {
                    v = self.op2(isa_lower::ir::Op2::And, Hold::W32, v, Val::Known(keep as u128))?;
                    v = self.op2(isa_lower::ir::Op2::Xor, Hold::W32, v, Val::Known(flip as u128))?;
                }
                words.push(v);
            }
            sources.push((*role, words));
        }
        self.env.carry = match &buffered.carry {
            None => None,
            Some(Bits::Run(code)) => Some(packet.masks.get(code).ok_or(Unsupported("a mask"))?.truth),
            Some(Bits::Wave(Val::Known(bits))) if *bits == 0 => Some(Val::Known(0)),
            Some(Bits::Wave(val)) => {
                let bits = self.one(*val, self.mask_hold())?;
                Some(Val::Mask(self.lanes_of(bits)?))
            }
        };
        for step in &lanes.steps {
            match step {
                Step::Simd { calls, lanes, .. } => {
                    self.read_lanes(lanes, &sources)?;
                    self.stmts(&lanes.body)?;
                    let mut results = Vec::new();
                    for args in calls {
                        let args = [self.value(&args[0])?, self.value(&args[1])?, self.value(&args[2])?];
                        results.push(self.select_bytes(args)?);
                    }
                    self.env.calls = results;
                    self.env.locals.clear();
                }
                Step::Loop(lane_loop) => {
                    self.read_lanes(lane_loop, &sources)?;
                    if let Some(result) = &lane_loop.result {
                        let old = match result.start {
                            Start::Zero => Val::Known(0),
                            _ => self.old_result(packet, op.d, result.dwords())?,
                        };
                        self.env.operands.insert(Role::D0, (old, Hold::of(result.width)));
                    }
                    self.stmts(&lane_loop.body)?;
                }
                Step::Gather { mask, keep } => {
                    let truth = self.env.bits.get(mask).copied().unwrap_or(Val::Known(0));
                    let truth = match truth {
                        Val::Truth(_) | Val::Known(_) => Val::Mask(self.mask(truth)?),
                        truth => truth,
                    };
                    let code = mask_register(*mask, &op);
                    packet.masks.insert(code, Gathered { truth, keep: *keep });
                }
                Step::Write { dwords, .. } => {
                    let v = self.env.var(isa_lower::ir::Var::Operand(Role::D0));
                    if *dwords == 1 {
                        let v = self.lanes(v)?;
                        packet.registers.insert(op.d, (v, true));
                    } else {
                        let v = self.wide(v)?;
                        let (low, high) = (self.low_words(v), self.high_words(v));
                        packet.registers.insert(op.d, (low, true));
                        packet.registers.insert(op.d + 1, (high, true));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn old_result(&mut self, packet: &mut Packet, d: u16, dwords: u32) -> R<Val> {
        let low = self.register(packet, d);
        if dwords == 1 {
            return Ok(Val::Lanes(low));
        }
        let high = self.register(packet, d + 1);
        Ok(Val::Wide(self.joined(low, high)))
    }

    fn read_lanes(&mut self, lanes: &LaneLoop, sources: &[(Role, Vec<Val>)]) -> R<()> {
        for read in &lanes.reads {
            let Some((_, words)) = sources.iter().find(|(role, _)| *role == read.role) else { continue };
            let hold = Hold::of(read.width);
            let v = match (words[..].first(), words.get(1), hold) {
                (Some(low), _, Hold::W32) => *low,
                (Some(low), Some(high), Hold::W64) if !low.varies() && !high.varies() => {
                    self.pair(*low, *high)?
                }
                (Some(low), Some(high), Hold::W64) => {
                    let (low, high) = (self.lanes(*low)?, self.lanes(*high)?);
                    Val::Wide(self.joined(low, high))
                }
                _ => return Err(Unsupported("a wide source")),
            };
            self.env.operands.insert(read.role, (v, hold));
        }
        Ok(())
    }

    /// Stores the registers that were written, and tells for each whether it has no denormals.
    fn write_back(&mut self, packet: &Packet, exec: V, full: V, rare: bool) -> R<Vec<(u16, bool)>> {
        let written: Vec<(u16, V)> = packet.written().collect();
        if written.is_empty() {
            return Ok(Vec::new());
        }
        let place = |register: u16| register as i32 * LANE_VEC_BYTES as i32;
        let on = self.func.dfg.make_block();
        if !rare {
            // The code generator computes in either block what only the stores need: twice the code, and the faster one.
            let (whole, part) = (self.func.dfg.make_block(), self.func.dfg.make_block());
            ins!(self).brif(full, whole, &[], part, &[]);
            self.go_to(whole);
            for (register, v) in &written {
                ins!(self).store(STATE, *v, packet.base, place(*register));
            }
            ins!(self).jump(on, &[]);
            self.go_to(part);
        }
        let mask = self.lanes_of(exec)?;
        for (register, v) in &written {
            let old = ins!(self).load(I32X4, STATE, packet.base, place(*register));
            let v = ins!(self).bitselect(mask, *v, old);
            ins!(self).store(STATE, v, packet.base, place(*register));
        }
        ins!(self).jump(on, &[]);
        self.go_to(on);
        Ok(written.iter().map(|(register, v)| (*register, self.normal.contains(v))).collect())
    }

    /// The flags of the registers that were written: those without denormals keep theirs.
    fn set_flags(&mut self, full: V, normal: &[(u16, bool)]) {
        if normal.is_empty() {
            return;
        }
        let flags = ins!(self).load(I64, STATE, self.frame, at::FLAGS);
        let known = ins!(self).iconst(I8, NO_DENORMALS as i64);
        let halves = if self.wide_wave { 2 } else { 1 };
        for (register, normal) in normal {
            for place in (0..halves).map(|half| (half * HALF_BYTES + *register as usize) as i32) {
                let value = if *normal {
                    let old = ins!(self).load(I8, STATE, flags, place);
                    let old = ins!(self).band(old, known);
                    ins!(self).select(full, known, old)
                } else {
                    ins!(self).iconst(I8, 0)
                };
                ins!(self).store(STATE, value, flags, place);
            }
        }
    }
}

/// Four lanes while they are emitted.
struct Packet {
    base: V,
    /// What operations on f32 read of the wave has no denormals.
    normal: bool,
    /// The operation that is emitted is one on f32.
    float: bool,
    /// Values of registers, and whether they were written.
    registers: BTreeMap<u16, (V, bool)>,
    masks: BTreeMap<usize, Gathered>,
}

struct Gathered {
    truth: Val,
    /// Bits of lanes that are switched off stay.
    keep: bool,
}

impl Packet {
    fn new(base: V, normal: bool) -> Packet {
        Packet { base, normal, float: false, registers: BTreeMap::new(), masks: BTreeMap::new() }
    }

    fn written(&self) -> impl Iterator<Item = (u16, V)> {
        self.registers.iter().filter(|(_, (_, written))| *written).map(|(at, (v, _))| (*at, *v))
    }
}

/// The register that a mask goes to.
fn mask_register(mask: Mask, op: &Op) -> usize {
    match mask {
        Mask::D0 => mask_code(op.d),
        Mask::Vcc => mask_code(op.d1),
        Mask::Exec => EXEC_LO,
    }
}

/// The step that collects the bits of a mask.
fn gather(lanes: &Lanes, mask: Mask) -> Step {
    let found = lanes.steps.iter().find(|step| matches!(step, Step::Gather { mask: of, .. } if *of == mask));
    found.cloned().unwrap_or(Step::Gather { mask, keep: false })
}
