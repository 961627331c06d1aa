//! Launches through the runtime API: memory, modules, arguments, faults, checks, forward progress.

use std::sync::{Arc, Mutex};
use wavesim::check::Check;
use wavesim::loader::assembly::AssemblyOptions;
use wavesim::loader::prepared::Modes;
use wavesim::loader::request::ArgumentValue;
use wavesim::sharing::Threads;
use wavesim_runtime::hostcall::Stream;
use wavesim_runtime::raw::RawLaunch;
use wavesim_runtime::{Bounds, Device, Engine, Error, HostMemory, Launch, Module, OnFault, Settings};

fn module(settings: &Settings) -> Module {
    assembled(include_str!("kernels.s"), settings)
}

fn assembled(source: &str, settings: &Settings) -> Module {
    let assembled = AssemblyOptions::default().assemble("kernels.s", source);
    let object = assembled.unwrap_or_else(|e| panic!("{}", e[0])).object;
    Device::open("gfx1100", settings).unwrap().load(&object).unwrap()
}

fn words(device: &Device, address: u64, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; 4 * count];
    device.read(address, &mut bytes).unwrap();
    bytes.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn fault(result: Result<impl std::fmt::Debug, Error>) -> String {
    match result {
        Err(Error::Fault(report)) => report.to_string(),
        other => panic!("{other:?}"),
    }
}

const ONE: Launch = Launch {
    grid: [1; 3],
    block: [32, 1, 1],
    cluster: None,
    dynamic_lds: 0,
    offset: [0; 3],
    cooperative: false,
    memory: Vec::new(),
    services: wavesim_runtime::Services {
        hostcall: 0,
        printf: 0,
        heap: 0,
        multigrid: 0,
        queue: 0,
        default_queue: 0,
        completion_action: 0,
    },
    checks: None,
    max_instructions: None,
    threads: None,
    profile: None,
};

/// The runs of `WAVESIM_EXPLORE` are on copies of memory.
#[test]
fn explored_launches_leave_memory_as_it_was() {
    let module = module(&Settings { explore: 10, ..Settings::default() });
    let (device, kernel) = (module.device(), module.kernel("count").unwrap());
    let out = device.alloc(4, "out").unwrap();
    for expected in [42, 43] {
        let one = Launch { block: [1, 1, 1], ..ONE };
        kernel.launch(&one, &out.to_le_bytes()).unwrap();
        assert_eq!(words(device, out, 1), [expected]);
    }
}

#[test]
fn device_memory_is_host_memory() {
    let module = module(&Settings::default());
    let (device, kernel) = (module.device(), module.kernel("iota").unwrap());
    let out = device.alloc(128, "out").unwrap();
    kernel.launch(&ONE, &out.to_le_bytes()).unwrap();
    assert_eq!(words(device, out, 32), (0..32).collect::<Vec<u32>>());
    assert_eq!(device.find(out + 127).map(|r| (r.address, r.len, r.mapped)), Some((out, 128, false)));
    assert_eq!(device.find(out + 128), None);

    // Host memory that is mapped for one launch only.
    let mut own = [7u32; 33];
    let address = own.as_mut_ptr() as u64;
    // SAFETY: `own` outlives the launch.
    let range = unsafe { HostMemory::new(address, own.as_mut_ptr().cast(), 128, true, "own") };
    kernel.launch(&Launch { memory: vec![range], ..ONE }, &address.to_le_bytes()).unwrap();
    assert_eq!((own[31], own[32]), (31, 7));
    let text = fault(kernel.launch(&ONE, &address.to_le_bytes()));
    assert!(text.contains("is outside every buffer") && text.contains("kernel `iota`, launch 3"), "{text}");
}

