//! Variables of the source, from debug information: values of any type, their members and elements.

use super::expr::{Focus, Space, Value, read_as};
use super::format::Format;
use super::frames::{Frame, frames};
use super::timeline::{Edit, Timeline};
use std::fmt::Write as _;
use wavesim_array::DType;
use wavesim_loader::debug_info::{
    self, Location, Piece, Register, State, Type, TypeKind, TypeRef, Variable, register,
};
use wavesim_machine::memory::{PRIVATE_BASE, SHARED_BASE};
use wavesim_machine::state::Wave;

/// Maximum number of elements of an array that are shown.
const MAX_ELEMENTS: u64 = 200;
/// Maximum size in bytes of a value that is read at once.
const MAX_BYTES: u64 = 1 << 20;

/// The state that locations depend on.
struct Machine<'t> {
    timeline: &'t Timeline<'t>,
    focus: Focus,
    wave: &'t Wave,
}

impl State for Machine<'_> {
    fn register(&self, number: u16) -> Option<u32> {
        Some(match register(number)? {
            Register::Sgpr(code) => self.wave.sgpr(code as u32),
            Register::Vgpr(register) => self.wave.vgpr(self.focus.lane, register as u32),
        })
    }

    fn memory(&self, space: debug_info::Space, address: u64, out: &mut [u8]) -> Result<(), String> {
        let (space, address) = resolved(space, address);
        space.read(self.timeline, self.focus, address, out)
    }

    fn loaded(&self, address: u64) -> u64 {
        let prepared = self.timeline.prepared;
        prepared.shape.code_base.wrapping_add(prepared.program.pc_at(address))
    }
}

/// Returns the memory that an address designates: FLAT addresses in an aperture are those of LDS or scratch.
fn resolved(space: debug_info::Space, address: u64) -> (Space, u64) {
    let low = address & 0xffff_ffff;
    match space {
        debug_info::Space::Private => (Space::Scratch, low),
        debug_info::Space::Local => (Space::Lds, low),
        debug_info::Space::Generic if address >> 32 == SHARED_BASE >> 32 => (Space::Lds, low),
        debug_info::Space::Generic if address >> 32 == PRIVATE_BASE >> 32 => (Space::Scratch, low),
        debug_info::Space::Generic => (Space::Global, address),
    }
}

/// A value of a type: a variable, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its type.
    pub kind: Type,
    store: Store,
    /// The first bit and the number of bits, of a bit field.
    bits: Option<(u32, u32)>,
    /// Whether the value is that at the start of the kernel: the variable has been optimised out.
    pub of_start: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Store {
    Memory {
        space: Space,
        address: u64,
    },
    /// Bytes of a variable in registers, from an offset on.
    Pieces {
        location: Location,
        offset: u64,
    },
    /// A value that is stored nowhere, such as an address.
    Value(u64),
}

/// A step from a value to a part of it, or to what it points to.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// `.name`; after a pointer, of what it points to.
    Member(String),
    /// `[index]`.
    Element(i128),
    /// `*`.
    Target,
    /// `&`.
    Address,
}

/// Returns the selected frame of a wave.
fn selected(timeline: &Timeline<'_>, wave: usize) -> Option<Frame> {
    frames(timeline, wave).into_iter().nth(timeline.selected_frame(wave))
}

/// Returns the variables in scope in the selected frame, those of inner blocks first. Parameters come first among
/// those of the same block.
pub fn in_scope(timeline: &Timeline<'_>, wave: usize) -> Vec<Variable> {
    selected(timeline, wave).map_or_else(Vec::new, |frame| of_frame(timeline, &frame))
}

/// Returns the variables in scope in a frame.
fn of_frame(timeline: &Timeline<'_>, frame: &Frame) -> Vec<Variable> {
    let Some(function) = &frame.function else { return Vec::new() };
    let address = timeline.prepared.program.address(frame.pc);
    timeline.prepared.debug.variables(function, address)
}

/// Returns whether a variable of the selected frame hides the kernel's argument of the same name: in functions
/// other than the kernel.
pub fn hides_argument(timeline: &Timeline<'_>, wave: usize, name: &str) -> bool {
    if !timeline.prepared.debug.has_variable(name) {
        return false;
    }
    let all = frames(timeline, wave);
    let index = timeline.selected_frame(wave);
    index + 1 < all.len() && in_scope(timeline, wave).iter().any(|v| v.name == name)
}

