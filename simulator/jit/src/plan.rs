//! Decides how each operation is executed: as code, or by its handler. The decision depends only on the
//! lane-loop representation; no instruction is named.

use crate::emit::{cross_lane, half, output};
use crate::lane_calls as functions;
use crate::mode::reads_only_ieee_bit;
use crate::multi_store::{self, MultiStore};
use crate::scratch::{self, Scratch};
use crate::subword::{self, Subword};
use crate::unroll;
use crate::wide_sums;
use isa_lower::ir::*;
use isa_lower::visit::{any_stmt, any_value, each_value};
use isa_spec::pcode::ir::{Control, Pure, Space, State, Ty};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use wavesim_machine::exec::machine_ops::does_nothing;
use wavesim_machine::exec::op::{Ext, Op, Place, Variant};
use wavesim_machine::exec::program::Program;
use wavesim_machine::isa::{self, OPERATIONS};
use wavesim_machine::state::wave::STAGE;

/// The way in which an operation is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Not at all: it has no effect in the simulator.
    Nop,
    /// As scalar code.
    Scalar,
    /// As scalar code that may write the PC; it ends its block.
    Branch,
    /// In a loop over packets of lanes.
    Lanes,
    /// In such a loop, as a load or store.
    Access,
    /// By a call of its handler.
    Call,
}

/// The ways in which a body can be compiled, if its operands are supported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Capabilities {
    nop: bool,
    scalar: bool,
    branch: bool,
    lanes: bool,
    access: bool,
    /// A subword access, several stores, or a scratch access.
    special_access: bool,
    /// The handler may end the wave's turn.
    may_end_turn: bool,
}

struct LoweredOperation {
    handlers: Arc<Handlers>,
    subword: Option<Arc<Subword>>,
    multi_store: Option<Arc<MultiStore>>,
    scratch: Option<Arc<Scratch>>,
    capabilities: Capabilities,
}

/// Lowered operations. Each operation is lowered once per process.
#[derive(Default)]
pub struct Operations {
    lowered: HashMap<u16, Arc<LoweredOperation>>,
}

/// All lowered operations, by number.
static LOWERED: LazyLock<Mutex<HashMap<u16, Arc<LoweredOperation>>>> = LazyLock::new(Mutex::default);

fn lowered(number: u16) -> Arc<LoweredOperation> {
    let mut all = LOWERED.lock().unwrap_or_else(PoisonError::into_inner);
    let operation = all.entry(number).or_insert_with(|| {
        let handlers = isa_lower::lower(isa::operation(number).expect("every handler has semantics"));
        let subword = lane_code(&handlers).and_then(subword::find).filter(subword_supported).map(Arc::new);
        let multi_store = lane_code(&handlers).and_then(multi_store::find).map(Arc::new);
        let scratch = lane_code(&handlers).and_then(scratch::find).map(Arc::new);
        let special_access = subword.is_some() || multi_store.is_some() || scratch.is_some();
        let capabilities = Capabilities { special_access, ..capabilities(&handlers) };
        Arc::new(LoweredOperation {
            handlers: Arc::new(handlers),
            subword,
            multi_store,
            scratch,
            capabilities,
        })
    });
    operation.clone()
}

/// Returns whether operations of this number are compiled if their operands are supported.
pub fn is_compiled(number: u16) -> bool {
    let Capabilities { nop, scalar, branch, lanes, access, special_access, .. } =
        lowered(number).capabilities;
    nop || scalar || branch || lanes || access || special_access
}

/// Returns the instructions of a program, by index, that call their handlers instead of running as code. An
/// instruction that consists of several operations occurs once for each of them that calls its handler.
pub fn handler_calls(program: &Program) -> Vec<usize> {
    let (mut operations, lowered) = (Operations::default(), program.lowered());
    let calls = lowered.ops().iter().filter(|op| operations.kind(op, lowered.exts()) == Kind::Call);
    calls.map(|op| op.number as usize).collect()
}

/// Returns the number of an operation and the variant of its handler; `None` for operations that only stop.
fn number(op: &Op) -> Option<(u16, Variant)> {
    let (number, variant) = (op.code as usize / Op::VARIANTS, op.code as usize % Op::VARIANTS);
    (number < OPERATIONS.len()).then(|| (number as u16, Variant::ALL[variant]))
}

