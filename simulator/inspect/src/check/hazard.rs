//! `hazard`: uses that the architecture forbids or whose results are useless, although a functional simulator
//! can execute them.
//!
//! - a register that the kernel has not declared: VGPRs beyond its allocation, where sources read v0 and
//!   results are dropped (RDNA3 manual, *VGPR Out of Range Behavior*), and SGPRs beyond those that its
//!   directives or metadata count;
//! - encodings that every assembler rejects ([`legal`]): misaligned scalar registers, more scalar values than
//!   the constant bus can supply, halves of a dual instruction that need the same bank;
//! - offsets and addresses of scalar loads whose low bits hardware ignores;
//! - dual-issue instructions in wave64 (RDNA3 manual, *VOPD*);
//! - V_READFIRSTLANE with EXEC = 0, which reads lane 0 (manuals, V_READFIRSTLANE_B32);
//! - a 32-bit instruction that saves and changes EXEC in wave64: the upper lanes remain unchanged;
//! - an index in M0 that is out of range: the source is then the first register, and nothing is written
//!   (manuals, *VGPR Out of Range Behavior*, *SGPR Out of Range Behavior*);
//! - a matrix instruction whose A or B is the result of the matrix instruction immediately before it: a V_NOP
//!   or another independent vector instruction must separate them (RDNA3 manual, *WMMA*; LLVM's hazard
//!   recognizer);
//! - wait states that CDNA requires of software, and waits that RDNA requires between vector instructions
//!   ([`wait_states`]);
//! - registers that change before the address of an access that reads them is translated ([`wait_states`]);
//! - descriptors with forbidden values ([`descriptor`]);
//! - VGPRs after the message that frees them (RDNA3 manual, *S_SENDMSG*);
//! - other instructions in a clause of memory instructions (RDNA3 manual, *S_CLAUSE*).

use super::kind::{Check, CheckState, Setup};
use super::report::{Finding, Report, Site};
use super::vgpr_msbs;
use super::wait_states::{self, Deficit, Missing};
use crate::calls::jumps;
use isa_spec::pcode::builtins::Control;
use isa_spec::tables::Role;
use std::collections::{HashMap, HashSet};
use wavesim_asm::{OddPairs, Options, legal};
use wavesim_engine::observe::Step;
use wavesim_engine::sched::dispatch::{Layout, Registers};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::effects::{Class, Effects, File, Lanes, Relative, Use, register_name};
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::wave::{ACC, EXEC_LO, TTMP};

pub(super) mod clause;
mod descriptor;

/// The last matrix instruction of each wave of a workgroup, and the message by which it has freed its VGPRs.
#[derive(Default)]
pub struct HazardGroup(Vec<Option<(u64, Use)>>, Vec<Option<u64>>);

/// Forbidden uses of each instruction, and the last matrix result of each wave.
pub struct Shadow {
    /// Findings that depend only on the instruction.
    static_findings: Vec<Option<(&'static str, String)>>,
    /// By instruction: the wait states that are missing before it.
    deficits: HashMap<usize, Deficit>,
    /// Whether the instruction is a scalar load of dwords, which ignores the low bits of its address
    /// operands.
    dword_loads: Vec<bool>,
    /// Whether any rule applies to the instruction.
    observed: Vec<bool>,
    /// By instruction: the wait that is missing before it.
    vector_hazards: HashMap<usize, Missing>,
    /// Whether those are notes: a text kernel is for an architecture, not for the processors that need the waits.
    vector_notes: bool,
    /// By instruction: its operands that are descriptors.
    descriptors: HashMap<usize, descriptor::Descriptors>,
    /// By instruction: the wait for an address translation that is missing before it.
    replays: HashMap<usize, Missing>,
    /// Whether those are notes: a text kernel does not state whether failed translations are repeated.
    replay_notes: bool,
    /// Messages that free the VGPRs, and instructions after them that use one.
    frees: HashSet<usize>,
    after_free: HashSet<usize>,
    /// By wave: PC of the message that freed its VGPRs.
    freed: Vec<Option<u64>>,
    /// By wave: PC and destination of the matrix instruction that was the last vector instruction.
    matrix: Vec<Option<(u64, Use)>>,
}

impl CheckState for Shadow {
    type WorkgroupState = HazardGroup;

