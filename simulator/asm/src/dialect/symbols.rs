//! LLVM's names of values: fields of immediates, DPP controls, dimensions, hints, formats, flags.

use super::ArchSet;
use wavesim_isa::arch::Arch;

/// Field names of `OPR_WAITCNT` and LLVM's names, in printing order.
pub const COUNTERS: [(&str, &str); 3] = [("VM", "vmcnt"), ("EXP", "expcnt"), ("LGKM", "lgkmcnt")];

/// Field names of `OPR_DELAY` and LLVM's names, in printing order.
pub const DELAYS: [(&str, &str); 3] =
    [("INSTID0", "instid0"), ("INSTSKIP", "instskip"), ("INSTID1", "instid1")];

/// LLVM's names of hardware registers that the ISA description lacks or names differently.
pub const HWREG_NAMES: [(&[Arch], u32, &str); 12] = [
    (&Arch::CDNA, 16, "TBA_LO"),
    (&Arch::CDNA, 17, "TBA_HI"),
    (&Arch::CDNA, 18, "TMA_LO"),
    (&Arch::CDNA, 19, "TMA_HI"),
    (&[Arch::Rdna3, Arch::Rdna35], 20, "FLAT_SCR_LO"),
    (&[Arch::Rdna3, Arch::Rdna35], 21, "FLAT_SCR_HI"),
    (&[Arch::Rdna3, Arch::Rdna35], 29, "SHADER_CYCLES"),
    (&[Arch::Rdna4], 7, "IB_STS"),
    (&[Arch::Rdna4], 29, "SHADER_CYCLES_LO"),
    (&[Arch::Rdna4], 30, "SHADER_CYCLES_HI"),
    (&[Arch::Rdna4], 31, "DVGPR_ALLOC_LO"),
    (&[Arch::Rdna4], 32, "DVGPR_ALLOC_HI"),
];

/// Hardware registers of the description without an LLVM name; LLVM prints their numbers.
pub const HWREG_NUMBERS: [&str; 14] = [
    "hw_reg_inst_dw0",
    "hw_reg_inst_dw1",
    "hw_reg_ib_dbg0",
    "hw_reg_pc_lo",
    "hw_reg_pc_hi",
    "hw_reg_ib_dbg1",
    "hw_reg_flush_ib",
    "hw_reg_shader_tba_lo",
    "hw_reg_shader_tba_hi",
    "hw_reg_pops_packer",
    "hw_reg_sched_mode",
    "hw_reg_ib_sts2",
    "hw_reg_shader_tma_lo",
    "hw_reg_shader_tma_hi",
];

/// Messages that LLVM names and the description lacks.
pub const MESSAGES: [(&[Arch], u32, &str); 14] = [
    (&[Arch::Rdna3, Arch::Rdna35], 5, "MSG_STALL_WAVE_GEN"),
    (&[Arch::Rdna3, Arch::Rdna35], 6, "MSG_HALT_WAVES"),
    (&[Arch::Rdna4, Arch::Cdna5], 135, "MSG_RTN_GET_SE_AID_ID"),
    (&[Arch::Cdna5], 2, "MSG_HS_TESSFACTOR"),
    (&[Arch::Cdna5], 9, "MSG_GS_ALLOC_REQ"),
    (&Arch::CDNA, 2, "MSG_GS"),
    (&Arch::CDNA, 3, "MSG_GS_DONE"),
    (&Arch::CDNA, 4, "MSG_SAVEWAVE"),
    (&Arch::CDNA, 5, "MSG_STALL_WAVE_GEN"),
    (&Arch::CDNA, 6, "MSG_HALT_WAVES"),
    (&Arch::CDNA, 7, "MSG_ORDERED_PS_DONE"),
    (&Arch::CDNA, 8, "MSG_EARLY_PRIM_DEALLOC"),
    (&Arch::CDNA, 10, "MSG_GET_DOORBELL"),
    (&Arch::CDNA, 15, "MSG_SYSMSG"),
];

/// Messages in the descriptions of architectures that do not have them (CDNA 3 ISA manual, *S_SENDMSG*; LLVM
/// agrees).
pub const ABSENT_MESSAGES: [(ArchSet, &str); 4] = [
    (ArchSet::Cdna, "MSG_HS_TESSFACTOR"),
    (ArchSet::Cdna, "MSG_DEALLOC_VGPRS"),
    (ArchSet::Cdna5, "MSG_RTN_GET_SE_HW_ID"),
    (ArchSet::Cdna5, "MSG_RTN_SAVE_WAVE_HAS_TDM"),
];

/// CDNA messages that take an operation, and whether it is a system operation.
pub const MESSAGES_WITH_OPERATION: [(&str, bool); 3] =
    [("MSG_GS", false), ("MSG_GS_DONE", false), ("MSG_SYSMSG", true)];

