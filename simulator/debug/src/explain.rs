//! `explain`: the pseudocode of the current instruction, with the values of its operands, by lane.

use super::expr::{Focus, read_as};
use super::timeline::Timeline;
use super::view::instruction;
use isa_spec::pcode::ir::{Semantics, Shape};
use isa_spec::tables::Role;
use regex_lite::{Captures, Regex};
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::LazyLock;
use wavesim_array::{DType, show};
use wavesim_engine::reference;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand;
use wavesim_machine::exec::effects::{File, register_name};
use wavesim_machine::exec::lower;
use wavesim_machine::isa;
use wavesim_machine::state::Wave;

/// Returns the pseudocode of the instruction at the PC, with its operands in the selected lane or in `lanes`.
pub fn explain(
    timeline: &Timeline<'_>,
    focus: Focus,
    lanes: Option<RangeInclusive<u32>>,
) -> Result<String, String> {
    let program = &timeline.prepared.program;
    let w = timeline.wave(focus.wave);
    let lanes = lanes.unwrap_or(focus.lane..=focus.lane);
    if *lanes.end() >= w.size() {
        return Err(format!("there is no lane {}; the wave has lanes 0 to {}", lanes.end(), w.size() - 1));
    }
    let Some(at) = program.inst_at(w.pc) else {
        return Ok("there is no instruction at the PC\n".to_string());
    };
    let inst = &program.insts[at];
    let mut out = format!("{}\n", instruction(timeline, w.pc));
    let mut entries = vec![inst.entry];
    entries.extend((inst.entry_y != u16::MAX).then_some(inst.entry_y));
    let changed = program.replaced_semantics(w.pc).map_or([None; 2], |(_, x, y)| [Some(x), y]);
    for (half, entry) in entries.into_iter().enumerate() {
        let table = program.arch.table();
        let name = table.instructions[table.entries[entry as usize].inst as usize].name;
        let built_in = lower::operation(program.arch, entry).map(Body::built_in);
        // In a dual instruction, one half may be unchanged.
        let own = changed[half].filter(|sem| built_in.as_ref().is_none_or(|body| body.text != sem.text));
        let Some(body) = own.map(|sem| Body::changed(name, sem)).or(built_in) else {
            out.push_str("  this instruction has no semantics\n");
            continue;
        };
        let binding = operand::binding(program.arch, entry);
        let operands = if half == 1 { &binding.y } else { &binding.operands };
        for operand in operands {
            if let Some((name, register, value)) = operand_value(timeline, focus, binding, operand, inst) {
                let _ = writeln!(out, "  {name} = {register} = {value}");
            }
        }
        let _ = writeln!(out, "  // {} ({})", body.name, body.place);
        for line in body.text.trim_matches('\n').lines() {
            let _ = writeln!(out, "  | {line}");
        }
        let filled = SourceSubstitution { arch: program.arch, inst, body: &body, half, wave: w };
        if body.shape == Shape::Scalar {
            filled.lane(0, "  with these values:", &mut out);
            continue;
        }
        for lane in lanes.clone() {
            let off = if w.exec() >> lane & 1 == 1 { "" } else { " (inactive)" };
            filled.lane(lane, &format!("  lane {lane}{off}:"), &mut out);
        }
    }
    Ok(out)
}

/// The semantics of an instruction: built-in pseudocode, or the user's.
struct Body<'a> {
    name: &'a str,
    place: String,
    text: &'a str,
    shape: Shape,
    fields: Vec<&'static str>,
}

impl<'a> Body<'a> {
    fn built_in(operation: u16) -> Body<'a> {
        let info = &isa::OPERATIONS[operation as usize];
        Body {
            name: info.name,
            place: format!("{}:{}", info.file, info.line),
            text: isa::text(operation),
            shape: info.shape,
            fields: info.fields.to_vec(),
        }
    }

    fn changed(name: &'static str, sem: &'a Semantics) -> Body<'a> {
        let fields = sem.uses.fields.iter().copied().collect();
        Body { name, place: "changed".to_string(), text: &sem.text, shape: sem.shape, fields }
    }
}