    /// Checks each instruction of a program statically; `effects` are the instructions' effects.
    fn new(setup: &Setup<'_>) -> Shadow {
        let (program, shape, effects) = (&setup.prepared.program, &setup.prepared.shape, setup.effects);
        let static_finding = |(inst, effects): (&Inst, &Effects)| {
            undeclared(program.arch, effects, shape.registers)
                .or_else(|| ill_formed(inst, program.arch, shape.wave_size))
                .or_else(|| partial_exec_save(effects, shape.wave_size))
        };
        let mut static_findings: Vec<_> = program.insts.iter().zip(effects).map(static_finding).collect();
        for (at, message) in clause::intruders(program, effects) {
            static_findings[at].get_or_insert(("not in a clause", message));
        }
        for at in vgpr_msbs::ambiguous(program, effects) {
            let message = "the bits in MODE that extend its VGPR numbers (s_set_vgpr_msb) differ between the \
                           paths that lead here";
            static_findings[at].get_or_insert(("path-dependent VGPRs", message.to_string()));
        }
        for (at, message) in vgpr_msbs::mode_writes(program, effects) {
            static_findings[at].get_or_insert(("write of MODE", message));
        }
        let dword_loads: Vec<bool> =
            program.insts.iter().map(|inst| legal::is_dword_load(inst, program.arch)).collect();
        let matrix = dependent_matrices(program, effects);
        let deficits = wait_states::deficits(program, effects);
        let vector_hazards = wait_states::vector_hazards(program, effects, shape.wave_size);
        let replays = wait_states::replays(program, effects);
        let (frees, after_free) = freed_vgprs(program, effects);
        let descriptors: HashMap<usize, descriptor::Descriptors> =
            (0..effects.len()).filter_map(|at| Some((at, descriptor::operands(program, at)?))).collect();
        let observed = effects.iter().zip(static_findings.iter().zip(&dword_loads)).enumerate().map(
            |(at, (e, (wrong, dword_loads)))| {
                let first_lane = e.reads.iter().any(|r| r.lanes == Lanes::FirstActive);
                let indexed = e.reads.iter().chain(&e.writes).any(|used| used.relative.is_some());
                wrong.is_some()
                    || deficits.contains_key(&at)
                    || vector_hazards.contains_key(&at)
                    || replays.contains_key(&at)
                    || descriptors.contains_key(&at)
                    || frees.contains(&at)
                    || after_free.contains(&at)
                    || *dword_loads
                    || first_lane
                    || indexed
                    || matrix.contains(&at)
            },
        );
        Shadow {
            observed: observed.collect(),
            static_findings,
            deficits,
            dword_loads,
            descriptors,
            replays,
            replay_notes: matches!(shape.init.layout, Layout::Text { .. }),
            vector_hazards,
            vector_notes: matches!(shape.init.layout, Layout::Text { .. })
                && !program.arch.facts().hazards.coexecution,
            frees,
            after_free,
            freed: Vec::new(),
            matrix: Vec::new(),
        }
    }

    fn start(&mut self, _workgroup: [u32; 3], waves: usize) {
        self.matrix.clear();
        self.matrix.resize(waves, None);
        self.freed.clear();
        self.freed.resize(waves, None);
    }

    fn swap(&mut self, group: &mut HazardGroup) {
        std::mem::swap(&mut self.matrix, &mut group.0);
        std::mem::swap(&mut self.freed, &mut group.1);
    }

    fn observes(&self, index: usize) -> bool {
        self.observed[index]
    }

    fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        if !self.observed[step.index] {
            return;
        }
        if let Some((kind, message)) = &self.static_findings[step.index]
            && report.is_new(Check::Hazard, kind, step.pc, None)
        {
            report.add(Finding::new(Check::Hazard, kind, message.clone(), Site::new(step, None)));
        }
        if let Some(deficit) = self.deficits.get(&step.index) {
            report_wait_states(step, deficit, report);
        }
        if let Some(missing) = self.vector_hazards.get(&step.index) {
            report_missing("missing wait for the ALU", step, missing, self.vector_notes, report);
        }
        if let Some(missing) = self.replays.get(&step.index) {
            report_missing("register of a repeated access", step, missing, self.replay_notes, report);
        }
        if let Some(descriptors) = self.descriptors.get(&step.index) {
            descriptor::check(step, effects, descriptors, report);
        }
        if self.frees.contains(&step.index) {
            self.freed[step.wave.id as usize] = Some(step.pc);
        }
        if let Some(pc) = self.freed[step.wave.id as usize].filter(|_| self.after_free.contains(&step.index))
        {
            report_freed(step, effects, pc, report);
        }
        if self.dword_loads[step.index] {
            report_misaligned(step, effects, report);
        }
        if step.wave.exec() == 0 && effects.reads.iter().any(|r| r.lanes == Lanes::FirstActive) {
            let kind = "no first lane";
            if report.is_new(Check::Hazard, kind, step.pc, None) {
                let message = "no lane is active: the instruction reads lane 0".to_string();
                report.add(
                    Finding::new(Check::Hazard, kind, message, Site::new(step, None))
                        .hint("branch around it with s_cbranch_execz"),
                );
            }
        }
        for (uses, written) in [(&effects.reads, false), (&effects.writes, true)] {
            uses.iter().for_each(|used| report_out_of_range(step, used, written, report));
        }
        if step.program.arch.facts().hazards.matrix_needs_gap
            && matches!(effects.class, Class::Valu | Class::Matrix)
        {
            self.check_matrix(step, effects, report);
        }
    }
}

