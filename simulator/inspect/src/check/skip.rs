//! The skip cache: straight-line regions that need no check run as fast as in an unchecked run.
//!
//! An instruction is *simple* if it only computes: it accesses no memory and calls no builtin except hints. A
//! branch ends its region. An instruction is *proven* for a wave if it reads no undefined register
//! ([`super::init`]). Consecutive simple and proven instructions form a region. A wave skips the checks of a
//! region if it is proven for all active lanes and no outstanding operation writes one of its registers
//! ([`super::waits`]).

use super::by_instruction::ByInstruction;
use super::init;
use super::waits::{self, Counter, Counters, Registers, Summary};
use isa_spec::pcode::builtins::Control;
use std::sync::Arc;
use wavesim_engine::observe::{Done, Step};
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::exec::machine_ops::does_nothing;
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::wave::EXEC_LO;

/// Maximum length of a region: a long straight-line program would otherwise have many overlapping ones.
const MAX_REGION_LEN: usize = 128;

/// The classification of an instruction, made when it first runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepKind {
    /// It has not run yet.
    Unclassified,
    /// It does more than compute and is always observed.
    Observed,
    Simple,
    /// Simple, and the last of its region: it changes EXEC or jumps, or a gap follows.
    RegionEnd,
    /// A plain load or store, which is checked within its region.
    Access,
    /// A wait with constant operands. At the start of a region, it is applied to the scoreboard without being
    /// executed. Later in a region, where it waits for everything loaded there, the checks observe it like an
    /// access.
    Wait,
}

/// The counters and limits of a wait.
type Waits = Box<[(Counter, u32)]>;

/// Consecutive simple and proven instructions.
struct Region {
    /// Lanes for which the instructions are proven.
    lanes: u64,
    prefix: Arc<Prefix>,
}

/// The leading instructions of a region.
#[derive(Clone)]
struct Prefix {
    /// Number of instructions.
    len: usize,
    /// Mask of the loads, stores and waits among the first instructions.
    accesses: u64,
    registers: Registers,
    summary: Summary,
    /// The instructions before the last wait, to be used if an outstanding operation conflicts with the rest.
    shorter: Option<Arc<Prefix>>,
}

/// The part of a region that does not depend on the wave.
struct Shared {
    prefix: Arc<Prefix>,
    block: init::Block,
}

/// Proves instructions for a wave.
pub struct Prover<'p> {
    /// The definedness state; if absent, no check needs it and every instruction is proven.
    pub init: Option<&'p mut init::Shadow>,
    /// The wave.
    pub wave: &'p wavesim_machine::state::Wave,
}

impl Prover<'_> {
    /// Returns the lanes for which an instruction is proven. Must be called for instructions in program
    /// order.
    fn prove(&mut self, index: usize) -> Option<u64> {
        match &mut self.init {
            Some(init) => init.prove(self.wave, index),
            None => Some(u64::MAX),
        }
    }

    fn prove_region(&mut self, from: usize, shared: &Shared) -> Option<u64> {
        self.init.as_mut()?.prove_block(self.wave, from, shared.prefix.len, &shared.block)
    }
}

/// The regions of a wave.
struct Wave {
    /// The number of the region that starts at an instruction.
    starts: ByInstruction<u32>,
    list: Vec<Region>,
}

impl Wave {
    fn new(count: usize) -> Wave {
        Wave { starts: ByInstruction::new(count), list: Vec::new() }
    }

    fn clear(&mut self) {
        self.starts.clear();
        self.list.clear();
    }
}

/// The regions of the waves of a workgroup.
#[derive(Default)]
pub struct SkipGroup(Vec<Wave>);

/// The regions of all waves of the running workgroup.
pub struct SkipCache {
    kinds: Vec<StepKind>,
    /// By instruction: the operands of pure waits.
    waits: Vec<Waits>,
    waves: Vec<Wave>,
    /// By instruction: the wave-independent part of the region that starts there.
    shared: Vec<Option<Box<Shared>>>,
}

