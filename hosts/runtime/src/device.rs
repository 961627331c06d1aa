//! Devices: a target, its memory, and how it runs launches.

use crate::hostcall::{Hostcall, Sink};
use crate::kernargs::{Kernargs, Slot};
use crate::memory::{self, Allocation, Bounds, Freed, HostMemory};
use crate::raw::Programs;
use crate::{Codes, Error, Module, Settings, Target, exit, message};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wavesim::memory::{MapError, MemError, Memory};
use wavesim::sched::group::Pool;

/// Bytes of freed allocations whose addresses are kept from reuse.
const QUARANTINE_BYTES: u64 = 64 << 20;
/// The most of them.
const QUARANTINE: usize = 1024;

/// A device. Clones are the same device; threads can use it at the same time.
#[derive(Clone)]
pub struct Device {
    pub(crate) inner: Arc<Inner>,
}

/// What clones share.
pub(crate) struct Inner {
    target: Target,
    settings: Settings,
    state: Mutex<State>,
    pub(crate) kernargs: Kernargs,
    pub(crate) programs: Programs,
    pub(crate) pool: Pool,
    /// Compiled code.
    pub(crate) codes: Codes,
    /// Of each launch that runs: set to end it.
    running: Mutex<Vec<Arc<AtomicBool>>>,
    /// Where output of kernels goes.
    output: Mutex<Sink>,
    launches: AtomicU64,
}

#[derive(Default)]
struct State {
    /// By address.
    allocations: BTreeMap<u64, Arc<Allocation>>,
    /// Memory of the embedding program, by address.
    mapped: BTreeMap<u64, HostMemory>,
    freed: VecDeque<(Freed, Option<Arc<Allocation>>)>,
    bounds: Bounds,
    /// Counts changes of the memory.
    generation: u64,
    /// Memories of launches that have ended.
    spaces: Vec<Space>,
    /// Of kernels that ask for it: there since the first one.
    hostcall: Option<Arc<Hostcall>>,
}

/// The memory of a launch, which keeps what it is made of.
pub(crate) struct Space {
    pub(crate) memory: Memory,
    keep: Keep,
    /// Of the device when it was made; `None`: it has ranges of its own.
    generation: Option<u64>,
}

/// Allocations, and mapped ranges with their owners.
struct Keep {
    _allocations: Vec<Arc<Allocation>>,
    _ranges: Vec<HostMemory>,
}

/// An allocation, as a lookup reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub address: u64,
    /// Size in bytes.
    pub len: u64,
    /// The name in messages.
    pub name: String,
    /// Memory of the embedding program.
    pub mapped: bool,
}

impl Device {
    /// A device for a target (`gfx1100`, `rdna4`).
    pub fn open(target: &str, settings: &Settings) -> Result<Device, Error> {
        if settings.error_exit_code != 0 {
            exit::use_status(settings.error_exit_code.into());
        }
        Ok(Device {
            inner: Arc::new(Inner {
                target: Target::from_name(target)?,
                settings: settings.clone(),
                state: Mutex::default(),
                kernargs: Kernargs::new()?,
                programs: Programs::default(),
                pool: Pool::default(),
                codes: Codes::default(),
                running: Mutex::default(),
                output: Mutex::new(Arc::new(message::print)),
                launches: AtomicU64::new(0),
            }),
        })
    }

    /// The device that the environment describes.
    pub fn from_env() -> Result<Device, Error> {
        let settings = Settings::from_env()?;
        Device::open(settings.target.as_deref().unwrap_or(Target::DEFAULT), &settings)
    }

    /// Its target.
    pub fn target(&self) -> &Target {
        &self.inner.target
    }

    /// How it runs launches.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Units of machine code that kernels have been compiled to (`WAVESIM_ENGINE`).
    pub fn compiled_units(&self) -> u32 {
        self.inner.codes.units()
    }

    /// The number of launches so far.
    pub fn launches(&self) -> u64 {
        self.inner.launches.load(Ordering::Relaxed)
    }