impl Operations {
    fn of(&mut self, op: &Op) -> Option<Arc<LoweredOperation>> {
        let (number, _) = number(op)?;
        Some(self.lowered.entry(number).or_insert_with(|| lowered(number)).clone())
    }

    /// Returns the lowered handlers of an operation.
    pub fn handlers(&mut self, op: &Op) -> Arc<Handlers> {
        match self.of(op) {
            Some(lowered) => lowered.handlers.clone(),
            None => lowered(0).handlers.clone(),
        }
    }

    /// Returns the subword access that an operation consists of.
    pub fn subword(&mut self, op: &Op) -> Option<Arc<Subword>> {
        self.of(op)?.subword.clone()
    }

    /// Returns the stores that an operation consists of.
    pub fn multi_store(&mut self, op: &Op) -> Option<Arc<MultiStore>> {
        self.of(op)?.multi_store.clone()
    }

    /// Returns the scratch access that an operation consists of.
    pub fn scratch(&mut self, op: &Op) -> Option<Arc<Scratch>> {
        self.of(op)?.scratch.clone()
    }

    /// Returns how an operation is executed.
    pub fn kind(&mut self, op: &Op, exts: &[Ext]) -> Kind {
        let Some(lowered) = self.of(op) else { return Kind::Call };
        let ext = &exts[op.ext as usize];
        let Capabilities { nop, scalar, branch, lanes, access, .. } = lowered.capabilities;
        if access {
            let plain = number(op).is_some_and(|(_, variant)| variant == Variant::Fast);
            return if plain { Kind::Access } else { Kind::Call };
        }
        if let Some(subword) = &lowered.subword {
            return if subword::operands_supported(op, &subword.block) { Kind::Access } else { Kind::Call };
        }
        if let Some(multi_store) = &lowered.multi_store {
            return if multi_store::operands_supported(op, multi_store) { Kind::Access } else { Kind::Call };
        }
        if let Some(access) = &lowered.scratch {
            return if scratch::operands_supported(op, access) { Kind::Lanes } else { Kind::Call };
        }
        match (nop, branch, scalar, lanes) {
            (true, ..) => Kind::Nop,
            (_, true, ..) => Kind::Branch,
            (_, _, true, _) if scalar_supported(op, &lowered.handlers) => Kind::Scalar,
            (.., true) if lane_operands_supported(op, ext, &lowered.handlers) => Kind::Lanes,
            _ => Kind::Call,
        }
    }

    /// Returns whether an operation's handler may end the turn without a fault.
    pub fn may_end_turn(&mut self, op: &Op) -> bool {
        self.of(op).is_none_or(|lowered| lowered.capabilities.may_end_turn)
    }

    /// Returns whether execution can fall through to the next operation.
    pub fn falls_through(&mut self, op: &Op) -> bool {
        self.of(op)
            .is_some_and(|lowered| !always_jumps(&lowered.handlers) && !ends_program(&lowered.handlers))
    }
}

fn scalar_supported(op: &Op, handlers: &Handlers) -> bool {
    let modified = op.flags & (Op::OUTPUT | Op::CLAMP | Op::MODIFY | Op::HIGH) != 0;
    scalar_code(handlers, op).is_some_and(|once| cross_lane::operands_supported(op, &once.body)) && !modified
}

fn lane_operands_supported(op: &Op, ext: &Ext, handlers: &Handlers) -> bool {
    let Some(lanes) = lane_code(handlers) else { return false };
    let high = op.flags & Op::HIGH != 0 && !lanes.writes_half();
    let mask = lanes.steps.contains(&Step::ReadMask);
    let scalar = op.flags & Op::SCALAR_DEST != 0 && handlers.result_dwords() > 0;
    let carry = matches!(op.src[3].place(), Place::Scalar(_));
    let fits = |step: &Step| match step {
        Step::Write { dwords, how: WriteBack::General { output } | WriteBack::Half { output } } => {
            op.flags & Op::OUTPUT == 0 || output::is_supported(ext, *output, *dwords)
        }
        // Lanes that DPP disables keep their bits.
        Step::Gather { keep, .. } => !keep || ext.dpp.is_none(),
        Step::Stage { slot: 0, dwords, .. } => ext.dpp.is_none() || dpp_supported(op, ext, *dwords),
        Step::Loop(lanes) => op.flags & Op::CLAMP == 0 || saturation_supported(&lanes.body),
        _ => true,
    };
    let plain = op.flags & Op::NO_RESULT == 0 && !high && !scalar && (carry || !mask);
    plain && lanes.steps.iter().all(fits)
}

