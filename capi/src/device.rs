//! Devices, their handles, and launches of raw code.

use crate::error::Error;
use crate::host::Space;
use crate::{WAVESIM_MODE_DEFAULT, wavesim_device, wavesim_launch, wavesim_outcome, wavesim_status};
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wavesim::arch::{Arch, PROCESSORS};
use wavesim::exec::program::Program;
use wavesim::fault::Fault;
use wavesim::loader::abi;
use wavesim::loader::prepared::{Prepared, Shape};
use wavesim::memory::Memory;
use wavesim::sched::dispatch::{self, InitialState, Layout, Registers, RunStats};

/// The most SGPRs that a launch can initialise. Workgroup ids need the rest.
pub const MAX_USER_SGPRS: u32 = 100;
/// The default limit of wave-instructions.
pub const MAX_INSTRUCTIONS: u64 = 10_000_000_000;

/// All devices. Handles are never reused, so that a stale handle is an error.
#[derive(Default)]
struct Registry {
    last: wavesim_device,
    live: BTreeMap<wavesim_device, Arc<Mutex<Device>>>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { last: 0, live: BTreeMap::new() });

/// Locks, ignoring poison: a call that panics leaves no inconsistent state (see [`Device`]).
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a device and returns its handle.
pub fn insert(device: Device) -> wavesim_device {
    let mut registry = lock(&REGISTRY);
    registry.last += 1;
    let handle = registry.last;
    registry.live.insert(handle, Arc::new(Mutex::new(device)));
    handle
}

/// Destroys a device, after any launch that runs on it.
pub fn remove(handle: wavesim_device) -> Result<(), Error> {
    let device = lock(&REGISTRY).live.remove(&handle).ok_or(Error::NoDevice(handle))?;
    drop(lock(&device));
    Ok(())
}

/// Calls `body` with a device, which is locked meanwhile.
pub fn with<T>(
    handle: wavesim_device,
    body: impl FnOnce(&mut Device) -> Result<T, Error>,
) -> Result<T, Error> {
    let device = lock(&REGISTRY).live.get(&handle).cloned().ok_or(Error::NoDevice(handle))?;
    body(&mut lock(&device))
}

/// Host memory that kernels can access.
#[derive(Debug, Clone, Copy)]
struct Range {
    address: u64,
    host: *mut u8,
    len: u64,
    writable: bool,
}

// SAFETY: the pointer is only dereferenced during launches, as the caller of `wavesim_device_map` allows.
unsafe impl Send for Range {}

/// An architecture, and the host memory that its kernels can access. Every launch has its own `Memory`, so that the only
/// state it changes is the caller's memory.
pub struct Device {
    /// The architecture.
    pub arch: Arch,
    ranges: Vec<Range>,
}

impl Device {
    /// A device for an architecture or a processor, without memory.
    pub fn new(target: &str) -> Result<Device, Error> {
        // The launch interface has the registers of AMD GPUs, which other architectures do not have.
        let named = Arch::RDNA.into_iter().find(|a| a.name() == target);
        let arch = named.or_else(|| Arch::from_mcpu(target)).ok_or_else(|| {
            let archs = Arch::RDNA.iter().map(|a| a.name());
            let names: Vec<&str> = archs.chain(PROCESSORS.iter().map(|p| p.name)).collect();
            Error::Target { given: target.to_string(), names: names.join(", ") }
        })?;
        Ok(Device { arch, ranges: Vec::new() })
    }

    /// Maps host memory.
    ///
    /// # Safety
    /// That of [`Memory::map_host`], until the memory is unmapped or the device is dropped.
    pub unsafe fn map(&mut self, address: u64, host: *mut u8, len: u64, writable: bool) -> Result<(), Error> {
        self.ranges.push(Range { address, host, len, writable });
        // Errors of the new range show when all ranges are mapped together.
        let checked = self.memory(Memory::empty());
        if checked.is_err() {
            self.ranges.pop();
        }
        checked.map(drop)
    }

    /// Unmaps the range that begins at an address.
    pub fn unmap(&mut self, address: u64) -> Result<(), Error> {
        let at = self.ranges.iter().position(|r| r.address == address).ok_or(Error::NoRange(address))?;
        self.ranges.remove(at);
        Ok(())
    }

    /// Adds all ranges to a memory.
    pub fn memory(&self, mut memory: Memory) -> Result<Memory, Error> {
        for r in &self.ranges {
            // SAFETY: required of the caller of `map`.
            unsafe { memory.map_host(r.address, r.host, r.len, r.writable)? };
        }
        Ok(memory)
    }

    /// Runs a launch of raw code.
    pub fn launch(&self, launch: &Launch) -> Result<RunStats, Error> {
        let mut memory = self.memory(Memory::empty())?;
        // Kernels read constants relative to the program counter. This fails if the caller has mapped the code already.
        let code = launch.code.as_ptr().cast_mut();
        // SAFETY: the range is read-only, and `launch` outlives `memory`.
        let _ = unsafe { memory.map_host(launch.code_address, code, launch.code.len() as u64, false) };
        let prepared = launch.prepare(self.arch, memory)?;
        run(&prepared, launch.given.threads, launch.given.max_instructions)
    }
}

/// A launch of raw code, with copies of the memory that its pointers point to.
pub struct Launch {
    /// The parameters.
    pub given: wavesim_launch,
    /// The machine code.
    pub code: Vec<u8>,
    /// Address of the code in the kernel's address space.
    pub code_address: u64,
    /// Initial values of s0, s1, …
    pub user_sgprs: Vec<u32>,
    /// SGPR of the first workgroup id.
    pub first_group_id: u16,
}

