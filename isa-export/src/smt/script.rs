//! The text of terms in SMT-LIB 2.6. Each term is a definition, so that the text is as long as the graph.

use super::float::format_of;
use super::term::{FloatOp, Node, Op, Rounding, Sort, Term, Terms};
use isa_spec::pcode::ir::Ty;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Writes declarations and definitions of terms, each once.
#[derive(Debug, Default)]
pub struct Script {
    /// The text of terms that have been written: a name or a constant.
    written: HashMap<Term, String>,
    /// Unknown functions, by name, and the sorts of arguments and result that they were declared with.
    functions: BTreeMap<String, String>,
}

impl Script {
    /// Appends the definitions of a term and of what it is made of, and returns the term's text.
    pub fn define(&mut self, terms: &Terms, root: Term, out: &mut String) -> String {
        for term in terms.reachable(&[root]) {
            if !self.written.contains_key(&term) {
                let text = self.one(terms, term, out);
                self.written.insert(term, text);
            }
        }
        self.written[&root].clone()
    }

    fn one(&mut self, terms: &Terms, term: Term, out: &mut String) -> String {
        let node = terms.node(term);
        let name = format!("t{}", self.written.len());
        let sort = sort(node.sort);
        let args: Vec<&str> = node.args.iter().map(|arg| self.written[arg].as_str()).collect();
        match text(terms, term, &args) {
            Text::Constant(text) => text,
            Text::Variable(name) => {
                let _ = writeln!(out, "(declare-const {name} {sort})");
                name
            }
            Text::Number(body, ty) => {
                let _ = writeln!(out, "(declare-const {name} {sort})");
                let _ = writeln!(out, "(assert (= {} {body}))", number(&name, ty));
                name
            }
            Text::Call { function, signature, body } => {
                if self.functions.get(&function) != Some(&signature) {
                    let _ = writeln!(out, "(declare-fun {function} {signature})");
                    self.functions.insert(function, signature);
                }
                let _ = writeln!(out, "(define-fun {name} () {sort} {body})");
                name
            }
            Text::Value(body) => {
                let _ = writeln!(out, "(define-fun {name} () {sort} {body})");
                name
            }
        }
    }
}

/// The text of a term, given those of its arguments.
pub(crate) enum Text {
    Constant(String),
    /// A free variable.
    Variable(String),
    Value(String),
    /// A number of a float format. The theory has no function from a number to its bits: the term's bits are some that
    /// have this number.
    Number(String, Ty),
    /// An unknown function.
    Call {
        function: String,
        signature: String,
        body: String,
    },
}

pub(crate) fn text(terms: &Terms, term: Term, args: &[&str]) -> Text {
    let node = terms.node(term);
    match &node.op {
        Op::Const(value) => Text::Constant(match node.sort {
            Sort::Bits(width) => constant(*value, width),
            Sort::Memory(_) => "zero".into(),
        }),
        Op::Var(name) => Text::Variable(quoted(name)),
        Op::Float(FloatOp::Less(_) | FloatOp::Equal(_) | FloatOp::ToInt { .. }) => {
            Text::Value(float(terms, node, args))
        }
        Op::Float(op) => Text::Number(float(terms, node, args), result_type(*op)),
        Op::Apply(function) => {
            let sorts: Vec<String> = node.args.iter().map(|arg| sort(terms.node(*arg).sort)).collect();
            let signature = format!("({}) {}", sorts.join(" "), sort(node.sort));
            let function = quoted(function);
            let body = format!("({function} {})", args.join(" "));
            Text::Call { function, signature, body }
        }
        op => Text::Value(bits(op, args, node)),
    }
}

/// Quotes a name that is no plain symbol.
pub(crate) fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    if plain { name.to_string() } else { format!("|{name}|") }
}

pub(crate) fn sort(sort: Sort) -> String {
    match sort {
        Sort::Bits(width) => format!("(_ BitVec {width})"),
        Sort::Memory(address) => format!("(Array (_ BitVec {address}) (_ BitVec 8))"),
    }
}

pub(crate) fn constant(value: u128, width: u32) -> String {
    if width.is_multiple_of(4) {
        format!("#x{value:0digits$x}", digits = width as usize / 4)
    } else {
        format!("#b{value:0digits$b}", digits = width as usize)
    }
}

