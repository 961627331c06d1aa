//! Operand roles of instructions with unusual operand lists (`roles.rs`).

use isa_spec::data::{self, Loaded};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

static LOADED: LazyLock<Loaded> = LazyLock::new(|| {
    let data = root().join("data");
    data::load(data::AMD, &data, &data.join("overlay"), &data.join("none"), &root())
});

/// Checks `arch NAME ENCODING: FIELD=Role …`, where `>` marks outputs and `<>` operands that are both inputs
/// and outputs.
#[track_caller]
fn check(expected: &str) {
    let (head, roles) = expected.split_once(": ").unwrap();
    let [arch, name, encoding] = head.split(' ').collect::<Vec<_>>()[..] else { panic!("{head}") };
    let table = LOADED.tables.iter().find(|t| t.name == arch).unwrap();
    let inst = table.instruction(name).unwrap_or_else(|| panic!("{arch} has no {name}"));
    let entry = table
        .entries_of(inst)
        .iter()
        .find(|e| table.encodings[e.enc as usize].name == encoding)
        .unwrap_or_else(|| panic!("{name} is not in {encoding}"));
    let shown: Vec<String> = table.signatures[entry.sig as usize]
        .iter()
        .map(|o| {
            let field = match o.field {
                Some(at) => table.encodings[entry.enc as usize].fields[at as usize].name,
                None => table.operand_types[o.ty as usize].name,
            };
            let arrow = match (o.input, o.output) {
                (true, true) => "<>",
                (false, true) => ">",
                _ => "",
            };
            format!("{arrow}{field}={:?}", o.role)
        })
        .collect();
    assert_eq!(shown.join(" "), roles, "{head}");
}

#[test]
fn carries_and_conditions_are_vcc() {
    check("rdna3 V_ADD_CO_CI_U32 ENC_VOP2: >VDST=D0 >OPR_VCC=Vcc SRC0=S0 VSRC1=S1 OPR_VCC=Vcc");
    check("rdna3 V_ADD_CO_CI_U32 VOP3_SDST_ENC: >VDST=D0 >SDST=Vcc SRC0=S0 SRC1=S1 SRC2=Vcc");
    check("rdna4 V_ADD_CO_CI_U32 VOP2_VOP_DPP8: >VDST=D0 >OPR_VCC=Vcc VSRC0=S0 VSRC1=S1 OPR_VCC=Vcc");
    check("rdna3 V_ADD_CO_U32 VOP3_SDST_ENC: >VDST=D0 >SDST=Vcc SRC0=S0 SRC1=S1");
    check("rdna3 V_CNDMASK_B32 ENC_VOP2: >VDST=D0 SRC0=S0 VSRC1=S1 OPR_VCC=Vcc");
    check("rdna3 V_CNDMASK_B16 ENC_VOP3: >VDST=D0 SRC0=S0 SRC1=S1 SRC2=Vcc");
    check("rdna3 V_MAD_U64_U32 VOP3_SDST_ENC: >VDST=D0 >SDST=Vcc SRC0=S0 SRC1=S1 SRC2=S2");
    check("rdna3 V_DIV_SCALE_F32 VOP3_SDST_ENC: >VDST=D0 >SDST=Vcc SRC0=S0 SRC1=S1 SRC2=S2");
    check("rdna3 V_DIV_FMAS_F32 ENC_VOP3: >VDST=D0 SRC0=S0 SRC1=S1 SRC2=S2 OPR_VCC=Vcc");
}

#[test]
fn compares() {
    check("rdna3 V_CMP_LT_F32 ENC_VOPC: >OPR_VCC=D0 SRC0=S0 VSRC1=S1");
    check("rdna4 V_CMP_LT_F32 ENC_VOP3: >VDST=D0 SRC0=S0 SRC1=S1");
    // CMPX bodies write EXEC itself.
    check("rdna3 V_CMPX_LT_F32 ENC_VOPC: >OPR_EXEC=State SRC0=S0 VSRC1=S1");
    check("rdna3 V_CMPX_LT_F32 ENC_VOP3: >VDST=State SRC0=S0 SRC1=S1");
    check("rdna3 S_CMP_EQ_U32 ENC_SOPC: SSRC0=S0 SSRC1=S1 >OPR_SCC=State");
}

