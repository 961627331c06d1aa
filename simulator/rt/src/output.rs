//! Output modifiers of float results, shared by the handlers and the reference executor.

use isa_spec::arith;
use isa_spec::arith::FloatEnv;
use isa_spec::pcode::ir::Ty;
use std::cmp::Ordering::{Equal, Greater, Less};
use wavesim_isa::arch::Arch;

/// MODE.IEEE, where MODE has it: signalling NaNs become quiet.
pub const IEEE: u32 = 1 << 9;
/// MODE.DX10_CLAMP, where MODE has it.
pub const DX10_CLAMP: u32 = 1 << 8;

/// The factors that OMOD encodes (RDNA manuals, *Output Operand Modifiers*).
pub const OMOD: [f64; 4] = [1.0, 2.0, 4.0, 0.5];

/// Returns whether OMOD applies: always, or if denormal results are flushed and MODE.IEEE is 0.
pub fn omod_applies(arch: Arch, flushes: bool, ieee: bool) -> bool {
    arch.facts().float.omod_always || flushes && !ieee
}

/// Returns whether clamping a NaN yields 0 regardless of MODE.DX10_CLAMP.
pub fn always_clamps_nan(arch: Arch) -> bool {
    !arch.facts().float.mode_has_ieee
}

/// Multiplies a result by a factor of [`OMOD`], where [`omod_applies`]. Where it always does, denormal results
/// are then flushed. -0 becomes +0.
pub fn omod(value: u128, ty: Ty, omod: u32, mode: u32, arch: Arch) -> u128 {
    let mut env = FloatEnv::from_mode(mode);
    if omod == 0 || !omod_applies(arch, env.flush_out(ty), mode & IEEE != 0) {
        return value;
    }
    if arch.facts().float.omod_always {
        (env.flush_out32, env.flush_out64) = (true, true);
    }
    let factor = arith::constant(OMOD[omod as usize & 3], ty);
    let out = arith::mul(value, factor, ty, &env);
    let minus_zero = 1u128 << (ty.width() - 1);
    if out == minus_zero { 0 } else { out }
}

/// Clamps a result to [0, 1]. A NaN becomes 0 with MODE.DX10_CLAMP, or where the architecture [always does
/// so](always_clamps_nan).
pub fn clamp(value: u128, ty: Ty, mode: u32, arch: Arch) -> u128 {
    if arith::is_nan(value, ty) {
        let zero = mode & DX10_CLAMP != 0 || always_clamps_nan(arch);
        return if zero { 0 } else { value };
    }
    let env = FloatEnv::KEEP;
    let one = arith::constant(1.0, ty);
    match (arith::compare(value, 0, ty, &env), arith::compare(value, one, ty, &env)) {
        (Some(Less | Equal), _) => 0,
        (_, Some(Greater)) => one,
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: u32 = 0xc0;
    const KEEP: u32 = 0xf0;

    fn f32_omod(value: f32, code: u32, mode: u32, arch: Arch) -> f32 {
        f32::from_bits(omod(value.to_bits() as u128, Ty::F32, code, mode, arch) as u32)
    }

    #[test]
    fn omod_scales() {
        for arch in Arch::RDNA {
            let scaled: Vec<f32> = (0..4).map(|code| f32_omod(3.0, code, FLUSH, arch)).collect();
            assert_eq!(scaled, [3.0, 6.0, 12.0, 1.5], "{arch:?}");
        }
    }

    #[test]
    fn omod_and_denormals() {
        assert_eq!(f32_omod(3.0, 1, KEEP, Arch::Rdna3), 3.0, "ignored: denormal results are kept");
        assert_eq!(f32_omod(3.0, 1, FLUSH | IEEE, Arch::Rdna3), 3.0, "ignored: IEEE mode");
        assert_eq!(f32_omod(3.0, 1, KEEP | IEEE, Arch::Rdna4), 6.0);
        assert_eq!(f32_omod(f32::MIN_POSITIVE, 3, KEEP, Arch::Rdna4), 0.0);
        assert_eq!(f32_omod(-0.0, 1, KEEP, Arch::Rdna4).to_bits(), 0);
        assert_eq!(f32_omod(-0.0, 1, FLUSH, Arch::Rdna3).to_bits(), 0);
        assert_eq!(f32_omod(-0.0, 1, KEEP, Arch::Rdna3).to_bits(), 0x8000_0000, "ignored");
    }

    #[test]
    fn clamp_of_a_nan() {
        let nan = 0x7fc0_0000;
        assert_eq!(clamp(nan, Ty::F32, KEEP, Arch::Rdna3), nan);
        assert_eq!(clamp(nan, Ty::F32, KEEP | DX10_CLAMP, Arch::Rdna3), 0);
        assert_eq!(clamp(nan, Ty::F32, KEEP, Arch::Rdna4), 0);
    }
}
