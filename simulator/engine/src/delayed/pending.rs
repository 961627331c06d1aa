//! An operation between its issue and its return: the registers that it reads, and its results.

use super::{Operation, Path};
use crate::caches::{self, Placement, Policy, SharedCaches};
use crate::execute::execute;
use crate::handlers::HANDLERS;
use crate::observe::NO_MEMORY;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::effects::{File, Lanes, Use};
use wavesim_machine::exec::issue::{Counters, Order, Outstanding};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::exec::watch::{Access, Logs, Place, Watch};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::host::Avx2;
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO, M0, SGPRS};
use wavesim_machine::state::{LaneVec, Wave, Workgroup};

/// What an operation needs to be performed.
pub struct Machine<'m> {
    pub program: &'m Program,
    pub memory: &'m Memory,
    pub lds: &'m mut [u8],
    /// Scratch of the operation's wave.
    pub scratch: &'m mut [u8],
    pub scratch_stride: u32,
    pub workgroup: &'m mut Workgroup,
    /// Instructions that the dispatch has executed.
    pub instructions: u64,
    pub cancel: Option<&'m AtomicBool>,
    /// Receives the accesses of operations that are watched.
    pub logs: &'m mut Logs,
    /// Every operation is watched.
    pub observed: bool,
    /// The run continues after accesses outside all memory.
    pub keep_going: bool,
    /// The caches of the operation's wave, unless caches are always coherent.
    pub caches: Option<(&'m SharedCaches, Placement)>,
}

/// An operation that has failed.
#[derive(Debug)]
pub struct Failure {
    /// The wave that issued it, and the PC of the instruction.
    pub wave: usize,
    pub pc: u64,
    pub event: Event,
}

/// The registers that an operation writes.
#[derive(Clone)]
struct Written {
    file: File,
    registers: Range<u16>,
    /// The bits of each register.
    bits: u32,
    lanes: u64,
    /// Whether the operation writes all of these. If not, the registers that differ afterwards are those written.
    exact: bool,
}

/// An operation that has been issued. Its lists are reused by later operations.
#[derive(Clone)]
pub struct Pending {
    /// Index of the instruction.
    pub index: usize,
    /// Its number among the operations of its wave, from 0.
    pub number: u64,
    /// It was chosen to be delayed.
    pub late: bool,
    /// The numbers of earlier operations that must be performed before it, if somebody chooses when that is.
    pub after: SmallVec<[u64; 2]>,
    /// Counters that may still count it, and all of them.
    pub counters: Counters,
    pub issued: Counters,
    pub order: Order,
    pub(super) path: Path,
    pub(super) policy: Policy,
    /// The instruction count at which it is performed, and at which it returns.
    pub due: [u64; 2],
    pub performed: bool,
    pub returned: bool,
    /// At the time of issue: EXEC, M0, SCC and MODE, and the scalar registers that it reads.
    exec: [u32; 2],
    m0: u32,
    scc: u32,
    mode: u32,
    sgprs: Vec<(u16, u32)>,
    /// The VGPRs that it reads, and the contents of each half of each.
    registers: Vec<u16>,
    reads: Vec<LaneVec>,
    writes: SmallVec<[Written; 2]>,
    /// The halves of the VGPRs that it writes, in the order of `writes`: those that the handler finds, if the operation
    /// may leave some as they are, and those after it has been performed.
    before: Vec<LaneVec>,
    results: Vec<LaneVec>,
    scalars: Vec<u32>,
    /// The bytes that it accesses: place, first, end. Computed when first needed.
    bytes: Option<Vec<(Place, u64, u64)>>,
}

impl Outstanding for Box<Pending> {
    fn order(&self) -> Order {
        self.order
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }
}

/// Marks lanes that an operation has not written: a value that results hardly ever have.
const UNLIKELY: LaneVec = LaneVec([0xa5c3_96e1; 32]);

