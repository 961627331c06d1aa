//! Nodes that write values to memory, or wait for values there.

use super::node::{BATCH_MEM_OP, add_step};
use super::parameters::Given;
use super::{Node, Step, with};
use crate::ffi::{In, Out};
use crate::gpu::gpu;
use crate::op::Work;
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use crate::stream_value::{BatchedValue, batch};
use std::ffi::{c_int, c_uint};

/// `hipBatchMemOpNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BatchNode {
    context: Handle,
    count: c_uint,
    operations: In<BatchedValue>,
    flags: c_uint,
}

const _: () = assert!(size_of::<BatchNode>() == 32, "as the headers have it");

/// What the program has passed for a node. The list of operations is a copy.
pub(super) struct ValuesNode {
    context: Handle,
    operations: Vec<BatchedValue>,
    flags: c_uint,
}

// SAFETY: the addresses in the operations are the program's, and are not accessed through this value.
unsafe impl Send for ValuesNode {}
// SAFETY: as above.
unsafe impl Sync for ValuesNode {}

impl BatchNode {
    /// Returns the operations as one work, and what the node returns as its parameters.
    ///
    /// # Safety
    /// There are as many operations; the memory that they name is valid whenever the node runs.
    unsafe fn work(self) -> Outcome<(Work, Given)> {
        let BatchNode { context, count, operations, flags } = self;
        // SAFETY: the caller guarantees it.
        let (works, operations) = unsafe { batch(gpu()?, count, operations, flags)? };
        Ok((Work::batch(works), Given::Values(ValuesNode { context, operations, flags })))
    }
}

/// Replaces the operations of a node of this type.
fn change(node: &mut Node, (work, given): (Work, Given)) -> Outcome {
    if node.kind() != BATCH_MEM_OP {
        return Err(Status::INVALID_VALUE.because("the node is of another type"));
    }
    node.set(work, Some(given));
    Ok(())
}

/// `hipGraphAddBatchMemOpNode`.
pub unsafe extern "C" fn hipGraphAddBatchMemOpNode(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    parameters: In<BatchNode>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { after.array(count) };
    call("hipGraphAddBatchMemOpNode", || {
        // SAFETY: the caller of the API passes a list of this length, and keeps the memory valid while the graph runs.
        let (work, given) = unsafe { parameters.get()?.work()? };
        add_step(&node, graph, after, Step::Work(work), Some(given))
    })
}

/// `hipGraphBatchMemOpNodeGetParams`. The list of operations is valid while the node has them.
pub unsafe extern "C" fn hipGraphBatchMemOpNodeGetParams(node: Handle, parameters: Out<BatchNode>) -> c_int {
    call("hipGraphBatchMemOpNodeGetParams", || {
        let given = with(|graphs| graphs.edit(node, |node| node.given.clone()))?;
        match given.as_deref() {
            Some(Given::Values(ValuesNode { context, operations, flags })) => parameters.put(BatchNode {
                context: *context,
                count: operations.len() as c_uint,
                // SAFETY: the list has this length.
                operations: unsafe { In::of(operations) },
                flags: *flags,
            }),
            _ => Err(Status::INVALID_VALUE.because("the node is of another type")),
        }
    })
}

/// `hipGraphBatchMemOpNodeSetParams`.
pub unsafe extern "C" fn hipGraphBatchMemOpNodeSetParams(node: Handle, parameters: In<BatchNode>) -> c_int {
    call("hipGraphBatchMemOpNodeSetParams", || {
        // SAFETY: the caller of the API passes a list of this length, and keeps the memory valid while the graph runs.
        let new = unsafe { parameters.get()?.work()? };
        with(|graphs| graphs.edit(node, |node| change(node, new))?)
    })
}

/// `hipGraphExecBatchMemOpNodeSetParams`.
pub unsafe extern "C" fn hipGraphExecBatchMemOpNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: In<BatchNode>,
) -> c_int {
    call("hipGraphExecBatchMemOpNodeSetParams", || {
        // SAFETY: the caller of the API passes a list of this length, and keeps the memory valid while the graph runs.
        let new = unsafe { parameters.get()?.work()? };
        with(|graphs| graphs.edit_executable(executable, node, |node| change(node, new))?)
    })
}
