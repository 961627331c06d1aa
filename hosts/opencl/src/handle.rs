//! Handles: addresses of cells, in which loaders find the table of functions. A program may use a handle after it has released it: the
//! cell is still there, and what it stood for is looked up, so that such a call is an error and touches nothing.
//!
//! An object lives while the program has a reference to it, or another object needs it. Only the program's references are counted
//! in what it can ask for.

use crate::ffi::UserData;
use crate::status::{Failure, Outcome, Status};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A handle of the program; 0: null.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(usize);

impl Handle {
    /// No object.
    pub const NULL: Handle = Handle(0);

    /// The handle that is stored at an address; null of null.
    pub fn at(memory: crate::ffi::Memory) -> Handle {
        Handle(memory.pointer().address() as usize)
    }

    /// As a number, for answers.
    pub fn address(self) -> usize {
        self.0
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self == Handle::NULL
    }
}

/// What loaders read. Programs do not look inside.
#[repr(C)]
struct Cell {
    dispatch: &'static crate::Table,
}

impl Cell {
    fn handle(&'static self) -> Handle {
        Handle((self as *const Cell).expose_provenance())
    }
}

/// An object that programs have handles of.
pub trait Object: Any + Send + Sync {
    /// The status of a call that names another object, or none.
    const WRONG: Status;

    /// Its place in the list of objects.
    fn identity(&self) -> &Identity;

    /// Its handle.
    fn handle(&self) -> Handle {
        self.identity().handle
    }
}

/// Implements [`Object`] for a type with a field `identity`, and the functions by which programs count their references to it.
macro_rules! object {
    ($kind:ident, $wrong:ident, $retain:ident, $release:ident) => {
        impl $crate::handle::Object for $kind {
            const WRONG: $crate::status::Status = $crate::status::Status::$wrong;

            fn identity(&self) -> &$crate::handle::Identity {
                &self.identity
            }
        }

        #[doc = concat!("`", stringify!($retain), "`.")]
        pub extern "C" fn $retain(handle: $crate::handle::Handle) -> std::ffi::c_int {
            $crate::status::call(stringify!($retain), || $crate::handle::retain::<$kind>(handle))
        }

        #[doc = concat!("`", stringify!($release), "`.")]
        pub extern "C" fn $release(handle: $crate::handle::Handle) -> std::ffi::c_int {
            $crate::status::call(stringify!($release), || $crate::handle::release::<$kind>(handle))
        }
    };
}
pub(crate) use object;

/// An object's place in the list of objects, which ends with the object.
pub struct Identity {
    handle: Handle,
    at_end: Mutex<Vec<(Destructor, UserData)>>,
}

/// A function of the program that is called at the end of an object.
pub type Destructor = extern "C" fn(Handle, UserData);

impl Identity {
    fn new(handle: Handle) -> Identity {
        Identity { handle, at_end: Mutex::default() }
    }

    /// Has a function called at the end of the object, the last first.
    pub fn at_end(&self, function: Option<Destructor>, data: UserData) -> Outcome {
        let function = function.ok_or(Status::INVALID_VALUE)?;
        self.at_end.lock().unwrap_or_else(PoisonError::into_inner).push((function, data));
        Ok(())
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        let list = std::mem::take(self.at_end.get_mut().unwrap_or_else(PoisonError::into_inner));
        list.into_iter().rev().for_each(|(function, data)| function(self.handle, data));
        let mut objects = objects();
        // It has no strong reference left, as the object is being dropped.
        let entry = objects.entries.remove(&self.handle);
        objects.free.push_back(self.handle);
        drop(objects);
        drop(entry);
    }
}

struct Entry {
    /// References of the program.
    references: u32,
    /// There are some.
    strong: Option<Arc<dyn Any + Send + Sync>>,
    object: Weak<dyn Any + Send + Sync>,
}

#[derive(Default)]
struct Objects {
    entries: HashMap<Handle, Entry>,
    /// Cells without an object, the oldest first.
    free: VecDeque<Handle>,
    /// Keeps all cells.
    cells: Vec<&'static [Cell]>,
}

