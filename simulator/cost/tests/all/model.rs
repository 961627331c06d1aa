//! Predictions.

use wavesim_cost::data;
use wavesim_cost::model::{Effort, History, Stall};
use wavesim_cost::profile::{self, Costs, Profile};
use wavesim_cost::report;
use wavesim_cost::what_if::Changes;
use wavesim_isa::arch::Arch;
use wavesim_loader::prepared::Prepared;
use wavesim_loader::text_kernel::{self, Options};

pub fn prepare(arch: Arch, header: &str, code: &str) -> Prepared {
    let text = format!("---\n{header}---\n{code}\n  s_endpgm\n");
    let options = Options { arch: Some(arch), ..Options::default() };
    text_kernel::prepare("k.rdna", &text, &options, 0).expect("a kernel")
}

pub fn profiled(prepared: &Prepared, changes: &str) -> Profile {
    with_effort(prepared, changes, &Effort::report(data::model().expect("a file")))
}

fn with_effort(prepared: &Prepared, changes: &str, effort: &Effort) -> Profile {
    let device = data::device_of(prepared.program.arch).expect("a device");
    let changes = Changes::parse(changes).expect("changes");
    let costs = Costs::of(device).and_then(|c| c.changed(&changes)).expect("costs");
    let dispatch = prepared.dispatch(1 << 30);
    let regions = profile::regions(prepared);
    let history = &mut History::default();
    let run = profile::run(&dispatch, &prepared.memory, &regions, &costs, effort, (history, true))
        .expect("a device");
    run.1.expect("no fault")
}

fn time() -> Effort {
    Effort::time(data::model().expect("a file"))
}

const ONE: &str = "local = 32, 1, 1\nglobal = 1, 1, 1\n";

/// A chain of dependent instructions takes their latencies.
#[test]
fn dependent_instructions_take_their_latency() {
    let chain = "  v_add_f32 v1, v1, v1\n".repeat(64);
    let clocks = |code: &str| profiled(&prepare(Arch::Rdna3, ONE, code), "").prediction.clocks;
    let free: String = (0..64).map(|n| format!("  v_add_f32 v{}, v1, v1\n", 2 + n % 100)).collect();
    let (slow, fast) = (clocks(&chain), clocks(&free));
    assert!((slow - fast - 63.0 * 4.0).abs() < 16.0, "{slow} {fast}");
    let p = profiled(&prepare(Arch::Rdna3, ONE, &chain), "");
    let stalls = profile::stalls(&p.prediction);
    assert!(stalls[Stall::Dependency.index().unwrap()] > 200.0, "{stalls:?}");
}

/// All lanes in one bank of LDS: each in a pass of its own.
#[test]
fn bank_conflicts_are_exact() {
    let passes = |shift: u32| {
        let code = format!("  v_lshlrev_b32 v1, {shift}, v0\n  ds_load_b32 v2, v1\n  s_waitcnt lgkmcnt(0)");
        let header = format!("{ONE}lds = 8192\n");
        let p = profiled(&prepare(Arch::Rdna3, &header, &code), "");
        p.rows.iter().map(|row| row.counts.passes).sum::<u64>()
    };
    // Consecutive dwords; two of each bank; all in one bank.
    assert_eq!((passes(2), passes(3), passes(7)), (1, 2, 32));
}

#[test]
fn lines_are_exact() {
    let lines = |shift: u32| {
        let code = format!(
            "  s_load_b64 s[4:5], s[0:1], 0\n  v_lshlrev_b32 v1, {shift}, v0\n  s_waitcnt lgkmcnt(0)\n  global_load_b32 v2, v1, s[4:5]\n  s_waitcnt vmcnt(0)"
        );
        let header = format!("arg_x: u32[8192] = repeat(1)\n{ONE}");
        let prepared = prepare(Arch::Rdna3, &header, &code.replace("s[0:1]", "s[3:4]"));
        let p = profiled(&prepared, "");
        let load = p.rows.iter().find(|row| prepared.program.text(row.index).starts_with("global_load"));
        load.expect("the load").counts.lines
    };
    assert!(matches!((lines(2), lines(7)), (1 | 2, 32)), "{} {}", lines(2), lines(7));
}