impl SkipCache {
    /// Creates the cache. `observed` tells which instructions a check must observe at each execution; `plain`
    /// selects those among them that only load or store.
    pub fn new(
        program: &Program,
        effects: &[Effects],
        observed: impl Fn(usize) -> bool,
        plain: impl Fn(usize) -> bool,
    ) -> SkipCache {
        let candidate = |at: usize| {
            let end = program.pcs[at] + program.insts[at].size as u64;
            if plain(at)
                && program.replaced_semantics(program.pcs[at]).is_none()
                && program.pcs.get(at + 1) == Some(&end)
            {
                return StepKind::Access;
            }
            let computes = matches!(
                effects[at].class,
                Class::Valu | Class::Matrix | Class::Salu | Class::Control | Class::Wait | Class::Branch
            );
            if computes && !observed(at) && program.replaced_semantics(program.pcs[at]).is_none() {
                StepKind::Unclassified
            } else {
                StepKind::Observed
            }
        };
        let count = program.insts.len();
        let waits = std::iter::repeat_with(Box::default).take(count).collect();
        SkipCache {
            kinds: (0..count).map(candidate).collect(),
            waits,
            waves: Vec::new(),
            shared: (0..count).map(|_| None).collect(),
        }
    }

    /// Starts a workgroup of `waves` waves, for which nothing is proven.
    pub fn start(&mut self, waves: usize) {
        self.waves.iter_mut().for_each(Wave::clear);
        self.waves.resize_with(waves, || Wave::new(self.kinds.len()));
    }

    /// Swaps the state with that of another workgroup.
    pub fn swap(&mut self, group: &mut SkipGroup) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    /// Drops the regions of a wave, since one of its registers has become undefined.
    pub fn invalidate(&mut self, wave: u32) {
        self.waves[wave as usize].clear();
    }

    /// Returns the counters and limits of an instruction that only waits.
    #[inline]
    pub fn waits(&self, index: usize) -> Option<&[(Counter, u32)]> {
        (self.kinds[index] == StepKind::Wait).then(|| &*self.waits[index])
    }

    /// Returns the number of instructions from this one on that need no check except for their accesses, and
    /// the mask of those that are accesses.
    #[inline]
    pub fn skippable(
        &mut self,
        step: &Step<'_>,
        scoreboard: &waits::Scoreboard,
        mut prover: Prover<'_>,
    ) -> (usize, u64) {
        let (id, exec) = (step.wave.id, step.wave.exec());
        if matches!(self.kinds[step.index], StepKind::Observed | StepKind::Unclassified) {
            return (0, 0);
        }
        let wave = &mut self.waves[id as usize];
        let found = match wave.starts.get(step.index).map(|region| region as usize) {
            Some(region) if exec & !wave.list[region].lanes == 0 => &wave.list[region],
            // For the first time, or with lanes for which the region is not proven.
            known => {
                let shared = &mut self.shared[step.index];
                let instructions = (&self.kinds[..], &self.waits[..]);
                let Some(new) = build_region(instructions, step.index, scoreboard, &mut prover, shared)
                else {
                    return (0, 0);
                };
                let at = known.unwrap_or(wave.list.len());
                match wave.list.get_mut(at) {
                    Some(region) => *region = new,
                    None => wave.list.push(new),
                }
                wave.starts.set(step.index, Some(at as u32));
                &wave.list[at]
            }
        };
        let mut next = Some(&*found.prefix).filter(|_| exec & !found.lanes == 0);
        while let Some(prefix) = next {
            if scoreboard.is_free_of_writes_to(id, prefix.summary, &prefix.registers) {
                return (prefix.len, prefix.accesses);
            }
            next = prefix.shorter.as_deref();
        }
        (0, 0)
    }

    /// Classifies an instruction after its first execution; `effects` are its effects.
    #[inline]
    pub fn after(&mut self, step: &Step<'_>, done: &Done<'_>, effects: &Effects) {
        if self.kinds[step.index] == StepKind::Unclassified {
            let kind = classify(step, done, effects);
            if kind == StepKind::Wait {
                let waits = done.calls.iter().filter_map(|(bi, n)| Some((Counter::of(*bi)?, *n)));
                let waits = waits.filter(|(_, n)| (*n as usize) < waits::MAX_OUTSTANDING - 1);
                self.waits[step.index] = waits.collect();
            }
            self.kinds[step.index] = kind;
        }
    }
}

