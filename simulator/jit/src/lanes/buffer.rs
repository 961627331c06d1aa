//! Runs of vector instructions. A run becomes a loop over packets of eight lanes, in which registers are
//! values from the first instruction to the last. This is sound because the lanes of these instructions are
//! independent. Inactive lanes are computed too, but not written back.

use crate::arith::builder::{Bug, R};
use crate::arith::val::Val;
use crate::effects::{self, Floats};
use crate::frame::BAILOUT;
use crate::selected::{self};
use crate::state::access::{Access, ResolvedAccesses};
use crate::state::emitter::Emitter;
use crate::state::run::{LaneSource, MaskSource, MemoryOp, Modifiers, Run, RunOp, Sources, StagedSource};
use crate::state::sequences::SequenceResult;
use isa_lower::ir::{Lanes, Mask, Step};
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{DecodedSource, Op, Source};
use wavesim_machine::exec::rt::EXEC_LO;
use wavesim_machine::state::wave::{CONSTS, MAX_CONSTS, NULL, SCALARS, SGPRS, STAGE};
use wavesim_x64::inst::{Cc, Inst, Int2, V};

/// The maximum number of accesses of a run.
const MAX_ACCESSES: usize = 64;

/// The maximum number of pairs of accesses of a run that must be checked for overlap: those with a store.
const MAX_OVERLAP_CHECKS: usize = 12;

/// The maximum number of instructions of a run: beyond it, values do not fit in the host's registers anyway.
const MAX_INSTRUCTIONS: usize = 64;

