//! Tokens -> tree, with recovery: several errors a file.

use super::ast::*;
use super::template;
use super::token::{Tok, Token, lex};
use crate::diag::Diagnostic;
use crate::source::{FileId, SourceMap, Span};

/// Nesting of blocks and expressions beyond this is an error rather than a deep recursion.
const MAX_DEPTH: u32 = 200;

/// Parses a whole `.pcode` file.
pub fn parse_file(sources: &SourceMap, file: FileId) -> (File, Vec<Diagnostic>) {
    let text = &sources.file(file).text;
    let (tokens, errors) = lex(file, text, 0);
    let mut parser = Parser::new(text, file, tokens, errors);
    let header = text
        .lines()
        .take_while(|l| l.starts_with("//"))
        .map(|l| l.trim_start_matches('/').trim().to_string())
        .collect();
    let items = parser.items();
    (File { items, header }, parser.errors)
}

/// Parses a bare body, as pasted from a manual.
pub fn parse_body(sources: &SourceMap, file: FileId) -> (Vec<Stmt>, Vec<Diagnostic>) {
    let text = &sources.file(file).text;
    let (tokens, errors) = lex(file, text, 0);
    let mut parser = Parser::new(text, file, tokens, errors);
    let body = parser.stmts(&[]);
    if !parser.at_eof() {
        parser.unexpected("a statement");
    }
    (body, parser.errors)
}

pub(super) struct Parser<'a> {
    text: &'a str,
    file: FileId,
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    pub errors: Vec<Diagnostic>,
}

