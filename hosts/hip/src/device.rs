//! Device management: properties, attributes, selection and configuration.

use crate::ffi::{Memory, Out, Text};
use crate::gpu::{Gpu, gpu, gpu_at, gpus, make_current};
use crate::status::{Outcome, Status, call};
use std::ffi::{c_char, c_int, c_uint};
use wavesim_runtime::image;

/// Number of multiprocessors that the device reports. Programs derive grid sizes from it.
pub const PROCESSORS: c_int = 8;
/// Maximum number of resident work-items per multiprocessor.
pub const ITEMS_PER_PROCESSOR: c_int = 2048;
/// Maximum number of work-items of a workgroup.
pub const MAX_ITEMS: c_int = 1024;
const REGISTERS: c_int = 65536;
/// Clock rate in kHz.
const CLOCK: c_int = 1_000_000;
const MEMORY_CLOCK: c_int = 1_000_000;
const BUS_WIDTH: c_int = 256;
const L2_BYTES: c_int = 4 << 20;
const PITCH_LIMIT: usize = i32::MAX as usize;
/// Maximum number of workgroups in each dimension of a grid.
pub const MAX_GRID: [c_int; 3] = [i32::MAX, 65536, 65536];
/// Version of the API: HIP 6.4.
const VERSION: c_int = 60_443_484;

/// Identity of the device, as reported to programs.
struct Identity {
    name: String,
    processor: &'static str,
    /// As of [`version`].
    major: c_int,
    minor: c_int,
    wave: c_int,
    /// LDS size of a workgroup and of a multiprocessor in bytes.
    lds: c_int,
    processor_lds: c_int,
    /// Whether workgroups can form clusters.
    clusters: bool,
    /// Number of the PCI bus, of which a device is the only one. Programs tell devices apart by it.
    bus: c_int,
}

/// Returns the major and minor version of a processor: 11 and 0 for `gfx1100`.
pub fn version(processor: &str) -> [c_int; 2] {
    let digits = processor.trim_start_matches("gfx");
    let (major, rest) = digits.split_at(digits.len().saturating_sub(2));
    let minor = rest.get(..1).and_then(|d| d.parse().ok()).unwrap_or(0);
    [major.parse().unwrap_or(0), minor]
}

impl Gpu {
    fn identity(&self) -> Identity {
        let target = self.device.target();
        let processor = target.processor_name();
        let [major, minor] = version(processor);
        Identity {
            name: format!("wavesim {processor}"),
            processor,
            major,
            minor,
            wave: target.wave_size() as c_int,
            lds: target.lds_bytes() as c_int,
            processor_lds: target.processor_lds_bytes() as c_int,
            clusters: target.arch.facts().cluster_workgroups > 1,
            bus: self.ordinal(),
        }
    }

    /// Returns the name of the device, as a UUID; further devices with their ordinal at the end.
    fn uuid(&self) -> [u8; 16] {
        let mut uuid = [b' '; 16];
        let name = self.identity().name.into_bytes();
        uuid.iter_mut().zip(name).for_each(|(to, from)| *to = from);
        if self.ordinal() > 0 {
            uuid[13..].copy_from_slice(format!("{:03}", self.ordinal()).as_bytes());
        }
        uuid
    }

    /// Returns the address on the PCI bus.
    fn pci_address(&self) -> String {
        format!("0000:{:02x}:00.0", self.ordinal())
    }
}

/// A structure of the API, written field by field at the offsets defined by the API's headers.
struct Fields<const N: usize>([u8; N]);

impl<const N: usize> Fields<N> {
    fn bytes(&mut self, index: usize, bytes: &[u8]) {
        self.0[index..index + bytes.len()].copy_from_slice(bytes);
    }

    fn text(&mut self, index: usize, text: &str) {
        // Names are shorter than their fields, so the fields stay NUL-terminated.
        self.bytes(index, &text.as_bytes()[..text.len().min(255)]);
    }

    fn ints(&mut self, list: &[(usize, c_int)]) {
        list.iter().for_each(|(at, value)| self.bytes(*at, &value.to_le_bytes()));
    }

    fn sizes(&mut self, list: &[(usize, usize)]) {
        list.iter().for_each(|(at, value)| self.bytes(*at, &value.to_le_bytes()));
    }

    fn triple(&mut self, index: usize, values: [c_int; 3]) {
        values.iter().enumerate().for_each(|(k, v)| self.bytes(index + 4 * k, &v.to_le_bytes()));
    }
}

