//! Classes of permitted differences between our assembler and disassembler and LLVM's.

use super::referee::words_of;
use wavesim::arch::Arch;
use wavesim::asm::Options;

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// LLVM does not disassemble the words.
    NoText,
    Text,
    /// LLVM does not assemble our text.
    NoWords,
    Words,
}

/// An instruction, with LLVM's text and words.
pub struct Case {
    pub arch: Arch,
    pub name: &'static str,
    pub encoding: &'static str,
    pub words: Vec<u32>,
    pub text: String,
    pub llvm_text: Option<String>,
    pub llvm_words: Option<Vec<u32>>,
}

impl Case {
    pub fn differences(&self) -> Vec<Difference> {
        let mut out = Vec::new();
        match &self.llvm_text {
            None => out.push(Difference::NoText),
            Some(text) if *text != self.text => out.push(Difference::Text),
            Some(_) => {}
        }
        match &self.llvm_words {
            None => out.push(Difference::NoWords),
            Some(words) if words_of(&self.text, &Options::new(self.arch)).as_ref() != Ok(words) => {
                out.push(Difference::Words);
            }
            Some(_) => {}
        }
        out
    }

    pub fn class(&self, kind: Difference) -> Option<&'static Class> {
        CLASSES.iter().find(|c| c.kinds.contains(&kind) && (c.holds)(self))
    }
}

/// A class of differences from LLVM 19.
pub struct Class {
    pub id: &'static str,
    pub kinds: &'static [Difference],
    pub holds: fn(&Case) -> bool,
}

pub const ALL: &[Difference] =
    &[Difference::NoText, Difference::Text, Difference::NoWords, Difference::Words];

/// Instructions or forms that LLVM 19 lacks: the name, and a prefix of the encoding's name (without `ENC_`).
pub const UNKNOWN: [(&str, &str); 30] = [
    ("DS_NOP", ""),
    ("DS_BPERMUTE_FI_B32", ""),
    ("DS_BVH_STACK_PUSH4_POP1_RTN_B32", ""),
    ("DS_BVH_STACK_PUSH8_POP1_RTN_B32", ""),
    ("DS_BVH_STACK_PUSH8_POP2_RTN_B64", ""),
    ("DS_ORDERED_COUNT", ""),
    ("GLOBAL_ATOMIC_CMPSWAP_F32", ""),
    ("GLOBAL_LOAD_LDS_ADDTID_B32", ""),
    ("GLOBAL_LOAD_LDS_B32", ""),
    ("GLOBAL_LOAD_LDS_I16", ""),
    ("GLOBAL_LOAD_LDS_I8", ""),
    ("GLOBAL_LOAD_LDS_U16", ""),
    ("GLOBAL_LOAD_LDS_U8", ""),
    ("IMAGE_BVH8_INTERSECT_RAY", ""),
    ("IMAGE_BVH_DUAL_INTERSECT_RAY", ""),
    ("SCRATCH_LOAD_LDS_B32", ""),
    ("SCRATCH_LOAD_LDS_I16", ""),
    ("SCRATCH_LOAD_LDS_I8", ""),
    ("SCRATCH_LOAD_LDS_U16", ""),
    ("SCRATCH_LOAD_LDS_U8", ""),
    ("S_ALLOC_VGPR", ""),
    ("S_ENDPGM_ORDERED_PS_DONE", ""),
    ("S_SET_VALU_COEXEC_MODE", ""),
    ("V_ACCVGPR_MOV_B32", "VOP3"),
    ("V_DOT2_F32_BF16", "VOP3P_VOP_DPP"),
    ("V_DUAL_DOT2ACC_F32_BF16", ""),
    ("V_DUAL_DOT2ACC_F32_F16", ""),
    ("V_FMA_DX9_ZERO_F32", "VOP3_VOP_DPP"),
    ("V_MOV_B16", ""),
    ("V_READFIRSTLANE_B32", "VOP3"),
];

