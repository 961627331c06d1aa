//! Pseudocode: names, hover, completion, highlighting.

use crate::document::Document;
use crate::highlight;
use crate::hover::{card, markdown};
use crate::rename::Edits;
use isa_spec::pcode::builtins;
use isa_spec::pcode::token::{Tok, Token, lex};
use isa_spec::source::SourceMap;
use lsp_types::{
    CompletionItem, CompletionItemKind, DocumentSymbol, Hover, HoverContents, SemanticTokenType,
    SemanticTokens, SymbolKind,
};
use std::ops::Range;
use wavesim_isa::arch::Arch;
use wavesim_playground::describe;

/// The words of the language (docs/pseudocode.md).
const KEYWORDS: [&str; 18] = [
    "instruction",
    "function",
    "record",
    "template",
    "for",
    "in",
    "do",
    "endfor",
    "while",
    "endwhile",
    "if",
    "then",
    "elsif",
    "else",
    "endif",
    "declare",
    "return",
    "eval",
];

/// A definition: its keyword, its name, and whether it is an instruction.
struct Definition<'t> {
    keyword: &'t str,
    name: &'t str,
    bytes: Range<usize>,
}

fn tokens(document: &Document) -> Vec<Token> {
    let mut sources = SourceMap::default();
    let file = sources.add("", "");
    lex(file, &document.text, 0).0
}

fn ident<'d>(document: &'d Document, token: &Token) -> Option<(&'d str, Range<usize>)> {
    let bytes = token.span.start as usize..token.span.end as usize;
    match token.tok {
        Tok::Ident(_) => Some((document.text.get(bytes.clone())?, bytes)),
        _ => None,
    }
}

fn definitions<'d>(document: &'d Document, tokens: &[Token]) -> Vec<Definition<'d>> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut depth = 0u32;
    while at < tokens.len() {
        match &tokens[at].tok {
            Tok::Punct("{") => depth += 1,
            Tok::Punct("}") => depth = depth.saturating_sub(1),
            _ => {}
        }
        let keyword = ident(document, &tokens[at]).map(|i| i.0).filter(|_| depth == 0);
        at += 1;
        let Some(keyword @ ("instruction" | "function" | "record")) = keyword else { continue };
        // Instructions that share a body are separated by commas.
        while let Some((name, bytes)) = tokens.get(at).and_then(|t| ident(document, t)) {
            out.push(Definition { keyword, name, bytes });
            at += 1;
            if !matches!(tokens.get(at).map(|t| &t.tok), Some(Tok::Punct(","))) {
                break;
            }
            at += 1;
        }
    }
    out
}

fn word_at<'d>(document: &'d Document, tokens: &[Token], offset: usize) -> Option<(&'d str, Range<usize>)> {
    let words = tokens.iter().filter_map(|t| ident(document, t));
    words.filter(|(_, bytes)| bytes.start <= offset && offset <= bytes.end).last()
}

/// The function or record that is called at an offset, or the instruction that is defined there.
fn defined_at<'d>(document: &'d Document, tokens: &[Token], offset: usize) -> Option<&'d str> {
    let (word, _) = word_at(document, tokens, offset)?;
    definitions(document, tokens).iter().any(|d| d.name == word).then_some(word)
}

/// Returns the definitions of the name at an offset.
pub fn definition(document: &Document, offset: usize) -> Vec<Range<usize>> {
    let tokens = tokens(document);
    let Some(name) = defined_at(document, &tokens, offset) else { return Vec::new() };
    definitions(document, &tokens).into_iter().filter(|d| d.name == name).map(|d| d.bytes).collect()
}

/// Returns the occurrences of the name at an offset, each with whether it is a definition.
pub fn references(document: &Document, offset: usize) -> Vec<(Range<usize>, bool)> {
    let tokens = tokens(document);
    let Some(name) = defined_at(document, &tokens, offset) else { return Vec::new() };
    let defined: Vec<Range<usize>> =
        definitions(document, &tokens).into_iter().filter(|d| d.name == name).map(|d| d.bytes).collect();
    let words = tokens.iter().filter_map(|t| ident(document, t)).filter(|(word, _)| *word == name);
    words.map(|(_, bytes)| (bytes.clone(), defined.contains(&bytes))).collect()
}

