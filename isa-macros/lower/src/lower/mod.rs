//! Lowers a body to its general handler, which accepts any operands and accesses memory inside the lane loop.
//! Uses typed bodies and operand signatures only; [`crate::passes`] decides which other handlers are
//! profitable.

pub mod operands;
mod stmt;
mod value;

use crate::ir::*;
use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::{
    self as typed, Builtin, Control, Expr, ExprKind, Place, PlaceKind, Pure, Role, Semantics, Shape, Space,
    State, Ty,
};
use isa_spec::pcode::sig::Family;
use isa_spec::pcode::visit::{any_expr, any_stmt, each_expr, each_stmt};
use operands::{Operands, is_source, numbered, source};

/// The lowering of one body.
pub struct Lower<'a> {
    sem: &'a Semantics,
    operands: &'a Operands,
    lane: bool,
    /// The destination is a mask whose bit for this lane the body computes.
    mask_d0: bool,
    /// A read-modify-write of memory that other host threads may share.
    atomic: bool,
    /// The instruction is a vector instruction that runs once per wave: its sources may have modifiers.
    once_modified: bool,
    /// Operands of a scalar instruction, read before the body.
    staged: Vec<Role>,
    /// Every staged operand is an SGPR or a constant in the scalar file.
    direct: bool,
}

impl<'a> Lower<'a> {
    /// Prepares the lowering from the operation's signature and shape.
    pub fn new(op: &'a Operation, operands: &'a Operands) -> Lower<'a> {
        let sem = &op.sem;
        let lane = sem.shape == Shape::Lane;
        let staged = op.sig.family == Family::Scalar;
        Lower {
            sem,
            operands,
            lane,
            mask_d0: is_mask(op) && sem.uses.writes.contains(&Role::D0),
            atomic: (lane || op.sig.family == Family::Memory(Space::Scalar)) && updates_memory(sem),
            once_modified: op.sig.family == Family::Vector,
            staged: operands.widths.keys().copied().filter(|role| staged && is_source(*role)).collect(),
            direct: false,
        }
    }

    /// Lowers for operands that are all in the scalar file.
    pub fn direct(mut self) -> Lower<'a> {
        self.direct = true;
        self
    }
}

/// Returns whether the body may store to the memory that it loads from.
fn updates_memory(sem: &Semantics) -> bool {
    let (mut loads, mut stores) = (Vec::new(), Vec::new());
    each_expr(&sem.body, |e| {
        if let ExprKind::Mem { space, .. } = &e.kind {
            loads.push(*space);
        }
    });
    each_stmt(&sem.body, |s| {
        if let typed::Stmt::Assign { place, .. } = s {
            updates(place, false, &mut loads, &mut stores);
        }
    });
    // LDS is apart from what other instructions access, but for flat ones.
    let apart = |a: Space, b: Space| (a == Space::Lds) != (b == Space::Lds) && ![a, b].contains(&Space::Flat);
    loads.iter().any(|load| stores.iter().any(|store| !apart(*load, *store)))
}

/// Collects the address spaces that an assignment to a place stores to, and loads from in order to preserve the rest
/// of a place that is assigned in `part`.
fn updates(place: &Place, part: bool, loads: &mut Vec<Space>, stores: &mut Vec<Space>) {
    match &place.kind {
        PlaceKind::Mem { space, .. } => {
            stores.push(*space);
            loads.extend(part.then_some(*space));
        }
        PlaceKind::Slice { base, .. } => updates(base, true, loads, stores),
        PlaceKind::Concat(parts) => parts.iter().for_each(|place| updates(place, part, loads, stores)),
        _ => {}
    }
}

/// Returns whether the destination is a mask.
fn is_mask(op: &Operation) -> bool {
    op.sig.family == Family::Vector && op.sig.operands.get(&Role::D0).is_some_and(|d| d.mask)
}

/// Returns the handlers with only the general one; passes add the others.
pub fn handlers(op: &Operation) -> Handlers {
    let operands = Operands::of(op);
    let lower = Lower::new(op, &operands);
    let general = match op.sem.shape {
        Shape::Lane => Body::Lanes(lower.lanes(op)),
        Shape::Scalar | Shape::Wave => Body::Once(lower.once()),
    };
    // Without MODE, floats are as good as integers.
    let none = Default::default();
    let float = if op.sem.ignores_mode { &none } else { &op.sem.uses.float };
    let single = float.contains(&Ty::F32) || float.contains(&Ty::BF16);
    Handlers {
        name: op.name.clone(),
        shape: op.sem.shape,
        locals: op.sem.locals.clone(),
        mask_result: is_mask(op),
        general,
        fast: Fast::None,
        general_uses_fast: false,
        floats: Floats { single, others: float.iter().any(|ty| *ty != Ty::F32) },
        floats_f32: single,
        shared: false,
        other_unit: op.sem.ignores_mode,
        flushing: None,
        operands,
    }
}

