//! Runs of vector instructions. A run becomes a loop over packets of eight lanes, in which registers are
//! values from the first instruction to the last. This is sound because the lanes of these instructions are
//! independent. Inactive lanes are computed too, but not written back.

use super::memory::{Access, Places};
use super::modifiers::Modifiers;
use super::once::Scalars;
use super::scratch::ScratchAccess;
use super::stmt::mask_code;
use super::val::Val;
use super::{Emitter, R, Unsupported};
use crate::frame::{REFUSED, at};
use crate::parts::Part;
use crate::plan::{self, Floats};
use isa_lower::ir::{Fast, Handlers, Lanes, Mask, Step};
use isa_spec::tables::Role;
use std::collections::HashSet;
use std::sync::Arc;
use wavesim_machine::exec::op::{Op, Place};
use wavesim_machine::exec::rt::EXEC_LO;
use wavesim_machine::state::wave::{CONSTS, MAX_CONSTS, NULL, SCALARS, SGPRS, STAGE};
use wavesim_x64::inst::{Cc, Inst, Int2, Label, Mem, V, Width};

/// The maximum number of accesses of a run.
const ACCESSES: usize = 64;

/// The maximum number of pairs of accesses of a run that must be checked for overlap: those with a store.
const PAIRS: usize = 12;

/// The maximum number of instructions of a run: beyond it, values do not fit in the host's registers anyway.
const LONGEST: usize = 64;

/// Vector instructions that have not been emitted yet.
#[derive(Default)]
pub struct Run {
    pub ops: Vec<Buffered>,
    /// The first operation, and the scalar values before it.
    start: Option<(u32, Scalars)>,
    /// Loads, then stores.
    pub accesses: Vec<Access>,
    /// Registers written by these and other instructions of the run.
    pub written: HashSet<u16>,
    /// The number of hidden registers in use for sources from other lanes.
    pub hidden: usize,
    /// Mask registers that the run writes, by operand code.
    masks: Vec<usize>,
    /// The EXEC of all instructions.
    exec: Option<Val>,
}

/// An instruction with its uniform inputs.
pub struct Buffered {
    pub at: u32,
    pub handlers: Arc<Handlers>,
    pub sources: Sources,
    pub carry: Option<Bits>,
    /// The register with the mask of executing lanes, if it differs from EXEC.
    pub active: Option<u16>,
    /// The access, if the instruction loads or stores scratch.
    pub scratch: Option<ScratchAccess>,
    /// The access, if the instruction is another load or store.
    pub access: Option<Words>,
}

/// The memory accesses of an instruction.
pub struct Words {
    /// The index of its first access in the run.
    pub first: usize,
    /// The number of consecutive accesses.
    pub count: usize,
    /// EXEC.
    pub exec: V,
    /// The subword access, if it is one.
    pub part: Option<Arc<Part>>,
    /// The first data register of a store.
    pub store: Option<u16>,
    /// The number of registers that it loads or stores.
    registers: usize,
}

/// Sources by their roles.
pub type Sources = Vec<(Role, Staged)>;

/// A source, dword by dword.
pub struct Staged {
    /// The source's slot.
    pub slot: usize,
    pub words: Vec<Lane>,
    pub modified: Option<Modifiers>,
}

#[derive(Clone, Copy)]
pub enum Lane {
    Register(u16),
    One(Val),
}

/// The mask that lanes read their carry-in from.
pub enum Bits {
    /// A mask of the wave.
    Wave(Val),
    /// A mask register that an earlier instruction of the run writes.
    Run(usize),
}

impl Buffered {
    /// Returns the number of registers that the instruction writes.
    pub fn result_dwords(&self) -> u16 {
        match &self.access {
            None => self.handlers.result_dwords() as u16,
            Some(words) if words.store.is_some() => 0,
            Some(words) => words.registers as u16,
        }
    }
}

impl Run {
    /// Returns the number of pairs to check for overlap if one more store is added.
    fn pairs_with_store(&self) -> usize {
        let stores = self.accesses.iter().filter(|access| access.store).count();
        self.accesses.len() * (stores + 1)
    }

