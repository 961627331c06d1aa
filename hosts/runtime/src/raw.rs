//! Launches of machine code without a code object, with the registers that the caller gives.

use crate::launch::{Manner, run_traced};
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

/// The most SGPRs that a launch can initialise. Workgroup ids need the rest.
pub const MAX_USER_SGPRS: u32 = 100;

/// Machine code and its launch.
#[derive(Debug, Clone)]
pub struct RawLaunch {
    /// The machine code.
    pub code: Vec<u8>,
    /// Its address for kernels.
    pub code_address: u64,
    /// Byte offset of the first instruction.
    pub entry: u64,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// Workgroups in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// LDS of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Scratch memory of a work-item in bytes.
    pub scratch_bytes: u32,
    /// Nothing declares how much LDS and scratch the code needs: it has some only if it has instructions that access it.
    pub only_if_used: bool,
    /// Initial values of s0, s1, …
    pub user_sgprs: Vec<u32>,
    /// SGPR of the first workgroup id, where workgroup ids are in user SGPRs.
    pub first_group_id: u16,
    /// Workgroup ids that are initialised, by dimension.
    pub group_ids: [bool; 3],
    /// Work-item ids in v0: 0 only X, 1 X and Y, 2 X, Y and Z.
    pub item_ids: u8,
    /// MODE; `None`: as compilers set it.
    pub mode: Option<u32>,
    /// Modes that checks have to know.
    pub modes: Modes,
    /// Host threads.
    pub threads: usize,
    /// Wave-instructions after which it faults.
    pub max_instructions: u64,
}

impl RawLaunch {
    /// Sets what the registers COMPUTE_PGM_RSRC1 and COMPUTE_PGM_RSRC2 say (LLVM AMDGPUUsage): MODE, LDS, and which ids
    /// there are.
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

    /// What the engine needs to know.
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
            block: self.block,
            wave_size: self.wave_size,
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
    /// Runs machine code on the device's memory and `extra`. Kernels can read the code at its address, unless something
    /// else is mapped there.
    pub fn launch_raw(&self, launch: &RawLaunch, extra: &[HostMemory]) -> Result<Outcome, Error> {
        let mut extra = extra.to_vec();
        let readable = |r: &HostMemory| launch.code_address.wrapping_sub(r.address()) < r.len();
        if !extra.iter().any(readable) && self.find(launch.code_address).is_none() {
            let (host, len) = (launch.code.as_ptr().cast_mut(), launch.code.len() as u64);
            // SAFETY: read-only, and `launch` outlives the launch.
            extra.push(unsafe { HostMemory::new(launch.code_address, host, len, false, "code") });
        }
        let space = self.space(&extra, None)?;
        let (memory, join) = space.split();
        let (result, memory) = self.launch_raw_on(launch, memory);
        self.end(join(memory));
        result
    }

    /// Runs machine code on any memory, which is returned.
    pub fn launch_raw_on(&self, launch: &RawLaunch, memory: Memory) -> (Result<Outcome, Error>, Memory) {
        let arch = self.target().arch;
        let made = launch.shape(arch).and_then(|shape| Ok((shape, self.inner.programs.take(arch, launch)?)));
        let (mut shape, code) = match made {
            Ok(made) => made,
            Err(e) => return (Err(e), memory),
        };
        if launch.only_if_used {
            shape.scratch_bytes = if code.uses_scratch { shape.scratch_bytes } else { 0 };
            shape.lds_bytes = if code.uses_lds { shape.lds_bytes } else { 0 };
        }
        let settings = self.settings();
        let manner = Manner {
            kernel: "",
            number: self.count_launch(),
            checks: &settings.checks,
            threads: launch.threads,
            engine: settings.engine,
            codes: &self.inner.codes,
            max_instructions: launch.max_instructions,
            cooperative: false,
            pool: Some(&self.inner.pool),
            cancel: None,
        };
        let Code { bytes, program, .. } = code;
        let prepared = Prepared { modes: launch.modes, ..Prepared::without_names(program, memory, shape) };
        let trace = settings.trace.as_deref();
        let result = self
            .cancellable(|cancel| run_traced(&prepared, &Manner { cancel: Some(cancel), ..manner }, trace));
        self.inner.programs.give_back(Code { bytes, program: prepared.program, ..code });
        let outcome = result.and_then(|(stats, report)| match report.fault {
            Some(_) => Err(Error::Fault(Box::new(report))),
            None => Ok(Outcome { stats, report }),
        });
        (outcome, prepared.memory)
    }
}

/// The most programs that a device keeps.
const MAX_PROGRAMS: usize = 1024;

/// Decoded code of earlier launches, by its bytes.
#[derive(Default)]
pub(crate) struct Programs(Mutex<HashMap<u64, Code>>);

/// Decoded code.
struct Code {
    bytes: Vec<u8>,
    program: Program,
    uses_lds: bool,
    uses_scratch: bool,
}

/// A number for code. That of other code may be the same.
fn key(code: &[u8], wave_size: u32) -> u64 {
    // Short, as every launch hashes all of the code (FxHash, which rustc uses).
    let words = code.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    words.fold(wave_size as u64, mix)
}

impl Programs {
    /// The code's program; it is decoded if it is new, or in use.
    fn take(&self, arch: Arch, launch: &RawLaunch) -> Result<Code, Error> {
        let key = key(&launch.code, launch.wave_size);
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

    /// Keeps a program for the next launch.
    fn give_back(&self, code: Code) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= MAX_PROGRAMS {
            cached.clear();
        }
        cached.insert(key(&code.bytes, code.program.wave_size), code);
    }
}
