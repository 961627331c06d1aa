//! Tests of the initial state of waves.

use crate::sched::dispatch::{Dispatch, InitialState, Layout, Registers, Shape};
use crate::sched::poison::Poison;
use crate::sched::start::{InitialRegisters, start};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::Wave;

const S_ENDPGM: u32 = 0xbfb0_0000;

/// Returns the expected v0, v1 and v2 of a work-item at x, y and z.
type Ids = Box<dyn Fn([u32; 3]) -> [u32; 3]>;

/// Returns layouts of ids.
fn layouts() -> Vec<(Layout, Ids)> {
    let mut all: Vec<(Layout, Ids)> = Vec::new();
    for used in 0..8 {
        let item_ids = [0, 1, 2].map(|dim| used >> dim & 1 != 0);
        let layout = Layout::Text { group_ids: [false; 3], item_ids };
        let keep = move |dim: usize, id: u32| if item_ids[dim] { id } else { 0 };
        all.push((layout, Box::new(move |[x, y, z]| [keep(0, x), keep(1, y), keep(2, z)])));
    }
    // The header's field has two bits, of which 3 is reserved.
    for item_id_dims in 0..4 {
        let layout = Layout::Hsa {
            first_system_sgpr: 10,
            group_ids: [true; 3],
            architected: item_id_dims % 2 == 0,
            item_id_dims,
        };
        let packed = move |[x, y, z]: [u32; 3]| match item_id_dims {
            0 => x,
            1 => x | y << 10,
            _ => x | y << 10 | z << 20,
        };
        all.push((layout, Box::new(move |id| [packed(id), 0, 0])));
    }
    all
}

fn shape(layout: Layout, block: [u32; 3], wave_size: u32) -> Shape {
    Shape {
        grid: [9, 9, 9],
        cluster: [1; 3],
        named_barriers: 0,
        block,
        wave_size,
        lds_bytes: 0,
        scratch_bytes: 0,
        registers: Registers::ALL,
        init: InitialState { layout, mode: 0xf0, sgprs: vec![(4, vec![40, 41]), (100, vec![1000])] },
        entry_pc: 8,
        code_base: 0x1000,
    }
}

/// Each lane has the ids of its work-item, also in a wave that has run before; lanes without a work-item are
/// inactive, and their registers zero.
#[test]
fn lanes_have_the_ids_of_their_work_items() {
    let program = Program::from_words(Arch::Rdna3, &[S_ENDPGM]).expect("a program");
    for size in [32, 64] {
        let mut wave = Wave::new(size);
        for (layout, expected) in layouts() {
            for block in [[1, 1, 1], [5, 3, 2], [33, 2, 1], [7, 1, 9], [64, 4, 4], [1, 1, 70], [1024, 1, 1]] {
                let shape = shape(layout.clone(), block, size);
                let dispatch = Dispatch::new(&program, &shape, 1);
                let (items, mut initial) = (dispatch.items(), InitialRegisters::new(&dispatch));
                initial.set_workgroup(&shape.init.layout, [7, 5, 3], None);
                for index in 0..dispatch.waves() {
                    (0..size).for_each(|lane| wave.set_vgpr(lane, (index + lane) % 9, 0xbad));
                    wave.set_sgpr(90, 0xbad);
                    start(&dispatch, &initial, &mut wave, index);
                    let mut exec = 0;
                    for lane in 0..size {
                        let item = index * size + lane;
                        let [x, y, _] = block;
                        let id = [item % x, item / x % y, item / x / y];
                        let mut registers = [0; 9];
                        if item < items {
                            exec |= 1 << lane;
                            registers[..3].copy_from_slice(&expected(id));
                        }
                        let found: [u32; 9] = std::array::from_fn(|reg| wave.vgpr(lane, reg as u32));
                        assert_eq!(
                            found, registers,
                            "{layout:?}, {block:?}, wave{size} {index}, lane {lane}"
                        );
                    }
                    assert_eq!(wave.exec(), exec, "{layout:?}, {block:?}, wave{size} {index}");
                    assert_eq!([4, 5, 90, 100].map(|code| wave.sgpr(code)), [40, 41, 0, 1000]);
                    assert_eq!((wave.pc, wave.code_base, wave.id), (8, 0x1000, index));
                }
            }
        }
    }
}

