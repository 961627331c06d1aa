//! The vector instructions and their operand kinds, which are derived from their names: the encoder is built
//! without its table of operand kinds.

use crate::encode::Kind;
use std::sync::LazyLock;

macro_rules! codes {
    ($($name:ident)*) => {
        /// The vector instructions that functions may contain, with the names of `iced_x86::Code`. (All its
        /// 4900 names would take 0.2 MB.)
        #[allow(missing_docs, non_camel_case_types)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($name),* }

        impl Code {
            const ALL: &[Code] = &[$(Code::$name),*];

            /// Returns the encoder's code.
            pub(crate) fn to_iced(self) -> iced_x86::Code {
                match self { $(Code::$name => iced_x86::Code::$name),* }
            }
        }
    };
}

codes! {
    VEX_Vaddpd_ymm_ymm_ymmm256 VEX_Vaddps_ymm_ymm_ymmm256 VEX_Vcmppd_ymm_ymm_ymmm256_imm8 VEX_Vcmpps_ymm_ymm_ymmm256_imm8
    VEX_Vcvtdq2pd_ymm_xmmm128 VEX_Vcvtdq2ps_ymm_ymmm256 VEX_Vcvtpd2ps_xmm_ymmm256 VEX_Vcvtph2ps_ymm_xmmm128 VEX_Vcvtps2pd_ymm_xmmm128
    VEX_Vcvtps2ph_xmmm128_ymm_imm8 VEX_Vcvttpd2dq_xmm_ymmm256 VEX_Vcvttps2dq_ymm_ymmm256 VEX_Vdivpd_ymm_ymm_ymmm256
    VEX_Vdivps_ymm_ymm_ymmm256 VEX_Vinserti128_ymm_ymm_xmmm128_imm8 VEX_Vmaxpd_ymm_ymm_ymmm256 VEX_Vmaxps_ymm_ymm_ymmm256
    VEX_Vminpd_ymm_ymm_ymmm256 VEX_Vminps_ymm_ymm_ymmm256 VEX_Vmovsldup_ymm_ymmm256 VEX_Vmulpd_ymm_ymm_ymmm256 VEX_Vmulps_ymm_ymm_ymmm256
    VEX_Vpabsd_ymm_ymmm256 VEX_Vpackssdw_ymm_ymm_ymmm256 VEX_Vpackusdw_ymm_ymm_ymmm256 VEX_Vpackuswb_ymm_ymm_ymmm256
    VEX_Vpaddb_ymm_ymm_ymmm256 VEX_Vpaddd_ymm_ymm_ymmm256 VEX_Vpaddq_ymm_ymm_ymmm256 VEX_Vpaddusb_ymm_ymm_ymmm256 VEX_Vpand_ymm_ymm_ymmm256
    VEX_Vpandn_ymm_ymm_ymmm256 VEX_Vpblendd_ymm_ymm_ymmm256_imm8 VEX_Vpbroadcastd_ymm_xmmm32 VEX_Vpbroadcastq_ymm_xmmm64
    VEX_Vpcmpeqb_ymm_ymm_ymmm256 VEX_Vpcmpeqd_ymm_ymm_ymmm256 VEX_Vpcmpeqq_ymm_ymm_ymmm256 VEX_Vpcmpgtb_ymm_ymm_ymmm256
    VEX_Vpcmpgtd_ymm_ymm_ymmm256 VEX_Vpcmpgtq_ymm_ymm_ymmm256 VEX_Vperm2i128_ymm_ymm_ymmm256_imm8 VEX_Vpermd_ymm_ymm_ymmm256
    VEX_Vpermq_ymm_ymmm256_imm8 VEX_Vpmaddubsw_ymm_ymm_ymmm256 VEX_Vpmaddwd_ymm_ymm_ymmm256 VEX_Vpmaxsd_ymm_ymm_ymmm256
    VEX_Vpmaxud_ymm_ymm_ymmm256 VEX_Vpminsd_ymm_ymm_ymmm256 VEX_Vpminud_ymm_ymm_ymmm256 VEX_Vpmovsxdq_ymm_xmmm128 VEX_Vpmovzxbd_ymm_xmmm64
    VEX_Vpmovzxdq_ymm_xmmm128 VEX_Vpmovzxwd_ymm_xmmm128 VEX_Vpmuldq_ymm_ymm_ymmm256 VEX_Vpmulld_ymm_ymm_ymmm256 VEX_Vpmuludq_ymm_ymm_ymmm256
    VEX_Vpor_ymm_ymm_ymmm256 VEX_Vpsadbw_ymm_ymm_ymmm256 VEX_Vpshufb_ymm_ymm_ymmm256 VEX_Vpshufd_ymm_ymmm256_imm8 VEX_Vpslld_ymm_ymm_imm8
    VEX_Vpsllq_ymm_ymm_imm8 VEX_Vpsllvd_ymm_ymm_ymmm256 VEX_Vpsllvq_ymm_ymm_ymmm256 VEX_Vpsrad_ymm_ymm_imm8 VEX_Vpsravd_ymm_ymm_ymmm256
    VEX_Vpsrld_ymm_ymm_imm8 VEX_Vpsrld_ymm_ymm_xmmm128 VEX_Vpsrldq_ymm_ymm_imm8 VEX_Vpsrlq_ymm_ymm_imm8 VEX_Vpsrlvd_ymm_ymm_ymmm256
    VEX_Vpsrlvq_ymm_ymm_ymmm256 VEX_Vpsubd_ymm_ymm_ymmm256 VEX_Vpsubq_ymm_ymm_ymmm256 VEX_Vpunpckhdq_ymm_ymm_ymmm256
    VEX_Vpunpckhqdq_ymm_ymm_ymmm256 VEX_Vpunpckldq_ymm_ymm_ymmm256 VEX_Vpunpcklqdq_ymm_ymm_ymmm256 VEX_Vpxor_ymm_ymm_ymmm256
    VEX_Vroundpd_ymm_ymmm256_imm8 VEX_Vroundps_ymm_ymmm256_imm8 VEX_Vrsqrtps_ymm_ymmm256 VEX_Vshufps_ymm_ymm_ymmm256_imm8 VEX_Vsqrtpd_ymm_ymmm256
    VEX_Vsqrtps_ymm_ymmm256 VEX_Vsubpd_ymm_ymm_ymmm256 VEX_Vsubps_ymm_ymm_ymmm256
}

