//! Functions as text. `parse` reads what this prints; `docs/compiled-engine.md` describes the form.

use crate::function::Function;
use crate::inst::{Cc, Class, Inst, Int1, Int2, Mem, Size, Src, V, Width};
use crate::operands::{each_target, visit_reads, written};
use std::fmt::{Display, Formatter, Result, Write};

/// The names of the operators of an enumeration.
pub(crate) type Names<T> = &'static [(T, &'static str)];

pub(crate) const INT2: Names<Int2> = &[
    (Int2::Add, "add"),
    (Int2::Sub, "sub"),
    (Int2::Mul, "mul"),
    (Int2::And, "and"),
    (Int2::Or, "or"),
    (Int2::Xor, "xor"),
    (Int2::Shl, "shl"),
    (Int2::Shr, "shr"),
    (Int2::Sar, "sar"),
];

pub(crate) const INT1: Names<Int1> = &[
    (Int1::Not, "not"),
    (Int1::Neg, "neg"),
    (Int1::CountOnes, "count_ones"),
    (Int1::LeadingZeros, "leading_zeros"),
    (Int1::TrailingZeros, "trailing_zeros"),
    (Int1::SwapBytes, "swap_bytes"),
    (Int1::SignExtend32, "sign_extend"),
    (Int1::ZeroExtend32, "zero_extend"),
];

pub(crate) const CC: Names<Cc> = &[
    (Cc::Eq, "eq"),
    (Cc::Ne, "ne"),
    (Cc::LtS, "lts"),
    (Cc::LeS, "les"),
    (Cc::GtS, "gts"),
    (Cc::GeS, "ges"),
    (Cc::LtU, "ltu"),
    (Cc::LeU, "leu"),
    (Cc::GtU, "gtu"),
    (Cc::GeU, "geu"),
];

pub(crate) const SIZES: Names<Size> = &[(Size::B1, "1"), (Size::B2, "2"), (Size::B4, "4"), (Size::B8, "8")];

pub(crate) const WIDTHS: Names<Width> = &[(Width::W32, "32"), (Width::W64, "64")];

/// The element widths of vector instructions: `wide` is 64 bits.
pub(crate) const ELEMENTS: Names<bool> = &[(false, "32"), (true, "64")];

fn name<T: Copy + PartialEq>(names: Names<T>, of: T) -> &'static str {
    names.iter().find(|(value, _)| *value == of).map_or("?", |(_, name)| name)
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write_function(f, self, &|v| value_name(self, v), &|_, _| Ok(()))
    }
}

/// The name of a value: its class and number.
pub(crate) fn value_name(function: &Function, v: V) -> String {
    let class = match function.classes.get(v.index()) {
        Some(Class::Int) => 'i',
        Some(Class::Vec) => 'v',
        None => '?',
    };
    format!("{class}{}", v.0)
}

/// Writes a function. `before` writes lines in front of an instruction.
pub(crate) fn write_function(
    out: &mut dyn Write,
    function: &Function,
    value: &dyn Fn(V) -> String,
    before: &dyn Fn(&mut dyn Write, usize) -> Result,
) -> Result {
    let list = |values: &[V]| values.iter().map(|v| value(*v)).collect::<Vec<_>>().join(", ");
    writeln!(out, "function({}) {{", list(&function.params))?;
    if !function.pinned.is_empty() {
        writeln!(out, "    pin {}", list(&function.pinned))?;
    }
    let (unused, labels) = unmentioned(function);
    if !unused.is_empty() {
        writeln!(out, "    unused {}", list(&unused))?;
    }
    if let Some(labels) = labels {
        writeln!(out, "    labels {labels}")?;
    }
    for (n, words) in function.constants.iter().enumerate() {
        // One word for all, if they are equal.
        let count = if words.iter().all(|word| *word == words[0]) { 1 } else { 8 };
        let words: Vec<String> = words[..count].iter().map(|word| format!("{word:#x}")).collect();
        writeln!(out, "    c{n} = {}", words.join(", "))?;
    }
    for (i, inst) in function.insts.iter().enumerate() {
        before(out, i)?;
        write_line(out, inst, value)?;
    }
    writeln!(out, "}}")
}

/// Writes an instruction on a line of its own.
pub(crate) fn write_line(out: &mut dyn Write, inst: &Inst, value: &dyn Fn(V) -> String) -> Result {
    let indentation = if matches!(inst, Inst::Label(_)) { "" } else { "    " };
    writeln!(out, "{indentation}{}", inst_text(inst, value))
}

/// Returns the values that no instruction mentions, and the number of labels if it is greater than the
/// instructions show.
fn unmentioned(function: &Function) -> (Vec<V>, Option<u32>) {
    let mut mentioned = vec![false; function.classes.len()];
    let mut mention = |v: V| {
        if let Some(mentioned) = mentioned.get_mut(v.index()) {
            *mentioned = true;
        }
    };
    function.params.iter().chain(&function.pinned).copied().for_each(&mut mention);
    let mut labels = 0;
    for inst in &function.insts {
        written(inst).into_iter().for_each(&mut mention);
        visit_reads(inst, &mut |read| mention(read.v));
        each_target(inst, |label| labels = labels.max(label.0 + 1));
        if let Inst::Label(label) = inst {
            labels = labels.max(label.0 + 1);
        }
    }
    let unused = (0..).zip(mentioned).filter(|(_, mentioned)| !mentioned).map(|(n, _)| V(n)).collect();
    (unused, (labels != function.labels).then_some(function.labels))
}

