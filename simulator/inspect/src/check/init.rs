//! `init`: reads of registers that nothing has written.
//!
//! VGPRs are tracked by lane. Plain moves, stores to scratch and loads are copies, not uses: a function saves registers of
//! its caller that may never have been written, and wide loads fetch more than is wanted. What is copied from an unwritten place is
//! unwritten again, and only its use is reported, with the copy as the second place. In the same way compilers leave the upper half
//! of a 64-bit addend open where only the lower half of the sum matters.

use super::Check;
use super::mem;
use super::report::{Finding, Report, Site};
use isa_spec::facts::Flow;
use isa_spec::tables::Role;
use std::collections::HashMap;
use wavesim_engine::observe::{Done, Step};
use wavesim_engine::sched::dispatch::Layout;
use wavesim_loader::prepared::Shape;
use wavesim_machine::exec::effects::{Class, Effects, File, Lanes, Use, register_name};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::state::wave::{EXEC_LO, TTMP};
use wavesim_machine::state::{VGPRS, Wave};

struct Registers {
    /// Lanes written, by VGPR.
    vgprs: Vec<u64>,
    sgprs: u128,
    scc: bool,
    /// The load or move that an unwritten register has its content from.
    from: HashMap<(File, u16), (u64, Origin)>,
    /// Of the instruction at hand: numbers and lanes of the registers it writes.
    writing: Vec<(u16, u64)>,
    /// Of the instruction at hand: registers that it leaves unwritten, with the lanes.
    copied: Vec<(File, u16, u64)>,
    /// By instruction, memoised: lanes with which it can run again without reading or writing anything unwritten. Registers only become
    /// written; where one becomes unwritten, all of this is invalid.
    proven: Vec<Option<u64>>,
    /// How often a register became unwritten.
    unwrites: u64,
}

/// How a register got content that nothing wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Load,
    Copy,
}

/// Which registers of every wave of the workgroup have been written.
pub struct Shadow {
    waves: Vec<Registers>,
    sgprs: u128,
    vgprs: usize,
    /// Instructions of the program.
    instructions: usize,
}

impl Shadow {
    pub fn new(program: &Program, shape: &Shape) -> Shadow {
        let (sgprs, vgprs) = initial(shape);
        Shadow { waves: Vec::new(), sgprs, vgprs, instructions: program.insts.len() }
    }

    pub fn start(&mut self, waves: usize) {
        self.waves.clear();
        for _ in 0..waves {
            let mut vgprs = vec![0; VGPRS];
            vgprs[..self.vgprs].fill(u64::MAX);
            let (sgprs, scc) = (self.sgprs, false);
            self.waves.push(Registers {
                vgprs,
                sgprs,
                scc,
                from: HashMap::new(),
                writing: Vec::new(),
                copied: Vec::new(),
                proven: vec![None; self.instructions],
                unwrites: 0,
            });
        }
    }

    pub fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let registers = &mut self.waves[step.wave.id as usize];
        if registers.proven[step.index].is_some_and(|lanes| step.wave.exec() & !lanes == 0) {
            return;
        }
        registers.proven[step.index] = None;
        registers.copied.clear();
        for used in &effects.reads {
            if is_copy(effects, used) {
                continue;
            }
            let Some(missing) = registers.missing(used, step.wave) else { continue };
            if !registers.pass_on(used, missing.0, effects, step.wave) {
                registers.report_read(step, used, missing, report);
            }
        }
        registers.writing.clear();
        let wave = step.wave;
        registers.writing.extend(effects.writes.iter().map(|w| (w.start(wave), w.lane_mask(wave))));
    }

    /// Lanes with which an instruction of a wave can run again without reading or writing anything unwritten.
    pub fn proven(&self, wave: u32, index: usize) -> Option<u64> {
        self.waves[wave as usize].proven[index]
    }

    /// Whether a register became unwritten: nothing is proven then.
    pub fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        memory: &mut mem::Shadow,
    ) -> bool {
        let registers = &mut self.waves[step.wave.id as usize];
        let before = registers.unwrites;
        if registers.proven[step.index].is_none() {
            registers.written(step, effects);
        }
        if done.accesses.is_empty() || effects.atomic {
            return registers.unwrites != before;
        }
        let stores_registers = effects.class == Class::Scratch && !effects.returns;
        if stores_registers || effects.returns && memory.any_unwritten() {
            registers.copies(step, done.accesses, effects, memory);
        }
        registers.unwrites != before
    }
}

/// Whether a source is only moved to memory that keeps track of what was written.
fn is_copy(effects: &Effects, used: &Use) -> bool {
    effects.class == Class::Scratch && !effects.atomic && matches!(used.role, Role::Data | Role::Data1)
}

