//! The Debug Adapter Protocol: editors drive the debugger with it.
//!
//! - [`protocol`]: the messages; [`wire`]: messages on a stream
//! - [`session`]: a session, from `initialize` to `disconnect`
//! - `run`: what runs and stops; `breakpoints`: all kinds of them; `variables`: registers, lanes, arguments, memory as
//!   variables; `source`: frames, source and disassembly; `memory`: bytes
//!
//! Waves of the workgroup that runs are threads. A [`Host`] passes messages and loads kernels: this crate has no
//! threads, sockets and files.

#![warn(missing_docs)]
// No files, threads, processes or clocks: clippy.toml has the list.
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
use serde_json::Value;
use wavesim_engine::sched::dispatch::{GroupOrder, Schedule};
use wavesim_loader::prepared::Prepared;

pub use session::serve;

/// What a session needs from its program: messages, kernels and names of files.
pub trait Host {
    /// Waits for the next message. `None`: the client is gone. An error: a message that is none.
    fn receive(&self) -> Option<Result<Request, String>>;

    /// Whether a message waits.
    fn waiting(&self) -> bool;

    /// Sends a message.
    fn send(&self, message: &Value);

    /// Loads the kernel of a launch, with its memory laid out for checks.
    ///
    /// # Errors
    /// What is wrong with the launch or the kernel.
    fn load(&self, launch: &LaunchArguments) -> Result<Launch, String>;

    /// The absolute path of a file, with links resolved; `None` if there is no such file.
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
    /// The limit of instructions.
    pub max_instructions: u64,
}
