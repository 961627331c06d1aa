//! Caches the classification of lane offsets across blocks and across switches to other waves. In a loop, LDS
//! is mostly accessed at loop-invariant offsets, so that one scan is enough. A write to such a register
//! invalidates its entry.

use crate::access::addresses::offset_shift;
use crate::arith::builder::R;
use crate::context::CompileContext;
use crate::effects;
use crate::frame::{check_offsets, frame_offset};
use crate::selected::Selections;
use crate::selected::{Access, Selected, Selection};
use crate::state::access::{LaneOffsets, OffsetSlots, ResolvedAccess};
use crate::state::emitter::Emitter;
use crate::unit::{Unit, targets};
use crate::wave_cache::{MAX_CACHED_OFFSETS, WaveCache};
use isa_lower::ir::{Block, Slot};
use isa_lower::lower::operands::slot;
use std::collections::BTreeMap;
use wavesim_machine::exec::op::{DecodedSource, Ext, Op};
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Mem, Size, Src, V, Width};

/// The registers that a block uses.
#[derive(Default)]
struct RegisterUses {
    /// Sources of offsets, and the sizes of the accesses.
    offsets: Vec<(LaneOffsets, usize)>,
    /// Written registers: the first one, and their number.
    written: Vec<(u16, u16)>,
    /// Any register may be written.
    all: bool,
}

impl RegisterUses {
    fn writes(&self, register: u16) -> bool {
        self.all || self.written.iter().any(|(first, count)| (*first..first + count).contains(&register))
    }
}

impl OffsetSlots {
    /// Assigns slots to the offsets of accesses in loops that do not write them.
    pub fn of(unit: &Unit, context: &CompileContext<'_>, selections: &Selections) -> OffsetSlots {
        let ops = &context.program.ops[..];
        let (mut uses, mut loops) = (Vec::new(), Vec::new());
        for (n, block) in unit.blocks.iter().enumerate() {
            let mut of_block = RegisterUses::default();
            for at in block.first..block.end {
                let (op, selection) = (&ops[at as usize], selections.of(at));
                match &selection.how {
                    Selected::Access(Access::Words(_) | Access::Subword(_) | Access::MultiStore(_)) => {
                        let ext = &context.program.exts[op.ext as usize];
                        record_access(op, ext, selection, &mut of_block);
                    }
                    Selected::Lanes(_) | Selected::Access(Access::Scratch(..)) => {
                        of_block.written.push((op.d, selection.handlers.result_dwords() as u16));
                    }
                    Selected::Call(_) => of_block.all |= !effects::preserves_vgprs(&selection.handlers),
                    Selected::Atomic(_) => {
                        of_block.written.push((op.d, selection.handlers.result_dwords() as u16));
                    }
                    Selected::Nop | Selected::Scalar(_) | Selected::Branch(_) => {}
                }
            }
            uses.push(of_block);
            let last = block.end - 1;
            if selections.of(last).how.is_branch() {
                let to = targets(last, context, selections);
                let blocks =
                    to.iter().filter_map(|to| unit.blocks.binary_search_by_key(to, |b| b.first).ok());
                loops.extend(blocks.filter(|to| *to <= n).map(|to| to..=n));
            }
        }
        let mut slots = BTreeMap::new();
        for (n, block) in uses.iter().enumerate() {
            let inner = loops.iter().filter(|l| l.contains(&n)).min_by_key(|l| l.end() - l.start());
            let Some(inner) = inner else { continue };
            for offsets in &block.offsets {
                let changes = uses[inner.clone()].iter().any(|uses| uses.writes(offsets.0.register));
                let next = slots.len();
                if !changes && next < MAX_CACHED_OFFSETS {
                    slots.entry(*offsets).or_insert(next);
                }
            }
        }
        OffsetSlots(slots)
    }
}

/// Records the registers that a load or store uses.
fn record_access(op: &Op, ext: &Ext, selection: &Selection, uses: &mut RegisterUses) {
    let Some((block, access)) = selection.access() else { return uses.all = true };
    let subword = match access {
        Access::Subword(subword) => Some(subword),
        _ => None,
    };
    let (role, store, dwords, count) = match block {
        Block::Global { offsets, store, dwords, .. } => (*offsets, *store, *dwords, 1),
        Block::Lds { lanes, store, dwords, plus } => (*lanes, *store, *dwords, plus.len()),
    };
    if let Slot::Source(at) = slot(role)
        && let DecodedSource::Vector(register) = op.src[at].decode()
    {
        let offsets = LaneOffsets { register: register as u16, shift: offset_shift(block, op, ext) };
        uses.offsets.push((offsets, subword.map_or(4 * dwords as usize, |subword| subword.bytes)));
    }
    if !store {
        uses.written.push((op.d, count as u16 * dwords as u16));
    }
}

