//! Preconditions: `v1 < 1024 && s2 == 0`.

use crate::routes::Register;
use crate::setup::{Lanes, Setup};
use crate::state::initial;
use isa_export::smt::{Op, Term, Terms};
use std::collections::BTreeMap;
use wavesim_machine::state::wave::{EXEC_LO, M0, TTMP, VCC_LO};

/// A precondition that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--assume: {message} at `{rest}`")]
pub struct AssumeError {
    /// What is wrong.
    pub message: String,
    /// The text from there on.
    pub rest: String,
}

/// Reads a register by its name: `v3`, `s7`, `vcc_lo`, `m0`, `scc`.
pub fn register(name: &str) -> Option<Register> {
    let number = |rest: &str, limit: u32| rest.parse().ok().filter(|n| *n < limit);
    match name {
        "vcc_lo" | "vcc" => Some(Register::Scalar(VCC_LO as u32)),
        "vcc_hi" => Some(Register::Scalar(VCC_LO as u32 + 1)),
        "exec_lo" | "exec" => Some(Register::Scalar(EXEC_LO as u32)),
        "exec_hi" => Some(Register::Scalar(EXEC_LO as u32 + 1)),
        "m0" => Some(Register::Scalar(M0 as u32)),
        "scc" => Some(Register::Scc),
        _ if name.starts_with("ttmp") => {
            number(&name[4..], TTMP.len() as u32).map(|n| Register::Scalar(TTMP.start as u32 + n))
        }
        _ => match name.split_at_checked(1)? {
            ("v", rest) => number(rest, 1024).map(Register::Vector),
            ("s", rest) => number(rest, 106).map(Register::Scalar),
            _ => None,
        },
    }
}

/// Reads a precondition. Comparisons with `<`, `<=`, `>` and `>=` are unsigned; `i<` and so on are signed. `lane` is the
/// lane that VGPRs are of.
pub fn parse(
    terms: &mut Terms,
    setup: &Setup,
    lanes: Lanes,
    lane: u32,
    text: &str,
) -> Result<Term, AssumeError> {
    let mut parser = Parser { terms, setup, lanes, lane, rest: text.trim_start(), depth: 0 };
    let value = parser.binary(0)?;
    if !parser.rest.is_empty() {
        return parser.error("an operator was expected");
    }
    Ok(parser.truth(value))
}