impl Lower<'_> {
    /// Lowers a body that runs once per wave.
    pub fn once(&self) -> Once {
        let read = |role: &Role| (*role, self.scalar(*role, self.operands.width(*role)));
        Once {
            operands: self.staged.iter().map(read).collect(),
            body: self.stmts(&self.sem.body),
            with_vectors: None,
            changes_mode: changes_mode(self.sem),
            retries: self.atomic,
        }
    }

    /// Lowers a body that runs once per lane.
    fn lanes(&self, op: &Operation) -> Lanes {
        let uses = &self.sem.uses;
        let width = self.operands.width(Role::D0);
        let written = uses.writes.contains(&Role::D0) && !self.mask_d0;
        let read = uses.reads.contains(&Role::D0);
        // The write-back merges a 16-bit result into its half.
        let half = written && width <= 16;
        let start = match read || written && !assigns_whole(&self.sem.body, width) {
            true if half => Start::OldHalf,
            true => Start::Old,
            false => Start::Zero,
        };
        let result = (written || start != Start::Zero).then_some(LaneResult { width, start, written });
        let masks: Vec<Mask> = [
            (Mask::D0, self.mask_d0),
            (Mask::Vcc, uses.writes.contains(&Role::Vcc)),
            (Mask::Exec, uses.state_writes.contains(&State::Exec)),
        ]
        .into_iter()
        .filter_map(|(mask, written)| written.then_some(mask))
        .collect();
        let sources: Vec<(Role, u32)> =
            self.operands.widths.iter().map(|(r, w)| (*r, *w)).filter(|(r, _)| is_source(*r)).collect();

        let mut steps = Vec::new();
        for &(role, width) in &sources {
            let dwords = width.div_ceil(32);
            steps.push(Step::Stage { role, slot: source(role), dwords, direct: false });
        }
        if start != Start::Zero {
            steps.push(Step::StageOld);
        }
        if op.sig.family == Family::Vector {
            let sources = sources.iter().filter_map(|(role, _)| Some((numbered(*role)?, *role))).collect();
            steps.push(Step::Modify { sources });
        }
        if uses.reads.contains(&Role::Vcc) {
            steps.push(Step::ReadMask);
        }
        let active_only =
            uses.memory_read || uses.memory_write || uses.control || uses.registers || is_heavy(self.sem);
        steps.push(Step::Loop(LaneLoop {
            active_only,
            reads: sources.iter().map(|&(role, width)| Read { role, width }).collect(),
            result,
            bits: masks.clone(),
            body: self.stmts(&self.sem.body),
            leaves: any_stmt(&self.sem.body, |s| matches!(s, typed::Stmt::Return { .. })),
            retries: self.atomic,
            outer: Outer::default(),
        }));
        for &mask in &masks {
            let keep = mask == Mask::D0 && op.sig.operands.get(&Role::D0).is_some_and(|d| d.input);
            steps.push(Step::Gather { mask, keep });
        }
        if written {
            let output = output(op, width);
            let how = if half { WriteBack::Half { output } } else { WriteBack::General { output } };
            steps.push(Step::Write { dwords: width.div_ceil(32), how });
        }
        Lanes { halves: Halves::Each, broadcast: !active_only, steps, masks }
    }
}

/// Returns whether a statement at the top level, or both branches of one, assigns the whole D0.
fn assigns_whole(list: &[typed::Stmt], width: u32) -> bool {
    list.iter().any(|s| match s {
        typed::Stmt::Assign { place: Place { kind: PlaceKind::Operand(Role::D0), ty }, .. } => {
            ty.width() >= width
        }
        typed::Stmt::If { arms, otherwise, .. } => {
            assigns_whole(otherwise, width) && arms.iter().all(|arm| assigns_whole(&arm.1, width))
        }
        _ => false,
    })
}

/// Returns whether the body can change MODE.
fn changes_mode(sem: &Semantics) -> bool {
    sem.uses.state_writes.contains(&State::Mode)
        || any_stmt(&sem.body, |s| matches!(s, typed::Stmt::Call { builtin: Control::SetReg, .. }))
}

/// Returns whether the body has loops or calls that are not inlined and is therefore too expensive for
/// inactive lanes.
fn is_heavy(sem: &Semantics) -> bool {
    let slow = |builtin: &Builtin| matches!(builtin, Builtin::Pure(Pure::FromFormat | Pure::ToFormat));
    any_expr(&sem.body, |e| matches!(&e.kind, ExprKind::Call(builtin, _) if slow(builtin)))
        || any_stmt(&sem.body, |s| match s {
            typed::Stmt::For { from, to, body, .. } => !is_short(from, to) || any_stmt(body, is_loop),
            s => matches!(s, typed::Stmt::While { .. }),
        })
}

fn is_loop(s: &typed::Stmt) -> bool {
    matches!(s, typed::Stmt::For { .. } | typed::Stmt::While { .. })
}

/// Returns whether a loop has so few iterations that the compiler may unroll it.
fn is_short(from: &Expr, to: &Expr) -> bool {
    match (&from.kind, &to.kind) {
        (ExprKind::Const(from), ExprKind::Const(to)) => *to < *from + 8,
        _ => false,
    }
}

/// Returns the output modifiers that apply to the result.
fn output(op: &Operation, width: u32) -> Output {
    let (mut assigned, mut packed) = (None, false);
    each_stmt(&op.sem.body, |s| {
        if let typed::Stmt::Assign {
            place: Place { kind: PlaceKind::Operand(Role::D0), ty }, value, ..
        } = s
        {
            if ty.is_float() {
                assigned = Some(*ty);
            }
            packed |= is_packed_f16(value);
        }
    });
    if packed {
        return Output::PackedF16;
    }
    match assigned {
        Some(Ty::F32) if width == 32 => Output::F32,
        Some(Ty::F64) => Output::F64,
        Some(Ty::F16) if width <= 16 => Output::F16,
        Some(Ty::BF16) if width <= 16 => Output::BF16,
        _ => Output::Bits,
    }
}

/// Returns whether a value is two packed f16.
fn is_packed_f16(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Bits(inner) | ExprKind::Convert(inner) if !value.ty.is_float() => is_packed_f16(inner),
        ExprKind::Concat(parts) => parts.len() == 2 && parts.iter().all(as_f16),
        _ => false,
    }
}

fn as_f16(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Bits(inner) if !value.ty.is_float() => as_f16(inner),
        _ => value.ty == Ty::F16,
    }
}
