//! The parser of expressions.

use super::tree::{Node, Select, View, numbered, register_index};
use super::{Register, Space, Value, nearest, register};
use crate::variables::Part;
use isa_spec::arith::decimal::Decimal;
use wavesim_array::DType;
use wavesim_loader::prepared::Prepared;

/// Parses an expression, which must extend to the end of the text.
pub(super) fn parse(text: &str, prepared: &Prepared) -> Result<Node, String> {
    let tokens = lex(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, operators: 0, prepared };
    let node = parser.expression()?;
    match parser.peek() {
        None => Ok(node),
        Some(t) => Err(format!("unexpected `{}` after the expression", t.text())),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(Value),
    Name(String),
    Op(&'static str),
}

impl Token {
    fn text(&self) -> String {
        match self {
            Token::Number(v) => v.to_string(),
            Token::Name(n) => n.clone(),
            Token::Op(o) => (*o).to_string(),
        }
    }
}

const OPS: &[&str] = &[
    "->", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^",
    "~", "!", "(", ")", "[", "]", ":", ".", "?",
];

fn lex(text: &str) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let word = |f: &dyn Fn(char) -> bool| rest.find(|c| !f(c)).unwrap_or(rest.len());
        let len = if c.is_ascii_digit() {
            let mut len = word(&|c| c.is_ascii_alphanumeric() || c == '_');
            let hex = rest.starts_with("0x") || rest.starts_with("0b");
            // A fraction, but not a type after a dot.
            let fraction =
                rest[len..].strip_prefix('.').is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
            if fraction && !hex {
                let tail = &rest[len + 1..];
                len += 1 + tail.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tail.len());
            }
            out.push(Token::Number(
                number(&rest[..len]).ok_or_else(|| format!("`{}` is not a number", &rest[..len]))?,
            ));
            len
        } else if c.is_alphabetic() || c == '_' || c == '$' {
            let len = word(&|c| c.is_alphanumeric() || c == '_' || c == '$');
            out.push(Token::Name(rest[..len].to_string()));
            len
        } else {
            let op = OPS.iter().find(|o| rest.starts_with(**o));
            let op = op.ok_or_else(|| format!("unexpected `{c}`"))?;
            out.push(Token::Op(op));
            op.len()
        };
        rest = rest[len..].trim_start();
    }
    Ok(out)
}

fn number(text: &str) -> Option<Value> {
    let clean = text.replace('_', "");
    if let Some(hex) = clean.strip_prefix("0x") {
        return i128::from_str_radix(hex, 16).ok().map(Value::Int);
    }
    if let Some(binary) = clean.strip_prefix("0b") {
        return i128::from_str_radix(binary, 2).ok().map(Value::Int);
    }
    clean.parse().ok().map(Value::Int).or_else(|| Decimal::parse(&clean).map(Value::Float))
}

/// Maximum nesting depth: deeper nesting is an error instead of a stack overflow.
const MAX_DEPTH: usize = 64;

/// Maximum number of operators between values. `1 + 1 + …` is a tree that is as deep as it is long.
const MAX_OPERATORS: usize = 500;

struct Parser<'t, 'p> {
    tokens: &'t [Token],
    at: usize,
    /// Number of operators between values so far.
    operators: usize,
    /// Nesting of signs, parentheses and indices.
    depth: usize,
    prepared: &'p Prepared,
}