#[test]
fn accesses_beyond_the_end_and_after_free_are_faults() {
    let module = module(&Settings::default());
    let (device, kernel) = (module.device(), module.kernel("iota").unwrap());
    let small = device.alloc(100, "small").unwrap();
    let text = fault(kernel.launch(&ONE, &small.to_le_bytes()));
    assert!(text.contains("just beyond the end of small") && text.contains("lane 25"), "{text}");
    device.free(small).unwrap();
    let text = fault(kernel.launch(&ONE, &small.to_le_bytes()));
    assert!(
        text.contains("use after free: `small` (100 bytes") && text.contains("freed after launch 1"),
        "{text}"
    );
    assert_eq!(
        device.free(small).unwrap_err().to_string(),
        format!("0x{small:x} is not the address of an allocation: it has been freed already")
    );
    // Page-granular bounds, as on a GPU.
    let mut own = vec![0u32; 4096];
    let start = own.as_mut_ptr().wrapping_add((4096 - own.as_ptr() as usize % 4096) / 4);
    // SAFETY: `own` outlives the mapping, and contains the whole page at `start`.
    unsafe {
        device.map(HostMemory::new(start as u64, start.cast(), 100, true, "own")).unwrap();
        fault(kernel.launch(&ONE, &(start as u64).to_le_bytes()));
        device.set_bounds(Bounds::Pages);
    }
    kernel.launch(&ONE, &(start as u64).to_le_bytes()).unwrap();
    // SAFETY: all addresses that the kernel accesses are valid.
    unsafe { device.set_bounds(Bounds::Trust) };
    device.unmap(start as u64).unwrap();
    kernel.launch(&ONE, &(start as u64).to_le_bytes()).unwrap();
}

#[test]
fn checks_report_and_continue() {
    let settings = Settings { checks: Check::DEFAULT.to_vec(), ..Settings::default() };
    let module = module(&settings);
    let (device, kernel) = (module.device(), module.kernel("iota").unwrap());
    let small = device.alloc(100, "small").unwrap();
    let outcome = kernel.launch(&ONE, &small.to_le_bytes()).unwrap();
    let text = outcome.report.to_string();
    assert!(text.starts_with("mem: store of 4 bytes at just beyond the end of small"), "{text}");
    assert!(text.contains("kernel `iota`, launch 1") && outcome.report.findings.len() == 1, "{text}");
    let whole = device.alloc(128, "whole").unwrap();
    assert!(kernel.launch(&ONE, &whole.to_le_bytes()).unwrap().report.is_clean());
    // A launch can override the device's checks.
    let none = Launch { checks: Some(Vec::new()), ..ONE };
    assert!(fault(kernel.launch(&none, &small.to_le_bytes())).starts_with("out-of-bounds"));
}

#[test]
fn stores_to_constant_data_and_code_are_reported() {
    let settings = Settings { checks: Check::DEFAULT.to_vec(), ..Settings::default() };
    let kernel = module(&settings).kernel("overwrite_code").unwrap();
    let text = kernel.launch(&ONE, &[0; 8]).unwrap().report.to_string();
    assert!(text.contains("is to constant data or code"), "{text}");
}

#[test]
fn checks_respect_the_modes_of_the_kernel() {
    let settings = Settings { checks: Check::DEFAULT.to_vec(), ..Settings::default() };
    let module = module(&settings);
    let launch = Launch { dynamic_lds: 16, block: [1; 3], ..ONE };
    let outcome = module.kernel("unaligned").unwrap().launch(&launch, &[0; 8]).unwrap();
    assert!(outcome.report.is_clean(), "{}", outcome.report);

    // Raw code has the modes that its resource registers specify.
    let words: [u32; 4] = [
        0x7e000281, // v_mov_b32_e32 v0, 1
        0xd8340000, 0x00000000, // ds_store_b32 v0, v0
        0xbfb00000, // s_endpgm
    ];
    let mut raw = RawLaunch {
        code: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        code_address: 0x1000,
        entry: 0,
        wave_size: 32,
        grid: [1; 3],
        block: [1; 3],
        lds_bytes: 0,
        scratch_bytes: 0,
        memory_only_if_used: false,
        user_sgprs: Vec::new(),
        first_group_id: 0,
        group_ids: [true, false, false],
        item_ids: 0,
        mode: None,
        modes: Modes::default(),
        threads: Threads::Fixed(1),
        max_instructions: 100,
    };
    let device = module.device();
    let (wgp, lds) = (1 << 29, 1 << 15);
    raw.set_resources(device.target().arch, wgp, lds);
    assert_eq!(raw.modes, Modes { cu_mode: false, unaligned_lds: true });
    let outcome = device.launch_raw(&raw, &[]).unwrap();
    assert!(outcome.report.is_clean(), "{}", outcome.report);
    raw.set_resources(device.target().arch, 0, lds);
    assert_eq!(raw.modes, Modes { cu_mode: true, unaligned_lds: true });
    raw.modes = Modes::default();
    let report = device.launch_raw(&raw, &[]).unwrap().report.to_string();
    assert!(report.contains("is not aligned"), "{report}");
}

