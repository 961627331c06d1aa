//! Random functions with any control flow: loops, also with several entries, jump tables, unreachable blocks; with
//! calls, more values than registers, and loads that may be folded into their uses.

#![allow(dead_code, reason = "not every test uses everything")]

use super::Rng;
use super::abi::{Entry, called, clobber};
use super::eval::{Bytes, Callee, VEC1, VEC2, Vec1, Vec2, evaluate};
use super::operations::{CC, INT1, INT2, SIZES, WIDTHS};
use std::collections::HashSet;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Label, Mem, Size, Src, V, Width};
use wavesim_x64::{Code, Compiled, Function, Memory, Problem, verify};

/// The parts of memory, as offsets in bytes: results, what is loaded and stored, what is mostly loaded.
const DATA: i32 = 8192;
const CONSTANT_DATA: i32 = DATA + 512;
/// A number that cold calls increment: no foldable load reads it.
const NUMBER: i32 = DATA - 512;
const MEMORY: usize = CONSTANT_DATA as usize + 512;

called! {
    /// Returns the sum of its arguments with weights. Clobbers all caller-saved registers.
    fn sum(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) -> u64 {
        clobber();
        let args = [a, b, c, d, e, f, g, h];
        args.into_iter().zip(1..).fold(0, |sum, (v, n)| sum.wrapping_add(v.wrapping_mul(n)))
    }
}

called! {
    /// Increments a number in memory. Clobbers all caller-saved registers.
    fn increment(number: *mut u64) -> () {
        // SAFETY: generated functions pass the address of a number in their memory.
        unsafe { *number += 1 };
        clobber();
    }
}

fn callee(function: u64) -> Callee {
    if function == sum as *const () as u64 {
        |_, args| args.iter().zip(1..).fold(0, |sum, (v, n)| sum.wrapping_add(v.wrapping_mul(n)))
    } else {
        assert_eq!(function, increment as *const () as u64);
        |memory, args| {
            let number = u64::from_le_bytes(memory.load(args[0]));
            memory.store(args[0], &(number + 1).to_le_bytes());
            0
        }
    }
}

struct Graph {
    rng: Rng,
    f: Function,
    base: V,
    /// The address of a number that cold calls increment.
    number: V,
    /// Values that can be read here.
    ints: Vec<V>,
    vecs: Vec<V>,
    body: Vec<Inst>,
    constants: u32,
}

/// What ends a block.
enum End {
    Next,
    Jump(usize),
    Branch(usize),
    Table(Vec<usize>),
}

/// Builds a function of the memory's address and a number.
pub fn graph(seed: u64) -> Function {
    let mut rng = Rng(seed);
    let mut f = Function::new(2);
    let (base, argument) = (f.param(0), f.param(1));
    if rng.one_in(2) {
        f.pin(base);
    }
    let number = f.int2(Int2::Add, Width::W64, base, NUMBER);
    let fuel = f.fresh(Class::Int);
    f.push(Inst::Const { d: fuel, bits: 1 + rng.below(30) as u64 });
    let mut graph = Graph {
        rng,
        f,
        base,
        number,
        ints: vec![argument],
        vecs: Vec::new(),
        body: Vec::new(),
        constants: 0,
    };
    graph.variables();
    let blocks = 2 + graph.rng.below(9);
    let ends: Vec<End> = (0..blocks).map(|_| graph.end(blocks)).collect();
    let defined = defined_before(&ends);
    let labels: Vec<Label> = (0..=blocks).map(|_| graph.f.label()).collect();
    // The values that each block defines, besides assignments to variables.
    let own: Vec<Vec<(V, Class)>> = (0..blocks).map(|_| graph.own_values()).collect();
    let variables = (graph.ints.clone(), graph.vecs.clone());
    for n in 0..blocks {
        (graph.ints, graph.vecs) = variables.clone();
        for earlier in (0..blocks).filter(|earlier| defined[n] >> earlier & 1 == 1) {
            own[earlier].iter().for_each(|&(v, class)| graph.add(v, class));
        }
        graph.body.push(Inst::Label(labels[n]));
        let (op, width) = (Int2::Sub, Width::W64);
        graph.body.push(Inst::Int2 { op, width, d: fuel, a: fuel, b: Src::Imm(1) });
        let to = labels[blocks];
        graph.body.push(Inst::Branch { cc: Cc::Eq, width, a: fuel, b: Src::Imm(0), to });
        graph.block(&own[n], &variables);
        graph.finish(&ends[n], &labels);
    }
    graph.body.push(Inst::Label(labels[blocks]));
    let (ints, vecs) = variables;
    for (n, &v) in (0..).zip(&ints) {
        graph.body.push(Inst::Store { size: Size::B8, to: Mem { base, disp: 8 * n }, v: v.into() });
    }
    for (n, &v) in (0..).zip(&vecs) {
        graph.body.push(Inst::VecStore { to: Mem { base, disp: 1024 + 32 * n }, v });
    }
    graph.body.push(Inst::Return { v: ints[0].into() });
    graph.valid()
}

