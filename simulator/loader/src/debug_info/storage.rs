//! The variables that have storage: those in LDS, and those in the frames of functions.

use super::location::{Op, Register, register};
use super::types::TypeKind;
use super::{DebugInfo, Reader, Unit};
use crate::objects::{Frame, Object};
use gimli::{AttributeValue, UnitOffset};
use std::collections::HashMap;

/// A register that holds a signed variable of 32 bits from an instruction on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedResult {
    /// The address of the instruction, in the file.
    pub address: u64,
    /// The register.
    pub register: Register,
    /// The name of the variable.
    pub name: String,
}

impl DebugInfo {
    /// Returns the names and sizes of the LDS variables of the kernel with code at an address of the file, if these are
    /// all: other functions with code have none.
    pub fn lds_variables(&self, entry: u64) -> Vec<(String, u64)> {
        let Some(inner) = &self.inner else { return Vec::new() };
        let reader = Reader::new(inner);
        let mut found = Vec::new();
        for unit in 0..reader.units.len() {
            if reader.lds_variables(unit, entry, &mut found).is_err() {
                return Vec::new();
            }
        }
        found
    }

    /// Returns the registers that hold signed variables of 32 bits, each from an instruction on.
    pub fn signed_results(&self) -> Vec<SignedResult> {
        let Some(inner) = &self.inner else { return Vec::new() };
        let reader = Reader::new(inner);
        let mut found = Vec::new();
        for unit in 0..reader.units.len() {
            let _ = reader.signed_results(unit, &mut found);
        }
        found
    }

    /// Returns the variables in the frames of functions.
    pub fn frames(&self) -> Vec<Frame> {
        let Some(inner) = &self.inner else { return Vec::new() };
        let reader = Reader::new(inner);
        (0..reader.units.len()).flat_map(|unit| reader.frames(unit).unwrap_or_default()).collect()
    }
}

impl<'a> Reader<'a> {
    fn lds_variables(&self, number: usize, entry: u64, found: &mut Vec<(String, u64)>) -> gimli::Result<()> {
        let unit = &self.units[number];
        let mut entries = unit.entries();
        // Whether the entries are those of a function other than the kernel.
        let mut other = false;
        while let Some(die) = entries.next_dfs()? {
            if die.depth() == 1 {
                other = die.tag() == gimli::DW_TAG_subprogram
                    && die.attr_value(gimli::DW_AT_low_pc).is_some()
                    && !self.contains(unit, die, entry);
            }
            if die.tag() == gimli::DW_TAG_variable && !other && self.in_lds(unit, die) {
                let size = self.type_of(number, die).and_then(|of| self.resolve(of, 0)).map(|of| of.size);
                found.extend(self.name(unit, die).zip(size));
            }
        }
        Ok(())
    }

    fn signed_results(&self, number: usize, found: &mut Vec<SignedResult>) -> gimli::Result<()> {
        let unit = &self.units[number];
        let mut entries = unit.entries();
        while let Some(die) = entries.next_dfs()? {
            if die.tag() != gimli::DW_TAG_variable {
                continue;
            }
            let Some(value) = die.attr_value(gimli::DW_AT_location) else { continue };
            let Some(mut list) = self.dwarf.attr_locations(unit, value)? else { continue };
            if !self.is_signed(number, die) {
                continue;
            }
            let name = self.name(unit, die).unwrap_or_else(|| "(no name)".to_string());
            while let Some(entry) = list.next()? {
                let ops = super::location::operations(unit, entry.data)?;
                let dwarf = match ops[..] {
                    [Op::Register { register }] => register.0,
                    [Op::RegisterOffset { register, offset: 0, .. }, ..] if ops.len() == 4 => register.0,
                    _ => continue,
                };
                if let Some(register) = register(dwarf) {
                    found.push(SignedResult { address: entry.range.begin, register, name: name.clone() });
                }
            }
        }
        Ok(())
    }

    /// Returns whether a variable is a signed integer of 32 bits.
    fn is_signed(&self, number: usize, die: &super::Entry<'a>) -> bool {
        let of = self.type_of(number, die).and_then(|of| self.resolve(of, 0));
        of.is_some_and(|of| of.size == 4 && of.kind == TypeKind::Integer { signed: true })
    }

    fn frames(&self, number: usize) -> gimli::Result<Vec<Frame>> {
        let unit = &self.units[number];
        let mut frames: HashMap<UnitOffset, Frame> = HashMap::new();
        let mut entries = unit.entries();
        let mut current: Option<UnitOffset> = None;
        while let Some(die) = entries.next_dfs()? {
            if die.depth() == 1 {
                current = None;
                if die.tag() == gimli::DW_TAG_subprogram
                    && let Some(register) = self.frame_register(unit, die.attr_value(gimli::DW_AT_frame_base))
                    && let Some(range) = self.dwarf.die_ranges(unit, die)?.next()?
                    && self.inner.text.contains(&range.begin)
                {
                    let code = range.begin..range.end;
                    frames.insert(
                        die.offset(),
                        Frame { code, register, variables: Vec::new(), signed: Vec::new() },
                    );
                    current = Some(die.offset());
                }
            }
            let is_variable = matches!(die.tag(), gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter);
            if let Some(frame) = current.and_then(|at| frames.get_mut(&at)).filter(|_| is_variable)
                && let Some(start) = self.frame_offset(unit, die.attr_value(gimli::DW_AT_location))
                && let Some(size) =
                    self.type_of(number, die).and_then(|of| self.resolve(of, 0)).map(|of| of.size)
            {
                let name = self.name(unit, die).unwrap_or_else(|| "(no name)".to_string());
                if self.is_signed(number, die) {
                    frame.signed.push((start, name.clone()));
                }
                frame.variables.push(Object { name, bytes: start..start + size });
            }
        }
        Ok(frames.into_values().collect())
    }

    /// Returns the SGPR that a frame base names.
    fn frame_register(
        &self,
        unit: &Unit<'a>,
        value: Option<AttributeValue<super::Slice<'a>>>,
    ) -> Option<u32> {
        let Some(AttributeValue::Exprloc(expression)) = value else { return None };
        match super::location::operations(unit, expression).ok()?[..] {
            [Op::Register { register: number }] => match register(number.0)? {
                Register::Sgpr(code) => Some(u32::from(code)),
                Register::Vgpr(_) => None,
            },
            _ => None,
        }
    }

    /// Returns the offset of a variable in the frame, if it is there all the time.
    fn frame_offset(&self, unit: &Unit<'a>, value: Option<AttributeValue<super::Slice<'a>>>) -> Option<u64> {
        let Some(AttributeValue::Exprloc(expression)) = value else { return None };
        let ops = super::location::operations(unit, expression).ok()?;
        match ops.first()? {
            Op::FrameOffset { offset } if matches!(ops.len(), 1 | 4) => u64::try_from(*offset).ok(),
            _ => None,
        }
    }
}
