//! Instructions -> dense operations: operands resolved, constants broadcast to lane vectors, modifiers in a table of their own.

use super::op::{ByMode, BySource, Ext, Op, Part, Place, Rest, SLOTS, Sdwa, Source, Variant};
use super::validate;
use crate::isa::{self, OpInfo};
use crate::state::wave::{
    ALL_VGPRS, CONSTS, DISCARD, MAX_CONSTS, NULL, SCALAR_CONSTS, SCALARS, SGPRS, TEMP, VCC_LO, VGPRS,
};
use foldhash::{HashMap, HashMapExt};
use isa_spec::facts::Touch;
use isa_spec::pcode::ir::Shape;
use isa_spec::tables::Role;
use std::sync::atomic::{AtomicU64, Ordering};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Code, Fmt, Half, Holds, Operand, Plan};
use wavesim_isa::relative;

mod dpp;

/// What a program has too many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// The pool of constants has as many words as it may.
    #[error("more than {0} words of distinct constants")]
    Constants(usize),
    /// The table of modifiers has as many entries as it may.
    #[error("more than {0} distinct sets of modifiers")]
    Modifiers(usize),
    /// There are as many operations as there may be.
    #[error("more than {0} operations")]
    Operations(usize),
    /// The code has more bytes than offsets of 32 bits reach.
    #[error("more than {0} bytes of code")]
    Code(u64),
}

/// As many as a program may have of each. Far more than fits the machines that these kernels are for, and what 32 bits can number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Words of the pool.
    pub constants: usize,
    /// Entries of the table of [`Ext`].
    pub modifiers: usize,
    /// Operations; VOPD and the like take several an instruction.
    pub operations: usize,
}

impl Limits {
    const ALL: Limits = Limits { constants: 1 << 28, modifiers: 1 << 26, operations: 1 << 30 };
}

/// Operations of a program and the tables they index.
pub struct Lowered {
    /// Not 0, and no other program's.
    pub(super) id: u64,
    pub(super) ops: Vec<Op>,
    /// The pool of constants, in words. The first stand in the register files, for handlers to read like registers ([`Wave::install`]).
    ///
    /// [`Wave::install`]: crate::state::Wave::install
    pub(super) consts: Vec<u32>,
    pub(super) exts: Vec<Ext>,
    seen_consts: HashMap<Vec<u32>, u32>,
    seen_exts: HashMap<Ext, u32>,
    pub(super) limits: Limits,
}

/// A number that no program has had.
pub(super) fn fresh_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Default for Lowered {
    fn default() -> Lowered {
        Lowered {
            id: fresh_id(),
            ops: Vec::new(),
            consts: Vec::new(),
            // Index 0: no modifiers.
            exts: vec![Ext::default()],
            seen_consts: HashMap::new(),
            seen_exts: HashMap::from_iter([(Ext::default(), 0)]),
            limits: Limits::ALL,
        }
    }
}

/// Canonical operation of an instruction, `None` without semantics.
pub fn operation(arch: Arch, entry: u16) -> Option<u16> {
    let inst = arch.table().entries[entry as usize].inst as usize;
    isa::BY_ARCH[arch as usize].get(inst).copied().filter(|code| *code != u16::MAX)
}

impl Lowered {
    /// Appends the operations of `inst`, the `number`th instruction, `pc` bytes into the code.
    pub fn push(&mut self, arch: Arch, inst: &Inst, pc: u32, number: u32) -> Result<(), Full> {
        // An instruction is three operations at most.
        if self.ops.len() + 3 > self.limits.operations {
            return Err(Full::Operations(self.limits.operations));
        }
        let plan = operand::plan(arch, inst.entry);
        let first = self.ops.len();
        let mut x = Op { pc, number, ..self.one(arch, inst, inst.entry, plan, &plan.operands)? };
        if plan.y.is_empty() {
            let dpp = self.exts[x.ext as usize].dpp;
            // Both halves of the wave read before either is written: from a copy.
            if dpp.is_some_and(|dpp| dpp.across.is_some())
                && x.src[0].is_vector()
                && let Some(mov) = mov(arch)
            {
                let ByMode { vector, vgprs } = self.exts[x.ext as usize].by_mode;
                let by_mode = ByMode { vector, vgprs: [vgprs[0], 0, 0, 0] };
                let ext = self.ext(Ext { by_mode, ..Ext::default() })?;
                self.add(Op { ext, ..copy_of(&x, mov, x.src[0]) });
                x.src[0] = Source::result(TEMP as u16);
            }
            self.add(x);
            return Ok(());
        }
        let y_plan = operand::plan(arch, inst.entry_y);
        let mut y = Op { pc, number, ..self.one(arch, inst, inst.entry_y, y_plan, &y_plan.y)? };
        // Both halves read before either writes: Y reads X's destination from a copy.
        let target = Source::result(x.d);
        if y.src.contains(&target)
            && let Some(mov) = mov(arch)
        {
            self.add(copy_of(&x, mov, target));
            for src in y.src.iter_mut().filter(|s| **s == target) {
                *src = Source::result(TEMP as u16);
            }
        }
        self.add(x);
        self.add(y);
        let last = self.ops.len() - 1;
        self.ops[first..last].iter_mut().for_each(|op| op.flags |= Op::MORE);
        Ok(())
    }

