//! The function builder.

use crate::code::Code;
use crate::inst::{Cc, Class, Inst, Int1, Int2, Label, Mem, Size, Src, V, Width};
use crate::operands::{each_read, written};
use std::collections::{HashMap, HashSet};

/// A function with integer parameters and an integer result: a list of instructions. Values are local to it.
#[derive(Debug, Default, Clone)]
pub struct Function {
    pub(crate) insts: Vec<Inst>,
    /// The class of each value.
    pub(crate) classes: Vec<Class>,
    pub(crate) params: Vec<V>,
    pub(crate) labels: u32,
    pub(crate) constants: Vec<[u32; 8]>,
    constant_numbers: HashMap<[u32; 8], u32>,
    /// The instructions of the loop that is being built; `insts` has those in front of it.
    body: Option<Vec<Inst>>,
    /// For each value, whether it was defined outside of a loop.
    outside: Vec<bool>,
    /// The constants of the loop that is being built.
    loop_constants: HashMap<u32, V>,
    /// The operands of instructions that were hoisted in front of the loop that is being built.
    hoisted: HashSet<V>,
    /// Values that are assigned in a loop though instructions in front of it read them as loop-invariant.
    pub(crate) not_invariant: Vec<V>,
    /// See [`Function::pin`].
    pub(crate) pinned: Vec<V>,
}

impl Function {
    /// Creates an empty function with `params` integer parameters.
    pub fn new(params: usize) -> Function {
        let mut function = Function::default();
        for _ in 0..params {
            let v = function.fresh(Class::Int);
            function.params.push(v);
        }
        function
    }

    /// Returns the instructions.
    pub fn insts(&self) -> &[Inst] {
        &self.insts
    }

    /// Calls `change` with each instruction.
    pub fn edit(&mut self, change: impl FnMut(&mut Inst)) {
        self.insts.iter_mut().for_each(change);
    }

    /// Returns the parameters.
    pub fn params(&self) -> &[V] {
        &self.params
    }

    /// Returns the constant vectors by their numbers.
    pub fn constants(&self) -> &[[u32; 8]] {
        &self.constants
    }

    /// Returns the number of values.
    pub fn values(&self) -> usize {
        self.classes.len()
    }

    /// Returns the number of labels.
    pub fn labels(&self) -> usize {
        self.labels as usize
    }

    /// Returns whether a loop has begun that has not ended.
    pub(crate) fn is_in_loop(&self) -> bool {
        self.body.is_some()
    }

    /// Sets the classes of all values, which are defined outside of loops.
    pub(crate) fn set_values(&mut self, classes: impl Iterator<Item = Class>) {
        self.classes = classes.collect();
        self.outside = vec![true; self.classes.len()];
        self.constant_numbers = self.constants.iter().copied().zip(0..).collect();
    }

    /// Returns the `n`-th parameter.
    pub fn param(&self, n: usize) -> V {
        self.params[n]
    }

    /// Creates a value, which is not assigned yet.
    pub fn fresh(&mut self, class: Class) -> V {
        self.classes.push(class);
        self.outside.push(self.body.is_none());
        V(self.classes.len() as u32 - 1)
    }

    /// Gives a value priority in register allocation: for values that are used everywhere, but nowhere often.
    /// At most six values may be pinned.
    pub fn pin(&mut self, v: V) {
        self.pinned.push(v);
    }

    /// Creates a label, which is not bound yet.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Returns the class of a value.
    pub fn class(&self, v: V) -> Class {
        self.classes[v.0 as usize]
    }

    /// Appends an instruction.
    pub fn push(&mut self, inst: Inst) {
        self.body.as_mut().unwrap_or(&mut self.insts).push(inst);
    }

    /// Begins a loop. [`Function::hoist`] emits instructions in front of it. Vector operations whose
    /// operands are defined outside of the loop are hoisted automatically; these operands must not be
    /// assigned in it (rule 5 of [`verify()`](crate::verify())).
    pub fn begin_loop(&mut self) {
        debug_assert!(self.body.is_none());
        self.loop_constants.clear();
        self.hoisted.clear();
        self.body = Some(Vec::new());
    }

    /// Ends the loop.
    pub fn end_loop(&mut self) {
        let body = self.body.take().unwrap_or_default();
        let assigned = body.iter().filter_map(written).filter(|d| self.hoisted.contains(d));
        self.not_invariant.extend(assigned);
        self.insts.extend(body);
    }

    /// Returns whether an instruction of the current loop reads a value.
    pub fn is_read_in_loop(&self, v: V) -> bool {
        let mut found = false;
        for inst in self.body.iter().flatten() {
            each_read(inst, |read| found |= read.v == v);
        }
        found
    }

    /// Returns whether a value is defined outside of any loop.
    pub fn is_outside_loop(&self, v: V) -> bool {
        self.outside[v.0 as usize]
    }

    /// Emits instructions in front of the current loop. Values that they define count as defined outside of
    /// it, if their operands are.
    pub fn hoist<T>(&mut self, make: impl FnOnce(&mut Function) -> T) -> T {
        let body = self.body.take();
        let made = make(self);
        self.body = body;
        made
    }

    /// Emits an instruction with a result.
    fn with(&mut self, class: Class, make: impl FnOnce(V) -> Inst) -> V {
        let d = self.fresh(class);
        self.push(make(d));
        d
    }

    pub fn iconst(&mut self, bits: u64) -> V {
        self.with(Class::Int, |d| Inst::Const { d, bits })
    }

