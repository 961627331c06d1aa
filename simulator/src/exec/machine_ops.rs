//! Control builtins: what reaches beyond registers and memory. One implementation for the interpreter and the reference executor.

use crate::fault::FaultKind;
use crate::machine::Wave;
use isa_spec::pcode::builtins::Bi;

/// Why a wave stops running for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    EndPgm,
    /// S_BARRIER: continue when all waves of the workgroup have arrived.
    Barrier,
    /// S_BARRIER_WAIT on this barrier: continue when it completes.
    BarrierWait(i32),
    Fault {
        kind: FaultKind,
        message: String,
        lane: Option<u32>,
        address: Option<u64>,
    },
}

impl Event {
    pub fn fault(kind: FaultKind, message: impl Into<String>) -> Event {
        Event::Fault { kind, message: message.into(), lane: None, address: None }
    }
}

/// Barrier state of a workgroup (RDNA 4 ISA manual, *Barriers*; RDNA 3 has the first only).
#[derive(Debug, Clone, Default)]
pub struct Workgroup {
    /// -1 at index 0, named barriers 1..=16.
    pub barriers: [BarrierState; 17],
    /// Waves that have not ended.
    pub live: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BarrierState {
    pub members: u32,
    pub signals: u32,
    /// Completions so far: a waiter continues when this passes what it saw on its signal.
    pub generation: u32,
}

impl Workgroup {
    fn index(barrier: i32) -> Option<usize> {
        match barrier {
            -1 => Some(0),
            1..=16 => Some(barrier as usize),
            _ => None,
        }
    }

    pub fn state(&self, barrier: i32) -> BarrierState {
        Self::index(barrier).map_or(BarrierState::default(), |at| {
            let mut state = self.barriers[at];
            if at == 0 {
                state.members = self.live;
            }
            state
        })
    }

    /// One arrival; true if the first since the last completion.
    pub fn signal(&mut self, barrier: i32) -> bool {
        let Some(at) = Self::index(barrier) else { return false };
        let members = self.state(barrier).members;
        let state = &mut self.barriers[at];
        let first = state.signals == 0;
        state.signals += 1;
        if state.signals >= members {
            state.signals = 0;
            state.generation += 1;
        }
        first
    }