#[test]
fn a_prediction_is_deterministic_and_labelled() {
    let prepared = prepare(
        Arch::Rdna4,
        "local = 64, 1, 1\nglobal = 128, 1, 1\n",
        "  v_exp_f32 v1, v0\n  v_add_f32 v2, v1, v1",
    );
    let (a, b) = (profiled(&prepared, ""), profiled(&prepared, ""));
    assert_eq!(a.prediction.clocks, b.prediction.clocks);
    let program = &prepared.program;
    let (text, json, csv) =
        (report::text(&a, program, None), report::json(&a, program), report::csv(&a, program));
    let html = report::html(&a, program, "k.rdna", &[]);
    for report in [&text, &json.to_string(), &csv, &html, &report::perfetto(&a, program).to_string()] {
        assert!(report.contains("uncalibrated"), "{report}");
    }
    assert_eq!(json["schema"], "wavesim-profile-1");
}

/// A trace has a group of tracks for each SIMD of each processor, and a track for each wave that waited.
#[test]
fn traces_have_tracks_of_simds_and_waves() {
    let header = "local = 64, 1, 1\nglobal = 2, 1, 1\n";
    let prepared =
        prepare(Arch::Rdna4, header, "  v_exp_f32 v1, v0\n  v_add_f32 v2, v1, v1\n  s_barrier_signal -1");
    let profile = profiled(&prepared, "");
    let trace = report::perfetto(&profile, &prepared.program);
    let events = trace["traceEvents"].as_array().expect("events");
    let names = |what: &str| {
        let of = events.iter().filter(|event| event["name"] == what);
        Vec::from_iter(of.map(|event| event["args"]["name"].as_str().expect("a name").to_string()))
    };
    // Two workgroups of two waves each, on two processors.
    let mut groups = names("process_name");
    groups.sort();
    assert_eq!(groups, ["WGP 0 SIMD 0", "WGP 0 SIMD 1", "WGP 1 SIMD 0", "WGP 1 SIMD 1"]);
    let mut waves = names("thread_name");
    waves.sort();
    assert_eq!(waves, ["wave 0", "wave 1", "wave 2", "wave 3"]);
    let slices = events.iter().filter(|event| event["ph"] == "X");
    assert_eq!(slices.clone().count(), profile.prediction.timeline.len());
    assert!(slices.clone().all(|slice| slice["dur"].as_f64().is_some_and(|us| us > 0.0)));
    assert!(slices.clone().any(|slice| slice["args"]["instruction"] == "v_add_f32_e32 v2, v1, v1"));
}

/// A row for each executed instruction, with as many fields as the row of names.
#[test]
fn tables_are_csv() {
    let prepared = stores(4);
    let csv = report::csv(&profiled(&prepared, ""), &prepared.program);
    let mut lines = csv.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("# predicted for ")), "{csv}");
    let names: Vec<&str> = lines.next().expect("names").split(',').collect();
    assert_eq!((names[0], names[4], names[6]), ("address", "class", "clocks"));
    let rows: Vec<&str> = lines.collect();
    assert_eq!(rows.len(), prepared.program.insts.len());
    for row in rows {
        // Commas in quotes are part of a field.
        let commas = row.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
        assert_eq!(commas + 1, names.len(), "{row}");
    }
}

