//! Table of the OpenCL functions in the order of an ICD's dispatch table (`cl_icd.h`), with their
//! implementation states. `hosts/opencl` generates its dispatch table from this table, and `wavesim opencl
//! --coverage` prints it.

mod table;

pub use table::FUNCTIONS;

/// Implementation state of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Implemented.
    Implemented,
    /// Returns an error status, for the given reason.
    Unsupported(&'static str),
    /// Returns a null pointer, and stores an error status through the argument with this index, for the given
    /// reason.
    UnsupportedObject(usize, &'static str),
    /// Belongs to another operating system; the slot is empty.
    OtherSystem,
}

/// A function of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Name.
    pub name: &'static str,
    /// Implementation state.
    pub state: State,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_function_is_listed_once() {
        let names: BTreeSet<&str> = FUNCTIONS.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), FUNCTIONS.len());
    }

    /// Slots in `cl_icd.h`, which loaders rely on.
    #[test]
    fn functions_are_in_their_slots() {
        let slot = |name: &str| FUNCTIONS.iter().position(|f| f.name == name);
        assert_eq!(slot("clGetPlatformIDs"), Some(0));
        assert_eq!(slot("clGetExtensionFunctionAddress"), Some(65));
        assert_eq!(slot("clSetEventCallback"), Some(81));
        assert_eq!(slot("clCreateSubDevices"), Some(93));
        assert_eq!(slot("clCreateCommandQueueWithProperties"), Some(123));
        assert_eq!(slot("clSetContextDestructorCallback"), Some(FUNCTIONS.len() - 1));
        assert_eq!(FUNCTIONS.len(), 149);
    }
}