/// The kinds of up to three operands, without an immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    kinds: u8,
}

const COMMUTES: u8 = 0x40;
const MEMORY: u8 = 0x20;

/// Indexed by [`Code`].
static SHAPES: LazyLock<Vec<Shape>> =
    LazyLock::new(|| Code::ALL.iter().map(|code| Shape::read(&format!("{code:?}"))).collect());

/// Integer operations whose operands may be swapped. Those of float operations may not: the order determines
/// which NaN results.
const COMMUTATIVE: [&str; 20] = [
    "Vpaddb", "Vpaddw", "Vpaddd", "Vpaddq", "Vpmulld", "Vpmullw", "Vpmuludq", "Vpmuldq", "Vpand", "Vpor",
    "Vpxor", "Vandps", "Vorps", "Vxorps", "Vandpd", "Vorpd", "Vxorpd", "Vpmaddwd", "Vpcmpeqd", "Vpcmpeqq",
];

impl Shape {
    pub fn of(code: Code) -> Shape {
        SHAPES[code as usize]
    }

    /// Parses a name such as `VEX_Vpmovsxdq_ymm_xmmm128`.
    fn read(name: &str) -> Shape {
        let mut parts = name.split('_').skip(1);
        let mnemonic = parts.next().unwrap_or_default();
        let mut kinds = 0;
        for (n, part) in parts.filter(|part| !part.starts_with("imm")).take(3).enumerate() {
            if part.starts_with('x') {
                kinds |= 1 << n;
            }
            // The last one is relevant: `VEX_Vcvtps2ph_xmmm128_ymm_imm8` is a store.
            kinds = kinds & !MEMORY | if part.len() > 3 { MEMORY } else { 0 };
        }
        let minmax = mnemonic.starts_with("Vpmin") || mnemonic.starts_with("Vpmax");
        if minmax || COMMUTATIVE.contains(&mnemonic) {
            kinds |= COMMUTES;
        }
        Shape { kinds }
    }

    /// Returns the register class of the `n`-th operand.
    pub fn kind(self, n: usize) -> Kind {
        if self.kinds >> n & 1 == 1 { Kind::Xmm } else { Kind::Ymm }
    }

    /// Returns whether the last operand may be memory.
    pub fn accepts_memory(self) -> bool {
        self.kinds & MEMORY != 0
    }

    pub fn is_commutative(self) -> bool {
        self.kinds & COMMUTES != 0
    }
}
