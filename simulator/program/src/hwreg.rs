//! Hardware registers, which S_GETREG reads and S_SETREG writes (RDNA3 and RDNA4 manuals, *Hardware
//! Registers*). Their numbers come from the XML (`OPR_HWREG`). Registers of units that are not modelled read
//! as zero.

use isa_spec::tables::ArchTable;
use std::sync::LazyLock;
use wavesim_isa::arch::Arch;
use wavesim_state::barrier::CLUSTER_INDEX;
use wavesim_state::memory::{PRIVATE_BASE, SHARED_BASE};
use wavesim_state::{Wave, Workgroup};

/// The hardware registers that are modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HwReg {
    Mode,
    Status,
    StatePriv,
    ShMemBases,
    HwId1,
    HwId2,
    Cycles,
    CyclesHigh,
    /// IB_STS2: where the workgroup is in its cluster.
    Cluster,
    ExceptionFlags,
    SchedulingMode,
}

/// Names in the XML, over all architectures.
const NAMES: &[(&str, HwReg)] = &[
    ("hw_reg_mode", HwReg::Mode),
    ("hw_reg_wave_mode", HwReg::Mode),
    ("hw_reg_status", HwReg::Status),
    ("hw_reg_wave_status", HwReg::Status),
    ("hw_reg_wave_state_priv", HwReg::StatePriv),
    ("hw_reg_sh_mem_bases", HwReg::ShMemBases),
    ("hw_reg_hw_id1", HwReg::HwId1),
    ("hw_reg_wave_hw_id1", HwReg::HwId1),
    ("hw_reg_hw_id2", HwReg::HwId2),
    ("hw_reg_wave_hw_id2", HwReg::HwId2),
    ("hw_reg_shader_cycles", HwReg::Cycles),
    ("hw_reg_shader_cycles_lo", HwReg::Cycles),
    ("hw_reg_shader_cycles_hi", HwReg::CyclesHigh),
    ("hw_reg_ib_sts2", HwReg::Cluster),
    ("hw_reg_wave_excp_flag_user", HwReg::ExceptionFlags),
    ("hw_reg_wave_sched_mode", HwReg::SchedulingMode),
];

/// Registers by architecture and register number (6 bits).
static NUMBERS: LazyLock<Vec<[Option<HwReg>; 64]>> =
    LazyLock::new(|| Arch::ALL.into_iter().map(|a| numbers(a.table())).collect());

fn numbers(table: &ArchTable) -> [Option<HwReg>; 64] {
    let mut out = [None; 64];
    // The operand type has parts: register, lowest bit and size.
    let parts = table.operand_types.iter().filter(|t| t.name == "OPR_HWREG").flat_map(|t| t.parts);
    for &(name, value) in parts.filter(|p| p.name == "ID").flat_map(|p| p.values) {
        let known = NAMES.iter().find(|n| n.0 == name).map(|n| n.1);
        if let (Some(slot), Some(register)) = (out.get_mut(value as usize), known) {
            *slot = Some(register);
        }
    }
    out
}

/// Reads a whole register, without the bits that show EXEC, VCC and SCC: the body of S_GETREG adds them, so that
/// they are among the state that it reads. `instructions` is the number executed so far, which is the value of
/// the clock.
pub fn get(arch: Arch, wave: &Wave, group: &Workgroup, instructions: u64, number: u32) -> u32 {
    let Some(register) = NUMBERS[arch as usize][number as usize & 63] else { return 0 };
    match register {
        HwReg::Mode => wave.mode,
        HwReg::Status => fixed_status(arch, wave, group),
        HwReg::StatePriv => state_priv(wave, group),
        HwReg::ShMemBases => (PRIVATE_BASE >> 48) as u32 | ((SHARED_BASE >> 48) as u32) << 16,
        // WAVE_ID is the slot in the SIMD; the wave's index in its workgroup stands in for it.
        HwReg::HwId1 => wave.id & 0x1f,
        HwReg::HwId2 => 0,
        HwReg::Cycles => instructions as u32,
        HwReg::CyclesHigh => (instructions >> 32) as u32,
        HwReg::Cluster => group.cluster().map_or(0, |place| place.id << 6 | place.index() << 21),
        HwReg::ExceptionFlags => wave.exception_flags,
        HwReg::SchedulingMode => wave.scheduling_mode,
    }
}

