//! What an editor shows about the word under the pointer.

use crate::document::Document;
use crate::ranges::{self, RegisterSet};
use crate::scan::{Token, TokenKind};
use crate::symbols;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};
use std::fmt::Write as _;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{File, Use};
use wavesim_playground::describe::{self, Description};

/// Text in Markdown.
pub fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

/// Formats the description of an instruction: operands, pseudocode, encodings.
pub fn card(d: &Description) -> String {
    let mut out = format!("**{}** `{}` ({})\n", d.name, d.syntax, d.group);
    match (&d.pseudocode, d.unsupported) {
        (Some(pseudocode), _) => out += &format!("\n```pcode\n{pseudocode}\n```\n"),
        (None, reason) => {
            out += &format!("\nNo semantics: {}.\n", reason.unwrap_or("no reason is recorded"));
        }
    }
    if let Some(form) = d.forms.first() {
        for operand in &form.operands {
            let _ = write!(out, "\n- {operand}");
        }
        let _ = write!(out, "\n\nFields: {}\n", form.fields);
    }
    let encodings: Vec<&str> = d.forms.iter().flat_map(|f| &f.encodings).map(String::as_str).collect();
    let _ = write!(out, "\n{}\n", encodings.join(" · "));
    if let Some(place) = &d.place {
        let _ = write!(out, "\n{place}\n");
    }
    out
}

/// Returns what is known about the word at an offset.
pub fn hover(document: &Document, offset: usize) -> Option<Hover> {
    let token = document.token_at(offset)?;
    let spelling = document.spelling(token);
    let text = match token.kind {
        TokenKind::Mnemonic => mnemonic(document, token),
        TokenKind::Register(_) => register(document, token),
        TokenKind::Definition | TokenKind::Name | TokenKind::Constant => name(document, spelling),
        _ => None,
    }?;
    let range = Some(document.range(token.start..token.end));
    Some(Hover { contents: HoverContents::Markup(markdown(text)), range })
}

fn mnemonic(document: &Document, token: &Token) -> Option<String> {
    let spelling = document.spelling(token);
    if symbols::definitions(document, spelling).next().is_some() {
        return name(document, spelling);
    }
    let arch = document.analysis.arch.unwrap_or(Arch::DEFAULT);
    let description = describe::instruction(arch, spelling);
    // VOPD: the halves of a dual instruction have no entry of their own.
    let description = match (description, spelling.strip_prefix("v_dual_")) {
        (Err(_), Some(half)) => describe::instruction(arch, &format!("v_{half}")).ok()?,
        (description, _) => description.ok()?,
    };
    let mut text = card(&description);
    let Some(code) = &document.analysis.code else { return Some(text) };
    for index in code.of_line(token.line).take(1) {
        let effects = &code.effects[index];
        let named = |list: &[Use]| {
            let mut set = RegisterSet::default();
            list.iter().for_each(|used| set.extend(used));
            let scc = list.iter().any(|used| used.file == File::Scc).then(|| "scc".to_string());
            let names: Vec<String> =
                [set.text(arch)].into_iter().filter(|t| !t.is_empty()).chain(scc).collect();
            if names.is_empty() { "nothing".to_string() } else { names.join(", ") }
        };
        let _ = write!(
            text,
            "\nThis one ({}) reads {} and writes {}.\n",
            effects.class.name(),
            named(&effects.reads),
            named(&effects.writes)
        );
    }
    Some(text)
}

fn register(document: &Document, token: &Token) -> Option<String> {
    let code = document.analysis.code.as_ref()?;
    let mut text = format!("**{}**\n", document.spelling(token));
    let lines = |accesses: Vec<usize>| {
        let mut lines: Vec<u32> = accesses.into_iter().map(|index| code.program.lines[index]).collect();
        lines.dedup();
        let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
        lines.join(", ")
    };
    for (register, web) in symbols::webs_of(document, code, token) {
        let name = ranges::name(code.program.arch, register);
        let of = |write: bool| lines(web.accesses.iter().filter(|a| a.1 == write).map(|a| a.0).collect());
        let (mut written, read) = (of(true), of(false));
        if web.external {
            let launch = "at the launch or in other code";
            written = if written.is_empty() { launch.to_string() } else { format!("{launch}, {written}") };
        }
        let read = if read.is_empty() { "nowhere".to_string() } else { format!("in line {read}") };
        let _ = write!(text, "\n- {name}: written in line {written}; read {read}");
    }
    let last = document.results.as_ref().and_then(|results| results.values.get(&token.line));
    if let Some(last) = last {
        let _ = write!(text, "\n\nAfter the last run of this line: `{last}`\n");
    }
    Some(text.replace("in line at", "at"))
}

fn name(document: &Document, name: &str) -> Option<String> {
    let token = symbols::definitions(document, name).next()?;
    let mut text = format!("**{name}**, line {}", token.line);
    if let Some((_, value)) = document.analysis.constants.iter().find(|c| c.0 == name) {
        let _ = write!(text, " = {value}");
    }
    // The first instruction after a label.
    let next = document.tokens.iter().find(|t| t.kind == TokenKind::Mnemonic && t.start > token.start);
    if let Some(next) = next.filter(|_| token.kind == TokenKind::Definition) {
        let line = document.lines.bytes(&document.text, next.line as usize - 1);
        let _ = write!(text, "\n\n```asm\n{}\n```\n", document.text[next.start..line.end].trim_end());
    }
    Some(text)
}
