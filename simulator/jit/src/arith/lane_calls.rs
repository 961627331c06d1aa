//! Functions of handlers that compiled code calls for all eight lanes of a packet, where the host has no
//! instruction.

use crate::arith::builder::{Bug, Builder, R};
use crate::arith::val::Val;
use crate::frame::Frame;
use crate::frame::frame_offset;
use crate::lowering::{LaneFunction, Transcendental};
use wavesim_machine::exec::rt::{self, Flush, Keep, Mode};
use wavesim_x64::inst::{Class, Inst, Mem};

/// The number of lanes of a packet.
pub const LANES: usize = 8;
/// The index of the results in [`Frame::lane_buffer`], in elements: after up to four arguments.
pub const RESULT: usize = 4 * LANES;

/// A float mode that handlers are specialised for.
trait StaticMode: Mode {
    const VALUE: Self;
}

impl StaticMode for Keep {
    const VALUE: Keep = Keep;
}

impl StaticMode for Flush {
    const VALUE: Flush = Flush;
}

/// Applies a function to each lane's arguments, which are words or doublewords (`T`), and stores the results.
///
/// # Safety
/// The frame must be that of compiled code that has stored as many arguments as the function reads.
pub unsafe fn for_each_lane<T: Copy, const N: usize>(frame: *mut Frame, function: impl Fn([T; N]) -> T) {
    const { assert!(N * LANES <= RESULT && size_of::<T>() <= 8) };
    for lane in 0..LANES {
        // SAFETY: the contract guarantees a valid frame with arguments; both indices are inside the buffer,
        // which has five doublewords per lane.
        unsafe {
            let lane_buffer: *mut T = (&raw mut (*frame).lane_buffer).cast();
            let args = std::array::from_fn(|n| *lane_buffer.add(n * LANES + lane));
            *lane_buffer.add(RESULT + lane) = function(args);
        }
    }
}

/// Applies a function to the first argument of all lanes at once, in place.
///
/// # Safety
/// As for [`for_each_lane`].
unsafe fn for_packet(frame: *mut Frame, function: impl FnOnce(&mut [u32; LANES])) {
    // SAFETY: the contract guarantees a valid frame with arguments; the buffer has enough words.
    unsafe {
        let lane_buffer: *mut [u32; LANES] = (&raw mut (*frame).lane_buffer).cast();
        let mut lanes = *lane_buffer;
        function(&mut lanes);
        *lane_buffer.add(RESULT / LANES) = lanes;
    }
}

macro_rules! functions {
    ($($name:ident $how:ident |$mode:ident, $args:pat_param| $result:expr;)*) => { $(
        /// # Safety
        /// Must be called by compiled code with its frame, which has the arguments, on a supported host.
        #[cfg(target_arch = "x86_64")]
        unsafe extern "sysv64" fn $name<M: StaticMode>(frame: *mut Frame) {
            let $mode = M::VALUE;
            // SAFETY: the contract guarantees a valid frame; supported hosts have the instructions of fast
            // handlers.
            unsafe { $how(frame, |$args| $result) }
        }

        /// # Safety
        /// Must be called by compiled code with its frame, which has the arguments.
        #[cfg(not(target_arch = "x86_64"))]
        unsafe extern "C" fn $name<M: StaticMode>(frame: *mut Frame) {
            let $mode = M::VALUE;
            // SAFETY: the contract guarantees a valid frame with arguments.
            unsafe { $how(frame, |$args| $result) }
        }
    )*
        /// Returns the addresses and names of all instances.
        pub fn names() -> Vec<(u64, &'static str)> {
            vec![$(
                ($name::<Flush> as *const () as u64, stringify!($name)),
                ($name::<Keep> as *const () as u64, stringify!($name)),
            )*]
        }
    };
}

functions! {
    brain_of_single for_each_lane |m, [a]| rt::cvt_f32_bf16(&m, a);
    fp8_of_single for_each_lane |m, [a]| rt::cvt_f32_fp8(&m, a);
    bf8_of_single for_each_lane |m, [a]| rt::cvt_f32_bf8(&m, a);
    single_of_fp8 for_each_lane |m, [a]| rt::cvt_fp8_f32(&m, a);
    single_of_bf8 for_each_lane |m, [a]| rt::cvt_bf8_f32(&m, a);
    signed_norm_of_half for_each_lane |m, [a]| rt::snorm_f16(&m, a);
    unsigned_norm_of_half for_each_lane |m, [a]| rt::unorm_f16(&m, a);
    signed_norm_of_single for_each_lane |m, [a]| rt::snorm_f32(&m, a);
    unsigned_norm_of_single for_each_lane |m, [a]| rt::unorm_f32(&m, a);
    byte_of_single for_each_lane |m, [a]| rt::cvt_f32_u8(&m, a);
    fp8_by_seed for_each_lane |m, [a, seed]| rt::fp8_sr_f32(&m, a, seed);
    bf8_by_seed for_each_lane |m, [a, seed]| rt::bf8_sr_f32(&m, a, seed);
    sum_toward_zero for_each_lane |m, [a, b, c]| rt::fma_rtz_f32(&m, a, b, c);
    scaled_half for_each_lane |m, [a, n]| rt::ldexp_f16(&m, a, n);
    significand_of_half for_each_lane |m, [a]| rt::frexp_mant_f16(&m, a);
    exponent_of_half for_each_lane |m, [a]| rt::frexp_exp_f16(&m, a);
    exp2 for_packet |_m, a| rt::exp2_f32_eight(M::FLUSH, a);
    log2 for_packet |_m, a| rt::log2_f32_eight(M::FLUSH, a);
    sine for_packet |_m, a| rt::sin_turns_f32_eight(M::FLUSH, a);
    cosine for_packet |_m, a| rt::cos_turns_f32_eight(M::FLUSH, a);
    exp2_half for_packet |_m, a| rt::exp2_f16_eight(a);
    log2_half for_packet |_m, a| rt::log2_f16_eight(a);
    sine_half for_packet |_m, a| rt::sin_turns_f16_eight(a);
    cosine_half for_packet |_m, a| rt::cos_turns_f16_eight(a);
}