/// Finds a variable by its name: in the selected frame, in those into which it is inlined, then outside of functions.
///
/// # Errors
/// There is no such variable, or it has no location at this instruction.
pub fn find(timeline: &Timeline<'_>, focus: Focus, name: &str) -> Result<Object, String> {
    let all = frames(timeline, focus.wave);
    let index = timeline.selected_frame(focus.wave);
    let Some(level) = all.get(index).map(|frame| frame.level) else {
        return Err(format!("`{name}` is not in scope at this instruction"));
    };
    // Functions into which this one is inlined have the same registers.
    for frame in all.iter().skip(index).take_while(|frame| frame.level == level) {
        let scope = of_frame(timeline, frame);
        if let Some(first) = scope.iter().find(|v| v.name == name) {
            return object(timeline, focus, first);
        }
    }
    let globals = timeline.prepared.debug.globals();
    let found = globals.iter().find(|v| v.name == name);
    match found {
        Some(variable) => object(timeline, focus, variable),
        None => Err(format!("`{name}` is not in scope at this instruction")),
    }
}

/// Returns a variable as an object.
///
/// # Errors
/// The variable has no location at this instruction.
pub fn object(timeline: &Timeline<'_>, focus: Focus, variable: &Variable) -> Result<Object, String> {
    let debug = &timeline.prepared.debug;
    let name = &variable.name;
    let kind = variable.kind.and_then(|kind| debug.type_of(kind));
    let kind = kind.ok_or_else(|| format!("the type of `{name}` is unknown"))?;
    let state = Machine { timeline, focus, wave: timeline.frame_wave(focus.wave) };
    let address = timeline.prepared.program.address(timeline.frame_pc(focus.wave));
    let location = match debug.locate(variable, address, &state) {
        Ok(location) => location,
        Err(debug_info::Missing::OptimisedOut) => {
            // Its last value is not known, but the first one of a kernel's parameter is.
            let argument = timeline.prepared.objects.argument(variable);
            let argument = argument.filter(|bytes| kind.size <= bytes.end - bytes.start);
            let bytes = argument.ok_or_else(|| format!("`{name}` is optimised out here"))?;
            let store = Store::Memory { space: Space::Global, address: bytes.start };
            return Ok(Object { kind, store, bits: None, of_start: true });
        }
        Err(missing) => {
            let offset = timeline.prepared.objects.lds_offset(name);
            let known = offset.filter(|_| missing == debug_info::Missing::Lds);
            let address = known.ok_or_else(|| format!("`{name}`: {missing}"))?;
            Location(vec![(Piece::Memory { space: debug_info::Space::Local, address }, None)])
        }
    };
    let store = match location.0[..] {
        [(Piece::Memory { space, address }, None)] => {
            let (space, address) = resolved(space, address);
            Store::Memory { space, address }
        }
        [(Piece::Value(value), None)] => Store::Value(value),
        _ => Store::Pieces { location, offset: 0 },
    };
    Ok(Object { kind, store, bits: None, of_start: false })
}

impl Object {
    /// Returns a part of the value, or what it points to.
    ///
    /// # Errors
    /// The type has no such part.
    pub fn part(self, timeline: &Timeline<'_>, focus: Focus, part: &Part) -> Result<Object, String> {
        match part {
            Part::Member(name) => {
                let owner = match self.kind.kind {
                    TypeKind::Pointer { .. } => self.part(timeline, focus, &Part::Target)?,
                    _ => self,
                };
                owner.member(name)
            }
            Part::Target => match self.kind.kind {
                TypeKind::Pointer { .. } => self.target(timeline, focus, 0),
                TypeKind::Array { .. } => self.element(0),
                _ => Err(format!("`{}` is not a pointer", self.kind.name)),
            },
            Part::Element(index) => match self.kind.kind {
                TypeKind::Pointer { .. } => self.target(timeline, focus, *index),
                TypeKind::Array { .. } => self.element(*index),
                _ => Err(format!("`{}` has no elements", self.kind.name)),
            },
            Part::Address => {
                let Store::Memory { space, address } = self.store else {
                    return Err("the value is not in memory".to_string());
                };
                if self.of_start {
                    return Err("the variable is optimised out here".to_string());
                }
                let (space, size) = match space {
                    Space::Lds => (debug_info::Space::Local, 4),
                    Space::Scratch => (debug_info::Space::Private, 4),
                    Space::Global => (debug_info::Space::Generic, 8),
                };
                let kind = TypeKind::Pointer { space, target: None };
                let kind = Type { name: format!("{} *", self.kind.name), size, kind };
                Ok(Object { kind, store: Store::Value(address), bits: None, of_start: false })
            }
        }
    }

