//! The syntax tree of a pseudocode file, as written. Every node has its span. The checker resolves names and
//! assigns types.

use crate::source::Span;

/// A `.pcode` file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct File {
    /// Top-level blocks in file order.
    pub items: Vec<Item>,
    /// `//` comments at the top of the file (the family's header), without the slashes.
    pub header: Vec<String>,
}

/// A top-level block.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// The semantics of one or more instructions.
    Instruction(Instruction),
    /// Parametrised blocks.
    Template(Template),
    /// A function that bodies may call.
    Function(Function),
    /// Named fields of a value.
    Record(Record),
}

/// `instruction NAME, NAME … { body }`, optionally `instruction NAME … for rdna4 { … }`, which limits the
/// block to those architectures.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// Instructions that share the body.
    pub names: Vec<Name>,
    /// Architecture names after `for`; empty: all.
    pub archs: Vec<Name>,
    /// The statements between the braces.
    pub body: Vec<Stmt>,
    /// From after `{` to before `}`.
    pub body_span: Span,
    /// The whole block.
    pub span: Span,
    /// The template rows that the block was expanded from, innermost first.
    pub rows: Vec<TemplateRow>,
}

/// The template row that an instruction was expanded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateRow {
    /// From `(` to `)`.
    pub span: Span,
    /// Parameters, each with the text that replaces its placeholders.
    pub fills: Vec<(String, String)>,
}

/// `template (T, OP) in (f32, +), (f64, -) { instruction V_${OP}_$T { … } … }`: the items once per row, with
/// `$NAME` (or `${NAME}`) replaced. The parser expands templates at the token level: `File::items` holds the
/// expanded instructions, whose spans refer to the template, and this node keeps the source form for the
/// printer.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Parameter names, in the order of the rows' entries.
    pub parameters: Vec<Name>,
    /// One entry per parameter, as written.
    pub rows: Vec<Vec<Name>>,
    /// The expanded instructions (and functions), row by row.
    pub items: Vec<Item>,
    /// The text between the braces, as written.
    pub text: String,
    /// The whole block.
    pub span: Span,
}

/// `function NAME(a, b) { …; return expr }`: expanded inline at each call. Parameters are untyped: each takes
/// the type of its argument. `for` limits it to architectures, as in [`Instruction`].
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The function's name.
    pub name: Name,
    /// Parameter names.
    pub parameters: Vec<Name>,
    /// Architecture names after `for`; empty: all.
    pub archs: Vec<Name>,
    /// The statements between the braces.
    pub body: Vec<Stmt>,
    /// The whole block.
    pub span: Span,
}

/// `record NAME : 128'B for rdna4 { base [47 : 0]; stride [61 : 48]; … }`: the layout of a descriptor. Bodies read
/// the fields of `V = NAME(bits)` as `V.base`.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The record's name.
    pub name: Name,
    /// Its size in bits.
    pub width: u16,
    /// Architecture names after `for`; empty: all.
    pub archs: Vec<Name>,
    /// The fields in file order.
    pub fields: Vec<RecordField>,
    /// The whole block.
    pub span: Span,
}

/// Bits of a record. Several names, separated by commas, denote the same bits in different uses of the record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordField {
    /// The names.
    pub names: Vec<Name>,
    /// The highest bit.
    pub high: u16,
    /// The lowest bit.
    pub low: u16,
    /// From the name to the closing bracket.
    pub span: Span,
}

impl Record {
    /// Returns the field of a name.
    pub fn field(&self, name: &str) -> Option<&RecordField> {
        self.fields.iter().find(|field| field.names.iter().any(|own| own.text == name))
    }
}

impl RecordField {
    /// The width in bits.
    pub fn width(&self) -> u16 {
        self.high - self.low + 1
    }
}

/// An identifier with its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// As written.
    pub text: String,
    /// Where it is written.
    pub span: Span,
}

/// A statement with its span.
#[derive(Debug, Clone, PartialEq)]
pub struct Stmt {
    /// The statement without its span.
    pub kind: StmtKind,
    /// From its first token to its last.
    pub span: Span,
}

