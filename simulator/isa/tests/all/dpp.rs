//! Source codes of DPP.

use wavesim_isa::arch::Arch;
use wavesim_isa::codec::decode;
use wavesim_isa::dpp::{DPP8, DPP8_FETCH_INACTIVE, DPP16};

/// V_MOV_B32 with each code decodes to the form with the announced word.
#[test]
fn codes_match_the_descriptions() {
    for arch in Arch::AMD {
        let codes = [(DPP8, "LANE_SEL_0"), (DPP8_FETCH_INACTIVE, "LANE_SEL_0"), (DPP16, "DPP_CTRL")];
        for (code, field) in codes.into_iter().filter(|(code, _)| *code == DPP16 || !arch.is_cdna()) {
            let inst = decode(arch, &[0x7e00_0200 | code, 0]).expect("an instruction");
            assert!(inst.field(arch.table(), field).is_some(), "{} {code}", arch.name());
        }
    }
}