/// Operations on bit vectors and memories. Conditions have one bit.
fn bits(op: &Op, args: &[&str], node: &Node) -> String {
    let call = |name: &str| format!("({name} {})", args.join(" "));
    let test = |name: &str| format!("(ite ({name} {}) #b1 #b0)", args.join(" "));
    match op {
        Op::Not => call("bvnot"),
        Op::And => call("bvand"),
        Op::Or => call("bvor"),
        Op::Xor => call("bvxor"),
        Op::Add => call("bvadd"),
        Op::Mul => call("bvmul"),
        Op::Udiv => call("bvudiv"),
        Op::Urem => call("bvurem"),
        Op::Shl => call("bvshl"),
        Op::Lshr => call("bvlshr"),
        Op::Ashr => call("bvashr"),
        Op::Concat => call("concat"),
        Op::Select => call("select"),
        Op::Store => call("store"),
        Op::Eq => test("="),
        Op::Ult => test("bvult"),
        Op::Slt => test("bvslt"),
        Op::Ite => format!("(ite (= {} #b1) {} {})", args[0], args[1], args[2]),
        Op::Extract(lo) => {
            let width = if let Sort::Bits(width) = node.sort { width } else { 8 };
            format!("((_ extract {} {lo}) {})", lo + width - 1, args[0])
        }
        Op::Var(_) | Op::Const(_) | Op::Apply(_) | Op::Float(_) => String::new(),
    }
}

/// Exponent bits, and significand bits with the hidden one.
fn widths_of(ty: Ty) -> (u32, u32) {
    let format = format_of(ty);
    (format.exp_bits, format.frac_bits + 1)
}

/// The number with these bits.
pub(crate) fn number(bits: &str, ty: Ty) -> String {
    let (exponent, significand) = widths_of(ty);
    format!("((_ to_fp {exponent} {significand}) {bits})")
}

fn mode(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::NearestEven => "RNE",
        Rounding::Positive => "RTP",
        Rounding::Negative => "RTN",
        Rounding::Zero => "RTZ",
    }
}

fn result_type(op: FloatOp) -> Ty {
    match op {
        FloatOp::Add(ty, _)
        | FloatOp::Mul(ty, _)
        | FloatOp::Div(ty, _)
        | FloatOp::Fma(ty, _)
        | FloatOp::Sqrt(ty, _)
        | FloatOp::Integral(ty, _)
        | FloatOp::Less(ty)
        | FloatOp::Equal(ty) => ty,
        FloatOp::Convert { to, .. } | FloatOp::FromInt { to, .. } => to,
        FloatOp::ToInt { from, .. } => from,
    }
}

/// The number, the condition or the integer that a float operation returns.
fn float(terms: &Terms, node: &Node, args: &[&str]) -> String {
    let Op::Float(op) = node.op else { return String::new() };
    let numbers = |ty| args.iter().map(|arg| number(arg, ty)).collect::<Vec<_>>().join(" ");
    let rounded = |name: &str, ty, round| format!("({name} {} {})", mode(round), numbers(ty));
    match op {
        FloatOp::Add(ty, round) => rounded("fp.add", ty, round),
        FloatOp::Mul(ty, round) => rounded("fp.mul", ty, round),
        FloatOp::Div(ty, round) => rounded("fp.div", ty, round),
        FloatOp::Fma(ty, round) => rounded("fp.fma", ty, round),
        FloatOp::Sqrt(ty, round) => rounded("fp.sqrt", ty, round),
        FloatOp::Integral(ty, round) => rounded("fp.roundToIntegral", ty, round),
        FloatOp::Convert { from, to, rounding } => {
            let (exponent, significand) = widths_of(to);
            rounded(&format!("(_ to_fp {exponent} {significand})"), from, rounding)
        }
        FloatOp::FromInt { signed, to, rounding } => {
            let (exponent, significand) = widths_of(to);
            let name = if signed { "to_fp" } else { "to_fp_unsigned" };
            format!("((_ {name} {exponent} {significand}) {} {})", mode(rounding), args[0])
        }
        FloatOp::ToInt { from, signed, rounding, .. } => {
            let name = if signed { "fp.to_sbv" } else { "fp.to_ubv" };
            let width = if let Sort::Bits(width) = node.sort { width } else { terms.width(node.args[0]) };
            rounded(&format!("(_ {name} {width})"), from, rounding)
        }
        FloatOp::Less(ty) => format!("(ite (fp.lt {}) #b1 #b0)", numbers(ty)),
        FloatOp::Equal(ty) => format!("(ite (fp.eq {}) #b1 #b0)", numbers(ty)),
    }
}
