//! The metadata of code objects (LLVM AMDGPUUsage, *Code Object Metadata*): MessagePack in a note.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// An argument of the metadata.
#[derive(Debug, Clone, Deserialize)]
pub struct Arg {
    /// Compilers may leave it out.
    #[serde(rename = ".name")]
    pub name: Option<String>,
    /// `by_value`, `global_buffer`, `dynamic_shared_pointer`, `hidden_block_count_x` …
    #[serde(rename = ".value_kind")]
    pub kind: String,
    /// First byte in the kernarg segment.
    #[serde(rename = ".offset")]
    pub offset: u32,
    /// Bytes in the kernarg segment.
    #[serde(rename = ".size")]
    pub size: u32,
    /// The type as the source has it, without qualifiers.
    #[serde(rename = ".type_name")]
    pub type_name: Option<String>,
    /// Of a pointer: `global`, `constant`, `local` …
    #[serde(rename = ".address_space")]
    pub address_space: Option<String>,
    /// The pointer's target is constant.
    #[serde(rename = ".is_const", default)]
    pub is_const: bool,
    /// The pointer is restrict-qualified.
    #[serde(rename = ".is_restrict", default)]
    pub is_restrict: bool,
    /// The pointer's target is volatile.
    #[serde(rename = ".is_volatile", default)]
    pub is_volatile: bool,
}

impl Arg {
    /// A pointer to memory of the workgroup, whose size the launch says.
    pub fn is_local(&self) -> bool {
        self.kind == "dynamic_shared_pointer"
    }
}

/// What the note (owner `AMDGPU`, MessagePack) says of a kernel: read as a stream, of which only this is kept.
pub(super) fn metadata(note: &[u8], kernel: &str) -> Option<KernelMetadata> {
    Wanted { kernel, list: false }.deserialize(&mut reader(note)?).ok()?
}

/// The formats of OpenCL's `printf`; none where there is no metadata.
pub(super) fn printf_formats(note: &[u8]) -> Vec<String> {
    let read = || Root::deserialize(&mut reader(note)?).ok();
    read().map(|root| root.printf).unwrap_or_default()
}

/// Of the root's map, what is not of a kernel.
#[derive(Debug, Default, Deserialize)]
struct Root {
    #[serde(rename = "amdhsa.printf", default)]
    printf: Vec<String>,
}

type Reader<'a> = rmp_serde::Deserializer<rmp_serde::decode::ReadRefReader<'a, [u8]>>;

/// Reads the note's contents.
fn reader(note: &[u8]) -> Option<Reader<'_>> {
    let word = |o: usize| Some(u32::from_le_bytes(note.get(o..o + 4)?.try_into().ok()?) as usize);
    let start = 12 + word(0)?.next_multiple_of(4);
    let payload = note.get(start..start.checked_add(word(4)?)?)?;
    let mut reader = rmp_serde::Deserializer::from_read_ref(payload);
    reader.set_max_depth(MAX_METADATA_DEPTH);
    Some(reader)
}

/// Lists and maps inside each other in metadata, at most.
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

/// Looks for a kernel's entry in the root's map, then in its list of kernels.
#[derive(Clone, Copy)]
struct Wanted<'k> {
    kernel: &'k str,
    list: bool,
}

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = Option<KernelMetadata>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        if self.list { reader.deserialize_seq(self) } else { reader.deserialize_map(self) }
    }
}

impl<'de> Visitor<'de> for Wanted<'_> {
    type Value = Option<KernelMetadata>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata of a code object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "amdhsa.kernels" {
                found = map.next_value_seed(Wanted { list: true, ..self })?;
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
