//! Emits tables from operations to handlers. A table of functions costs one call per operation; a match whose
//! arms are calls would cost a jump and a call.

use crate::handler::{self, Mode};
use isa_lower::ir::Handlers;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::HashMap;

/// A function that tables of handlers refer to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Function {
    /// A function of one operation, in its module.
    Own { module: usize, name: Ident },
    /// A function for all operations.
    Common(&'static str),
    /// The fast handler in [`Mode::Keep`], which all hosts share and another crate defines.
    Shared,
}

impl Function {
    /// Returns the function's path; `None` if another crate defines it.
    pub fn path(&self) -> Option<TokenStream> {
        let in_module = |module: &usize| format_ident!("h{module}");
        match self {
            Function::Own { module, name } => {
                let module = in_module(module);
                Some(quote! { #module::#name })
            }
            Function::Common(name) => {
                let name = Ident::new(name, Span::call_site());
                Some(quote! { #name })
            }
            Function::Shared => None,
        }
    }
}

/// The deduplicated functions of the tables.
#[derive(Default)]
struct Functions {
    numbers: HashMap<Function, u16>,
    list: Vec<Function>,
}

impl Functions {
    /// Returns the number that represents a function in a table.
    fn number(&mut self, function: Function) -> TokenStream {
        if function == Function::Shared {
            return quote! { Numbered::SHARED };
        }
        let next = self.list.len();
        let number = *self.numbers.entry(function).or_insert_with_key(|function| {
            self.list.push(function.clone());
            let number = u16::try_from(next).ok().filter(|number| *number != u16::MAX);
            number.expect("fewer functions than numbers, the last of which is `Numbered::SHARED`")
        });
        quote! { #number }
    }
}

/// Emits tables, each with a name, a mode, and whether it is for wave64.
pub fn tables(lowered: &[Handlers], names: &[(&str, Mode, bool)]) -> TokenStream {
    let mut functions = Functions::default();
    let unknown = functions.number(Function::Common("unknown"));
    let tables = names.iter().map(|&(name, mode, wave64)| {
        let variants = |(at, one)| handler::variants(at, one, mode, wave64);
        let functions = lowered.iter().enumerate().flat_map(variants).map(|one| functions.number(one));
        let name = Ident::new(name, Span::call_site());
        quote! {
            /// Handlers by operation code, for one float mode and one wave size. The last entries, for codes
            /// that are not operations, return [`Flow::UNKNOWN`].
            ///
            /// # Safety
            /// Requires the invariants of lowered code (`wavesim_program::validate`) and, except for `BASE`, a host with
            /// AVX2 and the related extensions.
            pub const #name: Numbered = Numbered {
                handlers: &HANDLERS,
                by_code: &[#(#functions,)* #unknown, #unknown, #unknown, #unknown, #unknown, #unknown],
            };
        }
    });
    let tables: Vec<_> = tables.collect();
    let (paths, count) = (functions.list.iter().filter_map(Function::path), functions.list.len());
    quote! {
        static HANDLERS: [Handler; #count] = [#(#paths),*];
        #(#tables)*
    }
}
