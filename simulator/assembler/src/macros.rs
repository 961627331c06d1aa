//! `.macro`: definitions, arguments of a call, and their substitution in the body, as in GNU as and LLVM.
//!
//! After `.altmacro`, parameters are also substituted without a backslash, `%` evaluates an expression
//! argument, and an argument in `<…>` may contain commas and spaces; `!` escapes the next character.

use super::source::SourceLine;
use std::rc::Rc;
use wavesim_asm::error::{AsmError, Span};
use wavesim_asm::scan::{Scanner, string_end};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    name: String,
    default: Option<String>,
    required: bool,
    /// Consumes the rest of the line.
    rest: bool,
}

/// A macro definition.
#[derive(Debug)]
pub struct Macro {
    /// The name given to `.macro`.
    pub name: String,
    parameters: Vec<Parameter>,
    /// The body before substitution.
    pub lines: Rc<[SourceLine]>,
}

/// The values that a call substitutes for the parameters.
#[derive(Debug)]
pub struct Arguments {
    values: Vec<String>,
    /// `\@`: the number of macro calls before this one.
    count: u64,
    /// Parameter names are substituted without a backslash.
    altmacro: bool,
}

/// Evaluates an expression, for `%` in `.altmacro` mode.
pub type Evaluate<'e> = &'e mut dyn FnMut(&mut Scanner) -> Result<i64, AsmError>;

impl Macro {
    /// Parses `name p1, p2=default, p3:req, p4:vararg`; `lines` are the lines up to `.endm`.
    pub fn define(s: &mut Scanner, lines: Vec<SourceLine>) -> Result<Macro, AsmError> {
        let Some((name, _)) = s.ident() else {
            return Err(AsmError::new(s.next_span(), "expected the macro's name"));
        };
        let mut parameters: Vec<Parameter> = Vec::new();
        s.eat(',');
        while !s.at_end() {
            let Some((name, span)) = s.ident() else {
                return Err(AsmError::new(s.next_span(), "expected a parameter's name"));
            };
            if parameters.iter().any(|p| p.name == name) {
                return Err(AsmError::new(span, format!("the macro already has a parameter `{name}`")));
            }
            if parameters.last().is_some_and(|p| p.rest) {
                return Err(AsmError::new(span, "no parameter can follow a `vararg` parameter"));
            }
            let mut own = Parameter { name: name.to_string(), default: None, required: false, rest: false };
            if s.eat(':') {
                match s.ident() {
                    Some(("req", _)) => own.required = true,
                    Some(("vararg", _)) => own.rest = true,
                    _ => return Err(AsmError::new(s.next_span(), "expected `req` or `vararg`")),
                }
            }
            if s.eat('=') {
                own.default = Some(argument(s)?);
            }
            parameters.push(own);
            s.eat(',');
        }
        Ok(Macro { name: name.to_string(), parameters, lines: lines.into() })
    }

    /// Parses the arguments of a call, positional or as `name=value`. `evaluate` is given in `.altmacro`
    /// mode.
    pub fn arguments(
        &self,
        s: &mut Scanner,
        count: u64,
        mut evaluate: Option<Evaluate<'_>>,
    ) -> Result<Arguments, AsmError> {
        let mut values: Vec<Option<String>> = vec![None; self.parameters.len()];
        let (mut at, mut named) = (0, false);
        while !s.at_end() {
            let start = s.next_span();
            let by_name = self.named(s);
            let index = match by_name {
                Some(index) => index,
                None if named => {
                    return Err(AsmError::new(start, "a positional argument cannot follow a named one"));
                }
                None => at,
            };
            named |= by_name.is_some();
            let Some(parameter) = self.parameters.get(index) else {
                let count = self.parameters.len();
                let s = if count == 1 { "" } else { "s" };
                let message = format!("macro `{}` has {count} parameter{s}; this is one too many", self.name);
                return Err(AsmError::new(start, message));
            };
            let value = if parameter.rest {
                s.skip_space();
                let rest = s.rest().trim_end().to_string();
                s.skip(s.rest().len());
                rest
            } else {
                match &mut evaluate {
                    Some(evaluate) => altmacro_argument(s, *evaluate)?,
                    None => argument(s)?,
                }
            };
            // An empty argument selects the default.
            values[index] = Some(value).filter(|v| !v.is_empty());
            at = index + 1;
            if !s.eat(',') && s.rest().trim().is_empty() {
                break;
            }
        }
        let mut out = Vec::new();
        for (parameter, value) in self.parameters.iter().zip(values) {
            if parameter.required && value.is_none() {
                let message = format!("macro `{}` needs its parameter `{}`", self.name, parameter.name);
                return Err(AsmError::new(s.next_span(), message));
            }
            out.push(value.or_else(|| parameter.default.clone()).unwrap_or_default());
        }
        Ok(Arguments { values: out, count, altmacro: evaluate.is_some() })
    }

