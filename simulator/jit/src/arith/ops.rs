//! Integer operations on uniform values or on lanes, depending on the value's register class.

use crate::arith::builder::Builder;
use crate::lowering::Shift;
use isa_lower::ir::{Compare, HostWidth};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Mem, Src, V, Width};

/// Returns the code generator's width for uniform integers of a host width. Longer ones have 64 bits.
pub fn width(host_width: HostWidth) -> Width {
    if host_width == HostWidth::W32 { Width::W32 } else { Width::W64 }
}

/// Returns the code generator's condition of a comparison of integers.
pub fn condition(op: Compare, signed: bool) -> Cc {
    match (op, signed) {
        (Compare::Eq, _) => Cc::Eq,
        (Compare::Ne, _) => Cc::Ne,
        (Compare::Lt, true) => Cc::LtS,
        (Compare::Le, true) => Cc::LeS,
        (Compare::Gt, true) => Cc::GtS,
        (Compare::Ge, true) => Cc::GeS,
        (Compare::Lt, false) => Cc::LtU,
        (Compare::Le, false) => Cc::LeU,
        (Compare::Gt, false) => Cc::GtU,
        (Compare::Ge, false) => Cc::GeU,
    }
}

/// Selects the instruction for 32 or 64 bits.
fn for_width(host_width: HostWidth, single: Code, double: Code) -> Code {
    if host_width == HostWidth::W32 { single } else { double }
}

impl Builder {
    /// Returns whether a value is a vector.
    pub fn is_vector(&self, v: V) -> bool {
        self.f.class(v) == Class::Vec
    }

    /// Emits a constant of the same register class as `like`.
    pub fn constant_like(&mut self, host_width: HostWidth, bits: u64, like: V) -> V {
        if !self.is_vector(like) {
            return self.f.iconst(if host_width == HostWidth::W32 { bits & 0xffff_ffff } else { bits });
        }
        self.splat_constant(host_width, bits)
    }

    /// Emits a constant in each lane.
    pub fn splat_constant(&mut self, host_width: HostWidth, bits: u64) -> V {
        let (a, b) = (bits as u32, (bits >> 32) as u32);
        let words = if host_width == HostWidth::W32 { [a; 8] } else { [a, b, a, b, a, b, a, b] };
        self.f.vconst(words)
    }

    /// Broadcasts an integer to all lanes. The broadcast is hoisted out of the loop over lanes if the integer
    /// is defined outside of it.
    pub fn broadcast(&mut self, host_width: HostWidth, one: V) -> V {
        let key = (one, host_width == HostWidth::W32);
        if let Some(v) = self.facts.broadcasts.get(&key) {
            return *v;
        }
        let v = self.f.splat(host_width != HostWidth::W32, one);
        self.facts.broadcasts.insert(key, v);
        v
    }

    fn int_or_vector_op(&mut self, host_width: HostWidth, op: Int2, codes: [Code; 2], a: V, b: V) -> V {
        match self.is_vector(a) {
            true => self.f.rvm(for_width(host_width, codes[0], codes[1]), a, b, None),
            false => self.f.int2(op, width(host_width), a, b),
        }
    }

    pub fn iadd(&mut self, host_width: HostWidth, a: V, b: V) -> V {
        let codes = [Code::VEX_Vpaddd_ymm_ymm_ymmm256, Code::VEX_Vpaddq_ymm_ymm_ymmm256];
        self.int_or_vector_op(host_width, Int2::Add, codes, a, b)
    }

    pub fn isub(&mut self, host_width: HostWidth, a: V, b: V) -> V {
        let codes = [Code::VEX_Vpsubd_ymm_ymm_ymmm256, Code::VEX_Vpsubq_ymm_ymm_ymmm256];
        self.int_or_vector_op(host_width, Int2::Sub, codes, a, b)
    }

    pub fn band(&mut self, host_width: HostWidth, a: V, b: V) -> V {
        self.int_or_vector_op(host_width, Int2::And, [Code::VEX_Vpand_ymm_ymm_ymmm256; 2], a, b)
    }

    pub fn bor(&mut self, host_width: HostWidth, a: V, b: V) -> V {
        self.int_or_vector_op(host_width, Int2::Or, [Code::VEX_Vpor_ymm_ymm_ymmm256; 2], a, b)
    }

