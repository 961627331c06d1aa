//! Emits the `static` tables of each architecture, and the enums of its opcodes.

use isa_spec::tables::{ArchTable, Class, Cond, OperandSig};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Emits the statics of every architecture, its opcode enums, and the list of all tables.
pub fn tables(tables: &[&'static ArchTable]) -> TokenStream {
    let statics = tables.iter().enumerate().map(|(at, t)| table(at, t));
    let count = tables.len();
    let refs = (0..count).map(|at| format_ident!("TABLE{at}"));
    let opcodes = tables.iter().map(|t| opcode_enums(t));
    quote! {
        #(#statics)*
        /// Tables in the order of `Arch`.
        pub static TABLES: [&::isa_spec::tables::ArchTable; #count] = [#(&#refs),*];
        #(#opcodes)*
    }
}

/// Emits one enum per encoding: opcode numbers by name.
fn opcode_enums(t: &ArchTable) -> TokenStream {
    let module = format_ident!("{}", t.name.replace('.', "_"));
    let enums = t.encodings.iter().enumerate().filter(|(_, e)| e.name.starts_with("ENC_")).map(|(at, e)| {
        let name = format_ident!("{}", camel(e.name.trim_start_matches("ENC_")));
        let mut seen = std::collections::BTreeSet::new();
        let variants = t.entries.iter().filter(|x| x.enc as usize == at).filter_map(|x| {
            if !seen.insert(x.opcode) {
                return None;
            }
            let variant = format_ident!("{}", camel(t.instructions[x.inst as usize].name));
            let code = x.opcode;
            Some(quote! { #variant = #code })
        });
        let doc = format!("Opcodes of {}.", e.name);
        quote! {
            #[doc = #doc]
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            #[repr(u16)]
            pub enum #name { #(#variants),* }
        }
    });
    let doc = format!("Opcode enums of {}.", t.full_name);
    quote! {
        #[doc = #doc]
        pub mod #module { #(#enums)* }
    }
}

fn camel(name: &str) -> String {
    name.split('_')
        .map(|part| {
            let mut chars = part.chars();
            let first: String = chars.next().into_iter().collect();
            first + &chars.as_str().to_lowercase()
        })
        .collect()
}

fn table(at: usize, t: &ArchTable) -> TokenStream {
    let ident = format_ident!("TABLE{at}");
    let (name, full_name) = (t.name, t.full_name);
    let encodings = t.encodings.iter().map(|e| {
        let (name, bits, order, mask) = (e.name, e.bits, e.order, e.mask);
        let identifiers = e.identifiers;
        let conditions = e.conditions.iter().map(|c| {
            let name = c.name;
            let expr = cond(&c.expr);
            quote! { T::Condition { name: #name, expr: #expr } }
        });
        let fields = e.fields.iter().map(|f| {
            let name = f.name;
            let ranges = ranges(f.ranges);
            let fixed = option(f.fixed.map(|v| quote! { #v }));
            quote! { T::Field { name: #name, ranges: #ranges, fixed: #fixed } }
        });
        let op_field = option(e.op_field.map(|v| quote! { #v }));
        quote! {
            T::Encoding { name: #name, bits: #bits, order: #order, mask: #mask, identifiers: &[#(#identifiers),*],
                conditions: &[#(#conditions),*], fields: &[#(#fields),*], op_field: #op_field }
        }
    });
    let mut classes: Vec<Class> = Vec::new();
    let instructions: Vec<_> = t
        .instructions
        .iter()
        .map(|i| {
            let (name, (first, count)) = (i.name, i.entries);
            let class = classes.iter().position(|class| class == i.class).unwrap_or_else(|| {
                classes.push(*i.class);
                classes.len() - 1
            });
            quote! { T::Instruction { name: #name, class: &CLASSES[#class], entries: (#first, #count) } }
        })
        .collect();
    let class_count = classes.len();
    let classes = classes.iter().map(|class| {
        let Class { aliases, flags: f, group, subgroup } = class;
        let (a, b, c, d, e) =
            (f.branch, f.conditional_branch, f.indirect_branch, f.terminator, f.immediately_executed);
        quote! {
            T::Class { aliases: &[#(#aliases),*], flags: T::InstFlags { branch: #a, conditional_branch: #b,
                indirect_branch: #c, terminator: #d, immediately_executed: #e }, group: #group, subgroup: #subgroup }
        }
    });
    let entries = t.entries.iter().map(|e| {
        let (inst, enc, cond, opcode, sig) = (e.inst, e.enc, e.cond, e.opcode, e.sig);
        quote! { E(#inst, #enc, #cond, #opcode, #sig) }
    });
    let signatures = t.signatures.iter().map(|s| {
        let operands = s.iter().map(operand);
        quote! { &[#(#operands),*] }
    });
    let operand_types = t.operand_types.iter().map(|o| {
        let name = o.name;
        let values = values(o.values);
        let subtypes = o.subtypes;
        let parts = o.parts.iter().map(|p| {
            let name = p.name;
            let ranges = ranges(p.ranges);
            let values = self::values(p.values);
            quote! { T::Part { name: #name, ranges: #ranges, values: #values } }
        });
        quote! { T::OperandType { name: #name, values: #values, subtypes: &[#(#subtypes),*], parts: &[#(#parts),*] } }
    });
    let formats = t.formats.iter().map(|f| {
        let (name, data_type, components) = (f.name, f.data_type, f.components);
        quote! { T::DataFormat { name: #name, data_type: #data_type, components: #components } }
    });
    quote! {
        static #ident: ::isa_spec::tables::ArchTable = {
            use ::isa_spec::tables as T;
            use ::isa_spec::tables::Role as R;
            #[allow(non_snake_case)]
            const fn E(inst: u16, enc: u8, cond: u8, opcode: u16, sig: u16) -> T::Entry {
                T::Entry { inst, enc, cond, opcode, sig }
            }
            #[allow(non_snake_case)]
            const fn O(field: u8, ty: u8, format: u8, size_bits: u16, flags: u8, role: R) -> T::OperandSig {
                T::OperandSig {
                    field: if field == 255 { None } else { Some(field) },
                    ty, format, size_bits,
                    input: flags & 1 != 0, output: flags & 2 != 0, implicit: flags & 4 != 0, in_microcode: flags & 8 != 0,
                    preserves: flags & 16 != 0,
                    role,
                }
            }
            static CLASSES: [T::Class; #class_count] = [#(#classes),*];
            T::ArchTable {
                name: #name,
                full_name: #full_name,
                encodings: &[#(#encodings),*],
                instructions: &[#(#instructions),*],
                entries: &[#(#entries),*],
                signatures: &[#(#signatures),*],
                operand_types: &[#(#operand_types),*],
                formats: &[#(#formats),*],
            }
        };
    }
}

fn operand(o: &OperandSig) -> TokenStream {
    let field = o.field.unwrap_or(255);
    let (ty, format, size) = (o.ty, o.format, o.size_bits);
    let flags = o.input as u8
        | (o.output as u8) << 1
        | (o.implicit as u8) << 2
        | (o.in_microcode as u8) << 3
        | (o.preserves as u8) << 4;
    let role = format_ident!("{}", format!("{:?}", o.role));
    quote! { O(#field, #ty, #format, #size, #flags, R::#role) }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(v) => quote! { Some(#v) },
        None => quote! { None },
    }
}

fn ranges(list: &[(u8, u8)]) -> TokenStream {
    let items = list.iter().map(|(a, b)| quote! { (#a, #b) });
    quote! { &[#(#items),*] }
}

fn values(list: &[(&str, u32)]) -> TokenStream {
    let items = list.iter().map(|(a, b)| quote! { (#a, #b) });
    quote! { &[#(#items),*] }
}

fn cond(c: &Cond) -> TokenStream {
    match c {
        Cond::True => quote! { T::Cond::True },
        Cond::Lit(v) => quote! { T::Cond::Lit(#v) },
        Cond::Field(f) => quote! { T::Cond::Field(#f) },
        Cond::Op(op, args) => {
            let op = format_ident!("{}", format!("{:?}", op));
            let args = args.iter().map(cond);
            quote! { T::Cond::Op(T::CondOp::#op, &[#(#args),*]) }
        }
    }
}
