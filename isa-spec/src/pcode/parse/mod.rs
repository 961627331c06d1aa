//! Tokens -> tree, by recursive descent, with recovery: several errors a file.
//!
//! - `item`: instruction, function and template blocks;  `template`: the expansion;
//! - `stmt`: statements and their blocks;  `expr`: expressions.
//!
//! Every method that fails has reported why and returns `Err(())`. The tree holds whatever could be read, so
//! it means something only if there are no errors. Time is linear in the tokens, recursion is bounded by
//! [`MAX_DEPTH`].

mod expr;
mod item;
mod stmt;
mod template;

use super::ast::*;
use super::token::{Tok, Token, lex};
use crate::diag::{Diagnostic, nearest};
use crate::source::{FileId, SourceMap, Span};
use std::ops::Range;

pub use expr::type_suffix;
pub use template::fill;

/// Nesting of blocks, and of expressions, beyond this is an error rather than a deep recursion.
const MAX_DEPTH: u32 = 100;

/// Errors beyond this are dropped: the text is not pseudocode.
const MAX_ERRORS: usize = 200;

/// Words that cannot be names inside a body.
const RESERVED: &[&str] = &[
    "if", "then", "elsif", "else", "endif", "for", "do", "endfor", "while", "endwhile", "declare", "return",
    "break", "lambda",
];

/// Words that start an item of a file.
const ITEMS: &[&str] = &["instruction", "template", "function"];

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

/// Parses a file that is one bare body, as pasted from a manual.
pub fn parse_body(sources: &SourceMap, file: FileId) -> (Vec<Stmt>, Vec<Diagnostic>) {
    parse_body_in(sources, file, 0..sources.file(file).text.len())
}

/// Parses bytes `range` of a file as a bare body.
pub fn parse_body_in(sources: &SourceMap, file: FileId, range: Range<usize>) -> (Vec<Stmt>, Vec<Diagnostic>) {
    let whole = &sources.file(file).text;
    let Some(text) = whole.get(range.clone()) else {
        let span = Span::new(file, whole.len(), whole.len());
        return (Vec::new(), vec![Diagnostic::error(span, "this range is not inside the text")]);
    };
    let (tokens, errors) = lex(file, text, range.start);
    let mut parser = Parser::new(whole, file, tokens, errors);
    let body = parser.stmts();
    (body, parser.finish())
}

struct Parser<'a> {
    /// The whole file: spans index into it.
    text: &'a str,
    file: FileId,
    tokens: Vec<Token>,
    at: usize,
    /// Blocks and expressions being parsed.
    depth: u32,
    /// Height of the expression parsed last: long chains (`a + b + …`) nest too, though they need no
    /// recursion here.
    height: u32,
    /// What is open around the current statement, innermost last.
    open: Vec<Open>,
    /// The templates being expanded, outermost first.
    templates: Vec<Vec<Name>>,
    /// Tokens that expansion may still make, over the whole file.
    budget: usize,
    errors: Vec<Diagnostic>,
    /// Where the lexer dropped something: what is missing there has been reported.
    dropped: Vec<Span>,
    /// Nothing after this error is worth a message.
    gave_up: bool,
}

/// Something that must be closed.
#[derive(Clone, Copy)]
struct Open {
    what: Block,
    at: Span,
    /// Opened by a `{`, as other languages do; reported, and closed by `}`.
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
    fn new(text: &'a str, file: FileId, mut tokens: Vec<Token>, errors: Vec<Diagnostic>) -> Self {
        if !matches!(tokens.last(), Some(Token { tok: Tok::Eof, .. })) {
            let end = tokens.last().map_or(0, |t| t.span.end);
            tokens.push(Token { tok: Tok::Eof, span: Span { file, start: end, end } });
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
            budget: template::MAX_TOKENS,
            dropped: errors.iter().map(|e| e.span).collect(),
            errors,
            gave_up: false,
        }
    }

    /// The errors, by position.
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

    /// To the next token, but never past the end.
    fn bump(&mut self) -> Span {
        let span = self.span();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        span
    }

    fn at_eof(&self) -> bool {
        *self.tok() == Tok::Eof
    }