    pub fn bxor(&mut self, host_width: HostWidth, a: V, b: V) -> V {
        self.int_or_vector_op(host_width, Int2::Xor, [Code::VEX_Vpxor_ymm_ymm_ymmm256; 2], a, b)
    }

    /// Emits `!a & b`.
    pub fn and_not(&mut self, host_width: HostWidth, a: V, b: V) -> V {
        if self.is_vector(a) {
            return self.f.rvm(Code::VEX_Vpandn_ymm_ymm_ymmm256, a, b, None);
        }
        let a = self.f.int1(Int1::Not, width(host_width), a);
        self.f.int2(Int2::And, width(host_width), a, b)
    }

    pub fn bnot(&mut self, host_width: HostWidth, v: V) -> V {
        if !self.is_vector(v) {
            return self.f.int1(Int1::Not, width(host_width), v);
        }
        if let Some(complement) = self.facts.complements.get(&v) {
            return *complement;
        }
        let ones = self.splat_constant(host_width, u64::MAX);
        let out = self.bxor(host_width, v, ones);
        self.facts.complements.insert(out, v);
        out
    }

    pub fn ineg(&mut self, host_width: HostWidth, v: V) -> V {
        if !self.is_vector(v) {
            return self.f.int1(Int1::Neg, width(host_width), v);
        }
        let zero = self.splat_constant(host_width, 0);
        self.isub(host_width, zero, v)
    }

    pub fn imul(&mut self, host_width: HostWidth, a: V, b: V) -> V {
        if !self.is_vector(a) {
            return self.f.int2(Int2::Mul, width(host_width), a, b);
        }
        if host_width == HostWidth::W32 {
            return self.f.rvm(Code::VEX_Vpmulld_ymm_ymm_ymmm256, a, b, None);
        }
        let signed = self.facts.sign_extended.contains(&a) && self.facts.sign_extended.contains(&b);
        if signed {
            return self.f.rvm(Code::VEX_Vpmuldq_ymm_ymm_ymmm256, a, b, None);
        }
        let product = |e: &mut Self, a, b| e.f.rvm(Code::VEX_Vpmuludq_ymm_ymm_ymmm256, a, b, None);
        let low = product(self, a, b);
        let mut crossed = Vec::new();
        for (x, y) in [(a, b), (b, a)] {
            if !self.facts.zero_extended.contains(&x) {
                let high = self.shift_by(Shift::Right, host_width, x, 32);
                crossed.push(product(self, high, y));
            }
        }
        let Some(mut sum) = crossed.pop() else { return low };
        if let Some(other) = crossed.pop() {
            sum = self.iadd(host_width, sum, other);
        }
        let sum = self.shift_by(Shift::Left, host_width, sum, 32);
        self.iadd(host_width, low, sum)
    }

    /// Shifts by a constant below the width.
    pub fn shift_by(&mut self, shift: Shift, host_width: HostWidth, v: V, n: u32) -> V {
        if !self.is_vector(v) {
            let op = match shift {
                Shift::Left => Int2::Shl,
                Shift::Right => Int2::Shr,
                Shift::Arithmetic => Int2::Sar,
            };
            return self.f.int2(op, width(host_width), v, n as i32);
        }
        let code = match (shift, host_width) {
            (Shift::Left, HostWidth::W32) => Code::VEX_Vpslld_ymm_ymm_imm8,
            (Shift::Right, HostWidth::W32) => Code::VEX_Vpsrld_ymm_ymm_imm8,
            (Shift::Arithmetic, HostWidth::W32) => Code::VEX_Vpsrad_ymm_ymm_imm8,
            (Shift::Left, _) => Code::VEX_Vpsllq_ymm_ymm_imm8,
            (Shift::Right, _) => Code::VEX_Vpsrlq_ymm_ymm_imm8,
            (Shift::Arithmetic, _) => {
                // A logical shift, then sign extension from the sign's new position.
                let v = self.shift_by(Shift::Right, host_width, v, n);
                let sign = self.splat_constant(host_width, 1 << (63 - n));
                let flipped = self.bxor(host_width, v, sign);
                return self.isub(host_width, flipped, sign);
            }
        };
        self.f.rm(code, v, Some(n as u8))
    }

