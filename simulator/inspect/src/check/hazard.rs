//! `hazard`: uses that the architecture forbids or that give useless results, though a functional simulator runs them.
//!
//! - a register that the kernel has not declared: VGPRs beyond those it is allocated, where sources read v0 and results are dropped (RDNA3
//!   manual, *VGPR Out of Range Behavior*), SGPRs beyond those that its directives or its metadata count;
//! - what no assembler lets pass ([`legal`]): scalar registers at a wrong number, more scalar values than the constant bus brings, halves of
//!   a dual instruction that need the same bank;
//! - offsets and addresses of scalar loads whose low bits hardware ignores;
//! - dual-issue instructions in wave64 (RDNA3 manual, *VOPD*);
//! - V_READFIRSTLANE with EXEC = 0, which reads lane 0 (manuals, V_READFIRSTLANE_B32);
//! - an instruction of 32 bits that saves and changes EXEC in wave64: the upper lanes stay as they are;
//! - an index in M0 that leads beyond the registers: the source is then the first register, and nothing is written (manuals, *VGPR Out of
//!   Range Behavior*, *SGPR Out of Range Behavior*);
//! - a matrix instruction whose A or B is the result of the matrix instruction right before it: a V_NOP or another independent
//!   vector instruction must be between (RDNA3 manual, *WMMA*; LLVM's hazard recognizer);
//! - wait states that CDNA leaves to software ([`wait_states`]).

use super::Check;
use super::report::{Finding, Report, Site};
use super::wait_states::{self, Missing};
use isa_spec::tables::Role;
use std::collections::{HashMap, HashSet};
use wavesim_asm::{OddPairs, Options, legal};
use wavesim_engine::observe::Step;
use wavesim_engine::sched::dispatch::Registers;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_loader::prepared::Shape;
use wavesim_machine::exec::effects::{Class, Effects, File, Lanes, Relative, Use, register_name};
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::wave::{ACC, EXEC_LO, TTMP};

/// By wave of a workgroup: its last matrix instruction.
#[derive(Default)]
pub struct Group(Vec<Option<(u64, Use)>>);

/// Forbidden uses by instruction, and the last matrix result of each wave.
pub struct Shadow {
    /// Forbidden uses that an instruction is by itself.
    fixed: Vec<Option<(&'static str, String)>>,
    /// By instruction: the wait states that are missing before it.
    missing: HashMap<usize, Missing>,
    /// Scalar loads of dwords, which ignore the low bits of what they add up.
    words: Vec<bool>,
    /// Instructions that a rule applies to.
    observed: Vec<bool>,
    /// By wave: PC and destination of the matrix instruction that was the last vector instruction.
    matrix: Vec<Option<(u64, Use)>>,
}

impl Shadow {
    /// Checks every instruction once by itself; `effects` are theirs.
    pub fn new(program: &Program, effects: &[Effects], shape: &Shape) -> Shadow {
        let wrong = |(inst, effects): (&Inst, &Effects)| {
            undeclared(program.arch, effects, shape.registers)
                .or_else(|| wrong(inst, program.arch, shape.wave_size))
                .or_else(|| half_of_exec(effects, shape.wave_size))
        };
        let fixed: Vec<_> = program.insts.iter().zip(effects).map(wrong).collect();
        let words: Vec<bool> =
            program.insts.iter().map(|inst| legal::is_dword_load(inst, program.arch)).collect();
        let matrix = dependent_matrices(program, effects);
        let missing = wait_states::missing(program, effects);
        let observed =
            effects.iter().zip(fixed.iter().zip(&words)).enumerate().map(|(at, (e, (wrong, words)))| {
                let first_lane = e.reads.iter().any(|r| r.lanes == Lanes::FirstActive);
                let indexed = e.reads.iter().chain(&e.writes).any(|used| used.relative.is_some());
                wrong.is_some()
                    || missing.contains_key(&at)
                    || *words
                    || first_lane
                    || indexed
                    || matrix.contains(&at)
            });
        Shadow { observed: observed.collect(), fixed, missing, words, matrix: Vec::new() }
    }

    /// Whether an instruction, by index, needs a look each time.
    pub fn must_observe(&self, index: usize) -> bool {
        self.observed[index]
    }

    /// A workgroup of so many waves begins.
    pub fn start(&mut self, waves: usize) {
        self.matrix.clear();
        self.matrix.resize(waves, None);
    }

    /// Exchanges the workgroup that it follows.
    pub fn swap(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.matrix, &mut group.0);
    }

    pub fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        if let Some((kind, message)) = &self.fixed[step.index]
            && report.is_new(Check::Hazard, kind, step.pc, None)
        {
            report.add(Finding::new(Check::Hazard, kind, message.clone(), Site::new(step, None)));
        }
        if let Some(missing) = self.missing.get(&step.index) {
            too_soon(step, missing, report);
        }
        if self.words[step.index] {
            misaligned(step, effects, report);
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
        if !step.program.arch.is_cdna() && matches!(effects.class, Class::Valu | Class::Matrix) {
            self.matrix(step, effects, report);
        }
    }

