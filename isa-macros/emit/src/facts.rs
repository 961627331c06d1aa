//! Facts about operations: one table of the different ones, and each operation's numbers in it.

use isa_spec::canonical::SemanticsSet;
use isa_spec::facts::{Condition, Facts, Lanes, MemoryTouch, Number, Of, Touch, What};
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::Role;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use std::collections::HashMap;
use std::fmt::Debug;

/// The table, and for each operation the numbers of its facts in waves of 32 and of 64.
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
        /// What bodies read, write and call; [`OpInfo::facts`] numbers the rows.
        pub static FACTS: &[::isa_spec::facts::Facts] = {
            use ::isa_spec::facts::{Condition, Facts, Index, Lanes, MemoryTouch, Number, Of, Touch, What};
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
    let registers = facts.registers.iter().map(touch);
    let memory = facts.memory.iter().map(|m| {
        let MemoryTouch { space, bytes, write, when, always } = m;
        let (space, when) = (name(space), conditions(when));
        quote! { MemoryTouch { space: Space::#space, bytes: #bytes, write: #write, when: #when, always: #always } }
    });
    let calls = facts.calls.iter().map(|bi: &Control| name(bi)).map(|bi| quote! { Control::#bi });
    let fields = facts.fields.iter();
    let (copies, compares) = (facts.copies, facts.compares);
    quote! {
        Facts {
            registers: Borrowed(&[#(#registers),*]),
            memory: Borrowed(&[#(#memory),*]),
            calls: Borrowed(&[#(#calls),*]),
            fields: Borrowed(&[#(#fields),*]),
            copies: #copies,
            compares: #compares,
        }
    }
}

fn touch(touch: &Touch) -> TokenStream {
    let Touch { write, what, bits, lanes, when, always } = touch;
    let what = match what {
        What::Operand(of) => {
            let of = role(of);
            quote! { What::Operand(#of) }
        }
        What::Dwords { role: of, first, count } => {
            let of = role(of);
            quote! { What::Dwords { role: #of, first: #first, count: #count } }
        }
        What::State(state) => {
            let state = name(state);
            quote! { What::State(State::#state) }
        }
        What::Vgpr(number) => {
            let number = registers(number);
            quote! { What::Vgpr(#number) }
        }
        What::Sgpr(number) => {
            let number = registers(number);
            quote! { What::Sgpr(#number) }
        }
        What::AnyVgpr => quote! { What::AnyVgpr },
        What::AnySgpr => quote! { What::AnySgpr },
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
    let when = conditions(when);
    quote! { Touch { write: #write, what: #what, bits: #bits, lanes: #lanes, when: #when, always: #always } }
}

fn registers(number: &Number) -> TokenStream {
    let Number { base, mask, first, count, index, otherwise } = number;
    let base = option(base.as_ref().map(role));
    let index = option(index.map(|i| {
        let (shift, mask) = (i.shift, i.mask);
        quote! { Index { shift: #shift, mask: #mask } }
    }));
    let otherwise = option(otherwise.map(|n| quote! { #n }));
    quote! {
        Number { base: #base, mask: #mask, first: #first, count: #count, index: #index, otherwise: #otherwise }
    }
}

fn conditions(list: &[Condition]) -> TokenStream {
    let list = list.iter().map(|Condition { of, shift, mask, equals, not }| {
        let of = match of {
            Of::Field(name) => quote! { Of::Field(#name) },
            Of::Index(of) => {
                let of = role(of);
                quote! { Of::Index(#of) }
            }
        };
        quote! { Condition { of: #of, shift: #shift, mask: #mask, equals: #equals, not: #not } }
    });
    quote! { Borrowed(&[#(#list),*]) }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    value.map_or(quote! { None }, |value| quote! { Some(#value) })
}

fn role(role: &Role) -> TokenStream {
    let role = name(role);
    quote! { Role::#role }
}

/// A variant without fields.
fn name(variant: &impl Debug) -> Ident {
    format_ident!("{}", format!("{variant:?}"))
}
