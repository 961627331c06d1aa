//! Assigns each operand its name in pseudocode, by one rule over the XML's operand lists.
//!
//! Data outputs are D0, D1 in assembly order, data inputs are S0, S1, …. A 64-bit lane mask (`FMT_NUM_M64`)
//! next to vector data is the carry or condition, VCC; the mask of a compare is its D0. Immediates (SIMM16,
//! LITERAL of fmaak …) are IMM. Memory operands are named after their field. Operands fixed to EXEC, SCC or
//! M0 are state.

use crate::mnemonic;
use crate::tables::Role;
use crate::xml::model::Operand;

/// Returns the role of each operand of `inst` in `encoding`, in the same order.
pub fn assign(inst: &str, encoding: &str, operands: &[Operand]) -> Vec<Role> {
    let memory = is_memory(encoding);
    let vector = mnemonic::is_vector(inst);
    // On CDNA, compares that write EXEC also have a mask result.
    let compare = mnemonic::is_vector_compare(inst);
    let has_data_output =
        operands.iter().any(|o| o.output && !is_mask(o) && !matches!(fixed(o), Some("SCC" | "EXEC" | "M0")));
    let mut outputs = [Role::D0, Role::D1].into_iter();
    let mut inputs = [Role::S0, Role::S1, Role::S2, Role::S3, Role::S4].into_iter();
    let vopd = encoding.starts_with("VOPD");
    // An operation that exists only in the second half of VOPD lists only that half: its operands are D0, S0,
    // S1.
    let only_second =
        vopd && operands.iter().all(|o| second_half(o.field.as_deref()).is_some() || o.field.is_none());
    operands
        .iter()
        .map(|o| {
            if vopd
                && !only_second
                && let Some(role) = second_half(o.field.as_deref())
            {
                return role;
            }
            if let Some(name) = fixed(o) {
                return match name {
                    "VCC" if vector && o.output && !has_data_output => Role::D0,
                    "VCC" if vector => Role::Vcc,
                    _ => Role::State,
                };
            }
            // An immediate in the place of a source, such as the truth table of V_DUAL_BITOP2_B32, is a source.
            let place = o.field.as_deref().unwrap_or_default();
            if o.ty.starts_with("OPR_SIMM") && !place.starts_with("VSRC") {
                return Role::Imm;
            }
            // The target of an export and an interpolated attribute are not register numbers.
            if matches!(o.field.as_deref(), Some("TGT" | "ATTR")) {
                return Role::Other;
            }
            // The descriptors of tensor copies are in SGPRs, in the fields of addresses.
            let descriptor = o.ty == "OPR_SREG" && o.field.as_deref().is_some_and(|f| f.starts_with("VADDR"));
            if memory && !descriptor {
                return memory_role(o);
            }
            if matches!(o.ty.as_str(), "OPR_EXEC") {
                return Role::State;
            }
            if is_immediate(o) {
                return Role::Imm;
            }
            if vector && is_mask(o) && !(compare && o.output) {
                return Role::Vcc;
            }
            // V_SWAP also writes its source, which keeps its source name.
            let source = o.input && o.field.as_deref().is_some_and(|f| f.starts_with("SRC") || f == "VSRC0");
            let list: &mut dyn Iterator<Item = Role> =
                if o.output && !source { &mut outputs } else { &mut inputs };
            list.next().unwrap_or(Role::Other)
        })
        .collect()
}

/// Returns the state register of an operand that is not encoded in a field.
fn fixed(o: &Operand) -> Option<&'static str> {
    if o.field.is_some() {
        return None;
    }
    Some(match o.ty.as_str() {
        "OPR_VCC" => "VCC",
        "OPR_EXEC" => "EXEC",
        "OPR_SCC" => "SCC",
        _ => "M0",
    })
}

fn is_mask(o: &Operand) -> bool {
    o.format == "FMT_NUM_M64"
}

fn is_immediate(o: &Operand) -> bool {
    matches!(o.field.as_deref(), Some("SIMM16" | "SIMM32" | "LITERAL"))
}

fn second_half(field: Option<&str>) -> Option<Role> {
    Some(match field? {
        "VDSTY" => Role::Y0Dst,
        "SRCY0" => Role::Y0Src0,
        "VSRCY1" => Role::Y0Src1,
        "VSRCY2" => Role::Y0Src2,
        _ => return None,
    })
}

/// Returns whether the operands of an encoding address memory.
pub fn is_memory(encoding: &str) -> bool {
    [
        "SMEM", "DS", "FLAT", "MUBUF", "MTBUF", "MIMG", "VDS", "VFLAT", "VGLOBAL", "VSCRATCH", "VBUFFER",
        "VIMAGE", "VSAMPLE",
    ]
    .iter()
    .any(|family| {
        encoding
            .strip_prefix("ENC_")
            .is_some_and(|e| e == *family || e.strip_prefix(family).is_some_and(|rest| rest.starts_with('_')))
    })
}

fn memory_role(o: &Operand) -> Role {
    match o.field.as_deref().unwrap_or("") {
        "VDST" | "VDATA" | "SDATA" if o.output => Role::D0,
        // A VDST that is an input holds the address in LDS of an asynchronous copy.
        "VDST" | "VDATA" | "SDATA" | "DATA" | "DATA0" | "VSRC" => Role::Data,
        "DATA1" => Role::Data1,
        "ADDR" | "VADDR" | "VADDR0" => Role::VAddr,
        "SADDR" | "SBASE" | "SRSRC" | "RSRC" => Role::SAddr,
        "SOFFSET" => Role::SOffset,
        "OFFSET" | "IOFFSET" => Role::Imm,
        _ => Role::Other,
    }
}