/// Returns the halves of a VGPR.
fn halves(wave: &Wave, register: u16) -> impl Iterator<Item = LaneVec> {
    (0..wave.halves()).map(move |half| *wave.lane_vec(half, register as usize))
}

/// Sets the halves of a VGPR to the next ones of a list.
fn set_halves<'v>(wave: &mut Wave, register: u16, vecs: &mut impl Iterator<Item = &'v LaneVec>) {
    for (half, vec) in (0..wave.halves()).zip(vecs) {
        wave.set_lane_vec(half, register as usize, *vec);
    }
}

impl Pending {
    /// Creates an operation for [`Pending::issue`].
    pub(super) fn new() -> Pending {
        Pending {
            index: 0,
            number: 0,
            late: false,
            after: SmallVec::new(),
            counters: Counters::default(),
            issued: Counters::default(),
            order: Order::Unordered,
            path: Path::Scalar,
            policy: Policy::default(),
            due: [0; 2],
            performed: false,
            returned: false,
            exec: [0; 2],
            m0: 0,
            scc: 0,
            mode: 0,
            sgprs: Vec::new(),
            registers: Vec::new(),
            reads: Vec::new(),
            writes: SmallVec::new(),
            before: Vec::new(),
            results: Vec::new(),
            scalars: Vec::new(),
            bytes: None,
        }
    }

    /// Issues an operation of a wave: captures what it reads.
    pub(super) fn issue(
        &mut self,
        operation: &Operation,
        index: usize,
        number: u64,
        wave: &Wave,
        due: [u64; 2],
    ) {
        self.exec = [EXEC_LO, EXEC_HI].map(|code| wave.sgprs[code]);
        (self.m0, self.scc, self.mode) = (wave.sgprs[M0], wave.scc, wave.mode);
        self.sgprs.clear();
        self.registers.clear();
        self.reads.clear();
        for used in &operation.reads {
            let registers = used.registers(wave, false);
            match used.file {
                File::Vgpr => {
                    for register in registers {
                        self.registers.push(register);
                        self.reads.extend(halves(wave, register));
                    }
                }
                File::Sgpr => {
                    let registers = registers.filter(|code| (*code as usize) < SGPRS);
                    self.sgprs.extend(registers.map(|code| (code, wave.sgprs[code as usize])));
                }
                File::Scc => {}
            }
        }
        self.before.clear();
        self.writes.clear();
        for used in &operation.writes {
            let written = written(used, wave);
            if used.file == File::Sgpr {
                // What it does not write remains.
                let registers = written.registers.clone().filter(|code| (*code as usize) < SGPRS);
                self.sgprs.extend(registers.map(|code| (code, wave.sgprs[code as usize])));
            }
            if used.file == File::Vgpr && !written.exact {
                for register in written.registers.clone() {
                    match self.registers.contains(&register) {
                        true => self.before.extend(halves(wave, register)),
                        // Another outstanding operation may still write it.
                        false => self.before.extend((0..wave.halves()).map(|_| UNLIKELY)),
                    }
                }
            }
            self.writes.push(written);
        }
        let issue = operation.issue;
        (self.index, self.number, self.due) = (index, number, due);
        (self.counters, self.issued, self.order) = (issue.counters, issue.counters, issue.order);
        (self.path, self.policy) = (operation.path, operation.policy);
        (self.late, self.performed, self.returned) = (false, false, false);
        self.after.clear();
        self.results.clear();
        self.scalars.clear();
        self.bytes = None;
    }

