//! RDNA 3 instructions that text kernels may also use on RDNA 4 and CDNA 5, where several instructions replace
//! them: waits and the barrier.

use super::PADDING;
use crate::symbolic;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;

/// The architecture of the replaced instructions.
pub const SOURCE_ARCH: Arch = Arch::Rdna3;

/// The replacement of an instruction.
enum Replacement {
    /// Fixed lines.
    Lines(&'static [&'static str]),
    /// For each counter (named by its part of the operand), the wait instructions, each with its maximum
    /// count.
    Waits(&'static [(&'static str, &'static [(&'static str, u32)])]),
    /// An instruction with the same count, truncated to this many bits.
    Count(&'static str, u32),
}

const REPLACEMENTS: [(&str, Replacement); 3] = [
    ("s_barrier", Replacement::Lines(&["s_barrier_signal -1", "s_barrier_wait -1"])),
    ("s_waitcnt_vscnt", Replacement::Count("s_wait_storecnt", 6)),
    (
        "s_waitcnt",
        Replacement::Waits(&[
            ("VM", &[("s_wait_loadcnt", 63), ("s_wait_samplecnt", 63), ("s_wait_bvhcnt", 7)]),
            ("LGKM", &[("s_wait_dscnt", 63), ("s_wait_kmcnt", 31)]),
            ("EXP", &[("s_wait_expcnt", 7)]),
        ]),
    ),
];

/// Returns whether [`replacement`] applies to a mnemonic.
pub fn is_replaced(name: &str) -> bool {
    REPLACEMENTS.iter().any(|(old, _)| *old == name)
}

/// The lines that replace `inst`, the instruction of [`SOURCE_ARCH`] with this name.
pub fn replacement(name: &str, inst: &Inst) -> Vec<String> {
    let Some((_, replacement)) = REPLACEMENTS.iter().find(|(old, _)| *old == name) else { return Vec::new() };
    match replacement {
        Replacement::Lines(lines) => lines.iter().map(|l| l.to_string()).collect(),
        Replacement::Count(new, bits) => {
            let count = inst.field(SOURCE_ARCH.table(), "SIMM16").unwrap_or(0);
            vec![format!("{new} {}", count & ((1 << bits) - 1))]
        }
        Replacement::Waits(counters) => {
            let mut out = Vec::new();
            for (counter, instructions) in *counters {
                match symbolic::part_value(inst, SOURCE_ARCH, counter) {
                    Some((count, max)) if count != max => {
                        out.extend(
                            instructions.iter().map(|(new, limit)| format!("{new} {}", count.min(*limit))),
                        );
                    }
                    _ => {}
                }
            }
            if out.is_empty() {
                out.push(PADDING.to_string());
            }
            out
        }
    }
}
