//! Descriptors as values: the records of the pseudocode, with fields by name. Their layouts are those that the
//! semantics of instructions read.

use crate::isa;
use isa_spec::canonical;
use isa_spec::pcode::ast::Record;
use std::sync::{LazyLock, OnceLock};
use wavesim_isa::arch::Arch;

/// The layout of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The record's name.
    pub name: String,
    /// Its size in bits, a multiple of 32.
    pub width: u16,
    /// The fields in the order of the definition.
    pub fields: Vec<Field>,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The names of the bits in different uses of the record.
    pub names: Vec<String>,
    /// The lowest bit.
    pub low: u16,
    /// The number of bits, at most 64.
    pub width: u16,
}

/// The reason why a field cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The record has no such field.
    #[error("{record} has no field `{field}`")]
    Unknown {
        /// The record.
        record: String,
        /// The name that was given.
        field: String,
    },
    /// The value needs more bits than the field has.
    #[error("{record}.{field} has {width} bits: {value} is too large")]
    TooLarge {
        /// The record.
        record: String,
        /// The field.
        field: String,
        /// Its size in bits.
        width: u16,
        /// The value.
        value: u64,
    },
}

/// Returns the layout of a record of an architecture; `None` if the architecture has no such record.
pub fn layout(arch: Arch, name: &str) -> Option<&'static Layout> {
    type Layouts = Vec<(Vec<String>, Layout)>;
    static ALL: LazyLock<Layouts> = LazyLock::new(|| {
        let loaded = isa::loaded();
        let defines =
            |file: &&isa_spec::source::FileId| loaded.sources.file(**file).text.contains("\nrecord ");
        let files: Vec<_> = loaded.pcode.iter().filter(defines).copied().collect();
        let (parsed, _) = canonical::parse_all(&loaded.sources, &files);
        let archs = |record: &Record| record.archs.iter().map(|arch| arch.text.clone()).collect();
        parsed.records().iter().map(|record| (archs(record), of(record))).collect()
    });
    static BY_ARCH: [OnceLock<Vec<&'static Layout>>; Arch::ALL.len()] =
        [const { OnceLock::new() }; Arch::ALL.len()];
    let own = BY_ARCH[arch as usize].get_or_init(|| {
        let applies = |archs: &[String]| archs.is_empty() || archs.iter().any(|own| own == arch.name());
        ALL.iter().filter(|(archs, _)| applies(archs)).map(|(_, layout)| layout).collect()
    });
    own.iter().find(|layout| layout.name == name).copied()
}

fn of(record: &Record) -> Layout {
    let fields = record.fields.iter().map(|field| Field {
        names: field.names.iter().map(|name| name.text.clone()).collect(),
        low: field.low,
        width: field.width(),
    });
    Layout { name: record.name.text.clone(), width: record.width, fields: fields.collect() }
}

impl Layout {
    /// Returns a field by name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.names.iter().any(|own| own == name))
    }

    /// The number of dwords.
    pub fn dwords(&self) -> usize {
        self.width as usize / 32
    }

    /// Reads a field of a descriptor; missing dwords are 0.
    pub fn get(&self, field: &Field, words: &[u32]) -> u64 {
        let bit = |at: u16| words.get(at as usize / 32).map_or(0, |word| word >> (at % 32) & 1) as u64;
        (0..field.width.min(64)).fold(0, |value, k| value | bit(field.low + k) << k)
    }

    /// Sets a field of a descriptor, by name.
    ///
    /// # Errors
    /// The record has no such field, or the value has more bits than it.
    pub fn set(&self, words: &mut [u32], name: &str, value: u64) -> Result<(), FieldError> {
        let Some(field) = self.field(name) else {
            return Err(FieldError::Unknown { record: self.name.clone(), field: name.to_string() });
        };
        if field.width < 64 && value >> field.width != 0 {
            let (record, field, width) = (self.name.clone(), name.to_string(), field.width);
            return Err(FieldError::TooLarge { record, field, width, value });
        }
        for k in 0..field.width.min(64) {
            let at = (field.low + k) as usize;
            if let Some(word) = words.get_mut(at / 32) {
                *word = *word & !(1 << (at % 32)) | ((value >> k & 1) as u32) << (at % 32);
            }
        }
        Ok(())
    }
}
