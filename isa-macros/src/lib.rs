//! Proc macro shell.
