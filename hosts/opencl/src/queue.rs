//! Command queues. Commands run in order, on a thread of the queue.

use crate::command::CommandType;
use crate::context::Context;
use crate::devices;
use crate::event::{COMPLETE, Event, RUNNING, SUBMITTED, wait_list};
use crate::ffi::{Array, In, Memory, Out};
use crate::handle::{self, Handle, Identity, Object, object};
use crate::info::{Query, unknown_parameter};
use crate::status::{Failure, Outcome, Status, call, create, report};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wavesim_runtime::callback;
use wavesim_runtime::queue::Queue;

/// `CL_QUEUE_PROFILING_ENABLE`.
const PROFILING: u64 = 2;

/// A command queue.
pub struct CommandQueue {
    identity: Identity,
    context: Arc<Context>,
    /// Index of the device.
    device: usize,
    properties: u64,
    /// The property list that the program passed.
    list: Vec<u64>,
    queue: Queue,
    /// Status of the first failed command. As on a GPU, the error is sticky: all later commands of the queue
    /// fail.
    failed: AtomicI32,
}

object!(CommandQueue, INVALID_COMMAND_QUEUE, clRetainCommandQueue, clReleaseCommandQueue);

impl CommandQueue {
    /// Returns the context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns the index of the device.
    pub fn device(&self) -> usize {
        self.device
    }

    /// Returns true if events of the queue have profiling information.
    pub fn is_profiled(&self) -> bool {
        self.properties & PROFILING != 0
    }

    /// Returns the sticky failure, if any.
    fn check(&self) -> Outcome {
        match Status(self.failed.load(Ordering::SeqCst)) {
            Status::SUCCESS => Ok(()),
            status => Err(status.into()),
        }
    }

    fn wait(&self) -> Outcome {
        may_wait()?;
        self.queue.wait();
        self.check()
    }
}

/// Checks that the calling thread may wait for commands: callbacks must not, since their own queue waits for
/// them.
pub fn may_wait() -> Outcome {
    match callback::is_running() {
        true => Err(Status::INVALID_OPERATION.because("a callback must not wait for commands")),
        false => Ok(()),
    }
}

/// The parameters that all enqueue functions share.
pub struct Submission {
    /// The queue.
    pub queue: Arc<CommandQueue>,
    pub command: CommandType,
    /// Events that the command waits for.
    pub after: Vec<Arc<Event>>,
    /// Receives the command's event; may be null.
    pub event: Out<Handle>,
    /// Whether the call waits for the command to complete.
    pub blocking: bool,
}

impl Submission {
    /// Validates the common arguments of an enqueue function.
    pub fn new(
        queue: Handle,
        command: CommandType,
        after: Array<Handle>,
        event: Out<Handle>,
    ) -> Outcome<Submission> {
        let queue = handle::get::<CommandQueue>(queue)?;
        let after = wait_list(after, queue.context())?;
        Ok(Submission { queue, command, after, event, blocking: false })
    }

    /// Sets whether the call waits for the command to complete.
    pub fn blocking(self, blocking: c_uint) -> Submission {
        Submission { blocking: blocking != 0, ..self }
    }

    /// Enqueues the command.
    pub fn submit(self, work: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
        let Submission { queue, command, after, event: out, blocking } = self;
        if blocking {
            may_wait()?;
        }
        queue.check()?;
        let (handle, event) = Event::of_command(&queue, command)?;
        match out.is_null() {
            true => handle::release::<Event>(handle)?,
            false => out.put(handle)?,
        }
        let tickets = after.iter().map(|event| event.ticket()).collect();
        let (own, of_queue) = (event.clone(), queue.clone());
        // Completes the event even if the command panics or is dropped.
        let completion = CompletionGuard(own);
        event.set(SUBMITTED);
        queue.queue.submit(tickets, move || {
            let status = execute(&of_queue, &after, &completion.0, work);
            completion.0.set(status);
        });
        if blocking {
            event.ticket().wait();
            match event.status() {
                COMPLETE => {}
                status => return Err(Status(status).into()),
            }
        }
        Ok(())
    }
}

/// Completes an event with an error when dropped, unless the event has already ended.
struct CompletionGuard(Arc<Event>);

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        self.0.set(Status::OUT_OF_RESOURCES.0);
    }
}

/// Executes a command. Returns the final status of its event.
fn execute(
    queue: &CommandQueue,
    after: &[Arc<Event>],
    event: &Event,
    work: impl FnOnce() -> Outcome,
) -> c_int {
    if after.iter().any(|event| event.status() < COMPLETE) {
        return Status::EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST.0;
    }
    if let Err(failure) = queue.check() {
        return failure.status.0;
    }
    event.set(RUNNING);
    match work() {
        Ok(()) => COMPLETE,
        Err(Failure { status, message }) => {
            if let Some(message) = message {
                report(&message);
            }
            queue.failed.store(status.0, Ordering::SeqCst);
            status.0
        }
    }
}

