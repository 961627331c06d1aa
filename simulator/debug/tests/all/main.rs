//! Tests of the timeline and the commands, in one binary. Sessions are in `tests/filetests/debug`.

mod checkpoints;
mod command;
mod history;
mod timeline;
