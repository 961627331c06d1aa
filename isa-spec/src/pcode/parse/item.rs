//! Parses the blocks of a file: instructions, functions, and templates.

use super::template::{self, Entry, Row};
use super::{Block, ITEMS, Open, Parser, R, nearest_word};
use crate::diag::Diagnostic;
use crate::pcode::ast::*;
use crate::pcode::token::{Tok, Token, lex};
use crate::source::Span;

/// Limit on the nesting of templates.
const MAX_TEMPLATES: usize = 8;

impl Parser<'_> {
    pub(super) fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while !self.at_eof() {
            let item = match self.word() {
                "instruction" => self.instruction().map(|one| one.map(Item::Instruction)),
                "template" => self.template().map(|one| Some(Item::Template(one))),
                "function" => self.function().map(|one| Some(Item::Function(one))),
                "record" => self.record().map(|one| Some(Item::Record(one))),
                _ => self.unexpected_item(),
            };
            match item {
                Ok(item) => items.extend(item),
                Err(()) => self.skip_to_item(),
            }
        }
        items
    }

    fn unexpected_item<T>(&mut self) -> R<T> {
        let mut error = Diagnostic::error(
            self.span(),
            format!("expected `instruction`, `template`, `function` or `record`, found {}", self.describe()),
        );
        if self.is("}") {
            error.message = "unmatched `}`".into();
        } else if let Some(near) = nearest_word(self.word(), ITEMS) {
            error = error.help(format!("did you mean `{near}`?"));
        } else if matches!(self.tok_after(), Tok::Punct("=" | "." | "[" | "(")) {
            error = error.help("put the body in a block: instruction V_NAME { … }");
        }
        self.report(error);
        self.bump();
        Err(())
    }

    fn skip_to_item(&mut self) {
        while !self.at_eof() && !ITEMS.contains(&self.word()) {
            self.bump();
        }
    }

    /// Returns `None` if another instruction is wanted.
    fn instruction(&mut self) -> R<Option<Instruction>> {
        let start = self.bump();
        let mut names = vec![self.name("an instruction's name")?];
        while self.eat(",") {
            names.push(self.name("an instruction's name")?);
        }
        let archs = self.archs()?;
        if let Some(wanted) = &self.wanted
            && !names.iter().any(|name| name.text.eq_ignore_ascii_case(wanted))
        {
            let open = self.span();
            self.expect("{")?;
            self.template_body(open)?;
            return Ok(None);
        }
        let (body, body_span) = self.braced_body()?;
        let span = start.to(self.prev_span());
        Ok(Some(Instruction { names, archs, body, body_span, span, rows: Vec::new() }))
    }

    /// Parses the architectures of a block, if it is limited to some.
    pub(super) fn archs(&mut self) -> R<Vec<Name>> {
        let mut archs = Vec::new();
        if self.eat_word("for") {
            archs.push(self.arch_name()?);
            while self.eat(",") {
                archs.push(self.arch_name()?);
            }
        }
        Ok(archs)
    }

    /// Parses an architecture's name: `rdna3`, `rdna3.5`.
    fn arch_name(&mut self) -> R<Name> {
        let mut name = self.name("an architecture's name, such as rdna3.5")?;
        if self.is(".")
            && let Tok::Int { value, .. } = *self.tok_after()
        {
            self.bump();
            name.text = format!("{}.{value}", name.text);
            name.span = name.span.to(self.bump());
        }
        Ok(name)
    }

    fn braced_body(&mut self) -> R<(Vec<Stmt>, Span)> {
        let open = self.span();
        self.expect("{")?;
        self.open.push(Open::new(Block::Body, open));
        let body = self.stmts();
        self.open.pop();
        let body_end = self.span().start.max(open.end);
        if !self.eat("}") {
            let message = format!("expected a statement or `}}`, found {}", self.describe());
            self.report(Diagnostic::error(self.span(), message).also(open, "this block is not closed"));
        }
        Ok((body, Span { file: self.file, start: open.end, end: body_end }))
    }

    fn function(&mut self) -> R<Function> {
        let start = self.bump();
        let name = self.name("a function's name")?;
        let parameters = self.parameters()?;
        let archs = self.archs()?;
        let (body, _) = self.braced_body()?;
        Ok(Function { name, parameters, archs, body, span: start.to(self.prev_span()) })
    }

    fn template(&mut self) -> R<Template> {
        let start = self.bump();
        let (parameters, rows) = match self.template_head() {
            Ok(head) => head,
            Err(()) => {
                // Without its rows, the body cannot be expanded.
                while !self.at_eof() && !self.is("{") && !ITEMS.contains(&self.word()) {
                    self.bump();
                }
                if self.is("{") {
                    let open = self.bump();
                    self.template_body(open)?;
                }
                return Err(());
            }
        };
        let open = self.span();
        self.expect("{")?;
        let (first, last) = self.template_body(open)?;
        let body: Vec<Token> = self.tokens[first..last].to_vec();
        let text = self.text.get(open.end as usize..self.tokens[last].span.start as usize);
        let text = text.unwrap_or_default().to_string();
        if self.templates.len() >= MAX_TEMPLATES {
            let message = format!("templates are nested too deeply: at most {MAX_TEMPLATES} levels");
            self.report(Diagnostic::error(open, message));
            return Err(());
        }
        let items = self.expand(&parameters, &rows, &body);
        Ok(Template {
            parameters,
            rows: rows.into_iter().map(|r| r.entries.into_iter().map(|e| e.name).collect()).collect(),
            items,
            text,
            span: start.to(self.prev_span()),
        })
    }

    fn template_head(&mut self) -> R<(Vec<Name>, Vec<Row>)> {
        let parameters = self.parameters()?;
        if !self.eat_word("in") {
            return self.unexpected("`in` and the template's rows");
        }
        let mut rows = vec![self.row(parameters.len())?];
        while self.eat(",") {
            rows.push(self.row(parameters.len())?);
        }
        Ok((parameters, rows))
    }

    /// Returns the range of tokens between the braces, and moves past the closing brace.
    fn template_body(&mut self, open: Span) -> R<(usize, usize)> {
        let first = self.at;
        let mut depth = 1;
        while depth > 0 {
            match self.tok() {
                Tok::Eof => {
                    let error = Diagnostic::error(self.span(), "expected `}` at the end of a template")
                        .also(open, "this template is not closed");
                    self.report(error);
                    return Err(());
                }
                Tok::Punct("{") => depth += 1,
                Tok::Punct("}") => depth -= 1,
                _ => {}
            }
            self.bump();
        }
        Ok((first, self.at - 1))
    }

    fn expand(&mut self, parameters: &[Name], rows: &[Row], body: &[Token]) -> Vec<Item> {
        let inner_parameters = template::inner_parameters(body);
        let mut items = Vec::new();
        let wanted = self.wanted.clone();
        let candidates = match &wanted {
            Some(name) => template::candidates(body, name),
            None => Vec::new(),
        };
        let mut templates = self.templates.clone();
        templates.push(parameters.to_vec());
        for row in rows {
            if let Some(name) = &wanted
                && !template::may_define(&candidates, &inner_parameters, parameters, row, name)
            {
                continue;
            }
            let mut errors = Vec::new();
            let tokens = template::expand(
                self.file,
                body,
                &inner_parameters,
                parameters,
                row,
                &mut self.budget,
                &mut errors,
            );
            let Some(tokens) = tokens else {
                self.report(Diagnostic::error(
                    row.span,
                    "the templates of this file expand to too much text",
                ));
                return items;
            };
            let mut inner = Parser::new(self.text, self.file, tokens, errors);
            inner.templates = std::mem::take(&mut templates);
            inner.wanted.clone_from(&wanted);
            inner.budget = self.budget;
            let mut expanded = inner.items();
            self.budget = inner.budget;
            templates = std::mem::take(&mut inner.templates);
            let names = parameters.iter().map(|p| p.text.clone());
            let texts = row.entries.iter().map(|e| e.name.text.clone());
            let template_row = TemplateRow { span: row.span, fills: names.zip(texts).collect() };
            expanded.iter_mut().for_each(|item| record_row(item, &template_row));
            items.append(&mut expanded);
            let errors = inner.finish();
            // Every row of a broken template would report the same errors.
            let broken = !errors.is_empty();
            for error in errors {
                self.report(error.also(row.span, "in the expansion of this row"));
            }
            if broken {
                break;
            }
        }
        items
    }

    fn row(&mut self, parameters: usize) -> R<Row> {
        let open = self.span();
        self.expect("(")?;
        let mut entries = vec![self.row_entry()?];
        while self.eat(",") {
            entries.push(self.row_entry()?);
        }
        self.expect_close(")", open)?;
        let span = open.to(self.prev_span());
        if entries.len() != parameters {
            let plural = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
            let message = format!(
                "this row has {} for {}",
                plural(entries.len(), "entry", "entries"),
                plural(parameters, "parameter", "parameters")
            );
            self.report(Diagnostic::error(span, message).help("quote an entry of several tokens"));
            return Err(());
        }
        Ok(Row { entries, span })
    }

    /// Parses an entry: a token, a number with a sign, or a quoted string of tokens.
    fn row_entry(&mut self) -> R<Entry> {
        if self.is(")") || self.is(",") || self.at_eof() {
            return self.unexpected("a row's entry");
        }
        let first = self.tokens[self.at].clone();
        self.bump();
        if let Tok::Str(content) = &first.tok {
            let (mut tokens, errors) = lex(self.file, content, first.span.start as usize + 1);
            tokens.pop();
            for error in errors {
                self.report(error);
            }
            return Ok(Entry { name: Name { text: content.clone(), span: first.span }, tokens });
        }
        let signed = matches!(first.tok, Tok::Punct("-" | "+"))
            && matches!(self.tok(), Tok::Int { .. } | Tok::Float { .. });
        let mut tokens = vec![first];
        if signed {
            tokens.push(self.tokens[self.at].clone());
            self.bump();
        }
        let span = tokens[0].span.to(self.prev_span());
        // The entry as written, unless an outer template has filled in a part of it.
        let text = match self.text.get(span.start as usize..span.end as usize) {
            Some(text) if !text.contains('$') => text.to_string(),
            _ => tokens.iter().map(|t| t.tok.spelling()).collect(),
        };
        Ok(Entry { name: Name { text, span }, tokens })
    }
}

/// Records the row that instructions were expanded from.
fn record_row(item: &mut Item, row: &TemplateRow) {
    match item {
        Item::Instruction(block) => block.rows.push(row.clone()),
        Item::Template(t) => t.items.iter_mut().for_each(|i| record_row(i, row)),
        Item::Function(_) | Item::Record(_) => {}
    }
}
