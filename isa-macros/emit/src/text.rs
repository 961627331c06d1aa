//! Prints tokens as readable text: one statement per line, indented by braces. It needs no Rust parser, so
//! the command line can print handlers without one. Tests format with `prettyplease`.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Formats tokens as indented lines.
pub fn text(tokens: TokenStream) -> String {
    let mut out = Text::default();
    out.stream(tokens, true);
    out.end_line();
    out.done
}

#[derive(Default)]
struct Text {
    done: String,
    line: String,
    depth: usize,
    /// No space between the last token and the next.
    tight: bool,
    /// Number of open lists of generic arguments.
    generics: usize,
}

impl Text {
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.trim().is_empty() {
            self.done.push_str(&"    ".repeat(self.depth));
            self.done.push_str(line.trim());
            self.done.push('\n');
        }
        self.tight = true;
    }

    /// Adds a token. `before` requests a space before it, unless the last token forbids one.
    fn push(&mut self, token: &str, before: bool) {
        if before && !self.tight && !self.line.is_empty() {
            self.line.push(' ');
        }
        self.line.push_str(token);
        self.tight = false;
    }

    /// Adds tokens. `statements` is set directly inside braces and at the top level, where `;` ends a line.
    fn stream(&mut self, tokens: TokenStream, statements: bool) {
        let mut trees = tokens.into_iter().peekable();
        while let Some(tree) = trees.next() {
            match tree {
                TokenTree::Group(group) => {
                    let inner = group.stream();
                    match group.delimiter() {
                        Delimiter::Brace if inner.is_empty() => self.push("{}", true),
                        Delimiter::Brace => {
                            self.push("{", true);
                            self.end_line();
                            self.depth += 1;
                            self.stream(inner, true);
                            self.end_line();
                            self.depth -= 1;
                            self.push("}", true);
                            // Tokens that continue the line belong to the expression or are its other branch.
                            let continues = match trees.peek() {
                                Some(TokenTree::Punct(next)) => next.as_char() != '#',
                                Some(TokenTree::Ident(next)) => *next == "else" || *next == "as",
                                Some(TokenTree::Group(_)) => true,
                                Some(TokenTree::Literal(_)) | None => false,
                            };
                            if statements && !continues {
                                self.end_line();
                            }
                        }
                        Delimiter::Parenthesis => self.bracket("(", inner, ")"),
                        Delimiter::Bracket => {
                            let attribute = self.line.ends_with('#');
                            self.bracket("[", inner, "]");
                            if attribute && statements {
                                self.end_line();
                            }
                        }
                        Delimiter::None => self.stream(inner, false),
                    }
                }
                TokenTree::Punct(punct) => {
                    let c = punct.as_char();
                    let operand = self.line.ends_with(|c: char| c.is_alphanumeric() || "_)]".contains(c))
                        && !self.keyword();
                    let joined = self.tight && !self.line.is_empty();
                    let opens = c == '<' && (self.line.ends_with("::") || self.names_type());
                    let closes = c == '>' && self.generics > 0 && !self.line.ends_with('-');
                    let close = matches!(c, ';' | ',' | '.' | '?' | ':') || opens || closes;
                    self.push(&c.to_string(), !close && !joined);
                    self.generics = self.generics + opens as usize - closes as usize;
                    let prefix = matches!(c, '&' | '*' | '-' | '!') && !operand;
                    self.tight = punct.spacing() == Spacing::Joint
                        || matches!(c, '.' | '#' | '\'')
                        || prefix
                        || opens
                        || self.line.ends_with("::");
                    if c == ';' && statements {
                        self.end_line();
                    }
                }
                TokenTree::Ident(ident) => self.push(&ident.to_string(), true),
                TokenTree::Literal(literal) => self.push(&literal.to_string(), true),
            }
        }
    }

    /// Returns whether the line ends in a keyword that precedes an operand.
    fn keyword(&self) -> bool {
        let word = self.line.rsplit([' ', '(', '[']).next().unwrap_or_default();
        matches!(word, "" | "in" | "if" | "while" | "match" | "return" | "let" | "mut" | "as")
    }

    /// Returns whether the line ends in the name of a type or of a declared function, which generic arguments
    /// may follow.
    fn names_type(&self) -> bool {
        let mut words = self.line.rsplit([' ', '(', '[', '&', ':']);
        let last = words.next().unwrap_or_default();
        last.starts_with(|c: char| c.is_uppercase()) || words.next() == Some("fn")
    }

    fn bracket(&mut self, open: &str, inner: TokenStream, close: &str) {
        // No space for calls, indices and macros; a space after a keyword or an operator.
        let call =
            !self.keyword() && self.line.ends_with(|c: char| c.is_alphanumeric() || "_)]>!#".contains(c));
        self.push(open, !call);
        self.tight = true;
        self.stream(inner, false);
        self.line.push_str(close);
        self.tight = false;
    }
}
