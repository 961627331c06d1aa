//! Records of accesses, and the shadow cells that hold them.

use super::DWORD;

/// One access to a dword.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// Number of the wave, counted from 1; 0 if the record is empty.
    pub wave: u32,
    /// The wave's epoch at the access.
    pub epoch: u32,
    /// Byte offset of the instruction.
    pub pc: u32,
    /// The accessed bytes of the dword, as a mask.
    pub mask: u8,
    /// Whether the access is atomic. Atomics do not race with each other.
    pub atomic: bool,
    /// The lane; `u8::MAX` for scalar memory and for several lanes. In a cell of several dwords: the lane of
    /// the first byte.
    pub lane: u8,
    /// In a cell of several dwords: bytes per lane, where consecutive lanes access consecutive bytes; 0 if a
    /// single lane accesses all of them.
    pub lane_bytes: u8,
}

impl Record {
    /// Returns whether this store stays recorded when its wave stores again: an atomic of another wave races with a plain
    /// store, but not with an atomic behind it.
    #[inline(always)]
    pub(super) fn outlasts(&self, store: &Record) -> bool {
        store.atomic && !self.atomic
    }

    /// Returns the record for the part that begins at byte `offset`. A dword belongs to one lane.
    #[inline]
    pub(super) fn for_part(self, offset: u64, size: u64) -> Record {
        match self.lane_bytes {
            0 => self,
            bytes => Record {
                lane: self.lane + (offset / bytes as u64) as u8,
                lane_bytes: if size == DWORD { 0 } else { bytes },
                ..self
            },
        }
    }
}

/// The last writers and readers of the bytes of a cell, the older one first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cell {
    /// The last two stores; missing ones are zero.
    pub writes: [Record; 2],
    /// The last two loads, likewise.
    pub reads: [Record; 2],
}

impl Cell {
    /// Returns an earlier access that races with this one, and whether it was a store.
    #[inline(always)]
    pub(super) fn find_race(
        &self,
        me: &Record,
        write: bool,
        ordered: &impl Fn(&Record) -> bool,
    ) -> Option<(Record, bool)> {
        let races = |r: &Record| {
            r.wave != 0
                && r.wave != me.wave
                && r.mask & me.mask != 0
                && !(r.atomic && me.atomic)
                && !ordered(r)
        };
        let found = self.writes.iter().find(|r| races(r)).map(|r| (*r, true));
        if !write {
            return found;
        }
        found.or_else(|| self.reads.iter().find(|r| races(r)).map(|r| (*r, false)))
    }

    #[inline(always)]
    pub(super) fn record(
        &mut self,
        me: Record,
        write: bool,
        ordered: &impl Fn(&Record) -> bool,
        superseded: impl FnOnce([Record; 2]),
    ) {
        // A record of the same wave, or one that happened before, is superseded.
        let is_obsolete =
            |r: &Record| r.wave == 0 || (r.wave == me.wave || ordered(r)) && r.mask & !me.mask == 0;
        if write && self.reads.iter().all(is_obsolete) {
            // Every access that races with those loads races with this store, too.
            if self.reads.iter().any(|r| r.wave != 0 && r.wave != me.wave) {
                superseded(self.reads);
            }
            self.reads = Default::default();
            if self.writes.iter().all(|r| is_obsolete(r) && !(r.wave == me.wave && r.outlasts(&me))) {
                self.writes = [me, Record::default()];
                return;
            }
        }
        let keeps_plain = write && me.atomic;
        let list = if write { &mut self.writes } else { &mut self.reads };
        // Lanes of one instruction may access the dword byte by byte.
        let mut me = me;
        let same =
            |r: &&Record| (r.wave, r.epoch, r.pc) == (me.wave, me.epoch, me.pc) && r.mask & !me.mask != 0;
        if let Some(r) = list.iter().find(same).copied() {
            me.mask |= r.mask;
            me.lane = if me.lane == r.lane { me.lane } else { u8::MAX };
        }
        // A record of other bytes stays if there is room.
        let is_obsolete = |r: &Record| {
            let precedes = if r.wave == me.wave { !(keeps_plain && r.outlasts(&me)) } else { ordered(r) };
            r.wave == 0 || precedes && r.mask & !me.mask == 0
        };
        let slot = list.iter().position(is_obsolete);
        match slot.or_else(|| list.iter().position(|r| r.wave == me.wave)) {
            Some(slot) => list[slot] = me,
            None => {
                list[0] = list[1];
                list[1] = me;
            }
        }
    }