/// Returns for each block a set of the blocks that every path to it has passed.
fn defined_before(ends: &[End]) -> Vec<u64> {
    let mut defined = vec![u64::MAX; ends.len()];
    defined[0] = 0;
    loop {
        let before = defined.clone();
        for (n, end) in ends.iter().enumerate() {
            let after = defined[n] | 1 << n;
            let next = (n + 1).min(ends.len() - 1);
            let mut reach = |to: usize| defined[to] &= after;
            match end {
                End::Next => reach(next),
                End::Jump(to) => reach(*to),
                End::Branch(to) => {
                    reach(*to);
                    reach(next);
                }
                End::Table(all) => all.iter().for_each(|to| reach(*to)),
            }
        }
        if defined == before {
            return defined;
        }
    }
}

impl Graph {
    fn add(&mut self, v: V, class: Class) {
        match class {
            Class::Int => self.ints.push(v),
            Class::Vec => self.vecs.push(v),
        }
    }

    /// Defines variables, which every block may read and assign.
    fn variables(&mut self) {
        for n in 0..3 + self.rng.below(3) as u32 {
            let v = self.f.vconst([n, n << 28, 7, !n, 1, 2, 3, n * 0x0101_0101]);
            self.vecs.push(v);
            self.constants += 1;
        }
        for n in 0..1 + self.rng.below(16) {
            let v = self.f.iconst(self.rng.word() >> (4 * n));
            self.ints.push(v);
        }
        for _ in 0..1 + self.rng.below(24) {
            let (d, foldable) = (self.f.fresh(Class::Vec), self.rng.one_in(2));
            let from = self.constant_data();
            self.f.push(Inst::VecLoad { d, from, foldable });
            self.vecs.push(d);
        }
    }

    fn end(&mut self, blocks: usize) -> End {
        let any = |rng: &mut Rng| rng.below(blocks);
        match self.rng.below(8) {
            0 | 1 => End::Next,
            2 => End::Jump(any(&mut self.rng)),
            3 => End::Table((0..1 + self.rng.below(4)).map(|_| any(&mut self.rng)).collect()),
            _ => End::Branch(any(&mut self.rng)),
        }
    }

    fn own_values(&mut self) -> Vec<(V, Class)> {
        let class = |rng: &mut Rng| if rng.one_in(2) { Class::Int } else { Class::Vec };
        let classes: Vec<Class> = (0..self.rng.below(12)).map(|_| class(&mut self.rng)).collect();
        classes.into_iter().map(|class| (self.f.fresh(class), class)).collect()
    }

    fn mem(&mut self, data: i32, align: i32) -> Mem {
        let disp = data + self.rng.below(448) as i32 / align * align;
        Mem { base: self.base, disp }
    }

    fn constant_data(&mut self) -> Mem {
        self.mem(CONSTANT_DATA, 4)
    }

    /// Memory to load from.
    fn data(&mut self) -> Mem {
        if self.rng.one_in(2) { self.mem(DATA, 1) } else { self.constant_data() }
    }

    /// Memory to store to. Foldable loads read some of it.
    fn room(&mut self, align: i32) -> Mem {
        let data = if self.rng.one_in(40) { CONSTANT_DATA } else { DATA };
        self.mem(data, align)
    }

    fn int(&mut self) -> V {
        self.rng.pick(&self.ints)
    }

    fn vec(&mut self) -> V {
        self.rng.pick(&self.vecs)
    }

    fn src(&mut self) -> Src {
        if self.rng.one_in(3) { Src::Imm(self.rng.word() as i32 >> 16) } else { self.int().into() }
    }

    /// Emits the code of a block. `own` are the values that only it defines.
    fn block(&mut self, own: &[(V, Class)], variables: &(Vec<V>, Vec<V>)) {
        for &(v, class) in own {
            for _ in 0..self.rng.below(4) {
                match self.rng.below(6) {
                    0 => {
                        let d = self.rng.pick(&variables.0);
                        self.int_op(d);
                    }
                    1 | 2 => {
                        let d = self.rng.pick(&variables.1);
                        self.vec_op(d);
                    }
                    3 => self.burst(&variables.1),
                    _ => self.effect(),
                }
            }
            match class {
                Class::Int => self.int_op(v),
                Class::Vec => self.vec_op(v),
            }
            self.add(v, class);
        }
    }

