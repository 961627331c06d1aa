//! The debugger: a run that goes forward and back, breakpoints, and views of its state.
//!
//! [`machine`] is the run, step by step, with checkpoints; [`expr`] reads registers and memory by name; [`stops`] are breakpoints and
//! watchpoints; [`view`] shows state, [`explain`] what an instruction does; [`command`] are the commands, [`repl`] reads them from a person or a script.

pub mod command;
pub mod explain;
pub mod expr;
pub mod machine;
pub mod repl;
pub mod stops;
pub mod view;
