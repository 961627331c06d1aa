//! Operations of streams and graphs: kernels, copies, fills, host functions.

use crate::ffi::{HostFunction, Memory};
use crate::gpu::Gpu;
pub use crate::graph::MemoryOp;
use crate::status::{Failure, Outcome, Status, report};
pub use crate::stream_value::ValueOp;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
pub use wavesim_runtime::pitched::{Copy, Pitched};
use wavesim_runtime::{Device, Kernel, Launch, callback};

/// A self-contained operation.
#[derive(Clone)]
pub enum Op {
    /// A kernel launch.
    Kernel(Arc<Invocation>),
    /// A copy.
    Copy(Copy),
    /// A fill.
    Fill(Fill),
    /// A host function of the program.
    Host(HostFunction),
    /// `hipStreamAddCallback`.
    Callback(Callback),
    /// A sequence of operations.
    Batch(Arc<Vec<Work>>),
    /// A write of a value to memory, or a wait for one.
    Value(ValueOp),
    /// An allocation of a graph, or the end of one.
    Memory(MemoryOp),
    /// No operation. Only orders other work.
    Nothing,
}

/// An operation that may run: until it has run for the last time, the memory that it refers to is valid, and its functions
/// can be called. Streams, graphs and captures hold these only, so that it is guaranteed in one place, the entry of the API
/// whose caller guarantees it.
#[derive(Clone)]
pub struct Work(Op);

impl Work {
    /// Accepts an operation.
    ///
    /// # Safety
    /// Whenever the operation runs, the memory that it refers to is valid, and its functions can be called.
    pub unsafe fn new(op: Op) -> Work {
        Work(op)
    }

    /// Returns the launch of a kernel, which accesses memory of the device only.
    pub fn kernel(invocation: Invocation) -> Work {
        Work(Op::Kernel(Arc::new(invocation)))
    }

    /// Returns an allocation of a graph, or the end of one, which changes what kernels can access only.
    pub fn memory(op: MemoryOp) -> Work {
        Work(Op::Memory(op))
    }

    /// Returns a sequence.
    pub fn batch(parts: Vec<Work>) -> Work {
        Work(Op::Batch(Arc::new(parts)))
    }

    /// Returns no operation, which only orders other work.
    pub fn nothing() -> Work {
        Work(Op::Nothing)
    }

    /// Returns the operation.
    pub fn op(&self) -> &Op {
        &self.0
    }

    /// Executes the operation. After a failure, which includes panics, operations do nothing until the device is reset.
    pub fn run(&self, gpu: &Gpu) {
        if gpu.check().is_err() {
            return;
        }
        // SAFETY: `new` requires it.
        let done = catch_unwind(AssertUnwindSafe(|| unsafe { self.0.execute(gpu) }));
        if done.is_err() {
            gpu.fail(&Status::LAUNCH_FAILURE.because("internal error"));
        }
    }
}

/// A kernel with its arguments.
#[derive(Clone)]
pub struct Invocation {
    /// The kernel.
    pub kernel: Kernel,
    /// Workgroups in each dimension.
    pub grid: [u32; 3],
    /// Work-items of a workgroup in each dimension.
    pub block: [u32; 3],
    /// Dynamic LDS size of a workgroup in bytes, in addition to the kernel's static LDS.
    pub dynamic_lds: u32,
    /// Whether workgroups wait for each other.
    pub cooperative: bool,
    /// Workgroups of a cluster in each dimension, if the launch specifies them.
    pub cluster: Option<[u32; 3]>,
    /// The launches of several devices that the launch is a part of.
    pub grids: Option<Grids>,
    /// The explicit arguments, in the layout of the kernarg segment.
    pub explicit: Vec<u8>,
}

/// The place of a launch among those of several devices in one call, whose kernels may wait for each other.
#[derive(Clone)]
pub struct Grids {
    /// The state that all launches share.
    pub shared: Arc<SharedSync>,
    /// Index of the launch.
    pub index: u32,
    /// Number of launches.
    pub count: u32,
    /// Work-items of the launches before this one.
    pub items_before: u64,
    /// Work-items of all launches.
    pub all_items: u64,
}

/// State by which grids of several devices synchronise (the device libraries' `mg_sync`), in memory that all devices can
/// access.
pub struct SharedSync {
    device: Device,
    address: u64,
}

impl SharedSync {
    /// Allocates the state.
    pub fn new(gpu: &Gpu) -> Outcome<SharedSync> {
        let device = gpu.device.clone();
        let address = device.alloc_shared(8, "synchronisation of grids")?;
        Ok(SharedSync { device, address })
    }
}

impl Drop for SharedSync {
    fn drop(&mut self) {
        // Freeing fails only for memory that is not allocated.
        let _ = self.device.free(self.address);
    }
}

/// A fill of `depth` slices of `height` rows of `width` elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// The destination.
    pub to: Pitched,
    /// The value; its low `size` bytes are used.
    pub value: u32,
    /// Size of an element in bytes: 1, 2 or 4.
    pub size: usize,
    /// Elements per row.
    pub width: usize,
    /// Rows per slice.
    pub height: usize,
    /// Number of slices.
    pub depth: usize,
}

/// A callback of the program that receives the stream and its status.
#[derive(Clone, Copy)]
pub struct Callback {
    /// `hipStreamCallback_t`: stream, status, argument.
    pub function: unsafe extern "C" fn(usize, i32, Memory),
    /// Handle of the stream, passed to the function.
    pub stream: usize,
    /// Opaque argument of the function.
    pub argument: Memory,
}