fn new(context: Handle, of: Handle, properties: u64, list: Vec<u64>) -> Outcome<Handle> {
    let context = handle::get::<Context>(context)?;
    let device = devices::index_of(of)?;
    if !context.devices.contains(&of) {
        return Err(Status::INVALID_DEVICE.because("a device of another context"));
    }
    match properties {
        0 | PROFILING => {}
        // CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_ON_DEVICE, CL_QUEUE_ON_DEVICE_DEFAULT
        p if p < 16 => {
            return Err(
                Status::INVALID_QUEUE_PROPERTIES.because("only in-submission host queues are supported")
            );
        }
        _ => return Err(Status::INVALID_VALUE.into()),
    }
    let (queue, failed) = (Queue::default(), AtomicI32::new(0));
    let make = |identity| CommandQueue { identity, context, device, properties, list, queue, failed };
    Ok(handle::register(make).0)
}

/// `clCreateCommandQueue`.
pub unsafe extern "C" fn clCreateCommandQueue(
    context: Handle,
    of: Handle,
    properties: u64,
    status: Out<c_int>,
) -> Handle {
    create("clCreateCommandQueue", &status, || new(context, of, properties, Vec::new()))
}

/// `clCreateCommandQueueWithProperties`.
pub unsafe extern "C" fn clCreateCommandQueueWithProperties(
    context: Handle,
    of: Handle,
    list: In<u64>,
    status: Out<c_int>,
) -> Handle {
    create("clCreateCommandQueueWithProperties", &status, || {
        const PROPERTIES: u64 = 0x1093;
        let (mut given, mut properties) = (Vec::new(), 0);
        while !list.is_null() {
            // SAFETY: the caller of the API passes pairs of a property and a value, and a terminating zero.
            match unsafe { list.at(given.len())? } {
                0 => {
                    given.push(0);
                    break;
                }
                PROPERTIES => {
                    // SAFETY: as above.
                    properties = unsafe { list.at(given.len() + 1)? };
                    given.extend([PROPERTIES, properties]);
                }
                other => {
                    let message = format!("unknown property 0x{other:x}");
                    return Err(Status::INVALID_QUEUE_PROPERTIES.because(message));
                }
            }
        }
        new(context, of, properties, given)
    })
}

/// `clGetCommandQueueInfo`.
pub unsafe extern "C" fn clGetCommandQueueInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetCommandQueueInfo", || {
        let queue = handle::get::<CommandQueue>(handle)?;
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x1090 => query.handle(queue.context.handle()),
            0x1091 => query.handle(devices::handles()?[queue.device]),
            0x1092 => query.u32(handle::references(handle)),
            0x1093 => query.u64(queue.properties),
            // CL_QUEUE_SIZE, for device-side queues only
            0x1094 => Err(Status::INVALID_COMMAND_QUEUE.into()),
            0x1095 => query.handle(Handle::NULL),
            0x1098 => {
                let bytes: Vec<u8> = queue.list.iter().flat_map(|p| p.to_le_bytes()).collect();
                query.bytes(&bytes)
            }
            _ => unknown_parameter(),
        }
    })
}

/// `clFlush`. Commands are always submitted immediately.
pub unsafe extern "C" fn clFlush(handle: Handle) -> c_int {
    call("clFlush", || handle::get::<CommandQueue>(handle)?.check())
}

/// `clFinish`.
pub unsafe extern "C" fn clFinish(handle: Handle) -> c_int {
    call("clFinish", || handle::get::<CommandQueue>(handle)?.wait())
}

/// Enqueues a command that only orders other commands.
fn submit_marker(submission: Outcome<Submission>) -> Outcome {
    submission?.submit(|| Ok(()))
}

/// `clEnqueueMarkerWithWaitList`.
pub unsafe extern "C" fn clEnqueueMarkerWithWaitList(
    queue: Handle,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueMarkerWithWaitList", || {
        submit_marker(Submission::new(queue, CommandType::Marker, after, event))
    })
}

/// `clEnqueueBarrierWithWaitList`.
pub unsafe extern "C" fn clEnqueueBarrierWithWaitList(
    queue: Handle,
    count: c_uint,
    list: In<Handle>,
    event: Out<Handle>,
) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueBarrierWithWaitList", || {
        submit_marker(Submission::new(queue, CommandType::Barrier, after, event))
    })
}

/// `clEnqueueMarker`.
pub unsafe extern "C" fn clEnqueueMarker(queue: Handle, event: Out<Handle>) -> c_int {
    call("clEnqueueMarker", || match event.is_null() {
        true => Err(Status::INVALID_VALUE.into()),
        false => submit_marker(Submission::new(queue, CommandType::Marker, Array::empty(), event)),
    })
}

/// `clEnqueueBarrier`. Commands are always in order.
pub unsafe extern "C" fn clEnqueueBarrier(queue: Handle) -> c_int {
    call("clEnqueueBarrier", || {
        submit_marker(Submission::new(queue, CommandType::Barrier, Array::empty(), Out::none()))
    })
}

/// `clEnqueueWaitForEvents`.
pub unsafe extern "C" fn clEnqueueWaitForEvents(queue: Handle, count: c_uint, list: In<Handle>) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let after = unsafe { list.array(count as usize) };
    call("clEnqueueWaitForEvents", || match count {
        0 => Err(Status::INVALID_VALUE.into()),
        _ => submit_marker(Submission::new(queue, CommandType::Barrier, after, Out::none())),
    })
}

/// Locks, ignoring poisoning: each change is a single assignment, so a panic leaves the state consistent.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
