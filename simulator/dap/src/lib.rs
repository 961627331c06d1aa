//! The Debug Adapter Protocol, with which editors drive the debugger.
//!
//! - [`protocol`]: the messages; [`wire`]: messages on a stream
//! - [`session`]: a session, from `initialize` to `disconnect`
//! - `run`: execution and stops; `breakpoints`: all kinds of breakpoints; `variables`: registers, lanes,
//!   arguments and memory as variables; `source`: frames, source and disassembly; `memory`: bytes
//!
//! The waves of the running workgroup are threads. A [`Host`] passes messages and loads kernels: this crate
//! must not use threads, sockets or files.

#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod breakpoints;
mod memory;
pub mod protocol;
mod run;
pub mod session;
mod source;
mod variables;
pub mod wire;

use protocol::{LaunchArguments, Request};
/// The value of a message.
pub use serde_json::Value as Message;
use serde_json::Value;
use std::sync::Arc;
use wavesim_debug::command::Files;
use wavesim_engine::sched::dispatch::{GroupOrder, Schedule};
use wavesim_engine::sched::recorded::Recorded;
use wavesim_loader::prepared::Prepared;

pub use session::{serve, serve_attached};

/// The services that a session requires: messages, kernels and file names.
pub trait Host {
    /// Waits for the next message. Returns `None` if the client has disconnected, and an error for an invalid
    /// message.
    fn receive(&self) -> Option<Result<Request, String>>;

    /// Returns whether a message is waiting.
    fn waiting(&self) -> bool;

    /// Sends a message.
    fn send(&self, message: &Value);

    /// Loads the kernel of a launch, with its memory laid out for checks.
    ///
    /// # Errors
    /// The launch or the kernel is invalid.
    fn load(&self, launch: &LaunchArguments) -> Result<Launch, String>;

    /// Returns whether a client may attach to a running program, for [`serve_attached`].
    ///
    /// # Errors
    /// The client must not attach.
    fn admit(&self, _attach: &LaunchArguments) -> Result<(), String> {
        Err("there is nothing to attach to".to_string())
    }

    /// Returns the files that commands of the debugger may use (`save`, `resume`, `list`); `None` for none.
    fn files(&self, _launch: &LaunchArguments) -> Option<Box<dyn Files>> {
        None
    }

    /// Returns the absolute path of a file, with links resolved; `None` if there is no such file.
    fn path(&self, name: &str) -> Option<String>;
}

/// A kernel to debug.
pub struct Launch {
    /// The kernel with its memory.
    pub prepared: Prepared,
    /// The order of waves.
    pub schedule: Schedule,
    /// The order of workgroups.
    pub order: GroupOrder,
    /// A recorded schedule to follow in their place.
    pub recorded: Option<Arc<Recorded>>,
    /// The maximum number of instructions.
    pub max_instructions: u64,
}
