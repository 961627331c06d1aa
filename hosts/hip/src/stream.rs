//! Streams.
//!
//! Each stream is a queue with a thread of its own. The *legacy default stream* (0) synchronises with all
//! blocking streams in both directions; non-blocking streams do not synchronise with it.

use crate::event::Event;
use crate::ffi::{In, Memory, Out};
use crate::gpu::{Gpu, gpu, gpus, lock};
use crate::graph::{Capture, existing};
use crate::memory::AllocationKind;
use crate::op::{Callback, Op, Work};
use crate::status::{Failure, Outcome, Status, call};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use wavesim_runtime::callback;
use wavesim_runtime::queue::{EnqueuedTask, Queue, Reservation, Ticket};

/// `hipStream_t` and `hipEvent_t`. Handles are numbers, so that a stale handle is detected.
pub type Handle = usize;

/// `hipStreamLegacy` and `hipStreamPerThread`.
const LEGACY: Handle = 1;
const PER_THREAD: Handle = 2;
/// `hipStreamNonBlocking`.
const NON_BLOCKING: c_uint = 1;

/// Returns a new handle: distinct from null and the special handles, and aligned like a pointer.
pub fn new_handle() -> Handle {
    static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
    NEXT.fetch_add(16, Ordering::Relaxed)
}

/// A stream.
pub struct Stream {
    /// The program's `hipStream_t`.
    pub handle: Handle,
    /// Queue of the stream's work.
    pub queue: Queue,
    /// Ordinal of the device.
    pub device: usize,
    flags: c_uint,
    priority: c_int,
    /// The active capture, if any. Work is then recorded instead of run.
    pub capture: Mutex<Option<Arc<Capture>>>,
    /// Attributes that the program has set, by `hipLaunchAttributeID`.
    attributes: Mutex<BTreeMap<c_uint, Vec<u8>>>,
    /// The program has destroyed its handle. Pending work continues and is still waited for.
    destroyed: AtomicBool,
}

/// The streams and events of a device.
pub struct Streams {
    /// Ordinal of the device.
    pub device: usize,
    legacy: Arc<Stream>,
    others: Mutex<HashMap<Handle, Arc<Stream>>>,
    /// The events, by handle.
    pub events: Mutex<HashMap<Handle, Arc<Event>>>,
    /// Held while work is ordered against other streams, so that concurrent submissions have a consistent
    /// order.
    order: Mutex<()>,
}

impl Stream {
    fn new(device: usize, handle: Handle, flags: c_uint, priority: c_int) -> Stream {
        let (queue, capture) = (Queue::default(), Mutex::new(None));
        let (attributes, destroyed) = (Mutex::default(), AtomicBool::new(false));
        Stream { handle, queue, device, flags, priority, capture, attributes, destroyed }
    }

    /// Returns the stream's device.
    pub fn gpu(&self) -> Outcome<&'static Gpu> {
        gpus()?.get(self.device).ok_or(Status::INVALID_HANDLE.into())
    }

    fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::SeqCst)
    }

    fn destroy(&self) {
        self.destroyed.store(true, Ordering::SeqCst);
    }

    /// Returns whether the calling thread has begun a capture of the stream.
    pub fn is_captured_by_thread(&self) -> bool {
        lock(&self.capture).as_ref().is_some_and(|capture| capture.is_of_thread())
    }

    /// Returns whether the stream synchronises with the legacy default stream.
    pub fn blocks(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }
}

impl Streams {
    /// Creates the legacy default stream of a device.
    pub fn new(device: usize) -> Streams {
        Streams {
            device,
            legacy: Arc::new(Stream::new(device, 0, 0, 0)),
            others: Mutex::default(),
            events: Mutex::default(),
            order: Mutex::default(),
        }
    }
}

impl Streams {
    /// Returns the stream with a handle: a default stream of this device, or a stream that the program created on any
    /// device.
    pub fn find(&self, handle: Handle) -> Outcome<Arc<Stream>> {
        match handle {
            0 | LEGACY => Ok(self.legacy.clone()),
            PER_THREAD => Ok(self.of_thread()),
            _ => self.created(handle),
        }
    }

    /// Returns a stream that the program created on any device.
    fn created(&self, handle: Handle) -> Outcome<Arc<Stream>> {
        let on = |streams: &Streams| lock(&streams.others).get(&handle).cloned();
        let found = on(self).or_else(|| gpus().ok()?.iter().find_map(|gpu| on(&gpu.streams)));
        found.filter(|stream| !stream.is_destroyed()).ok_or(Status::INVALID_HANDLE.into())
    }