    /// Returns whether the run contains a store. After a store, a run accepts neither loads nor instructions
    /// that read or write masks.
    pub fn stores(&self) -> bool {
        self.accesses.last().is_some_and(|access| access.store)
    }

    /// Returns the first operation of the run and the scalar values before it.
    pub fn start(&self) -> Option<(u32, Scalars)> {
        self.start.clone()
    }
}

impl Emitter<'_> {
    /// Emits the pending run if it writes one of these registers, which are about to be read or written.
    pub fn settle(&mut self, code: usize, words: usize) -> R<()> {
        let words_of_mask = if self.wide_wave { 2 } else { 1 };
        let overlaps = |mask: &usize| code < mask + words_of_mask && *mask < code + words;
        if self.packet.is_none() && self.run.masks.iter().any(overlaps) { self.close_run() } else { Ok(()) }
    }

    /// Adds a vector instruction to the run.
    pub fn buffer(&mut self, at: u32, op: &Op) -> R<()> {
        let handlers = self.operations.handlers(op);
        let lanes = plan::lanes(&handlers).ok_or(Unsupported("an operation"))?;
        // Partially overlapping masks would depend on the order of writes; a mask whose inactive bits are
        // preserved is also an input.
        let width = if self.wide_wave { 2 } else { 1 };
        let clashes = |mask: &Mask, waiting: &usize| {
            let code = mask_register(*mask, op);
            let kept = matches!(gather(lanes, *mask), Step::Gather { keep: true, .. });
            *waiting != code && waiting.abs_diff(code) < width || *waiting == code && kept
        };
        let of_masks =
            !lanes.masks.is_empty() || lanes.steps.iter().any(|step| matches!(step, Step::ReadMask));
        if lanes.masks.iter().any(|mask| self.run.masks.iter().any(|waiting| clashes(mask, waiting)))
            || of_masks && self.run.stores()
        {
            self.close_run()?;
        }
        let dpp = self.exts[op.ext as usize].dpp.filter(|_| op.flags & Op::MODIFY != 0);
        if dpp.is_some() {
            self.begin_moves(op, first_words(lanes))?;
        }
        let exec = self.mask_register(EXEC_LO)?;
        if self.run.exec.is_some_and(|other| other != exec) || self.run.ops.len() >= LONGEST {
            self.close_run()?;
        }
        self.run.exec = Some(exec);
        let (mut sources, carry) = self.stage(lanes, op)?;
        let mut active = None;
        if let Some(dpp) = dpp {
            let exec = self.one(exec, self.mask_hold())?;
            let moved = self.moved(op, &dpp, first_words(lanes), exec)?;
            active = moved.active;
            if let Some((_, staged)) = sources.iter_mut().find(|(_, staged)| staged.slot == 0) {
                staged.words = moved.words;
            }
        }
        let mut scratch = None;
        if let Some(access) = self.operations.scratch(op) {
            self.begin_scratch(&access, &sources)?;
            let exec = self.one(exec, self.mask_hold())?;
            scratch = Some(self.scratch(at, access, &sources, exec)?);
        }
        // Reading the operands may have closed the run that EXEC was recorded for.
        self.run.exec = Some(exec);
        self.run.masks.extend(lanes.masks.iter().map(|mask| mask_register(*mask, op)));
        let new_exec = lanes.masks.contains(&Mask::Exec)
            || lanes.masks.iter().any(|mask| mask_register(*mask, op) + 1 >= EXEC_LO);
        self.run.written.extend((0..handlers.result_dwords() as u16).map(|k| op.d + k));
        self.begin_run(at);
        self.run.ops.push(Buffered {
            at,
            handlers: handlers.clone(),
            sources,
            carry,
            active,
            scratch,
            access: None,
        });
        if new_exec { self.close_run() } else { Ok(()) }
    }

    /// Reads an instruction's inputs from the wave.
    pub fn stage(&mut self, lanes: &Lanes, op: &Op) -> R<(Sources, Option<Bits>)> {
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
        Ok((sources, carry))
    }

    fn staged(&mut self, op: &Op, role: Role, slot: usize, dwords: usize) -> R<Staged> {
        let source = op.src[slot];
        let mut words = Vec::new();
        for k in 0..dwords {
            words.push(match source.place() {
                Place::Vector(first) if first + k < STAGE => Lane::Register((first + k) as u16),
                Place::Vector(first) if (CONSTS..CONSTS + MAX_CONSTS).contains(&(first + k)) => {
                    let value = self
                        .machine
                        .source
                        .consts
                        .get(first + k - CONSTS)
                        .ok_or(Unsupported("a constant"))?;
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
        let modified = Modifiers::of(op, ext, role, slot);
        Ok(Staged { slot, words, modified })
    }

    /// Adds a load or store to the run, or emits a subword or multiple store in a loop of its own.
    pub fn buffer_access(&mut self, at: u32, op: &Op) -> R<()> {
        let handlers = self.operations.handlers(op);
        if let Some(pair) = self.operations.pair(op) {
            let (accesses, _) = self.accesses(&pair.block, None, op)?;
            return self.store(at, &accesses, |e, exec, places| e.store_pair(op, &pair, places, exec));
        }
        let part = self.operations.part(op);
        let block = match (&part, &handlers.fast) {
            (Some(part), _) => &part.block,
            (_, Fast::Block(block)) => block,
            _ => return Err(Unsupported("an access")),
        };
        let (accesses, store) = self.accesses(block, part.as_deref(), op)?;
        if let (Some(data), Some(part)) = (store, &part) {
            return self.store(at, &accesses, |e, exec, places| {
                places.located.iter().try_for_each(|place| {
                    let together = places.groups[place.group].together;
                    e.store_part(at, part, place, data, exec, together)
                })
            });
        }
        let (count, registers) = (accesses.len(), accesses[0].registers);
        let reads = |register: u16| self.run.written.contains(&register);
        let address = reads(accesses[0].register) || accesses[0].wide && reads(accesses[0].register + 1);
        let full = match store {
            None => self.run.stores() || self.run.accesses.len() + count > ACCESSES,
            Some(_) => self.run.pairs_with_store() > PAIRS,
        };
        if address || full {
            self.close_run()?;
        }
        let exec = self.mask_register(EXEC_LO)?;
        if self.run.exec.is_some_and(|other| other != exec) || self.run.ops.len() >= LONGEST {
            self.close_run()?;
        }
        self.begin_run(at);
        let first = self.run.accesses.len();
        self.run.accesses.extend(accesses);
        self.run.exec = Some(exec);
        if store.is_none() {
            self.run.written.extend((0..(count * registers) as u16).map(|k| op.d + k));
        }
        let access = Some(Words {
            first,
            count,
            exec: self.one(exec, self.mask_hold())?,
            part,
            store,
            registers: count * registers,
        });
        self.run.ops.push(Buffered {
            at,
            handlers,
            sources: Vec::new(),
            carry: None,
            active: None,
            scratch: None,
            access,
        });
        Ok(())
    }

    /// Emits a store in a loop of its own: other lanes may have loaded the memory that it changes.
    fn store(
        &mut self,
        at: u32,
        accesses: &[Access],
        moves: impl FnOnce(&mut Self, V, &Places) -> R<()>,
    ) -> R<()> {
        self.close_run()?;
        let exec = self.mask_register(EXEC_LO)?;
        let exec = self.one(exec, self.mask_hold())?;
        let full = self.is_full(exec);
        let [refused, on] = [(); 2].map(|()| self.f.label());
        let places = self.locate(accesses, [exec, full], refused)?;
        moves(self, exec, &places)?;
        self.f.push(Inst::Jump(on));
        self.f.push(Inst::Label(refused));
        let kept = (self.scalars.clone(), self.zeros);
        self.flush_scalars();
        self.stop_at(at, REFUSED);
        (self.scalars, self.zeros) = kept;
        self.f.push(Inst::Label(on));
        Ok(())
    }

    fn is_full(&mut self, exec: V) -> V {
        if let Some((_, full)) = self.full.filter(|(of, _)| *of == exec) {
            return full;
        }
        let full = self.f.compare(Cc::Eq, super::ops::width(self.mask_hold()), exec, -1);
        self.full = Some((exec, full));
        full
    }

    /// Starts a run with this operation if none is pending. The current scalar values are what the wave gets
    /// if the run bails out.
    fn begin_run(&mut self, at: u32) {
        if self.run.ops.is_empty() {
            self.run.start = Some((at, self.scalars.clone()));
        }
    }

    /// Emits the pending instructions.
    pub fn close_run(&mut self) -> R<()> {
        let mut run = std::mem::take(&mut self.run);
        let Some((start, scalars)) = run.start.take() else { return Ok(()) };
        let env = self.env.clone();
        let hold = self.mask_hold();
        let exec = self.one(run.exec.unwrap_or(Val::Known(0)), hold)?;
        let full = self.is_full(exec);
        let masks: Vec<usize> = {
            let mut masks: Vec<usize> = run.masks.iter().copied().filter(|code| *code != NULL).collect();
            masks.sort_unstable();
            masks.dedup();
            masks
        };
        let refused = self.f.label();
        let places = match &run.accesses[..] {
            [] => Places::default(),
            accesses => self.locate(accesses, [exec, full], refused)?,
        };
        self.check_scratch(&run, refused)?;
        let before = self.zeros;
        let floats = floats_of(&run);
        self.daz = self.flush && floats.flushed && !floats.kept;
        if self.daz || floats.kept || floats.flushed {
            self.take_for_zeros(self.daz);
        }
        let made = self.both_paths(&run, [exec, full], &places, &masks);
        self.daz = false;
        let made = made?;
        self.forget_kept(|register| run.written.contains(&register));
        if !run.accesses.is_empty() || run.ops.iter().any(|op| op.scratch.is_some()) {
            let on = self.f.label();
            self.f.push(Inst::Jump(on));
            // On bailout, the state is that before the run.
            self.f.push(Inst::Label(refused));
            let after = std::mem::replace(&mut self.zeros, before);
            let scalars = std::mem::replace(&mut self.scalars, scalars);
            self.flush_scalars();
            self.stop_at(start, REFUSED);
            self.scalars = scalars;
            self.zeros = after;
            self.f.push(Inst::Label(on));
        }
        self.env = env;
        self.forget_offsets(|register| run.written.contains(&register));
        for (code, (sum, keep)) in masks.into_iter().zip(made) {
            let width = super::ops::width(hold);
            let mut bits = self.f.int2(Int2::And, width, sum, exec);
            if keep {
                let old = self.mask_register(code)?;
                let old = self.one(old, hold)?;
                let old = self.without(hold, exec, old);
                bits = self.f.int2(Int2::Or, width, bits, old);
            }
            let words = self.words_of(Val::One(bits))?;
            let words = if self.wide_wave { &words[..] } else { &words[..1] };
            self.set_sgprs(code, words)?;
        }
        Ok(())
    }

    /// Sets or clears MXCSR.DAZ from here on. Writing MXCSR is slow, so that code keeps the current setting
    /// as long as it can.
    pub fn take_for_zeros(&mut self, zeros: bool) {
        if self.zeros != zeros {
            self.float_control(zeros);
            self.zeros = zeros;
        }
    }

    /// Writes MXCSR without recording the new setting.
    pub fn float_control(&mut self, zeros: bool) {
        let disp = if zeros { at::NO_DENORMALS } else { at::DENORMALS };
        self.f.push(Inst::FloatControl { from: Mem { base: self.frame, disp } });
    }

    /// Branches to a label if an integer is 0.
    pub fn unless(&mut self, v: V, to: Label) {
        self.f.branch(Cc::Eq, Width::W32, v, 0, to);
    }
}

/// Returns the number of registers of the first source.
fn first_words(lanes: &Lanes) -> usize {
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
        let floats = plan::lanes(&op.handlers).map(plan::floats).unwrap_or_default();
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
pub fn gather(lanes: &Lanes, mask: Mask) -> Step {
    let found = lanes.steps.iter().find(|step| matches!(step, Step::Gather { mask: of, .. } if *of == mask));
    found.cloned().unwrap_or(Step::Gather { mask, keep: false })
}
