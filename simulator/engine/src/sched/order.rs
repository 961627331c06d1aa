//! The orders in which workgroups start and in which the waves of a workgroup take turns. A result that
//! depends on the order reveals a race.

use std::collections::VecDeque;
use std::str::FromStr;

/// Upper bound of the number of waves that an order can list: a workgroup has at most 32.
const MAX_LISTED: usize = 64;

/// Order in which the waves of a workgroup take turns. A long workgroup is suspended from time to time, so
/// that workgroups that wait for each other finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// By index, with turns of equal length.
    #[default]
    RoundRobin,
    /// As [`Schedule::RoundRobin`], from the last wave to the first.
    Reverse,
    /// A new order every round, and turns of random length, derived from this seed.
    Random(u64),
    /// As [`Schedule::Random`], with turns of a few instructions, half of them of one. Workgroups are suspended after a
    /// random number of instructions, and others continue.
    Fine(u64),
    /// These waves first, then the others by index.
    Chosen(WaveList),
}

/// A list of wave indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaveList {
    list: [u8; MAX_LISTED],
    len: u8,
}

impl WaveList {
    /// Returns the indices in the listed order.
    pub fn as_slice(&self) -> &[u8] {
        &self.list[..self.len as usize]
    }
}

/// The maximum length of a turn if the order is random.
const RANDOM_TURN: u64 = 64;

impl Schedule {
    /// Returns the seed of a random order.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Schedule::Random(seed) | Schedule::Fine(seed) => Some(*seed),
            Schedule::RoundRobin | Schedule::Reverse | Schedule::Chosen(_) => None,
        }
    }

    /// Returns the number of instructions of a turn for a random number, if turns are of random length.
    pub fn turn(&self, random: u64) -> Option<u64> {
        match self {
            Schedule::Random(_) => Some(1 + random % RANDOM_TURN),
            // 1 half of the time, 2 a quarter of it, and so on up to 64.
            Schedule::Fine(_) => Some(1 << random.trailing_zeros().min(6)),
            Schedule::RoundRobin | Schedule::Reverse | Schedule::Chosen(_) => None,
        }
    }

    /// Returns the random choices of [`Schedule::Fine`] for workgroups.
    pub(super) fn preemption(&self) -> Option<Preemption> {
        match self {
            Schedule::Fine(seed) => Some(Preemption(!seed)),
            _ => None,
        }
    }

    /// Writes the order of one round to `order`. A random order is left to the caller.
    pub fn arrange(&self, order: &mut [usize]) {
        let count = order.len();
        match self {
            Schedule::RoundRobin => order.iter_mut().enumerate().for_each(|(turn, at)| *at = turn),
            Schedule::Reverse => order.iter_mut().enumerate().for_each(|(turn, at)| *at = count - 1 - turn),
            Schedule::Random(_) | Schedule::Fine(_) => {}
            Schedule::Chosen(waves) => {
                let chosen = waves.as_slice().iter().map(|at| *at as usize).filter(|at| *at < count);
                let others = (0..count).filter(|at| !waves.as_slice().contains(&(*at as u8)));
                order.iter_mut().zip(chosen.chain(others)).for_each(|(slot, at)| *slot = at);
            }
        }
    }
}

/// The random choices of workgroups that are suspended at any instruction.
pub(super) struct Preemption(u64);

impl Preemption {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        splitmix64(self.0)
    }

    /// Returns the number of instructions that a workgroup runs: a power of two up to 256, as short as long.
    pub fn slice(&mut self) -> u64 {
        1 << (self.next() % 9)
    }

    /// Returns whether to start another workgroup while others are suspended.
    pub fn starts(&mut self) -> bool {
        self.next() & 1 == 0
    }

    /// Moves the suspended workgroup that continues to the front.
    pub fn choose<T>(&mut self, suspended: &mut VecDeque<T>) {
        if !suspended.is_empty() {
            let chosen = self.next() % suspended.len() as u64;
            suspended.swap(0, chosen as usize);
        }
    }
}

/// Order in which workgroups start. Under the ascending order, a program may rely on earlier workgroups
/// having started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum GroupOrder {
    /// By number: x fastest, then y, then z.
    #[default]
    Ascending,
    /// As [`GroupOrder::Ascending`], from the last workgroup to the first.
    Reverse,
    /// A random permutation derived from this seed.
    Random(u64),
    /// These workgroups first, by number (x fastest), then the others in ascending order.
    Chosen(Vec<u64>),
}

impl GroupOrder {
    /// Returns the number of the workgroup that starts as the `index`-th of `total`.
    pub fn number(&self, index: u64, total: u64) -> u64 {
        match self {
            GroupOrder::Ascending => index,
            GroupOrder::Reverse => (total - 1).saturating_sub(index),
            GroupOrder::Random(seed) => shuffled(*seed, index, total),
            GroupOrder::Chosen(list) => {
                let mut chosen = list.iter().copied().filter(|n| *n < total);
                let known = chosen.clone().count() as u64;
                if index < known {
                    return chosen.nth(index as usize).unwrap_or(index);
                }
                let mut sorted: Vec<u64> = chosen.collect();
                sorted.sort_unstable();
                // Each listed number at or below `at` shifts it up by one.
                sorted.iter().fold(index - known, |at, n| if *n <= at { at + 1 } else { at })
            }
        }
    }
}

