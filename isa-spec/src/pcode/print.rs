//! Prints a syntax tree in one canonical layout: two-space indent, one statement per line, a `;` after each.
//! Parsing the output returns the same tree except for spans. Comments other than a file's header are not in
//! the tree.

use super::ast::*;
use super::token::{Tok, lex};
use crate::source::FileId;
use std::fmt::Write;

/// Prints a whole file.
pub fn file(file: &File) -> String {
    let mut p = Printer::default();
    for line in &file.header {
        p.line(format!("// {line}").trim_end());
    }
    for (at, item) in file.items.iter().enumerate() {
        if at > 0 || !file.header.is_empty() {
            p.out.push('\n');
        }
        p.item(item);
    }
    p.out
}

/// Prints the statements of a body.
pub fn body(stmts: &[Stmt]) -> String {
    let mut p = Printer::default();
    p.stmts(stmts);
    p.out
}

/// Prints one expression.
pub fn expr(e: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, e, Level::Select);
    out
}

#[derive(Default)]
struct Printer {
    out: String,
    indent: usize,
}

impl Printer {
    fn line(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.extend(std::iter::repeat_n("  ", self.indent));
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Instruction(block) => {
                let head = format!("instruction {}{}", names(&block.names), archs(&block.archs));
                self.braced(&head, &block.body);
            }
            Item::Function(f) => {
                let head = format!("function {}({}){}", f.name.text, names(&f.parameters), archs(&f.archs));
                self.braced(&head, &f.body)
            }
            Item::Record(record) => {
                let Record { name, width, .. } = record;
                self.line(&format!("record {} : {width}'B{} {{", name.text, archs(&record.archs)));
                self.indent += 1;
                for RecordField { names: list, high, low, .. } in &record.fields {
                    let bits = if high == low { low.to_string() } else { format!("{high} : {low}") };
                    self.line(&format!("{} [{bits}];", names(list)));
                }
                self.indent -= 1;
                self.line("}");
            }
            Item::Template(t) => {
                let rows: Vec<String> = t.rows.iter().map(|r| row(r)).collect();
                let head = format!("template ({}) in {} {{", names(&t.parameters), rows.join(", "));
                self.out.extend(std::iter::repeat_n("  ", self.indent));
                // The text of a template is printed as written: placeholders have no syntax tree.
                let _ = writeln!(self.out, "{head}{}}}", t.text);
            }
        }
    }

    fn braced(&mut self, head: &str, stmts: &[Stmt]) {
        self.line(&format!("{head} {{"));
        self.indented(stmts);
        self.line("}");
    }

    fn indented(&mut self, stmts: &[Stmt]) {
        self.indent += 1;
        self.stmts(stmts);
        self.indent -= 1;
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Declare { name, ty, len } => {
                let len = len.as_ref().map_or(String::new(), |e| format!("[{}]", expr(e)));
                self.line(&format!("declare {} : {}{len};", name.text, cast_type(*ty)));
            }
            StmtKind::Assign { place, op, value } => {
                let op = op.map_or("", binary_text);
                self.line(&format!("{} {op}= {};", expr(place), expr(value)));
            }
            StmtKind::If { arms, otherwise } => {
                let mut word = "if";
                for (cond, stmts) in arms {
                    self.line(&format!("{word} {} then", expr(cond)));
                    self.indented(stmts);
                    word = "elsif";
                }
                if let Some(stmts) = otherwise {
                    self.line("else");
                    self.indented(stmts);
                }
                self.line("endif;");
            }
            StmtKind::For { var, from, to, body } => {
                self.line(&format!("for {} in {} : {} do", var.text, expr(from), expr(to)));
                self.indented(body);
                self.line("endfor;");
            }
            StmtKind::While { cond, body } => {
                self.line(&format!("while {} do", expr(cond)));
                self.indented(body);
                self.line("endwhile;");
            }
            StmtKind::Lambda { name, parameters, body } => {
                let head = format!("{} = lambda({}) (", name.text, names(parameters));
                match &body[..] {
                    [Stmt { kind: StmtKind::Return(Some(value)), .. }] => {
                        self.line(&format!("{head}{});", expr(value)));
                    }
                    _ => {
                        self.line(&head);
                        self.indented(body);
                        self.line(");");
                    }
                }
            }
            StmtKind::Return(None) => self.line("return;"),
            StmtKind::Return(Some(value)) => self.line(&format!("return {};", expr(value))),
            StmtKind::Break => self.line("break;"),
            StmtKind::Call(call) => match &call.kind {
                ExprKind::Call(name, args) if name.text == "eval" => match &args[..] {
                    [Expr { kind: ExprKind::Str(text), .. }] => self.line(&format!("eval \"{text}\";")),
                    _ => self.line(&format!("{};", expr(call))),
                },
                _ => self.line(&format!("{};", expr(call))),
            },
            StmtKind::Empty => {}
        }
    }
}