    fn matrix(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let last = &mut self.matrix[step.wave.id as usize];
        if effects.class != Class::Matrix {
            *last = None;
            return;
        }
        if let Some((pc, d)) = last {
            let kind = "dependent matrix instructions";
            if multiplies(effects, d) && report.is_new(Check::Hazard, kind, step.pc, Some(*pc)) {
                let message = "an input is the result of the matrix instruction right before it".to_string();
                let other = Site::at(step, *pc, step.wave.workgroup, step.wave.id);
                report.add(
                    Finding::new(Check::Hazard, kind, message, Site::new(step, None))
                        .other("written by", other)
                        .hint("`v_nop`, or another vector instruction that does not depend on it, must be between them"),
                );
            }
        }
        *last = result(effects).map(|d| (step.pc, *d));
    }
}

/// What a matrix instruction writes.
fn result(effects: &Effects) -> Option<&Use> {
    effects.writes.iter().find(|w| w.file == File::Vgpr)
}

/// Whether A or B of a matrix instruction has some of these registers.
fn multiplies(effects: &Effects, d: &Use) -> bool {
    let mut inputs = effects.reads.iter().filter(|r| matches!(r.role, Role::S0 | Role::S1));
    inputs.any(|r| r.file == File::Vgpr && r.first < d.first + d.count && d.first < r.first + r.count)
}

/// Matrix instructions with one right behind them that may depend on them, and all vector instructions that may be the next one behind
/// those.
fn dependent_matrices(program: &Program, effects: &[Effects]) -> HashSet<usize> {
    let is_vector = |at: usize| matches!(effects[at].class, Class::Valu | Class::Matrix);
    let matrices = || (0..effects.len()).filter(|at| effects[*at].class == Class::Matrix);
    if program.arch.is_cdna() {
        return HashSet::new();
    }
    let mut next: HashMap<usize, Vec<usize>> = HashMap::new();
    for at in matrices() {
        let (mut reached, mut seen) = (vec![at], HashSet::new());
        while let Some(from) = reached.pop() {
            let successors = wait_states::successors(program, from);
            if effects[from].class == Class::Branch && successors == [None; 2] {
                // An indirect jump: all may be the next.
                return (0..effects.len()).filter(|at| is_vector(*at)).collect();
            }
            let new = successors.into_iter().flatten().filter(|to| seen.insert(*to));
            reached.extend(new.filter(|to| !is_vector(*to)));
        }
        next.insert(at, seen.into_iter().filter(|to| is_vector(*to)).collect());
    }
    let depends = |at: &usize| {
        let Some(d) = result(&effects[*at]) else { return false };
        next[at].iter().any(|to| effects[*to].class == Class::Matrix && multiplies(&effects[*to], d))
    };
    // What is seen of one is forgotten at the next one, which then is to be seen too.
    let mut reached: Vec<usize> = matrices().filter(depends).collect();
    let mut out = HashSet::new();
    while let Some(at) = reached.pop() {
        if out.insert(at) {
            reached.extend(next.get(&at).into_iter().flatten());
        }
    }
    out
}

/// Reports an instruction that follows too soon after another.
fn too_soon(step: &Step<'_>, missing: &Missing, report: &mut Report) {
    let (kind, pc) = ("missing wait states", step.program.pcs[missing.after]);
    if !report.is_new(Check::Hazard, kind, step.pc, Some(pc)) {
        return;
    }
    let Missing { what, has, needs, .. } = missing;
    let states = if *needs == 1 { "wait state must" } else { "wait states must" };
    let message = format!("{what}: {needs} {states} be between, not {has}");
    let other = Site::at(step, pc, step.wave.workgroup, step.wave.id);
    report.add(
        Finding::new(Check::Hazard, kind, message, Site::new(step, None))
            .other("after", other)
            .hint(format!("`s_nop {}`, or independent instructions, before it", needs - has - 1)),
    );
}

/// Reports an index that leads beyond the registers there are.
fn out_of_range(step: &Step<'_>, used: &Use, written: bool, report: &mut Report) {
    // Where MODE has M0 offset registers, the instruction faults.
    if matches!(used.relative, Some(Relative::Mode { .. })) {
        return;
    }
    let Some(index) = used.index(step.wave) else { return };
    let kind = if written { "no such destination" } else { "no such source" };
    if used.start(step.wave) != Use::NOWHERE || !report.is_new(Check::Hazard, kind, step.pc, None) {
        return;
    }
    let name = |first| register_name(step.program.arch, used.file, first, used.count);
    let range = match used.file {
        File::Vgpr => format!("the wave's {} VGPRs", step.wave.vgpr_count()),
        _ if (used.first as usize) < TTMP.start => "the SGPRs and VCC".to_string(),
        _ => "the trap handler's registers".to_string(),
    };
    let instead = if written { "nothing is written".to_string() } else { format!("{} is read", name(0)) };
    let message = format!("{} plus {index}, the index in M0, is beyond {range}: {instead}", name(used.first));
    report.add(Finding::new(Check::Hazard, kind, message, Site::new(step, None)));
}

