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

/// Returns true if two values are equal or both NaN. The host's instructions determine which operand's
/// payload a NaN result inherits.
pub fn equal_or_nan(x: u32, y: u32) -> bool {
    let nan32 = |v: u32| v & 0x7fff_ffff > 0x7f80_0000;
    let half = |x: u32, y: u32| {
        let nan = |v: u32| v & 0x7fff > 0x7c00 || v & 0x7fff > 0x7f80;
        x == y || nan(x) && nan(y)
    };
    nan32(x) && nan32(y) || half(x & 0xffff, y & 0xffff) && half(x >> 16, y >> 16)
}

/// Returns true if the upper half of an f64 is that of a quiet NaN.
fn is_nan64(high: u32) -> bool {
    high & 0x7ff8_0000 == 0x7ff8_0000
}

/// Returns true if every byte that differs belongs to a dword that is a NaN in both, at any alignment.
fn equal_memory_or_nan(x: &[u8], y: &[u8]) -> bool {
    let nan = |bytes: &[u8], at: usize| {
        let Some(dword) = bytes.get(at..at + 4) else { return false };
        let value = u32::from_le_bytes(dword.try_into().unwrap_or_default());
        let half = |v: u32| v & 0x7fff > 0x7c00 || v & 0x7fff > 0x7f80;
        value & 0x7fff_ffff > 0x7f80_0000 || is_nan64(value) || half(value) || half(value >> 16)
    };
    // A byte in the lower half of an f64 NaN is covered by the next dword, which holds the upper half.
    let near = |at: usize| (at.saturating_sub(3)..=at + 4).any(|start| nan(x, start) && nan(y, start));
    (0..x.len()).all(|at| x[at] == y[at] || near(at))
}

/// Returns the first VGPR in which half `a.1` of one wave differs from half `b.1` of another. NaNs compare
/// equal, because handler variants may take the payload from different operands.
pub fn differing_vgpr(a: (&Wave, usize), b: (&Wave, usize)) -> Option<usize> {
    let value = |(wave, half): (&Wave, usize), reg: usize, lane: usize| {
        if reg < ALL_VGPRS { wave.lane_vec(half, reg).0[lane] } else { 0 }
    };
    let same = |reg: usize, lane: usize| {
        let (x, y) = (value(a, reg, lane), value(b, reg, lane));
        let [high_x, high_y] = [a, b].map(|w| value(w, reg + 1, lane));
        x == y || equal_or_nan(x, y) || is_nan64(high_x) && is_nan64(high_y)
    };
    let equal = |reg: usize| a.0.lane_vec(a.1, reg) == b.0.lane_vec(b.1, reg);
    (0..ALL_VGPRS).find(|&reg| !equal(reg) && (0..32).any(|lane| !same(reg, lane)))
}

/// Returns a description of the first difference between two machines that started as `start`. With `float`,
/// NaNs compare equal.
pub fn compare(start: &Machine, compiled: &Machine, reference: &Machine, float: bool) -> Option<String> {
    let size = start.wave.size();
    for reg in 0..ALL_VGPRS as u32 {
        let row = |m: &'_ Machine, half: u32| *m.wave.lane_vec(half as usize, reg as usize);
        if (0..size / 32).all(|half| row(compiled, half) == row(reference, half)) {
            continue;
        }
        for lane in 0..size {
            let (x, y) = (compiled.wave.vgpr(lane, reg), reference.wave.vgpr(lane, reg));
            let high = |m: &Machine| m.wave.vgpr(lane, reg + 1);
            let nan64 = is_nan64(high(compiled)) && is_nan64(high(reference));
            if !(x == y || float && (equal_or_nan(x, y) || nan64)) {
                let before = start.wave.vgpr(lane, reg);
                return Some(format!(
                    "v{reg} lane {lane}: handler {x:08x}, evaluator {y:08x}, before {before:08x}"
                ));
            }
        }
    }
    for code in 0..128 {
        let (x, y) = (compiled.wave.sgpr(code), reference.wave.sgpr(code));
        if !(x == y || float && equal_or_nan(x, y)) {
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
        if x == y || float && equal_memory_or_nan(x, y) {
            continue;
        }
        if let Some(place) = x.iter().zip(y).position(|(x, y)| x != y) {
            return Some(format!("{name}[{place:x}]: handler {:02x}, evaluator {:02x}", x[place], y[place]));
        }
    }
    None
}
