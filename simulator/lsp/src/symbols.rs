//! Definitions and references: of labels, symbols, macros and constants by name, and of registers by live range.

use crate::analysis::Code;
use crate::document::Document;
use crate::ranges::{self, Register, Web};
use crate::scan::{Registers, Token, TokenKind};
use lsp_types::{DocumentSymbol, Location, SymbolKind};
use std::collections::BTreeSet;

/// Returns whether a token can name a label, a symbol, a macro or a constant.
fn can_be_symbol(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Definition | TokenKind::Constant | TokenKind::Name | TokenKind::Mnemonic)
}

/// Returns the definitions of a name.
pub fn definitions<'d>(document: &'d Document, name: &'d str) -> impl Iterator<Item = &'d Token> {
    let defines = |t: &&Token| matches!(t.kind, TokenKind::Definition | TokenKind::Constant);
    document.tokens.iter().filter(defines).filter(move |t| document.spelling(t) == name)
}

/// Returns the occurrences of a name that the text defines.
pub fn occurrences<'d>(document: &'d Document, name: &'d str) -> Vec<&'d Token> {
    if definitions(document, name).next().is_none() {
        return Vec::new();
    }
    document.tokens.iter().filter(|t| can_be_symbol(t) && document.spelling(t) == name).collect()
}

/// What a register operand does with one of its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperandUse {
    /// The instruction reads it.
    pub read: bool,
    /// The instruction writes it.
    pub written: bool,
}

/// Returns the registers of a token, if it names some by number.
pub fn registers(token: &Token) -> Option<Registers> {
    match token.kind {
        TokenKind::Register(registers) => registers,
        _ => None,
    }
}

/// Returns the operands of a line that name a register, in order.
pub fn operands(document: &Document, line: u32, register: Register) -> impl Iterator<Item = &Token> {
    let names = move |t: &&Token| registers(t).is_some_and(|r| r.contains(register));
    document.tokens_of_line(line).iter().filter(names)
}

/// Returns what an operand does with a register of the instruction. The destination is the first operand.
pub fn operand_use(
    document: &Document,
    code: &Code,
    index: usize,
    token: &Token,
    register: Register,
) -> OperandUse {
    let line = code.program.lines[index];
    let (reads, writes) = (ranges::reads(code, index, register), ranges::writes(code, index, register));
    let mut operands = operands(document, line, register);
    let is_first = operands.next() == Some(token);
    let is_only = operands.next().is_none();
    if !writes || !is_first {
        return OperandUse { read: reads, written: false };
    }
    // An accumulator is read and written by one operand.
    let effects = &code.effects[index];
    let own = |list: &[wavesim_machine::exec::effects::Use]| -> Vec<_> {
        let touching = list
            .iter()
            .filter(|u| u.file == register.0 && (u.first..u.first + u.count).contains(&register.1));
        touching.map(|u| (u.role, u.second)).collect()
    };
    let written = own(&effects.writes);
    let is_accumulator = own(&effects.reads).iter().any(|role| written.contains(role));
    OperandUse { read: reads && (is_only || is_accumulator), written: true }
}

/// Returns the webs to which the accesses of a register operand belong, each with its register.
pub fn webs_of(document: &Document, code: &Code, token: &Token) -> Vec<(Register, Web)> {
    let Some(named) = registers(token) else { return Vec::new() };
    let mut out = Vec::new();
    for number in named.first..named.first + named.count {
        let register = (named.file, number);
        let webs = ranges::webs(code, register);
        let mut accesses = BTreeSet::new();
        for index in code.of_line(token.line) {
            let used = operand_use(document, code, index, token, register);
            accesses.extend(used.read.then_some((index, false)));
            accesses.extend(used.written.then_some((index, true)));
        }
        out.extend(webs.into_iter().filter(|w| !w.accesses.is_disjoint(&accesses)).map(|w| (register, w)));
    }
    out
}

/// Returns the operands that access the values of a register operand, each with whether it writes one.
pub fn register_occurrences<'d>(document: &'d Document, token: &Token) -> Vec<(&'d Token, bool)> {
    let Some(code) = &document.analysis.code else { return Vec::new() };
    let mut out: Vec<(&Token, bool)> = Vec::new();
    for (register, web) in webs_of(document, code, token) {
        for (index, write) in &web.accesses {
            for operand in operands(document, code.program.lines[*index], register) {
                let used = operand_use(document, code, *index, operand, register);
                let found = if *write { used.written } else { used.read };
                match out.iter_mut().find(|(known, _)| known.start == operand.start) {
                    Some(known) => known.1 |= found && *write,
                    None if found => out.push((operand, *write)),
                    None => {}
                }
            }
        }
    }
    out.sort_by_key(|(t, _)| t.start);
    out
}

/// Returns the definitions of what is at an offset: of a name, or the writes of a register's value.
pub fn definition(document: &Document, offset: usize) -> Vec<Location> {
    let Some(token) = document.token_at(offset) else { return Vec::new() };
    let location = |t: &Token| Location::new(document.uri.clone(), document.range(t.start..t.end));
    match token.kind {
        TokenKind::Register(_) => {
            register_occurrences(document, token).into_iter().filter(|o| o.1).map(|o| location(o.0)).collect()
        }
        _ if can_be_symbol(token) => definitions(document, document.spelling(token)).map(location).collect(),
        _ => Vec::new(),
    }
}

/// Returns the occurrences of what is at an offset, each with whether it writes or defines.
pub fn references(document: &Document, offset: usize) -> Vec<(&Token, bool)> {
    let Some(token) = document.token_at(offset) else { return Vec::new() };
    match token.kind {
        TokenKind::Register(_) => register_occurrences(document, token),
        _ if can_be_symbol(token) => {
            let defines = |t: &Token| matches!(t.kind, TokenKind::Definition | TokenKind::Constant);
            occurrences(document, document.spelling(token)).into_iter().map(|t| (t, defines(t))).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the labels, macros, symbols, constants and arguments, for an outline.
pub fn outline(document: &Document) -> Vec<DocumentSymbol> {
    let mut out = Vec::new();
    for token in &document.tokens {
        let name = document.spelling(token);
        let (kind, detail) = match token.kind {
            TokenKind::Definition if document.analysis.kernels.iter().any(|k| k == name) => {
                (SymbolKind::FUNCTION, Some("kernel".to_string()))
            }
            TokenKind::Definition => (SymbolKind::KEY, None),
            TokenKind::Constant => {
                let value = document.analysis.constants.iter().find(|c| c.0 == name);
                (SymbolKind::CONSTANT, value.map(|c| c.1.clone()))
            }
            TokenKind::Key if name.starts_with("arg_") || name.starts_with("out_") => {
                (SymbolKind::VARIABLE, None)
            }
            _ => continue,
        };
        let range = document.range(token.start..token.end);
        #[expect(deprecated, reason = "a field of the type has no default")]
        out.push(DocumentSymbol {
            name: name.to_string(),
            detail,
            kind,
            tags: None,
            deprecated: None,
            range,
            selection_range: range,
            children: None,
        });
    }
    out
}
