//! Lowering of instructions to dense operations: resolves operands, broadcasts constants to lane vectors, and
//! collects modifiers in a table.

use super::validate;
use crate::isa;
use foldhash::{HashMap, HashMapExt};
use isa_spec::facts::Access;
use isa_spec::pcode::ir::Shape;
use isa_spec::tables::Role;
use std::sync::atomic::{AtomicU64, Ordering};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Binding, Operand};
use wavesim_isa::relative;
use wavesim_rt::op::{
    ByMode, BySource, Ext, ImageFields, Msb, Op, Part, Pools, Rest, SLOTS, Sdwa, Source, Variant,
};
use wavesim_state::wave::{DISCARD, TEMP, VCC_LO};

mod dpp;
mod modifiers;
mod operands;
mod variant;

pub use modifiers::sdwa;
use variant::{block_variant, exceeds_vgprs, has_only_dpp, lane_variant, scalar_variant};

/// A limit that a program exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    /// Too many words in the constant pool.
    #[error("more than {0} words of distinct constants")]
    Constants(usize),
    /// Too many entries in the table of modifiers.
    #[error("more than {0} distinct sets of modifiers")]
    Modifiers(usize),
    /// Too many operations.
    #[error("more than {0} operations")]
    Operations(usize),
    /// More bytes of code than 32-bit offsets can address.
    #[error("more than {0} bytes of code")]
    Code(u64),
}

/// Limits of a program. They exceed what fits in the memory of the simulated machines by far, and keep all
/// indices within 32 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Words in the constant pool.
    pub constants: usize,
    /// Entries of the table of [`Ext`].
    pub modifiers: usize,
    /// Number of operations; an instruction such as VOPD takes several.
    pub operations: usize,
}

impl Limits {
    const ALL: Limits = Limits { constants: 1 << 28, modifiers: 1 << 26, operations: 1 << 30 };
}

/// The operations of a program and the tables that they index.
pub struct Lowered {
    pub(super) ops: Vec<Op>,
    pub(super) pools: Pools,
    seen_consts: HashMap<Vec<u32>, u32>,
    seen_exts: HashMap<Ext, u32>,
    pub(super) limits: Limits,
}

/// Returns an id that no other program has.
pub(super) fn fresh_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Default for Lowered {
    fn default() -> Lowered {
        Lowered {
            ops: Vec::new(),
            pools: Pools { id: fresh_id(), consts: Vec::new(), exts: vec![Ext::default()] },
            seen_consts: HashMap::new(),
            seen_exts: HashMap::from_iter([(Ext::default(), 0)]),
            limits: Limits::ALL,
        }
    }
}

