//! The metadata of code objects (LLVM AMDGPUUsage, *Code Object Metadata*): MessagePack in a note.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
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
    /// The access qualifier of an image: `read_only`, `write_only`, `read_write`.
    #[serde(rename = ".access")]
    pub access: Option<String>,
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

/// The metadata notes of a code object. Linkers concatenate the notes of their inputs, so a code object that was
/// linked from many has many.
#[derive(Debug, Default)]
pub(super) struct Notes<'a>(Vec<&'a [u8]>);

/// NT_AMDGPU_METADATA (AMDGPUUsage, *Note Records*).
const METADATA: u32 = 32;

impl<'a> Notes<'a> {
    /// Adds the notes of a section (System V ABI, *Note Section*): the sizes of the owner's name and of the
    /// contents, the type, and both padded to words. Ends at a note that exceeds the section.
    pub(super) fn add_section(&mut self, mut section: &'a [u8]) {
        let next = |section: &mut &'a [u8], len: usize| {
            let (part, rest) = section.split_at_checked(len)?;
            // The padding of the last note can be missing.
            *section = rest.get(len.next_multiple_of(4) - len..).unwrap_or_default();
            Some(part)
        };
        let word = |section: &mut &'a [u8]| Some(u32::from_le_bytes(next(section, 4)?.try_into().ok()?));
        let mut note = || {
            let (name, contents, kind) = (word(&mut section)?, word(&mut section)?, word(&mut section)?);
            Some((kind, next(&mut section, name as usize)?, next(&mut section, contents as usize)?))
        };
        while let Some((kind, name, contents)) = note() {
            if kind == METADATA && name == b"AMDGPU\0" {
                self.0.push(contents);
            }
        }
    }

    /// Returns true if there is no metadata, as in some hand-written assembly.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the metadata of the kernels that are wanted, by name. The notes are parsed as streams, and no other
    /// kernel's entry is kept. The first entry of a name counts; a damaged note has none.
    pub(super) fn kernels(&self, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, KernelMetadata> {
        let mut all = BTreeMap::new();
        for note in &self.0 {
            let seed = KernelsSeed { wanted: &wanted, list: false };
            for kernel in seed.deserialize(&mut reader(note)).unwrap_or_default() {
                all.entry(kernel.name.clone()).or_insert(kernel);
            }
        }
        all
    }

    /// Reads the format strings of OpenCL's `printf`.
    pub(super) fn printf_formats(&self) -> Vec<String> {
        let roots = self.0.iter().filter_map(|note| Root::deserialize(&mut reader(note)).ok());
        roots.flat_map(|root| root.printf).collect()
    }
}

/// The part of the root map that does not belong to a kernel.
#[derive(Debug, Default, Deserialize)]
struct Root {
    #[serde(rename = "amdhsa.printf", default)]
    printf: Vec<String>,
}

type Reader<'a> = rmp_serde::Deserializer<rmp_serde::decode::ReadRefReader<'a, [u8]>>;

/// Creates a reader of a note's contents.
fn reader(contents: &[u8]) -> Reader<'_> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(contents);
    reader.set_max_depth(MAX_METADATA_DEPTH);
    reader
}

/// Maximum nesting depth of lists and maps.
const MAX_METADATA_DEPTH: usize = 64;

/// A kernel's entry in `amdhsa.kernels`.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct KernelMetadata {
    #[serde(rename = ".name")]
    name: String,
    #[serde(rename = ".args", default)]
    pub(super) args: Vec<Arg>,
    #[serde(rename = ".reqd_workgroup_size")]
    pub(super) block: Option<[u32; 3]>,
    #[serde(rename = ".cluster_dims")]
    pub(super) cluster: Option<[u32; 3]>,
    #[serde(rename = ".max_flat_workgroup_size")]
    pub(super) max_items: Option<u32>,
    #[serde(rename = ".vgpr_count")]
    pub(super) vgprs: Option<u32>,
    #[serde(rename = ".sgpr_count")]
    pub(super) sgprs: Option<u32>,
    #[serde(rename = ".kernarg_segment_size")]
    pub(super) kernarg_size: Option<u32>,
}

/// Finds the entries of kernels: first their list in the root map, then the entries in the list.
#[derive(Clone, Copy)]
struct KernelsSeed<'k> {
    wanted: &'k dyn Fn(&str) -> bool,
    list: bool,
}

impl<'de> DeserializeSeed<'de> for KernelsSeed<'_> {
    type Value = Vec<KernelMetadata>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        if self.list { reader.deserialize_seq(self) } else { reader.deserialize_map(self) }
    }
}

impl<'de> Visitor<'de> for KernelsSeed<'_> {
    type Value = Vec<KernelMetadata>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata of a code object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "amdhsa.kernels" {
                found = map.next_value_seed(KernelsSeed { list: true, ..self })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut kernels: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(entry) = kernels.next_element::<KernelMetadata>()? {
            if (self.wanted)(&entry.name) {
                found.push(entry);
            }
        }
        Ok(found)
    }
}
