//! Renaming of labels, symbols, macros and constants, and of registers in their live range.
//!
//! The text after a renaming is analysed, too: it must have no new error, and each read must see the values of the
//! same instructions as before.

use crate::analysis::{self, Code};
use crate::document::Document;
use crate::ranges::{self, Register};
use crate::scan::{self, Registers, Token, TokenKind};
use crate::settings::Settings;
use crate::symbols;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use wavesim_machine::exec::effects::{File, register_name};

/// Replacements of byte ranges, in source order.
pub type Edits = Vec<(Range<usize>, String)>;

/// Returns the token that would be renamed.
///
/// # Errors
/// What is at the offset has no name that can change.
pub fn prepare(document: &Document, offset: usize) -> Result<&Token, String> {
    let token = document.token_at(offset).ok_or("there is no name here")?;
    let spelling = document.spelling(token);
    match token.kind {
        TokenKind::Register(Some(_)) if scan::moved(spelling, 0).is_some() => match &document.analysis.code {
            Some(_) => Ok(token),
            None => Err("registers can be renamed once the kernel has no errors".to_string()),
        },
        TokenKind::Register(_) => Err(format!("`{spelling}` has no number that could change")),
        _ if symbols::definitions(document, spelling).next().is_some() => Ok(token),
        _ => Err(format!("`{spelling}` is not defined in this file")),
    }
}

/// Returns the edits that give another name to what is at an offset.
///
/// # Errors
/// The name is not possible there, or the kernel would compute something else.
pub fn rename(document: &Document, offset: usize, name: &str, settings: &Settings) -> Result<Edits, String> {
    let token = prepare(document, offset)?;
    let (edits, moved) = match token.kind {
        TokenKind::Register(_) => register(document, token, name)?,
        _ => (symbol(document, token, name)?, BTreeSet::new()),
    };
    verify(document, &edits, &moved, settings)?;
    Ok(edits)
}

fn symbol(document: &Document, token: &Token, name: &str) -> Result<Edits, String> {
    let start = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b'$');
    let valid = name.bytes().enumerate().all(|(at, b)| start(b) || at > 0 && b.is_ascii_digit());
    if name.is_empty() || !valid || scan::registers(name).is_some() {
        return Err(format!("`{name}` cannot be a name: letters, digits, `_`, `.` and `$`, and no register"));
    }
    if name == document.spelling(token) {
        return Ok(Vec::new());
    }
    if symbols::definitions(document, name).next().is_some() {
        return Err(format!("`{name}` is already defined"));
    }
    let occurrences = symbols::occurrences(document, document.spelling(token));
    Ok(occurrences.into_iter().map(|t| (t.start..t.end, name.to_string())).collect())
}

/// Moves all operands that share values with an operand, and those that name other registers of the same operands,
/// by the same number. Returns also the registers before and after.
fn register(document: &Document, token: &Token, name: &str) -> Result<(Edits, BTreeSet<Register>), String> {
    let code = document.analysis.code.as_ref().ok_or("the kernel has errors")?;
    let from = symbols::registers(token).ok_or("no register")?;
    let to = scan::registers(name).filter(|to| to.file == from.file && to.count == from.count);
    let spelling = document.spelling(token);
    let to = to.ok_or_else(|| {
        let kind = if from.file == File::Vgpr { "VGPRs" } else { "SGPRs" };
        format!("`{spelling}` can be renamed to {} {kind}, not to `{name}`", from.count)
    })?;
    if code.relative[usize::from(from.file == File::Vgpr)] {
        return Err("the kernel computes numbers of registers when it runs".to_string());
    }
    let delta = to.first as i32 - from.first as i32;
    let mut webs: BTreeMap<Register, Vec<ranges::Web>> = BTreeMap::new();
    let mut operands: BTreeMap<usize, &Token> = BTreeMap::new();
    let mut queue = VecDeque::from([token]);
    while let Some(operand) = queue.pop_front() {
        if operands.insert(operand.start, operand).is_some() {
            continue;
        }
        let named = symbols::registers(operand).ok_or("no register")?;
        for number in named.first..named.first + named.count {
            let register = (named.file, number);
            let webs = &*webs.entry(register).or_insert_with(|| ranges::webs(code, register));
            for index in instruction(code, operand.line)? {
                let used = symbols::operand_use(document, code, index, operand, register);
                let own = [(used.read, (index, false)), (used.written, (index, true))];
                for web in webs.iter().filter(|w| own.iter().any(|(on, a)| *on && w.accesses.contains(a))) {
                    follow(document, code, register, web, &mut queue)?;
                }
            }
        }
    }
    let mut moved = BTreeSet::new();
    let mut edits = Vec::new();
    for operand in operands.values() {
        let Registers { file, first, count } = symbols::registers(operand).ok_or("no register")?;
        let spelling = document.spelling(operand);
        let new = scan::moved(spelling, delta);
        let new = new
            .ok_or_else(|| format!("line {}: `{spelling}` cannot be renamed along with it", operand.line))?;
        let after = scan::registers(&new).ok_or_else(|| format!("there is no register `{new}`"))?;
        moved.extend((first..first + count).chain(after.first..after.first + count).map(|n| (file, n)));
        if delta != 0 {
            edits.push((operand.start..operand.end, new));
        }
    }
    Ok((edits, moved))
}

