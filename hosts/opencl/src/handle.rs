//! Handles. A handle is the address of a cell from which loaders read the dispatch table. Cells are never
//! freed, and the object of a handle is looked up in a table, so using a released handle is an error without
//! side effects.
//!
//! An object lives while the program has a reference to it or another object needs it. The reference count
//! that programs can query counts only their own references.

use crate::ffi::UserData;
use crate::status::{Failure, Outcome, Status};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use wavesim_runtime::callback;

/// Handle of an object; 0 is null.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(usize);

impl Handle {
    /// The null handle.
    pub const NULL: Handle = Handle(0);

    /// Reads a handle from memory. Returns null if the memory is null.
    ///
    /// # Safety
    /// The memory holds a handle.
    pub unsafe fn at(memory: crate::ffi::Memory) -> Handle {
        // SAFETY: the caller guarantees a handle. It is only used as a number.
        Handle(unsafe { memory.pointer() }.address() as usize)
    }

    /// Returns the handle as a number.
    pub fn address(self) -> usize {
        self.0
    }

    /// Returns true if the handle is null.
    pub fn is_null(self) -> bool {
        self == Handle::NULL
    }
}

/// The memory that a handle points to. Loaders read it; it is opaque to programs.
#[repr(C)]
struct Cell {
    dispatch: &'static crate::Table,
}

impl Cell {
    fn handle(&'static self) -> Handle {
        Handle((self as *const Cell).expose_provenance())
    }
}

/// An object with a handle.
pub trait Object: Any + Send + Sync {
    /// Status of a call whose handle is not that of a live object of this type.
    const INVALID: Status;

    /// Returns the object's entry in the table of objects.
    fn identity(&self) -> &Identity;

    /// Returns the handle.
    fn handle(&self) -> Handle {
        self.identity().handle
    }
}

/// Implements [`Object`] for a type with a field `identity`, and defines the API functions that retain and
/// release it.
macro_rules! object {
    ($kind:ident, $invalid:ident, $retain:ident, $release:ident) => {
        impl $crate::handle::Object for $kind {
            const INVALID: $crate::status::Status = $crate::status::Status::$invalid;

            fn identity(&self) -> &$crate::handle::Identity {
                &self.identity
            }
        }

        #[doc = concat!("`", stringify!($retain), "`.")]
        pub unsafe extern "C" fn $retain(handle: $crate::handle::Handle) -> std::ffi::c_int {
            $crate::status::call(stringify!($retain), || $crate::handle::retain::<$kind>(handle))
        }

        #[doc = concat!("`", stringify!($release), "`.")]
        pub unsafe extern "C" fn $release(handle: $crate::handle::Handle) -> std::ffi::c_int {
            $crate::status::call(stringify!($release), || $crate::handle::release::<$kind>(handle))
        }
    };
}
pub(crate) use object;

/// An object's entry in the table of objects. Dropped with the object.
pub struct Identity {
    handle: Handle,
    destructors: Mutex<Vec<(Destructor, UserData)>>,
}

/// A callback of the program that is called when an object is destroyed.
pub type Destructor = unsafe extern "C" fn(Handle, UserData);

impl Identity {
    fn new(handle: Handle) -> Identity {
        Identity { handle, destructors: Mutex::default() }
    }