#[test]
fn results_that_are_read_and_literals_that_are_operands() {
    check("rdna3 V_FMAC_F32 ENC_VOP2: <>VDST=D0 SRC0=S0 VSRC1=S1");
    check("rdna3 V_FMAMK_F32 VOP2_INST_LITERAL: >VDST=D0 SRC0=S0 LITERAL=Imm VSRC1=S1");
    check("rdna3 V_FMAAK_F32 VOP2_INST_LITERAL: >VDST=D0 SRC0=S0 VSRC1=S1 LITERAL=Imm");
    check("rdna3.5 S_FMAAK_F32 SOP2_INST_LITERAL: >SDST=D0 SSRC0=S0 SSRC1=S1 SIMM32=Imm");
    check("rdna3 V_SWAP_B32 ENC_VOP1: <>VDST=D0 <>SRC0=S0");
    check("rdna3 V_WRITELANE_B32 ENC_VOP3: <>VDST=D0 SRC0=S0 SRC1=S1");
    check("rdna3 V_READLANE_B32 ENC_VOP3: >VDST=D0 SRC0=S0 SRC1=S1");
}

#[test]
fn scalars() {
    check("rdna3 S_ADDK_I32 ENC_SOPK: <>SDST=D0 SIMM16=Imm >OPR_SCC=State");
    check("rdna3 S_CMPK_EQ_I32 ENC_SOPK: SDST=S0 SIMM16=Imm >OPR_SCC=State");
    check("rdna3 S_SETREG_B32 ENC_SOPK: SDST=S0 SIMM16=Imm");
    check("rdna3 S_SETREG_IMM32_B32 SOPK_INST_LITERAL: SIMM16=Imm SIMM32=Imm");
    check("rdna3 S_AND_SAVEEXEC_B64 ENC_SOP1: >SDST=D0 SSRC0=S0 >OPR_SCC=State <>OPR_EXEC=State");
    check("rdna3 S_CBRANCH_VCCZ ENC_SOPP: SIMM16=Imm OPR_VCC=State");
    check("rdna3 S_SUBVECTOR_LOOP_BEGIN ENC_SOPK: <>SDST=D0 SIMM16=Imm");
}

#[test]
fn memory_operands_by_field() {
    check("rdna3 S_LOAD_B64 ENC_SMEM: >SDATA=D0 SBASE=SAddr SOFFSET=SOffset");
    check("rdna4 S_PREFETCH_DATA ENC_SMEM: SDATA=Imm SBASE=SAddr SOFFSET=SOffset IOFFSET=Imm");
    check("rdna3 EXP ENC_EXP: TGT=Other VSRC0=S0 VSRC1=S1 VSRC2=S2 VSRC3=S3");
    check("rdna3 GLOBAL_LOAD_B32 ENC_FLAT_GLOBAL: >VDST=D0 ADDR=VAddr SADDR=SAddr");
    check("rdna4 GLOBAL_STORE_B32 ENC_VGLOBAL: VADDR=VAddr VSRC=Data SADDR=SAddr");
    check("rdna4 GLOBAL_ATOMIC_ADD_U32 ENC_VGLOBAL: >VDST=D0 VADDR=VAddr VSRC=Data SADDR=SAddr");
    // VDATA of a buffer atomic is data and result: a D0 that is also read.
    check("rdna3 BUFFER_ATOMIC_ADD_U32 ENC_MUBUF: <>VDATA=D0 VADDR=VAddr SRSRC=SAddr SOFFSET=SOffset");
    check("rdna4 BUFFER_STORE_B32 ENC_VBUFFER: VDATA=Data VADDR=VAddr RSRC=SAddr SOFFSET=SOffset");
    check("rdna3 DS_CMPSTORE_RTN_B32 ENC_DS: >VDST=D0 ADDR=VAddr DATA0=Data DATA1=Data1");
    check("rdna3 IMAGE_SAMPLE ENC_MIMG: >VDATA=D0 VADDR=VAddr SRSRC=SAddr SSAMP=Other");
}

#[test]
fn dual_issue_halves() {
    check(
        "rdna3 V_DUAL_FMAC_F32 VOPDXY: <>VDSTX=D0 SRCX0=S0 VSRCX1=S1 <>VDSTY=Y0Dst SRCY0=Y0Src0 VSRCY1=Y0Src1",
    );
    // An operation that exists only in the second half has D0, S0, S1 there.
    check("rdna3 V_DUAL_LSHLREV_B32 VOPDXY: >VDSTY=D0 SRCY0=S0 VSRCY1=S1");
}
