//! `arith`, on demand: arithmetic whose result is rarely intended. Integer division by zero, shifts by the width or
//! more, overflow of signed sums, infinities and NaNs that arise from finite values, and misaligned accesses.
//!
//! What an instruction computes follows from its semantics ([`rules`]). Division has no instruction: compilers
//! approximate the reciprocal of the converted divisor by an instruction that serves this purpose only.
//!
//! Infinities and NaNs are normal within the code of a division or a root, which selects other values in the end.
//! They are therefore followed through registers and scratch, and reported when they are stored ([`non_finite`]).

mod declared;
mod non_finite;
pub mod rules;

use super::init;
use super::kind::{Check, CheckState, Setup};
use super::report::{Finding, Report, Site, access_name, describe};
use declared::Declared;
use isa_spec::pcode::ir::{Role, Semantics, Shape};
use non_finite::Origins;
use rules::Rules;
use wavesim_asm::dialect::{Trait, Traits};
use wavesim_engine::observe::{Done, Step};
use wavesim_engine::reference;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::state::Wave;

/// What the check looks for in one instruction.
#[derive(Default)]
struct Arithmetic {
    /// The rules of its body, and of its second half.
    rules: [Option<Rules>; 2],
    /// It approximates the reciprocal of an integer.
    divides: bool,
    /// Its signed sums have an unsigned counterpart, so that it says that they are signed.
    is_signed: bool,
    /// The signed variable that is its result.
    declared: Option<Declared>,
}

/// State of the check.
pub struct Shadow {
    /// By instruction; empty if the check is not chosen.
    arithmetic: Vec<Arithmetic>,
    /// Whether the program was written as text, rather than compiled: its instructions are those of its author.
    is_text: bool,
    origins: Origins,
    /// A copy of the wave for the evaluator. Only the registers that the current instruction touches are up to date.
    copy: Option<Wave>,
}

impl CheckState for Shadow {
    type WorkgroupState = Origins;

    fn new(setup: &Setup<'_>) -> Shadow {
        let program = &setup.prepared.program;
        let declared = if setup.chosen.arith {
            declared::declared(setup.prepared, setup.effects)
        } else {
            Default::default()
        };
        let of = |at: usize| Arithmetic::of(program, at, declared.get(&at));
        Shadow {
            arithmetic: if setup.chosen.arith {
                (0..program.insts.len()).map(of).collect()
            } else {
                Vec::new()
            },
            is_text: setup.prepared.source.is_some(),
            origins: Origins::default(),
            copy: None,
        }
    }

    fn start(&mut self, _workgroup: [u32; 3], _waves: usize) {
        self.origins.clear();
    }

    fn swap(&mut self, group: &mut Origins) {
        std::mem::swap(&mut self.origins, group);
    }

    /// Infinities and NaNs are followed through all instructions.
    fn observes(&self, _index: usize) -> bool {
        true
    }

    fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        self.origins.begin(step, effects);
        let arithmetic = &self.arithmetic[step.index];
        if arithmetic.rules.iter().all(Option::is_none) {
            return;
        }
        let Some((inst, first, second)) = step.program.semantics(step.pc) else { return };
        let copy = self.copy.get_or_insert_with(|| step.wave.clone());
        init::copy_touched(step.wave, effects, copy);
        for (half, sem) in [Some(first), second].into_iter().enumerate() {
            let (Some(sem), Some(rules)) = (sem, &arithmetic.rules[half]) else { continue };
            let operands = Operands::of(step.program, inst, sem, half == 1, copy, rules);
            self.origins.set_sources(half, operands.finite(rules));
            if arithmetic.divides {
                report_division(step, &operands, report);
            }
            report_shifts(step, rules, &operands, self.is_text, report);
            let clamps = |inst: &Inst| {
                let binding = operand::binding(step.program.arch, inst.entry);
                binding.get(inst, binding.mods.clamp) & 1 != 0
            };
            if (self.is_text && arithmetic.is_signed || arithmetic.declared.is_some()) && !clamps(inst) {
                report_overflow(step, rules, &operands, arithmetic.declared.as_ref(), report);
            }
        }
    }

    fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        if !effects.atomic && effects.class != Class::Smem {
            for a in done.accesses {
                report_misaligned(step, a, self.is_text, prepared, report);
            }
        }
        self.origins.after(step, done, effects, &self.arithmetic[step.index].rules, report);
    }
}