    /// Shifts lanes by per-lane counts. Counts from the width on shift everything out.
    pub fn shift_lanes(&mut self, shift: Shift, host_width: HostWidth, v: V, n: V) -> V {
        let code = match (shift, host_width) {
            (Shift::Left, HostWidth::W32) => Code::VEX_Vpsllvd_ymm_ymm_ymmm256,
            (Shift::Right, HostWidth::W32) => Code::VEX_Vpsrlvd_ymm_ymm_ymmm256,
            (Shift::Arithmetic, HostWidth::W32) => Code::VEX_Vpsravd_ymm_ymm_ymmm256,
            (Shift::Left, _) => Code::VEX_Vpsllvq_ymm_ymm_ymmm256,
            (Shift::Right, _) => Code::VEX_Vpsrlvq_ymm_ymm_ymmm256,
            (Shift::Arithmetic, _) => {
                // For negative lanes: the complement of the shifted complement.
                let zero = self.splat_constant(host_width, 0);
                let below = self.icmp(Cc::GtS, host_width, zero, v);
                let v = self.bxor(host_width, v, below);
                let v = self.shift_lanes(Shift::Right, host_width, v, n);
                return self.bxor(host_width, v, below);
            }
        };
        self.f.rvm(code, v, n, None)
    }

    /// Compares: to 1 or 0, or in lanes to all ones or zero.
    pub fn icmp(&mut self, cc: Cc, host_width: HostWidth, a: V, b: V) -> V {
        if !self.is_vector(a) {
            return self.f.compare(cc, width(host_width), a, b);
        }
        let v = self.vector_compare(cc, host_width, a, b);
        if host_width == HostWidth::W32 {
            self.facts.comparisons.insert(v, (cc, a, b));
        }
        v
    }

    fn vector_compare(&mut self, cc: Cc, host_width: HostWidth, a: V, b: V) -> V {
        let equal =
            for_width(host_width, Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256);
        let greater =
            for_width(host_width, Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256, Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256);
        match cc {
            Cc::Eq => self.f.rvm(equal, a, b, None),
            Cc::GtS => self.f.rvm(greater, a, b, None),
            Cc::LtS => self.f.rvm(greater, b, a, None),
            Cc::Ne => self.negated(Cc::Eq, host_width, a, b),
            Cc::LeS => self.negated(Cc::GtS, host_width, a, b),
            Cc::GeS => self.negated(Cc::LtS, host_width, a, b),
            Cc::LeU | Cc::GeU if host_width == HostWidth::W32 => {
                let code = if cc == Cc::LeU {
                    Code::VEX_Vpminud_ymm_ymm_ymmm256
                } else {
                    Code::VEX_Vpmaxud_ymm_ymm_ymmm256
                };
                let bound = self.f.rvm(code, a, b, None);
                self.f.rvm(equal, bound, a, None)
            }
            Cc::LtU if host_width == HostWidth::W32 => self.negated(Cc::GeU, host_width, a, b),
            Cc::GtU if host_width == HostWidth::W32 => self.negated(Cc::LeU, host_width, a, b),
            _ => {
                let sign = self.splat_constant(host_width, 1 << 63);
                let (a, b) = (self.bxor(host_width, a, sign), self.bxor(host_width, b, sign));
                let cc = match cc {
                    Cc::LtU => Cc::LtS,
                    Cc::LeU => Cc::LeS,
                    Cc::GtU => Cc::GtS,
                    _ => Cc::GeS,
                };
                self.icmp(cc, host_width, a, b)
            }
        }
    }

    fn negated(&mut self, cc: Cc, host_width: HostWidth, a: V, b: V) -> V {
        let v = self.icmp(cc, host_width, a, b);
        self.bnot(host_width, v)
    }

    /// Compares with zero, as [`Builder::icmp`] does.
    pub fn is_zero(&mut self, host_width: HostWidth, v: V) -> V {
        let zero = self.constant_like(host_width, 0, v);
        self.icmp(Cc::Eq, host_width, v, zero)
    }

    /// Selects `a` where a condition of the same register class holds.
    pub fn select_same_class(&mut self, host_width: HostWidth, cond: V, a: V, b: V) -> V {
        if self.is_vector(a) {
            self.f.blend(host_width != HostWidth::W32, cond, a, b)
        } else {
            self.f.select(cond, a, b)
        }
    }