    /// Returns the per-thread default stream.
    fn of_thread(&self) -> Arc<Stream> {
        /// Destroys the stream when the thread exits.
        struct Own(Arc<Stream>);
        impl Drop for Own {
            fn drop(&mut self) {
                self.0.destroy();
            }
        }
        thread_local! {
            /// The streams of devices.
            static OWN: RefCell<HashMap<usize, Own>> = RefCell::default();
        }
        OWN.with_borrow_mut(|own| own.entry(self.device).or_insert_with(|| Own(self.create(0, 0))).0.clone())
    }

    fn create(&self, flags: c_uint, priority: c_int) -> Arc<Stream> {
        let stream = Arc::new(Stream::new(self.device, new_handle(), flags, priority));
        self.remove_idle();
        lock(&self.others).insert(stream.handle, stream.clone());
        stream
    }

    /// Removes destroyed streams whose work has ended.
    fn remove_idle(&self) {
        lock(&self.others).retain(|_, stream| !stream.is_destroyed() || stream.queue.pending().is_some());
    }

    /// Returns the work of other streams that new work on a stream must wait for.
    fn dependencies(&self, stream: &Stream) -> Vec<Ticket> {
        if stream.handle == 0 {
            lock(&self.others).values().filter(|s| s.blocks()).filter_map(|s| s.queue.pending()).collect()
        } else if stream.blocks() {
            self.legacy.queue.pending().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    /// Enqueues work on a stream.
    pub fn enqueue(&self, stream: &Stream, work: impl FnOnce() + Send + 'static) -> EnqueuedTask {
        let _order = lock(&self.order);
        stream.queue.enqueue(self.dependencies(stream), work)
    }

    /// Reserves a position in a stream for work of the calling thread.
    fn reserve(&self, stream: &Stream) -> Reservation {
        let _order = lock(&self.order);
        stream.queue.reserve(self.dependencies(stream))
    }

    /// Waits for all work of all streams.
    ///
    /// # Errors
    /// The caller is a callback.
    pub fn wait(&self) -> Outcome {
        may_wait()?;
        self.for_each(|stream| stream.queue.wait());
        self.remove_idle();
        Ok(())
    }

    /// Calls `body` with every stream, including destroyed streams with pending work.
    pub fn for_each(&self, mut body: impl FnMut(&Stream)) {
        // The lock is released first: `body` may acquire locks that other threads hold while they look up
        // streams.
        let others: Vec<Arc<Stream>> = lock(&self.others).values().cloned().collect();
        others.iter().for_each(|stream| body(stream));
        body(&self.legacy);
    }
}

/// Checks that the calling thread may wait for work of a stream: callbacks must not, since their own stream
/// waits for them.
pub fn may_wait() -> Outcome {
    match callback::is_running() {
        true => Err(Status::NOT_PERMITTED.because("a callback of a stream must not wait for streams")),
        false => Ok(()),
    }
}

impl Gpu {
    /// Returns the device of a stream.
    fn or_of(&'static self, stream: &Stream) -> Outcome<&'static Gpu> {
        if stream.device == self.device.ordinal() { Ok(self) } else { stream.gpu() }
    }

    /// Enqueues work on a stream of any device, or records it if the stream is being captured.
    pub fn enqueue(&'static self, stream: &Stream, work: Work) -> Outcome {
        let gpu = self.or_of(stream)?;
        gpu.check()?;
        if let Some(capture) = &*lock(&stream.capture) {
            capture.add(stream, work);
            return Ok(());
        }
        gpu.streams.enqueue(stream, move || work.run(gpu)).start();
        Ok(())
    }

    /// Runs work in the order of a stream of any device and waits for it.
    pub fn run(&'static self, stream: &Stream, work: Work) -> Outcome {
        let gpu = self.or_of(stream)?;
        gpu.check()?;
        if let Some(capture) = &*lock(&stream.capture) {
            capture.add(stream, work);
            return Ok(());
        }
        may_wait()?;
        gpu.streams.reserve(stream).run(|| work.run(gpu));
        gpu.check()
    }

    /// Waits for all work and returns its failure, if any.
    ///
    /// # Errors
    /// The thread captures a stream; the caller is a callback; the work has failed.
    pub fn wait(&'static self) -> Outcome {
        let mut captured = false;
        self.streams.for_each(|stream| captured |= stream.is_captured_by_thread());
        if captured {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
        }
        self.streams.wait()?;
        self.check()
    }
}

/// `hipStreamCreate`.
pub unsafe extern "C" fn hipStreamCreate(stream: Out<Handle>) -> c_int {
    call("hipStreamCreate", || stream.put(gpu()?.streams.create(0, 0).handle))
}

/// `hipStreamCreateWithFlags`.
pub unsafe extern "C" fn hipStreamCreateWithFlags(stream: Out<Handle>, flags: c_uint) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipStreamCreateWithPriority(stream, flags, 0) }
}

/// `hipStreamCreateWithPriority`.
pub unsafe extern "C" fn hipStreamCreateWithPriority(
    stream: Out<Handle>,
    flags: c_uint,
    priority: c_int,
) -> c_int {
    call("hipStreamCreate", || {
        if flags > NON_BLOCKING {
            return Err(Status::INVALID_VALUE.into());
        }
        stream.put(gpu()?.streams.create(flags, priority.clamp(-1, 1)).handle)
    })
}

/// `hipStreamDestroy`. Pending work of the stream continues.
pub unsafe extern "C" fn hipStreamDestroy(stream: Handle) -> c_int {
    call("hipStreamDestroy", || {
        // The default streams are of no program.
        let unknown =
            if stream <= PER_THREAD { Status::INVALID_HANDLE } else { Status::CONTEXT_IS_DESTROYED };
        let found = gpu()?.streams.created(stream).map_err(|_| Failure::from(unknown))?;
        found.destroy();
        found.gpu()?.streams.remove_idle();
        Ok(())
    })
}

/// Waits for the work of a stream and for what it waits for.
pub fn synchronize(stream: &Stream) -> Outcome {
    let gpu = stream.gpu()?;
    if lock(&stream.capture).is_some() {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
    }
    may_wait()?;
    gpu.streams.dependencies(stream).iter().for_each(|ticket| {
        ticket.wait();
    });
    stream.queue.wait();
    gpu.check()
}

/// `hipStreamSynchronize`.
pub unsafe extern "C" fn hipStreamSynchronize(stream: Handle) -> c_int {
    call("hipStreamSynchronize", || synchronize(&*existing(stream)?))
}

/// `hipStreamQuery`.
pub unsafe extern "C" fn hipStreamQuery(stream: Handle) -> c_int {
    call("hipStreamQuery", || {
        let stream = existing(stream)?;
        let gpu = stream.gpu()?;
        if lock(&stream.capture).is_some() {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
        }
        if stream.queue.pending().is_some() || !gpu.streams.dependencies(&stream).is_empty() {
            return Err(Status::NOT_READY.into());
        }
        gpu.check()
    })
}

/// `hipStreamGetFlags`. As in ROCm, null is not a stream here.
pub unsafe extern "C" fn hipStreamGetFlags(stream: Handle, flags: Out<c_uint>) -> c_int {
    call("hipStreamGetFlags", || {
        if stream == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        flags.put(gpu()?.streams.find(stream)?.flags)
    })
}

/// `hipStreamGetPriority`.
pub unsafe extern "C" fn hipStreamGetPriority(stream: Handle, priority: Out<c_int>) -> c_int {
    call("hipStreamGetPriority", || priority.put(gpu()?.streams.find(stream)?.priority))
}

/// `hipStreamGetDevice`.
pub unsafe extern "C" fn hipStreamGetDevice(stream: Handle, device: Out<c_int>) -> c_int {
    call("hipStreamGetDevice", || device.put(gpu()?.streams.find(stream)?.device as c_int))
}

/// `hipGetStreamDeviceId`. Returns -1 for an unknown stream.
pub unsafe extern "C" fn hipGetStreamDeviceId(stream: Handle) -> c_int {
    gpu().and_then(|gpu| gpu.streams.find(stream)).map_or(-1, |stream| stream.device as c_int)
}

/// `hipStreamGetId`.
pub unsafe extern "C" fn hipStreamGetId(stream: Handle, id: Out<u64>) -> c_int {
    call("hipStreamGetId", || id.put(gpu()?.streams.find(stream)?.handle as u64))
}

/// `hipDeviceGetStreamPriorityRange`.
pub unsafe extern "C" fn hipDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) -> c_int {
    call("hipDeviceGetStreamPriorityRange", || {
        least.put_optional(1);
        greatest.put_optional(-1);
        Ok(())
    })
}

