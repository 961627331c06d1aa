//! Sequence versions of blocks. Kernels mostly compute addresses from the ids of work-items, which are arithmetic
//! sequences over the lanes of a wave, if all lanes are active. A block outside of loops is emitted once more, with
//! such registers as a first value and a stride: instructions whose operands are sequences are computed once for all
//! lanes, accesses at such addresses need no classification, and comparisons are true or false in all lanes.
//!
//! Strides are expected when code is emitted: v0's is 1 where a unit begins, and those of later blocks follow from the
//! blocks before them. Nothing relies on the expectation. The version tests each register that it reads, and each step
//! in which a lane could wrap around. All tests precede the first effect of the block: where one fails, the general
//! code runs the block from its start.

use crate::arith::builder::R;
use crate::arith::val::Val;
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES, frame_offset};
use crate::lanes::buffer::mask_register;
use crate::selected::Selected;
use crate::state::access::{Access, Path, ResolvedAccess, ResolvedAccesses};
use crate::state::emitter::Emitter;
use crate::state::env::Env;
use crate::state::run::{LaneSource, MaskSource, Run};
use crate::state::sequences::{Sequence, SequenceResult, Sequences, Strides};
use crate::tune::sequence_values::{LaneSequence, SequenceVars};
use crate::unit::{Block, Unit, targets};
use isa_lower::ir::{HostWidth, LaneLoop, Lanes, Once, Op2, Start, Step, Stmt, ValueKind, Var, WriteBack};
use isa_lower::visit::{any_stmt, any_value};
use isa_spec::tables::Role;
use std::collections::{BTreeSet, HashMap, HashSet};
use wavesim_machine::exec::op::{DecodedSource, Op};
use wavesim_machine::exec::rt::EXEC_LO;
use wavesim_machine::state::wave::{ALL_VGPRS, NULL};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Inst, Int1, Int2, Label, Mem, Size, V, Width};

/// The number of instructions of a version without accesses from which it is worthwhile: the tests cost as much as some
/// packets.
const MIN_INSTRUCTIONS: u32 = 3;

/// The size of a register in a packet.
const PACKET_BYTES: usize = 32;