impl Emitter<'_> {
    /// Returns the cache slot of an access's offsets.
    pub fn offset_slot(&self, location: &ResolvedAccess) -> Option<usize> {
        let ResolvedAccess { access, origin_words, .. } = location;
        self.addresses
            .slots
            .0
            .get(&(access.offsets(), access.bytes))
            .copied()
            .filter(|_| origin_words.is_none())
    }

    /// Invalidates the cached classification of registers that are written.
    pub fn forget_cached_offsets(&mut self, written: impl Fn(u16) -> bool) {
        self.sequences.here.retain(|register, _| !written(*register));
        let bits = self.addresses.slots.bits_of(written);
        if bits == 0 {
            return;
        }
        let cache = self.b.f.load(Size::B8, self.b.frame, frame_offset::WAVE_CACHE);
        let valid = self.b.f.load(Size::B8, cache, WaveCache::VALID);
        let rest = self.b.f.int2(Int2::And, Width::W64, valid, !bits as i32);
        self.b.f.store(Size::B8, cache, WaveCache::VALID, rest);
    }

    /// Emits the check of a slot that is about to be used.
    fn check_offsets(&mut self, slot: usize) {
        let Some((&(offsets, bytes), _)) = self.addresses.slots.0.iter().find(|(_, n)| **n == slot) else {
            return;
        };
        let LaneOffsets { register, shift } = offsets;
        let args = [slot as i32, register.into(), shift.into(), bytes as i32, self.env.op_index as i32];
        self.pass_arguments(args.map(Src::Imm));
        self.call_cold(check_offsets as *const () as u64);
    }

    /// Loads the cached classification of some offsets; if it is not valid, runs the code of `scan` and, if
    /// all lanes are active, caches the result.
    pub fn scan_unless_cached(
        &mut self,
        slots: &[usize],
        full: V,
        scan: impl FnOnce(&mut Self) -> R<Vec<[V; 4]>>,
    ) -> R<Vec<[V; 4]>> {
        self.paths.cached_offsets += slots.len() as u32;
        let bits = slots.iter().fold(0, |all, n| all | 1i32 << n);
        let [miss, join]: [Label; 2] = [(); 2].map(|()| self.b.f.label());
        let fields = |n: usize| {
            [
                (Size::B8, WaveCache::max_offset(n)),
                (Size::B4, WaveCache::contiguous(n)),
                (Size::B4, WaveCache::uniform(n)),
                (Size::B8, WaveCache::min_offset(n)),
            ]
        };
        let results: Vec<[V; 4]> =
            slots.iter().map(|_| [(); 4].map(|()| self.b.f.fresh(Class::Int))).collect();
        let cache = self.b.f.load(Size::B8, self.b.frame, frame_offset::WAVE_CACHE);
        let valid = self.b.f.load(Size::B8, cache, WaveCache::VALID);
        let these = self.b.f.int2(Int2::And, Width::W64, valid, bits);
        self.b.f.branch(Cc::Ne, Width::W64, these, bits, miss);
        self.b.f.branch(Cc::Eq, Width::W32, full, 0, miss);
        if self.context.checked {
            slots.iter().for_each(|slot| self.check_offsets(*slot));
        }
        for (n, out) in slots.iter().zip(&results) {
            for ((size, disp), d) in fields(*n).into_iter().zip(out) {
                self.b.f.push(Inst::Load { size, d: *d, from: Mem { base: cache, disp } });
            }
        }
        self.b.f.push(Inst::Jump(join));
        self.b.f.push(Inst::Label(miss));
        let found = scan(self)?;
        for (found, out) in found.iter().flatten().zip(results.iter().flatten()) {
            self.b.f.assign(*out, *found);
        }
        self.b.f.branch(Cc::Eq, Width::W32, full, 0, join);
        for (n, out) in slots.iter().zip(&results) {
            for ((size, disp), v) in fields(*n).into_iter().zip(out) {
                self.b.f.store(size, cache, disp, *v);
            }
        }
        let valid = self.b.f.load(Size::B8, cache, WaveCache::VALID);
        let valid = self.b.f.int2(Int2::Or, Width::W64, valid, bits);
        self.b.f.store(Size::B8, cache, WaveCache::VALID, valid);
        self.b.f.push(Inst::Label(join));
        Ok(results)
    }
}
