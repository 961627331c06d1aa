//! Instructions that diagnostics recommend: counter waits and cache invalidations.

use wavesim_isa::arch::Arch;

/// The instruction that waits until at most `n` operations are outstanding in the counter with this LLVM name
/// (`vmcnt`).
pub fn wait_instruction(counter: &str, n: usize) -> String {
    match counter {
        // Counters that share one instruction.
        "vmcnt" | "lgkmcnt" | "expcnt" => format!("s_waitcnt {counter}({n})"),
        "vscnt" => format!("s_waitcnt_{counter} null, 0x{n:x}"),
        _ => format!("s_wait_{counter} 0x{n:x}"),
    }
}

/// A vector instruction that does nothing.
pub const VECTOR_NOP: &str = "v_nop";

/// Returns whether an instruction only tells the hardware which results the following ones wait for.
pub fn is_delay_hint(name: &str) -> bool {
    name == "S_DELAY_ALU"
}

/// Returns whether an architecture has hints of delays.
pub fn has_delay_hints(arch: Arch) -> bool {
    arch.table().instruction("S_DELAY_ALU").is_some()
}

/// An instruction that does nothing for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// S_NOP, with the units of time in its immediate.
    Nop(u32),
    /// S_SLEEP.
    Sleep(u32),
}

/// Returns how long an instruction does nothing, if that is what it does (RDNA3 manual, *S_NOP*, *S_SLEEP*).
pub fn idle(name: &str, immediate: u32) -> Option<Idle> {
    match name {
        "S_NOP" => Some(Idle::Nop(immediate & 15)),
        "S_SLEEP" => Some(Idle::Sleep(immediate & 127)),
        _ => None,
    }
}

/// Invalidates the scalar cache.
pub const SCALAR_CACHE: &str = "s_dcache_inv";

/// Instructions that together invalidate the caches between a wave and memory (LLVM AMDGPUUsage, *Memory
/// Model*). `scalar`: the load uses the scalar cache; `local`: only caches private to a workgroup may be
/// stale.
pub fn cache_invalidations(arch: Arch, scalar: bool, local: bool) -> &'static [&'static str] {
    match (arch, scalar, local) {
        (_, true, true) | (Arch::Cdna3 | Arch::Cdna4, true, false) => &[SCALAR_CACHE],
        (Arch::Rdna4 | Arch::Cdna5, true, false) => &[SCALAR_CACHE, "global_inv scope:SCOPE_DEV"],
        (Arch::Rdna4 | Arch::Cdna5, false, true) => &["global_inv scope:SCOPE_SE"],
        (Arch::Rdna4 | Arch::Cdna5, false, false) => &["global_inv scope:SCOPE_DEV"],
        (Arch::Cdna3 | Arch::Cdna4, false, true) => &["buffer_inv sc0"],
        (Arch::Cdna3 | Arch::Cdna4, false, false) => &["buffer_inv sc1"],
        (_, true, false) => &["buffer_gl1_inv", SCALAR_CACHE],
        (_, false, true) => &["buffer_gl0_inv"],
        (_, false, false) => &["buffer_gl1_inv", "buffer_gl0_inv"],
    }
}

/// The instruction that writes back stores for other workgroups (LLVM AMDGPUUsage, *Memory Model*).
pub fn write_back(arch: Arch) -> &'static str {
    if arch.is_cdna() { "buffer_wbl2 sc1" } else { "global_wb scope:SCOPE_DEV" }
}
