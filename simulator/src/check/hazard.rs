//! `hazard`: uses that the architecture forbids or that give what nobody wants, though a functional simulator runs them.
//!
//! - a scalar operand of 64 bits at an odd SGPR, of more at one that is no multiple of four (manuals, *SGPR Alignment*); bases of scalar
//!   loads are left out, as the text format's kernel argument pointer is `s[3:4]`;
//! - a vector instruction with more than two different scalar values (manuals, *Constant Bus*, RDNA: two);
//! - dual-issue instructions in wave64 (RDNA3 manual, *VOPD*);
//! - V_READFIRSTLANE with EXEC = 0, which reads lane 0 (manuals, V_READFIRSTLANE_B32);
//! - an index in M0 that leads beyond the registers: the source is then the first register, and nothing is written (manuals, *VGPR Out of
//!   Range Behavior*, *SGPR Out of Range Behavior*);
//! - a matrix instruction whose A or B is the result of the matrix instruction right before it: a V_NOP or another independent
//!   vector instruction must be between (RDNA3 manual, *WMMA*; LLVM's hazard recognizer).

use super::Check;
use super::report::{Finding, Report, Site};
use crate::arch::Arch;
use crate::exec::effects::{Class, Effects, File, Lanes, Use, register_name};
use crate::exec::observe::Step;
use crate::exec::program::Program;
use isa_spec::tables::Role;

/// What is known of each instruction, and the last matrix result of each wave.
pub struct Shadow {
    /// Forbidden uses that an instruction is by itself.
    fixed: Vec<Option<(&'static str, String)>>,
    /// Instructions that anything here applies to.
    concerned: Vec<bool>,
    /// By wave: PC and destination of the matrix instruction that was the last vector instruction.
    matrix: Vec<Option<(u64, Use)>>,
}

impl Shadow {
    pub fn new(program: &Program, effects: &[Effects], wave_size: u32) -> Shadow {
        let fixed = (0..program.insts.len()).map(|at| wrong(program, at, &effects[at], wave_size));
        let fixed: Vec<_> = fixed.collect();
        // A vector instruction counts where it may stand between two matrix instructions.
        let matrix = effects.iter().any(|e| e.class == Class::Matrix);
        let concerned = effects.iter().zip(&fixed).map(|(e, wrong)| {
            let first_lane = e.reads.iter().any(|r| r.lanes == Lanes::FirstActive);
            let indexed = e.reads.iter().chain(&e.writes).any(|used| used.relative.is_some());
            wrong.is_some()
                || first_lane
                || indexed
                || matrix && matches!(e.class, Class::Valu | Class::Matrix)
        });
        Shadow { concerned: concerned.collect(), fixed, matrix: Vec::new() }
    }

    pub fn concerns(&self, index: usize) -> bool {
        self.concerned[index]
    }

    pub fn start(&mut self, waves: usize) {
        self.matrix.clear();
        self.matrix.resize(waves, None);
    }

    pub fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        if let Some((kind, message)) = &self.fixed[step.index]
            && report.is_new(Check::Hazard, kind, step.pc, None)
        {
            report.add(Finding::new(Check::Hazard, kind, message.clone(), Site::new(step, None)));
        }
        if step.wave.exec() == 0 && effects.reads.iter().any(|r| r.lanes == Lanes::FirstActive) {
            let kind = "no first lane";
            if report.is_new(Check::Hazard, kind, step.pc, None) {
                let message = "no lane is active: the value read is lane 0's, whatever it holds".to_string();
                report.add(
                    Finding::new(Check::Hazard, kind, message, Site::new(step, None))
                        .hint("branch around it with s_cbranch_execz"),
                );
            }
        }
        for (uses, written) in [(&effects.reads, false), (&effects.writes, true)] {
            uses.iter().for_each(|used| out_of_range(step, used, written, report));
        }
        if matches!(effects.class, Class::Valu | Class::Matrix) {
            self.matrix(step, effects, report);
        }
    }

