//! `.amdgcn_target`.

use wavesim_asm::{Options, program};
use wavesim_isa::arch::Arch;

/// The expected flags are those of llvm-mc 19 for the same directive.
#[test]
fn features_set_elf_flags() {
    for (target, arch, flags) in [
        ("gfx942", Arch::Cdna3, Some(0x500)),
        ("gfx942:sramecc+:xnack-", Arch::Cdna3, Some(0xe00)),
        ("gfx942:xnack+", Arch::Cdna3, Some(0x700)),
        ("gfx942:sramecc", Arch::Cdna3, None),
        ("gfx942:tgsplit+", Arch::Cdna3, None),
        ("gfx1100", Arch::Rdna3, Some(0)),
    ] {
        let text = format!(".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n");
        let (program, errors) = program::read(&text, &Options::new(arch));
        assert_eq!(errors.is_empty().then_some(program.features), flags, "{target}");
    }
}
