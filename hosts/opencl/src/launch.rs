//! Launches of kernels.

use crate::ffi::{In, Out};
use crate::handle::{self, Handle};
use crate::kernel::{Kernel, max_items};
use crate::printf::PrintBuffer;
use crate::queue::Order;
use crate::status::{Outcome, Status, call, complain};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use wavesim_runtime::{Kernel as Code, Launch};

/// `CL_COMMAND_NDRANGE_KERNEL`, `CL_COMMAND_TASK`.
const NDRANGE: u32 = 0x11f0;
const TASK: u32 = 0x11f1;

/// The work-items of a launch.
struct Range {
    global: [u64; 3],
    local: [u32; 3],
    offset: [u64; 3],
}

/// Reads as many numbers as there are dimensions.
fn three(list: In<usize>, dimensions: c_uint, rest: u64) -> Outcome<[u64; 3]> {
    let mut out = [rest; 3];
    for (at, value) in out.iter_mut().enumerate().take(dimensions as usize) {
        *value = list.at(at)? as u64;
    }
    Ok(out)
}

/// A workgroup's size that divides the range: along the first dimension as long as it may be, then along the others.
pub fn choose(global: [u64; 3], most: u64) -> [u32; 3] {
    let mut left = most;
    global.map(|size| {
        let largest = (1..=left.min(size)).rev().find(|n| size.is_multiple_of(*n)).unwrap_or(1);
        left /= largest;
        largest as u32
    })
}

impl Range {
    fn new(
        code: &Code,
        dimensions: c_uint,
        offset: In<usize>,
        global: In<usize>,
        local: In<usize>,
    ) -> Outcome<Range> {
        if !(1..=3).contains(&dimensions) {
            return Err(Status::INVALID_WORK_DIMENSION.into());
        }
        if global.is_null() {
            return Err(Status::INVALID_GLOBAL_WORK_SIZE.into());
        }
        let global = three(global, dimensions, 1)?;
        // The dispatch packet has 32 bits for each.
        if global.iter().any(|size| *size > u32::MAX as u64) {
            return Err(Status::INVALID_GLOBAL_WORK_SIZE.because("a dimension of 2^32 work-items or more"));
        }
        let offset = if offset.is_null() { [0; 3] } else { three(offset, dimensions, 0)? };
        if offset.iter().zip(global).any(|(offset, size)| offset.checked_add(size).is_none()) {
            return Err(Status::INVALID_GLOBAL_OFFSET.into());
        }
        let (required, most) = (code.required_block(), max_items(code) as u64);
        let local = match (local.is_null(), required) {
            (true, Some(required)) => required,
            (true, None) => choose(global, most),
            (false, _) => {
                let given = three(local, dimensions, 1)?;
                let items = given.iter().fold(1u64, |n, &d| n.saturating_mul(d));
                if items == 0 || items > most {
                    let message = format!("{items} work-items in a workgroup: the kernel has at most {most}");
                    return Err(Status::INVALID_WORK_GROUP_SIZE.because(message));
                }
                given.map(|n| n as u32)
            }
        };
        if let Some(required) = required.filter(|required| *required != local) {
            let message = format!("workgroups of {local:?}: the kernel needs {required:?}");
            return Err(Status::INVALID_WORK_GROUP_SIZE.because(message));
        }
        if global.iter().zip(local).any(|(size, part)| !size.is_multiple_of(part as u64)) {
            let message = format!("workgroups of {local:?} do not divide a range of {global:?}");
            return Err(Status::INVALID_WORK_GROUP_SIZE.because(message));
        }
        Ok(Range { global, local, offset })
    }

    fn grid(&self) -> [u32; 3] {
        std::array::from_fn(|d| (self.global[d] / self.local[d] as u64) as u32)
    }
}

fn enqueue(order: Order, kernel: Handle, range: impl FnOnce(&Code) -> Outcome<Range>) -> Outcome {
    let kernel = handle::get::<Kernel>(kernel)?;
    if !Arc::ptr_eq(kernel.program().context(), order.queue.context()) {
        return Err(Status::INVALID_CONTEXT.because("a kernel of another context"));
    }
    let code = kernel.code().clone();
    let arguments = kernel.arguments()?;
    let range = range(&code)?;
    let lds = code.lds_bytes() as u64 + arguments.local as u64;
    let most = code.device().target().lds_bytes();
    if lds > most as u64 {
        let message = format!("{lds} bytes of local memory: a workgroup has at most {most}");
        return Err(Status::OUT_OF_RESOURCES.because(message));
    }
    if range.global.contains(&0) {
        // Allowed, and nothing to do.
        return order.submit(|| Ok(()));
    }
    order.submit(move || {
        let mut launch = Launch::new(range.grid(), range.local);
        launch.offset = range.offset;
        launch.dynamic_lds = arguments.local;
        let printed = match code.wants("hidden_printf_buffer") {
            true => Some(PrintBuffer::new(&code)?),
            false => None,
        };
        launch.services.printf = printed.as_ref().map_or(0, PrintBuffer::address);
        let result = code.launch(&launch, &arguments.bytes);
        if let Some(printed) = printed {
            printed.print()?;
        }
        drop(arguments.buffers);
        let outcome = result?;
        if !outcome.report.is_clean() {
            complain(&outcome.report.to_string());
        }
        Ok(())
    })
}

/// `clEnqueueNDRangeKernel`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub extern "C" fn clEnqueueNDRangeKernel(
    queue: Handle,
    kernel: Handle,
    dimensions: c_uint,
    offset: In<usize>,
    global: In<usize>,
    local: In<usize>,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    call("clEnqueueNDRangeKernel", || {
        let order = Order::new(queue, NDRANGE, count, list, event)?;
        enqueue(order, kernel, |code| Range::new(code, dimensions, offset, global, local))
    })
}

/// `clEnqueueTask`.
pub extern "C" fn clEnqueueTask(
    queue: Handle,
    kernel: Handle,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    call("clEnqueueTask", || {
        let order = Order::new(queue, TASK, count, list, event)?;
        enqueue(order, kernel, |_| Ok(Range { global: [1; 3], local: [1; 3], offset: [0; 3] }))
    })
}