    fn matrix(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let last = &mut self.matrix[step.wave.id as usize];
        if effects.class != Class::Matrix {
            *last = None;
            return;
        }
        let inputs = effects.reads.iter().filter(|r| matches!(r.role, Role::S0 | Role::S1));
        if let Some((pc, d)) = last {
            let overlaps =
                |r: &Use| r.file == File::Vgpr && r.first < d.first + d.count && d.first < r.first + r.count;
            let kind = "dependent matrix instructions";
            if inputs.clone().any(overlaps) && report.is_new(Check::Hazard, kind, step.pc, Some(*pc)) {
                let message = "an input is the result of the matrix instruction right before it".to_string();
                let other = Site::at(step, *pc, step.wave.workgroup, step.wave.id);
                report.add(
                    Finding::new(Check::Hazard, kind, message, Site::new(step, None))
                        .other("written by", other)
                        .hint("`v_nop`, or another vector instruction that does not depend on it, must be between them"),
                );
            }
        }
        *last = effects.writes.iter().find(|w| w.file == File::Vgpr).map(|w| (step.pc, *w));
    }
}

/// Reports an index that leads beyond the registers there are.
fn out_of_range(step: &Step<'_>, used: &Use, written: bool, report: &mut Report) {
    let Some(index) = used.index(step.wave) else { return };
    let kind = if written { "no such destination" } else { "no such source" };
    if used.start(step.wave) != Use::NOWHERE || !report.is_new(Check::Hazard, kind, step.pc, None) {
        return;
    }
    let name = |first| register_name(step.program.arch, used.file, first, used.count);
    let range = match used.file {
        File::Vgpr => format!("the wave's {} VGPRs", step.wave.vgpr_count()),
        _ if used.first < 108 => "the SGPRs and VCC".to_string(),
        _ => "the trap handler's registers".to_string(),
    };
    let instead = if written { "nothing is written".to_string() } else { format!("{} is read", name(0)) };
    let message = format!("{} plus {index}, the index in M0, is beyond {range}: {instead}", name(used.first));
    report.add(Finding::new(Check::Hazard, kind, message, Site::new(step, None)));
}

/// What is wrong with an instruction as it stands.
fn wrong(program: &Program, at: usize, effects: &Effects, wave_size: u32) -> Option<(&'static str, String)> {
    let inst = &program.insts[at];
    let dual = (inst.entry_y as usize) < program.arch.table().entries.len();
    if dual && wave_size == 64 {
        return Some(("dual issue in wave64", "dual-issue instructions exist in wave32 only".to_string()));
    }
    for used in effects.reads.iter().chain(&effects.writes) {
        if used.file != File::Sgpr || used.role == Role::State || effects.class == Class::Smem {
            continue;
        }
        let needed = match used.count {
            1 => 1,
            2 => 2,
            _ => 4,
        };
        if used.first < 106 && used.first % needed != 0 {
            let name = register_name(program.arch, File::Sgpr, used.first, used.count);
            let message = format!("{name} must start at a multiple of {needed}");
            return Some(("misaligned SGPRs", message));
        }
    }
    if effects.class == Class::Valu && !dual {
        return constant_bus(program.arch, effects);
    }
    None
}

/// Different scalar registers of a vector instruction; a literal is a third value's place too.
fn constant_bus(arch: Arch, effects: &Effects) -> Option<(&'static str, String)> {
    let mut scalars: Vec<u16> = effects
        .reads
        .iter()
        .filter(|r| r.file == File::Sgpr && r.role != Role::State)
        .map(|r| r.first)
        .collect();
    scalars.sort_unstable();
    scalars.dedup();
    (scalars.len() > 2).then(|| {
        let names: Vec<String> = scalars.iter().map(|r| register_name(arch, File::Sgpr, *r, 1)).collect();
        let message = format!(
            "{} different scalar operands ({}); a vector instruction can take two",
            names.len(),
            names.join(", ")
        );
        ("too many scalars", message)
    })
}