    fn is(&self, p: &str) -> bool {
        matches!(self.tok(), Tok::P(q) if *q == p)
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

    /// `instruction NAME`, `template (`, `function NAME`: no statement starts like this.
    fn at_item(&self) -> bool {
        ITEMS.contains(&self.word())
            && (matches!(self.tok_after(), Tok::Ident(_))
                || (self.is_word("template") && *self.tok_after() == Tok::P("(")))
    }

    fn eat(&mut self, p: &str) -> bool {
        let yes = self.is(p);
        if yes {
            self.bump();
        }
        yes
    }

    fn eat_word(&mut self, w: &str) -> bool {
        let yes = self.is_word(w);
        if yes {
            self.bump();
        }
        yes
    }

    /// Whether the current token is on a later line than the one before it.
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

    /// Whether the lexer dropped something between the current token and the one before it, and `span` is
    /// about that.
    fn follows_dropped(&self, span: Span) -> bool {
        let (from, to) = (self.prev_span().end, self.span().start);
        let next = self.dropped.partition_point(|d| d.start < from);
        span == self.span() && self.dropped.get(next).is_some_and(|d| d.end <= to)
    }

    /// Too deep: jumps to the end, where nothing recurses any more.
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

    /// What a stray token was probably meant to be.
    fn hint(&self) -> Option<String> {
        let before = match &self.tokens[self.at.saturating_sub(1)].tok {
            Tok::Ident(word) if self.at > 0 => word.as_str(),
            _ => "",
        };
        let text = match self.tok() {
            _ if matches!(before, "not" | "NOT") => "write `!` for `not`, or `~` for bits",
            Tok::P("=") if !matches!(self.tokens[self.at.saturating_sub(1)].tok, Tok::P("=")) => {
                "`=` assigns; use `==` to compare"
            }
            Tok::P("++" | "--") => "there is no `++` or `--`: write `x += 1`",
            Tok::P("{") if !self.open.is_empty() => {
                "braces enclose a whole body or a concatenation; blocks are `if … then … endif` and `for … do … endfor`"
            }
            Tok::Ident(word) => match word.as_str() {
                "and" | "AND" => "write `&&`, or `&` for bits",
                "or" | "OR" => "write `||`, or `|` for bits",
                "xor" | "XOR" => "write `^`",
                "mod" | "MOD" => "write `%`",
                word if word.contains('$') => return Some(self.hole_hint(word)),
                word if RESERVED.contains(&word) => return None,
                word => return nearest_word(word, RESERVED).map(|near| format!("did you mean `{near}`?")),
            },
            _ => return None,
        };
        Some(text.to_string())
    }

    /// `$NAME` that no template has filled in.
    fn hole_hint(&self, word: &str) -> String {
        if self.templates.is_empty() {
            return "`$` names a parameter of a template, and this is outside of any".into();
        }
        let hole = template::holes(word).next().unwrap_or_default();
        let known: Vec<&str> = self.templates.iter().flatten().map(|n| n.text.as_str()).collect();
        match nearest(&hole, known.iter().copied()) {
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

    /// The other half of a pair; an error points at both.
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
                let text = text.clone();
                let span = self.bump();
                Ok(Name { text, span })
            }
            _ => self.unexpected(what),
        }
    }

    /// `(a, b)`: the names between parentheses.
    fn parameters(&mut self) -> R<Vec<Name>> {
        let open = self.span();
        self.expect("(")?;
        let mut out: Vec<Name> = Vec::new();
        while !self.is(")") {
            let name = self.name("a parameter's name")?;
            if let Some(old) = out.iter().find(|p| p.text == name.text) {
                let error =
                    Diagnostic::error(name.span, format!("there are two parameters called `{}`", name.text))
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

/// The nearest of some words to one that is long enough for a guess.
fn nearest_word(word: &str, words: &[&'static str]) -> Option<&'static str> {
    if word.len() < 4 {
        None
    } else {
        nearest(word, words.iter().copied())
            .map(|near| words.iter().copied().find(|w| *w == near).unwrap_or(""))
    }
}