/// Variables of which conditions determine upper bits or all bits, with what they are made of: `v1 < 1024` says that the
/// upper 22 bits are 0. Terms in which that stands are simpler than terms beside which it is assumed.
pub fn known_bits(terms: &mut Terms, conditions: &[Term]) -> BTreeMap<Term, Term> {
    let mut known = BTreeMap::new();
    let mut open = conditions.to_vec();
    while let Some(condition) = open.pop() {
        let node = terms.node(condition).clone();
        // The variable, and the largest value that it can have.
        let bound = match (&node.op, &node.args[..]) {
            (Op::And, [a, b]) => {
                open.extend([*a, *b]);
                None
            }
            (Op::Eq, [a, b]) => {
                if matches!(terms.node(*a).op, Op::Var(_)) && terms.value(*b).is_some() {
                    known.insert(*a, *b);
                }
                None
            }
            (Op::Ult, [a, b]) => terms.value(*b).and_then(|limit| Some((*a, limit.checked_sub(1)?))),
            (Op::Not, [inner]) => {
                let inner = terms.node(*inner).clone();
                match (&inner.op, &inner.args[..]) {
                    (Op::Ult, [a, b]) => terms.value(*a).map(|most| (*b, most)),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some((variable, most)) = bound else { continue };
        let width = terms.width(variable);
        let bits = (u128::BITS - most.leading_zeros()).max(1);
        if matches!(terms.node(variable).op, Op::Var(_)) && bits < width && !known.contains_key(&variable) {
            let low = terms.extract(variable, 0, bits);
            let whole = terms.zero_extend(low, width);
            known.insert(variable, whole);
        }
    }
    known
}

struct Parser<'a> {
    terms: &'a mut Terms,
    setup: &'a Setup,
    lanes: Lanes,
    lane: u32,
    rest: &'a str,
    depth: u32,
}

/// Operators by precedence, the loosest first; longer spellings before their beginnings.
const LEVELS: [&[&str]; 9] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["i<=", "i>=", "i<", "i>", "<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-", "*"],
];

/// The depth of nesting at which a text is refused.
const MAX_DEPTH: u32 = 64;

impl Parser<'_> {
    fn error<T>(&self, message: &str) -> Result<T, AssumeError> {
        Err(AssumeError { message: message.into(), rest: self.rest.to_string() })
    }

    fn operator(&mut self, list: &[&'static str]) -> Option<&'static str> {
        let found = list.iter().find(|op| {
            let Some(after) = self.rest.strip_prefix(**op) else { return false };
            // `<` is not the beginning of `<<`, nor `&` of `&&`.
            let doubled = op.len() == 1 && after.starts_with(**op)
                || matches!(**op, "<" | ">") && after.starts_with('=');
            !doubled
        })?;
        self.rest = self.rest[found.len()..].trim_start();
        Some(found)
    }

    fn truth(&mut self, value: Term) -> Term {
        let zero = self.terms.constant(0, self.terms.width(value));
        let is_zero = self.terms.eq(value, zero);
        self.terms.not(is_zero)
    }

    fn number_of(&mut self, value: Term) -> Term {
        self.terms.resize(value, 32)
    }

    fn binary(&mut self, level: usize) -> Result<Term, AssumeError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut value = self.binary(level + 1)?;
        while let Some(op) = self.operator(operators) {
            let right = self.binary(level + 1)?;
            value = self.apply(op, value, right);
        }
        Ok(value)
    }

    fn apply(&mut self, op: &str, a: Term, b: Term) -> Term {
        if matches!(op, "||" | "&&") {
            let (a, b) = (self.truth(a), self.truth(b));
            return if op == "||" { self.terms.or(a, b) } else { self.terms.and(a, b) };
        }
        let (a, b) = (self.number_of(a), self.number_of(b));
        let t = &mut *self.terms;
        match op {
            "|" => t.or(a, b),
            "^" => t.xor(a, b),
            "&" => t.and(a, b),
            "<<" => t.shl(a, b),
            ">>" => t.lshr(a, b),
            "+" => t.add_bits(a, b),
            "-" => t.sub(a, b),
            "*" => t.mul(a, b),
            "==" => t.eq(a, b),
            "!=" => {
                let eq = t.eq(a, b);
                t.not(eq)
            }
            "<" => t.ult(a, b),
            ">" => t.ult(b, a),
            "i<" => t.slt(a, b),
            "i>" => t.slt(b, a),
            "<=" | ">=" | "i<=" | "i>=" => {
                let signed = op.starts_with('i');
                let (x, y) = if op.ends_with("<=") { (b, a) } else { (a, b) };
                let less = if signed { t.slt(x, y) } else { t.ult(x, y) };
                t.not(less)
            }
            _ => a,
        }
    }

    fn unary(&mut self) -> Result<Term, AssumeError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.error("too deeply nested");
        }
        let value = self.primary();
        self.depth -= 1;
        value
    }

    fn primary(&mut self) -> Result<Term, AssumeError> {
        for prefix in ["!", "~", "-", "("] {
            let Some(rest) = self.rest.strip_prefix(prefix) else { continue };
            self.rest = rest.trim_start();
            if prefix == "(" {
                let value = self.binary(0)?;
                let Some(rest) = self.rest.strip_prefix(')') else { return self.error("`)` was expected") };
                self.rest = rest.trim_start();
                return Ok(value);
            }
            let value = self.unary()?;
            let number = self.number_of(value);
            return Ok(match prefix {
                "!" => {
                    let truth = self.truth(value);
                    self.terms.not(truth)
                }
                "~" => self.terms.not(number),
                _ => self.terms.neg(number),
            });
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let number = match word.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        let value = match (number, register(word)) {
            (Some(number), _) => self.terms.constant(number as u128, 32),
            (None, Some(register)) => initial(self.terms, self.setup, self.lanes, self.lane, register),
            (None, None) => {
                return self
                    .error("a register (v1, s2, vcc_lo, m0, scc) or a number of 32 bits was expected");
            }
        };
        self.rest = rest.trim_start();
        Ok(value)
    }
}