/// Renames a function or a record.
///
/// # Errors
/// The file does not define it, or the name is not possible.
pub fn rename(document: &Document, offset: usize, name: &str) -> Result<Edits, String> {
    let tokens = tokens(document);
    let definitions = definitions(document, &tokens);
    let old = defined_at(document, &tokens, offset).ok_or("this file does not define the name")?;
    if definitions.iter().any(|d| d.name == old && d.keyword == "instruction") {
        return Err("the names of instructions are those of the ISA".to_string());
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let taken = definitions.iter().any(|d| d.name == name) || builtins::lookup(name).is_some();
    if name.is_empty() || !name.chars().all(word) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("`{name}` cannot be a name: letters, digits and `_`"));
    }
    if name != old && (taken || KEYWORDS.contains(&name)) {
        return Err(format!("`{name}` already has a meaning"));
    }
    Ok(references(document, offset).into_iter().map(|(bytes, _)| (bytes, name.to_string())).collect())
}

/// Describes the word at an offset: a builtin, or an instruction with its operands and built-in semantics.
pub fn hover(document: &Document, offset: usize) -> Option<Hover> {
    let tokens = tokens(document);
    let (word, bytes) = word_at(document, &tokens, offset)?;
    let own =
        definitions(document, &tokens).into_iter().find(|d| d.name == word && d.keyword != "instruction");
    let text = match (builtins::lookup(word), own) {
        (_, Some(own)) => {
            let line = document.lines.line_of(own.bytes.start);
            format!("```pcode\n{}\n```\n", document.text[document.lines.bytes(&document.text, line)].trim())
        }
        (Some(builtin), _) => format!("**{word}**: {}\n", builtin.def().doc),
        (None, None) => {
            let described = Arch::AMD.into_iter().find_map(|arch| describe::instruction(arch, word).ok());
            card(&described?)
        }
    };
    Some(Hover { contents: HoverContents::Markup(markdown(text)), range: Some(document.range(bytes)) })
}

/// Returns the words that can be written: keywords, builtins, and the functions of the file.
pub fn complete(document: &Document) -> Vec<CompletionItem> {
    let item = |label: &str, kind, detail: Option<&str>| CompletionItem {
        label: label.to_string(),
        kind: Some(kind),
        detail: detail.map(str::to_string),
        ..CompletionItem::default()
    };
    let tokens = tokens(document);
    let own = definitions(document, &tokens);
    let own = own.iter().filter(|d| d.keyword != "instruction");
    let own = own.map(|d| item(d.name, CompletionItemKind::FUNCTION, Some(d.keyword)));
    let builtins = builtins::all().map(|def| item(def.name, CompletionItemKind::FUNCTION, Some(def.doc)));
    let words = KEYWORDS.iter().map(|word| item(word, CompletionItemKind::KEYWORD, None));
    own.chain(builtins).chain(words).collect()
}

/// Returns the instructions, functions and records of the file.
pub fn outline(document: &Document) -> Vec<DocumentSymbol> {
    let tokens = tokens(document);
    let symbol = |d: Definition<'_>| {
        let range = document.range(d.bytes);
        #[expect(deprecated, reason = "a field of the type has no default")]
        DocumentSymbol {
            name: d.name.to_string(),
            detail: Some(d.keyword.to_string()),
            kind: if d.keyword == "record" { SymbolKind::STRUCT } else { SymbolKind::FUNCTION },
            tags: None,
            deprecated: None,
            range,
            selection_range: range,
            children: None,
        }
    };
    definitions(document, &tokens).into_iter().map(symbol).collect()
}

/// Returns the tokens of the text for highlighting. Comments are between them.
pub fn highlight(document: &Document) -> SemanticTokens {
    let tokens = tokens(document);
    let defined: Vec<&str> = definitions(document, &tokens).into_iter().map(|d| d.name).collect();
    let ty = |token: &Token| {
        Some(match &token.tok {
            Tok::Ident(_) => {
                let (word, _) = ident(document, token)?;
                match word {
                    _ if KEYWORDS.contains(&word) => SemanticTokenType::KEYWORD,
                    _ if defined.contains(&word) || builtins::lookup(word).is_some() => {
                        SemanticTokenType::FUNCTION
                    }
                    _ => SemanticTokenType::VARIABLE,
                }
            }
            Tok::Int { .. } | Tok::Float { .. } => SemanticTokenType::NUMBER,
            Tok::Str(_) => SemanticTokenType::STRING,
            Tok::Type(_) => SemanticTokenType::PROPERTY,
            Tok::Punct(_) | Tok::Eof => return None,
        })
    };
    let typed = tokens.iter().filter_map(|t| Some((t.span.start as usize, t.span.end as usize, ty(t)?)));
    highlight::encode(document, typed)
}
