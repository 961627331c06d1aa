//! The instructions of aarch64 that functions are made of: a row each, with the word of the instruction whose operands
//! are all 0, and its text. The words are checked against LLVM's assembler (`tests/a64.rs`).
//!
//! In text, braces have a field: `{rd}` a general register of the width that bit 31 selects, `{wd}` and `{xd}` of 32
//! and 64 bits, `{sd}` and `{bn}` a general register or the stack pointer, `{d}` the number of a register. The letters
//! d, n, m and a are the registers' positions. Other fields are explained in [`FIELDS`].

#[cfg(feature = "disassembly")]
/// The fields of instructions besides registers: their names in text, and their bits.
pub(crate) const FIELDS: &[(&str, u32)] = &[
    // An immediate, and its shift by 12 bits.
    ("u12", 0xfff << 10),
    ("lsl12", 1 << 22),
    // A mask of repeated runs of ones (*DecodeBitMasks* in Arm's manual).
    ("bits", 1 << 31 | 0x1fff << 10),
    ("u16", 0xffff << 5),
    ("hw", 3 << 21),
    ("immr", 0x3f << 16),
    ("imms", 0x3f << 10),
    // Must be the same as bit 31.
    ("N", 1 << 22),
    // Conditions.
    ("c", 15 << 12),
    ("c0", 15),
    // Offsets in units of the access.
    ("o1", 0xfff << 10),
    ("o2", 0xfff << 10),
    ("o4", 0xfff << 10),
    ("o8", 0xfff << 10),
    ("o16", 0xfff << 10),
    // Signed offsets.
    ("i9", 0x1ff << 12),
    ("i7x8", 0x7f << 15),
    ("i7x16", 0x7f << 15),
    // Distances to labels.
    ("rel19", 0x7ffff << 5),
    ("rel21", 0x7ffff << 5 | 3 << 29),
    ("rel26", 0x3ff_ffff),
    // Elements of vectors.
    ("s", 3 << 19),
    ("q", 1 << 20),
    ("s2", 3 << 13),
    ("q2", 1 << 14),
    // An immediate of 8 bits, also one bit for each byte.
    ("u8", 0x1f << 5 | 7 << 16),
    ("bytes", 0x1f << 5 | 7 << 16),
    // Shifts to the left and to the right.
    ("l32", 31 << 16),
    ("l64", 63 << 16),
    ("r32", 31 << 16),
    ("r64", 63 << 16),
    ("u4", 15 << 11),
    // Both sources.
    ("nm", 31 << 5 | 31 << 16),
    // The register after `n`.
    ("n1", 0),
];

#[cfg(feature = "disassembly")]
/// The position of a register's number by its letter.
pub(crate) const POSITIONS: [(char, u32); 4] = [('d', 0), ('n', 5), ('m', 16), ('a', 10)];

macro_rules! rows {
    ($($row:ident $word:literal $text:literal;)*) => {
        /// An instruction of the host.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Row { $($row),* }

        impl Row {
            #[cfg(feature = "disassembly")]
            /// All instructions.
            pub const ALL: &[Row] = &[$(Row::$row),*];

            /// Returns the instruction whose operands are all 0.
            pub const fn word(self) -> u32 {
                const WORDS: &[u32] = &[$($word),*];
                WORDS[self as usize]
            }

            #[cfg(feature = "disassembly")]
            /// Returns the text, with names of fields in braces.
            pub fn text(self) -> &'static str {
                const TEXTS: &[&str] = &[$($text),*];
                TEXTS[self as usize]
            }
        }
    };
}

