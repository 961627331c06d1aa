//! Tables from operations to handlers: tables of functions instead of a match, because a match whose arms are
//! calls costs a jump and a call, a table one call.

use crate::handler::{self, Mode};
use isa_lower::ir::Handlers;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::HashMap;

/// A function that tables of handlers refer to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Function {
    /// Of an operation, in its module.
    Own { module: usize, name: Ident },
    /// For all operations.
    Common(&'static str),
    /// The fast handler in [`Mode::Keep`], which is the same for all hosts and of another crate.
    Shared,
}

impl Function {
    /// Its path; `None` if it is of another crate.
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

/// The functions of tables, each once.
#[derive(Default)]
struct Functions {
    numbers: HashMap<Function, u16>,
    list: Vec<Function>,
}

impl Functions {
    /// What stands for a function in a table.
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

/// The tables of these names, for a mode and waves of 64 or of 32.
pub fn tables(lowered: &[Handlers], names: &[(&str, Mode, bool)]) -> TokenStream {
    let mut functions = Functions::default();
    let unknown = functions.number(Function::Common("unknown"));
    let tables = names.iter().map(|&(name, mode, wide)| {
        let variants = |(at, one)| handler::variants(at, one, mode, wide);
        let functions = lowered.iter().enumerate().flat_map(variants).map(|one| functions.number(one));
        let name = Ident::new(name, Span::call_site());
        quote! {
            /// By code: the handler in a float mode, of waves of 32 or of 64. The last entries, for what is
            /// not an operation, return [`Flow::UNKNOWN`].
            ///
            /// # Safety
            /// The invariants of lowered code (`exec::validate`); but for `BASE` the host has AVX2 and what
            /// comes with it.
            pub const #name: Numbered = Numbered {
                handlers: &HANDLERS,
                by_code: &[#(#functions,)* #unknown, #unknown, #unknown, #unknown, #unknown],
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