/// `hipDeviceArch_t`: 17 feature bits, from global 32-bit atomics to three-dimensional grids. Dynamic
/// parallelism and surfaces are off.
const FEATURES: c_int = 0xbfff;

/// `hipDeviceProp_t` since HIP 6.0.
fn properties_r0600(gpu: &Gpu) -> [u8; 1472] {
    let (mut f, id) = (Fields([0; 1472]), gpu.identity());
    f.text(0, &id.name);
    f.bytes(256, &gpu.uuid());
    f.sizes(&[
        (288, gpu.total_bytes() as usize),
        (296, id.lds as usize),
        (312, PITCH_LIMIT),
        (352, gpu.total_bytes() as usize),
        (368, 256),
        (376, 256),
        (640, id.processor_lds as usize),
        (696, id.lds as usize),
        (1416, id.processor_lds as usize),
    ]);
    f.triple(324, [MAX_ITEMS; 3]);
    f.triple(336, MAX_GRID);
    f.ints(&[
        (304, REGISTERS),
        (308, id.wave),
        (320, MAX_ITEMS),
        (348, CLOCK),
        (360, id.major),
        (364, id.minor),
        (388, PROCESSORS),
        (400, 1),
        (576, 1),
        (584, id.bus),
        (600, 1),
        (604, 1),
        (608, MEMORY_CLOCK),
        (612, BUS_WIDTH),
        (616, L2_BYTES),
        (624, ITEMS_PER_PROCESSOR),
        (628, 1),
        (632, 1),
        (636, 1),
        (648, REGISTERS),
        (652, 1),
        (664, 1),
        (676, 1),
        (688, 1),
        (708, 1),
        (712, ITEMS_PER_PROCESSOR / id.wave),
        (728, 1),
        (744, 1),
        (772, id.clusters.into()),
        (1424, CLOCK),
        (1428, FEATURES),
        (1464, 1),
    ]);
    f.text(1160, id.processor);
    f.0
}

/// `hipDeviceProp_t` before HIP 6.0.
fn properties_r0000(gpu: &Gpu) -> [u8; 792] {
    let (mut f, id) = (Fields([0; 792]), gpu.identity());
    f.text(0, &id.name);
    f.sizes(&[
        (256, gpu.total_bytes() as usize),
        (264, id.lds as usize),
        (320, gpu.total_bytes() as usize),
        (376, id.processor_lds as usize),
        (712, PITCH_LIMIT),
        (720, 256),
        (728, 256),
    ]);
    f.triple(284, [MAX_ITEMS; 3]);
    f.triple(296, MAX_GRID);
    f.ints(&[
        (272, REGISTERS),
        (276, id.wave),
        (280, MAX_ITEMS),
        (308, CLOCK),
        (312, MEMORY_CLOCK),
        (316, BUS_WIDTH),
        (328, id.major),
        (332, id.minor),
        (336, PROCESSORS),
        (340, L2_BYTES),
        (344, ITEMS_PER_PROCESSOR),
        (352, CLOCK),
        (356, FEATURES),
        (360, 1),
        (368, id.bus),
        (388, 1),
        (392, id.processor.trim_start_matches("gfx").parse().unwrap_or(0)),
        (656, 1),
        (764, 1),
        (772, 1),
        (776, 1),
        (780, 1),
    ]);
    f.text(396, id.processor);
    f.0
}

/// `hipGetDevicePropertiesR0600`.
pub unsafe extern "C" fn hipGetDevicePropertiesR0600(properties: Out<[u8; 1472]>, device: c_int) -> c_int {
    call("hipGetDeviceProperties", || properties.put(properties_r0600(gpu_at(device)?)))
}

/// `hipGetDevicePropertiesR0000`.
pub unsafe extern "C" fn hipGetDevicePropertiesR0000(properties: Out<[u8; 792]>, device: c_int) -> c_int {
    call("hipGetDeviceProperties", || properties.put(properties_r0000(gpu_at(device)?)))
}

/// `hipGetDeviceProperties`, as called by programs built before HIP 6.0.
pub unsafe extern "C" fn hipGetDeviceProperties(properties: Out<[u8; 792]>, device: c_int) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipGetDevicePropertiesR0000(properties, device) }
}