/// Returns element `index` of a pseudorandom permutation of the numbers below `total`: a Feistel network over
/// the next power of four, repeated until the result is in range.
fn shuffled(seed: u64, index: u64, total: u64) -> u64 {
    if index >= total || total < 2 {
        return index;
    }
    let half = (64 - (total - 1).leading_zeros()).div_ceil(2);
    let mask = (1 << half) - 1;
    let mut at = index;
    loop {
        let (mut high, mut low) = (at >> half, at & mask);
        for round in 0..4 {
            (high, low) = (low, high ^ splitmix64(seed ^ low << 8 ^ round) & mask);
        }
        at = high << half | low;
        if at < total {
            return at;
        }
    }
}

/// Returns a hash of `x` that depends on all of its bits (SplitMix64).
pub fn splitmix64(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// An order of workgroups, of waves, or of both, as parsed from `reverse`, `random:SEED`, `waves:2,0`,
/// `groups:5,1` or `groups:reverse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The order of workgroups; `None` keeps the present one.
    pub groups: Option<GroupOrder>,
    /// The order of a workgroup's waves; `None` keeps the present one.
    pub waves: Option<Schedule>,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        let (of, order) = match text.split_once(':') {
            Some((of @ ("groups" | "waves"), order)) => (of, order),
            _ => ("both", text),
        };
        let seed = |seed: &str| seed.parse().map_err(|_| format!("the seed `{seed}` is not a number"));
        let (groups, waves) = match (order, order.split_once(':')) {
            ("ascending", _) => (GroupOrder::Ascending, Schedule::RoundRobin),
            ("reverse", _) => (GroupOrder::Reverse, Schedule::Reverse),
            (_, Some(("fine", text))) => (GroupOrder::Random(seed(text)?), Schedule::Fine(seed(text)?)),
            (_, Some(("random", text))) => (GroupOrder::Random(seed(text)?), Schedule::Random(seed(text)?)),
            _ if of == "both" => {
                return Err(
                    "orders are ascending, reverse, random:SEED, fine:SEED, groups:ORDER and waves:ORDER"
                        .to_string(),
                );
            }
            _ => {
                let list: Vec<u64> = parse_numbers(order)?;
                let mut waves = WaveList { list: [0; MAX_LISTED], len: 0 };
                if of == "waves" {
                    for number in &list {
                        let fits = *number < MAX_LISTED as u64;
                        if !fits {
                            return Err(format!("no workgroup has a wave {number}"));
                        }
                        waves.list[waves.len as usize] = *number as u8;
                        waves.len += 1;
                    }
                }
                (GroupOrder::Chosen(list), Schedule::Chosen(waves))
            }
        };
        Ok(Choice { groups: (of != "waves").then_some(groups), waves: (of != "groups").then_some(waves) })
    }
}

/// Parses distinct numbers separated by commas.
fn parse_numbers(text: &str) -> Result<Vec<u64>, String> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let number = part.trim().parse().map_err(|_| {
            format!(
                "`{part}` is not a number: an order is ascending, reverse, random:SEED or a list such as 2,0"
            )
        })?;
        if list.contains(&number) {
            return Err(format!("{number} is listed twice"));
        }
        list.push(number);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_names_each_workgroup_once() {
        let orders = [
            GroupOrder::Ascending,
            GroupOrder::Reverse,
            GroupOrder::Random(7),
            GroupOrder::Chosen(vec![5, 0, 99, 3]),
        ];
        for order in orders {
            for total in [1, 2, 3, 6, 17, 64, 100] {
                let mut all: Vec<u64> = (0..total).map(|index| order.number(index, total)).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..total), "{order:?} of {total}");
            }
        }
        let chosen = GroupOrder::Chosen(vec![2, 0]);
        assert!((0..4).map(|index| chosen.number(index, 4)).eq([2, 0, 1, 3]));
        let random: Vec<u64> = (0..64).map(|index| GroupOrder::Random(1).number(index, 64)).collect();
        assert!(!random.iter().is_sorted());
    }

    #[test]
    fn half_of_the_fine_turns_are_one_instruction() {
        let turns: Vec<u64> = (0..1000).filter_map(|n| Schedule::Fine(1).turn(splitmix64(n))).collect();
        let short = turns.iter().filter(|turn| **turn == 1).count();
        assert!((450..550).contains(&short), "{short}");
        assert!(turns.iter().all(|turn| (1..=64).contains(turn)) && turns.iter().any(|turn| *turn > 8));
    }

    #[test]
    fn orders_are_parsed() {
        let choice = |text: &str| text.parse::<Choice>();
        let both = choice("random:3").unwrap();
        assert_eq!((both.groups, both.waves), (Some(GroupOrder::Random(3)), Some(Schedule::Random(3))));
        let both = choice("fine:4").unwrap();
        assert_eq!((both.groups, both.waves), (Some(GroupOrder::Random(4)), Some(Schedule::Fine(4))));
        let groups = choice("groups:4,1").unwrap();
        assert_eq!((groups.groups, groups.waves), (Some(GroupOrder::Chosen(vec![4, 1])), None));
        let Some(Schedule::Chosen(waves)) = choice("waves:3,0").unwrap().waves else { panic!() };
        assert_eq!(waves.as_slice(), [3, 0]);
        let mut order = [0; 4];
        Schedule::Chosen(waves).arrange(&mut order);
        assert_eq!(order, [3, 0, 1, 2]);
        for wrong in ["", "backward", "waves:", "waves:1,1", "waves:64", "groups:x", "random:x"] {
            assert!(choice(wrong).is_err(), "{wrong}");
        }
    }
}