/// An operation without handler, operands and results.
const NOTHING: Op = Op {
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

/// Returns the canonical operation of an instruction; `None` without semantics.
pub fn operation(arch: Arch, entry: u16) -> Option<u16> {
    let inst = arch.table().entries[entry as usize].inst as usize;
    isa::BY_ARCH[arch as usize].get(inst).copied().filter(|code| *code != u16::MAX)
}

impl Lowered {
    /// Appends the operations of `inst`, which is instruction `number` at byte offset `pc` of the code.
    pub fn push(&mut self, arch: Arch, inst: &Inst, pc: u32, number: u32) -> Result<(), LimitExceeded> {
        // An instruction takes at most six operations.
        if self.ops.len() + 6 > self.limits.operations {
            return Err(LimitExceeded::Operations(self.limits.operations));
        }
        let supported = operation(arch, inst.entry).is_some();
        if let Some(imm) = operand::unlisted_code(arch, inst).filter(|_| supported) {
            self.append(Op { code: Op::UNLISTED_CODE, pc, number, imm, ..NOTHING });
            return Ok(());
        }
        let binding = operand::binding(arch, inst.entry);
        let first = self.ops.len();
        let mut x =
            Op { pc, number, ..self.lower_entry(arch, inst, inst.entry, binding, &binding.operands)? };
        if !binding.dual {
            let dpp = self.pools.exts[x.ext as usize].dpp;
            // Both halves of the wave must read before either is written, so they read a copy.
            if dpp.is_some_and(|dpp| dpp.across.is_some())
                && x.src[0].is_vector()
                && let Some(mov) = move_operation(arch)
            {
                let by_mode = self.pools.exts[x.ext as usize].by_mode.of_source(0);
                let ext = self.ext_index(Ext { by_mode, ..Ext::default() })?;
                self.append(Op { ext, ..copy_to_temporary(&x, mov, x.src[0], 0) });
                x.src[0] = Source::result(TEMP as u16);
            }
            self.append(x);
            return Ok(());
        }
        let y_binding = operand::binding(arch, inst.entry_y);
        let mut y = Op { pc, number, ..self.lower_entry(arch, inst, inst.entry_y, y_binding, &y_binding.y)? };
        // Both halves of VOPD must read before either writes, so Y reads X's destination from copies. Where MODE
        // extends register numbers, these may be other registers in truth: each copy reads what Y would.
        let result = binding.operands.iter().find(|o| o.role == Role::D0);
        let dwords = result.map_or(1, |o| o.size_bits.div_ceil(32));
        let written = |source: Source| (0..dwords).any(|dword| source == Source::result(x.d + dword));
        let mut copies: Vec<(Source, ByMode)> = Vec::new();
        for slot in 0..y.src.len() {
            let Some(mov) = move_operation(arch).filter(|_| written(y.src[slot])) else { continue };
            let copy = (y.src[slot], self.pools.exts[y.ext as usize].by_mode.of_source(slot));
            let index = copies.iter().position(|other| *other == copy).unwrap_or(copies.len()) as u16;
            if index as usize == copies.len() {
                copies.push(copy);
                let (source, by_mode) = copy;
                let ext = self.ext_index(Ext { by_mode, ..Ext::default() })?;
                self.append(Op { ext, ..copy_to_temporary(&x, mov, source, index) });
            }
            y.src[slot] = Source::result(TEMP as u16 + index);
        }
        self.append(x);
        self.append(y);
        let last = self.ops.len() - 1;
        self.ops[first..last].iter_mut().for_each(|op| op.flags |= Op::MORE);
        Ok(())
    }

    /// The operations appended so far.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// What the operations index, for the context of handlers.
    pub fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Unique among programs, and not 0.
    pub fn id(&self) -> u64 {
        self.pools.id
    }

    /// The constant pool, in words.
    pub fn consts(&self) -> &[u32] {
        &self.pools.consts
    }

    /// The table of modifiers, indexed by [`Op::ext`].
    pub fn exts(&self) -> &[Ext] {
        &self.pools.exts
    }

    /// Appends an operation that satisfies the invariants of lowered code. One that violates them, which
    /// would be a bug in the lowering, is replaced with an operation without handler.
    fn append(&mut self, op: Op) {
        let checked = validate::operation(&op, self.pools.consts.len(), &self.pools.exts);
        debug_assert_eq!(checked, Ok(()), "{op:?}");
        let code = if checked.is_ok() { op.code } else { Op::UNKNOWN };
        self.ops.push(Op { code, ..op });
    }

    /// Appends an operation that is not an instruction, and returns its index.
    pub(super) fn insert(&mut self, op: Op) -> Result<u32, LimitExceeded> {
        if self.ops.len() >= self.limits.operations {
            return Err(LimitExceeded::Operations(self.limits.operations));
        }
        self.append(op);
        Ok(self.ops.len() as u32 - 1)
    }

    fn lower_entry(
        &mut self,
        arch: Arch,
        inst: &Inst,
        entry: u16,
        binding: &'static Binding,
        operands: &[Operand],
    ) -> Result<Op, LimitExceeded> {
        let mut op = NOTHING;
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
        let field = |name: &str| binding.named_field(inst, table, name);
        op.imm = if binding.mods.simm16.is_some() { field("SIMM16") } else { field("OFFSET") };
        if info.fields.contains(&"SIMM4") {
            op.imm = field("SIMM4");
        }
        if info.reads_size {
            op.imm = inst.size as u32;
        }
        if binding.get(inst, binding.mods.clamp) != 0 {
            op.flags |= Op::CLAMP;
            ext.own_clamp = op.flags & Op::OUTPUT != 0 && info.fields.contains(&"CLAMP");
        }
        ext.dpp = dpp::of(arch, binding, inst);
        ext.sdwa = sdwa(binding, inst, operands);
        if info.half
            && let Some(sdwa) = &mut ext.sdwa
            && (sdwa.result, sdwa.rest) == (Part::LOW, Rest::Zero)
        {
            op.flags |= Op::CLEAR_UPPER;
            sdwa.result = Part::WHOLE;
            if *sdwa == Sdwa::NONE {
                ext.sdwa = None;
            }
        }
        if ext.sdwa.is_some_and(|sdwa| sdwa.result != Part::WHOLE) {
            op.flags |= Op::OUTPUT;
        }
        if ext != Ext::default() {
            op.flags |= Op::MODIFY;
        }
        ext.by_mode = by_mode(arch, inst, binding, operands, &op, info);
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
            ext.gfx = field("GFX");
            ext.to_lds = field("TO_LDS");
            ext.cbsz = field("CBSZ");
            ext.abid = field("ABID");
            ext.blgp = field("BLGP");
            ext.simm32_hi = field("SIMM32_HI");
            ext.scale_offset = field("SCALE_OFFSET");
            ext.scale_neg = field("SCALE_NEG");
            ext.scale_neg_hi = field("SCALE_NEG_HI");
            ext.scale_op_sel = field("SCALE_OPSEL");
            ext.scale_op_sel_hi = field("SCALE_OPSEL_HI");
            ext.scale_code_a = field("SCALE_CODE_A");
            ext.scale_code_b = field("SCALE_CODE_B");
            if info.fields.contains(&"VADDR0") {
                ext.image = image_fields(field);
            }
        }
        if has_only_dpp(&op, &ext, info) {
            op.flags |= Op::DPP_ONLY;
        }
        let exceeds = exceeds_vgprs(&op, arch, inst, operands, info);
        op.ext = self.ext_index(ext)?;
        if exceeds {
            op.code = Op::OUT_OF_RANGE;
            return Ok(op);
        }
        if binding.has_dpp() && info.shape == Shape::Wave {
            op.code = Op::DPP_UNSUPPORTED;
            return Ok(op);
        }
        let variant = match info.shape {
            Shape::Scalar if info.staged => scalar_variant(&op, info),
            _ if info.staged => lane_variant(&mut op, info),
            _ if info.block => block_variant(&op, info),
            _ => Variant::General,
        };
        op.code = Op::code_of(operation, variant);
        Ok(op)
    }

    fn ext_index(&mut self, ext: Ext) -> Result<u32, LimitExceeded> {
        if let Some(at) = self.seen_exts.get(&ext) {
            return Ok(*at);
        }
        if self.pools.exts.len() >= self.limits.modifiers {
            return Err(LimitExceeded::Modifiers(self.limits.modifiers));
        }
        let at = self.pools.exts.len() as u32;
        self.pools.exts.push(ext);
        self.seen_exts.insert(ext, at);
        Ok(at)
    }

    /// Returns the index in the pool of consecutive constants.
    fn pool_index(&mut self, dwords: Vec<u32>) -> Result<u32, LimitExceeded> {
        if let Some(at) = self.seen_consts.get(&dwords) {
            return Ok(*at);
        }
        if self.pools.consts.len() + dwords.len() > self.limits.constants {
            return Err(LimitExceeded::Constants(self.limits.constants));
        }
        let at = self.pools.consts.len() as u32;
        self.pools.consts.extend(&dwords);
        self.seen_consts.insert(dwords, at);
        Ok(at)
    }
}

