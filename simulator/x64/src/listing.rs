//! Compilation as text: the function, the function with locations, and host code.

use crate::allocate::Location;
use crate::allocated::Allocated;
use crate::backend::assemble;
use crate::compile::{Compiled, allocated};
use crate::error::CompileError;
use crate::function::Function;
use crate::host::Host;
use crate::inst::{Class, Inst, V};
use crate::operands::written;
use crate::text::{inst_text, value_name};
#[cfg(feature = "disassembly")]
use crate::{a64::disassemble, target::Architecture};
use std::collections::HashSet;

/// The stages of a function's compilation as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The function. [`Function::parse`] reads it if no address has a name.
    pub ir: String,
    /// The instructions that are compiled, each value with its location: `i3@rbx`. Comments name the registers that the
    /// function saves, and vectors that are loaded to a scratch register once for several instructions.
    pub allocated: String,
    /// Host instructions with their offsets in bytes, in front of them the instruction that they come from. Empty
    /// without the feature `disassembly`.
    pub host: String,
}

/// Compiles a function, and returns the text of each stage. `name` names addresses of the host: of functions that are
/// called, and of objects. With names, listings do not depend on where the host has loaded these.
pub fn list(
    function: &Function,
    host: &Host,
    name: &dyn Fn(u64) -> Option<String>,
) -> Result<(Compiled, Listing), CompileError> {
    let code = allocated(function, host.target)?;
    let mut begins = Vec::new();
    let assembled = assemble(&code, |i, offset| begins.push((i, offset)))?;
    let ir = named(&function.to_string(), function, name);
    let mut allocated = String::new();
    write_allocated(&mut allocated, &code);
    let allocated = named(&allocated, function, name);
    let host =
        named(&host_text(&code, &assembled.bytes[..assembled.code_size], &begins, name), function, name);
    Ok((Compiled { bytes: assembled.bytes }, Listing { ir, allocated, host }))
}

/// Replaces addresses of functions and constants by their names.
fn named(text: &str, function: &Function, name: &dyn Fn(u64) -> Option<String>) -> String {
    let mut text = text.to_string();
    let mut seen = HashSet::new();
    for inst in &function.insts {
        let bits = match *inst {
            Inst::Call { function, .. } | Inst::ColdCall { function, .. } => function,
            Inst::Const { bits, .. } => bits,
            _ => continue,
        };
        if seen.insert(bits)
            && let Some(name) = name(bits)
        {
            let ends = ["(", ")", "\n", " ", ","];
            for (begin, end) in [" ", "@"].into_iter().flat_map(|begin| ends.map(|end| (begin, end))) {
                text = text.replace(&format!("{begin}{bits:#x}{end}"), &format!("{begin}{name}{end}"));
            }
        }
    }
    text
}

fn register(code: &Allocated<'_>, class: Class, register: u8) -> String {
    let name = if class == Class::Int { code.target.int_name } else { code.target.vec_name };
    name(register)
}

