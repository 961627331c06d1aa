//! Events: the execution status of commands, and user events.

use crate::command::CommandType;
use crate::context::Context;
use crate::ffi::{Array, In, Memory, Out, UserData};
use crate::handle::{self, Handle, Identity, Object, object};
use crate::info::{Query, unknown_parameter};
use crate::platform::gpu;
use crate::queue::{CommandQueue, may_wait};
use crate::status::{Outcome, Status, call, create};
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wavesim_runtime::callback;
use wavesim_runtime::queue::{Promise, Ticket};

/// `CL_COMPLETE`.
pub const COMPLETE: c_int = 0;
/// `CL_RUNNING`.
pub const RUNNING: c_int = 1;
/// `CL_SUBMITTED`.
pub const SUBMITTED: c_int = 2;
/// `CL_QUEUED`.
const QUEUED: c_int = 3;

/// An event.
pub struct Event {
    identity: Identity,
    context: Arc<Context>,
    /// The queue of the command; `None` for user events.
    queue: Option<Arc<CommandQueue>>,
    command: CommandType,
    /// Completes `ticket` when dropped; `None` after the event has ended.
    promise: Mutex<Option<Promise>>,
    ticket: Ticket,
    state: Mutex<State>,
}

struct State {
    status: c_int,
    /// Time at which each status was entered: complete, running, submitted, queued.
    times: [u64; 4],
    callbacks: Vec<Callback>,
}

/// A callback of the program that receives a status.
struct Callback {
    at: c_int,
    function: Notify,
    data: UserData,
}

type Notify = unsafe extern "C" fn(Handle, c_int, UserData);

impl Callback {
    /// Calls the callback with the status that it was registered for, or with the error.
    fn call(&self, handle: Handle, status: c_int) {
        // SAFETY: the program has registered a function of this type.
        callback::run(|| unsafe {
            (self.function)(handle, if status < COMPLETE { status } else { self.at }, self.data)
        });
    }
}

object!(Event, INVALID_EVENT, clRetainEvent, clReleaseEvent);

impl Event {
    /// Creates the event of a command that is being enqueued.
    pub fn of_command(queue: &Arc<CommandQueue>, command: CommandType) -> Outcome<(Handle, Arc<Event>)> {
        Event::new(queue.context().clone(), Some(queue.clone()), command, QUEUED)
    }