    fn at(&self, kind: Type, by: u64) -> Object {
        let store = match &self.store {
            Store::Memory { space, address } => {
                Store::Memory { space: *space, address: address.wrapping_add(by) }
            }
            Store::Pieces { location, offset } => {
                Store::Pieces { location: location.clone(), offset: offset + by }
            }
            Store::Value(value) => Store::Value(value.checked_shr(8 * by as u32).unwrap_or(0)),
        };
        Object { kind, store, bits: None, of_start: self.of_start }
    }

    fn member(self, name: &str) -> Result<Object, String> {
        match &self.kind.kind {
            TypeKind::Struct(members) => {
                if let Some(found) = members.iter().find(|m| m.name == name) {
                    return Ok(Object { bits: found.bits, ..self.at(found.kind.clone(), found.offset) });
                }
                // Members of anonymous structures and of base classes.
                let inner = members.iter().filter(|m| matches!(m.kind.kind, TypeKind::Struct(_)));
                let found = inner.filter_map(|m| self.at(m.kind.clone(), m.offset).member(name).ok()).next();
                found.ok_or_else(|| format!("`{}` has no member `{name}`", self.kind.name))
            }
            // Components of a vector.
            TypeKind::Array { .. } => {
                let at = match name {
                    "x" => Some(0),
                    "y" => Some(1),
                    "z" => Some(2),
                    "w" => Some(3),
                    _ => name.strip_prefix('s').and_then(|n| i128::from_str_radix(n, 16).ok()),
                };
                let at = at.ok_or_else(|| format!("`{}` has no member `{name}`", self.kind.name))?;
                self.element(at)
            }
            _ => Err(format!("`{}` has no members", self.kind.name)),
        }
    }

    fn element(self, index: i128) -> Result<Object, String> {
        let TypeKind::Array { element, count } = &self.kind.kind else {
            return Err(format!("`{}` has no elements", self.kind.name));
        };
        // Arrays without a length are declared elsewhere.
        let inside = *count == 0 || index < *count as i128;
        let index = u64::try_from(index).ok().filter(|_| inside);
        let index = index.ok_or_else(|| format!("`{}` has {count} elements", self.kind.name))?;
        Ok(self.at((**element).clone(), index.wrapping_mul(element.size)))
    }

    fn target(self, timeline: &Timeline<'_>, focus: Focus, index: i128) -> Result<Object, String> {
        let TypeKind::Pointer { space, target } = self.kind.kind else {
            return Err(format!("`{}` is not a pointer", self.kind.name));
        };
        let kind = target.and_then(|t: TypeRef| timeline.prepared.debug.type_of(t));
        let kind = kind.ok_or_else(|| format!("the type that `{}` points to is unknown", self.kind.name))?;
        let by = (index as i64).wrapping_mul(kind.size as i64);
        let address = self.bits(timeline, focus)?.wrapping_add_signed(by);
        let (space, address) = resolved(space, address);
        Ok(Object { kind, store: Store::Memory { space, address }, bits: None, of_start: false })
    }

    /// Returns the bytes of the value.
    fn bytes(&self, timeline: &Timeline<'_>, focus: Focus) -> Result<Vec<u8>, String> {
        if self.kind.size > MAX_BYTES {
            return Err(format!("a value of {} bytes is not read at once", self.kind.size));
        }
        let size = self.kind.size as usize;
        let mut out = vec![0; size];
        match &self.store {
            Store::Memory { space, address } => space.read(timeline, focus, *address, &mut out)?,
            Store::Value(value) => {
                let len = size.min(8);
                out[..len].copy_from_slice(&value.to_le_bytes()[..len]);
            }
            Store::Pieces { location, offset } => {
                for (at, byte) in out.iter_mut().enumerate() {
                    *byte = piece_byte(timeline, focus, location, offset + at as u64)?;
                }
            }
        }
        Ok(out)
    }

    fn bits(&self, timeline: &Timeline<'_>, focus: Focus) -> Result<u64, String> {
        let bytes = self.bytes(timeline, focus)?;
        let mut wide = [0; 8];
        let len = bytes.len().min(8);
        wide[..len].copy_from_slice(&bytes[..len]);
        let bits = u64::from_le_bytes(wide);
        Ok(self.bits.map_or(bits, |(first, size)| bit_field(bits, first, size)))
    }

