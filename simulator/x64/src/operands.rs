//! The values that instructions read and write.

use crate::inst::{Class, Inst, Label, Mem, Size, Src, V, Width};

/// Returns the value that an instruction assigns.
pub(crate) fn written(inst: &Inst) -> Option<V> {
    match *inst {
        Inst::Const { d, .. }
        | Inst::Move { d, .. }
        | Inst::Int2 { d, .. }
        | Inst::Int1 { d, .. }
        | Inst::Compare { d, .. }
        | Inst::Select { d, .. }
        | Inst::Load { d, .. }
        | Inst::VecConst { d, .. }
        | Inst::VecLoad { d, .. }
        | Inst::SplatLoad { d, .. }
        | Inst::Rm { d, .. }
        | Inst::Rvm { d, .. }
        | Inst::Fma { d, .. }
        | Inst::Blend { d, .. }
        | Inst::UpperHalf { d, .. }
        | Inst::Splat { d, .. }
        | Inst::LowInt { d, .. }
        | Inst::SignBits { d, .. }
        | Inst::Gather { d, .. }
        | Inst::LoadHalves { d, .. } => Some(d),
        Inst::Call { d, .. } => d,
        Inst::Store { .. }
        | Inst::ColdCall { .. }
        | Inst::Return { .. }
        | Inst::Label(_)
        | Inst::Jump(_)
        | Inst::Branch { .. }
        | Inst::BranchAny { .. }
        | Inst::Table { .. }
        | Inst::VecStore { .. }
        | Inst::VecStream { .. }
        | Inst::StoreHalves { .. }
        | Inst::Prefetch { .. }
        | Inst::LoadMxcsr { .. } => None,
    }
}

/// Returns whether an instruction has no effect besides assigning its value.
pub(crate) fn is_pure(inst: &Inst) -> bool {
    !matches!(inst, Inst::Call { .. }) && written(inst).is_some()
}

/// A use of a value by an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read {
    pub v: V,
    /// The class that the instruction requires; `None` if that of its result.
    pub class: Option<Class>,
    pub immediate: Immediate,
}

/// Whether a use can take an immediate of 32 bits in place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Immediate {
    No,
    /// The immediate is sign-extended.
    SignExtended,
    /// The operation reads 32 bits.
    Truncated,
}

/// Calls `read` for each use of a value by an instruction.
pub(crate) fn each_read(inst: &Inst, mut read: impl FnMut(Read)) {
    use Immediate::{No, SignExtended, Truncated};
    let mut int = |v: &V, immediate| read(Read { v: *v, class: Some(Class::Int), immediate });
    let src = |src: &Src, immediate, int: &mut dyn FnMut(&V, Immediate)| {
        if let Src::Value(v) = src {
            int(v, immediate);
        }
    };
    match inst {
        Inst::Const { .. } | Inst::Label(_) | Inst::Jump(_) | Inst::VecConst { .. } => {}
        Inst::Move { a, .. } => read(Read { v: *a, class: None, immediate: SignExtended }),
        Inst::Int2 { width, a, b, .. }
        | Inst::Compare { width, a, b, .. }
        | Inst::Branch { width, a, b, .. } => {
            int(a, No);
            src(b, if *width == Width::W32 { Truncated } else { SignExtended }, &mut int);
        }
        Inst::Int1 { a, .. } | Inst::Splat { a, .. } => int(a, No),
        Inst::Select { cond, a, b, .. } => {
            int(cond, No);
            int(a, No);
            int(b, No);
        }
        Inst::Load { from, .. }
        | Inst::VecLoad { from, .. }
        | Inst::SplatLoad { from, .. }
        | Inst::Prefetch { from }
        | Inst::LoadMxcsr { from } => int(&from.base, No),
        Inst::Store { size, to, v } => {
            int(&to.base, No);
            src(v, if *size == Size::B8 { SignExtended } else { Truncated }, &mut int);
        }
        Inst::ColdCall { arg, .. } => int(arg, No),
        Inst::Call { args, .. } => args.iter().for_each(|arg| src(arg, SignExtended, &mut int)),
        Inst::Return { v } => src(v, SignExtended, &mut int),
        Inst::Table { index, .. } => int(index, No),
        Inst::LoadHalves { low, high, .. } => {
            int(&low.base, No);
            int(&high.base, No);
        }
        Inst::VecStore { to, v } | Inst::VecStream { to, v } => {
            int(&to.base, No);
            vector(*v, &mut read);
        }
        Inst::Rm { b, .. } | Inst::UpperHalf { b, .. } => vector(*b, &mut read),
        Inst::LowInt { a, .. } | Inst::SignBits { a, .. } => vector(*a, &mut read),
        Inst::Rvm { a, b, .. } | Inst::BranchAny { a, b, .. } => {
            vector(*a, &mut read);
            vector(*b, &mut read);
        }
        Inst::Fma { a, b, c, .. } | Inst::Blend { a, b, mask: c, .. } => {
            vector(*a, &mut read);
            vector(*b, &mut read);
            vector(*c, &mut read);
        }
        Inst::Gather { from, offsets, .. } => {
            int(&from.base, No);
            vector(*offsets, &mut read);
        }
        Inst::StoreHalves { v, low, high } => {
            vector(*v, &mut read);
            let mut int = |v: &V, immediate| read(Read { v: *v, class: Some(Class::Int), immediate });
            int(&low.base, No);
            int(&high.base, No);
        }
    }
}

/// As [`each_read`], compiled once: for callers that need not be fast.
pub(crate) fn visit_reads(inst: &Inst, read: &mut dyn FnMut(Read)) {
    each_read(inst, read);
}

fn vector(v: V, read: &mut impl FnMut(Read)) {
    read(Read { v, class: Some(Class::Vec), immediate: Immediate::No });
}

/// Returns the class of the value that an instruction assigns; `None` for a move, which keeps the class.
pub(crate) fn result_class(inst: &Inst) -> Option<Class> {
    match inst {
        Inst::Move { .. } => None,
        Inst::VecConst { .. }
        | Inst::VecLoad { .. }
        | Inst::SplatLoad { .. }
        | Inst::Rm { .. }
        | Inst::Rvm { .. }
        | Inst::Fma { .. }
        | Inst::Blend { .. }
        | Inst::UpperHalf { .. }
        | Inst::Splat { .. }
        | Inst::Gather { .. }
        | Inst::LoadHalves { .. } => Some(Class::Vec),
        _ => Some(Class::Int),
    }
}

/// Calls `store` with the address and the size in bytes of each memory access that an instruction writes.
pub(crate) fn each_store(inst: &Inst, mut store: impl FnMut(Mem, i32)) {
    match *inst {
        Inst::Store { size, to, .. } => store(to, size.bytes()),
        Inst::VecStore { to, .. } | Inst::VecStream { to, .. } => store(to, 32),
        Inst::StoreHalves { low, high, .. } => {
            store(low, 16);
            store(high, 16);
        }
        _ => {}
    }
}

/// Calls `target` with each label that an instruction may jump to.
pub(crate) fn each_target(inst: &Inst, mut target: impl FnMut(Label)) {
    match inst {
        Inst::Jump(to) | Inst::Branch { to, .. } | Inst::BranchAny { to, .. } => target(*to),
        Inst::Table { to, .. } => to.iter().copied().for_each(target),
        _ => {}
    }
}

/// Returns whether an instruction never continues with the next one.
pub(crate) fn ends_block(inst: &Inst) -> bool {
    matches!(inst, Inst::Return { .. } | Inst::Jump(_) | Inst::Table { .. })
}
