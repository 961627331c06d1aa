//! The functions of OpenCL in the order of an ICD's table (`cl_icd.h`), and which of them wavesim has. `hosts/opencl` makes its
//! table of it, and `wavesim opencl --coverage` prints it.

mod table;

pub use table::FUNCTIONS;

/// Whether a function is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is.
    Done,
    /// It returns a status that says that it is not supported, because of this.
    Absent(&'static str),
    /// It returns a null pointer, and the status goes to this argument, counted from 0.
    AbsentObject(usize, &'static str),
    /// Its place in the table is empty: it is another system's.
    Other,
}

/// A function of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Whether it is there.
    pub state: State,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_function_is_there_once() {
        let names: BTreeSet<&str> = FUNCTIONS.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), FUNCTIONS.len());
    }

    /// Places in `cl_icd.h`, which loaders rely on.
    #[test]
    fn functions_have_their_places() {
        let place = |name: &str| FUNCTIONS.iter().position(|f| f.name == name);
        assert_eq!(place("clGetPlatformIDs"), Some(0));
        assert_eq!(place("clGetExtensionFunctionAddress"), Some(65));
        assert_eq!(place("clSetEventCallback"), Some(81));
        assert_eq!(place("clCreateSubDevices"), Some(93));
        assert_eq!(place("clCreateCommandQueueWithProperties"), Some(123));
        assert_eq!(place("clSetContextDestructorCallback"), Some(FUNCTIONS.len() - 1));
        assert_eq!(FUNCTIONS.len(), 149);
    }
}
