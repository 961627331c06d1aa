//! Decides how each operation is executed: as code, or by its handler. The decision depends only on the
//! lane-loop representation, of which [`crate::lowering`] lists what is compiled, and on the operands; no
//! instruction is named.

use crate::access::addresses::scale_supported;
use crate::access::{atomic, multi_store, scratch, subword};
use crate::lanes::{cross_lane, output};
use crate::lowering::{PacketBuiltin, Region, Why, check, check_value, check_values};
use crate::mode::reads_only_ieee_bit;
use crate::scalar::unroll;
use crate::selected::{Access, AtomicUpdate, MultiStore, Scratch, Selected, Selection, Selections, Subword};
use crate::snapshot::ProgramSnapshot;
use crate::wide_sums;
use isa_lower::ir::*;
use isa_lower::visit::{any_stmt, any_value};
use isa_spec::pcode::ir::{Control, Space, State};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use wavesim_machine::exec::machine_ops::does_nothing;
use wavesim_machine::exec::op::{DecodedSource, Ext, Op, Variant};
use wavesim_machine::isa::{self, OPERATIONS};
use wavesim_machine::state::wave::STAGE;

/// An operation of the instruction set, before its operands are known.
struct Operation {
    handlers: Arc<Handlers>,
    code: Result<OperationCode, Why>,
    falls_through: bool,
    may_end_turn: bool,
}

/// What an operation can become if its operands permit it.
enum OperationCode {
    Nop,
    /// The general code, and that of the fast handler if it is another one.
    Scalar(ScalarCode),
    Branch(ScalarCode),
    Lanes(Arc<Lanes>),
    Words(Arc<Block>),
    Subword(Arc<Subword>),
    MultiStore(Arc<MultiStore>),
    Scratch(Arc<Scratch>, Arc<Lanes>),
    Atomic(Arc<AtomicUpdate>),
}

struct ScalarCode {
    general: Arc<Once>,
    fast: Option<Arc<Once>>,
}

impl ScalarCode {
    fn of(&self, variant: Variant) -> &Arc<Once> {
        self.fast.as_ref().filter(|_| variant == Variant::Fast).unwrap_or(&self.general)
    }
}

/// All operations that have been looked at, by number: each is lowered once per process.
static OPERATIONS_SEEN: LazyLock<Mutex<HashMap<u16, Arc<Operation>>>> = LazyLock::new(Mutex::default);

fn operation(number: u16) -> Arc<Operation> {
    let mut all = OPERATIONS_SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let of = || {
        Arc::new(Operation::new(isa_lower::lower(
            isa::operation(number).expect("every handler has semantics"),
        )))
    };
    all.entry(number).or_insert_with(of).clone()
}

/// Returns whether operations of this number are compiled if their operands are supported; otherwise, what
/// prevents it.
pub fn is_compiled(number: u16) -> Result<(), Why> {
    operation(number).code.as_ref().map(|_| ()).map_err(|why| *why)
}

/// Selects how operations are executed.
#[derive(Default)]
pub struct Selector(HashMap<u16, Arc<Operation>>);

impl Selector {
    /// Selects how an operation of a program is executed.
    fn select(&mut self, op_index: u32, program: &ProgramSnapshot) -> Selection {
        let op = &program.ops[op_index as usize];
        let Some((number, variant)) = number(op) else { return stop() };
        let operation = self.0.entry(number).or_insert_with(|| operation(number));
        let how = match program.sets_msbs(op_index) {
            // Units track the bits instead of writing them.
            Some(_) => Selected::Nop,
            None => operation.select(op, variant, &program.exts[op.ext as usize]),
        };
        Selection {
            handlers: operation.handlers.clone(),
            how,
            falls_through: operation.falls_through,
            may_end_turn: operation.may_end_turn,
        }
    }

    /// Returns the selection of an operation, which is selected unless it has been before.
    pub fn of<'s>(
        &mut self,
        op_index: u32,
        program: &ProgramSnapshot,
        selections: &'s mut Selections,
    ) -> &'s Selection {
        selections.of_or(op_index, || self.select(op_index, program))
    }
}

/// Returns the selection of an operation that only stops the wave.
fn stop() -> Selection {
    Selection {
        handlers: operation(0).handlers.clone(),
        how: Selected::Call(Why("the end of the code")),
        falls_through: false,
        may_end_turn: true,
    }
}

