//! Emits diagnostics as `compile_error!`, each with its own file, line and caret in the message.

use isa_spec::diag::{Diagnostic, Severity, render};
use isa_spec::source::SourceMap;
use proc_macro2::TokenStream;
use quote::quote;

/// Limit on the errors shown, so that the first ones stay visible.
const MAX_SHOWN: usize = 20;

/// Emits one `compile_error!` for each of the first errors, in file order.
pub fn errors(sources: &SourceMap, diagnostics: &[Diagnostic]) -> TokenStream {
    let mut list: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
    list.sort_by_key(|d| (d.span.file, d.span.start));
    let mut out = TokenStream::new();
    for d in list.iter().take(MAX_SHOWN) {
        let text = render(sources, d);
        // rustc adds its own `error: `.
        let text = text.strip_prefix("error: ").unwrap_or(&text).to_string();
        out.extend(quote! { ::core::compile_error!(#text); });
    }
    if list.len() > MAX_SHOWN {
        let text = format!("and {} more errors in the ISA documents and pseudocode", list.len() - MAX_SHOWN);
        out.extend(quote! { ::core::compile_error!(#text); });
    }
    out
}