fn write_allocated(out: &mut String, code: &Allocated<'_>) {
    let function = code.function;
    let flags: HashSet<V> = code.in_flags.iter().filter_map(|&i| written(&function.insts[i])).collect();
    let slots = [code.allocation.int_slots, code.allocation.vec_slots];
    let mut lines = vec![format!("; slots: {} of 8 bytes, {} of 32 bytes", slots[0], slots[1])];
    let saved: Vec<String> = (code.target.callee_saved.iter())
        .copied()
        .filter(|register| code.allocation.callee_saved >> register & 1 == 1)
        .map(|number| register(code, Class::Int, number))
        .collect();
    if !saved.is_empty() {
        lines.push(format!("; saves {}", saved.join(", ")));
    }
    let named = |v: V| format!("{}@{}", value_name(function, v), code.location_text(v));
    let params: Vec<String> = function.params.iter().map(|v| named(*v)).collect();
    lines.push(format!("function({})", params.join(", ")));
    let mut shared = code.shared.iter().peekable();
    let mut cold_calls = code.cold_calls.iter();
    for (i, inst) in function.insts.iter().enumerate().filter(|&(i, _)| code.live.keep[i]) {
        let current = shared.peek().filter(|shared| shared.first <= i).copied();
        if let Some(shared) = current.filter(|shared| shared.first == i) {
            lines.push(format!("    ; {} = {}", code.target.shared_name, named(shared.vector.v)));
        }
        if let Inst::ColdCall { .. } = inst
            && let Some((_, saved)) = cold_calls.next()
        {
            let registers = |class: Class, set: u32| {
                (0..32).filter(move |n| set >> n & 1 == 1).map(move |n| register(code, class, n))
            };
            // The function that is called preserves the others.
            let caller_saved = code.target.caller_saved.iter().fold(0, |all, register| all | 1 << register);
            let all = registers(Class::Int, saved[0] & caller_saved).chain(registers(Class::Vec, saved[1]));
            lines.push(format!("    ; saves {}", all.collect::<Vec<_>>().join(", ")));
        }
        let text = inst_text(inst, &|v| {
            let location = code.location(v);
            if flags.contains(&v) {
                format!("{}@flags", value_name(function, v))
            } else if current.is_some_and(|shared| shared.vector.is(v, location)) && written(inst) != Some(v)
            {
                format!("{}@{}", value_name(function, v), code.target.shared_name)
            } else {
                named(v)
            }
        });
        // Rematerialised values need no instruction.
        let emitted = !written(inst).is_some_and(|d| {
            matches!(code.location(d), Location::Const(_) | Location::VecConst(_) | Location::Folded(_))
        });
        let indentation = if matches!(inst, Inst::Label(_)) { "" } else { "    " };
        lines.push(format!("{indentation}{text}{}", if emitted { "" } else { " ; at its uses" }));
        if current.is_some_and(|shared| shared.last == i) {
            shared.next();
        }
    }
    lines.iter().for_each(|line| {
        out.push_str(line);
        out.push('\n');
    });
}

#[cfg(not(feature = "disassembly"))]
fn host_text(_: &Allocated<'_>, _: &[u8], _: &[(usize, usize)], _: &dyn Fn(u64) -> Option<String>) -> String {
    String::new()
}

/// Returns the host instructions of a function as text.
#[cfg(feature = "disassembly")]
fn host_text(
    code: &Allocated<'_>,
    bytes: &[u8],
    begins: &[(usize, usize)],
    name: &dyn Fn(u64) -> Option<String>,
) -> String {
    if code.target.architecture == Architecture::A64 {
        return a64_text(code, bytes, begins);
    }
    use iced_x86::{Decoder, DecoderOptions, FastFormatter, Instruction, OpKind};
    use std::fmt::Write;
    let function = code.function;
    let mut formatter = FastFormatter::new();
    formatter.options_mut().set_use_hex_prefix(true);
    formatter.options_mut().set_space_after_operand_separator(true);
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut begins = begins.iter().peekable();
    let (mut text, mut line) = (String::new(), String::new());
    let mut instruction = Instruction::default();
    loop {
        while let Some((i, _)) = begins.next_if(|(_, offset)| *offset <= decoder.position()) {
            let _ = writeln!(text, "; {}", inst_text(&function.insts[*i], &|v| value_name(function, v)));
        }
        if !decoder.can_decode() {
            return text;
        }
        decoder.decode_out(&mut instruction);
        line.clear();
        formatter.format(&instruction, &mut line);
        let address = (instruction.op1_kind() == OpKind::Immediate64).then(|| instruction.immediate64());
        if let Some(name) = address.and_then(name)
            && let Some(comma) = line.find(", ")
        {
            line.truncate(comma + 2);
            line.push_str(&name);
        }
        let _ = writeln!(text, "{:6x}  {line}", instruction.ip());
    }
}

/// Returns the host instructions of a function for aarch64 as text.
#[cfg(feature = "disassembly")]
fn a64_text(code: &Allocated<'_>, bytes: &[u8], begins: &[(usize, usize)]) -> String {
    use std::fmt::Write;
    let function = code.function;
    let mut begins = begins.iter().peekable();
    let mut text = String::new();
    for (at, word) in (0..).step_by(4).zip(bytes.as_chunks().0) {
        while let Some((i, _)) = begins.next_if(|(_, offset)| *offset <= at) {
            let _ = writeln!(text, "; {}", inst_text(&function.insts[*i], &|v| value_name(function, v)));
        }
        let _ = writeln!(text, "{at:6x}  {}", disassemble::text(u32::from_le_bytes(*word)));
    }
    text
}
