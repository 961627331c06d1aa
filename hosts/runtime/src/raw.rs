//! Launches of machine code without a code object; the caller supplies the initial register values.

use crate::device::OwnMemory;
use crate::launch::{RunOptions, conclude, run_traced};
use crate::{Device, Error, HostMemory, Outcome};
use isa_spec::pcode::ir::Space;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use wavesim::arch::Arch;
use wavesim::descriptor::{self, Descriptor};
use wavesim::exec::program::Program;
use wavesim::loader::abi;
use wavesim::loader::prepared::{Modes, Prepared, Shape};
use wavesim::memory::Memory;
use wavesim::sched::dispatch::{InitialState, Layout, Registers};
use wavesim::sharing::Threads;
use wavesim::state::barrier::NAMED_BARRIERS;

/// Maximum number of user SGPRs. The remaining SGPRs hold workgroup ids.
pub const MAX_USER_SGPRS: u32 = 100;

/// Machine code with its launch parameters.
#[derive(Debug, Clone)]
pub struct RawLaunch {
    /// The machine code.
    pub code: Vec<u8>,
    /// Address of the code as kernels see it.
    pub code_address: u64,
    /// Byte offset of the first instruction.
    pub entry: u64,
    /// Number of lanes in a wave.
    pub wave_size: u32,
    /// Workgroups in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// LDS size of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Scratch size of a work-item in bytes.
    pub scratch_bytes: u32,
    /// Provide LDS and scratch only if the code has instructions that access them. For code that does not
    /// declare its requirements.
    pub memory_only_if_used: bool,
    /// Initial values of s0, s1, …
    pub user_sgprs: Vec<u32>,
    /// SGPR of the first workgroup id, on targets that pass workgroup ids in SGPRs.
    pub first_group_id: u16,
    /// Whether the workgroup id of each dimension is initialised.
    pub group_ids: [bool; 3],
    /// Work-item ids in v0: 0 for X only, 1 for X and Y, 2 for X, Y and Z.
    pub item_ids: u8,
    /// Initial MODE register; `None` selects the value that compilers use.
    pub mode: Option<u32>,
    /// Modes that affect the checks.
    pub modes: Modes,
    /// Number of host threads.
    pub threads: Threads,
    /// Number of wave-instructions after which the launch faults.
    pub max_instructions: u64,
}

impl RawLaunch {
    /// Applies the registers COMPUTE_PGM_RSRC1 and COMPUTE_PGM_RSRC2 (LLVM AMDGPUUsage), which define MODE,
    /// the LDS size, the number of user SGPRs, and the ids to initialise.
    pub fn set_resources(&mut self, arch: Arch, rsrc1: u32, rsrc2: u32) {
        let mut d = Descriptor::ZERO;
        d.set(descriptor::RSRC1, rsrc1);
        d.set(descriptor::RSRC2, rsrc2);
        self.mode = Some(abi::mode(arch, &d));
        self.modes = abi::modes(&d);
        self.lds_bytes = d.get(descriptor::LDS_GRANULES) * 512;
        self.group_ids = abi::group_ids(&d);
        self.item_ids = d.get(descriptor::WORKITEM_ID).min(2) as u8;
        self.first_group_id = d.get(descriptor::USER_SGPR_COUNT) as u16;
        self.user_sgprs.resize(self.first_group_id as usize, 0);
    }

    /// Validates the launch and returns its shape for the engine.
    pub fn shape(&self, arch: Arch) -> Result<Shape, Error> {
        let len = self.code.len() as u64;
        if len == 0 || !len.is_multiple_of(4) {
            return Err(Error::CodeSize(len));
        }
        if !self.entry.is_multiple_of(4) || self.entry >= len {
            return Err(Error::Entry { entry: self.entry, len });
        }
        if self.user_sgprs.len() > MAX_USER_SGPRS as usize {
            return Err(Error::UserSgprs(self.user_sgprs.len() as u32));
        }
        let layout = Layout::Hsa {
            first_system_sgpr: self.first_group_id,
            group_ids: self.group_ids,
            architected: abi::has_architected_ids(arch),
            item_id_dims: self.item_ids,
        };
        let mode = self.mode.unwrap_or_else(|| abi::default_mode(arch));
        Ok(Shape {
            grid: self.grid,
            cluster: [1; 3],
            block: self.block,
            wave_size: self.wave_size,
            named_barriers: NAMED_BARRIERS as u32,
            lds_bytes: self.lds_bytes,
            scratch_bytes: self.scratch_bytes.checked_next_multiple_of(4).unwrap_or(!3),
            registers: Registers::ALL,
            init: InitialState { layout, mode, sgprs: vec![(0, self.user_sgprs.clone())] },
            entry_pc: self.entry,
            code_base: self.code_address,
        })
    }

