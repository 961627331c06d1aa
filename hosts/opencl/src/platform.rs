//! The platform and its device.

use crate::devices;
use crate::ffi::{Array, Memory, Out, Text};
use crate::handle::{Handle, StaticHandle};
use crate::image::PITCH_ALIGNMENT;
use crate::info::{Query, unknown_parameter, version};
use crate::status::{Outcome, Status, call};
use std::ffi::{c_int, c_uint};
use std::sync::OnceLock;
use std::time::Instant;
use wavesim_runtime::image::{self, MAX_BUFFER_TEXELS, MAX_DEPTH, MAX_SIZE};
use wavesim_runtime::{Device, clock};

/// Version of the platform and of the device.
const VERSION: &str = concat!("OpenCL 3.0 wavesim ", env!("CARGO_PKG_VERSION"));
const DRIVER_VERSION: &str = env!("CARGO_PKG_VERSION");
const EXTENSIONS: [&str; 9] = [
    "cl_khr_icd",
    "cl_khr_byte_addressable_store",
    "cl_khr_global_int32_base_atomics",
    "cl_khr_global_int32_extended_atomics",
    "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
    "cl_khr_int64_base_atomics",
    "cl_khr_fp64",
    "cl_khr_fp16",
];
/// Extensions of devices with images.
const IMAGE_EXTENSIONS: [&str; 5] = [
    "cl_khr_3d_image_writes",
    "cl_khr_depth_images",
    "cl_khr_image2d_from_buffer",
    "cl_khr_mipmap_image",
    "cl_khr_mipmap_image_writes",
];
/// Optional features of OpenCL C, and those of devices with images.
const FEATURES: [&str; 2] = ["__opencl_c_fp64", "__opencl_c_int64"];
const IMAGE_FEATURES: [&str; 3] =
    ["__opencl_c_images", "__opencl_c_3d_image_writes", "__opencl_c_read_write_images"];

/// Returns all items of `common`, and those of `with_images` if the device has images.
fn supported(common: &[&'static str], with_images: &[&'static str]) -> Outcome<Vec<&'static str>> {
    let images: &[&str] = if image::supported(&gpu()?.device) { with_images } else { &[] };
    Ok(common.iter().chain(images).copied().collect())
}

fn extensions() -> Outcome<Vec<&'static str>> {
    supported(&EXTENSIONS, &IMAGE_EXTENSIONS)
}

/// Default maximum number of work-items in a workgroup. Compilers allocate registers for this number.
pub const MAX_ITEMS: usize = 256;
/// Alignment of buffers and of sub-buffer offsets in bytes.
pub const ALIGNMENT: usize = 256;
const MAX_PARAMETERS: usize = 4096;
const UNITS: u32 = 8;

/// A device of the process.
pub struct Gpu {
    /// The simulated device.
    pub device: Device,
    /// The zero of the device's clock.
    pub opened: Instant,
}

impl Gpu {
    /// Returns the time of the device's clock in nanoseconds.
    pub fn now(&self) -> u64 {
        // Never 0, which programs may interpret as a missing time.
        clock::now().saturating_duration_since(self.opened).as_nanos() as u64 + 1
    }
}

/// Checks that this process is not a child of the one that opened the devices. Takes no lock, since a thread of
/// the parent may have held it.
pub fn check_process() -> Outcome {
    devices::opened().iter().try_for_each(|gpu| Ok(gpu.device.check_process()?))
}

/// Returns the first of the devices that the environment variables describe (`WAVESIM_TARGET`, `WAVESIM_DEVICES`),
/// opening them on first use. The memory of contexts belongs to it, and all others can access it.
pub fn gpu() -> Outcome<&'static Gpu> {
    // There is at least one.
    devices::gpus()?.first().ok_or(Status::DEVICE_NOT_FOUND.into())
}

impl Gpu {
    /// Returns the size of device memory, as reported to programs, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.device.settings().memory
    }

    /// Returns the maximum size of an allocation in bytes.
    pub fn max_allocation(&self) -> u64 {
        self.total_bytes() / 4
    }
}

/// Returns the platform's handle.
pub fn platform() -> Handle {
    static HANDLE: OnceLock<StaticHandle> = OnceLock::new();
    HANDLE.get_or_init(StaticHandle::new).handle()
}

/// Checks that the handle is that of a device.
pub fn check_device(handle: Handle) -> Outcome {
    devices::index_of(handle).map(drop)
}