/// Returns the precedence of an operator; 1 binds loosest.
fn precedence(op: &str) -> Option<u8> {
    Some(match op {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | "<=" | ">" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

impl Parser<'_, '_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn eat(&mut self, op: &str) -> bool {
        let yes = matches!(self.peek(), Some(Token::Op(o)) if *o == op);
        self.at += yes as usize;
        yes
    }

    fn expect(&mut self, op: &str) -> Result<(), String> {
        if self.eat(op) {
            return Ok(());
        }
        let found =
            self.peek().map_or("the end of the expression".to_string(), |t| format!("`{}`", t.text()));
        Err(format!("expected `{op}`, found {found}"))
    }

    /// Parses an expression with a choice: `a ? b : c`.
    fn expression(&mut self) -> Result<Node, String> {
        let condition = self.binary(0)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        if self.depth == MAX_DEPTH {
            return Err("the expression nests too deeply".to_string());
        }
        self.depth += 1;
        let yes = self.expression()?;
        self.expect(":")?;
        let no = self.expression()?;
        self.depth -= 1;
        Ok(Node::Choice(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    fn binary(&mut self, least: u8) -> Result<Node, String> {
        let mut left = self.unary()?;
        while let Some(Token::Op(op)) = self.peek() {
            let op = *op;
            let Some(s) = precedence(op).filter(|s| *s > least) else { break };
            self.at += 1;
            self.operators += 1;
            if self.operators > MAX_OPERATORS {
                return Err(format!("the expression has more than {MAX_OPERATORS} operators"));
            }
            let right = self.binary(s)?;
            left = Node::Binary(op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, String> {
        if self.depth == MAX_DEPTH {
            return Err("the expression nests too deeply".to_string());
        }
        self.depth += 1;
        let node = self.nested();
        self.depth -= 1;
        node
    }

    fn nested(&mut self) -> Result<Node, String> {
        if self.eat("-") {
            return Ok(Node::Negated(Box::new(self.unary()?)));
        }
        if self.eat("!") {
            return Ok(Node::Not(Box::new(self.unary()?)));
        }
        for (op, part) in [("*", Part::Target), ("&", Part::Address)] {
            if self.eat(op) {
                return match self.unary()? {
                    Node::Variable { name, mut parts, dtype: None, argument: _ } => {
                        parts.push(Select::Part(part));
                        Ok(Node::Variable { name, parts, dtype: None, argument: None })
                    }
                    _ => Err(format!("`{op}` needs a variable of the source")),
                };
            }
        }
        if self.eat("~") {
            return Ok(Node::Inverted(Box::new(self.unary()?)));
        }
        if self.eat("(") {
            let node = self.expression()?;
            self.expect(")")?;
            return Ok(node);
        }
        match self.peek().cloned() {
            Some(Token::Number(v)) => {
                self.at += 1;
                Ok(Node::Value(v))
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                self.name(&name)
            }
            Some(t) => Err(format!("expected a value, found `{}`", t.text())),
            None => Err("expected a value".to_string()),
        }
    }

    /// Parses a register, an argument, a label, `$step` or `$lane`.
    fn name(&mut self, name: &str) -> Result<Node, String> {
        match name {
            "$step" => return Ok(Node::Step),
            "$lane" => return Ok(Node::Lane),
            _ => {}
        }
        let wide = self.prepared.shape.wave_size == 64;
        let arch = self.prepared.program.arch;
        // `s[2:3]` and `v[0:1]` are ranges, `v3[5]` is a lane.
        if matches!(name, "s" | "v" | "ttmp") && self.eat("[") {
            let first = self.binary(0)?;
            let last = if self.eat(":") { Some(self.binary(0)?) } else { None };
            self.expect("]")?;
            if let (Node::Value(first), None | Some(Node::Value(_))) = (&first, &last) {
                let first = register_index(*first)?;
                let last = match last {
                    Some(Node::Value(last)) => register_index(last)?,
                    _ => first,
                };
                return self.register(numbered(name, first, last, wide, arch)?);
            }
            let lane = if name == "v" { self.lane()? } else { None };
            let (file, first, last) = (name.to_string(), Box::new(first), last.map(Box::new));
            return Ok(Node::Numbered { file, first, last, lane, view: self.view()? });
        }
        if let Some(found) = register(name, wide, arch) {
            return self.register(found);
        }
        if let Some(space) = Space::named(name)
            && self.eat("[")
        {
            let at = Box::new(self.binary(0)?);
            self.expect("]")?;
            return Ok(Node::Stored { space, at, view: self.view()? });
        }
        if matches!(name, "any" | "all") && self.eat("(") {
            let of = Box::new(self.expression()?);
            self.expect(")")?;
            return Ok(Node::Lanes { all: name == "all", of });
        }
        let buffer = self.prepared.buffers.iter().position(|b| b.name == name);
        if self.prepared.debug.has_variable(name) {
            return self.variable(name, buffer.is_some());
        }
        self.argument(name, buffer)
    }

    /// Parses the parts of a variable of the source. An argument of the kernel may have the same name.
    fn variable(&mut self, name: &str, is_argument: bool) -> Result<Node, String> {
        let start = self.at;
        let mut parts = Vec::new();
        loop {
            if self.eat("[") {
                parts.push(Select::Element(self.binary(0)?));
                self.expect("]")?;
                continue;
            }
            let arrow = matches!(self.peek(), Some(Token::Op("->")));
            let dot = matches!(self.peek(), Some(Token::Op(".")));
            let Some(Token::Name(member)) = self.tokens.get(self.at + 1).filter(|_| arrow || dot) else {
                break;
            };
            // Types after a dot are views of the bits.
            if dot && DType::from_name(member).is_some() {
                break;
            }
            parts.push(Select::Part(Part::Member(member.clone())));
            self.at += 2;
        }
        let dtype = self.typed()?;
        let end = self.at;
        let mut argument = None;
        if is_argument {
            self.at = start;
            let buffer = self.prepared.buffers.iter().position(|b| b.name == name);
            // Only a variable has members.
            argument = self.argument(name, buffer).ok().filter(|_| self.at == end).map(Box::new);
            self.at = end;
        }
        Ok(Node::Variable { name: name.to_string(), parts, dtype, argument })
    }

    /// Parses an argument of the kernel, or a label.
    fn argument(&mut self, name: &str, buffer: Option<usize>) -> Result<Node, String> {
        if let Some(buffer) = buffer {
            if !self.eat("[") {
                let address = self.prepared.memory.own_address(self.prepared.buffers[buffer].address);
                return Ok(Node::Value(Value::Int(address as i128)));
            }
            let index = Box::new(self.binary(0)?);
            self.expect("]")?;
            return Ok(Node::Element { buffer, index, view: self.view()? });
        }
        if let Some((_, pc)) = self.prepared.labels.iter().find(|l| l.0 == name) {
            return Ok(Node::Value(Value::Int(self.prepared.program.address(*pc) as i128)));
        }
        match name {
            "lane" => return Ok(Node::Lane),
            "step" => return Ok(Node::Step),
            _ => {}
        }
        let arguments = self.prepared.buffers.iter().map(|b| b.name.as_str());
        let names: Vec<&str> = arguments.chain(self.prepared.debug.names()).collect();
        Err(match nearest(name, &names) {
            Some(near) => format!("there is no `{name}`; did you mean `{near}`?"),
            None => format!("`{name}` is not a register, argument, variable or label"),
        })
    }

    fn register(&mut self, register: Register) -> Result<Node, String> {
        let lane = if matches!(register, Register::Vgpr(..)) { self.lane()? } else { None };
        Ok(Node::Register { register, lane, view: self.view()? })
    }

    /// Parses `[LANE]`, if present.
    fn lane(&mut self) -> Result<Option<Box<Node>>, String> {
        if !self.eat("[") {
            return Ok(None);
        }
        let lane = self.binary(0)?;
        self.expect("]")?;
        Ok(Some(Box::new(lane)))
    }

    fn view(&mut self) -> Result<View, String> {
        Ok(View { half: self.half(), dtype: self.typed()? })
    }

    /// Parses `.lo` or `.hi`, and returns the number of bits to shift.
    fn half(&mut self) -> Option<u32> {
        let (Some(Token::Op(".")), Some(Token::Name(name))) = (self.peek(), self.tokens.get(self.at + 1))
        else {
            return None;
        };
        let shift = match name.as_str() {
            "lo" => 0,
            "hi" => 16,
            _ => return None,
        };
        self.at += 2;
        Some(shift)
    }

    /// Parses an optional type: `.f32` or `as f32`.
    fn typed(&mut self) -> Result<Option<DType>, String> {
        let dot = self.eat(".");
        let named = matches!(self.peek(), Some(Token::Name(n)) if n == "as");
        if !dot && !named {
            return Ok(None);
        }
        self.at += named as usize;
        let Some(Token::Name(name)) = self.peek().cloned() else {
            return Err("expected a type: f32, i32, u32 …".to_string());
        };
        self.at += 1;
        let found = DType::from_name(&name);
        found.map(Some).ok_or_else(|| format!("`{name}` is not a type; types are {}", DType::names()))
    }
}