/// Statements.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum StmtKind {
    /// `declare x : 32'B;`, `declare x : 32'U[64];`
    Declare { name: Name, ty: TypeName, len: Option<Expr> },
    /// `place = value`, or `place op= value`.
    Assign { place: Expr, op: Option<BinaryOp>, value: Expr },
    /// `if … then … elsif … else … endif`.
    If { arms: Vec<(Expr, Vec<Stmt>)>, otherwise: Option<Vec<Stmt>> },
    /// `for var in from : to do … endfor`.
    For { var: Name, from: Expr, to: Expr, body: Vec<Stmt> },
    /// `while cond do … endwhile`.
    While { cond: Expr, body: Vec<Stmt> },
    /// `NAME = lambda(a, b) ( expr )` or `lambda(a) ( stmts; return e )`.
    Lambda { name: Name, parameters: Vec<Name>, body: Vec<Stmt> },
    /// `return`, with a value in functions and lambdas.
    Return(Option<Expr>),
    /// Leaves the innermost loop.
    Break,
    /// `s_nop(16'0U)`, `PrefetchScalarData(…)`: a call for its side effects. `eval "…"` is a call of `eval`.
    Call(Expr),
    /// The empty statement; the parser drops lone `;`.
    Empty,
}

/// An expression with its span.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// The expression without its span.
    pub kind: ExprKind,
    /// From its first token to its last.
    pub span: Span,
}

/// Expressions.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum ExprKind {
    /// A local, operand, state or field, by name.
    Name(String),
    /// An integer: its value, and the type of the literal as spelled.
    Int { value: u128, ty: LiteralType },
    /// A decimal float: the exact text of the value, and its suffix's type: `F` (f32), none (f64, adapts),
    /// `LF`.
    Float { text: String, ty: LiteralType },
    /// `"text"`, without the quotes.
    Str(String),
    /// `-x`, `~x`, `!x`, `+x`.
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`, and every other operator between two operands.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `x.f32`, `x.u8`, `VCC.u64`.
    View(Box<Expr>, TypeName),
    /// `x[i]`: array element, register, memory or one bit, depending on `x`.
    Index(Box<Expr>, Box<Expr>),
    /// `x[hi : lo]`.
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `x[lo +: width]`.
    Part(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `x[i].field`. A field of a plain name is part of the name, separated by a dot: `MODE.IEEE`.
    Member(Box<Expr>, Name),
    /// `32'U(x)`.
    Cast(TypeName, Box<Expr>),
    /// `f(x, y)`.
    Call(Name, Vec<Expr>),
    /// `{ a, b }`.
    Concat(Vec<Expr>),
    /// `( x )`.
    Paren(Box<Expr>),
}

/// The type of a literal as spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralType {
    /// `42`: adapts to the type of the other operand; `i32` without one.
    None,
    /// `42U`, `42LL`, `42ULL`, `1'1U`, `16'0x7fff`, `32'I…`, `1.0F`, `64'F 1.0`.
    Typed(TypeName),
}

/// `f32` in a view, `32'F` in a cast or declaration: kind and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeName {
    /// The interpretation of the bits.
    pub kind: TypeKind,
    /// In bits.
    pub width: u16,
}

/// The interpretation of a type's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// Raw bits.
    B,
    /// Unsigned integer.
    U,
    /// Signed integer.
    I,
    /// IEEE float.
    F,
    /// bfloat.
    BF,
    /// `fp8`: E4M3.
    Fp8,
    /// `bf8`: E5M2.
    Bf8,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`.
    Neg,
    /// `+`.
    Plus,
    /// `~`.
    Not,
    /// `!`.
    LogicalNot,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `/`.
    Div,
    /// `%`.
    Rem,
    /// `**`.
    Pow,
    /// `&`.
    And,
    /// `|`.
    Or,
    /// `^`.
    Xor,
    /// `<<`.
    Shl,
    /// `>>`.
    Shr,
    /// `>>>`: arithmetic shift whatever the type.
    Sar,
    /// `==`.
    Eq,
    /// `!=`.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
    /// `<>`: less or greater.
    Lg,
    /// `&&`.
    LogicalAnd,
    /// `||`.
    LogicalOr,
}

/// Calls `f` with every name that the statements use as a value or a place, excluding the names of called
/// functions.
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