#[test]
fn changed_figures_change_the_prediction() {
    let code = "  v_mov_b32 v95, 0\n  s_nop 0";
    let prepared = prepare(Arch::Rdna3, "local = 32, 1, 1\nglobal = 1, 1, 1\n", code);
    let (before, after) = (profiled(&prepared, ""), profiled(&prepared, "vgprs=200"));
    assert_eq!(before.plan.occupancy.waves_of_simd, 16);
    assert_eq!(after.plan.occupancy.waves_of_simd, 7);
    let slow = profiled(&prepared, "chip.clock=1000,launch.first=100");
    assert!(slow.prediction.microseconds > 100.0);
    let device = data::device_of(Arch::Rdna3).expect("a device");
    let wrong = Changes::parse("lds.bank=3").expect("a change");
    let e = Costs::of(device).and_then(|c| c.changed(&wrong)).unwrap_err().to_string();
    assert!(e.starts_with("there is no constant `lds.bank`"), "{e}");
    assert!(Changes::parse("vgprs").unwrap_err().contains("KEY=VALUE"));
    assert!(Changes::parse("vgprs=many").unwrap_err().contains("is not a number"));
}

/// Each work-item of `groups` workgroups of one wave stores its number.
fn stores(groups: u32) -> Prepared {
    let header = format!("out_y: u32[{}]\nlocal = 64, 1, 1\nglobal = {groups}, 1, 1\n", groups * 64);
    let code = "  s_load_dwordx2 s[6:7], s[3:4], 0\n  s_lshl_b32 s5, s0, 6\n  v_add_u32 v1, s5, v0\n  \
                v_lshlrev_b32 v2, 2, v1\n  s_waitcnt lgkmcnt(0)\n  global_store_dword v2, v1, s[6:7]";
    prepare(Arch::Cdna3, &header, code)
}

/// Loads return the data of all lanes, also of lanes that load the same address.
#[test]
fn loads_return_the_data_of_each_lane() {
    let clocks = |loads: usize, changes: &str| {
        let load = "  global_load_dwordx4 v[4:7], v1, s[6:7]\n".repeat(loads);
        let code = format!(
            "  s_load_dwordx2 s[6:7], s[3:4], 0\n  v_mov_b32 v1, 0\n  s_waitcnt lgkmcnt(0)\n{load}  s_waitcnt vmcnt(0)"
        );
        let header = "arg_x: u32[64] = repeat(1)\nlocal = 64, 1, 1\nglobal = 1, 1, 1\n";
        profiled(&prepare(Arch::Cdna3, header, &code), changes).prediction.clocks
    };
    // The first ones wait for memory. 1024 bytes take 16 clocks, or 32; some instructions wait for their fetch.
    let hundred = |changes: &str| clocks(300, changes) - clocks(200, changes);
    let (fast, slow) = (hundred(""), hundred("vector-memory.return-bytes-per-clock=32"));
    assert!((fast - 1600.0).abs() < 250.0 && (slow - 3200.0).abs() < 250.0, "{fast} {slow}");
}

/// Workgroups of a die start one after another.
#[test]
fn workgroups_start_at_intervals() {
    let clocks = |interval: u32| {
        let changes = format!("launch.workgroup-interval={interval}");
        with_effort(&stores(60_000), &changes, &time()).prediction.clocks
    };
    let of_die = 10_000.0;
    assert!((clocks(50) / (50.0 * of_die) - 1.0).abs() < 0.1, "{}", clocks(50));
    assert!(clocks(1) < 0.5 * clocks(50));
}

/// The cache of a die has what its own workgroups wrote in the last launch, but not what those of other dies wrote.
#[test]
fn other_dies_have_what_they_wrote() {
    let hits = |shift: u32| {
        let header = "arg_x: u32[38464] = repeat(1)\nlocal = 64, 1, 1\nglobal = 600, 1, 1\n";
        let code = format!(
            "  s_load_dwordx2 s[6:7], s[3:4], 0\n  s_lshl_b32 s5, s0, 6\n  v_add_u32 v1, s5, v0\n  \
             v_lshlrev_b32 v2, 2, v1\n  s_waitcnt lgkmcnt(0)\n  \
             global_load_dword v3, v2, s[6:7] offset:{}\n  s_waitcnt vmcnt(0)\n  global_store_dword v2, v3, s[6:7]",
            256 * shift
        );
        let prepared = prepare(Arch::Cdna3, header, &code);
        let costs = Costs::of(data::device("mi300a").expect("a device")).expect("costs");
        let regions = profile::regions(&prepared);
        let history = &mut History::default();
        let mut run = || {
            let dispatch = prepared.dispatch(1 << 30);
            let launch = (&mut *history, true);
            let run = profile::run(
                &dispatch,
                &prepared.memory,
                &regions,
                &costs,
                &Effort::report(&costs.model),
                launch,
            )
            .expect("costs");
            let levels = run.1.expect("no fault").prediction.levels;
            levels.into_iter().find(|level| level.name == "L2").expect("a cache").hits
        };
        (run(), run())
    };
    // Of each workgroup two lines, which come from memory at first. The next workgroup is on the next die.
    let (first, second) = hits(0);
    assert!(second >= first + 200, "{first} {second}");
    let (first, second) = hits(1);
    assert!(second < first + 80, "{first} {second}");
}

