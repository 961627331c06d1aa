//! Types of arguments that C callers pass. Each wraps a pointer. Their fields are private, so that non-null
//! values come from C code, whose API contract guarantees that the pointer is valid for the documented
//! accesses. A null pointer where the API requires a value is an error.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

/// The error for an unexpected null pointer. Each API converts it to a status of its own, the `E` of the
/// types here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Null;

/// Pointer to storage for a result.
#[repr(transparent)]
pub struct Out<T, E>(*mut T, PhantomData<fn() -> E>);

impl<T, E: From<Null>> Out<T, E> {
    /// Stores the result.
    pub fn put(&self, value: T) -> Result<(), E> {
        if self.0.is_null() {
            return Err(Null.into());
        }
        // SAFETY: the pointer is not null, so the caller guarantees that it is valid for writes (module
        // documentation). The write is unaligned because callers may pack structures.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Stores the result, unless the caller passed null for an optional result.
    pub fn put_optional(&self, value: T) {
        if !self.is_null() {
            // `put` fails only for null.
            let _ = self.put(value);
        }
    }

    /// Returns a null pointer, for a result that is not requested.
    pub fn none() -> Out<T, E> {
        Out(std::ptr::null_mut(), PhantomData)
    }

    /// Returns true if the caller passed null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Stores the `index`-th element of an array of results, unless the pointer is null.
    pub fn put_at(&self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `put`; callers pass an index below the element count that the C caller declared.
            unsafe { self.0.add(index).write_unaligned(value) };
        }
    }
}

/// Pointer to a structure or an array that the library reads.
#[repr(transparent)]
pub struct In<T, E>(*const T, PhantomData<fn() -> E>);

impl<T, E> Clone for In<T, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, E> Copy for In<T, E> {}

impl<T: Copy, E: From<Null>> In<T, E> {
    /// Returns a null pointer.
    pub fn none() -> In<T, E> {
        In(std::ptr::null(), PhantomData)
    }

    /// Reads the value.
    pub fn get(self) -> Result<T, E> {
        self.at(0)
    }

    /// Reads an element of an array.
    pub fn at(self, index: usize) -> Result<T, E> {
        if self.0.is_null() {
            return Err(Null.into());
        }
        // SAFETY: the pointer is not null, so the caller guarantees that it is valid for reads of the number
        // of elements that the API documents (module documentation).
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// Wraps a slice of the library's own, to pass it to an API function.
    pub fn of(list: &[T]) -> In<T, E> {
        In(list.as_ptr(), PhantomData)
    }

    /// Reads the first `count` elements. A null pointer is allowed if `count` is 0.
    pub fn list(self, count: usize) -> Result<Vec<T>, E> {
        if count != 0 && self.0.is_null() {
            return Err(Null.into());
        }
        (0..count).map(|index| self.at(index)).collect()
    }

    /// Returns true if the caller passed null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the address, which identifies the object.
    pub fn address(self) -> usize {
        self.0.addr()
    }
}

/// Pointer to a string.
#[repr(transparent)]
pub struct Text<E>(*const c_char, PhantomData<fn() -> E>);

impl<E> Clone for Text<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Text<E> {}

impl<E: From<Null>> Text<E> {
    /// Reads the string.
    pub fn get(self) -> Result<String, E> {
        if self.0.is_null() {
            return Err(Null.into());
        }
        // SAFETY: the pointer is not null, so the caller guarantees a NUL-terminated string (module
        // documentation).
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }

    /// Returns true if the caller passed null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// Pointer to untyped memory of the caller or of the device, for copies.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory(*mut u8);

// SAFETY: the type is an address. Each access through it justifies its own validity.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Returns the memory at an address.
    ///
    /// # Safety
    /// All accesses through the returned value must be inside an allocation of the device or of the program
    /// that is live at the time of the access.
    pub unsafe fn at(address: u64) -> Memory {
        Memory(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Returns the address.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Returns true if the pointer is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the memory `bytes` after this address.
    pub fn offset(self, bytes: usize) -> Memory {
        Memory(self.0.wrapping_add(bytes))
    }

    /// Returns a null pointer.
    pub fn null() -> Memory {
        Memory(std::ptr::null_mut())
    }

    /// Copies `len` bytes from `from`; the ranges may overlap.
    pub fn copy_from(self, from: Memory, len: usize) {
        if len == 0 || self.is_null() || from.is_null() {
            return;
        }
        // SAFETY: both ranges were passed by the API's caller with this length, or are allocations of the
        // device. Kernels on other streams may access the memory concurrently; the copy is made by the C
        // library, as in native programs, not by Rust code.
        unsafe { libc::memmove(self.0.cast(), from.0.cast(), len) };
    }

    /// Writes bytes to the memory.
    pub fn write(self, bytes: &[u8]) {
        if bytes.is_empty() || self.is_null() {
            return;
        }
        // SAFETY: as in `copy_from`.
        unsafe { libc::memmove(self.0.cast(), bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Reads `len` bytes.
    pub fn read(self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        if len != 0 && !self.is_null() {
            // SAFETY: as in `copy_from`.
            unsafe { libc::memmove(bytes.as_mut_ptr().cast(), self.0.cast(), len) };
        }
        bytes
    }

    /// Reads a NUL-terminated string.
    pub fn text(self) -> Vec<u8> {
        if self.is_null() {
            return Vec::new();
        }
        // SAFETY: the API's caller guarantees a NUL-terminated string (module documentation).
        unsafe { CStr::from_ptr(self.0.cast_const().cast()) }.to_bytes().to_vec()
    }

    /// Reads a pointer from the memory. Returns null if the memory is null.
    pub fn pointer(self) -> Memory {
        if self.is_null() {
            return self;
        }
        // SAFETY: the API's caller guarantees an array of pointers (module documentation).
        unsafe { self.0.cast::<Memory>().read_unaligned() }
    }

    /// Fills `len` bytes with `byte`.
    pub fn fill(self, byte: u8, len: usize) {
        if len == 0 || self.is_null() {
            return;
        }
        // SAFETY: as in `copy_from`.
        unsafe { libc::memset(self.0.cast(), byte.into(), len) };
    }
}

/// Callback of the program, with its argument.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostFunction {
    /// The C function; null to call nothing.
    pub function: Option<extern "C" fn(Memory)>,
    /// Opaque argument of the function.
    pub argument: Memory,
}

/// Returns a static string as a C string.
pub fn c_text(text: &'static CStr) -> *const c_char {
    text.as_ptr()
}
