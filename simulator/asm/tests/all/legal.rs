//! Legality checks.

use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;

/// Messages name the modifier by which the atomics of the architecture return the old value.
#[test]
fn messages_name_the_modifier_of_atomics() {
    for (arch, text, modifier) in [
        (Arch::Rdna3, "global_atomic_add_u32 v1, v0, v2, s[2:3]", "glc"),
        (Arch::Rdna4, "global_atomic_add_u32 v1, v0, v2, s[2:3]", "th:TH_ATOMIC_RETURN"),
        (Arch::Cdna3, "global_atomic_add v1, v0, v2, s[2:3]", "sc0"),
        (Arch::Cdna5, "global_atomic_add_u32 v1, v0, v2, s[2:3]", "th:TH_ATOMIC_RETURN"),
    ] {
        let error = parse(text, &Options::new(arch), &NoSymbols).unwrap_err();
        assert!(error.message.contains(&format!("needs `{modifier}`")), "{arch:?}: {error}");
    }
}

#[test]
fn pairs_of_moves_may_share_a_bank() {
    let text = "v_dual_mov_b32 v0, v4 :: v_dual_mov_b32 v1, v8";
    for (arch, legal) in [(Arch::Rdna3, false), (Arch::Rdna4, true), (Arch::Cdna5, true)] {
        assert_eq!(parse(text, &Options::new(arch), &NoSymbols).is_ok(), legal, "{arch:?}");
    }
}

#[test]
fn dual_instructions_require_wave32() {
    let text = "v_dual_add_f32 v0, v4, v1 :: v_dual_mul_f32 v1, v5, v2";
    for arch in Arch::RDNA {
        let words = parse(text, &Options::new(arch), &NoSymbols);
        assert!(words.is_ok(), "{words:?}");
        let wide = Options::new(arch).wave(64);
        let error = parse(text, &wide, &NoSymbols).unwrap_err();
        assert!(error.message.contains("waves of 32"), "{error}");
        assert!(wavesim_asm::legal::check_decoded(&words.unwrap().inst, &wide).is_err());
    }
}
