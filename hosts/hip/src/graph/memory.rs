//! Memory that nodes of graphs allocate. Its addresses are reserved when the program adds the node; memory is mapped there
//! from the node that allocates to the one that frees, or to `hipFree`. Bounds are those of whole pages.

use super::node::add_step;
use super::{Step, with};
use crate::ffi::{Array, In, Memory, Out};
use crate::gpu::{Gpu, gpu_at, gpus, lock};
use crate::memory::{AllocationInfo, AllocationKind};
use crate::op::{Op, Work};
use crate::pool::PoolProperties;
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, Weak};
use wavesim_runtime::Device;
use wavesim_runtime::virtual_memory::{Access, AddressRange, PhysicalMemory};

/// Name of the memory in messages.
pub const GRAPH_MEMORY_NAME: &str = "hipGraphAddMemAllocNode";

const PAGE: u64 = 4096;

/// `hipMemAllocNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocationNode {
    pool: PoolProperties,
    access: In<Memory>,
    access_count: usize,
    len: usize,
    address: u64,
}

/// What a node allocates, on each launch.
pub struct GraphMemory {
    range: Arc<AddressRange>,
    /// Size in bytes, as requested.
    len: u64,
    /// Ordinal of the device.
    device: c_int,
    /// What the program has passed, unless a capture has recorded the node.
    given: Option<AllocationNode>,
}

// SAFETY: `given` has pointers of the program, which are only returned to it.
unsafe impl Send for GraphMemory {}
// SAFETY: as above.
unsafe impl Sync for GraphMemory {}

/// What a node does with memory.
#[derive(Clone)]
pub enum MemoryOp {
    /// Allocates it.
    Allocate(Arc<GraphMemory>),
    /// Frees it.
    Free(Arc<GraphMemory>),
}

/// Memory of graphs, by its first address.
struct Entry {
    memory: Weak<GraphMemory>,
    /// The memory while it is allocated, as far as work has been submitted.
    live: Option<Arc<GraphMemory>>,
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<u64, Entry>,
    /// The most bytes that were allocated at a time, by the ordinal of the device.
    high: BTreeMap<c_int, u64>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { entries: BTreeMap::new(), high: BTreeMap::new() });

impl Table {
    /// Returns the size of what is allocated on a device, in bytes.
    fn used(&self, device: c_int) -> u64 {
        let live = self.entries.values().filter_map(|entry| entry.live.as_ref());
        live.filter(|memory| memory.device == device).map(|memory| memory.len).sum()
    }

    fn set_live(&mut self, memory: &Arc<GraphMemory>, live: bool) {
        if let Some(entry) = self.entries.get_mut(&memory.range.address()) {
            entry.live = live.then(|| memory.clone());
        }
        let used = self.used(memory.device);
        let high = self.high.entry(memory.device).or_default();
        *high = used.max(*high);
    }

    fn is_live(&self, memory: &GraphMemory) -> bool {
        self.entries.get(&memory.range.address()).is_some_and(|entry| entry.live.is_some())
    }
}

impl GraphMemory {
    /// Reserves addresses for memory of a device.
    pub fn reserve(gpu: &Gpu, len: usize, given: Option<AllocationNode>) -> Outcome<Arc<GraphMemory>> {
        if len == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let size = (len as u64).checked_next_multiple_of(PAGE).ok_or(Status::OUT_OF_MEMORY)?;
        let range = AddressRange::reserve(size, 0, GRAPH_MEMORY_NAME)?;
        let address = range.address();
        let given = given.map(|given| AllocationNode { address, ..given });
        let memory = Arc::new(GraphMemory { range, len: len as u64, device: gpu.ordinal(), given });
        let mut table = lock(&TABLE);
        table.entries.retain(|_, entry| entry.memory.strong_count() != 0);
        table.entries.insert(address, Entry { memory: Arc::downgrade(&memory), live: None });
        Ok(memory)
    }

    /// Returns the memory of a graph that has an address, whether or not it is allocated.
    pub fn find(address: u64) -> Option<Arc<GraphMemory>> {
        let table = lock(&TABLE);
        let found = table.entries.range(..=address).next_back()?.1.memory.upgrade()?;
        (address - found.range.address() < found.range.len()).then_some(found)
    }

    /// Returns the memory of a graph that begins at an address.
    pub fn starting_at(address: u64) -> Option<Arc<GraphMemory>> {
        GraphMemory::find(address).filter(|memory| memory.range.address() == address)
    }