#[test]
fn variables_persist_and_belong_to_a_load() {
    let module = module(&Settings::default());
    let (device, kernel) = (module.device(), module.kernel("count").unwrap());
    let out = device.alloc(4, "out").unwrap();
    let one = Launch { block: [1; 3], ..ONE };
    for expected in [42, 43] {
        kernel.launch(&one, &out.to_le_bytes()).unwrap();
        assert_eq!(words(device, out, 1), [expected]);
    }
    let (address, size) = module.variable("counter").unwrap();
    assert_eq!((words(device, address, 1), size), (vec![43], 4));
    device.write(address, &7u32.to_le_bytes()).unwrap();
    kernel.launch(&one, &out.to_le_bytes()).unwrap();
    assert_eq!(words(device, out, 1), [8]);
    let missing = module.variable("x").unwrap_err().to_string();
    assert_eq!(missing, "the module has no variable `x`; it has `counter`");
}

/// Register files, LDS and scratch are reused, but never leak values of an earlier wave.
#[test]
fn waves_start_with_clean_state() {
    let module = assembled(include_str!("reuse.s"), &Settings::default());
    let (device, leave, look) =
        (module.device(), module.kernel("leave").unwrap(), module.kernel("look").unwrap());
    let seen = || {
        let out = device.alloc(12 * 128, "out").unwrap();
        look.launch(&ONE, &out.to_le_bytes()).unwrap();
        words(device, out, 12 * 32)
    };
    let first = seen();
    for index in [0, 1, 2, 3, 4, 5, 6, 8, 10, 11] {
        assert_eq!(first[32 * index..][..32], [0; 32], "value {index}");
    }
    assert_eq!((first[32 * 7], first[32 * 9]), (0x3c0, u32::MAX));
    // Larger, smaller and equal workgroups, on one thread and on two.
    for (grid, items, threads) in [(1, 32, 1), (3, 256, 1), (5, 64, 2), (1, 1, 1), (40, 1024, 2)] {
        let launch = Launch { threads: Some(threads), ..Launch::new([grid, 1, 1], [items, 1, 1]) };
        leave.launch(&launch, &[0; 8]).unwrap();
        assert_eq!(seen(), first, "after {grid} workgroups of {items}");
    }
}

#[test]
fn workgroups_that_wait_for_later_ones_complete() {
    let module = module(&Settings::default());
    let (device, kernel) = (module.device(), module.kernel("wait_for_fourth").unwrap());
    for (cooperative, threads) in [(false, 1), (true, 1), (true, 2)] {
        let flag = device.alloc(4, "flag").unwrap();
        let launch = Launch { cooperative, threads: Some(threads), ..Launch::new([8, 1, 1], [32, 1, 1]) };
        let outcome = kernel.launch(&launch, &flag.to_le_bytes()).unwrap();
        assert_eq!(outcome.stats.waves, 8);
        assert_eq!(words(device, flag, 1), [1]);
    }
}