/// Returns whether DPP can be applied to the first source, which has `dwords` registers.
fn dpp_supported(op: &Op, ext: &Ext, dwords: u32) -> bool {
    let whole = dwords == if ext.sign_at[0] == 63 { 2 } else { 1 };
    whole && matches!(op.src[0].place(), Place::Vector(first) if first + dwords as usize <= STAGE)
}

/// Returns whether all saturating operations of a body can be compiled.
fn saturation_supported(body: &[Stmt]) -> bool {
    !any_value(body, &|v| matches!(&v.kind, ValueKind::Saturate { value, .. } if value.hold == Hold::W128))
}

/// Returns the code that an operation runs once per wave: that of its fast handler, or the general one.
pub fn scalar_code<'h>(handlers: &'h Handlers, op: &Op) -> Option<&'h Once> {
    let fast = number(op).is_some_and(|(_, variant)| variant == Variant::Fast);
    match (&handlers.fast, &handlers.general) {
        (Fast::Scalar(once), _) if fast => Some(once),
        (_, Body::Once(once)) => Some(once),
        _ => None,
    }
}

/// Returns the per-lane code.
pub fn lane_code(handlers: &Handlers) -> Option<&Lanes> {
    match &handlers.general {
        Body::Lanes(lanes) => Some(lanes),
        Body::Once(_) => None,
    }
}

/// Returns the builtin of an operation that only ends the wave or waits for a barrier, and the barrier's
/// number.
pub fn switching_builtin(handlers: &Handlers) -> Option<(Control, Option<&Value>)> {
    let Body::Once(once) = &handlers.general else { return None };
    match (&once.body[..], &once.operands[..]) {
        ([Stmt::Control { builtin: builtin @ (Control::Barrier | Control::EndPgm), .. }], []) => {
            Some((*builtin, None))
        }
        ([Stmt::Control { builtin: builtin @ Control::BarrierWait, args }], []) => {
            Some((*builtin, args.first()))
        }
        _ => None,
    }
}

/// Returns whether an operation's handler certainly writes no VGPR.
pub fn preserves_vgprs(handlers: &Handlers) -> bool {
    let scalar = |s: &Stmt| match s {
        Stmt::Set(var, _) | Stmt::SetLow { var, .. } => !matches!(var, Var::Operand(_)),
        Stmt::SetState(..)
        | Stmt::SetSgpr { .. }
        | Stmt::SetScalar { .. }
        | Stmt::SetMaskOperand(_)
        | Stmt::Parts { .. }
        | Stmt::If { .. }
        | Stmt::Control { .. } => true,
        _ => false,
    };
    matches!(&handlers.general, Body::Once(once) if !any_stmt(&once.body, &|s| !scalar(s)))
}

fn always_jumps(handlers: &Handlers) -> bool {
    let always = |s: &Stmt| matches!(s, Stmt::SetState(State::Pc, _));
    matches!(&handlers.general, Body::Once(once) if once.body.iter().any(always))
}

fn ends_program(handlers: &Handlers) -> bool {
    let end = |s: &Stmt| matches!(s, Stmt::Control { builtin: Control::EndPgm, .. });
    matches!(&handlers.general, Body::Once(once) if once.body.iter().any(end))
}

fn capabilities(handlers: &Handlers) -> Capabilities {
    match &handlers.general {
        Body::Once(once) => {
            let hint = |s: &Stmt| matches!(s, Stmt::Control { builtin, .. } if does_nothing(*builtin));
            let control = |s: &Stmt| matches!(s, Stmt::Control { .. });
            let control_values = any_value(&once.body, &|v| matches!(v.kind, ValueKind::Control { .. }));
            let nop = once.body.iter().all(hint) && !control_values;
            let may_end_turn = !nop && (any_stmt(&once.body, &control) || control_values);
            let fine = |once: &Once| {
                !once.changes_mode
                    && unroll::is_supported(&once.body)
                    && cross_lane::is_supported(&once.body)
                    && !any_stmt(&once.body, &|s| !statement_supported(s, false))
                    && !any_value(&once.body, &|v| !value_supported(v, false))
            };
            let fast = match &handlers.fast {
                Fast::Scalar(once) => fine(once),
                _ => true,
            };
            let branch = any_stmt(&once.body, &|s| matches!(s, Stmt::SetState(State::Pc, _)));
            let fine = fine(once) && fast && !may_end_turn;
            Capabilities {
                nop,
                scalar: fine && !branch,
                branch: fine && branch,
                may_end_turn,
                ..Capabilities::default()
            }
        }
        Body::Lanes(lanes) => {
            let access = is_block_copy(lanes, &handlers.fast);
            Capabilities { lanes: lanes_supported(lanes), access, ..Capabilities::default() }
        }
    }
}