type R<T> = Result<T, ()>;

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, file: FileId, mut tokens: Vec<Token>, errors: Vec<Diagnostic>) -> Self {
        if !matches!(tokens.last(), Some(Token { tok: Tok::Eof, .. })) {
            let end = tokens.last().map_or(0, |t| t.span.end);
            tokens.push(Token { tok: Tok::Eof, span: Span { file, start: end, end } });
        }
        Parser { text, file, tokens, at: 0, depth: 0, errors }
    }

    fn tok(&self) -> &Tok {
        &self.tokens[self.at].tok
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    fn prev_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn bump(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn at_eof(&self) -> bool {
        *self.tok() == Tok::Eof
    }

    fn is(&self, p: &str) -> bool {
        matches!(self.tok(), Tok::P(q) if *q == p)
    }

    fn is_word(&self, w: &str) -> bool {
        matches!(self.tok(), Tok::Ident(s) if s == w)
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

    fn describe(&self) -> String {
        match self.tok() {
            Tok::Eof => "the end of the text".into(),
            _ => {
                let span = self.span();
                format!("`{}`", self.text.get(span.start as usize..span.end as usize).unwrap_or("?"))
            }
        }
    }

    fn unexpected(&mut self, wanted: &str) {
        let message = format!("expected {wanted}, found {}", self.describe());
        let span = self.span();
        self.errors.push(Diagnostic::error(span, message));
    }

    fn expect(&mut self, p: &str) -> R<()> {
        if self.eat(p) {
            return Ok(());
        }
        self.unexpected(&format!("`{p}`"));
        Err(())
    }

    fn expect_word(&mut self, w: &str, opened: Span) -> R<()> {
        if self.eat_word(w) {
            return Ok(());
        }
        let message = format!("expected `{w}`, found {}", self.describe());
        let span = self.span();
        self.errors.push(Diagnostic::error(span, message).also(opened, "for this"));
        Err(())
    }

    fn name(&mut self, what: &str) -> R<Name> {
        match self.tok() {
            Tok::Ident(text) => {
                let text = text.clone();
                let span = self.bump().span;
                Ok(Name { text, span })
            }
            _ => {
                self.unexpected(what);
                Err(())
            }
        }
    }

    // ---- files

    pub(super) fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while !self.at_eof() {
            let start = self.at;
            let item = if self.is_word("instruction") {
                self.instruction().map(Item::Instruction)
            } else if self.is_word("template") {
                self.template().map(Item::Template)
            } else if self.is_word("function") {
                self.function().map(Item::Function)
            } else {
                self.unexpected("`instruction`, `template` or `function`");
                Err(())
            };
            match item {
                Ok(item) => items.push(item),
                Err(()) => {
                    if self.at == start {
                        self.bump();
                    }
                    self.skip_to_item();
                }
            }
        }
        items
    }

    fn skip_to_item(&mut self) {
        while !self.at_eof() && !["instruction", "template", "function"].iter().any(|w| self.is_word(w)) {
            self.bump();
        }
    }

    fn instruction(&mut self) -> R<Instruction> {
        let start = self.bump().span;
        let mut names = vec![self.name("an instruction's name")?];
        while self.eat(",") {
            names.push(self.name("an instruction's name")?);
        }
        let mut archs = Vec::new();
        if self.eat_word("for") {
            archs.push(self.arch_name()?);
            while self.eat(",") {
                archs.push(self.arch_name()?);
            }
        }
        let (body, body_span) = self.braced_body()?;
        Ok(Instruction { names, archs, body, body_span, span: start.to(self.prev_span()) })
    }

    /// `rdna3`, `rdna3.5`.
    fn arch_name(&mut self) -> R<Name> {
        let mut name = self.name("an architecture")?;
        if self.is(".") {
            self.bump();
            if let Tok::Int { value, .. } = self.tok() {
                name.text = format!("{}.{value}", name.text);
                name.span = name.span.to(self.bump().span);
            }
        }
        Ok(name)
    }

    fn braced_body(&mut self) -> R<(Vec<Stmt>, Span)> {
        let open = self.span();
        self.expect("{")?;
        let body_start = self.prev_span().end;
        let body = self.stmts(&[]);
        let body_end = self.span().start;
        if !self.eat("}") {
            let message = format!("expected a statement or `}}`, found {}", self.describe());
            let span = self.span();
            self.errors.push(Diagnostic::error(span, message).also(open, "block opened here"));
            return Err(());
        }
        Ok((body, Span { file: self.file, start: body_start, end: body_end.max(body_start) }))
    }

    fn function(&mut self) -> R<Function> {
        let start = self.bump().span;
        let name = self.name("a function's name")?;
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.is(")") {
            parameters.push(self.name("a parameter's name")?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        let (body, _) = self.braced_body()?;
        Ok(Function { name, parameters, body, span: start.to(self.prev_span()) })
    }

    fn template(&mut self) -> R<Template> {
        let start = self.bump().span;
        self.expect("(")?;
        let mut parameters = vec![self.name("a parameter's name")?];
        while self.eat(",") {
            parameters.push(self.name("a parameter's name")?);
        }
        self.expect(")")?;
        self.expect_word("in", start)?;
        let mut rows: Vec<Vec<(Name, Vec<Token>)>> = Vec::new();
        loop {
            let open = self.span();
            self.expect("(")?;
            let mut row = Vec::new();
            loop {
                row.push(self.row_entry()?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
            if row.len() != parameters.len() {
                self.errors.push(Diagnostic::error(
                    open.to(self.prev_span()),
                    format!("this row has {} entries for {} parameters", row.len(), parameters.len()),
                ));
                return Err(());
            }
            rows.push(row);
            if !self.eat(",") {
                break;
            }
        }
        let open = self.span();
        self.expect("{")?;
        let first = self.at;
        let mut depth = 1;
        while depth > 0 {
            if self.at_eof() {
                let span = self.span();
                self.errors
                    .push(Diagnostic::error(span, "this template is not closed").also(open, "opened here"));
                return Err(());
            }
            if self.is("{") {
                depth += 1;
            } else if self.is("}") {
                depth -= 1;
            }
            self.bump();
        }
        let last = self.at - 1;
        let body: Vec<Token> = self.tokens[first..last].to_vec();
        let text = self.text[open.end as usize..self.tokens[last].span.start as usize].to_string();
        let mut items = Vec::new();
        if self.depth > 8 {
            self.errors.push(Diagnostic::error(open, "templates are nested too deeply"));
            return Err(());
        }
        for row in &rows {
            let expanded = template::expand(self.file, &body, &parameters, row, &mut self.errors);
            let before = self.errors.len();
            let mut inner = Parser::new(self.text, self.file, expanded, Vec::new());
            inner.depth = self.depth + 1;
            items.extend(inner.items());
            let names: Vec<&str> = row.iter().map(|(n, _)| n.text.as_str()).collect();
            for mut error in inner.errors {
                error.help.get_or_insert_with(|| format!("in the template's row ({})", names.join(", ")));
                self.errors.push(error);
            }
            // One broken row says enough.
            if self.errors.len() > before {
                break;
            }
        }
        Ok(Template {
            parameters,
            rows: rows.into_iter().map(|r| r.into_iter().map(|e| e.0).collect()).collect(),
            items,
            text,
            span: start.to(self.prev_span()),
        })
    }

    /// One entry: a token, or `-1`-like pair, or a quoted string of tokens.
    fn row_entry(&mut self) -> R<(Name, Vec<Token>)> {
        if self.is(")") || self.is(",") || self.at_eof() {
            self.unexpected("a row entry");
            return Err(());
        }
        let token = self.bump();
        if let Tok::Str(content) = &token.tok {
            let (mut tokens, mut errors) = lex(self.file, content, token.span.start as usize + 1);
            tokens.pop();
            self.errors.append(&mut errors);
            return Ok((Name { text: content.clone(), span: token.span }, tokens));
        }
        let text = self.text[token.span.start as usize..token.span.end as usize].to_string();
        Ok((Name { text, span: token.span }, vec![token]))
    }

    // ---- statements

    fn stmts(&mut self, ends: &[&str]) -> Vec<Stmt> {
        let mut out = Vec::new();
        loop {
            while self.eat(";") {}
            if self.at_eof() || self.is("}") || self.is(")") || ends.iter().any(|w| self.is_word(w)) {
                return out;
            }
            let start = self.at;
            match self.stmt() {
                Ok(stmt) => {
                    let block = matches!(
                        stmt.kind,
                        StmtKind::If { .. } | StmtKind::For { .. } | StmtKind::While { .. }
                    );
                    out.push(stmt);
                    let at_end = self.is(";")
                        || self.is("}")
                        || self.is(")")
                        || self.at_eof()
                        || ["endif", "endfor", "endwhile", "else", "elsif"].iter().any(|w| self.is_word(w));
                    if !block && !at_end {
                        let message = format!("expected `;`, found {}", self.describe());
                        let span = self.span();
                        self.errors.push(Diagnostic::error(span, message));
                        self.recover(start);
                    }
                }
                Err(()) => self.recover(start),
            }
        }
    }

    fn recover(&mut self, start: usize) {
        if self.at == start {
            self.bump();
        }
        let mut depth = 0u32;
        while !self.at_eof() {
            if self.is("{") {
                depth += 1;
            }
            if self.is("}") {
                if depth == 0 {
                    return;
                }
                depth -= 1;
            }
            let stop = self.is(";")
                || ["endif", "endfor", "endwhile", "else", "elsif"].iter().any(|w| self.is_word(w))
                || ["instruction", "template", "function"].iter().any(|w| self.is_word(w));
            if stop && depth == 0 {
                return;
            }
            self.bump();
        }
    }

    fn stmt(&mut self) -> R<Stmt> {
        self.depth += 1;
        let result = if self.depth > MAX_DEPTH {
            let span = self.span();
            self.errors.push(Diagnostic::error(span, "nested too deeply"));
            // Nothing sensible can follow.
            self.at = self.tokens.len() - 1;
            Err(())
        } else {
            self.stmt_inner()
        };
        self.depth -= 1;
        result
    }

    fn stmt_inner(&mut self) -> R<Stmt> {
        let start = self.span();
        let word = match self.tok() {
            Tok::Ident(w) => w.clone(),
            _ => String::new(),
        };
        let kind = match word.as_str() {
            "declare" => {
                self.bump();
                let name = self.name("a name")?;
                self.expect(":")?;
                let ty = match self.bump() {
                    Token { tok: Tok::Type(ty), .. } => ty,
                    token => {
                        self.errors.push(
                            Diagnostic::error(token.span, "expected a type")
                                .help("for example 32'B, 64'F, 32'U[64]"),
                        );
                        return Err(());
                    }
                };
                let len = if self.eat("[") {
                    let len = self.expr()?;
                    self.expect("]")?;
                    Some(len)
                } else {
                    None
                };
                StmtKind::Declare { name, ty, len }
            }
            "if" => {
                self.bump();
                let mut arms = Vec::new();
                let cond = self.expr()?;
                self.expect_word("then", start)?;
                arms.push((cond, self.stmts(&["elsif", "else", "endif"])));
                let mut otherwise = None;
                loop {
                    if self.eat_word("elsif") {
                        let cond = self.expr()?;
                        self.expect_word("then", start)?;
                        arms.push((cond, self.stmts(&["elsif", "else", "endif"])));
                    } else if self.eat_word("else") {
                        otherwise = Some(self.stmts(&["endif"]));
                    } else {
                        break;
                    }
                }
                self.expect_word("endif", start)?;
                StmtKind::If { arms, otherwise }
            }
            "for" => {
                self.bump();
                let var = self.name("a loop variable")?;
                self.expect_word("in", start)?;
                let from = self.expr()?;
                self.expect(":")?;
                let to = self.expr()?;
                self.expect_word("do", start)?;
                let body = self.stmts(&["endfor"]);
                self.expect_word("endfor", start)?;
                StmtKind::For { var, from, to, body }
            }
            "while" => {
                self.bump();
                let cond = self.expr()?;
                self.expect_word("do", start)?;
                let body = self.stmts(&["endwhile"]);
                self.expect_word("endwhile", start)?;
                StmtKind::While { cond, body }
            }
            "return" => {
                self.bump();
                let none = self.is(";") || self.is("}") || self.is(")") || self.at_eof();
                StmtKind::Return(if none { None } else { Some(self.expr()?) })
            }
            _ => return self.assign_or_call(start),
        };
        Ok(Stmt { kind, span: start.to(self.prev_span()) })
    }

    fn assign_or_call(&mut self, start: Span) -> R<Stmt> {
        let place = self.expr()?;
        let op = match self.tok() {
            Tok::P("=") => None,
            Tok::P(p) => match *p {
                "+=" => Some(BinaryOp::Add),
                "-=" => Some(BinaryOp::Sub),
                "*=" => Some(BinaryOp::Mul),
                "/=" => Some(BinaryOp::Div),
                "%=" => Some(BinaryOp::Rem),
                "&=" => Some(BinaryOp::And),
                "|=" => Some(BinaryOp::Or),
                "^=" => Some(BinaryOp::Xor),
                "<<=" => Some(BinaryOp::Shl),
                ">>=" => Some(BinaryOp::Shr),
                ">>>=" => Some(BinaryOp::Sar),
                "**=" => Some(BinaryOp::Pow),
                _ => return self.call_stmt(start, place),
            },
            _ => return self.call_stmt(start, place),
        };
        self.bump();
        if op.is_none()
            && let ExprKind::Name(_) = place.kind
            && self.is_word("lambda")
        {
            return self.lambda(start, place);
        }
        let value = self.expr()?;
        Ok(Stmt { kind: StmtKind::Assign { place, op, value }, span: start.to(self.prev_span()) })
    }

    fn call_stmt(&mut self, start: Span, place: Expr) -> R<Stmt> {
        if let ExprKind::Call(..) = place.kind {
            return Ok(Stmt { kind: StmtKind::Call(place), span: start.to(self.prev_span()) });
        }
        let message = format!("expected `=` or a call, found {}", self.describe());
        let span = self.span();
        let mut error = Diagnostic::error(span, message);
        if let ExprKind::Binary(BinaryOp::Eq, ..) = place.kind {
            error = error.help("`==` compares; use `=` to assign");
        }
        self.errors.push(error);
        Err(())
    }

    /// `NAME = lambda(a, b) ( expr )` or `( stmts )`.
    fn lambda(&mut self, start: Span, place: Expr) -> R<Stmt> {
        self.bump();
        let ExprKind::Name(text) = place.kind else { return Err(()) };
        let name = Name { text, span: place.span };
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.is(")") {
            parameters.push(self.name("a parameter's name")?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        self.expect("(")?;
        let statements = ["if", "for", "while", "declare", "return"].iter().any(|w| self.is_word(w));
        let body = if statements {
            self.stmts(&[])
        } else {
            let value = self.expr()?;
            self.eat(";");
            let span = value.span;
            vec![Stmt { kind: StmtKind::Return(Some(value)), span }]
        };
        self.expect(")")?;
        Ok(Stmt { kind: StmtKind::Lambda { name, parameters, body }, span: start.to(self.prev_span()) })
    }

    // ---- expressions, by precedence climbing

    pub(super) fn expr(&mut self) -> R<Expr> {
        self.depth += 1;
        let result = if self.depth > MAX_DEPTH {
            let span = self.span();
            self.errors.push(Diagnostic::error(span, "nested too deeply"));
            self.at = self.tokens.len() - 1;
            Err(())
        } else {
            self.select()
        };
        self.depth -= 1;
        result
    }

    fn select(&mut self) -> R<Expr> {
        let cond = self.binary(0)?;
        if !self.eat("?") {
            return Ok(cond);
        }
        let a = self.expr()?;
        self.expect(":")?;
        let b = self.expr()?;
        let span = cond.span.to(b.span);
        Ok(Expr { kind: ExprKind::Select(Box::new(cond), Box::new(a), Box::new(b)), span })
    }

    fn binary(&mut self, min: u8) -> R<Expr> {
        let mut left = self.unary()?;
        loop {
            let Tok::P(p) = self.tok() else { return Ok(left) };
            let Some((op, level)) = binary_op(p) else { return Ok(left) };
            if level < min {
                return Ok(left);
            }
            self.bump();
            // `**` groups to the right.
            let right = self.binary(if op == BinaryOp::Pow { level } else { level + 1 })?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), span };
        }
    }

    fn unary(&mut self) -> R<Expr> {
        let start = self.span();
        let op = match self.tok() {
            Tok::P("-") => UnaryOp::Neg,
            Tok::P("+") => UnaryOp::Plus,
            Tok::P("~") => UnaryOp::Not,
            Tok::P("!") => UnaryOp::LogicalNot,
            _ => return self.postfix(),
        };
        self.bump();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.depth -= 1;
            let span = self.span();
            self.errors.push(Diagnostic::error(span, "nested too deeply"));
            self.at = self.tokens.len() - 1;
            return Err(());
        }
        let inner = self.unary();
        self.depth -= 1;
        let inner = inner?;
        let span = start.to(inner.span);
        Ok(Expr { kind: ExprKind::Unary(op, Box::new(inner)), span })
    }

    fn postfix(&mut self) -> R<Expr> {
        let mut e = self.primary()?;
        loop {
            if self.is(".") {
                self.bump();
                // `.f32`, or a field such as `.IEEE`, which the checker resolves.
                let name = self.name("a type such as `f32` or `u32`")?;
                let span = e.span.to(name.span);
                match type_suffix(&name.text) {
                    Some(ty) => e = Expr { kind: ExprKind::View(Box::new(e), ty), span },
                    None => match &e.kind {
                        ExprKind::Name(base) => {
                            e = Expr { kind: ExprKind::Name(format!("{base}.{}", name.text)), span }
                        }
                        _ => {
                            let mut error =
                                Diagnostic::error(name.span, format!("`.{}` is not a type", name.text));
                            let known = [
                                "f16", "bf16", "f32", "f64", "u8", "u16", "u32", "u64", "i8", "i16", "i32",
                                "i64", "b16", "b32", "b64", "u1",
                            ];
                            if let Some(near) = crate::diag::nearest(&name.text, known) {
                                error = error.help(format!("did you mean `.{near}`?"));
                            }
                            self.errors.push(error);
                        }
                    },
                }
            } else if self.eat("[") {
                let first = self.expr()?;
                if self.eat(":") {
                    let second = self.expr()?;
                    self.expect("]")?;
                    let span = e.span.to(self.prev_span());
                    e = Expr { kind: ExprKind::Slice(Box::new(e), Box::new(first), Box::new(second)), span };
                } else {
                    self.expect("]")?;
                    let span = e.span.to(self.prev_span());
                    e = Expr { kind: ExprKind::Index(Box::new(e), Box::new(first)), span };
                }
            } else {
                return Ok(e);
            }
        }
    }

    fn primary(&mut self) -> R<Expr> {
        let start = self.span();
        let kind = match self.tok().clone() {
            Tok::Int { value, ty } => {
                self.bump();
                ExprKind::Int { value, ty }
            }
            Tok::Float { text, ty } => {
                self.bump();
                ExprKind::Float { text, ty }
            }
            Tok::Str(text) => {
                self.bump();
                ExprKind::Str(text)
            }
            Tok::Type(ty) => {
                self.bump();
                self.expect("(")?;
                let inner = self.expr()?;
                self.expect(")")?;
                ExprKind::Cast(ty, Box::new(inner))
            }
            Tok::P("(") => {
                self.bump();
                let inner = self.expr()?;
                self.expect(")")?;
                ExprKind::Paren(Box::new(inner))
            }
            Tok::P("{") => {
                self.bump();
                let mut parts = vec![self.expr()?];
                while self.eat(",") {
                    parts.push(self.expr()?);
                }
                self.expect("}")?;
                ExprKind::Concat(parts)
            }
            Tok::Ident(text) => {
                let name = Name { text: text.clone(), span: self.bump().span };
                if self.eat("(") {
                    let mut args = Vec::new();
                    while !self.is(")") {
                        args.push(self.expr()?);
                        if !self.eat(",") {
                            break;
                        }
                    }
                    self.expect(")")?;
                    ExprKind::Call(name, args)
                } else {
                    ExprKind::Name(text)
                }
            }
            _ => {
                self.unexpected("an expression");
                return Err(());
            }
        };
        Ok(Expr { kind, span: start.to(self.prev_span()) })
    }
}

/// Operator and binding strength.
fn binary_op(p: &str) -> Option<(BinaryOp, u8)> {
    Some(match p {
        "||" => (BinaryOp::LogicalOr, 0),
        "&&" => (BinaryOp::LogicalAnd, 1),
        "|" => (BinaryOp::Or, 2),
        "^" => (BinaryOp::Xor, 3),
        "&" => (BinaryOp::And, 4),
        "==" => (BinaryOp::Eq, 5),
        "!=" => (BinaryOp::Ne, 5),
        "<>" => (BinaryOp::Lg, 5),
        "<" => (BinaryOp::Lt, 6),
        "<=" => (BinaryOp::Le, 6),
        ">" => (BinaryOp::Gt, 6),
        ">=" => (BinaryOp::Ge, 6),
        "<<" => (BinaryOp::Shl, 7),
        ">>" => (BinaryOp::Shr, 7),
        ">>>" => (BinaryOp::Sar, 7),
        "+" => (BinaryOp::Add, 8),
        "-" => (BinaryOp::Sub, 8),
        "*" => (BinaryOp::Mul, 9),
        "/" => (BinaryOp::Div, 9),
        "%" => (BinaryOp::Rem, 9),
        "**" => (BinaryOp::Pow, 10),
        _ => return None,
    })
}

/// `f32`, `u8`, `b64`; `f`, `u`, `i`, `b` alone are 32 bits wide.
pub fn type_suffix(text: &str) -> Option<TypeName> {
    match text {
        "bf16" => return Some(TypeName { kind: TypeKind::BF, width: 16 }),
        "fp8" => return Some(TypeName { kind: TypeKind::Fp8, width: 8 }),
        "bf8" => return Some(TypeName { kind: TypeKind::Bf8, width: 8 }),
        _ => {}
    }
    let mut chars = text.chars();
    let kind = match chars.next()? {
        'f' => TypeKind::F,
        'u' => TypeKind::U,
        'i' => TypeKind::I,
        'b' => TypeKind::B,
        _ => return None,
    };
    let digits = chars.as_str();
    if digits.is_empty() {
        return Some(TypeName { kind, width: 32 });
    }
    if !digits.chars().all(|c| c.is_ascii_digit()) || digits.starts_with('0') {
        return None;
    }
    let width: u16 = digits.parse().ok()?;
    match kind {
        TypeKind::F if !matches!(width, 16 | 32 | 64) => None,
        _ if width > 2048 => None,
        _ => Some(TypeName { kind, width }),
    }
}
