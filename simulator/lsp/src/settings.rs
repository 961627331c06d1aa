//! What a client can choose: `initializationOptions`, or the section `wavesim` of its configuration.

use serde::Deserialize;

/// The settings of a session.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    /// The architecture of files that name none (`rdna4`), or a processor (`gfx1201`).
    pub arch: Option<String>,
    /// The wave size of files that name none: 32 or 64.
    pub wave: Option<u32>,
    /// Show the live registers at labels and at the first instruction.
    pub live_registers: bool,
    /// Show the last values of the registers that each line writes, after `wavesim.run`.
    pub last_values: bool,
    /// Runs of `wavesim.run` and `wavesim.check` stop after this many wave-instructions.
    pub max_instructions: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            arch: None,
            wave: None,
            live_registers: true,
            last_values: true,
            max_instructions: 5_000_000,
        }
    }
}
