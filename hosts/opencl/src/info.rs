//! Information queries of the API, such as `clGetDeviceInfo`.

use crate::ffi::{Memory, Out};
use crate::status::{Outcome, Status};

/// A query: the caller's buffer for the value, and a pointer for the value's size.
pub struct Query {
    /// Size of the buffer in bytes.
    size: usize,
    /// The buffer for the value; may be null.
    value: Memory,
    /// Receives the size of the value; may be null.
    needed: Out<usize>,
}

impl Query {
    /// Creates a query.
    ///
    /// # Safety
    /// `value` is null or refers to `size` bytes.
    pub unsafe fn new(size: usize, value: Memory, needed: Out<usize>) -> Query {
        Query { size, value, needed }
    }

    /// Returns the binary of a program to the caller, whose value is an array of pointers, one for each device. Those that
    /// are null are left out.
    pub fn binary(&self, binary: &[u8], devices: usize) -> Outcome {
        let len = devices * size_of::<usize>();
        if !self.value.is_null() {
            if self.size < len {
                return Err(Status::INVALID_VALUE.into());
            }
            for at in 0..devices {
                // SAFETY: the array has this many pointers, to memory of the size that the caller has queried.
                unsafe { self.value.offset(at * size_of::<usize>()).pointer().write(binary) };
            }
        }
        self.needed.put_optional(len);
        Ok(())
    }

    /// Returns bytes to the caller.
    pub fn bytes(&self, answer: &[u8]) -> Outcome {
        if !self.value.is_null() {
            if self.size < answer.len() {
                return Err(Status::INVALID_VALUE.into());
            }
            // SAFETY: the buffer has `size` bytes, as `new` demands, which are enough.
            unsafe { self.value.write(answer) };
        }
        self.needed.put_optional(answer.len());
        Ok(())
    }

    /// Returns a NUL-terminated string to the caller.
    pub fn text(&self, text: &str) -> Outcome {
        let mut bytes = text.replace('\0', " ").into_bytes();
        bytes.push(0);
        self.bytes(&bytes)
    }

    /// Returns a `cl_uint`, a `cl_bool` or a 32-bit enumeration to the caller.
    pub fn u32(&self, value: u32) -> Outcome {
        self.bytes(&value.to_le_bytes())
    }

    /// Returns a `cl_ulong` or a bit field to the caller.
    pub fn u64(&self, value: u64) -> Outcome {
        self.bytes(&value.to_le_bytes())
    }

    /// Returns a `size_t` or a pointer to the caller.
    pub fn word(&self, value: usize) -> Outcome {
        self.bytes(&value.to_le_bytes())
    }

    /// Returns a handle to the caller.
    pub fn handle(&self, handle: crate::handle::Handle) -> Outcome {
        self.word(handle.address())
    }

    /// Returns handles to the caller.
    pub fn handles(&self, handles: &[crate::handle::Handle]) -> Outcome {
        self.words(&handles.iter().map(|handle| handle.address()).collect::<Vec<usize>>())
    }

    /// Returns an array of `size_t` or pointers to the caller.
    pub fn words(&self, values: &[usize]) -> Outcome {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.bytes(&bytes)
    }

    /// Returns an array of `cl_name_version` to the caller: a version, and a name of 64 bytes.
    pub fn versions(&self, list: &[(u32, &str)]) -> Outcome {
        let mut bytes = Vec::new();
        for (version, name) in list {
            bytes.extend(version.to_le_bytes());
            let mut field = [0; 64];
            let len = name.len().min(63);
            field[..len].copy_from_slice(&name.as_bytes()[..len]);
            bytes.extend(field);
        }
        self.bytes(&bytes)
    }
}

/// Returns `CL_MAKE_VERSION` with patch version 0.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 22 | minor << 12
}

/// Returns the error for an unknown parameter name.
pub fn unknown_parameter() -> Outcome {
    Err(Status::INVALID_VALUE.into())
}