/// Returns the value of an attribute, or `None` for an unknown attribute. Unsupported features have the value
/// 0.
pub(crate) fn attribute(gpu: &Gpu, attribute: c_int) -> Option<c_int> {
    let id = gpu.identity();
    Some(match attribute {
        2 | 3 | 8 | 9 | 10 | 13 | 14 | 15 | 20 | 24 | 78 | 85 | 88 | 89 | 90 => 1,
        5 | 10000 | 10017 => CLOCK,
        19 => L2_BYTES,
        23 => id.major,
        25 => ITEMS_PER_PROCESSOR / id.wave,
        26..=28 | 55 | 56 => MAX_ITEMS,
        29 => MAX_GRID[0],
        30 => MAX_GRID[1],
        31 => MAX_GRID[2],
        57 => ITEMS_PER_PROCESSOR,
        58 => PITCH_LIMIT as c_int,
        59 => BUS_WIDTH,
        60 => MEMORY_CLOCK,
        61 => id.minor,
        63 | 10015 => PROCESSORS,
        67 => id.bus,
        71 | 72 => REGISTERS,
        74 | 75 => id.lds,
        76 | 10002 => id.processor_lds,
        79 | 81 | 82 => 256,
        // Memory sizes saturate, since attributes have 32 bits, as in CUDA.
        83 | 84 => c_int::MAX,
        87 => id.wave,
        // hipDeviceAttributeIsLargeBar, …CanUseStreamWaitValue, …FineGrainSupport
        10011 | 10013 | 10016 => 1,
        // hipDeviceAttributeImageSupport
        10014 => image::supported(&gpu.device).into(),
        0..=91 | 10003..=10014 => 0,
        _ => return None,
    })
}

/// `hipDeviceGetAttribute`.
pub unsafe extern "C" fn hipDeviceGetAttribute(value: Out<c_int>, number: c_int, device: c_int) -> c_int {
    call("hipDeviceGetAttribute", || {
        value.put(attribute(gpu_at(device)?, number).ok_or(Status::INVALID_VALUE)?)
    })
}

/// `hipInit`.
pub unsafe extern "C" fn hipInit(flags: c_uint) -> c_int {
    call("hipInit", || if flags == 0 { gpu().map(drop) } else { Err(Status::INVALID_VALUE.into()) })
}

/// `hipGetDeviceCount`.
pub unsafe extern "C" fn hipGetDeviceCount(count: Out<c_int>) -> c_int {
    call("hipGetDeviceCount", || count.put(gpus()?.len() as c_int))
}

/// `hipGetDevice`.
pub unsafe extern "C" fn hipGetDevice(device: Out<c_int>) -> c_int {
    call("hipGetDevice", || device.put(gpu()?.ordinal()))
}

/// `hipSetDevice`.
pub unsafe extern "C" fn hipSetDevice(device: c_int) -> c_int {
    call("hipSetDevice", || gpu_at(device).map(make_current))
}

/// `hipDeviceGet`.
pub unsafe extern "C" fn hipDeviceGet(device: Out<c_int>, ordinal: c_int) -> c_int {
    call("hipDeviceGet", || device.put(gpu_at(ordinal)?.ordinal()))
}

/// `hipChooseDevice`. Returns the current device, whatever the properties.
pub unsafe extern "C" fn hipChooseDevice(device: Out<c_int>, _properties: Memory) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipGetDevice(device) }
}

/// `hipChooseDeviceR0600`.
pub unsafe extern "C" fn hipChooseDeviceR0600(device: Out<c_int>, _properties: Memory) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipGetDevice(device) }
}

/// `hipSetDeviceFlags`. The flags, which select how threads wait, are ignored.
pub unsafe extern "C" fn hipSetDeviceFlags(_flags: c_uint) -> c_int {
    0
}

/// `hipGetDeviceFlags`.
pub unsafe extern "C" fn hipGetDeviceFlags(flags: Out<c_uint>) -> c_int {
    call("hipGetDeviceFlags", || flags.put(0))
}

/// Copies a string into the caller's memory.
///
/// # Safety
/// Unless it is null, `to` has room for `len` characters.
unsafe fn put_text(to: &Out<c_char>, len: c_int, text: &str) -> Outcome {
    let len = usize::try_from(len).ok().filter(|l| *l > 0).ok_or(Status::INVALID_VALUE)?;
    if to.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    let bytes = &text.as_bytes()[..text.len().min(len - 1)];
    for (at, byte) in bytes.iter().chain(&[0]).enumerate() {
        // SAFETY: the caller guarantees memory of `len` bytes.
        unsafe { to.put_at(at, *byte as c_char) };
    }
    Ok(())
}

/// `hipDeviceGetName`.
pub unsafe extern "C" fn hipDeviceGetName(name: Out<c_char>, len: c_int, device: c_int) -> c_int {
    // SAFETY: the caller of the API passes memory of this length.
    call("hipDeviceGetName", || unsafe { put_text(&name, len, &gpu_at(device)?.identity().name) })
}

