//! Devices: a target, its memory, and the configuration of its launches.

use crate::hostcall::{Hostcall, Sink};
use crate::kernargs::{Kernargs, Slot};
use crate::launch::lock;
use crate::memory::{self, Allocation, Bounds, Freed, HostMemory};
use crate::module::Callable;
use crate::peers::ProcessDevices;
use crate::raw::ProgramCache;
use crate::timing::Timing;
use crate::{CodeCache, Error, Module, Settings, Target, clock, exit, fork, message};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wavesim::check::heap::Blocks;
use wavesim::check::{Check, Written};
use wavesim::memory::{MapError, MemError, Memory};
use wavesim::sched::group::Pool;
use wavesim::state::gws::Gws;
use wavesim_cost::model::Region;

/// Maximum total size of freed allocations in quarantine, whose addresses are not reused.
const QUARANTINE_BYTES: u64 = 64 << 20;
/// Maximum number of freed allocations in quarantine.
const QUARANTINE_ENTRIES: usize = 1024;

/// A device. Clones refer to the same device, and several threads can use it concurrently.
#[derive(Clone)]
pub struct Device {
    pub(crate) inner: Arc<Inner>,
}

/// State shared by all clones.
pub(crate) struct Inner {
    target: Target,
    settings: Settings,
    state: Mutex<State>,
    pub(crate) kernargs: Kernargs,
    pub(crate) programs: ProgramCache,
    /// The modules with functions that kernels of others can call.
    pub(crate) callable: Callable,
    pub(crate) pool: Pool,
    /// Global wave sync.
    pub(crate) gws: Mutex<Gws>,
    pub(crate) code_cache: CodeCache,
    pub(crate) timing: Option<Timing>,
    /// Cancellation flags of the running launches.
    running: Mutex<Vec<Arc<AtomicBool>>>,
    /// Receives the output of kernels.
    output: Mutex<Sink>,
    launches: AtomicU64,
    /// The process that opened the device.
    process: u32,
    /// Written bytes of the allocations whose contents are undefined at first.
    pub(crate) written: Arc<Mutex<Written>>,
    /// Index among the devices of the group.
    pub(crate) ordinal: usize,
    pub(crate) group: Arc<ProcessDevices>,
    /// Ordinals of the devices whose memory kernels can access.
    pub(crate) peers: Mutex<Vec<usize>>,
    /// The blocks that kernels have allocated.
    pub(crate) blocks: Arc<Mutex<Blocks>>,
}

#[derive(Default)]
struct State {
    /// Live allocations, by address.
    allocations: BTreeMap<u64, Arc<Allocation>>,
    /// Mapped memory of the embedding program, by address.
    mapped: BTreeMap<u64, HostMemory>,
    freed: VecDeque<(Freed, Option<Arc<Allocation>>)>,
    bounds: Bounds,
    /// Incremented on every change of the memory map.
    generation: u64,
    /// Memory maps of completed launches, for reuse.
    idle_maps: Vec<LaunchMemory>,
    /// Created by the first launch of a kernel that uses it.
    hostcall: Option<Arc<Hostcall>>,
}

/// The memory map of a launch. Keeps the underlying memory alive.
pub(crate) struct LaunchMemory {
    pub(crate) memory: Memory,
    keep_alive: KeepAlive,
    /// What the map contains; `None` if it has ranges of its own and cannot be reused.
    key: Option<MapKey>,
}

/// The contents of a memory map, apart from ranges of a single launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MapKey {
    /// The device's generation.
    generation: u64,
    /// The generation of its peers.
    peers: u64,
    /// Whether the map contains the hostcall buffer and the whole heap.
    services: bool,
    /// The heap's version if there is a heap, unless the map contains the whole of it.
    heap: Option<u64>,
    /// Address of the kernarg slot, if any.
    slot: Option<u64>,
}