    fn int_op(&mut self, d: V) {
        let (a, b, width) = (self.int(), self.src(), self.rng.pick(&WIDTHS));
        let inst = match self.rng.below(12) {
            0 => Inst::Const { d, bits: self.rng.word() >> self.rng.below(64) },
            1 => Inst::Move { d, a },
            2 => Inst::Int1 { op: self.rng.pick(&INT1), width, d, a },
            3 => Inst::Compare { cc: self.rng.pick(&CC), width, d, a, b },
            4 => Inst::Load { size: self.rng.pick(&SIZES), d, from: self.data() },
            5 => Inst::LowInt { d, a: self.vec() },
            6 => Inst::SignBits { d, a: self.vec() },
            7 | 8 => {
                let cond = self.f.fresh(Class::Int);
                self.body.push(Inst::Compare { cc: self.rng.pick(&CC), width, d: cond, a, b });
                if self.rng.one_in(3) {
                    self.effect();
                }
                Inst::Select { d, cond, a: self.int(), b: self.int() }
            }
            9 if self.rng.one_in(3) => {
                let args = (0..8).map(|_| self.src()).collect();
                Inst::Call { function: sum as *const () as u64, args, d: Some(d) }
            }
            _ => Inst::Int2 { op: self.rng.pick(&INT2), width, d, a, b },
        };
        self.body.push(inst);
    }

    fn vec_op(&mut self, d: V) {
        let (a, b, wide) = (self.vec(), self.vec(), self.rng.one_in(2));
        let inst = match self.rng.below(16) {
            0 => Inst::Move { d, a },
            1 => Inst::VecConst { d, constant: self.rng.below(self.constants as usize) as u32 },
            2 | 3 => Inst::VecLoad { d, from: self.constant_data(), foldable: wide },
            4 => Inst::VecLoad { d, from: self.data(), foldable: wide },
            5 => Inst::SplatLoad { d, from: self.data() },
            6 => Inst::Blend { wide, d, a, b, mask: self.vec() },
            7 => Inst::UpperHalf { d, b },
            8 => Inst::Splat { wide, d, a: self.int() },
            9 => Inst::LoadHalves { d, low: self.data(), high: self.data() },
            10 => {
                // Offsets within memory.
                let offsets = self.f.fresh(Class::Vec);
                let code = Code::VEX_Vpsrld_ymm_ymm_imm8;
                self.body.push(Inst::Rm { code, d: offsets, b: a, imm: Some(22) });
                Inst::Gather { d, from: Mem { base: self.base, disp: DATA - 1024 }, offsets }
            }
            11 => {
                // Exactly representable floats.
                let all: Vec<V> = (0..3).map(|_| self.small_float()).collect();
                Inst::Fma { wide: false, d, a: all[0], b: all[1], c: all[2] }
            }
            12 => {
                let Vec1(code, imm, _) = self.rng.pick(&VEC1);
                Inst::Rm { code, d, b, imm }
            }
            _ => {
                let Vec2(code, imm, _) = self.rng.pick(&VEC2);
                Inst::Rvm { code, d, a, b, imm }
            }
        };
        self.body.push(inst);
    }

    fn small_float(&mut self) -> V {
        let (small, float) = (self.f.fresh(Class::Vec), self.f.fresh(Class::Vec));
        let b = self.vec();
        self.body.push(Inst::Rm { code: Code::VEX_Vpsrld_ymm_ymm_imm8, d: small, b, imm: Some(22) });
        self.body.push(Inst::Rm { code: Code::VEX_Vcvtdq2ps_ymm_ymmm256, d: float, b: small, imm: None });
        float
    }

    /// Reads one vector several times in a row.
    fn burst(&mut self, variables: &[V]) {
        let b = self.vec();
        for _ in 0..3 + self.rng.below(4) {
            let d = self.rng.pick(variables);
            let Vec2(code, imm, _) = self.rng.pick(&VEC2);
            let a = if self.rng.one_in(2) { d } else { b };
            self.body.push(Inst::Rvm { code, d, a, b, imm });
        }
    }

