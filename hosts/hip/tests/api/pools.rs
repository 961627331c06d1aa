//! Pools that processes share. Here, both sides are one process.

use super::graph_memory::{POOL, Pool};
use super::{Handle, INVALID_VALUE, SUCCESS, created};
use super::{hipDeviceSynchronize, hipFree, hipMemset};
use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null_mut;

unsafe extern "C" {
    fn hipMallocFromPoolAsync(memory: &mut Handle, len: usize, pool: Handle, stream: Handle) -> c_int;
    fn hipMemPoolCreate(pool: &mut Handle, properties: &Pool) -> c_int;
    safe fn hipMemPoolDestroy(pool: Handle) -> c_int;
    fn hipMemPoolExportPointer(data: *mut [u8; 64], memory: Handle) -> c_int;
    fn hipMemPoolExportToShareableHandle(
        handle: &mut c_int,
        pool: Handle,
        kind: c_int,
        flags: c_uint,
    ) -> c_int;
    fn hipMemPoolImportFromShareableHandle(
        pool: &mut Handle,
        handle: *mut c_void,
        kind: c_int,
        flags: c_uint,
    ) -> c_int;
    fn hipMemPoolImportPointer(memory: &mut Handle, pool: Handle, data: *const [u8; 64]) -> c_int;
}

/// `hipMemHandleTypePosixFileDescriptor`.
const FILE: c_int = 1;

#[test]
fn pools_and_their_memory_are_shared() {
    let properties = |handle_types| Pool { handle_types, ..POOL };
    // SAFETY: all accesses are inside the allocation, and the file is open until it is closed here.
    unsafe {
        let pool = created(|out| hipMemPoolCreate(out, &properties(FILE)));
        let private = created(|out| hipMemPoolCreate(out, &properties(0)));
        let mut descriptor = -1;
        assert_eq!(hipMemPoolExportToShareableHandle(&mut descriptor, private, FILE, 0), INVALID_VALUE);
        assert_eq!(hipMemPoolExportToShareableHandle(&mut descriptor, pool, 0, 0), INVALID_VALUE);
        assert_eq!(hipMemPoolExportToShareableHandle(&mut descriptor, pool, FILE, 1), INVALID_VALUE);
        assert_eq!(hipMemPoolExportToShareableHandle(&mut descriptor, pool, FILE, 0), SUCCESS);
        let file = OwnedFd::from_raw_fd(descriptor);
        let handle = |descriptor: c_int| null_mut::<u8>().wrapping_add(descriptor as usize).cast();
        let mut other = null_mut();
        assert_eq!(hipMemPoolImportFromShareableHandle(&mut other, handle(0), FILE, 0), INVALID_VALUE);
        assert_eq!(hipMemPoolImportFromShareableHandle(&mut other, handle(descriptor), 0, 0), INVALID_VALUE);
        // A file that is no pool.
        let wrong = std::fs::File::open("/proc/self/exe").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&wrong);
        assert_eq!(hipMemPoolImportFromShareableHandle(&mut other, handle(number), FILE, 0), INVALID_VALUE);
        assert_eq!(hipMemPoolImportFromShareableHandle(&mut other, handle(descriptor), FILE, 0), SUCCESS);
        assert_ne!(other, pool);
        drop(file);

        let memory = created(|out| hipMallocFromPoolAsync(out, 8192, pool, null_mut()));
        assert_eq!((hipMemset(memory, 7, 8192), hipDeviceSynchronize()), (SUCCESS, SUCCESS));
        let mut data = [0; 64];
        assert_eq!(hipMemPoolExportPointer(null_mut(), memory), INVALID_VALUE);
        assert_eq!(hipMemPoolExportPointer(&mut data, null_mut()), INVALID_VALUE);
        assert_eq!(hipMemPoolExportPointer(&mut data, memory.wrapping_byte_add(4096)), SUCCESS);
        let mut imported = null_mut();
        assert_eq!(hipMemPoolImportPointer(&mut imported, other, &[0; 64]), INVALID_VALUE);
        assert_eq!(hipMemPoolImportPointer(&mut imported, other, &data), SUCCESS);
        assert_ne!(imported, memory.wrapping_byte_add(4096));
        assert_eq!(*imported.cast::<u8>(), 7);
        assert_eq!((hipMemset(imported, 9, 16), hipDeviceSynchronize()), (SUCCESS, SUCCESS));
        assert_eq!(*memory.cast::<u8>().add(4111), 9);
        assert_eq!(*memory.cast::<u8>().add(4112), 7);
        assert_eq!(hipFree(imported.wrapping_byte_sub(4096)), SUCCESS);
        assert_eq!(hipFree(memory), SUCCESS);
        for pool in [pool, private, other] {
            assert_eq!(hipMemPoolDestroy(pool), SUCCESS);
        }
    }
}