/// Operations of system messages, by number.
pub const SYSTEM_OPERATIONS: [&str; 5] =
    ["", "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD", "SYSMSG_OP_HOST_TRAP_ACK", "SYSMSG_OP_TTRACE_PC"];

/// The operation among [`SYSTEM_OPERATIONS`] that gfx9 does not have (LLVM, `Msg`).
pub const OTHER_OPERATIONS: [&str; 1] = ["SYSMSG_OP_HOST_TRAP_ACK"];

/// Microcode versions, with their numbers.
pub const VERSIONS: [(&str, u32); 4] =
    [("UC_VERSION_GFX7", 0), ("UC_VERSION_GFX10", 4), ("UC_VERSION_GFX11", 6), ("UC_VERSION_GFX12", 9)];

/// Flags that are combined with a version.
pub const VERSION_BITS: [(&str, u32); 3] =
    [("UC_VERSION_W64_BIT", 0x2000), ("UC_VERSION_W32_BIT", 0x4000), ("UC_VERSION_MDP_BIT", 0x8000)];

/// A DPP control: a movement of data between lanes.
#[derive(Debug, Clone, Copy)]
pub struct Movement {
    /// The name in assembly.
    pub name: &'static str,
    /// The architectures that support it under this name.
    archs: ArchSet,
    /// The first code.
    pub first: u32,
    /// The number of codes.
    pub count: u32,
    /// The value that the first code denotes; `None` for movements without a value.
    pub from: Option<u32>,
}

const fn movement(name: &'static str, archs: ArchSet, first: u32, count: u32, from: Option<u32>) -> Movement {
    Movement { name, archs, first, count, from }
}

impl Movement {
    /// Returns whether the architecture supports the movement.
    pub fn is_supported_by(&self, arch: Arch) -> bool {
        self.archs.has(arch)
    }
}

/// The DPP controls except `quad_perm`.
pub const DPP: [Movement; 14] = [
    movement("row_shl", ArchSet::Any, 0x101, 15, Some(1)),
    movement("row_shr", ArchSet::Any, 0x111, 15, Some(1)),
    movement("row_ror", ArchSet::Any, 0x121, 15, Some(1)),
    movement("row_mirror", ArchSet::Any, 0x140, 1, None),
    movement("row_half_mirror", ArchSet::Any, 0x141, 1, None),
    movement("row_share", ArchSet::Rdna, 0x150, 16, Some(0)),
    movement("row_xmask", ArchSet::Rdna, 0x160, 16, Some(0)),
    movement("wave_shl", ArchSet::Cdna, 0x130, 1, Some(1)),
    movement("wave_rol", ArchSet::Cdna, 0x134, 1, Some(1)),
    movement("wave_shr", ArchSet::Cdna, 0x138, 1, Some(1)),
    movement("wave_ror", ArchSet::Cdna, 0x13c, 1, Some(1)),
    movement("row_bcast", ArchSet::Cdna, 0x142, 1, Some(15)),
    movement("row_bcast", ArchSet::Cdna, 0x143, 1, Some(31)),
    movement("row_newbcast", ArchSet::Cdna, 0x150, 16, Some(0)),
];

/// Operands that `gpr_idx()` names, by bit number.
pub const GPR_INDEXED: [&str; 4] = ["SRC0", "SRC1", "SRC2", "DST"];

/// Data formats of gfx9's typed buffers, by number (CDNA 3 manual, *Memory Buffer Instructions*).
pub const DATA_FORMATS: [&str; 16] = [
    "INVALID",
    "8",
    "16",
    "8_8",
    "32",
    "16_16",
    "10_11_11",
    "11_11_10",
    "10_10_10_2",
    "2_10_10_10",
    "8_8_8_8",
    "32_32",
    "16_16_16_16",
    "32_32_32",
    "32_32_32_32",
    "RESERVED_15",
];

/// Number formats of gfx9's typed buffers, by number.
pub const NUMBER_FORMATS: [&str; 8] =
    ["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT"];

/// Image dimensions, by the value of DIM (ISA manuals, *Image Dimension*).
pub const DIMS: [&str; 8] = ["1D", "2D", "3D", "CUBE", "1D_ARRAY", "2D_ARRAY", "2D_MSAA", "2D_MSAA_ARRAY"];

/// Messages to the geometry engine of RDNA 2 and before (RDNA 2 manual, *S_SENDMSG*), with their numbers.
pub const GEOMETRY_MESSAGES: [(&str, i64); 2] = [("MSG_GS", 2), ("MSG_GS_DONE", 3)];

/// Operations of [`GEOMETRY_MESSAGES`], by number.
pub const GEOMETRY_OPERATIONS: [&str; 4] = ["GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"];

/// The value of `th:` that makes an atomic return the old value, as `glc` did before RDNA 4.
pub const TH_ATOMIC_RETURN: &str = "TH_ATOMIC_RETURN";

