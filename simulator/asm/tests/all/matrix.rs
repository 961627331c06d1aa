//! Modifiers of matrix products.

use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;

/// The wave size determines how many index sets fit in the 32 bits of each lane.
#[test]
fn index_sets_depend_on_the_wave_size() {
    let half = "v_swmmac_f16_16x16x32_f16 v[8:11], v[0:3], v[12:19], v20";
    let narrow = "v_swmmac_f16_16x16x32_f16 v[8:9], v[0:1], v[12:15], v20";
    let deep = "v_swmmac_i32_16x16x64_iu4 v[8:15], v[0:1], v[2:5], v20";
    let deep_narrow = "v_swmmac_i32_16x16x64_iu4 v[8:11], v0, v[2:3], v20";
    for (text, wave, max) in [(half, 32, 1), (narrow, 64, 3), (deep, 32, 0), (deep_narrow, 64, 1)] {
        let options = Options::new(Arch::Rdna4).wave(wave);
        for key in 0..5 {
            let line = format!("{text} index_key:{key}");
            assert_eq!(parse(&line, &options, &NoSymbols).is_ok(), key <= max, "{line} in waves of {wave}");
        }
    }
}