/// A workgroup that follows another one has its own ids, and all registers of its waves are those of a first one; so are
/// they where registers hold garbage at the start, but for those without an initial value.
#[test]
fn workgroups_that_follow_have_ids_of_their_own() {
    let program = Program::from_words(Arch::Rdna4, &[S_ENDPGM]).expect("a program");
    for (layout, _) in layouts() {
        let shape = shape(layout.clone(), [40, 2, 1], 32);
        let mut dispatch = Dispatch::new(&program, &shape, 1);
        let mut initial = InitialRegisters::new(&dispatch);
        let mut used = Wave::new(32);
        for id in [[8, 8, 8], [1, 2, 3], [0, 0, 0]] {
            let mut first = InitialRegisters::new(&dispatch);
            for registers in [&mut initial, &mut first] {
                registers.set_workgroup(&shape.init.layout, id, None);
            }
            for index in 0..dispatch.waves() {
                let mut new = Wave::new(32);
                start(&dispatch, &initial, &mut used, index);
                start(&dispatch, &first, &mut new, index);
                assert_eq!(
                    (used.sgprs, used.workgroup, used.exec()),
                    (new.sgprs, id, new.exec()),
                    "{layout:?}"
                );
                assert!((0..9).all(|register| used.lane_vec(0, register) == new.lane_vec(0, register)));
                dispatch.poison = Some(Poison(7));
                start(&dispatch, &initial, &mut used, index);
                dispatch.poison = None;
                let ids = match &layout {
                    Layout::Hsa { architected: true, .. } => [108 + 7, 108 + 8, 108 + 9],
                    Layout::Hsa { .. } => [10, 11, 12],
                    _ => [4, 5, 100],
                };
                for code in [4, 5, 100].into_iter().chain(ids) {
                    assert_eq!(used.sgpr(code), new.sgpr(code), "{layout:?}, s{code}");
                }
                assert_ne!(used.sgpr(90), 0, "garbage");
                for register in initial.vgprs() {
                    assert_eq!(
                        used.lane_vec(0, *register),
                        new.lane_vec(0, *register),
                        "{layout:?}, v{register}"
                    );
                }
            }
        }
    }
}

/// Cluster (1, 0, 2) of 2 x 3 x 1 workgroups, and its workgroup (1, 2, 0).
#[test]
fn trap_registers_hold_the_ids_of_a_cluster() {
    let program = Program::from_words(Arch::Cdna5, &[S_ENDPGM]).expect("a program");
    let layout =
        Layout::Hsa { first_system_sgpr: 0, group_ids: [true; 3], architected: true, item_id_dims: 2 };
    let shape = Shape { grid: [4, 3, 3], cluster: [2, 3, 1], ..shape(layout, [32, 1, 1], 32) };
    let dispatch = Dispatch::new(&program, &shape, 1);
    assert_eq!(dispatch.check(), Ok(()));
    let place = dispatch.cluster_place([3, 2, 2]).expect("clusters");
    assert_eq!((place.position, place.workgroup, place.index()), ([1, 0, 2], [1, 2, 0], 5));
    let (mut initial, mut wave) = (InitialRegisters::new(&dispatch), Wave::new(32));
    initial.set_workgroup(&shape.init.layout, [3, 2, 2], Some(&place));
    start(&dispatch, &initial, &mut wave, 0);
    let ttmp = [6, 7, 9].map(|number| wave.sgpr(108 + number));
    assert_eq!(ttmp, [1 | 2 << 4 | 1 << 12 | 2 << 16 | 5 << 24, 2 << 16, 1]);
    // The workgroups of a cluster follow each other.
    let first: Vec<[u32; 3]> = (0..6).map(|index| dispatch.workgroup(index)).collect();
    assert_eq!(first, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 2, 0], [1, 2, 0]]);
}

/// The read-only registers of a custom machine have their contents in every lane.
#[test]
fn read_only_registers_have_their_contents() {
    let program = Program::from_words(Arch::Rdna3, &[S_ENDPGM]).expect("a program");
    let file = &Arch::RiscvGpu.machine().expect("a custom machine").vector;
    for size in [32, 64] {
        let shape = shape(Layout::Own(file), [100, 1, 1], size);
        let dispatch = Dispatch::new(&program, &shape, 1);
        let (mut initial, mut wave) = (InitialRegisters::new(&dispatch), Wave::new(size));
        initial.set_workgroup(&shape.init.layout, [7, 0, 0], None);
        for index in 0..dispatch.waves() {
            start(&dispatch, &initial, &mut wave, index);
            for lane in 0..size {
                let found: Vec<u32> = (0..5).map(|reg| wave.vgpr(lane, reg)).collect();
                assert_eq!(found, [0, index * size + lane, 7, 100, 0], "wave{size} {index}, lane {lane}");
            }
        }
    }
}