/// Matches a source operand, or a bit of a mask, in pseudocode.
static SOURCE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\b(?:(?<mask>VCC|EXEC|S2)\.u64\[laneId\]|(?<name>S[0-3]|DATA2?|VADDR|SADDR|SOFFSET)(?:\[(?<high>\d+) ?: ?(?<low>\d+)\])?\.(?<kind>bf|[ufib])(?<bits>\d+)(?<index>\[)?|(?<scc>SCC\b))(?<to> =[^=])?";
    // The pattern is a constant that tests of `explain` compile.
    Regex::new(pattern).unwrap_or_else(|e| unreachable!("{e}"))
});

/// Replaces the source operands of a body with their values.
struct SourceSubstitution<'a> {
    arch: wavesim_isa::arch::Arch,
    inst: &'a Inst,
    body: &'a Body<'a>,
    half: usize,
    wave: &'a Wave,
}

impl SourceSubstitution<'_> {
    /// Writes the lines of the body that have source operands, with their values in a lane.
    fn lane(&self, lane: u32, head: &str, out: &mut String) {
        let filled: Vec<String> = self
            .body
            .text
            .lines()
            .filter_map(|line| {
                let code = line.split("//").next().unwrap_or("");
                let text = SOURCE.replace_all(code, |found: &Captures<'_>| self.value(found, lane));
                (text != code).then(|| text.trim_end().to_string())
            })
            .collect();
        match &filled[..] {
            // The body has no source operands.
            [] => {}
            [one] => {
                let _ = writeln!(out, "{head} {}", one.trim_start());
            }
            many => {
                let _ = writeln!(out, "{head}");
                many.iter().for_each(|line| {
                    let _ = writeln!(out, "    {line}");
                });
            }
        }
    }

    fn value(&self, found: &Captures<'_>, lane: u32) -> String {
        let whole = || found[0].to_string();
        // Destinations remain as they are, and so do parts of registers that a variable selects.
        if found.name("to").is_some() || found.name("index").is_some() {
            return whole();
        }
        if found.name("scc").is_some() {
            return self.wave.scc.to_string();
        }
        if let Some(mask) = found.name("mask") {
            let bits = match mask.as_str() {
                "EXEC" => Some(self.wave.exec() as u128),
                "VCC" => self.operand(Role::Vcc, lane),
                _ => self.operand(Role::S2, lane),
            };
            return bits.map_or_else(whole, |bits| (bits >> lane & 1).to_string());
        }
        let role = match &found["name"] {
            "S0" => Role::S0,
            "S1" => Role::S1,
            "S2" => Role::S2,
            "S3" => Role::S3,
            "DATA" => Role::Data,
            "DATA2" => Role::Data1,
            "VADDR" => Role::VAddr,
            "SADDR" => Role::SAddr,
            _ => Role::SOffset,
        };
        let low = found.name("low").and_then(|n| n.as_str().parse::<u32>().ok()).unwrap_or(0);
        let width = found["bits"].parse::<u32>().unwrap_or(0);
        let bits = self.operand(role, lane).and_then(|bits| bits.checked_shr(low));
        bits.and_then(|bits| typed(bits, &found["kind"], width)).unwrap_or_else(whole)
    }

    /// Returns the operand as the body reads it; `None` if the instruction does not have it.
    fn operand(&self, role: Role, lane: u32) -> Option<u128> {
        let body = (self.body.shape, &self.body.fields[..]);
        reference::operand(self.arch, self.inst, body, self.half == 1, self.wave, role, lane)
    }
}

