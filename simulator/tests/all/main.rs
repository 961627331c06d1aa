//! Tests of the command `wavesim` as a process, on pipes and terminals.
#![cfg(unix)]

mod command_line;
mod pages;
mod process;
mod screen;
mod servers;
mod terminal;
