//! Machine states for running single instructions or programs, and for comparing execution engines.

use crate::random::{GLOBAL_BASE, SCRATCH};
use crate::with_context;
use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::conform::run::semantics;
use wavesim::exec::machine_ops::Event;
use wavesim::exec::program::Program;
use wavesim::exec::{interp, reference};
use wavesim::inst::Inst;
use wavesim::state::host::Avx2;
use wavesim::state::{ALL_VGPRS, Wave};

/// The implementation that executes an instruction.
#[derive(Debug, Clone, Copy)]
pub enum Engine {
    /// The handlers selected for this host.
    Handlers,
    /// The handlers for hosts without AVX-512.
    Avx2,
    /// The handlers for hosts without SIMD instructions.
    Portable,
    /// The reference evaluator.
    Evaluator,
}

/// The state that an instruction can access.
#[derive(Clone)]
pub struct Machine {
    pub wave: Wave,
    pub global: Vec<u8>,
    pub lds: Vec<u8>,
    pub scratch: Vec<u8>,
}

impl Machine {
    /// Executes one instruction. Returns `None` if it has no semantics.
    pub fn step(&mut self, arch: Arch, inst: &Inst, engine: Engine) -> Option<Result<(), Event>> {
        self.wave.set_accumulation(arch.facts().vgprs.accumulation);
        let global = Some((GLOBAL_BASE, &mut self.global[..]));
        with_context(global, &mut self.lds, (&mut self.scratch, SCRATCH), |cx| {
            match engine {
                Engine::Handlers => return interp::step(arch, inst, &mut self.wave, cx),
                Engine::Avx2 => {
                    let fast = Avx2::detect().map(Avx2::without_avx512);
                    return interp::step_with(fast, arch, inst, &mut self.wave, cx);
                }
                Engine::Portable => return interp::step_with(None, arch, inst, &mut self.wave, cx),
                Engine::Evaluator => {}
            }
            let none = BTreeMap::new();
            let (sem, sem_y) = semantics(arch, inst, &none)?;
            Some(reference::step(arch, inst, sem, sem_y, &mut self.wave, cx))
        })
    }

    /// Runs a program in the interpreter until an event, or until it has executed about `budget`
    /// instructions.
    pub fn run(&mut self, program: &Program, budget: u64) -> Result<(), Event> {
        self.wave.set_accumulation(program.arch.facts().vgprs.accumulation);
        let global = Some((GLOBAL_BASE, &mut self.global[..]));
        with_context(global, &mut self.lds, (&mut self.scratch, SCRATCH), |cx| {
            interp::run(program, &mut self.wave, cx, budget, &mut 0)
        })
    }

    /// Executes the next instruction of a program in the evaluator.
    pub fn evaluate(&mut self, program: &Program) -> Result<(), Event> {
        let at = program.inst_at(self.wave.pc).expect("the PC is at an instruction");
        self.step(program.arch, &program.insts[at], Engine::Evaluator).expect("programs have semantics")
    }
}

/// Returns the first VGPR in which half `a.1` of one wave differs from half `b.1` of another.
pub fn differing_vgpr(a: (&Wave, usize), b: (&Wave, usize)) -> Option<usize> {
    (0..ALL_VGPRS).find(|&reg| a.0.lane_vec(a.1, reg) != b.0.lane_vec(b.1, reg))
}

/// Returns a description of the first difference between two machines that started as `start`.
pub fn compare(start: &Machine, compiled: &Machine, reference: &Machine) -> Option<String> {
    let size = start.wave.size();
    for reg in 0..ALL_VGPRS as u32 {
        let row = |m: &'_ Machine, half: u32| *m.wave.lane_vec(half as usize, reg as usize);
        if (0..size / 32).all(|half| row(compiled, half) == row(reference, half)) {
            continue;
        }
        for lane in 0..size {
            let (x, y) = (compiled.wave.vgpr(lane, reg), reference.wave.vgpr(lane, reg));
            if x != y {
                let before = start.wave.vgpr(lane, reg);
                return Some(format!(
                    "v{reg} lane {lane}: handler {x:08x}, evaluator {y:08x}, before {before:08x}"
                ));
            }
        }
    }
    for code in 0..128 {
        let (x, y) = (compiled.wave.sgpr(code), reference.wave.sgpr(code));
        if x != y {
            let before = start.wave.sgpr(code);
            return Some(format!("s{code}: handler {x:08x}, evaluator {y:08x}, before {before:08x}"));
        }
    }
    let scalars = |w: &Wave| (w.scc, w.mode, w.pc, w.joined);
    if scalars(&compiled.wave) != scalars(&reference.wave) {
        return Some(format!(
            "SCC, MODE, PC: handler {:x?}, evaluator {:x?}",
            scalars(&compiled.wave),
            scalars(&reference.wave)
        ));
    }
    if [0, 1].iter().any(|half| compiled.wave.mask(*half) != reference.wave.mask(*half)) {
        return Some("EXEC's lane masks differ".to_string());
    }
    let memories = [
        ("global", &compiled.global, &reference.global),
        ("lds", &compiled.lds, &reference.lds),
        ("scratch", &compiled.scratch, &reference.scratch),
    ];
    for (name, x, y) in memories {
        if let Some(place) = x.iter().zip(y).position(|(x, y)| x != y) {
            return Some(format!("{name}[{place:x}]: handler {:02x}, evaluator {:02x}", x[place], y[place]));
        }
    }
    None
}