/// `hipDeviceGetPCIBusId`. Devices are not on a bus; each reports one of its own.
pub unsafe extern "C" fn hipDeviceGetPCIBusId(id: Out<c_char>, len: c_int, device: c_int) -> c_int {
    call("hipDeviceGetPCIBusId", || {
        let address = gpu_at(device)?.pci_address();
        // SAFETY: the caller of the API passes memory of this length.
        unsafe { put_text(&id, len, &address) }
    })
}

/// `hipDeviceGetByPCIBusId`.
pub unsafe extern "C" fn hipDeviceGetByPCIBusId(device: Out<c_int>, id: Text) -> c_int {
    call("hipDeviceGetByPCIBusId", || {
        // The domain may be missing.
        let id = id.get()?.to_lowercase();
        let named = |gpu: &&Gpu| gpu.pci_address() == id || gpu.pci_address()[5..] == id;
        device.put(gpus()?.iter().find(named).ok_or(Status::INVALID_VALUE)?.ordinal())
    })
}

/// `hipDeviceGetUuid`.
pub unsafe extern "C" fn hipDeviceGetUuid(uuid: Out<[u8; 16]>, device: c_int) -> c_int {
    call("hipDeviceGetUuid", || uuid.put(gpu_at(device)?.uuid()))
}

/// `hipDeviceTotalMem`.
pub unsafe extern "C" fn hipDeviceTotalMem(bytes: Out<usize>, device: c_int) -> c_int {
    call("hipDeviceTotalMem", || bytes.put(gpu_at(device)?.total_bytes() as usize))
}

/// `hipDeviceComputeCapability`.
pub unsafe extern "C" fn hipDeviceComputeCapability(
    major: Out<c_int>,
    minor: Out<c_int>,
    device: c_int,
) -> c_int {
    call("hipDeviceComputeCapability", || {
        let id = gpu_at(device)?.identity();
        major.put(id.major)?;
        minor.put(id.minor)
    })
}

/// `hipDeviceGetLimit`. The values are nominal: the stack, the `printf` buffer and the heap grow on demand.
pub unsafe extern "C" fn hipDeviceGetLimit(value: Out<usize>, limit: c_int) -> c_int {
    call("hipDeviceGetLimit", || match limit {
        0 => value.put(16 << 10),
        1 => value.put(1 << 20),
        2 => value.put(gpu()?.total_bytes() as usize),
        _ => Err(Status::UNSUPPORTED_LIMIT.into()),
    })
}

/// `hipDeviceSetLimit`.
pub unsafe extern "C" fn hipDeviceSetLimit(limit: c_int, _value: usize) -> c_int {
    call("hipDeviceSetLimit", || {
        if (0..3).contains(&limit) { Ok(()) } else { Err(Status::UNSUPPORTED_LIMIT.into()) }
    })
}

/// `hipDeviceGetCacheConfig`. Reports no preference.
pub unsafe extern "C" fn hipDeviceGetCacheConfig(config: Out<c_int>) -> c_int {
    call("hipDeviceGetCacheConfig", || config.put(0))
}

/// `hipDeviceSetCacheConfig`.
pub unsafe extern "C" fn hipDeviceSetCacheConfig(_config: c_int) -> c_int {
    0
}

/// `hipDeviceGetSharedMemConfig`. Reports banks of four bytes.
pub unsafe extern "C" fn hipDeviceGetSharedMemConfig(config: Out<c_int>) -> c_int {
    call("hipDeviceGetSharedMemConfig", || config.put(1))
}

/// `hipDeviceSetSharedMemConfig`.
pub unsafe extern "C" fn hipDeviceSetSharedMemConfig(_config: c_int) -> c_int {
    0
}

/// `hipDriverGetVersion`.
pub unsafe extern "C" fn hipDriverGetVersion(version: Out<c_int>) -> c_int {
    call("hipDriverGetVersion", || version.put(VERSION))
}

/// `hipRuntimeGetVersion`.
pub unsafe extern "C" fn hipRuntimeGetVersion(version: Out<c_int>) -> c_int {
    call("hipRuntimeGetVersion", || version.put(VERSION))
}

/// `hipProfilerStart`. Does nothing.
pub unsafe extern "C" fn hipProfilerStart() -> c_int {
    0
}

/// `hipProfilerStop`.
pub unsafe extern "C" fn hipProfilerStop() -> c_int {
    0
}