impl Emitter<'_> {
    /// Prepares sequence versions of a unit's blocks.
    pub fn expect_sequences(&mut self, unit: &Unit) {
        let reached: HashSet<u32> = unit.blocks.iter().flat_map(|block| self.successors(block)).collect();
        let starts = unit.blocks.iter().filter(|block| !reached.contains(&block.first));
        // The ids of work-items in the first dimension.
        self.sequences.expected = starts.map(|block| (block.first, Strides::from([(0, 1)]))).collect();
    }

    /// Returns the operations at which blocks may begin after a block.
    fn successors(&self, block: &Block) -> Vec<u32> {
        let last = block.end - 1;
        let mut to = targets(last, &self.context, self.selections);
        to.extend(self.selections.of(last).falls_through.then_some(block.next));
        to
    }

    /// Emits a block, and in front of it its sequence version, if that is worthwhile.
    pub fn block_versions(&mut self, block: &Block, unit: &Unit) -> R<()> {
        let expected = self.sequences.expected.remove(&block.first).unwrap_or_default();
        self.sequences.here = expected.clone();
        let mut strides = None;
        if self.loops.block.is_none() && self.reads_any(block, &expected) && !self.is_in_loop(block, unit) {
            strides = self.sequence_version(block, expected);
        }
        self.basic_block(block)?;
        let strides = strides.unwrap_or_else(|| std::mem::take(&mut self.sequences.here));
        for next in self.successors(block).into_iter().filter(|next| *next > block.first) {
            let expected = self.sequences.expected.entry(next).or_insert_with(|| strides.clone());
            expected.retain(|register, stride| strides.get(register) == Some(stride));
        }
        Ok(())
    }

    /// Returns whether vector instructions of a block have one of these registers as an operand.
    fn reads_any(&self, block: &Block, registers: &Strides) -> bool {
        let vectors = (block.first..block.end)
            .filter(|at| matches!(self.selections.of(*at).how, Selected::Lanes(_) | Selected::Access(_)));
        let mut sources = vectors.flat_map(|at| self.ops[at as usize].src);
        sources.any(|source| {
            matches!(source.decode(), DecodedSource::Vector(first) if u16::try_from(first).is_ok_and(|first| {
                registers.contains_key(&first)
            }))
        })
    }

    fn is_in_loop(&self, block: &Block, unit: &Unit) -> bool {
        let back = |from: &Block| {
            from.first >= block.first
                && targets(from.end - 1, &self.context, self.selections).iter().any(|to| *to <= block.first)
        };
        unit.blocks.iter().any(back)
    }

    /// Emits the sequence version of a block. Returns the strides after it, or `None` if there is none.
    fn sequence_version(&mut self, block: &Block, expected: Strides) -> Option<Strides> {
        let function = self.b.f.clone();
        let zero_extended = self.b.zero_extended_ints.clone();
        let (range_count, scalar_bases) = (self.addresses.range_count, self.addresses.scalar_bases.clone());
        let (paths, here) = (self.paths, self.sequences.here.clone());
        let abandon = self.b.f.label();
        let emitted = self.try_sequence_version(block, expected, abandon);
        self.sequences.active = None;
        self.run = Run::default();
        self.b.daz = self.unit.daz_between_blocks;
        self.run_daz = false;
        self.forget_state();
        if emitted == Ok(true) {
            self.paths.sequence_blocks += 1;
            self.b.f.push(Inst::Label(abandon));
            return Some(std::mem::replace(&mut self.sequences.here, here));
        }
        (self.b.f, self.b.zero_extended_ints) = (function, zero_extended);
        (self.addresses.range_count, self.addresses.scalar_bases) = (range_count, scalar_bases);
        (self.paths, self.sequences.here) = (paths, here);
        // What the version cannot emit, the general code can.
        None
    }

    fn try_sequence_version(&mut self, block: &Block, expected: Strides, abandon: Label) -> R<bool> {
        let exec = self.mask_register(EXEC_LO)?;
        let v = self.b.uniform(exec, self.b.mask_width())?;
        self.b.f.branch(Cc::Ne, crate::arith::ops::width(self.mask_width()), v, -1, abandon);
        self.sequences.active = Some(Sequences {
            registers: Default::default(),
            unstored: BTreeSet::new(),
            masks: Vec::new(),
            low_bits: HashMap::new(),
            proven: HashSet::new(),
            abandon,
            exec,
            expected,
        });
        let before = self.paths;
        self.basic_block(block)?;
        let instructions = self.paths.sequence_instructions - before.sequence_instructions;
        let accesses = self.paths.sequence_accesses - before.sequence_accesses;
        Ok(accesses > 0 || instructions >= MIN_INSTRUCTIONS)
    }

    /// Ends the part of a block that is computed as sequences, before an operation that the version does not know.
    pub fn end_sequences(&mut self) -> R<()> {
        if self.sequences.active.is_some() { self.close_run() } else { Ok(()) }
    }

    /// The same before an operation that executes once per wave, unless it only computes, and loads scalars.
    pub fn end_sequences_before(&mut self, once: &Once) -> R<()> {
        if self.sequences.active.is_none() || is_plain(once) { Ok(()) } else { self.close_run() }
    }

    /// The same before a vector instruction, unless all lanes are active.
    pub fn end_sequences_unless_full(&mut self) -> R<()> {
        let Some(full) = self.sequences.active.as_ref().map(|active| active.exec) else { return Ok(()) };
        if self.mask_register(EXEC_LO)? == full { Ok(()) } else { self.end_sequences() }
    }

    /// Computes a vector instruction once for all lanes.
    pub fn sequence_instruction(&mut self, at: u32, op: &Op, lanes: &Lanes) -> R<SequenceResult> {
        if self.sequences.active.is_none() {
            return Ok(SequenceResult::None);
        }
        let unusual = Op::MODIFY | Op::OUTPUT | Op::CLAMP | Op::HIGH | Op::NO_RESULT;
        let reads_mask = lanes.steps.contains(&Step::ReadMask);
        let waits = self.run.masks.iter().any(|mask| *mask != NULL);
        if op.flags & unusual != 0 || waits && (reads_mask || !lanes.masks.is_empty()) {
            return Ok(SequenceResult::None);
        }
        let Some(lane_loop) = only_loop(lanes) else { return Ok(SequenceResult::None) };
        let (sources, carry) = self.stage(lanes, op)?;
        let Some(active) = &self.sequences.active else { return Ok(SequenceResult::None) };
        self.env = Env::new(at);
        if reads_mask {
            let Some(MaskSource::Wave(mask)) = carry else { return Ok(SequenceResult::None) };
            let known = active.masks.iter().find(|(word, _)| *word == mask).map(|(_, set)| *set);
            let known = known.or(if mask == Val::Const(0) { Some(mask) } else { None });
            let Some(known) = known else { return Ok(SequenceResult::None) };
            self.env.carry = Some(known);
        }
        let (mut vars, mut low, mut whole) = (SequenceVars::new(), SequenceVars::new(), true);
        for read in &lane_loop.reads {
            let Some((_, staged)) = sources.iter().find(|(role, _)| *role == read.role) else {
                return Ok(SequenceResult::None);
            };
            let mut words = Vec::new();
            for word in &staged.words {
                words.push(match word {
                    LaneSource::One(v) => Some(Sequence { first: *v, stride: 0 }),
                    LaneSource::Register(register) => self.sequence_of(*register)?,
                });
            }
            let Some(Some(word)) = words.first().copied() else { return Ok(SequenceResult::None) };
            let (stride, host_width) = (u64::from(word.stride), HostWidth::of(read.width));
            let var = Var::Operand(read.role);
            low.insert(var, LaneSequence { first: word.first, stride, bits: 32 });
            let first = match (&words[..], host_width) {
                (_, HostWidth::W32) => word.first,
                ([_, Some(high)], HostWidth::W64) if high.stride == 0 => {
                    self.join_dwords(word.first, high.first)?
                }
                ([_, _], HostWidth::W64) => {
                    whole = false;
                    continue;
                }
                _ => return Ok(SequenceResult::None),
            };
            self.env.set(var, first, host_width);
            if stride > 0 {
                vars.insert(var, LaneSequence { first, stride, bits: host_width.bits() });
            }
        }
        if !whole {
            return self.sequence_low_result(lanes, lane_loop, op, low);
        }
        if !self.sequence_statements(&lane_loop.body, &mut vars)? || self.sequences.active.is_none() {
            return Ok(SequenceResult::None);
        }
        let Some(result) = self.sequence_results(lanes, lane_loop, op, &vars)? else {
            return Ok(SequenceResult::None);
        };
        self.set_sequence_masks(lanes, op)?;
        let varies = result.iter().any(|sequence| sequence.stride > 0) || !vars.is_empty();
        self.paths.sequence_instructions += varies as u32;
        (op.d..).zip(result).for_each(|(register, sequence)| self.add_sequence(register, sequence));
        Ok(SequenceResult::Whole)
    }

    /// Computes the low word of a result of two, one of whose sources has high words that are no sequence.
    fn sequence_low_result(
        &mut self,
        lanes: &Lanes,
        lane_loop: &LaneLoop,
        op: &Op,
        mut low: SequenceVars,
    ) -> R<SequenceResult> {
        let two = |step: &Step| matches!(step, Step::Write { dwords: 2, .. });
        if !lanes.steps.iter().any(two) || lanes.masks.iter().any(|mask| mask_register(*mask, op) != NULL) {
            return Ok(SequenceResult::None);
        }
        for stmt in &lane_loop.body {
            match stmt {
                Stmt::Set(var, value) => {
                    let Some(v) = self.sequence_low_word(value, &low)? else {
                        return Ok(SequenceResult::None);
                    };
                    low.insert(*var, v);
                }
                // No mask is written.
                Stmt::SetBit(..) => {}
                _ => return Ok(SequenceResult::None),
            }
        }
        let result = low.get(&Var::Operand(Role::D0)).filter(|_| self.sequences.active.is_some());
        self.paths.sequence_instructions += result.is_some() as u32;
        Ok(result.map_or(SequenceResult::None, |v| SequenceResult::Low(register_of(*v))))
    }

    /// Records that a register, which an instruction of the run writes, too, is a sequence.
    pub fn add_sequence(&mut self, register: u16, sequence: Sequence) {
        if let Some(active) = &mut self.sequences.active {
            active.registers.insert(register, sequence);
            active.unstored.insert(register);
        }
    }

    /// Computes statements. Returns false if a value is not a sequence.
    fn sequence_statements(&mut self, body: &[Stmt], vars: &mut SequenceVars) -> R<bool> {
        for stmt in body {
            match stmt {
                Stmt::Set(var, value) => {
                    let Some(v) = self.sequence_value(value, vars)? else { return Ok(false) };
                    self.env.set(*var, v.first, value.host_width);
                    if v.is_uniform() && value.host_width != HostWidth::W128 {
                        vars.remove(var);
                    } else {
                        vars.insert(*var, v);
                    }
                }
                Stmt::SetBit(mask, value) => {
                    let Some(v) = self.sequence_value(value, vars)?.filter(LaneSequence::is_uniform) else {
                        return Ok(false);
                    };
                    let set = match v.first {
                        set @ Val::Bool(_) => set,
                        v => {
                            let bit = self.op2(Op2::And, value.host_width, v, Val::Const(1))?;
                            self.boolean(bit, value.host_width)?
                        }
                    };
                    self.env.bits.insert(*mask, set);
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Returns the sequences in the result's registers.
    fn sequence_results(
        &mut self,
        lanes: &Lanes,
        lane_loop: &LaneLoop,
        op: &Op,
        vars: &SequenceVars,
    ) -> R<Option<Vec<Sequence>>> {
        let Some(dwords) = lanes.steps.iter().find_map(|step| match step {
            Step::Write { dwords, .. } => Some(*dwords),
            _ => None,
        }) else {
            return Ok(Some(Vec::new()));
        };
        let var = Var::Operand(Role::D0);
        let bits = 32 * dwords;
        if lane_loop.result.is_none() || op.d as usize + dwords as usize > ALL_VGPRS {
            return Ok(None);
        }
        let v = match vars.get(&var) {
            Some(v) => *v,
            None => LaneSequence::uniform(self.env.var(var), bits),
        };
        if dwords == 1 {
            return Ok(Some(vec![register_of(v)]));
        }
        if v.is_uniform() {
            let words = self.split_dwords(v.first)?;
            return Ok(Some(words.map(|first| Sequence { first, stride: 0 }).to_vec()));
        }
        // The high words are equal because no low word wraps around.
        let Some(low) = self.low_bits_of(v, 32)? else { return Ok(None) };
        let first = self.b.uniform(v.first, HostWidth::W64)?;
        let high = match v.bits {
            0..=32 => Val::Const(0),
            _ => Val::Uniform(self.b.f.int2(Int2::Shr, Width::W64, first, 32)),
        };
        Ok(Some(vec![register_of(low), Sequence { first: high, stride: 0 }]))
    }

    /// Writes masks in which all lanes are set, or none.
    fn set_sequence_masks(&mut self, lanes: &Lanes, op: &Op) -> R<()> {
        for mask in &lanes.masks {
            let set = self.env.bits.get(mask).copied().unwrap_or(Val::Const(0));
            let word = match set {
                Val::Const(0) => Val::Const(0),
                Val::Bool(v) => Val::Uniform(self.b.f.int1(Int1::Neg, Width::W32, v)),
                _ => Val::Const(u32::MAX.into()),
            };
            let words = [word; 2];
            self.set_sgprs(mask_register(*mask, op), if self.wave64 { &words } else { &words[..1] })?;
            let whole = if self.wave64 { self.join_dwords(word, word)? } else { word };
            if let Some(active) = &mut self.sequences.active {
                active.masks.push((whole, set));
            }
        }
        Ok(())
    }

    /// Returns a register's sequence, after the test that an expected one is one.
    pub fn sequence_of(&mut self, register: u16) -> R<Option<Sequence>> {
        let Some(active) = &mut self.sequences.active else { return Ok(None) };
        if let Some(sequence) = active.registers.get(&register) {
            return Ok(Some(*sequence));
        }
        if self.run.written.contains(&register) {
            return Ok(None);
        }
        let Some(stride) = active.expected.remove(&register) else { return Ok(None) };
        let abandon = active.abandon;
        let mut differences: Option<V> = None;
        let at = |packet: usize| {
            let half = packet / 4 * HALF_BYTES;
            (register as usize * LANE_VEC_BYTES + half + packet % 4 * PACKET_BYTES) as i32
        };
        let first = self.b.f.fresh(wavesim_x64::inst::Class::Vec);
        self.b.f.push(Inst::SplatLoad { d: first, from: Mem { base: self.b.vectors, disp: at(0) } });
        for packet in 0..if self.wave64 { 8 } else { 4 } {
            let mut wanted = first;
            if stride > 0 {
                let lanes = self.b.f.vconst(std::array::from_fn(|lane| (8 * packet + lane) as u32 * stride));
                wanted = self.b.f.rvm(Code::VEX_Vpaddd_ymm_ymm_ymmm256, first, lanes, None);
            }
            let found = self.b.f.vload(self.b.vectors, at(packet), true);
            let difference = self.b.f.rvm(Code::VEX_Vpxor_ymm_ymm_ymmm256, wanted, found, None);
            differences = Some(match differences {
                None => difference,
                Some(all) => self.b.f.rvm(Code::VEX_Vpor_ymm_ymm_ymmm256, all, difference, None),
            });
        }
        if let Some(differences) = differences {
            self.b.f.branch_if_any(differences, differences, abandon);
        }
        let first = Val::Uniform(self.b.f.load(Size::B4, self.b.vectors, at(0)));
        let v = LaneSequence { first, stride: stride.into(), bits: 33 };
        let Some(v) = self.low_bits_of(v, 32)? else { return Ok(None) };
        let sequence = register_of(v);
        if let Some(active) = &mut self.sequences.active {
            active.registers.insert(register, sequence);
        }
        Ok(Some(sequence))
    }

    /// Makes the addresses of an access a sequence, if its registers are, and the lanes of each packet are adjacent, or
    /// load one address.
    pub fn find_address_sequence(&mut self, access: &mut Access) -> R<()> {
        let Some(low) = self.sequence_of(access.register)? else { return Ok(()) };
        let stride = (low.stride as usize) << access.shift;
        if stride != access.bytes && (stride != 0 || access.store) {
            return Ok(());
        }
        let first = if access.address64 {
            match self.sequence_of(access.register + 1)? {
                Some(high) if high.stride == 0 => self.join_dwords(low.first, high.first)?,
                _ => return Ok(()),
            }
        } else {
            let first = self.b.uniform(low.first, HostWidth::W32)?;
            match access.shift {
                0 => Val::Uniform(first),
                shift => Val::Uniform(self.b.f.int2(Int2::Shl, Width::W64, first, shift as i32)),
            }
        };
        access.sequence = Some(Sequence { first, stride: stride as u32 });
        Ok(())
    }

    /// Returns whether a register is a sequence that has not been stored to the wave.
    pub fn is_unstored(&self, register: u16) -> bool {
        self.sequences.active.as_ref().is_some_and(|active| active.unstored.contains(&register))
    }

    /// Returns the sequences that an instruction of the run may read, and that have not been stored to the wave.
    pub fn unstored_sequences(&self, registers: impl Iterator<Item = u16>) -> Vec<(u16, Sequence)> {
        let Some(active) = &self.sequences.active else { return Vec::new() };
        let unstored = registers.filter(|register| active.unstored.contains(register));
        unstored.filter_map(|register| Some((register, *active.registers.get(&register)?))).collect()
    }

    /// Records that an instruction of the run writes registers, which are no sequences then.
    pub fn forget_sequences(&mut self, registers: impl Iterator<Item = u16>) {
        if let Some(active) = &mut self.sequences.active {
            for register in registers {
                active.registers.remove(&register);
                active.unstored.remove(&register);
                active.expected.remove(&register);
            }
        }
    }

    /// Resolves an access at addresses that are a sequence. Its host address is that of lane 0.
    pub fn resolve_sequence(
        &mut self,
        access: &Access,
        sequence: Sequence,
        base: V,
        bailout: Label,
    ) -> R<ResolvedAccess> {
        let (w, span) = (Width::W64, self.span(sequence.stride.into()) as i32);
        let first = self.b.uniform(sequence.first, HostWidth::W64)?;
        if !access.address64 {
            // Offsets from 2 GiB on are left to the interpreter.
            self.b.f.branch(Cc::GtU, w, first, i32::MAX - span, bailout);
        }
        let address = self.b.f.int2(Int2::Add, w, first, base);
        let (host, limit) = if access.lds {
            let [start, bytes] = [frame_offset::LDS, frame_offset::LDS_BYTES]
                .map(|part| self.b.f.load(Size::B8, self.b.frame, part));
            let end = self.add_imm(address, span as i64 + access.bytes as i64);
            self.b.f.branch(Cc::LtU, w, bytes, end, bailout);
            (self.b.f.int2(Int2::Add, w, start, address), bytes)
        } else {
            let (range, remaining) = self.find_element_range(access, address, bailout);
            self.b.f.branch(Cc::LtU, w, remaining, span, bailout);
            let host = self.b.f.int2(Int2::Add, w, range.host, address);
            (self.b.f.int2(Int2::Sub, w, host, range.base), remaining)
        };
        let access = access.clone();
        Ok(ResolvedAccess { access, host, disp: 0, limit, origin_words: None, origin: None, group: 0 })
    }

    /// Returns the lanes of a sequence in the packet that is being emitted.
    pub fn sequence_in_packet(&mut self, Sequence { first, stride }: Sequence) -> R<V> {
        if stride == 0 {
            return self.lanes(first);
        }
        let first = self.b.uniform(first, HostWidth::W32)?;
        let lanes = self.b.lane_id()?;
        let factor = Val::Const(stride.into());
        let offsets = self.op2(Op2::Mul, HostWidth::W32, lanes, factor)?;
        let (first, offsets) = (self.broadcast(HostWidth::W32, first), self.lanes(offsets)?);
        Ok(self.iadd(HostWidth::W32, first, offsets))
    }

    /// Emits the run and stores the sequences: the first effects of the block.
    pub fn commit_sequences(&mut self) -> R<()> {
        let Some(abandon) = self.sequences.active.as_ref().map(|active| active.abandon) else {
            return Ok(());
        };
        let mut run = std::mem::take(&mut self.run);
        let (env, repeated) = (self.env.clone(), self.facts.repeated.take());
        let exec = self.sequences.active.as_ref().map_or(Val::Const(0), |active| active.exec);
        let width = self.mask_width();
        let exec = self.b.uniform(exec, width)?;
        let full = self.b.f.iconst(1);
        let mut masks: Vec<usize> = run.masks.iter().copied().filter(|code| *code != NULL).collect();
        masks.sort_unstable();
        masks.dedup();
        let resolved = match &run.accesses[..] {
            [] => ResolvedAccesses::default(),
            accesses => self.resolve(accesses, [exec, full], abandon)?,
        };
        self.branch_unless_fast(&resolved, abandon);
        // Nothing fails from here on.
        let Some(active) = self.sequences.active.take() else { return Ok(()) };
        let mut mask_bits = Vec::new();
        if !run.ops.is_empty() {
            self.begin_floats(&run);
            self.sequences.stored_later.clone_from(&active.unstored);
            let results = self.packets(&run.ops, [exec, full], &resolved.on(Path::Fast), &masks);
            self.sequences.stored_later.clear();
            self.run_daz = false;
            let results = results?;
            self.set_flags(None, &results.denormal_free);
            mask_bits = results.mask_bits;
        }
        let unstored: Vec<(u16, Sequence)> = active
            .unstored
            .iter()
            .filter_map(|register| Some((*register, *active.registers.get(register)?)))
            .collect();
        for (register, sequence) in &unstored {
            self.store_sequence(*register, *sequence)?;
        }
        let flags: Vec<(u16, bool)> = unstored.iter().map(|(register, _)| (*register, false)).collect();
        self.set_flags(None, &flags);
        (self.env, self.facts.repeated) = (env, repeated);
        run.written.extend(unstored.iter().map(|(register, _)| *register));
        self.forget_cached_offsets(|register| run.written.contains(&register));
        self.forget_offsets(|register| run.written.contains(&register));
        self.sequences
            .here
            .extend(active.registers.iter().map(|(register, sequence)| (*register, sequence.stride)));
        for (code, bits) in masks.into_iter().zip(mask_bits) {
            let words = self.split_dwords(Val::Uniform(bits))?;
            self.set_sgprs(code, if self.wave64 { &words[..] } else { &words[..1] })?;
        }
        Ok(())
    }

    /// Stores all lanes of a sequence to a register.
    fn store_sequence(&mut self, register: u16, Sequence { first, stride }: Sequence) -> R<()> {
        let first = self.b.uniform(first, HostWidth::W32)?;
        let mut v = self.b.f.splat(false, first);
        let add = Code::VEX_Vpaddd_ymm_ymm_ymmm256;
        if stride > 0 {
            let lanes = self.b.f.vconst(std::array::from_fn(|lane| lane as u32 * stride));
            v = self.b.f.rvm(add, v, lanes, None);
        }
        let step = self.b.f.vconst([8 * stride; 8]);
        for packet in 0..if self.wave64 { 8 } else { 4 } {
            if stride > 0 && packet > 0 {
                v = self.b.f.rvm(add, v, step, None);
            }
            let half = packet / 4 * HALF_BYTES;
            let at = register as usize * LANE_VEC_BYTES + half + packet % 4 * PACKET_BYTES;
            self.b.f.vstore(self.b.vectors, at as i32, v);
        }
        Ok(())
    }
}

fn register_of(v: LaneSequence) -> Sequence {
    Sequence { first: v.first, stride: v.stride as u32 }
}

/// Returns the loop of an instruction that consists of one, and replaces its result.
fn only_loop(lanes: &Lanes) -> Option<&LaneLoop> {
    let mut found = None;
    for step in &lanes.steps {
        match step {
            Step::Stage { .. } | Step::Modify { .. } | Step::ReadMask | Step::Gather { keep: false, .. } => {}
            Step::Write { how: WriteBack::General { .. } | WriteBack::Fast { .. }, dwords: 1 | 2 } => {}
            Step::Loop(lane_loop) if found.is_none() => found = Some(lane_loop),
            _ => return None,
        }
    }
    found.filter(|lane_loop| {
        lane_loop.result.is_none_or(|result| result.start == Start::Zero)
            && lane_loop.reads.iter().all(|read| read.width <= 64)
    })
}

/// Returns whether scalar code only computes, and loads scalars.
fn is_plain(once: &Once) -> bool {
    let plain = |s: &Stmt| {
        matches!(
            s,
            Stmt::Set(..)
                | Stmt::SetLow { .. }
                | Stmt::SetState(..)
                | Stmt::SetScalar { .. }
                | Stmt::SetMaskOperand(_)
                | Stmt::SetSgpr { .. }
                | Stmt::SetElement { .. }
                | Stmt::Parts { .. }
                | Stmt::If { .. }
                | Stmt::For { .. }
        )
    };
    let special = |v: &isa_lower::ir::Value| {
        matches!(
            v.kind,
            ValueKind::LaneElement(..)
                | ValueKind::LaneBit(_)
                | ValueKind::StagedLane { .. }
                | ValueKind::StagedDword { .. }
                | ValueKind::OperandLane { .. }
                | ValueKind::Vgpr { .. }
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
    !any_value(&once.body, &special) && !any_stmt(&once.body, &|s| !plain(s))
}
