//! Programs as trees of text templates. In a template, `$0`, `$1`, … are the texts of expressions, and `@0`,
//! `@1`, … those of blocks. Every template is defined for all values of its operands (indices are masked,
//! divisors checked, loops bounded), so that a program stays valid if an expression is replaced by another
//! one of the same type, or a statement is removed.

use std::fmt;

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

use Scalar::*;

impl Scalar {
    pub const ALL: [Scalar; 11] = [I8, U8, I16, U16, I32, U32, I64, U64, F16, F32, F64];
    pub const INTEGERS: [Scalar; 8] = [I8, U8, I16, U16, I32, U32, I64, U64];
    pub const FLOATS: [Scalar; 3] = [F16, F32, F64];

    pub fn name(self) -> &'static str {
        ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"][self as usize]
    }

    pub fn bits(self) -> u32 {
        [8, 8, 16, 16, 32, 32, 64, 64, 16, 32, 64][self as usize]
    }

    pub fn is_float(self) -> bool {
        self as usize >= F16 as usize
    }

    pub fn is_signed(self) -> bool {
        matches!(self, I8 | I16 | I32 | I64)
    }

    /// The unsigned integer of the same size.
    pub fn unsigned(self) -> Scalar {
        [U8, U8, U16, U16, U32, U32, U64, U64, U16, U32, U64][self as usize]
    }
}

/// A type: a scalar, or a vector of 2, 3, 4, 8 or 16 elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ty {
    pub scalar: Scalar,
    pub lanes: u32,
}

impl Ty {
    pub const fn new(scalar: Scalar, lanes: u32) -> Ty {
        Ty { scalar, lanes }
    }

    pub fn of(self, scalar: Scalar) -> Ty {
        Ty { scalar, ..self }
    }
}

impl From<Scalar> for Ty {
    fn from(scalar: Scalar) -> Ty {
        Ty { scalar, lanes: 1 }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes {
            1 => f.write_str(self.scalar.name()),
            n => write!(f, "{}x{n}", self.scalar.name()),
        }
    }
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expr {
    pub ty: Ty,
    pub text: String,
    pub operands: Vec<Expr>,
}

impl Expr {
    pub fn new(ty: impl Into<Ty>, text: impl Into<String>, operands: Vec<Expr>) -> Expr {
        Expr { ty: ty.into(), text: text.into(), operands }
    }

    /// A constant with the same value in each lane.
    pub fn small(ty: Ty, value: u32) -> Expr {
        Expr::new(ty, format!("(({ty})({}){value})", ty.scalar.name()), Vec::new())
    }

    pub fn render(&self) -> String {
        fill(&self.text, '$', &|i| self.operands[i].render())
    }

    /// Calls a function with this expression and all expressions in it, until it returns false.
    pub fn visit(&mut self, f: &mut dyn FnMut(&mut Expr) -> bool) -> bool {
        f(self) && self.operands.iter_mut().all(|o| o.visit(f))
    }
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    pub text: String,
    pub exprs: Vec<Expr>,
    pub blocks: Vec<Block>,
}

pub type Block = Vec<Stmt>;

impl Stmt {
    pub fn new(text: impl Into<String>, exprs: Vec<Expr>) -> Stmt {
        Stmt { text: text.into(), exprs, blocks: Vec::new() }
    }

    fn render(&self, indent: usize) -> String {
        let with_exprs = fill(&self.text, '$', &|i| self.exprs[i].render());
        let block = |i: usize| {
            let end = " ".repeat(indent);
            format!("{{\n{}{end}}}", render(&self.blocks[i], indent + 4))
        };
        fill(&with_exprs, '@', &block)
    }
}

/// Renders statements, one per line.
pub fn render(block: &Block, indent: usize) -> String {
    block.iter().map(|s| format!("{:indent$}{}\n", "", s.render(indent))).collect()
}

/// Replaces `$0` by the zeroth part, and so on.
fn fill(text: &str, mark: char, part: &dyn Fn(usize) -> String) -> String {
    let mut pieces = text.split(mark);
    let mut out = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let (digit, rest) = piece.split_at(1);
        out += &part(digit.parse().expect("a digit follows the mark"));
        out += rest;
    }
    out
}