    /// The operations so far.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Not 0, and no other program's.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The pool of constants, in words.
    pub fn consts(&self) -> &[u32] {
        &self.consts
    }

    /// Modifiers, by [`Op::ext`].
    pub fn exts(&self) -> &[Ext] {
        &self.exts
    }

    /// Takes in an operation that keeps to the invariants of lowered code. In place of another, which the lowering does not make, there
    /// would be one that no handler runs.
    fn add(&mut self, op: Op) {
        let checked = validate::operation(&op, self.consts.len(), &self.exts);
        debug_assert_eq!(checked, Ok(()), "{op:?}");
        let code = if checked.is_ok() { op.code } else { Op::UNKNOWN };
        self.ops.push(Op { code, ..op });
    }

    /// Appends what is not an instruction, and gives its index.
    pub(super) fn insert(&mut self, op: Op) -> Result<u32, Full> {
        if self.ops.len() >= self.limits.operations {
            return Err(Full::Operations(self.limits.operations));
        }
        self.add(op);
        Ok(self.ops.len() as u32 - 1)
    }

    fn one(
        &mut self,
        arch: Arch,
        inst: &Inst,
        entry: u16,
        plan: &'static Plan,
        operands: &[Operand],
    ) -> Result<Op, Full> {
        let mut op = Op {
            code: Op::UNKNOWN,
            flags: 0,
            d: DISCARD as u16,
            d1: VCC_LO as u16,
            src: [Source::NULL, Source::NULL, Source::NULL, Source::sgpr(VCC_LO as u16)],
            imm: 0,
            ext: 0,
            pc: 0,
            number: 0,
        };
        let Some(operation) = operation(arch, entry) else { return Ok(op) };
        let info = &isa::OPERATIONS[operation as usize];
        let mut ext = Ext::default();
        let mut pool = [0; SLOTS];
        for operand in operands {
            match operand.role {
                Role::D0 | Role::D1 => self.destination(arch, inst, plan, operand, info, &mut op, &mut ext),
                Role::Vcc => {
                    let register = plan.value(inst, operand).map_or(VCC_LO as u16, |value| value as u16);
                    let register = Source::sgpr(register);
                    if operand.input {
                        op.src[3] = register;
                    }
                    if operand.output {
                        op.d1 = register.number();
                    }
                }
                _ => self.source(arch, inst, plan, operand, info, &mut op, &mut ext, &mut pool)?,
            }
        }
        let table = arch.table();
        let field = |name| plan.named_field(inst, table, name);
        op.imm = if plan.mods.simm16.is_some() { field("SIMM16") } else { field("OFFSET") };
        if info.fields.contains(&"SIMM4") {
            op.imm = field("SIMM4");
        }
        if plan.get(inst, plan.mods.clamp) != 0 {
            op.flags |= Op::CLAMP;
        }
        ext.dpp = dpp::of(arch, plan, inst);
        ext.sdwa = sdwa(plan, inst, operands);
        if ext.sdwa.is_some_and(|sdwa| sdwa.result != Part::WHOLE) {
            op.flags |= Op::OUTPUT;
        }
        if ext != Ext::default() {
            op.flags |= Op::MODIFY;
        }
        ext.by_mode = by_mode(arch, inst, operands, &op);
        ext.pool = pool;
        ext.omod = plan.get(inst, plan.mods.omod) as u8;
        if !info.fields.is_empty() {
            ext.neg = field("NEG");
            ext.neg_hi = field("NEG_HI");
            ext.abs = field("ABS");
            ext.op_sel = field("OPSEL");
            ext.op_sel_hi = field("OPSEL_HI");
            ext.by_source = BySource::new(ext.neg, ext.neg_hi, ext.op_sel, ext.op_sel_hi);
            ext.simm32 = field("SIMM32");
            ext.idxen = field("IDXEN");
            ext.offen = field("OFFEN");
            ext.format = field("FORMAT");
            ext.sve = field("SVE");
            ext.glc = field("GLC");
            ext.gfx9 = field("GFX9");
            ext.to_lds = field("TO_LDS");
            ext.cbsz = field("CBSZ");
            ext.abid = field("ABID");
            ext.blgp = field("BLGP");
        }
        let beyond = is_beyond(&op, &ext, operands, info);
        op.ext = self.ext(ext)?;
        if beyond {
            op.code = Op::BEYOND;
            return Ok(op);
        }
        if plan.has_dpp() && info.shape == Shape::Wave {
            op.code = Op::LANES;
            return Ok(op);
        }
        let variant = match info.shape {
            Shape::Scalar if info.staged => scalar(&op, info),
            _ if info.staged => lanes(&mut op, info),
            _ if info.block => block(&op, info),
            _ => Variant::General,
        };
        op.code = Op::code_of(operation, variant);
        Ok(op)
    }

