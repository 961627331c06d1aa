//! Types.

use super::{DebugInfo, Entry, Reader, Space, Unit};
use gimli::{AttributeValue, UnitOffset};
use wavesim_array::DType;

/// Maximum nesting of types.
const MAX_DEPTH: usize = 24;
/// Maximum number of types that a type consists of.
pub(super) const MAX_TYPES: u32 = 1 << 14;
/// Maximum number of members or enumerators that are read.
const MAX_MEMBERS: usize = 1 << 12;

/// A reference to a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeRef {
    pub(super) unit: usize,
    pub(super) entry: UnitOffset,
}

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// The name in the source, as C spells it.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// What it consists of.
    pub kind: TypeKind,
}

/// The kinds of types.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum TypeKind {
    Integer {
        signed: bool,
    },
    Boolean,
    Float,
    Pointer {
        space: Space,
        target: Option<TypeRef>,
    },
    Struct(Vec<Member>),
    Array {
        element: Box<Type>,
        count: u64,
    },
    Enum {
        signed: bool,
        values: Vec<(String, i64)>,
    },
    /// A type that cannot be shown.
    Other,
}

/// A member of a structure or union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name; empty for an anonymous structure or union.
    pub name: String,
    /// Offset in bytes.
    pub offset: u64,
    /// The first bit from the offset on, and the number of bits, of a bit field.
    pub bits: Option<(u32, u32)>,
    /// Its type.
    pub kind: Type,
}

impl Type {
    /// Returns the element type of arrays that has the representation of a type.
    pub fn dtype(&self) -> Option<DType> {
        Some(match (&self.kind, self.size) {
            (TypeKind::Float, 2) if self.name.contains("bf16") => DType::BF16,
            (TypeKind::Float, 2) => DType::F16,
            (TypeKind::Float, 4) => DType::F32,
            (TypeKind::Float, 8) => DType::F64,
            (TypeKind::Integer { signed: true } | TypeKind::Enum { signed: true, .. }, size) => match size {
                1 => DType::I8,
                2 => DType::I16,
                4 => DType::I32,
                8 => DType::I64,
                _ => return None,
            },
            (
                TypeKind::Integer { .. }
                | TypeKind::Enum { .. }
                | TypeKind::Boolean
                | TypeKind::Pointer { .. },
                size,
            ) => match size {
                1 => DType::U8,
                2 => DType::U16,
                4 => DType::U32,
                8 => DType::U64,
                _ => return None,
            },
            _ => return None,
        })
    }
}

impl DebugInfo {
    /// Returns a type.
    pub fn type_of(&self, of: TypeRef) -> Option<Type> {
        Reader::new(self.inner.as_ref()?).resolve(of, 0)
    }
}