/// Returns the instruction of a line, of which there must be one.
fn instruction(code: &Code, line: u32) -> Result<[usize; 1], String> {
    let mut all = code.of_line(line);
    match (all.next(), all.next()) {
        (Some(only), None) => Ok([only]),
        _ => Err(format!("line {line} stands for several instructions or none: a macro is not changed")),
    }
}

/// Queues the operands of a web.
fn follow<'d>(
    document: &'d Document,
    code: &Code,
    register: Register,
    web: &ranges::Web,
    queue: &mut VecDeque<&'d Token>,
) -> Result<(), String> {
    let name = register_name(code.program.arch, register.0, register.1, 1);
    if web.external {
        return Err(format!("`{name}` may have its value from the launch, or from code that is not known"));
    }
    if let Some(index) = web.escapes {
        return Err(format!("`{name}` may be used after the jump in line {}", code.program.lines[index]));
    }
    for (index, write) in &web.accesses {
        let line = code.program.lines[*index];
        instruction(code, line)?;
        let mut found = false;
        for operand in symbols::operands(document, line, register) {
            let used = symbols::operand_use(document, code, *index, operand, register);
            if if *write { used.written } else { used.read } {
                found = true;
                queue.push_back(operand);
            }
        }
        if !found {
            return Err(format!("line {line} uses `{name}` without naming it"));
        }
    }
    Ok(())
}

/// Applies edits to a text.
pub fn apply(text: &str, edits: &Edits) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (range, new) in edits {
        out += &text[end..range.start];
        out += new;
        end = range.end;
    }
    out + &text[end..]
}

/// Checks that edits change nothing but names. `moved`: the registers that they remove or add.
fn verify(
    document: &Document,
    edits: &Edits,
    moved: &BTreeSet<Register>,
    settings: &Settings,
) -> Result<(), String> {
    if !document.analysis.messages.is_empty() {
        // A text with errors has no instructions to compare.
        return Ok(());
    }
    let text = apply(&document.text, edits);
    let after = analysis::analyse(document.kind, &document.path, &text, settings);
    if let Some(message) = after.messages.first() {
        let line = document.lines.line_of(message.from.min(document.text.len())) + 1;
        return Err(format!("line {line} would have an error: {}", message.text));
    }
    let (Some(before), Some(after)) = (&document.analysis.code, &after.code) else { return Ok(()) };
    if before.program.insts.len() != after.program.insts.len() {
        return Err("the kernel would have other instructions".to_string());
    }
    let (old, new) = (ranges::chains(before, moved), ranges::chains(after, moved));
    let changed = old.iter().find(|(key, seen)| new.get(key) != Some(seen)).map(|(key, _)| key);
    let changed = changed.or_else(|| new.keys().find(|key| !old.contains_key(key)));
    match changed {
        None => Ok(()),
        Some((index, ..)) => Err(format!(
            "the new registers are in use: line {} would read another value",
            before.program.lines[*index]
        )),
    }
}