#[test]
fn device_limits_match_the_architecture() {
    let of = |name: &str| {
        let device = Device::open(name, &Settings::default()).unwrap();
        let target = device.target();
        let (lds, all) = (target.lds_bytes() >> 10, target.processor_lds_bytes() >> 10);
        (target.processor_name(), target.wave_size(), lds, all)
    };
    assert_eq!(of("gfx1100"), ("gfx1100", 32, 64, 128));
    assert_eq!(of("rdna4"), ("gfx1201", 32, 64, 128));
    assert_eq!(of("gfx942:sramecc+:xnack-"), ("gfx942", 64, 64, 64));
    assert_eq!(of("cdna4"), ("gfx950", 64, 160, 160));
}

#[test]
fn trace_errors_name_the_directory() {
    let settings = Settings { trace: Some("/dev/null/traces".into()), ..Settings::default() };
    let (module, memory) = (module(&settings), [0; 8]);
    let error = module.kernel("iota").unwrap().launch(&ONE, &memory).unwrap_err().to_string();
    assert!(error.starts_with("the trace /dev/null/traces: "), "{error}");
}

#[test]
fn invalid_launches_are_errors() {
    let module = module(&Settings::default());
    let kernel = module.kernel("iota").unwrap();
    let wrong = |launch: Launch, arguments: &[u8]| kernel.launch(&launch, arguments).unwrap_err().to_string();
    let large = wrong(Launch::new([1; 3], [1025, 1, 1]), &[0; 8]);
    assert_eq!(large, "a workgroup of [1025, 1, 1] work-items: 1 to 1024 are possible");
    let lds = wrong(Launch { dynamic_lds: 1 << 20, ..ONE }, &[0; 8]);
    assert_eq!(lds, "1048576 bytes of LDS: a workgroup has at most 65536");
    let missing = kernel.lay_out(&[]).unwrap_err().to_string();
    assert!(missing.starts_with("arguments are missing"), "{missing}");
    let name = |name: &str| (name.to_string(), ArgumentValue::Bytes(vec![0; 8]));
    assert_eq!(kernel.lay_out(&[name("out")]).unwrap(), (vec![0; 8], 0));
    let many = kernel.lay_out(&[name("out"), name("more")]).unwrap_err().to_string();
    assert!(many.starts_with("argument more: it ends at byte 16"), "{many}");
    let none = module.kernel("nothing").err().unwrap().to_string();
    assert!(none.starts_with("no kernel `nothing`; the code object has `count`, `iota`"), "{none}");
    let limit = fault(kernel.launch(&Launch { max_instructions: Some(2), ..ONE }, &[0; 8]));
    assert!(limit.starts_with("instruction-limit"), "{limit}");
    let other = Device::open("gfx1201", &Settings::default()).unwrap();
    let object = AssemblyOptions::default().assemble("kernels.s", include_str!("kernels.s")).unwrap().object;
    assert!(other.load(&object).err().unwrap().to_string().contains("the device is rdna4"));
}

#[test]
fn workgroup_size_is_limited_by_kernel_metadata() {
    let object = include_bytes!("../../../tests/filetests/code_objects/vadd/vadd.gfx1100.co");
    let kernel = Device::open("gfx1100", &Settings::default()).unwrap().load(object).unwrap();
    let kernel = kernel.kernel("vadd").unwrap();
    assert_eq!(kernel.max_block_items(), 256);
    // The kernel returns immediately, because n is 0.
    let launch = |block| kernel.launch(&Launch::new([1; 3], block), &[0; 28]);
    assert_eq!(launch([32, 8, 1]).unwrap().stats.waves, 8);
    assert_eq!(
        launch([257, 1, 1]).unwrap_err().to_string(),
        "a workgroup of [257, 1, 1] work-items: the kernel was compiled for at most 256 (.max_flat_workgroup_size)"
    );
}