impl<'a> Reader<'a> {
    pub(super) fn resolve(&self, of: TypeRef, depth: usize) -> Option<Type> {
        self.types_left.set(self.types_left.get().checked_sub(1)?);
        if depth > MAX_DEPTH {
            return None;
        }
        let unit = self.units.get(of.unit)?;
        let entry = unit.entry(of.entry).ok()?;
        let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
        let size = number(gimli::DW_AT_byte_size);
        let name = self.name(unit, &entry);
        let inner = self.type_of(of.unit, &entry);
        let named = |prefix: &str| format!("{prefix}{}", name.clone().unwrap_or_default());
        let of_size = |name: String, kind| Some(Type { name, size: size.unwrap_or(0), kind });
        match entry.tag() {
            gimli::DW_TAG_base_type => {
                let encoding = match entry.attr_value(gimli::DW_AT_encoding)? {
                    AttributeValue::Encoding(encoding) => encoding,
                    _ => return None,
                };
                let kind = match encoding {
                    gimli::DW_ATE_boolean => TypeKind::Boolean,
                    gimli::DW_ATE_float => TypeKind::Float,
                    gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => TypeKind::Integer { signed: true },
                    gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char | gimli::DW_ATE_UTF => {
                        TypeKind::Integer { signed: false }
                    }
                    _ => TypeKind::Other,
                };
                of_size(named(""), kind)
            }
            gimli::DW_TAG_typedef => {
                Some(Type { name: named(""), ..self.resolve_or_void(inner, depth + 1)? })
            }
            gimli::DW_TAG_const_type => {
                let inner = self.resolve_or_void(inner, depth + 1)?;
                Some(Type { name: format!("const {}", inner.name), ..inner })
            }
            gimli::DW_TAG_volatile_type | gimli::DW_TAG_restrict_type | gimli::DW_TAG_atomic_type => {
                self.resolve_or_void(inner, depth + 1)
            }
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                // AMDGPUUsage, *Address Space Identifier*, as LLVM 19 writes it: 1 is private, 2 is local.
                let space = match entry.attr_value(gimli::DW_AT_address_class) {
                    Some(AttributeValue::AddressClass(gimli::DwAddr(1))) => Space::Private,
                    Some(AttributeValue::AddressClass(gimli::DwAddr(2))) => Space::Local,
                    _ => Space::Generic,
                };
                let mark = if entry.tag() == gimli::DW_TAG_pointer_type { "*" } else { "&" };
                // The target is only named: it may contain the pointer.
                let target = inner.map_or(Some("void".to_string()), |t| self.type_name(t, depth + 1))?;
                let default = if space == Space::Generic { 8 } else { 4 };
                Some(Type {
                    name: format!("{target} {mark}"),
                    size: size.unwrap_or(default),
                    kind: TypeKind::Pointer { space, target: inner },
                })
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let word = if entry.tag() == gimli::DW_TAG_union_type { "union" } else { "struct" };
                let name = name.clone().unwrap_or_else(|| word.to_string());
                of_size(name, TypeKind::Struct(self.members(of, unit, depth)?))
            }
            gimli::DW_TAG_array_type => {
                let mut element = self.resolve(inner?, depth + 1)?;
                let own = element.name.clone();
                let counts = self.counts(of, unit)?;
                for count in counts.iter().rev() {
                    let size = element.size.saturating_mul(*count);
                    let kind = TypeKind::Array { count: *count, element: Box::new(element) };
                    element = Type { name: String::new(), size, kind };
                }
                let suffix: String = counts.iter().map(|count| format!("[{count}]")).collect();
                element.name = format!("{own}{suffix}");
                // A vector of three elements takes the space of four.
                element.size = size.unwrap_or(element.size);
                Some(element)
            }
            gimli::DW_TAG_enumeration_type => {
                let base = inner.and_then(|inner| self.resolve(inner, depth + 1));
                let signed = base.is_none_or(|base| base.kind == TypeKind::Integer { signed: true });
                let mut values = Vec::new();
                self.children(of, unit, |child| {
                    if child.tag() == gimli::DW_TAG_enumerator
                        && let Some(value) = child.attr(gimli::DW_AT_const_value)
                        && let Some(number) = value.sdata_value().or(value.udata_value().map(|v| v as i64))
                    {
                        values.push((self.name(unit, child).unwrap_or_default(), number));
                    }
                })?;
                of_size(named("enum "), TypeKind::Enum { signed, values })
            }
            _ => of_size(name.clone().unwrap_or_else(|| "?".to_string()), TypeKind::Other),
        }
    }

    fn resolve_or_void(&self, of: Option<TypeRef>, depth: usize) -> Option<Type> {
        match of {
            Some(of) => self.resolve(of, depth),
            None => Some(Type { name: "void".to_string(), size: 0, kind: TypeKind::Other }),
        }
    }

    /// Returns the name of a type.
    fn type_name(&self, of: TypeRef, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        let unit = self.units.get(of.unit)?;
        let entry = unit.entry(of.entry).ok()?;
        match entry.tag() {
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                Some(self.name(unit, &entry).unwrap_or_else(|| "struct".to_string()))
            }
            gimli::DW_TAG_typedef => self.name(unit, &entry),
            gimli::DW_TAG_const_type => {
                let inner = self.type_of(of.unit, &entry);
                let inner = inner.map_or(Some("void".to_string()), |t| self.type_name(t, depth + 1))?;
                Some(format!("const {inner}"))
            }
            _ => Some(self.resolve(of, depth)?.name),
        }
    }

    /// Calls a function for each child of an entry.
    fn children(&self, of: TypeRef, unit: &Unit<'a>, mut each: impl FnMut(&Entry<'a>)) -> Option<()> {
        let mut entries = unit.entries_at_offset(of.entry).ok()?;
        let first = entries.next_dfs().ok()??.depth();
        while let Some(child) = entries.next_dfs().ok()? {
            if child.depth() <= first {
                break;
            }
            if child.depth() == first + 1 {
                each(child);
            }
        }
        Some(())
    }

    /// Returns the lengths of an array's dimensions.
    fn counts(&self, of: TypeRef, unit: &Unit<'a>) -> Option<Vec<u64>> {
        let mut counts = Vec::new();
        self.children(of, unit, |child| {
            if child.tag() == gimli::DW_TAG_subrange_type {
                let number = |name| child.attr_value(name).and_then(|value| value.udata_value());
                let bound = number(gimli::DW_AT_upper_bound).map(|last| last.saturating_add(1));
                counts.push(number(gimli::DW_AT_count).or(bound).unwrap_or(0));
            }
        })?;
        Some(counts)
    }

    fn members(&self, of: TypeRef, unit: &Unit<'a>, depth: usize) -> Option<Vec<Member>> {
        let mut found = Vec::new();
        self.children(of, unit, |child| {
            let base = child.tag() == gimli::DW_TAG_inheritance;
            if !(base || child.tag() == gimli::DW_TAG_member) || found.len() >= MAX_MEMBERS {
                return;
            }
            let number = |name| child.attr_value(name).and_then(|value| value.udata_value());
            // A member without a position is a static one, unless it is in a union.
            let outside = child.attr_value(gimli::DW_AT_external).is_some();
            let kind = self.type_of(of.unit, child).filter(|_| !outside);
            let Some(kind) = kind.and_then(|kind| self.resolve(kind, depth + 1)) else { return };
            let name = match base {
                true => kind.name.clone(),
                false => self.name(unit, child).unwrap_or_default(),
            };
            let mut offset = number(gimli::DW_AT_data_member_location).unwrap_or(0);
            let size = number(gimli::DW_AT_bit_size).and_then(|bits| u32::try_from(bits).ok());
            let bits = size.filter(|size| (1..=64).contains(size)).map(|size| {
                let first = number(gimli::DW_AT_data_bit_offset).unwrap_or(0);
                let unit_bits = 8 * kind.size.max(1);
                offset += first / unit_bits * kind.size;
                ((first % unit_bits) as u32, size)
            });
            found.push(Member { name, offset, bits, kind });
        })?;
        Some(found)
    }
}
