//! Old instruction names.

use wavesim_asm::dialect::alias::{NAMES, RDNA4};
use wavesim_asm::form::forms;
use wavesim_isa::arch::Arch;

/// Every alias leads to an instruction of some architecture that lacks the old name.
#[test]
fn every_alias_has_an_effect() {
    for (old, new) in NAMES.iter().chain(&RDNA4) {
        let leads = |arch: &Arch| forms(*arch).lookup(old).is_none() && forms(*arch).lookup(new).is_some();
        assert!(Arch::RDNA.iter().any(leads), "{old} for {new}");
    }
}

#[test]
fn old_names_resolve_to_instructions() {
    for (old, new, arch) in [
        ("buffer_load_dwordx3", "buffer_load_b96", Arch::Rdna3),
        ("ds_write2st64_b64", "ds_store_2addr_stride64_b64", Arch::Rdna4),
        ("global_atomic_umax_x2", "global_atomic_max_u64", Arch::Rdna35),
        ("global_atomic_fmin", "global_atomic_min_num_f32", Arch::Rdna4),
        ("s_andn2_saveexec_b64", "s_and_not1_saveexec_b64", Arch::Rdna3),
        ("v_cmpx_tru_f16", "v_cmpx_t_f16", Arch::Rdna3),
        ("v_mfma_f32_32x32x1f32", "v_mfma_f32_32x32x1_2b_f32", Arch::Cdna3),
        ("v_mfma_f32_32x32x4bf16_1k", "v_mfma_f32_32x32x4_2b_bf16", Arch::Cdna3),
        ("v_mfma_i32_16x16x32i8", "v_mfma_i32_16x16x32_i8", Arch::Cdna4),
    ] {
        assert!(forms(arch).lookup(old).is_none());
        assert_eq!(forms(arch).lookup_or_alias(old), forms(arch).lookup(new), "{old}");
        assert!(forms(arch).lookup(new).is_some(), "{new}");
    }
}