#[test]
fn launches_can_be_cancelled() {
    for checks in [Vec::new(), Check::DEFAULT.to_vec()] {
        let module = module(&Settings { checks, ..Settings::default() });
        // The only workgroup waits for the fourth.
        let (device, kernel) = (module.device(), module.kernel("wait_for_fourth").unwrap());
        let flag = device.alloc(4, "flag").unwrap();
        // Launches that have not started are not cancelled.
        device.cancel();
        std::thread::scope(|scope| {
            let launch = scope.spawn(|| fault(kernel.launch(&ONE, &flag.to_le_bytes())));
            while !launch.is_finished() {
                device.cancel();
                std::thread::yield_now();
            }
            let text = launch.join().unwrap();
            assert!(text.starts_with("interrupted: stopped after") && text.contains("launch 1"), "{text}");
        });
        kernel.launch(&Launch::new([4, 1, 1], [1; 3]), &flag.to_le_bytes()).unwrap();
    }
}

/// Checks keep separate state for the waves of workgroups that are scheduled alternately.
#[test]
fn checked_workgroups_that_wait_for_later_ones_complete() {
    let settings = Settings { checks: Check::DEFAULT.to_vec(), ..Settings::default() };
    let module = assembled(include_str!("turns.s"), &settings);
    let (device, kernel) = (module.device(), module.kernel("turns").unwrap());
    let out = device.alloc(4 + 4 * 256, "out").unwrap();
    let launch = Launch { cooperative: true, ..Launch::new([4, 1, 1], [64, 1, 1]) };
    let outcome = kernel.launch(&launch, &out.to_le_bytes()).unwrap();
    assert!(outcome.report.is_clean(), "{}", outcome.report);
    assert_eq!(words(device, out + 4, 256), (0..256).map(|n| 1000 + n).collect::<Vec<u32>>());
    assert_eq!((outcome.stats.waves, words(device, out, 1)[0]), (8, 0));
    // An uninitialised register is still reported after another workgroup has run.
    let kernel = module.kernel("turns_undefined").unwrap();
    let report = kernel.launch(&launch, &out.to_le_bytes()).unwrap().report;
    assert_eq!(report.findings.len(), 1, "{report}");
    let text = report.to_string();
    assert!(text.starts_with("init: v7 is undefined") || text.starts_with("init: "), "{text}");
}

#[test]
fn two_threads_launch_concurrently() {
    let module = module(&Settings::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (device, kernel) = (module.device(), module.kernel("iota").unwrap());
                for _ in 0..50 {
                    let out = device.alloc(128, "out").unwrap();
                    kernel.launch(&ONE, &out.to_le_bytes()).unwrap();
                    assert_eq!(words(device, out, 32)[31], 31);
                    device.free(out).unwrap();
                }
            });
        }
    });
    assert_eq!(module.device().launches(), 100);
}

#[test]
fn kernels_print_and_allocate() {
    let device = Device::open("gfx1100", &Settings::default()).unwrap();
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    device.print_to(Arc::new(move |to, bytes| {
        // The thread that serves hostcalls must not panic.
        let stream = if to == Stream::Output { "" } else { "error: " };
        *sink.lock().unwrap() += &format!("{stream}{}", String::from_utf8_lossy(bytes));
    }));
    let module = device.load(include_bytes!("../../hip/tests/prebuilt/features.o")).unwrap();
    module.kernel("_Z4talkv").unwrap().launch(&ONE, &[]).unwrap();
    assert_eq!(*printed.lock().unwrap(), "block 0, thread   1: text 0.25 x %\n");

    // Linked lists on the device heap.
    let lists = module.kernel("_Z5listsPi").unwrap();
    let out = device.alloc(128, "out").unwrap();
    for _ in 0..2 {
        lists.launch(&ONE, &out.to_le_bytes()).unwrap();
        let sum = |id: u32| (0..id % 5).map(|k| k + id).sum::<u32>();
        assert_eq!(words(&device, out, 32), (0..32).map(sum).collect::<Vec<_>>());
    }
}