    /// Emits the minimum or maximum of two vectors of words.
    pub fn min_max_words(&mut self, greater: bool, signed: bool, a: V, b: V) -> V {
        let code = match (greater, signed) {
            (true, true) => Code::VEX_Vpmaxsd_ymm_ymm_ymmm256,
            (true, false) => Code::VEX_Vpmaxud_ymm_ymm_ymmm256,
            (false, true) => Code::VEX_Vpminsd_ymm_ymm_ymmm256,
            (false, false) => Code::VEX_Vpminud_ymm_ymm_ymmm256,
        };
        self.f.rvm(code, a, b, None)
    }

    /// Emits the minimum of unsigned words.
    pub fn umin(&mut self, a: V, b: V) -> V {
        if self.is_vector(a) {
            return self.f.rvm(Code::VEX_Vpminud_ymm_ymm_ymmm256, a, b, None);
        }
        let less = self.f.compare(Cc::LtU, Width::W32, a, b);
        self.f.select(less, a, b)
    }

    /// Counts ones.
    pub fn count_ones(&mut self, host_width: HostWidth, v: V) -> V {
        if !self.is_vector(v) {
            return self.f.int1(Int1::CountOnes, width(host_width), v);
        }
        // Counts four bits at a time by a table lookup, then adds.
        let counts = [0x0201_0100, 0x0302_0201, 0x0302_0201, 0x0403_0302].repeat(2);
        let table = self.f.vconst(counts.try_into().unwrap_or([0; 8]));
        let (low, high) = self.nibbles(v);
        let shuffle = Code::VEX_Vpshufb_ymm_ymm_ymmm256;
        let (low, high) = (self.f.rvm(shuffle, table, low, None), self.f.rvm(shuffle, table, high, None));
        let bytes = self.f.rvm(Code::VEX_Vpaddb_ymm_ymm_ymmm256, low, high, None);
        if host_width != HostWidth::W32 {
            let zero = self.f.vconst([0; 8]);
            return self.f.rvm(Code::VEX_Vpsadbw_ymm_ymm_ymmm256, bytes, zero, None);
        }
        let (one, one16) = (self.f.vconst([0x0101_0101; 8]), self.f.vconst([0x0001_0001; 8]));
        let sums = self.f.rvm(Code::VEX_Vpmaddubsw_ymm_ymm_ymmm256, bytes, one, None);
        self.f.rvm(Code::VEX_Vpmaddwd_ymm_ymm_ymmm256, sums, one16, None)
    }

    /// Returns the low and high four bits of each byte.
    fn nibbles(&mut self, v: V) -> (V, V) {
        let mask = self.f.vconst([0x0f0f_0f0f; 8]);
        let low = self.band(HostWidth::W32, v, mask);
        let high = self.shift_by(Shift::Right, HostWidth::W32, v, 4);
        (low, self.band(HostWidth::W32, high, mask))
    }

    /// Counts leading zeros: the width for zero.
    pub fn leading_zeros(&mut self, host_width: HostWidth, v: V) -> V {
        if !self.is_vector(v) {
            return self.f.int1(Int1::LeadingZeros, width(host_width), v);
        }
        let mut v = v;
        for n in [1, 2, 4, 8, 16, 32].into_iter().filter(|n| *n < host_width.bits()) {
            let below = self.shift_by(Shift::Right, host_width, v, n);
            v = self.bor(host_width, v, below);
        }
        let above = self.bnot(host_width, v);
        self.count_ones(host_width, above)
    }

    /// Counts trailing zeros: the width for zero.
    pub fn trailing_zeros(&mut self, host_width: HostWidth, v: V) -> V {
        if !self.is_vector(v) {
            return self.f.int1(Int1::TrailingZeros, width(host_width), v);
        }
        let one = self.splat_constant(host_width, 1);
        let less = self.isub(host_width, v, one);
        let below = self.and_not(host_width, v, less);
        self.count_ones(host_width, below)
    }