/// Returns whether a register is the clock, or half of it.
pub fn is_clock(arch: Arch, number: u32) -> bool {
    matches!(NUMBERS[arch as usize][number as usize & 63], Some(HwReg::Cycles | HwReg::CyclesHigh))
}

/// Writes a whole register. Other registers than these are the trap handler's, or read-only.
pub fn set(arch: Arch, wave: &mut Wave, number: u32, value: u32) {
    match NUMBERS[arch as usize][number as usize & 63] {
        Some(HwReg::Mode) => wave.mode = value & arch.facts().float.mode_bits,
        Some(HwReg::ExceptionFlags) => wave.exception_flags = value,
        Some(HwReg::SchedulingMode) => wave.scheduling_mode = value,
        _ => {}
    }
}

/// Returns STATE_PRIV without SCC: barriers that have completed and that the wave has not waited for, and the number
/// of the named barrier that it has joined (CDNA5 manual, *STATE_PRIV register*).
fn state_priv(wave: &Wave, group: &Workgroup) -> u32 {
    const BARRIER_COMPLETE: u32 = 2;
    const NAMED_BARRIER_COMPLETE: u32 = 3;
    const NAMED_BARRIER_ID: u32 = 4;
    const CLUSTER_BARRIER_COMPLETE: u32 = 16;
    let is_complete = |index: usize| (group.barrier(index).completed != wave.passed[index]) as u32;
    let named = if wave.joined == 0 { 0 } else { is_complete(wave.joined as usize) };
    is_complete(0) << BARRIER_COMPLETE
        | named << NAMED_BARRIER_COMPLETE
        | wave.joined << NAMED_BARRIER_ID
        | is_complete(CLUSTER_INDEX) << CLUSTER_BARRIER_COMPLETE
}

/// Returns STATUS: properties of the wave, and copies of state held elsewhere.
pub fn status(arch: Arch, wave: &Wave, group: &Workgroup) -> u32 {
    const EXECZ: u32 = 9;
    const VCCZ: u32 = 10;
    let scc = if arch.facts().status.scc { wave.scc } else { 0 };
    ((wave.exec() == 0) as u32) << EXECZ
        | ((wave.vcc() == 0) as u32) << VCCZ
        | scc
        | fixed_status(arch, wave, group)
}

/// Returns the bits of STATUS that do not change while a wave runs.
fn fixed_status(arch: Arch, wave: &Wave, group: &Workgroup) -> u32 {
    const IN_WG: u32 = 11;
    const VALID: u32 = 16;
    const WAVE64: u32 = 29;
    let wave64 = arch.facts().status.wave64 && wave.size() == 64;
    (group.is_multi_wave() as u32) << IN_WG | 1 << VALID | (wave64 as u32) << WAVE64
}