impl Default for wavesim_launch {
    fn default() -> wavesim_launch {
        wavesim_launch {
            struct_size: size_of::<wavesim_launch>() as u32,
            wave_size: 32,
            code: std::ptr::null(),
            code_bytes: 0,
            code_address: 0,
            entry_offset: 0,
            grid: [1; 3],
            block: [1; 3],
            lds_bytes: 0,
            scratch_bytes: 0,
            user_sgprs: std::ptr::null(),
            user_sgpr_count: 0,
            group_ids: 1,
            item_ids: 0,
            mode: WAVESIM_MODE_DEFAULT,
            max_instructions: MAX_INSTRUCTIONS,
            threads: 1,
            reserved: 0,
        }
    }
}

impl Launch {
    /// Copies the memory that the pointers in `given` point to.
    ///
    /// # Safety
    /// That of [`Space::bytes`], for these pointers.
    pub unsafe fn copied(space: &Space, given: &wavesim_launch) -> Result<Launch, Error> {
        // SAFETY: required of the caller.
        let code = unsafe { space.bytes("launch.code", given.code, given.code_bytes)? };
        if given.user_sgpr_count > MAX_USER_SGPRS {
            return Err(Error::UserSgprs(given.user_sgpr_count));
        }
        let user_sgprs = match given.user_sgpr_count {
            0 => Vec::new(),
            count => {
                // SAFETY: required of the caller.
                let bytes =
                    unsafe { space.bytes("launch.user_sgprs", given.user_sgprs.cast(), count as u64 * 4)? };
                bytes.chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
            }
        };
        let code_address = if given.code_address == 0 { given.code as u64 } else { given.code_address };
        let first_group_id = given.user_sgpr_count as u16;
        Ok(Launch { given: *given, code, code_address, user_sgprs, first_group_id })
    }

    /// Checks the parameters and decodes the code.
    pub fn prepare(&self, arch: Arch, memory: Memory) -> Result<Prepared, Error> {
        let (given, len) = (&self.given, self.code.len() as u64);
        if len == 0 || !len.is_multiple_of(4) {
            return Err(Error::CodeSize(len));
        }
        if !given.entry_offset.is_multiple_of(4) || given.entry_offset >= len {
            return Err(Error::Entry { entry: given.entry_offset, len });
        }
        let layout = Layout::Hsa {
            first_system_sgpr: self.first_group_id,
            group_ids: [0, 1, 2].map(|dim| given.group_ids >> dim & 1 == 1),
            architected: arch == Arch::Rdna4,
            item_id_dims: given.item_ids.min(2) as u8,
        };
        let mode = match given.mode {
            WAVESIM_MODE_DEFAULT => abi::default_mode(arch),
            mode => mode,
        };
        let shape = Shape {
            grid: given.grid,
            block: given.block,
            wave_size: given.wave_size,
            lds_bytes: given.lds_bytes,
            scratch_bytes: given.scratch_bytes.checked_next_multiple_of(4).unwrap_or(!3),
            registers: Registers::ALL,
            init: InitialState { layout, mode, sgprs: vec![(0, self.user_sgprs.clone())] },
            entry_pc: given.entry_offset,
            code_base: self.code_address,
        };
        let program = Program::from_bytes(arch, &self.code)?
            .for_wave_size(given.wave_size)
            .with_syntax(wavesim::asm::print::syntax);
        Ok(Prepared::bare(program, memory, shape))
    }
}

/// Runs a prepared launch.
pub fn run(prepared: &Prepared, threads: u32, max_instructions: u64) -> Result<RunStats, Error> {
    let mut dispatch = prepared.dispatch(max_instructions);
    dispatch.threads = threads.clamp(1, MAX_THREADS) as usize;
    dispatch.check()?;
    Ok(dispatch::run(&dispatch, &prepared.memory)?)
}

/// The most host threads of a launch.
const MAX_THREADS: u32 = 1024;

/// Writes the outcome of a launch for the caller, and returns its error.
///
/// # Safety
/// If the memory map is not available, `outcome` must be null or valid.
pub unsafe fn report(
    space: &Space,
    result: Result<RunStats, Error>,
    outcome: *mut wavesim_outcome,
) -> Result<(), Error> {
    if !outcome.is_null() {
        let value = match &result {
            Ok(stats) => wavesim_outcome {
                instructions: stats.instructions,
                waves: stats.waves,
                ..wavesim_outcome::default()
            },
            Err(Error::Fault(fault)) => wavesim_outcome::of(fault),
            Err(_) => wavesim_outcome::default(),
        };
        space.check("outcome", outcome as u64, size_of::<wavesim_outcome>() as u64, true)?;
        // SAFETY: writable, as just checked or required of the caller.
        unsafe { outcome.write_unaligned(value) };
    }
    result.map(drop)
}

impl Default for wavesim_outcome {
    fn default() -> wavesim_outcome {
        wavesim_outcome {
            instructions: 0,
            waves: 0,
            fault: [0; 32],
            pc: 0,
            address: 0,
            has_address: false,
            workgroup: [0; 3],
            wave: 0,
            lane: -1,
        }
    }
}

impl wavesim_outcome {
    fn of(fault: &Fault) -> wavesim_outcome {
        let mut kind = [0; 32];
        // The last byte stays 0, to terminate the string.
        for (to, from) in kind[..31].iter_mut().zip(fault.kind.name().bytes()) {
            *to = from as c_char;
        }
        wavesim_outcome {
            fault: kind,
            pc: fault.pc,
            address: fault.address.unwrap_or(0),
            has_address: fault.address.is_some(),
            workgroup: fault.workgroup,
            wave: fault.wave,
            lane: fault.lane.map_or(-1, |lane| lane as i32),
            ..wavesim_outcome::default()
        }
    }
}

const _: () = assert!(wavesim_status::WAVESIM_OK as i32 == 0, "hosts of run_asm compare with 0");
