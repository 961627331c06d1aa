//! Classes of lines that our assembler and LLVM's treat differently.

use super::classes::UNKNOWN;
use wavesim::arch::Arch;
use wavesim::asm::dialect::absent::ABSENT;

/// A line with the words from both assemblers; `None` if the line is rejected.
pub struct Written {
    pub arch: Arch,
    pub text: String,
    /// Name of the instruction that the line was derived from.
    pub name: &'static str,
    pub encoding: &'static str,
    pub ours: Option<Vec<u32>>,
    pub llvm: Option<Vec<u32>>,
    /// Whether LLVM accepts the instruction as we print it.
    pub printed: bool,
}

pub struct WrittenClass {
    pub id: &'static str,
    pub holds: fn(&Written) -> bool,
}

pub fn has_any(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| text.contains(part))
}

pub static WRITTEN: &[WrittenClass] = &[
    WrittenClass { id: "spelling", holds: |w| w.llvm.is_none() && w.printed },
    WrittenClass { id: "halves", holds: |w| has_any(&w.text, &[".h", ".l", "op_sel:"]) },
    WrittenClass { id: "literal", holds: |w| w.text.contains("lit(") },
    WrittenClass {
        id: "meaningless",
        holds: |w| {
            // For some CDNA instructions, LLVM selects the SDWA form.
            (w.llvm.is_none() || w.arch.is_cdna())
                && has_any(
                    &w.text,
                    &[" clamp", " mul:", " div:", " d16", " unorm", " glc", " gds", "neg_", "index_key:"],
                )
        },
    },
    WrittenClass {
        id: "truncated",
        holds: |w| {
            w.ours.is_none()
                && has_any(
                    &w.text,
                    &[
                        "fi:2",
                        "bound_ctrl:2",
                        "row_mask:0x10",
                        "offset:",
                        "0x10000",
                        "0x12345",
                        "op_sel_hi:[",
                    ],
                )
        },
    },
    WrittenClass {
        id: "registers",
        holds: |w| {
            w.ours.is_none()
                && has_any(&w.text, &["scc", "src_", "shared_", "exec", "m0", "null", "lds_direct"])
        },
    },
    WrittenClass { id: "suffixes", holds: |w| w.ours.is_none() && has_any(&w.text, &["_e32 ", "_e64 "]) },
    WrittenClass { id: "null-ranges", holds: |w| w.llvm.is_none() && w.text.contains("null") },
    WrittenClass {
        id: "wide-literal-sign",
        holds: |w| w.llvm.is_none() && w.name.contains("F64") && has_any(&w.text, &["|0x", "(0x"]),
    },
    WrittenClass { id: "mixed", holds: |w| w.name.starts_with("V_FMA_MIX") },
    WrittenClass { id: "dot-modifiers", holds: |w| matches!(w.name, "V_DOT2_F16_F16" | "V_DOT2_BF16_BF16") },
    WrittenClass {
        id: "scalar-compare",
        holds: |w| w.name.starts_with("S_CMP_") && w.name.ends_with("_F16"),
    },
    WrittenClass { id: "relative-move", holds: |w| w.name.starts_with("V_MOVRELS") },
    WrittenClass {
        id: "interpolation-sources",
        holds: |w| w.name.starts_with("V_INTERP_") && matches!(w.arch, Arch::Rdna3 | Arch::Rdna35),
    },
    WrittenClass {
        id: "lane-select",
        holds: |w| w.llvm.is_none() && matches!(w.name, "V_READLANE_B32" | "V_WRITELANE_B32"),
    },
    WrittenClass { id: "moves", holds: |w| w.llvm.is_none() && w.name.starts_with("V_MOV_B") },
    WrittenClass { id: "returns", holds: |w| w.ours.is_none() && w.text.contains("TH_ATOMIC_RETURN") },
    WrittenClass { id: "delay-bars", holds: |w| w.text.starts_with("s_delay_alu") },
    WrittenClass { id: "waits", holds: |w| w.arch == Arch::Rdna4 && w.text.starts_with("s_waitcnt ") },
    WrittenClass { id: "two-formats", holds: |w| w.ours.is_none() && w.text.contains("dfmt:") },
    WrittenClass { id: "messages", holds: |w| w.ours.is_none() && w.text.starts_with("s_sendmsg") },
    WrittenClass {
        id: "absent",
        holds: |w| {
            let name = w.text.split(' ').next().unwrap_or_default();
            w.ours.is_none() && ABSENT.iter().any(|(own, archs)| *own == name && archs.contains(&w.arch))
        },
    },
    WrittenClass {
        id: "later-llvm",
        holds: |w| {
            w.llvm.is_none()
                && w.arch == Arch::Cdna4
                && matches!(w.name, "BUFFER_STORE_LDS_DWORD" | "V_READFIRSTLANE_B32")
        },
    },
    WrittenClass {
        id: "unknown",
        holds: |w| {
            let encoding = w.encoding.trim_start_matches("ENC_");
            UNKNOWN.iter().any(|(name, begin)| w.name == *name && encoding.starts_with(begin))
        },
    },
];

impl Written {
    pub fn class(&self) -> Option<&'static str> {
        WRITTEN.iter().find(|c| (c.holds)(self)).map(|c| c.id)
    }
}