    fn ext(&mut self, ext: Ext) -> Result<u32, Full> {
        if let Some(at) = self.seen_exts.get(&ext) {
            return Ok(*at);
        }
        if self.exts.len() >= self.limits.modifiers {
            return Err(Full::Modifiers(self.limits.modifiers));
        }
        let at = self.exts.len() as u32;
        self.exts.push(ext);
        self.seen_exts.insert(ext, at);
        Ok(at)
    }

    /// Where in the pool some constants stand, one after the other.
    fn pooled(&mut self, dwords: Vec<u32>) -> Result<u32, Full> {
        if let Some(at) = self.seen_consts.get(&dwords) {
            return Ok(*at);
        }
        if self.consts.len() + dwords.len() > self.limits.constants {
            return Err(Full::Constants(self.limits.constants));
        }
        let at = self.consts.len() as u32;
        self.consts.extend(&dwords);
        self.seen_consts.insert(dwords, at);
        Ok(at)
    }

    /// A constant as a source: in the file that the operation's handler reads, if it is one of the first, or in the pool.
    fn constant(
        &mut self,
        shape: Shape,
        slot: usize,
        dwords: Vec<u32>,
        pool: &mut [u32; SLOTS],
    ) -> Result<Source, Full> {
        let count = dwords.len();
        let place = self.pooled(dwords)?;
        let at = place as usize;
        let in_file = match shape {
            Shape::Lane if at + count <= MAX_CONSTS => Source::vector(CONSTS + at),
            Shape::Lane => None,
            _ => Source::scalar_constant(at, count),
        };
        Ok(in_file.unwrap_or_else(|| {
            pool[slot] = place;
            Source::pool(slot)
        }))
    }