impl Emitter<'_> {
    /// Emits the pending run if it writes one of these registers, which are about to be read or written.
    pub fn flush_pending_masks(&mut self, code: usize, words: usize) -> R<()> {
        let words_of_mask = if self.wave64 { 2 } else { 1 };
        let overlaps = |mask: &usize| code < mask + words_of_mask && *mask < code + words;
        if self.packet.is_none() && self.run.masks.iter().any(overlaps) { self.close_run() } else { Ok(()) }
    }

    /// Adds a vector instruction to the run.
    pub fn buffer(&mut self, at: u32, op: &Op) -> R<()> {
        let selection = self.selections.of(at);
        let lanes = selection.lanes().ok_or(Bug("an operation without code for lanes"))?;
        self.end_sequences_unless_full()?;
        if selection.scratch().is_some()
            || op.flags & Op::MODIFY != 0 && self.exts[op.ext as usize].dpp.is_some()
        {
            self.end_sequences()?;
        }
        let sequence = self.sequence_instruction(at, op, lanes)?;
        if let SequenceResult::Whole = sequence {
            return Ok(());
        }
        let result_dwords = selection.handlers.result_dwords() as u16;
        // Partially overlapping masks would depend on the order of writes; a mask whose inactive bits are
        // preserved is also an input.
        let width = if self.wave64 { 2 } else { 1 };
        let clashes = |mask: &Mask, waiting: &usize| {
            let code = mask_register(*mask, op);
            let preserves = matches!(gather_step(lanes, *mask), Step::Gather { keep: true, .. });
            *waiting != code && waiting.abs_diff(code) < width || *waiting == code && preserves
        };
        let of_masks =
            !lanes.masks.is_empty() || lanes.steps.iter().any(|step| matches!(step, Step::ReadMask));
        if lanes.masks.iter().any(|mask| self.run.masks.iter().any(|waiting| clashes(mask, waiting)))
            || of_masks && self.run.has_store()
        {
            self.close_run()?;
        }
        let dpp = self.exts[op.ext as usize].dpp.filter(|_| op.flags & Op::MODIFY != 0);
        if dpp.is_some() {
            self.prepare_dpp(op, first_source_dwords(lanes))?;
        }
        let exec = self.mask_register(EXEC_LO)?;
        if self.run.exec.is_some_and(|other| other != exec) || self.run.ops.len() >= MAX_INSTRUCTIONS {
            self.close_run()?;
        }
        self.run.exec = Some(exec);
        let (mut sources, carry) = self.stage(lanes, op)?;
        let mut active = None;
        if let Some(dpp) = dpp {
            let exec = self.b.uniform(exec, self.b.mask_width())?;
            let moved = self.apply_dpp(op, &dpp, first_source_dwords(lanes), exec)?;
            active = moved.active;
            if let Some((_, staged)) = sources.iter_mut().find(|(_, staged)| staged.slot == 0) {
                staged.words = moved.words;
            }
        }
        let mut scratch = None;
        if let Some(access) = selection.scratch() {
            self.prepare_scratch(access, &sources)?;
            let exec = self.b.uniform(exec, self.b.mask_width())?;
            scratch = Some(self.scratch_access(at, access.clone(), &sources, exec)?);
        }
        // Reading the operands may have closed the run that EXEC was recorded for.
        self.run.exec = Some(exec);
        self.run.masks.extend(lanes.masks.iter().map(|mask| mask_register(*mask, op)));
        let new_exec = lanes.masks.contains(&Mask::Exec)
            || lanes.masks.iter().any(|mask| mask_register(*mask, op) + 1 >= EXEC_LO);
        self.run.written.extend((0..result_dwords).map(|k| op.d + k));
        self.begin_run(at);
        let results = op.d..op.d + result_dwords;
        let read = sources.iter().flat_map(|(_, staged)| &staged.words).filter_map(|word| match word {
            LaneSource::Register(register) => Some(*register),
            LaneSource::One(_) => None,
        });
        let sequences = self.unstored_sequences(read.chain(results.clone()));
        self.forget_sequences(results);
        if let SequenceResult::Low(low) = sequence {
            self.add_sequence(op.d, low);
        }
        self.run.ops.push(RunOp {
            op_index: at,
            sequences,
            lanes: Some(lanes.clone()),
            result_dwords,
            sources,
            carry,
            active,
            scratch,
            access: None,
        });
        if new_exec { self.close_run() } else { Ok(()) }
    }

    /// Reads an instruction's inputs from the wave.
    pub fn stage(&mut self, lanes: &Lanes, op: &Op) -> R<(Sources, Option<MaskSource>)> {
        let (mut sources, mut carry) = (Vec::new(), None);
        for step in &lanes.steps {
            match step {
                Step::Stage { role, slot, dwords, .. } => {
                    sources.push((*role, self.staged(op, *role, *slot, *dwords as usize)?));
                }
                Step::ReadMask => {
                    let DecodedSource::Scalar(code) = op.src[3].decode() else { return Err(Bug("a mask")) };
                    let waits = code != NULL && self.run.masks.contains(&code);
                    carry = Some(if waits && code < SGPRS {
                        MaskSource::Run(code)
                    } else {
                        let low = self.source_word(op.src[3], 0)?;
                        MaskSource::Wave(if self.wave64 {
                            let high = self.source_word(op.src[3], 1)?;
                            self.join_dwords(low, high)?
                        } else {
                            low
                        })
                    });
                }
                _ => {}
            }
        }
        Ok((sources, carry))
    }

    fn staged(&mut self, op: &Op, role: Role, slot: usize, dwords: usize) -> R<StagedSource> {
        let source = op.src[slot];
        let mut words = Vec::new();
        for k in 0..dwords {
            words.push(match source.decode() {
                DecodedSource::Vector(first) if first + k < STAGE => LaneSource::Register((first + k) as u16),
                DecodedSource::Vector(first) if (CONSTS..CONSTS + MAX_CONSTS).contains(&(first + k)) => {
                    let value =
                        self.context.program.consts.get(first + k - CONSTS).ok_or(Bug("a constant"))?;
                    LaneSource::One(Val::Const(*value as u128))
                }
                DecodedSource::Vector(first) if (SCALARS..SCALARS + SGPRS).contains(&(first + k)) => {
                    LaneSource::One(self.sgpr(first + k - SCALARS)?)
                }
                DecodedSource::Vector(_) => return Err(Bug("a hidden register")),
                _ => LaneSource::One(self.source_word(source, k)?),
            });
        }
        let ext = &self.exts[op.ext as usize];
        let modified = Modifiers::of(op, ext, role, slot);
        Ok(StagedSource { slot, words, modified })
    }

    /// Adds a load or store to the run, or emits a subword or multiple store in a loop of its own.
    pub fn buffer_access(&mut self, at: u32, op: &Op, access: &selected::Access) -> R<()> {
        let (block, subword) = match access {
            selected::Access::Words(block) => (&**block, None),
            selected::Access::Subword(subword) => (&subword.block, Some(subword)),
            selected::Access::MultiStore(stores) => {
                self.end_sequences()?;
                let (accesses, _) = self.accesses(&stores.block, None, op)?;
                return self.store_in_own_loop(at, &accesses, |e, exec, resolved| {
                    e.store_multiple(op, stores, resolved, exec)
                });
            }
            selected::Access::Scratch(..) => return self.buffer(at, op),
        };
        self.end_sequences_unless_full()?;
        if subword.is_some() {
            self.end_sequences()?;
        }
        let (mut accesses, store) = self.accesses(block, subword.map(|subword| &**subword), op)?;
        for access in &mut accesses {
            self.find_address_sequence(access)?;
        }
        if let (Some(data), Some(subword)) = (store, &subword) {
            return self.store_in_own_loop(at, &accesses, |e, exec, resolved| {
                resolved.accesses.iter().try_for_each(|location| {
                    let contiguous = resolved.groups[location.group].contiguous;
                    e.store_subwords(at, subword, location, data, exec, contiguous)
                })
            });
        }
        let (count, registers) = (accesses.len(), accesses[0].registers);
        let reads = |register: u16| self.run.written.contains(&register) || self.is_unstored(register);
        let in_registers = accesses.iter().any(|access| access.sequence.is_none());
        let address = in_registers
            && (reads(accesses[0].register) || accesses[0].address64 && reads(accesses[0].register + 1));
        let full = match store {
            None => self.run.has_store() || self.run.accesses.len() + count > MAX_ACCESSES,
            Some(_) => self.run.overlap_checks_with_store() > MAX_OVERLAP_CHECKS,
        };
        if address || full {
            self.close_run()?;
        }
        let exec = self.mask_register(EXEC_LO)?;
        if self.run.exec.is_some_and(|other| other != exec) || self.run.ops.len() >= MAX_INSTRUCTIONS {
            self.close_run()?;
        }
        if self.sequences.active.is_none() {
            // The addresses are in registers of the wave.
            accesses.iter_mut().for_each(|access| access.sequence = None);
        }
        self.begin_run(at);
        let first = self.run.accesses.len();
        self.paths.sequence_accesses +=
            accesses.iter().filter(|access| access.sequence.is_some()).count() as u32;
        self.run.accesses.extend(accesses);
        self.run.exec = Some(exec);
        if store.is_none() {
            self.run.written.extend((0..(count * registers) as u16).map(|k| op.d + k));
        }
        let access = Some(MemoryOp {
            first,
            count,
            exec: self.b.uniform(exec, self.b.mask_width())?,
            subword: subword.cloned(),
            store,
            registers: count * registers,
        });
        let data = store.unwrap_or(op.d)..store.unwrap_or(op.d) + (count * registers) as u16;
        let sequences = self.unstored_sequences(data.clone().filter(|_| store.is_some()));
        self.forget_sequences(data.filter(|_| store.is_none()));
        self.run.ops.push(RunOp {
            op_index: at,
            sequences,
            lanes: None,
            result_dwords: 0,
            sources: Vec::new(),
            carry: None,
            active: None,
            scratch: None,
            access,
        });
        Ok(())
    }

    /// Emits a store in a loop of its own: other lanes may have loaded the memory that it changes.
    fn store_in_own_loop(
        &mut self,
        op_index: u32,
        accesses: &[Access],
        moves: impl FnOnce(&mut Self, V, &ResolvedAccesses) -> R<()>,
    ) -> R<()> {
        self.close_run()?;
        let exec = self.mask_register(EXEC_LO)?;
        let exec = self.b.uniform(exec, self.b.mask_width())?;
        let full = self.exec_is_full(exec);
        let [bailout, join] = [(); 2].map(|()| self.b.f.label());
        let resolved = self.resolve(accesses, [exec, full], bailout)?;
        moves(self, exec, &resolved)?;
        self.b.f.push(Inst::Jump(join));
        self.b.f.push(Inst::Label(bailout));
        let saved = (self.scalars.clone(), self.daz);
        self.flush_scalars();
        self.exit_at(op_index, BAILOUT);
        (self.scalars, self.daz) = saved;
        self.b.f.push(Inst::Label(join));
        Ok(())
    }

    fn exec_is_full(&mut self, exec: V) -> V {
        if let Some((_, full)) = self.addresses.exec_full.filter(|(of, _)| *of == exec) {
            return full;
        }
        let full = self.b.f.compare(Cc::Eq, crate::arith::ops::width(self.mask_width()), exec, -1);
        self.addresses.exec_full = Some((exec, full));
        full
    }

    /// Starts a run with this operation if none is pending. The current scalar values are what the wave gets
    /// if the run bails out.
    fn begin_run(&mut self, op_index: u32) {
        if self.run.ops.is_empty() {
            self.run.start = Some((op_index, self.scalars.clone()));
        }
    }

    /// Emits the pending instructions.
    pub fn close_run(&mut self) -> R<()> {
        if self.sequences.active.is_some() {
            return self.commit_sequences();
        }
        let mut run = std::mem::take(&mut self.run);
        let Some((start, scalars)) = run.start.take() else { return Ok(()) };
        if self.loops.versioned.is_some() {
            // The checks of a versioned iteration precede its only run.
            return Err(Bug("a loop"));
        }
        let (env, repeated) = (self.env.clone(), self.facts.repeated.take());
        let host_width = self.mask_width();
        let exec = self.uniform(run.exec.unwrap_or(Val::Const(0)), host_width)?;
        let full = self.exec_is_full(exec);
        let masks: Vec<usize> = {
            let mut masks: Vec<usize> = run.masks.iter().copied().filter(|code| *code != NULL).collect();
            masks.sort_unstable();
            masks.dedup();
            masks
        };
        let bailout = self.b.f.label();
        let resolved = match &run.accesses[..] {
            [] => ResolvedAccesses::default(),
            accesses => self.resolve(accesses, [exec, full], bailout)?,
        };
        self.check_scratch(&run, bailout)?;
        let before = self.daz;
        self.begin_floats(&run);
        let results = self.emit_paths(&run, [exec, full], &resolved, &masks);
        self.run_daz = false;
        let results = results?;
        if let Some(block) = &mut self.loops.block {
            block.record_run(results.fast_run);
        }
        self.forget_cached_offsets(|register| run.written.contains(&register));
        if !run.accesses.is_empty() || run.ops.iter().any(|op| op.scratch.is_some()) {
            let join = self.b.f.label();
            self.b.f.push(Inst::Jump(join));
            // On bailout, the state is that before the run.
            self.b.f.push(Inst::Label(bailout));
            let after = std::mem::replace(&mut self.daz, before);
            let scalars = std::mem::replace(&mut self.scalars, scalars);
            self.flush_scalars();
            self.exit_at(start, BAILOUT);
            self.scalars = scalars;
            self.daz = after;
            self.b.f.push(Inst::Label(join));
        }
        (self.env, self.facts.repeated) = (env, repeated);
        self.forget_offsets(|register| run.written.contains(&register));
        for (code, (sum, keep)) in masks.into_iter().zip(results.masks) {
            let width = crate::arith::ops::width(host_width);
            let mut bits = self.b.f.int2(Int2::And, width, sum, exec);
            if keep {
                let old = self.mask_register(code)?;
                let old = self.uniform(old, host_width)?;
                let old = self.and_not(host_width, exec, old);
                bits = self.b.f.int2(Int2::Or, width, bits, old);
            }
            let words = self.split_dwords(Val::Uniform(bits))?;
            let words = if self.wave64 { &words[..] } else { &words[..1] };
            self.set_sgprs(code, words)?;
        }
        Ok(())
    }

    /// Sets MXCSR.DAZ as a run needs it.
    pub fn begin_floats(&mut self, run: &Run) {
        let floats = floats_of(run);
        self.run_daz = self.flush && floats.flushed && !floats.kept;
        if self.run_daz || floats.kept || floats.flushed {
            self.b.set_daz(self.b.run_daz);
        }
    }
}