rows! {
    // Integers
    ADD 0x0b000000 "add {rd}, {rn}, {rm}";
    SUB 0x4b000000 "sub {rd}, {rn}, {rm}";
    CMP 0x6b00001f "cmp {rn}, {rm}";
    TST 0x6a00001f "tst {rn}, {rm}";
    AND 0x0a000000 "and {rd}, {rn}, {rm}";
    ORR 0x2a000000 "orr {rd}, {rn}, {rm}";
    EOR 0x4a000000 "eor {rd}, {rn}, {rm}";
    MVN 0x2a2003e0 "mvn {rd}, {rm}";
    MOV 0x2a0003e0 "mov {rd}, {rm}";
    NEG 0x4b0003e0 "neg {rd}, {rm}";
    MUL 0x1b007c00 "mul {rd}, {rn}, {rm}";
    LSL 0x1ac02000 "lsl {rd}, {rn}, {rm}";
    LSR 0x1ac02400 "lsr {rd}, {rn}, {rm}";
    ASR 0x1ac02800 "asr {rd}, {rn}, {rm}";
    ADD_IMM 0x11000000 "add {sd}, {sn}, #{u12}{lsl12}";
    SUB_IMM 0x51000000 "sub {sd}, {sn}, #{u12}{lsl12}";
    CMP_IMM 0x7100001f "cmp {sn}, #{u12}{lsl12}";
    CMN_IMM 0x3100001f "cmn {sn}, #{u12}{lsl12}";
    AND_IMM 0x12000000 "and {sd}, {rn}, #{bits}";
    ORR_IMM 0x32000000 "orr {sd}, {rn}, #{bits}";
    EOR_IMM 0x52000000 "eor {sd}, {rn}, #{bits}";
    MOVZ 0x52800000 "movz {rd}, #{u16}{hw}";
    MOVN 0x12800000 "movn {rd}, #{u16}{hw}";
    MOVK 0x72800000 "movk {rd}, #{u16}{hw}";
    UBFM 0x53000000 "ubfm {rd}, {rn}, #{immr}, #{imms}{N}";
    SBFM 0x13000000 "sbfm {rd}, {rn}, #{immr}, #{imms}{N}";
    BFM 0x33000000 "bfm {rd}, {rn}, #{immr}, #{imms}{N}";
    RBIT 0x5ac00000 "rbit {rd}, {rn}";
    CLZ 0x5ac01000 "clz {rd}, {rn}";
    REV_W 0x5ac00800 "rev {wd}, {wn}";
    REV_X 0xdac00c00 "rev {xd}, {xn}";
    CSEL 0x1a800000 "csel {rd}, {rn}, {rm}, {c}";
    CSINC 0x1a800400 "csinc {rd}, {rn}, {rm}, {c}";
    // Memory
    LDRB 0x39400000 "ldrb {wd}, [{bn}, #{o1}]";
    LDRH 0x79400000 "ldrh {wd}, [{bn}, #{o2}]";
    LDR_W 0xb9400000 "ldr {wd}, [{bn}, #{o4}]";
    LDR_X 0xf9400000 "ldr {xd}, [{bn}, #{o8}]";
    STRB 0x39000000 "strb {wd}, [{bn}, #{o1}]";
    STRH 0x79000000 "strh {wd}, [{bn}, #{o2}]";
    STR_W 0xb9000000 "str {wd}, [{bn}, #{o4}]";
    STR_X 0xf9000000 "str {xd}, [{bn}, #{o8}]";
    LDR_S 0xbd400000 "ldr s{d}, [{bn}, #{o4}]";
    LDR_Q 0x3dc00000 "ldr q{d}, [{bn}, #{o16}]";
    STR_Q 0x3d800000 "str q{d}, [{bn}, #{o16}]";
    LDURB 0x38400000 "ldurb {wd}, [{bn}, #{i9}]";
    LDURH 0x78400000 "ldurh {wd}, [{bn}, #{i9}]";
    LDUR_W 0xb8400000 "ldur {wd}, [{bn}, #{i9}]";
    LDUR_X 0xf8400000 "ldur {xd}, [{bn}, #{i9}]";
    STURB 0x38000000 "sturb {wd}, [{bn}, #{i9}]";
    STURH 0x78000000 "sturh {wd}, [{bn}, #{i9}]";
    STUR_W 0xb8000000 "stur {wd}, [{bn}, #{i9}]";
    STUR_X 0xf8000000 "stur {xd}, [{bn}, #{i9}]";
    LDUR_S 0xbc400000 "ldur s{d}, [{bn}, #{i9}]";
    LDUR_Q 0x3cc00000 "ldur q{d}, [{bn}, #{i9}]";
    STUR_Q 0x3c800000 "stur q{d}, [{bn}, #{i9}]";
    LDP_Q 0xad400000 "ldp q{d}, q{a}, [{bn}, #{i7x16}]";
    STP_Q 0xad000000 "stp q{d}, q{a}, [{bn}, #{i7x16}]";
    STNP_Q 0xac000000 "stnp q{d}, q{a}, [{bn}, #{i7x16}]";
    LDP_D 0x6d400000 "ldp d{d}, d{a}, [{bn}, #{i7x8}]";
    STP_D 0x6d000000 "stp d{d}, d{a}, [{bn}, #{i7x8}]";
    LDP_X 0xa9400000 "ldp {xd}, {xa}, [{bn}, #{i7x8}]";
    STP_X 0xa9000000 "stp {xd}, {xa}, [{bn}, #{i7x8}]";
    LDR_W_SXTW 0xb860c800 "ldr {wd}, [{bn}, {wm}, sxtw]";
    LDRSW_LSL2 0xb8a07800 "ldrsw {xd}, [{bn}, {xm}, lsl #2]";
    LDR_Q_LITERAL 0x9c000000 "ldr q{d}, {rel19}";
    ADR 0x10000000 "adr {xd}, {rel21}";
    PREFETCH_L2 0xf9800002 "prfm pldl2keep, [{bn}, #{o8}]";
    PREFETCH_L2_UNSCALED 0xf8800002 "prfum pldl2keep, [{bn}, #{i9}]";
    // Control
    B 0x14000000 "b {rel26}";
    BL 0x94000000 "bl {rel26}";
    B_COND 0x54000000 "b.{c0} {rel19}";
    CBZ 0x34000000 "cbz {rd}, {rel19}";
    CBNZ 0x35000000 "cbnz {rd}, {rel19}";
    BR 0xd61f0000 "br {xn}";
    BLR 0xd63f0000 "blr {xn}";
    RET 0xd65f03c0 "ret";
    BRK 0xd4200000 "brk #0";
    MRS_FPCR 0xd53b4400 "mrs {xd}, fpcr";
    MSR_FPCR 0xd51b4400 "msr fpcr, {xd}";
    MRS_FPSR 0xd53b4420 "mrs {xd}, fpsr";
    MSR_FPSR 0xd51b4420 "msr fpsr, {xd}";
    // Between the register files
    FMOV_W_S 0x1e260000 "fmov {wd}, s{n}";
    FMOV_X_D 0x9e660000 "fmov {xd}, d{n}";
    FMOV_D_X 0x9e670000 "fmov d{d}, {xn}";
    UMOV_W 0x0e043c00 "mov {wd}, v{n}.s[{s}]";
    INS_S_W 0x4e041c00 "mov v{d}.s[{s}], {wn}";
    INS_D 0x6e080400 "mov v{d}.d[{q}], v{n}.d[{q2}]";
    DUP_4S_W 0x4e040c00 "dup v{d}.4s, {wn}";
    DUP_2D_X 0x4e080c00 "dup v{d}.2d, {xn}";
    DUP_4S 0x4e040400 "dup v{d}.4s, v{n}.s[{s}]";
    DUP_2D 0x4e080400 "dup v{d}.2d, v{n}.d[{q}]";
    FCMP_S 0x1e202000 "fcmp s{n}, s{m}";
    FCMP_D 0x1e602000 "fcmp d{n}, d{m}";
    // Vectors: logic and immediates
    VMOV 0x4ea01c00 "mov v{d}.16b, v{nm}.16b";
    VAND 0x4e201c00 "and v{d}.16b, v{n}.16b, v{m}.16b";
    VORR 0x4ea01c00 "orr v{d}.16b, v{n}.16b, v{m}.16b";
    VEOR 0x6e201c00 "eor v{d}.16b, v{n}.16b, v{m}.16b";
    VBIC 0x4e601c00 "bic v{d}.16b, v{n}.16b, v{m}.16b";
    VNOT 0x6e205800 "mvn v{d}.16b, v{n}.16b";
    VBSL 0x6e601c00 "bsl v{d}.16b, v{n}.16b, v{m}.16b";
    VBIT 0x6ea01c00 "bit v{d}.16b, v{n}.16b, v{m}.16b";
    VBIF 0x6ee01c00 "bif v{d}.16b, v{n}.16b, v{m}.16b";
    MOVI_16B 0x4f00e400 "movi v{d}.16b, #{u8}";
    MOVI_4S 0x4f000400 "movi v{d}.4s, #{u8}";
    MOVI_4S_8 0x4f002400 "movi v{d}.4s, #{u8}, lsl #8";
    MOVI_4S_16 0x4f004400 "movi v{d}.4s, #{u8}, lsl #16";
    MOVI_4S_24 0x4f006400 "movi v{d}.4s, #{u8}, lsl #24";
    MVNI_4S 0x6f000400 "mvni v{d}.4s, #{u8}";
    MVNI_4S_8 0x6f002400 "mvni v{d}.4s, #{u8}, lsl #8";
    MVNI_4S_16 0x6f004400 "mvni v{d}.4s, #{u8}, lsl #16";
    MVNI_4S_24 0x6f006400 "mvni v{d}.4s, #{u8}, lsl #24";
    MOVI_2D 0x6f00e400 "movi v{d}.2d, #{bytes}";
    // Vectors: integers
    ADD_16B 0x4e208400 "add v{d}.16b, v{n}.16b, v{m}.16b";
    ADD_4S 0x4ea08400 "add v{d}.4s, v{n}.4s, v{m}.4s";
    ADD_2D 0x4ee08400 "add v{d}.2d, v{n}.2d, v{m}.2d";
    SUB_4S 0x6ea08400 "sub v{d}.4s, v{n}.4s, v{m}.4s";
    SUB_2D 0x6ee08400 "sub v{d}.2d, v{n}.2d, v{m}.2d";
    MUL_8H 0x4e609c00 "mul v{d}.8h, v{n}.8h, v{m}.8h";
    MUL_4S 0x4ea09c00 "mul v{d}.4s, v{n}.4s, v{m}.4s";
    UQADD_16B 0x6e200c00 "uqadd v{d}.16b, v{n}.16b, v{m}.16b";
    SQADD_8H 0x4e600c00 "sqadd v{d}.8h, v{n}.8h, v{m}.8h";
    ABS_4S 0x4ea0b800 "abs v{d}.4s, v{n}.4s";
    NEG_4S 0x6ea0b800 "neg v{d}.4s, v{n}.4s";
    NEG_2D 0x6ee0b800 "neg v{d}.2d, v{n}.2d";
    CMEQ_16B 0x6e208c00 "cmeq v{d}.16b, v{n}.16b, v{m}.16b";
    CMEQ_4S 0x6ea08c00 "cmeq v{d}.4s, v{n}.4s, v{m}.4s";
    CMEQ_2D 0x6ee08c00 "cmeq v{d}.2d, v{n}.2d, v{m}.2d";
    CMGT_16B 0x4e203400 "cmgt v{d}.16b, v{n}.16b, v{m}.16b";
    CMGT_4S 0x4ea03400 "cmgt v{d}.4s, v{n}.4s, v{m}.4s";
    CMGT_2D 0x4ee03400 "cmgt v{d}.2d, v{n}.2d, v{m}.2d";
    CMHI_2D 0x6ee03400 "cmhi v{d}.2d, v{n}.2d, v{m}.2d";
    SMAX_4S 0x4ea06400 "smax v{d}.4s, v{n}.4s, v{m}.4s";
    UMAX_4S 0x6ea06400 "umax v{d}.4s, v{n}.4s, v{m}.4s";
    SMIN_4S 0x4ea06c00 "smin v{d}.4s, v{n}.4s, v{m}.4s";
    UMIN_4S 0x6ea06c00 "umin v{d}.4s, v{n}.4s, v{m}.4s";
    UABD_16B 0x6e207400 "uabd v{d}.16b, v{n}.16b, v{m}.16b";
    UADDLP_8H 0x6e202800 "uaddlp v{d}.8h, v{n}.16b";
    UADDLP_4S 0x6e602800 "uaddlp v{d}.4s, v{n}.8h";
    UADDLP_2D 0x6ea02800 "uaddlp v{d}.2d, v{n}.4s";
    ADDP_4S 0x4ea0bc00 "addp v{d}.4s, v{n}.4s, v{m}.4s";
    ADDV_4S 0x4eb1b800 "addv s{d}, v{n}.4s";
    UMAXV_4S 0x6eb0a800 "umaxv s{d}, v{n}.4s";
    UMINV_4S 0x6eb1a800 "uminv s{d}, v{n}.4s";
    CNT_8B 0x0e205800 "cnt v{d}.8b, v{n}.8b";
    ADDV_8B 0x0e31b800 "addv b{d}, v{n}.8b";
    SMULL_4S 0x0e60c000 "smull v{d}.4s, v{n}.4h, v{m}.4h";
    SMULL2_4S 0x4e60c000 "smull2 v{d}.4s, v{n}.8h, v{m}.8h";
    SMULL_2D 0x0ea0c000 "smull v{d}.2d, v{n}.2s, v{m}.2s";
    UMULL_2D 0x2ea0c000 "umull v{d}.2d, v{n}.2s, v{m}.2s";
    XTN_2S 0x0ea12800 "xtn v{d}.2s, v{n}.2d";
    SQXTN_2S 0x0ea14800 "sqxtn v{d}.2s, v{n}.2d";
    SQXTN_4H 0x0e614800 "sqxtn v{d}.4h, v{n}.4s";
    SQXTN2_8H 0x4e614800 "sqxtn2 v{d}.8h, v{n}.4s";
    SQXTUN_4H 0x2e612800 "sqxtun v{d}.4h, v{n}.4s";
    SQXTUN2_8H 0x6e612800 "sqxtun2 v{d}.8h, v{n}.4s";
    SQXTUN_8B 0x2e212800 "sqxtun v{d}.8b, v{n}.8h";
    SQXTUN2_16B 0x6e212800 "sqxtun2 v{d}.16b, v{n}.8h";
    SXTL_8H 0x0f08a400 "sshll v{d}.8h, v{n}.8b, #0";
    SXTL2_8H 0x4f08a400 "sshll2 v{d}.8h, v{n}.16b, #0";
    UXTL_8H 0x2f08a400 "ushll v{d}.8h, v{n}.8b, #0";
    UXTL2_8H 0x6f08a400 "ushll2 v{d}.8h, v{n}.16b, #0";
    UXTL_4S 0x2f10a400 "ushll v{d}.4s, v{n}.4h, #0";
    UXTL2_4S 0x6f10a400 "ushll2 v{d}.4s, v{n}.8h, #0";
    SXTL_2D 0x0f20a400 "sshll v{d}.2d, v{n}.2s, #0";
    SXTL2_2D 0x4f20a400 "sshll2 v{d}.2d, v{n}.4s, #0";
    UXTL_2D 0x2f20a400 "ushll v{d}.2d, v{n}.2s, #0";
    UXTL2_2D 0x6f20a400 "ushll2 v{d}.2d, v{n}.4s, #0";
    // Vectors: shifts
    SHL_4S 0x4f205400 "shl v{d}.4s, v{n}.4s, #{l32}";
    SHL_2D 0x4f405400 "shl v{d}.2d, v{n}.2d, #{l64}";
    SLI_4S 0x6f205400 "sli v{d}.4s, v{n}.4s, #{l32}";
    USHR_4S 0x6f200400 "ushr v{d}.4s, v{n}.4s, #{r32}";
    USHR_2D 0x6f400400 "ushr v{d}.2d, v{n}.2d, #{r64}";
    SSHR_4S 0x4f200400 "sshr v{d}.4s, v{n}.4s, #{r32}";
    SSHR_2D 0x4f400400 "sshr v{d}.2d, v{n}.2d, #{r64}";
    USHL_4S 0x6ea04400 "ushl v{d}.4s, v{n}.4s, v{m}.4s";
    USHL_2D 0x6ee04400 "ushl v{d}.2d, v{n}.2d, v{m}.2d";
    SSHL_4S 0x4ea04400 "sshl v{d}.4s, v{n}.4s, v{m}.4s";
    // Vectors: permutations
    ZIP1_4S 0x4e803800 "zip1 v{d}.4s, v{n}.4s, v{m}.4s";
    ZIP2_4S 0x4e807800 "zip2 v{d}.4s, v{n}.4s, v{m}.4s";
    ZIP1_2D 0x4ec03800 "zip1 v{d}.2d, v{n}.2d, v{m}.2d";
    ZIP2_2D 0x4ec07800 "zip2 v{d}.2d, v{n}.2d, v{m}.2d";
    UZP1_4S 0x4e801800 "uzp1 v{d}.4s, v{n}.4s, v{m}.4s";
    UZP2_4S 0x4e805800 "uzp2 v{d}.4s, v{n}.4s, v{m}.4s";
    UZP1_8H 0x4e401800 "uzp1 v{d}.8h, v{n}.8h, v{m}.8h";
    UZP2_8H 0x4e405800 "uzp2 v{d}.8h, v{n}.8h, v{m}.8h";
    TRN1_4S 0x4e802800 "trn1 v{d}.4s, v{n}.4s, v{m}.4s";
    REV64_4S 0x4ea00800 "rev64 v{d}.4s, v{n}.4s";
    EXT 0x6e000000 "ext v{d}.16b, v{n}.16b, v{m}.16b, #{u4}";
    TBL1 0x4e000000 "tbl v{d}.16b, { v{n}.16b }, v{m}.16b";
    TBL2 0x4e002000 "tbl v{d}.16b, { v{n}.16b, v{n1}.16b }, v{m}.16b";
    // Vectors: floats
    FADD_4S 0x4e20d400 "fadd v{d}.4s, v{n}.4s, v{m}.4s";
    FADD_2D 0x4e60d400 "fadd v{d}.2d, v{n}.2d, v{m}.2d";
    FSUB_4S 0x4ea0d400 "fsub v{d}.4s, v{n}.4s, v{m}.4s";
    FSUB_2D 0x4ee0d400 "fsub v{d}.2d, v{n}.2d, v{m}.2d";
    FMUL_4S 0x6e20dc00 "fmul v{d}.4s, v{n}.4s, v{m}.4s";
    FMUL_2D 0x6e60dc00 "fmul v{d}.2d, v{n}.2d, v{m}.2d";
    FDIV_4S 0x6e20fc00 "fdiv v{d}.4s, v{n}.4s, v{m}.4s";
    FDIV_2D 0x6e60fc00 "fdiv v{d}.2d, v{n}.2d, v{m}.2d";
    FMLA_4S 0x4e20cc00 "fmla v{d}.4s, v{n}.4s, v{m}.4s";
    FMLA_2D 0x4e60cc00 "fmla v{d}.2d, v{n}.2d, v{m}.2d";
    FSQRT_4S 0x6ea1f800 "fsqrt v{d}.4s, v{n}.4s";
    FSQRT_2D 0x6ee1f800 "fsqrt v{d}.2d, v{n}.2d";
    FMAX_4S 0x4e20f400 "fmax v{d}.4s, v{n}.4s, v{m}.4s";
    FMAX_2D 0x4e60f400 "fmax v{d}.2d, v{n}.2d, v{m}.2d";
    FMAXV_4S 0x6e30f800 "fmaxv s{d}, v{n}.4s";
    FMAXP_2D 0x7e70f800 "fmaxp d{d}, v{n}.2d";
    FCMEQ_4S 0x4e20e400 "fcmeq v{d}.4s, v{n}.4s, v{m}.4s";
    FCMEQ_2D 0x4e60e400 "fcmeq v{d}.2d, v{n}.2d, v{m}.2d";
    FCMGE_4S 0x6e20e400 "fcmge v{d}.4s, v{n}.4s, v{m}.4s";
    FCMGE_2D 0x6e60e400 "fcmge v{d}.2d, v{n}.2d, v{m}.2d";
    FCMGT_4S 0x6ea0e400 "fcmgt v{d}.4s, v{n}.4s, v{m}.4s";
    FCMGT_2D 0x6ee0e400 "fcmgt v{d}.2d, v{n}.2d, v{m}.2d";
    FCMEQ_ZERO_4S 0x4ea0d800 "fcmeq v{d}.4s, v{n}.4s, #0.0";
    FCMEQ_ZERO_2D 0x4ee0d800 "fcmeq v{d}.2d, v{n}.2d, #0.0";
    FACGT_4S 0x6ea0ec00 "facgt v{d}.4s, v{n}.4s, v{m}.4s";
    FACGT_2D 0x6ee0ec00 "facgt v{d}.2d, v{n}.2d, v{m}.2d";
    SCVTF_4S 0x4e21d800 "scvtf v{d}.4s, v{n}.4s";
    SCVTF_2D 0x4e61d800 "scvtf v{d}.2d, v{n}.2d";
    FCVTZS_4S 0x4ea1b800 "fcvtzs v{d}.4s, v{n}.4s";
    FCVTZS_2D 0x4ee1b800 "fcvtzs v{d}.2d, v{n}.2d";
    FCVTL_2D 0x0e617800 "fcvtl v{d}.2d, v{n}.2s";
    FCVTL2_2D 0x4e617800 "fcvtl2 v{d}.2d, v{n}.4s";
    FCVTN_2S 0x0e616800 "fcvtn v{d}.2s, v{n}.2d";
    FCVTN2_4S 0x4e616800 "fcvtn2 v{d}.4s, v{n}.2d";
    FCVTL_4S 0x0e217800 "fcvtl v{d}.4s, v{n}.4h";
    FCVTL2_4S 0x4e217800 "fcvtl2 v{d}.4s, v{n}.8h";
    FCVTN_4H 0x0e216800 "fcvtn v{d}.4h, v{n}.4s";
    FCVTN2_8H 0x4e216800 "fcvtn2 v{d}.8h, v{n}.4s";
    FRINTN_4S 0x4e218800 "frintn v{d}.4s, v{n}.4s";
    FRINTN_2D 0x4e618800 "frintn v{d}.2d, v{n}.2d";
    FRINTM_4S 0x4e219800 "frintm v{d}.4s, v{n}.4s";
    FRINTM_2D 0x4e619800 "frintm v{d}.2d, v{n}.2d";
    FRINTP_4S 0x4ea18800 "frintp v{d}.4s, v{n}.4s";
    FRINTP_2D 0x4ee18800 "frintp v{d}.2d, v{n}.2d";
    FRINTZ_4S 0x4ea19800 "frintz v{d}.4s, v{n}.4s";
    FRINTZ_2D 0x4ee19800 "frintz v{d}.2d, v{n}.2d";
    FRINTI_4S 0x6ea19800 "frinti v{d}.4s, v{n}.4s";
    FRINTI_2D 0x6ee19800 "frinti v{d}.2d, v{n}.2d";
}
