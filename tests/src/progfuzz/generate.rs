//! Random statements, functions, kernels and programs.

use super::atomics;
use super::expr::{Access, Expressions, LANES, LDS, Variable};
use super::tree::Scalar::{self, *};
use super::tree::{Block, Expr, Function, Kernel, Program, Step, Stmt, Ty};
use crate::random::Rng;

/// Bytes of the output that belong to one work-item, besides its slots.
pub const OWN_BYTES: u32 = 128;
/// Slots of 8 bytes in the output of one work-item.
pub const SLOTS: u32 = 112;

/// Generates the program of a seed.
pub fn program(seed: u64) -> Program {
    let mut rng = Rng(seed ^ 0x5072_6f67_7261_6d73);
    rng.bits();
    let block = rng.pick(&[
        [64, 1],
        [128, 1],
        [64, 2],
        [32, 1],
        [33, 1],
        [96, 1],
        [7, 1],
        [100, 1],
        [16, 9],
        [5, 13],
        [256, 1],
    ]);
    let groups = rng.pick(&[[1, 1], [2, 1], [3, 1], [2, 2]]);
    let groups = if block[0] * block[1] > 128 { [1, 1] } else { groups };
    let mut vectors: Vec<Ty> = (0..4).map(|_| Ty::new(rng.pick(&Scalar::ALL), rng.pick(&LANES))).collect();
    // Types with packed instructions.
    vectors.push(Ty::new(rng.pick(&[F32, F32, F16, I16, U16]), rng.pick(&[2, 2, 4])));
    let mut program = Program { seed, groups, block, vectors, functions: Vec::new(), kernels: Vec::new() };
    for index in 0..rng.below(4) {
        let function = function(&mut rng, index, &program.functions);
        program.functions.push(function);
    }
    for _ in 0..1 + rng.below(2) {
        let kernel = kernel(&mut rng, &program);
        program.kernels.push(kernel);
    }
    program
}

fn callable(functions: &[Function]) -> Vec<(String, Ty, Vec<Ty>)> {
    functions.iter().map(|f| (f.name.clone(), f.result, f.parameters.clone())).collect()
}

fn function(rng: &mut Rng, index: u64, others: &[Function]) -> Function {
    let any = |rng: &mut Rng| {
        let scalar = rng.pick(&Scalar::ALL);
        Ty::new(scalar, if rng.chance(5) { rng.pick(&LANES) } else { 1 })
    };
    // Half of the functions have the type of the one before: one of both is called through a pointer.
    let (result, parameters) = match others.last() {
        Some(last) if rng.chance(2) => (last.result, last.parameters.clone()),
        _ => (any(rng), (0..1 + rng.below(3)).map(|_| any(rng)).collect()),
    };
    let mut scope = vec![variable("n".to_string(), U32.into(), false, false)];
    scope.extend(parameters.iter().enumerate().map(|(i, ty)| variable(format!("x{i}"), *ty, false, true)));
    let name = format!("function{index}");
    let mut statements = Statements::new(Expressions {
        rng,
        scope,
        functions: callable(others),
        in_kernel: false,
        lds: [Access::None; LDS.len()],
        own: String::new(),
    });
    let length = 1 + statements.e.rng.below(3) as u32;
    let mut body = statements.block(length, 1, false);
    let locals: Vec<Expr> = parameters.iter().map(|ty| statements.e.any(*ty, 2, false)).collect();
    if statements.e.rng.chance(2) {
        let list: String = (0..locals.len()).map(|i| format!(", ${i}")).collect();
        let sum = match result.scalar.is_float() || result.scalar.is_signed() {
            true => "r_",
            false => "r_ + r_",
        };
        // LLVM 19 allocates no stack for direct recursion, but an unknown amount for calls of pointers.
        let types: String = parameters.iter().map(|ty| format!(", {ty}")).collect();
        let text = format!(
            "if (n != 0) {{ {result} (*volatile f_)(GLB const u8 *, u32{types}) = {name}; \
             {result} r_ = f_(in, n - 1{list}); if (n & 1) return {sum}; }}"
        );
        body.push(Stmt::new(text, locals));
    }
    let value = statements.e.any(result, 5, false);
    let noinline = statements.e.rng.chance(2);
    Function { name, result, parameters, noinline, body, value }
}

fn variable(name: String, ty: Ty, uniform: bool, writable: bool) -> Variable {
    Variable { name, ty, uniform, writable }
}

