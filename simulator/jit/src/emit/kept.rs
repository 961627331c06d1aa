//! Caches the classification of lane offsets across blocks and across switches to other waves. In a loop, LDS
//! is mostly accessed at loop-invariant offsets, so that one scan is enough. A write to such a register
//! invalidates its entry.

use super::memory::Located;
use super::{Emitter, Machine};
use crate::frame::at;
use crate::kept::{Kept, MOST};
use crate::plan::{self, Kind, Operations};
use crate::unit::{Unit, targets};
use isa_lower::ir::{Block, Fast, Slot};
use isa_lower::lower::operands::slot;
use std::collections::BTreeMap;
use wavesim_machine::exec::op::{Op, Place};
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Mem, Size, V, Width};

/// The offsets whose classification is cached: slots of [`WaveCache`], by register and access size in bytes.
#[derive(Default)]
pub struct Numbers(BTreeMap<(u16, usize), usize>);

/// The registers that a block uses.
#[derive(Default)]
struct Uses {
    /// Offset registers, and the sizes of the accesses.
    offsets: Vec<(u16, usize)>,
    /// Written registers: the first one, and their number.
    written: Vec<(u16, u16)>,
    /// Any register may be written.
    all: bool,
}

impl Uses {
    fn writes(&self, register: u16) -> bool {
        self.all || self.written.iter().any(|(first, count)| (*first..first + count).contains(&register))
    }
}

impl Numbers {
    /// Assigns slots to the offsets of accesses in loops that do not write them.
    pub fn of(unit: &Unit, machine: &Machine<'_>, operations: &mut Operations) -> Numbers {
        let ops = &machine.source.ops[..];
        let (mut uses, mut loops) = (Vec::new(), Vec::new());
        for (n, block) in unit.blocks.iter().enumerate() {
            let mut of_block = Uses::default();
            for op in &ops[block.first as usize..block.end as usize] {
                let handlers = operations.handlers(op);
                match operations.kind(op, &machine.source.exts) {
                    Kind::Access => access(op, operations, &mut of_block),
                    Kind::Lanes => of_block.written.push((op.d, handlers.result_dwords() as u16)),
                    Kind::Call => of_block.all |= !plan::leaves_registers(&handlers),
                    Kind::Nothing | Kind::Once | Kind::Branch => {}
                }
            }
            uses.push(of_block);
            let last = block.end - 1;
            if operations.kind(&ops[last as usize], &machine.source.exts) == Kind::Branch {
                let to = targets(last, machine, operations);
                let blocks =
                    to.iter().filter_map(|to| unit.blocks.binary_search_by_key(to, |b| b.first).ok());
                loops.extend(blocks.filter(|to| *to <= n).map(|to| to..=n));
            }
        }
        let mut numbers = BTreeMap::new();
        for (n, block) in uses.iter().enumerate() {
            let inner = loops.iter().filter(|l| l.contains(&n)).min_by_key(|l| l.end() - l.start());
            let Some(inner) = inner else { continue };
            for offsets in &block.offsets {
                let changes = uses[inner.clone()].iter().any(|uses| uses.writes(offsets.0));
                let next = numbers.len();
                if !changes && next < MOST {
                    numbers.entry(*offsets).or_insert(next);
                }
            }
        }
        Numbers(numbers)
    }

    /// Returns the slots of matching registers as a bit mask.
    fn bits(&self, of: impl Fn(u16) -> bool) -> u64 {
        self.0.iter().filter(|((register, _), _)| of(*register)).fold(0, |all, (_, n)| all | 1 << n)
    }
}

