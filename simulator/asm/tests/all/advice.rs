//! Instructions that diagnostics recommend.

use wavesim_asm::dialect::advice::{cache_invalidations, wait_instruction};
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;

/// Every recommended instruction assembles.
#[test]
fn recommended_instructions_assemble() {
    let counters: [(&[Arch], &[&str]); 3] = [
        (&[Arch::Rdna3, Arch::Rdna35], &["vmcnt", "lgkmcnt", "expcnt", "vscnt"]),
        (&[Arch::Cdna3, Arch::Cdna4], &["vmcnt", "lgkmcnt", "expcnt"]),
        (&[Arch::Rdna4], &["loadcnt", "storecnt", "dscnt", "kmcnt", "samplecnt", "bvhcnt"]),
    ];
    for (archs, names) in counters {
        for arch in archs {
            let assembles = |text: &str| {
                parse(text, &Options::new(*arch), &NoSymbols).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            };
            names.iter().for_each(|name| assembles(&wait_instruction(name, 1)));
            for (scalar, local) in [(true, true), (true, false), (false, true), (false, false)] {
                cache_invalidations(*arch, scalar, local).iter().for_each(|text| assembles(text));
            }
        }
    }
}
