//! Kernel descriptors.

use wavesim_asm::error::Span;
use wavesim_asm::expr::{Expr, NoSymbols};
use wavesim_assembler::descriptor::Descriptor;
use wavesim_isa::arch::Arch;

/// The expected bytes are those of llvm-mc 19.
#[test]
fn descriptors_match_llvm() {
    let mut d = Descriptor::new("k", Arch::Rdna3);
    for (name, value) in [
        ("next_free_vgpr", 10),
        ("next_free_sgpr", 20),
        ("user_sgpr_kernarg_segment_ptr", 1),
        ("kernarg_size", 24),
        ("wavefront_size32", 1),
    ] {
        d.set(name, Expr::Int(value), Span::default()).unwrap();
    }
    let bytes = d.finish(0x1040, &|e| e.eval(&NoSymbols)).unwrap();
    assert_eq!(bytes[8], 24);
    assert_eq!(bytes[16..18], [0x40, 0x10]);
    assert_eq!(bytes[48..58], [0x01, 0x00, 0xac, 0x60, 0x84, 0, 0, 0, 0x08, 0x04]);
    // The same for gfx942.
    let mut d = Descriptor::new("k", Arch::Cdna3);
    assert!(d.finish(0, &|e| e.eval(&NoSymbols)).is_err(), "no accum_offset");
    for (name, value) in [
        ("next_free_vgpr", 10),
        ("next_free_sgpr", 20),
        ("accum_offset", 12),
        ("user_sgpr_kernarg_segment_ptr", 1),
        ("user_sgpr_kernarg_preload_length", 3),
        ("user_sgpr_kernarg_preload_offset", 1),
        ("tg_split", 1),
    ] {
        d.set(name, Expr::Int(value), Span::default()).unwrap();
    }
    let bytes = d.finish(0, &|e| e.eval(&NoSymbols)).unwrap();
    assert_eq!(bytes[44..60], [2, 0, 1, 0, 0xc1, 0, 0xac, 0, 0x8a, 0, 0, 0, 8, 0, 0x83, 0]);
    assert!(
        Descriptor::new("k", Arch::Cdna3).set("wavefront_size32", Expr::Int(1), Span::default()).is_err()
    );
    assert!(Descriptor::new("k", Arch::Rdna4).set("ieee_mode", Expr::Int(1), Span::default()).is_err());
}

/// CDNA 5 has the directives of its generation, and granules and preloaded arguments of its own (LLVM
/// AMDGPUUsage, *Kernel Descriptor*).
#[test]
fn descriptors_of_cdna5() {
    let bytes = |arch| {
        let mut d = Descriptor::new("k", arch);
        for (name, value) in [("next_free_vgpr", 40), ("user_sgpr_kernarg_preload_length", 3)] {
            d.set(name, Expr::Int(value), Span::default()).unwrap();
        }
        assert_eq!(d.wave(), 32);
        d.finish(0, &|e| e.eval(&NoSymbols)).unwrap()
    };
    let (older, newer) = (bytes(Arch::Rdna4), bytes(Arch::Cdna5));
    assert_eq!([older[48] & 63, newer[48] & 63], [40 / 8 - 1, 48 / 16 - 1], "VGPRs");
    assert_eq!([older[58], newer[58]], [0, 3], "preloaded arguments");
    // Neither DX10_CLAMP nor IEEE_MODE is a default: the bits have another meaning. There is no WGP mode.
    assert_eq!(older[49..51], newer[49..51]);
    assert_eq!([older[51], newer[51]], [0x60, 0x40]);
    let set = |name| Descriptor::new("k", Arch::Cdna5).set(name, Expr::Int(1), Span::default());
    assert!(set("round_robin_scheduling").is_ok());
    for name in ["ieee_mode", "dx10_clamp", "shared_vgpr_count", "workgroup_processor_mode", "tg_split"] {
        assert!(set(name).is_err(), "{name}");
    }
}

/// The expected bytes are those of llvm-mc 22, without FWD_PROGRESS, whose default differs.
#[test]
fn descriptors_of_cdna5_match_llvm() {
    let mut d = Descriptor::new("k", Arch::Cdna5);
    for (name, value) in [
        ("next_free_vgpr", 300),
        ("next_free_sgpr", 20),
        ("named_barrier_count", 5),
        ("user_sgpr_count", 32),
        ("fp16_overflow", 1),
        ("group_segment_fixed_size", 4096),
    ] {
        d.set(name, Expr::Int(value), Span::default()).unwrap();
    }
    let bytes = d.finish(0, &|e| e.eval(&NoSymbols)).unwrap();
    assert_eq!(bytes[..4], [0, 0x10, 0, 0]);
    assert_eq!(bytes[44..48], [0, 0x40, 1, 0]);
    assert_eq!(bytes[48..52], [0x12, 0, 0x0c, 0x44]);
    assert_eq!(bytes[52..58], [0xc0, 0, 0, 0, 0, 4]);
    for name in ["ieee_mode", "dx10_clamp", "workgroup_processor_mode", "shared_vgpr_count"] {
        let mut d = Descriptor::new("k", Arch::Cdna5);
        assert!(d.set(name, Expr::Int(1), Span::default()).is_err(), "{name}");
    }
    let mut d = Descriptor::new("k", Arch::Rdna4);
    assert!(d.set("named_barrier_count", Expr::Int(1), Span::default()).is_err());
    assert!(d.set("user_sgpr_count", Expr::Int(32), Span::default()).is_err(), "5 bits");
}
