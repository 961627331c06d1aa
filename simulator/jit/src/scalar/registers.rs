//! The wave's scalar state while a block is emitted, and operations that execute once per wave.

use crate::arith::builder::{Bug, R};
use crate::arith::ops::width;
use crate::arith::val::Val;
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES, wave_offset};
use crate::lowering::WaveState;
use crate::state::emitter::Emitter;
use crate::state::scalars::{CachedScalar, SCC};
use crate::wave_cache::WaveCache;
use isa_lower::ir::{HostWidth, Once, Scalar, Slot, ValueKind};
use isa_lower::visit::any_value;
use isa_spec::pcode::ir::State;
use wavesim_machine::exec::op::{DecodedSource, Op, Source};
use wavesim_machine::exec::rt::{EXEC_LO, M0, VCC_LO};
use wavesim_machine::memory::{PRIVATE_BASE, SHARED_BASE};
use wavesim_machine::state::wave::{ALL_VGPRS, NULL, SCALAR_CONSTS, SGPRS};
use wavesim_x64::inst::{Cc, Int1, Int2, Size, V, Width};

impl Emitter<'_> {
    /// Emits an operation that executes once per wave and does not branch.
    pub fn scalar_op(&mut self, once: &Once) -> R<()> {
        if any_value(&once.body, &|v| matches!(v.kind, ValueKind::Float { .. } | ValueKind::Conversion(..))) {
            self.close_run()?;
            self.set_daz(false);
        }
        self.read_operands(once)?;
        self.stmts(&once.body)
    }

    /// Reads the operands before the body executes.
    pub fn read_operands(&mut self, once: &Once) -> R<()> {
        for (role, value) in &once.operands {
            let v = self.value(value)?;
            self.env.operands.insert(*role, (v, value.host_width));
        }
        Ok(())
    }

    /// Reads a register of the scalar file, by operand code below [`SGPRS`].
    pub fn sgpr(&mut self, code: usize) -> R<Val> {
        self.flush_pending_masks(code, 1)?;
        if code == NULL {
            return Ok(Val::Const(0));
        }
        self.record_read(code);
        if let Some(word) = self.scalars.words[code] {
            return Ok(word.val);
        }
        let val = self.load_sgpr(code);
        self.scalars.words[code] = Some(CachedScalar { val, written: false });
        Ok(val)
    }

    /// Loads a register from the wave, ignoring values that have not been stored yet.
    pub fn load_sgpr(&mut self, code: usize) -> Val {
        Val::Uniform(self.b.f.load(Size::B4, self.b.sgprs, 4 * code as i32))
    }

    /// Loads SCC from the wave, likewise.
    pub fn load_scc(&mut self) -> Val {
        Val::Uniform(self.b.f.load(Size::B4, self.b.sgprs, wave_offset::SCC))
    }

    /// Writes registers as `Wave::set_sgprs` does, of 32 bits each.
    pub fn set_sgprs(&mut self, code: usize, words: &[Val]) -> R<()> {
        if code == NULL {
            return Ok(());
        }
        for (code, val) in (code..).zip(words).filter(|(code, _)| *code < SGPRS && *code != NULL) {
            self.flush_pending_masks(code, 1)?;
            self.record_write(code);
            let val = match *val {
                Val::Bool(_) => Val::Uniform(self.uniform(*val, HostWidth::W32)?),
                val => val,
            };
            self.scalars.words[code] = Some(CachedScalar { val, written: true });
        }
        Ok(())
    }

    /// Stores all modified scalar state to the wave.
    pub fn flush_scalars(&mut self) {
        for code in 0..SGPRS {
            let Some(word) = &mut self.scalars.words[code] else { continue };
            if !std::mem::take(&mut word.written) {
                continue;
            }
            let val = word.val;
            if let Ok(v) = self.uniform(val, HostWidth::W32) {
                self.b.f.store(Size::B4, self.b.sgprs, 4 * code as i32, v);
            }
        }
        if let Some(word) = &mut self.scalars.scc
            && std::mem::take(&mut word.written)
        {
            let val = word.val;
            if let Ok(v) = self.uniform(val, HostWidth::W32) {
                self.b.f.store(Size::B4, self.b.sgprs, wave_offset::SCC, v);
            }
        }
    }

    /// Combines two registers to 64 bits.
    pub fn join_dwords(&mut self, low: Val, high: Val) -> R<Val> {
        if let (Val::Const(low), Val::Const(high)) = (low, high) {
            return Ok(Val::Const(low | high << 32));
        }
        let found = self.scalars.pairs.iter().find(|(words, _)| *words == [low, high]);
        if let Some((_, pair)) = found
            && self.packet.is_none()
        {
            return Ok(*pair);
        }
        let (first, second) = (self.uniform(low, HostWidth::W32)?, self.uniform(high, HostWidth::W32)?);
        let join = |f: &mut wavesim_x64::Function| {
            let second = f.int2(Int2::Shl, Width::W64, second, 32);
            f.int2(Int2::Or, Width::W64, first, second)
        };
        let before = self.b.f.is_outside_loop(first) && self.b.f.is_outside_loop(second);
        let pair = Val::Uniform(if before { self.b.f.hoist(join) } else { join(&mut self.b.f) });
        if self.packet.is_none() {
            self.scalars.pairs.push(([low, high], pair));
        }
        Ok(pair)
    }

    /// Splits 64 bits into two registers.
    pub fn split_dwords(&mut self, val: Val) -> R<[Val; 2]> {
        Ok(match val {
            Val::Const(bits) => [Val::Const(bits & 0xffff_ffff), Val::Const(bits >> 32 & 0xffff_ffff)],
            Val::Bool(_) => [val, Val::Const(0)],
            _ => {
                let v = self.uniform(val, HostWidth::W64)?;
                let high = self.b.f.int2(Int2::Shr, Width::W64, v, 32);
                [Val::Uniform(self.b.f.int1(Int1::ZeroExtend32, Width::W32, v)), Val::Uniform(high)]
            }
        })
    }

    /// Reads a mask of the wave's lanes.
    pub fn mask_register(&mut self, code: usize) -> R<Val> {
        let low = self.sgpr(code)?;
        if !self.wave64 {
            return Ok(low);
        }
        let high = if code + 1 < SGPRS && code != NULL { self.sgpr(code + 1)? } else { Val::Const(0) };
        self.join_dwords(low, high)
    }

    /// Returns the host width of the values that [`Emitter::wave_state`] returns.
    pub fn state_width(&self, state: State) -> HostWidth {
        match state {
            State::Exec | State::Vcc => self.mask_width(),
            State::Pc | State::SharedBase | State::PrivateBase | State::ScratchBase | State::TrapBase => {
                HostWidth::W64
            }
            _ => HostWidth::W32,
        }
    }

    pub fn wave_state(&mut self, state: State) -> R<Val> {
        Ok(match state {
            State::Exec => self.mask_register(EXEC_LO)?,
            State::ExecLo => self.sgpr(EXEC_LO)?,
            State::ExecHi => self.sgpr(EXEC_LO + 1)?,
            State::Vcc => self.mask_register(VCC_LO)?,
            State::VccLo => self.sgpr(VCC_LO)?,
            State::VccHi => self.sgpr(VCC_LO + 1)?,
            State::Vccz | State::Execz => {
                let mask = self.mask_register(if state == State::Vccz { VCC_LO } else { EXEC_LO })?;
                match mask {
                    Val::Const(bits) => Val::Const((bits == 0) as u128),
                    mask => {
                        let v = self.b.uniform(mask, self.b.mask_width())?;
                        Val::Bool(self.b.f.compare(Cc::Eq, width(self.mask_width()), v, 0))
                    }
                }
            }
            State::Scc => {
                self.record_read(SCC);
                match self.scalars.scc {
                    Some(word) => word.val,
                    None => {
                        let val = self.load_scc();
                        self.scalars.scc = Some(CachedScalar { val, written: false });
                        val
                    }
                }
            }
            State::M0 => self.sgpr(M0)?,
            State::VgprSize => {
                let resources = self.wave_resources();
                Val::Uniform(self.b.f.load(Size::B4, resources, WaveCache::VGPRS))
            }
            State::Pc => {
                let base = self.b.f.load(Size::B8, self.b.sgprs, wave_offset::CODE_BASE);
                let pc = self.env.op(self.ops).pc as i64;
                Val::Uniform(self.add_imm(base, pc))
            }
            State::SharedBase => Val::Const(SHARED_BASE as u128),
            State::PrivateBase => Val::Const(PRIVATE_BASE as u128),
            State::ScratchBase | State::TrapBase => Val::Const(0),
            _ => return Err(Bug("a state")),
        })
    }

    pub fn set_wave_state(&mut self, state: WaveState, host_width: HostWidth, val: Val) -> R<()> {
        let code = match state {
            WaveState::Exec | WaveState::Vcc => {
                let wide = self.resize(val, host_width, HostWidth::W64)?;
                let words = self.split_dwords(wide)?;
                let count = if self.wave64 { 2 } else { 1 };
                let code = if state == WaveState::Exec { EXEC_LO } else { VCC_LO };
                return self.set_sgprs(code, &words[..count]);
            }
            WaveState::Scc => {
                let val = self.resize(val, host_width, HostWidth::W32)?;
                self.record_write(SCC);
                self.scalars.scc = Some(CachedScalar { val, written: true });
                return Ok(());
            }
            WaveState::ExecLo => EXEC_LO,
            WaveState::ExecHi => EXEC_LO + 1,
            WaveState::VccLo => VCC_LO,
            WaveState::VccHi => VCC_LO + 1,
            WaveState::M0 => M0,
        };
        let val = self.resize(val, host_width, HostWidth::W32)?;
        self.set_sgprs(code, &[val])
    }

    /// Reads dword `k` of a source as a uniform value.
    pub fn source_word(&mut self, source: Source, k: usize) -> R<Val> {
        let constant = |e: &Self, at: usize| {
            e.context.program.consts.get(at).map(|v| Val::Const(*v as u128)).ok_or(Bug("a constant"))
        };
        Ok(match source.decode() {
            DecodedSource::Scalar(at) if at < SGPRS => {
                if k > 0 && at == NULL || at + k >= SGPRS {
                    return Ok(Val::Const(0));
                }
                self.sgpr(at + k)?
            }
            DecodedSource::Scalar(at) => {
                if at + k >= SGPRS + SCALAR_CONSTS {
                    return Err(Bug("a constant"));
                }
                constant(self, at + k - SGPRS)?
            }
            DecodedSource::Pool(of) => {
                let at = self.exts[self.env.op(self.ops).ext as usize].pool[of] as usize + k;
                Val::Const(self.context.program.consts.get(at).copied().unwrap_or(0) as u128)
            }
            DecodedSource::Scc if k == 0 => {
                let v = self.wave_state(State::Scc)?;
                Val::Uniform(self.uniform(v, HostWidth::W32)?)
            }
            decoded @ (DecodedSource::Vccz | DecodedSource::Execz) if k == 0 => {
                let mask =
                    self.mask_register(if decoded == DecodedSource::Vccz { VCC_LO } else { EXEC_LO })?;
                let mask = self.b.uniform(mask, self.b.mask_width())?;
                Val::Uniform(self.b.f.compare(Cc::Eq, width(self.mask_width()), mask, 0))
            }
            DecodedSource::SharedBase if k > 0 => Val::Const((SHARED_BASE >> 32) as u128),
            DecodedSource::PrivateBase if k > 0 => Val::Const((PRIVATE_BASE >> 32) as u128),
            DecodedSource::Limit if k == 0 => Val::Const(u32::MAX as u128),
            DecodedSource::Scc
            | DecodedSource::Vccz
            | DecodedSource::Execz
            | DecodedSource::SharedBase
            | DecodedSource::PrivateBase
            | DecodedSource::Limit
            | DecodedSource::Vector(_) => Val::Const(0),
        })
    }

    /// Reads an operand of an operation that executes once per wave.
    pub fn operand(&mut self, slot: Slot, dwords: u32, how: Scalar) -> R<Val> {
        let op = self.env.op(self.ops);
        let source = match slot {
            Slot::Source(at) => op.src[at],
            Slot::ScalarResult => Source::sgpr(op.d),
            Slot::VectorResult => return Err(Bug("a result")),
            Slot::Fifth => return Err(Bug("a fifth source")),
        };
        if matches!(how, Scalar::Modified(_)) && op.flags & Op::MODIFY != 0 || dwords > 2 {
            return Err(Bug("a modifier"));
        }
        let low = self.source_word(source, 0)?;
        if dwords == 1 {
            return Ok(low);
        }
        let high = self.source_word(source, 1)?;
        self.join_dwords(low, high)
    }

    /// Reads an operand's register in one lane of the wave.
    pub fn read_lane_operand(&mut self, position: usize, lane: Val, index: u32) -> R<Val> {
        let source = self.env.op(self.ops).src[position];
        let DecodedSource::Vector(register) = source.decode() else {
            return self.source_word(source, index as usize);
        };
        if register + index as usize >= ALL_VGPRS {
            return Ok(Val::Const(0));
        }
        if self.packet.is_some() {
            return Err(Bug("a read of another lane"));
        }
        self.close_run()?;
        let lane = self.uniform(lane, HostWidth::W32)?;
        let lanes = if self.wave64 { 64 } else { 32 };
        let inside = self.b.f.compare(Cc::LtU, Width::W32, lane, lanes);
        let address = self.lane_address(lane);
        let register = register + index as usize;
        let v = self.b.f.load(Size::B4, address, (register * LANE_VEC_BYTES) as i32);
        let zero = self.b.f.iconst(0);
        Ok(Val::Uniform(self.b.f.select(inside, v, zero)))
    }

    /// Returns the address of a lane in the first register.
    pub fn lane_address(&mut self, lane: V) -> V {
        let own = self.b.f.int2(Int2::And, Width::W32, lane, 31);
        let mut address = self.b.f.int2(Int2::Shl, Width::W64, own, 2);
        if self.wave64 {
            let half = self.b.f.int2(Int2::Shr, Width::W32, lane, 5);
            let half = self.b.f.int2(Int2::And, Width::W32, half, 1);
            let half = self.b.f.int2(Int2::Mul, Width::W64, half, HALF_BYTES as i32);
            address = self.b.f.int2(Int2::Add, Width::W64, address, half);
        }
        self.b.f.int2(Int2::Add, Width::W64, self.b.vectors, address)
    }
}