/// Returns the number of an operation and the variant of its handler; `None` for operations that only stop.
fn number(op: &Op) -> Option<(u16, Variant)> {
    let (number, variant) = (op.code as usize / Op::VARIANTS, op.code as usize % Op::VARIANTS);
    (number < OPERATIONS.len()).then(|| (number as u16, Variant::ALL[variant]))
}

impl Operation {
    fn new(handlers: Handlers) -> Operation {
        let once = match &handlers.general {
            Body::Once(once) => Some(once),
            Body::Lanes(_) => None,
        };
        let control = |s: &Stmt| matches!(s, Stmt::Control { .. });
        let jumps = |s: &Stmt| matches!(s, Stmt::SetState(State::Pc, _));
        let ends = |s: &Stmt| matches!(s, Stmt::Control { builtin: Control::EndPgm, .. });
        let nop = once.is_some_and(is_nop);
        Operation {
            code: match (once, &handlers.general) {
                _ if nop => Ok(OperationCode::Nop),
                (Some(once), _) => scalar(once, &handlers.fast),
                (_, Body::Lanes(lanes)) => of_lanes(lanes, &handlers),
                (_, Body::Once(once)) => scalar(once, &handlers.fast),
            },
            falls_through: !once.is_some_and(|once| once.body.iter().any(|s| jumps(s) || ends(s))),
            may_end_turn: !nop
                && once.is_some_and(|once| any_stmt(&once.body, &control) || reads_control(&once.body)),
            handlers: Arc::new(handlers),
        }
    }

    fn select(&self, op: &Op, variant: Variant, ext: &Ext) -> Selected {
        let with_operands = |code: &OperationCode| {
            Ok(match code {
                OperationCode::Nop => Selected::Nop,
                OperationCode::Branch(code) => Selected::Branch(code.of(variant).clone()),
                OperationCode::Scalar(code) => {
                    let once = code.of(variant);
                    scalar_operands(op, once)?;
                    Selected::Scalar(once.clone())
                }
                OperationCode::Lanes(lanes) => {
                    lane_operands(op, ext, lanes, &self.handlers)?;
                    Selected::Lanes(lanes.clone())
                }
                OperationCode::Words(_) if variant != Variant::Fast => {
                    return Err(Why("unusual operands of a load or store"));
                }
                OperationCode::Words(block) => Selected::Access(Access::Words(block.clone())),
                OperationCode::Subword(found) => {
                    access_operands(subword::operands_supported(op, &found.block))?;
                    Selected::Access(Access::Subword(found.clone()))
                }
                OperationCode::MultiStore(found) => {
                    access_operands(multi_store::operands_supported(op, found))?;
                    Selected::Access(Access::MultiStore(found.clone()))
                }
                OperationCode::Atomic(found) => {
                    atomic::operands_supported(op, found)?;
                    Selected::Atomic(found.clone())
                }
                OperationCode::Scratch(found, lanes) => {
                    access_operands(scratch::operands_supported(op, found))?;
                    Selected::Access(Access::Scratch(found.clone(), lanes.clone()))
                }
            })
        };
        self.code.as_ref().map_err(|why| *why).and_then(with_operands).unwrap_or_else(Selected::Call)
    }
}

fn access_operands(supported: bool) -> Result<(), Why> {
    if supported { Ok(()) } else { Err(Why("unusual operands of a load or store")) }
}

/// Returns whether code does nothing in the simulator.
fn is_nop(once: &Once) -> bool {
    let hint = |s: &Stmt| matches!(s, Stmt::Control { builtin, .. } if does_nothing(*builtin));
    once.body.iter().all(hint) && !reads_control(&once.body)
}

fn reads_control(body: &[Stmt]) -> bool {
    any_value(body, &|v| matches!(v.kind, ValueKind::Control { .. }))
}

/// Recognises code that runs once per wave.
fn scalar(once: &Once, fast: &Fast) -> Result<OperationCode, Why> {
    let fine = |once: &Once| {
        if once.changes_mode {
            return Err(Why("a write of MODE"));
        }
        check(&once.body, Region::Wave)?;
        if !unroll::is_supported(&once.body) {
            return Err(Why("a loop or an array that cannot be unrolled"));
        }
        if !cross_lane::is_supported(&once.body) {
            return Err(Why("an unusual loop over lanes"));
        }
        Ok(())
    };
    fine(once)?;
    if any_stmt(&once.body, &|s| matches!(s, Stmt::Control { .. })) || reads_control(&once.body) {
        return Err(Why("a hint besides other effects"));
    }
    let fast = match fast {
        Fast::Scalar(once) => {
            fine(once)?;
            Some(Arc::new(once.clone()))
        }
        _ => None,
    };
    let code = ScalarCode { general: Arc::new(once.clone()), fast };
    let branch = any_stmt(&once.body, &|s| matches!(s, Stmt::SetState(State::Pc, _)));
    Ok(if branch { OperationCode::Branch(code) } else { OperationCode::Scalar(code) })
}