    /// Performs the operation: accesses memory, and keeps the results. Afterwards, the shadow wave has the registers of
    /// the time of issue, and the results.
    pub fn perform(
        &mut self,
        shadow: &mut Wave,
        wave: &Wave,
        machine: &mut Machine<'_>,
    ) -> Result<(), Event> {
        self.load_all(shadow, wave, machine.program);
        let cached = machine.caches.filter(|_| self.policy.global || self.policy.writes_back);
        run(self.index, shadow, machine, cached.is_some())?;
        if let Some((caches, placement)) = cached {
            self.use_caches(shadow, wave, machine, caches, &placement)?;
        }
        for written in &self.writes {
            let registers = written.registers.clone();
            match written.file {
                File::Vgpr => self.results.extend(registers.flat_map(|register| halves(shadow, register))),
                File::Sgpr => self.scalars.extend(registers.map(|code| shadow.sgpr(code as u32))),
                File::Scc => self.scalars.push(shadow.scc),
            }
        }
        self.performed = true;
        self.returned |= self.writes.is_empty();
        Ok(())
    }

    /// After the operation has been performed on memory: performs it again if it sees other values in caches.
    fn use_caches(
        &self,
        shadow: &mut Wave,
        wave: &Wave,
        machine: &mut Machine<'_>,
        caches: &SharedCaches,
        placement: &Placement,
    ) -> Result<(), Event> {
        if self.policy.writes_back {
            caches.write_back(placement);
            return Ok(());
        }
        let memory = machine.memory;
        let seen = caches.access(placement, self.policy, self.index, machine.logs, memory);
        if seen.is_empty() {
            return Ok(());
        }
        // What cannot be mapped is seen as it is in memory.
        let Ok(overlay) = caches::overlay(machine.logs, &seen, memory) else { return Ok(()) };
        self.load_all(shadow, wave, machine.program);
        run(
            self.index,
            shadow,
            &mut Machine {
                program: machine.program,
                memory: overlay.memory(),
                lds: &mut *machine.lds,
                scratch: &mut *machine.scratch,
                scratch_stride: machine.scratch_stride,
                workgroup: &mut *machine.workgroup,
                instructions: machine.instructions,
                cancel: machine.cancel,
                logs: &mut Logs::default(),
                observed: false,
                keep_going: false,
                caches: None,
            },
            false,
        )
    }

    /// Writes the results to the wave's registers.
    pub fn write_back(&mut self, wave: &mut Wave) {
        let (mut results, mut before, mut scalars) =
            (self.results.iter(), self.before.iter(), self.scalars.iter());
        for written in &self.writes {
            match written.file {
                File::Vgpr => {
                    for register in written.registers.clone() {
                        for half in 0..wave.halves() {
                            let Some(result) = results.next() else { break };
                            let before = if written.exact { None } else { before.next() };
                            merge(wave, (half, register), written, result, before);
                        }
                    }
                }
                File::Sgpr => {
                    for (code, value) in written.registers.clone().zip(&mut scalars) {
                        wave.set_sgpr(code as u32, *value);
                    }
                }
                File::Scc => wave.scc = scalars.next().copied().unwrap_or(wave.scc),
            }
        }
        self.returned = true;
    }

    /// Another instruction writes the other half of a register that the operation is going to write, and writes back this
    /// half as it was.
    pub fn lose_half(&mut self, used: &Use, wave: &Wave) {
        let registers = used.registers(wave, true);
        for written in &mut self.writes {
            let overlaps = written.registers.start < registers.end && registers.start < written.registers.end;
            if written.file == used.file && overlaps && written.bits & used.bits == 0 {
                written.lanes &= !used.lane_mask(wave);
            }
        }
    }

    /// Returns whether a later operation of the wave in LDS or scratch cannot take effect at once, because this one may
    /// access the same bytes, returns in the same order, or writes the same registers.
    pub(super) fn hinders(&self, later: &Operation, wave: &Wave) -> bool {
        let issue = &later.issue;
        let elsewhere = matches!(self.path, Path::Vector { lds: false } | Path::Scalar);
        !elsewhere
            || self.issued.intersects(issue.counters)
            || self.order.joins(issue.order)
            || later.writes.iter().any(|used| self.writes_any(used.file, &used.registers(wave, true)))
    }

