//! The bytes of global memory that have been written, for regions whose contents are undefined at first. All
//! other memory counts as written.

use super::bitmap::Bitmap;
use std::collections::BTreeMap;
use std::ops::Range;

/// The written bytes of some regions.
#[derive(Debug, Default, Clone)]
pub struct Written {
    /// By address of the first byte.
    regions: BTreeMap<u64, Tracked>,
}

#[derive(Debug, Clone)]
struct Tracked {
    len: u64,
    bits: Bitmap,
    /// Number of bytes that have not been written; an upper bound.
    missing: u64,
}

impl Tracked {
    fn new(len: u64) -> Tracked {
        Tracked { len, bits: Bitmap::new(len), missing: len }
    }

    fn write(&mut self, address: u64, len: u64) {
        if self.missing != 0 && !self.bits.all(address, len) {
            self.missing -= self.bits.count_clear(address, len);
            self.bits.set(address, len, true);
        }
    }

    fn clear(&mut self, address: u64, len: u64) {
        self.missing += len - self.bits.count_clear(address, len);
        self.bits.set(address, len, false);
    }
}

impl Written {
    /// Begins to track a region, of which nothing has been written. It must not overlap other tracked ones.
    pub fn track(&mut self, base: u64, len: u64) {
        self.regions.insert(base, Tracked::new(len));
    }

    /// Returns whether any byte of a range is tracked.
    pub fn tracks(&self, base: u64, len: u64) -> bool {
        self.parts(base, len).next().is_some()
    }

    /// Ends the tracking of the region that begins at an address.
    pub fn forget(&mut self, base: u64) {
        self.regions.remove(&base);
    }

    /// Ends the tracking of all regions: something has written that is not known.
    pub fn forget_all(&mut self) {
        self.regions.clear();
    }

    /// Returns whether no region is tracked.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Returns whether all bytes of a range have been written or are not tracked.
    pub fn is_complete(&self, base: u64, len: u64) -> bool {
        self.parts(base, len).all(|(at, part)| self.regions[&at].missing == 0 || part.is_empty())
    }

    /// Records a store.
    pub fn write(&mut self, address: u64, len: u64) {
        for (base, part) in self.parts(address, len).collect::<Vec<_>>() {
            if let Some(region) = self.regions.get_mut(&base) {
                region.write(part.start - base, part.end - part.start);
            }
        }
    }

    /// Records a copy: undefined bytes remain undefined.
    pub fn copy(&mut self, to: u64, from: u64, len: u64) {
        if self.regions.is_empty() {
            return;
        }
        let undefined: Vec<Range<u64>> = self.undefined(from, len);
        self.write(to, len);
        for range in undefined {
            let (start, len) = (range.start - from + to, range.end - range.start);
            for (base, part) in self.parts(start, len).collect::<Vec<_>>() {
                if let Some(region) = self.regions.get_mut(&base) {
                    region.clear(part.start - base, part.end - part.start);
                }
            }
        }
    }

    /// Returns whether all bytes of an access have been written or are not tracked.
    pub fn is_written(&self, address: u64, len: u64) -> bool {
        self.parts(address, len).all(|(base, part)| {
            let region = &self.regions[&base];
            region.missing == 0 || region.bits.all(part.start - base, part.end - part.start)
        })
    }

    /// Returns a mask of the bytes of an access of at most 64 bytes that have not been written.
    pub fn unwritten(&self, address: u64, len: u64) -> u64 {
        let mut mask = 0;
        for (base, part) in self.parts(address, len.min(64)) {
            let region = &self.regions[&base];
            if region.missing != 0 {
                let clear = |at: &u64| !region.bits.all(at - base, 1);
                mask |= part.filter(clear).fold(0, |mask, at| mask | 1 << (at - address));
            }
        }
        mask
    }

    /// Returns the ranges of a range that have not been written.
    fn undefined(&self, address: u64, len: u64) -> Vec<Range<u64>> {
        let mut out: Vec<Range<u64>> = Vec::new();
        for (base, part) in self.parts(address, len) {
            let region = &self.regions[&base];
            if region.missing == 0 {
                continue;
            }
            for at in part.filter(|at| !region.bits.all(at - base, 1)) {
                match out.last_mut() {
                    Some(last) if last.end == at => last.end += 1,
                    _ => out.push(at..at + 1),
                }
            }
        }
        out
    }

    /// Returns the tracked regions that a range overlaps, each with the overlap.
    fn parts(&self, address: u64, len: u64) -> impl Iterator<Item = (u64, Range<u64>)> + '_ {
        let end = address.saturating_add(len);
        let first = self.regions.range(..=address).next_back().map_or(address, |(base, _)| *base);
        let overlap = move |(base, region): (&u64, &Tracked)| {
            let part = address.max(*base)..end.min(base + region.len);
            (part.start < part.end).then_some((*base, part))
        };
        self.regions.range(first..end.max(first)).filter_map(overlap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_undefined_until_they_are_written() {
        let mut written = Written::default();
        written.track(100, 50);
        written.track(200, 50);
        assert_eq!(written.unwritten(100, 4), 0b1111);
        written.write(101, 2);
        assert_eq!(written.unwritten(100, 4), 0b1001);
        assert!(written.is_written(101, 2) && !written.is_written(101, 3) && written.is_written(150, 9));
        // Untracked memory counts as written.
        assert_eq!((written.unwritten(148, 4), written.unwritten(160, 4)), (0b0011, 0));
        // A copy moves the undefined bytes.
        written.copy(200, 100, 4);
        assert_eq!(written.unwritten(200, 8), 0b1111_1001);
        written.copy(100, 10, 50);
        assert!(written.is_complete(100, 50) && !written.is_complete(100, 150));
        written.copy(200, 100, 50);
        assert!(written.is_complete(200, 50));
        written.copy(100, 300, 1);
        written.forget(200);
        assert!(written.is_complete(0, 1000));
    }
}
