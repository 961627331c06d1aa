//! What the user expects of every run: `out_x == 3`, `out_r[0] == 1 || out_r[1] != 0`.

use crate::machine::End;
use crate::outcome::Outcome;
use wavesim_array::Num;

/// A condition on the outputs of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    text: String,
    root: Node,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    Compare { left: Value, comparison: Comparison, right: Value },
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(f64),
    /// An element of an output; without an index, every element.
    Output(String, Option<usize>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why a text is not an assertion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}\n{}^ {message}", " ".repeat(*.column))]
pub struct AssertionError {
    text: String,
    column: usize,
    message: String,
}

/// Nested parentheses, at most.
const MAX_DEPTH: usize = 64;

impl Assertion {
    /// Parses an assertion. Comparisons are of outputs (`out_x`: every element; `out_x[3]`: one) and numbers, joined by
    /// `&&`, `||`, `!` and parentheses.
    ///
    /// # Errors
    /// The text is not an assertion.
    pub fn parse(text: &str) -> Result<Assertion, AssertionError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let root = parser.or()?;
        parser.skip_blanks();
        match parser.at == text.len() {
            true => Ok(Assertion { text: text.to_string(), root }),
            false => Err(parser.error("`&&`, `||` or the end is expected")),
        }
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Checks that the outputs exist.
    ///
    /// # Errors
    /// One does not, or is shorter.
    pub fn check(&self, outcome: &Outcome) -> Result<(), String> {
        self.root.check(outcome)
    }

    /// Returns whether the outcome of a run is as asserted. A run that does not end normally is not.
    pub fn holds(&self, outcome: &Outcome) -> bool {
        outcome.end == End::Finished && self.root.holds(outcome)
    }
}

impl Node {
    fn check(&self, outcome: &Outcome) -> Result<(), String> {
        match self {
            Node::Or(list) | Node::And(list) => list.iter().try_for_each(|node| node.check(outcome)),
            Node::Not(node) => node.check(outcome),
            Node::Compare { left, right, .. } => {
                for value in [left, right] {
                    let Value::Output(name, index) = value else { continue };
                    let names =
                        || outcome.outputs.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", ");
                    let Some((_, array)) = outcome.outputs.iter().find(|(known, _)| known == name) else {
                        return Err(format!("there is no output `{name}`: outputs are {}", names()));
                    };
                    if index.is_some_and(|index| index >= array.len()) {
                        return Err(format!("`{name}` has {} elements", array.len()));
                    }
                }
                Ok(())
            }
        }
    }

    fn holds(&self, outcome: &Outcome) -> bool {
        match self {
            Node::Or(list) => list.iter().any(|node| node.holds(outcome)),
            Node::And(list) => list.iter().all(|node| node.holds(outcome)),
            Node::Not(node) => !node.holds(outcome),
            Node::Compare { left, comparison, right } => {
                let (left, right) = (left.values(outcome), right.values(outcome));
                let count = left.len().max(right.len());
                let element = |list: &[f64], at: usize| {
                    if list.len() == 1 { list.first().copied() } else { list.get(at).copied() }
                };
                (0..count).all(|at| match (element(&left, at), element(&right, at)) {
                    (Some(left), Some(right)) => comparison.holds(left, right),
                    _ => false,
                })
            }
        }
    }
}

impl Value {
    fn values(&self, outcome: &Outcome) -> Vec<f64> {
        match self {
            Value::Number(number) => vec![*number],
            Value::Output(name, index) => {
                let Some((_, array)) = outcome.outputs.iter().find(|(known, _)| known == name) else {
                    return Vec::new();
                };
                match index {
                    Some(index) => array.get(*index).map(Num::as_f64).into_iter().collect(),
                    None => array.values().map(Num::as_f64).collect(),
                }
            }
        }
    }
}

impl Comparison {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn error(&self, message: &str) -> AssertionError {
        let column = self.text[..self.at].chars().count();
        AssertionError { text: self.text.to_string(), column, message: message.to_string() }
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn or(&mut self) -> Result<Node, AssertionError> {
        let mut list = vec![self.and()?];
        while self.take("||") {
            list.push(self.and()?);
        }
        Ok(if list.len() == 1 { list.swap_remove(0) } else { Node::Or(list) })
    }

    fn and(&mut self) -> Result<Node, AssertionError> {
        let mut list = vec![self.condition()?];
        while self.take("&&") {
            list.push(self.condition()?);
        }
        Ok(if list.len() == 1 { list.swap_remove(0) } else { Node::And(list) })
    }

