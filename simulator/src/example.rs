//! Examples of instructions, generated from their descriptions, with legal operands.

use isa_spec::tables::{Entry, EntryId, MAX_FIELDS, OperandSig, Role};
use wavesim_asm::form::forms;
use wavesim_asm::{Options, legal};
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::decode;
use wavesim_isa::dpp::{DPP8, DPP16};
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{OperandKind, binding};

/// The register numbers of destinations and addresses; operands are spaced for the widest ones.
const DESTINATION: u32 = 64;
pub const ADDRESS: u32 = 0;

/// Returns the operands of an encoding.
pub fn operands(arch: Arch, entry: &Entry) -> &'static [OperandSig] {
    arch.table().signatures[entry.sig as usize]
}

/// Returns whether an entry is the first of its kind: one encoding without DPP and one with each kind of DPP
/// are measured.
pub fn is_first(arch: Arch, id: EntryId) -> bool {
    let table = arch.table();
    let of = |id: EntryId| {
        let entry = &table.entries[id as usize];
        (entry.inst, dpp(table.encodings[entry.enc as usize].name))
    };
    !(0..id).rev().take_while(|other| of(*other).0 == of(id).0).any(|other| of(other) == of(id))
}

/// Returns the kind of lane permutation that an encoding adds.
fn dpp(encoding: &str) -> &'static str {
    ["dpp16", "dpp8"].into_iter().find(|kind| encoding.to_lowercase().contains(kind)).unwrap_or("")
}

/// Returns the mnemonic, with the kind of lane permutation that the encoding adds.
pub fn name(arch: Arch, id: EntryId) -> String {
    let table = arch.table();
    let entry = &table.entries[id as usize];
    let name = table.instructions[entry.inst as usize].name.to_lowercase();
    match dpp(table.encodings[entry.enc as usize].name) {
        "" => name,
        kind => format!("{name} {kind}"),
    }
}

/// Returns an instruction with legal operands: VGPRs where permitted, and separate registers for each
/// operand.
pub fn instruction(arch: Arch, id: EntryId) -> Option<Inst> {
    let table = arch.table();
    let entry = &table.entries[id as usize];
    let encoding = &table.encodings[entry.enc as usize];
    let form = forms(arch).get(id);
    let mut fields: [u32; MAX_FIELDS] = form.initial_fields;
    let field = |name: &str| encoding.fields.iter().position(|f| f.name == name);
    for operand in operands(arch, entry) {
        let Some(at) = operand.field else { continue };
        let own = &encoding.fields[at as usize];
        let ty = &table.operand_types[operand.ty as usize];
        let bound = binding(arch, id).operands.iter().find(|bound| bound.field == Some(at));
        let numbered = bound.is_some_and(|o| matches!(o.kind, OperandKind::Vgpr | OperandKind::Acc))
            && ty.values.iter().all(|value| value.1 < 256);
        if own.fixed.is_some() || ty.values.is_empty() && !numbered {
            continue;
        }
        let (vector, scalar) = match operand.role {
            Role::D0 | Role::D1 => (DESTINATION, 40),
            Role::VAddr => (ADDRESS, 12),
            // The base address: a pair of registers, or a descriptor.
            Role::SAddr => (8, if operand.size_bits >= 128 { 8 } else { 0 }),
            Role::SOffset => (32, 2),
            Role::S0 => (8, 16),
            Role::S1 => (16, 24),
            Role::S2 => (24, 32),
            _ => (32, 48),
        };
        let vectors = ty.values.iter().any(|v| v.1 >= 256);
        let scalars = ty.values.iter().any(|v| v.1 == scalar && v.0.starts_with('s'));
        fields[at as usize] = if numbered {
            vector
        } else if vectors {
            256 + vector
        } else if scalars {
            scalar
        } else {
            ty.values.first().map_or(0, |v| v.1)
        };
    }
    let set = |fields: &mut [u32; MAX_FIELDS], name: &str, value: u32| {
        if let Some(at) = field(name) {
            fields[at] = value;
        }
    };
    if !dpp(encoding.name).is_empty() {
        // Row shift right by one lane, and exchange of adjacent lanes.
        for (name, value) in [("DPP_CTRL", 0x111), ("ROW_MASK", 15), ("BANK_MASK", 15), ("BOUND_CTRL", 1)] {
            set(&mut fields, name, value);
        }
        (0..8).for_each(|lane| set(&mut fields, &format!("LANE_SEL_{lane}"), lane ^ 1));
        if let Some(at) = field("SRC0").filter(|at| encoding.fields[*at].fixed.is_none()) {
            fields[at] = if dpp(encoding.name) == "dpp8" { DPP8 } else { DPP16 };
        }
    }
    // Descriptors and bases of scalar loads are numbered in units of four and two registers.
    set(&mut fields, "SRSRC", 2);
    if field("SBASE").is_some() {
        set(&mut fields, "SBASE", 2);
    }
    let mut pair = false;
    if encoding.name.starts_with("VOPD") {
        for (name, value) in
            [("OPY", entry.opcode as u32), ("VDSTY", DESTINATION + 1), ("SRCY0", 256 + 9), ("VSRCY1", 17)]
        {
            set(&mut fields, name, value);
        }
        pair = true;
    }
    let mut bits = 0u128;
    for (at, f) in encoding.fields.iter().enumerate() {
        let opcode = (encoding.op_field == Some(at as u8)).then_some(entry.opcode as u32);
        bits = f.insert(bits, f.fixed.or(opcode).unwrap_or(fields[at]));
    }
    let words: Vec<u32> = (0..encoding.bits as usize / 32).map(|at| (bits >> (32 * at)) as u32).collect();
    let inst = decode(arch, &words).ok()?;
    let own = inst.entry == id && (!pair || inst.entry_y == id);
    (own && legal::check_decoded(&inst, &Options::new(arch)).is_ok()).then_some(inst)
}