    fn effect(&mut self) {
        let v = self.vec();
        let inst = match self.rng.below(12) {
            0 | 1 => Inst::Store { size: self.rng.pick(&SIZES), to: self.room(1), v: self.src() },
            2 | 3 => Inst::VecStore { to: self.room(1), v },
            4 => Inst::VecStream { to: self.room(32), v },
            5 => Inst::StoreHalves { v, low: self.room(1), high: self.room(1) },
            6 => Inst::Prefetch { from: self.data() },
            7 => Inst::ColdCall { function: increment as *const () as u64, arg: self.number },
            8 if self.rng.one_in(3) => {
                let args = (0..8).map(|_| self.src()).collect();
                Inst::Call { function: sum as *const () as u64, args, d: None }
            }
            _ => return,
        };
        self.body.push(inst);
    }

    fn finish(&mut self, end: &End, labels: &[Label]) {
        match end {
            End::Next => {}
            End::Jump(to) => self.body.push(Inst::Jump(labels[*to])),
            End::Table(to) => {
                let to = to.iter().map(|to| labels[*to]).collect();
                let index = self.int();
                self.body.push(Inst::Table { index, to });
            }
            End::Branch(to) => {
                let (to, width, cc) = (labels[*to], self.rng.pick(&WIDTHS), self.rng.pick(&CC));
                let (a, b) = (self.int(), self.src());
                if self.rng.one_in(3) {
                    let (a, b, none) = (self.vec(), self.vec(), self.rng.one_in(2));
                    self.body.push(Inst::BranchAny { a, b, none, to });
                } else if self.rng.one_in(2) {
                    let d = self.f.fresh(Class::Int);
                    self.body.push(Inst::Compare { cc, width, d, a, b });
                    let cc = self.rng.pick(&[Cc::Eq, Cc::Ne]);
                    self.body.push(Inst::Branch { cc, width, a: d, b: Src::Imm(0), to });
                } else {
                    self.body.push(Inst::Branch { cc, width, a, b, to });
                }
            }
        }
    }

    /// Changes the function until it keeps all rules: values that are first assigned in a loop get a first value,
    /// and loads that are not foldable are made so.
    fn valid(mut self) -> Function {
        let mut first: HashSet<V> = HashSet::new();
        loop {
            let mut f = self.f.clone();
            let mut order: Vec<V> = first.iter().copied().collect();
            order.sort();
            for d in order {
                f.push(match f.class(d) {
                    Class::Int => Inst::Const { d, bits: 5 },
                    Class::Vec => Inst::VecConst { d, constant: 0 },
                });
            }
            let start = f.insts().len();
            self.body.iter().for_each(|inst| f.push(inst.clone()));
            let Err(errors) = verify(&f) else { return f };
            for error in errors {
                match error.problem {
                    Problem::FirstAssignedInLoop(v) => {
                        // It may be live at several headers.
                        assert!(f.insts()[..start].iter().all(|inst| !assigns(inst, v)), "{error}\n{f}");
                        first.insert(v);
                    }
                    Problem::NotFoldable(v) => {
                        let mut entry = self.f.clone();
                        entry.edit(|inst| not_foldable(inst, v));
                        self.f = entry;
                        self.body.iter_mut().for_each(|inst| not_foldable(inst, v));
                    }
                    _ => panic!("{error}\n{f}"),
                }
            }
        }
    }
}

fn assigns(inst: &Inst, v: V) -> bool {
    matches!(inst, Inst::Const { d, .. } | Inst::VecConst { d, .. } if *d == v)
}

fn not_foldable(inst: &mut Inst, v: V) {
    if let Inst::VecLoad { d, foldable, .. } = inst
        && *d == v
    {
        *foldable = false;
    }
}

/// Memory whose address is a multiple of 32.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Line([u8; 32]);

fn memory(seed: u64) -> Vec<Line> {
    let mut rng = Rng(seed);
    (0..MEMORY / 32).map(|_| Line(std::array::from_fn(|_| rng.word() as u8))).collect()
}

fn bytes(lines: &[Line]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.0).collect()
}

/// Runs code and the evaluator, and returns whether results and memories are the same.
pub fn same_results(f: &Function, code: Compiled, seed: u64) -> bool {
    let mut lines = memory(seed);
    let base = lines.as_mut_ptr() as u64;
    let mut expected = Bytes { base, bytes: bytes(&lines) };
    let argument = Rng(!seed).word();
    let result = evaluate(f, &[base, argument], &mut expected, &callee, 1 << 20);
    let mut memory = Memory::new();
    let entry = memory.add(code).expect("memory");
    // SAFETY: the entry is that of a function of two integers with the calling convention of compiled functions, whose
    // code lives in `memory`; the evaluator has found that it accesses no other memory.
    let call: Entry = unsafe { std::mem::transmute(entry) };
    let returned = call(base, argument);
    returned == result && bytes(&lines) == expected.bytes
}