/// Checks that all handles in a list are those of devices.
pub fn check_devices(list: Array<Handle>) -> Outcome {
    devices::read(list).map(drop)
}

/// `clGetPlatformIDs`.
pub unsafe extern "C" fn clGetPlatformIDs(count: c_uint, list: Out<Handle>, found: Out<c_uint>) -> c_int {
    call("clGetPlatformIDs", || {
        if (count == 0 && !list.is_null()) || (list.is_null() && found.is_null()) {
            return Err(Status::INVALID_VALUE.into());
        }
        list.put_optional(platform());
        found.put_optional(1);
        Ok(())
    })
}

/// `clGetPlatformInfo`.
pub unsafe extern "C" fn clGetPlatformInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetPlatformInfo", || {
        if !handle.is_null() && handle != platform() {
            return Err(Status::INVALID_PLATFORM.into());
        }
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x900 => query.text("FULL_PROFILE"),
            0x901 => query.text(VERSION),
            0x902 => query.text("wavesim"),
            0x903 => query.text("wavesim"),
            0x904 => query.text(&extensions()?.join(" ")),
            // CL_PLATFORM_HOST_TIMER_RESOLUTION
            0x905 => query.u64(1),
            0x906 => query.u32(version(3, 0)),
            0x907 => {
                query.versions(&extensions()?.iter().map(|name| (version(1, 0), *name)).collect::<Vec<_>>())
            }
            // CL_PLATFORM_ICD_SUFFIX_KHR
            0x920 => query.text("WAVESIM"),
            _ => unknown_parameter(),
        }
    })
}

/// `clGetDeviceIDs`.
pub unsafe extern "C" fn clGetDeviceIDs(
    handle: Handle,
    kind: u64,
    count: c_uint,
    list: Out<Handle>,
    found: Out<c_uint>,
) -> c_int {
    call("clGetDeviceIDs", || {
        if !handle.is_null() && handle != platform() {
            return Err(Status::INVALID_PLATFORM.into());
        }
        if (count == 0 && !list.is_null()) || (list.is_null() && found.is_null()) {
            return Err(Status::INVALID_VALUE.into());
        }
        if !includes_device(kind)? {
            found.put_optional(0);
            return Err(Status::DEVICE_NOT_FOUND.into());
        }
        let devices = devices::handles()?;
        if !list.is_null() {
            for (at, device) in devices.iter().take(count as usize).enumerate() {
                // SAFETY: the caller of the API passes an array of this length.
                unsafe { list.put_at(at, *device) };
            }
        }
        found.put_optional(devices.len() as c_uint);
        Ok(())
    })
}

/// Returns true if a device type (`cl_device_type`) includes the device.
pub fn includes_device(kind: u64) -> Outcome<bool> {
    const ALL: u64 = 0xffff_ffff;
    // CL_DEVICE_TYPE_DEFAULT and CL_DEVICE_TYPE_GPU
    const OURS: u64 = 0b101;
    if kind == 0 || (kind != ALL && kind > 0b11111) {
        return Err(Status::INVALID_DEVICE_TYPE.into());
    }
    Ok(kind & OURS != 0)
}

/// `clGetDeviceInfo`.
pub unsafe extern "C" fn clGetDeviceInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetDeviceInfo", || {
        check_device(handle)?;
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        device_info(name, &unsafe { Query::new(size, value, needed) })
    })
}