/// Returns the number of registers of the first source.
fn first_source_dwords(lanes: &Lanes) -> usize {
    let words = |step: &Step| match step {
        Step::Stage { slot: 0, dwords, .. } => Some(*dwords as usize),
        _ => None,
    };
    lanes.steps.iter().find_map(words).unwrap_or(0)
}

/// Combines the float properties of all instructions.
fn floats_of(run: &Run) -> Floats {
    let mut all = Floats::default();
    for op in run.ops.iter().filter(|op| op.access.is_none()) {
        let floats = op.lanes.as_deref().map(effects::floats).unwrap_or_default();
        all = Floats { flushed: all.flushed || floats.flushed, kept: all.kept || floats.kept };
    }
    all
}

/// Returns the register that a mask is written to.
pub fn mask_register(mask: Mask, op: &Op) -> usize {
    match mask {
        Mask::D0 => mask_code(op.d),
        Mask::Vcc => mask_code(op.d1),
        Mask::Exec => EXEC_LO,
    }
}

/// Returns the step that collects the bits of a mask.
pub fn gather_step(lanes: &Lanes, mask: Mask) -> Step {
    let found = lanes.steps.iter().find(|step| matches!(step, Step::Gather { mask: of, .. } if *of == mask));
    found.cloned().unwrap_or(Step::Gather { mask, keep: false })
}

/// Returns the SGPR that a mask is written to.
pub fn mask_code(code: u16) -> usize {
    Source::sgpr(code).number() as usize
}