    /// Returns the number that the value is, or its bits as another type.
    ///
    /// # Errors
    /// The value is no number, or cannot be read.
    pub fn value(
        &self,
        timeline: &Timeline<'_>,
        focus: Focus,
        dtype: Option<DType>,
    ) -> Result<Value, String> {
        let bits = self.bits(timeline, focus)?;
        if let Some(dtype) = dtype {
            return Ok(read_as(bits, dtype));
        }
        scalar(&self.kind, bits).ok_or_else(|| match self.kind.kind {
            // An array is its address, as in C.
            TypeKind::Array { .. } | TypeKind::Struct(_) => {
                format!("a value of the type `{}` is not a number", self.kind.name)
            }
            _ => format!("a value of the type `{}` cannot be read", self.kind.name),
        })
    }

    /// Returns the value as C writes it, its numbers in a format.
    ///
    /// # Errors
    /// The value cannot be read.
    pub fn show(
        &self,
        timeline: &Timeline<'_>,
        focus: Focus,
        format: Option<Format>,
    ) -> Result<String, String> {
        let mut out = String::new();
        if self.bits.is_some() {
            out = Format::value(format, Value::Int(self.bits(timeline, focus)?.into()));
        } else {
            show(&self.kind, &self.bytes(timeline, focus)?, format, &mut out);
        }
        Ok(out)
    }

    /// Returns whether the value has members or elements.
    pub fn has_parts(&self) -> bool {
        matches!(self.kind.kind, TypeKind::Struct(_) | TypeKind::Array { .. })
    }

    /// Returns the edits that change the value.
    ///
    /// # Errors
    /// The value is no number, or is stored nowhere.
    pub fn edits(&self, timeline: &Timeline<'_>, focus: Focus, value: Value) -> Result<Vec<Edit>, String> {
        if self.of_start {
            return Err(
                "the variable is optimised out here; only its value at the start is known".to_string()
            );
        }
        let dtype = self
            .kind
            .dtype()
            .filter(|_| self.bits.is_none())
            .ok_or_else(|| format!("a value of the type `{}` cannot be set", self.kind.name))?;
        let bytes = super::command::encoded(value, dtype)?;
        match &self.store {
            Store::Memory { space, address } => {
                let start = space.range(timeline, focus, *address, bytes.len())?;
                Ok((start..).zip(bytes).map(|(at, value)| space.edit(at, value)).collect())
            }
            Store::Value(_) => {
                Err("the variable is stored nowhere: the compiler knows its value".to_string())
            }
            Store::Pieces { location, offset } => {
                let mut edits = Vec::new();
                for (k, chunk) in bytes.chunks(4).enumerate() {
                    let at = offset + 4 * k as u64;
                    let mut dword = [0; 4];
                    for (n, byte) in dword.iter_mut().enumerate() {
                        *byte = piece_byte(timeline, focus, location, at + n as u64).unwrap_or(0);
                    }
                    dword[..chunk.len()].copy_from_slice(chunk);
                    let value = u32::from_le_bytes(dword);
                    let (found, within) = piece(location, at).ok_or("a part of it is optimised out")?;
                    let Piece::Register { number } = found else {
                        return Err("the variable is only partly in registers".to_string());
                    };
                    if within % 4 != 0 || timeline.is_outer_frame(focus.wave) {
                        return Err("registers of an outer frame cannot be set".to_string());
                    }
                    let wave = focus.wave;
                    edits.push(match register(number + (within / 4) as u16) {
                        Some(Register::Sgpr(code)) => Edit::Sgpr { wave, code, value },
                        Some(Register::Vgpr(register)) => {
                            Edit::Vgpr { wave, lane: focus.lane, register, value }
                        }
                        None => return Err("the register is unknown".to_string()),
                    });
                }
                Ok(edits)
            }
        }
    }

    /// Returns the memory that holds the value: the address space, the address and the size in bytes.
    pub fn memory(&self) -> Option<(Space, u64, u64)> {
        match self.store {
            Store::Memory { space, address } if !self.of_start => Some((space, address, self.kind.size)),
            _ => None,
        }
    }

    /// Returns the registers that hold the value, by dword; `None` if it is not wholly in registers.
    pub fn registers(&self) -> Option<Vec<Register>> {
        let Store::Pieces { location, offset } = &self.store else { return None };
        let dword = |index: u64| match piece(location, offset + 4 * index)? {
            (Piece::Register { number }, within) => register(number + (within / 4) as u16),
            _ => None,
        };
        (0..self.kind.size.div_ceil(4)).map(dword).collect()
    }

