//! The tree of a pseudocode file, as written; every node has its span.

use crate::source::Span;

/// A `.pcode` file: a list of blocks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct File {
    pub items: Vec<Item>,
    /// `//` comments at the top of the file (the family's header), without the slashes.
    pub header: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Instruction(Instruction),
    Template(Template),
    Function(Function),
}

/// `instruction NAME, NAME … { body }`, optionally `instruction NAME … for rdna4 { … }`: only on those
/// architectures.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    pub names: Vec<Name>,
    /// Architecture names after `for`; empty: all.
    pub archs: Vec<Name>,
    pub body: Vec<Stmt>,
    /// From after `{` to before `}`.
    pub body_span: Span,
    pub span: Span,
    /// The rows of the templates that it comes from, innermost first.
    pub rows: Vec<TemplateRow>,
}

/// A row of a template that an instruction was expanded by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateRow {
    /// From `(` to `)`.
    pub span: Span,
    /// Parameters, each with the text that takes the place of its holes.
    pub fills: Vec<(String, String)>,
}

/// `template (T, OP) in (f32, +), (f64, -) { instruction V_${OP}_$T { … } … }`: the items, once a row, with
/// `$NAME` (or `${NAME}`) replaced. The parser expands templates on the token level: `File::items` holds the
/// expanded instructions, whose spans point into the template, and this node keeps the source form for the
/// printer.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    pub parameters: Vec<Name>,
    pub rows: Vec<Vec<Name>>,
    /// The expanded instructions (and functions), row by row.
    pub items: Vec<Item>,
    /// The text between the braces, as written.
    pub text: String,
    pub span: Span,
}

/// `function NAME(a, b) { …; return expr }`: expanded where it is called. Parameters are untyped: each takes
/// its argument's type.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    pub name: Name,
    pub parameters: Vec<Name>,
    pub body: Vec<Stmt>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StmtKind {
    /// `declare x : 32'B;`, `declare x : 32'U[64];`
    Declare {
        name: Name,
        ty: TypeName,
        len: Option<Expr>,
    },
    /// `place = value`, or `place op= value`.
    Assign {
        place: Expr,
        op: Option<BinaryOp>,
        value: Expr,
    },
    /// `x++` style does not exist; `tmp += 1` is `Assign`.
    If {
        arms: Vec<(Expr, Vec<Stmt>)>,
        otherwise: Option<Vec<Stmt>>,
    },
    For {
        var: Name,
        from: Expr,
        to: Expr,
        body: Vec<Stmt>,
    },
    While {
        cond: Expr,
        body: Vec<Stmt>,
    },
    /// `NAME = lambda(a, b) ( expr )` or `lambda(a) ( stmts; return e )`.
    Lambda {
        name: Name,
        parameters: Vec<Name>,
        body: Vec<Stmt>,
    },
    Return(Option<Expr>),
    /// Leaves the innermost loop.
    Break,
    /// `s_nop(16'0U)`, `PrefetchScalarData(…)`: a call for its effect. `eval "…"` is a call of `eval`.
    Call(Expr),
    /// Nothing; the parser drops lone `;`.
    Empty,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    Name(String),
    /// An integer: value, and what its spelling says of its type.
    Int {
        value: u128,
        ty: LiteralType,
    },
    /// A decimal float: value text kept exact, and `F` (f32), none (f64, adapts), `LF`.
    Float {
        text: String,
        ty: LiteralType,
    },
    Str(String),
    /// `-x`, `~x`, `!x`, `+x`.
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `x.f32`, `x.u8`, `VCC.u64`.
    View(Box<Expr>, TypeName),
    /// `x[i]`: array element, register, memory, or one bit, by what `x` is.
    Index(Box<Expr>, Box<Expr>),
    /// `x[hi : lo]`.
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `x[lo +: width]`.
    Part(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `x[i].field`; a field of a plain name is one name with a dot: `MODE.IEEE`.
    Member(Box<Expr>, Name),
    /// `32'U(x)`.
    Cast(TypeName, Box<Expr>),
    /// `f(x, y)`.
    Call(Name, Vec<Expr>),
    /// `{ a, b }`.
    Concat(Vec<Expr>),
    Paren(Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralType {
    /// `42`: takes the type of what it meets; `i32` alone.
    None,
    /// `42U`, `42LL`, `42ULL`, `1'1U`, `16'0x7fff`, `32'I…`, `1.0F`, `64'F 1.0`.
    Typed(TypeName),
}

/// `f32` in a view, `32'F` in a cast or declaration: kind and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeName {
    pub kind: TypeKind,
    pub width: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TypeKind {
    B,
    U,
    I,
    F,
    BF,
    /// `fp8`, `bf8`.
    Fp8,
    Bf8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Neg,
    Plus,
    Not,
    LogicalNot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Pow,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    /// `>>>`: arithmetic shift whatever the type.
    Sar,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `<>`.
    Lg,
    LogicalAnd,
    LogicalOr,
}

/// Calls `f` with every name that the statements use as a value or a place, those of calls excepted.
pub fn each_name(list: &[Stmt], f: &mut dyn FnMut(&str)) {
    for stmt in list {
        match &stmt.kind {
            StmtKind::Declare { len, .. } => len.iter().for_each(|e| names_in(e, f)),
            StmtKind::Assign { place, value, .. } => [place, value].into_iter().for_each(|e| names_in(e, f)),
            StmtKind::If { arms, otherwise } => {
                for (cond, body) in arms {
                    names_in(cond, f);
                    each_name(body, f);
                }
                otherwise.iter().for_each(|body| each_name(body, f));
            }
            StmtKind::For { from, to, body, .. } => {
                [from, to].into_iter().for_each(|e| names_in(e, f));
                each_name(body, f);
            }
            StmtKind::While { cond, body } => {
                names_in(cond, f);
                each_name(body, f);
            }
            StmtKind::Lambda { body, .. } => each_name(body, f),
            StmtKind::Return(value) => value.iter().for_each(|e| names_in(e, f)),
            StmtKind::Call(e) => names_in(e, f),
            StmtKind::Break | StmtKind::Empty => {}
        }
    }
}

fn names_in(e: &Expr, f: &mut dyn FnMut(&str)) {
    match &e.kind {
        ExprKind::Name(name) => f(name),
        ExprKind::Int { .. } | ExprKind::Float { .. } | ExprKind::Str(_) => {}
        ExprKind::Unary(_, a)
        | ExprKind::View(a, _)
        | ExprKind::Cast(_, a)
        | ExprKind::Paren(a)
        | ExprKind::Member(a, _) => names_in(a, f),
        ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) => {
            names_in(a, f);
            names_in(b, f);
        }
        ExprKind::Select(a, b, c) | ExprKind::Slice(a, b, c) | ExprKind::Part(a, b, c) => {
            [a, b, c].into_iter().for_each(|e| names_in(e, f));
        }
        ExprKind::Call(_, list) | ExprKind::Concat(list) => list.iter().for_each(|e| names_in(e, f)),
    }
}