impl Arithmetic {
    fn of(program: &Program, index: usize, declared: Option<&Declared>) -> Arithmetic {
        let Some((inst, first, second)) = program.semantics(program.pcs[index]) else {
            return Arithmetic::default();
        };
        let table = program.arch.table();
        let rules = |sem: &Semantics, entry| {
            let mut rules = (sem.shape != Shape::Wave).then(|| Rules::of(sem, table, entry));
            if let Some(rules) = rules.as_mut().filter(|_| declared.is_some()) {
                rules.add_declared(sem);
            }
            rules.filter(|rules| *rules != Rules::default())
        };
        let name = inst.instruction(table).name;
        let unsigned = name.replace("_I", "_U");
        Arithmetic {
            rules: [rules(first, inst.entry), second.and_then(|sem| rules(sem, inst.entry_y))],
            divides: Traits::of(name, program.arch).has(Trait::ReciprocalOfInteger),
            declared: declared.cloned(),
            is_signed: unsigned != name && table.instructions.iter().any(|inst| inst.name == unsigned),
        }
    }
}

/// The values of the operands that rules name, before the instruction.
struct Operands {
    roles: Vec<Role>,
    values: Vec<Vec<u128>>,
    /// The lanes of the values; lane 0 for an instruction that runs once.
    lanes: Vec<u32>,
    scalar: bool,
}

impl Operands {
    fn of(
        program: &Program,
        inst: &Inst,
        sem: &Semantics,
        second: bool,
        wave: &mut Wave,
        rules: &Rules,
    ) -> Operands {
        let shifts = rules.shifts.iter().map(|shift| shift.count);
        let signed = rules.signed.iter().flat_map(|signed| [signed.left.role, signed.right.role]);
        let sources = rules.sources.iter().map(|part| part.role);
        let mut roles: Vec<Role> = shifts.chain(signed).chain(sources).collect();
        roles.sort();
        roles.dedup();
        let scalar = sem.shape == Shape::Scalar;
        let mask = if scalar { 1 } else { wave.exec() };
        let values = reference::operands(program.arch, inst, sem, second, wave, &roles, mask);
        let lanes = (0..64).filter(|lane| mask >> lane & 1 == 1).collect();
        Operands { roles, values, lanes, scalar }
    }

    /// Returns each lane with the value of an operand.
    fn each(&self, role: Role) -> impl Iterator<Item = (u32, u128)> + '_ {
        let values = self.roles.iter().position(|known| *known == role).map(|at| &self.values[at][..]);
        self.lanes.iter().copied().zip(values.unwrap_or_default().iter().copied())
    }

    /// Returns the lanes in which all sources that are read as floats are finite.
    fn finite(&self, rules: &Rules) -> u64 {
        let mut lanes = self.lanes.iter().fold(0, |mask, lane| mask | 1 << lane);
        for part in &rules.sources {
            let other = self.each(part.role).filter(|(_, v)| rules::is_non_finite(part.ty, part.bits(*v)));
            lanes = other.fold(lanes, |mask, (lane, _)| mask & !(1 << lane));
        }
        lanes
    }

    fn site(&self, step: &Step<'_>, lane: u32) -> Site {
        Site::new(step, (!self.scalar).then_some(lane))
    }
}