/// If only the sample runs, the prediction is the same, and other workgroups leave no trace.
#[test]
fn only_the_sample_runs_if_told_so() {
    let effort = Effort { waves: 64, ..time() };
    let (whole, sampled) = (stores(4096), stores(4096));
    let a = with_effort(&whole, "", &effort).prediction;
    let b = with_effort(&sampled, "", &Effort { only: true, ..effort }).prediction;
    assert_eq!((a.microseconds, a.sample, a.instructions), (b.microseconds, b.sample, b.instructions));
    assert!(a.sample.0 < 100, "{:?}", a.sample);
    let groups = |p: &Prepared| {
        let outputs = p.outputs().expect("outputs");
        let values: Vec<f64> = outputs[0].1.values().map(|value| value.as_f64()).collect();
        values.chunks(64).filter(|group| group.iter().any(|v| *v != 0.0)).count() as u64
    };
    assert_eq!((groups(&whole), groups(&sampled)), (4096, a.sample.0));
}

/// `--what-if arch=…`: the code of one architecture with the costs of another one that has such waves.
#[test]
fn costs_of_another_architecture_need_its_waves() {
    let prepared = stores(4);
    let changed = |device: &str| {
        let changes = Changes::parse(&format!("arch={device}")).expect("a change");
        Costs::of(data::device(device).expect("a device")).and_then(|c| c.changed(&changes)).expect("costs")
    };
    assert!(changed("gfx950").check(&prepared.program, 64).is_ok());
    let e = changed("gfx1250").check(&prepared.program, 64).unwrap_err().to_string();
    assert_eq!(e, "gfx1250 is a device of cdna5; the program is for cdna3");
    let e = Costs::of(data::device("gfx950").expect("a device")).unwrap().check(&prepared.program, 64);
    assert!(e.is_err(), "only if changed");
}

/// A clause keeps the unit of its kind for one wave, even if that leaves it idle.
#[test]
fn clauses_keep_their_unit() {
    let clocks = |first: &str, between: &str| {
        let loads: String =
            (0..8).map(|n| format!("  global_load_b32 v{}, v1, s[6:7]\n{between}", 2 + n)).collect();
        let code = format!(
            "  s_load_b64 s[6:7], s[3:4], null\n  v_lshlrev_b32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n  {first}\n{loads}  s_waitcnt vmcnt(0)"
        );
        let header = "arg_x: u32[256] = repeat(1)\nlocal = 256, 1, 1\nglobal = 1, 1, 1\n";
        profiled(&prepare(Arch::Rdna3, header, &code), "").prediction.clocks
    };
    // Waves share a port. Without the clause, others issue while one does nothing for 16 clocks after each of 8 loads.
    let (with, without) = (clocks("s_clause 0xf", "  s_nop 15\n"), clocks("s_nop 0", "  s_nop 15\n"));
    assert!(with - without > 8.0 * 16.0, "{with} {without}");
    // A break after every two instructions lets them.
    let breaks = clocks("s_clause 0x20f", "  s_nop 15\n");
    assert!(breaks < with - 8.0 * 8.0, "{breaks} {with}");
    // Without gaps, nothing is idle. Only the first misses of the other waves start later.
    let slower = with - without;
    let (with, without) = (clocks("s_clause 0x7", ""), clocks("s_nop 0", ""));
    assert!(with - without < slower / 2.0, "{with} {without} {slower}");
}

