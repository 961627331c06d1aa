//! The codes that operands accept: those that the XML lists for their operand types.

use super::code::{self, Code, SDWA_SCALAR};
use super::{Binding, Operand, OperandKind, ScalarNumbering, binding};
use crate::arch::Arch;
use crate::inst::Inst;
use crate::registers::EXEC_HI;
use isa_spec::tables::{ArchTable, EntryId, OperandType, Role};
use std::sync::OnceLock;

/// The code of the inline constant 1.
const ONE: u32 = 129;

/// Returns whether each type of an architecture accepts each code. Empty for types that list no values.
///
/// A type that lists scalar registers accepts all of them, as LLVM does: the XML leaves M0 and EXEC out of
/// some types, but they are registers as any other.
fn accepted(table: &ArchTable) -> Vec<Vec<bool>> {
    let mut scalars = [None; EXEC_HI + 1];
    let sources = table.operand_types.iter().find(|ty| ty.name == "OPR_SRC");
    for &(name, code) in sources.map_or(&[][..], |ty| ty.values) {
        if let Some(scalar) = scalars.get_mut(code as usize) {
            *scalar = Some(name);
        }
    }
    let is_scalar = |&(name, code): &(&str, u32)| scalars.get(code as usize) == Some(&Some(name));
    let of = |ty: &OperandType| {
        let size = ty.values.iter().map(|value| value.1 as usize + 1).max().unwrap_or(0);
        let mut accepted = vec![false; size];
        if ty.values.iter().any(is_scalar) {
            accepted.resize(size.max(scalars.len()), false);
            accepted.iter_mut().zip(scalars).for_each(|(accepted, scalar)| *accepted = scalar.is_some());
        }
        ty.values.iter().for_each(|value| accepted[value.1 as usize] = true);
        accepted
    };
    table.operand_types.iter().map(of).collect()
}

/// [`accepted`] of each architecture.
static ACCEPTED: [OnceLock<Vec<Vec<bool>>>; Arch::ALL.len()] = [const { OnceLock::new() }; Arch::ALL.len()];

/// Returns the code of the first operand whose field holds a code that its type does not list, such as a
/// reserved code, or a scalar register where only vector registers are accepted. What the hardware does then
/// is undefined.
pub fn unlisted_code(arch: Arch, inst: &Inst) -> Option<u32> {
    let first = binding(arch, inst.entry);
    let unlisted = |binding: &Binding, operands: &[Operand]| {
        operands.iter().find_map(|operand| {
            let raw = inst.fields[operand.field? as usize];
            (!binding.accepts(arch, inst, operand, raw)).then_some(raw)
        })
    };
    unlisted(first, &first.operands).or_else(|| {
        let second = (inst.entry_y != EntryId::MAX).then(|| binding(arch, inst.entry_y))?;
        unlisted(second, &second.y)
    })
}

impl Binding {
    /// Returns whether `raw` is a code that an operand accepts in its field.
    fn accepts(&self, arch: Arch, inst: &Inst, operand: &Operand, raw: u32) -> bool {
        let Some(value) = self.value(inst, operand) else { return true };
        let code = code::code(arch, operand, value);
        let lists = |ty: u8, code: u32| {
            let all = ACCEPTED[arch as usize].get_or_init(|| accepted(arch.table()));
            let accepted = &all[ty as usize];
            accepted.is_empty() || accepted.get(code as usize).copied().unwrap_or(false)
        };
        let numbers = matches!(operand.role, Role::Imm | Role::Other)
            || matches!(operand.kind, OperandKind::Number { .. });
        let is_zero = |field: Option<u8>| field.is_some_and(|at| inst.fields[at as usize] == 0);
        match (operand.kind, operand.scalars) {
            _ if numbers => true,
            // A literal needs a word that holds it. Types of lane selects list constants but no literal,
            // although the instructions have a form with that word.
            _ if code == Code::Literal => {
                self.mods.literal.is_some()
                    && self.mods.literal_hi.is_none()
                    && (lists(operand.ty, raw) || lists(operand.ty, ONE))
            }
            _ if code == Code::Literal64 => self.mods.literal_hi.is_some() && lists(operand.ty, raw),
            // Fields that are not used.
            (_, ScalarNumbering::CdnaBase) if raw == EXEC_HI as u32 => true,
            (_, ScalarNumbering::CdnaSmemOffset) if is_zero(self.mods.soffset_en) => true,
            _ if operand.output && self.mods.sdwa.is_some_and(|sdwa| is_zero(sdwa.has_sdst)) => true,
            (OperandKind::Vgpr, _) if value & SDWA_SCALAR != 0 => {
                let types = arch.table().operand_types;
                types.iter().position(|ty| ty.name == "OPR_SRC_SIMPLE").is_some_and(|ty| lists(ty as u8, raw))
            }
            _ => lists(operand.ty, raw),
        }
    }
}
