//! The figure of `wavesim explore`: of the planted races, missing waits and missing cache controls that can change a
//! result, how many it shows.

use std::collections::BTreeMap;
use std::path::Path;
use wavesim::delayed::{DelayedMemory, Delays};
use wavesim::explore::choice::{Follow, run};
use wavesim::explore::machine::Machine;
use wavesim::explore::outcome::Outcome;
use wavesim::explore::pct::Pct;
use wavesim::loader::compare::Tolerance;
use wavesim::loader::text_kernel::{self, Options};
use wavesim::sched::dispatch;
use wavesim::sched::poison::Poison;
use wavesim_tests::root;

/// Executions of a kernel whose error can change a result, at most.
const MOST: u64 = 10_000;
/// Executions of clean kernels, and of those whose error cannot change a result.
const SOME: u64 = 60;
/// Orderings for which schedules are made.
const DEPTH: u32 = 3;
/// Errors that are shown, at least.
const LEAST: usize = 84;
const TOLERANCE: Tolerance = Tolerance { rtol: 0.0, atol: 0.0 };

/// Kernels whose error changes no result, without what follows the architecture and the size of waves in their names.
const UNCHANGED: &[(&str, &str)] = &[
    ("race_bytes", "the kernel has no output"),
    ("race_bytes_scattered", "the kernel has no output"),
    ("race_discarded_later", "what is loaded too early or too late reaches no output"),
    ("race_first_touch", "nothing has brought the old bytes into the cache"),
    ("race_flag", "what is loaded too early or too late reaches no output"),
    ("race_flag_no_acquire", "nothing has brought the old bytes into the cache"),
    ("race_lds_flag", "what is loaded too early or too late reaches no output"),
    ("race_lds_flag_once", "what is loaded too early or too late reaches no output"),
    ("race_other_flag", "what is loaded too early or too late reaches no output"),
    ("race_own_scalar", "what is loaded too early or too late reaches no output"),
    ("race_release_scope", "what is loaded too early or too late reaches no output"),
    ("race_same_value", "both waves store the same value"),
    ("race_same_value_at_end_of_lds", "both waves store the same value"),
    ("race_scalar", "what is loaded too early or too late reaches no output"),
    ("race_split_barrier", "what is loaded too early or too late reaches no output"),
    ("race_stale_scalar_cache", "what is loaded too early or too late reaches no output"),
    ("race_swap_loop", "the swap is repeated until the value that was loaded is the present one"),
    ("race_workgroup_lds", "both waves store the same value"),
    ("waits_any_order", "what is loaded too early or too late reaches no output"),
    ("waits_cache", "what is loaded too early or too late reaches no output"),
    ("waits_counts", "what is loaded too early or too late reaches no output"),
    ("waits_flat_rdna4", "what is loaded too early or too late reaches no output"),
    ("waits_flat_store", "what is loaded too early or too late reaches no output"),
    ("waits_high_registers", "what is loaded too early or too late reaches no output"),
    ("waits_message", "what is loaded too early or too late reaches no output"),
    ("waits_pointer", "what is loaded too early or too late reaches no output"),
    ("waits_relative", "what is loaded too early or too late reaches no output"),
    ("waits_scratch", "what is loaded too early or too late reaches no output"),
    ("waits_twice", "what is loaded too early or too late reaches no output"),
    ("waits_write_order", "what is loaded too early or too late reaches no output"),
];

/// Errors that hardware can show in a result, and the exploration does not.
const NOT_SHOWN: &[(&str, &str)] = &[(
    "waits_half_load_cdna3",
    "whether a load into one half of a register writes the other half depends on ECC",
)];

/// Kernels without errors whose results depend on the order.
const ORDERED: &[(&str, &str)] = &[
    ("clean_flag", "a workgroup reads the flag once, and does not test it"),
    ("clean_flag_rdna4_wave64", "a workgroup reads the flag once, and does not test it"),
    ("clean_flag_wave64", "a workgroup reads the flag once, and does not test it"),
    ("clean_ticket", "the workgroup that comes last stores the sum in its own element"),
    ("clean_ticket_rdna4", "the workgroup that comes last stores the sum in its own element"),
    ("clean_ticket_rdna4_wave64", "the workgroup that comes last stores the sum in its own element"),
    ("clean_ticket_wave64", "the workgroup that comes last stores the sum in its own element"),
];

