//! Instructions that LLVM has but the ISA descriptions lack.

use wavesim_asm::dialect::absent::ABSENT;
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;

#[test]
fn absent_instructions_are_rejected_with_help() {
    for (name, archs) in ABSENT {
        for &arch in archs {
            let error = parse(&format!("{name} 0"), &Options::new(arch), &NoSymbols).unwrap_err();
            let unknown = format!("{} has no instruction `{name}`", arch.name());
            let form = format!("has no such form in {}", arch.name());
            assert!(error.message == unknown || error.message.ends_with(&form), "{error}");
            assert!(error.help.is_some_and(|h| h.contains("LLVM has it") || h.contains("s_wait_kmcnt")));
        }
    }
    let error = parse("s_waitcnt_vscnt null, 0", &Options::new(Arch::Rdna4), &NoSymbols).unwrap_err();
    assert!(error.help.is_some_and(|h| h.contains("s_wait_storecnt")));
    let error = parse("s_sethalt_x 0", &Options::new(Arch::Rdna4), &NoSymbols).unwrap_err();
    assert_eq!(error.help.as_deref(), Some("did you mean `s_sethalt`?"));
}
