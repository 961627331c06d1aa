//! The vector instructions that functions may contain, and their operands: a row each. The encoder is built
//! without its own table of operand kinds.

use crate::reg::RegisterKind;

/// The operands of a vector instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The mnemonic in text. Two instructions with the same name differ in the number of registers.
    pub name: &'static str,
    /// The register classes of the operands, the result first.
    pub kinds: &'static [RegisterKind],
    flags: u8,
}

/// The last register operand may be memory.
const MEMORY: u8 = 1;
/// The last operand is an 8-bit immediate.
const IMM: u8 = 2;
/// The two sources may be swapped. Those of float operations may not: the order determines which NaN results.
const COMMUTES: u8 = 4;

impl Shape {
    /// Returns whether the last operand, besides an immediate, may be memory.
    pub fn accepts_memory(self) -> bool {
        self.flags & MEMORY != 0
    }

    pub fn has_imm(self) -> bool {
        self.flags & IMM != 0
    }

    pub fn is_commutative(self) -> bool {
        self.flags & COMMUTES != 0
    }
}

macro_rules! flag {
    (memory) => {
        MEMORY
    };
    (imm) => {
        IMM
    };
    (commutes) => {
        COMMUTES
    };
}

macro_rules! codes {
    ($($code:ident $name:literal [$($kind:ident)*] $($flag:ident)*;)*) => {
        /// The vector instructions that functions may contain, with the names of `iced_x86::Code`. (All its
        /// 4900 names would take 0.2 MB.)
        #[allow(missing_docs, non_camel_case_types)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($code),* }

        impl Code {
            /// All vector instructions.
            pub const ALL: &[Code] = &[$(Code::$code),*];

            /// Returns the name of the instruction in text.
            pub fn name(self) -> &'static str {
                self.shape().name
            }

            /// Returns the number of vectors that the instruction reads: one ([`Inst::Rm`]) or two
            /// ([`Inst::Rvm`]).
            ///
            /// [`Inst::Rm`]: crate::inst::Inst::Rm
            /// [`Inst::Rvm`]: crate::inst::Inst::Rvm
            pub fn sources(self) -> usize {
                self.shape().kinds.len() - 1
            }

            /// Returns whether the instruction has an immediate of 8 bits.
            pub fn has_imm(self) -> bool {
                self.shape().has_imm()
            }

            /// Returns whether the two vectors may be swapped.
            pub fn is_commutative(self) -> bool {
                self.shape().is_commutative()
            }

            pub(crate) fn shape(self) -> Shape {
                const SHAPES: &[Shape] =
                    &[$(Shape { name: $name, kinds: &[$(RegisterKind::$kind),*], flags: 0 $(| flag!($flag))* }),*];
                SHAPES[self as usize]
            }

            /// Returns the encoder's code.
            pub(crate) fn to_iced(self) -> iced_x86::Code {
                match self { $(Code::$code => iced_x86::Code::$code),* }
            }
        }
    };
}