    pub(crate) fn count_launch(&self) -> u64 {
        self.inner.launches.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Ends the launches that run now, with a fault that says where their waves stand ([`FaultKind::Interrupted`]). Later
    /// launches are not affected.
    ///
    /// [`FaultKind::Interrupted`]: wavesim::fault::FaultKind::Interrupted
    pub fn cancel(&self) {
        self.running().iter().for_each(|cancel| cancel.store(true, Ordering::Relaxed));
    }

    /// Gives the output of kernels (`printf`) to the embedding program, in place of its standard output. To be called before
    /// the first launch.
    pub fn print_to(&self, sink: Sink) {
        *self.inner.output.lock().unwrap_or_else(PoisonError::into_inner) = sink;
    }

    /// What kernels ask the host for while they run.
    pub(crate) fn hostcall(&self) -> Result<Arc<Hostcall>, Error> {
        let sink = self.inner.output.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut state = self.state();
        if let Some(made) = &state.hostcall {
            return Ok(made.clone());
        }
        let made = Arc::new(Hostcall::new(sink)?);
        state.hostcall = Some(made.clone());
        state.generation += 1;
        Ok(made)
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<AtomicBool>>> {
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a launch that [`Device::cancel`] can end.
    pub(crate) fn cancellable<T>(&self, launch: impl FnOnce(&AtomicBool) -> T) -> T {
        let cancel = Arc::new(AtomicBool::new(false));
        self.running().push(cancel.clone());
        let result = launch(&cancel);
        self.running().retain(|other| !Arc::ptr_eq(other, &cancel));
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic leaves it inconsistent: each change is one insertion or removal.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads a code object, or the device's out of a bundle or an executable.
    pub fn load(&self, object: &[u8]) -> Result<Module, Error> {
        Module::load(self, object)
    }

    /// Allocates zeroed memory. The name is for messages.
    pub fn alloc(&self, len: u64, name: &str) -> Result<u64, Error> {
        let allocation = Allocation::new(len, name)?;
        let address = allocation.address();
        self.adopt(Arc::new(allocation));
        Ok(address)
    }

    /// Adds an allocation.
    pub(crate) fn adopt(&self, allocation: Arc<Allocation>) {
        let mut state = self.state();
        state.allocations.insert(allocation.address(), allocation);
        state.generation += 1;
    }

    /// Frees an allocation. Launches that run keep it.
    pub fn free(&self, address: u64) -> Result<(), Error> {
        let launches = self.launches();
        let mut state = self.state();
        let Some(allocation) = state.allocations.remove(&address) else {
            let freed = state.freed.iter().any(|f| f.0.address == address);
            let inside = state.allocations.range(..address).next_back();
            let inside = inside.is_some_and(|(at, a)| address - at < a.len());
            return Err(Error::NotAllocated(
                address,
                match (freed, inside) {
                    (true, _) => ": it has been freed already",
                    (_, true) => ", but inside of one",
                    _ => "",
                },
            ));
        };
        state.generation += 1;
        let freed = Freed { address, len: allocation.len(), name: allocation.name().into(), launches };
        state.freed.push_back((freed, Some(allocation)));
        state.release_freed();
        Ok(())
    }

    /// Lets kernels access memory of the embedding program. Ranges with other addresses than the host's must not overlap
    /// mapped ones.
    ///
    /// # Safety
    /// That of [`HostMemory::new`], until it is unmapped.
    pub unsafe fn map(&self, range: HostMemory) -> Result<(), Error> {
        let (base, len) = (range.address(), range.len());
        if len != 0 && base.checked_add(len - 1).is_none() {
            return Err(MapError::Wraps { base, len }.into());
        }
        let mut state = self.state();
        let before = state.mapped.range(..=base).next_back();
        let behind = state.mapped.range(base..).next();
        if let Some((_, other)) = before.into_iter().chain(behind).find(|(_, other)| other.overlaps(&range)) {
            let (other, other_len) = (other.address(), other.len());
            return Err(MapError::Overlap { base, len, other, other_len }.into());
        }
        state.mapped.insert(base, range);
        state.generation += 1;
        Ok(())
    }

    /// Withdraws the mapped range that begins at an address. Launches that run still access it, and keep its owner.
    pub fn unmap(&self, address: u64) -> Result<(), Error> {
        let mut state = self.state();
        let removed = state.mapped.remove(&address).ok_or(Error::NotMapped(address))?;
        let spaces = state.change_mapped();
        drop(state);
        // What an owner does when it goes may need the device.
        drop((removed, spaces));
        Ok(())
    }

    /// Withdraws all mapped ranges.
    pub fn unmap_all(&self) {
        // SAFETY: nothing is mapped.
        unsafe { self.map_all(Vec::new()) };
    }

    /// Replaces all mapped ranges, which may overlap. If they are those already mapped, nothing changes.
    ///
    /// # Safety
    /// That of [`HostMemory::new`] for each, until they are unmapped.
    pub unsafe fn map_all(&self, ranges: Vec<HostMemory>) {
        let mut wanted: BTreeMap<u64, HostMemory> = BTreeMap::new();
        for range in ranges {
            let longer = wanted.get(&range.address()).is_none_or(|r| r.len() < range.len());
            if longer {
                wanted.insert(range.address(), range);
            }
        }
        let mut state = self.state();
        let same = |(a, b): (&HostMemory, &HostMemory)| {
            (a.address(), a.len(), a.is_writable()) == (b.address(), b.len(), b.is_writable())
        };
        if state.mapped.len() != wanted.len() || !state.mapped.values().zip(wanted.values()).all(same) {
            let removed = std::mem::replace(&mut state.mapped, wanted);
            let spaces = state.change_mapped();
            drop(state);
            drop((removed, spaces));
        }
    }

    /// How exact the bounds of memory are.
    ///
    /// # Safety
    /// With [`Bounds::Pages`], all of the pages that mapped memory is in must be as valid as the memory itself, and with
    /// [`Bounds::Trust`] every address that a kernel uses.
    pub unsafe fn set_bounds(&self, bounds: Bounds) {
        let mut state = self.state();
        if state.bounds != bounds {
            state.bounds = bounds;
            state.generation += 1;
        }
    }

    /// The allocation or the mapped range that an address is in.
    pub fn find(&self, address: u64) -> Option<Range> {
        let state = self.state();
        let allocation = state.allocations.range(..=address).next_back().map(|(_, a)| a.range());
        let mapped = state.mapped.range(..=address).next_back().map(|(_, r)| r.clone());
        let list = [(allocation, false), (mapped, true)];
        list.into_iter().find_map(|(range, mapped)| {
            let r = range.filter(|r| address - r.address() < r.len())?;
            Some(Range { address: r.address(), len: r.len(), name: r.name().to_string(), mapped })
        })
    }

    /// Bytes of all allocations.
    pub fn allocated(&self) -> u64 {
        self.state().allocations.values().map(|a| a.len()).sum()
    }

    /// Copies from device memory.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Error> {
        self.access(|memory| memory.read(address, out))
    }

    /// Copies to device memory.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.access(|memory| memory.write(address, bytes))
    }

    fn access<T>(&self, body: impl FnOnce(&Memory) -> Result<T, MemError>) -> Result<T, Error> {
        let space = self.space(&[], None)?;
        let result = body(&space.memory);
        self.end(space);
        Ok(result?)
    }

    /// The memory of a launch: the device's, `extra`, and that of `slot`. With a slot, bounds of the kernarg segment are exact.
    pub(crate) fn space(&self, extra: &[HostMemory], slot: Option<&Slot>) -> Result<Space, Error> {
        let mut state = self.state();
        let own = extra.is_empty() && slot.is_none();
        if own {
            let generation = Some(state.generation);
            state.spaces.retain(|space| space.generation == generation);
            if let Some(space) = state.spaces.pop() {
                return Ok(space);
            }
        }
        let keep: Vec<Arc<Allocation>> = state.allocations.values().cloned().collect();
        let mut ranges: Vec<HostMemory> = keep.iter().map(|a| a.range()).collect();
        ranges.extend(state.mapped.values().cloned());
        ranges.extend(state.hostcall.iter().flat_map(|hostcall| hostcall.memory()));
        ranges.extend_from_slice(extra);
        match slot {
            Some(slot) => ranges.extend(slot.exact()),
            None => ranges.push(self.inner.kernargs.range()),
        }
        let (bounds, generation) = (state.bounds, own.then_some(state.generation));
        drop(state);
        let memory = memory::memory(&ranges, bounds)?;
        Ok(Space { memory, keep: Keep { _allocations: keep, _ranges: ranges }, generation })
    }

    /// Returns the memory of a launch, for the next one.
    pub(crate) fn end(&self, space: Space) {
        let mut state = self.state();
        if space.generation == Some(state.generation) {
            state.spaces.push(space);
        }
    }

    /// The freed allocation that an address was in.
    pub fn find_freed(&self, address: u64) -> Option<Freed> {
        let state = self.state();
        let found = state.freed.iter().rev().find(|(f, _)| address.wrapping_sub(f.address) < f.len.max(1));
        found.map(|(freed, _)| freed.clone())
    }
}

impl Space {
    /// The memory alone, and what puts them together again.
    pub(crate) fn split(self) -> (Memory, impl FnOnce(Memory) -> Space) {
        let Space { memory, keep, generation } = self;
        (memory, move |memory| Space { memory, keep, generation })
    }
}

impl State {
    /// After a change of the mapped ranges: the memories of launches that have ended, which keep owners.
    fn change_mapped(&mut self) -> Vec<Space> {
        self.generation += 1;
        std::mem::take(&mut self.spaces)
    }

    /// Gives the oldest freed memory back to the host.
    fn release_freed(&mut self) {
        let mut held: u64 = self.freed.iter().filter(|f| f.1.is_some()).map(|f| f.0.len).sum();
        for (freed, allocation) in &mut self.freed {
            if held <= QUARANTINE_BYTES {
                break;
            }
            if allocation.take().is_some() {
                held -= freed.len;
            }
        }
        // What has been given back may belong to somebody else now.
        while self.freed.len() > QUARANTINE || self.freed.front().is_some_and(|f| f.1.is_none()) {
            self.freed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Owner;

    #[test]
    fn launches_keep_the_owners_of_mapped_memory() {
        let device = Device::open("gfx1100", &Settings::default()).unwrap();
        let map = || {
            let mut owner = Arc::new([0u8; 64]);
            let host = Arc::get_mut(&mut owner).map(|bytes| bytes.as_mut_ptr()).unwrap();
            let owned: Owner = owner.clone();
            // SAFETY: the owner is the memory.
            unsafe {
                let range = HostMemory::new(host as u64, host, 64, true, "owned").owned_by(owned);
                device.map(range).unwrap();
            }
            (Arc::downgrade(&owner), host as u64)
        };
        // While it is mapped, after a launch too, and until the last launch has ended that can access it.
        let (owner, address) = map();
        device.read(address, &mut [0; 64]).unwrap();
        assert!(owner.upgrade().is_some());
        let space = device.space(&[], None).unwrap();
        device.unmap(address).unwrap();
        assert!(owner.upgrade().is_some());
        space.memory.read(address, &mut [0; 64]).unwrap();
        device.end(space);
        assert!(owner.upgrade().is_none());
        // Without a launch, at once.
        let (owner, address) = map();
        device.read(address, &mut [0; 64]).unwrap();
        device.unmap_all();
        assert!(owner.upgrade().is_none() && device.find(address).is_none());
    }
}
