//! Parses tokens into a tree by recursive descent. Recovers from errors, to report several per file.
//!
//! - `item`: instruction, function and template blocks;  `template`: the expansion;
//! - `stmt`: statements and their blocks;  `expr`: expressions.
//!
//! A method that returns `Err(())` has reported why. The tree holds whatever could be parsed, so it is
//! meaningful only if there are no errors. Time is linear in the number of tokens; recursion is bounded by
//! [`MAX_DEPTH`].

mod expr;
mod item;
mod record;
mod stmt;
mod template;

use super::ast::*;
use super::token::{Tok, Token, lex};
use crate::diag::{Diagnostic, nearest};
use crate::source::{FileId, SourceMap, Span};
use std::borrow::Cow;
use std::ops::Range;

pub use expr::type_suffix;
pub use template::fill;

/// Limit on the nesting of blocks and of expressions, which bounds recursion.
const MAX_DEPTH: u32 = 100;

/// Limit on the errors of one file; beyond it the text is not pseudocode.
const MAX_ERRORS: usize = 200;

/// Keywords, which cannot be names inside a body.
const RESERVED: &[&str] = &[
    "if", "then", "elsif", "else", "endif", "for", "do", "endfor", "while", "endwhile", "declare", "return",
    "break", "lambda",
];

/// Keywords that start an item of a file.
const ITEMS: &[&str] = &["instruction", "template", "function", "record"];

/// Parses a whole `.pcode` file.
pub fn parse_file(sources: &SourceMap, file: FileId) -> (File, Vec<Diagnostic>) {
    let text = &sources.file(file).text;
    let (tokens, errors) = lex(file, text, 0);
    let mut parser = Parser::new(text, file, tokens, errors);
    let header = text
        .trim_start_matches('\u{feff}')
        .lines()
        .take_while(|l| l.starts_with("//"))
        .map(|l| l.trim_start_matches('/').trim().to_string())
        .collect();
    let items = parser.items();
    (File { items, header }, parser.finish())
}

/// Parses bytes `range` of a file, which consist of whole items.
pub fn parse_items_in(
    sources: &SourceMap,
    file: FileId,
    range: Range<usize>,
) -> (Vec<Item>, Vec<Diagnostic>) {
    parse_range(sources, file, range, |parser| parser.items())
}

/// Parses the definitions of an instruction, whose name is in upper case, from the tokens of whole items
/// without errors. Templates are expanded only by the rows that may define it, and all other instructions are
/// skipped.
pub fn parse_instruction(sources: &SourceMap, file: FileId, tokens: &[Token], name: &str) -> Vec<Item> {
    let mut parser = Parser::new(&sources.file(file).text, file, tokens, Vec::new());
    parser.wanted = Some(name.to_string());
    parser.items()
}

/// Parses a file that consists of a bare body, as pasted from a manual.
pub fn parse_body(sources: &SourceMap, file: FileId) -> (Vec<Stmt>, Vec<Diagnostic>) {
    parse_body_in(sources, file, 0..sources.file(file).text.len())
}

/// Parses bytes `range` of a file as a bare body.
pub fn parse_body_in(sources: &SourceMap, file: FileId, range: Range<usize>) -> (Vec<Stmt>, Vec<Diagnostic>) {
    parse_range(sources, file, range, |parser| parser.stmts())
}

fn parse_range<T>(
    sources: &SourceMap,
    file: FileId,
    range: Range<usize>,
    parse: impl FnOnce(&mut Parser<'_>) -> Vec<T>,
) -> (Vec<T>, Vec<Diagnostic>) {
    let file_text = &sources.file(file).text;
    let Some(text) = file_text.get(range.clone()) else {
        let span = Span::new(file, file_text.len(), file_text.len());
        return (Vec::new(), vec![Diagnostic::error(span, "this range is not inside the text")]);
    };
    let (tokens, errors) = lex(file, text, range.start);
    let mut parser = Parser::new(file_text, file, tokens, errors);
    let parsed = parse(&mut parser);
    (parsed, parser.finish())
}

struct Parser<'a> {
    /// The whole file, which spans index.
    text: &'a str,
    file: FileId,
    tokens: Cow<'a, [Token]>,
    at: usize,
    /// Nesting depth of the block or expression being parsed.
    depth: u32,
    /// Height of the tree of the expression parsed last. Long chains (`a + b + …`) are high trees too,
    /// although parsing them does not recurse.
    height: u32,
    /// The open blocks around the current statement, innermost last.
    open: Vec<Open>,
    /// The templates being expanded, outermost first.
    templates: Vec<Vec<Name>>,
    /// The only instruction to parse, in upper case.
    wanted: Option<String>,
    /// Remaining number of tokens that expansion may produce for the whole file.
    budget: usize,
    errors: Vec<Diagnostic>,
    /// Spans that the lexer dropped after reporting them; missing tokens there are not reported again.
    dropped: Vec<Span>,
    /// Suppresses all further errors.
    gave_up: bool,
}