impl Shadow {
    fn check_matrix(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let last = &mut self.matrix[step.wave.id as usize];
        if effects.class != Class::Matrix {
            *last = None;
            return;
        }
        if let Some((pc, d)) = last {
            let kind = "dependent matrix instructions";
            if reads_as_factor(effects, d) && report.is_new(Check::Hazard, kind, step.pc, Some(*pc)) {
                let message =
                    "an input is the result of the matrix instruction immediately before it".to_string();
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

/// Returns the result register of a matrix instruction.
fn result(effects: &Effects) -> Option<&Use> {
    effects.writes.iter().find(|w| w.file == File::Vgpr)
}

/// Returns whether A or B of a matrix instruction overlaps these registers.
fn reads_as_factor(effects: &Effects, d: &Use) -> bool {
    let mut inputs = effects.reads.iter().filter(|r| matches!(r.role, Role::S0 | Role::S1));
    inputs.any(|r| r.file == File::Vgpr && r.first < d.first + d.count && d.first < r.first + r.count)
}

/// Returns the matrix instructions that may be followed immediately by a dependent one, and all vector
/// instructions that may come next after those.
fn dependent_matrices(program: &Program, effects: &[Effects]) -> HashSet<usize> {
    let is_vector = |at: usize| matches!(effects[at].class, Class::Valu | Class::Matrix);
    let matrices = || (0..effects.len()).filter(|at| effects[*at].class == Class::Matrix);
    if !program.arch.facts().hazards.matrix_needs_gap {
        return HashSet::new();
    }
    let mut next: HashMap<usize, Vec<usize>> = HashMap::new();
    for at in matrices() {
        let (mut reached, mut seen) = (vec![at], HashSet::new());
        while let Some(from) = reached.pop() {
            let successors = wait_states::successors(program, from);
            if effects[from].class == Class::Branch && successors == [None; 2] {
                // An indirect jump: any vector instruction may be next.
                return (0..effects.len()).filter(|at| is_vector(*at)).collect();
            }
            let new = successors.into_iter().flatten().filter(|to| seen.insert(*to));
            reached.extend(new.filter(|to| !is_vector(*to)));
        }
        next.insert(at, seen.into_iter().filter(|to| is_vector(*to)).collect());
    }
    let depends = |at: &usize| {
        let Some(d) = result(&effects[*at]) else { return false };
        next[at].iter().any(|to| effects[*to].class == Class::Matrix && reads_as_factor(&effects[*to], d))
    };
    // The next instruction resets the state that an observed one has set, so it must be observed, too.
    let mut reached: Vec<usize> = matrices().filter(depends).collect();
    let mut out = HashSet::new();
    while let Some(at) = reached.pop() {
        if out.insert(at) {
            reached.extend(next.get(&at).into_iter().flatten());
        }
    }
    out
}

/// Returns the messages that free a wave's VGPRs, and the instructions after them that use a VGPR.
fn freed_vgprs(program: &Program, effects: &[Effects]) -> (HashSet<usize>, HashSet<usize>) {
    let Some(number) = program.arch.facts().dealloc_message else { return Default::default() };
    let message = |at: usize| program.insts[at].field(program.arch.table(), "SIMM16").map(|imm| imm & 0xff);
    let sends = |at: &usize| effects[*at].calls.contains(&Control::SendMsg) && message(*at) == Some(number);
    let frees: HashSet<usize> = (0..effects.len()).filter(sends).collect();
    let (mut open, mut seen) = (frees.iter().copied().collect::<Vec<_>>(), HashSet::new());
    let jumps = jumps(effects);
    while let Some(from) = open.pop() {
        // The message is in a function: its callers go on, anywhere.
        if jumps[from].is_some() {
            seen.extend(0..effects.len());
            break;
        }
        let next = wait_states::successors(program, from).into_iter().flatten();
        open.extend(next.filter(|to| seen.insert(*to)));
    }
    let vector = |at: &usize| {
        let all = effects[*at].reads.iter().chain(&effects[*at].writes);
        all.into_iter().any(|used| used.file == File::Vgpr)
    };
    (frees, seen.into_iter().filter(vector).collect())
}

/// Reports the use of a VGPR after the wave has freed all of them.
fn report_freed(step: &Step<'_>, effects: &Effects, pc: u64, report: &mut Report) {
    let kind = "VGPR after its release";
    let used = effects.reads.iter().chain(&effects.writes).find(|used| used.file == File::Vgpr);
    if let Some(used) = used.filter(|_| report.is_new(Check::Hazard, kind, step.pc, Some(pc))) {
        let name = register_name(step.program.arch, used.file, used.first, used.count);
        let message = format!("{name} is used after the wave has freed its VGPRs");
        let other = Site::at(step, pc, step.wave.workgroup, step.wave.id);
        report
            .add(Finding::new(Check::Hazard, kind, message, Site::new(step, None)).other("freed by", other));
    }
}

/// Reports an instruction that depends on another one without the wait that the hardware needs.
fn report_missing(kind: &'static str, step: &Step<'_>, missing: &Missing, note: bool, report: &mut Report) {
    let pc = step.program.pcs[missing.after];
    if !report.is_new(Check::Hazard, kind, step.pc, Some(pc)) {
        return;
    }
    let other = Site::at(step, pc, step.wave.workgroup, step.wave.id);
    let finding = Finding::new(Check::Hazard, kind, missing.what.to_string(), Site::new(step, None))
        .other("after", other)
        .hint(match missing.times {
            1 => format!("compilers put `{}` before it", missing.needed),
            n => format!("compilers put `{}` {n} times before it", missing.needed),
        });
    report.add(if note { finding.note() } else { finding });
}

/// Reports an instruction that follows another with too few wait states between them.
fn report_wait_states(step: &Step<'_>, deficit: &Deficit, report: &mut Report) {
    let (kind, pc) = ("missing wait states", step.program.pcs[deficit.after]);
    if !report.is_new(Check::Hazard, kind, step.pc, Some(pc)) {
        return;
    }
    let Deficit { what, existing, required, .. } = deficit;
    let states = if *required == 1 { "wait state is" } else { "wait states are" };
    let message = format!("{what}: {required} {states} required, but there are {existing}");
    let other = Site::at(step, pc, step.wave.workgroup, step.wave.id);
    report.add(
        Finding::new(Check::Hazard, kind, message, Site::new(step, None))
            .other("after", other)
            .hint(format!("`s_nop {}`, or independent instructions, before it", required - existing - 1)),
    );
}

/// Reports an index that is out of range.
fn report_out_of_range(step: &Step<'_>, used: &Use, written: bool, report: &mut Report) {
    // Where MODE enables M0 as an offset, the instruction faults.
    if matches!(used.relative, Some(Relative::Mode { .. })) {
        return;
    }
    let Some(index) = used.index(step.wave) else { return };
    let kind = if written { "no such destination" } else { "no such source" };
    if used.start(step.wave) != Use::OUT_OF_RANGE || !report.is_new(Check::Hazard, kind, step.pc, None) {
        return;
    }
    let name = |first| register_name(step.program.arch, used.file, first, used.count);
    let range = match used.file {
        File::Vgpr => format!("the wave's {} VGPRs", step.wave.vgpr_count()),
        _ if (used.first as usize) < TTMP.start => "the SGPRs and VCC".to_string(),
        _ => "the trap handler's registers".to_string(),
    };
    let instead = if written { "nothing is written".to_string() } else { format!("{} is read", name(0)) };
    let message = match used.relative {
        Some(Relative::Msb { .. }) => {
            let register = name(used.first + index as u16);
            format!("{register}, which is {} with the bits in MODE, is beyond {range}", name(used.first))
        }
        _ => format!("{} plus {index}, the index in M0, is beyond {range}: {instead}", name(used.first)),
    };
    report.add(Finding::new(Check::Hazard, kind, message, Site::new(step, None)));
}

/// Reports registers of a scalar load's address whose low bits are lost: hardware treats each term of the sum
/// as a multiple of 4.
fn report_misaligned(step: &Step<'_>, effects: &Effects, report: &mut Report) {
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

/// Returns a finding for a register beyond those that the kernel declares.
fn undeclared(arch: Arch, effects: &Effects, declared: Registers) -> Option<(&'static str, String)> {
    let accumulates = |used: &Use| arch.facts().vgprs.accumulation && used.first >= ACC as u16;
    let beyond = |used: &&Use| {
        let end = used.first + used.count;
        match used.file {
            File::Vgpr if accumulates(used) => end - ACC as u16 > declared.accumulation,
            File::Vgpr => end > declared.vgprs,
            File::Sgpr => used.first < Registers::ALL.sgprs && end > declared.sgprs,
            File::Scc => false,
        }
    };
    let used = effects.reads.iter().chain(&effects.writes).filter(|u| u.role != Role::State).find(beyond)?;
    let name = register_name(arch, used.file, used.first, used.count);
    let (count, kind, directive) = match used.file {
        File::Vgpr if accumulates(used) => {
            (declared.accumulation, "accumulation VGPRs", "next_free_vgpr beyond .amdhsa_accum_offset")
        }
        File::Vgpr if arch.facts().descriptor.accum_offset => {
            (declared.vgprs, "VGPRs", "next_free_vgpr and .amdhsa_accum_offset")
        }
        File::Vgpr => (declared.vgprs, "VGPRs", "next_free_vgpr"),
        _ => (declared.sgprs, "SGPRs", "next_free_sgpr"),
    };
    let message =
        format!("{name} is beyond the {count} {kind} that the kernel declares (.amdhsa_{directive})");
    Some(("undeclared register", message))
}

/// Returns a finding for an instruction that is illegal or ill-formed on its own.
fn ill_formed(inst: &Inst, arch: Arch, wave_size: u32) -> Option<(&'static str, String)> {
    if arch.machine().is_some() {
        return None;
    }
    // A kernel in the text format finds its arguments' addresses in s[3:4].
    let options = Options { odd_pairs: OddPairs::Bases, ..Options::new(arch).wave(wave_size) };
    let illegal = legal::check_decoded(inst, &options).err();
    illegal.or_else(|| legal::ignored_offset(inst, &options)).map(|e| (e.kind, e.message))
}

/// Returns a finding for an instruction that saves and changes EXEC in the 32-bit form in wave64.
fn partial_exec_save(effects: &Effects, wave_size: u32) -> Option<(&'static str, String)> {
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
    fn encodings_that_assemblers_reject_are_reported() {
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
            assert_eq!(ill_formed(&inst, Arch::Rdna3, 32).map(|w| w.0), kind, "{text}");
        }
        let dual = "v_dual_add_f32 v0, v4, v1 :: v_dual_mul_f32 v1, v5, v2";
        let inst = asm::parse(dual, &options, &NoSymbols).unwrap().inst;
        assert_eq!(ill_formed(&inst, Arch::Rdna3, 32), None);
        assert_eq!(ill_formed(&inst, Arch::Rdna3, 64).map(|w| w.0), Some("dual issue in wave64"));
    }
}