/// Returns an instruction as text; `value` names values.
pub(crate) fn inst_text(inst: &Inst, value: &dyn Fn(V) -> String) -> String {
    let src = |src: &Src| match *src {
        Src::Value(v) => value(v),
        Src::Imm(imm) => imm.to_string(),
    };
    let mem = |mem: &Mem| match mem.disp {
        0 => format!("[{}]", value(mem.base)),
        disp if disp < 0 => format!("[{} - {}]", value(mem.base), disp.unsigned_abs()),
        disp => format!("[{} + {disp}]", value(mem.base)),
    };
    let args = |args: &[Src]| args.iter().map(src).collect::<Vec<_>>().join(", ");
    let imm = |imm: &Option<u8>| imm.map_or(String::new(), |imm| format!(", #{imm}"));
    let operation = match inst {
        Inst::Const { bits, .. } => format!("const {bits:#x}"),
        Inst::Move { a, .. } => format!("move {}", value(*a)),
        Inst::Int2 { op, width, a, b, .. } => {
            format!("{}.{} {}, {}", name(INT2, *op), name(WIDTHS, *width), value(*a), src(b))
        }
        Inst::Int1 { op, width, a, .. } => {
            format!("{}.{} {}", name(INT1, *op), name(WIDTHS, *width), value(*a))
        }
        Inst::Compare { cc, width, a, b, .. } => {
            format!("compare.{}.{} {}, {}", name(CC, *cc), name(WIDTHS, *width), value(*a), src(b))
        }
        Inst::Select { cond, a, b, .. } => format!("select {}, {}, {}", value(*cond), value(*a), value(*b)),
        Inst::Load { size, from, .. } => format!("load.{} {}", name(SIZES, *size), mem(from)),
        Inst::Store { size, to, v } => format!("store.{} {}, {}", name(SIZES, *size), mem(to), src(v)),
        Inst::Call { function, args: all, .. } => format!("call {function:#x}({})", args(all)),
        Inst::ColdCall { function, arg } => format!("cold_call {function:#x}({})", value(*arg)),
        Inst::Return { v } => format!("return {}", src(v)),
        Inst::Label(label) => format!("L{}:", label.0),
        Inst::Jump(to) => format!("jump L{}", to.0),
        Inst::Branch { cc, width, a, b, to } => {
            format!("branch.{}.{} {}, {}, L{}", name(CC, *cc), name(WIDTHS, *width), value(*a), src(b), to.0)
        }
        Inst::BranchAny { a, b, none, to } => {
            let kind = if *none { "branch_none" } else { "branch_any" };
            format!("{kind} {}, {}, L{}", value(*a), value(*b), to.0)
        }
        Inst::Table { index, to } => {
            let labels: String = to.iter().map(|to| format!(", L{}", to.0)).collect();
            format!("table {}{labels}", value(*index))
        }
        Inst::VecConst { constant, .. } => format!("vconst c{constant}"),
        Inst::VecLoad { from, foldable, .. } => {
            format!("vload{} {}", if *foldable { ".foldable" } else { "" }, mem(from))
        }
        Inst::VecStore { to, v } => format!("vstore {}, {}", mem(to), value(*v)),
        Inst::VecStream { to, v } => format!("vstream {}, {}", mem(to), value(*v)),
        Inst::SplatLoad { from, .. } => format!("splat_load {}", mem(from)),
        Inst::Rm { code, b, imm: n, .. } => format!("{} {}{}", code.shape().name, value(*b), imm(n)),
        Inst::Rvm { code, a, b, imm: n, .. } => {
            format!("{} {}, {}{}", code.shape().name, value(*a), value(*b), imm(n))
        }
        Inst::Fma { wide, a, b, c, .. } => {
            format!("fma.{} {}, {}, {}", name(ELEMENTS, *wide), value(*a), value(*b), value(*c))
        }
        Inst::Blend { wide, a, b, mask, .. } => {
            format!("blend.{} {}, {}, {}", name(ELEMENTS, *wide), value(*a), value(*b), value(*mask))
        }
        Inst::UpperHalf { b, .. } => format!("upper_half {}", value(*b)),
        Inst::Splat { wide, a, .. } => format!("splat.{} {}", name(ELEMENTS, *wide), value(*a)),
        Inst::LowInt { a, .. } => format!("low_int {}", value(*a)),
        Inst::SignBits { a, .. } => format!("sign_bits {}", value(*a)),
        Inst::LoadHalves { low, high, .. } => format!("load_halves {}, {}", mem(low), mem(high)),
        Inst::StoreHalves { v, low, high } => {
            format!("store_halves {}, {}, {}", value(*v), mem(low), mem(high))
        }
        Inst::Gather { from, offsets, .. } => format!("gather {}, {}", mem(from), value(*offsets)),
        Inst::Prefetch { from } => format!("prefetch {}", mem(from)),
        Inst::LoadMxcsr { from } => format!("load_mxcsr {}", mem(from)),
    };
    match written(inst) {
        Some(d) => format!("{} = {operation}", value(d)),
        None => operation,
    }
}