    /// Records an atomic's load and its store of all bytes of a dword, as two calls of [`Cell::record`] would: in cells
    /// where all accesses of other waves are atomics, it races with none, so only the places of the records have to be
    /// found. Returns false, and records nothing, if another wave has a plain access, or if a load is superseded that
    /// `keeps_superseded` has to know.
    #[inline(always)]
    pub(super) fn record_atomic(
        &mut self,
        me: &Record,
        ordered: &impl Fn(&Record) -> bool,
        keeps_superseded: bool,
    ) -> bool {
        let Cell { writes: [write, write_2], reads: [read, read_2] } = self;
        let mine = |r: &Record| r.wave == 0 || r.wave == me.wave;
        let may_race = |r: &Record| !r.atomic && !mine(r);
        if may_race(write) | may_race(write_2) | may_race(read) | may_race(read_2) {
            return false;
        }
        let precedes = |r: &Record| mine(r) || ordered(r);
        let loads = [precedes(read), precedes(read_2)];
        let gives_way = |r: &Record| precedes(r) && !(r.wave == me.wave && r.outlasts(me));
        let stores = [gives_way(write), gives_way(write_2)];
        if loads == [true; 2] {
            if keeps_superseded && !(mine(read) && mine(read_2)) {
                return false;
            }
            self.reads = Default::default();
            if stores == [true; 2] {
                self.writes = [*me, Record::default()];
                return true;
            }
        } else if loads[0] || loads[1] {
            // At most one gives way, so there is no choice.
            self.reads[loads[1] as usize] = *me;
        } else {
            self.reads = [self.reads[1], *me];
        }
        let slot = match stores {
            [true, _] => Some(0),
            [_, true] => Some(1),
            _ => self.writes.iter().position(|r| r.wave == me.wave),
        };
        match slot {
            Some(slot) => self.writes[slot] = *me,
            None => self.writes = [self.writes[1], *me],
        }
        true
    }

    /// Returns whether no other wave has a record here, and there is at most one store.
    #[inline(always)]
    pub(super) fn is_exclusive_to(&self, wave: u32) -> bool {
        let mine = |r: &Record| (r.wave == 0) | (r.wave == wave);
        let [write, second] = &self.writes;
        (second.wave == 0) & mine(write) & mine(&self.reads[0]) & mine(&self.reads[1])
    }

    /// Records an access to all bytes of a cell in which no other wave has a record.
    #[inline(always)]
    pub(super) fn replace(&mut self, me: Record, write: bool) {
        if write {
            self.reads[0].wave = 0;
            self.reads[1].wave = 0;
            self.writes[0] = me;
        } else {
            self.reads[0] = me;
        }
    }

    /// Fast path: compares and records an access to all bytes, if every access that it could race with
    /// happened before. Otherwise returns false and records nothing.
    #[inline(always)]
    pub(super) fn record_if_ordered(
        &mut self,
        me: &Record,
        write: bool,
        ordered: &impl Fn(&Record) -> bool,
        superseded: impl FnOnce([Record; 2]),
    ) -> bool {
        let mine = |r: &Record| r.wave == 0 || r.wave == me.wave;
        let last = &self.writes[0];
        let precedes =
            if mine(last) { last.wave == 0 || !(write && last.outlasts(me)) } else { ordered(last) };
        if self.writes[1].wave != 0 || !precedes {
            return false;
        }
        if !write {
            let slot = match &self.reads {
                [first, _] if mine(first) => 0,
                [_, second] if mine(second) => 1,
                [first, _] if ordered(first) => 0,
                [_, second] if ordered(second) => 1,
                _ => {
                    self.reads[0] = self.reads[1];
                    1
                }
            };
            self.reads[slot] = *me;
            return true;
        }
        let [first, second] = self.reads;
        if !(mine(&first) && mine(&second)) {
            if !((mine(&first) || ordered(&first)) && (mine(&second) || ordered(&second))) {
                return false;
            }
            superseded(self.reads);
        }
        self.reads[0].wave = 0;
        self.reads[1].wave = 0;
        self.writes[0] = *me;
        true
    }

    #[inline]
    pub(super) fn for_part(&self, offset: u64, size: u64) -> Cell {
        // Written out, since the compiler does not inline `map` here.
        let ([w, w2], [r, r2]) = (self.writes, self.reads);
        let part = |r: Record| r.for_part(offset, size);
        Cell { writes: [part(w), part(w2)], reads: [part(r), part(r2)] }
    }
}
