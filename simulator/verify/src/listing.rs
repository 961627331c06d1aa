//! The function that the compiled engine makes of a program, with numbers for the addresses of host objects.

use crate::memory::LANE_BITS;
use crate::{VerifyError, unsupported};
use std::collections::BTreeMap;
use wavesim_machine::exec::program::Program;
use wavesim_x64::Function;

/// A function, and the names of the addresses in it.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The function.
    pub function: Function,
    /// Functions of the host and other objects by the numbers that stand for their addresses.
    pub names: BTreeMap<u64, String>,
}

/// Addresses of objects that have a name only.
const OBJECTS: u64 = 0x7100_0000_0000;

/// Compiles a program for waves of a size. `Err` if its instructions are not compiled.
pub fn function(program: &Program, wave_size: u32) -> Result<Listed, VerifyError> {
    for selection in wavesim_jit::selections(program) {
        // The last operation is the end of the code.
        if selection.instruction < program.insts.len()
            && let Some(why) = selection.call
        {
            return unsupported(format!("{} is not compiled: {why}", program.text(selection.instruction)));
        }
    }
    let unit = wavesim_jit::list(program, wave_size).map_err(|e| VerifyError::Unsupported(e.to_string()))?;
    let Some(unit) = unit else { return unsupported("nothing is compiled") };
    let mut names = BTreeMap::new();
    let mut text = String::new();
    for line in unit.listing.ir.lines() {
        text += &numbered(line, &mut names);
        text.push('\n');
    }
    match Function::parse(&text) {
        Ok(function) => Ok(Listed { function, names }),
        Err(errors) => unsupported(errors.first().map_or(String::new(), ToString::to_string)),
    }
}

/// Replaces the name of an object in a line by a number.
fn numbered(line: &str, names: &mut BTreeMap<u64, String>) -> String {
    for before in ["= const ", "cold_call ", "call "] {
        let Some(at) = line.find(before).map(|at| at + before.len()) else { continue };
        let rest = &line[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return line.to_string();
        }
        let known = names.iter().find(|(_, other)| *other == name).map(|(address, _)| *address);
        let address = match name {
            "LANE_BITS" => LANE_BITS,
            _ => known.unwrap_or(OBJECTS + 0x1000 * names.len() as u64),
        };
        names.insert(address, name.to_string());
        return format!("{}{address:#x}{}", &line[..at], &rest[end..]);
    }
    line.to_string()
}
