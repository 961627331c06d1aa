//! Completion: what can be written at a position.

use crate::document::Document;
use crate::hover::{card, markdown};
use crate::scan::TokenKind;
use lsp_types::{CompletionItem, CompletionItemKind, Documentation};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wavesim_asm::describe as isa;
use wavesim_isa::arch::Arch;
use wavesim_playground::describe;
use wavesim_text::header::{FUNCTIONS, KEYS};

fn item(label: &str, kind: CompletionItemKind) -> CompletionItem {
    CompletionItem { label: label.to_string(), kind: Some(kind), ..CompletionItem::default() }
}

/// Returns what can be written at an offset of a kernel.
pub fn complete(document: &Document, offset: usize) -> Vec<CompletionItem> {
    let line = document.lines.line_of(offset);
    let start = document.lines.bytes(&document.text, line).start;
    let before = &document.text[start..offset];
    let tokens = document.tokens_of_line(line as u32 + 1);
    if tokens.iter().any(|t| {
        matches!(t.kind, TokenKind::Comment | TokenKind::String) && t.start < offset && offset <= t.end
    }) {
        return Vec::new();
    }
    let word = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "_.$@".contains(c));
    // After a label, a statement begins.
    let rest = word.rsplit_once(':').map_or(word, |(_, rest)| rest).trim();
    let fences = |t: &&crate::scan::Token| {
        t.kind == TokenKind::Directive && document.spelling(t) == "---" && t.start < start
    };
    let is_header = document.tokens.iter().filter(fences).count() == 1;
    match (is_header, rest.is_empty()) {
        (true, true) => header(),
        (true, false) => FUNCTIONS.iter().map(|name| item(name, CompletionItemKind::FUNCTION)).collect(),
        (false, true) => instructions(document.analysis.arch.unwrap_or(Arch::DEFAULT)),
        (false, false) => operands(document, rest, offset),
    }
}

fn header() -> Vec<CompletionItem> {
    let assigned = KEYS.iter().filter(|key| **key != "const").map(|key| format!("{key} = "));
    let others = ["const ", "arg_", "out_"].map(str::to_string);
    assigned.chain(others).map(|text| item(&text, CompletionItemKind::PROPERTY)).collect()
}

fn instructions(arch: Arch) -> Vec<CompletionItem> {
    let one = |(at, inst): (usize, &isa_spec::tables::Instruction)| {
        let name = inst.name.to_lowercase();
        let simulated = describe::operation(arch, at).is_some();
        CompletionItem {
            detail: Some(format!("{}{}", inst.group(), if simulated { "" } else { ", no semantics" })),
            // Those that cannot run come last.
            sort_text: Some(format!("{}{name}", if simulated { '0' } else { '1' })),
            // Where the description is: see [`resolve`].
            data: Some(json!(arch.name())),
            ..item(&name, CompletionItemKind::KEYWORD)
        }
    };
    arch.table().instructions.iter().enumerate().map(one).collect()
}

/// Returns labels, constants, the registers in use, wait counters and modifiers.
fn operands(document: &Document, before: &str, offset: usize) -> Vec<CompletionItem> {
    let arch = document.analysis.arch.unwrap_or(Arch::DEFAULT);
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for token in &document.tokens {
        // Not the word that is being written.
        if token.touches(offset) {
            continue;
        }
        let kind = match token.kind {
            TokenKind::Definition => CompletionItemKind::REFERENCE,
            TokenKind::Constant => CompletionItemKind::CONSTANT,
            TokenKind::Register(_) => CompletionItemKind::VARIABLE,
            _ => continue,
        };
        let spelling = document.spelling(token);
        if seen.insert(spelling) {
            out.push(item(spelling, kind));
        }
    }
    let mnemonic = before.split_whitespace().next().unwrap_or_default();
    if mnemonic.contains("waitcnt") {
        let counters = isa::wait_counters(arch);
        out.extend(
            counters.into_iter().map(|name| item(&format!("{name}(0)"), CompletionItemKind::ENUM_MEMBER)),
        );
    }
    let modifiers = isa::modifiers(arch);
    out.extend(modifiers.iter().map(|name| CompletionItem {
        sort_text: Some(format!("~{name}")),
        ..item(name, CompletionItemKind::PROPERTY)
    }));
    out
}

/// Adds the description of an instruction to its completion.
pub fn resolve(mut item: CompletionItem) -> CompletionItem {
    let arch = item.data.as_ref().and_then(Value::as_str).and_then(Arch::from_name);
    if let Some(description) = arch.and_then(|arch| describe::instruction(arch, &item.label).ok()) {
        item.documentation = Some(Documentation::MarkupContent(markdown(card(&description))));
    }
    item
}
