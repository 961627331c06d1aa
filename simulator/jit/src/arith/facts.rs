//! Facts about values, collected while a block is emitted. They hold in straight-line code only: after a
//! branch, the facts from before it are restored.

use crate::arith::val::Val;
use isa_lower::ir::{HostWidth, Op2};
use std::collections::{HashMap, HashSet};
use wavesim_x64::inst::{Cc, V};

/// The bits of each lane that are statically known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownBits {
    pub zeros: u32,
    pub ones: u32,
}

impl KnownBits {
    /// Returns the value if all bits are known.
    pub fn as_constant(self) -> Option<u32> {
        (self.zeros | self.ones == u32::MAX).then_some(self.ones)
    }
}

/// Facts about values; see the module's documentation.
#[derive(Default, Clone)]
pub struct Facts {
    /// Integers (and whether their lanes have 32 bits), to their broadcasts.
    pub broadcasts: HashMap<(V, bool), V>,
    /// Values, to their copies with denormals flushed.
    pub flushed: HashMap<V, V>,
    /// Values without f32 denormals.
    pub denormal_free: HashSet<V>,
    /// Values whose denormals are still to be flushed.
    pub unflushed: HashSet<V>,
    /// 64-bit values that are zero- or sign-extended words.
    pub zero_extended: HashSet<V>,
    pub sign_extended: HashSet<V>,
    /// Low and high words, to the 64-bit values made of them.
    pub joined: HashMap<(V, V), [V; 2]>,
    /// The inverse of `joined`.
    pub split: HashMap<[V; 2], (V, V)>,
    /// Sums of words, to a varying and a uniform term.
    pub sums: HashMap<V, (V, Val)>,
    /// 64-bit sums of two words, to the mask of lanes with a carry.
    pub carries: HashMap<[V; 2], V>,
    /// 128-bit sums, of which only 64 bits are represented, to the mask of lanes where bit 64 is set.
    pub bit_64: HashMap<[V; 2], V>,
    /// Words that are 1 where a mask is set and 0 elsewhere, to the mask.
    pub bool_words: HashMap<V, V>,
    /// Masks, to their complements.
    pub complements: HashMap<V, V>,
    /// Masks, to the comparisons of words that they result from.
    pub comparisons: HashMap<V, (Cc, V, V)>,
    /// Known bits of words.
    pub bits: HashMap<V, KnownBits>,
    /// Words with an f16 in the low half and zero in the high half, to eight such f16 packed in 128 bits.
    pub packed_f16: HashMap<V, V>,
    /// Words, to their zero-extended low halves.
    pub low_halves: HashMap<V, V>,
    /// Selectors of byte permutes, to the controls of the host's shuffle.
    pub shuffle_controls: HashMap<V, [V; 2]>,
    /// While a loop is unrolled: its uniform operations, which later iterations use again.
    pub repeated: Option<Vec<Repeated>>,
}

/// A uniform operation and its value.
#[derive(Clone, Copy)]
pub struct Repeated {
    pub op: (Op2, HostWidth, [Val; 2]),
    pub val: Val,
}

impl Facts {
    /// Returns the known bits of a word.
    pub fn bits_of(&self, v: V) -> KnownBits {
        self.bits.get(&v).copied().unwrap_or_default()
    }

    /// Records the known bits of a word.
    pub fn record_bits(&mut self, v: V, bits: KnownBits) {
        if bits != KnownBits::default() {
            self.bits.insert(v, bits);
        }
    }
}
