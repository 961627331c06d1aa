//! Kernel launches.

use crate::command::CommandType;
use crate::ffi::{Array, In, Out};
use crate::handle::{self, Handle};
use crate::kernel::{Kernel, max_items};
use crate::printf::PrintBuffer;
use crate::queue::Submission;
use crate::status::{Outcome, Status, call, report};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use wavesim_runtime::{Kernel as Code, Launch};

/// The index space of a launch.
struct NdRange {
    global: [u64; 3],
    local: [u32; 3],
    offset: [u64; 3],
}

/// Reads one number per dimension. The remaining dimensions are set to `rest`.
fn read_dimensions(list: &Array<usize>, rest: u64) -> Outcome<[u64; 3]> {
    let mut out = [rest; 3];
    for (value, given) in out.iter_mut().zip(list.read()?) {
        *value = given as u64;
    }
    Ok(out)
}

/// Chooses a workgroup size that divides the range: as large as possible in the first dimension, then in the
/// others.
pub fn choose_workgroup_size(global: [u64; 3], most: u64) -> [u32; 3] {
    let mut remaining = most;
    global.map(|size| {
        let largest = (1..=remaining.min(size)).rev().find(|n| size.is_multiple_of(*n)).unwrap_or(1);
        remaining /= largest;
        largest as u32
    })
}

impl NdRange {
    fn new(code: &Code, dimensions: c_uint, [offset, global, local]: [Array<usize>; 3]) -> Outcome<NdRange> {
        if !(1..=3).contains(&dimensions) {
            return Err(Status::INVALID_WORK_DIMENSION.into());
        }
        if global.is_null() {
            return Err(Status::INVALID_GLOBAL_WORK_SIZE.into());
        }
        let global = read_dimensions(&global, 1)?;
        // The dispatch packet has 32 bits for each dimension.
        if global.iter().any(|size| *size > u32::MAX as u64) {
            return Err(Status::INVALID_GLOBAL_WORK_SIZE.because("a dimension of 2^32 work-items or more"));
        }
        let offset = if offset.is_null() { [0; 3] } else { read_dimensions(&offset, 0)? };
        if offset.iter().zip(global).any(|(offset, size)| offset.checked_add(size).is_none()) {
            return Err(Status::INVALID_GLOBAL_OFFSET.into());
        }
        let (required, most) = (code.required_block(), max_items(code) as u64);
        let local = match (local.is_null(), required) {
            (true, Some(required)) => required,
            (true, None) => choose_workgroup_size(global, most),
            (false, _) => {
                let given = read_dimensions(&local, 1)?;
                let items = given.iter().fold(1u64, |n, &d| n.saturating_mul(d));
                if items == 0 || items > most {
                    let message = format!("a workgroup of {items} work-items: the kernel allows {most}");
                    return Err(Status::INVALID_WORK_GROUP_SIZE.because(message));
                }
                given.map(|n| n as u32)
            }
        };
        if let Some(required) = required.filter(|required| *required != local) {
            let message = format!("workgroups of {local:?}: the kernel requires {required:?}");
            return Err(Status::INVALID_WORK_GROUP_SIZE.because(message));
        }
        if global.iter().zip(local).any(|(size, part)| !size.is_multiple_of(part as u64)) {
            let message = format!("workgroups of {local:?} do not divide a range of {global:?}");
            return Err(Status::INVALID_WORK_GROUP_SIZE.because(message));
        }
        Ok(NdRange { global, local, offset })
    }

    fn grid(&self) -> [u32; 3] {
        std::array::from_fn(|d| (self.global[d] / self.local[d] as u64) as u32)
    }
}

fn enqueue(submission: Submission, kernel: Handle, range: impl FnOnce(&Code) -> Outcome<NdRange>) -> Outcome {
    let kernel = handle::get::<Kernel>(kernel)?;
    if !Arc::ptr_eq(kernel.program().context(), submission.queue.context()) {
        return Err(Status::INVALID_CONTEXT.because("a kernel of another context"));
    }
    let code = kernel.code_on(submission.queue.device()).clone();
    let arguments = kernel.arguments()?;
    let range = range(&code)?;
    let lds = code.lds_bytes() as u64 + arguments.local as u64;
    let most = code.device().target().lds_bytes();
    if lds > most as u64 {
        let message = format!("{lds} bytes of local memory: a workgroup has at most {most}");
        return Err(Status::OUT_OF_RESOURCES.because(message));
    }
    if range.global.contains(&0) {
        // An empty range is valid and does nothing.
        return submission.submit(|| Ok(()));
    }
    submission.submit(move || {
        let mut launch = Launch::new(range.grid(), range.local);
        launch.offset = range.offset;
        launch.dynamic_lds = arguments.local;
        let printed = match code.has_hidden_argument("hidden_printf_buffer") {
            true => Some(PrintBuffer::new(&code)?),
            false => None,
        };
        launch.services.printf = printed.as_ref().map_or(0, PrintBuffer::address);
        let result = code.launch(&launch, &arguments.bytes);
        if let Some(printed) = printed {
            printed.print()?;
        }
        drop(arguments.objects);
        let outcome = result?;
        if !outcome.report.is_clean() {
            report(&outcome.report.to_string());
        }
        Ok(())
    })
}

/// `clEnqueueNDRangeKernel`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clEnqueueNDRangeKernel(
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
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueNDRangeKernel", || {
        let submission = Submission::new(queue, CommandType::NdRangeKernel, after, event)?;
        // SAFETY: the caller of the API passes a number for each dimension.
        let sizes = [offset, global, local].map(|list| unsafe { list.array(dimensions as usize) });
        enqueue(submission, kernel, |code| NdRange::new(code, dimensions, sizes))
    })
}

/// `clEnqueueTask`.
pub unsafe extern "C" fn clEnqueueTask(
    queue: Handle,
    kernel: Handle,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueTask", || {
        let submission = Submission::new(queue, CommandType::Task, after, event)?;
        enqueue(submission, kernel, |_| Ok(NdRange { global: [1; 3], local: [1; 3], offset: [0; 3] }))
    })
}