    pub fn assign(&mut self, d: V, a: V) {
        self.push(Inst::Move { d, a });
    }

    pub fn int2(&mut self, op: Int2, width: Width, a: V, b: impl Into<Src>) -> V {
        let b = b.into();
        self.with(Class::Int, |d| Inst::Int2 { op, width, d, a, b })
    }

    pub fn int1(&mut self, op: Int1, width: Width, a: V) -> V {
        self.with(Class::Int, |d| Inst::Int1 { op, width, d, a })
    }

    pub fn compare(&mut self, cc: Cc, width: Width, a: V, b: impl Into<Src>) -> V {
        let b = b.into();
        self.with(Class::Int, |d| Inst::Compare { cc, width, d, a, b })
    }

    pub fn select(&mut self, cond: V, a: V, b: V) -> V {
        self.with(Class::Int, |d| Inst::Select { d, cond, a, b })
    }

    pub fn load(&mut self, size: Size, base: V, disp: i32) -> V {
        self.with(Class::Int, |d| Inst::Load { size, d, from: Mem { base, disp } })
    }

    pub fn store(&mut self, size: Size, base: V, disp: i32, v: impl Into<Src>) {
        let v = v.into();
        self.push(Inst::Store { size, to: Mem { base, disp }, v });
    }

    /// Emits a vector instruction, in front of the current loop if its operands are defined outside of it.
    fn vector(&mut self, sources: &[V], make: impl FnOnce(V) -> Inst) -> V {
        if self.body.is_some() && sources.iter().all(|v| self.is_outside_loop(*v)) {
            if cfg!(debug_assertions) {
                self.hoisted.extend(sources);
            }
            return self.hoist(|f| f.with(Class::Vec, make));
        }
        self.with(Class::Vec, make)
    }

    /// Emits a call of a function that returns an integer.
    pub fn call(&mut self, function: u64, args: &[Src]) -> V {
        let args = args.to_vec();
        self.with(Class::Int, |d| Inst::Call { function, args, d: Some(d) })
    }

    /// Branches if any bit is set in both vectors.
    pub fn branch_if_any(&mut self, a: V, b: V, to: Label) {
        self.push(Inst::BranchAny { a, b, none: false, to });
    }

    /// Branches if no bit is set in both vectors.
    pub fn branch_unless_any(&mut self, a: V, b: V, to: Label) {
        self.push(Inst::BranchAny { a, b, none: true, to });
    }

    pub fn branch(&mut self, cc: Cc, width: Width, a: V, b: impl Into<Src>, to: Label) {
        let b = b.into();
        self.push(Inst::Branch { cc, width, a, b, to });
    }

    /// Emits a constant vector, in front of the current loop, if there is one.
    pub fn vconst(&mut self, words: [u32; 8]) -> V {
        let next = self.constants.len() as u32;
        let constant = *self.constant_numbers.entry(words).or_insert(next);
        if constant == next {
            self.constants.push(words);
        }
        let in_loop = self.body.is_some();
        if let (true, Some(v)) = (in_loop, self.loop_constants.get(&constant)) {
            return *v;
        }
        let v = self.hoist(|f| f.with(Class::Vec, |d| Inst::VecConst { d, constant }));
        if in_loop {
            self.loop_constants.insert(constant, v);
        }
        v
    }

    pub fn vload(&mut self, base: V, disp: i32, foldable: bool) -> V {
        self.with(Class::Vec, |d| Inst::VecLoad { d, from: Mem { base, disp }, foldable })
    }

    pub fn vstore(&mut self, base: V, disp: i32, v: V) {
        self.push(Inst::VecStore { to: Mem { base, disp }, v });
    }

    pub fn rm(&mut self, code: Code, b: V, imm: Option<u8>) -> V {
        self.vector(&[b], |d| Inst::Rm { code, d, b, imm })
    }

    pub fn rvm(&mut self, code: Code, a: V, b: V, imm: Option<u8>) -> V {
        self.vector(&[a, b], |d| Inst::Rvm { code, d, a, b, imm })
    }

    pub fn fma(&mut self, wide: bool, a: V, b: V, c: V) -> V {
        self.vector(&[a, b, c], |d| Inst::Fma { wide, d, a, b, c })
    }

    /// Selects `yes` in the elements whose mask has the highest bit set, else `no`.
    pub fn blend(&mut self, wide: bool, mask: V, yes: V, no: V) -> V {
        self.vector(&[mask, yes, no], |d| Inst::Blend { wide, d, a: no, b: yes, mask })
    }

    pub fn upper_half(&mut self, b: V) -> V {
        self.vector(&[b], |d| Inst::UpperHalf { d, b })
    }

    pub fn splat(&mut self, wide: bool, a: V) -> V {
        self.vector(&[a], |d| Inst::Splat { wide, d, a })
    }

    pub fn low_int(&mut self, a: V) -> V {
        self.with(Class::Int, |d| Inst::LowInt { d, a })
    }

    pub fn sign_bits(&mut self, a: V) -> V {
        self.with(Class::Int, |d| Inst::SignBits { d, a })
    }
}

/// Functions are equal if they have the same instructions, with the same numbers of values and labels.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.insts == other.insts
            && self.classes == other.classes
            && self.params == other.params
            && self.labels == other.labels
            && self.constants == other.constants
            && self.pinned == other.pinned
    }
}

impl From<V> for Src {
    fn from(v: V) -> Src {
        Src::Value(v)
    }
}

impl From<i32> for Src {
    fn from(v: i32) -> Src {
        Src::Imm(v)
    }
}
