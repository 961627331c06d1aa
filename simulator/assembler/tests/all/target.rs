//! `.amdgcn_target`.

use wavesim_asm::Options;
use wavesim_assembler::read;
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
        let (program, errors) = read(&text, &Options::new(arch));
        assert_eq!(errors.is_empty().then_some(program.features), flags, "{target}");
    }
}

/// LLVM's symbols for the first processor of each architecture: `.if .amdgcn.gfx_generation_number >= 12`.
#[test]
fn symbols_of_the_processor() {
    for (arch, numbers) in [
        (Arch::Rdna3, [11, 0, 0]),
        (Arch::Rdna35, [11, 5, 0]),
        (Arch::Rdna4, [12, 0, 1]),
        (Arch::Cdna3, [9, 4, 2]),
        (Arch::Cdna4, [9, 5, 0]),
        (Arch::Cdna5, [12, 5, 0]),
    ] {
        let symbols = ["number", "minor", "stepping"].map(|name| format!(".amdgcn.gfx_generation_{name}"));
        let text: String = symbols.iter().map(|name| format!(".byte {name}\n")).collect();
        let (program, errors) = read(&text, &Options::new(arch));
        assert!(errors.is_empty(), "{arch:?}");
        assert_eq!(program.sections[0].bytes, numbers, "{arch:?}");
    }
}
