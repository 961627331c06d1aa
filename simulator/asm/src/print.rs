//! The disassembler: prints an [`Inst`] in the syntax of LLVM's disassembler.

use super::Options;
use super::constant;
use super::dialect::{HALVES_HAVE_BOTH, LITERALS_ARE_MARKED, Trait};
use super::form::{Bit, Class, Form, Imm, Size, Slot, SlotKind, forms, half_slots};
use super::message;
use super::names::{LITERAL, LITERAL64, names};
use super::symbolic;
use super::{image, modifier::Mod};
use isa_spec::tables::EntryId;
use std::fmt::Write as _;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::VCC_LO;
use wavesim_isa::relative::vgpr_msbs_of;

/// Prints an instruction.
pub fn instruction(inst: &Inst, options: &Options) -> String {
    with_label(inst, options, None)
}

/// As [`instruction`], for an architecture and a wave size: the printer of a program
/// (`exec::program::Syntax`).
pub fn syntax(inst: &Inst, arch: Arch, wave_size: u32) -> String {
    instruction(inst, &Options::new(arch).wave(wave_size))
}

/// As [`instruction`], with `label` as the branch target.
pub fn with_label(inst: &Inst, options: &Options, label: Option<&str>) -> String {
    print(inst, options, label, false)
}

/// Prints an instruction; `exact` marks literals that equal inline constants.
pub(super) fn print(inst: &Inst, options: &Options, label: Option<&str>, exact: bool) -> String {
    if let Some(machine) = options.arch.machine() {
        return super::generic::print(inst, options.arch, machine, label);
    }
    let form = forms(options.arch).get(inst.entry);
    let p = Printer { form, inst, options, label, exact };
    if form.class == Class::Dual && inst.entry_y != EntryId::MAX {
        return p.dual();
    }
    let mut out = form.mnemonic.clone();
    if exact && form.class == Class::E64 && form.traits.has(Trait::Unsuffixed) {
        out.push_str("_e64");
    }
    p.operands(form.explicit_slots(inst), &mut out);
    for m in &form.mods {
        p.modifier(m, form.sources, &mut out);
    }
    out
}

/// The bits of MODE that extend VGPR numbers after an instruction that sets them ([`Options::vgpr_msbs`]);
/// `None` for other instructions.
pub fn vgpr_msbs_after(inst: &Inst, options: &Options) -> Option<u32> {
    if options.arch.machine().is_some()
        || !forms(options.arch).get(inst.entry).traits.has(Trait::SetsVgprMsbs)
    {
        return None;
    }
    inst.field(options.arch.table(), "SIMM16").map(vgpr_msbs_of)
}

/// The branch distance in words from the end of the instruction, for branches with an immediate target.
pub fn branch_words(inst: &Inst, options: &Options) -> Option<i64> {
    if let Some(machine) = options.arch.machine() {
        return super::generic::branch_words(inst, options.arch, machine);
    }
    let form = forms(options.arch).get(inst.entry);
    let slot = form.slots.iter().find(|s| s.kind == SlotKind::Imm(Imm::Label))?;
    Some(inst.fields[slot.field? as usize] as u16 as i16 as i64)
}

struct Printer<'a> {
    form: &'static Form,
    inst: &'a Inst,
    options: &'a Options,
    label: Option<&'a str>,
    /// Literals are never printed as inline constants.
    exact: bool,
}

