//! Tests of launches and of kernel occupancy.

use super::*;

#[test]
fn attributes_make_a_launch_cooperative() {
    let empty = kernel(c"empty");
    let launch = |attribute: Attribute, x: u32| {
        let (grid, block, attributes) = ([x, 1, 1], [1; 3], &raw const attribute);
        let config = LaunchConfig { grid, block, dynamic_lds: 0, stream: null_mut(), attributes, count: 1 };
        // SAFETY: the kernel takes no arguments.
        unsafe { hipLaunchKernelExC(&config, empty, null_mut()) }
    };
    let attribute = |id, value| {
        let mut words = [0; 16];
        words[0] = value;
        Attribute { id, padding: 0, value: words }
    };
    let large = (1 << 16) + 1;
    assert_eq!(launch(attribute(2, 1), 4), SUCCESS);
    assert_eq!(launch(attribute(2, 1), large), COOPERATIVE_LAUNCH_TOO_LARGE);
    assert_eq!(launch(attribute(2, 0), large), SUCCESS);
    assert_eq!(launch(attribute(3, 1), large), SUCCESS);
    let of_module = |attribute: Attribute, x: u32| {
        let (grid, block, attributes) = ([x, 1, 1], [1; 3], &raw const attribute);
        let config =
            ModuleLaunchConfig { grid, block, dynamic_lds: 0, stream: null_mut(), attributes, count: 1 };
        // SAFETY: the kernel takes no arguments.
        unsafe { hipDrvLaunchKernelEx(&config, empty, null_mut(), null_mut()) }
    };
    assert_eq!(of_module(attribute(2, 1), large), COOPERATIVE_LAUNCH_TOO_LARGE);
    assert_eq!(of_module(attribute(2, 0), large), SUCCESS);
    assert_eq!(hipStreamSynchronize(null_mut()), SUCCESS);
}

/// Launches with a block size, and start and stop events.
type Timed<'a> = &'a dyn Fn(u32, Handle, Handle) -> c_int;

#[test]
fn a_launch_between_events_records_both_or_none() {
    let count = kernel(c"count");
    // SAFETY: `out` is valid for writes.
    let mut memory = created(|out| unsafe { hipMalloc(out, 4) });
    let mut arguments = [(&raw mut memory).cast::<c_void>()];
    let arguments = arguments.as_mut_ptr();
    let none = null_mut();
    // SAFETY: the argument outlives the launches.
    let ext: Timed = &|block, start, stop| unsafe {
        hipExtLaunchKernel(count, Dim3([3, 2, 1]), Dim3([block, 1, 1]), arguments, 0, none, start, stop, 0)
    };
    // SAFETY: as above. The grid is in work-items.
    let module: Timed = &|block, start, stop| unsafe {
        hipExtModuleLaunchKernel(count, 96, 4, 2, block, 2, 1, 0, none, arguments, null_mut(), start, stop, 0)
    };
    let mut items = 0;
    // The rejected block has too many work-items, or does not divide the grid.
    for (launch, block, refused, launched) in [(ext, 32, 257, 192), (module, 32, 33, 768)] {
        let [start, stop] = [0, 1].map(|_| created(|out| hipEventCreate(out)));
        let mut milliseconds = 0.0;
        let mut elapsed = |start, stop| hipEventElapsedTime(&mut milliseconds, start, stop);
        assert_eq!(launch(refused, start, stop), INVALID_CONFIGURATION);
        // Events that were not recorded have no time.
        assert_eq!(elapsed(start, start), INVALID_HANDLE);
        assert_eq!(elapsed(stop, stop), INVALID_HANDLE);
        // An invalid event handle is rejected too.
        assert_eq!(launch(block, start, memory), INVALID_HANDLE);
        assert_eq!(elapsed(start, start), INVALID_HANDLE);
        assert_eq!(launch(block, start, stop), SUCCESS);
        assert_eq!(hipStreamSynchronize(none), SUCCESS);
        assert_eq!(elapsed(start, stop), SUCCESS);
        assert_eq!(launch(block, none, none), SUCCESS);
        assert_eq!(hipStreamSynchronize(none), SUCCESS);
        items += 2 * launched;
        // SAFETY: device memory is host memory, and no kernel is running.
        assert_eq!(unsafe { memory.cast::<i32>().read() }, items);
    }
}

#[test]
fn flags_do_not_affect_occupancy() {
    let count = kernel(c"count");
    // A multiprocessor has 2048 work-items and 128 KiB of LDS, and a workgroup at most 64 KiB. The kernel has
    // 1 KiB of static LDS.
    for (block, dynamic_lds, expected) in
        [(256, 0, 8), (33, 0, 32), (32, 0, 64), (256, 31 << 10, 4), (256, 63 << 10, 2), (256, 64 << 10, 0)]
    {
        let mut groups = [-1; 3];
        let [plain, module, host] = &mut groups;
        let calls = [
            hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(plain, count, block, dynamic_lds),
            hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(module, count, block, dynamic_lds, 1),
            hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(host, count, block, dynamic_lds, 1),
        ];
        assert_eq!((calls, groups), ([SUCCESS; 3], [expected; 3]), "{block}, {dynamic_lds}");
    }
    let mut none = -1;
    assert_eq!(
        hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&mut none, count, 0, 0, 0),
        INVALID_VALUE
    );
    // There are 8 multiprocessors. The kernel allows 256 work-items, and the limit may be lower.
    for (limit, expected) in [(0, (64, 256)), (64, (256, 64)), (1024, (64, 256))] {
        let (mut groups, mut block) = (-1, -1);
        let status =
            hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&mut groups, &mut block, count, 0, limit, 1);
        assert_eq!((status, (groups, block)), (SUCCESS, expected), "{limit}");
    }
}