/// The memory of a launch in addition to the device's.
#[derive(Default)]
pub(crate) struct OwnMemory<'a> {
    /// Ranges that only this launch can access.
    pub(crate) extra: &'a [HostMemory],
    /// The slot of the kernarg segment.
    pub(crate) slot: Option<&'a Slot>,
    /// Whether only the used bytes of the slot are accessible.
    pub(crate) exact: bool,
    /// Whether the kernel uses the hostcall buffer or the heap.
    pub(crate) services: bool,
}

/// Allocations, and mapped ranges with their owners, that a memory map refers to.
struct KeepAlive {
    _allocations: Vec<Arc<Allocation>>,
    _ranges: Vec<HostMemory>,
}

/// A range of device memory: the result of [`Device::find`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRange {
    /// First address.
    pub address: u64,
    /// Size in bytes.
    pub len: u64,
    /// Name in messages.
    pub name: String,
    /// Whether the range is mapped memory of the embedding program rather than an allocation.
    pub mapped: bool,
}

thread_local! {
    /// The flag of [`Device::cancelled_by`].
    static CANCEL: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

impl Device {
    /// Opens a device for a target (`gfx1100`, `rdna4`).
    pub fn open(target: &str, settings: &Settings) -> Result<Device, Error> {
        Device::open_in(target, settings, 0, &Arc::default())
    }

    /// Opens a device of a group.
    pub(crate) fn open_in(
        target: &str,
        settings: &Settings,
        ordinal: usize,
        group: &Arc<ProcessDevices>,
    ) -> Result<Device, Error> {
        if settings.error_exit_code != 0 {
            exit::set_failure_status(settings.error_exit_code.into());
        }
        let target = Target::from_name(target)?;
        Ok(Device {
            inner: Arc::new(Inner {
                timing: Timing::new(&settings.timing, target.arch).map_err(Error::Timing)?,
                target,
                settings: settings.clone(),
                state: Mutex::default(),
                kernargs: Kernargs::new()?,
                programs: ProgramCache::default(),
                callable: Callable::default(),
                pool: Pool::default(),
                gws: Mutex::default(),
                code_cache: CodeCache::default(),
                running: Mutex::default(),
                output: Mutex::new(Arc::new(message::print)),
                launches: AtomicU64::new(0),
                process: fork::process(),
                written: group.written.clone(),
                ordinal,
                group: group.clone(),
                peers: Mutex::default(),
                blocks: Arc::default(),
            }),
        })
    }

    /// Opens the device that the environment variables describe; of several, the first.
    pub fn from_env() -> Result<Device, Error> {
        let settings = Settings::from_env()?;
        let first = settings.devices.first().or(settings.target.as_ref());
        Device::open(first.map_or(Target::DEFAULT, String::as_str), &settings)
    }

    /// Checks that this process can use the device.
    ///
    /// # Errors
    /// [`Error::Forked`] in a child of the process that opened the device.
    pub fn check_process(&self) -> Result<(), Error> {
        if self.inner.process == fork::process() { Ok(()) } else { Err(Error::Forked) }
    }

    /// Returns the target.
    pub fn target(&self) -> &Target {
        &self.inner.target
    }

    /// Returns the default configuration of launches.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Returns the number of compiled units of machine code in the cache (`WAVESIM_ENGINE`).
    pub fn compiled_units(&self) -> u32 {
        self.inner.code_cache.units()
    }

    /// Returns the number of launches so far.
    pub fn launches(&self) -> u64 {
        self.inner.launches.load(Ordering::Relaxed)
    }

    pub(crate) fn count_launch(&self) -> u64 {
        self.inner.launches.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Cancels the running launches. They end with a fault that reports the current positions of their waves
    /// ([`FaultKind::Interrupted`]). Later launches are not affected.
    ///
    /// [`FaultKind::Interrupted`]: wavesim::fault::FaultKind::Interrupted
    pub fn cancel(&self) {
        self.running().iter().for_each(|cancel| cancel.store(true, Ordering::Relaxed));
    }

    /// Redirects the output of kernels (`printf`) from standard output to `sink`. Must be called before the
    /// first launch.
    pub fn print_to(&self, sink: Sink) {
        *self.inner.output.lock().unwrap_or_else(PoisonError::into_inner) = sink;
    }

    /// Returns the hostcall service, starting it on first use.
    pub(crate) fn hostcall(&self) -> Result<Arc<Hostcall>, Error> {
        let sink = self.inner.output.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut state = self.state();
        if let Some(existing) = &state.hostcall {
            return Ok(existing.clone());
        }
        let created = Arc::new(Hostcall::new(sink)?);
        state.hostcall = Some(created.clone());
        Ok(created)
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<AtomicBool>>> {
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a flag cancel the launches that `launches` starts in this thread, of any device, in addition to
    /// [`Device::cancel`].
    pub fn cancelled_by<T>(flag: &Arc<AtomicBool>, launches: impl FnOnce() -> T) -> T {
        let outer = CANCEL.replace(Some(flag.clone()));
        let result = launches();
        CANCEL.set(outer);
        result
    }

    /// Runs a launch that [`Device::cancel`] can cancel.
    pub(crate) fn cancellable<T>(&self, launch: impl FnOnce(&AtomicBool) -> T) -> T {
        let cancel = CANCEL.with_borrow(Clone::clone).unwrap_or_default();
        self.running().push(cancel.clone());
        let result = launch(&cancel);
        self.running().retain(|other| !Arc::ptr_eq(other, &cancel));
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Poisoning is harmless: each change is a single insertion or removal, so a panic leaves the state
        // consistent.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads a code object. From a bundle or an executable, loads the code object for this device.
    pub fn load(&self, object: &[u8]) -> Result<Module, Error> {
        Module::load(self, object)
    }

    /// Allocates zeroed memory. The name appears in messages.
    pub fn alloc(&self, len: u64, name: &str) -> Result<u64, Error> {
        let allocation = Allocation::new(len, name)?;
        let address = allocation.address();
        self.register_allocation(Arc::new(allocation));
        Ok(address)
    }

    /// Allocates memory whose contents are undefined until a kernel, [`Device::write`] or a recorded write
    /// ([`Device::record_write`], [`Device::record_copy`]) defines them: the check `mem` reports uses of others.
    /// In fact, the memory is zero.
    pub fn alloc_undefined(&self, len: u64, name: &str) -> Result<u64, Error> {
        let address = self.alloc(len, name)?;
        if self.settings().checks.contains(&Check::Mem) {
            lock(&self.inner.written).track(address, len);
        }
        Ok(address)
    }

    /// Records that the embedding program has written bytes.
    pub fn record_write(&self, address: u64, len: u64) {
        lock(&self.inner.written).write(address, len);
    }

    /// Advances the predicted time (`WAVESIM_TIMING`) by a copy of `len` bytes between these addresses, one of which is
    /// memory of the host unless both are allocations of the device.
    pub fn time_copy(&self, to: u64, from: u64, len: u64) {
        if let Some(timing) = &self.inner.timing {
            let of_device = |address| self.find(address).is_some_and(|range| !range.mapped);
            timing.copy(len, of_device(to) && of_device(from));
        }
    }

    /// Returns the allocations and the memory of a launch, for predictions.
    pub(crate) fn regions(&self, own: &[HostMemory]) -> Vec<Region> {
        let allocated = |a: &Arc<Allocation>| Region { base: a.range().address(), len: a.range().len() };
        let own = own.iter().map(|memory| Region { base: memory.address(), len: memory.len() });
        self.state().allocations.values().map(allocated).chain(own).collect()
    }

    /// Returns the nanoseconds of the work so far that are predicted for a GPU, if they are.
    pub fn predicted_nanoseconds(&self) -> Option<u64> {
        clock::predicted()
    }

    /// Records that the embedding program has copied bytes, which may be undefined.
    pub fn record_copy(&self, to: u64, from: u64, len: u64) {
        lock(&self.inner.written).copy(to, from, len);
    }

    /// Makes an allocation accessible to kernels.
    pub(crate) fn register_allocation(&self, allocation: Arc<Allocation>) {
        let mut state = self.state();
        state.allocations.insert(allocation.address(), allocation);
        state.generation += 1;
    }

    /// Frees an allocation. Running launches keep it alive.
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
        lock(&self.inner.written).forget(address);
        let freed = Freed { address, len: allocation.len(), name: allocation.name().into(), launches };
        state.freed.push_back((freed, Some(allocation.clone())));
        state.release_freed();
        drop(state);
        self.free_shared(&allocation);
        Ok(())
    }

    /// Removes an allocation that another device has freed.
    pub(crate) fn forget_allocation(&self, allocation: &Arc<Allocation>) {
        let mut state = self.state();
        let address = allocation.address();
        if state.allocations.get(&address).is_some_and(|own| Arc::ptr_eq(own, allocation)) {
            state.allocations.remove(&address);
            state.generation += 1;
        }
    }

    /// Returns the allocation that contains an address.
    #[cfg(target_os = "linux")]
    pub(crate) fn allocation_at(&self, address: u64) -> Option<Arc<Allocation>> {
        let state = self.state();
        let (_, found) = state.allocations.range(..=address).next_back()?;
        (address - found.address() < found.len()).then(|| found.clone())
    }

    /// Invalidates the memory maps of launches.
    pub(crate) fn change_memory(&self) {
        self.state().generation += 1;
    }

    /// Returns the allocations, and a number that only increases and changes with them.
    pub(crate) fn allocations(&self) -> (Vec<Arc<Allocation>>, u64) {
        let state = self.state();
        (state.allocations.values().cloned().collect(), state.generation)
    }

    /// Maps memory of the embedding program, so that kernels can access it. Ranges whose kernel addresses
    /// differ from their host addresses must not overlap other mapped ranges.
    ///
    /// # Safety
    /// The requirements of [`HostMemory::new`] must hold until the range is unmapped.
    pub unsafe fn map(&self, range: HostMemory) -> Result<(), Error> {
        let (base, len) = (range.address(), range.len());
        if len != 0 && base.checked_add(len - 1).is_none() {
            return Err(MapError::Wraps { base, len }.into());
        }
        let mut state = self.state();
        let before = state.mapped.range(..=base).next_back();
        let after = state.mapped.range(base..).next();
        if let Some((_, other)) = before.into_iter().chain(after).find(|(_, other)| other.overlaps(&range)) {
            let (other, other_len) = (other.address(), other.len());
            return Err(MapError::Overlap { base, len, other, other_len }.into());
        }
        state.mapped.insert(base, range);
        state.generation += 1;
        Ok(())
    }

    /// Unmaps the mapped range that begins at an address. Running launches can still access the range and
    /// keep its owner alive.
    pub fn unmap(&self, address: u64) -> Result<(), Error> {
        let mut state = self.state();
        let removed = state.mapped.remove(&address).ok_or(Error::NotMapped(address))?;
        let maps = state.invalidate_maps();
        drop(state);
        // Dropping an owner may run code that locks the device, so the lock is released first.
        drop((removed, maps));
        Ok(())
    }

    /// Replaces the mapped ranges that begin at these addresses, at once: no launch sees a part of the change.
    ///
    /// # Safety
    /// As for [`Device::map`]. The new ranges do not overlap others.
    #[cfg(target_os = "linux")]
    pub(crate) unsafe fn replace_mapped(&self, old: &[u64], new: Vec<HostMemory>) {
        let mut state = self.state();
        let removed: Vec<_> = old.iter().filter_map(|address| state.mapped.remove(address)).collect();
        state.mapped.extend(new.into_iter().map(|range| (range.address(), range)));
        let maps = state.invalidate_maps();
        drop(state);
        // As in `unmap`.
        drop((removed, maps));
    }

    /// Unmaps all mapped ranges.
    pub fn unmap_all(&self) {
        // SAFETY: the list of ranges is empty.
        unsafe { self.map_all(Vec::new()) };
    }

    /// Replaces all mapped ranges. The new ranges may overlap. Does nothing if the ranges are already mapped.
    ///
    /// # Safety
    /// The requirements of [`HostMemory::new`] must hold for each range until it is unmapped.
    pub unsafe fn map_all(&self, ranges: Vec<HostMemory>) {
        let mut new_ranges: BTreeMap<u64, HostMemory> = BTreeMap::new();
        for range in ranges {
            let longer = new_ranges.get(&range.address()).is_none_or(|r| r.len() < range.len());
            if longer {
                new_ranges.insert(range.address(), range);
            }
        }
        let mut state = self.state();
        let same = |(a, b): (&HostMemory, &HostMemory)| {
            (a.address(), a.len(), a.is_writable()) == (b.address(), b.len(), b.is_writable())
        };
        if state.mapped.len() != new_ranges.len() || !state.mapped.values().zip(new_ranges.values()).all(same)
        {
            let removed = std::mem::replace(&mut state.mapped, new_ranges);
            let maps = state.invalidate_maps();
            drop(state);
            drop((removed, maps));
        }
    }

    /// Sets the granularity of bounds checks.
    ///
    /// # Safety
    /// With [`Bounds::Words`] and [`Bounds::Pages`], the words or pages that contain mapped memory must be valid as a
    /// whole, under the same requirements as the memory itself. With [`Bounds::Trust`], every address that a kernel accesses must
    /// be valid.
    pub unsafe fn set_bounds(&self, bounds: Bounds) {
        let mut state = self.state();
        if state.bounds != bounds {
            state.bounds = bounds;
            state.generation += 1;
        }
    }

    /// Returns the allocation or mapped range that contains an address.
    pub fn find(&self, address: u64) -> Option<MemoryRange> {
        let state = self.state();
        let allocation = state.allocations.range(..=address).next_back().map(|(_, a)| a.range());
        let mapped = state.mapped.range(..=address).next_back().map(|(_, r)| r.clone());
        let list = [(allocation, false), (mapped, true)];
        list.into_iter().find_map(|(range, mapped)| {
            let r = range.filter(|r| address - r.address() < r.len())?;
            Some(MemoryRange { address: r.address(), len: r.len(), name: r.name().to_string(), mapped })
        })
    }

    /// Returns the total size of all allocations in bytes.
    pub fn allocated(&self) -> u64 {
        self.state().allocations.values().map(|a| a.len()).sum()
    }

    /// Copies from device memory.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Error> {
        self.access(|memory| memory.read(address, out))
    }

    /// Copies to device memory.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.access(|memory| memory.write(address, bytes))?;
        self.record_write(address, bytes.len() as u64);
        Ok(())
    }

    fn access<T>(&self, body: impl FnOnce(&Memory) -> Result<T, MemError>) -> Result<T, Error> {
        let map = self.launch_memory(&OwnMemory::default())?;
        let result = body(&map.memory);
        self.recycle(map);
        Ok(result?)
    }

    /// Returns the memory map of a launch: the device's memory and the launch's own.
    pub(crate) fn launch_memory(&self, own: &OwnMemory<'_>) -> Result<LaunchMemory, Error> {
        let peers = self.peer_memory();
        let mut state = self.state();
        let heap = state.hostcall.as_ref().filter(|_| !own.services).map(|hostcall| hostcall.heap_version());
        let slot = own.slot.map(|slot| slot.kernarg);
        let (generation, services) = (state.generation, own.services);
        let key = MapKey { generation, peers: peers.generation, services, heap, slot };
        let reusable = own.extra.is_empty() && !own.exact && own.slot.is_none_or(Slot::is_pooled);
        if reusable {
            let current = |old: &MapKey| {
                (old.generation, old.peers) == (key.generation, key.peers)
                    && (old.heap == heap || old.services || own.services)
            };
            state.idle_maps.retain(|map| map.key.as_ref().is_some_and(current));
            if let Some(at) = state.idle_maps.iter().position(|map| map.key == Some(key)) {
                return Ok(state.idle_maps.swap_remove(at));
            }
        }
        let mut allocations: Vec<Arc<Allocation>> = state.allocations.values().cloned().collect();
        // Memory that all devices share is in the lists of several.
        let shared = |a: &Arc<Allocation>| state.allocations.contains_key(&a.address());
        allocations.extend(peers.allocations.into_iter().filter(|a| !shared(a)));
        allocations.sort_by_key(|a| a.address());
        allocations.dedup_by_key(|a| a.address());
        let mut ranges: Vec<HostMemory> = allocations.iter().map(|a| a.range()).collect();
        ranges.extend(state.mapped.values().cloned());
        ranges.extend(state.hostcall.iter().flat_map(|hostcall| hostcall.memory(own.services)));
        ranges.extend_from_slice(own.extra);
        match own.slot {
            Some(slot) if own.exact => ranges.extend(slot.exact()),
            Some(slot) => ranges.push(slot.whole()),
            None => {}
        }
        let bounds = state.bounds;
        drop(state);
        let memory = memory::memory(&ranges, bounds)?;
        let keep_alive = KeepAlive { _allocations: allocations, _ranges: ranges };
        Ok(LaunchMemory { memory, keep_alive, key: reusable.then_some(key) })
    }

    /// Keeps the memory map of a completed launch for reuse, unless it is out of date.
    pub(crate) fn recycle(&self, map: LaunchMemory) {
        let mut state = self.state();
        if map.key.is_some_and(|key| key.generation == state.generation) {
            state.idle_maps.push(map);
        }
    }

    /// Returns the most recently freed allocation that contained an address.
    pub fn find_freed(&self, address: u64) -> Option<Freed> {
        let state = self.state();
        let found = state.freed.iter().rev().find(|(f, _)| address.wrapping_sub(f.address) < f.len.max(1));
        found.map(|(freed, _)| freed.clone())
    }
}

impl LaunchMemory {
    /// Returns the ranges that the map consists of.
    pub(crate) fn ranges(&self) -> &[HostMemory] {
        &self.keep_alive._ranges
    }

    /// Takes the memory out, and returns it with a function that puts it back.
    pub(crate) fn split(self) -> (Memory, impl FnOnce(Memory) -> LaunchMemory) {
        let LaunchMemory { memory, keep_alive, key } = self;
        (memory, move |memory| LaunchMemory { memory, keep_alive, key })
    }
}

impl State {
    /// Invalidates memory maps after a change of the mapped ranges. Returns the idle maps, which hold owners,
    /// for the caller to drop.
    fn invalidate_maps(&mut self) -> Vec<LaunchMemory> {
        self.generation += 1;
        std::mem::take(&mut self.idle_maps)
    }

    /// Returns the oldest freed allocations to the host while the quarantine exceeds its limits.
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
        // The addresses of memory returned to the host may be reused, so its entries are removed.
        while self.freed.len() > QUARANTINE_ENTRIES || self.freed.front().is_some_and(|f| f.1.is_none()) {
            self.freed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Owner;

    #[test]
    fn launches_keep_owners_of_mapped_memory_alive() {
        let device = Device::open("gfx1100", &Settings::default()).unwrap();
        let map_owned = || {
            let mut owner = Arc::new([0u8; 64]);
            let host = Arc::get_mut(&mut owner).map(|bytes| bytes.as_mut_ptr()).unwrap();
            let owned: Owner = owner.clone();
            // SAFETY: the owner is the array itself, so the memory is valid while the owner exists.
            unsafe {
                let range = HostMemory::new(host as u64, host, 64, true, "owned").owned_by(owned);
                device.map(range).unwrap();
            }
            (Arc::downgrade(&owner), host as u64)
        };
        // The owner lives while the range is mapped, and until the last launch that can access the range has
        // ended.
        let (owner, address) = map_owned();
        device.read(address, &mut [0; 64]).unwrap();
        assert!(owner.upgrade().is_some());
        let map = device.launch_memory(&OwnMemory::default()).unwrap();
        device.unmap(address).unwrap();
        assert!(owner.upgrade().is_some());
        map.memory.read(address, &mut [0; 64]).unwrap();
        device.recycle(map);
        assert!(owner.upgrade().is_none());
        // Without a running launch, unmapping drops the owner immediately.
        let (owner, address) = map_owned();
        device.read(address, &mut [0; 64]).unwrap();
        device.unmap_all();
        assert!(owner.upgrade().is_none() && device.find(address).is_none());
    }
}
