//! What a wait instruction waits for: its effects, observed when it runs alone.

use isa_spec::pcode::builtins::Control;
use wavesim_engine::observe::{self, Done, Observer, Step};
use wavesim_isa::arch::facts::Counter;
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::program::Program;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{Wave, Workgroup};

/// The counters for which an instruction waits, each with the operations that may remain outstanding.
pub type Waits = Vec<(Counter, u32)>;

#[derive(Default)]
struct Calls(Vec<(Control, u32)>);

impl Observer for Calls {
    fn after(&mut self, _step: &Step<'_>, done: &Done<'_>) {
        self.0.extend_from_slice(done.calls);
    }
}

/// Returns the waits of each instruction of a program; empty for those that do not wait.
pub fn table(program: &Program, effects: &[Effects]) -> Vec<Waits> {
    effects.iter().enumerate().map(|(index, e)| of(program, index, e)).collect()
}

/// Returns the waits of an instruction, which has no operands but its immediate.
fn of(program: &Program, index: usize, effects: &Effects) -> Waits {
    if effects.class != Class::Wait {
        return Waits::new();
    }
    if effects.calls.contains(&Control::WaitIdle) {
        return program.arch.facts().counters.all.iter().map(|counter| (*counter, 0)).collect();
    }
    let Ok(alone) = Program::new(program.arch, vec![(program.insts[index], 0)]) else { return Waits::new() };
    let mut wave = Wave::new(program.wave_size);
    let memory = Memory::empty();
    let mut workgroup = Workgroup::new(1);
    let mut context = Context::new(&memory, &mut [], &mut workgroup);
    let mut calls = Calls::default();
    // The end of the program is a fault, which the budget does not reach.
    let _ = observe::run(&alone, &mut wave, &mut context, 1, &mut 0, &mut calls);
    calls.0.iter().filter_map(|(call, n)| Some((Counter::of(*call)?, *n))).collect()
}
