//! Tests of every API call with valid and invalid arguments. Invalid arguments are errors and never crash the
//! process.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use wavesim_capi::wavesim_status::*;
use wavesim_capi::*;

/// Machine code, as assembled by `wavesim asm` from the text in the comments.
const STORE: [u32; 7] = [
    0xf4040100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], null
    0xbf89fc07, // s_waitcnt lgkmcnt(0)
    0xdc6a0000, 0x00040000, // global_store_b32 v0, v0, s[4:5]
    0xbfb00000, // s_endpgm
    0,
];
const END: u32 = 0xbfb0_0000;

fn last() -> String {
    // SAFETY: the text is valid until the next call.
    unsafe { CStr::from_ptr(wavesim_last_error()) }.to_str().expect("UTF-8").to_string()
}

fn launch_of(code: &[u32]) -> wavesim_launch {
    wavesim_launch { code: code.as_ptr().cast(), code_bytes: size_of_val(code) as u64, ..Default::default() }
}

fn device(target: &CStr) -> wavesim_device {
    let mut device = 0;
    // SAFETY: both pointers are valid.
    assert_eq!(unsafe { wavesim_device_create(target.as_ptr(), &mut device) }, WAVESIM_OK);
    device
}

fn map<T>(device: wavesim_device, slice: &mut [T], writable: bool) -> wavesim_status {
    let host = slice.as_mut_ptr();
    // SAFETY: the tests keep the memory alive while they use the device.
    unsafe { wavesim_device_map(device, host as u64, host.cast(), size_of_val(slice) as u64, writable) }
}

fn run(device: wavesim_device, launch: &wavesim_launch) -> (wavesim_status, wavesim_outcome) {
    let mut outcome = wavesim_outcome::default();
    // SAFETY: both pointers are valid.
    let status = unsafe { wavesim_device_launch(device, launch, &mut outcome) };
    (status, outcome)
}

fn asm(code: &[u32], grid: [u32; 3], block: [u32; 3], args: *const u64) -> i32 {
    let ([gx, gy, gz], [lx, ly, lz]) = (grid, block);
    // SAFETY: the code is valid, and writes only to memory that the test has mapped.
    unsafe {
        run_asm(code.as_ptr().cast(), size_of_val(code) as u32, gx, gy, gz, lx, ly, lz, args.cast_mut())
    }
}

