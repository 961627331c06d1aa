//! The skip cache: straight-line regions that need no check, run as fast as without checks.
//!
//! An instruction is *simple* if, when it ran, it only computed: no access, no call but a hint. A branch is the last of its region. It is *proven* in a
//! wave if it reads nothing unwritten ([`super::init`]). Consecutive simple and proven instructions are a region. A wave skips the checks of
//! a region if each active lane is proven, and if no outstanding operation writes one of its registers ([`super::waits`]).

use super::init;
use super::waits::{self, Counter, Counters, Registers, Summary};
use isa_spec::pcode::builtins::Control;
use wavesim_engine::observe::{Done, Step};
use wavesim_machine::exec::effects::{Class, Effects, File};
use wavesim_machine::exec::machine_ops::does_nothing;
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::wave::EXEC_LO;

/// Longer regions are split: a long straight-line program would have too many that overlap.
const LONGEST: usize = 128;

/// What an instruction did when it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has not run.
    Unseen,
    /// More than computing: it is always observed.
    Observed,
    Simple,
    /// Simple, and the last of its region: it changes EXEC or jumps, or a gap follows.
    Last,
    /// A plain load or store: the checks see it in its region.
    Access,
    /// It only waits, for the same each time. As the first of its region it is applied to the scoreboard without running; later, where it waits
    /// for all that was loaded in the region, the checks see it like an access.
    Wait,
}

/// What an instruction waits for.
type Waits = Box<[(Counter, u32)]>;

/// Consecutive simple and proven instructions.
struct Region {
    /// Lanes with which they are proven.
    lanes: u64,
    part: Part,
}

/// Instructions from the first of a region on.
#[derive(Clone)]
struct Part {
    /// How many.
    len: usize,
    /// Which of the first ones are loads, stores and waits.
    accesses: u64,
    registers: Registers,
    summary: Summary,
    /// Those before a wait: for where something else is outstanding that the rest needs.
    before: Option<Box<Part>>,
}

/// A region that is the same for all waves, but for what is proven.
struct Shared {
    part: Part,
    block: init::Block,
}

/// Proves instructions of a wave.
pub struct Prover<'p> {
    /// Without checks that need it, all is proven.
    pub init: Option<&'p mut init::Shadow>,
    /// The wave.
    pub wave: &'p wavesim_machine::state::Wave,
}

impl Prover<'_> {
    /// Lanes with which an instruction is proven. To be called for instructions in order.
    fn one(&mut self, at: usize) -> Option<u64> {
        match &mut self.init {
            Some(init) => init.prove(self.wave, at),
            None => Some(u64::MAX),
        }
    }

    fn all(&mut self, from: usize, shared: &Shared) -> Option<u64> {
        self.init.as_mut()?.prove_block(self.wave, from, shared.part.len, &shared.block)
    }
}

/// A wave's regions.
#[derive(Default)]
struct Wave {
    /// By instruction: number of the region that starts there, from 1; 0: none yet. Empty before the first.
    at: Vec<u32>,
    list: Vec<Region>,
}

impl Wave {
    fn clear(&mut self) {
        self.at.clear();
        self.list.clear();
    }
}

/// What is known of the waves of a workgroup.
#[derive(Default)]
pub struct Group(Vec<Wave>);

/// The regions of every wave of the workgroup.
pub struct SkipCache {
    kinds: Vec<Kind>,
    /// By instruction: what those that only wait wait for.
    waits: Vec<Waits>,
    waves: Vec<Wave>,
    /// By instruction: the region that starts there in any wave.
    shared: Vec<Option<Box<Shared>>>,
}

