//! Events, also those that processes share.

use crate::ffi::Out;
use crate::gpu::{gpu, gpus, lock};
use crate::graph::Capture;
use crate::status::{Outcome, Status, call};
use crate::stream::{Handle, Stream, Streams, may_wait, new_handle};
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};
use wavesim_runtime::ipc::{IpcHandle, SharedCounters};
use wavesim_runtime::queue::Ticket;

/// Flags: `hipEventDisableTiming`, `hipEventInterprocess`, and all that there are; the others concern how the host waits
/// and caches.
const DISABLE_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;
const FLAGS: c_uint = 7 | RELEASES;
/// `hipEventDisableSystemFence`, `hipEventReleaseToDevice`, `hipEventReleaseToSystem`, of which one can be given.
const RELEASES: c_uint = 0x2000_0000 | 0x4000_0000 | 0x8000_0000;

/// An event, which refers to the work that it was recorded after.
pub struct Event {
    /// Ordinal of the device.
    device: usize,
    state: Mutex<Option<Recorded>>,
    /// Whether the event has a time.
    timed: bool,
    /// For events of several processes.
    shared: Option<Arc<SharedCounters>>,
    /// The handle of the counters, unless another process has created them.
    handle: Option<IpcHandle>,
}

/// The work that an event waits for.
enum Mark {
    Work(Ticket),
    /// A submission of any process.
    Shared(Arc<SharedCounters>, u64),
}

impl Mark {
    fn has_ended(&self) -> bool {
        match self {
            Mark::Work(ticket) => ticket.ended().is_some(),
            Mark::Shared(counters, number) => counters.has_ended(*number),
        }
    }

    fn wait(&self) {
        match self {
            Mark::Work(ticket) => {
                ticket.wait();
            }
            Mark::Shared(counters, number) => counters.wait(*number),
        }
    }
}

#[derive(Clone)]
enum Recorded {
    Run(Ticket),
    /// In a capture, after these nodes.
    Captured(Arc<Capture>, Vec<Handle>),
}

impl Streams {
    /// Returns the event with a handle, of any device.
    pub fn event(&self, handle: Handle) -> Outcome<Arc<Event>> {
        let on = |streams: &Streams| lock(&streams.events).get(&handle).cloned();
        let found = on(self).or_else(|| gpus().ok()?.iter().find_map(|gpu| on(&gpu.streams)));
        found.ok_or(Status::INVALID_HANDLE.into())
    }

    fn add_event(&self, timed: bool, shared: Option<SharedCounters>, ipc: Option<IpcHandle>) -> Handle {
        let (state, shared) = (Mutex::default(), shared.map(Arc::new));
        let (handle, event) =
            (new_handle(), Event { device: self.device, state, timed, shared, handle: ipc });
        lock(&self.events).insert(handle, Arc::new(event));
        handle
    }

    /// Adds an event that another process has created.
    pub fn import_event(&self, handle: &IpcHandle) -> Outcome<Handle> {
        Ok(self.add_event(false, Some(SharedCounters::open(handle)?), None))
    }

    /// Records an event after the work that has been submitted to the stream so far.
    ///
    /// # Errors
    /// The event belongs to another device than the stream.
    pub fn record(&self, event: &Event, stream: &Stream) -> Outcome {
        if event.device != stream.device {
            let (event, stream) = (event.device, stream.device);
            let message = format!("an event of device {event} recorded in a stream of device {stream}");
            return Err(Status::INVALID_HANDLE.because(message));
        }
        if let Some(counters) = event.shared.clone().filter(|_| lock(&stream.capture).is_none()) {
            let number = counters.submit();
            stream.gpu()?.streams.enqueue(stream, move || counters.end(number)).start();
            return Ok(());
        }
        let recorded = match &*lock(&stream.capture) {
            Some(capture) => Recorded::Captured(capture.clone(), capture.dependencies(stream)),
            None => Recorded::Run(stream.gpu()?.streams.enqueue(stream, || {}).start()),
        };
        *lock(&event.state) = Some(recorded);
        Ok(())
    }
}

impl Streams {
    /// Lets a stream wait for the work that an event was recorded after.
    pub fn wait_for_event(&self, stream: &Stream, event: Handle) -> Outcome {
        let event = self.event(event)?;
        if let Some(Recorded::Captured(capture, after)) = lock(&event.state).clone() {
            return capture.join(stream, &after);
        }
        match event.mark()?.filter(|mark| !mark.has_ended()) {
            Some(Mark::Work(ticket)) => drop(stream.queue.submit(vec![ticket], || {})),
            Some(mark) => drop(stream.queue.submit(Vec::new(), move || mark.wait())),
            // The event was never recorded, or its work has ended.
            None => {}
        }
        Ok(())
    }
}

/// `hipStreamWaitEvent`.
pub unsafe extern "C" fn hipStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> c_int {
    call("hipStreamWaitEvent", || {
        // hipEventWaitDefault, hipEventWaitExternal
        if flags > 1 {
            return Err(Status::INVALID_VALUE.into());
        }
        let gpu = gpu()?;
        gpu.streams.wait_for_event(&*gpu.streams.find(stream)?, event)
    })
}