fn names(list: &[Name]) -> String {
    let texts: Vec<&str> = list.iter().map(|n| n.text.as_str()).collect();
    texts.join(", ")
}

fn archs(list: &[Name]) -> String {
    if list.is_empty() { String::new() } else { format!(" for {}", names(list)) }
}

/// Prints a template's row; quotes entries that are not exactly one token.
fn row(entries: &[Name]) -> String {
    let texts: Vec<String> = entries
        .iter()
        .map(|entry| {
            let (tokens, errors) = lex(FileId(0), &entry.text, 0);
            let one = errors.is_empty()
                && tokens.len() == 2
                && !matches!(tokens[0].tok, Tok::Punct("," | ")") | Tok::Str(_))
                && tokens[0].span.end as usize - tokens[0].span.start as usize == entry.text.len();
            if one { entry.text.clone() } else { format!("\"{}\"", entry.text) }
        })
        .collect();
    format!("({})", texts.join(", "))
}

/// Precedence levels, loosest first. A subexpression of a lower level than its position requires parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Select,
    Binary(u8),
    Unary,
    Postfix,
}

fn level_of(e: &Expr) -> Level {
    match &e.kind {
        ExprKind::Select(..) => Level::Select,
        ExprKind::Binary(op, ..) => Level::Binary(precedence(*op)),
        ExprKind::Unary(..) => Level::Unary,
        _ => Level::Postfix,
    }
}

fn write_expr(out: &mut String, e: &Expr, at: Level) {
    if level_of(e) < at {
        out.push('(');
        write_expr(out, e, Level::Select);
        out.push(')');
        return;
    }
    match &e.kind {
        ExprKind::Name(text) => out.push_str(text),
        ExprKind::Int { value, ty } => out.push_str(&int(*value, *ty)),
        ExprKind::Float { text, ty } => out.push_str(&float(text, *ty)),
        ExprKind::Str(text) => {
            let _ = write!(out, "\"{text}\"");
        }
        ExprKind::Unary(op, inner) => {
            let op = unary_text(*op);
            out.push_str(op);
            let from = out.len();
            write_expr(out, inner, Level::Unary);
            // `- -x`: two adjacent signs would lex as another token.
            if out[from..].starts_with(op) && matches!(op, "-" | "+") {
                out.insert(from, ' ');
            }
        }
        ExprKind::Binary(op, a, b) => {
            let level = precedence(*op);
            // `**` is right-associative, the other operators are left-associative.
            let right = *op == BinaryOp::Pow;
            write_expr(out, a, Level::Binary(level + u8::from(right)));
            let _ = write!(out, " {} ", binary_text(*op));
            write_expr(out, b, Level::Binary(level + u8::from(!right)));
        }
        ExprKind::Select(c, a, b) => {
            write_expr(out, c, Level::Binary(0));
            out.push_str(" ? ");
            write_expr(out, a, Level::Select);
            out.push_str(" : ");
            write_expr(out, b, Level::Select);
        }
        ExprKind::View(base, ty) => {
            write_expr(out, base, Level::Postfix);
            let _ = write!(out, ".{}", view_type(*ty));
        }
        ExprKind::Member(base, name) => {
            write_expr(out, base, Level::Postfix);
            let _ = write!(out, ".{}", name.text);
        }
        ExprKind::Index(base, index) => bracketed(out, base, &[(index, "")]),
        ExprKind::Slice(base, hi, lo) => bracketed(out, base, &[(hi, " : "), (lo, "")]),
        ExprKind::Part(base, lo, width) => bracketed(out, base, &[(lo, " +: "), (width, "")]),
        ExprKind::Cast(ty, inner) => {
            let _ = write!(out, "{}(", cast_type(*ty));
            write_expr(out, inner, Level::Select);
            out.push(')');
        }
        ExprKind::Call(name, args) => {
            let _ = write!(out, "{}(", name.text);
            list(out, args);
            out.push(')');
        }
        ExprKind::Concat(parts) => {
            out.push_str("{ ");
            list(out, parts);
            out.push_str(" }");
        }
        ExprKind::Paren(inner) => {
            out.push('(');
            write_expr(out, inner, Level::Select);
            out.push(')');
        }
    }
}

