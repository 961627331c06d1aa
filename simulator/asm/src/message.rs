//! The immediate of S_SENDMSG: a message; on gfx9, with operation and stream.

use super::dialect::symbols::{
    ABSENT_MESSAGES, GEOMETRY_OPERATIONS, MESSAGES, MESSAGES_WITH_OPERATION, OTHER_OPERATIONS,
    SYSTEM_OPERATIONS,
};
use super::error::AsmError;
use super::operand::{Arg, ArgValue, Operand};
use super::symbolic::{calls, part, span_of, unknown, whole_immediate};
use wavesim_isa::arch::Arch;

/// LLVM's spelling of a message name.
fn llvm_message(name: &str) -> String {
    let upper = name.to_uppercase();
    if upper.starts_with("MSG_") { upper } else { format!("MSG_{upper}") }
}

fn messages(arch: Arch) -> impl Iterator<Item = (String, u32)> {
    let extra = MESSAGES.iter().filter(move |m| m.0.contains(&arch)).map(|m| (m.2.to_string(), m.1));
    let own = arch
        .table()
        .operand_types
        .iter()
        .filter(|t| t.name.starts_with("OPR_SENDMSG"))
        .filter_map(|t| part(t, "MSG"))
        .flat_map(|p| p.values)
        .map(|(name, value)| (llvm_message(name), *value));
    extra
        .chain(own)
        .filter(move |m| !ABSENT_MESSAGES.iter().any(|(archs, name)| archs.has(arch) && *name == m.0))
}

/// Bit positions of operation and stream in gfx9's messages (CDNA 3 manual, *S_SENDMSG*).
const OPERATION: u32 = 4;
const STREAM: u32 = 8;

/// The operation names of a message; `None` if the message takes no operation.
fn operations(name: &str) -> Option<&'static [&'static str]> {
    match MESSAGES_WITH_OPERATION.iter().find(|m| m.0 == name)?.1 {
        true => Some(&SYSTEM_OPERATIONS),
        false => Some(&GEOMETRY_OPERATIONS),
    }
}

/// Prints the immediate of S_SENDMSG as a message; as a number if bits above the message are set.
pub fn print(arch: Arch, value: u32) -> String {
    // Bits above the message force the numeric form.
    let operations_exist = arch.facts().instructions.message_operations;
    let used = if operations_exist { 0x37f } else { 0xff };
    if value & !used != 0 {
        return value.to_string();
    }
    let (message, operation, stream) = match operations_exist {
        true => (value & 15, value >> OPERATION & 7, value >> STREAM),
        false => (value, 0, 0),
    };
    let numbers = format!("sendmsg({message}, {operation}, {stream})");
    let Some((name, _)) = messages(arch).find(|m| m.1 == message && !m.0.ends_with("ILLEGAL_MSG")) else {
        return numbers;
    };
    let known = operations(&name).filter(|_| operations_exist);
    match (known, operation, stream) {
        (None, 0, 0) => format!("sendmsg({name})"),
        (None, ..) => numbers,
        (Some(list), ..) => match list.get(operation as usize).filter(|operation| !operation.is_empty()) {
            // GS_OP_NOP is valid only for GS_DONE messages.
            Some(&nothing @ "GS_OP_NOP") if stream == 0 && name.ends_with("_DONE") => {
                format!("sendmsg({name}, {nothing})")
            }
            None | Some(&"GS_OP_NOP") => numbers,
            Some(operation) if operation.starts_with("GS_") => {
                format!("sendmsg({name}, {operation}, {stream})")
            }
            Some(operation) if stream == 0 => format!("sendmsg({name}, {operation})"),
            Some(_) => numbers,
        },
    }
}

/// Parses the immediate of S_SENDMSG: a number, or `sendmsg(message)`.
pub fn parse(arch: Arch, operands: &[Operand]) -> Result<u32, AsmError> {
    if let Some(value) = whole_immediate(operands) {
        return value;
    }
    let calls = calls(operands)?;
    let [(call, span)] = calls.as_slice() else {
        return Err(AsmError::new(span_of(operands), "expected one sendmsg(…)"));
    };
    if call.name != "sendmsg" || !(1..=3).contains(&call.args.len()) {
        return Err(AsmError::new(*span, "expected sendmsg(message)"));
    }
    let operations_exist = arch.facts().instructions.message_operations;
    let max = if operations_exist { 15 } else { 0xff };
    let id = match &call.args[0].value {
        ArgValue::Int(v) if (0..=max).contains(v) => *v as u32,
        ArgValue::Int(_) => {
            return Err(AsmError::new(call.args[0].span, format!("a message is from 0 to {max}")));
        }
        ArgValue::Word(word) | ArgValue::Text(word) => {
            messages(arch).find(|m| m.0 == *word).map(|m| m.1).ok_or_else(|| {
                let names: Vec<String> = messages(arch).map(|m| m.0).collect();
                unknown(word, call.args[0].span, names.iter().map(String::as_str))
            })?
        }
    };
    let name = match call.args[0].value {
        ArgValue::Word(word) => Some(word),
        ArgValue::Int(_) | ArgValue::Text(_) => None,
    };
    if operations_exist {
        return with_operation(id, name, &call.args);
    }
    for arg in &call.args[1..] {
        if name.is_some() || arg.value != ArgValue::Int(0) {
            return Err(AsmError::new(
                arg.span,
                "messages of these processors have no operation and no stream",
            ));
        }
    }
    Ok(id)
}

/// Encodes a gfx9 message with its operation and stream.
fn with_operation(id: u32, name: Option<&str>, args: &[Arg]) -> Result<u32, AsmError> {
    let list = name.map(operations);
    let operation = match (args.get(1), list) {
        (None, Some(Some(_))) => return Err(AsmError::new(args[0].span, "this message needs its operation")),
        (None, _) => 0,
        (Some(arg), Some(None)) => return Err(AsmError::new(arg.span, "this message has no operation")),
        (Some(Arg { value: ArgValue::Word(word), span }), list) => {
            let list = list.flatten().unwrap_or(&GEOMETRY_OPERATIONS);
            let own = |name: &str| !name.is_empty() && !OTHER_OPERATIONS.contains(&name);
            let at = list.iter().position(|name| name == word && own(name));
            at.ok_or_else(|| unknown(word, *span, list.iter().copied().filter(|n| own(n))))? as u32
        }
        (Some(Arg { value: ArgValue::Int(v @ 0..=7), .. }), _) => *v as u32,
        (Some(arg), _) => return Err(AsmError::new(arg.span, "an operation is from 0 to 7")),
    };
    // A message that is named takes only its own operations. MSG_GS requires one other than GS_OP_NOP;
    // MSG_GS_DONE does not.
    if let (Some(arg), Some(Some(list))) = (args.get(1), list) {
        let named =
            list.get(operation as usize).is_some_and(|n| !n.is_empty() && !OTHER_OPERATIONS.contains(n));
        if !named || name == Some("MSG_GS") && operation == 0 {
            return Err(AsmError::new(arg.span, "this message has no such operation"));
        }
    }
    let stream = match args.get(2) {
        None => 0,
        Some(arg) if name.is_some_and(|n| !n.starts_with("MSG_GS") || operation == 0) => {
            return Err(AsmError::new(arg.span, "this operation has no stream"));
        }
        Some(Arg { value: ArgValue::Int(v @ 0..=3), .. }) => *v as u32,
        Some(arg) => return Err(AsmError::new(arg.span, "a stream is from 0 to 3")),
    };
    Ok(id | operation << OPERATION | stream << STREAM)
}
