//! The instructions that inexact values come from.

use foldhash::HashMap;
use isa_exactness::{Aspect, Bound, Class};

/// Why a result is inexact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Hardware approximates the function, with this error.
    Approximation(Bound),
    /// The order of a float sum in memory.
    Order,
    /// It is left to the implementation.
    Left(Aspect),
}

impl Cause {
    /// Returns the class of such results.
    pub fn class(self) -> Class {
        match self {
            Cause::Approximation(_) => Class::Approximate,
            Cause::Order => Class::OrderDependent,
            Cause::Left(_) => Class::ImplementationDefined,
        }
    }

    /// Returns the details, without the class.
    pub fn detail(self) -> String {
        match self {
            Cause::Approximation(bound) => bound.to_string(),
            Cause::Order => "a float sum in memory".to_string(),
            Cause::Left(aspect) => aspect.title().to_string(),
        }
    }
}

/// An instruction of the program with an inexact result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Index of the instruction.
    pub index: u32,
    /// Why its result is inexact.
    pub cause: Cause,
}

/// The number of a set of origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetId(u32);

/// Origins of one value, at most: of more, those of the first instructions are kept.
const MOST_ORIGINS: usize = 16;

/// Sets of origins, each stored once.
#[derive(Debug, Default)]
pub struct Sets {
    sets: Vec<Box<[Origin]>>,
    ids: HashMap<Box<[Origin]>, SetId>,
    unions: HashMap<(SetId, SetId), SetId>,
}

impl Sets {
    /// Returns the origins of a set, in the order of the program.
    pub fn get(&self, set: SetId) -> &[Origin] {
        &self.sets[set.0 as usize]
    }

    /// Returns the set of one origin.
    pub fn single(&mut self, origin: Origin) -> SetId {
        self.intern(Box::new([origin]))
    }

    /// Returns the union of two sets.
    pub fn union(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b {
            return a;
        }
        let key = (a.min(b), a.max(b));
        if let Some(known) = self.unions.get(&key) {
            return *known;
        }
        let mut all: Vec<Origin> = self.get(a).iter().chain(self.get(b)).copied().collect();
        all.sort_unstable();
        all.dedup();
        all.truncate(MOST_ORIGINS);
        let union = self.intern(all.into());
        self.unions.insert(key, union);
        union
    }

    /// Returns the union of two sets, of which one may be absent.
    pub fn union_of(&mut self, a: Option<SetId>, b: Option<SetId>) -> Option<SetId> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.union(a, b)),
            (a, b) => a.or(b),
        }
    }

    fn intern(&mut self, set: Box<[Origin]>) -> SetId {
        if let Some(known) = self.ids.get(&set) {
            return *known;
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unions_do_not_depend_on_the_order() {
        let mut sets = Sets::default();
        let one = |sets: &mut Sets, index| sets.single(Origin { index, cause: Cause::Order });
        let (a, b, c) = (one(&mut sets, 1), one(&mut sets, 2), one(&mut sets, 3));
        let ab = sets.union(a, b);
        let bc = sets.union(c, b);
        assert_eq!(sets.union(ab, c), sets.union(a, bc));
        assert_eq!(sets.union(ab, a), ab);
        assert_eq!(sets.get(ab).len(), 2);
        assert_eq!((sets.union_of(None, Some(a)), sets.union_of(None, None)), (Some(a), None));
        // A value with many origins keeps some of them.
        let all = (0..100).fold(a, |all, index| {
            let next = one(&mut sets, index);
            sets.union(all, next)
        });
        assert_eq!(sets.get(all).len(), MOST_ORIGINS);
    }
}