/// Returns the size of an attribute of streams in bytes: `hipStreamAttributeAccessPolicyWindow`,
/// `…SynchronizationPolicy` and `…Priority`.
fn attribute_bytes(attribute: c_uint) -> Outcome<usize> {
    match attribute {
        1 => Ok(32),
        3 | PRIORITY => Ok(4),
        _ => Err(Status::INVALID_VALUE.into()),
    }
}

/// `hipStreamAttributePriority`.
const PRIORITY: c_uint = 8;

/// `hipStreamSetAttribute`. Caches and priorities are not simulated, so that the attributes are only kept.
pub unsafe extern "C" fn hipStreamSetAttribute(stream: Handle, attribute: c_uint, value: Memory) -> c_int {
    call("hipStreamSetAttribute", || {
        let stream = gpu()?.streams.find(stream)?;
        let len = attribute_bytes(attribute)?;
        if value.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes a value of the attribute's size.
        lock(&stream.attributes).insert(attribute, unsafe { value.read(len) });
        Ok(())
    })
}

/// `hipStreamGetAttribute`. An attribute that has not been set is 0, or the stream's priority.
pub unsafe extern "C" fn hipStreamGetAttribute(stream: Handle, attribute: c_uint, value: Memory) -> c_int {
    call("hipStreamGetAttribute", || {
        let stream = gpu()?.streams.find(stream)?;
        let len = attribute_bytes(attribute)?;
        if value.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let given = lock(&stream.attributes).get(&attribute).cloned();
        let default = || match attribute {
            PRIORITY => stream.priority.to_le_bytes().to_vec(),
            _ => vec![0; len],
        };
        // SAFETY: the caller of the API passes room for a value of the attribute's size.
        unsafe { value.write(&given.unwrap_or_else(default)) };
        Ok(())
    })
}