/// Registers of a scalar load's address whose low bits are lost: hardware takes each part of the sum as a multiple of 4.
fn misaligned(step: &Step<'_>, effects: &Effects, report: &mut Report) {
    let kind = "misaligned scalar address";
    let parts = effects.reads.iter().filter(|r| r.file == File::Sgpr && r.role != Role::State);
    for part in parts {
        let value = step.wave.sgpr(part.first as u32);
        if !value.is_multiple_of(4) && report.is_new(Check::Hazard, kind, step.pc, None) {
            let name = register_name(step.program.arch, File::Sgpr, part.first, 1);
            let message =
                format!("a scalar load ignores the low two bits of {name}, which holds 0x{value:x}");
            report.add(Finding::new(Check::Hazard, kind, message, Site::new(step, None)));
        }
    }
}

/// A register beyond those that the kernel declares.
fn undeclared(arch: Arch, effects: &Effects, declared: Registers) -> Option<(&'static str, String)> {
    let beyond = |used: &&Use| {
        let end = used.first + used.count;
        match used.file {
            // Accumulation VGPRs are not counted apart.
            File::Vgpr => used.first < ACC as u16 && end > declared.vgprs,
            File::Sgpr => used.first < Registers::ALL.sgprs && end > declared.sgprs,
            File::Scc => false,
        }
    };
    let used = effects.reads.iter().chain(&effects.writes).filter(|u| u.role != Role::State).find(beyond)?;
    let name = register_name(arch, used.file, used.first, used.count);
    let (count, kind, directive) = match used.file {
        File::Vgpr => (declared.vgprs, "VGPRs", "next_free_vgpr"),
        _ => (declared.sgprs, "SGPRs", "next_free_sgpr"),
    };
    let message =
        format!("{name} is beyond the {count} {kind} that the kernel declares (.amdhsa_{directive})");
    Some(("undeclared register", message))
}

/// What is wrong with an instruction as it stands.
fn wrong(inst: &Inst, arch: Arch, wave_size: u32) -> Option<(&'static str, String)> {
    if arch.machine().is_some() {
        return None;
    }
    // A kernel in the text format finds its arguments' addresses in s[3:4].
    let options = Options { odd_pairs: OddPairs::Bases, ..Options::new(arch).wave(wave_size) };
    let illegal = legal::check_decoded(inst, &options).err();
    illegal.or_else(|| legal::ignored_offset(inst, &options)).map(|e| (e.kind, e.message))
}

/// An instruction that saves EXEC and changes it, in the form for waves of 32.
fn half_of_exec(effects: &Effects, wave_size: u32) -> Option<(&'static str, String)> {
    let exec = |u: &&Use| u.file == File::Sgpr && u.first == EXEC_LO as u16 && u.relative.is_none();
    let saves = |u: &Use| u.file == File::Sgpr && u.first != EXEC_LO as u16;
    let half = effects.writes.iter().find(exec).is_some_and(|u| u.count == 1)
        && effects.reads.iter().any(|u| exec(&u))
        && effects.writes.iter().any(saves);
    (wave_size == 64 && half && effects.class == Class::Salu).then(|| {
        let message =
            "saves and changes 32 bits of EXEC in a wave of 64 lanes: lanes 32 to 63 stay as they are";
        ("half of EXEC", message.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_asm::{self as asm, NoSymbols};

    #[test]
    fn what_no_assembler_lets_pass_is_reported() {
        let options = Options { lenient: true, ..Options::new(Arch::Rdna3) };
        for (text, kind) in [
            ("v_add3_u32 v1, s8, s9, s10", Some("too many scalars")),
            ("v_add3_u32 v1, s8, s9, 0x1234", Some("too many scalars")),
            ("v_add3_u32 v1, s8, s9, s9", None),
            ("s_mov_b64 s[1:2], 0", Some("misaligned SGPRs")),
            ("s_load_b32 s0, s[2:3], 6", Some("misaligned offset")),
            ("s_load_b32 s0, s[3:4], 8", None),
            ("v_dual_add_f32 v0, v4, v1 :: v_dual_mul_f32 v1, v8, v2", Some("dual issue")),
        ] {
            let inst = asm::parse(text, &options, &NoSymbols).unwrap().inst;
            assert_eq!(wrong(&inst, Arch::Rdna3, 32).map(|w| w.0), kind, "{text}");
        }
        let dual = "v_dual_add_f32 v0, v4, v1 :: v_dual_mul_f32 v1, v5, v2";
        let inst = asm::parse(dual, &options, &NoSymbols).unwrap().inst;
        assert_eq!(wrong(&inst, Arch::Rdna3, 32), None);
        assert_eq!(wrong(&inst, Arch::Rdna3, 64).map(|w| w.0), Some("dual issue in wave64"));
    }
}
