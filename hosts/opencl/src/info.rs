//! Queries: size of the caller's memory, the memory, and a place for the size that the answer has.

use crate::ffi::{Memory, Out};
use crate::status::{Outcome, Status};

/// A query.
pub struct Query {
    /// Bytes at `value`.
    pub size: usize,
    /// Where the answer goes; null: nowhere.
    pub value: Memory,
    /// Where the answer's size goes.
    pub needed: Out<usize>,
}

impl Query {
    /// Answers with bytes.
    pub fn bytes(&self, answer: &[u8]) -> Outcome {
        if !self.value.is_null() {
            if self.size < answer.len() {
                return Err(Status::INVALID_VALUE.into());
            }
            self.value.write(answer);
        }
        self.needed.put_if_wanted(answer.len());
        Ok(())
    }

    /// Answers with text, which ends with a zero byte.
    pub fn text(&self, text: &str) -> Outcome {
        let mut bytes = text.replace('\0', " ").into_bytes();
        bytes.push(0);
        self.bytes(&bytes)
    }

    /// A `cl_uint`, a `cl_bool` or an enumeration of 32 bits.
    pub fn u32(&self, value: u32) -> Outcome {
        self.bytes(&value.to_le_bytes())
    }

    /// A `cl_ulong` or a bit field.
    pub fn u64(&self, value: u64) -> Outcome {
        self.bytes(&value.to_le_bytes())
    }

    /// A `size_t`, a pointer or a handle.
    pub fn word(&self, value: usize) -> Outcome {
        self.bytes(&value.to_le_bytes())
    }

    /// A handle.
    pub fn handle(&self, handle: crate::handle::Handle) -> Outcome {
        self.word(handle.address())
    }

    /// Several.
    pub fn words(&self, values: &[usize]) -> Outcome {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.bytes(&bytes)
    }

    /// `cl_name_version` structures: a version, and a name of 64 bytes.
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

/// `CL_MAKE_VERSION` with patch 0.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 22 | minor << 12
}

/// What a query of this name is not about.
pub fn unknown() -> Outcome {
    Err(Status::INVALID_VALUE.into())
}