impl Printer<'_> {
    fn dual(&self) -> String {
        let y = forms(self.options.arch).get(self.inst.entry_y);
        let mut out = self.form.mnemonic.clone();
        self.operands(&half_slots(self.options, self.inst.entry, false).unwrap_or_default(), &mut out);
        let _ = write!(out, " :: {}", y.mnemonic);
        self.operands(&half_slots(self.options, self.inst.entry_y, true).unwrap_or_default(), &mut out);
        y.mods.iter().for_each(|m| self.modifier(m, y.sources, &mut out));
        out
    }

    fn operands(&self, slots: &[Slot], out: &mut String) {
        let mut first = true;
        for slot in slots {
            let Some(text) = self.slot(slot) else { continue };
            // No comma follows an export's target.
            let comma = !first && !matches!(slot.kind, SlotKind::Export(0));
            out.push_str(if comma { ", " } else { " " });
            out.push_str(&text);
            first = false;
        }
    }

    fn get(&self, field: &str) -> u32 {
        self.inst.field(self.options.arch.table(), field).unwrap_or(0)
    }

    fn raw(&self, slot: &Slot) -> u32 {
        slot.field.map_or(0, |f| self.inst.fields[f as usize])
    }

    /// The text of an operand; `None` if it is omitted.
    fn slot(&self, slot: &Slot) -> Option<String> {
        let wave = self.options.wave;
        let registers = slot.registers(self.inst, self.options);
        let null = |slot: &Slot| slot.is_off(self.raw(slot), self.options);
        let off = || "off".to_string();
        Some(match slot.kind {
            SlotKind::Value => self.value(slot, registers),
            SlotKind::MaskOrVcc if self.get("SD") == 0 => "vcc".to_string(),
            SlotKind::MaskOrVcc => self.value(slot, registers),
            SlotKind::Vcc => if wave == 64 { "vcc" } else { "vcc_lo" }.to_string(),
            SlotKind::Literal if self.form.traits.has(Trait::InlineLiteral) => {
                constant::literal_text(self.raw(slot), slot.constant)
            }
            SlotKind::Literal if self.form.literal_hi.is_some() => {
                constant::wide_operand_text(self.wide_literal())
            }
            SlotKind::Literal => format!("0x{:x}", self.raw(slot)),
            SlotKind::Imm(Imm::Optional) if self.raw(slot) == 0 => return None,
            SlotKind::Imm(imm) => self.immediate(slot, imm),
            SlotKind::ScalarOffset => self.scalar_offset(slot),
            SlotKind::FlatAddr | SlotKind::BufferData | SlotKind::ImageData => self.value(slot, registers),
            SlotKind::FlatBase | SlotKind::ScratchBase => {
                if null(slot) {
                    off()
                } else {
                    self.value(slot, registers)
                }
            }
            SlotKind::OptionalBase if null(slot) => return None,
            SlotKind::OptionalBase => self.value(slot, registers),
            SlotKind::OptionalGroup => {
                let given = |s: &&Slot| s.kind == SlotKind::OptionalGroup && !null(s);
                self.form.slots.iter().find(given)?;
                self.value(slot, registers)
            }
            SlotKind::ScratchAddr | SlotKind::BufferAddr => match registers {
                0 => off(),
                n => self.value(slot, n),
            },
            SlotKind::ImageAddr => self.addresses(slot),
            SlotKind::Target => {
                let value = self.raw(slot);
                let name = names(self.options.arch, slot.ty).name(value);
                name.map_or_else(|| format!("invalid_target_{value}"), str::to_string)
            }
            SlotKind::Export(n) => {
                if self.get("EN") >> n & 1 == 0 {
                    off()
                } else {
                    self.value(slot, 1)
                }
            }
            SlotKind::Attribute => {
                let channel = ['x', 'y', 'z', 'w'][self.get("ATTR_CHAN") as usize & 3];
                format!("attr{}.{channel}", self.raw(slot))
            }
        })
    }

    fn value(&self, slot: &Slot, registers: u16) -> String {
        let mut text = self.unsigned(slot, registers, self.raw(slot));
        if let Some((field, bit)) = slot.acc
            && self.inst.fields[field as usize] >> bit & 1 == 1
            && let Some(number) = text.strip_prefix('v')
        {
            text = format!("a{number}");
        }
        if slot.sext.is_some_and(|f| !slot.signed && self.inst.fields[f as usize] != 0) {
            return format!("sext({text})");
        }
        let is_set =
            |bit: Option<Bit>| bit.is_some_and(|b| self.inst.fields[b.field as usize] >> b.bit & 1 != 0);
        if is_set(slot.abs) {
            text = if text.starts_with("lit(") { format!("abs({text})") } else { format!("|{text}|") };
        }
        if is_set(slot.neg) {
            // A sign before a number would be read as the number's own sign.
            let number =
                text.starts_with(|c: char| c.is_ascii_digit() || c == '-') || text.starts_with("lit(");
            text = if number { format!("neg({text})") } else { format!("-{text}") };
        }
        text
    }

    fn unsigned(&self, slot: &Slot, registers: u16, value: u32) -> String {
        let types = slot.names_in(self.inst);
        let short = self.form.has_half_in_register_number();
        let sixteen = slot.size == Size::Bits(16);
        // 32-bit encodings store the half of a 16-bit register in bit 7 of the register number.
        let vector = types.name(value).is_some_and(|name| name.starts_with('v') && !name.starts_with("vcc"));
        let (value, half) = match vector && sixteen {
            true if short && value & 128 != 0 => (value & !128, Some(".h")),
            true if self.high_half(slot) => (value, Some(".h")),
            // If LLVM only has the operation on halves, the low half is named as well.
            true if self.form.traits.has(Trait::LowHalfNamed) => (value, Some(".l")),
            _ => (value, None),
        };
        match types.name(value) {
            Some(LITERAL) if self.form.literal.is_some() => {
                let literal = self.form.literal.map_or(0, |f| self.inst.fields[f as usize]);
                let inline = !self.form.traits.has(Trait::NoInlineFirstSource);
                let marked = self.exact || inline && LITERALS_ARE_MARKED.has(self.options.arch);
                match constant::literal_text(literal, slot.constant) {
                    text if marked && !text.starts_with("0x") => {
                        format!("lit(0x{:x})", constant::literal_bits(literal, slot.constant))
                    }
                    text => text,
                }
            }
            Some(LITERAL64) if self.form.literal_hi.is_some() => {
                constant::wide_literal_text(self.wide_literal(), slot.constant)
            }
            Some(name) => {
                let text = range(name, registers);
                let text = match half {
                    Some(half) => text + half,
                    None => constant::inline_text(&text, slot.constant),
                };
                text + &self.extended(slot, name, registers, half.unwrap_or_default())
            }
            None => self.unlisted(slot, registers, value),
        }
    }

    /// The literal of 64 bits.
    fn wide_literal(&self) -> u64 {
        let half = |field: Option<u8>| field.map_or(0, |f| self.inst.fields[f as usize]) as u64;
        half(self.form.literal) | half(self.form.literal_hi) << 32
    }

    /// A comment with the number that MODE gives a VGPR, if it is another one: ` /*v256*/`.
    fn extended(&self, slot: &Slot, name: &str, registers: u16, half: &str) -> String {
        let bits = slot.msb.map_or(0, |position| self.options.vgpr_msbs >> position & 3);
        match name.strip_prefix('v').and_then(|digits| digits.parse::<u32>().ok()) {
            Some(number) if bits != 0 => {
                format!(" /*{}{half}*/", range(&format!("v{}", number + 256 * bits), registers))
            }
            _ => String::new(),
        }
    }

    /// Prints a code that the operand type does not list. Like LLVM, uses the name from other sources with a
    /// comment on the error. A code without any name must not be printed as a number, which would parse as a
    /// constant.
    fn unlisted(&self, slot: &Slot, registers: u16, value: u32) -> String {
        let table = self.options.arch.table();
        let all = table.operand_types.iter().position(|t| t.name == "OPR_SRC").map(|at| at as u8);
        // LLVM ignores the low bits of the start of a scalar register range.
        let step = [1, 2, 4][(registers.saturating_sub(1) as usize).min(2)];
        let value = if value < VCC_LO as u32 { value / step * step } else { value };
        let name = all.and_then(|all| names(self.options.arch, all).name(value)).filter(|n| *n != LITERAL);
        let vectors = table.operand_types[slot.ty as usize].name.contains("VGPR");
        match name {
            Some(name) if vectors && name.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                format!("{name}/*Invalid immediate*/")
            }
            Some(name) if vectors => {
                let class =
                    if registers <= 1 { "VGPR_32".to_string() } else { format!("VReg_{}", 32 * registers) };
                let text = range(name, registers);
                format!("{text}/*Invalid register, operand has '{class}' register class*/")
            }
            _ => format!("<code {value}>"),
        }
    }

    /// Returns whether OP_SEL selects the high half, and LLVM has no modifier for it or prints both.
    fn high_half(&self, slot: &Slot) -> bool {
        let both = HALVES_HAVE_BOTH.has(self.options.arch) && !self.form.traits.has(Trait::OpSelSelectsLanes);
        let written = |m: &Mod| !both && matches!(m, Mod::Bits { name: "op_sel", printed: true, .. });
        let modifier = self.form.mods.iter().any(written);
        let packed = self.inst.field(self.options.arch.table(), "NEG_HI").is_some();
        !modifier && !packed && slot.source.is_some_and(|s| self.get("OP_SEL") >> s & 1 != 0)
    }

    fn immediate(&self, slot: &Slot, imm: Imm) -> String {
        let value = self.raw(slot);
        let arch = self.options.arch;
        match imm {
            Imm::Hex => format!("0x{value:x}"),
            Imm::Optional => value.to_string(),
            Imm::Small if value <= 64 => value.to_string(),
            Imm::Small => format!("0x{value:x}"),
            Imm::Label => self.label.map_or_else(|| value.to_string(), str::to_string),
            Imm::Hwreg => symbolic::print_hwreg(arch, slot.ty, value),
            Imm::Sendmsg => message::print(arch, value),
            Imm::Waitcnt => symbolic::print_waitcnt(arch, slot.ty, value),
            Imm::Depctr => symbolic::print_depctr(arch, slot.ty, value),
            Imm::Delay => symbolic::print_delay(arch, slot.ty, value),
            Imm::GprIndex => symbolic::print_gpr_index(value),
            Imm::Version => symbolic::print_version(value),
            Imm::Offset => signed_hex(value, self.width(slot.field)),
        }
    }

    fn width(&self, field: Option<u8>) -> u32 {
        let encoding = self.inst.encoding(self.options.arch.table());
        field.map_or(32, |f| encoding.fields[f as usize].width())
    }

    /// Prints a number, or a register with `offset:`.
    fn scalar_offset(&self, slot: &Slot) -> String {
        let encoding = self.inst.encoding(self.options.arch.table());
        let at = encoding.fields.iter().position(|f| f.name.ends_with("OFFSET") && f.name != "SOFFSET");
        let offset = at.map_or(0, |at| self.inst.fields[at]);
        let text = signed_hex(offset, self.width(at.map(|at| at as u8)));
        // CDNA: two bits select register and immediate; a register without immediate is encoded in the
        // immediate field.
        if self.inst.field(self.options.arch.table(), "SOFFSET_EN").is_some() {
            return match (self.get("SOFFSET_EN"), self.get("IMM")) {
                (0, 0) => self.unsigned(slot, 1, offset & 0x7f),
                (0, _) => text,
                (_, 0) => self.unsigned(slot, 1, self.raw(slot)),
                _ => format!("{} offset:{text}", self.unsigned(slot, 1, self.raw(slot))),
            };
        }
        let register = self.unsigned(slot, 1, self.raw(slot));
        // RDNA 4's encoding always prints the offset.
        let newer = encoding.fields.iter().any(|f| f.name == "IOFFSET");
        match (register.as_str(), offset) {
            ("null", 0) if !newer => register,
            ("null", _) => text,
            (_, 0) if !newer => register,
            _ => format!("{register} offset:{text}"),
        }
    }

    fn addresses(&self, slot: &Slot) -> String {
        let table = self.options.arch.table();
        let total = image::address_registers(self.inst, self.options.arch);
        let places = (1..5).filter(|n| self.inst.field(table, &format!("VADDR{n}")).is_some()).count() + 1;
        if places == 1 {
            return self.unsigned(slot, total, self.raw(slot));
        }
        let ray = image::ray_addresses(self.inst, self.options.arch);
        let sizes = ray.map_or_else(|| vec![1; total as usize], <[u16]>::to_vec);
        let own = sizes.len().min(places);
        let mut left = total;
        let mut list = Vec::new();
        for (at, &size) in sizes.iter().enumerate().take(own) {
            let count = if at + 1 == own { left } else { size };
            let value = self.inst.field(table, &format!("VADDR{at}"));
            let value = value.or(if at == 0 { Some(self.raw(slot)) } else { None }).unwrap_or(0);
            list.push(self.unsigned(slot, count, value));
            left -= count.min(left);
        }
        match list.as_slice() {
            [one] => one.clone(),
            _ => format!("[{}]", list.join(", ")),
        }
    }

    fn modifier(&self, m: &Mod, sources: u8, out: &mut String) {
        m.print(self.inst, self.options.arch, sources, out);
    }
}

fn signed_hex(value: u32, width: u32) -> String {
    let value = (value << (32 - width)) as i32 >> (32 - width);
    if value < 0 { format!("-0x{:x}", value.unsigned_abs()) } else { format!("0x{value:x}") }
}

/// Prints a register range: `v[4:7]`, `vcc`, `ttmp[2:3]`. Other names are unchanged.
pub(super) fn range(name: &str, registers: u16) -> String {
    if registers <= 1 {
        return name.to_string();
    }
    match name {
        "vcc_lo" if registers == 2 => return "vcc".to_string(),
        "exec_lo" if registers == 2 => return "exec".to_string(),
        "flat_scratch_lo" | "xnack_mask_lo" if registers == 2 => {
            return name.trim_end_matches("_lo").to_string();
        }
        _ => {}
    }
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let file = &name[..name.len() - digits.len()];
    match (file, digits.parse::<u16>()) {
        ("v" | "a" | "s" | "ttmp", Ok(first)) => {
            format!("{file}[{first}:{}]", first + registers - 1)
        }
        _ => name.to_string(),
    }
}