fn scalar_operands(op: &Op, once: &Once) -> Result<(), Why> {
    if op.flags & (Op::OUTPUT | Op::CLAMP | Op::MODIFY | Op::HIGH) != 0 {
        return Err(Why("modifiers of a scalar instruction"));
    }
    if !cross_lane::operands_supported(op, &once.body) {
        return Err(Why("unusual registers of an instruction across lanes"));
    }
    Ok(())
}

/// Recognises per-lane code.
fn of_lanes(lanes: &Lanes, handlers: &Handlers) -> Result<OperationCode, Why> {
    if let Fast::Block(block) = &handlers.fast
        && block_supported(lanes, block)
    {
        return Ok(OperationCode::Words(Arc::new(block.clone())));
    }
    if let Some(found) = subword::find(lanes).filter(subword_supported) {
        return Ok(OperationCode::Subword(Arc::new(found)));
    }
    if let Some(found) = multi_store::find(lanes) {
        return Ok(OperationCode::MultiStore(Arc::new(found)));
    }
    if let Some(found) = atomic::find(lanes, &handlers.operands).filter(atomic_supported) {
        return Ok(OperationCode::Atomic(Arc::new(found)));
    }
    let own = Arc::new(lanes.clone());
    if let Some(found) = scratch::find(lanes) {
        return Ok(OperationCode::Scratch(Arc::new(found), own));
    }
    lanes.steps.iter().try_for_each(|step| check_step(step, lanes.writes_half()))?;
    Ok(OperationCode::Lanes(own))
}

fn check_step(step: &Step, half: bool) -> Result<(), Why> {
    let at_most_two = |dwords: u32, why| if dwords <= 2 { Ok(()) } else { Err(Why(why)) };
    match step {
        Step::Stage { dwords, .. } => at_most_two(*dwords, "a source of more than two registers"),
        Step::Write { dwords, .. } => at_most_two(*dwords, "a result of more than two registers"),
        Step::StageOld | Step::Modify { .. } | Step::ReadMask | Step::Gather { .. } => Ok(()),
        Step::Loop(lane_loop) => check_loop(lane_loop, half),
        Step::Simd { builtin, ty, calls, lanes } => {
            let found = PacketBuiltin::of(*builtin, *ty)?;
            check_loop(lanes, half)?;
            calls.iter().flatten().try_for_each(|value| check_value(value, Region::Lane))?;
            let args = if found == PacketBuiltin::SelectBytes { 3 } else { 1 };
            match calls.iter().all(|call| call.len() == args) {
                true => Ok(()),
                false => Err(Why("a builtin of lanes")),
            }
        }
        Step::StoreRoom { .. } | Step::Memory(_) => Err(Why("an atomic operation, or an unusual access")),
        Step::Declare { .. }
        | Step::Once { .. }
        | Step::If { .. }
        | Step::For { .. }
        | Step::Masked { .. } => Err(Why("control flow that is the same for all lanes")),
    }
}

fn check_loop(lanes: &LaneLoop, half: bool) -> Result<(), Why> {
    let result = |r: LaneResult| if half { r.width == 16 } else { r.width > 16 && r.width <= 64 };
    if lanes.retries {
        return Err(Why("an atomic operation"));
    }
    if lanes.leaves {
        return Err(Why("an early end of a lane"));
    }
    if !lanes.result.is_none_or(result) {
        return Err(Why("a result of more than two registers"));
    }
    if !lanes.reads.iter().all(|read| read.width <= 64) {
        return Err(Why("a source of more than two registers"));
    }
    check(&lanes.body, Region::Lane)?;
    if !reads_only_ieee_bit(&lanes.body) {
        return Err(Why("a read of MODE"));
    }
    if !unroll::is_supported(&lanes.body) {
        return Err(Why("a loop or an array that cannot be unrolled"));
    }
    if !wide_sums::are_supported(&lanes.body) {
        return Err(Why("arithmetic of 128 bits"));
    }
    Ok(())
}

