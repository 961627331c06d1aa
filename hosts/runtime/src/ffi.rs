//! Arguments of C callers. Their fields are private, so that only C code makes values of these types: what it passes is a null
//! pointer, which is an error, or a pointer that is valid as the API's documentation says.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

/// A null pointer where something has to be. Each API has a status for it: the `E` of the types here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Null;

/// A place for a result.
#[repr(transparent)]
pub struct Out<T, E>(*mut T, PhantomData<fn() -> E>);

impl<T, E: From<Null>> Out<T, E> {
    /// Stores the result.
    pub fn put(&self, value: T) -> Result<(), E> {
        if self.0.is_null() {
            return Err(Null.into());
        }
        // SAFETY: not null, so valid for writes (module documentation); callers may pack structures.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Stores the result, unless the caller does not want it.
    pub fn put_if_wanted(&self, value: T) {
        if !self.is_null() {
            // It is there.
            let _ = self.put(value);
        }
    }

    /// A place that is not wanted.
    pub fn none() -> Out<T, E> {
        Out(std::ptr::null_mut(), PhantomData)
    }

    /// Whether the caller passed null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// As the address of an array: the `index`-th element.
    pub fn put_at(&self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `put`; callers of this say how many elements there are.
            unsafe { self.0.add(index).write_unaligned(value) };
        }
    }
}

/// A structure or an array that is read.
#[repr(transparent)]
pub struct In<T, E>(*const T, PhantomData<fn() -> E>);

impl<T, E> Clone for In<T, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, E> Copy for In<T, E> {}

impl<T: Copy, E: From<Null>> In<T, E> {
    /// Nothing to read.
    pub fn none() -> In<T, E> {
        In(std::ptr::null(), PhantomData)
    }

    /// The value.
    pub fn get(self) -> Result<T, E> {
        self.at(0)
    }

    /// An element of an array.
    pub fn at(self, index: usize) -> Result<T, E> {
        if self.0.is_null() {
            return Err(Null.into());
        }
        // SAFETY: not null, so valid for reads of as many elements as the API says (module documentation).
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// A list of this library's, for a function of the program.
    pub fn of(list: &[T]) -> In<T, E> {
        In(list.as_ptr(), PhantomData)
    }

    /// The first `count` elements; none of a null pointer.
    pub fn list(self, count: usize) -> Result<Vec<T>, E> {
        if count != 0 && self.0.is_null() {
            return Err(Null.into());
        }
        (0..count).map(|index| self.at(index)).collect()
    }

    /// Whether the caller passed null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address, as a name of the thing there.
    pub fn address(self) -> usize {
        self.0.addr()
    }
}

/// A string.
#[repr(transparent)]
pub struct Text<E>(*const c_char, PhantomData<fn() -> E>);

impl<E> Clone for Text<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Text<E> {}

impl<E: From<Null>> Text<E> {
    /// The string, if it is there.
    pub fn get(self) -> Result<String, E> {
        if self.0.is_null() {
            return Err(Null.into());
        }
        // SAFETY: not null, so a string that ends with a zero byte (module documentation).
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }

    /// Whether the caller passed null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// Memory of the caller or of the device, for copies.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory(*mut u8);

// SAFETY: an address; what uses it says why it may.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory at an address.
    ///
    /// # Safety
    /// Whoever uses it stays inside an allocation of the device, or of the program, that lives as long.
    pub unsafe fn at(address: u64) -> Memory {
        Memory(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Its address.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Whether the caller passed null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Memory `bytes` further on.
    pub fn offset(self, bytes: usize) -> Memory {
        Memory(self.0.wrapping_add(bytes))
    }

    /// No memory.
    pub fn null() -> Memory {
        Memory(std::ptr::null_mut())
    }

    /// Copies `len` bytes from `from`; the ranges may overlap.
    pub fn copy_from(self, from: Memory, len: usize) {
        if len == 0 || self.is_null() || from.is_null() {
            return;
        }
        // SAFETY: the caller of the API passed both with this length, or the device gave them out. Kernels of other streams may
        // access the memory meanwhile: the C library copies it then, as in native programs, not Rust code.
        unsafe { libc::memmove(self.0.cast(), from.0.cast(), len) };
    }

    /// Copies bytes that the host layer made.
    pub fn write(self, bytes: &[u8]) {
        if bytes.is_empty() || self.is_null() {
            return;
        }
        // SAFETY: as in `copy_from`.
        unsafe { libc::memmove(self.0.cast(), bytes.as_ptr().cast(), bytes.len()) };
    }

    /// A copy of `len` bytes.
    pub fn read(self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        if len != 0 && !self.is_null() {
            // SAFETY: as in `copy_from`.
            unsafe { libc::memmove(bytes.as_mut_ptr().cast(), self.0.cast(), len) };
        }
        bytes
    }

    /// A copy of the text that ends with a zero byte there.
    pub fn text(self) -> Vec<u8> {
        if self.is_null() {
            return Vec::new();
        }
        // SAFETY: the caller of the API passed a string (module documentation).
        unsafe { CStr::from_ptr(self.0.cast_const().cast()) }.to_bytes().to_vec()
    }

    /// The address that is stored there; null of null.
    pub fn pointer(self) -> Memory {
        if self.is_null() {
            return self;
        }
        // SAFETY: the caller of the API passed an array of pointers (module documentation).
        unsafe { self.0.cast::<Memory>().read_unaligned() }
    }

    /// Fills `len` bytes.
    pub fn fill(self, byte: u8, len: usize) {
        if len == 0 || self.is_null() {
            return;
        }
        // SAFETY: as in `copy_from`.
        unsafe { libc::memset(self.0.cast(), byte.into(), len) };
    }
}

/// A function of the program with its argument.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostFunction {
    /// C's function; with null, nothing is called.
    pub function: Option<extern "C" fn(Memory)>,
    /// Passed as it is: the library never reads it.
    pub argument: Memory,
}

/// The string for C that a static text is.
pub fn c_text(text: &'static CStr) -> *const c_char {
    text.as_ptr()
}
