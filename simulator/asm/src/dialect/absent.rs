//! Instructions and forms that LLVM has (19, or 22 for CDNA 4 and 5) but the ISA descriptions lack, with the help text of their errors.
//! Nothing specifies their semantics or operands, so the assembler rejects them.
//! `tests/tests/all/llvm/opcodes.rs` searches all opcodes for them.

use wavesim_isa::arch::Arch;

/// LLVM's names, with the architectures that lack the instruction.
pub const ABSENT: [(&str, &[Arch]); 40] = [
    ("buffer_load_lds_b32", &[Arch::Rdna3]),
    ("buffer_load_lds_format_x", &[Arch::Rdna3]),
    ("buffer_load_lds_i16", &[Arch::Rdna3]),
    ("buffer_load_lds_i8", &[Arch::Rdna3]),
    ("buffer_load_lds_u16", &[Arch::Rdna3]),
    ("buffer_load_lds_u8", &[Arch::Rdna3]),
    ("s_atc_probe", &[Arch::Rdna3, Arch::Cdna5]),
    ("s_atc_probe_buffer", &[Arch::Rdna3, Arch::Cdna5]),
    ("s_waitcnt", &[Arch::Rdna4]),
    ("s_wakeup_barrier", &[Arch::Rdna4]),
    ("tensor_save", &[Arch::Cdna5]),
    ("v_dot4_f32_bf8_bf8_e64_dpp", &[Arch::Rdna4]),
    ("v_dot4_f32_bf8_fp8_e64_dpp", &[Arch::Rdna4]),
    ("v_dot4_f32_fp8_bf8_e64_dpp", &[Arch::Rdna4]),
    ("v_dot4_f32_fp8_fp8_e64_dpp", &[Arch::Rdna4]),
    ("v_dual_dot2acc_f32_bf16", &[Arch::Cdna5]),
    ("v_dual_dot2acc_f32_f16", &[Arch::Cdna5]),
    ("v_permlane64_b32", &[Arch::Cdna5]),
    ("v_swmmac_bf16_16x16x32_bf16", &[Arch::Cdna5]),
    ("v_swmmac_f16_16x16x32_f16", &[Arch::Cdna5]),
    ("v_swmmac_f32_16x16x32_bf16", &[Arch::Cdna5]),
    ("v_swmmac_f32_16x16x32_bf8_bf8", &[Arch::Cdna5]),
    ("v_swmmac_f32_16x16x32_bf8_fp8", &[Arch::Cdna5]),
    ("v_swmmac_f32_16x16x32_f16", &[Arch::Cdna5]),
    ("v_swmmac_f32_16x16x32_fp8_bf8", &[Arch::Cdna5]),
    ("v_swmmac_f32_16x16x32_fp8_fp8", &[Arch::Cdna5]),
    ("v_swmmac_i32_16x16x32_iu4", &[Arch::Cdna5]),
    ("v_swmmac_i32_16x16x32_iu8", &[Arch::Cdna5]),
    ("v_swmmac_i32_16x16x64_iu4", &[Arch::Cdna5]),
    ("v_wmma_bf16_16x16x16_bf16", &[Arch::Cdna5]),
    ("v_wmma_f16_16x16x16_f16", &[Arch::Cdna5]),
    ("v_wmma_f32_16x16x16_bf16", &[Arch::Cdna5]),
    ("v_wmma_f32_16x16x16_bf8_bf8", &[Arch::Cdna5]),
    ("v_wmma_f32_16x16x16_bf8_fp8", &[Arch::Cdna5]),
    ("v_wmma_f32_16x16x16_f16", &[Arch::Cdna5]),
    ("v_wmma_f32_16x16x16_fp8_bf8", &[Arch::Cdna5]),
    ("v_wmma_f32_16x16x16_fp8_fp8", &[Arch::Cdna5]),
    ("v_wmma_i32_16x16x16_iu4", &[Arch::Cdna5]),
    ("v_wmma_i32_16x16x16_iu8", &[Arch::Cdna5]),
    ("v_wmma_i32_16x16x32_iu4", &[Arch::Cdna5]),
];

/// Help text for an instruction that the architecture does not have.
pub fn help(name: &str, arch: Arch) -> Option<String> {
    if matches!(arch, Arch::Rdna4 | Arch::Cdna5) && name.starts_with("s_waitcnt") {
        return Some(
            "each counter has a wait instruction of its own: s_wait_loadcnt, s_wait_storecnt, s_wait_samplecnt, s_wait_bvhcnt, s_wait_expcnt, \
             s_wait_dscnt, s_wait_kmcnt"
                .to_string(),
        );
    }
    let listed = ABSENT.iter().any(|(n, archs)| *n == name && archs.contains(&arch));
    listed.then(|| format!("LLVM has it, but the ISA description of {} does not define it", arch.name()))
}
