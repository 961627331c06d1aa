//! The fast path of runs with memory accesses. On it, all lanes are active, and each access is contiguous, or
//! uniform in each packet, as its offsets suggest. No packet branches, loads are emitted where they are
//! needed, and stores are part of the packet, so that stored values need not be loaded again. A check before
//! it proves that no packet stores what another one accesses. If any of this does not hold, the run takes its
//! slow path.

use crate::arith::builder::R;
use crate::arith::val::Val;
use crate::state::access::{Access, LaneOffsets, Path, ResolvedAccess, ResolvedAccesses};
use crate::state::emitter::Emitter;
use crate::state::loops::{FastRun, OffsetStep};
use crate::state::packet::Packet;
use crate::state::run::{MemoryOp, Run, RunOp};
use std::collections::{BTreeMap, HashMap};
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Src, V, Width};

/// The results of a run.
pub struct PathResults {
    /// For each mask its bits, and whether bits of inactive lanes are preserved.
    pub masks: Vec<(V, bool)>,
    /// The fast path, if the run is part of a loop that may have versioned iterations.
    pub fast_run: Option<FastRun>,
}

impl Emitter<'_> {
    /// Emits both paths of a run.
    pub fn emit_paths(
        &mut self,
        run: &Run,
        [exec, full]: [V; 2],
        resolved: &ResolvedAccesses,
        masks: &[usize],
    ) -> R<PathResults> {
        if run.accesses.is_empty() {
            let results = self.packets(&run.ops, [exec, full], resolved, masks)?;
            self.set_flags(Some(full), &results.denormal_free);
            let masks = results.mask_bits.into_iter().zip(results.preserves).collect();
            return Ok(PathResults { masks, fast_run: None });
        }
        let [slow_path, done]: [Label; 2] = [(); 2].map(|()| self.b.f.label());
        let mask_bits: Vec<V> = masks.iter().map(|_| self.b.f.fresh(Class::Int)).collect();
        self.paths.fast_runs += 1;
        self.branch_unless_fast(resolved, slow_path);
        let fast = resolved.on(Path::Fast);
        let results = self.packets(&run.ops, [exec, full], &fast, masks)?;
        self.set_flags(None, &results.denormal_free);
        let taken = self.loops.block.is_some().then(|| self.b.f.fresh(Class::Int));
        let set_taken =
            |e: &mut Self, bits: u64| taken.iter().for_each(|d| e.f.push(Inst::Const { d: *d, bits }));
        set_taken(self, 1);
        results.mask_bits.iter().zip(&mask_bits).for_each(|(from, to)| self.b.f.assign(*to, *from));
        self.b.f.push(Inst::Jump(done));
        self.b.f.push(Inst::Label(slow_path));
        set_taken(self, 0);
        // Masks are written only by instructions before the first store.
        let mut masks = masks;
        let mut rest = &run.ops[..];
        while !rest.is_empty() {
            let store = |op: &RunOp| {
                op.access.as_ref().and_then(|memory_op| Some((memory_op.first, memory_op.store?)))
            };
            let count = rest.iter().position(|op| store(op).is_some()).unwrap_or(rest.len());
            let (ops, after) = rest.split_at(count);
            if !ops.is_empty() {
                let results = self.packets(ops, [exec, full], resolved, masks)?;
                self.set_flags(Some(full), &results.denormal_free);
                results.mask_bits.iter().zip(&mask_bits).for_each(|(from, to)| self.b.f.assign(*to, *from));
                masks = &[];
            }
            rest = after;
            if let Some((first, data)) = rest.first().and_then(store) {
                self.store_words(&resolved.accesses[first], data, exec, resolved)?;
                rest = &rest[1..];
            }
        }
        self.b.f.push(Inst::Label(done));
        let steps =
            results.steps.into_iter().map(|(register, step)| Some(self.steps(register, step?, &fast)));
        let steps = steps.collect::<Option<Vec<_>>>().map(|steps| steps.into_iter().flatten().collect());
        let fast_run = taken.zip(steps).map(|(taken, steps)| FastRun {
            resolved: fast,
            steps,
            denormal_free: results.denormal_free,
            taken,
        });
        let masks = mask_bits.into_iter().zip(results.preserves).collect();
        Ok(PathResults { masks, fast_run })
    }

    /// Returns the steps of all offsets in a register.
    fn steps(&mut self, register: u16, step: Val, resolved: &ResolvedAccesses) -> Vec<OffsetStep> {
        let of_register = resolved.accesses.iter().filter(|location| location.access.register == register);
        let steps: BTreeMap<LaneOffsets, OffsetStep> = of_register
            .map(|location| {
                let (offsets, [min, max]) = (location.access.offsets(), self.offset_bounds(location));
                (offsets, OffsetStep { offsets, step, min, max })
            })
            .collect();
        steps.into_values().collect()
    }

    /// Returns the index of the last instruction that writes each register.
    pub fn last_writes(&mut self, ops: &[RunOp]) -> HashMap<u16, usize> {
        let mut last = HashMap::new();
        for (n, run_op) in ops.iter().enumerate() {
            let op = &self.ops[run_op.op_index as usize];
            last.extend((op.d..op.d + run_op.result_dwords()).map(|register| (register, n)));
        }
        last
    }

    /// Branches to a label unless the fast path of a run is equivalent to the slow one.
    pub fn branch_unless_fast(&mut self, resolved: &ResolvedAccesses, slow_path: Label) {
        let is_sequence = |group: usize| {
            resolved
                .accesses
                .iter()
                .any(|location| location.group == group && location.access.sequence.is_some())
        };
        for (group, known) in resolved.groups.iter().enumerate().filter(|(group, _)| !is_sequence(*group)) {
            let as_expected =
                if resolved.expects_contiguous(group) { known.contiguous } else { known.uniform };
            self.branch_if_zero(as_expected, slow_path);
        }
        for (n, store) in resolved.accesses.iter().enumerate().filter(|(_, location)| location.access.store) {
            for before in &resolved.accesses[..n] {
                self.branch_if_overlapping(before, store, slow_path);
            }
        }
    }

    /// Branches to a label if a packet may store what another one accesses.
    fn branch_if_overlapping(&mut self, a: &ResolvedAccess, store: &ResolvedAccess, slow_path: Label) {
        let w = Width::W64;
        if a.access.is_in_lds() != store.access.is_in_lds() || a.has_same_address(store) {
            return;
        }
        let bytes = [a, store].map(|location| location.access.bytes as i64);
        let [[a_min, a_max], [b_min, b_max]] = [a, store].map(|location| self.offset_bounds(location));
        let [a_host, b_host] = [a, store].map(|location| {
            let (host, disp) = location.host();
            self.add_imm(host, disp.into())
        });
        let distance = self.b.f.int2(Int2::Sub, w, b_host, a_host);
        let join = self.b.f.label();
        if a.has_same_offsets(store) && bytes[0] == bytes[1] {
            // Same addresses: each lane accesses only its own element.
            self.b.f.branch(Cc::Eq, w, distance, 0, join);
        }
        let (a_length, b_length) = {
            let a = self.b.f.int2(Int2::Sub, w, a_max, a_min);
            let b = self.b.f.int2(Int2::Sub, w, b_max, b_min);
            (self.add_imm(a, bytes[0]), self.add_imm(b, bytes[1]))
        };
        let distance = self.b.f.int2(Int2::Add, w, distance, b_min);
        let distance = self.b.f.int2(Int2::Sub, w, distance, a_min);
        self.b.f.branch(Cc::LtU, w, distance, a_length, slow_path);
        let zero = self.b.f.iconst(0);
        let distance = self.b.f.int2(Int2::Sub, w, zero, distance);
        self.b.f.branch(Cc::LtU, w, distance, Src::Value(b_length), slow_path);
        self.b.f.push(Inst::Label(join));
    }

    /// Emits a load or store on the fast path of a run.
    pub fn fast_access(
        &mut self,
        memory_op: &MemoryOp,
        op_index: u32,
        resolved: &ResolvedAccesses,
        packet: &mut Packet,
    ) -> R<()> {
        // A store may overwrite loaded memory: the load must not be folded past it.
        let foldable = !resolved.accesses.iter().any(|location| location.access.store);
        let mut loaded: Vec<V> = Vec::new();
        for location in &resolved.accesses[memory_op.first..memory_op.first + memory_op.count] {
            let from = self.shared_first_lane(location, packet);
            let Access { bytes, registers, .. } = location.access;
            if let Some(data) = memory_op.store {
                let values: Vec<V> = (data..data + registers as u16)
                    .map(|register| {
                        let v = self.register(packet, register);
                        self.flush_pending(v)
                    })
                    .collect();
                let rows = self.in_memory_order(&values, packet);
                self.store_vectors(from, &rows);
            } else if resolved.expects_contiguous(location.group) {
                // Global memory is read only once, because other threads may write it concurrently.
                let foldable = foldable && location.access.is_in_lds();
                loaded.extend(self.load_contiguous(bytes, registers, from, foldable, packet));
            } else {
                let out: Vec<V> = (0..registers).map(|_| self.b.f.fresh(Class::Vec)).collect();
                self.load_uniform(bytes, &out, from);
                loaded.extend(out);
            }
        }
        if let Some(subword) = &memory_op.subword {
            return self.finish_subword_load(
                op_index,
                subword,
                &resolved.accesses[memory_op.first].access,
                loaded[0],
                packet,
            );
        }
        let d = self.ops[op_index as usize].d;
        packet.registers.extend((d..).zip(loaded.into_iter().map(|v| (v, true))));
        Ok(())
    }
}