/// Formats bits as a literal of a pseudocode type.
fn typed(bits: u128, kind: &str, width: u32) -> Option<String> {
    if !(1..=64).contains(&width) {
        return None;
    }
    let bits = (bits & (u128::MAX >> (128 - width))) as u64;
    Some(match (kind, width) {
        ("u", _) => bits.to_string(),
        ("i", _) => ((bits << (64 - width)) as i64 >> (64 - width)).to_string(),
        ("b", _) => format!("0x{bits:x}"),
        ("f", 16) => read_as(bits, DType::F16).to_string(),
        ("f", 32) => show::bits(bits, Some(DType::F32), 1),
        ("f", 64) => read_as(bits, DType::F64).to_string(),
        ("bf", 16) => read_as(bits, DType::BF16).to_string(),
        _ => return None,
    })
}

/// Returns an operand in the selected lane: its name in pseudocode, its register or "constant", and its
/// value.
fn operand_value(
    timeline: &Timeline<'_>,
    focus: Focus,
    binding: &'static operand::Binding,
    operand: &operand::Operand,
    inst: &wavesim_isa::inst::Inst,
) -> Option<(String, String, String)> {
    let program = &timeline.prepared.program;
    let arch = program.arch;
    let w = timeline.wave(focus.wave);
    let name = match operand.role {
        Role::Vcc => "VCC".to_string(),
        Role::VAddr => "VADDR".to_string(),
        Role::SAddr => "SADDR".to_string(),
        Role::SOffset => "SOFFSET".to_string(),
        Role::Data => "DATA".to_string(),
        Role::Data1 => "DATA2".to_string(),
        Role::State | Role::Other | Role::Imm => return None,
        role => format!("{role:?}"),
    };
    let field = operand.field?;
    let value = binding.value(inst, operand).unwrap_or(inst.fields[field as usize]);
    let mut dwords = operand.size_bits.div_ceil(32).max(1);
    if operand.role == Role::VAddr {
        dwords = operand::address_registers(arch, inst).unwrap_or(dwords);
        if dwords == 0 {
            return None;
        }
    }
    let shown = dwords.min(2);
    let dtype = match operand.fmt {
        operand::Fmt::F32 => Some(DType::F32),
        operand::Fmt::F64 => Some(DType::F64),
        operand::Fmt::F16 => Some(DType::F16),
        operand::Fmt::BF16 => Some(DType::BF16),
        operand::Fmt::Signed if operand.size_bits == 32 => Some(DType::I32),
        operand::Fmt::Unsigned if operand.size_bits == 32 => Some(DType::U32),
        _ => None,
    };
    let show = |get: &dyn Fn(u16) -> u32| {
        let bits = (0..shown).fold(0u64, |v, k| v | (get(k) as u64) << (32 * k));
        match dtype {
            Some(_) => format!("{} (0x{bits:x})", show::bits(bits, dtype, shown)),
            None => show::bits(bits, None, shown),
        }
    };
    if operand.fmt == operand::Fmt::Mask {
        let dwords = (w.size() / 32) as u16;
        let first = operand::mask_register(operand, value);
        let text = (0..dwords).fold(0u64, |v, k| v | (w.sgpr((first + k) as u32) as u64) << (32 * k));
        return Some((name, register_name(arch, File::Sgpr, first, dwords), format!("0x{text:x}")));
    }
    match operand::code(program.arch, operand, value) {
        operand::Code::Vgpr(r) => {
            let r = binding.register(operand, r);
            let text = show(&|k| w.vgpr(focus.lane, (r + k) as u32));
            Some((name, register_name(arch, File::Vgpr, r, dwords), text))
        }
        operand::Code::Fixed(r) => {
            let text = show(&|k| w.vgpr(focus.lane, (r + k) as u32));
            Some((name, register_name(arch, File::Vgpr, r, dwords), text))
        }
        operand::Code::Sgpr(r) if r as usize == wavesim_machine::state::wave::NULL => {
            Some((name, "null".to_string(), "0".to_string()))
        }
        operand::Code::Sgpr(r) => {
            Some((name, register_name(arch, File::Sgpr, r, dwords), show(&|k| w.sgpr((r + k) as u32))))
        }
        code => {
            let text = show(&|k| binding.constant(inst, code, operand, k as u32));
            Some((name, "constant".to_string(), text))
        }
    }
}