#[cold]
fn classify(step: &Step<'_>, done: &Done<'_>, effects: &Effects) -> StepKind {
    let hints = done.calls.iter().all(|(bi, _)| does_nothing(*bi) && *bi != Control::InvalidateCaches);
    let jumps = effects.class == Class::Branch;
    if !hints || !done.accesses.is_empty() || done.event.is_some() || done.jumped && !jumps {
        return StepKind::Observed;
    }
    let program = step.program;
    let end = step.pc + program.insts[step.index].size as u64;
    let exec = EXEC_LO as u16..EXEC_LO as u16 + 2;
    let narrows = effects.writes.iter().any(|w| {
        w.file == File::Sgpr && (w.relative.is_some() || w.first < exec.end && exec.start < w.first + w.count)
    });
    if done.calls.iter().any(|(bi, _)| Counter::of(*bi).is_some()) {
        // The operands of the wait are immediates, not register values.
        let same = effects.reads.is_empty()
            && effects.writes.is_empty()
            && program.pcs.get(step.index + 1) == Some(&end);
        if same { StepKind::Wait } else { StepKind::Observed }
    } else if narrows || jumps || program.pcs.get(step.index + 1) != Some(&end) {
        StepKind::RegionEnd
    } else {
        StepKind::Simple
    }
}

/// Builds the region that starts at an instruction, if the instruction is simple and proven.
#[cold]
fn build_region(
    (kinds, waits): (&[StepKind], &[Waits]),
    from: usize,
    scoreboard: &waits::Scoreboard,
    prover: &mut Prover<'_>,
    shared: &mut Option<Box<Shared>>,
) -> Option<Region> {
    if let Some(shared) = shared
        && let Some(lanes) = prover.prove_region(from, shared)
    {
        return Some(Region { lanes, prefix: shared.prefix.clone() });
    }
    let mut lanes = u64::MAX;
    let mut prefix = Prefix {
        len: 0,
        accesses: 0,
        registers: Registers::default(),
        summary: Summary::default(),
        shorter: None,
    };
    // Results of the region's loads must not be used before a wait for them.
    let mut loaded: Option<Registers> = None;
    let mut issued = Counters::default();
    // Whether the region is the same for all waves and complete.
    let mut fixed = true;
    for at in (from..kinds.len()).take(MAX_REGION_LEN) {
        let access = kinds[at] == StepKind::Access;
        let wait = kinds[at] == StepKind::Wait && at > from;
        if !matches!(kinds[at], StepKind::Simple | StepKind::RegionEnd | StepKind::Wait | StepKind::Access)
            || wait && (issued.is_empty() || !Counters::drained_by(&waits[at]).is_superset(issued))
            || (access || wait) && prefix.len >= u64::BITS as usize
            || loaded.as_ref().is_some_and(|loaded| loaded.intersects(scoreboard.touched(at)))
        {
            fixed &= kinds[at] != StepKind::Unclassified;
            break;
        }
        let Some(proven) = prover.prove(at) else {
            fixed = false;
            break;
        };
        if wait {
            prefix.summary = prefix.registers.summary();
            prefix.shorter = Some(Arc::new(prefix.clone()));
            (loaded, issued) = (None, Counters::default());
        }
        let written = scoreboard.written(at);
        if access && *written != Registers::default() {
            issued = issued.union(scoreboard.issued(at));
            loaded.get_or_insert_default().join(written);
        }
        if access || wait {
            prefix.accesses |= 1 << prefix.len;
        }
        prefix.len += 1;
        lanes &= proven;
        prefix.registers.join(scoreboard.touched(at));
        if kinds[at] == StepKind::RegionEnd {
            break;
        }
    }
    prefix.summary = prefix.registers.summary();
    let prefix = Arc::new(prefix);
    if fixed && shared.is_none() {
        let block = prover.init.as_ref().and_then(|init| init.block(from, prefix.len));
        *shared = block.map(|block| Box::new(Shared { prefix: prefix.clone(), block }));
    }
    (prefix.len > 0).then_some(Region { lanes, prefix })
}