    /// Returns the address of the first byte.
    pub fn address(&self) -> u64 {
        self.range.address()
    }

    /// Returns what copies may access once the memory is allocated.
    pub fn info(&self) -> AllocationInfo {
        let device = usize::try_from(self.device).unwrap_or(0);
        AllocationInfo { address: self.address(), len: self.len, device, kind: AllocationKind::Device }
    }

    /// Ends the allocation outside of a graph, as `hipFree` does. Returns what is still to be done, in the order of a
    /// stream or when there is no more work.
    pub fn end(self: &Arc<Self>) -> Outcome<MemoryOp> {
        let mut table = lock(&TABLE);
        if !table.is_live(self) {
            let message = format!("0x{:x} is memory of a graph that is not allocated", self.address());
            return Err(Status::INVALID_VALUE.because(message));
        }
        table.set_live(self, false);
        Ok(MemoryOp::Free(self.clone()))
    }
}

impl MemoryOp {
    fn memory(&self) -> &Arc<GraphMemory> {
        match self {
            MemoryOp::Allocate(memory) | MemoryOp::Free(memory) => memory,
        }
    }

    /// Maps or unmaps the memory.
    pub fn run(&self) -> Outcome {
        let GraphMemory { range, device, .. } = &**self.memory();
        let (gpu, address, len) = (gpu_at(*device)?, range.address(), range.len());
        match self {
            MemoryOp::Allocate(_) => {
                if len > gpu.total_bytes() {
                    return Err(Status::OUT_OF_MEMORY.into());
                }
                range.map(address, len, Arc::new(PhysicalMemory::new(len)?), 0)?;
                range.set_access(address, len, &gpu.device, Some(Access::ReadWrite))?;
            }
            MemoryOp::Free(_) => {
                let devices: Vec<Device> = gpus()?.iter().map(|gpu| gpu.device.clone()).collect();
                range.unmap(address, len, &devices)?;
            }
        }
        Ok(())
    }
}

/// Returns the size of the memory of graphs that is allocated on a device, in bytes.
pub fn allocated(gpu: &Gpu) -> u64 {
    lock(&TABLE).used(gpu.ordinal())
}

/// Notes what a launch allocates and frees. Returns what must come before it.
pub(super) fn begin_launch(operations: &[MemoryOp], auto_free: bool) -> Outcome<Vec<Work>> {
    let mut table = lock(&TABLE);
    let mut before = Vec::new();
    let mut live: BTreeMap<u64, bool> = BTreeMap::new();
    for op in operations {
        let memory = op.memory();
        let is_live = live.entry(memory.address()).or_insert_with(|| table.is_live(memory));
        match op {
            MemoryOp::Allocate(_) if *is_live && auto_free => {
                before.push(Work::memory(MemoryOp::Free(memory.clone())));
            }
            MemoryOp::Allocate(_) if *is_live => {
                let message = "the graph allocates memory that its last launch has left allocated";
                return Err(Status::INVALID_VALUE.because(message));
            }
            MemoryOp::Free(_) if !*is_live => {
                return Err(Status::INVALID_VALUE.because("the graph frees memory that is not allocated"));
            }
            _ => {}
        }
        *is_live = matches!(op, MemoryOp::Allocate(_));
    }
    // Allocations count for the high-water mark even if the graph frees them.
    operations.iter().for_each(|op| table.set_live(op.memory(), matches!(op, MemoryOp::Allocate(_))));
    Ok(before)
}

/// Reserves what a node allocates. Returns the parameters with the address, too.
pub(super) fn allocation(given: AllocationNode) -> Outcome<(Step, AllocationNode)> {
    let memory = GraphMemory::reserve(given.pool.gpu()?, given.len, Some(given))?;
    let address = memory.address();
    Ok((Step::Work(Work::memory(MemoryOp::Allocate(memory))), AllocationNode { address, ..given }))
}

/// `hipGraphAddMemAllocNode`.
pub unsafe extern "C" fn hipGraphAddMemAllocNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: Out<AllocationNode>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddMemAllocNode", || {
        let (step, allocated) = allocation(parameters.get()?)?;
        add_step(&node, graph, after, step, None)?;
        parameters.put(allocated)
    })
}