fn kernel(rng: &mut Rng, program: &Program) -> Kernel {
    let mut scope = Vec::new();
    for s in Scalar::ALL {
        scope.push(variable(format!("a_{}", s.name()), s.into(), true, false));
        for i in 0..2 {
            scope.push(variable(format!("s->{}_{i}", s.name()), s.into(), false, true));
        }
    }
    for name in ["lid", "gid"] {
        scope.push(variable(name.to_string(), U32.into(), false, false));
    }
    for name in ["grp", "g0", "g1"] {
        scope.push(variable(name.to_string(), U32.into(), true, false));
    }
    for (i, ty) in program.vectors.iter().enumerate() {
        scope.push(variable(format!("s->v{i}"), *ty, false, true));
    }
    let e = Expressions {
        rng,
        scope,
        functions: callable(&program.functions),
        in_kernel: true,
        lds: [Access::None; LDS.len()],
        own: "lid".to_string(),
    };
    let mut statements = Statements::new(e);
    statements.focus = statements.e.rng.pick(&[
        Focus::Arithmetic,
        Focus::Arithmetic,
        Focus::Waves,
        Focus::Memory,
        Focus::Atomics,
    ]);
    let full_waves = (program.block[0] * program.block[1]).is_multiple_of(64);
    let mut steps = vec![statements.first_phase()];
    steps.extend(statements.steps(0, full_waves));
    let generic = statements.e.rng.chance(4);
    // Few registers: values are spilled to scratch, accumulation registers and lanes of vector registers.
    let attributes = match statements.e.rng.below(6) {
        0 => format!("REGISTERS(amdgpu_num_vgpr({})) ", 24 + 8 * statements.e.rng.below(6)),
        1 => format!("REGISTERS(amdgpu_num_sgpr({})) ", 24 + 8 * statements.e.rng.below(4)),
        _ => String::new(),
    };
    let strided = statements.e.rng.chance(2);
    steps.push(statements.last_phase(program));
    Kernel { steps, generic, strided, attributes }
}

/// What a kernel has more of than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Arithmetic,
    /// Operations on the lanes of waves.
    Waves,
    /// Stores and copies.
    Memory,
    Atomics,
}

pub(super) struct Statements<'a> {
    pub(super) e: Expressions<'a>,
    locals: u32,
    /// Iterations of the loops around the current statement.
    iterations: u32,
    pub(super) focus: Focus,
}