fn device_info(name: c_uint, query: &Query) -> Outcome {
    let target = gpu()?.device.target();
    let images = image::supported(&gpu()?.device);
    // CL_FP_DENORM to CL_FP_FMA
    const FLOATS: u64 = 0b11_1111;
    match name {
        // CL_DEVICE_TYPE: GPU and default
        0x1000 => query.u64(0b101),
        // CL_DEVICE_VENDOR_ID: AMD, from which programs infer the wave size and the instructions
        0x1001 => query.u32(0x1002),
        0x1002 => query.u32(UNITS),
        0x1003 => query.u32(3),
        0x1004 => query.word(MAX_ITEMS),
        0x1005 => query.words(&[MAX_ITEMS; 3]),
        // Preferred and native vector widths: char, short, int, long, float, double, half
        0x1006 | 0x1036 => query.u32(4),
        0x1007 | 0x1037 => query.u32(2),
        0x1008..=0x100b | 0x1038..=0x103b => query.u32(1),
        0x1034 | 0x103c => query.u32(2),
        // CL_DEVICE_MAX_CLOCK_FREQUENCY
        0x100c => query.u32(1000),
        0x100d => query.u32(64),
        // CL_DEVICE_MAX_READ_IMAGE_ARGS, CL_DEVICE_MAX_WRITE_IMAGE_ARGS, CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS
        0x100e => query.u32(if images { 128 } else { 0 }),
        0x100f | 0x104c => query.u32(if images { 64 } else { 0 }),
        // CL_DEVICE_MAX_SAMPLERS
        0x1018 => query.u32(if images { 16 } else { 0 }),
        // CL_DEVICE_IMAGE_PITCH_ALIGNMENT, CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT
        0x104a | 0x104b => query.u32(if images { PITCH_ALIGNMENT } else { 0 }),
        // The sizes of images of two and three dimensions, of buffers, and of arrays
        0x1011 | 0x1012 => query.word(if images { MAX_SIZE as usize } else { 0 }),
        0x1013..=0x1015 | 0x1041 => query.word(if images { MAX_DEPTH as usize } else { 0 }),
        0x1040 => query.word(if images { MAX_BUFFER_TEXELS as usize } else { 0 }),
        // CL_DEVICE_IMAGE_SUPPORT
        0x1016 => query.u32(images.into()),
        0x1010 => query.u64(gpu()?.max_allocation()),
        0x1017 => query.word(MAX_PARAMETERS),
        // CL_DEVICE_MEM_BASE_ADDR_ALIGN, in bits
        0x1019 => query.u32(ALIGNMENT as u32 * 8),
        0x101a => query.u32(128),
        0x101b | 0x1032 | 0x1033 => query.u64(FLOATS),
        // CL_READ_WRITE_CACHE
        0x101c => query.u32(2),
        0x101d => query.u32(128),
        0x101e => query.u64(4 << 20),
        0x101f => query.u64(gpu()?.total_bytes()),
        0x1020 => query.u64(gpu()?.max_allocation()),
        0x1021 => query.u32(8),
        // CL_LOCAL
        0x1022 => query.u32(1),
        0x1023 => query.u64(target.lds_bytes() as u64),
        0x1024 => query.u32(0),
        0x1025 => query.word(1),
        // CL_DEVICE_ENDIAN_LITTLE, CL_DEVICE_AVAILABLE
        0x1026 | 0x1027 => query.u32(1),
        // CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_LINKER_AVAILABLE
        0x1028 | 0x103e => query.u32(crate::compile::available().into()),
        // CL_EXEC_KERNEL
        0x1029 => query.u64(1),
        // CL_QUEUE_PROFILING_ENABLE
        0x102a => query.u64(2),
        0x102b => query.text(&format!("wavesim {}", target.processor_name())),
        0x102c => query.text("wavesim"),
        0x102d => query.text(DRIVER_VERSION),
        0x102e => query.text("FULL_PROFILE"),
        0x102f => query.text(VERSION),
        0x1030 => query.text(&extensions()?.join(" ")),
        0x1031 => query.handle(platform()),
        // CL_DEVICE_HOST_UNIFIED_MEMORY
        0x1035 => query.u32(1),
        0x103d => query.text("OpenCL C 1.2"),
        0x103f => query.text(""),
        // No parent device, no sub-devices
        0x1042 => query.word(0),
        0x1043 => query.u32(0),
        0x1044 | 0x1046 => query.words(&[]),
        0x1045 => query.u64(0),
        0x1047 => query.u32(1),
        0x1048 => query.u32(1),
        0x1049 => query.word(crate::printf::BYTES as usize),
        0x104d | 0x1054 => query.word(64 << 10),
        // No device-side queues, no pipes
        0x104e | 0x1070 => query.u64(0),
        0x104f..=0x1052 | 0x1055..=0x1057 => query.u32(0),
        // CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, CL_DEVICE_SVM_FINE_GRAIN_BUFFER
        0x1053 => query.u64(0b11),
        0x1058..=0x105a => query.u32(0),
        // CL_DEVICE_IL_VERSION
        0x105b => query.text(""),
        // Sub-groups
        0x105c | 0x105d => query.u32(0),
        0x105e => query.u32(version(3, 0)),
        0x1060 => {
            query.versions(&extensions()?.iter().map(|name| (version(1, 0), *name)).collect::<Vec<_>>())
        }
        0x1061 | 0x1062 => query.versions(&[]),
        // CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES: relaxed, acquire-release, sequentially consistent; workgroup,
        // device scope
        0x1063 => query.u64(0b11_0111),
        // CL_DEVICE_ATOMIC_FENCE_CAPABILITIES: the same, and work-item scope
        0x1064 => query.u64(0b11_1111),
        0x1065 => query.u32(0),
        0x1066 => query.versions(&[
            (version(1, 0), "OpenCL C"),
            (version(1, 1), "OpenCL C"),
            (version(1, 2), "OpenCL C"),
            (version(2, 0), "OpenCL C"),
            (version(3, 0), "OpenCL C"),
        ]),
        0x1067 => query.word(target.wave_size() as usize),
        0x1068 => query.u32(0),
        0x1069 => query.u32(1),
        0x106f => {
            let names = supported(&FEATURES, &IMAGE_FEATURES)?;
            query.versions(&names.into_iter().map(|name| (version(3, 0), name)).collect::<Vec<_>>())
        }
        0x1071 => query.u32(0),
        // CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED
        0x1072 => query.text(""),
        // cl_amd_device_attribute_query: CL_DEVICE_BOARD_NAME_AMD, CL_DEVICE_WAVEFRONT_WIDTH_AMD
        0x4038 => query.text(target.processor_name()),
        0x4043 => query.u32(target.wave_size()),
        _ => unknown_parameter(),
    }
}