#[test]
fn versions() {
    assert_eq!(wavesim_abi_version(), WAVESIM_ABI_VERSION);
    // SAFETY: the function returns a static string.
    assert_eq!(unsafe { CStr::from_ptr(wavesim_version()) }.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

#[test]
fn invalid_pointers_are_errors() {
    let mut handle = 0;
    let wild = 0x10 as *const c_char;
    // SAFETY: the library rejects unmapped pointers.
    let create = |target, handle| unsafe { wavesim_device_create(target, handle) };
    assert_eq!(create(null(), &mut handle), WAVESIM_BAD_ARGUMENT);
    assert_eq!(last(), "target is null");
    assert_eq!(create(wild, &mut handle), WAVESIM_BAD_ARGUMENT);
    assert_eq!(last(), "target: 1 bytes at 0x10 are not all readable in this process");
    assert_eq!(create(c"gfx900".as_ptr(), &mut handle), WAVESIM_BAD_ARGUMENT);
    assert!(
        last().starts_with(
            "`gfx900` is not a target; targets are rdna3, rdna3.5, rdna4, cdna3, cdna4, cdna5, gfx1100"
        ),
        "{}",
        last()
    );
    assert_eq!(create(c"\xff".as_ptr(), &mut handle), WAVESIM_BAD_ARGUMENT);
    assert_eq!(create(c"rdna3".as_ptr(), null_mut()), WAVESIM_BAD_ARGUMENT);
    assert_eq!(create(c"rdna3".as_ptr(), c"read only".as_ptr() as *mut u64), WAVESIM_BAD_ARGUMENT);
    assert!(last().contains("not all writable"), "{}", last());
    let device = device(c"rdna3");
    // SAFETY: as above.
    unsafe {
        let map = |host: u64, len| wavesim_device_map(device, 0x1000, host as *mut c_void, len, true);
        assert_eq!(map(0, 16), WAVESIM_BAD_ARGUMENT);
        assert_eq!(map(0x10, 16), WAVESIM_BAD_ARGUMENT);
        assert_eq!(map(&raw mut handle as u64, u64::MAX), WAVESIM_BAD_ARGUMENT);
        assert_eq!(wavesim_launch_init(null_mut()), WAVESIM_BAD_ARGUMENT);
        assert_eq!(wavesim_device_launch(device, null(), null_mut()), WAVESIM_BAD_ARGUMENT);
        assert_eq!(wavesim_device_launch(device, 0x10 as *const _, null_mut()), WAVESIM_BAD_ARGUMENT);
        assert_eq!(wavesim_device_launch_object(device, null(), null_mut()), WAVESIM_BAD_ARGUMENT);
        let launch = launch_of(&[END]);
        assert_eq!(wavesim_device_launch(device, &launch, 0x10 as *mut _), WAVESIM_BAD_ARGUMENT);
        assert_eq!(wavesim_device_launch(device, &launch, null_mut()), WAVESIM_OK);
        assert_eq!(last(), "");
        assert_ne!(run_asm(null(), 4, 1, 1, 1, 1, 1, 1, null_mut()), 0);
        assert_eq!(last(), "lib is null");
        assert_ne!(run_asm(wild, 4, 1, 1, 1, 1, 1, 1, null_mut()), 0);
        assert_ne!(run_asm([END].as_ptr().cast(), u32::MAX, 1, 1, 1, 1, 1, 1, null_mut()), 0);
    }
    assert_eq!(wavesim_device_destroy(device), WAVESIM_OK);
}

#[test]
fn stale_handles_are_errors() {
    let gone = device(c"gfx1201");
    assert_eq!(wavesim_device_destroy(gone), WAVESIM_OK);
    for handle in [gone, 0, u64::MAX] {
        assert_eq!(wavesim_device_destroy(handle), WAVESIM_BAD_ARGUMENT);
        assert_eq!(last(), format!("there is no device {handle}"));
        assert_eq!(wavesim_device_unmap(handle, 0), WAVESIM_BAD_ARGUMENT);
        assert_eq!(run(handle, &launch_of(&[END])).0, WAVESIM_BAD_ARGUMENT);
    }
}

#[test]
fn invalid_launches_are_errors() {
    let device = device(c"rdna3");
    let good = launch_of(&STORE);
    let odd = wavesim_launch { code_bytes: 6, ..good };
    let empty = wavesim_launch { code_bytes: 0, ..good };
    let invalid = [
        (odd, "6 bytes of code"),
        (empty, "0 bytes of code"),
        (wavesim_launch { struct_size: 8, ..good }, "launch.struct_size is 8"),
        (wavesim_launch { code: null(), ..good }, "launch.code is null"),
        (wavesim_launch { entry_offset: 28, ..good }, "entry_offset 28 is not a word"),
        (wavesim_launch { entry_offset: 2, ..good }, "entry_offset 2 is not a word"),
        (wavesim_launch { wave_size: 16, ..good }, "32 or 64 lanes"),
        (wavesim_launch { block: [0, 1, 1], ..good }, "work-items"),
        (wavesim_launch { block: [u32::MAX; 3], ..good }, "work-items"),
        (wavesim_launch { lds_bytes: u32::MAX, ..good }, "LDS"),
        (wavesim_launch { scratch_bytes: u32::MAX, ..good }, "scratch"),
        (wavesim_launch { user_sgpr_count: 101, ..good }, "101 user SGPRs"),
        (wavesim_launch { user_sgpr_count: 2, ..good }, "launch.user_sgprs is null"),
        (wavesim_launch { user_sgpr_count: 2, user_sgprs: 0x10 as *const u32, ..good }, "not all readable"),
    ];
    for (launch, text) in invalid {
        let (status, outcome) = run(device, &launch);
        assert_eq!(status, WAVESIM_BAD_ARGUMENT, "{text}");
        assert!(last().contains(text) && outcome.fault[0] == 0, "{text}: {}", last());
    }
    // An empty grid completes immediately.
    let nothing = wavesim_launch { grid: [0, 7, u32::MAX], ..good };
    assert_eq!(run(device, &nothing).0, WAVESIM_OK);
    assert_eq!(wavesim_device_destroy(device), WAVESIM_OK);
}

#[test]
fn ranges_have_permissions_and_bounds() {
    let device = device(c"gfx1150");
    let mut out = [7u32; 4];
    let mut args = [out.as_mut_ptr() as u64];
    assert_eq!(map(device, &mut out, false), WAVESIM_OK);
    assert_eq!(map(device, &mut out[1..], true), WAVESIM_BAD_ARGUMENT);
    assert!(last().contains("overlap"), "{}", last());
    let sgprs = [args.as_ptr() as u32, (args.as_ptr() as u64 >> 32) as u32];
    let launch = wavesim_launch {
        block: [1, 1, 1],
        user_sgprs: sgprs.as_ptr(),
        user_sgpr_count: 2,
        ..launch_of(&STORE)
    };
    let kind = |outcome: &wavesim_outcome| {
        // SAFETY: the library NUL-terminates the string.
        unsafe { CStr::from_ptr(outcome.fault.as_ptr()) }.to_str().unwrap().to_string()
    };
    // The arguments are not yet mapped.
    let (status, outcome) = run(device, &launch);
    assert_eq!((status, kind(&outcome).as_str()), (WAVESIM_FAULT, "out-of-bounds"));
    assert!(outcome.has_address && outcome.address == args.as_ptr() as u64 && outcome.lane == -1);
    assert_eq!(map(device, &mut args, false), WAVESIM_OK);
    let (status, outcome) = run(device, &launch);
    assert_eq!((status, outcome.pc, outcome.lane), (WAVESIM_FAULT, 12, 0));
    assert!(last().contains("goes to read-only memory") && last().contains("global_store_b32"), "{}", last());
    assert_eq!(wavesim_device_unmap(device, out.as_ptr() as u64 + 4), WAVESIM_BAD_ARGUMENT);
    assert_eq!(wavesim_device_unmap(device, out.as_ptr() as u64), WAVESIM_OK);
    assert_eq!(map(device, &mut out, true), WAVESIM_OK);
    let (status, outcome) = run(device, &launch);
    assert_eq!((status, outcome.instructions, outcome.waves), (WAVESIM_OK, 4, 1));
    assert_eq!(out, [0, 7, 7, 7]);
    assert_eq!(wavesim_device_destroy(device), WAVESIM_OK);
}

#[test]
fn infinite_loops_are_stopped() {
    let device = device(c"gfx1201");
    // An s_branch to itself.
    let launch = wavesim_launch { max_instructions: 1000, ..launch_of(&[0xbfa0_ffff]) };
    assert_eq!(run(device, &launch).0, WAVESIM_FAULT);
    assert!(last().starts_with("instruction-limit"), "{}", last());
    assert_eq!(wavesim_device_destroy(device), WAVESIM_OK);
}

#[test]
fn unknown_code_is_a_fault() {
    assert_eq!(asm(&[0xffff_ffff, END], [1; 3], [1; 3], null()), WAVESIM_FAULT as i32);
    assert!(last().starts_with("illegal-instruction"), "{}", last());
    assert_eq!(asm(&[0x7e00_0280], [1; 3], [1; 3], null()), WAVESIM_FAULT as i32);
    assert!(last().starts_with("pc-out-of-range"), "{}", last());
    let elf = [0x464c_457f, 0, 0, 0, 0x00e0_0003, END];
    assert_eq!(asm(&elf, [1; 3], [1; 3], null()), WAVESIM_BAD_ARGUMENT as i32);
    assert!(last().contains("wavesim_device_launch_object"), "{}", last());
}

/// The registers of workgroup ids depend on the dimensions of the grid; work-item ids are packed into v0.
#[test]
fn initial_state_of_run_asm() {
    // v0 <- s13 | s14 << 8 | s15 << 16, stored by work-item 0 of the last workgroup last.
    let code = [
        0xf4040100,
        0xf8000000,  // s_load_b64 s[4:5], s[0:1], null
        0x8406_880e, // s_lshl_b32 s6, s14, 8
        0x8407_900f, // s_lshl_b32 s7, s15, 16
        0x8c06_060d, // s_or_b32 s6, s13, s6
        0x8c06_0706, // s_or_b32 s6, s6, s7
        0x7e02_0206, // v_mov_b32_e32 v1, s6
        0x7e04_0280, // v_mov_b32_e32 v2, 0
        0xbf89_fc07, // s_waitcnt lgkmcnt(0)
        0xdc6a_0000,
        0x0004_0102, // global_store_b32 v2, v1, s[4:5]
        0xdc6a_0004,
        0x0004_0002, // global_store_b32 v2, v0, s[4:5] offset:4
        END,
    ];
    let out = [0u32; 2];
    let args = [out.as_ptr() as u64];
    let read = || {
        // SAFETY: both are local. The reads are volatile because the compiler does not see the kernel's
        // writes.
        unsafe { [out.as_ptr().read_volatile(), out.as_ptr().add(1).read_volatile()] }
    };
    let run = |grid, block| {
        assert_eq!(asm(&code, grid, block, args.as_ptr()), 0, "{}", last());
        read()
    };
    assert_eq!(run([3, 1, 1], [1, 1, 1]), [2 << 16, 0]);
    assert_eq!(run([3, 2, 1], [1, 1, 1]), [1 << 16 | 2 << 8, 0]);
    assert_eq!(run([3, 2, 4], [1, 1, 1]), [3 << 16 | 1 << 8 | 2, 0]);
    // All lanes store to one address: the ids of the last lane remain.
    assert_eq!(run([1, 1, 1], [4, 3, 2]), [0, 1 << 20 | 2 << 10 | 3]);
}

#[test]
fn threads_have_their_own_errors() {
    std::thread::scope(|scope| {
        for index in 0..4u64 {
            scope.spawn(move || {
                for _ in 0..50 {
                    assert_eq!(wavesim_device_destroy(1 << 40 | index), WAVESIM_BAD_ARGUMENT);
                    assert_eq!(last(), format!("there is no device {}", 1u64 << 40 | index));
                }
            });
        }
    });
}

fn text(chars: &[c_char]) -> &str {
    // SAFETY: the library NUL-terminates the string.
    unsafe { CStr::from_ptr(chars.as_ptr()) }.to_str().expect("UTF-8")
}

/// Another thread cancels a kernel in an infinite loop.
#[test]
fn launches_can_be_cancelled() {
    let device = device(c"gfx1201");
    assert_eq!(wavesim_device_cancel(device), WAVESIM_OK);
    std::thread::scope(|scope| {
        let launch = scope.spawn(|| {
            let (status, outcome) = run(device, &launch_of(&[0xbfa0_ffff]));
            (status, text(&outcome.fault).to_string(), last())
        });
        while !launch.is_finished() {
            assert_eq!(wavesim_device_cancel(device), WAVESIM_OK);
            std::thread::yield_now();
        }
        let (status, kind, message) = launch.join().unwrap();
        assert_eq!((status, kind.as_str()), (WAVESIM_FAULT, "interrupted"), "{message}");
    });
    assert_eq!(run(device, &launch_of(&[END])).0, WAVESIM_OK);
    assert_eq!(wavesim_device_destroy(device), WAVESIM_OK);
    assert_eq!(wavesim_device_cancel(device), WAVESIM_BAD_ARGUMENT);
    assert_eq!(last(), format!("there is no device {device}"));
}

#[test]
fn kernels_are_listed_with_their_arguments() {
    let device = device(c"gfx1100");
    let object = include_bytes!("../../../tests/filetests/code_objects/vadd/vadd.gfx1100.co");
    let mut module = 0;
    // SAFETY: all pointers are valid, or the library rejects them.
    unsafe {
        let load = wavesim_module_load(device, object.as_ptr().cast(), object.len() as u64, &mut module);
        assert_eq!(load, WAVESIM_OK, "{}", last());
        let (mut kernels, mut variables) = (0, 7);
        assert_eq!(wavesim_module_counts(module, &mut kernels, &mut variables), WAVESIM_OK);
        assert_eq!((kernels, variables), (1, 1));
        assert_eq!(wavesim_module_counts(module, null_mut(), null_mut()), WAVESIM_OK);
        assert_eq!(wavesim_module_counts(module, 0x10 as *mut u32, null_mut()), WAVESIM_BAD_ARGUMENT);

        let mut name = [b'x' as c_char; 8];
        assert_eq!(wavesim_module_kernel_name(module, 0, name.as_mut_ptr(), 8), WAVESIM_OK);
        assert_eq!(text(&name), "vadd");
        assert_eq!(wavesim_module_kernel_name(module, 0, name.as_mut_ptr(), 4), WAVESIM_OK);
        assert_eq!(text(&name), "vad");
        assert_eq!(wavesim_module_kernel_name(module, 0, name.as_mut_ptr(), 0), WAVESIM_BAD_ARGUMENT);
        assert_eq!(wavesim_module_kernel_name(module, 1, name.as_mut_ptr(), 8), WAVESIM_BAD_ARGUMENT);
        assert_eq!(last(), "there is no kernel 1: the count is 1");
        assert_eq!(wavesim_module_variable_name(module, 1, name.as_mut_ptr(), 8), WAVESIM_BAD_ARGUMENT);
        assert_eq!(wavesim_module_variable_name(module, 0, name.as_mut_ptr(), 8), WAVESIM_OK);
        assert_eq!(text(&name), "__oclc_");

        let mut kernel: wavesim_kernel = std::mem::zeroed();
        assert_eq!(wavesim_module_kernel(module, null(), &mut kernel), WAVESIM_BAD_ARGUMENT);
        assert!(last().starts_with("kernel.struct_size is 0, not"), "{}", last());
        kernel.struct_size = size_of::<wavesim_kernel>() as u32;
        assert_eq!(wavesim_module_kernel(module, c"none".as_ptr(), &mut kernel), WAVESIM_BAD_ARGUMENT);
        assert_eq!(wavesim_module_kernel(module, null(), &mut kernel), WAVESIM_OK);
        assert_eq!((kernel.argument_count, kernel.wave_size, kernel.max_items), (4, 32, 256));
        assert_eq!((kernel.lds_bytes, kernel.required_block), (0, [0; 3]));
        assert!(kernel.kernarg_bytes >= 28 && kernel.vgprs > 0 && kernel.address.is_multiple_of(256));

        let mut argument: wavesim_argument = std::mem::zeroed();
        argument.struct_size = size_of::<wavesim_argument>() as u32;
        // The compiler omitted the names.
        let expected = [(0, 8), (8, 8), (16, 8), (24, 4)];
        for (index, (offset, size)) in (0..).zip(expected) {
            assert_eq!(wavesim_module_argument(module, c"vadd".as_ptr(), index, &mut argument), WAVESIM_OK);
            assert_eq!((text(&argument.name), argument.offset, argument.size), ("", offset, size));
            assert_eq!(text(&argument.kind), if index == 3 { "by_value" } else { "global_buffer" });
        }
        assert_eq!(wavesim_module_argument(module, null(), 4, &mut argument), WAVESIM_BAD_ARGUMENT);
    }
    assert_eq!(wavesim_module_unload(module), WAVESIM_OK);
    assert_eq!(wavesim_device_destroy(device), WAVESIM_OK);
}

/// Loads the runtime's test kernels.
fn load(device: wavesim_device, module: *mut wavesim_module) -> wavesim_status {
    let source = include_str!("../../../hosts/runtime/tests/kernels.s");
    let object = wavesim::loader::assembly::AssemblyOptions::default().assemble("kernels.s", source);
    let object = object.unwrap_or_else(|e| panic!("{}", e[0])).object;
    // SAFETY: the object is complete, and the tests pass a valid pointer or null for the result.
    unsafe { wavesim_module_load(device, object.as_ptr().cast(), object.len() as u64, module) }
}

/// The kernel waits until another thread sets the flag; the range must not be unmapped before.
#[test]
fn unmapping_and_destroying_wait_for_launches_of_modules() {
    let device = device(c"gfx1100");
    let mut module = 0;
    assert_eq!(load(device, &mut module), WAVESIM_OK, "{}", last());
    let flags: &'static [AtomicU32; 2] = Box::leak(Box::default());
    let [flag, started] = flags;
    let address = flags.as_ptr() as u64;
    let run = move || {
        let arguments = [address];
        let launch = wavesim_object_launch {
            kernel: c"wait_for_host".as_ptr(),
            kernarg: arguments.as_ptr().cast(),
            kernarg_bytes: 8,
            ..Default::default()
        };
        // SAFETY: all pointers are valid or null.
        unsafe { wavesim_module_launch(module, &launch, null_mut()) }
    };
    let calls: [&(dyn Fn() -> wavesim_status + Sync); 2] =
        [&|| wavesim_device_unmap(device, address), &|| wavesim_device_destroy(device)];
    for call in calls {
        // SAFETY: the flags are leaked, so they stay valid.
        let mapped =
            unsafe { wavesim_device_map(device, address, flags.as_ptr().cast_mut().cast(), 8, true) };
        assert_eq!(mapped, WAVESIM_OK);
        flags.iter().for_each(|word| word.store(0, Ordering::SeqCst));
        std::thread::scope(|scope| {
            let launch = scope.spawn(run);
            while started.load(Ordering::SeqCst) == 0 && !launch.is_finished() {
                std::thread::yield_now();
            }
            let unmap = scope.spawn(call);
            std::thread::sleep(Duration::from_millis(50));
            let early = unmap.is_finished();
            flag.store(1, Ordering::SeqCst);
            assert!(!early);
            assert_eq!(launch.join().unwrap(), WAVESIM_OK);
            assert_eq!(unmap.join().unwrap(), WAVESIM_OK);
        });
        // The range is unmapped for modules too.
        assert_eq!(run(), WAVESIM_FAULT);
        assert!(last().contains("is outside every buffer"), "{}", last());
    }
    assert_eq!(wavesim_module_unload(module), WAVESIM_OK);
}

/// Workgroups that count without atomics lose updates in some orders. The memory is as before.
#[test]
fn modules_are_explored() {
    let device = device(c"gfx1100");
    let mut module = 0;
    assert_eq!(load(device, &mut module), WAVESIM_OK, "{}", last());
    let mut out = [7u32];
    assert_eq!(map(device, &mut out, true), WAVESIM_OK);
    let arguments = [out.as_ptr() as u64];
    let launch = |workgroups| wavesim_object_launch {
        kernel: c"count".as_ptr(),
        kernarg: arguments.as_ptr().cast(),
        kernarg_bytes: 8,
        grid: [workgroups, 1, 1],
        ..Default::default()
    };
    let mut exploration = wavesim_exploration::default();
    // SAFETY: the pointer is valid.
    assert_eq!(unsafe { wavesim_exploration_init(&mut exploration) }, WAVESIM_OK);
    assert_eq!((exploration.depth, exploration.schedules, exploration.all), (3, 1000, 0));
    (exploration.schedules, exploration.all) = (100, 1);
    let mut text = [0 as c_char; 400];
    let mut explore = |workgroups, given: &wavesim_exploration| {
        let mut exploration = *given;
        // SAFETY: all pointers are valid.
        let status = unsafe {
            wavesim_module_explore(
                module,
                &launch(workgroups),
                &mut exploration,
                text.as_mut_ptr(),
                text.len() as u64,
            )
        };
        // SAFETY: the library has written a string, or nothing.
        (status, exploration, unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    };
    let (status, one, difference) = explore(1, &exploration);
    assert_eq!((status, &*difference), (WAVESIM_OK, ""), "{}", last());
    assert_eq!((one.run, one.outcomes, one.found), (100, 1, 0));
    assert!(one.probability > 0.0);
    let (status, two, difference) = explore(2, &exploration);
    assert_eq!(status, WAVESIM_OK, "{}", last());
    assert!(two.found > 0 && two.outcomes > 1 && two.run == 100, "{two:?}");
    assert!(difference.contains("differ"), "{difference}");
    // SAFETY: `out` is valid.
    assert_eq!(unsafe { out.as_ptr().read_volatile() }, 7);
    exploration.depth = 0;
    assert_eq!(explore(1, &exploration).0, WAVESIM_BAD_ARGUMENT);
    assert_eq!(last(), "the depth is from 1 to 64, and not 0");
    exploration.struct_size = 0;
    assert_eq!(explore(1, &exploration).0, WAVESIM_BAD_ARGUMENT);
    assert!(last().contains("wavesim_exploration_init sets it"), "{}", last());
    // SAFETY: the library rejects null pointers, and `difference` may be null.
    unsafe {
        let null_exploration = wavesim_module_explore(module, &launch(1), null_mut(), null_mut(), 0);
        assert_eq!(null_exploration, WAVESIM_BAD_ARGUMENT);
        let mut exploration = wavesim_exploration { schedules: 1, ..Default::default() };
        let explored = wavesim_module_explore(module, &launch(1), &mut exploration, null_mut(), 0);
        assert_eq!(explored, WAVESIM_OK, "{}", last());
    }
    assert_eq!(wavesim_module_unload(module), WAVESIM_OK);
    assert_eq!(wavesim_device_destroy(device), WAVESIM_OK);
}

/// `counter` is 41 when a module is loaded, and each launch adds 1 to it.
#[test]
fn variables_of_modules_persist() {
    let device = device(c"gfx1100");
    let mut module = 0;
    assert_eq!(load(device, &mut module), WAVESIM_OK, "{}", last());
    assert_eq!(load(device, null_mut()), WAVESIM_BAD_ARGUMENT);
    let mut out = [0u32];
    assert_eq!(map(device, &mut out, true), WAVESIM_OK);
    let arguments = [out.as_ptr() as u64];
    let launch = wavesim_object_launch {
        kernel: c"count".as_ptr(),
        kernarg: arguments.as_ptr().cast(),
        kernarg_bytes: 8,
        ..Default::default()
    };
    // SAFETY: all pointers are valid or null.
    let run = |module| unsafe { wavesim_module_launch(module, &launch, null_mut()) };
    let (mut address, mut bytes) = (0, 0);
    for expected in [42, 43] {
        assert_eq!(run(module), WAVESIM_OK, "{}", last());
        // SAFETY: `out` is valid. The read is volatile because the compiler does not see the kernel's write.
        assert_eq!(unsafe { out.as_ptr().read_volatile() }, expected);
    }
    // SAFETY: all pointers are valid.
    let mut find =
        |name: &CStr| unsafe { wavesim_module_variable(module, name.as_ptr(), &mut address, &mut bytes) };
    assert_eq!(find(c"nothing"), WAVESIM_BAD_ARGUMENT);
    assert_eq!(last(), "the module has no variable `nothing`; it has `counter`");
    assert_eq!(find(c"counter"), WAVESIM_OK);
    // SAFETY: the library returned the address of a variable in a loaded module.
    assert_eq!((unsafe { *(address as *const u32) }, bytes), (43, 4));
    assert_eq!(wavesim_module_unload(module), WAVESIM_OK);
    assert_eq!(run(module), WAVESIM_BAD_ARGUMENT);
    assert_eq!(last(), format!("there is no module {module}"));
    assert_eq!(wavesim_device_destroy(device), WAVESIM_OK);
}