impl Fill {
    /// Returns the addresses of all rows.
    pub fn rows(&self) -> impl Iterator<Item = u64> + '_ {
        let rows = (0..self.depth).flat_map(|slice| (0..self.height).map(move |row| (slice, row)));
        rows.map(|(slice, row)| self.to.row(slice, row).address())
    }

    /// Returns the number of bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        (self.width * self.size) as u64
    }

    /// Performs the fill.
    ///
    /// # Safety
    /// All rows are memory of the program or of the device.
    pub unsafe fn run(&self) {
        let bytes = self.value.to_le_bytes();
        let pattern = &bytes[..self.size.min(4)];
        let len = self.width * self.size;
        let row = match pattern.iter().all(|b| *b == pattern[0]) {
            true => Vec::new(),
            false => pattern.repeat(self.width),
        };
        for slice in 0..self.depth {
            for at in 0..self.height {
                let to = self.to.row(slice, at);
                // SAFETY: the caller guarantees that the rows are valid.
                unsafe {
                    match &row[..] {
                        [] => to.fill(pattern[0], len),
                        row => to.write(row),
                    }
                }
            }
        }
    }
}

impl Op {
    /// Executes the operation.
    ///
    /// # Safety
    /// The memory that the operation refers to is valid, and its functions can be called.
    unsafe fn execute(&self, gpu: &Gpu) {
        match self {
            Op::Kernel(invocation) => {
                if let Err(failure) = invocation.run() {
                    gpu.fail(&failure);
                }
            }
            Op::Copy(copy) => {
                // SAFETY: the caller guarantees that the memory is valid.
                unsafe { copy.run() };
                let bytes = copy.rows().map(|_| copy.width as u64).sum();
                if let Some((to, from)) = copy.rows().next() {
                    gpu.device.time_copy(to, from, bytes);
                }
                copy.rows().for_each(|(to, from)| gpu.device.record_copy(to, from, copy.width as u64));
            }
            Op::Fill(fill) => {
                // SAFETY: as above.
                unsafe { fill.run() };
                fill.rows().for_each(|row| gpu.device.record_write(row, fill.row_bytes()));
            }
            Op::Host(HostFunction { function, argument }) => {
                if let Some(function) = function {
                    // SAFETY: the caller guarantees that the function can be called.
                    callback::run(|| unsafe { function(*argument) });
                }
            }
            Op::Callback(Callback { function, stream, argument }) => {
                // SAFETY: as above.
                callback::run(|| unsafe { function(*stream, 0, *argument) });
            }
            Op::Batch(parts) => parts.iter().for_each(|work| work.run(gpu)),
            // SAFETY: the caller guarantees that the memory is valid.
            Op::Value(value) => unsafe { value.run(gpu) },
            Op::Memory(memory) => {
                if let Err(failure) = memory.run() {
                    gpu.fail(&failure);
                }
            }
            Op::Nothing => {}
        }
    }
}

/// State by which the workgroups of a cooperative launch synchronise (the device libraries' `mg_info`).
struct GridSync<'a> {
    device: &'a Device,
    address: u64,
}

impl GridSync<'_> {
    /// Creates the state. The address of the state that grids share is at offset 0, the grid's index at 8, the number of
    /// grids at 12, the numbers of work-items before the grid and of all at 16 and 24, the workgroups' barrier counter at
    /// 32, and the number of workgroups at 40.
    fn new(launch: &Invocation) -> Outcome<GridSync<'_>> {
        let groups = launch.grid.iter().fold(1u32, |n, &d| n.saturating_mul(d));
        let items = launch.block.iter().fold(groups as u64, |n, &d| n.saturating_mul(d as u64));
        let mut bytes = [0; 48];
        let alone = (0, 0, 1, 0, items);
        let (shared, index, count, before, all) = launch.grids.as_ref().map_or(alone, |grids| {
            (grids.shared.address, grids.index, grids.count, grids.items_before, grids.all_items)
        });
        bytes[..8].copy_from_slice(&shared.to_le_bytes());
        bytes[8..12].copy_from_slice(&index.to_le_bytes());
        bytes[12..16].copy_from_slice(&count.to_le_bytes());
        bytes[16..24].copy_from_slice(&before.to_le_bytes());
        bytes[24..32].copy_from_slice(&all.to_le_bytes());
        bytes[40..44].copy_from_slice(&groups.to_le_bytes());
        let device = launch.kernel.device();
        let address = device.alloc(bytes.len() as u64, "grid synchronisation")?;
        let sync = GridSync { device, address };
        device.write(address, &bytes)?;
        Ok(sync)
    }
}

impl Drop for GridSync<'_> {
    fn drop(&mut self) {
        // Freeing fails only for memory that is not allocated.
        let _ = self.device.free(self.address);
    }
}

impl Invocation {
    /// Runs the kernel and reports the findings of checks.
    fn run(&self) -> Outcome {
        let mut launch = Launch::new(self.grid, self.block);
        launch.dynamic_lds = self.dynamic_lds;
        launch.cooperative = self.cooperative;
        launch.cluster = self.cluster;
        let grid = if self.cooperative { Some(GridSync::new(self)?) } else { None };
        launch.services.multigrid = grid.as_ref().map_or(0, |grid| grid.address);
        let outcome = self.kernel.launch(&launch, &self.explicit).map_err(Failure::from)?;
        if !outcome.report.is_clean() {
            report(&outcome.report.to_string());
        }
        Ok(())
    }
}