/// Returns the end of an allocation in a graph.
pub(super) fn end_of_allocation(graph: Handle, address: u64) -> Outcome<Step> {
    let memory = GraphMemory::starting_at(address).ok_or_else(|| {
        Status::INVALID_VALUE.because(format!("0x{address:x} is not memory that a node of a graph allocates"))
    })?;
    let twice = with(|graphs| {
        let graph = graphs.graph(graph)?;
        let frees = |op: MemoryOp| matches!(op, MemoryOp::Free(other) if Arc::ptr_eq(&other, &memory));
        let nodes = &lock(&graph).nodes;
        Ok(super::memory_operations(nodes).into_iter().any(frees))
    })?;
    if twice {
        return Err(Status::INVALID_VALUE.because("the graph frees the memory already"));
    }
    Ok(Step::Work(Work::memory(MemoryOp::Free(memory))))
}

fn add_free(node: &Out<Handle>, graph: Handle, after: Array<Handle>, address: u64) -> Outcome {
    add_step(node, graph, after, end_of_allocation(graph, address)?, None)
}

/// `hipGraphAddMemFreeNode`.
pub unsafe extern "C" fn hipGraphAddMemFreeNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    address: u64,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddMemFreeNode", || add_free(&node, graph, after, address))
}

/// `hipDrvGraphAddMemFreeNode`.
pub unsafe extern "C" fn hipDrvGraphAddMemFreeNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    address: u64,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipGraphAddMemFreeNode(node, graph, after, count, address) }
}

/// Returns what a node does with memory.
fn operation_of(node: Handle) -> Outcome<MemoryOp> {
    with(|graphs| {
        graphs.edit(node, |node| match node.op()? {
            Op::Memory(op) => Ok(op.clone()),
            _ => Err(Status::INVALID_VALUE.because("the node is of another type")),
        })?
    })
}

/// `hipGraphMemAllocNodeGetParams`.
pub unsafe extern "C" fn hipGraphMemAllocNodeGetParams(
    node: Handle,
    parameters: Out<AllocationNode>,
) -> c_int {
    call("hipGraphMemAllocNodeGetParams", || match operation_of(node)? {
        MemoryOp::Allocate(memory) => parameters.put(memory.given.unwrap_or_else(|| AllocationNode {
            pool: PoolProperties::of_device(memory.device),
            access: In::none(),
            access_count: 0,
            len: memory.len as usize,
            address: memory.address(),
        })),
        MemoryOp::Free(_) => Err(Status::INVALID_VALUE.into()),
    })
}

/// `hipGraphMemFreeNodeGetParams`.
pub unsafe extern "C" fn hipGraphMemFreeNodeGetParams(node: Handle, address: Out<u64>) -> c_int {
    call("hipGraphMemFreeNodeGetParams", || match operation_of(node)? {
        MemoryOp::Free(memory) => address.put(memory.address()),
        MemoryOp::Allocate(_) => Err(Status::INVALID_VALUE.into()),
    })
}

/// `hipDeviceGraphMemTrim`. Does nothing, since memory that is freed is not kept.
pub unsafe extern "C" fn hipDeviceGraphMemTrim(device: c_int) -> c_int {
    call("hipDeviceGraphMemTrim", || gpu_at(device).map(drop))
}

/// `hipDeviceGetGraphMemAttribute`. Memory is reserved while it is used.
pub unsafe extern "C" fn hipDeviceGetGraphMemAttribute(
    device: c_int,
    attribute: c_int,
    value: Out<u64>,
) -> c_int {
    call("hipDeviceGetGraphMemAttribute", || {
        gpu_at(device)?;
        let table = lock(&TABLE);
        value.put(match attribute {
            // hipGraphMemAttrUsedMemCurrent, hipGraphMemAttrReservedMemCurrent
            0 | 2 => table.used(device),
            // hipGraphMemAttrUsedMemHigh, hipGraphMemAttrReservedMemHigh
            1 | 3 => table.high.get(&device).copied().unwrap_or(0),
            _ => return Err(Status::INVALID_VALUE.into()),
        })
    })
}

/// `hipDeviceSetGraphMemAttribute`. Only resets the high-water mark.
pub unsafe extern "C" fn hipDeviceSetGraphMemAttribute(
    device: c_int,
    attribute: c_int,
    value: Out<u64>,
) -> c_int {
    call("hipDeviceSetGraphMemAttribute", || {
        gpu_at(device)?;
        if !matches!(attribute, 1 | 3) || value.get()? != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let mut table = lock(&TABLE);
        let used = table.used(device);
        table.high.insert(device, used);
        Ok(())
    })
}
