//! Set-associative caches, translation buffers, and queues of limited bandwidth.

/// Ticks of a clock: the model's time has fractions of clocks, since bandwidths do.
pub const TICKS: u64 = 256;

/// Converts clocks to ticks.
pub fn ticks(clocks: f64) -> u64 {
    (clocks * TICKS as f64).round() as u64
}

/// The state of a line in a cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entry {
    /// The number of the line, plus one; 0 if the way is empty.
    tag: u64,
    /// When the line has arrived, or its last atomic is done.
    pub ready: u64,
    /// When it was last used.
    used: u64,
    /// The sectors that have been stored to. Their way to memory is counted when that happens.
    pub stored: u64,
}

/// A set-associative cache of tags with least recently used replacement.
#[derive(Debug, Clone)]
pub struct Tags {
    sets: u64,
    ways: usize,
    entries: Vec<Entry>,
    /// Shifts of the terms that select the set.
    shifts: [u32; 3],
    clock: u64,
    /// The line of the last hit, and its entry.
    last: (u64, usize),
}

impl Tags {
    /// Creates a cache of `lines` lines.
    pub fn new(lines: u64, ways: u64, shifts: [u32; 3]) -> Tags {
        let ways = ways.clamp(1, lines.max(1));
        let sets = (lines / ways).max(1);
        Tags {
            sets,
            ways: ways as usize,
            entries: vec![Entry::default(); (sets * ways) as usize],
            shifts,
            clock: 0,
            last: (0, 0),
        }
    }

    /// Returns the set of a line. The number is folded, as hardware does, so that strides of a power of two use all sets.
    fn set(&self, line: u64) -> u64 {
        let [a, b, c] = self.shifts;
        (line ^ line >> a ^ line >> b ^ line >> c) % self.sets
    }

    /// Returns the entry of a line, if it is present.
    pub fn find(&mut self, line: u64) -> Option<&mut Entry> {
        self.clock += 1;
        let tag = line + 1;
        if self.last.0 == tag && self.entries[self.last.1].tag == tag {
            let entry = &mut self.entries[self.last.1];
            entry.used = self.clock;
            return Some(entry);
        }
        let first = self.set(line) as usize * self.ways;
        let at = self.entries[first..first + self.ways].iter().position(|e| e.tag == tag)? + first;
        self.last = (tag, at);
        let entry = &mut self.entries[at];
        entry.used = self.clock;
        Some(entry)
    }

    /// Inserts a line that is not present, and returns its entry.
    pub fn insert(&mut self, line: u64, ready: u64) -> &mut Entry {
        self.clock += 1;
        let first = self.set(line) as usize * self.ways;
        let ways = &self.entries[first..first + self.ways];
        let oldest = (0..self.ways).min_by_key(|at| ways[*at].used).unwrap_or(0);
        let entry = &mut self.entries[first + oldest];
        *entry = Entry { tag: line + 1, ready, used: self.clock, stored: 0 };
        entry
    }

    /// Removes a line.
    pub fn remove(&mut self, line: u64) {
        if let Some(entry) = self.find(line) {
            *entry = Entry::default();
        }
    }
}

/// A resource that serves one request after another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Queue {
    free: u64,
    /// Ticks for which it has been busy.
    pub busy: u64,
}

impl Queue {
    /// Takes the resource for `service` ticks from `now` on, or when it is free; returns when it starts.
    pub fn take(&mut self, now: u64, service: u64) -> u64 {
        let start = now.max(self.free);
        self.free = start + service;
        self.busy += service;
        start
    }

    /// Returns when it is free.
    pub fn free(&self) -> u64 {
        self.free
    }
}

/// Returns the share of hits when `bytes` are swept again and again through a cache of `capacity` bytes that replaces at
/// random: a line survives a sweep with `exp(-misses / capacity)`.
pub fn resident_share(bytes: f64, capacity: f64) -> f64 {
    if bytes <= capacity {
        return 1.0;
    }
    let (mut low, mut high) = (0.0f64, 1.0f64 - 1e-9);
    let pressure = bytes / capacity;
    // The smaller root of h = exp(-(1 - h) * pressure).
    for _ in 0..60 {
        let h = (low + high) / 2.0;
        if (-(1.0 - h) * pressure).exp() > h { low = h } else { high = h }
    }
    low
}

/// Returns a number from 0 to 1 that depends on nothing but a line: which lines a share applies to.
pub fn fraction_of(line: u64) -> f64 {
    let mut x = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x >> 11) as f64 / (1u64 << 53) as f64
}
