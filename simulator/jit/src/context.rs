//! The program that is compiled, and the mode that its code is specialised for.

use crate::snapshot::ProgramSnapshot;

/// The program, and the mode that its code is specialised for.
#[derive(Clone, Copy)]
pub struct CompileContext<'a> {
    pub program: &'a ProgramSnapshot,
    /// Wave64.
    pub wave64: bool,
    /// f32 denormals are flushed.
    pub flush: bool,
    /// MODE.IEEE is set.
    pub ieee: bool,
    /// Code checks the cached facts that it uses: see [`crate::frame::find_violation`].
    pub checked: bool,
}
