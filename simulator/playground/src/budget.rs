//! The memory that all pages of a server share.

use crate::program::GLOBAL_BYTES;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use wavesim_engine::sched::dispatch::Dispatch;
use wavesim_loader::prepared::Prepared;

/// Maximum number of bytes that suspended workgroups of one run hold. The bound of the engine is meant for one run in a
/// process.
pub const RESIDENT_BYTES: usize = 64 << 20;
/// Bytes that preparing a kernel may take in addition to its text: arrays while they are filled, and global memory.
const PREPARING: usize = 2 * GLOBAL_BYTES as usize;
/// Bytes of a lane's registers, at most (256 VGPRs), with the state of its wave.
const LANE_BYTES: usize = 1280;
/// How often a request that waits for memory looks whether it has been stopped, and how often it looks at all.
const WAIT: Duration = Duration::from_millis(50);
const WAITS: u32 = 200;

/// A number of bytes of which requests take a part as long as they need it.
#[derive(Debug)]
pub struct Budget {
    total: usize,
    left: Mutex<usize>,
    returned: Condvar,
}

impl Default for Budget {
    /// Without a bound: an engine of its own in a browser has the browser's.
    fn default() -> Budget {
        Budget::new(usize::MAX)
    }
}

/// A part of a budget, which is returned when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    /// Creates a budget of a number of bytes.
    pub fn new(bytes: usize) -> Budget {
        Budget { total: bytes, left: Mutex::new(bytes), returned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the bytes that nothing takes.
    pub fn left(&self) -> usize {
        *self.lock()
    }

    /// Takes bytes, if there are as many.
    pub fn reserve(self: &Arc<Budget>, bytes: usize) -> Option<Reservation> {
        let mut left = self.lock();
        *left = left.checked_sub(bytes)?;
        Some(Reservation { budget: self.clone(), bytes })
    }

    /// Takes bytes; waits some seconds for others to return theirs, unless it is stopped.
    ///
    /// # Errors
    /// There are not as many bytes; the message is for the page.
    pub fn wait_for(self: &Arc<Budget>, bytes: usize, stop: &AtomicBool) -> Result<Reservation, String> {
        for _ in 0..WAITS {
            if let Some(reservation) = self.reserve(bytes) {
                return Ok(reservation);
            }
            if stop.load(Ordering::Relaxed) {
                return Err("stopped".to_string());
            }
            drop(self.returned.wait_timeout(self.lock(), WAIT));
        }
        Err(self.refusal(bytes))
    }

    fn refusal(&self, bytes: usize) -> String {
        match bytes > self.total {
            true => {
                format!("this needs {} MB of memory: this server has {} MB", bytes >> 20, self.total >> 20)
            }
            false => "other kernels take up the memory of this server: try again later".to_string(),
        }
    }
}

impl Reservation {
    /// Changes the size.
    ///
    /// # Errors
    /// The budget has not as many bytes; the message is for the page.
    pub fn resize(&mut self, bytes: usize) -> Result<(), String> {
        if let Some(more) = bytes.checked_sub(self.bytes) {
            let mut left = self.budget.lock();
            let less = left.checked_sub(more);
            *left = less.ok_or_else(|| self.budget.refusal(bytes))?;
        } else {
            *self.budget.lock() += self.bytes - bytes;
            self.budget.returned.notify_all();
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *self.budget.lock() += self.bytes;
        self.budget.returned.notify_all();
    }
}

/// Returns the bytes for preparing a kernel whose request has a size.
pub fn preparing(request: usize) -> usize {
    PREPARING.saturating_add(request.saturating_mul(4))
}

/// Bytes of a recorded instruction: 64 lines and their descriptions, twice while they are collected.
const RECORD_BYTES: usize = 2 * (64 * 8 + 40);

/// Upper bounds of the bytes that a prepared kernel takes.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// The arguments and everything else in global memory.
    pub memory: usize,
    /// The state of a workgroup.
    pub group: usize,
    /// The workgroups of a run, most of them suspended.
    pub groups: usize,
}

impl Need {
    /// Returns the bounds of a kernel.
    pub fn of(prepared: &Prepared, dispatch: &Dispatch<'_>) -> Need {
        let memory: u64 = prepared.memory.regions().iter().map(|region| region.len).sum();
        let shape = dispatch.shape;
        let lanes = dispatch.waves() as usize * shape.wave_size as usize;
        let group = lanes * (LANE_BYTES + shape.scratch_bytes as usize) + shape.lds_bytes as usize;
        let all = group.saturating_mul(usize::try_from(dispatch.workgroups()).unwrap_or(usize::MAX));
        // The suspended ones, at least one; the running one, and one for reuse.
        let groups = all.min(RESIDENT_BYTES.max(group)) + 2 * group;
        Need { memory: memory as usize, group, groups }
    }

    /// The bytes of a plain run: memory, its outputs as arrays and as text, and workgroups.
    pub fn run(self) -> usize {
        self.memory * 4 + self.groups
    }

    /// The bytes of a checked run, which keeps facts about each byte of memory and of LDS.
    pub fn check(self) -> usize {
        self.memory * 12 + self.groups * 2
    }

    /// The bytes of a run of which instructions are recorded: a plain run, and for each instruction its record and a line
    /// of memory for each lane, at most.
    pub fn profile(self, instructions: u64) -> usize {
        self.run() + instructions as usize * RECORD_BYTES
    }

    /// The bytes of a debugger with checkpoints of a size, of which it keeps a minimal number.
    pub fn debug(self, checkpoints: usize, least: usize) -> usize {
        self.memory * 4 + self.groups + checkpoints.max(least * self.group)
    }
}
