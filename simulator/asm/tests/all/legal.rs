//! Legality checks.

use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;

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