impl<'a> Statements<'a> {
    fn new(e: Expressions<'a>) -> Statements<'a> {
        Statements { e, locals: 0, iterations: 1, focus: Focus::Arithmetic }
    }

    fn name(&mut self, prefix: &str) -> String {
        self.locals += 1;
        format!("{prefix}{}", self.locals)
    }

    /// Gives the variables values, so that the outcome depends on the inputs.
    fn first_phase(&mut self) -> Step {
        self.e.lds = [Access::Own; LDS.len()];
        // Variables are not read before they have a value other than the constant 0.
        let scope = self.e.scope.clone();
        self.e.scope.retain(|v| !v.writable);
        let mut body = Block::new();
        for v in scope.iter().filter(|v| v.writable) {
            let value = match self.e.rng.below(3) {
                0 => self.e.any(v.ty, 1, false),
                1 => self.e.leaf(v.ty, false),
                _ => {
                    let index = Expr::new(U32, "lid", Vec::new());
                    let scalar = v.ty.scalar;
                    let bytes = scalar.bits() / 8;
                    let offset = self.e.rng.below(900);
                    let load =
                        format!("LOAD(GLB, {}, in + ({bytes} * ($0) + {offset}))", scalar.unsigned().name());
                    let text = match (scalar.is_float(), v.ty.lanes) {
                        (true, _) => format!("(({})make_{}({load}))", v.ty, scalar.name()),
                        (false, _) => format!("(({})({}){load})", v.ty, scalar.name()),
                    };
                    Expr::new(v.ty, text, vec![index])
                }
            };
            body.push(Stmt::new(format!("{} = $0;", v.name), vec![value]));
            self.e.scope.push(v.clone());
        }
        self.e.scope = scope;
        for (i, (name, ty)) in LDS.into_iter().enumerate() {
            let value = if atomics::is_sum(i) { I8.into() } else { ty };
            let text = if atomics::is_sum(i) { atomics::term(ty.scalar, "$0") } else { "$0".to_string() };
            let value = self.e.any(value, 2, false);
            body.push(Stmt::new(format!("l->{name}[lid] = {text};"), vec![value]));
        }
        Step::Phase { noinline: false, body }
    }

    /// Stores the variables and what the last phase may read.
    fn last_phase(&mut self, program: &Program) -> Step {
        self.e.lds = [Access::Read; LDS.len()];
        let variables: Vec<Variable> = self.e.scope.iter().filter(|v| v.writable).cloned().collect();
        let mut body = Block::new();
        let mut slot = 0;
        for v in &variables {
            for lane in 0..v.ty.lanes {
                let element = if v.ty.lanes == 1 { v.name.clone() } else { format!("{}.s{lane:x}", v.name) };
                let scalar = v.ty.scalar;
                let text = match scalar.is_float() {
                    true => format!("OUT({slot}) = bits_{}({element});", scalar.name()),
                    false => format!("OUT({slot}) = (u64){element};"),
                };
                body.push(Stmt::new(text, Vec::new()));
                slot += 1;
            }
        }
        while slot < SLOTS {
            let scalar = self.e.scalar();
            let value = self.e.any(scalar.into(), 3, false);
            let text = match scalar.is_float() {
                true => format!("OUT({slot}) = bits_{}($0);", scalar.name()),
                false => format!("OUT({slot}) = (u64)($0);"),
            };
            body.push(Stmt::new(text, vec![value]));
            slot += 1 + self.e.rng.below(4) as u32;
        }
        if self.e.rng.chance(3) {
            let items = program.items();
            let limit = items - self.e.rng.below(items as u64 / 3) as u32;
            let tail = Stmt { text: format!("if (gid < {limit}) @0"), exprs: Vec::new(), blocks: vec![body] };
            body = vec![tail];
        }
        Step::Phase { noinline: false, body }
    }

    fn steps(&mut self, depth: u32, full_waves: bool) -> Vec<Step> {
        let more = if self.focus == Focus::Waves { 3 } else { 0 };
        let count = 1 + self.e.rng.below(if depth == 0 { 4 } else { 2 }) + more;
        (0..count).map(|_| self.step(depth, full_waves)).collect()
    }

    fn step(&mut self, depth: u32, full_waves: bool) -> Step {
        let choice = match self.focus {
            Focus::Waves if !self.e.rng.chance(3) => 3,
            _ => self.e.rng.below(8),
        };
        match choice {
            0 | 1 if depth < 2 => {
                self.e.lds = [Access::None; LDS.len()];
                let mut count = self.e.any(U32.into(), 2, true);
                count = Expr::new(U32, "((u32)($0) % 4 + 1)", vec![count]);
                Step::Loop { depth, count, steps: self.steps(depth + 1, full_waves) }
            }
            2 if depth < 2 => {
                self.e.lds = [Access::None; LDS.len()];
                let condition = self.e.condition(3, true);
                Step::If { condition, steps: self.steps(depth + 1, full_waves) }
            }
            3 | 4 => self.wave(full_waves),
            6 if depth < 2 && self.e.rng.chance(2) => self.tree_reduction(depth),
            5 if depth < 2 => {
                // Loops over arrays between barriers.
                let phases = (0..2 + self.e.rng.below(2)).map(|_| {
                    self.e.lds = [Access::Own; LDS.len()];
                    self.e.own = "lid".to_string();
                    let body = (0..1 + self.e.rng.below(2)).map(|_| self.stream()).collect();
                    Step::Phase { noinline: false, body }
                });
                let steps = phases.collect();
                let count = Expr::new(U32, "((u32)a_u8 % 3 + 1)", Vec::new());
                Step::Loop { depth, count, steps }
            }
            _ => {
                for i in 0..LDS.len() {
                    self.e.lds[i] = match self.e.rng.below(3) {
                        0 => Access::Read,
                        1 => atomics::access(self.e.rng, i),
                        _ => Access::None,
                    };
                }
                // A permutation of the indices.
                let (factor, offset) = (1 + 2 * self.e.rng.below(128), self.e.rng.below(256));
                self.e.own = match self.e.rng.chance(2) {
                    true => "lid".to_string(),
                    false => format!("(lid * {factor} + {offset}) & 255"),
                };
                let length = 2 + self.e.rng.below(7) as u32;
                let body = self.block(length, 0, false);
                Step::Phase { noinline: self.e.rng.chance(4), body }
            }
        }
    }

    /// A reduction of an array in LDS, with a barrier after each of its eight steps.
    fn tree_reduction(&mut self, depth: u32) -> Step {
        self.e.lds = [Access::None; LDS.len()];
        let (name, u) =
            self.e.rng.pick(&[("w", "u32"), ("q", "u64"), ("h", "u16"), ("b", "u8"), ("x", "u32x4")]);
        let operation = self.e.rng.pick(&["+", "^", "*", "-"]);
        let half = format!("(128u >> g{depth})");
        let product = if u == "u16" || u == "u8" { "1u * " } else { "" };
        let text = format!(
            "if (lid < {half}) l->{name}[lid] = ({u})({product}({u})l->{name}[lid] {operation} ({u})l->{name}[lid + {half}]);"
        );
        let body = vec![Stmt::new(text, Vec::new()), self.assign()];
        let steps = vec![Step::Phase { noinline: false, body }];
        Step::Loop { depth, count: Expr::new(U32, "8u", Vec::new()), steps }
    }

    fn wave(&mut self, full_waves: bool) -> Step {
        const IN_FULL_WAVES: [&str; 20] = [
            "wave_uniform",
            "wave_row_share",
            "wave_row_xmask",
            "wave_eighth",
            "wave_permlane",
            "wave_permlanex",
            "wave_halves",
            "wave_quad_swizzle",
            "wave_last_of_row",
            "wave_wave_shift",
            "wave_write",
            "wave_inclusive_sum",
            "wave_read",
            "wave_shuffle",
            "wave_push",
            "wave_quad",
            "wave_shift",
            "wave_rotate",
            "wave_mirror",
            "wave_zero",
        ];
        self.e.lds = [Access::None; LDS.len()];
        let mut operation = self.e.rng.pick(&["wave_ballot", "wave_first", "wave_count"]);
        let mut condition = self.e.condition(2, false);
        if full_waves && !self.e.rng.chance(3) {
            operation = if self.e.rng.chance(9) { "wave_swap" } else { self.e.rng.pick(&IN_FULL_WAVES) };
            condition = Expr::new(I32, "1", Vec::new());
        }
        let x = self.e.any(U32.into(), 3, false);
        let y = self.e.any(U32.into(), 3, false);
        let scalar = self.e.rng.pick(&[U32, U64, U8, I32]);
        let target = Expr::new(scalar, format!("s->{}_{}", scalar.name(), self.e.rng.below(2)), Vec::new());
        Step::Wave { operation, target, condition, x, y }
    }

    fn block(&mut self, length: u32, depth: u32, in_loop: bool) -> Block {
        let scope = self.e.scope.len();
        let block = (0..length).map(|_| self.statement(depth, in_loop)).collect();
        self.e.scope.truncate(scope);
        block
    }

    fn target(&mut self) -> Option<Variable> {
        let list: Vec<usize> = (0..self.e.scope.len()).filter(|i| self.e.scope[*i].writable).collect();
        let index = *list.get(self.e.rng.below(list.len() as u64) as usize)?;
        Some(self.e.scope[index].clone())
    }

    fn statement(&mut self, depth: u32, in_loop: bool) -> Stmt {
        let stores = matches!(self.focus, Focus::Memory | Focus::Atomics);
        let choice = match depth {
            _ if stores && self.e.rng.chance(2) => 5,
            0..3 => self.e.rng.below(20),
            _ => self.e.rng.below(12),
        };
        match choice {
            0..=2 => self.assign(),
            3 | 4 => {
                let scalar = self.e.scalar();
                let ty = Ty::new(scalar, if self.e.rng.chance(4) { self.e.rng.pick(&LANES) } else { 1 });
                let uniform = self.e.rng.chance(4);
                let value = self.e.any(ty, 5, uniform);
                let name = self.name("t");
                // A local variable is not uniform after assignments in branches.
                self.e.scope.push(variable(name.clone(), ty, uniform, !uniform));
                Stmt::new(format!("{ty} {name} = $0;"), vec![value])
            }
            5..=8 if self.e.in_kernel => self.store(),
            9 if self.e.in_kernel => self.packed(),
            10 if self.e.in_kernel && self.iterations == 1 => self.stream(),
            11 if in_loop => {
                let condition = self.e.condition(2, false);
                let word = self.e.rng.pick(&["break", "continue"]);
                Stmt::new(format!("if ($0) {word};"), vec![condition])
            }
            11 if self.e.in_kernel && self.e.rng.chance(3) => {
                let condition = self.e.condition(2, false);
                Stmt::new("if ($0) return;", vec![condition])
            }
            12 | 13 => {
                let uniform = self.e.rng.chance(3);
                let condition = self.e.condition(3, uniform);
                let blocks = vec![self.nested(depth, in_loop), self.nested(depth, in_loop)];
                let both = self.e.rng.chance(2);
                let text = if both { "if ($0) @0 else @1" } else { "if ($0) @0" };
                let count = 1 + both as usize;
                Stmt {
                    text: text.to_string(),
                    exprs: vec![condition],
                    blocks: blocks.into_iter().take(count).collect(),
                }
            }
            14..=17 if self.iterations < 16 => self.repeat(depth),
            18 => {
                let uniform = self.e.rng.chance(3);
                let value = self.e.any(U32.into(), 3, uniform);
                let blocks: Vec<Block> = (0..4).map(|_| self.nested(depth, false)).collect();
                let [a, b, c] = [self.e.rng.below(3), 3 + self.e.rng.below(3), 6 + self.e.rng.below(2)];
                let fall = if self.e.rng.chance(2) { "break; " } else { "" };
                let text = format!(
                    "switch ((u32)($0) & 7) {{ case {a}: @0 {fall}case {b}: @1 break; case {c}: @2 break; default: @3 }}"
                );
                Stmt { text, exprs: vec![value], blocks }
            }
            _ => self.assign(),
        }
    }

    fn nested(&mut self, depth: u32, in_loop: bool) -> Block {
        let length = 1 + self.e.rng.below(3) as u32;
        self.block(length, depth + 1, in_loop)
    }

    pub(super) fn assign(&mut self) -> Stmt {
        let Some(v) = self.target() else { return Stmt::new(";", Vec::new()) };
        let size = 3 + self.e.rng.below(8) as u32;
        let value = self.e.any(v.ty, size, false);
        Stmt::new(format!("{} = $0;", v.name), vec![value])
    }

    fn repeat(&mut self, depth: u32) -> Stmt {
        let uniform = !self.e.rng.chance(3);
        let limit = if self.iterations == 1 { self.e.rng.pick(&[3, 5, 9, 20]) } else { 3 };
        let trips = self.e.any(U32.into(), 2, uniform);
        let name = self.name("k");
        let before = self.iterations;
        self.iterations *= limit;
        let scope = self.e.scope.len();
        self.e.scope.push(variable(name.clone(), U32.into(), uniform, false));
        let body = match self.e.in_kernel && self.e.rng.chance(3) {
            true => (0..1 + self.e.rng.below(3)).map(|_| self.accumulate()).collect(),
            false => self.nested(depth, true),
        };
        self.e.scope.truncate(scope);
        self.iterations = before;
        let trips = match self.e.rng.chance(3) {
            true => Expr::new(U32, format!("{}u", 1 + self.e.rng.below(limit as u64)), Vec::new()),
            false => Expr::new(U32, format!("((u32)($0) % {limit})"), vec![trips]),
        };
        let text = match self.e.rng.below(4) {
            0 => format!("for (u32 {name} = $0; {name}-- > 0;) @0"),
            1 => format!("{{ u32 {name} = 0; do @0 while (++{name} < ($0)); }}"),
            _ => format!("for (u32 {name} = 0; {name} < ($0); {name}++) @0"),
        };
        Stmt { text, exprs: vec![trips], blocks: vec![body] }
    }

    /// A loop over arrays, which the compiler does not unroll: its trip count is an argument of the kernel.
    /// The offsets of its accesses often do not change in the loop.
    fn stream(&mut self) -> Stmt {
        let name = self.name("k");
        let scope = self.e.scope.len();
        self.e.scope.push(variable(name.clone(), U32.into(), true, false));
        let body = (0..1 + self.e.rng.below(3)).map(|_| self.accumulate()).collect();
        self.e.scope.truncate(scope);
        let argument = self.e.rng.pick(&["a_u8", "a_u16", "a_u32", "lid"]);
        let (least, modulus) = (2 + self.e.rng.below(6), self.e.rng.pick(&[3, 13, 20]));
        let trips = Expr::new(U32, format!("((u32){argument} % {modulus} + {least})"), Vec::new());
        let text = format!("for (u32 {name} = 0; {name} < $0; {name}++) @0");
        Stmt { text, exprs: vec![trips], blocks: vec![body] }
    }

    /// Applies an instruction on packed elements, often with a constant.
    fn packed(&mut self) -> Stmt {
        let Some(v) = self.e.scope.iter().rfind(|v| v.name.starts_with("s->v")).cloned() else {
            return self.assign();
        };
        let [a, b] = [(); 2]
            .map(|()| if self.e.rng.chance(2) { self.e.constant(v.ty) } else { self.e.any(v.ty, 2, false) });
        let (name, ty, unsigned) = (&v.name, v.ty, v.ty.of(v.ty.scalar.unsigned()));
        let operation = self.e.rng.pick(&["+", "-", "*"]);
        let text = match v.ty.scalar.is_float() {
            true if v.ty.scalar == F32 && self.e.rng.chance(2) => {
                format!("{name} = __builtin_elementwise_fma({name}, ({ty})($0), ({ty})($1));")
            }
            true => format!("{name} = ({name} {operation} ($0)) * ($1);"),
            false => format!(
                "{name} = AS({ty}, (AS({unsigned}, {name}) {operation} AS({unsigned}, $0)) * AS({unsigned}, $1));"
            ),
        };
        Stmt::new(text, vec![a, b])
    }

    /// Adds an element of an array to a variable or to another element.
    fn accumulate(&mut self) -> Stmt {
        let counter = self.e.scope.iter().rfind(|v| v.name.starts_with('k')).map(|v| v.name.clone());
        if let (Some(counter), true) = (counter, self.e.rng.chance(3)) {
            let own = self.e.own.clone();
            let scalar = self.e.rng.pick(&[U8, U8, U16, U32]);
            let value = self.e.any(scalar.into(), 2, false);
            let bytes = scalar.bits() / 8;
            let text = match self.e.rng.below(3) {
                0 if self.e.lds[0] == Access::Own => format!("l->w[{own}] += (u32)($0);"),
                1 if self.e.lds[1] == Access::Own => format!("l->b[{own}] ^= (u8)($0);"),
                _ => format!("STORE(GLB, {}, own + {bytes} * {counter}, $0);", scalar.name()),
            };
            return Stmt::new(text, vec![value]);
        }
        let [to, from] =
            [self.e.rng.pick(&[U32, U32, I64, U8]), self.e.rng.pick(&[U8, U8, I8, U16, I16, U32, U64])];
        let uniform = self.e.rng.chance(2);
        let value = self.e.stream(from.into(), uniform);
        let operation = self.e.rng.pick(&["^", "+", "+", "* 3 +"]);
        let (to, unsigned, index) = (to.name(), to.unsigned().name(), self.e.rng.below(2));
        Stmt::new(
            format!("s->{to}_{index} = ({to})(({unsigned})s->{to}_{index} {operation} ({unsigned})($0));"),
            vec![value],
        )
    }

    /// A store to private arrays, LDS or global memory.
    fn store(&mut self) -> Stmt {
        let index = self.e.any(U32.into(), 2, false);
        let of = |s: Scalar, lanes: u32, text: &str, g: &mut Self| {
            let value = g.e.any(Ty::new(s, lanes), 4, false);
            Stmt::new(text, vec![index.clone(), value])
        };
        let choice = match self.focus {
            Focus::Atomics if !self.e.rng.chance(4) => self.e.rng.pick(&[12, 17, 13]),
            _ => self.e.rng.below(18),
        };
        match choice {
            16 => self.copy(index),
            17 => self.own_atomic(),
            0 => of(U32, 1, "p->w[($0) & 15] = $1;", self),
            1 => of(U32, 1, "p->u.w[($0) & 7] = $1;", self),
            2 => of(U16, 1, "p->u.h[($0) & 15] = $1;", self),
            3 => of(U8, 1, "p->u.b[($0) & 31] = $1;", self),
            4 => of(U64, 1, "p->u.q[($0) & 3] = $1;", self),
            5 => of(F32, 1, "p->f[($0) & 7] = $1;", self),
            6 => of(U32, 4, "p->v[($0) & 3] = $1;", self),
            7 => of(U32, 1, "p->t[($0) & 3] = p->t[($1) & 3];", self),
            8 => of(U16, 1, "p->t[($0) & 3].b[(($0) >> 2) & 1] = $1;", self),
            9 => of(U64, 1, "p->t[($0) & 3].c = $1;", self),
            10 | 11 => {
                let ty = Ty::new(self.e.integer(), self.e.rng.pick(&[1, 1, 2, 4, 8]));
                let end = OWN_BYTES + 1 - ty.scalar.bits() / 8 * ty.lanes;
                let offset = if self.e.rng.chance(2) {
                    self.e.rng.below(end as u64).to_string()
                } else {
                    format!("($0) % {end}")
                };
                of(ty.scalar, ty.lanes, &format!("STORE(GLB, {ty}, own + ({offset}), $1);"), self)
            }
            12 => self.global_atomic(index),
            _ => self.lds_store(index),
        }
    }
}