/// Returns whether the access moves whole registers of all lanes.
fn is_block_copy(lanes: &Lanes, fast: &Fast) -> bool {
    matches!(fast, Fast::Block(block) if block_supported(lanes, block))
}

/// The same for parts of registers. Loaded and stored values occur where [`subword::find`] expects them.
fn subword_supported(subword: &Subword) -> bool {
    let space = if matches!(subword.block, Block::Lds { .. }) { Space::Lds } else { Space::Global };
    let moved = |v: &Value| matches!(v.kind, ValueKind::Loaded { .. });
    subword.space == space
        && addresses_supported(&subword.block)
        && !any_value(&subword.lanes.body, &|v| !moved(v) && !value_supported(v, true))
}

fn block_supported(lanes: &Lanes, block: &Block) -> bool {
    let of = |wanted: Space| {
        lanes.steps.iter().all(|step| !matches!(step, Step::Memory(memory) if memory.space != wanted))
    };
    let space = if matches!(block, Block::Lds { .. }) { Space::Lds } else { Space::Global };
    of(space) && addresses_supported(block)
}

fn addresses_supported(block: &Block) -> bool {
    let fine = |values: &[Value]| {
        !values.iter().any(|v| isa_lower::visit::any_in(v, &|v| !value_supported(v, false)))
    };
    match block {
        Block::Global { base, unless, wide, dwords, .. } => {
            let terms = [Some(&base[..]), wide.as_deref(), unless.as_ref().map(std::slice::from_ref)];
            matches!(dwords, 1 | 2 | 4) && terms.into_iter().flatten().all(fine)
        }
        Block::Lds { plus, dwords, .. } => matches!(dwords, 1 | 2 | 4) && fine(plus),
    }
}

/// The float operations of an instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Floats {
    /// It has f32 arithmetic, whose denormals may be flushed.
    pub flushed: bool,
    /// It has arithmetic that always keeps denormals, whatever the mode of f32.
    pub kept: bool,
}

/// Collects the float operations of an instruction.
pub fn floats(lanes: &Lanes) -> Floats {
    let mut floats = Floats::default();
    let mut note = |v: &Value| {
        // No f16 value is an f32 denormal.
        if let ValueKind::Float { op, ty, .. } = v.kind
            && ty != Ty::F16
        {
            let flushed = ty == Ty::F32 && op != FloatOp::FmaNearest;
            *(if flushed { &mut floats.flushed } else { &mut floats.kept }) = true;
        }
    };
    for step in &lanes.steps {
        if let Step::Loop(lanes) | Step::Simd { lanes, .. } = step {
            each_value(&lanes.body, &mut note);
        }
    }
    floats
}

fn lanes_supported(lanes: &Lanes) -> bool {
    let half = lanes.writes_half();
    let body = |l: &LaneLoop| {
        !l.leaves
            && !l.retries
            && l.result.is_none_or(|r| if half { r.width == 16 } else { r.width > 16 && r.width <= 64 })
            && l.reads.iter().all(|read| read.width <= 64)
            && !any_stmt(&l.body, &|s| !statement_supported(s, true))
            && !any_value(&l.body, &|v| !value_supported(v, true))
            && reads_only_ieee_bit(&l.body)
            && unroll::is_supported(&l.body)
            && wide_sums::are_supported(&l.body)
    };
    let step = |step: &Step| match step {
        Step::Stage { dwords, .. } => *dwords <= 2,
        Step::StageOld | Step::Modify { .. } | Step::ReadMask | Step::Gather { .. } => true,
        Step::Loop(lane_loop) => body(lane_loop),
        Step::Simd { builtin: Pure::SelectBytes, calls, lanes, .. } => {
            body(lanes)
                && calls
                    .iter()
                    .flatten()
                    .all(|v| !isa_lower::visit::any_in(v, &|v| !value_supported(v, true)))
        }
        Step::Simd { builtin, ty, calls, lanes, .. }
            if functions::builtin(*builtin, *ty, false).is_some() =>
        {
            let one = |args: &Vec<Value>| {
                args.len() == 1 && !isa_lower::visit::any_in(&args[0], &|v| !value_supported(v, true))
            };
            body(lanes) && calls.iter().all(one)
        }
        Step::Write { dwords, .. } => *dwords <= 2,
        Step::Simd { .. } | Step::StoreRoom { .. } | Step::Memory(_) => false,
    };
    lanes.steps.iter().all(step)
}