/// Launches that fault while waves print do not leak hostcall packets.
#[test]
fn failed_launches_release_packets() {
    let device = Device::open("gfx1100", &Settings::default()).unwrap();
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    device.print_to(Arc::new(move |_, bytes| *sink.lock().unwrap() += &String::from_utf8_lossy(bytes)));
    let module = device.load(include_bytes!("../../hip/tests/prebuilt/features.o")).unwrap();
    let talk = module.kernel("_Z4talkv").unwrap();
    let many = Launch::new([1, 1, 1], [1024, 1, 1]);
    for _ in 0..4 {
        let short = Launch { max_instructions: Some(150), ..many.clone() };
        assert!(matches!(talk.launch(&short, &[]), Err(Error::Fault(_))));
    }
    printed.lock().unwrap().clear();
    talk.launch(&Launch { max_instructions: Some(50_000_000), ..many }, &[]).unwrap();
    assert!(printed.lock().unwrap().contains("block 0, thread   1: text 0.25 x %\n"));
}

#[test]
fn argument_size_is_checked() {
    let module = module(&Settings::default());
    let (device, kernel) = (module.device(), module.kernel("iota").unwrap());
    let out = device.alloc(128, "out").unwrap();
    let launch = |bytes: &[u8]| kernel.launch(&ONE, bytes).map(drop).map_err(|e| e.to_string());
    // Structures in C have trailing padding.
    let padded = [out.to_le_bytes(), [0; 8]].concat();
    assert_eq!(launch(&padded), Ok(()));
    assert_eq!(
        launch(&[&padded[..], &[0]].concat()),
        Err("17 bytes of arguments were given, but the kernarg segment has 8".to_string())
    );
}

#[test]
fn compiled_code_gives_the_same_results() {
    for engine in [Engine::Jit, Engine::Auto] {
        let settings = Settings { engine, ..Settings::default() };
        let module = assembled(include_str!("turns.s"), &settings);
        let (device, kernel) = (module.device(), module.kernel("turns").unwrap());
        let out = device.alloc(4 + 4 * 256, "out").unwrap();
        let launch = Launch { cooperative: true, ..Launch::new([4, 1, 1], [64, 1, 1]) };
        // Enough launches to trigger compilation, so that later launches find the code in the cache.
        for _ in 0..50 {
            match kernel.launch(&launch, &out.to_le_bytes()) {
                Err(Error::Engine(e)) => return println!("skipped: {e}"),
                other => assert_eq!(other.unwrap().stats.waves, 8),
            }
            assert_eq!(words(device, out + 4, 256), (0..256).map(|n| 1000 + n).collect::<Vec<u32>>());
        }
        assert!(engine == Engine::Auto || device.compiled_units() > 0);
    }
}

/// Repeats all tests of this binary with compiled code, on hosts with AVX2.
#[test]
#[cfg(target_arch = "x86_64")]
fn all_pass_with_compiled_code() {
    if std::is_x86_feature_detected!("avx2") {
        wavesim_golden::run_again("WAVESIM_ENGINE", "jit");
    }
}

