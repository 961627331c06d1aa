//! Shadow memory of one bit per byte.

/// A bitmap with a bit per byte.
#[derive(Debug, Default, Clone)]
pub struct Bitmap(pub Vec<u64>);

impl Bitmap {
    /// Returns a bitmap for a number of bytes, with all bits clear.
    pub fn new(bytes: u64) -> Bitmap {
        Bitmap(vec![0; bytes.div_ceil(64) as usize])
    }

    /// Returns the words of a range, each with a mask of the bits in the range.
    fn words(position: u64, len: u64) -> impl Iterator<Item = (usize, u64)> {
        let end = position + len;
        (position / 64..end.div_ceil(64)).map(move |word| {
            let (from, to) = (position.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
            (word as usize, u64::MAX >> (64 - (to - from)) << from)
        })
    }

    /// Returns the range as a mask of a single word, if it falls into one; most ranges do.
    #[inline(always)]
    fn one_word(position: u64, len: u64) -> Option<(usize, u64)> {
        let from = position % 64;
        (len != 0 && from + len <= 64).then(|| ((position / 64) as usize, u64::MAX >> (64 - len) << from))
    }

    /// Sets or clears the bits of a range.
    #[inline(always)]
    pub fn set(&mut self, position: u64, len: u64, on: bool) {
        match Bitmap::one_word(position, len) {
            Some((word, bits)) => self.set_word(word, bits, on),
            None => Bitmap::words(position, len).for_each(|(word, bits)| self.set_word(word, bits, on)),
        }
    }

    #[inline(always)]
    fn set_word(&mut self, word: usize, bits: u64, on: bool) {
        if let Some(word) = self.0.get_mut(word) {
            *word = if on { *word | bits } else { *word & !bits };
        }
    }

    /// Returns whether all bits of the range are set. Bits beyond the end count as set.
    #[inline(always)]
    pub fn all(&self, position: u64, len: u64) -> bool {
        match Bitmap::one_word(position, len) {
            Some((word, bits)) => self.0.get(word).is_none_or(|word| word & bits == bits),
            None => self.first_clear(position, len).is_none(),
        }
    }

    /// Returns the first bit of the range that is clear, relative to the start of the range.
    #[inline(never)]
    pub fn first_clear(&self, position: u64, len: u64) -> Option<u64> {
        Bitmap::words(position, len).find_map(|(word, bits)| {
            let absent = !self.0.get(word).copied().unwrap_or(u64::MAX) & bits;
            (absent != 0).then(|| word as u64 * 64 + absent.trailing_zeros() as u64 - position)
        })
    }

    /// Returns the number of bits of the range that are clear.
    pub fn count_clear(&self, position: u64, len: u64) -> u64 {
        let clear = |(word, bits): (usize, u64)| !self.0.get(word).copied().unwrap_or(u64::MAX) & bits;
        Bitmap::words(position, len).map(|part| clear(part).count_ones() as u64).sum()
    }

    /// Returns a mask of the bits of a range of at most 64 that are clear.
    pub fn clear_mask(&self, position: u64, len: u64) -> u64 {
        let clear = |bit: &u64| !self.all(position + bit, 1);
        (0..len.min(64)).filter(clear).fold(0, |mask, bit| mask | 1 << bit)
    }
}