    fn new(
        context: Arc<Context>,
        queue: Option<Arc<CommandQueue>>,
        command: CommandType,
        status: c_int,
    ) -> Outcome<(Handle, Arc<Event>)> {
        let mut times = [0; 4];
        times[status as usize] = gpu()?.now();
        let promise = Promise::default();
        Ok(handle::register(|identity| Event {
            identity,
            context,
            queue,
            command,
            ticket: promise.ticket(),
            promise: Mutex::new(Some(promise)),
            state: Mutex::new(State { status, times, callbacks: Vec::new() }),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the ticket of the event's end.
    pub fn ticket(&self) -> Ticket {
        self.ticket.clone()
    }

    /// Returns the status; negative if the command failed.
    pub fn status(&self) -> c_int {
        self.state().status
    }

    /// Returns the context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Sets the status, unless the event has ended. Callbacks are called without holding a lock.
    pub fn set(&self, status: c_int) {
        let now = gpu().map_or(0, |gpu| gpu.now());
        let mut state = self.state();
        if state.status <= COMPLETE {
            return;
        }
        state.status = status;
        state.times[status.max(COMPLETE) as usize] = now;
        let (due, later) = state.callbacks.drain(..).partition(|callback| status <= callback.at);
        let due: Vec<Callback> = due;
        state.callbacks = later;
        drop(state);
        if status <= COMPLETE {
            // Waiters are released before callbacks run, because callbacks may wait themselves.
            drop(self.promise.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        for callback in due {
            callback.call(self.handle(), status);
        }
    }

    /// Returns the time at which a status was entered.
    fn time(&self, status: c_int) -> u64 {
        self.state().times[status as usize]
    }
}

/// Reads the wait list of a command. The list must be null exactly if the count is 0.
pub fn wait_list(list: Array<Handle>, context: &Arc<Context>) -> Outcome<Vec<Arc<Event>>> {
    if (list.count() == 0) != list.is_null() {
        return Err(Status::INVALID_EVENT_WAIT_LIST.into());
    }
    let invalid = |_| Status::INVALID_EVENT_WAIT_LIST;
    let events =
        list.read()?.into_iter().map(handle::get::<Event>).collect::<Outcome<Vec<_>>>().map_err(invalid)?;
    match events.iter().all(|event| Arc::ptr_eq(event.context(), context)) {
        true => Ok(events),
        false => Err(Status::INVALID_CONTEXT.because("an event of another context")),
    }
}

/// `clWaitForEvents`.
pub unsafe extern "C" fn clWaitForEvents(count: c_uint, list: In<Handle>) -> c_int {
    call("clWaitForEvents", || {
        if count == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes an array of this length.
        let list = unsafe { list.list(count as usize)? };
        let events = list.into_iter().map(handle::get::<Event>).collect::<Outcome<Vec<_>>>()?;
        may_wait()?;
        let mut failed = false;
        for event in &events {
            event.ticket().wait();
            failed |= event.status() < COMPLETE;
        }
        if failed { Err(Status::EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST.into()) } else { Ok(()) }
    })
}

/// `clGetEventInfo`.
pub unsafe extern "C" fn clGetEventInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetEventInfo", || {
        let event = handle::get::<Event>(handle)?;
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x11d0 => query.handle(event.queue.as_ref().map_or(Handle::NULL, |queue| queue.handle())),
            0x11d1 => query.u32(event.command as u32),
            0x11d2 => query.u32(handle::references(handle)),
            0x11d3 => query.u32(event.status() as u32),
            0x11d4 => query.handle(event.context.handle()),
            _ => unknown_parameter(),
        }
    })
}

/// `clGetEventProfilingInfo`.
pub unsafe extern "C" fn clGetEventProfilingInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetEventProfilingInfo", || {
        let event = handle::get::<Event>(handle)?;
        let profiled = event.queue.as_ref().is_some_and(|queue| queue.is_profiled());
        if !profiled || event.status() != COMPLETE {
            return Err(Status::PROFILING_INFO_NOT_AVAILABLE.into());
        }
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x1280 => query.u64(event.time(QUEUED)),
            0x1281 => query.u64(event.time(SUBMITTED)),
            0x1282 => query.u64(event.time(RUNNING)),
            0x1283 | 0x1284 => query.u64(event.time(COMPLETE)),
            _ => unknown_parameter(),
        }
    })
}

/// `clSetEventCallback`.
pub unsafe extern "C" fn clSetEventCallback(
    handle: Handle,
    at: c_int,
    function: Option<Notify>,
    data: UserData,
) -> c_int {
    call("clSetEventCallback", || {
        let event = handle::get::<Event>(handle)?;
        let function = function.ok_or(Status::INVALID_VALUE)?;
        if !(COMPLETE..=SUBMITTED).contains(&at) {
            return Err(Status::INVALID_VALUE.into());
        }
        let callback = Callback { at, function, data };
        let mut state = event.state();
        let status = state.status;
        if status > at {
            state.callbacks.push(callback);
            return Ok(());
        }
        drop(state);
        callback.call(handle, status);
        Ok(())
    })
}

/// `clCreateUserEvent`.
pub unsafe extern "C" fn clCreateUserEvent(context: Handle, status: Out<c_int>) -> Handle {
    create("clCreateUserEvent", &status, || {
        Ok(Event::new(handle::get(context)?, None, CommandType::User, SUBMITTED)?.0)
    })
}

/// `clSetUserEventStatus`.
pub unsafe extern "C" fn clSetUserEventStatus(handle: Handle, status: c_int) -> c_int {
    call("clSetUserEventStatus", || {
        let event = handle::get::<Event>(handle)?;
        if event.command != CommandType::User {
            return Err(Status::INVALID_EVENT.into());
        }
        if status > COMPLETE {
            return Err(Status::INVALID_VALUE.into());
        }
        if event.status() <= COMPLETE {
            return Err(Status::INVALID_OPERATION.because("the event already has a final status"));
        }
        event.set(status);
        Ok(())
    })
}
