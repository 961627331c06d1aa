//! Converts a [`Spec`] to an [`ArchTable`]: resolves names to indices, deduplicates operand lists, assigns
//! roles.

use super::element::low_bits;
use super::model::{self, CondExpr, Spec};
use crate::roles;
use crate::tables::*;
use std::collections::HashMap;

/// Builds the table. Leaks its data, since tables live as long as the program.
pub fn to_tables(spec: &Spec, name: &str) -> &'static ArchTable {
    let operand_types: Vec<OperandType> = spec.operand_types.iter().map(operand_type).collect();
    let formats: Vec<DataFormat> = spec
        .formats
        .iter()
        .map(|f| DataFormat { name: leak(&f.name), data_type: leak(&f.data_type), components: f.components })
        .collect();
    let encodings: Vec<Encoding> = spec.encodings.iter().map(encoding).collect();
    let encoding_at: HashMap<&str, usize> =
        spec.encodings.iter().enumerate().map(|(at, e)| (e.name.as_str(), at)).collect();
    let type_at: HashMap<&str, u8> =
        spec.operand_types.iter().enumerate().map(|(at, t)| (t.name.as_str(), at as u8)).collect();
    let format_at: HashMap<&str, u8> =
        spec.formats.iter().enumerate().map(|(at, f)| (f.name.as_str(), at as u8)).collect();

    let mut signatures: Vec<&'static [OperandSig]> = Vec::new();
    let mut signature_at: HashMap<Vec<OperandSig>, u16> = HashMap::new();
    let mut entries = Vec::new();
    let mut instructions = Vec::new();
    let mut classes: HashMap<Class, &'static Class> = HashMap::new();
    for inst in &spec.instructions {
        let first = entries.len() as u16;
        for ie in &inst.encodings {
            let Some(&enc) = encoding_at.get(ie.encoding.as_str()) else { continue };
            let fields = &spec.encodings[enc].fields;
            let roles = roles::assign(&inst.name, &ie.encoding, &ie.operands);
            let sig: Vec<OperandSig> = ie
                .operands
                .iter()
                .zip(roles)
                .map(|(o, role)| OperandSig {
                    field: o
                        .field
                        .as_ref()
                        .and_then(|name| fields.iter().position(|f| f.name == *name))
                        .map(|at| at as u8),
                    ty: type_at.get(o.ty.as_str()).copied().unwrap_or(0),
                    format: format_at.get(o.format.as_str()).copied().unwrap_or(0),
                    size_bits: o.size,
                    input: o.input,
                    output: o.output,
                    implicit: o.implicit,
                    in_microcode: o.in_microcode,
                    preserves: o.preserves,
                    role,
                })
                .collect();
            let sig_id = *signature_at.entry(sig.clone()).or_insert_with(|| {
                signatures.push(Vec::leak(sig));
                signatures.len() as u16 - 1
            });
            let cond = encodings[enc].conditions.iter().position(|c| c.name == ie.condition).unwrap_or(0);
            entries.push(Entry {
                inst: instructions.len() as u16,
                enc: enc as u8,
                cond: cond as u8,
                opcode: ie.opcode as u16,
                sig: sig_id,
            });
        }
        let class = Class {
            aliases: leak_list(&inst.aliases),
            flags: InstFlags {
                branch: inst.flags.branch,
                conditional_branch: inst.flags.conditional_branch,
                indirect_branch: inst.flags.indirect_branch,
                terminator: inst.flags.terminator,
                immediately_executed: inst.flags.immediately_executed,
            },
            group: leak(&inst.group),
            subgroup: leak(inst.subgroups.first().map_or("NOT_ASSIGNED", |s| s.as_str())),
        };
        instructions.push(Instruction {
            name: leak(&inst.name.to_uppercase()),
            class: classes.entry(class).or_insert_with(|| Box::leak(Box::new(class))),
            entries: (first, entries.len() as u16 - first),
        });
    }
    Box::leak(Box::new(ArchTable {
        name: leak(name),
        full_name: leak(&spec.architecture.name),
        encodings: Vec::leak(encodings),
        instructions: Vec::leak(instructions),
        entries: Vec::leak(entries),
        signatures: Vec::leak(signatures),
        operand_types: Vec::leak(operand_types),
        formats: Vec::leak(formats),
    }))
}

fn encoding(e: &model::Encoding) -> Encoding {
    let fields: Vec<Field> = e
        .fields
        .iter()
        .map(|f| {
            let mut field = Field { name: leak(&f.name), ranges: ranges(&f.ranges), fixed: None };
            let inside = f.ranges.iter().all(|r| {
                let bits = low_bits(r.bit_count).checked_shl(r.bit_offset as u32).unwrap_or(0);
                e.mask & bits == bits
            });
            if inside && let Some(&first) = e.identifiers.first() {
                let value = field.extract(first);
                if e.identifiers.iter().all(|&id| field.extract(id) == value) && !f.name.starts_with("OP") {
                    field.fixed = Some(value);
                }
            }
            field
        })
        .collect();
    let op_field =
        ["OP", "OPX"].iter().find_map(|name| fields.iter().position(|f| f.name == *name)).map(|at| at as u8);
    let conditions = e
        .conditions
        .iter()
        .map(|c| Condition {
            name: leak(&c.name),
            expr: c.expr.as_ref().map_or(Cond::True, |x| cond(x, &e.fields)),
        })
        .collect();
    let mask = e.mask & !e.ignored;
    Encoding {
        name: leak(&e.name),
        bits: e.bits,
        order: e.order,
        mask,
        identifiers: Vec::leak(e.identifiers.iter().map(|id| id & mask).collect()),
        conditions: Vec::leak(conditions),
        fields: Vec::leak(fields),
        op_field,
    }
}

/// Converts a condition; `INST.ENC.FIELD` chains become field indices. The loader has rejected unknown names
/// and operators.
fn cond(e: &CondExpr, fields: &[model::Field]) -> Cond {
    match e {
        CondExpr::Lit { value, .. } => Cond::Lit(*value),
        CondExpr::Id { name, .. } => match fields.iter().position(|f| f.name == *name) {
            Some(at) => Cond::Field(at as u8),
            None => Cond::True,
        },
        CondExpr::Op { op, args, .. } => match super::condition::operator(op) {
            Some(op) => Cond::Op(op, args.iter().map(|a| cond(a, fields)).collect::<Vec<_>>().leak()),
            None => args.last().map_or(Cond::True, |last| cond(last, fields)),
        },
    }
}

fn operand_type(t: &model::OperandType) -> OperandType {
    let parts = t
        .fields
        .iter()
        .map(|f| Part { name: leak(&f.name), ranges: ranges(&f.ranges), values: values(&f.values) })
        .collect();
    OperandType {
        name: leak(&t.name),
        values: values(&t.values),
        subtypes: leak_list(&t.subtypes),
        parts: Vec::leak(parts),
    }
}

fn values(list: &[model::PredefinedValue]) -> &'static [(&'static str, u32)] {
    Vec::leak(list.iter().map(|v| (leak(&v.name), v.value)).collect())
}

fn ranges(list: &[model::Range]) -> &'static [(u8, u8)] {
    // The loader has checked that fields of encodings and of partitioned operands are within 128 bits.
    Vec::leak(list.iter().map(|r| (r.bit_offset as u8, r.bit_count as u8)).collect())
}

fn leak(text: &str) -> &'static str {
    String::leak(text.to_string())
}

fn leak_list(list: &[String]) -> &'static [&'static str] {
    Vec::leak(list.iter().map(|s| leak(s)).collect())
}
