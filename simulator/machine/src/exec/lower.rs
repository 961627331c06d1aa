//! Instructions -> dense operations: operands resolved, constants broadcast to lane vectors, modifiers in a table of their own.

use super::op::{ByMode, BySource, Ext, Op, Part, SLOTS, Source, Variant};
use super::validate;
use crate::isa;
use crate::state::wave::{DISCARD, TEMP, VCC_LO};
use foldhash::{HashMap, HashMapExt};
use isa_spec::facts::Touch;
use isa_spec::pcode::ir::Shape;
use isa_spec::tables::Role;
use std::sync::atomic::{AtomicU64, Ordering};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Binding, Operand};
use wavesim_isa::relative;

mod dpp;
mod modifiers;
mod operands;
mod variant;

pub use modifiers::sdwa;
use variant::{block, is_beyond, is_moved, lanes, scalar};

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
        let binding = operand::binding(arch, inst.entry);
        let first = self.ops.len();
        let mut x = Op { pc, number, ..self.one(arch, inst, inst.entry, binding, &binding.operands)? };
        if binding.y.is_empty() {
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
        let y_plan = operand::binding(arch, inst.entry_y);
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
        binding: &'static Binding,
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
                Role::D0 | Role::D1 => {
                    self.destination(arch, inst, binding, operand, info, &mut op, &mut ext)
                }
                Role::Vcc => {
                    let register = binding.value(inst, operand).map_or(VCC_LO as u16, |value| value as u16);
                    let register = Source::sgpr(register);
                    if operand.input {
                        op.src[3] = register;
                    }
                    if operand.output {
                        op.d1 = register.number();
                    }
                }
                _ => self.source(arch, inst, binding, operand, info, &mut op, &mut ext, &mut pool)?,
            }
        }
        let table = arch.table();
        let field = |name| binding.named_field(inst, table, name);
        op.imm = if binding.mods.simm16.is_some() { field("SIMM16") } else { field("OFFSET") };
        if info.fields.contains(&"SIMM4") {
            op.imm = field("SIMM4");
        }
        if binding.get(inst, binding.mods.clamp) != 0 {
            op.flags |= Op::CLAMP;
        }
        ext.dpp = dpp::of(arch, binding, inst);
        ext.sdwa = sdwa(binding, inst, operands);
        if ext.sdwa.is_some_and(|sdwa| sdwa.result != Part::WHOLE) {
            op.flags |= Op::OUTPUT;
        }
        if ext != Ext::default() {
            op.flags |= Op::MODIFY;
        }
        ext.by_mode = by_mode(arch, inst, operands, &op);
        ext.pool = pool;
        ext.omod = binding.get(inst, binding.mods.omod) as u8;
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
        if is_moved(&op, &ext, info) {
            op.flags |= Op::MOVED;
        }
        let beyond = is_beyond(&op, &ext, operands, info);
        op.ext = self.ext(ext)?;
        if beyond {
            op.code = Op::BEYOND;
            return Ok(op);
        }
        if binding.has_dpp() && info.shape == Shape::Wave {
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

fn slot(role: Role) -> Option<usize> {
    Some(match role {
        Role::S0 | Role::VAddr => 0,
        Role::S1 | Role::SAddr => 1,
        Role::S2 | Role::Data => 2,
        Role::Imm | Role::Other | Role::S4 => return None,
        _ => 3,
    })
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