    /// A wave ended: barriers waiting for it may complete.
    pub fn leave(&mut self) {
        self.live = self.live.saturating_sub(1);
        let state = &mut self.barriers[0];
        if state.signals > 0 && state.signals >= self.live {
            state.signals = 0;
            state.generation += 1;
        }
    }
}

/// Hardware register numbers of S_GETREG and S_SETREG (LLVM AMDGPUUsage and the ISA manuals).
mod hwreg {
    pub const MODE: u32 = 1;
    pub const STATUS: u32 = 2;
    pub const GPR_ALLOC: u32 = 5;
    pub const LDS_ALLOC: u32 = 6;
    pub const IB_STS: u32 = 7;
    pub const SH_MEM_BASES: u32 = 15;
    pub const FLAT_SCR_LO: u32 = 20;
    pub const FLAT_SCR_HI: u32 = 21;
    pub const HW_ID1: u32 = 23;
    pub const HW_ID2: u32 = 24;
    pub const SHADER_CYCLES: u32 = 29;
}

/// Runs a control builtin. `instructions`: executed so far, which stands for time.
pub fn control(
    wave: &mut Wave,
    workgroup: &mut Workgroup,
    instructions: u64,
    bi: Bi,
    args: &[u128],
) -> Result<u128, Event> {
    let a = args.first().copied().unwrap_or(0);
    let b = args.get(1).copied().unwrap_or(0);
    let barrier = a as u32 as i32;
    match bi {
        Bi::Nop => {}
        // Memory operations are complete when they return: every counter is zero.
        Bi::WaitVmcnt
        | Bi::WaitVscnt
        | Bi::WaitLgkmcnt
        | Bi::WaitExpcnt
        | Bi::WaitLoadcnt
        | Bi::WaitStorecnt
        | Bi::WaitSamplecnt
        | Bi::WaitBvhcnt
        | Bi::WaitDscnt
        | Bi::WaitKmcnt => {}
        Bi::SendMsg => {}
        Bi::EndPgm => return Err(Event::EndPgm),
        Bi::Illegal => {
            return Err(Event::fault(
                FaultKind::IllegalInstruction,
                "reached padding after the program's end",
            ));
        }
        Bi::Trap => return Err(Event::fault(FaultKind::Trap, format!("trap {a}: there is no trap handler"))),
        Bi::Halt => {
            return Err(Event::fault(FaultKind::Trap, "the wave halted itself; nothing would resume it"));
        }
        Bi::GwsUnsupported => {
            return Err(Event::fault(FaultKind::Unimplemented, "global wave sync is not supported"));
        }
        Bi::SendMsgRtn => {
            // Message numbers: 131 REALTIME, 133 TBA; others answer 0.
            return Ok(if a == 131 { instructions as u128 } else { 0 });
        }
        Bi::Barrier => return Err(Event::Barrier),
        Bi::BarrierSignal => {
            workgroup.signal(barrier);
        }
        Bi::BarrierSignalIsFirst => return Ok(workgroup.signal(barrier) as u128),
        Bi::BarrierWait => return Err(Event::BarrierWait(barrier)),
        Bi::BarrierInit => {
            if let 1..=16 = barrier {
                workgroup.barriers[barrier as usize] =
                    BarrierState { members: b as u32, ..BarrierState::default() };
            }
        }
        Bi::BarrierJoin => wave.joined = if (1..=16).contains(&barrier) { barrier as u32 } else { 0 },
        Bi::BarrierLeave => {
            let named = wave.joined as usize;
            wave.joined = 0;
            if named == 0 {
                return Ok(0);
            }
            let state = &mut workgroup.barriers[named.min(16)];
            state.members = state.members.saturating_sub(1);
            if state.signals > 0 && state.signals >= state.members {
                state.signals = 0;
                state.generation += 1;
            }
            return Ok(1);
        }
        Bi::BarrierState => {
            let state = workgroup.state(barrier);
            let valid = (state.members > 0) as u128;
            return Ok(valid | (state.members as u128 & 0x7f) << 4 | (state.signals as u128 & 0x7f) << 16);
        }
        Bi::GetReg => return Ok(getreg(wave, instructions, a as u32) as u128),
        Bi::SetReg => setreg(wave, a as u32, b as u32),
        _ => {}
    }
    Ok(0)
}

fn getreg(wave: &Wave, instructions: u64, number: u32) -> u32 {
    match number {
        hwreg::MODE => wave.mode,
        hwreg::STATUS => status(wave),
        hwreg::GPR_ALLOC | hwreg::LDS_ALLOC | hwreg::IB_STS => 0,
        hwreg::SH_MEM_BASES => {
            (crate::memory::SHARED_BASE >> 48) as u32 | ((crate::memory::PRIVATE_BASE >> 48) as u32) << 16
        }
        hwreg::FLAT_SCR_LO | hwreg::FLAT_SCR_HI => 0,
        // Wave slot and unit: the wave's number in its workgroup stands for both.
        hwreg::HW_ID1 => wave.id & 0x1f,
        hwreg::HW_ID2 => 0,
        hwreg::SHADER_CYCLES => instructions as u32,
        _ => 0,
    }
}

/// STATUS with the bits that are state elsewhere.
pub fn status(wave: &Wave) -> u32 {
    let execz = (wave.exec() == 0) as u32;
    let vccz = (wave.vcc() == 0) as u32;
    wave.status & !0x601 | wave.scc | execz << 9 | vccz << 10
}

fn setreg(wave: &mut Wave, number: u32, value: u32) {
    match number {
        hwreg::MODE => wave.mode = value,
        // Only the trap handler may write the rest.
        hwreg::STATUS => wave.scc = value & 1,
        _ => {}
    }
}