    /// Decodes the code.
    pub fn program(&self, arch: Arch) -> Result<Program, Error> {
        Ok(Program::from_bytes(arch, &self.code)?
            .for_wave_size(self.wave_size)
            .with_syntax(wavesim::asm::print::syntax))
    }
}

impl Device {
    /// Runs machine code with access to the device's memory and `extra`. The code itself is readable at its
    /// address, unless other memory is mapped there.
    pub fn launch_raw(&self, launch: &RawLaunch, extra: &[HostMemory]) -> Result<Outcome, Error> {
        self.check_process()?;
        let mut extra = extra.to_vec();
        let readable = |r: &HostMemory| launch.code_address.wrapping_sub(r.address()) < r.len();
        if !extra.iter().any(readable) && self.find(launch.code_address).is_none() {
            let (host, len) = (launch.code.as_ptr().cast_mut(), launch.code.len() as u64);
            // SAFETY: `launch` is borrowed until the launch has ended, and kernels can only read the mapping.
            extra.push(unsafe { HostMemory::new(launch.code_address, host, len, false, "code") });
        }
        let map = self.launch_memory(&OwnMemory { extra: &extra, ..OwnMemory::default() })?;
        let (memory, restore) = map.split();
        let (result, memory) = self.launch_raw_on(launch, memory);
        self.recycle(restore(memory));
        result
    }

    /// Runs machine code on the given memory, and returns the memory with the result.
    pub fn launch_raw_on(&self, launch: &RawLaunch, memory: Memory) -> (Result<Outcome, Error>, Memory) {
        let arch = self.target().arch;
        let lowered =
            launch.shape(arch).and_then(|shape| Ok((shape, self.inner.programs.acquire(arch, launch)?)));
        let (mut shape, code) = match lowered {
            Ok(lowered) => lowered,
            Err(e) => return (Err(e), memory),
        };
        if launch.memory_only_if_used {
            shape.scratch_bytes = if code.uses_scratch { shape.scratch_bytes } else { 0 };
            shape.lds_bytes = if code.uses_lds { shape.lds_bytes } else { 0 };
        }
        let settings = self.settings();
        let timing = self.inner.timing.as_ref();
        let regions = timing.map_or(Vec::new(), |_| self.regions(&[]));
        let options = RunOptions {
            code: Some(hash(&launch.code, launch.wave_size)),
            timing: timing.map(|timing| (timing, &regions[..])),
            number: self.count_launch(),
            threads: launch.threads,
            max_instructions: launch.max_instructions,
            pool: Some(&self.inner.pool),
            gws: Some(&self.inner.gws),
            ..RunOptions::new(settings, &self.inner.code_cache)
        };
        let Code { bytes, program, .. } = code;
        let prepared = Prepared { modes: launch.modes, ..Prepared::without_names(program, memory, shape) };
        let trace = settings.trace.as_deref();
        let result = self.cancellable(|cancel| {
            run_traced(&prepared, &RunOptions { cancel: Some(cancel), ..options }, trace)
        });
        self.inner.programs.release(Code { bytes, program: prepared.program, ..code });
        let outcome = result.and_then(|(stats, report)| conclude(stats, report, settings));
        (outcome, prepared.memory)
    }
}

/// Maximum number of programs in a device's cache.
const MAX_PROGRAMS: usize = 1024;

/// Cache of decoded programs, by the hash of their code.
#[derive(Default)]
pub(crate) struct ProgramCache(Mutex<HashMap<u64, Code>>);

/// Decoded code, with a summary of its memory accesses.
struct Code {
    bytes: Vec<u8>,
    program: Program,
    uses_lds: bool,
    uses_scratch: bool,
}

/// Returns a hash of code. Hits must be verified by comparing the code.
fn hash(code: &[u8], wave_size: u32) -> u64 {
    // FxHash, as in rustc: every launch hashes all of its code, so the hash must be cheap.
    let words = code.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    words.fold(wave_size as u64, mix)
}

impl ProgramCache {
    /// Removes the decoded code from the cache. Decodes it if it is not cached or another launch holds it.
    fn acquire(&self, arch: Arch, launch: &RawLaunch) -> Result<Code, Error> {
        let key = hash(&launch.code, launch.wave_size);
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        if let Some(code) = found
            && code.bytes == launch.code
            && code.program.wave_size == launch.wave_size
        {
            return Ok(code);
        }
        let program = launch.program(arch)?;
        Ok(Code {
            bytes: launch.code.clone(),
            uses_lds: program.accesses(&[Space::Lds, Space::Flat]),
            uses_scratch: program.accesses(&[Space::Scratch, Space::Flat]),
            program,
        })
    }

    /// Returns decoded code to the cache.
    fn release(&self, code: Code) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= MAX_PROGRAMS {
            cached.clear();
        }
        cached.insert(hash(&code.bytes, code.program.wave_size), code);
    }
}