/// A wave of two phases, the second of which is slower: parts of both are recorded.
#[test]
fn long_waves_are_sampled_by_phase() {
    let phase = |label: &str, inst: &str| {
        format!(
            "  s_mov_b32 s6, 20000\n{label}:\n{}  s_sub_u32 s6, s6, 1\n  s_cmp_lg_u32 s6, 0\n  s_cbranch_scc1 {label}\n",
            inst.repeat(4)
        )
    };
    let code = phase("one", "  v_add_f32 v1, v2, v3\n") + &phase("two", "  v_exp_f32 v1, v1\n");
    let prepared = prepare(Arch::Rdna3, ONE, &code);
    let of = |changes: &str, instructions: u64| {
        with_effort(&prepared, changes, &Effort { instructions, ..time() }).prediction
    };
    let (whole, sampled) = (of("", 1_000_000), of("", 65_536));
    assert_eq!((whole.windows, whole.sampling_error), (1, 0.0));
    assert!(sampled.sample.1 < 150_000 && sampled.windows > 4, "{:?} {}", sampled.sample, sampled.windows);
    assert_eq!(sampled.instructions, whole.instructions);
    let error = (sampled.clocks / whole.clocks - 1.0).abs();
    assert!(error < 0.15 && error < 2.0 * sampled.sampling_error, "{error} {}", sampled.sampling_error);
    // Parts would leave the waves of a workgroup at different barriers.
    let barriers = prepare(Arch::Rdna3, ONE, &format!("{code}  s_barrier\n"));
    let effort = Effort { instructions: 65_536, ..time() };
    assert_eq!(with_effort(&barriers, "", &effort).prediction.windows, 1);
    // Only its beginning, which says nothing of the second phase.
    let beginning = of("sample.windows=1", 65_536);
    assert!(beginning.clocks < 0.7 * whole.clocks, "{} {}", beginning.clocks, whole.clocks);
}

/// Lines that are all in one channel of memory come one after another.
#[test]
fn strides_that_keep_few_channels_busy_are_slow() {
    let clocks = |shift: u32, changes: &str| {
        let load = |n: u32| {
            let next = format!("  v_add_u32 v1, {:#x}, v1\n", 64u32 << shift);
            format!("  global_load_dword v{}, v1, s[6:7]\n{next}", 2 + n)
        };
        let code = format!(
            "  s_load_dwordx2 s[6:7], s[3:4], 0\n  v_lshlrev_b32 v1, {shift}, v0\n  s_waitcnt lgkmcnt(0)\n{}  s_waitcnt vmcnt(0)",
            (0..8).map(load).collect::<String>()
        );
        let header = "arg_x: u32[4194304] = repeat(1)\nlocal = 64, 1, 1\nglobal = 1, 1, 1\n";
        profiled(&prepare(Arch::Cdna3, header, &code), changes).prediction.clocks
    };
    // 32 KB are 128 channels of 256 bytes.
    let plain = "memory.fold-1=0,memory.fold-2=0";
    let (unit, strided) = (clocks(7, plain), clocks(15, plain));
    assert!(strided > 2.0 * unit, "{unit} {strided}");
    // A hash of the address spreads them.
    assert!(clocks(15, "") < 0.6 * strided, "{} {strided}", clocks(15, ""));
}