    /// Reverses all bits.
    pub fn reverse_bits(&mut self, host_width: HostWidth, v: V) -> V {
        if self.is_vector(v) {
            let order: [u8; 16] = std::array::from_fn(|k| {
                let bytes = if host_width == HostWidth::W32 { 4 } else { 8 };
                (k / bytes * bytes + bytes - 1 - k % bytes) as u8
            });
            let reverse = |n: u8| n.reverse_bits() >> 4;
            let table = |shift: u8| std::array::from_fn(|k| reverse(k as u8) << shift);
            let [order, low_table, high_table] =
                [order, table(4), table(0)].map(|bytes| self.vconst_bytes(bytes));
            let shuffle = Code::VEX_Vpshufb_ymm_ymm_ymmm256;
            let v = self.f.rvm(shuffle, v, order, None);
            let (low, high) = self.nibbles(v);
            let (low, high) =
                (self.f.rvm(shuffle, low_table, low, None), self.f.rvm(shuffle, high_table, high, None));
            return self.bor(HostWidth::W32, low, high);
        }
        let mut v = self.f.int1(Int1::SwapBytes, width(host_width), v);
        for (n, mask) in
            [(4, 0x0f0f_0f0f_0f0f_0f0fu64), (2, 0x3333_3333_3333_3333), (1, 0x5555_5555_5555_5555)]
        {
            let mask = self.constant_like(host_width, mask, v);
            let (low, high) = (self.band(host_width, v, mask), self.shift_by(Shift::Right, host_width, v, n));
            let (low, high) =
                (self.shift_by(Shift::Left, host_width, low, n), self.band(host_width, high, mask));
            v = self.bor(host_width, low, high);
        }
        v
    }

    /// Emits a constant of sixteen bytes, repeated in both halves.
    pub fn vconst_bytes(&mut self, bytes: [u8; 16]) -> V {
        self.f.vconst(std::array::from_fn(|k| {
            let at = k % 4 * 4;
            u32::from_le_bytes(std::array::from_fn(|b| bytes[at + b]))
        }))
    }

    /// Returns the low words of 64-bit lanes.
    pub fn low_words(&mut self, v: [V; 2]) -> V {
        match self.facts.split.get(&v) {
            Some((low, _)) => *low,
            None => self.shuffle_words(v, 0x88),
        }
    }

    /// Returns the high words of 64-bit lanes.
    pub fn high_words(&mut self, v: [V; 2]) -> V {
        match self.facts.split.get(&v) {
            Some((_, high)) => *high,
            None => self.shuffle_words(v, 0xdd),
        }
    }

    fn shuffle_words(&mut self, v: [V; 2], which: u8) -> V {
        self.f.rvm(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, v[0], v[1], Some(which))
    }

    /// Combines low and high words to 64-bit lanes, in the order of the host's unpack instructions: lanes 0,
    /// 1, 4 and 5, then the others.
    pub fn join_words(&mut self, low: V, high: V) -> [V; 2] {
        if let Some(whole) = self.facts.joined.get(&(low, high)) {
            return *whole;
        }
        let whole = self.interleave(low, high);
        self.facts.joined.insert((low, high), whole);
        self.facts.split.insert(whole, (low, high));
        whole
    }

    fn interleave(&mut self, low: V, high: V) -> [V; 2] {
        [Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256]
            .map(|code| self.f.rvm(code, low, high, None))
    }

    /// Extends 32-bit lanes to 64 bits.
    pub fn extend(&mut self, v: V, signed: bool) -> [V; 2] {
        let high = match signed {
            true => self.shift_by(Shift::Arithmetic, HostWidth::W32, v, 31),
            false => self.splat_constant(HostWidth::W32, 0),
        };
        let both = self.join_words(v, high);
        let set = if signed { &mut self.facts.sign_extended } else { &mut self.facts.zero_extended };
        set.extend(both);
        both
    }

    /// Expands a mask of 32-bit lanes to one of 64-bit lanes.
    pub fn mask64(&mut self, mask: V) -> [V; 2] {
        self.interleave(mask, mask)
    }

    /// Loads sixteen bytes into each half.
    pub fn load_halves(&mut self, [low, high]: [Mem; 2]) -> V {
        let d = self.f.fresh(Class::Vec);
        self.f.push(Inst::LoadHalves { d, low, high });
        d
    }

    /// The inverse of [`Builder::load_halves`].
    pub fn store_halves(&mut self, v: V, [low, high]: [Mem; 2]) {
        self.f.push(Inst::StoreHalves { v, low, high });
    }

    /// Adds a constant to an integer.
    pub fn add_imm(&mut self, v: V, n: i64) -> V {
        match i32::try_from(n) {
            Ok(0) => v,
            Ok(n) => self.f.int2(Int2::Add, Width::W64, v, Src::Imm(n)),
            Err(_) => {
                let n = self.f.iconst(n as u64);
                self.f.int2(Int2::Add, Width::W64, v, n)
            }
        }
    }
}
