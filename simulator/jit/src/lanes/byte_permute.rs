//! Byte permutes: bytes of lanes selected by other bytes.

use crate::arith::builder::R;
use crate::arith::facts::KnownBits;
use crate::arith::val::Val;
use crate::state::emitter::Emitter;
use crate::state::packet::Packet;
use crate::state::run::RunOp;
use isa_lower::ir::{HostWidth, Lanes, Start, Step, ValueKind, Var};
use isa_spec::tables::Role;
use wavesim_x64::Code;
use wavesim_x64::inst::{Class, Inst, V};

/// Selector bits that are zero if every selector byte selects a data byte.
const OUT_OF_RANGE: u32 = 0xf8f8_f8f8;

const SHUFFLE: Code = Code::VEX_Vpshufb_ymm_ymm_ymmm256;

impl Emitter<'_> {
    /// Selects bytes of two words by the bytes of a third: 0 to 7 select a data byte, other values give zero.
    pub fn byte_permute(&mut self, [high, words_low, at]: [Val; 3]) -> R<Val> {
        if let Val::Const(at) = at {
            return self.permute_const(high, words_low, at as u32);
        }
        let at = self.lanes(at)?;
        let KnownBits { zeros, ones } = self.b.facts.bits_of(at);
        if (0..4).all(|byte| ones >> (8 * byte) & 0xf8 != 0) {
            return Ok(Val::Const(0));
        }
        let [high, words_low] = [self.lanes(high)?, self.lanes(words_low)?];
        if zeros & OUT_OF_RANGE == OUT_OF_RANGE {
            let [of_low, of_high] = self.shuffle_controls(at);
            let low = self.b.f.rvm(SHUFFLE, words_low, of_low, None);
            let high = self.b.f.rvm(SHUFFLE, high, of_high, None);
            return Ok(Val::Lanes(self.bor(HostWidth::W32, low, high)));
        }
        let four = self.b.f.vconst([0x0404_0404; 8]);
        let of_high = self.bxor(HostWidth::W32, at, four);
        let (high, words_low) = (self.permute_word(high, of_high), self.permute_word(words_low, at));
        Ok(Val::Lanes(self.bor(HostWidth::W32, high, words_low)))
    }

    /// Selects bytes of two words by constant selectors.
    fn permute_const(&mut self, high: Val, words_low: Val, op_index: u32) -> R<Val> {
        let mut sum = Val::Const(0);
        for (word, first) in [(words_low, 0), (high, 4)] {
            let of_word = |byte: usize| (op_index >> (8 * byte) & 0xff).wrapping_sub(first);
            if (0..4).all(|byte| of_word(byte) > 3) {
                continue;
            }
            let bytes = match word {
                Val::Const(word) => {
                    let byte =
                        |k: usize| if of_word(k) > 3 { 0 } else { word as u32 >> (8 * of_word(k)) & 0xff };
                    Val::Const((0..4).map(|k| byte(k) << (8 * k)).sum::<u32>() as u128)
                }
                word => {
                    let word = self.lanes(word)?;
                    let choice = |k: usize| match of_word(k % 4) {
                        byte @ 0..=3 => (k / 4 * 4) as u8 + byte as u8,
                        _ => 0x80,
                    };
                    let choice = self.vconst_bytes(std::array::from_fn(choice));
                    Val::Lanes(self.b.f.rvm(SHUFFLE, word, choice, None))
                }
            };
            sum = self.op2(isa_lower::ir::Op2::Or, HostWidth::W32, sum, bytes)?;
        }
        Ok(sum)
    }

    /// Returns the controls of the host's shuffle for selectors below 8: for the low word, and for the high
    /// word.
    fn shuffle_controls(&mut self, selector: V) -> [V; 2] {
        if let Some(found) = self.b.facts.shuffle_controls.get(&selector) {
            return *found;
        }
        let host_width = HostWidth::W32;
        let three = self.b.f.vconst([0x0303_0303; 8]);
        let byte = self.band(host_width, selector, three);
        let own = self.own_byte_offsets();
        let byte = self.bor(host_width, byte, own);
        // The shuffle gives zero where the highest bit of a control byte is set.
        let bit = self.shift_by(crate::lowering::Shift::Left, host_width, selector, 5);
        let top = self.b.f.vconst([0x8080_8080; 8]);
        let bit = self.band(host_width, bit, top);
        let of_low = self.bor(host_width, byte, bit);
        let found = [of_low, self.bxor(host_width, of_low, top)];
        self.b.facts.shuffle_controls.insert(selector, found);
        found
    }

    /// Returns the offsets of each lane's own bytes among the sixteen that the shuffle selects from.
    fn own_byte_offsets(&mut self) -> V {
        self.vconst_bytes(std::array::from_fn(|k| (k / 4 * 4) as u8))
    }

    /// Selects bytes of a word by the bytes of another: 0 to 3 select a byte, other values give zero.
    fn permute_word(&mut self, word: V, selector: V) -> V {
        // Above 3, the highest bit gets set, for which the host's shuffle gives zero.
        let beyond = self.b.f.vconst([0x7c7c_7c7c; 8]);
        let selector = self.b.f.rvm(Code::VEX_Vpaddusb_ymm_ymm_ymmm256, selector, beyond, None);
        let kept = self.b.f.vconst([0x8383_8383; 8]);
        let selector = self.band(HostWidth::W32, selector, kept);
        let own = self.own_byte_offsets();
        let selector = self.bor(HostWidth::W32, selector, own);
        self.b.f.rvm(SHUFFLE, word, selector, None)
    }

    /// Returns the selector of a byte permute that may contain values above 7. Returns `None` if the
    /// instruction has other results than a word.
    pub fn unproven_selector(&mut self, lanes: &Lanes, sources: &[(Role, Vec<Val>)]) -> R<Option<V>> {
        let mut selector = None;
        for step in &lanes.steps {
            match step {
                Step::Simd { calls, .. } => {
                    let Some([_, _, at]) = calls.first().map(Vec::as_slice) else { return Ok(None) };
                    selector = match at.kind {
                        ValueKind::Var(Var::Operand(role)) => Some(role),
                        _ => None,
                    };
                }
                Step::Gather { .. } | Step::Write { dwords: 2.., .. } => return Ok(None),
                Step::Loop(of) if of.result.is_some_and(|result| result.start != Start::Zero) => {
                    return Ok(None);
                }
                _ => {}
            }
        }
        let source = sources.iter().find(|(role, _)| Some(*role) == selector);
        let Some((_, words)) = source else { return Ok(None) };
        let (Some(at), 1) = (words.first(), words.len()) else { return Ok(None) };
        if let Val::Const(_) = at {
            return Ok(None);
        }
        let at = self.lanes(*at)?;
        let KnownBits { zeros, .. } = self.b.facts.bits_of(at);
        Ok((zeros & OUT_OF_RANGE != OUT_OF_RANGE).then_some(at))
    }

    /// Emits a byte permute with a branch: most selectors contain only values below 8, for which less code
    /// runs.
    pub fn split_on_selector(
        &mut self,
        selectors: V,
        run_op: &RunOp,
        sources: &[(Role, Vec<Val>)],
        packet: &mut Packet,
    ) -> R<()> {
        let d = self.ops[run_op.op_index as usize].d;
        let others = self.b.f.vconst([OUT_OF_RANGE; 8]);
        // Emitted before the branch, so that other operations with this selector can use it.
        self.shuffle_controls(selectors);
        let [slow_path, done] = [(); 2].map(|()| self.b.f.label());
        let out = self.b.f.fresh(Class::Vec);
        let (known, env) = (self.b.facts.clone(), self.env.clone());
        self.b.f.branch_if_any(selectors, others, slow_path);
        self.b.facts.record_bits(selectors, KnownBits { zeros: OUT_OF_RANGE, ones: 0 });
        for last in [false, true] {
            self.emit_steps(run_op, sources, packet)?;
            let v = self.register(packet, d);
            let v = self.flush_pending(v);
            self.b.f.assign(out, v);
            (self.b.facts, self.env) = (known.clone(), env.clone());
            if !last {
                self.b.f.push(Inst::Jump(done));
                self.b.f.push(Inst::Label(slow_path));
            }
        }
        self.b.f.push(Inst::Label(done));
        packet.registers.insert(d, (out, true));
        Ok(())
    }
}