/// Returns the result of S_GET_BARRIER_STATE. [26:24] is the number of named barriers in units of 4 where the kernel
/// descriptor states it (CDNA5 manual). A barrier that the workgroup does not have, such as its own if it has one wave,
/// has no members.
pub fn barrier_state(arch: Arch, group: &Workgroup, barrier: i32) -> u32 {
    if Workgroup::index(barrier).is_none() {
        return 0;
    }
    let state = group.own_index(barrier).map(|index| group.barrier(index)).unwrap_or_default();
    let valid = (state.members > 0) as u32;
    let named = if arch.facts().descriptor.named_barriers { group.named_barriers().div_ceil(4) } else { 0 };
    valid | (state.members & 0x7f) << 4 | (state.signals & 0x7f) << 16 | named << 24
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_state::ClusterPlace;

    #[test]
    fn numbers_depend_on_the_architecture() {
        let is = |arch: Arch, number: usize| NUMBERS[arch as usize][number];
        for arch in Arch::RDNA {
            assert_eq!(is(arch, 1), Some(HwReg::Mode), "{}", arch.name());
            assert_eq!(is(arch, 2), Some(HwReg::Status));
            assert_eq!(is(arch, 29), Some(HwReg::Cycles));
        }
        assert_eq!(is(Arch::Rdna3, 15), Some(HwReg::ShMemBases));
        assert_eq!(is(Arch::Rdna4, 15), None, "RDNA4 has a performance snapshot there");
        assert_eq!(is(Arch::Rdna4, 4), Some(HwReg::StatePriv));
    }

    #[test]
    fn a_wave_by_itself_has_no_barrier() {
        for arch in [Arch::Rdna4, Arch::Cdna5] {
            let state = |waves| {
                let mut group = Workgroup::new(waves);
                group.set_named_barriers(0, true);
                barrier_state(arch, &group, -1)
            };
            assert_eq!([state(1), state(2)], [0, 0x21], "{}", arch.name());
        }
    }

    #[test]
    fn fields_are_where_the_manuals_say() {
        let mut wave = Wave::new(64);
        wave.scc = 1;
        wave.sgprs[wavesim_state::wave::VCC_LO] = 1;
        let group = Workgroup::new(2);
        let get = |arch, number| get(arch, &wave, &group, 0x1_0000_0002, number);
        assert_eq!(get(Arch::Rdna3, 2), 1 << 16 | 1 << 11);
        assert_eq!(get(Arch::Rdna4, 2), 1 << 29 | 1 << 16 | 1 << 11);
        assert_eq!(get(Arch::Rdna4, 4), 0);
        let status = |arch| status(arch, &wave, &group);
        assert_eq!(status(Arch::Rdna3), 1 << 16 | 1 << 11 | 1);
        assert_eq!(status(Arch::Rdna4), 1 << 29 | 1 << 16 | 1 << 11);
        assert_eq!(get(Arch::Rdna4, 29), 2);
        assert_eq!(get(Arch::Rdna4, 30), 1);
        // Bits [15:0] are the private base.
        assert_eq!((get(Arch::Rdna3, 15) as u64 & 0xffff) << 48, PRIVATE_BASE);
        assert_eq!((get(Arch::Rdna3, 15) as u64 >> 16) << 48, SHARED_BASE);
    }

    #[test]
    fn a_cluster_is_in_ib_sts2() {
        let mut group = Workgroup::new(2);
        let get = |wave: &Wave, group: &Workgroup, number| get(Arch::Cdna5, wave, group, 0, number);
        let mut wave = Wave::new(32);
        assert_eq!(get(&wave, &group, 28), 0, "in no cluster");
        let place = ClusterPlace { id: 3, position: [0; 3], workgroup: [1, 1, 0], size: [2, 2, 1] };
        group.set_cluster(place);
        assert_eq!(get(&wave, &group, 28), 3 << 6 | 3 << 21);
        (0..4).for_each(|_| _ = group.signal(CLUSTER_INDEX));
        wave.joined = 5;
        assert_eq!(get(&wave, &group, 4), 1 << 16 | 5 << 4);
    }

    #[test]
    fn reserved_bits_of_mode_stay_zero() {
        let mut wave = Wave::new(32);
        set(Arch::Cdna5, &mut wave, 1, u32::MAX);
        assert_eq!(wave.mode, 0x0f8f_f0ff);
        set(Arch::Cdna5, &mut wave, 18, 0x55);
        assert_eq!(get(Arch::Cdna5, &wave, &Workgroup::new(1), 0, 18), 0x55);
    }

    #[test]
    fn only_mode_is_written() {
        let mut wave = Wave::new(32);
        set(Arch::Rdna3, &mut wave, 1, 0x123);
        set(Arch::Rdna3, &mut wave, 2, 1);
        assert_eq!((wave.mode, wave.scc), (0x123, 0));
    }
}