/// Scopes of coherence, by the value of SCOPE.
pub const SCOPES: [&str; 4] = ["SCOPE_CU", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS"];

/// Temporal hints of loads and stores, by the value of TH; the name of the empty one depends on the scope.
pub const HINTS: [&str; 8] = ["RT", "NT", "HT", "", "NT_RT", "RT_NT", "NT_HT", "NT_WB"];

/// Values of `th:` for a load, after `TH_LOAD_`.
pub const LOAD_HINTS: &[(&str, u32)] = &[
    ("DEFAULT", 0),
    ("RT", 0),
    ("NT", 1),
    ("HT", 2),
    ("LU", 3),
    ("BYPASS", 3),
    ("NT_RT", 4),
    ("RT_NT", 5),
    ("NT_HT", 6),
];

/// Values of `th:` for a store, after `TH_STORE_`.
pub const STORE_HINTS: &[(&str, u32)] = &[
    ("DEFAULT", 0),
    ("RT", 0),
    ("NT", 1),
    ("HT", 2),
    ("RT_WB", 3),
    ("BYPASS", 3),
    ("NT_RT", 4),
    ("RT_NT", 5),
    ("NT_HT", 6),
    ("NT_WB", 7),
];

/// Values of `th:` for an atomic, after `TH_ATOMIC_`.
pub const ATOMIC_HINTS: &[(&str, u32)] = &[
    ("DEFAULT", 0),
    ("RT", 0),
    ("RETURN", 1),
    ("RT_RETURN", 1),
    ("NT", 2),
    ("NT_RETURN", 3),
    ("CASCADE_RT", 4),
    ("CASCADE_NT", 6),
];

/// Unified buffer formats by number (ISA manuals, *Buffer Image format*).
pub const FORMATS: [&str; 64] = [
    "INVALID",
    "8_UNORM",
    "8_SNORM",
    "8_USCALED",
    "8_SSCALED",
    "8_UINT",
    "8_SINT",
    "16_UNORM",
    "16_SNORM",
    "16_USCALED",
    "16_SSCALED",
    "16_UINT",
    "16_SINT",
    "16_FLOAT",
    "8_8_UNORM",
    "8_8_SNORM",
    "8_8_USCALED",
    "8_8_SSCALED",
    "8_8_UINT",
    "8_8_SINT",
    "32_UINT",
    "32_SINT",
    "32_FLOAT",
    "16_16_UNORM",
    "16_16_SNORM",
    "16_16_USCALED",
    "16_16_SSCALED",
    "16_16_UINT",
    "16_16_SINT",
    "16_16_FLOAT",
    "10_11_11_FLOAT",
    "11_11_10_FLOAT",
    "10_10_10_2_UNORM",
    "10_10_10_2_SNORM",
    "10_10_10_2_UINT",
    "10_10_10_2_SINT",
    "2_10_10_10_UNORM",
    "2_10_10_10_SNORM",
    "2_10_10_10_USCALED",
    "2_10_10_10_SSCALED",
    "2_10_10_10_UINT",
    "2_10_10_10_SINT",
    "8_8_8_8_UNORM",
    "8_8_8_8_SNORM",
    "8_8_8_8_USCALED",
    "8_8_8_8_SSCALED",
    "8_8_8_8_UINT",
    "8_8_8_8_SINT",
    "32_32_UINT",
    "32_32_SINT",
    "32_32_FLOAT",
    "16_16_16_16_UNORM",
    "16_16_16_16_SNORM",
    "16_16_16_16_USCALED",
    "16_16_16_16_SSCALED",
    "16_16_16_16_UINT",
    "16_16_16_16_SINT",
    "16_16_16_16_FLOAT",
    "32_32_32_UINT",
    "32_32_32_SINT",
    "32_32_32_FLOAT",
    "32_32_32_32_UINT",
    "32_32_32_32_SINT",
    "32_32_32_32_FLOAT",
];

/// Modifiers without a value. Whether an instruction accepts a flag is checked later.
pub const FLAGS: [&str; 31] = [
    "sc0",
    "sc1",
    "nt",
    "glc",
    "slc",
    "dlc",
    "scc_flag",
    "offen",
    "idxen",
    "addr64",
    "lds",
    "tfe",
    "lwe",
    "unorm",
    "r128",
    "a16",
    "d16",
    "gds",
    "clamp",
    "done",
    "row_en",
    "vm",
    "compr",
    "da",
    "high",
    "row_mirror",
    "row_half_mirror",
    "scale_offset",
    "matrix_a_reuse",
    "matrix_b_reuse",
    "nv",
];

/// Registers of other processors, which LLVM does not accept as symbols; `_lo` and `_hi` denote their halves.
pub const OTHER_REGISTERS: [&str; 2] = ["tba", "tma"];
