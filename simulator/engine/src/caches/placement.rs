//! Which caches a wave sits behind.

use crate::sched::order::splitmix64;
use std::fmt;
use std::str::FromStr;

/// How workgroups and waves are spread over caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arrangement {
    /// Number of L1 caches.
    pub l1: u16,
    /// Number of workgroup processors behind each L1 cache. A processor has two compute units with an L0 cache each, and
    /// one scalar cache.
    pub processors: u16,
    /// The source of the random placement; 0 places workgroups and waves in turn.
    pub seed: u64,
}

/// A cache of the device: its kind, and its number among those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cache(pub u32);

/// The caches of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// By number of [`Caches`](super::Caches).
    pub caches: [Cache; 3],
    /// The workgroup's coordinates and the wave's index, for reports.
    pub wave: ([u32; 3], u32),
}

impl Arrangement {
    /// All workgroups share an L1 cache, and their waves the two L0 caches of one processor.
    pub const TOGETHER: Arrangement = Arrangement { l1: 1, processors: 1, seed: 0 };
    /// Neighbouring workgroups share no cache.
    pub const APART: Arrangement = Arrangement { l1: 64, processors: 1, seed: 0 };

    /// Returns the arrangement that a seed chooses; `None`, in a quarter of the cases, for caches that are always coherent.
    pub fn of_seed(seed: u64) -> Option<Arrangement> {
        let random = splitmix64(seed ^ 0xcac4e);
        let arrangement = Arrangement {
            l1: 1 << (random >> 2 & 1),
            processors: 1 << (random >> 3 & 3),
            seed: (random >> 8) & 0xffff_ffff | 1,
        };
        (random & 3 != 0).then_some(arrangement)
    }

    /// Returns the caches of a wave. `cluster` is the number of its cluster of workgroups, or of its workgroup without
    /// clusters: workgroups of a cluster share an L1 cache. `cu_mode`: the waves of a workgroup share an L0 cache.
    pub fn place(self, id: [u32; 3], cluster: u64, group: u64, wave: u32, cu_mode: bool) -> Placement {
        let random = |what: u64, number: u64| match self.seed {
            0 => number,
            seed => splitmix64(splitmix64(seed ^ what) ^ number),
        };
        let l1 = random(1, cluster) % u64::from(self.l1.max(1));
        let processor = (l1 << 16) | (random(2, group) % u64::from(self.processors.max(1)));
        let unit = match cu_mode {
            true => random(3, group),
            false => random(4, group << 8 | u64::from(wave)),
        } & 1;
        let number = |kind: u32, number: u64| Cache(kind << 28 | (number as u32 & 0xfff_ffff));
        Placement {
            caches: [number(0, processor << 1 | unit), number(1, l1), number(2, processor)],
            wave: (id, wave),
        }
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.l1, self.processors, self.seed)
    }
}

impl FromStr for Arrangement {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Arrangement, &'static str> {
        const EXPECTED: &str =
            "the number of L1 caches, of processors behind each, and a seed follow `caches`";
        let numbers: Vec<u64> = text.split_whitespace().map_while(|n| n.parse().ok()).collect();
        let [l1, processors, seed] = numbers[..] else { return Err(EXPECTED) };
        let small = |n: u64| u16::try_from(n).ok().filter(|n| *n > 0).ok_or(EXPECTED);
        Ok(Arrangement { l1: small(l1)?, processors: small(processors)?, seed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workgroups_and_waves_are_placed() {
        let place = |arrangement: Arrangement, group: u64, wave, cu_mode| {
            arrangement.place([group as u32, 0, 0], group, group, wave, cu_mode).caches
        };
        let together = Arrangement::TOGETHER;
        assert_eq!(place(together, 0, 0, false), place(together, 5, 2, false));
        assert_ne!(place(together, 0, 0, false)[0], place(together, 0, 1, false)[0]);
        assert_eq!(place(together, 0, 0, true), place(together, 0, 1, true));
        let apart = Arrangement::APART;
        assert!((0..3).all(|n| place(apart, 0, 0, false)[n] != place(apart, 1, 0, false)[n]));
        assert_eq!(place(apart, 3, 0, false)[1..], place(apart, 3, 1, false)[1..]);
        for seed in 0..100 {
            let Some(random) = Arrangement::of_seed(seed) else { continue };
            assert_eq!(random.to_string().parse(), Ok(random));
            let [l0, l1, scalar] = place(random, 9, 0, false);
            // A processor has one L1 cache and one scalar cache.
            let others = (0..32).map(|group| place(random, group, 0, false));
            assert!(others.clone().filter(|o| o[0] == l0).all(|o| o[1] == l1 && o[2] == scalar));
            assert!(others.filter(|o| o[2] == scalar).all(|o| o[1] == l1));
        }
        assert!("1 2".parse::<Arrangement>().is_err() && "0 1 1".parse::<Arrangement>().is_err());
    }
}
