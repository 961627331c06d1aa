//! Clusters of workgroups (CDNA 5): ids, residency, and the barrier of the cluster, in every order, with threads,
//! interpreted, compiled and observed.

use wavesim::arch::Arch;
use wavesim::jit::Jit;
use wavesim::sched::dispatch::{self, DispatchError, GroupOrder, Schedule};
use wavesim::sched::order::Choice;
use wavesim_tests::{Setup, prepare, words};

/// A grid of 4 x 6 workgroups in clusters of 2 x 2. Each stores its number plus 100, and after the barrier the sum of
/// those of its cluster.
const KERNEL: &str = include_str!("../../filetests/check/clean_cluster_cdna5.rdna");

fn setup() -> Setup {
    Setup { arch: Arch::Cdna5, wave: Some(32), ..Setup::default() }
}

fn expected() -> [Vec<u32>; 3] {
    let numbers = || (0..24u32).map(|n| (n % 4, n / 4));
    let sum = |(x, y): (u32, u32)| {
        let first = (y & !1) * 4 + (x & !1);
        4 * (100 + first) + 1 + 4 + 5
    };
    [(100..124).collect(), numbers().map(sum).collect(), numbers().map(|(x, y)| x % 2 + y % 2 * 2).collect()]
}

#[test]
fn workgroups_of_a_cluster_run_together() {
    let orders = ["ascending", "reverse", "random:3", "groups:5,0"];
    for order in orders {
        let order: Choice = order.parse().expect("an order");
        for (threads, compiled) in [(1, false), (3, false), (1, true), (2, true)] {
            let prepared = prepare(KERNEL, &setup()).expect("a kernel");
            let jit = Jit::checked(&prepared.program, 0).expect("a host that is compiled for");
            let mut dispatch = prepared.dispatch(1_000_000);
            dispatch.threads = threads;
            dispatch.compiled = compiled.then_some(&jit as _);
            dispatch.order = order.groups.clone().unwrap_or(GroupOrder::Ascending);
            dispatch.schedule = order.waves.unwrap_or(Schedule::RoundRobin);
            let stats = dispatch::run(&dispatch, &prepared.memory).unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(stats.waves, 48);
            let outputs = prepared.outputs().expect("outputs");
            let outputs: Vec<Vec<u32>> = outputs.iter().map(|(_, array)| words(array)).collect();
            assert_eq!(outputs, expected(), "{order:?}, {threads} threads, compiled: {compiled}");
        }
    }
}

#[test]
fn clusters_divide_the_grid() {
    let with = |from: &str, to: &str| {
        let prepared = prepare(&KERNEL.replace(from, to), &setup()).expect("a kernel");
        prepared.dispatch(1000).check()
    };
    let grid = with("global = 4, 6, 1", "global = 4, 5, 1");
    assert_eq!(grid, Err(DispatchError::ClusterGrid { grid: [4, 5, 1], cluster: [2, 2, 1] }));
    let large = with("cluster = 2, 2, 1", "cluster = 4, 6, 1");
    assert!(matches!(large, Err(DispatchError::Cluster { most: 16, .. })));
    assert_eq!(with("cluster = 2, 2, 1", "cluster = 4, 3, 1"), Ok(()));
}

/// A cluster of one workgroup is none.
#[test]
fn without_clusters_the_barrier_of_the_cluster_does_nothing() {
    let kernel = "---\narch = cdna5\nout_x: u32[2]\nlocal = 64\nglobal = 2\nwave = 32\n---\n\
        s_load_b64 s[4:5], s[3:4], 0\ns_barrier_wait -3\ns_getreg_b32 s8, hwreg(28)\ns_lshl_b32 s9, s0, 2\n\
        v_mov_b32 v1, s9\nv_mov_b32 v2, s8\ns_wait_kmcnt 0\nglobal_store_b32 v1, v2, s[4:5]\ns_endpgm\n";
    let out = wavesim_tests::run(kernel, &setup()).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(out.values().map(words).collect::<Vec<_>>(), [[0, 0]]);
}