    #[allow(clippy::too_many_arguments)]
    fn destination(
        &mut self,
        arch: Arch,
        inst: &Inst,
        plan: &'static Plan,
        operand: &Operand,
        info: &OpInfo,
        op: &mut Op,
        ext: &mut Ext,
    ) {
        let Some(field) = operand.field else {
            if operand.fmt == Fmt::Mask {
                op.d = VCC_LO as u16;
            }
            return;
        };
        let value = plan.value(inst, operand).unwrap_or(inst.fields[field as usize]);
        if operand.fmt == Fmt::Mask {
            op.d = Source::sgpr(operand::mask_register(operand, value)).number();
            if info.shape == Shape::Scalar {
                op.flags |= Op::SCALAR_DEST;
            }
            return;
        }
        match operand::code(arch, operand, value) {
            // A body that reads the number itself gets all of it.
            Code::Vgpr(reg) if reg as usize >= ALL_VGPRS => op.d = DISCARD as u16,
            Code::Vgpr(reg) if info.indexed.contains(&operand.role) => op.d = reg,
            Code::Vgpr(reg) => {
                op.d = plan.register(operand, reg);
                if plan.half_shift(inst, operand, reg, true) != 0 {
                    op.flags |= Op::HIGH;
                }
                if !plan.returns(inst) {
                    if operand.input {
                        op.flags |= Op::OUTPUT | Op::NO_RESULT;
                    } else {
                        op.d = DISCARD as u16;
                    }
                }
            }
            Code::Sgpr(sgpr) => {
                op.d = Source::sgpr(sgpr).number();
                op.flags |= Op::SCALAR_DEST;
                ext.half_result = operand.fmt == Fmt::F16
                    && plan.get(inst, plan.mods.omod) + plan.get(inst, plan.mods.clamp) != 0;
            }
            Code::Fixed(_) => op.d = DISCARD as u16,
            _ => op.d = NULL as u16,
        }
        let float = matches!(operand.fmt, Fmt::F16 | Fmt::BF16 | Fmt::F32 | Fmt::F64)
            || operand.fmt == Fmt::Packed(Half::F16) && operand.size_bits == 32;
        let clamp = plan.get(inst, plan.mods.clamp) != 0 && !info.fields.contains(&"CLAMP");
        if float && (clamp || plan.get(inst, plan.mods.omod) != 0) {
            op.flags |= Op::OUTPUT;
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn source(
        &mut self,
        arch: Arch,
        inst: &Inst,
        plan: &'static Plan,
        operand: &Operand,
        info: &OpInfo,
        op: &mut Op,
        ext: &mut Ext,
        pool: &mut [u32; SLOTS],
    ) -> Result<(), Full> {
        if operand.role == Role::S4 {
            return self.fifth(arch, inst, plan, operand, info, ext, pool);
        }
        let Some(slot) = slot(operand.role) else { return Ok(()) };
        let Some(value) = plan.value(inst, operand) else { return Ok(()) };
        if operand.fmt == Fmt::Mask {
            op.src[slot] = Source::sgpr(operand::mask_register(operand, value));
            return Ok(());
        }
        let code = operand::code(arch, operand, value);
        let mut reg = 0;
        op.src[slot] = match code {
            // A body that reads the number itself gets all of it.
            Code::Vgpr(r) if info.indexed.contains(&operand.role) => Source::vgpr(r),
            Code::Vgpr(r) => {
                reg = r;
                Source::vgpr(plan.register(operand, r))
            }
            Code::Fixed(r) => Source::vgpr(r),
            Code::Sgpr(sgpr) => Source::sgpr(sgpr),
            // What is not a register has no number.
            _ if info.indexed.contains(&operand.role) => Source::NULL,
            Code::Int(_) | Code::Float(_) | Code::Literal => {
                let dwords = constant_dwords(plan.constant(inst, code, operand), operand);
                self.constant(info.shape, slot, dwords, pool)?
            }
            Code::Scc => Source::SCC,
            Code::Vccz => Source::VCCZ,
            Code::Execz => Source::EXECZ,
            Code::SharedBase => Source::SHARED_BASE,
            Code::PrivateBase => Source::PRIVATE_BASE,
            Code::SharedLimit | Code::PrivateLimit => Source::LIMIT,
            Code::Invalid => Source::NULL,
        };
        if matches!(operand.role, Role::S0 | Role::S1 | Role::S2 | Role::S3) && info.shape != Shape::Scalar {
            modifiers(arch, inst, plan, operand, info, slot, reg, ext);
        }
        Ok(())
    }

    /// The fifth source: a register or a constant, without modifiers.
    #[allow(clippy::too_many_arguments)]
    fn fifth(
        &mut self,
        arch: Arch,
        inst: &Inst,
        plan: &'static Plan,
        operand: &Operand,
        info: &OpInfo,
        ext: &mut Ext,
        pool: &mut [u32; SLOTS],
    ) -> Result<(), Full> {
        let Some(value) = plan.value(inst, operand) else { return Ok(()) };
        let code = operand::code(arch, operand, value);
        ext.fifth = match code {
            Code::Vgpr(reg) => Source::vgpr(reg),
            Code::Sgpr(sgpr) => Source::sgpr(sgpr),
            Code::Int(_) | Code::Float(_) | Code::Literal => {
                let dwords = constant_dwords(plan.constant(inst, code, operand), operand);
                self.constant(info.shape, SLOTS - 1, dwords, pool)?
            }
            _ => Source::NULL,
        };
        Ok(())
    }
}

/// Which VGPRs of an operation M0 can offset, and whether it can be skipped.
fn by_mode(arch: Arch, inst: &Inst, operands: &[Operand], op: &Op) -> ByMode {
    let mut out = ByMode { vector: relative::is_skipped(arch, inst), vgprs: [0; 4] };
    for operand in operands {
        let Some((register, dwords, bit)) = relative::relative_vgpr(arch, inst, operand) else { continue };
        let slot = bit as usize - 12;
        let there = match slot {
            3 => op.flags & Op::SCALAR_DEST == 0 && op.d == register,
            _ => op.src[slot] == Source::vgpr(register),
        };
        if there {
            out.vgprs[slot] = dwords;
        }
    }
    out
}

/// VGPRs of an address: both that a body may read if there is no scalar base, or a buffer's index and offset.
fn address_registers(op: &Op, ext: &Ext, info: &OpInfo) -> u8 {
    let is_buffer = info.fields.contains(&"IDXEN");
    let both = if is_buffer { ext.idxen & ext.offen & 1 != 0 } else { op.src[1] == Source::NULL };
    if both { info.sources[0] } else { info.sources[0].min(1) }
}

/// Whether an operand begins with a VGPR and ends after the last one.
fn is_beyond(op: &Op, ext: &Ext, operands: &[Operand], info: &OpInfo) -> bool {
    // The two kinds of VGPRs have as many each.
    let beyond = |first: u16, dwords: u8| {
        (first as usize) < ALL_VGPRS && first as usize % VGPRS + dwords as usize > VGPRS
    };
    operands.iter().any(|operand| match (operand.role, slot(operand.role)) {
        (Role::VAddr, Some(slot)) => {
            op.src[slot].is_vector() && beyond(op.src[slot].number(), address_registers(op, ext, info))
        }
        (Role::D0, _) => {
            info.shape != Shape::Scalar && op.flags & Op::SCALAR_DEST == 0 && beyond(op.d, info.result)
        }
        (_, Some(slot)) => op.src[slot].is_vector() && beyond(op.src[slot].number(), info.sources[slot]),
        _ => false,
    })
}

/// As many registers as a lane's source has at most.
const WIDEST: u16 = 4;

/// An SGPR such that it and those after it are registers like all others.
fn is_ordinary_sgpr(source: Source) -> bool {
    matches!(source.place(), Place::Scalar(at) if at + WIDEST as usize <= NULL)
}

/// Whether an operation changes nothing of its vector sources and results.
fn is_unmodified(op: &Op) -> bool {
    op.flags & (Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP) == 0
}

/// How a load or store runs that moves neighbours as a block: plainly if the lanes' part of the address and the data are vectors, and the
/// wave's part is in SGPRs, or is missing and the handler knows what to do then.
fn block(op: &Op, info: &OpInfo) -> Variant {
    let dwords = info.sources;
    let vectors = [0, 2, 3].into_iter().all(|slot| dwords[slot] == 0 || op.src[slot].is_vector());
    let absent = info.wide && op.src[1].place() == Place::Scalar(NULL);
    let base = dwords[1] == 0 || absent || is_ordinary_sgpr(op.src[1]);
    if is_unmodified(op) && vectors && base { Variant::Fast } else { Variant::General }
}

/// How a scalar instruction runs whose sources have so many registers: plainly if they and the result are in the scalar file.
fn scalar(op: &Op, info: &OpInfo) -> Variant {
    // None with a meaning of its own.
    let d_inside =
        info.result == 0 || op.flags & Op::SCALAR_DEST != 0 && (op.d + info.result as u16) as usize <= NULL;
    let inside = |(source, dwords): (Source, u8)| match source.place() {
        _ if dwords == 0 => true,
        // More words of null are null, not what follows it.
        Place::Scalar(NULL) => dwords == 1,
        Place::Scalar(at) => at + dwords as usize <= if at < SGPRS { SGPRS } else { SGPRS + SCALAR_CONSTS },
        _ => false,
    };
    let plain =
        op.flags & !Op::SCALAR_DEST == 0 && d_inside && op.src.into_iter().zip(info.sources).all(inside);
    if plain { Variant::Fast } else { Variant::General }
}

/// How a lane's instruction runs: plainly if its sources are vectors, or SGPRs that become vectors. Turns the SGPRs among its sources into
/// their hidden vectors, and lists them, unless they are too many.
fn lanes(op: &mut Op, info: &OpInfo) -> Variant {
    let dwords = info.sources;
    // The mask source, and slots without an operand, have no registers to read.
    let read = |(source, dwords): &(Source, u8)| *dwords > 0 && !source.is_vector();
    if !is_unmodified(op) || !op.src.into_iter().zip(dwords).filter(read).all(|(s, _)| is_ordinary_sgpr(s)) {
        return Variant::General;
    }
    // In a wave of 64 the second half would read what the first has written: only of pairs at odd distances.
    let after = op.src[3].number() + 1;
    if op.src[3].is_scalar() && (op.d1 == after || info.result == 0 && op.d == after) {
        return Variant::General;
    }
    let (mut list, mut used) = ([Op::NO_SCALAR; 4], 0);
    let mut src = op.src;
    for (source, dwords) in src.iter_mut().zip(dwords).filter(|(source, n)| *n > 0 && !source.is_vector()) {
        let first = source.number();
        for sgpr in first..first + dwords as u16 {
            let sgpr = sgpr as u8;
            if list[..used].contains(&sgpr) {
                continue;
            }
            let Some(free) = list.get_mut(used) else { return Variant::General };
            *free = sgpr;
            used += 1;
        }
        let Some(copy) = Source::vector(SCALARS + first as usize) else { return Variant::General };
        *source = copy;
    }
    op.src = src;
    if used == 0 {
        return Variant::Fast;
    }
    op.flags |= Op::BROADCAST;
    op.imm = u32::from_le_bytes(list);
    Variant::FastBroadcast
}

fn slot(role: Role) -> Option<usize> {
    Some(match role {
        Role::S0 | Role::VAddr => 0,
        Role::S1 | Role::SAddr => 1,
        Role::S2 | Role::Data => 2,
        Role::Imm | Role::Other | Role::S4 => return None,
        _ => 3,
    })
}

/// A constant's registers, as the operand sees them.
fn constant_dwords(bits: u128, operand: &Operand) -> Vec<u32> {
    if operand.size_bits > 64 {
        let low = bits as u32;
        let dword = if matches!(operand.fmt, Fmt::Packed(_)) { low & 0xffff | low << 16 } else { low };
        // As many lane vectors as the widest body reads.
        return vec![dword; (operand.size_bits as usize).div_ceil(32).max(4)];
    }
    (0..4).map(|k| (bits >> (32 * k)) as u32).collect()
}

#[allow(clippy::too_many_arguments)]
fn modifiers(
    arch: Arch,
    inst: &Inst,
    plan: &'static Plan,
    operand: &Operand,
    info: &OpInfo,
    slot: usize,
    reg: u16,
    ext: &mut Ext,
) {
    let m = &plan.mods;
    let i = operand.source as u32;
    let names = |field: &str| info.fields.contains(&field);
    let on = 1u8 << slot;
    ext.sign_at[slot] = 0;
    let sign = (operand.size_bits.min(64) - 1) as u8;
    if plan.packed {
        let field = |name| plan.named_field(inst, arch.table(), name) >> i & 1 == 1;
        let Fmt::Packed(half) = operand.fmt else {
            if operand.fmt == Fmt::F32 && field("NEG") && !names("NEG") {
                ext.neg_bits |= on;
                ext.sign_at[slot] = 31;
            }
            return;
        };
        if operand.size_bits > 32 {
            return;
        }
        let (lo, hi) = if names("OPSEL") { (false, true) } else { (field("OPSEL"), field("OPSEL_HI")) };
        let signs = half != Half::Int && !names("NEG");
        let (neg_lo, neg_hi) = (signs && field("NEG"), signs && field("NEG_HI"));
        if (lo, hi, neg_lo, neg_hi) != (false, true, false, false) {
            ext.packed_bits |= on;
            ext.packed_sel |= on * lo as u8;
            ext.packed_sel_hi |= on * hi as u8;
            ext.packed_neg |= on * neg_lo as u8;
            ext.packed_neg_hi |= on * neg_hi as u8;
        }
        return;
    }
    // It also says how many registers lane movement takes.
    if operand.size_bits == 64 && plan.has_dpp() {
        ext.sign_at[slot] = sign;
    }
    if operand.size_bits == 16 && !names("OPSEL") && plan.half_shift(inst, operand, reg, false) != 0 {
        ext.high_bits |= on;
        ext.narrow_bits |= on;
    }
    let dot = operand.replicated;
    let float = matches!(operand.fmt, Fmt::F16 | Fmt::BF16 | Fmt::F32 | Fmt::F64 | Fmt::Bits);
    if !(float || dot) || operand.size_bits > 64 {
        return;
    }
    let bit = |field| plan.get(inst, field) >> i & 1 == 1;
    let (dpp_abs, dpp_neg) = match i {
        0 => (m.src0_abs, m.src0_neg),
        1 => (m.src1_abs, m.src1_neg),
        _ => (None, None),
    };
    // VOP3 with DPP has the bits twice; the DPP word's are unused there.
    let in_dpp = m.neg.is_none() && m.abs.is_none();
    let abs = (bit(m.abs) || in_dpp && plan.get(inst, dpp_abs) == 1) && !names("ABS");
    let neg = (bit(m.neg) || in_dpp && plan.get(inst, dpp_neg) == 1) && !names("NEG");
    if dot {
        // Both halves are negated; no absolute value is taken of them.
        if neg {
            ext.packed_bits |= on;
            ext.packed_sel_hi |= on;
            ext.packed_neg |= on;
            ext.packed_neg_hi |= on;
        }
        return;
    }
    if abs {
        ext.abs_bits |= on;
    }
    if neg {
        ext.neg_bits |= on;
    }
    if abs || neg {
        ext.sign_at[slot] = sign;
    }
}

/// The operation of an instruction that copies a lane vector to the temporary one, before the instruction's other operations.
fn copy_of(op: &Op, mov: u16, source: Source) -> Op {
    Op {
        code: Op::code_of(mov, Variant::Fast),
        flags: Op::MORE,
        d: TEMP as u16,
        d1: 0,
        src: [source, Source::NULL, Source::NULL, Source::NULL],
        imm: 0,
        ext: 0,
        ..*op
    }
}

/// What SDWA reads and writes, or what a 16-bit result of CDNA leaves of its register: it clears the upper half.
pub fn sdwa(plan: &Plan, inst: &Inst, operands: &[Operand]) -> Option<Sdwa> {
    let whole = Sdwa { sources: [Part::WHOLE; 2], signed: [false; 2], result: Part::WHOLE, rest: Rest::Keep };
    let Some(fields) = &plan.mods.sdwa else {
        let low = |o: &Operand| {
            let half =
                o.role == Role::D0 && o.size_bits == 16 && matches!(o.holds, Holds::Vgpr) && !o.preserves;
            half && plan.half_shift(inst, o, 0, true) == 0
        };
        return (plan.clears_upper_half && operands.iter().any(low)).then_some(Sdwa {
            result: Part::LOW,
            rest: Rest::Zero,
            ..whole
        });
    };
    let part = |field: Option<u8>| field.map_or(Part::WHOLE, |f| Part::new(inst.fields[f as usize]));
    Some(Sdwa {
        sources: fields.sel.map(part),
        signed: fields.sext.map(|f| plan.get(inst, f) != 0),
        result: part(fields.dst_sel),
        rest: match plan.get(inst, fields.dst_unused) {
            0 => Rest::Zero,
            1 => Rest::Sign,
            _ => Rest::Keep,
        },
    })
}

/// The plain move of a dword in each lane, for copies.
fn mov(arch: Arch) -> Option<u16> {
    let is_move = |code: &u16| {
        let Some(info) = isa::OPERATIONS.get(*code as usize) else { return false };
        let facts = &isa::FACTS[info.facts[0] as usize];
        let whole = |t: &Touch| t.bits == u32::MAX as u128;
        info.shape == Shape::Lane && facts.copies && facts.registers.iter().all(whole)
    };
    isa::BY_ARCH[arch as usize].iter().copied().find(is_move)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa_spec::tables::MAX_FIELDS;

    /// Whatever an instruction's fields hold, what comes of it keeps to the invariants: [`Lowered::add`] checks each operation.
    #[test]
    fn any_fields_give_sound_operations() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as u32
        };
        for arch in Arch::ALL {
            let entries = &arch.table().entries;
            for entry in 0..entries.len() as u16 {
                let mut lowered = Lowered::default();
                for bits in [8, 9, 16, 31] {
                    let fields = std::array::from_fn::<_, MAX_FIELDS, _>(|_| random() & ((1 << bits) - 1));
                    let entry_y = (random() % entries.len() as u32) as u16;
                    let inst = Inst { entry, entry_y, size: 4, fields };
                    lowered.push(arch, &inst, 0, 0).expect("a few operations");
                }
            }
        }
    }
}
