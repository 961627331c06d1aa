//! Instructions that reports suggest: what waits for a counter.

/// The instruction that waits until at most `n` operations are outstanding in the counter, called by its name
/// in LLVM's syntax (`vmcnt`).
pub fn wait(counter: &str, n: usize) -> String {
    match counter {
        // Those that share one instruction.
        "vmcnt" | "lgkmcnt" | "expcnt" => format!("s_waitcnt {counter}({n})"),
        "vscnt" => format!("s_waitcnt_{counter} null, 0x{n:x}"),
        _ => format!("s_wait_{counter} 0x{n:x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoSymbols, Options, parse};
    use wavesim_isa::arch::Arch;

    /// What is suggested assembles.
    #[test]
    fn suggestions_are_instructions() {
        let counters: [(&[Arch], &[&str]); 3] = [
            (&[Arch::Rdna3, Arch::Rdna35], &["vmcnt", "lgkmcnt", "expcnt", "vscnt"]),
            (&[Arch::Cdna3, Arch::Cdna4], &["vmcnt", "lgkmcnt", "expcnt"]),
            (&[Arch::Rdna4], &["loadcnt", "storecnt", "dscnt", "kmcnt", "samplecnt", "bvhcnt"]),
        ];
        for (archs, names) in counters {
            for arch in archs {
                for name in names {
                    let text = wait(name, 1);
                    parse(&text, &Options::new(*arch), &NoSymbols)
                        .unwrap_or_else(|e| panic!("{text}: {e:?}"));
                }
            }
        }
    }
}
