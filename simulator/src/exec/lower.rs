//! Instructions -> dense operations: operands resolved, constants broadcast into rows, modifiers put aside.

use super::op::{Dpp, Ext, Op, Way};
use super::plan::{self, Code, Fmt, Half, Operand, Plan};
use crate::arch::Arch;
use crate::inst::Inst;
use crate::isa::{self, OpInfo};
use crate::machine::Row;
use crate::machine::wave::{CONSTS, DISCARD, MAX_CONSTS, NULL, SCALAR_CONSTS, SCALARS, SGPRS, TEMP, VCC_LO};
use isa_spec::pcode::ir::Shape;
use isa_spec::tables::Role;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations of a program and the tables they index.
pub struct Lowered {
    /// Not 0, and no other program's.
    pub id: u64,
    pub ops: Vec<Op>,
    pub consts: Vec<Row>,
    pub exts: Vec<Ext>,
    seen_consts: HashMap<Vec<u32>, u16>,
    seen_exts: HashMap<Ext, u32>,
}

impl Default for Lowered {
    fn default() -> Lowered {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Lowered {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            ops: Vec::new(),
            consts: Vec::new(),
            // Index 0: no modifiers.
            exts: vec![Ext::default()],
            seen_consts: HashMap::new(),
            seen_exts: HashMap::from([(Ext::default(), 0)]),
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
    pub fn push(&mut self, arch: Arch, inst: &Inst, pc: u32, number: u32) {
        let plan = plan::plan(arch, inst.entry);
        let first = self.ops.len();
        let x = Op { pc, number, ..self.one(arch, inst, inst.entry, plan, &plan.operands) };
        if plan.y.is_empty() {
            self.ops.push(x);
            return;
        }
        let y_plan = plan::plan(arch, inst.entry_y);
        let mut y = Op { pc, number, ..self.one(arch, inst, inst.entry_y, y_plan, &y_plan.y) };
        // Both halves read before either writes: Y reads X's destination from a copy.
        let target = Op::VGPR | x.d;
        if y.src.contains(&target)
            && let Some(mov) = mov(arch)
        {
            let save = Op {
                code: Op::code_of(mov, Way::Plain),
                flags: 0,
                d: TEMP as u16,
                d1: 0,
                src: [target, 0, 0, 0],
                imm: 0,
                ext: 0,
                ..x
            };
            self.ops.push(save);
            for src in y.src.iter_mut().filter(|s| **s == target) {
                *src = Op::VGPR | TEMP as u16;
            }
        }
        self.ops.push(x);
        self.ops.push(y);
        let last = self.ops.len() - 1;
        self.ops[first..last].iter_mut().for_each(|op| op.flags |= Op::MORE);
    }

    fn one(&mut self, arch: Arch, inst: &Inst, entry: u16, plan: &'static Plan, operands: &[Operand]) -> Op {
        let mut op = Op {
            code: Op::UNKNOWN,
            flags: 0,
            d: DISCARD as u16,
            d1: VCC_LO as u16,
            src: [NULL as u16, NULL as u16, NULL as u16, VCC_LO as u16],
            imm: 0,
            ext: 0,
            pc: 0,
            number: 0,
        };
        let Some(operation) = operation(arch, entry) else { return op };
        let info = &isa::OPERATIONS[operation as usize];
        let mut ext = Ext::default();
        for operand in operands {
            match operand.role {
                Role::D0 | Role::D1 => self.destination(arch, inst, plan, operand, info, &mut op, &mut ext),
                Role::Vcc => {
                    let register = operand.field.map_or(VCC_LO as u16, |f| inst.fields[f as usize] as u16);
                    if operand.input {
                        op.src[3] = register;
                    }
                    if operand.output {
                        op.d1 = register;
                    }
                }
                _ => self.source(arch, inst, plan, operand, info, &mut op, &mut ext),
            }
        }
        let table = arch.table();
        let field = |name| plan.named_field(inst, table, name);
        op.imm = if plan.mods.simm16.is_some() { field("SIMM16") } else { field("OFFSET") };
        if plan.get(inst, plan.mods.clamp) != 0 {
            op.flags |= Op::CLAMP;
        }
        ext.dpp = dpp(plan, inst);
        if ext != Ext::default() {
            op.flags |= Op::MODIFY;
        }
        ext.omod = plan.get(inst, plan.mods.omod) as u8;
        if !info.fields.is_empty() {
            ext.neg = field("NEG");
            ext.neg_hi = field("NEG_HI");
            ext.abs = field("ABS");
            ext.op_sel = field("OPSEL");
            ext.op_sel_hi = field("OPSEL_HI");
            ext.simm32 = field("SIMM32");
            ext.idxen = field("IDXEN");
            ext.offen = field("OFFEN");
            ext.format = field("FORMAT");
            ext.sve = field("SVE");
            ext.glc = field("GLC");
        }
        op.ext = self.ext(ext);
        let way = match info.staged {
            Some(dwords) if info.shape == Shape::Scalar => scalar(&op, operands, dwords),
            Some(dwords) if is_plain(&op, operands) => scalars(&mut op, dwords),
            // Its scalars are no lane's.
            None if info.block && is_plain(&op, operands) && op.src[1] < Op::VGPR => Way::Plain,
            _ => Way::Any,
        };
        op.code = Op::code_of(operation, way);
        op
    }

    fn ext(&mut self, ext: Ext) -> u32 {
        let next = self.exts.len() as u32;
        let at = *self.seen_exts.entry(ext).or_insert(next);
        if at == next {
            self.exts.push(ext);
        }
        at
    }

    fn rows(&mut self, dwords: Vec<u32>) -> u16 {
        if let Some(at) = self.seen_consts.get(&dwords) {
            return *at;
        }
        let at = self.consts.len() as u16;
        self.consts.extend(dwords.iter().map(|v| Row::splat(*v)));
        self.seen_consts.insert(dwords, at);
        at
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
        let value = inst.fields[field as usize];
        if operand.fmt == Fmt::Mask {
            op.d = plan::mask_register(operand, value);
            return;
        }
        match plan::code(arch, operand, value) {
            // A body that reads the number itself gets all of it.
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
                op.d = sgpr;
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
    ) {
        let Some(slot) = slot(operand.role) else { return };
        let Some(field) = operand.field else { return };
        let value = inst.fields[field as usize];
        if operand.fmt == Fmt::Mask {
            op.src[slot] = plan::mask_register(operand, value);
            return;
        }
        let code = plan::code(arch, operand, value);
        let mut reg = 0;
        op.src[slot] = match code {
            Code::Vgpr(r) if info.indexed.contains(&operand.role) => Op::VGPR | r,
            Code::Vgpr(r) => {
                reg = r;
                Op::VGPR | plan.register(operand, r)
            }
            Code::Fixed(r) => Op::VGPR | r,
            Code::Sgpr(sgpr) => sgpr,
            _ if info.indexed.contains(&operand.role) => value as u16,
            Code::Int(_) | Code::Float(_) | Code::Literal => {
                let literal = plan.get(inst, plan.mods.literal);
                let at = self.rows(constant_dwords(code, operand, literal));
                // Handlers find the first constants among the registers.
                match info.shape {
                    Shape::Lane if (at as usize) + 4 <= MAX_CONSTS => Op::VGPR | (CONSTS as u16 + at),
                    Shape::Scalar if (at as usize) + 4 <= SCALAR_CONSTS => SGPRS as u16 + at,
                    _ => Op::CONST | at,
                }
            }
            Code::Scc => Op::SCC,
            Code::SharedBase => Op::SHARED_BASE,
            Code::PrivateBase => Op::PRIVATE_BASE,
            Code::SharedLimit | Code::PrivateLimit => Op::LIMIT,
            Code::Invalid => NULL as u16,
        };
        if matches!(operand.role, Role::S0 | Role::S1 | Role::S2 | Role::S3) && info.shape != Shape::Scalar {
            modifiers(arch, inst, plan, operand, info, slot, reg, ext);
        }
    }
}

/// Whether a handler's plain path can run the operation: every source a VGPR, a constant or one of the SGPRs below NULL.
fn is_plain(op: &Op, operands: &[Operand]) -> bool {
    /// As many SGPRs as a lane's source has at most.
    const WIDEST: u16 = 4;
    let plain =
        |code: u16| code & (Op::VGPR | Op::SPECIAL | Op::CONST) == Op::VGPR || code + WIDEST <= NULL as u16;
    let special = Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP;
    // Masks are read as such on every path.
    let sources =
        operands.iter().filter(|o| o.field.is_some() && o.fmt != Fmt::Mask).filter_map(|o| slot(o.role));
    op.flags & special == 0 && sources.into_iter().all(|slot| plain(op.src[slot]))
}

/// How a scalar instruction runs whose sources have so many registers: plainly if they and the result are in the scalar file.
fn scalar(op: &Op, operands: &[Operand], dwords: [u8; 4]) -> Way {
    // Two registers at most, and none with a meaning of its own.
    let d_inside = op.d + 2 <= NULL as u16 || operands.iter().all(|o| o.role != Role::D0);
    let inside = |(code, dwords): (u16, u8)| {
        let file = if code < SGPRS as u16 { SGPRS } else { SGPRS + SCALAR_CONSTS };
        dwords == 0 || (code as usize) + dwords as usize <= file
    };
    let plain = op.flags & !Op::SCALAR_DEST == 0 && d_inside && op.src.into_iter().zip(dwords).all(inside);
    if plain { Way::Plain } else { Way::Any }
}

/// Turns the SGPRs among a plain operation's sources into their hidden rows, and lists them, unless they are too many.
fn scalars(op: &mut Op, dwords: [u8; 4]) -> Way {
    let (mut list, mut used) = ([Op::NO_SCALAR; 4], 0);
    let mut src = op.src;
    // The mask source, and slots without an operand, have no registers to read.
    for (code, dwords) in src.iter_mut().zip(dwords).filter(|(code, n)| *n > 0 && **code < Op::VGPR) {
        for sgpr in *code as u8..*code as u8 + dwords {
            if list[..used].contains(&sgpr) {
                continue;
            }
            let Some(free) = list.get_mut(used) else { return Way::Any };
            *free = sgpr;
            used += 1;
        }
        *code = Op::VGPR | (SCALARS as u16 + *code);
    }
    op.src = src;
    if used == 0 {
        return Way::Plain;
    }
    op.flags |= Op::SCALARS;
    op.imm = u32::from_le_bytes(list);
    Way::Scalars
}

fn slot(role: Role) -> Option<usize> {
    Some(match role {
        Role::S0 | Role::VAddr => 0,
        Role::S1 | Role::SAddr => 1,
        Role::S2 | Role::Data => 2,
        Role::Imm | Role::Other => return None,
        _ => 3,
    })
}

/// A constant's registers, as the operand sees them.
fn constant_dwords(code: Code, operand: &Operand, literal: u32) -> Vec<u32> {
    let bits = plan::constant(code, operand, literal);
    if operand.size_bits > 64 {
        let low = bits as u32;
        let dword = if matches!(operand.fmt, Fmt::Packed(_)) { low & 0xffff | low << 16 } else { low };
        // As many rows as the widest body looks at.
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
    if operand.size_bits == 16 && !names("OPSEL") && plan.half_shift(inst, operand, reg, false) != 0 {
        ext.high_bits |= on;
        ext.narrow_bits |= on;
    }
    let float = matches!(operand.fmt, Fmt::F16 | Fmt::BF16 | Fmt::F32 | Fmt::F64 | Fmt::Bits);
    if !float || operand.size_bits > 64 {
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

fn dpp(plan: &Plan, inst: &Inst) -> Dpp {
    let m = &plan.mods;
    let get = |field| plan.get(inst, field);
    if let Some(first) = m.lane_sel {
        let lanes = std::array::from_fn(|k| inst.fields[first as usize + k] as u8);
        // SRC0 is 233 without and 234 with fetch-inactive.
        return Dpp::Dpp8 { lanes, fetch: get(m.src0) == 234 };
    }
    if m.dpp_ctrl.is_none() {
        return Dpp::None;
    }
    Dpp::Dpp16 {
        ctrl: get(m.dpp_ctrl) as u16,
        row_mask: get(m.row_mask) as u8,
        bank_mask: get(m.bank_mask) as u8,
        bound: get(m.bound_ctrl) != 0,
        fetch: get(m.fi) != 0,
    }
}

/// The plain move, for copies.
fn mov(arch: Arch) -> Option<u16> {
    let table = arch.table();
    let at = table.instructions.iter().position(|i| i.name == "V_MOV_B32")?;
    isa::BY_ARCH[arch as usize].get(at).copied().filter(|c| *c != u16::MAX)
}
