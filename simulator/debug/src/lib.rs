//! The debugger: a run that goes forward and back, breakpoints, and views of its state.
//!
//! [`machine`] is the run, step by step, with checkpoints; [`expr`] reads registers and memory by name;
//! [`stops`] are breakpoints and watchpoints; [`view`] shows state; [`explain`] shows what an instruction
//! does; [`command`] has the commands. Reading commands from a terminal is up to the program that uses this.

pub mod command;
pub mod explain;
pub mod expr;
pub mod machine;
pub mod stops;
pub mod view;
