//! Global wave sync: waves of different workgroups meet at resources of the device, in every order, interpreted, compiled
//! and observed.

use std::sync::Mutex;
use wavesim::arch::Arch;
use wavesim::jit::Jit;
use wavesim::sched::dispatch::{self, GroupOrder, Schedule};
use wavesim::sched::order::Choice;
use wavesim::state::gws::Gws;
use wavesim_tests::{Setup, prepare, words};

const KERNEL: &str = include_str!("../../filetests/check/clean_gws.rdna");

fn setup() -> Setup {
    Setup { arch: Arch::Rdna3, wave: Some(32), ..Setup::default() }
}

#[test]
fn waves_of_different_workgroups_meet() {
    for order in ["ascending", "reverse", "random:3", "groups:1"] {
        let order: Choice = order.parse().expect("an order");
        for (threads, compiled) in [(1, false), (3, false), (1, true)] {
            let prepared = prepare(KERNEL, &setup()).expect("a kernel");
            let jit = Jit::checked(&prepared.program, 0).expect("a host that is compiled for");
            let mut dispatch = prepared.dispatch(1_000_000);
            dispatch.threads = threads;
            dispatch.compiled = compiled.then_some(&jit as _);
            dispatch.order = order.groups.clone().unwrap_or(GroupOrder::Ascending);
            dispatch.schedule = order.waves.unwrap_or(Schedule::RoundRobin);
            let stats = dispatch::run(&dispatch, &prepared.memory).unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(stats.waves, 4);
            let outputs = prepared.outputs().expect("outputs");
            let outputs: Vec<Vec<u32>> = outputs.iter().map(|(_, array)| words(array)).collect();
            assert_eq!(
                outputs,
                [[10, 11, 12, 13], [46; 4]],
                "{order:?}, {threads} threads, compiled: {compiled}"
            );
        }
    }
}

/// A kernel that meets nobody starts workgroup after workgroup.
#[test]
fn only_programs_that_meet_run_together() {
    let runs_together = |text: &str| {
        let prepared = prepare(text, &setup()).expect("a kernel");
        prepared.dispatch(1).cluster_workgroups()
    };
    assert_eq!(runs_together(KERNEL), 2);
    let lines = KERNEL.lines().filter(|line| !line.contains("ds_gws"));
    assert_eq!(runs_together(&lines.collect::<Vec<_>>().join("\n")), 1);
}

/// The driver initialises a resource in a launch of its own: the device keeps it.
#[test]
fn resources_outlast_a_launch() {
    let text = |body: &str| format!("---\nout_x: u32[1]\nlocal = 32\nwave = 32\n---\n{body}\ns_endpgm\n");
    let gws = Mutex::new(Gws::default());
    let run = |body: &str| {
        let prepared = prepare(&text(body), &setup()).expect("a kernel");
        let mut dispatch = prepared.dispatch(1000);
        dispatch.gws = Some(&gws);
        dispatch::run(&dispatch, &prepared.memory).map(|_| ())
    };
    // The instruction takes the value of the lowest active lane, and M0 selects the resource, too.
    let init =
        "s_mov_b32 m0, 0x30000\ns_mov_b32 exec_lo, 0xf0\nv_add_nc_u32 v1, 1, v0\nds_gws_init v1 offset:2 gds";
    run(init).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(gws.lock().unwrap().resource(5).counter, 5);
    let take = "s_mov_b32 m0, 0\n".to_string() + &"ds_gws_sema_p offset:5 gds\n".repeat(5);
    run(&take).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(gws.lock().unwrap().resource(5).counter, 0);
    let fault = run("s_mov_b32 m0, 0\nds_gws_sema_p offset:5 gds").expect_err("nobody releases it");
    assert!(fault.to_string().contains("global wave sync resource 5"), "{fault}");
}

/// All lanes inactive: the value is lane 0's.
#[test]
fn lane_0_gives_the_value_if_no_lane_is_active() {
    let text = "---\nout_x: u32[1]\nlocal = 32\nwave = 32\n---\ns_mov_b32 m0, 0\nv_add_nc_u32 v1, 7, v0\n\
        s_mov_b32 exec_lo, 0\nds_gws_init v1 gds\ns_endpgm\n";
    let (gws, prepared) = (Mutex::new(Gws::default()), prepare(text, &setup()).expect("a kernel"));
    let mut dispatch = prepared.dispatch(1000);
    dispatch.gws = Some(&gws);
    dispatch::run(&dispatch, &prepared.memory).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(gws.lock().unwrap().resource(0).counter, 7);
}
