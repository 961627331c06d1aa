//! Emits facts about operations: a deduplicated table, and each operation's rows in it.

use isa_spec::canonical::SemanticsSet;
use isa_spec::facts::{Access, Condition, EncodedValue, Facts, Lanes, MemoryAccess, RegisterRange, Resource};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::Role;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use std::collections::HashMap;
use std::fmt::Debug;

/// Emits the table. Also returns, for each operation, the row numbers of its facts in wave32 and wave64.
pub fn table(set: &SemanticsSet) -> (TokenStream, Vec<[u16; 2]>) {
    let mut list: Vec<Facts> = Vec::new();
    let mut known: HashMap<Facts, u16> = HashMap::new();
    let mut number = |facts: Facts| {
        *known.entry(facts).or_insert_with_key(|facts| {
            list.push(facts.clone());
            list.len() as u16 - 1
        })
    };
    let numbers =
        set.operations.iter().map(|op| [32, 64].map(|lanes| number(Facts::of(&op.sem, lanes)))).collect();
    let rows = list.iter().map(row);
    let table = quote! {
        /// Facts about bodies: their reads, writes and calls; [`OpInfo::facts`] indexes the rows.
        pub static FACTS: &[::isa_spec::facts::Facts] = {
            use ::isa_spec::facts::{Condition, Facts, M0Field, Lanes, MemoryAccess, RegisterRange, EncodedValue, Access, Resource};
            use ::isa_spec::pcode::builtins::Control;
            use ::isa_spec::pcode::ir::{Role, Space, State};
            use ::std::borrow::Cow::Borrowed;
            use ::core::option::Option::{None, Some};
            &[#(#rows),*]
        };
    };
    (table, numbers)
}

fn row(facts: &Facts) -> TokenStream {
    let registers = facts.registers.iter().map(access);
    let memory = facts.memory.iter().map(|m| {
        let MemoryAccess { space, bytes, write, conditions, always } = m;
        let (space, conditions) = (name(space), condition_list(conditions));
        quote! { MemoryAccess { space: Space::#space, bytes: #bytes, write: #write, conditions: #conditions, always: #always } }
    });
    let calls = facts.calls.iter().map(|bi: &Control| name(bi)).map(|bi| quote! { Control::#bi });
    let fields = facts.fields.iter();
    let (copies, compares) = (facts.is_copy, facts.is_compare_swap);
    quote! {
        Facts {
            registers: Borrowed(&[#(#registers),*]),
            memory: Borrowed(&[#(#memory),*]),
            calls: Borrowed(&[#(#calls),*]),
            fields: Borrowed(&[#(#fields),*]),
            is_copy: #copies,
            is_compare_swap: #compares,
        }
    }
}

fn access(access: &Access) -> TokenStream {
    let Access { write, resource, bits, lanes, conditions, always } = access;
    let resource = match resource {
        Resource::Operand(of) => {
            let of = role(of);
            quote! { Resource::Operand(#of) }
        }
        Resource::Dwords { role: of, first, count } => {
            let of = role(of);
            quote! { Resource::Dwords { role: #of, first: #first, count: #count } }
        }
        Resource::State(state) => {
            let state = name(state);
            quote! { Resource::State(State::#state) }
        }
        Resource::Vgpr(number) => {
            let number = registers(number);
            quote! { Resource::Vgpr(#number) }
        }
        Resource::Sgpr(number) => {
            let number = registers(number);
            quote! { Resource::Sgpr(#number) }
        }
        Resource::AnyVgpr => quote! { Resource::AnyVgpr },
        Resource::AnySgpr => quote! { Resource::AnySgpr },
    };
    let lanes = match lanes {
        Lanes::Lane(n) => quote! { Lanes::Lane(#n) },
        Lanes::Selected(of) => {
            let of = role(of);
            quote! { Lanes::Selected(#of) }
        }
        Lanes::Once | Lanes::Own | Lanes::Active | Lanes::All | Lanes::LowestActive | Lanes::Any => {
            let lanes = name(lanes);
            quote! { Lanes::#lanes }
        }
    };
    let conditions = condition_list(conditions);
    quote! { Access { write: #write, resource: #resource, bits: #bits, lanes: #lanes, conditions: #conditions, always: #always } }
}

fn registers(number: &RegisterRange) -> TokenStream {
    let RegisterRange { base, mask, first, count, index, fallback } = number;
    let base = option(base.as_ref().map(encoded));
    let index = option(index.map(|i| {
        let (shift, mask) = (i.shift, i.mask);
        quote! { M0Field { shift: #shift, mask: #mask } }
    }));
    let fallback = option(fallback.map(|n| quote! { #n }));
    quote! {
        RegisterRange { base: #base, mask: #mask, first: #first, count: #count, index: #index, fallback: #fallback }
    }
}

fn condition_list(list: &[Condition]) -> TokenStream {
    let list = list.iter().map(|Condition { value, shift, mask, equals, negated }| {
        let value = encoded(value);
        quote! { Condition { value: #value, shift: #shift, mask: #mask, equals: #equals, negated: #negated } }
    });
    quote! { Borrowed(&[#(#list),*]) }
}

fn encoded(value: &EncodedValue) -> TokenStream {
    match value {
        EncodedValue::Field(name) => quote! { EncodedValue::Field(#name) },
        EncodedValue::RegisterNumber(of) => {
            let of = role(of);
            quote! { EncodedValue::RegisterNumber(#of) }
        }
    }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    value.map_or(quote! { None }, |value| quote! { Some(#value) })
}

fn role(role: &Role) -> TokenStream {
    let role = name(role);
    quote! { Role::#role }
}

/// Returns the identifier of a variant without fields.
fn name(variant: &impl Debug) -> Ident {
    format_ident!("{}", format!("{variant:?}"))
}