impl SkipCache {
    /// `observed`: instructions that a check observes each time. `plain`: those among them that only load or store.
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
                return Kind::Access;
            }
            let computes = matches!(
                effects[at].class,
                Class::Valu | Class::Matrix | Class::Salu | Class::Control | Class::Wait | Class::Branch
            );
            if computes && !observed(at) && program.replaced_semantics(program.pcs[at]).is_none() {
                Kind::Unseen
            } else {
                Kind::Observed
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

    /// A workgroup of so many waves begins, with nothing proven.
    pub fn start(&mut self, waves: usize) {
        self.waves.iter_mut().for_each(Wave::clear);
        self.waves.resize_with(waves, Wave::default);
    }

    /// Exchanges the workgroup that it follows.
    pub fn swap(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    /// A register of the wave became unwritten: nothing is proven any more.
    pub fn invalidate(&mut self, wave: u32) {
        self.waves[wave as usize].clear();
    }

    /// What the instruction waits for, if it only waits.
    #[inline]
    pub fn waits(&self, index: usize) -> Option<&[(Counter, u32)]> {
        (self.kinds[index] == Kind::Wait).then(|| &*self.waits[index])
    }

    /// How many instructions from this one on need no check, but for accesses, and which of them are accesses.
    #[inline]
    pub fn skippable(
        &mut self,
        step: &Step<'_>,
        scoreboard: &waits::Scoreboard,
        mut prover: Prover<'_>,
    ) -> (usize, u64) {
        let (id, exec) = (step.wave.id, step.wave.exec());
        if matches!(self.kinds[step.index], Kind::Observed | Kind::Unseen) {
            return (0, 0);
        }
        let wave = &mut self.waves[id as usize];
        let number = wave.at.get(step.index).copied().unwrap_or(0) as usize;
        let found = match number.checked_sub(1) {
            Some(region) if exec & !wave.list[region].lanes == 0 => &wave.list[region],
            // With other lanes than before, or for the first time.
            known => {
                let shared = &mut self.shared[step.index];
                let instructions = (&self.kinds[..], &self.waits[..]);
                let Some(new) = region(instructions, step.index, scoreboard, &mut prover, shared) else {
                    return (0, 0);
                };
                let at = known.unwrap_or(wave.list.len());
                match wave.list.get_mut(at) {
                    Some(region) => *region = new,
                    None => wave.list.push(new),
                }
                wave.at.resize(self.kinds.len(), 0);
                wave.at[step.index] = at as u32 + 1;
                &wave.list[at]
            }
        };
        let mut next = Some(&found.part).filter(|_| exec & !found.lanes == 0);
        while let Some(part) = next {
            if scoreboard.is_clear_of(id, part.summary, &part.registers) {
                return (part.len, part.accesses);
            }
            next = part.before.as_deref();
        }
        (0, 0)
    }

    /// An instruction has run; `effects` are its own.
    #[inline]
    pub fn after(&mut self, step: &Step<'_>, done: &Done<'_>, effects: &Effects) {
        if self.kinds[step.index] == Kind::Unseen {
            let kind = kind(step, done, effects);
            if kind == Kind::Wait {
                let waits = done.calls.iter().filter_map(|(bi, n)| Some((Counter::of(*bi)?, *n)));
                let waits = waits.filter(|(_, n)| (*n as usize) < waits::MOST - 1);
                self.waits[step.index] = waits.collect();
            }
            self.kinds[step.index] = kind;
        }
    }
}

#[cold]
fn kind(step: &Step<'_>, done: &Done<'_>, effects: &Effects) -> Kind {
    let hints = done.calls.iter().all(|(bi, _)| does_nothing(*bi) && *bi != Control::InvalidateCaches);
    let jumps = effects.class == Class::Branch;
    if !hints || !done.accesses.is_empty() || done.event.is_some() || done.jumped && !jumps {
        return Kind::Observed;
    }
    let program = step.program;
    let end = step.pc + program.insts[step.index].size as u64;
    let exec = EXEC_LO as u16..EXEC_LO as u16 + 2;
    let narrows = effects.writes.iter().any(|w| {
        w.file == File::Sgpr && (w.relative.is_some() || w.first < exec.end && exec.start < w.first + w.count)
    });
    if done.calls.iter().any(|(bi, _)| Counter::of(*bi).is_some()) {
        // What it waits for is part of the instruction, and not a register's value.
        let same = effects.reads.is_empty()
            && effects.writes.is_empty()
            && program.pcs.get(step.index + 1) == Some(&end);
        if same { Kind::Wait } else { Kind::Observed }
    } else if narrows || jumps || program.pcs.get(step.index + 1) != Some(&end) {
        Kind::Last
    } else {
        Kind::Simple
    }
}

/// The region that starts at an instruction, if it is simple and proven.
#[cold]
fn region(
    (kinds, waits): (&[Kind], &[Waits]),
    from: usize,
    scoreboard: &waits::Scoreboard,
    prover: &mut Prover<'_>,
    shared: &mut Option<Box<Shared>>,
) -> Option<Region> {
    if let Some(shared) = shared
        && let Some(lanes) = prover.all(from, shared)
    {
        return Some(Region { lanes, part: shared.part.clone() });
    }
    let mut lanes = u64::MAX;
    let mut part = Part {
        len: 0,
        accesses: 0,
        registers: Registers::default(),
        summary: Summary::default(),
        before: None,
    };
    // What its loads write is not to be used before a wait for them.
    let mut loaded: Option<Registers> = None;
    let mut issued = Counters::default();
    // Nothing of it is the wave's own, or not known yet.
    let mut fixed = true;
    for at in (from..kinds.len()).take(LONGEST) {
        let access = kinds[at] == Kind::Access;
        let wait = kinds[at] == Kind::Wait && at > from;
        if !matches!(kinds[at], Kind::Simple | Kind::Last | Kind::Wait | Kind::Access)
            || wait && (issued.is_empty() || !Counters::emptied(&waits[at]).covers(issued))
            || (access || wait) && part.len >= u64::BITS as usize
            || loaded.as_ref().is_some_and(|loaded| loaded.meets(scoreboard.touched(at)))
        {
            fixed &= kinds[at] != Kind::Unseen;
            break;
        }
        let Some(proven) = prover.one(at) else {
            fixed = false;
            break;
        };
        if wait {
            part.summary = part.registers.summary();
            part.before = Some(Box::new(part.clone()));
            (loaded, issued) = (None, Counters::default());
        }
        let written = scoreboard.written(at);
        if access && *written != Registers::default() {
            issued = issued.or(scoreboard.issued(at));
            loaded.get_or_insert_default().join(written);
        }
        if access || wait {
            part.accesses |= 1 << part.len;
        }
        part.len += 1;
        lanes &= proven;
        part.registers.join(scoreboard.touched(at));
        if kinds[at] == Kind::Last {
            break;
        }
    }
    part.summary = part.registers.summary();
    if fixed && shared.is_none() {
        let block = prover.init.as_ref().and_then(|init| init.block(from, part.len));
        *shared = block.map(|block| Box::new(Shared { part: part.clone(), block }));
    }
    (part.len > 0).then_some(Region { lanes, part })
}