fn bracketed(out: &mut String, base: &Expr, parts: &[(&Expr, &str)]) {
    write_expr(out, base, Level::Postfix);
    out.push('[');
    for (part, after) in parts {
        write_expr(out, part, Level::Select);
        out.push_str(after);
    }
    out.push(']');
}

fn list(out: &mut String, parts: &[Expr]) {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_expr(out, part, Level::Select);
    }
}

/// Prints a type as in a cast: `32'U`.
pub fn cast_type(ty: TypeName) -> String {
    let kind = match ty.kind {
        TypeKind::B => "B",
        TypeKind::U => "U",
        TypeKind::I => "I",
        TypeKind::F => "F",
        TypeKind::BF => "BF",
        // These types occur in views only.
        TypeKind::Fp8 => "FP8",
        TypeKind::Bf8 => "BF8",
    };
    format!("{}'{kind}", ty.width)
}

/// Prints a type as in a view: the `u32` of `x.u32`.
pub fn view_type(ty: TypeName) -> String {
    match ty.kind {
        TypeKind::B => format!("b{}", ty.width),
        TypeKind::U => format!("u{}", ty.width),
        TypeKind::I => format!("i{}", ty.width),
        TypeKind::F => format!("f{}", ty.width),
        TypeKind::BF => format!("bf{}", ty.width),
        TypeKind::Fp8 => "fp8".into(),
        TypeKind::Bf8 => "bf8".into(),
    }
}

/// Prints an integer literal: small numbers (counts and widths) in decimal, large ones (bit patterns) in
/// hexadecimal.
pub(super) fn int(value: u128, ty: LiteralType) -> String {
    let digits = if value < 4096 { value.to_string() } else { format!("{value:#x}") };
    let LiteralType::Typed(ty) = ty else { return digits };
    match (ty.kind, ty.width) {
        (TypeKind::U, 32) => format!("{digits}U"),
        (TypeKind::I, 64) => format!("{digits}LL"),
        (TypeKind::U, 64) => format!("{digits}ULL"),
        (TypeKind::U, width) => format!("{width}'{digits}"),
        (TypeKind::I, width) => format!("{width}'{digits}I"),
        // After hexadecimal digits, `B` would be another digit.
        (TypeKind::B, width) => format!("{width}'{value}B"),
        (_, width) => format!("{width}'{value}F"),
    }
}

/// Prints a float literal.
pub(super) fn float(text: &str, ty: LiteralType) -> String {
    let whole = text.bytes().all(|c| c.is_ascii_digit());
    match ty {
        LiteralType::None => text.to_string(),
        LiteralType::Typed(TypeName { width: 32, .. }) => format!("{text}F"),
        LiteralType::Typed(TypeName { width, .. }) if whole => format!("{width}'{text}F"),
        LiteralType::Typed(TypeName { width, .. }) => format!("{width}'{text}"),
    }
}

pub(super) fn binary_text(op: BinaryOp) -> &'static str {
    OPERATORS.iter().find(|o| o.1 == op).map_or("?", |o| o.0)
}

/// Returns the precedence of a binary operator: see [`OPERATORS`].
fn precedence(op: BinaryOp) -> u8 {
    OPERATORS.iter().find(|o| o.1 == op).map_or(0, |o| o.2)
}

fn unary_text(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Neg => "-",
        UnaryOp::Plus => "+",
        UnaryOp::Not => "~",
        UnaryOp::LogicalNot => "!",
    }
}

/// Binary operators, loosest first: spelling, operator, precedence.
pub(super) const OPERATORS: &[(&str, BinaryOp, u8)] = &[
    ("||", BinaryOp::LogicalOr, 0),
    ("&&", BinaryOp::LogicalAnd, 1),
    ("|", BinaryOp::Or, 2),
    ("^", BinaryOp::Xor, 3),
    ("&", BinaryOp::And, 4),
    ("==", BinaryOp::Eq, 5),
    ("!=", BinaryOp::Ne, 5),
    ("<>", BinaryOp::Lg, 5),
    ("<", BinaryOp::Lt, 6),
    ("<=", BinaryOp::Le, 6),
    (">", BinaryOp::Gt, 6),
    (">=", BinaryOp::Ge, 6),
    ("<<", BinaryOp::Shl, 7),
    (">>", BinaryOp::Shr, 7),
    (">>>", BinaryOp::Sar, 7),
    ("+", BinaryOp::Add, 8),
    ("-", BinaryOp::Sub, 8),
    ("*", BinaryOp::Mul, 9),
    ("/", BinaryOp::Div, 9),
    ("%", BinaryOp::Rem, 9),
    ("**", BinaryOp::Pow, 10),
];