    /// Returns whether this operation, issued before another one, also returns before it.
    pub fn returns_before(&self, later: &Pending) -> bool {
        self.order.joins(later.order) && self.issued.intersects(later.issued)
    }

    /// Returns whether the operation writes one of these registers.
    pub fn writes_any(&self, file: File, registers: &Range<u16>) -> bool {
        let overlaps = |own: &Range<u16>| own.start < registers.end && registers.start < own.end;
        self.writes.iter().any(|written| written.file == file && overlaps(&written.registers))
    }

    /// Puts the registers of the time of issue into the shadow wave, those that the operation writes among them.
    fn load_all(&self, shadow: &mut Wave, wave: &Wave, program: &Program) {
        self.load(shadow, wave, program);
        let mut before = self.before.iter();
        for written in self.writes.iter().filter(|written| written.file == File::Vgpr && !written.exact) {
            for register in written.registers.clone() {
                set_halves(shadow, register, &mut before);
            }
        }
    }

    /// Puts the registers of the time of issue into the shadow wave.
    fn load(&self, shadow: &mut Wave, wave: &Wave, program: &Program) {
        self.sgprs.iter().for_each(|(code, value)| shadow.sgprs[*code as usize] = *value);
        if self.exec != [EXEC_LO, EXEC_HI].map(|code| shadow.sgprs[code]) {
            [shadow.sgprs[EXEC_LO], shadow.sgprs[EXEC_HI]] = self.exec;
            shadow.rebuild_masks();
        }
        shadow.sgprs[M0] = self.m0;
        (shadow.scc, shadow.mode) = (self.scc, self.mode);
        shadow.pc = program.pcs[self.index];
        (shadow.id, shadow.workgroup, shadow.code_base) = (wave.id, wave.workgroup, wave.code_base);
        shadow.set_vgpr_count(wave.vgpr_count());
        shadow.set_accumulation(program.arch.facts().vgprs.accumulation);
        let mut reads = self.reads.iter();
        self.registers.iter().for_each(|register| set_halves(shadow, *register, &mut reads));
    }

    /// Returns whether an earlier operation of the same wave must be performed before this one.
    pub fn follows(
        &mut self,
        earlier: &mut Pending,
        shadow: &mut Wave,
        wave: &Wave,
        machine: &Machine<'_>,
    ) -> bool {
        match (self.path, earlier.path) {
            // The cache keeps the order of stores and write-backs.
            (_, Path::Vector { .. } | Path::Copy) if self.policy.writes_back => return true,
            (Path::Scalar, _) | (_, Path::Scalar) => return false,
            (Path::Lds, Path::Lds) | (Path::Scratch, Path::Scratch) => return true,
            (Path::Lds, Path::Vector { lds: false } | Path::Scratch | Path::Copy)
            | (Path::Vector { lds: false } | Path::Scratch | Path::Copy, Path::Lds) => return false,
            _ => {}
        }
        let copies = (self.path == Path::Copy) != (earlier.path == Path::Copy);
        let theirs = earlier.bytes(shadow, wave, machine).to_vec();
        self.bytes(shadow, wave, machine).iter().any(|(place, first, end)| {
            let shares = |other: &(Place, u64, u64)| match *place {
                Place::Nowhere => false,
                Place::Lds if copies => false,
                // A store beyond scratch ends the dry run before all lanes are known.
                Place::Scratch => other.0 == Place::Scratch,
                place => other.0 == place && other.1 < *end && *first < other.2,
            };
            theirs.iter().any(shares)
        })
    }

