//! The simulated machine, under one name for the crates above the handlers. It opens no file, starts no thread
//! and knows no assembly syntax.
//!
//! - [`state`]: a wave and its workgroup; [`memory`]: global memory
//! - [`isa`]: operations, generated from the pseudocode
//! - [`exec`]: lowered code and its invariants, effects of instructions, the runtime of handlers
//! - [`fault`]: runtime faults

pub use wavesim_program::isa;
pub use wavesim_state::{fault, memory};

/// The state of a wave and of its workgroup.
pub mod state {
    pub use wavesim_state::{ALL_VGPRS, ClusterPlace, Half, LaneVec, VGPRS, Wave, Workgroup};
    pub use wavesim_state::{barrier, gws, host, scratch, wave};
}

/// Lowered code, its effects, and the runtime that executes it.
pub mod exec {
    pub use wavesim_program::{
        effects, hwreg, image, issue, linked, location, lower, overrides, program, record, validate,
    };
    #[doc(hidden)]
    pub use wavesim_rt as rt;
    pub use wavesim_rt::{op, output, watch};
    pub use wavesim_state::context::{self, Context};

    /// Control builtins, and the events that stop a wave.
    pub mod machine_ops {
        pub use wavesim_program::machine_ops::*;
        pub use wavesim_rt::control::{barrier, does_nothing, is_barrier};
        pub use wavesim_state::event::{Cause, Event};
    }
}
