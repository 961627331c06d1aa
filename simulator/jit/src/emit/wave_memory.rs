//! Scalar memory: uniform loads. Each finds its range as vector loads do, and bails out if its address is in
//! none.

use super::val::Val;
use super::{Emitter, R, Unsupported};
use crate::access::{WAVE_FIRST, WAVE_RANGES};
use crate::frame::REFUSED;
use crate::unrolled::{bounds, wide_load};
use isa_lower::ir::{Hold, Op2, Stmt, Value, ValueKind};
use isa_spec::pcode::ir::LocalId;
use wavesim_x64::inst::{Inst, Int2, Label, Size, V, Width};

/// Host memory that an operation has resolved.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The base that offsets are relative to.
    base: Val,
    from: u64,
    end: u64,
    /// The host address of offset `from`.
    host: V,
}

impl Emitter<'_> {
    /// Unrolls a loop with a constant range.
    pub fn counted(&mut self, var: LocalId, from: &Value, to: &Value, body: &[Stmt]) -> R<()> {
        let (first, last) = bounds(from, to).ok_or(Unsupported("a loop"))?;
        let before = self.env.rounds;
        for n in first..=last {
            // The first iteration resolves the memory that all of them load.
            self.env.rounds = (last - n + 1) as u64;
            self.env.locals.insert(var, (Val::Known(n as u128), from.hold));
            self.stmts(body)?;
        }
        self.env.rounds = before;
        Ok(())
    }

    /// Loads at most as many bytes as an integer has.
    pub fn wave_load(&mut self, addr: &Value, bytes: u32) -> R<Val> {
        let size = match bytes {
            1 => Size::B1,
            2 => Size::B2,
            4 => Size::B4,
            8 => Size::B8,
            _ => return Err(Unsupported("a wide load")),
        };
        let (host, disp) = self.wave_place(addr, bytes as u64)?;
        Ok(Val::One(self.f.load(size, host, disp)))
    }

    /// Loads consecutive SGPRs, if a value is a load of them.
    pub fn wave_words(&mut self, value: &Value, dwords: u32) -> R<Vec<Val>> {
        let addr = wide_load(value, dwords).ok_or(Unsupported("a wide result"))?;
        let (host, disp) = self.wave_place(addr, 4 * dwords as u64)?;
        Ok((0..dwords as i32).map(|k| Val::One(self.f.load(Size::B4, host, disp + 4 * k))).collect())
    }

    /// Returns the host address and displacement of bytes at an address.
    fn wave_place(&mut self, addr: &Value, bytes: u64) -> R<(V, i32)> {
        if self.run.stores() {
            self.close_run()?;
        }
        let (base, offset) = match &addr.kind {
            ValueKind::Op2(Op2::Add, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                match b {
                    Val::Known(offset) => (a, offset as u64),
                    b => (self.op2(Op2::Add, Hold::W64, a, b)?, 0),
                }
            }
            _ => (self.value(addr)?, 0),
        };
        let inside = |found: &Found| {
            found.base == base && (found.from..found.end).contains(&offset) && found.end - offset >= bytes
        };
        if let Some(found) = self.env.found.filter(inside) {
            return Ok((found.host, (offset - found.from) as i32));
        }
        let all = bytes * self.env.rounds;
        let address = self.op2(Op2::Add, Hold::W64, base, Val::Known(offset as u128))?;
        let address = self.one(address, Hold::W64)?;
        let refused = self.f.label();
        // Addresses with the same base are mostly in the same range.
        let key = self.env.op(self.ops).src.map(|source| source.number());
        let at = self.bases.iter().position(|other| *other == key).unwrap_or(self.bases.len());
        if at == self.bases.len() {
            self.bases.push(key);
        }
        let (range, _) = self.in_range(WAVE_FIRST + at % WAVE_RANGES, all as i32, address, refused);
        let host = self.f.int2(Int2::Add, Width::W64, range.host, address);
        let host = self.f.int2(Int2::Sub, Width::W64, host, range.base);
        self.refuse_here(refused);
        self.env.found = Some(Found { base, from: offset, end: offset.saturating_add(all), host });
        Ok((host, 0))
    }

    /// Defines a label that bails out before everything that has not been executed yet: this operation, and
    /// the pending run.
    fn refuse_here(&mut self, refused: Label) {
        let on = self.f.label();
        self.f.push(Inst::Jump(on));
        self.f.push(Inst::Label(refused));
        let (at, scalars) = self.run.start().unwrap_or_else(|| (self.env.at, self.scalars.clone()));
        let after = std::mem::replace(&mut self.scalars, scalars);
        let zeros = self.zeros;
        self.flush_scalars();
        self.stop_at(at, REFUSED);
        (self.scalars, self.zeros) = (after, zeros);
        self.f.push(Inst::Label(on));
    }
}