    /// Returns the bytes that the operation accesses. To find out, it runs on memory in which every access is out of
    /// bounds.
    fn bytes(&mut self, shadow: &mut Wave, wave: &Wave, machine: &Machine<'_>) -> &[(Place, u64, u64)] {
        if self.bytes.is_none() {
            self.load(shadow, wave, machine.program);
            let mut logs = Logs::default();
            let mut workgroup = Workgroup::new(1);
            let mut nowhere = Machine {
                program: machine.program,
                memory: &NO_MEMORY,
                lds: &mut [],
                scratch: &mut [],
                scratch_stride: 0,
                workgroup: &mut workgroup,
                instructions: machine.instructions,
                cancel: machine.cancel,
                logs: &mut logs,
                observed: true,
                keep_going: true,
                caches: None,
            };
            // A fault, such as that of a misaligned address, comes again when the operation is performed.
            let _ = run(self.index, shadow, &mut nowhere, true);
            logs.log_loads();
            let bytes = |access: &Access| {
                let first = access.address;
                (access.place, first, first.saturating_add(access.len_bytes()))
            };
            self.bytes = Some(logs.accesses.iter().map(bytes).collect());
        }
        self.bytes.as_deref().unwrap_or_default()
    }
}

fn written(used: &Use, wave: &Wave) -> Written {
    let exact = used.always && matches!(used.lanes, Lanes::Active | Lanes::All) || used.file != File::Vgpr;
    Written {
        file: used.file,
        registers: used.registers(wave, true),
        bits: used.bits,
        lanes: used.lane_mask(wave),
        exact,
    }
}

/// Writes the lanes and bits of a result to a half of a register; where the operation may leave some as they are, those
/// that it has changed.
fn merge(
    wave: &mut Wave,
    (half, register): (usize, u16),
    written: &Written,
    LaneVec(result): &LaneVec,
    before: Option<&LaneVec>,
) {
    let lanes = (written.lanes >> (32 * half)) as u32;
    if lanes == u32::MAX && written.bits == u32::MAX && before.is_none() {
        return wave.set_lane_vec(half, register as usize, LaneVec(*result));
    }
    let mut vec = *wave.lane_vec(half, register as usize);
    for (lane, (now, new)) in vec.0.iter_mut().zip(result).enumerate() {
        let changed = before.is_none_or(|before| before.0[lane] != *new);
        if lanes >> lane & 1 == 1 && changed {
            *now = *now & !written.bits | new & written.bits;
        }
    }
    wave.set_lane_vec(half, register as usize, vec);
}

/// Runs an instruction on the shadow wave; logs its accesses if it is watched.
fn run(index: usize, shadow: &mut Wave, machine: &mut Machine<'_>, watched: bool) -> Result<(), Event> {
    let program = machine.program;
    let mut nothing = ([0u8; 0], [0u8; 0]);
    let mut watch;
    let (memory, lds, scratch, scratch_stride, watched) = match watched || machine.observed {
        false => (machine.memory, &mut *machine.lds, &mut *machine.scratch, machine.scratch_stride, None),
        true => {
            machine.logs.clear();
            watch = Watch {
                memory: machine.memory,
                lds: &mut *machine.lds,
                scratch: &mut *machine.scratch,
                scratch_stride: machine.scratch_stride,
                logs: &mut *machine.logs,
                quiet: false,
                keep_going: machine.keep_going,
                keeps_loads: false,
            };
            (&*NO_MEMORY, &mut nothing.0[..], &mut nothing.1[..], 0, Some(&mut watch))
        }
    };
    let mut context = Context {
        memory,
        lds,
        scratch,
        scratch_stride,
        workgroup: &mut *machine.workgroup,
        instructions: machine.instructions,
        cancel: machine.cancel,
    };
    let pools = program.lowered().pools();
    let mut cx = Cx::new(&HANDLERS, Avx2::detect(), program.arch, shadow, &mut context, pools, 0);
    cx.watch = watched;
    // An instruction that has been issued has an operation.
    let Some(op) = program.any_op_at(program.pcs[index]) else { return Ok(()) };
    cx.op = op;
    match execute(&mut cx, program, index, None).1 {
        None => Ok(()),
        Some(event) => Err(event),
    }
}