/// Returns the number of the first execution, from 1, whose outcome is another one than that of a plain run.
fn first_difference(path: &Path, most: u64) -> Option<u64> {
    let source = std::fs::read_to_string(path).unwrap();
    let name = path.display().to_string();
    let prepared = text_kernel::prepare(&name, &source, &Options::default(), 0).unwrap();
    // A workgroup may wait for a later one.
    let plain = prepared.dispatch(1 << 26);
    let expected = Outcome::of_run(&prepared, dispatch::run(&plain, &prepared.memory));
    let prepared = text_kernel::prepare(&name, &source, &Options::default(), 0).unwrap();
    let model = DelayedMemory::new(&prepared.program, prepared.shape.wave_size, Delays::Demanded).unwrap();
    let mut dispatch = prepared.dispatch(1 << 20);
    dispatch.delayed = Some(&model);
    dispatch.poison = Some(Poison(1));
    let mut machine = Machine::new(&prepared, &dispatch).unwrap();
    let steps = run(&mut machine, &mut Follow::new(&[]), 10_000).steps;
    let limit = (steps * 20).max(10_000);
    (0..most)
        .find(|seed| {
            let mut pct = Pct::new(*seed, machine.threads(), steps, DEPTH).with_delays();
            let end = run(&mut machine, &mut pct, limit).end.unwrap();
            expected.difference(&Outcome::read(&prepared, end), TOLERANCE).is_some()
        })
        .map(|seed| seed + 1)
}

/// The name of a kernel without its architecture and its size of waves.
fn family(name: &str) -> &str {
    let name = name.strip_suffix("_wave64").or(name.strip_suffix("_wave32")).unwrap_or(name);
    name.strip_suffix("_rdna4").unwrap_or(name)
}

fn reason<'r>(list: &[(&str, &'r str)], name: &str) -> Option<&'r str> {
    list.iter().find(|(known, _)| *known == name || *known == family(name)).map(|(_, reason)| *reason)
}

#[test]
fn planted_errors_change_results_and_clean_kernels_have_one() {
    let mut kernels: BTreeMap<String, std::path::PathBuf> = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("tests/filetests/check")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let chosen = ["race_", "waits_", "clean_"].iter().any(|kind| name.starts_with(kind));
        // Clusters of dozens of waves and thousands of workgroups take long, workgroups that meet in global wave sync
        // are not explored, and one kernel needs an option.
        let left_out = ["cluster", "5000_groups", "_gws"].iter().any(|part| name.contains(part));
        let chosen = chosen && !left_out && name != "waits_scalar_rdna4";
        if chosen && path.extension().is_some_and(|e| e == "rdna") {
            kernels.insert(name, path);
        }
    }
    let (mut shown, mut missed, mut wrong) = (0, Vec::new(), Vec::new());
    for (name, path) in &kernels {
        let clean = name.starts_with("clean_");
        let may_not = if clean {
            ORDERED.iter().all(|(known, _)| known != name)
        } else {
            reason(UNCHANGED, name).is_some()
        };
        let not_shown = reason(NOT_SHOWN, name).is_some();
        let most = if may_not || not_shown { SOME } else { MOST };
        match (first_difference(path, most), may_not) {
            (Some(run), true) => wrong.push(format!("{name} differs in execution {run}")),
            (Some(_), false) if not_shown => wrong.push(format!("{name} is shown: remove it from the list")),
            (Some(_), false) => shown += usize::from(!clean),
            (None, true) => {}
            (None, false) if clean => wrong.push(format!("{name} does not depend on the order")),
            (None, false) => {
                missed.push(name.as_str());
                if !not_shown {
                    wrong.push(format!("{name} does not differ in {most} executions"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all = shown + missed.len();
    // The others are those of NOT_SHOWN.
    println!("{shown} of {all} errors that can change a result are shown; not: {missed:?}");
    assert!(shown >= LEAST, "{shown} of {all}; not shown: {missed:?}");
}