unsafe extern "C" {
    #[link_name = "stdout"]
    static C_STDOUT: *mut libc::FILE;
}

/// Prints through the C library, so that the text follows the program's own buffered output.
pub fn print(text: &[u8]) {
    // SAFETY: the C library initialises `stdout` before `main`; `text` is valid for reads of its length.
    unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), C_STDOUT) };
}

/// `clRetainDevice`. Only checks the handle, since the device is never freed.
pub unsafe extern "C" fn clRetainDevice(handle: Handle) -> c_int {
    call("clRetainDevice", || check_device(handle))
}

/// `clReleaseDevice`.
pub unsafe extern "C" fn clReleaseDevice(handle: Handle) -> c_int {
    call("clReleaseDevice", || check_device(handle))
}

/// `clRetainDeviceEXT`.
pub unsafe extern "C" fn clRetainDeviceEXT(handle: Handle) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { clRetainDevice(handle) }
}

/// `clReleaseDeviceEXT`.
pub unsafe extern "C" fn clReleaseDeviceEXT(handle: Handle) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { clReleaseDevice(handle) }
}

/// `clGetHostTimer`. The host and the device share one clock.
pub unsafe extern "C" fn clGetHostTimer(handle: Handle, host: Out<u64>) -> c_int {
    call("clGetHostTimer", || {
        check_device(handle)?;
        host.put(gpu()?.now())
    })
}

/// `clGetDeviceAndHostTimer`.
pub unsafe extern "C" fn clGetDeviceAndHostTimer(
    handle: Handle,
    of_device: Out<u64>,
    host: Out<u64>,
) -> c_int {
    call("clGetDeviceAndHostTimer", || {
        check_device(handle)?;
        let now = gpu()?.now();
        of_device.put(now)?;
        host.put(now)
    })
}

/// `clUnloadCompiler`. Does nothing, since the compiler runs in another process.
pub unsafe extern "C" fn clUnloadCompiler() -> c_int {
    0
}

/// `clUnloadPlatformCompiler`.
pub unsafe extern "C" fn clUnloadPlatformCompiler(handle: Handle) -> c_int {
    call("clUnloadPlatformCompiler", || match handle == platform() {
        true => Ok(()),
        false => Err(Status::INVALID_PLATFORM.into()),
    })
}

/// `clGetExtensionFunctionAddress`.
pub unsafe extern "C" fn clGetExtensionFunctionAddress(name: Text) -> *const () {
    let name = name.get().unwrap_or_default();
    match name.as_str() {
        "clIcdGetPlatformIDsKHR" => clGetPlatformIDs as *const (),
        name => crate::function(name).unwrap_or(std::ptr::null()),
    }
}

/// `clGetExtensionFunctionAddressForPlatform`.
pub unsafe extern "C" fn clGetExtensionFunctionAddressForPlatform(
    _platform: Handle,
    name: Text,
) -> *const () {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { clGetExtensionFunctionAddress(name) }
}
