//! Reads functions from text: the inverse of their `Display`.

use crate::code::Code;
use crate::function::Function;
use crate::inst::{Class, Inst, Label, Mem, Src, V};
use crate::text::{CC, ELEMENTS, INT1, INT2, Names, SIZES, WIDTHS};
use std::str::FromStr;

/// An error in the text of a function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}: `{text}`")]
pub struct ParseError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    pub message: String,
}

type Parsed<T> = Result<T, String>;

impl Function {
    /// Reads a function from its text. Text after `;` is a comment. Returns all errors, in order.
    pub fn parse(text: &str) -> Result<Function, Vec<ParseError>> {
        let mut values = Values::default();
        let mut function = Function::default();
        let (mut errors, mut state) = (Vec::new(), State::Before);
        for (number, raw) in (1..).zip(text.lines()) {
            let line = raw.split(';').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let mut tokens = Tokens { rest: tokens(line), values: &mut values };
            if let Err(message) = tokens.line(&mut function, &mut state) {
                errors.push(ParseError { line: number, text: raw.trim().to_string(), message });
            }
        }
        let end = |message: &str| ParseError {
            line: text.lines().count().max(1),
            text: text.lines().last().unwrap_or_default().trim().to_string(),
            message: message.into(),
        };
        if !matches!(state, State::After) && errors.is_empty() {
            errors.push(end("the function does not end"));
        }
        function.labels = function.labels.max(values.labels);
        function.set_values(values.classes.iter().map(|class| class.unwrap_or(Class::Int)));
        if errors.is_empty() { Ok(function) } else { Err(errors) }
    }
}

impl FromStr for Function {
    type Err = ParseError;

    /// As [`Function::parse`], but returns the first error only.
    fn from_str(text: &str) -> Result<Function, ParseError> {
        Function::parse(text).map_err(|mut errors| errors.swap_remove(0))
    }
}

/// What has been read of the function.
enum State {
    Before,
    Inside,
    After,
}

/// The values and labels that the text mentions.
#[derive(Default)]
struct Values {
    classes: Vec<Option<Class>>,
    labels: u32,
}

/// The largest number of a value or a label.
const MAX_NUMBER: u32 = 1 << 24;

/// Splits a line into words and punctuation.
fn tokens(line: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.#".contains(c);
    let (mut found, mut rest) = (Vec::new(), line.trim_start());
    while let Some(first) = rest.chars().next() {
        let negative = first == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        let length = if is_word(first) || negative {
            1 + rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1)
        } else {
            first.len_utf8()
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found.reverse();
    found
}

/// The rest of a line, in reverse.
struct Tokens<'a> {
    rest: Vec<&'a str>,
    values: &'a mut Values,
}

impl<'a> Tokens<'a> {
    fn line(&mut self, function: &mut Function, state: &mut State) -> Parsed<()> {
        match (&state, self.peek()) {
            (State::Before, "function") => {
                self.word()?;
                self.expect("(")?;
                while self.peek() != ")" {
                    function.params.push(self.value()?);
                    self.skip(",");
                }
                self.expect(")")?;
                self.expect("{")?;
                *state = State::Inside;
            }
            (State::Before, _) => return Err("expected `function`".into()),
            (State::After, _) => return Err("text behind the function".into()),
            (State::Inside, "}") => {
                self.word()?;
                *state = State::After;
            }
            (State::Inside, "pin") => {
                self.word()?;
                function.pinned = self.list(|tokens| tokens.value())?;
            }
            (State::Inside, "unused") => {
                self.word()?;
                self.list(|tokens| tokens.value())?;
            }
            (State::Inside, "labels") => {
                self.word()?;
                function.labels = self.number()?;
            }
            (State::Inside, first) if numbered(first, 'c').is_some() => {
                let (n, constants) = (numbered(first, 'c'), &mut function.constants);
                self.word()?;
                self.expect("=")?;
                let words: Vec<u32> = self.list(|tokens| tokens.number())?;
                if n != Some(constants.len() as u32) {
                    return Err(format!("constants are numbered in order: expected `c{}`", constants.len()));
                }
                constants.push(match words[..] {
                    [word] => [word; 8],
                    _ => words.try_into().map_err(|_| "a constant has eight words, or one for all")?,
                });
            }
            (State::Inside, _) => {
                let inst = self.inst()?;
                function.insts.push(inst);
            }
        }
        match self.rest.pop() {
            None => Ok(()),
            Some(rest) => Err(format!("unexpected `{rest}`")),
        }
    }

    fn inst(&mut self) -> Parsed<Inst> {
        let first = self.word()?;
        if self.peek() == ":" {
            self.word()?;
            return Ok(Inst::Label(self.label_of(first)?));
        }
        let (d, operation) = match self.peek() {
            "=" => {
                self.word()?;
                (Some(self.value_of(first)?), self.word()?)
            }
            _ => (None, first),
        };
        let mut parts = operation.split('.');
        let (kind, [first, second]) = (parts.next().unwrap_or_default(), [(); 2].map(|()| parts.next()));
        if let Some(excess) = parts.next() {
            return Err(format!("unexpected `.{excess}`"));
        }
        let inst = match d {
            Some(d) => self.operation(d, kind, first, second)?,
            None => self.statement(kind, first, second)?,
        };
        Ok(inst)
    }

