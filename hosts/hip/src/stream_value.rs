//! Operations of streams on single values in memory: writes, and waits for a value.

use crate::ffi::{In, Memory};
use crate::gpu::{Gpu, gpu};
use crate::graph::existing;
use crate::op::{Op, Work};
use crate::status::{Failure, Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The time between two looks at a value that a stream waits for.
const POLL: Duration = Duration::from_micros(50);

/// An access to a value of 4 or 8 bytes.
#[derive(Debug, Clone, Copy)]
pub struct ValueOp {
    at: Memory,
    /// Whether it has 8 bytes.
    is_long: bool,
    /// The value to write or to compare with.
    value: u64,
    /// The condition to wait for, and the bits of the value that count; `None` for a write.
    condition: Option<(Condition, u64)>,
}

/// `hipStreamWaitValueGte` and others.
#[derive(Debug, Clone, Copy)]
enum Condition {
    GreaterOrEqual,
    Equal,
    And,
    Nor,
}

impl Condition {
    fn from_flags(flags: c_uint) -> Outcome<Condition> {
        Ok(match flags {
            0 => Condition::GreaterOrEqual,
            1 => Condition::Equal,
            2 => Condition::And,
            3 => Condition::Nor,
            _ => return Err(Status::INVALID_VALUE.into()),
        })
    }

    /// Returns whether a value in memory fulfils the condition. `all` has all bits of the value's size.
    fn holds(self, found: u64, value: u64, all: u64) -> bool {
        match self {
            Condition::GreaterOrEqual => found >= value,
            Condition::Equal => found == value,
            Condition::And => found & value != 0,
            Condition::Nor => !(found | value) & all != 0,
        }
    }
}

impl ValueOp {
    /// Performs the operation. A wait ends early if the device has failed.
    ///
    /// # Safety
    /// The memory is valid.
    pub unsafe fn run(&self, gpu: &Gpu) {
        let Some((condition, mask)) = self.condition else {
            // SAFETY: the caller guarantees the memory, and `enqueue` the alignment.
            unsafe {
                match self.is_long {
                    true => self.at.atomic_u64().store(self.value, Ordering::SeqCst),
                    false => self.at.atomic_u32().store(self.value as u32, Ordering::SeqCst),
                }
            }
            gpu.device.record_write(self.at.address(), if self.is_long { 8 } else { 4 });
            return;
        };
        let all = if self.is_long { u64::MAX } else { u32::MAX as u64 };
        loop {
            // SAFETY: as above.
            let found = unsafe {
                match self.is_long {
                    true => self.at.atomic_u64().load(Ordering::SeqCst),
                    false => self.at.atomic_u32().load(Ordering::SeqCst) as u64,
                }
            };
            if condition.holds(found & mask & all, self.value & all, all) || gpu.check().is_err() {
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Checks the address, and returns the work.
    fn work(self, gpu: &Gpu) -> Outcome<Work> {
        let bytes = if self.is_long { 8 } else { 4 };
        let known = gpu.find_allocation(self.at.address());
        let inside = known.is_some_and(|known| self.at.address() + bytes <= known.address + known.len);
        if !inside || !self.at.address().is_multiple_of(bytes) {
            return Err(
                Status::INVALID_VALUE.because("the value is not in memory of the device or registered")
            );
        }
        // SAFETY: the caller of the API keeps the memory valid until the stream has accessed it.
        Ok(unsafe { Work::new(Op::Value(self)) })
    }

    fn enqueue(self, stream: Handle) -> Outcome {
        let gpu = gpu()?;
        let work = self.work(gpu)?;
        gpu.enqueue(&*existing(stream)?, work)
    }
}

/// `hipStreamBatchMemOpParams`: the members that waits and writes have in common.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BatchedValue {
    operation: c_uint,
    at: Memory,
    value: u64,
    flags: c_uint,
    alias: Memory,
    _rest: u64,
}

const _: () = assert!(size_of::<BatchedValue>() == 48, "as the headers have it");

impl BatchedValue {
    /// Returns the operation.
    fn op(&self) -> Outcome<ValueOp> {
        // hipStreamMemOpWaitValue32, …WriteValue32, …WaitValue64, …WriteValue64
        let (is_long, waits) = match self.operation {
            1 => (false, true),
            2 => (false, false),
            4 => (true, true),
            5 => (true, false),
            other => {
                return Err(Status::INVALID_VALUE.because(format!("a memory operation of type {other}")));
            }
        };
        let condition = waits.then(|| Ok::<_, Failure>((Condition::from_flags(self.flags)?, u64::MAX)));
        let value = if is_long { self.value } else { self.value & u64::from(u32::MAX) };
        Ok(ValueOp { at: self.at, is_long, value, condition: condition.transpose()? })
    }
}

/// Returns the work of a batch of operations.
///
/// # Safety
/// There are `count` operations; the memory that they name is valid whenever the work runs.
pub unsafe fn batch(
    gpu: &Gpu,
    count: c_uint,
    operations: In<BatchedValue>,
    flags: c_uint,
) -> Outcome<(Vec<Work>, Vec<BatchedValue>)> {
    /// The most operations of one call.
    const MOST: c_uint = 256;
    if count == 0 || count > MOST || flags != 0 {
        return Err(Status::INVALID_VALUE.into());
    }
    // SAFETY: the caller guarantees the length.
    let operations = unsafe { operations.list(count as usize)? };
    let works = operations.iter().map(|value| value.op()?.work(gpu)).collect::<Outcome<_>>()?;
    Ok((works, operations))
}

/// `hipStreamBatchMemOp`. If one of the operations is refused, none is enqueued.
pub unsafe extern "C" fn hipStreamBatchMemOp(
    stream: Handle,
    count: c_uint,
    operations: In<BatchedValue>,
    flags: c_uint,
) -> c_int {
    call("hipStreamBatchMemOp", || {
        let gpu = gpu()?;
        // SAFETY: the caller of the API passes an array of this length, and keeps the memory valid.
        let (works, _) = unsafe { batch(gpu, count, operations, flags)? };
        let stream = gpu.streams.find(stream)?;
        works.into_iter().try_for_each(|work| gpu.enqueue(&stream, work))
    })
}

/// `hipStreamWriteValue32`.
pub unsafe extern "C" fn hipStreamWriteValue32(
    stream: Handle,
    at: Memory,
    value: u32,
    _flags: c_uint,
) -> c_int {
    call("hipStreamWriteValue32", || {
        ValueOp { at, is_long: false, value: value.into(), condition: None }.enqueue(stream)
    })
}

/// `hipStreamWriteValue64`.
pub unsafe extern "C" fn hipStreamWriteValue64(
    stream: Handle,
    at: Memory,
    value: u64,
    _flags: c_uint,
) -> c_int {
    call("hipStreamWriteValue64", || ValueOp { at, is_long: true, value, condition: None }.enqueue(stream))
}

/// `hipStreamWaitValue32`.
pub unsafe extern "C" fn hipStreamWaitValue32(
    stream: Handle,
    at: Memory,
    value: u32,
    flags: c_uint,
    mask: u32,
) -> c_int {
    call("hipStreamWaitValue32", || {
        let condition = Some((Condition::from_flags(flags)?, mask.into()));
        ValueOp { at, is_long: false, value: value.into(), condition }.enqueue(stream)
    })
}

/// `hipStreamWaitValue64`.
pub unsafe extern "C" fn hipStreamWaitValue64(
    stream: Handle,
    at: Memory,
    value: u64,
    flags: c_uint,
    mask: u64,
) -> c_int {
    call("hipStreamWaitValue64", || {
        let condition = Some((Condition::from_flags(flags)?, mask));
        ValueOp { at, is_long: true, value, condition }.enqueue(stream)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_the_api() {
        let holds =
            |flags, found, value| Condition::from_flags(flags).unwrap().holds(found, value, 0xffff_ffff);
        assert!(holds(0, 5, 5) && holds(0, 6, 5) && !holds(0, 4, 5));
        assert!(holds(1, 5, 5) && !holds(1, 6, 5));
        assert!(holds(2, 6, 4) && !holds(2, 3, 4));
        assert!(holds(3, 6, 4) && !holds(3, 0xffff_fff0, 0xf));
        assert!(Condition::from_flags(4).is_err());
    }
}