/// Returns the fields of an image instruction, given a function that returns fields by name.
fn image_fields(field: impl Fn(&str) -> u32) -> ImageFields {
    let number = |name| field(name) as u16;
    let flag = |name| field(name) != 0;
    ImageFields {
        vaddr: ["VADDR0", "VADDR1", "VADDR2", "VADDR3", "VADDR4"].map(number),
        samp: number("SAMP"),
        suffixes: number("SUFFIXES"),
        address_mask: number("ADDRESS_MASK"),
        data_mask: number("DATA_MASK"),
        dim: field("DIM") as u8,
        dmask: field("DMASK") as u8,
        a16: flag("A16"),
        d16: flag("D16"),
        unorm: flag("UNORM"),
        r128: flag("R128"),
        tfe: flag("TFE"),
        lwe: flag("LWE"),
        nsa: flag("NSA"),
    }
}

/// Determines which VGPRs of an operation M0 can offset or MODE can extend, and whether the operation can be
/// skipped.
fn by_mode(
    arch: Arch,
    inst: &Inst,
    binding: &Binding,
    operands: &[Operand],
    op: &Op,
    info: &isa::OpInfo,
) -> ByMode {
    let mut out = ByMode { vector: relative::is_skipped(arch, inst), ..ByMode::default() };
    for operand in operands {
        let Some((register, dwords, position)) = relative::extensible_vgpr(arch, inst, binding, operand)
        else {
            continue;
        };
        // Semantics that read the register number itself get all of it.
        let register = register as u16;
        let own = binding.register(operand, register);
        let (at, matches, most) = match (operand.role, slot(operand.role)) {
            (Role::D0, _) => {
                let is_own = op.d == own || op.d == register;
                (RESULT, op.flags & Op::SCALAR_DEST == 0 && is_own, info.result)
            }
            (_, Some(at)) => {
                let is_own = op.src[at] == Source::vgpr(own) || op.src[at] == Source::vgpr(register);
                (at, is_own, info.sources[at])
            }
            _ => continue,
        };
        if matches {
            out.msbs[at] = Msb { position, dwords: dwords.max(most) };
        }
    }
    for operand in operands {
        let Some((register, dwords, bit)) = relative::relative_vgpr(arch, inst, operand) else { continue };
        let slot = bit as usize - 12;
        let matches = match slot {
            3 => op.flags & Op::SCALAR_DEST == 0 && op.d == register,
            _ => op.src[slot] == Source::vgpr(register),
        };
        if matches {
            out.vgprs[slot] = dwords;
        }
    }
    out
}