/// Returns the address of a function, for a mode.
pub fn address(function: LaneFunction, flush: bool) -> u64 {
    macro_rules! in_mode {
        ($name:ident) => {
            if flush { $name::<Flush> as *const () as u64 } else { $name::<Keep> as *const () as u64 }
        };
    }
    match function {
        LaneFunction::F32ToBf16 => in_mode!(brain_of_single),
        LaneFunction::F32ToFp8 => in_mode!(fp8_of_single),
        LaneFunction::F32ToBf8 => in_mode!(bf8_of_single),
        LaneFunction::Fp8ToF32 => in_mode!(single_of_fp8),
        LaneFunction::Bf8ToF32 => in_mode!(single_of_bf8),
        LaneFunction::F16ToSnorm => in_mode!(signed_norm_of_half),
        LaneFunction::F16ToUnorm => in_mode!(unsigned_norm_of_half),
        LaneFunction::F32ToSnorm => in_mode!(signed_norm_of_single),
        LaneFunction::F32ToUnorm => in_mode!(unsigned_norm_of_single),
        LaneFunction::F32ToU8 => in_mode!(byte_of_single),
        LaneFunction::ToFp8Sr => in_mode!(fp8_by_seed),
        LaneFunction::ToBf8Sr => in_mode!(bf8_by_seed),
        LaneFunction::FmaRtz => in_mode!(sum_toward_zero),
        LaneFunction::LdexpF16 => in_mode!(scaled_half),
        LaneFunction::FrexpMantissaF16 => in_mode!(significand_of_half),
        LaneFunction::FrexpExponentF16 => in_mode!(exponent_of_half),
        LaneFunction::F32(Transcendental::Exp2) => in_mode!(exp2),
        LaneFunction::F32(Transcendental::Log2) => in_mode!(log2),
        LaneFunction::F32(Transcendental::Sin) => in_mode!(sine),
        LaneFunction::F32(Transcendental::Cos) => in_mode!(cosine),
        LaneFunction::F16(Transcendental::Exp2) => in_mode!(exp2_half),
        LaneFunction::F16(Transcendental::Log2) => in_mode!(log2_half),
        LaneFunction::F16(Transcendental::Sin) => in_mode!(sine_half),
        LaneFunction::F16(Transcendental::Cos) => in_mode!(cosine_half),
    }
}

/// Returns whether a function is correct whether MXCSR.DAZ is set or not: those of one f32 flush denormals of
/// arguments and results themselves, and their f64 intermediates are never denormal. On aarch64, flushing also makes
/// results zero that would round to the least normal number.
pub fn allows_any_mxcsr(function: LaneFunction) -> bool {
    cfg!(target_arch = "x86_64") && matches!(function, LaneFunction::F32(_))
}

impl Builder {
    /// Calls a function of words. If only some lanes are demanded, the call is skipped in packets without
    /// any.
    pub fn call_per_lane(&mut self, function: LaneFunction, args: &[Val]) -> R<Val> {
        if self.packet.is_none() {
            return Err(Bug("a lane function of uniform values"));
        }
        let mut words = Vec::new();
        for arg in args {
            words.push(self.lanes(*arg)?);
        }
        let (out, done) = (self.f.fresh(Class::Vec), self.f.label());
        if let Some(only) = self.demanded {
            let none = self.f.vconst([0; 8]);
            self.f.assign(out, none);
            self.f.branch_unless_any(only, only, done);
        }
        for (n, v) in (0..).zip(&words) {
            self.f.vstore(self.frame, frame_offset::LANE_BUFFER + 32 * n, *v);
        }
        let called = address(function, self.flush);
        if allows_any_mxcsr(function) {
            self.f.push(Inst::ColdCall { function: called, arg: self.frame });
        } else {
            self.call_cold(called);
        }
        let from = Mem { base: self.frame, disp: frame_offset::LANE_BUFFER + 4 * RESULT as i32 };
        self.f.push(Inst::VecLoad { d: out, from, foldable: false });
        self.f.push(Inst::Label(done));
        Ok(Val::Lanes(out))
    }
}