/// Returns whether a statement can be compiled; the caller checks nested statements.
fn statement_supported(stmt: &Stmt, lane: bool) -> bool {
    match stmt {
        Stmt::Set(..) | Stmt::SetLow { .. } | Stmt::If { .. } | Stmt::Parts { .. } => true,
        Stmt::SetBit(..) => lane,
        Stmt::Control { builtin, .. } => does_nothing(*builtin),
        Stmt::SetScalar { dwords, value, .. } => {
            !lane && (*dwords <= 2 || unroll::wide_load(value, *dwords).is_some())
        }
        Stmt::For { from, to, .. } => unroll::bounds(from, to).is_some(),
        Stmt::SetElement { .. } | Stmt::SetSgpr { .. } => !lane,
        Stmt::SetMaskOperand(_) | Stmt::Vector(_) | Stmt::SetVgpr { .. } => !lane,
        Stmt::SetState(state, _) => {
            !lane
                && matches!(
                    state,
                    State::Exec
                        | State::ExecLo
                        | State::ExecHi
                        | State::Vcc
                        | State::VccLo
                        | State::VccHi
                        | State::Scc
                        | State::M0
                        | State::Pc
                )
        }
        _ => false,
    }
}

/// Returns whether a value can be compiled; the caller checks nested values.
pub fn value_supported(value: &Value, lane: bool) -> bool {
    let wide = value.hold == Hold::W128;
    match &value.kind {
        ValueKind::Const(_) | ValueKind::Var(_) | ValueKind::OperandNumber(_) | ValueKind::Resize(_) => true,
        ValueKind::ShrConst(..) | ValueKind::Select(..) => true,
        ValueKind::Op2(op, a, b) => {
            let signed = wide_sums::signed_sum(value).is_some()
                || *op == Op2::Mul && is_sign_extended_word(a) && is_sign_extended_word(b);
            !wide
                || matches!(op, Op2::And | Op2::Or | Op2::Xor)
                || lane && (signed || is_wide_product_or_sum(*op, a, b))
        }
        ValueKind::Field(name) => {
            const FIELDS: [&str; 14] = [
                "OFFSET", "SIMM16", "SIMM4", "OFFSET0", "OFFSET1", "SIMM32", "NEG", "NEG_HI", "ABS", "OPSEL",
                "OPSEL_HI", "CLAMP", "SVE", "OMOD",
            ];
            FIELDS.contains(name)
        }
        ValueKind::State(state) => match state {
            State::LaneId => lane,
            State::Wave32 | State::Wave64 | State::WaveSize | State::InstSize => true,
            State::Mode => lane,
            State::Status | State::WaveId => false,
            _ => !lane,
        },
        ValueKind::Element(..) | ValueKind::VectorRead { .. } => !lane,
        ValueKind::Load { space, bytes, retry, .. } => {
            !lane && *space == Space::Scalar && !retry && matches!(bytes, 1 | 2 | 4 | 8 | 12 | 16)
        }
        ValueKind::LaneBit(mask) => lane && *mask == Mask::Vcc,
        ValueKind::Scalar { dwords, .. } => !lane && *dwords <= 2,
        ValueKind::OperandLane { slot, index, .. } => {
            !lane && matches!(slot, Slot::Source(_)) && matches!(index.kind, ValueKind::Const(_))
        }
        ValueKind::Concat(parts) => !wide || parts.iter().all(|(_, lo)| *lo == 0),
        ValueKind::SignExtend { .. } => !wide || lane,
        ValueKind::Op1(..)
        | ValueKind::ShlConst(..)
        | ValueKind::Shl(..)
        | ValueKind::Shr(..)
        | ValueKind::Sar { .. }
        | ValueKind::Extract { .. }
        | ValueKind::Insert { .. }
        | ValueKind::Saturate { .. } => !wide,
        ValueKind::Compare { op, a, b, .. } => a.hold != Hold::W128 || lane && is_carry(*op, a, b),
        ValueKind::LogicalAnd(..) | ValueKind::LogicalOr(..) => true,
        ValueKind::SourceBit { source, .. } => *source < 4,
        ValueKind::Float { op, ty, .. } if functions::float(*op, *ty, false).is_some() => lane,
        ValueKind::Float { op: FloatOp::TrigPreop, ty: Ty::F64, .. } => lane,
        ValueKind::Conversion(conversion, _) if functions::conversion(*conversion, false).is_some() => lane,
        ValueKind::Float { op, ty: Ty::F16, .. } => lane && half::is_compiled(*op),
        ValueKind::Float { op: FloatOp::FrexpMant | FloatOp::FrexpExp, ty, .. } => {
            lane && matches!(ty, Ty::F32 | Ty::F64)
        }
        ValueKind::Float { op, ty, .. } => float_supported(*op, *ty),
        ValueKind::FloatBits { ty, .. } => matches!(ty, Ty::F32 | Ty::F64) || lane && *ty == Ty::F16,
        ValueKind::Conversion(
            Conversion::F16ToF32
            | Conversion::F32ToF16
            | Conversion::F32ToF16Rtz
            | Conversion::F16ToI16
            | Conversion::F16ToU16
            | Conversion::I16ToF16
            | Conversion::U16ToF16,
            _,
        ) => lane,
        ValueKind::Conversion(conversion, _) => matches!(
            conversion,
            Conversion::I32ToF32
                | Conversion::U32ToF32
                | Conversion::F32ToI32
                | Conversion::F32ToU32
                | Conversion::F32ToI16
                | Conversion::F32ToU16
                | Conversion::F32ToF64
                | Conversion::F64ToF32
                | Conversion::I32ToF64
                | Conversion::U32ToF64
                | Conversion::F64ToI32
                | Conversion::F64ToU32
        ),
        ValueKind::Simd { builtin, .. } => *builtin == Pure::SelectBytes && lane,
        ValueKind::SimdResult { .. } => lane,
        _ => false,
    }
}