/// Records the registers that a load or store uses.
fn access(op: &Op, operations: &mut Operations, uses: &mut Uses) {
    let (pair, part, handlers) = (operations.pair(op), operations.part(op), operations.handlers(op));
    let block = match (&pair, &part, &handlers.fast) {
        (Some(pair), ..) => &pair.block,
        (_, Some(part), _) => &part.block,
        (.., Fast::Block(block)) => block,
        _ => return uses.all = true,
    };
    let (role, store, dwords, count) = match block {
        Block::Global { offsets, store, dwords, .. } => (*offsets, *store, *dwords, 1),
        Block::Lds { lanes, store, dwords, plus } => (*lanes, *store, *dwords, plus.len()),
    };
    if let Slot::Source(at) = slot(role)
        && let Place::Vector(register) = op.src[at].place()
    {
        uses.offsets.push((register as u16, part.map_or(4 * dwords as usize, |part| part.bytes)));
    }
    if !store {
        uses.written.push((op.d, count as u16 * dwords as u16));
    }
}

impl Emitter<'_> {
    /// Returns the cache slot of an access's offsets.
    pub fn kept(&self, place: &Located) -> Option<usize> {
        let Located { access, from, .. } = place;
        self.numbers.0.get(&(access.register, access.bytes)).copied().filter(|_| from.is_none())
    }

    /// Invalidates the cached classification of registers that are written.
    pub fn forget_kept(&mut self, written: impl Fn(u16) -> bool) {
        let bits = self.numbers.bits(written);
        if bits == 0 {
            return;
        }
        let kept = self.f.load(Size::B8, self.frame, at::KEPT);
        let valid = self.f.load(Size::B8, kept, Kept::VALID);
        let rest = self.f.int2(Int2::And, Width::W64, valid, !bits as i32);
        self.f.store(Size::B8, kept, Kept::VALID, rest);
    }

    /// Loads the cached classification of some offsets; if it is not valid, runs the code of `scan` and, if
    /// all lanes are active, caches the result.
    pub fn unless_kept(
        &mut self,
        places: &[usize],
        full: V,
        look: impl FnOnce(&mut Self) -> super::R<Vec<[V; 4]>>,
    ) -> super::R<Vec<[V; 4]>> {
        let bits = places.iter().fold(0, |all, n| all | 1i32 << n);
        let [unknown, on]: [Label; 2] = [(); 2].map(|()| self.f.label());
        let parts = |n: usize| {
            [
                (Size::B8, Kept::farthest(n)),
                (Size::B4, Kept::together(n)),
                (Size::B4, Kept::same(n)),
                (Size::B8, Kept::lowest(n)),
            ]
        };
        let results: Vec<[V; 4]> =
            places.iter().map(|_| [(); 4].map(|()| self.f.fresh(Class::Int))).collect();
        let kept = self.f.load(Size::B8, self.frame, at::KEPT);
        let valid = self.f.load(Size::B8, kept, Kept::VALID);
        let these = self.f.int2(Int2::And, Width::W64, valid, bits);
        self.f.branch(Cc::Ne, Width::W64, these, bits, unknown);
        self.f.branch(Cc::Eq, Width::W32, full, 0, unknown);
        for (n, out) in places.iter().zip(&results) {
            for ((size, disp), d) in parts(*n).into_iter().zip(out) {
                self.f.push(Inst::Load { size, d: *d, from: Mem { base: kept, disp } });
            }
        }
        self.f.push(Inst::Jump(on));
        self.f.push(Inst::Label(unknown));
        let found = look(self)?;
        for (found, out) in found.iter().flatten().zip(results.iter().flatten()) {
            self.f.assign(*out, *found);
        }
        self.f.branch(Cc::Eq, Width::W32, full, 0, on);
        for (n, out) in places.iter().zip(&results) {
            for ((size, disp), v) in parts(*n).into_iter().zip(out) {
                self.f.store(size, kept, disp, *v);
            }
        }
        let valid = self.f.load(Size::B8, kept, Kept::VALID);
        let valid = self.f.int2(Int2::Or, Width::W64, valid, bits);
        self.f.store(Size::B8, kept, Kept::VALID, valid);
        self.f.push(Inst::Label(on));
        Ok(results)
    }
}