    /// Reads an instruction without a result.
    fn statement(&mut self, kind: &str, first: Option<&str>, second: Option<&str>) -> Parsed<Inst> {
        Ok(match kind {
            "store" => {
                let size = named(SIZES, first)?;
                let to = self.mem()?;
                Inst::Store { size, to, v: self.then(Tokens::src)? }
            }
            "call" => self.call(None)?,
            "cold_call" => {
                let function = self.number()?;
                self.expect("(")?;
                let arg = self.value()?;
                self.expect(")")?;
                Inst::ColdCall { function, arg }
            }
            "return" => Inst::Return { v: self.src()? },
            "jump" => Inst::Jump(self.label()?),
            "branch" => {
                let (cc, width) = (named(CC, first)?, named(WIDTHS, second)?);
                let (a, b) = (self.value()?, self.then(Tokens::src)?);
                Inst::Branch { cc, width, a, b, to: self.then(Tokens::label)? }
            }
            "branch_any" | "branch_none" => {
                let (a, b) = (self.value()?, self.then(Tokens::value)?);
                Inst::BranchAny { a, b, none: kind == "branch_none", to: self.then(Tokens::label)? }
            }
            "table" => {
                let (index, mut to) = (self.value()?, Vec::new());
                while self.skip(",") {
                    to.push(self.label()?);
                }
                Inst::Table { index, to }
            }
            "vstore" => Inst::VecStore { to: self.mem()?, v: self.then(Tokens::value)? },
            "vstream" => Inst::VecStream { to: self.mem()?, v: self.then(Tokens::value)? },
            "store_halves" => {
                let (v, low) = (self.value()?, self.then(Tokens::mem)?);
                Inst::StoreHalves { v, low, high: self.then(Tokens::mem)? }
            }
            "prefetch" => Inst::Prefetch { from: self.mem()? },
            "load_mxcsr" => Inst::LoadMxcsr { from: self.mem()? },
            _ => return Err(format!("`{kind}` is not an instruction without a result")),
        })
    }

    /// Reads an instruction with a result.
    fn operation(&mut self, d: V, kind: &str, first: Option<&str>, second: Option<&str>) -> Parsed<Inst> {
        Ok(match kind {
            "const" => Inst::Const { d, bits: self.number()? },
            "move" => Inst::Move { d, a: self.value()? },
            "compare" => {
                let (cc, width) = (named(CC, first)?, named(WIDTHS, second)?);
                Inst::Compare { cc, width, d, a: self.value()?, b: self.then(Tokens::src)? }
            }
            "select" => {
                let (cond, a) = (self.value()?, self.then(Tokens::value)?);
                Inst::Select { d, cond, a, b: self.then(Tokens::value)? }
            }
            "load" => Inst::Load { size: named(SIZES, first)?, d, from: self.mem()? },
            "call" => self.call(Some(d))?,
            "vconst" => {
                let word = self.word()?;
                let constant = numbered(word, 'c').ok_or(format!("`{word}` is not a constant"))?;
                Inst::VecConst { d, constant }
            }
            "vload" => {
                let foldable = match first {
                    None => false,
                    Some("foldable") => true,
                    Some(other) => return Err(format!("`{other}`: did you mean `foldable`?")),
                };
                Inst::VecLoad { d, from: self.mem()?, foldable }
            }
            "splat_load" => Inst::SplatLoad { d, from: self.mem()? },
            "fma" => {
                let (wide, a) = (named(ELEMENTS, first)?, self.value()?);
                let b = self.then(Tokens::value)?;
                Inst::Fma { wide, d, a, b, c: self.then(Tokens::value)? }
            }
            "blend" => {
                let (wide, a) = (named(ELEMENTS, first)?, self.value()?);
                let b = self.then(Tokens::value)?;
                Inst::Blend { wide, d, a, b, mask: self.then(Tokens::value)? }
            }
            "upper_half" => Inst::UpperHalf { d, b: self.value()? },
            "splat" => Inst::Splat { wide: named(ELEMENTS, first)?, d, a: self.value()? },
            "low_int" => Inst::LowInt { d, a: self.value()? },
            "sign_bits" => Inst::SignBits { d, a: self.value()? },
            "load_halves" => Inst::LoadHalves { d, low: self.mem()?, high: self.then(Tokens::mem)? },
            "gather" => Inst::Gather { d, from: self.mem()?, offsets: self.then(Tokens::value)? },
            _ => {
                if let Ok(op) = named(INT2, Some(kind)) {
                    let (width, a) = (named(WIDTHS, first)?, self.value()?);
                    return Ok(Inst::Int2 { op, width, d, a, b: self.then(Tokens::src)? });
                }
                if let Ok(op) = named(INT1, Some(kind)) {
                    return Ok(Inst::Int1 { op, width: named(WIDTHS, first)?, d, a: self.value()? });
                }
                return self.vector_code(d, kind);
            }
        })
    }