    /// Registers a destructor callback. Callbacks are called in reverse order of registration.
    pub fn on_destroy(&self, function: Option<Destructor>, data: UserData) -> Outcome {
        let function = function.ok_or(Status::INVALID_VALUE)?;
        self.destructors.lock().unwrap_or_else(PoisonError::into_inner).push((function, data));
        Ok(())
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        let list = std::mem::take(self.destructors.get_mut().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: the program has registered a function of this type, to be called when the object is destroyed.
        list.into_iter()
            .rev()
            .for_each(|(function, data)| callback::run(|| unsafe { function(self.handle, data) }));
        let mut objects = objects();
        // The entry has no strong reference left, because the object is being dropped.
        let entry = objects.entries.remove(&self.handle);
        objects.free.push_back(self.handle);
        drop(objects);
        drop(entry);
    }
}

struct Entry {
    /// Number of references that the program has.
    references: u32,
    /// Keeps the object alive while the program has references.
    strong: Option<Arc<dyn Any + Send + Sync>>,
    object: Weak<dyn Any + Send + Sync>,
}

#[derive(Default)]
struct Objects {
    entries: HashMap<Handle, Entry>,
    /// Cells without an object, the least recently freed first.
    free: VecDeque<Handle>,
    /// All blocks of cells.
    cells: Vec<&'static [Cell]>,
}

/// Number of cells in a block.
const CELLS_PER_BLOCK: usize = 64;
/// Number of free cells above which cells are reused. Delays reuse, so that a stale handle does not refer to
/// a new object.
const MIN_FREE_CELLS: usize = 1024;

impl Objects {
    fn cell(&mut self) -> Handle {
        if self.free.len() > MIN_FREE_CELLS
            && let Some(handle) = self.free.pop_front()
        {
            return handle;
        }
        let used: usize = self.entries.len() + self.free.len();
        if used == self.cells.len() * CELLS_PER_BLOCK {
            let block = (0..CELLS_PER_BLOCK).map(|_| Cell { dispatch: crate::table() }).collect();
            self.cells.push(Vec::leak(block));
        }
        self.cells[used / CELLS_PER_BLOCK][used % CELLS_PER_BLOCK].handle()
    }
}

static OBJECTS: Mutex<Option<Objects>> = Mutex::new(None);

/// The locked table of objects.
struct Locked(MutexGuard<'static, Option<Objects>>);

impl std::ops::Deref for Locked {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        // `objects` has initialised the option.
        self.0.as_ref().unwrap_or_else(|| unreachable!())
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Objects {
        self.0.get_or_insert_default()
    }
}

fn objects() -> Locked {
    // Poisoning is harmless: each change is a single insertion or removal, so a panic leaves the table
    // consistent.
    let mut guard = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_default();
    Locked(guard)
}

/// Creates an object to which the program has one reference.
pub fn register<T: Object>(make: impl FnOnce(Identity) -> T) -> (Handle, Arc<T>) {
    let mut list = objects();
    let handle = list.cell();
    // A placeholder reserves the handle until the object exists.
    let placeholder: Weak<T> = Weak::new();
    list.entries.insert(handle, Entry { references: 0, strong: None, object: placeholder });
    drop(list);
    let object = Arc::new(make(Identity::new(handle)));
    let strong: Arc<dyn Any + Send + Sync> = object.clone();
    let entry = Entry { references: 1, object: Arc::downgrade(&strong), strong: Some(strong) };
    objects().entries.insert(handle, entry);
    (handle, object)
}

/// Returns the object of a handle.
pub fn get<T: Object>(handle: Handle) -> Outcome<Arc<T>> {
    let found = objects().entries.get(&handle).and_then(|entry| entry.object.upgrade());
    found.and_then(|object| object.downcast::<T>().ok()).ok_or_else(|| invalid_handle::<T>(handle))
}

fn invalid_handle<T: Object>(handle: Handle) -> Failure {
    match handle.is_null() {
        true => T::INVALID.into(),
        false => T::INVALID.because("the handle was released or is not of this type"),
    }
}

/// Adds a reference of the program.
pub fn retain<T: Object>(handle: Handle) -> Outcome {
    let object: Arc<T> = get(handle)?;
    let mut objects = objects();
    let entry = objects.entries.get_mut(&handle).ok_or_else(|| invalid_handle::<T>(handle))?;
    entry.references += 1;
    if entry.strong.is_none() {
        entry.strong = Some(object);
    }
    Ok(())
}

/// Removes a reference of the program.
pub fn release<T: Object>(handle: Handle) -> Outcome {
    let object: Arc<T> = get(handle)?;
    let mut objects = objects();
    let entry = objects.entries.get_mut(&handle).filter(|entry| entry.references > 0);
    let entry = entry.ok_or_else(|| invalid_handle::<T>(handle))?;
    entry.references -= 1;
    let last = if entry.references == 0 { entry.strong.take() } else { None };
    // The lock is released first, because dropping the object acquires it.
    drop(objects);
    drop((last, object));
    Ok(())
}

/// Returns the number of references that the program has.
pub fn references(handle: Handle) -> u32 {
    objects().entries.get(&handle).map_or(0, |entry| entry.references)
}

/// Handle of a singleton, which is not reference-counted.
pub struct StaticHandle(&'static [Cell]);

impl StaticHandle {
    /// Creates a handle.
    pub fn new() -> StaticHandle {
        StaticHandle(Vec::leak(vec![Cell { dispatch: crate::table() }]))
    }

    /// Returns the handle.
    pub fn handle(&self) -> Handle {
        self.0[0].handle()
    }
}

impl Default for StaticHandle {
    fn default() -> StaticHandle {
        StaticHandle::new()
    }
}
