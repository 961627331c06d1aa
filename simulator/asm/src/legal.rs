//! Instructions that can be encoded but that the hardware cannot execute: the only legality check, shared by
//! assembly files, text kernels and decoded words.
//!
//! - Register ranges are aligned and end within their file (RDNA ISA manuals, *SGPR Alignment*).
//! - A vector instruction reads at most two scalar values over the constant bus, a 64-bit shift at most one
//!   (*VALU: Operands*).
//! - Dual instructions require wave32. Their halves read vector registers from different banks and write one
//!   even and one odd register (*Dual Issue VALU*).
//!
//! [`check`] takes the operands' slots from the caller; [`check_decoded`] derives them from the instruction.

use super::dialect::{NO_TRAP_REGISTER_TRIPLES, Trait};
use super::error::{AsmError, Span};
use super::form::{Form, Size, Slot, SlotKind, forms, half_slots};
use super::names::{LITERAL, LITERAL64};
use super::{OddPairs, Options, print};
use isa_spec::tables::{EntryId, OperandSig};
use smallvec::SmallVec;
use std::ops::Range;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;

/// The reason why the hardware cannot execute an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Illegal {
    /// Two or three words that identify the rule, for reports.
    pub kind: &'static str,
    /// One sentence without a full stop.
    pub message: String,
    /// Half and index of the operand, if a single operand is at fault.
    pub operand: Option<(usize, usize)>,
}

impl Illegal {
    fn new(kind: &'static str, message: String) -> Illegal {
        Illegal { kind, message, operand: None }
    }

    /// Converts to an error at `span`.
    pub fn into_error(self, span: Span) -> AsmError {
        AsmError::new(span, self.message)
    }
}

