//! Asynchronous operations: the counters that count them, the order in which they return, and what a wait shows
//! about them.
//!
//! Every asynchronous operation is counted in one or two counters, as the manuals define (RDNA 3 and 3.5:
//! VMCNT, VSCNT, LGKMCNT; CDNA: VMCNT, LGKMCNT; RDNA 4: LOADCNT, STORECNT, DSCNT, KMCNT). A wait for N
//! returns when at most N operations of the counter are outstanding. If the operations return in order
//! (vector memory, LDS), the oldest ones are then complete. If they do not (scalar memory), none counts as
//! complete before N = 0. FLAT counts as vector memory and as LDS, and participates in both orders (as LLVM's
//! waits assume).

use crate::effects::{Class, Effects, File, Texture};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::Space;
use wavesim_isa::arch::facts::{Counter, CounterSet};

/// Maximum value of a counter: it has six bits, and the hardware stalls before it issues more.
pub const MAX_OUTSTANDING: usize = 64;

/// A set of counters. An operation is counted in one or two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters(u16);

impl Counters {
    /// Returns a set of one counter.
    pub fn one(counter: Counter) -> Counters {
        Counters(1 << counter as u8)
    }

    /// Adds a counter.
    pub fn with(self, counter: Counter) -> Counters {
        Counters(self.0 | 1 << counter as u8)
    }

    /// Returns the counters that have nothing outstanding after these waits.
    pub fn drained_by(waits: &[(Counter, u32)]) -> Counters {
        Counters(waits.iter().filter(|wait| wait.1 == 0).fold(0, |all, wait| all | 1 << wait.0 as u8))
    }

    /// Returns whether the set is a superset of another.
    pub fn is_superset(self, others: Counters) -> bool {
        others.0 & !self.0 == 0
    }

    /// Returns whether the sets have a counter in common.
    pub fn intersects(self, others: Counters) -> bool {
        others.0 & self.0 != 0
    }

    /// Returns the union of two sets.
    pub fn union(self, others: Counters) -> Counters {
        Counters(self.0 | others.0)
    }

    /// Returns whether a counter is in the set.
    pub fn contains(self, counter: Counter) -> bool {
        self.0 >> counter as u8 & 1 == 1
    }

    /// Removes a counter.
    pub fn remove(&mut self, counter: Counter) {
        self.0 &= !(1 << counter as u8);
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the counters of the set.
    pub fn iter(self) -> impl Iterator<Item = Counter> {
        Counter::ALL.into_iter().filter(move |c| self.contains(*c))
    }
}

/// The order in which operations return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In order with other vector memory operations.
    Vector,
    /// In order with other LDS operations.
    Lds,
    /// In order with both of these: FLAT is counted twice.
    Both,
    /// In no order.
    Unordered,
}

impl Order {
    /// Returns whether two operations of these orders return in the order in which they were issued.
    pub fn joins(self, other: Order) -> bool {
        match (self, other) {
            (Order::Unordered, _) | (_, Order::Unordered) => false,
            (Order::Both, _) | (_, Order::Both) => true,
            (one, other) => one == other,
        }
    }
}

/// The issue properties of a memory operation.
#[derive(Debug, Clone, Copy)]
pub struct Issue {
    /// The counters that count it.
    pub counters: Counters,
    /// The order in which it returns.
    pub order: Order,
    /// Whether it may access LDS.
    pub lds: bool,
}

impl Issue {
    /// Returns the counters of an instruction's operation, and the order in which it returns; `None` if the
    /// instruction issues no operation that is counted.
    pub fn of(counters: &CounterSet, effects: &Effects) -> Option<Issue> {
        let CounterSet { load, store, lds, scalar, copies, tensor, textures, cache_maintenance, .. } =
            *counters;
        let calls = |bi| effects.calls.contains(&bi);
        let one = Counters::one;
        let in_lds = effects.memory.iter().any(|m| m.space == Space::Lds);
        let outside = effects.memory.iter().any(|m| m.space != Space::Lds);
        let uses_vgprs = effects.reads.iter().chain(&effects.writes).any(|used| used.file == File::Vgpr);
        let (order, counters) = match effects.class {
            Class::Vmem if cache_maintenance && calls(Control::WriteBackCaches) => {
                (Order::Vector, one(store))
            }
            Class::Vmem if cache_maintenance && calls(Control::InvalidateCaches) => {
                (Order::Vector, one(load))
            }
            // Uncounted elsewhere.
            Class::Vmem if calls(Control::InvalidateCaches) => return None,
            // Uncounted.
            Class::Vmem if calls(Control::Nop) => return None,
            Class::Vmem if in_lds && outside && tensor.is_some() && !uses_vgprs => {
                (Order::Vector, one(tensor?))
            }
            Class::Vmem if in_lds && outside && copies.is_some() => (Order::Vector, one(copies?)),
            Class::Vmem if effects.texture.is_some() && textures.is_some() => {
                let [sample, bvh] = textures?;
                (Order::Vector, one(if effects.texture == Some(Texture::Sample) { sample } else { bvh }))
            }
            Class::Vmem | Class::Scratch => (Order::Vector, one(if effects.returns { load } else { store })),
            Class::Flat => {
                let first = if effects.returns { load } else { store };
                (Order::Both, one(first).with(lds))
            }
            Class::Lds => (Order::Lds, one(lds)),
            Class::Smem if effects.returns => (Order::Unordered, one(scalar)),
            // Messages with a reply.
            _ if calls(Control::SendMsgRtn) => (Order::Unordered, one(scalar)),
            _ => return None,
        };
        let lds = effects.class == Class::Lds || effects.class == Class::Flat || effects.loads_to_lds();
        Some(Issue { counters, order, lds })
    }
}

/// An outstanding operation.
pub trait Outstanding {
    /// The order in which it returns.
    fn order(&self) -> Order;

    /// The counters that may still count it.
    fn counters(&mut self) -> &mut Counters;

    /// Returns whether the counter counts it as one of the operations that return in this order.
    #[doc(hidden)]
    fn is_counted(&mut self, counter: Counter, order: Order) -> bool {
        (self.order() == order || self.order() == Order::Both) && self.counters().contains(counter)
    }
}

/// Applies a wait until at most `n` operations of a counter are outstanding: removes the counter from the
/// operations that have then returned. An operation is complete when no counter is left. Operations are given
/// oldest first.
pub fn apply_wait<O: Outstanding>(operations: &mut [O], counter: Counter, n: usize) {
    if n == 0 {
        operations.iter_mut().for_each(|operation| operation.counters().remove(counter));
        return;
    }
    // In each order, all but the youngest `n` operations have returned.
    for order in [Order::Vector, Order::Lds] {
        let mut total = 0;
        operations.iter_mut().for_each(|operation| total += operation.is_counted(counter, order) as usize);
        let mut returned = total.saturating_sub(n);
        for operation in &mut *operations {
            if returned > 0 && operation.is_counted(counter, order) {
                returned -= 1;
                operation.counters().remove(counter);
            }
        }
    }
}
