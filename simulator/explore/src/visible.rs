//! Which instructions other waves can notice.

use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::Space;
use wavesim_inspect::check::successors;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{self, Effects, File};
use wavesim_machine::state::ALL_VGPRS;

/// Facts about each instruction of a program, by its index.
pub struct Table {
    facts: Vec<Facts>,
    /// The VGPRs that any instruction writes.
    pub written: Vec<u16>,
}

/// Facts about an instruction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    /// Other waves can notice its effect, or it notices theirs: a choice is made before it.
    pub visible: bool,
    /// The number of instructions, beginning with this one, that can run without being observed.
    pub unobserved: u16,
    /// It is inside a loop.
    pub in_loop: bool,
    /// It is an atomic on floats, whose result depends on the order of rounding.
    pub float_atomic: bool,
}

impl Table {
    /// Determines the facts. `caches`: controls of caches are visible.
    pub fn new(prepared: &Prepared, caches: bool) -> Table {
        let program = &prepared.program;
        let effects = effects::table(program, prepared.shape.wave_size);
        // Signals of barriers commute, so that they need no choice, unless the program looks at their number.
        let counts = effects.iter().any(|e| e.calls.iter().any(|call| counts_signals(*call)));
        let mut facts: Vec<Facts> = effects
            .iter()
            .zip(&program.insts)
            .map(|(effects, inst)| {
                let name = inst.instruction(program.arch.table()).name;
                Facts {
                    visible: is_visible(effects, counts)
                        || caches && effects.calls.iter().any(is_cache_control),
                    float_atomic: effects.atomic && is_float(name),
                    ..Facts::default()
                }
            })
            .collect();
        let mut after = 0u16;
        for at in (0..facts.len()).rev() {
            let goes_on = matches!(successors(program, at), [Some(next), None] if next == at + 1);
            let quiet = !facts[at].visible
                && effects[at].memory.is_empty()
                && !effects[at].calls.iter().any(|call| is_observed(*call));
            after = match (quiet, goes_on) {
                (false, _) => 0,
                (true, true) => after.saturating_add(1),
                (true, false) => 1,
            };
            facts[at].unobserved = after;
            if let Some(first) = successors(program, at).into_iter().flatten().filter(|to| *to <= at).min() {
                facts[first..=at].iter_mut().for_each(|facts| facts.in_loop = true);
            }
        }
        let writes = || effects.iter().flat_map(|e| &e.writes).filter(|used| used.file == File::Vgpr);
        let mut written: Vec<u16> = match writes().any(|used| used.relative.is_some()) {
            true => (0..ALL_VGPRS as u16).collect(),
            false => writes().flat_map(|used| used.first..used.first.saturating_add(used.count)).collect(),
        };
        written.sort_unstable();
        written.dedup();
        written.retain(|register| (*register as usize) < ALL_VGPRS);
        Table { facts, written }
    }

    /// Returns the facts about an instruction.
    pub fn get(&self, index: usize) -> Facts {
        self.facts.get(index).copied().unwrap_or_default()
    }
}

fn is_visible(effects: &Effects, counts: bool) -> bool {
    let memory = effects.memory.iter().any(|memory| memory.space != Space::Scratch);
    memory || effects.calls.iter().any(|call| object(*call, counts).is_some())
}

/// What a builtin accesses that is not memory, and that its order with other waves changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// The state of the barriers of the workgroup.
    Barriers,
    /// Messages to the host.
    Messages,
}

/// Returns the object that a builtin accesses. `counts`: the program looks at the number of signals of a barrier.
pub fn object(call: Control, counts: bool) -> Option<Object> {
    match call {
        Control::SendMsg => Some(Object::Messages),
        Control::Barrier | Control::BarrierSignal if counts => Some(Object::Barriers),
        call if counts_signals(call) => Some(Object::Barriers),
        _ => None,
    }
}

/// Whether the result of a builtin depends on how many waves have signalled a barrier, or changes that number.
fn counts_signals(call: Control) -> bool {
    matches!(
        call,
        Control::BarrierSignalIsFirst
            | Control::BarrierLeave
            | Control::BarrierInit
            | Control::BarrierMembers
            | Control::BarrierJoin
            | Control::BarrierState
    )
}

/// Whether a builtin discards or writes back the contents of caches.
fn is_cache_control(call: &Control) -> bool {
    matches!(call, Control::InvalidateCaches | Control::WriteBackCaches)
}

/// Whether a step needs to know of a builtin.
fn is_observed(call: Control) -> bool {
    matches!(
        call,
        Control::EndPgm | Control::Barrier | Control::BarrierSignal | Control::BarrierWait | Control::SendMsg
    ) || counts_signals(call)
}

/// Whether an atomic of this name adds, or compares, floats.
fn is_float(name: &str) -> bool {
    ["_F16", "_F32", "_F64", "_BF16"].iter().any(|kind| name.contains(kind))
}

impl Table {
    /// Whether the program looks at the number of signals of a barrier.
    pub fn counts_signals(prepared: &Prepared) -> bool {
        let effects = effects::table(&prepared.program, prepared.shape.wave_size);
        effects.iter().any(|e| e.calls.iter().any(|call| counts_signals(*call)))
    }
}
