//! Table of the functions in HIP's runtime library, with their symbol versions and implementation states.
//! `hosts/hip` generates its exports from this table, and `wavesim hip --coverage` prints it.

mod table;

/// Implementation state of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Implemented.
    Implemented,
    /// An alias of another function.
    Alias(&'static str),
    /// Returns `hipErrorNotSupported`, for the given reason.
    Unsupported(&'static str),
    /// Returns a string that says that the function is not supported, for the given reason.
    UnsupportedText(&'static str),
}

/// A function of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Name.
    pub name: &'static str,
    /// Version of the symbol: `hip_4.2`.
    pub version: &'static str,
    /// Implementation state.
    pub state: State,
}

/// All symbol versions, each of which includes the preceding ones. Some have no functions of their own.
pub const VERSIONS: &[&str] = &[
    "hip_4.2", "hip_4.3", "hip_4.4", "hip_4.5", "hip_5.0", "hip_5.1", "hip_5.2", "hip_5.3", "hip_5.4",
    "hip_5.5", "hip_5.6", "hip_5.7", "hip_6.0", "hip_6.1", "hip_6.2", "hip_6.3", "hip_6.4", "hip_6.5",
    "hip_7.0", "hip_7.1", "hip_7.2",
];

/// All functions, ordered by version.
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

/// Functions of ROCm's libraries for profilers that programs and libraries call whether or not they are profiled:
/// `libroctx64.so` (markers of ranges) and `libroctracer64.so`. HIP's library is installed under these names, too.
pub const PROFILING: &[Function] = &table::PROFILING;

/// The symbol versions of [`PROFILING`], which do not include each other.
pub const PROFILING_VERSIONS: [&str; 2] = ["ROCTX_4.1", "ROCTRACER_4.0"];

/// The number of functions.
const COUNT: usize = 537;

/// Concatenates lists.
const fn concat<const N: usize>(lists: [&[Function]; N]) -> [Function; COUNT] {
    let mut out = [Function { name: "", version: "", state: State::Implemented }; COUNT];
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
    fn every_function_is_listed_once() {
        let names: BTreeSet<&str> = FUNCTIONS.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), FUNCTIONS.len());
        assert!(PROFILING.iter().all(|f| !names.contains(f.name) && PROFILING_VERSIONS.contains(&f.version)));
        for function in FUNCTIONS {
            assert!(VERSIONS.contains(&function.version), "{}", function.name);
            if let State::Alias(other) = function.state {
                let other = FUNCTIONS.iter().find(|f| f.name == other);
                assert_eq!(other.map(|f| f.state), Some(State::Implemented), "{}", function.name);
            }
        }
    }
}