    /// Reads the operands of a vector instruction of the host.
    fn vector_code(&mut self, d: V, name: &str) -> Parsed<Inst> {
        let a = self.value()?;
        let (mut b, mut imm) = (None, None);
        while self.skip(",") {
            match self.peek().strip_prefix('#') {
                Some(number) => {
                    imm = Some(number.parse().map_err(|_| format!("`{number}` does not have 8 bits"))?);
                    self.word()?;
                }
                None => b = Some(self.value()?),
            }
        }
        let operands = 2 + usize::from(b.is_some());
        let find = |code: &&Code| code.shape().name == name && code.shape().kinds.len() == operands;
        let code = *Code::ALL.iter().find(find).ok_or_else(|| {
            format!("`{name}` is not an instruction with a result and {} values", operands - 1)
        })?;
        Ok(match b {
            Some(b) => Inst::Rvm { code, d, a, b, imm },
            None => Inst::Rm { code, d, b: a, imm },
        })
    }

    fn call(&mut self, d: Option<V>) -> Parsed<Inst> {
        let (function, mut args) = (self.number()?, Vec::new());
        self.expect("(")?;
        while self.peek() != ")" {
            args.push(self.src()?);
            if !self.skip(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(Inst::Call { function, args, d })
    }

    fn peek(&self) -> &'a str {
        self.rest.last().copied().unwrap_or_default()
    }

    fn word(&mut self) -> Parsed<&'a str> {
        self.rest.pop().ok_or("the line ends early".into())
    }

    fn skip(&mut self, token: &str) -> bool {
        let found = self.rest.last() == Some(&token);
        if found {
            self.rest.pop();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        let found = self.word()?;
        if found == token { Ok(()) } else { Err(format!("expected `{token}`, found `{found}`")) }
    }

    /// Reads a comma, and what follows it.
    fn then<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.expect(",")?;
        read(self)
    }

    /// Reads a list up to the end of the line.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut all = vec![read(self)?];
        while self.skip(",") {
            all.push(read(self)?);
        }
        Ok(all)
    }

    fn number<T: TryFrom<u64>>(&mut self) -> Parsed<T> {
        let word = self.word()?;
        let number = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        number.ok().and_then(|n| T::try_from(n).ok()).ok_or(format!("`{word}` is not a number of this size"))
    }

    fn value(&mut self) -> Parsed<V> {
        let word = self.word()?;
        self.value_of(word)
    }

    fn value_of(&mut self, word: &str) -> Parsed<V> {
        let known = [('i', Class::Int), ('v', Class::Vec)];
        let found = known.into_iter().find_map(|(prefix, class)| Some((numbered(word, prefix)?, class)));
        let (n, class) = found.ok_or(format!("`{word}` is not a value"))?;
        let classes = &mut self.values.classes;
        if classes.len() <= n as usize {
            classes.resize(n as usize + 1, None);
        }
        match classes[n as usize].replace(class) {
            Some(other) if other != class => Err(format!("value {n} has two classes")),
            _ => Ok(V(n)),
        }
    }

    fn src(&mut self) -> Parsed<Src> {
        let word = self.peek();
        if word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            self.word()?;
            return word.parse().map(Src::Imm).map_err(|_| format!("`{word}` does not have 32 bits"));
        }
        self.value().map(Src::Value)
    }

    fn label(&mut self) -> Parsed<Label> {
        let word = self.word()?;
        self.label_of(word)
    }

    fn label_of(&mut self, word: &str) -> Parsed<Label> {
        let n = numbered(word, 'L').ok_or(format!("`{word}` is not a label"))?;
        self.values.labels = self.values.labels.max(n + 1);
        Ok(Label(n))
    }

    fn mem(&mut self) -> Parsed<Mem> {
        self.expect("[")?;
        let base = self.value()?;
        let disp: i64 = match self.word()? {
            "]" => return Ok(Mem { base, disp: 0 }),
            "+" => self.number::<u32>()?.into(),
            "-" => -i64::from(self.number::<u32>()?),
            other => return Err(format!("expected a displacement, found `{other}`")),
        };
        self.expect("]")?;
        let disp = i32::try_from(disp).map_err(|_| "a displacement has 32 bits")?;
        Ok(Mem { base, disp })
    }
}

/// Returns the number of a name such as `i12` with this prefix.
fn numbered(word: &str, prefix: char) -> Option<u32> {
    let digits = word.strip_prefix(prefix)?;
    let plain = digits.bytes().all(|c| c.is_ascii_digit());
    digits.parse().ok().filter(|n| plain && *n < MAX_NUMBER)
}

fn named<T: Copy>(names: Names<T>, word: Option<&str>) -> Parsed<T> {
    let found = names.iter().find(|(_, name)| Some(*name) == word);
    found.map(|(value, _)| *value).ok_or_else(|| {
        let all: Vec<_> = names.iter().map(|(_, name)| *name).collect();
        format!("expected one of {}", all.join(", "))
    })
}
