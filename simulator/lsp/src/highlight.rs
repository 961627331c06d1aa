//! Semantic tokens: what each word is, for highlighting.

use crate::document::Document;
use crate::scan::TokenKind;
use crate::symbols;
use lsp_types::{SemanticToken, SemanticTokenType, SemanticTokens, SemanticTokensLegend};
use std::collections::HashSet;
use wavesim_asm::describe;
use wavesim_isa::arch::Arch;

/// The types of tokens; [`SemanticToken::token_type`] is an index in this list.
const TYPES: [SemanticTokenType; 10] = [
    SemanticTokenType::COMMENT,
    SemanticTokenType::STRING,
    SemanticTokenType::NUMBER,
    SemanticTokenType::KEYWORD,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::MACRO,
    SemanticTokenType::VARIABLE,
    SemanticTokenType::ENUM_MEMBER,
    SemanticTokenType::PROPERTY,
    SemanticTokenType::NAMESPACE,
];

/// Returns the types by number.
pub fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend { token_types: TYPES.to_vec(), token_modifiers: Vec::new() }
}

fn number(wanted: &SemanticTokenType) -> u32 {
    TYPES.iter().position(|ty| ty == wanted).unwrap_or(0) as u32
}

/// Converts ranges of bytes with their types, in source order, to the protocol's differences.
pub fn encode(
    document: &Document,
    tokens: impl Iterator<Item = (usize, usize, SemanticTokenType)>,
) -> SemanticTokens {
    let (mut line, mut column) = (0, 0);
    let mut data = Vec::new();
    for (start, end, ty) in tokens {
        let range = document.range(start..end);
        // A token is in one line.
        if range.start.line != range.end.line {
            continue;
        }
        let delta_line = range.start.line - line;
        let delta_start = range.start.character - if delta_line == 0 { column } else { 0 };
        let length = range.end.character - range.start.character;
        data.push(SemanticToken {
            delta_line,
            delta_start,
            length,
            token_type: number(&ty),
            token_modifiers_bitset: 0,
        });
        (line, column) = (range.start.line, range.start.character);
    }
    SemanticTokens { result_id: None, data }
}

/// Returns the tokens of a kernel.
pub fn kernel(document: &Document) -> SemanticTokens {
    let arch = document.analysis.arch.unwrap_or(Arch::DEFAULT);
    let defined: HashSet<&str> = document
        .tokens
        .iter()
        .filter(|t| matches!(t.kind, TokenKind::Definition))
        .map(|t| document.spelling(t))
        .collect();
    let ty = |token: &crate::scan::Token| {
        let spelling = document.spelling(token);
        Some(match token.kind {
            TokenKind::Comment => SemanticTokenType::COMMENT,
            TokenKind::Directive | TokenKind::Key => SemanticTokenType::KEYWORD,
            TokenKind::Definition => SemanticTokenType::NAMESPACE,
            TokenKind::Mnemonic if defined.contains(spelling) => SemanticTokenType::MACRO,
            TokenKind::Mnemonic => {
                let single = spelling.strip_prefix("v_dual_").map(|half| format!("v_{half}"));
                let name = single.as_deref().unwrap_or(spelling);
                describe::instruction(arch, name).map(|_| SemanticTokenType::FUNCTION)?
            }
            TokenKind::Register(_) => SemanticTokenType::VARIABLE,
            TokenKind::Number => SemanticTokenType::NUMBER,
            TokenKind::String => SemanticTokenType::STRING,
            TokenKind::Constant => SemanticTokenType::ENUM_MEMBER,
            TokenKind::Name if defined.contains(spelling) => SemanticTokenType::NAMESPACE,
            TokenKind::Name => match symbols::definitions(document, spelling).next() {
                Some(_) => SemanticTokenType::ENUM_MEMBER,
                None => SemanticTokenType::PROPERTY,
            },
        })
    };
    encode(document, document.tokens.iter().filter_map(|t| Some((t.start, t.end, ty(t)?))))
}