impl Registers {
    /// The instruction has run: its results are written, but for what it only passed on.
    fn written(&mut self, step: &Step<'_>, effects: &Effects) {
        for (used, &(start, lanes)) in effects.writes.iter().zip(&self.writing) {
            let registers_of = start..start + used.count;
            match used.file {
                File::Scc => self.scc = true,
                File::Sgpr => {
                    registers_of.clone().filter(|r| *r < 128).for_each(|r| self.sgprs |= 1 << r);
                }
                File::Vgpr => {
                    let end = registers_of.end.min(VGPRS as u16);
                    (start..end).for_each(|r| self.vgprs[r as usize] |= lanes);
                }
            }
            if !self.from.is_empty() {
                registers_of.for_each(|r| {
                    self.from.remove(&(used.file, r));
                });
            }
        }
        if self.copied.is_empty() {
            self.proven[step.index] = self.proves(effects, step.wave);
            return;
        }
        for (file, register, lanes) in std::mem::take(&mut self.copied) {
            self.unwrite(file, register, lanes, step.pc, Origin::Copy);
        }
    }

    /// Lanes with which the instruction, which has just run, would find everything written and write nothing that was not.
    fn proves(&self, effects: &Effects, wave: &Wave) -> Option<u64> {
        let mut lanes = u64::MAX;
        let reads = effects.reads.iter().filter(|used| !is_copy(effects, used));
        for used in reads.chain(&effects.writes) {
            if used.relative.is_some() {
                return None;
            }
            if used.file != File::Vgpr || used.lanes == Lanes::Data {
                continue;
            }
            let last = (used.first + used.count).min(VGPRS as u16);
            let all = (used.first..last).fold(u64::MAX, |all, r| all & self.vgprs[r as usize]);
            match used.lanes {
                Lanes::Active => lanes &= all,
                _ if all & wave.full_mask() == wave.full_mask() => {}
                _ => return None,
            }
        }
        Some(lanes)
    }

    /// First register of a use that was not written where it is needed, and a lane of it.
    fn missing(&self, used: &Use, wave: &Wave) -> Option<(u16, Option<u32>)> {
        let start = used.start(wave);
        match used.file {
            File::Scc => (!self.scc).then_some((0, None)),
            _ if start == Use::NOWHERE => None,
            File::Sgpr => {
                let all = if used.count == 1 { 1 } else { (1u128 << used.count) - 1 };
                let absent = !self.sgprs >> (start & 127) & all;
                (absent != 0).then(|| (start + absent.trailing_zeros() as u16, None))
            }
            File::Vgpr => {
                let lanes = used.lane_mask(wave);
                let end = (start + used.count).min(VGPRS as u16);
                (start..end).find_map(|r| {
                    let absent = lanes & !self.vgprs[r as usize];
                    (absent != 0).then(|| (r, Some(absent.trailing_zeros())))
                })
            }
        }
    }

    /// An unwritten source that is only passed on: what receives it stays unwritten. False if it is used.
    fn pass_on(&mut self, used: &Use, missing: u16, effects: &Effects, wave: &Wave) -> bool {
        let start = used.start(wave);
        let first = match used.flow {
            Some(Flow::Copy) => 0,
            Some(Flow::Upwards) if missing > start => 1,
            _ => return false,
        };
        let result = |w: &&Use| w.role == Role::D0 && w.second == used.second;
        let Some(dest) = effects.writes.iter().find(result) else { return false };
        // A scalar that is unwritten is so in all lanes.
        for k in first..used.count.min(dest.count) {
            let lanes = match used.file {
                File::Vgpr => used.lane_mask(wave) & !self.vgprs[(start + k) as usize & 255],
                File::Sgpr if self.sgprs >> ((start + k) & 127) & 1 == 0 => u64::MAX,
                File::Sgpr | File::Scc => 0,
            };
            if lanes != 0 {
                self.copied.push((dest.file, dest.first + k, lanes & dest.lane_mask(wave)));
            }
        }
        true
    }

    fn unwrite(&mut self, file: File, register: u16, lanes: u64, pc: u64, origin: Origin) {
        match file {
            File::Vgpr => self.vgprs[register as usize & 255] &= !lanes,
            File::Sgpr => self.sgprs &= !(1 << (register & 127)),
            File::Scc => return,
        }
        self.proven.fill(None);
        self.unwrites += 1;
        self.from.insert((file, register), (pc, origin));
    }

