//! Scalar memory: uniform loads. Each finds its range as vector loads do, and bails out if its address is in
//! none.

use crate::arith::builder::{Bug, R};
use crate::arith::val::Val;
use crate::frame::BAILOUT;
use crate::ranges::{FIRST_SCALAR_RANGE, SCALAR_RANGES};
use crate::state::emitter::Emitter;
use crate::state::env::ScalarRange;
use isa_lower::ir::{HostWidth, Op2, Stmt, Value, ValueKind};
use isa_spec::pcode::ir::LocalId;
use wavesim_x64::inst::{Inst, Int2, Label, Size, V, Width};

impl Emitter<'_> {
    /// Unrolls a loop with a constant range.
    pub fn unrolled_loop(
        &mut self,
        var: LocalId,
        host_width: HostWidth,
        [first, last]: [u32; 2],
        body: &[Stmt],
    ) -> R<()> {
        let before = self.env.remaining;
        self.facts.repeated = Some(Vec::new());
        for n in first..=last {
            // The first iteration resolves the memory that all of them load.
            self.env.remaining = (last - n + 1) as u64;
            self.env.locals.insert(var, (Val::Const(n as u128), host_width));
            self.stmts(body)?;
        }
        self.env.remaining = before;
        self.facts.repeated = None;
        Ok(())
    }

    /// Loads at most as many bytes as an integer has.
    pub fn scalar_load(&mut self, addr: &Value, bytes: u32) -> R<Val> {
        let size = match bytes {
            1 => Size::B1,
            2 => Size::B2,
            4 => Size::B4,
            8 => Size::B8,
            _ => return Err(Bug("a wide load")),
        };
        let (host, disp) = self.scalar_address(addr, bytes as u64)?;
        Ok(Val::Uniform(self.b.f.load(size, host, disp)))
    }

    /// Loads consecutive SGPRs.
    pub fn scalar_load_dwords(&mut self, addr: &Value, dwords: u32) -> R<Vec<Val>> {
        let (host, disp) = self.scalar_address(addr, 4 * dwords as u64)?;
        Ok((0..dwords as i32).map(|k| Val::Uniform(self.b.f.load(Size::B4, host, disp + 4 * k))).collect())
    }

    /// Returns the host address and displacement of bytes at an address.
    fn scalar_address(&mut self, addr: &Value, bytes: u64) -> R<(V, i32)> {
        if self.run.has_store() {
            self.close_run()?;
        }
        let (base, offset) = match &addr.kind {
            ValueKind::Op2(Op2::Add, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                match b {
                    Val::Const(offset) => (a, offset as u64),
                    b => (self.op2(Op2::Add, HostWidth::W64, a, b)?, 0),
                }
            }
            _ => (self.value(addr)?, 0),
        };
        let inside = |found: &ScalarRange| {
            found.base == base && (found.from..found.end).contains(&offset) && found.end - offset >= bytes
        };
        if let Some(found) = self.env.found.filter(inside) {
            return Ok((found.host, (offset - found.from) as i32));
        }
        let all = bytes * self.env.remaining;
        let address = self.op2(Op2::Add, HostWidth::W64, base, Val::Const(offset as u128))?;
        let address = self.uniform(address, HostWidth::W64)?;
        let bailout = self.b.f.label();
        // Addresses with the same base are mostly in the same range.
        let key = self.env.op(self.ops).src.map(|source| source.number());
        let at = self
            .addresses
            .scalar_bases
            .iter()
            .position(|other| *other == key)
            .unwrap_or(self.addresses.scalar_bases.len());
        if at == self.addresses.scalar_bases.len() {
            self.addresses.scalar_bases.push(key);
        }
        let (range, _) =
            self.find_range(FIRST_SCALAR_RANGE + at % SCALAR_RANGES, all as i32, address, bailout);
        let host = self.b.f.int2(Int2::Add, Width::W64, range.host, address);
        let host = self.b.f.int2(Int2::Sub, Width::W64, host, range.base);
        self.bail_out_here(bailout);
        self.env.found = Some(ScalarRange { base, from: offset, end: offset.saturating_add(all), host });
        Ok((host, 0))
    }

    /// Defines a label that bails out before everything that has not been executed yet: this operation, and
    /// the pending run.
    fn bail_out_here(&mut self, bailout: Label) {
        let join = self.b.f.label();
        self.b.f.push(Inst::Jump(join));
        self.b.f.push(Inst::Label(bailout));
        if let Some(sequences) = &self.sequences.active {
            let abandon = sequences.abandon;
            self.b.f.push(Inst::Jump(abandon));
            self.b.f.push(Inst::Label(join));
            return;
        }
        let (at, scalars) = self.run.start().unwrap_or_else(|| (self.env.op_index, self.scalars.clone()));
        let after = std::mem::replace(&mut self.scalars, scalars);
        let zeros = self.daz;
        self.flush_scalars();
        self.exit_at(at, BAILOUT);
        (self.scalars, self.daz) = (after, zeros);
        self.b.f.push(Inst::Label(join));
    }
}
