//! Loads and stores in a run: where lanes are in memory is found out before its first packet.

use super::packet::Packet;
use super::run::{Run, Words};
use super::val::Val;
use super::{Emitter, R, Unsupported};
use crate::access::{Access, locate, scatter};
use crate::frame::at;
use isa_lower::ir::{Block, Fast, Handlers, Hold, Op2, Slot, Value, ValueKind, Var};
use isa_lower::lower::operands::slot;
use isa_lower::visit::each_in;
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{Op, Place};
use wavesim_machine::state::wave::ALL_VGPRS;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Inst, Int2, Label, Size, V, Width};

/// What an operation moves between registers and memory.
pub struct Moved {
    pub accesses: Vec<Access>,
    /// Words of each lane.
    pub dwords: u8,
    /// The first register of a store.
    pub store: Option<u16>,
}

impl Emitter<'_> {
    /// The accesses of a load or store.
    pub fn moved(&mut self, handlers: &Handlers, op: &Op) -> R<Moved> {
        let Fast::Block(block) = &handlers.fast else { return Err(Unsupported("an access")) };
        let vector = |role: Role, words: usize| {
            let Slot::Source(at) = slot(role) else { return Err(Unsupported("an address")) };
            match op.src[at].place() {
                Place::Vector(first) if first + words <= ALL_VGPRS => Ok(first as u16),
                _ => Err(Unsupported("an address that is no register")),
            }
        };
        let (count, store, dwords, lds, offsets) = match block {
            Block::Global { offsets, store, dwords, .. } => (1, *store, *dwords, false, *offsets),
            Block::Lds { lanes, plus, store, dwords } => (plus.len(), *store, *dwords, true, *lanes),
        };
        let wide = self.is_wide(block, op)?;
        let register = vector(offsets, 1 + wide as usize)?;
        let data = if store { Some(vector(Role::Data, dwords as usize)?) } else { None };
        let dwords = dwords as u8;
        let own = &self.ops[self.env.at as usize];
        let access = Access { register, wide, store, lds, dwords, op: own };
        Ok(Moved { accesses: vec![access; count], dwords, store: data })
    }

    /// Whether addresses are 64 bits of each lane.
    fn is_wide(&mut self, block: &Block, op: &Op) -> R<bool> {
        let Block::Global { unless: Some(unless), wide, .. } = block else { return Ok(false) };
        match (self.wave_value(unless, op)?, wide) {
            (Val::Known(0), _) => Ok(false),
            (Val::Known(_), Some(_)) => Ok(true),
            _ => Err(Unsupported("an address")),
        }
    }

    /// A value of the wave in the address of a lane.
    fn wave_value(&mut self, value: &Value, op: &Op) -> R<Val> {
        let mut roles = Vec::new();
        each_in(value, &mut |v| match v.kind {
            ValueKind::Var(Var::Operand(role)) => roles.push(role),
            _ => {}
        });
        for role in roles {
            let Slot::Source(at) = slot(role) else { return Err(Unsupported("an address")) };
            let (low, high) = (self.source_word(op.src[at], 0)?, self.source_word(op.src[at], 1)?);
            let pair = self.pair(low, high)?;
            self.env.operands.insert(role, (pair, Hold::W64));
        }
        self.value(value)
    }

    /// What the wave adds to the lanes' part of the address of the operation's `k`-th access.
    pub fn base_of(&mut self, handlers: &Handlers, op: &Op, k: usize) -> R<Val> {
        let Fast::Block(block) = &handlers.fast else { return Err(Unsupported("an access")) };
        let (terms, hold) = match block {
            Block::Global { wide: Some(terms), .. } if self.is_wide(block, op)? => (&terms[..], Hold::W64),
            Block::Global { base, .. } => (&base[..], Hold::W64),
            Block::Lds { plus, .. } => (&plus[k..k + 1], Hold::W32),
        };
        let mut sum = Val::Known(0);
        for term in terms {
            let v = self.wave_value(term, op)?;
            let v = self.resized(v, term.hold, hold)?;
            sum = self.op2(Op2::Add, hold, sum, v)?;
        }
        self.resized(sum, hold, Hold::W64)
    }

    /// Finds out where the accesses of a run are, or refuses it.
    pub fn locate(&mut self, run: &Run, exec: V, refused: Label) -> R<Vec<V>> {
        if run.accesses.is_empty() {
            return Ok(Vec::new());
        }
        self.f.store(Size::B8, self.frame, at::EXEC, exec);
        for (k, (_, base)) in run.accesses.iter().enumerate() {
            let base = self.one(*base, Hold::W64)?;
            self.f.store(Size::B8, self.frame, at::BASES + 8 * k as i32, base);
        }
        let list: Vec<Access> = run.accesses.iter().map(|(access, _)| *access).collect();
        let list = self.operations.keep_accesses(&list);
        let found = self.call_with_list(locate as *const (), list);
        self.unless(found, refused);
        let place = |k: usize| at::PLACES + 8 * k as i32;
        Ok((0..run.accesses.len()).map(|k| self.f.load(Size::B8, self.frame, place(k))).collect())
    }

    /// Brings what was stored for lanes that are apart to their places.
    pub fn scatter(&mut self, run: &Run, places: &[V]) {
        let Some((access, _)) = run.accesses.last().filter(|(access, _)| access.store) else { return };
        let on = self.f.label();
        let scattered = self.f.load(Size::B4, self.frame, at::SCATTERED);
        self.f.branch(Cc::Eq, Width::W32, scattered, 0, on);
        let (list, _) = self.operations.keep_accesses(&[*access]);
        self.call_with_list(scatter as *const (), (list, places.len() - 1));
        self.f.push(Inst::Label(on));
    }

    /// Moves the words of a packet's lanes.
    pub fn move_words(&mut self, words: &Words, d: u16, places: &[V], packet: &mut Packet) -> R<()> {
        let n = self.packet.ok_or(Unsupported("a packet"))?;
        let dwords = words.dwords as usize;
        let distance = self.f.int2(Int2::Shl, Width::W64, n, 2 + dwords.ilog2() as i32);
        for k in 0..words.count {
            let place = self.f.int2(Int2::Add, Width::W64, places[words.first + k], distance);
            if words.data.is_empty() {
                for (word, v) in self.loaded(place, dwords).into_iter().enumerate() {
                    packet.registers.insert(d + (k * dwords + word) as u16, (v, true));
                }
            } else {
                let mut rows = Vec::new();
                for data in &words.data {
                    let v = self.register(packet, *data);
                    rows.push(self.exact(v));
                }
                self.stored(place, &rows);
            }
        }
        Ok(())
    }

    /// The words of eight lanes, each lane's together, as one vector for each word.
    fn loaded(&mut self, place: V, dwords: usize) -> Vec<V> {
        match dwords {
            1 => vec![self.f.vload(place, 0, false)],
            2 => {
                // Lanes 0, 1, 4, 5 and 2, 3, 6, 7, by halves.
                let (a, b) = (self.load_halves(place, 0, 32), self.load_halves(place, 16, 48));
                let take = |e: &mut Self, which| {
                    e.f.rvm(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, a, b, Some(which))
                };
                vec![take(self, 0x88), take(self, 0xdd)]
            }
            _ => {
                let rows = [0, 1, 2, 3].map(|k| self.load_halves(place, 16 * k, 16 * (k + 4)));
                self.transposed(rows).to_vec()
            }
        }
    }

    /// The reverse of [`Emitter::loaded`].
    fn stored(&mut self, place: V, rows: &[V]) {
        match *rows {
            [v] => self.f.vstore(place, 0, v),
            [low, high] => {
                let a = self.f.rvm(Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, low, high, None);
                let b = self.f.rvm(Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256, low, high, None);
                self.store_halves(a, place, 0, 32);
                self.store_halves(b, place, 16, 48);
            }
            [a, b, c, d] => {
                for (k, v) in (0..).zip(self.transposed([a, b, c, d])) {
                    self.store_halves(v, place, 16 * k, 16 * (k + 4));
                }
            }
            _ => {}
        }
    }

    /// Four by four words, in either half.
    fn transposed(&mut self, [a, b, c, d]: [V; 4]) -> [V; 4] {
        let (low, high) = (Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256);
        let (low2, high2) = (Code::VEX_Vpunpcklqdq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhqdq_ymm_ymm_ymmm256);
        let mut pair = |code, a, b| self.f.rvm(code, a, b, None);
        let (ab, cd, ab2, cd2) = (pair(low, a, b), pair(low, c, d), pair(high, a, b), pair(high, c, d));
        [pair(low2, ab, cd), pair(high2, ab, cd), pair(low2, ab2, cd2), pair(high2, ab2, cd2)]
    }
}