/// Workgroups that run at the same time are recorded in different numbers of parts, and end together all the same.
#[test]
fn parts_of_workgroups_do_not_delay_each_other() {
    let code = "  s_mov_b32 s6, 40000\none:\n  v_add_f32 v1, v2, v3\n  s_sub_u32 s6, s6, 1\n  s_cmp_lg_u32 s6, 0\n  \
                s_cbranch_scc1 one\n";
    let prepared = prepare(Arch::Rdna3, "local = 32, 1, 1\nglobal = 4, 1, 1\n", code);
    let of = |instructions: u64| with_effort(&prepared, "", &Effort { instructions, ..time() }).prediction;
    let (whole, sampled) = (of(10_000_000), of(150_000));
    assert!(whole.windows == 1 && sampled.windows > 2, "{} {}", whole.windows, sampled.windows);
    let error = (sampled.clocks / whole.clocks - 1.0).abs();
    assert!(error < 0.02, "{} {}", sampled.clocks, whole.clocks);
}

/// Returns the hits in the cache of a die, and the lines that were looked up there.
fn in_l2(prepared: &Prepared, changes: &str, effort: &Effort, history: &mut History) -> (u64, u64) {
    let changes = Changes::parse(changes).expect("changes");
    let costs = Costs::of(data::device("mi300a").expect("a device")).and_then(|c| c.changed(&changes));
    let costs = costs.expect("costs");
    let dispatch = prepared.dispatch(1 << 30);
    let regions = profile::regions(prepared);
    let run = profile::run(&dispatch, &prepared.memory, &regions, &costs, effort, (history, true));
    let levels = run.expect("costs").1.expect("no fault").prediction.levels;
    let level = levels.into_iter().find(|level| level.name == "L2").expect("a cache");
    (level.hits, level.hits + level.misses)
}

/// A table that all workgroups use does not mean that they share their other lines.
#[test]
fn a_table_for_all_is_not_sharing() {
    // 1 KB of the table, and 2 KB of its own.
    let load =
        |address: &str, n: u32| format!("  global_load_dword v9, {address}, s[6:7] offset:{}\n", 256 * n);
    let code = format!(
        "  s_load_dwordx2 s[6:7], s[3:4], 0\n  s_add_u32 s5, s0, 1\n  s_lshl_b32 s5, s5, 11\n  \
         v_lshlrev_b32 v1, 2, v0\n  v_add_u32 v2, s5, v1\n  s_waitcnt lgkmcnt(0)\n{}{}  s_waitcnt vmcnt(0)",
        (0..4).map(|n| load("v1", n)).collect::<String>(),
        (0..8).map(|n| load("v2", n)).collect::<String>(),
    );
    let header = "arg_x: u32[4194816] = repeat(1)\nlocal = 64, 1, 1\nglobal = 8191, 1, 1\n";
    let effort = Effort { waves: 160, ..time() };
    let (hits, lines) = in_l2(&prepare(Arch::Cdna3, header, &code), "", &effort, &mut History::default());
    assert!(lines > 2000 && hits * 10 < lines, "{hits} of {lines}");
}

/// What of an array another launch has just used is in the cache, the rest of the array is not.
#[test]
fn small_parts_of_arrays_are_apart() {
    let part = |offset: u32| {
        let header = "arg_x: u32[4194304] = repeat(1)\nlocal = 64, 1, 1\nglobal = 600, 1, 1\n";
        let code = format!(
            "  s_load_dwordx2 s[6:7], s[3:4], 0\n  s_lshl_b32 s5, s0, 8\n  v_lshlrev_b32 v1, 2, v0\n  \
             v_add_u32 v1, s5, v1\n  v_add_u32 v1, {offset:#x}, v1\n  s_waitcnt lgkmcnt(0)\n  \
             global_load_dword v3, v1, s[6:7]\n  s_waitcnt vmcnt(0)"
        );
        prepare(Arch::Cdna3, header, &code)
    };
    let (one, other) = (part(0), part(0x80_0000));
    let (effort, history) = (time(), &mut History::default());
    in_l2(&one, "l2=256k", &effort, history);
    let (first, _) = in_l2(&other, "l2=256k", &effort, history);
    let (again, lines) = in_l2(&other, "l2=256k", &effort, history);
    assert!(again >= first + 150 && first * 3 < lines, "{first} {again} of {lines}");
}
