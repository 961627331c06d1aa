//! Code lenses: run, check and debug above each kernel.

use crate::document::{Document, DocumentKind};
use crate::scan::{Form, TokenKind};
use crate::server::{CHECK, DEBUG, RUN};
use lsp_types::{CodeLens, Command};
use serde_json::json;

/// Returns the lenses of a document. The commands take its address and the name of the kernel; the client itself
/// carries out [`DEBUG`].
pub fn lenses(document: &Document) -> Vec<CodeLens> {
    let mut places: Vec<(usize, usize, Option<&str>)> = Vec::new();
    match document.kind {
        DocumentKind::Kernel(Form::Text) => {
            let first = document.tokens.iter().find(|t| t.kind != TokenKind::Comment);
            places.extend(first.map(|t| (t.start, t.end, None)));
        }
        DocumentKind::Kernel(Form::Assembly) => {
            for kernel in &document.analysis.kernels {
                // A macro may have defined the label: then, where the name is its argument.
                let named = |t: &&crate::scan::Token| document.spelling(t) == kernel;
                let label = document.tokens.iter().filter(|t| t.kind == TokenKind::Definition).find(named);
                let token = label
                    .or_else(|| document.tokens.iter().filter(|t| t.kind == TokenKind::Name).find(named));
                places.extend(token.map(|t| (t.start, t.end, Some(kernel.as_str()))));
            }
        }
        _ => {}
    }
    let lens = |(start, end, kernel): (usize, usize, Option<&str>)| {
        let range = document.range(start..end);
        [("▶ Run", RUN), ("Check", CHECK), ("Debug", DEBUG)].map(|(title, command)| CodeLens {
            range,
            command: Some(Command {
                title: title.to_string(),
                command: command.to_string(),
                arguments: Some(vec![json!({"uri": document.uri.as_str(), "kernel": kernel})]),
            }),
            data: None,
        })
    };
    places.into_iter().flat_map(lens).collect()
}
