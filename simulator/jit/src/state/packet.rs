//! A packet of eight lanes, while its instructions are emitted.

use crate::arith::builder::Builder;
use crate::arith::val::Val;
use crate::frame::LANE_VEC_BYTES;
use crate::state::access::ResolvedAccess;
use std::collections::{BTreeMap, HashMap, HashSet};
use wavesim_x64::inst::{Int2, Mem, Size, V, Width};

/// Registers, and whether they are free of f32 denormals.
pub type DenormalFree = Vec<(u16, bool)>;

/// The state of a packet's lanes while they are emitted.
pub struct Packet {
    pub base: V,
    /// Register values, and whether they were written.
    pub registers: BTreeMap<u16, (V, bool)>,
    /// Values that are the content of a register before the packet.
    pub home_registers: HashMap<V, u16>,
    /// Registers whose content before the packet has been read.
    pub read: HashSet<u16>,
    /// Registers that have been stored already, with the stored value.
    pub stored_early: BTreeMap<u16, V>,
    pub masks: BTreeMap<usize, Gathered>,
    /// The mask of active lanes, once it has been emitted.
    pub active: Option<V>,
    /// Offsets of active lanes, by address register, shift and origin.
    pub offsets: HashMap<(V, u8, Option<[V; 2]>), V>,
    /// Each lane's offset minus that of lane 0, by offsets.
    pub lane_deltas: HashMap<V, V>,
    /// Loaded words, by index of the access.
    pub loaded: HashMap<usize, Vec<V>>,
    /// The first lane, by group.
    pub first_lanes: HashMap<usize, FirstLane>,
    /// Loaded words, with the same vectors in memory order.
    pub memory_order: Vec<(Vec<V>, Vec<V>)>,
}

/// The lanes' bits of a mask.
pub struct Gathered {
    pub cond: Val,
    /// The bits of inactive lanes are preserved.
    pub keep: bool,
}

impl Packet {
    pub fn new(base: V) -> Packet {
        Packet {
            base,
            registers: BTreeMap::new(),
            home_registers: HashMap::new(),
            read: HashSet::new(),
            stored_early: BTreeMap::new(),
            masks: BTreeMap::new(),
            active: None,
            offsets: HashMap::new(),
            lane_deltas: HashMap::new(),
            loaded: HashMap::new(),
            first_lanes: HashMap::new(),
            memory_order: Vec::new(),
        }
    }

    /// Returns the registers that were written and are still to be stored.
    pub fn written(&self) -> impl Iterator<Item = (u16, V)> {
        let all = self
            .registers
            .iter()
            .filter(|(at, (_, written))| *written && !self.stored_early.contains_key(at));
        all.map(|(at, (v, _))| (*at, *v))
    }
}

/// The first lane of a packet all of whose lanes are active.
pub struct FirstLane {
    pub offset: V,
    /// Host addresses, by the base that the offset was added to.
    pub addresses: HashMap<V, V>,
}

impl FirstLane {
    /// `base`: the packet's registers.
    pub fn of(e: &mut Builder, location: &ResolvedAccess, base: V) -> FirstLane {
        if let (Some(sequence), Some(position)) = (location.access.sequence, e.packet) {
            // The host address is that of lane 0.
            let stride = sequence.stride as i32;
            let offset = match stride.count_ones() {
                1 => e.f.int2(Int2::Shl, Width::W64, position.n, stride.trailing_zeros() as i32),
                _ => e.f.int2(Int2::Mul, Width::W64, position.n, stride),
            };
            return FirstLane { offset, addresses: HashMap::new() };
        }
        let register = location.access.register as i32 * LANE_VEC_BYTES as i32;
        let mut offset = e.f.load(Size::B4, base, register);
        if let Some([low, _]) = location.origin_words {
            offset = e.f.int2(Int2::Sub, Width::W32, offset, low);
        }
        if location.access.shift > 0 {
            offset = e.f.int2(Int2::Shl, Width::W64, offset, location.access.shift as i32);
        }
        FirstLane { offset, addresses: HashMap::new() }
    }

    /// Returns the address of the lane's element in an access.
    pub fn address_in(&mut self, e: &mut Builder, location: &ResolvedAccess) -> Mem {
        let (host, disp) = location.host();
        let add = || e.f.int2(Int2::Add, Width::W64, host, self.offset);
        Mem { base: *self.addresses.entry(host).or_insert_with(add), disp }
    }
}