/// A block that must be closed.
#[derive(Clone, Copy)]
struct Open {
    what: Block,
    at: Span,
    /// The block was opened by a `{`, as in other languages (a reported error), and may be closed by `}`.
    braced: bool,
}

impl Open {
    fn new(what: Block, at: Span) -> Open {
        Open { what, at, braced: false }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    If,
    For,
    While,
    /// `{` of an instruction or function.
    Body,
    /// `(` of a lambda.
    Lambda,
}

impl Block {
    fn closer(self) -> &'static str {
        match self {
            Block::If => "endif",
            Block::For => "endfor",
            Block::While => "endwhile",
            Block::Body => "}",
            Block::Lambda => ")",
        }
    }

    fn opener(self) -> &'static str {
        match self {
            Block::If => "if",
            Block::For => "for",
            Block::While => "while",
            Block::Body => "{",
            Block::Lambda => "lambda",
        }
    }
}

type R<T> = Result<T, ()>;

impl<'a> Parser<'a> {
    fn new(
        text: &'a str,
        file: FileId,
        tokens: impl Into<Cow<'a, [Token]>>,
        errors: Vec<Diagnostic>,
    ) -> Self {
        let mut tokens = tokens.into();
        if !matches!(tokens.last(), Some(Token { tok: Tok::Eof, .. })) {
            let end = tokens.last().map_or(0, |t| t.span.end);
            tokens.to_mut().push(Token { tok: Tok::Eof, span: Span { file, start: end, end } });
        }
        Parser {
            text,
            file,
            tokens,
            at: 0,
            depth: 0,
            height: 0,
            open: Vec::new(),
            templates: Vec::new(),
            wanted: None,
            budget: template::MAX_TOKENS,
            dropped: errors.iter().map(|e| e.span).collect(),
            errors,
            gave_up: false,
        }
    }

    /// Returns the errors, sorted by position.
    fn finish(self) -> Vec<Diagnostic> {
        let mut errors = self.errors;
        errors.sort_by_key(|e| (e.span.start, e.span.end));
        errors.truncate(MAX_ERRORS);
        errors
    }

    // ---- the cursor

    fn tok(&self) -> &Tok {
        &self.tokens[self.at].tok
    }

    fn tok_after(&self) -> &Tok {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].tok
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    fn prev_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// Moves to the next token, but not past the end.
    fn bump(&mut self) -> Span {
        let span = self.span();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        span
    }

    fn at_eof(&self) -> bool {
        *self.tok() == Tok::Eof
    }

    fn is(&self, p: &str) -> bool {
        matches!(self.tok(), Tok::Punct(q) if *q == p)
    }

    fn word(&self) -> &str {
        match self.tok() {
            Tok::Ident(word) => word,
            _ => "",
        }
    }

    fn is_word(&self, w: &str) -> bool {
        self.word() == w
    }

    fn is_reserved(&self) -> bool {
        RESERVED.contains(&self.word())
    }

    /// Returns whether an item starts here: `instruction NAME`, `template (` or `function NAME`. No statement
    /// starts like this.
    fn at_item(&self) -> bool {
        ITEMS.contains(&self.word())
            && (matches!(self.tok_after(), Tok::Ident(_))
                || (self.is_word("template") && *self.tok_after() == Tok::Punct("(")))
    }

    fn eat(&mut self, p: &str) -> bool {
        let matched = self.is(p);
        if matched {
            self.bump();
        }
        matched
    }

    fn eat_word(&mut self, w: &str) -> bool {
        let matched = self.is_word(w);
        if matched {
            self.bump();
        }
        matched
    }

    /// Returns whether the current token is on a later line than the previous one.
    fn on_new_line(&self) -> bool {
        let (from, to) = (self.prev_span().end as usize, self.span().start as usize);
        self.at_eof() || self.text.get(from..to).is_some_and(|gap| gap.contains('\n'))
    }

    // ---- messages

    fn report(&mut self, error: Diagnostic) {
        if !self.gave_up && self.errors.len() <= MAX_ERRORS && !self.follows_dropped(error.span) {
            self.errors.push(error);
        }
    }

    /// Returns whether the lexer dropped text between the previous and the current token, where `span` is.
    fn follows_dropped(&self, span: Span) -> bool {
        let (from, to) = (self.prev_span().end, self.span().start);
        let next = self.dropped.partition_point(|d| d.start < from);
        span == self.span() && self.dropped.get(next).is_some_and(|d| d.end <= to)
    }

    /// Reports that nesting is too deep and jumps to the end, which ends all recursion.
    fn give_up(&mut self, span: Span, message: String) {
        self.report(Diagnostic::error(span, message));
        self.gave_up = true;
        self.at = self.tokens.len() - 1;
    }

