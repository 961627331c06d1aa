//! Types of arguments that C callers pass. Each wraps a pointer. A null pointer where the API requires a value is
//! an error.
//!
//! Non-null values come from C code, through the exported functions, which are unsafe: their callers guarantee
//! what the API demands. That a pointer to a result, a structure or a string is valid during the call is part of
//! every such contract, so [`Out::put`], [`In::get`] and [`Text::get`] are safe. How many elements or bytes a
//! pointer refers to depends on the function, so all other accesses are unsafe, as are the constructors. An exported
//! function states the length of an array once ([`In::array`]); what it calls is safe.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64};

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

    /// Reads what the caller has stored, of a structure that a function changes.
    pub fn get(&self) -> Result<T, E>
    where
        T: Copy,
    {
        In(self.0.cast_const(), PhantomData).get()
    }

    /// Returns the address, which identifies the object.
    pub fn address(&self) -> usize {
        self.0.addr()
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
    ///
    /// # Safety
    /// The array has more than `index` elements.
    pub unsafe fn put_at(&self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller guarantees that the element exists.
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
        // SAFETY: a non-null pointer refers to at least one value (module documentation).
        unsafe { self.at(0) }
    }

    /// Reads an element of an array.
    ///
    /// # Safety
    /// The array has more than `index` elements.
    pub unsafe fn at(self, index: usize) -> Result<T, E> {
        if self.0.is_null() {
            return Err(Null.into());
        }
        // SAFETY: the caller guarantees that the element exists.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// Wraps a slice of the library's own, to pass it to a function of the program.
    ///
    /// # Safety
    /// The result is not used after the end of the slice's lifetime.
    pub unsafe fn of(list: &[T]) -> In<T, E> {
        In(list.as_ptr(), PhantomData)
    }

    /// Returns the array of the first `count` elements.
    ///
    /// # Safety
    /// Unless it is null, the array has at least `count` elements for as long as the result exists.
    pub unsafe fn array(self, count: usize) -> Array<T, E> {
        Array { first: self, count }
    }

    /// Reads the first `count` elements. A null pointer is allowed if `count` is 0.
    ///
    /// # Safety
    /// As for [`In::array`].
    pub unsafe fn list(self, count: usize) -> Result<Vec<T>, E> {
        // SAFETY: the caller guarantees that the elements exist.
        unsafe { self.array(count) }.read()
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

/// Array that the library reads, with its length.
pub struct Array<T, E> {
    first: In<T, E>,
    count: usize,
}

impl<T: Copy, E: From<Null>> Array<T, E> {
    /// Returns the array without elements.
    pub fn empty() -> Array<T, E> {
        Array { first: In::none(), count: 0 }
    }

    /// Reads the elements. A null pointer is allowed if there are none.
    pub fn read(&self) -> Result<Vec<T>, E> {
        // SAFETY: whoever created the array guarantees that the elements exist ([`In::array`]).
        (0..self.count).map(|index| unsafe { self.first.at(index) }).collect()
    }

    /// Returns true if the caller passed null.
    pub fn is_null(&self) -> bool {
        self.first.is_null()
    }

    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        self.count
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

    /// Returns the address `bytes` after this one, which may be outside of the memory.
    pub fn offset(self, bytes: usize) -> Memory {
        Memory(self.0.wrapping_add(bytes))
    }

    /// Returns a null pointer.
    pub fn null() -> Memory {
        Memory(std::ptr::null_mut())
    }

    /// Returns the 4 bytes at the address for atomic accesses.
    ///
    /// # Safety
    /// They are memory of the program or of the device for `'a`, and the address is a multiple of 4.
    pub unsafe fn atomic_u32<'a>(self) -> &'a AtomicU32 {
        // SAFETY: the caller guarantees it.
        unsafe { AtomicU32::from_ptr(self.0.cast()) }
    }

    /// Returns the 8 bytes at the address for atomic accesses.
    ///
    /// # Safety
    /// They are memory of the program or of the device for `'a`, and the address is a multiple of 8.
    pub unsafe fn atomic_u64<'a>(self) -> &'a AtomicU64 {
        // SAFETY: the caller guarantees it.
        unsafe { AtomicU64::from_ptr(self.0.cast()) }
    }

    /// Copies `len` bytes from `from`; the ranges may overlap. Kernels on other streams may access the memory
    /// concurrently: the copy is made by the C library, as in native programs, not by Rust code.
    ///
    /// # Safety
    /// Both ranges are memory of the program or of the device, unless one is null.
    pub unsafe fn copy_from(self, from: Memory, len: usize) {
        if len == 0 || self.is_null() || from.is_null() {
            return;
        }
        // SAFETY: the caller guarantees that both ranges are valid.
        unsafe { libc::memmove(self.0.cast(), from.0.cast(), len) };
    }

    /// Writes bytes to the memory.
    ///
    /// # Safety
    /// As many bytes are memory of the program or of the device, unless the pointer is null.
    pub unsafe fn write(self, bytes: &[u8]) {
        if bytes.is_empty() || self.is_null() {
            return;
        }
        // SAFETY: the caller guarantees that the range is valid.
        unsafe { libc::memmove(self.0.cast(), bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Reads `len` bytes; zeros if the pointer is null.
    ///
    /// # Safety
    /// As in [`Memory::write`].
    pub unsafe fn read(self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        if len != 0 && !self.is_null() {
            // SAFETY: the caller guarantees that the range is valid.
            unsafe { libc::memmove(bytes.as_mut_ptr().cast(), self.0.cast(), len) };
        }
        bytes
    }

    /// Returns `len` bytes of the memory; none if the pointer is null.
    ///
    /// # Safety
    /// As in [`Memory::write`], and nothing changes or frees the bytes while the result exists.
    pub unsafe fn bytes<'a>(self, len: usize) -> &'a [u8] {
        if len == 0 || self.is_null() {
            return &[];
        }
        // SAFETY: the caller guarantees that the range is valid and constant.
        unsafe { std::slice::from_raw_parts(self.0.cast_const(), len) }
    }

    /// Reads a NUL-terminated string.
    ///
    /// # Safety
    /// The pointer refers to one, or is null.
    pub unsafe fn text(self) -> Vec<u8> {
        if self.is_null() {
            return Vec::new();
        }
        // SAFETY: the caller guarantees a NUL-terminated string.
        unsafe { CStr::from_ptr(self.0.cast_const().cast()) }.to_bytes().to_vec()
    }

    /// Reads a pointer from the memory. Returns null if the memory is null.
    ///
    /// # Safety
    /// The memory holds a pointer, which fulfils the requirements of [`Memory::at`].
    pub unsafe fn pointer(self) -> Memory {
        if self.is_null() {
            return self;
        }
        // SAFETY: the caller guarantees a pointer.
        unsafe { self.0.cast::<Memory>().read_unaligned() }
    }

    /// Fills `len` bytes with `byte`.
    ///
    /// # Safety
    /// As in [`Memory::write`].
    pub unsafe fn fill(self, byte: u8, len: usize) {
        if len == 0 || self.is_null() {
            return;
        }
        // SAFETY: the caller guarantees that the range is valid.
        unsafe { libc::memset(self.0.cast(), byte.into(), len) };
    }
}

/// Callback of the program, with its argument.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostFunction {
    /// The C function; null to call nothing.
    pub function: Option<unsafe extern "C" fn(Memory)>,
    /// Opaque argument of the function.
    pub argument: Memory,
}

/// Returns a static string as a C string.
pub fn c_text(text: &'static CStr) -> *const c_char {
    text.as_ptr()
}