/// A step of a workgroup. There is a barrier after each phase.
#[derive(Debug, Clone)]
pub enum Step {
    /// Statements that each work-item executes, without communication.
    Phase { noinline: bool, body: Block },
    /// `for (gN = 0; gN < count; gN++)`, with a uniform count.
    Loop { depth: u32, count: Expr, steps: Vec<Step> },
    /// A uniform condition.
    If { condition: Expr, steps: Vec<Step> },
    /// An operation on the lanes of each wave where `condition` is not zero: `target = operation(x, y)`.
    Wave { operation: &'static str, target: Expr, condition: Expr, x: Expr, y: Expr },
}

/// A function: `(in, n, parameters…)`; a recursive one calls itself with n - 1 while n is not 0.
#[derive(Debug, Clone)]
pub struct Function {
    pub name: String,
    pub result: Ty,
    pub parameters: Vec<Ty>,
    pub noinline: bool,
    pub body: Block,
    pub value: Expr,
}

impl Function {
    pub fn is_recursive(&self) -> bool {
        self.body.iter().any(|s| s.text.contains("volatile f_"))
    }
}

#[derive(Debug, Clone)]
pub struct Kernel {
    pub steps: Vec<Step>,
    /// Pointers to private variables are generic, so that accesses use flat addressing.
    pub generic: bool,
    /// Elements of outputs of one work-item are not adjacent.
    pub strided: bool,
    /// Attributes of the kernel for targets.
    pub attributes: String,
}

/// A program: kernels that run one after the other, each with the output of the one before as an input.
#[derive(Debug, Clone)]
pub struct Program {
    pub seed: u64,
    pub groups: [u32; 2],
    pub block: [u32; 2],
    /// Vector variables of the kernels' state, `v0`, `v1`, ….
    pub vectors: Vec<Ty>,
    pub functions: Vec<Function>,
    pub kernels: Vec<Kernel>,
}

impl Program {
    pub fn items(&self) -> u32 {
        self.groups.iter().chain(&self.block).product()
    }

    /// Calls a function with all blocks.
    pub fn blocks(&mut self, f: &mut dyn FnMut(&mut Block)) {
        fn nested(block: &mut Block, f: &mut dyn FnMut(&mut Block)) {
            f(block);
            block.iter_mut().flat_map(|s| &mut s.blocks).for_each(|b| nested(b, f));
        }
        self.steps(&mut |steps| {
            for step in steps {
                if let Step::Phase { body, .. } = step {
                    nested(body, f);
                }
            }
        });
        self.functions.iter_mut().for_each(|function| nested(&mut function.body, f));
    }

    /// Calls a function with all lists of steps.
    pub fn steps(&mut self, f: &mut dyn FnMut(&mut Vec<Step>)) {
        fn nested(steps: &mut Vec<Step>, f: &mut dyn FnMut(&mut Vec<Step>)) {
            f(steps);
            for step in steps {
                if let Step::Loop { steps, .. } | Step::If { steps, .. } = step {
                    nested(steps, f);
                }
            }
        }
        self.kernels.iter_mut().for_each(|kernel| nested(&mut kernel.steps, f));
    }

    /// Calls a function with all expressions, outer ones first.
    pub fn exprs(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        let mut each = |e: &mut Expr| {
            f(e);
            true
        };
        self.blocks(&mut |block| {
            for e in block.iter_mut().flat_map(|s| &mut s.exprs) {
                e.visit(&mut each);
            }
        });
        self.steps(&mut |steps| {
            for step in steps {
                let exprs: Vec<&mut Expr> = match step {
                    Step::Phase { .. } => Vec::new(),
                    Step::Loop { count: e, .. } | Step::If { condition: e, .. } => vec![e],
                    Step::Wave { condition, x, y, .. } => vec![condition, x, y],
                };
                for e in exprs {
                    e.visit(&mut each);
                }
            }
        });
        for function in &mut self.functions {
            function.value.visit(&mut each);
        }
    }
}