    /// Runs `f` one level deeper.
    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("this is nested too deeply: at most {MAX_DEPTH} levels");
            self.give_up(self.span(), message);
            return Err(());
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn describe(&self) -> String {
        match self.tok() {
            Tok::Eof => "the end of the text".into(),
            tok => {
                let text = tok.spelling();
                if text.chars().count() > 40 {
                    format!("`{}…`", text.chars().take(40).collect::<String>())
                } else {
                    format!("`{text}`")
                }
            }
        }
    }

    fn unexpected<T>(&mut self, wanted: &str) -> R<T> {
        let message = format!("expected {wanted}, found {}", self.describe());
        self.report(Diagnostic { help: self.hint(), ..Diagnostic::error(self.span(), message) });
        Err(())
    }

    /// Suggests a correction for an unexpected token.
    fn hint(&self) -> Option<String> {
        let before = match &self.tokens[self.at.saturating_sub(1)].tok {
            Tok::Ident(word) if self.at > 0 => &**word,
            _ => "",
        };
        let text = match self.tok() {
            _ if matches!(before, "not" | "NOT") => "write `!` for `not`, or `~` for bits",
            Tok::Punct("=") if !matches!(self.tokens[self.at.saturating_sub(1)].tok, Tok::Punct("=")) => {
                "`=` assigns; use `==` to compare"
            }
            Tok::Punct("++" | "--") => "there is no `++` or `--`: write `x += 1`",
            Tok::Punct("{") if !self.open.is_empty() => {
                "braces enclose a whole body or a concatenation; blocks are `if … then … endif` and `for … do … endfor`"
            }
            Tok::Ident(word) => match &**word {
                "and" | "AND" => "write `&&`, or `&` for bits",
                "or" | "OR" => "write `||`, or `|` for bits",
                "xor" | "XOR" => "write `^`",
                "mod" | "MOD" => "write `%`",
                word if word.contains('$') => return Some(self.placeholder_hint(word)),
                word if RESERVED.contains(&word) => return None,
                word => return nearest_word(word, RESERVED).map(|near| format!("did you mean `{near}`?")),
            },
            _ => return None,
        };
        Some(text.to_string())
    }

    /// Suggests a correction for a `$NAME` that no template has filled in.
    fn placeholder_hint(&self, word: &str) -> String {
        if self.templates.is_empty() {
            return "`$` names a template parameter, but this is outside of any template".into();
        }
        let placeholder = template::placeholders(word).next().unwrap_or_default();
        let known: Vec<&str> = self.templates.iter().flatten().map(|n| n.text.as_str()).collect();
        match nearest(&placeholder, known.iter().copied()) {
            Some(near) => format!("did you mean `${near}`?"),
            None => format!("the template's parameters are {}", known.join(", ")),
        }
    }

    fn expect(&mut self, p: &str) -> R<()> {
        if self.eat(p) {
            return Ok(());
        }
        self.unexpected(&format!("`{p}`"))
    }

    /// Expects the closing half of a pair; an error points at both halves.
    fn expect_close(&mut self, p: &str, opened: Span) -> R<()> {
        if self.eat(p) {
            return Ok(());
        }
        let mut error = Diagnostic::error(self.span(), format!("expected `{p}`, found {}", self.describe()))
            .also(opened, "to close this");
        if let Some(hint) = self.hint() {
            error = error.help(hint);
        }
        self.report(error);
        Err(())
    }

    fn name(&mut self, what: &str) -> R<Name> {
        match self.tok() {
            Tok::Ident(text) if !text.contains('$') => {
                let text = text.to_string();
                let span = self.bump();
                Ok(Name { text, span })
            }
            _ => self.unexpected(what),
        }
    }

    /// Parses parameters: `(a, b)`.
    fn parameters(&mut self) -> R<Vec<Name>> {
        let open = self.span();
        self.expect("(")?;
        let mut out: Vec<Name> = Vec::new();
        while !self.is(")") {
            let name = self.name("a parameter's name")?;
            if let Some(old) = out.iter().find(|p| p.text == name.text) {
                let error = Diagnostic::error(name.span, format!("duplicate parameter `{}`", name.text))
                    .also(old.span, "first here");
                self.report(error);
            }
            out.push(name);
            if !self.eat(",") {
                break;
            }
        }
        self.expect_close(")", open)?;
        Ok(out)
    }
}

/// Returns the word closest to `word`, if `word` is long enough for a guess.
fn nearest_word(word: &str, words: &[&'static str]) -> Option<&'static str> {
    if word.len() < 4 {
        None
    } else {
        nearest(word, words.iter().copied())
            .map(|near| words.iter().copied().find(|w| *w == near).unwrap_or(""))
    }
}