    fn report_read(
        &mut self,
        step: &Step<'_>,
        used: &Use,
        (register, lane): (u16, Option<u32>),
        report: &mut Report,
    ) {
        let from = self.from.get(&(used.file, register)).copied();
        // Once for each place; what follows from it is not news.
        match used.file {
            File::Scc => self.scc = true,
            File::Sgpr => self.sgprs |= 1 << (register & 127),
            File::Vgpr => self.vgprs[register as usize] = u64::MAX,
        }
        let (check, kind) = match from {
            Some((_, Origin::Load)) => (Check::Mem, "unwritten bytes"),
            _ => (Check::Init, "unwritten register"),
        };
        if !report.is_new(check, kind, step.pc, from.map(|f| f.0)) {
            return;
        }
        let name = register_name(step.program.arch, used.file, register, 1);
        let site = Site::new(step, lane);
        let whose = lane.map_or(String::new(), |l| format!(" in lane {l}"));
        let copied = |pc| Site::at(step, pc, step.wave.workgroup, step.wave.id);
        report.add(match from {
            Some((pc, Origin::Load)) => {
                let message = format!("{name} is used{whose}, but the bytes it was loaded from were never written");
                Finding::new(check, kind, message, site).other("loaded by", copied(pc))
            }
            Some((pc, Origin::Copy)) => {
                let message = format!("{name} is used{whose}, but what was copied to it was never written");
                Finding::new(check, kind, message, site).other("copied by", copied(pc))
            }
            None => {
                let message = format!("{name} is read{whose}, but nothing has written it");
                let finding = Finding::new(check, kind, message, site);
                match lane {
                    Some(_) => finding.hint(
                        "a register keeps its old content in lanes that EXEC had switched off when it was written",
                    ),
                    None => finding,
                }
            }
        });
    }

    /// Loads of bytes that nothing wrote, and scratch stores of registers that nothing wrote.
    fn copies(&mut self, step: &Step<'_>, accesses: &[Access], effects: &Effects, memory: &mut mem::Shadow) {
        let wave = step.wave.id as usize;
        if effects.returns {
            let Some(dest) = effects.writes.iter().find(|w| w.file == File::Vgpr) else { return };
            // The bytes of a lane's accesses lie one behind the other in its registers.
            let mut loaded = [0u64; 64];
            for a in accesses.iter().filter(|a| !a.write).flat_map(|a| a.each()) {
                let Some(lane) = a.lane else { continue };
                let offset = loaded[lane as usize & 63];
                loaded[lane as usize & 63] += a.size_bytes as u64;
                let Some(byte) = memory.unwritten(&a) else { continue };
                let register = dest.first + ((offset + byte) / 4) as u16;
                if (register as usize) < VGPRS {
                    self.unwrite(File::Vgpr, register, 1 << lane, step.pc, Origin::Load);
                }
            }
            return;
        }
        let Some(data) = effects.reads.iter().find(|r| r.role == Role::Data && r.file == File::Vgpr) else {
            return;
        };
        for a in accesses.iter().filter(|a| a.write && a.place == Place::Scratch).flat_map(|a| a.each()) {
            let Some(lane) = a.lane else { continue };
            for k in 0..data.count.min((a.size_bytes as u16).div_ceil(4)) {
                let register = (data.first + k) as usize;
                if register < VGPRS && self.vgprs[register] >> lane & 1 == 0 {
                    let dword =
                        Access { address: a.address + 4 * k as u64, size_bytes: a.size_bytes.min(4), ..a };
                    memory.forget(wave, &dword);
                }
            }
        }
    }
}

/// SGPRs written at the start, as a mask by operand code, and the number of VGPRs from v0 on.
fn initial(shape: &Shape) -> (u128, usize) {
    let mut sgprs = 0b11u128 << EXEC_LO;
    // Trap temporaries have what the hardware put there.
    for code in TTMP {
        sgprs |= 1 << code;
    }
    for (first, values) in &shape.init.sgprs {
        for reg in *first as usize..*first as usize + values.len() {
            sgprs |= 1 << (reg & 127);
        }
    }
    match &shape.init.layout {
        Layout::Text { group_ids, item_ids } => {
            (0..3).filter(|d| group_ids[*d]).for_each(|d| sgprs |= 1 << d);
            (sgprs, item_ids.iter().rposition(|on| *on).map_or(0, |d| d + 1))
        }
        Layout::Hsa { first_system_sgpr, group_ids, .. } => {
            let count = group_ids.iter().filter(|on| **on).count();
            (0..count).for_each(|d| sgprs |= 1 << ((*first_system_sgpr as usize + d) & 127));
            (sgprs, 1)
        }
        // Such machines clear their registers.
        Layout::Own(_) => (u128::MAX, VGPRS),
    }
}