    fn condition(&mut self) -> Result<Node, AssertionError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("parentheses are nested too deeply"));
        }
        self.depth += 1;
        let result = self.condition_inside();
        self.depth -= 1;
        result
    }

    fn condition_inside(&mut self) -> Result<Node, AssertionError> {
        self.skip_blanks();
        if !self.rest().starts_with("!=") && self.take("!") {
            return Ok(Node::Not(Box::new(self.condition()?)));
        }
        if self.take("(") {
            let inner = self.or()?;
            return if self.take(")") { Ok(inner) } else { Err(self.error("`)` is expected")) };
        }
        let left = self.value()?;
        const TOKENS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let found = TOKENS.into_iter().find(|(token, _)| self.take(token));
        let (_, comparison) = found.ok_or_else(|| self.error("one of ==, !=, <, <=, >, >= is expected"))?;
        let right = self.value()?;
        Ok(Node::Compare { left, comparison, right })
    }

    fn value(&mut self) -> Result<Value, AssertionError> {
        self.skip_blanks();
        let word: String = {
            let mut chars = self.rest().char_indices();
            let end = chars.find(|(at, c)| {
                !(c.is_ascii_alphanumeric() || *c == '_' || *c == '.' || *at == 0 && (*c == '-' || *c == '+'))
            });
            self.rest()[..end.map_or(self.rest().len(), |(at, _)| at)].to_string()
        };
        if word.is_empty() {
            return Err(self.error("an output or a number is expected"));
        }
        if let Some(hex) = word.strip_prefix("0x") {
            let number = u64::from_str_radix(hex, 16).map_err(|_| self.error("this is not a number"))?;
            self.at += word.len();
            return Ok(Value::Number(number as f64));
        }
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+' || c == '.') {
            let number = word.parse().map_err(|_| self.error("this is not a number"))?;
            self.at += word.len();
            return Ok(Value::Number(number));
        }
        self.at += word.len();
        if !self.take("[") {
            return Ok(Value::Output(word, None));
        }
        self.skip_blanks();
        let digits = self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let index = self.rest()[..digits].parse().map_err(|_| self.error("an index is expected"))?;
        self.at += digits;
        if self.take("]") { Ok(Value::Output(word, Some(index))) } else { Err(self.error("`]` is expected")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_array::{Array, DType};

    fn outcome() -> Outcome {
        let array = |values: &[u32]| Array {
            dtype: DType::from_name("u32").unwrap(),
            shape: vec![values.len() as u64],
            bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        let outputs = vec![("out_r".to_string(), array(&[1, 0])), ("out_x".to_string(), array(&[7]))];
        Outcome { end: End::Finished, outputs }
    }

    #[test]
    fn conditions_hold_or_not() {
        let holds = |text: &str| Assertion::parse(text).unwrap().holds(&outcome());
        for text in [
            "out_x == 7",
            "out_x == 0x7",
            "out_r[0] == 1 && out_r[1] == 0",
            "out_r[0] == 0 || out_r[1] < 1",
            "!(out_r == 1) && out_x >= -3.5",
            "out_r != 2",
            "out_x > out_r",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in ["out_r == 1", "out_x != 7", "!out_x == 7", "out_r[0] <= 0 || (out_x < 7 && out_x > 1)"] {
            assert!(!holds(text), "{text}");
        }
        let faulted = Outcome { end: End::Livelock(String::new()), ..outcome() };
        assert!(!Assertion::parse("out_x == 7").unwrap().holds(&faulted));
    }

    #[test]
    fn wrong_texts_are_errors() {
        for text in
            ["", "out_x", "out_x =", "out_x == ", "out_x[ == 1", "(out_x == 1", "out_x == 1 2", "1x == 2"]
        {
            assert!(Assertion::parse(text).is_err(), "{text}");
        }
        assert!(Assertion::parse(&"(".repeat(10_000)).is_err());
        let error = Assertion::parse("out_x == 1 &").unwrap_err().to_string();
        assert_eq!(error, "out_x == 1 &\n           ^ `&&`, `||` or the end is expected");
        let unknown = Assertion::parse("out_y == 1").unwrap().check(&outcome()).unwrap_err();
        assert_eq!(unknown, "there is no output `out_y`: outputs are out_r, out_x");
        assert_eq!(
            Assertion::parse("out_x[1] == 1").unwrap().check(&outcome()).unwrap_err(),
            "`out_x` has 1 elements"
        );
    }
}