/// `hipEventCreate`.
pub unsafe extern "C" fn hipEventCreate(event: Out<Handle>) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipEventCreateWithFlags(event, 0) }
}

/// `hipEventCreateWithFlags`.
pub unsafe extern "C" fn hipEventCreateWithFlags(event: Out<Handle>, flags: c_uint) -> c_int {
    call("hipEventCreate", || {
        if flags & !FLAGS != 0 || (flags & RELEASES).count_ones() > 1 {
            return Err(Status::INVALID_VALUE.into());
        }
        if flags & (INTERPROCESS | DISABLE_TIMING) == INTERPROCESS {
            return Err(Status::INVALID_VALUE.because("events of several processes have no times"));
        }
        let shared = (flags & INTERPROCESS != 0).then(SharedCounters::new).transpose()?;
        let (counters, handle) = shared.unzip();
        event.put(gpu()?.streams.add_event(flags & DISABLE_TIMING == 0, counters, handle))
    })
}

/// `hipEventDestroy`.
pub unsafe extern "C" fn hipEventDestroy(event: Handle) -> c_int {
    call("hipEventDestroy", || {
        let removed = gpus()?.iter().find_map(|gpu| lock(&gpu.streams.events).remove(&event));
        let unknown = if event == 0 { Status::INVALID_HANDLE } else { Status::CONTEXT_IS_DESTROYED };
        removed.map(drop).ok_or(unknown.into())
    })
}

/// `hipEventRecord`.
pub unsafe extern "C" fn hipEventRecord(event: Handle, stream: Handle) -> c_int {
    call("hipEventRecord", || {
        let gpu = gpu()?;
        gpu.streams.record(&*gpu.streams.event(event)?, &*gpu.streams.find(stream)?)
    })
}

/// `hipEventRecordWithFlags`.
pub unsafe extern "C" fn hipEventRecordWithFlags(event: Handle, stream: Handle, _flags: c_uint) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipEventRecord(event, stream) }
}

impl Event {
    /// Returns the handle for other processes.
    pub fn export(&self) -> Outcome<IpcHandle> {
        self.handle.ok_or_else(|| Status::INVALID_VALUE.because("not an event of hipEventInterprocess"))
    }

    /// Returns the work that the event refers to, or `None` if the event was never recorded.
    fn mark(&self) -> Outcome<Option<Mark>> {
        match &self.shared {
            Some(counters) => Ok(Some(Mark::Shared(counters.clone(), counters.submitted()))),
            None => Ok(self.ticket()?.map(Mark::Work)),
        }
    }

    /// Returns the ticket of the work that the event refers to, or `None` if the event was never recorded.
    fn ticket(&self) -> Outcome<Option<Ticket>> {
        match &*lock(&self.state) {
            Some(Recorded::Run(ticket)) => Ok(Some(ticket.clone())),
            Some(Recorded::Captured(..)) => Err(Status::CAPTURED_EVENT.into()),
            None => Ok(None),
        }
    }
}

/// `hipEventSynchronize`.
pub unsafe extern "C" fn hipEventSynchronize(event: Handle) -> c_int {
    call("hipEventSynchronize", || {
        let gpu = gpu()?;
        may_wait()?;
        if let Some(mark) = gpu.streams.event(event)?.mark()? {
            mark.wait();
        }
        gpu.check()
    })
}

/// `hipEventQuery`.
pub unsafe extern "C" fn hipEventQuery(event: Handle) -> c_int {
    call("hipEventQuery", || {
        let gpu = gpu()?;
        match gpu.streams.event(event)?.mark()? {
            Some(mark) if !mark.has_ended() => Err(Status::NOT_READY.into()),
            _ => gpu.check(),
        }
    })
}

/// `hipEventElapsedTime`. Reports the time of the simulation, or the predicted one of a GPU (`WAVESIM_TIMING`).
pub unsafe extern "C" fn hipEventElapsedTime(milliseconds: Out<f32>, start: Handle, stop: Handle) -> c_int {
    call("hipEventElapsedTime", || {
        if milliseconds.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let streams = &gpu()?.streams;
        let ticket = |handle: Handle| -> Outcome<Ticket> {
            let event = streams.event(handle)?;
            if !event.timed {
                return Err(Status::INVALID_HANDLE.because("an event of hipEventDisableTiming has no time"));
            }
            Ok(event.ticket()?.ok_or(Status::INVALID_HANDLE)?)
        };
        // Wrong events are reported before the work of others has ended.
        let (start, stop) = (ticket(start)?, ticket(stop)?);
        let start = start.ended().ok_or(Status::NOT_READY)?;
        let stop = stop.ended().ok_or(Status::NOT_READY)?;
        let forward = stop.saturating_duration_since(start).as_secs_f64();
        let backward = start.saturating_duration_since(stop).as_secs_f64();
        milliseconds.put(((forward - backward) * 1e3) as f32)
    })
}
