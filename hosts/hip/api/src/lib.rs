//! The functions of HIP's runtime library: versions of their symbols, and which of them wavesim has. `hosts/hip` exports its symbols
//! by this table, and `wavesim hip --coverage` prints it.

mod table;

/// Whether a function is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is.
    Done,
    /// It does what this other one does.
    As(&'static str),
    /// It returns `hipErrorNotSupported`, because of this.
    Absent(&'static str),
    /// It returns text, and that says that it is not supported, because of this.
    AbsentText(&'static str),
}

/// A function of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The version of its symbol: `hip_4.2`.
    pub version: &'static str,
    /// Whether it is there.
    pub state: State,
}

/// All versions, each of which includes those before it. Some have no functions of their own.
pub const VERSIONS: &[&str] = &[
    "hip_4.2", "hip_4.3", "hip_4.4", "hip_4.5", "hip_5.0", "hip_5.1", "hip_5.2", "hip_5.3", "hip_5.4",
    "hip_5.5", "hip_5.6", "hip_5.7", "hip_6.0", "hip_6.1", "hip_6.2", "hip_6.3", "hip_6.4", "hip_6.5",
    "hip_7.0", "hip_7.1", "hip_7.2",
];

/// All functions, by version.
pub const FUNCTIONS: &[Function] = &concat([
    &table::V4_2,
    &table::V4_3,
    &table::V4_4,
    &table::V4_5,
    &table::V5_0,
    &table::V5_1,
    &table::V5_2,
    &table::V5_3,
    &table::V5_5,
    &table::V5_6,
    &table::V6_0,
    &table::V6_1,
    &table::V6_2,
    &table::V6_3,
    &table::V6_4,
    &table::V6_5,
    &table::V7_1,
    &table::V7_2,
]);

/// The number of functions.
const COUNT: usize = 534;

/// One list out of several.
const fn concat<const N: usize>(lists: [&[Function]; N]) -> [Function; COUNT] {
    let mut out = [Function { name: "", version: "", state: State::Done }; COUNT];
    let (mut at, mut list) = (0, 0);
    while list < N {
        let mut k = 0;
        while k < lists[list].len() {
            out[at] = lists[list][k];
            (at, k) = (at + 1, k + 1);
        }
        list += 1;
    }
    assert!(at == COUNT, "`COUNT` is not the number of functions");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_function_is_there_once() {
        let names: BTreeSet<&str> = FUNCTIONS.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), FUNCTIONS.len());
        for function in FUNCTIONS {
            assert!(VERSIONS.contains(&function.version), "{}", function.name);
            if let State::As(other) = function.state {
                let other = FUNCTIONS.iter().find(|f| f.name == other);
                assert_eq!(other.map(|f| f.state), Some(State::Done), "{}", function.name);
            }
        }
    }
}