pub static CLASSES: &[Class] = &[
    Class {
        id: "unknown",
        kinds: ALL,
        holds: |c| {
            let encoding = c.encoding.trim_start_matches("ENC_");
            let listed = UNKNOWN.iter().any(|(name, begin)| c.name == *name && encoding.starts_with(begin));
            listed || c.name == "V_SWAP_B16"
        },
    },
    Class {
        id: "short-halves",
        kinds: ALL,
        holds: |c| {
            let encoding = c.encoding.trim_start_matches("ENC_");
            let short = ["VOP1", "VOP2", "VOPC"].iter().any(|e| encoding.starts_with(e));
            // Unless it names halves (`suite`), LLVM 22 has no OP_SEL for most of these.
            let selected = c.arch == Arch::Cdna5 && (encoding == "VOP3" || encoding.starts_with("VOP3_"));
            short && c.text.contains(".h") || selected && c.text.contains(" op_sel:[")
        },
    },
    Class {
        id: "mixed-literal",
        kinds: &[Difference::Text, Difference::NoWords, Difference::Words],
        holds: |c| c.name.starts_with("V_FMA_MIX") && c.encoding.ends_with("INST_LITERAL"),
    },
    Class {
        id: "mixed-lanes",
        kinds: &[Difference::NoText, Difference::Text, Difference::NoWords],
        holds: |c| c.name.starts_with("V_FMA_MIX") && c.encoding.contains("DPP"),
    },
    Class {
        id: "relative-move",
        kinds: &[Difference::NoText, Difference::Text, Difference::NoWords],
        holds: |c| c.name.starts_with("V_MOVRELS"),
    },
    Class {
        id: "interpolation-sources",
        kinds: &[Difference::NoText, Difference::Text, Difference::NoWords],
        holds: |c| c.name.starts_with("V_INTERP_") && matches!(c.arch, Arch::Rdna3 | Arch::Rdna35),
    },
    Class {
        id: "scalar-compare",
        kinds: &[Difference::NoText, Difference::Text],
        holds: |c| c.name.starts_with("S_CMP_") && c.name.ends_with("_F16"),
    },
    Class {
        id: "wide-literal-sign",
        kinds: &[Difference::NoWords],
        holds: |c| {
            let sign = c.text.contains("neg(0x") || c.text.contains("|0x");
            c.name.contains("F64") && c.encoding.ends_with("INST_LITERAL") && sign
        },
    },
    Class { id: "null-ranges", kinds: &[Difference::NoWords], holds: |c| c.text.contains(" null") },
    Class {
        id: "one-address",
        kinds: &[Difference::Text],
        // A single address, with or without brackets.
        holds: |c| c.encoding == "ENC_MIMG_NSA" && !c.text.contains(", ["),
    },
    Class {
        id: "dot-modifiers",
        kinds: ALL,
        holds: |c| {
            let modified = [" clamp", " mul:", " div:", "op_sel"].iter().any(|m| c.text.contains(m));
            matches!(c.name, "V_DOT2_F16_F16" | "V_DOT2_BF16_BF16") && modified
        },
    },
    Class {
        id: "accumulator-half",
        kinds: ALL,
        holds: |c| c.name == "V_FMAC_F16" && c.text.contains("op_sel:"),
    },
    Class {
        id: "accumulating-lanes",
        kinds: &[Difference::Text],
        holds: |c| c.arch == Arch::Cdna5 && c.name.starts_with("V_FMAC_F") && c.encoding.contains("DPP"),
    },
    Class {
        id: "no-inline",
        kinds: &[Difference::NoText],
        holds: |c| matches!(c.name, "V_CVT_PK_FP8_F16" | "V_CVT_PK_BF8_F16"),
    },
    Class {
        id: "write-back-hint",
        kinds: &[Difference::Text, Difference::Words],
        holds: |c| {
            c.arch.is_cdna() && matches!(c.name, "BUFFER_WBL2" | "BUFFER_INV") && c.text.contains(" nt")
        },
    },
    Class {
        id: "scalar-scales",
        kinds: &[Difference::Text, Difference::NoWords],
        holds: |c| c.encoding == "ENC_VOP3PX2",
    },
    Class {
        id: "scaled-modifiers",
        kinds: &[Difference::NoText, Difference::NoWords],
        holds: |c| {
            let modified = [" clamp", " mul:", " div:", "|", "-", "neg("].iter().any(|m| c.text.contains(m));
            c.name.starts_with("V_CVT_SCALEF32_") && modified
        },
    },
    Class {
        id: "later-llvm",
        kinds: &[Difference::NoText, Difference::NoWords],
        holds: |c| c.arch == Arch::Cdna4 && c.name == "BUFFER_STORE_LDS_DWORD",
    },
    Class {
        id: "barrier-resource",
        kinds: &[Difference::NoWords],
        holds: |c| c.arch.is_cdna() && c.name.starts_with("DS_GWS_"),
    },
];