/// A child of the process that opened the device has none of its threads.
#[test]
#[cfg(unix)]
fn forked_processes_get_an_error() {
    let module = module(&Settings::default());
    let kernel = module.kernel("iota").unwrap();
    let out = module.device().alloc(128, "out").unwrap();
    // SAFETY: the child only makes a call that fails early, and then ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = matches!(kernel.launch(&ONE, &out.to_le_bytes()), Err(Error::Forked));
        // A device of its own is opened in the child.
        let own = Device::open("gfx1100", &Settings::default()).is_ok_and(|d| d.check_process().is_ok());
        // SAFETY: ends the child without running exit handlers.
        unsafe { libc::_exit(if refused && own { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for writes.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
    kernel.launch(&ONE, &out.to_le_bytes()).unwrap();
}

#[test]
fn faults_can_be_reported_only() {
    let settings = Settings { on_fault: OnFault::Continue, ..Settings::default() };
    let module = module(&settings);
    let (device, kernel) = (module.device(), module.kernel("iota").unwrap());
    // The store of lane 25 is outside of the buffer.
    let small = device.alloc(100, "small").unwrap();
    let outcome = kernel.launch(&ONE, &small.to_le_bytes()).unwrap();
    assert!(outcome.report.is_clean());
    let whole = device.alloc(128, "whole").unwrap();
    kernel.launch(&ONE, &whole.to_le_bytes()).unwrap();
    assert_eq!(words(device, whole, 32), (0..32).collect::<Vec<u32>>());
}

#[test]
fn unknown_names_are_reported_with_at_most_ten_others() {
    let kernel = |n| format!("  .p2align 8\nkernel{n}:\n  s_endpgm\n");
    let descriptor = |n| {
        format!(
            "  .p2align 6\n  .amdhsa_kernel kernel{n}\n  .amdhsa_next_free_vgpr 1\n  .amdhsa_next_free_sgpr 1\n  .end_amdhsa_kernel\n"
        )
    };
    let code: String = (0..50).map(kernel).collect();
    let descriptors: String = (0..50).map(descriptor).collect();
    let module = assembled(&format!("{code}  .rodata\n{descriptors}"), &Settings::default());
    let error = |name| module.kernel(name).map(drop).unwrap_err().to_string();
    let text = error("kernel77");
    assert!(text.starts_with("no kernel `kernel77`; the code object has `kernel"), "{text}");
    assert!(
        text.ends_with(" and 40 more") && text.matches('`').count() == 22 && !text.contains('\n'),
        "{text}"
    );
    assert!(error("kernel4l").contains("has `kernel4"), "{}", error("kernel4l"));
    let text = module.only_kernel().map(drop).unwrap_err().to_string();
    assert!(text.contains(" and 40 more"), "{text}");
}

/// The process aborts, so the test runs itself in a child process.
#[test]
#[cfg(unix)]
fn faults_can_abort() {
    const CHILD: &str = "WAVESIM_TEST_ABORT";
    if std::env::var_os(CHILD).is_some() {
        let settings = Settings { on_fault: OnFault::Abort, ..Settings::default() };
        let _ = module(&settings).kernel("iota").unwrap().launch(&ONE, &[0; 8]);
        return;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", "faults_can_abort", "--nocapture"]).env(CHILD, "1").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("wavesim: out-of-bounds: store") && errors.contains("kernel `iota`"), "{errors}");
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, Some(libc::SIGABRT), "{errors}");
}

/// Memory is undefined until the host or a launch writes it, byte by byte.
#[test]
fn uses_of_undefined_memory_are_findings() {
    let settings = Settings { checks: Check::DEFAULT.to_vec(), ..Settings::default() };
    let module = module(&settings);
    let device = module.device();
    let (iota, transfer) = (module.kernel("iota").unwrap(), module.kernel("transfer").unwrap());
    let copied = |from: u64, to: u64| {
        let arguments = [from.to_le_bytes(), to.to_le_bytes()].concat();
        let outcome = transfer.launch(&ONE, &arguments).unwrap();
        outcome.report.findings.iter().map(|f| f.to_string()).collect::<Vec<_>>().join("\n")
    };
    let alloc = || device.alloc_undefined(128, "buffer").unwrap();
    let (first, second) = (alloc(), alloc());
    let found = copied(first, second);
    assert!(
        found.contains("mem: v2 is used in lane 0, but the bytes it was loaded from were never written"),
        "{found}"
    );
    // An earlier launch has written all of it.
    iota.launch(&ONE, &first.to_le_bytes()).unwrap();
    assert_eq!(copied(first, second), "");
    // The host has written all bytes but one.
    let third = alloc();
    device.write(third, &[1; 41]).unwrap();
    device.record_write(third + 42, 86);
    let found = copied(third, second);
    assert!(found.contains("in lane 10,"), "{found}");
    // A copy by the host moves undefined bytes, too.
    device.record_copy(first, third, 128);
    assert!(copied(first, second).contains("in lane 10,"));
    device.record_write(first + 41, 1);
    assert_eq!(copied(first, second), "");
    // Ordinary allocations are zeroed.
    assert_eq!(copied(device.alloc(128, "zero").unwrap(), second), "");
}
