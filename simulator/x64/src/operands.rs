//! The values that instructions read and write.

use crate::inst::{Inst, Label, Mem, Src, V};

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

/// Calls `read` for each use of a value by an instruction. The second argument is `Some` if the use can take
/// a 32-bit immediate, which is sign-extended (`Some(false)`) or truncated to the operation's 32 bits
/// (`Some(true)`).
pub(crate) fn each_read(inst: &Inst, mut read: impl FnMut(V, Option<bool>)) {
    use crate::inst::Width::W32;
    let src = |src: &Src, cut: bool, read: &mut dyn FnMut(V, Option<bool>)| {
        if let Src::Value(v) = *src {
            read(v, Some(cut));
        }
    };
    let mem = |mem: &Mem, read: &mut dyn FnMut(V, Option<bool>)| read(mem.base, None);
    match inst {
        Inst::Const { .. } | Inst::Label(_) | Inst::Jump(_) | Inst::VecConst { .. } => {}
        Inst::Move { a, .. } => read(*a, Some(false)),
        Inst::Int2 { width, a, b, .. }
        | Inst::Compare { width, a, b, .. }
        | Inst::Branch { width, a, b, .. } => {
            read(*a, None);
            src(b, *width == W32, &mut read);
        }
        Inst::Int1 { a, .. } | Inst::Splat { a, .. } | Inst::LowInt { a, .. } | Inst::SignBits { a, .. } => {
            read(*a, None)
        }
        Inst::Select { cond, a, b, .. } => {
            read(*cond, None);
            read(*a, None);
            read(*b, None);
        }
        Inst::Load { from, .. }
        | Inst::VecLoad { from, .. }
        | Inst::SplatLoad { from, .. }
        | Inst::Prefetch { from }
        | Inst::LoadMxcsr { from } => mem(from, &mut read),
        Inst::Store { size, to, v } => {
            mem(to, &mut read);
            src(v, *size != crate::inst::Size::B8, &mut read);
        }
        Inst::ColdCall { arg, .. } => read(*arg, None),
        Inst::Call { args, .. } => args.iter().for_each(|arg| src(arg, false, &mut read)),
        Inst::Return { v } => src(v, false, &mut read),
        Inst::Table { index, .. } => read(*index, None),
        Inst::VecStore { to, v } | Inst::VecStream { to, v } => {
            mem(to, &mut read);
            read(*v, None);
        }
        Inst::Rm { b, .. } | Inst::UpperHalf { b, .. } => read(*b, None),
        Inst::Rvm { a, b, .. } | Inst::BranchAny { a, b, .. } => {
            read(*a, None);
            read(*b, None);
        }
        Inst::Fma { a, b, c, .. } | Inst::Blend { a, b, mask: c, .. } => {
            read(*a, None);
            read(*b, None);
            read(*c, None);
        }
        Inst::Gather { from, offsets, .. } => {
            mem(from, &mut read);
            read(*offsets, None);
        }
        Inst::LoadHalves { low, high, .. } => {
            mem(low, &mut read);
            mem(high, &mut read);
        }
        Inst::StoreHalves { v, low, high } => {
            read(*v, None);
            mem(low, &mut read);
            mem(high, &mut read);
        }
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