fn lane_operands(op: &Op, ext: &Ext, lanes: &Lanes, handlers: &Handlers) -> Result<(), Why> {
    if op.flags & Op::NO_RESULT != 0 {
        return Err(Why("a result that is dropped"));
    }
    if op.flags & Op::HIGH != 0 && !lanes.writes_half() {
        return Err(Why("a result in the upper half of a register"));
    }
    if op.flags & Op::SCALAR_DEST != 0 && handlers.result_dwords() > 0 {
        return Err(Why("a scalar destination"));
    }
    if lanes.steps.contains(&Step::ReadMask) && !matches!(op.src[3].decode(), DecodedSource::Scalar(_)) {
        return Err(Why("a mask that is not a scalar register"));
    }
    let fits = |step: &Step| match step {
        Step::Write { dwords, how: WriteBack::General { output } | WriteBack::Half { output } }
            if op.flags & Op::OUTPUT != 0 && !output::is_supported(ext, *output, *dwords) =>
        {
            Err(Why("output modifiers of an unusual result"))
        }
        // Lanes that DPP disables keep their bits.
        Step::Gather { keep: true, .. } if ext.dpp.is_some() => Err(Why("a mask by DPP")),
        Step::Stage { slot: 0, dwords, .. } if ext.dpp.is_some() && !dpp_supported(op, ext, *dwords) => {
            Err(Why("DPP of an unusual source"))
        }
        Step::Loop(lanes) if op.flags & Op::CLAMP != 0 && !saturation_supported(&lanes.body) => {
            Err(Why("saturation of 128 bits"))
        }
        _ => Ok(()),
    };
    lanes.steps.iter().try_for_each(fits)
}

/// Returns whether DPP can be applied to the first source, which has `dwords` registers.
fn dpp_supported(op: &Op, ext: &Ext, dwords: u32) -> bool {
    let whole = dwords == if ext.sign_at[0] == 63 { 2 } else { 1 };
    whole && matches!(op.src[0].decode(), DecodedSource::Vector(first) if first + dwords as usize <= STAGE)
}

/// Returns whether all saturating operations of a body can be compiled.
fn saturation_supported(body: &[Stmt]) -> bool {
    !any_value(
        body,
        &|v| matches!(&v.kind, ValueKind::Saturate { value, .. } if value.host_width == HostWidth::W128),
    )
}

/// Loaded and stored values occur where [`subword::find`] expects them.
fn subword_supported(subword: &Subword) -> bool {
    let space = if matches!(subword.block, Block::Lds { .. }) { Space::Lds } else { Space::Global };
    subword.space == space
        && addresses_supported(&subword.block)
        && scale_supported(&subword.block, subword.bytes)
        && check_values(&subword.lanes.body, Region::Access).is_ok()
}

/// The addresses of an atomic can be compiled.
fn atomic_supported(found: &AtomicUpdate) -> bool {
    let space = if matches!(found.block, Block::Lds { .. }) { Space::Lds } else { Space::Global };
    found.space == space && addresses_supported(&found.block) && scale_supported(&found.block, found.bytes)
}

/// Returns whether the access moves whole registers of all lanes.
fn block_supported(lanes: &Lanes, block: &Block) -> bool {
    let of = |wanted: Space| {
        lanes.steps.iter().all(|step| !matches!(step, Step::Memory(memory) if memory.space != wanted))
    };
    let space = if matches!(block, Block::Lds { .. }) { Space::Lds } else { Space::Global };
    let (Block::Global { dwords, .. } | Block::Lds { dwords, .. }) = block;
    of(space) && addresses_supported(block) && scale_supported(block, 4 * *dwords as usize)
}

fn addresses_supported(block: &Block) -> bool {
    let fine = |values: &[Value]| values.iter().all(|v| check_value(v, Region::Wave).is_ok());
    match block {
        Block::Global { base, unless, address64, dwords, .. } => {
            let terms = [Some(&base[..]), address64.as_deref(), unless.as_ref().map(std::slice::from_ref)];
            matches!(dwords, 1 | 2 | 4) && terms.into_iter().flatten().all(fine)
        }
        Block::Lds { plus, dwords, .. } => matches!(dwords, 1 | 2 | 4) && fine(plus),
    }
}