/// A source operand, decoded from its field.
#[derive(Debug, PartialEq, Eq)]
enum SourceOperand {
    Vector(u32),
    Scalar(&'static str),
    Constant,
}

fn source_operand(inst: &Inst, slot: &Slot) -> SourceOperand {
    let Some(field) = slot.field else { return SourceOperand::Constant };
    let code = inst.fields[field as usize];
    let slot = &Slot { names: slot.names_in(inst), ..slot.clone() };
    if let Some(n) = slot.names.vgpr(code) {
        return SourceOperand::Vector(n);
    }
    let Some(name) = slot.names.name(code) else { return SourceOperand::Constant };
    match name.as_bytes() {
        _ if name == LITERAL || name == LITERAL64 => SourceOperand::Scalar(THE_LITERAL),
        [b'v' | b'a', b'0'..=b'9', ..] => SourceOperand::Vector(code & 0xff),
        // Inline constants.
        [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..] | b"null" => SourceOperand::Constant,
        _ => SourceOperand::Scalar(name),
    }
}

const THE_LITERAL: &str = "the literal";

/// Checks whether the hardware can execute the instruction. `halves` are the slots of the instruction, or of
/// both halves of a dual instruction.
pub fn check(inst: &Inst, options: &Options, halves: &[&[Slot]]) -> Result<(), Illegal> {
    for (half, slots) in halves.iter().enumerate() {
        for (at, slot) in slots.iter().enumerate() {
            let illegal = check_literal(inst, options, slot).or_else(|| check_range(inst, options, slot));
            if let Some((kind, message)) = illegal {
                return Err(Illegal { kind, message, operand: Some((half, at)) });
            }
        }
    }
    check_doubles(inst, options, halves)?;
    check_scalar_halves(inst, options, halves)?;
    check_addend(inst, options, halves)?;
    check_constant_bus(inst, options, halves)?;
    match halves {
        [x, y] => check_dual(inst, options, x, y),
        _ => Ok(()),
    }
}

/// As [`check`], with the slots of the instruction's form.
pub fn check_decoded(inst: &Inst, options: &Options) -> Result<(), Illegal> {
    if inst.entry_y == EntryId::MAX {
        return check(inst, options, &[&forms(options.arch).get(inst.entry).slots]);
    }
    let half = |entry, second| half_slots(options, entry, second).unwrap_or_default();
    let (x, y) = (half(inst.entry, false), half(inst.entry_y, true));
    check(inst, options, &[&x, &y])
}

/// The number of the last scalar register.
pub(crate) fn last_sgpr(arch: Arch) -> u16 {
    arch.facts().scalar_codes.last_sgpr()
}

/// Returns whether the instruction is a scalar load of dwords.
pub fn is_dword_load(inst: &Inst, arch: Arch) -> bool {
    let table = arch.table();
    let of = inst.instruction(table);
    // Byte and halfword loads have a numeric format; dwords are untyped.
    let untyped = |o: &OperandSig| table.formats[o.format as usize].name == "FMT_ANY";
    let sig = table.signatures[inst.entry(table).sig as usize];
    (of.group(), of.subgroup()) == ("SMEM", "LOAD") && sig.iter().any(|o| o.output && untyped(o))
}

/// Reports offset bits of a scalar load that the hardware ignores (RDNA ISA manuals, *Scalar Memory*: "the
/// two LSBs are ignored and treated as if they were zero", except for RDNA 4's byte and halfword loads). Such
/// an offset can be assembled but is never intended.
pub fn ignored_offset(inst: &Inst, options: &Options) -> Option<Illegal> {
    if !is_dword_load(inst, options.arch) {
        return None;
    }
    let table = options.arch.table();
    let offset = inst.field(table, "IOFFSET").or(inst.field(table, "OFFSET"))?;
    let operand =
        forms(options.arch).get(inst.entry).slots.iter().position(|s| s.kind == SlotKind::ScalarOffset);
    (!offset.is_multiple_of(4)).then(|| {
        let message = format!(
            "the offset 0x{offset:x} of a scalar load is not a multiple of 4: hardware reads at 0x{:x}",
            offset & !3
        );
        Illegal { operand: operand.map(|at| (0, at)), ..Illegal::new("misaligned offset", message) }
    })
}

/// Checks that a literal of 64 bits follows the instruction, and that the operand has as many.
fn check_literal(inst: &Inst, options: &Options, slot: &Slot) -> Option<(&'static str, String)> {
    if slot.names.literal64? != inst.fields[slot.field? as usize]
        || slot.source.is_none() && slot.kind != SlotKind::Value
    {
        return None;
    }
    let form = forms(options.arch).get(inst.entry);
    let legal = form.literal_hi.is_some() && slot.size == Size::Bits(64);
    (!legal).then(|| ("64-bit literal", "only operands of 64 bits take a literal of 64 bits".to_string()))
}

/// Checks the alignment and the end of an operand's register range.
fn check_range(inst: &Inst, options: &Options, slot: &Slot) -> Option<(&'static str, String)> {
    let table = options.arch.table();
    let field = slot.field?;
    let count = slot.registers(inst, options) as u32;
    if count < 2 {
        return None;
    }
    let code = inst.fields[field as usize];
    let beyond = |last: &str| {
        let name = slot.names.name(code).unwrap_or_default();
        let message = format!("{count} registers from {name} on extend beyond the last one, {last}");
        Some(("registers beyond the last", message))
    };
    let odd_vectors = |first: u32| {
        let message = || format!("{count} vector registers must start at an even one, not at v{first}");
        let any = forms(options.arch).get(inst.entry).traits.has(Trait::AnyFirstVgpr);
        (options.arch.facts().instructions.even_vgprs && first % 2 == 1 && !any)
            .then(|| ("misaligned VGPRs", message()))
    };
    if let Some(first) = slot.names.vgpr(code) {
        return if first + count > 256 { beyond("v255") } else { odd_vectors(first) };
    }
    let name = slot.names.name(code)?;
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let numbered = |file: &str| name.len() == file.len() + digits.len() && name.starts_with(file);
    let (first, last) = match digits.parse::<u32>() {
        Ok(n) if numbered("v") => return if n + count > 256 { beyond("v255") } else { odd_vectors(n) },
        Ok(n) if numbered("s") => (n, last_sgpr(options.arch) as u32),
        Ok(_) if numbered("ttmp") && count == 3 && NO_TRAP_REGISTER_TRIPLES.has(options.arch) => {
            return Some(("three trap registers", "three trap registers are no operand".to_string()));
        }
        Ok(n) if numbered("ttmp") => (n, 15),
        _ => {
            let second = matches!(name, "vcc_hi" | "exec_hi" | "flat_scratch_hi" | "xnack_mask_hi" | "m0");
            let wide =
                count > 2 && matches!(name, "vcc_lo" | "exec_lo" | "flat_scratch_lo" | "xnack_mask_lo");
            let message = || format!("{name} is not the first of {count} registers");
            return (second || wide).then(|| ("misaligned SGPRs", message()));
        }
    };
    if first + count - 1 > last {
        return beyond(&format!("{}{last}", &name[..name.len() - digits.len()]));
    }
    let step = if count == 2 { 2 } else { 4 };
    let odd = match options.odd_pairs {
        OddPairs::None => false,
        OddPairs::Bases => count == 2 && inst.encoding(table).fields[field as usize].name == "SBASE",
        OddPairs::All => count == 2,
    };
    if first.is_multiple_of(step) || odd {
        return None;
    }
    Some((
        "misaligned SGPRs",
        format!("{count} scalar registers start at a multiple of {step}, not at {name}"),
    ))
}

/// Checks the DPP control of 64-bit values.
fn check_doubles(inst: &Inst, options: &Options, halves: &[&[Slot]]) -> Result<(), Illegal> {
    if !options.arch.facts().dpp.only_broadcasts_doubles {
        return Ok(());
    }
    let table = options.arch.table();
    let wide = halves.iter().copied().flatten().any(|s| s.size == Size::Bits(64) && s.source.is_some());
    if let Some(control) = inst.field(table, "DPP_CTRL").filter(|c| wide && !ROW_BROADCASTS.contains(c)) {
        let message = format!("64-bit values support only row_newbcast, not the DPP control 0x{control:x}");
        return Err(Illegal::new("lane movement of 64 bits", message));
    }
    Ok(())
}

/// Checks that both halves of a packed product read the same scalar value (LLVM 22).
fn check_scalar_halves(inst: &Inst, options: &Options, halves: &[&[Slot]]) -> Result<(), Illegal> {
    if !forms(options.arch).get(inst.entry).traits.has(Trait::OneScalarHalf) {
        return Ok(());
    }
    let table = options.arch.table();
    let bits = |name: &str| inst.field(table, name).unwrap_or(0);
    let selected = bits("OP_SEL") | bits("OP_SEL_HI") | bits("OP_SEL_HI_2") << 2;
    for (at, slot) in halves.iter().copied().flatten().enumerate() {
        let Some(source @ 0..3) = slot.source else { continue };
        if let SourceOperand::Scalar(name) = source_operand(inst, slot)
            && name != THE_LITERAL
            && selected >> source & 1 != 0
        {
            let message = format!("both halves read {name}: op_sel and op_sel_hi of this source must be 0");
            return Err(Illegal { operand: Some((0, at)), ..Illegal::new("halves of scalars", message) });
        }
    }
    Ok(())
}

/// Checks that the addend of a matrix product with accumulation registers either is the result or does not
/// overlap it (CDNA 3 ISA manual, *Matrix Arithmetic Instructions*).
fn check_addend(inst: &Inst, options: &Options, halves: &[&[Slot]]) -> Result<(), Illegal> {
    let table = options.arch.table();
    let slots = halves.iter().copied().flatten();
    if inst.field(table, "ACC_CD").is_none() {
        return Ok(());
    }
    let registers = |place: u8| {
        let (at, slot) = slots.clone().enumerate().find(|(_, s)| s.source == Some(place))?;
        let count = slot.registers(inst, options) as u32;
        slot.names.vgpr(inst.fields[slot.field? as usize]).map(|first| (at, first, count))
    };
    // Smaller results are written after all sources are read. The indices of a sparse matrix are one
    // register.
    if let (Some((_, d, d_count @ 5..)), Some((at, c, count @ 2..))) = (registers(3), registers(2))
        && d != c
        && d < c + count
        && c < d + d_count
    {
        let message = "the addend must be the result's registers, or overlap none of them".to_string();
        return Err(Illegal { operand: Some((0, at)), ..Illegal::new("matrix overlap", message) });
    }
    Ok(())
}

/// The codes of `row_newbcast`.
const ROW_BROADCASTS: std::ops::Range<u32> = 0x150..0x160;

/// Checks the constant bus limit.
fn check_constant_bus(inst: &Inst, options: &Options, halves: &[&[Slot]]) -> Result<(), Illegal> {
    let arch = options.arch;
    let form = forms(arch).get(inst.entry);
    let Some(bus) = &form.bus else { return Ok(()) };
    // Register counts distinguish values: s2 and s[2:3] are two values, and so are a 32-bit and a 64-bit
    // literal.
    let mut list: SmallVec<[(&'static str, u16); 8]> = SmallVec::new();
    let mut add = |name: &'static str, registers: u16| {
        if !list.contains(&(name, registers)) {
            list.push((name, registers));
        }
    };
    let second = (inst.entry_y != EntryId::MAX).then(|| forms(arch).get(inst.entry_y));
    let buses = [Some(bus), second.and_then(|form: &Form| form.bus.as_ref())];
    for (name, size) in buses.into_iter().flatten().flat_map(|b| &b.implicit) {
        add(name, size.registers(options.wave));
    }
    for slot in halves.iter().copied().flatten() {
        match slot.kind {
            SlotKind::Literal => add(THE_LITERAL, 1),
            SlotKind::Value if slot.source.is_some_and(|s| s < 3) => match source_operand(inst, slot) {
                SourceOperand::Scalar("m0")
                    if slot.source == Some(1) && form.traits.has(Trait::FreeLaneSelect) => {}
                SourceOperand::Scalar(name) if name.starts_with("src_") => add(name, 1),
                SourceOperand::Scalar(name) => add(name, slot.size.registers(options.wave)),
                _ => {}
            },
            _ => {}
        }
    }
    if list.len() <= bus.limit {
        return Ok(());
    }
    let limit = if bus.limit == 1 { "one".to_string() } else { bus.limit.to_string() };
    let message = format!(
        "this reads {} scalar values: {}; `{}` can read {limit} (constant bus)",
        list.len(),
        list.iter().map(|(name, registers)| print::range(name, *registers)).collect::<Vec<_>>().join(", "),
        inst.instruction(arch.table()).name.to_lowercase()
    );
    Err(Illegal::new("too many scalars", message))
}

/// Checks the register banks of a dual instruction. First sources must be in different banks of four, and so
/// must second sources; third sources must be in different banks of two, or of four in VOPD3. Facts of the
/// architecture exempt pairs of moves, and sources that are the same register. One result register is even and
/// the other odd; in VOPD3 they only must not overlap.
fn check_dual(inst: &Inst, options: &Options, x: &[Slot], y: &[Slot]) -> Result<(), Illegal> {
    let arch = options.arch;
    let table = arch.table();
    if options.wave != 32 {
        return Err(Illegal::new(
            "dual issue in wave64",
            "dual instructions require waves of 32 lanes".to_string(),
        ));
    }
    let bad_result = |message: &str| {
        let result = y.iter().position(|s| s.source == Some(3)).map(|at| (1, at));
        Err(Illegal { operand: result, ..Illegal::new("dual issue", message.to_string()) })
    };
    let result = |slots: &[Slot]| {
        let slot = slots.iter().find(|s| s.source == Some(3));
        slot.map_or((0, 0), |s| {
            (inst.fields[s.field.unwrap_or(0) as usize], s.registers(inst, options) as u32)
        })
    };
    let ((first, first_count), (second, second_count)) = (result(x), result(y));
    // VOPD3 encodes all bits of both results.
    let three_sources = inst.field(table, "NEGX").is_some();
    if !three_sources && first % 2 == second % 2 {
        return bad_result("one of the two results needs an even register, the other an odd one");
    }
    if first < second + second_count && second < first + first_count {
        return bad_result("the results of both halves overlap");
    }
    let rules = arch.facts().dual_issue;
    let any_bank = |entry: EntryId| forms(arch).get(entry).traits.has(Trait::AnyBank);
    if rules.moves_share_banks && any_bank(inst.entry) && any_bank(inst.entry_y) {
        return Ok(());
    }
    let (x, y) = (sources(inst, options, x), sources(inst, options, y));
    let third = if three_sources { 4 } else { 2 };
    for (at, (which, banks)) in [("first", 4), ("second", 4), ("third", third)].into_iter().enumerate() {
        if let (Some(a), Some(b)) = (&x[at], &y[at])
            && !(rules.same_register && a == b)
            && a.clone().any(|a| b.clone().any(|b| a % banks == b % banks))
        {
            let (a, b) = (a.start, b.start);
            let message = format!(
                "the {which} sources of both halves, v{a} and v{b}, are in the same bank: their numbers must differ modulo {banks}"
            );
            return Err(Illegal::new("dual issue", message));
        }
    }
    Ok(())
}

/// The vector registers that a half reads as first, second and third source. An accumulator is the third
/// source, and so is the operand after a literal second source (`v_dual_fmamk_f32`).
fn sources(inst: &Inst, options: &Options, slots: &[Slot]) -> [Option<Range<u32>>; 3] {
    let vector = |slot: &Slot| match source_operand(inst, slot) {
        SourceOperand::Vector(n) => Some(n..n + slot.registers(inst, options) as u32),
        _ => None,
    };
    let mut out = [const { None }; 3];
    for (place, slot) in out.iter_mut().zip(slots.iter().filter(|s| s.source != Some(3))) {
        *place = if slot.kind == SlotKind::Value { vector(slot) } else { None };
    }
    if let Some(result) = slots.iter().find(|s| s.accumulates) {
        out[2] = vector(result);
    }
    out
}
