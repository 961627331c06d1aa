//! Tests of launches and of kernel occupancy.

use super::*;

unsafe extern "C" {
    safe fn hipKernelGetLibrary(library: &mut Handle, kernel: Handle) -> c_int;
    safe fn hipKernelGetName(name: &mut *const c_char, kernel: Handle) -> c_int;
    fn hipLibraryEnumerateKernels(kernels: *mut Handle, room: c_uint, library: Handle) -> c_int;
    fn hipLibraryGetKernel(kernel: &mut Handle, library: Handle, name: *const c_char) -> c_int;
    safe fn hipLibraryGetKernelCount(count: &mut c_uint, library: Handle) -> c_int;
    fn hipLibraryLoadData(
        library: &mut Handle,
        code: *const u8,
        options: *mut c_void,
        values: *mut c_void,
        count: c_uint,
        library_options: *mut c_void,
        library_values: *mut c_void,
        library_count: c_uint,
    ) -> c_int;
    safe fn hipLibraryUnload(library: Handle) -> c_int;
}

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
    let rows = [(ext, 32, 257, INVALID_CONFIGURATION, 192), (module, 32, 33, INVALID_VALUE, 768)];
    for (launch, block, refused, status, launched) in rows {
        let [start, stop] = [0, 1].map(|_| created(|out| hipEventCreate(out)));
        let mut milliseconds = 0.0;
        let mut elapsed = |start, stop| hipEventElapsedTime(&mut milliseconds, start, stop);
        assert_eq!(launch(refused, start, stop), status);
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

/// The kernels of a library have one handle each, by which they are launched.
#[test]
fn libraries_have_kernels() {
    let object = object();
    // SAFETY: the image is complete, and the array has room for the kernels.
    unsafe {
        let load = |out: &mut Handle, data: *const u8| {
            hipLibraryLoadData(out, data, null_mut(), null_mut(), 0, null_mut(), null_mut(), 0)
        };
        let library = created(|out| load(out, object.as_ptr()));
        let mut count = 0;
        assert_eq!((hipLibraryGetKernelCount(&mut count, library), count), (SUCCESS, 3));
        let find = |out: &mut Handle, name: &CStr| hipLibraryGetKernel(out, library, name.as_ptr());
        let kernel = created(|out| find(out, c"count"));
        assert_eq!(created(|out| find(out, c"count")), kernel);
        assert_eq!(find(&mut null_mut(), c"absent"), NOT_FOUND);
        let mut all = [null_mut(); 3];
        assert_eq!(hipLibraryEnumerateKernels(all.as_mut_ptr(), 3, library), SUCCESS);
        assert!(all.contains(&kernel) && all[0] != all[1]);
        let mut name = null();
        assert_eq!(hipKernelGetName(&mut name, kernel), SUCCESS);
        assert_eq!(CStr::from_ptr(name), c"count");
        assert_eq!(created(|out| hipKernelGetLibrary(out, kernel)), library);

        let mut memory = created(|out| hipMalloc(out, 4));
        let mut arguments = [(&raw mut memory).cast::<c_void>()];
        let config = LaunchConfig {
            grid: [2, 1, 1],
            block: [32, 1, 1],
            dynamic_lds: 0,
            stream: null_mut(),
            attributes: null(),
            count: 0,
        };
        assert_eq!(hipLaunchKernelExC(&config, kernel, arguments.as_mut_ptr()), SUCCESS);
        let config = ModuleLaunchConfig {
            grid: [1; 3],
            block: [32, 1, 1],
            dynamic_lds: 0,
            stream: null_mut(),
            attributes: null(),
            count: 0,
        };
        assert_eq!(hipDrvLaunchKernelEx(&config, kernel, arguments.as_mut_ptr(), null_mut()), SUCCESS);
        assert_eq!(hipStreamSynchronize(null_mut()), SUCCESS);
        assert_eq!(memory.cast::<i32>().read(), 96);
        assert_eq!((hipLibraryUnload(library), hipLibraryUnload(library)), (SUCCESS, INVALID_VALUE));
        assert_eq!(hipDrvLaunchKernelEx(&config, kernel, arguments.as_mut_ptr(), null_mut()), INVALID_HANDLE);
        assert_eq!(hipKernelGetName(&mut name, kernel), INVALID_VALUE);
        assert_eq!(hipFree(memory), SUCCESS);
    }
}