codes! {
    VEX_Vaddpd_ymm_ymm_ymmm256 "vaddpd" [Ymm Ymm Ymm] memory;
    VEX_Vaddps_ymm_ymm_ymmm256 "vaddps" [Ymm Ymm Ymm] memory;
    VEX_Vcmppd_ymm_ymm_ymmm256_imm8 "vcmppd" [Ymm Ymm Ymm] memory imm;
    VEX_Vcmpps_ymm_ymm_ymmm256_imm8 "vcmpps" [Ymm Ymm Ymm] memory imm;
    VEX_Vcvtdq2pd_ymm_xmmm128 "vcvtdq2pd" [Ymm Xmm] memory;
    VEX_Vcvtdq2ps_ymm_ymmm256 "vcvtdq2ps" [Ymm Ymm] memory;
    VEX_Vcvtpd2ps_xmm_ymmm256 "vcvtpd2ps" [Xmm Ymm] memory;
    VEX_Vcvtph2ps_ymm_xmmm128 "vcvtph2ps" [Ymm Xmm] memory;
    VEX_Vcvtps2pd_ymm_xmmm128 "vcvtps2pd" [Ymm Xmm] memory;
    VEX_Vcvtps2ph_xmmm128_ymm_imm8 "vcvtps2ph" [Xmm Ymm] imm;
    VEX_Vcvttpd2dq_xmm_ymmm256 "vcvttpd2dq" [Xmm Ymm] memory;
    VEX_Vcvttps2dq_ymm_ymmm256 "vcvttps2dq" [Ymm Ymm] memory;
    VEX_Vdivpd_ymm_ymm_ymmm256 "vdivpd" [Ymm Ymm Ymm] memory;
    VEX_Vdivps_ymm_ymm_ymmm256 "vdivps" [Ymm Ymm Ymm] memory;
    VEX_Vinserti128_ymm_ymm_xmmm128_imm8 "vinserti128" [Ymm Ymm Xmm] memory imm;
    VEX_Vmaxpd_ymm_ymm_ymmm256 "vmaxpd" [Ymm Ymm Ymm] memory;
    VEX_Vmaxps_ymm_ymm_ymmm256 "vmaxps" [Ymm Ymm Ymm] memory;
    VEX_Vminpd_ymm_ymm_ymmm256 "vminpd" [Ymm Ymm Ymm] memory;
    VEX_Vminps_ymm_ymm_ymmm256 "vminps" [Ymm Ymm Ymm] memory;
    VEX_Vmovsldup_ymm_ymmm256 "vmovsldup" [Ymm Ymm] memory;
    VEX_Vmulpd_ymm_ymm_ymmm256 "vmulpd" [Ymm Ymm Ymm] memory;
    VEX_Vmulps_ymm_ymm_ymmm256 "vmulps" [Ymm Ymm Ymm] memory;
    VEX_Vpabsd_ymm_ymmm256 "vpabsd" [Ymm Ymm] memory;
    VEX_Vpackssdw_ymm_ymm_ymmm256 "vpackssdw" [Ymm Ymm Ymm] memory;
    VEX_Vpackusdw_ymm_ymm_ymmm256 "vpackusdw" [Ymm Ymm Ymm] memory;
    VEX_Vpackuswb_ymm_ymm_ymmm256 "vpackuswb" [Ymm Ymm Ymm] memory;
    VEX_Vpaddb_ymm_ymm_ymmm256 "vpaddb" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpaddd_ymm_ymm_ymmm256 "vpaddd" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpaddq_ymm_ymm_ymmm256 "vpaddq" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpaddusb_ymm_ymm_ymmm256 "vpaddusb" [Ymm Ymm Ymm] memory;
    VEX_Vpand_ymm_ymm_ymmm256 "vpand" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpandn_ymm_ymm_ymmm256 "vpandn" [Ymm Ymm Ymm] memory;
    VEX_Vpblendd_ymm_ymm_ymmm256_imm8 "vpblendd" [Ymm Ymm Ymm] memory imm;
    VEX_Vpbroadcastd_ymm_xmmm32 "vpbroadcastd" [Ymm Xmm] memory;
    VEX_Vpbroadcastq_ymm_xmmm64 "vpbroadcastq" [Ymm Xmm] memory;
    VEX_Vpcmpeqb_ymm_ymm_ymmm256 "vpcmpeqb" [Ymm Ymm Ymm] memory;
    VEX_Vpcmpeqd_ymm_ymm_ymmm256 "vpcmpeqd" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpcmpeqq_ymm_ymm_ymmm256 "vpcmpeqq" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpcmpgtb_ymm_ymm_ymmm256 "vpcmpgtb" [Ymm Ymm Ymm] memory;
    VEX_Vpcmpgtd_ymm_ymm_ymmm256 "vpcmpgtd" [Ymm Ymm Ymm] memory;
    VEX_Vpcmpgtq_ymm_ymm_ymmm256 "vpcmpgtq" [Ymm Ymm Ymm] memory;
    VEX_Vperm2i128_ymm_ymm_ymmm256_imm8 "vperm2i128" [Ymm Ymm Ymm] memory imm;
    VEX_Vpermd_ymm_ymm_ymmm256 "vpermd" [Ymm Ymm Ymm] memory;
    VEX_Vpermq_ymm_ymmm256_imm8 "vpermq" [Ymm Ymm] memory imm;
    VEX_Vpmaddubsw_ymm_ymm_ymmm256 "vpmaddubsw" [Ymm Ymm Ymm] memory;
    VEX_Vpmaddwd_ymm_ymm_ymmm256 "vpmaddwd" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpmaxsd_ymm_ymm_ymmm256 "vpmaxsd" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpmaxud_ymm_ymm_ymmm256 "vpmaxud" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpminsd_ymm_ymm_ymmm256 "vpminsd" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpminud_ymm_ymm_ymmm256 "vpminud" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpmovsxdq_ymm_xmmm128 "vpmovsxdq" [Ymm Xmm] memory;
    VEX_Vpmovzxbd_ymm_xmmm64 "vpmovzxbd" [Ymm Xmm] memory;
    VEX_Vpmovzxdq_ymm_xmmm128 "vpmovzxdq" [Ymm Xmm] memory;
    VEX_Vpmovzxwd_ymm_xmmm128 "vpmovzxwd" [Ymm Xmm] memory;
    VEX_Vpmuldq_ymm_ymm_ymmm256 "vpmuldq" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpmulld_ymm_ymm_ymmm256 "vpmulld" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpmuludq_ymm_ymm_ymmm256 "vpmuludq" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpor_ymm_ymm_ymmm256 "vpor" [Ymm Ymm Ymm] memory commutes;
    VEX_Vpsadbw_ymm_ymm_ymmm256 "vpsadbw" [Ymm Ymm Ymm] memory;
    VEX_Vpshufb_ymm_ymm_ymmm256 "vpshufb" [Ymm Ymm Ymm] memory;
    VEX_Vpshufd_ymm_ymmm256_imm8 "vpshufd" [Ymm Ymm] memory imm;
    VEX_Vpslld_ymm_ymm_imm8 "vpslld" [Ymm Ymm] imm;
    VEX_Vpsllq_ymm_ymm_imm8 "vpsllq" [Ymm Ymm] imm;
    VEX_Vpsllvd_ymm_ymm_ymmm256 "vpsllvd" [Ymm Ymm Ymm] memory;
    VEX_Vpsllvq_ymm_ymm_ymmm256 "vpsllvq" [Ymm Ymm Ymm] memory;
    VEX_Vpsrad_ymm_ymm_imm8 "vpsrad" [Ymm Ymm] imm;
    VEX_Vpsravd_ymm_ymm_ymmm256 "vpsravd" [Ymm Ymm Ymm] memory;
    VEX_Vpsrld_ymm_ymm_imm8 "vpsrld" [Ymm Ymm] imm;
    VEX_Vpsrld_ymm_ymm_xmmm128 "vpsrld" [Ymm Ymm Xmm] memory;
    VEX_Vpsrldq_ymm_ymm_imm8 "vpsrldq" [Ymm Ymm] imm;
    VEX_Vpsrlq_ymm_ymm_imm8 "vpsrlq" [Ymm Ymm] imm;
    VEX_Vpsrlvd_ymm_ymm_ymmm256 "vpsrlvd" [Ymm Ymm Ymm] memory;
    VEX_Vpsrlvq_ymm_ymm_ymmm256 "vpsrlvq" [Ymm Ymm Ymm] memory;
    VEX_Vpsubd_ymm_ymm_ymmm256 "vpsubd" [Ymm Ymm Ymm] memory;
    VEX_Vpsubq_ymm_ymm_ymmm256 "vpsubq" [Ymm Ymm Ymm] memory;
    VEX_Vpunpckhdq_ymm_ymm_ymmm256 "vpunpckhdq" [Ymm Ymm Ymm] memory;
    VEX_Vpunpckhqdq_ymm_ymm_ymmm256 "vpunpckhqdq" [Ymm Ymm Ymm] memory;
    VEX_Vpunpckldq_ymm_ymm_ymmm256 "vpunpckldq" [Ymm Ymm Ymm] memory;
    VEX_Vpunpcklqdq_ymm_ymm_ymmm256 "vpunpcklqdq" [Ymm Ymm Ymm] memory;
    VEX_Vpxor_ymm_ymm_ymmm256 "vpxor" [Ymm Ymm Ymm] memory commutes;
    VEX_Vroundpd_ymm_ymmm256_imm8 "vroundpd" [Ymm Ymm] memory imm;
    VEX_Vroundps_ymm_ymmm256_imm8 "vroundps" [Ymm Ymm] memory imm;
    VEX_Vrsqrtps_ymm_ymmm256 "vrsqrtps" [Ymm Ymm] memory;
    VEX_Vshufps_ymm_ymm_ymmm256_imm8 "vshufps" [Ymm Ymm Ymm] memory imm;
    VEX_Vsqrtpd_ymm_ymmm256 "vsqrtpd" [Ymm Ymm] memory;
    VEX_Vsqrtps_ymm_ymmm256 "vsqrtps" [Ymm Ymm] memory;
    VEX_Vsubpd_ymm_ymm_ymmm256 "vsubpd" [Ymm Ymm Ymm] memory;
    VEX_Vsubps_ymm_ymm_ymmm256 "vsubps" [Ymm Ymm Ymm] memory;
}
