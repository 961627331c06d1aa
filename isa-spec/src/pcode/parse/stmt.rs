//! Parses statements: blocks, assignments, calls, lambdas.

use super::{Block, Open, Parser, R, RESERVED, nearest_word};
use crate::diag::Diagnostic;
use crate::pcode::ast::*;
use crate::pcode::print::OPERATORS;
use crate::pcode::token::Tok;
use crate::source::Span;

/// Keywords that end a block or a branch.
const CLOSERS: &[&str] = &["elsif", "else", "endif", "endfor", "endwhile"];

/// Spellings of `elsif` in other languages.
const ELSIF: &[&str] = &["elsif", "elseif", "elif"];

impl Parser<'_> {
    /// Parses statements up to the token that closes the innermost open block (which is not consumed) or to
    /// the end of the text.
    pub(super) fn stmts(&mut self) -> Vec<Stmt> {
        let mut out = Vec::new();
        loop {
            if self.at_eof() || self.ends_block() {
                return out;
            }
            let start = self.at;
            if self.eat(";") || self.remark() || self.misspelt_closer() || self.skip_unmatched() {
                continue;
            }
            match self.stmt() {
                Ok(stmt) => {
                    let block = matches!(
                        stmt.kind,
                        StmtKind::If { .. } | StmtKind::For { .. } | StmtKind::While { .. }
                    );
                    out.push(stmt);
                    if !block {
                        self.end_of_statement(start);
                    }
                }
                Err(()) => self.recover(start),
            }
        }
    }

    /// Returns whether the current token ends the innermost block or an enclosing one.
    fn ends_block(&self) -> bool {
        if self.at_item() {
            return self.open.iter().any(|o| o.what == Block::Body);
        }
        // `close` reports a closing keyword that does not match the innermost block.
        let mismatched = matches!(self.word(), "endif" | "endfor" | "endwhile")
            && self.open.last().is_some_and(|o| matches!(o.what, Block::If | Block::For | Block::While));
        mismatched || self.closes_open_block()
    }

    /// Skips a string used as a statement, which is a remark in the manuals: `"Wait for all instructions to
    /// complete";`.
    fn remark(&mut self) -> bool {
        let remark =
            matches!(self.tok(), Tok::Str(_)) && matches!(self.tok_after(), Tok::Punct(";" | "}") | Tok::Eof);
        if remark {
            self.bump();
        }
        remark
    }

    /// Reports a misspelt closing keyword such as `endfi;` and replaces it by the intended one.
    fn misspelt_closer(&mut self) -> bool {
        let alone = matches!(self.tok_after(), Tok::Punct(";") | Tok::Eof | Tok::Punct("}"));
        // Most statements do not qualify: an edit distance is computed only for those that do.
        if !alone || self.is_reserved() {
            return false;
        }
        let Some(near) = nearest_word(self.word(), CLOSERS) else { return false };
        let error = Diagnostic::error(self.span(), format!("`{}` does not start a statement", self.word()));
        self.report(error.help(format!("did you mean `{near}`?")));
        self.tokens.to_mut()[self.at].tok = Tok::Ident(near.into());
        true
    }

    /// Reports and skips an unmatched closing token, or the start of an item, which a body cannot contain.
    fn skip_unmatched(&mut self) -> bool {
        let message = match self.tok() {
            Tok::Punct(p @ ("}" | ")" | "]")) => format!("unmatched `{p}`"),
            Tok::Ident(word) if CLOSERS.contains(&&**word) => {
                let opener = match &**word {
                    "endfor" => "for",
                    "endwhile" => "while",
                    _ => "if",
                };
                format!("`{word}` without `{opener}`")
            }
            Tok::Ident(word) if self.at_item() => {
                format!("`{word}` starts a top-level block, not a statement")
            }
            _ => return false,
        };
        self.report(Diagnostic::error(self.span(), message));
        self.bump();
        true
    }

    fn closes_open_block(&self) -> bool {
        self.open.iter().any(|o| match o.what {
            _ if o.braced && self.is("}") => true,
            Block::Body => self.is("}"),
            Block::Lambda => self.is(")"),
            Block::If => CLOSERS[..3].contains(&self.word()) || ELSIF.contains(&self.word()),
            what => self.is_word(what.closer()),
        })
    }

    fn end_of_statement(&mut self, start: usize) {
        let ends = self.is(";")
            || self.is("}")
            || self.is(")")
            || self.at_eof()
            || CLOSERS.contains(&self.word())
            || self.at_item();
        if ends {
            return;
        }
        // Another statement follows on a new line: only the `;` is missing.
        let starts = matches!(self.tok(), Tok::Ident(_) | Tok::Punct("{"));
        if self.on_new_line() && starts {
            let end = self.prev_span();
            let error = Diagnostic::error(end, "expected `;` after this statement")
                .also(self.span(), "before this one");
            self.report(error);
            return;
        }
        let _ = self.unexpected::<()>("`;`");
        self.recover(start);
    }

    /// Skips to the next position where a statement may start.
    fn recover(&mut self, start: usize) {
        if self.at == start {
            self.bump();
        }
        let mut depth = 0u32;
        while !self.at_eof() {
            match self.tok() {
                Tok::Punct(";") if depth == 0 => return,
                Tok::Punct("{" | "(" | "[") => depth += 1,
                Tok::Punct("}" | ")" | "]") if depth > 0 => depth -= 1,
                Tok::Punct("}") => return,
                Tok::Punct(")") if self.open.iter().any(|o| o.what == Block::Lambda) => return,
                // Block keywords do not occur inside parentheses, except in a lambda.
                Tok::Ident(word) if CLOSERS.contains(&&**word) => return,
                Tok::Ident(word) if RESERVED.contains(&&**word) && self.on_new_line() => return,
                Tok::Ident(_) if self.at_item() => return,
                _ => {}
            }
            self.bump();
        }
    }

    fn stmt(&mut self) -> R<Stmt> {
        self.deeper(|p| p.stmt_inner())
    }

    fn stmt_inner(&mut self) -> R<Stmt> {
        let start = self.span();
        let kind = match self.word() {
            "declare" => self.declare()?,
            "if" => self.if_block(start),
            "for" => self.for_block(start),
            "while" => self.while_block(start),
            "return" => {
                self.bump();
                let none = self.is(";")
                    || self.is("}")
                    || self.is(")")
                    || self.at_eof()
                    || CLOSERS.contains(&self.word());
                StmtKind::Return(if none { None } else { Some(self.expr()?) })
            }
            "break" => {
                self.bump();
                self.in_loop(start);
                StmtKind::Break
            }
            "eval" if matches!(self.tok_after(), Tok::Str(_)) => {
                let name = Name { text: "eval".into(), span: self.bump() };
                let Tok::Str(text) = self.tok().clone() else { return Err(()) };
                let at = self.bump();
                let text = Expr { kind: ExprKind::Str(text), span: at };
                StmtKind::Call(Expr { kind: ExprKind::Call(name, vec![text]), span: start.to(at) })
            }
            word if RESERVED.contains(&word) => return self.unexpected("a statement"),
            _ => self.assign_or_call(start)?,
        };
        Ok(Stmt { kind, span: start.to(self.prev_span()) })
    }

    fn in_loop(&mut self, span: Span) {
        let inside = self
            .open
            .iter()
            .rev()
            .take_while(|o| o.what != Block::Lambda)
            .any(|o| matches!(o.what, Block::For | Block::While));
        if !inside {
            self.report(Diagnostic::error(span, "`break` outside of a loop"));
        }
    }

    fn declare(&mut self) -> R<StmtKind> {
        self.bump();
        let name = self.name("a name")?;
        self.expect(":")?;
        let Tok::Type(ty) = *self.tok() else {
            let mut error =
                Diagnostic::error(self.span(), format!("expected a type, found {}", self.describe()))
                    .help("for example 32'B, 64'F, 32'U[64]");
            if let Some(ty) = super::type_suffix(self.word()) {
                error.help = Some(format!("write `{}`", crate::pcode::print::cast_type(ty)));
            }
            self.report(error);
            return Err(());
        };
        self.bump();
        let mut len = None;
        if self.is("[") {
            let open = self.bump();
            len = Some(self.expr()?);
            self.expect_close("]", open)?;
        }
        Ok(StmtKind::Declare { name, ty, len })
    }

    fn if_block(&mut self, start: Span) -> StmtKind {
        self.bump();
        self.open.push(Open::new(Block::If, start));
        let cond = self.block_condition("then");
        let mut arms = vec![(cond, self.stmts())];
        let mut otherwise: Option<Vec<Stmt>> = None;
        let mut else_if = false;
        loop {
            let at = self.span();
            if self.last_braced() && self.is("}") {
                let more =
                    matches!(self.tok_after(), Tok::Ident(w) if &**w == "else" || ELSIF.contains(&&**w));
                if more {
                    self.bump();
                }
            }
            if ELSIF.contains(&self.word()) {
                if !self.is_word("elsif") {
                    let message = format!("expected `elsif`, found {}", self.describe());
                    self.report(Diagnostic::error(at, message).help("write `elsif`"));
                }
                self.bump();
                if otherwise.is_some() {
                    self.report(Diagnostic::error(at, "`elsif` after `else`"));
                }
                let cond = self.block_condition("then");
                let body = self.stmts();
                arms.push((cond, body));
            } else if self.eat_word("else") {
                if otherwise.is_some() {
                    self.report(Diagnostic::error(at, "a second `else`").also(start, "of this `if`"));
                }
                else_if = self.is_word("if") && !self.on_new_line();
                // `else {`: the brace of the `if` has been reported already.
                if self.last_braced() {
                    self.eat("{");
                }
                otherwise = Some(self.stmts());
            } else {
                break;
            }
        }
        let help =
            else_if.then_some("`else if` opens a nested block, which needs its own `endif`: write `elsif`");
        self.close(help);
        StmtKind::If { arms, otherwise }
    }

    fn for_block(&mut self, start: Span) -> StmtKind {
        self.bump();
        self.open.push(Open::new(Block::For, start));
        let mut var = Name { text: String::new(), span: start };
        let mut from = dummy_expr(start);
        let mut to = dummy_expr(start);
        let head = self.for_head(&mut var, &mut from, &mut to);
        self.expect_head_keyword(head, "do");
        let body = self.stmts();
        self.close(None);
        StmtKind::For { var, from, to, body }
    }

    fn for_head(&mut self, var: &mut Name, from: &mut Expr, to: &mut Expr) -> R<()> {
        if self.is("(") {
            let error = Diagnostic::error(
                self.span(),
                format!("expected a loop variable, found {}", self.describe()),
            )
            .help("write `for i in 0 : 31 do … endfor`; both ends are included");
            self.report(error);
            self.skip_parenthesised();
            return Err(());
        }
        *var = self.name("a loop variable")?;
        if !self.eat_word("in") {
            return self.unexpected("`in`");
        }
        *from = self.expr()?;
        self.expect(":")?;
        *to = self.expr()?;
        Ok(())
    }

    fn skip_parenthesised(&mut self) {
        let mut depth = 0;
        while !self.at_eof() {
            match self.tok() {
                Tok::Punct("(") => depth += 1,
                Tok::Punct(")") => depth -= 1,
                _ => {}
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    fn last_braced(&self) -> bool {
        self.open.last().is_some_and(|o| o.braced)
    }

    fn while_block(&mut self, start: Span) -> StmtKind {
        self.bump();
        self.open.push(Open::new(Block::While, start));
        let cond = self.block_condition("do");
        let body = self.stmts();
        self.close(None);
        StmtKind::While { cond, body }
    }

    /// Parses a condition and the keyword after it. Parsing of the block continues after any error here.
    fn block_condition(&mut self, word: &str) -> Expr {
        let at = self.span();
        let cond = self.expr();
        let (cond, ok) = match cond {
            Ok(cond) => (cond, Ok(())),
            Err(()) => (dummy_expr(at), Err(())),
        };
        self.expect_head_keyword(ok, word);
        cond
    }

    /// Parses `then` or `do`. If the head has an error or the keyword is missing, skips to the keyword if it
    /// is on the same line.
    fn expect_head_keyword(&mut self, head: R<()>, word: &str) {
        if head.is_ok() {
            if self.eat_word(word) {
                return;
            }
            if self.on_new_line() {
                let at = self.prev_span();
                let error = Diagnostic::error(at, format!("expected `{word}` after this")).also(
                    self.open.last().map_or(at, |o| o.at),
                    format!("to go with this `{}`", self.opener()),
                );
                self.report(error);
                return;
            }
            let _ = self.unexpected::<()>(&format!("`{word}`"));
        }
        while !self.at_eof() {
            if self.eat_word(word) {
                return;
            }
            if self.is("{")
                && let Some(open) = self.open.last_mut()
            {
                open.braced = true;
                self.bump();
                return;
            }
            if self.is(";") || self.is("}") || self.is_reserved() || self.at_item() || self.on_new_line() {
                return;
            }
            self.bump();
        }
    }

    fn opener(&self) -> &'static str {
        self.open.last().map_or("", |o| o.what.opener())
    }

    /// Parses the end of the innermost block. Consumes a wrong closing keyword unless it closes an outer
    /// block.
    fn close(&mut self, help: Option<&str>) {
        let Some(block) = self.open.pop() else { return };
        let closer = block.what.closer();
        if self.eat_word(closer) || (block.braced && self.eat("}")) {
            return;
        }
        let mut error =
            Diagnostic::error(self.span(), format!("expected `{closer}`, found {}", self.describe()))
                .also(block.at, format!("this `{}` is not closed", block.what.opener()));
        error.help = help.map(str::to_string);
        if error.help.is_none() && !self.closes_open_block() {
            error.help = self.hint();
        }
        self.report(error);
        if self.word().starts_with("end") && CLOSERS.contains(&self.word()) && !self.closes_open_block() {
            self.bump();
        }
    }

    fn assign_or_call(&mut self, start: Span) -> R<StmtKind> {
        let place = self.expr()?;
        let op = match self.tok() {
            Tok::Punct("=") => None,
            Tok::Punct(p) => match p.strip_suffix('=').and_then(|p| OPERATORS.iter().find(|o| o.0 == p)) {
                // `<=` and `>=` are comparisons, which the expression has consumed.
                Some(&(_, op, _)) => Some(op),
                None => return self.call(place),
            },
            _ => return self.call(place),
        };
        self.bump();
        if op.is_none() && self.is_word("lambda") && *self.tok_after() == Tok::Punct("(") {
            return self.lambda(start, place);
        }
        let value = self.expr()?;
        Ok(StmtKind::Assign { place, op, value })
    }

    fn call(&mut self, e: Expr) -> R<StmtKind> {
        if let ExprKind::Call(..) = e.kind {
            return Ok(StmtKind::Call(e));
        }
        let mut error =
            Diagnostic::error(self.span(), format!("expected `=` or a call, found {}", self.describe()));
        match &e.kind {
            ExprKind::Binary(BinaryOp::Eq, ..) => {
                error = error.help("`==` compares; use `=` to assign");
                error = error.also(e.span, "this is a comparison");
            }
            ExprKind::Name(word) if nearest_word(word, RESERVED).is_some() => {
                let near = nearest_word(word, RESERVED).unwrap_or_default();
                error.span = e.span;
                error.message = format!("`{word}` does not start a statement");
                error = error.help(format!("did you mean `{near}`?"));
            }
            _ => error.help = self.hint(),
        }
        self.report(error);
        Err(())
    }

    /// Parses `NAME = lambda(a, b) ( expr )` or `( stmts )`.
    fn lambda(&mut self, start: Span, place: Expr) -> R<StmtKind> {
        self.bump();
        let ExprKind::Name(text) = place.kind else {
            self.report(Diagnostic::error(place.span, "a lambda needs a plain name"));
            return Err(());
        };
        let name = Name { text, span: place.span };
        let parameters = self.parameters()?;
        let open = self.span();
        self.expect("(")?;
        if let Some(value) = self.lone_expression() {
            let span = value.span;
            let body = vec![Stmt { kind: StmtKind::Return(Some(value)), span }];
            return Ok(StmtKind::Lambda { name, parameters, body });
        }
        self.open.push(Open::new(Block::Lambda, start));
        let body = self.stmts();
        self.open.pop();
        self.expect_close(")", open)?;
        Ok(StmtKind::Lambda { name, parameters, body })
    }

    /// Parses an expression followed by `)`; otherwise consumes and reports nothing. Lambdas are not
    /// expressions, so no token is visited more than twice.
    fn lone_expression(&mut self) -> Option<Expr> {
        if self.is_reserved() {
            return None;
        }
        let (at, errors) = (self.at, self.errors.len());
        let value = self.expr();
        if let Ok(value) = value
            && self.eat(")")
        {
            return Some(value);
        }
        if !self.gave_up {
            self.at = at;
            self.errors.truncate(errors);
        }
        None
    }
}

/// Returns a placeholder for an expression that could not be parsed.
fn dummy_expr(span: Span) -> Expr {
    Expr { kind: ExprKind::Int { value: 0, ty: LiteralType::None }, span }
}