/// Recognises products of words, and their sums with 64 bits, which have at most one carry: no other 128-bit
/// operations are compiled.
fn is_wide_product_or_sum(op: Op2, a: &Value, b: &Value) -> bool {
    let extended = |v: &Value, from: Hold| matches!(&v.kind, ValueKind::Resize(inner) if inner.hold == from);
    let product = |v: &Value| matches!(&v.kind, ValueKind::Op2(Op2::Mul, a, b) if extended(a, Hold::W32) && extended(b, Hold::W32));
    match op {
        Op2::Mul => extended(a, Hold::W32) && extended(b, Hold::W32),
        Op2::Add => product(a) && extended(b, Hold::W64),
        _ => false,
    }
}

fn is_sign_extended_word(v: &Value) -> bool {
    matches!(&v.kind, ValueKind::SignExtend { value, width: 32 } if value.hold == Hold::W32)
}

/// Recognises tests of a sum's bits from 64 on.
fn is_carry(op: Compare, a: &Value, b: &Value) -> bool {
    let above = matches!(a.kind, ValueKind::ShrConst(_, 64)) || wide_sums::is_bit_64(a);
    above && matches!(op, Compare::Eq | Compare::Ne) && b.kind == ValueKind::Const(0)
}

fn float_supported(op: FloatOp, ty: Ty) -> bool {
    let any = matches!(
        op,
        FloatOp::Add
            | FloatOp::Sub
            | FloatOp::Mul
            | FloatOp::Div
            | FloatOp::Fma
            | FloatOp::FmaNearest
            | FloatOp::Eq
            | FloatOp::Ne
            | FloatOp::Lt
            | FloatOp::Le
            | FloatOp::Gt
            | FloatOp::Ge
            | FloatOp::Lg
            | FloatOp::MinimumNumber
            | FloatOp::MaximumNumber
            | FloatOp::Minimum
            | FloatOp::Maximum
            | FloatOp::Floor
            | FloatOp::Ceil
            | FloatOp::Trunc
            | FloatOp::Rndne
            | FloatOp::Sqrt
            | FloatOp::Rcp
            | FloatOp::Fract
            | FloatOp::Ldexp
    );
    ty == Ty::F32 && (any || matches!(op, FloatOp::Rsq | FloatOp::FmaLdexp))
        || ty == Ty::F64 && (any || matches!(op, FloatOp::Rsq | FloatOp::FmaLdexp))
}