/// `hipStreamCopyAttributes`.
pub unsafe extern "C" fn hipStreamCopyAttributes(to: Handle, from: Handle) -> c_int {
    call("hipStreamCopyAttributes", || {
        let streams = &gpu()?.streams;
        let (to, from) = (streams.find(to)?, streams.find(from)?);
        let copied = lock(&from.attributes).clone();
        *lock(&to.attributes) = copied;
        Ok(())
    })
}

/// `hipStreamAddCallback`.
pub unsafe extern "C" fn hipStreamAddCallback(
    stream: Handle,
    function: Option<unsafe extern "C" fn(usize, c_int, Memory)>,
    argument: Memory,
    flags: c_uint,
) -> c_int {
    call("hipStreamAddCallback", || {
        let gpu = gpu()?;
        let function = function.filter(|_| flags == 0).ok_or(Status::INVALID_VALUE)?;
        let found = gpu.streams.find(stream)?;
        // SAFETY: the caller of the API passes a function that can be called until the stream has called it.
        let work = unsafe { Work::new(Op::Callback(Callback { function, stream, argument })) };
        gpu.enqueue(&found, work)
    })
}

/// `hipLaunchHostFunc`.
pub unsafe extern "C" fn hipLaunchHostFunc(
    stream: Handle,
    function: Option<unsafe extern "C" fn(Memory)>,
    argument: Memory,
) -> c_int {
    call("hipLaunchHostFunc", || {
        let gpu = gpu()?;
        if function.is_none() {
            return Err(Status::INVALID_VALUE.into());
        }
        let stream = existing(stream)?;
        // SAFETY: the caller of the API passes a function that can be called until the stream has called it.
        let work = unsafe { Work::new(Op::Host(crate::ffi::HostFunction { function, argument })) };
        gpu.enqueue(&stream, work)
    })
}

/// `hipStreamAttachMemAsync`. Only checks the parameters, since all streams share all memory. A length of 0 stands for the
/// whole allocation.
pub unsafe extern "C" fn hipStreamAttachMemAsync(
    stream: Handle,
    at: Memory,
    len: usize,
    flags: c_uint,
) -> c_int {
    call("hipStreamAttachMemAsync", || {
        let gpu = gpu()?;
        gpu.streams.find(stream)?;
        let found = gpu.find_allocation(at.address()).filter(|found| found.kind == AllocationKind::Managed);
        let found = found.ok_or(Status::INVALID_VALUE)?;
        // hipMemAttachGlobal, hipMemAttachHost, hipMemAttachSingle
        if !matches!(flags, 1 | 2 | 4) || (len != 0 && len as u64 != found.len) {
            return Err(Status::INVALID_VALUE.into());
        }
        Ok(())
    })
}

/// `hipDeviceSynchronize`.
pub unsafe extern "C" fn hipDeviceSynchronize() -> c_int {
    call("hipDeviceSynchronize", || gpu()?.wait())
}

/// `hipCtxSynchronize`.
pub unsafe extern "C" fn hipCtxSynchronize() -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipDeviceSynchronize() }
}

/// `hipDeviceReset`. Clears a sticky failure. Memory is retained.
pub unsafe extern "C" fn hipDeviceReset() -> c_int {
    call("hipDeviceReset", || {
        let gpu = gpu()?;
        gpu.streams.wait()?;
        gpu.reset();
        Ok(())
    })
}

/// `hipExtStreamCreateWithCUMask`. The mask is ignored.
pub unsafe extern "C" fn hipExtStreamCreateWithCUMask(
    stream: Out<Handle>,
    _words: c_uint,
    _mask: In<u32>,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipStreamCreate(stream) }
}

/// `hipExtStreamGetCUMask`. All streams use the whole device: all bits are set.
pub unsafe extern "C" fn hipExtStreamGetCUMask(stream: Handle, words: c_uint, mask: Out<u32>) -> c_int {
    call("hipExtStreamGetCUMask", || {
        gpu()?.streams.find(stream)?;
        if words == 0 || mask.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes an array of this length.
        (0..words as usize).for_each(|at| unsafe { mask.put_at(at, u32::MAX) });
        Ok(())
    })
}