/// Cells that are made at once.
const CELLS: usize = 64;
/// Cells that wait before one is used again, so that late uses of a handle do not meet another object.
const WAITING: usize = 1024;

impl Objects {
    fn cell(&mut self) -> Handle {
        if self.free.len() > WAITING
            && let Some(handle) = self.free.pop_front()
        {
            return handle;
        }
        let used: usize = self.entries.len() + self.free.len();
        if used == self.cells.len() * CELLS {
            let made: Vec<Cell> = (0..CELLS).map(|_| Cell { dispatch: crate::table() }).collect();
            self.cells.push(Vec::leak(made));
        }
        self.cells[used / CELLS][used % CELLS].handle()
    }
}

static OBJECTS: Mutex<Option<Objects>> = Mutex::new(None);

/// The list, behind its lock.
struct Locked(MutexGuard<'static, Option<Objects>>);

impl std::ops::Deref for Locked {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        // `objects` has filled it.
        self.0.as_ref().unwrap_or_else(|| unreachable!())
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Objects {
        self.0.get_or_insert_default()
    }
}

fn objects() -> Locked {
    // No panic leaves it inconsistent: each change is one insertion or removal.
    let mut guard = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_default();
    Locked(guard)
}

/// Makes an object, of which the program has one reference.
pub fn register<T: Object>(make: impl FnOnce(Identity) -> T) -> (Handle, Arc<T>) {
    let mut list = objects();
    let handle = list.cell();
    // Taken, until the object is made.
    let none: Weak<T> = Weak::new();
    list.entries.insert(handle, Entry { references: 0, strong: None, object: none });
    drop(list);
    let object = Arc::new(make(Identity::new(handle)));
    let strong: Arc<dyn Any + Send + Sync> = object.clone();
    let entry = Entry { references: 1, object: Arc::downgrade(&strong), strong: Some(strong) };
    objects().entries.insert(handle, entry);
    (handle, object)
}

/// The object of a handle.
pub fn get<T: Object>(handle: Handle) -> Outcome<Arc<T>> {
    let found = objects().entries.get(&handle).and_then(|entry| entry.object.upgrade());
    found.and_then(|object| object.downcast::<T>().ok()).ok_or_else(|| wrong::<T>(handle))
}

fn wrong<T: Object>(handle: Handle) -> Failure {
    match handle.is_null() {
        true => T::WRONG.into(),
        false => T::WRONG.because("the handle was released, or never was one of this kind"),
    }
}

/// Counts a reference of the program.
pub fn retain<T: Object>(handle: Handle) -> Outcome {
    let object: Arc<T> = get(handle)?;
    let mut objects = objects();
    let entry = objects.entries.get_mut(&handle).ok_or_else(|| wrong::<T>(handle))?;
    entry.references += 1;
    if entry.strong.is_none() {
        entry.strong = Some(object);
    }
    Ok(())
}

/// Ends a reference of the program.
pub fn release<T: Object>(handle: Handle) -> Outcome {
    let object: Arc<T> = get(handle)?;
    let mut objects = objects();
    let entry = objects.entries.get_mut(&handle).filter(|entry| entry.references > 0);
    let entry = entry.ok_or_else(|| wrong::<T>(handle))?;
    entry.references -= 1;
    let last = if entry.references == 0 { entry.strong.take() } else { None };
    // Without the lock: what the object does at its end needs it.
    drop(objects);
    drop((last, object));
    Ok(())
}

/// References of the program.
pub fn references(handle: Handle) -> u32 {
    objects().entries.get(&handle).map_or(0, |entry| entry.references)
}

/// A handle of what exists once, and is not counted.
pub struct Constant(&'static [Cell]);

impl Constant {
    /// A new one.
    pub fn new() -> Constant {
        Constant(Vec::leak(vec![Cell { dispatch: crate::table() }]))
    }

    /// Its handle.
    pub fn handle(&self) -> Handle {
        self.0[0].handle()
    }
}

impl Default for Constant {
    fn default() -> Constant {
        Constant::new()
    }
}
