//! The metadata of code objects (LLVM AMDGPUUsage, *Code Object Metadata*): MessagePack in a note.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// An argument of a kernel according to the metadata.
#[derive(Debug, Clone, Deserialize)]
pub struct Arg {
    /// The name; compilers may omit it.
    #[serde(rename = ".name")]
    pub name: Option<String>,
    /// `by_value`, `global_buffer`, `dynamic_shared_pointer`, `hidden_block_count_x` …
    #[serde(rename = ".value_kind")]
    pub kind: String,
    /// Byte offset in the kernarg segment.
    #[serde(rename = ".offset")]
    pub offset: u32,
    /// Size in the kernarg segment in bytes.
    #[serde(rename = ".size")]
    pub size: u32,
    /// The type name in the source, without qualifiers.
    #[serde(rename = ".type_name")]
    pub type_name: Option<String>,
    /// The address space of a pointer: `global`, `constant`, `local` …
    #[serde(rename = ".address_space")]
    pub address_space: Option<String>,
    /// Whether the pointee is const.
    #[serde(rename = ".is_const", default)]
    pub is_const: bool,
    /// Whether the pointer is restrict-qualified.
    #[serde(rename = ".is_restrict", default)]
    pub is_restrict: bool,
    /// Whether the pointee is volatile.
    #[serde(rename = ".is_volatile", default)]
    pub is_volatile: bool,
}

impl Arg {
    /// Returns whether the argument is a pointer to LDS, whose size the launch specifies.
    pub fn is_local(&self) -> bool {
        self.kind == "dynamic_shared_pointer"
    }
}

/// Reads the metadata of a kernel from a note (owner `AMDGPU`, MessagePack). The note is parsed as a stream,
/// and only this kernel's entry is kept.
pub(super) fn metadata(note: &[u8], kernel: &str) -> Option<KernelMetadata> {
    KernelSeed { kernel, list: false }.deserialize(&mut reader(note)?).ok()?
}

/// Reads the format strings of OpenCL's `printf`; empty if there is no metadata.
pub(super) fn printf_formats(note: &[u8]) -> Vec<String> {
    let read = || Root::deserialize(&mut reader(note)?).ok();
    read().map(|root| root.printf).unwrap_or_default()
}

/// The part of the root map that does not belong to a kernel.
#[derive(Debug, Default, Deserialize)]
struct Root {
    #[serde(rename = "amdhsa.printf", default)]
    printf: Vec<String>,
}

type Reader<'a> = rmp_serde::Deserializer<rmp_serde::decode::ReadRefReader<'a, [u8]>>;

/// Creates a reader of the note's contents.
fn reader(note: &[u8]) -> Option<Reader<'_>> {
    let word = |o: usize| Some(u32::from_le_bytes(note.get(o..o + 4)?.try_into().ok()?) as usize);
    let start = 12 + word(0)?.next_multiple_of(4);
    let payload = note.get(start..start.checked_add(word(4)?)?)?;
    let mut reader = rmp_serde::Deserializer::from_read_ref(payload);
    reader.set_max_depth(MAX_METADATA_DEPTH);
    Some(reader)
}

/// Maximum nesting depth of lists and maps.
const MAX_METADATA_DEPTH: usize = 64;

/// A kernel's entry in `amdhsa.kernels`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct KernelMetadata {
    #[serde(rename = ".name")]
    name: String,
    #[serde(rename = ".args", default)]
    pub(super) args: Vec<Arg>,
    #[serde(rename = ".reqd_workgroup_size")]
    pub(super) block: Option<[u32; 3]>,
    #[serde(rename = ".max_flat_workgroup_size")]
    pub(super) max_items: Option<u32>,
    #[serde(rename = ".vgpr_count")]
    pub(super) vgprs: Option<u32>,
    #[serde(rename = ".sgpr_count")]
    pub(super) sgprs: Option<u32>,
}

/// Finds a kernel's entry: first its list in the root map, then the entry in the list.
#[derive(Clone, Copy)]
struct KernelSeed<'k> {
    kernel: &'k str,
    list: bool,
}

impl<'de> DeserializeSeed<'de> for KernelSeed<'_> {
    type Value = Option<KernelMetadata>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        if self.list { reader.deserialize_seq(self) } else { reader.deserialize_map(self) }
    }
}

impl<'de> Visitor<'de> for KernelSeed<'_> {
    type Value = Option<KernelMetadata>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata of a code object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "amdhsa.kernels" {
                found = map.next_value_seed(KernelSeed { list: true, ..self })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut kernels: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(entry) = kernels.next_element::<KernelMetadata>()? {
            if found.is_none() && entry.name == self.kernel {
                found = Some(entry);
            }
        }
        Ok(found)
    }
}