    /// Reads `name=` if it names a parameter.
    fn named(&self, s: &mut Scanner) -> Option<usize> {
        let mut ahead = s.clone();
        let (name, _) = ahead.ident()?;
        let found = self.parameters.iter().position(|p| p.name == name);
        if !ahead.eat('=') || ahead.rest().starts_with('=') {
            return None;
        }
        *s = ahead;
        found
    }

    /// Substitutes `\name`, `\@` and `\()` in a line of the body. Names that are not parameters are kept.
    pub fn substitute_arguments(&self, line: &str, arguments: &Arguments) -> String {
        substitute(
            line,
            |name| {
                let at = self.parameters.iter().position(|p| p.name == name)?;
                arguments.values.get(at).map(String::as_str)
            },
            arguments.count,
            arguments.altmacro,
        )
    }
}

/// Substitutes `\symbol` in a line.
pub fn substitute_symbol(line: &str, symbol: &str, value: &str, count: u64) -> String {
    substitute(line, |name| (name == symbol).then_some(value), count, false)
}

fn substitute<'v>(line: &str, value: impl Fn(&str) -> Option<&'v str>, count: u64, altmacro: bool) -> String {
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let plain = |text: &str, out: &mut String| {
        let mut rest = text;
        while let Some(at) = rest.find(name).filter(|_| altmacro) {
            let len = rest[at..].find(|c| !name(c)).unwrap_or(rest.len() - at);
            let word = &rest[at..at + len];
            out.push_str(&rest[..at]);
            out.push_str(value(word).unwrap_or(word));
            rest = &rest[at + len..];
        }
        out.push_str(rest);
    };
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        plain(&rest[..at], &mut out);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('@') {
            out.push_str(&count.to_string());
            rest = after;
            continue;
        }
        // `\()` ends a name: `\reg\()_lo`.
        if let Some(after) = rest.strip_prefix("()") {
            rest = after;
            continue;
        }
        let len = rest.find(|c| !name(c)).unwrap_or(rest.len());
        match value(&rest[..len]).filter(|_| len > 0) {
            Some(value) => {
                out.push_str(value);
                rest = &rest[len..];
            }
            None => {
                out.push('\\');
                // An escaped backslash does not escape the characters after it.
                let len = if rest.starts_with('\\') { 1 } else { len };
                out.push_str(&rest[..len]);
                rest = &rest[len..];
            }
        }
    }
    plain(rest, &mut out);
    out
}

/// Parses an argument in `.altmacro` mode: `%expression`, `<text>`, or an ordinary argument.
fn altmacro_argument(s: &mut Scanner, evaluate: Evaluate<'_>) -> Result<String, AsmError> {
    s.skip_space();
    if s.eat('%') {
        return Ok(evaluate(s)?.to_string());
    }
    let Some(body) = s.rest().strip_prefix('<') else { return argument(s) };
    let (mut out, mut chars) = (String::new(), body.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '>' => {
                s.skip(at + 2);
                return Ok(out);
            }
            '!' => out.extend(chars.next().map(|(_, c)| c)),
            c => out.push(c),
        }
    }
    // Without a closing `>`, the `<` is an operator.
    argument(s)
}

/// Parses one argument, which ends at a comma, or at a space that is not next to an operator. A string loses
/// its quotes.
pub fn argument(s: &mut Scanner) -> Result<String, AsmError> {
    s.skip_space();
    let rest = s.rest();
    let start = s.position();
    let operator = |c: char| "+-*/%&|^~!=<>".contains(c);
    let (mut depth, mut out, mut at) = (0i32, String::new(), 0);
    while let Some(c) = rest[at..].chars().next() {
        match c {
            ',' if depth == 0 => break,
            '"' => {
                let len = string_end(&rest[at + 1..]);
                let body = &rest[at + 1..at + 1 + len];
                let Some(body) = body.strip_suffix('"') else {
                    return Err(AsmError::new(
                        Span::new(start + at, start + rest.len()),
                        "the string is not terminated",
                    ));
                };
                out.push_str(body);
                at += 1 + len;
                continue;
            }
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            c if c.is_whitespace() => {
                let after = rest[at..].trim_start();
                // An operator joins its neighbours, as in LLVM: `1 -2` is one argument.
                if depth == 0 && !after.starts_with(operator) && !out.trim_end().ends_with(operator) {
                    break;
                }
            }
            _ => {}
        }
        out.push(c);
        at += c.len_utf8();
    }
    if depth > 0 {
        return Err(AsmError::new(Span::new(start, start + rest.len()), "a bracket is not closed"));
    }
    s.skip(at);
    Ok(out.trim_end().to_string())
}
