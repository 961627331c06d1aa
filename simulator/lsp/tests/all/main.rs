//! Sessions with the language server, over a connection in memory.

mod client;
mod kernels;
mod pseudocode;