    /// Returns the parts of the value with their names, for a list: members, or elements.
    pub fn parts(&self) -> Vec<(String, Part)> {
        match &self.kind.kind {
            TypeKind::Struct(members) => {
                members.iter().map(|m| (m.name.clone(), Part::Member(m.name.clone()))).collect()
            }
            TypeKind::Array { count, .. } => {
                (0..(*count).min(1 << 16)).map(|k| (format!("[{k}]"), Part::Element(k as i128))).collect()
            }
            TypeKind::Pointer { target: Some(_), .. } => vec![("*".to_string(), Part::Target)],
            _ => Vec::new(),
        }
    }
}

/// Returns the part of a location that holds a byte, and the byte's offset in it.
fn piece(location: &Location, offset: u64) -> Option<(Piece, u64)> {
    let mut start = 0;
    for (piece, size) in &location.0 {
        if size.is_none_or(|size| offset < start + size) {
            return Some((*piece, offset - start));
        }
        start += size.unwrap_or(0);
    }
    None
}

fn piece_byte(timeline: &Timeline<'_>, focus: Focus, location: &Location, offset: u64) -> Result<u8, String> {
    let missing = || "a part of it is optimised out here".to_string();
    let (found, within) = piece(location, offset).ok_or_else(missing)?;
    let machine = Machine { timeline, focus, wave: timeline.frame_wave(focus.wave) };
    match found {
        Piece::Register { number } => {
            let dword = machine.register(number + (within / 4) as u16).ok_or_else(missing)?;
            Ok(dword.to_le_bytes()[within as usize % 4])
        }
        Piece::Memory { space, address } => {
            let mut byte = [0];
            machine.memory(space, address + within, &mut byte)?;
            Ok(byte[0])
        }
        Piece::Value(value) => Ok(value.checked_shr(8 * within as u32).unwrap_or(0) as u8),
        Piece::Missing => Err(missing()),
    }
}

fn bit_field(bits: u64, first: u32, size: u32) -> u64 {
    bits.checked_shr(first).unwrap_or(0) & (u64::MAX >> (64 - size.clamp(1, 64)))
}

fn scalar(kind: &Type, bits: u64) -> Option<Value> {
    kind.dtype().map(|dtype| read_as(bits, dtype))
}

fn show(kind: &Type, bytes: &[u8], format: Option<Format>, out: &mut String) {
    let mut wide = [0; 8];
    let len = bytes.len().min(8);
    wide[..len].copy_from_slice(&bytes[..len]);
    let bits = u64::from_le_bytes(wide);
    let of = |from: u64, size: u64| bytes.get(from as usize..(from + size) as usize).unwrap_or(&[]);
    if format.is_some() && kind.dtype().is_some() {
        out.push_str(&Format::value(format, Value::Int(bits.into())));
        return;
    }
    // Writing to a string does not fail.
    match &kind.kind {
        TypeKind::Struct(members) => {
            out.push('{');
            for (at, member) in members.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                if !member.name.is_empty() {
                    let _ = write!(out, "{} = ", member.name);
                }
                match member.bits {
                    Some((first, size)) => {
                        let mut wide = [0; 8];
                        let field = of(member.offset, member.kind.size.min(8));
                        wide[..field.len()].copy_from_slice(field);
                        let bits = Value::Int(bit_field(u64::from_le_bytes(wide), first, size).into());
                        out.push_str(&Format::value(format, bits));
                    }
                    None => show(&member.kind, of(member.offset, member.kind.size), format, out),
                }
            }
            out.push('}');
        }
        TypeKind::Array { element, count } => {
            out.push('{');
            for at in 0..(*count).min(MAX_ELEMENTS) {
                if at > 0 {
                    out.push_str(", ");
                }
                show(element, of(at * element.size, element.size), format, out);
            }
            out.push_str(if *count > MAX_ELEMENTS { ", …}" } else { "}" });
        }
        TypeKind::Pointer { .. } => {
            let _ = write!(out, "0x{bits:x}");
        }
        TypeKind::Boolean => out.push_str(if bits & 1 == 1 { "true" } else { "false" }),
        TypeKind::Enum { values, .. } => {
            let number = scalar(kind, bits).unwrap_or(Value::Int(0));
            let named = values.iter().find(|(_, v)| Value::Int(*v as i128) == number);
            match named {
                Some((name, _)) => out.push_str(name),
                None => {
                    let _ = write!(out, "{number}");
                }
            }
        }
        TypeKind::Float if kind.size == 4 => {
            out.push_str(&wavesim_array::show::bits(bits, Some(DType::F32), 1));
        }
        _ => match scalar(kind, bits) {
            Some(value) => {
                let _ = write!(out, "{value}");
            }
            None => {
                let _ = write!(out, "({} bytes of {})", kind.size, kind.name);
            }
        },
    }
}