/// Reports a division by zero.
fn report_division(step: &Step<'_>, operands: &Operands, report: &mut Report) {
    let kind = "division by zero";
    let zero = operands.each(Role::S0).find(|(_, value)| *value as u32 & 0x7fff_ffff == 0);
    if let Some((lane, _)) = zero.filter(|_| report.is_new(Check::Arith, kind, step.pc, None)) {
        let message = "the divisor of an integer division is zero".to_string();
        report.add(Finding::new(Check::Arith, kind, message, operands.site(step, lane)).hint(
            "the reciprocal of an integer is part of the code of a division: the quotient is undefined",
        ));
    }
}

/// Reports shifts by the width of the shifted operand or more. Compilers remove the `& 31` of a source, as hardware
/// does the same.
fn report_shifts(step: &Step<'_>, rules: &Rules, operands: &Operands, is_text: bool, report: &mut Report) {
    let kind = "shift by the width or more";
    for shift in &rules.shifts {
        let large = operands.each(shift.count).find(|(_, count)| *count as u32 >= shift.width);
        let Some((lane, count)) = large else { continue };
        if !report.is_new(Check::Arith, kind, step.pc, None) {
            continue;
        }
        let (width, low) = (shift.width, count as u32 & (shift.width - 1));
        let message = format!(
            "a value of {width} bits is shifted by {}: the hardware shifts by {low}",
            count as u32 as i32
        );
        let finding = Finding::new(Check::Arith, kind, message, operands.site(step, lane));
        report.add(match is_text {
            true => finding,
            false => {
                finding.note().hint(format!("correct if the source shifts by the count `& {}`", width - 1))
            }
        });
    }
}

/// Reports the overflow of signed sums and products.
fn report_overflow(
    step: &Step<'_>,
    rules: &Rules,
    operands: &Operands,
    declared: Option<&Declared>,
    report: &mut Report,
) {
    let kind = "signed overflow";
    for signed in &rules.signed {
        let (left, right) = (operands.each(signed.left.role), operands.each(signed.right.role));
        let mut overflows = left.zip(right).filter_map(|((lane, left), (_, right))| {
            let exact = signed.overflow(signed.left.signed(left), signed.right.signed(right))?;
            Some((lane, exact))
        });
        let Some((lane, exact)) = overflows.next() else { continue };
        if report.is_new(Check::Arith, kind, step.pc, None) {
            let message = format!("the signed result {exact} does not fit into {} bits", signed.width);
            let finding = Finding::new(Check::Arith, kind, message, operands.site(step, lane));
            report.add(match declared {
                None => finding.hint("if it is meant to wrap, the unsigned instruction says so"),
                // The sum of two unsigned integers may be converted.
                Some(variable) if variable.is_exact => {
                    let hint = "which is signed; correct if the source converts it from an unsigned type";
                    finding.note().hint(format!("it is stored to `{}`, {hint}", variable.name))
                }
                // Terms may have been put into another order.
                Some(variable) => {
                    let hint = "which is signed; the compiler may have changed the order of a sum";
                    finding.note().hint(format!("it is the value of `{}`, {hint}", variable.name))
                }
            });
        }
    }
}

/// Reports an access that is not aligned to its elements, of at most a dword; in text kernels, as a note, also one
/// that is not aligned to its size.
fn report_misaligned(step: &Step<'_>, a: &Access, is_text: bool, prepared: &Prepared, report: &mut Report) {
    let size = (a.size_bytes as u64).next_power_of_two();
    let element = size.min(4);
    let natural = if a.size_bytes == 12 { 4 } else { size };
    let needed = match a.address % element {
        0 if is_text && !a.address.is_multiple_of(natural) => natural,
        0 => return,
        _ => element,
    };
    let kind = "misaligned access";
    if a.place == Place::Nowhere || !report.is_new(Check::Arith, kind, step.pc, None) {
        return;
    }
    let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
    let message = format!("{} of {what} is not aligned to {needed} bytes", access_name(a, false));
    let site = Site::new(step, a.lane.map(u32::from));
    let finding = Finding::new(Check::Arith, kind, message, site).address(a.address);
    report.add(if needed == element { finding } else { finding.note() });
}