/// Index of the result in [`ByMode::msbs`].
pub(super) const RESULT: usize = 4;

fn slot(role: Role) -> Option<usize> {
    Some(match role {
        Role::S0 | Role::VAddr => 0,
        Role::S1 | Role::SAddr => 1,
        Role::S2 | Role::Data => 2,
        Role::Imm | Role::Other | Role::S4 => return None,
        _ => 3,
    })
}

/// Returns an operation that copies a lane vector to a temporary one, given by its index, before the
/// instruction's other operations.
fn copy_to_temporary(op: &Op, mov: u16, source: Source, index: u16) -> Op {
    Op {
        code: Op::code_of(mov, Variant::Fast),
        flags: Op::MORE,
        d: TEMP as u16 + index,
        d1: 0,
        src: [source, Source::NULL, Source::NULL, Source::NULL],
        imm: 0,
        ext: 0,
        ..*op
    }
}

/// Returns the operation of the plain per-lane move of a dword.
fn move_operation(arch: Arch) -> Option<u16> {
    let is_move = |code: &u16| {
        let Some(info) = isa::OPERATIONS.get(*code as usize) else { return false };
        let facts = &isa::FACTS[info.facts[0] as usize];
        let whole = |t: &Access| t.bits == u32::MAX as u128;
        info.shape == Shape::Lane && facts.is_copy && facts.registers.iter().all(whole)
    };
    isa::BY_ARCH[arch as usize].iter().copied().find(is_move)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa_spec::tables::MAX_FIELDS;

    /// Whatever an instruction's fields hold, its operations satisfy the invariants: [`Lowered::append`]
    /// checks each.
    #[test]
    fn any_fields_lower_to_valid_operations() {
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
