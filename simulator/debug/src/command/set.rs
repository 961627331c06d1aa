//! The command `set`: changes registers and memory.

use super::{CommandResult, Debugger};
use crate::expr::{self, Focus, Register, Space, Value};
use crate::timeline::Edit;
use wavesim_array::{DType, Num};

impl Debugger<'_> {
    pub(super) fn set(&mut self, text: &str) -> CommandResult {
        let (place, value) = text.split_once('=').ok_or("expected `set PLACE = VALUE`")?;
        self.assign(place.trim(), value.trim())
    }

    /// Changes a register or memory. `value` is an expression; for a VGPR without a lane, it is evaluated in
    /// each active lane.
    ///
    /// # Errors
    /// The register or memory does not exist or cannot be set, or the value does not fit.
    pub fn assign(&mut self, place: &str, value: &str) -> Result<(), String> {
        let is_variable = matches!(self.object(place, self.focus), Ok(Some(_)));
        let (place, dtype) = match place.rsplit_once('.') {
            Some((head, ty)) if !is_variable && !ty.contains(']') => {
                let dtype = DType::from_name(ty);
                let wrong = || format!("`{ty}` is not a type; types are {}", DType::names());
                (head.trim(), Some(dtype.ok_or_else(wrong)?))
            }
            _ => (place, None),
        };
        let wave = self.focus.wave;
        let wide = self.timeline.wave(wave).size() == 64;
        let first = place.split(|c: char| !(c.is_alphanumeric() || c == '_')).find(|word| !word.is_empty());
        let is_named = first.is_some_and(|name| self.timeline.prepared.debug.has_variable(name));
        if dtype.is_none()
            && is_named
            && let Some(object) = self.object(place, self.focus)?
        {
            let value = expr::evaluate(value, &self.timeline, self.focus)?;
            let edits = object.edits(&self.timeline, self.focus, value)?;
            return self.edit(edits);
        }
        if dtype.is_some() && is_named && matches!(self.object(place, self.focus), Ok(Some(_))) {
            return Err(format!("a variable has its own type: `set {place} = VALUE`"));
        }
        if self.timeline.is_outer_frame(wave) && expr::register(place, wide, self.arch()).is_some() {
            return Err("registers of an outer frame cannot be set (`frame 0`)".to_string());
        }
        let (name, index) = match place.strip_suffix(']').and_then(|t| t.rsplit_once('[')) {
            Some((name, index)) if expr::register(place, wide, self.arch()).is_none() => {
                match expr::evaluate(index, &self.timeline, self.focus)? {
                    Value::Int(v) => {
                        (name, Some(u64::try_from(v).map_err(|_| format!("{v} is not an index"))?))
                    }
                    Value::Float(_) => return Err("an index must be an integer".to_string()),
                }
            }
            _ => (place, None),
        };
        let one = |focus: Focus| expr::evaluate(value, &self.timeline, focus);
        let edits: Vec<Edit> = match expr::register(name, wide, self.arch()) {
            Some(Register::Sgpr(first, n)) => {
                let bits = bits(one(self.focus)?, dtype)?;
                let n = n.min(2).min(dtype.map_or(2, |d| d.size().div_ceil(4) as u16));
                (0..n)
                    .map(|k| Edit::Sgpr { wave, code: first + k, value: (bits >> (32 * k)) as u32 })
                    .collect()
            }
            Some(Register::Vgpr(register, n)) => {
                let w = self.timeline.wave(wave);
                let lanes: Vec<u32> = match index {
                    Some(lane) if lane < w.size() as u64 => vec![lane as u32],
                    Some(lane) => return Err(format!("there is no lane {lane}")),
                    None => (0..w.size()).filter(|l| w.exec() >> l & 1 == 1).collect(),
                };
                let n = n.min(2).max(dtype.map_or(1, |d| d.size().div_ceil(4) as u16));
                let mut edits = Vec::new();
                for lane in lanes {
                    let focus = if index.is_some() { self.focus } else { Focus { wave, lane } };
                    let bits = bits(one(focus)?, dtype)?;
                    edits.extend((0..n).map(|k| Edit::Vgpr {
                        wave,
                        lane,
                        register: register + k,
                        value: (bits >> (32 * k)) as u32,
                    }));
                }
                edits
            }
            Some(Register::Scc) => vec![Edit::Scc { wave, value: one(self.focus)?.bits() as u32 }],
            Some(Register::Pc) => {
                let bits = one(self.focus)?.bits();
                let pc = self.timeline.prepared.program.pc_at(bits);
                if self.timeline.prepared.program.inst_at(pc).is_none() {
                    return Err(format!("no instruction begins at 0x{bits:x}"));
                }
                vec![Edit::Pc { wave, value: pc }]
            }
            Some(_) => return Err(format!("{name} cannot be set")),
            None => {
                let value = one(self.focus)?;
                match (Space::named(name), index) {
                    (Some(space), Some(at)) => {
                        self.write(space, self.focus, at, &encoded(value, dtype.unwrap_or(DType::U32))?)?
                    }
                    (Some(_), None) => return Err(format!("an offset is expected: {name}[0x40]")),
                    (None, _) => self.memory_edits(name, index, value, dtype)?,
                }
            }
        };
        self.edit(edits)
    }

    /// Applies edits and updates the watched values: an edit by the user is not a hit.
    fn edit(&mut self, edits: Vec<Edit>) -> Result<(), String> {
        for edit in edits {
            self.timeline.edit(edit).map_err(|e| self.timeline.memory().explain(&e))?;
        }
        for watch in &mut self.watchpoints {
            watch.last = watch.target.read(&self.timeline);
        }
        Ok(())
    }

    /// Writes bytes to LDS, to the scratch of a lane, or to global memory.
    ///
    /// # Errors
    /// The bytes do not exist.
    pub fn write_bytes(
        &mut self,
        space: Space,
        focus: Focus,
        address: u64,
        bytes: &[u8],
    ) -> Result<(), String> {
        let edits = self.write(space, focus, address, bytes)?;
        self.edit(edits)
    }

    fn write(&self, space: Space, focus: Focus, address: u64, bytes: &[u8]) -> Result<Vec<Edit>, String> {
        // This also checks that the bytes exist.
        space.read(&self.timeline, focus, address, &mut vec![0; bytes.len()])?;
        let address = space.range(&self.timeline, focus, address, bytes.len())?;
        Ok((address..)
            .zip(bytes.iter().copied())
            .map(|(address, value)| space.edit(address, value))
            .collect())
    }

    fn memory_edits(
        &self,
        name: &str,
        index: Option<u64>,
        value: Value,
        dtype: Option<DType>,
    ) -> Result<Vec<Edit>, String> {
        let buffer = self
            .timeline
            .prepared
            .buffer(name)
            .ok_or_else(|| format!("there is no register or argument `{name}`"))?;
        let index = index.ok_or_else(|| format!("an element of {name} is expected: {name}[i]"))?;
        let size = buffer.dtype.size() as u64;
        if index.saturating_mul(size) >= buffer.len_bytes {
            return Err(format!("{name} has {} elements", buffer.len_bytes / size));
        }
        let dtype = dtype.unwrap_or(buffer.dtype);
        if dtype.size() > size as usize {
            return Err(format!(
                "an element of {name} has {size} bytes, {} has {}",
                dtype.name(),
                dtype.size()
            ));
        }
        let at = buffer.address + index * size;
        let bytes = encoded(value, dtype)?;
        Ok((at..).zip(bytes).map(|(address, value)| Edit::Memory { address, value }).collect())
    }
}

/// Encodes a value as bytes of a type.
pub(crate) fn encoded(value: Value, dtype: DType) -> Result<Vec<u8>, String> {
    let number = match value {
        Value::Int(v) => Num::Int(v),
        // In a register, a float is stored as the bits of an f32.
        Value::Float(_) if dtype == DType::U32 => Num::Int(value.bits() as i128),
        Value::Float(v) => Num::from(v),
    };
    let mut bytes = Vec::new();
    dtype.encode(number, &mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// Returns the register bits of a value, encoded in the type if there is one.
fn bits(value: Value, dtype: Option<DType>) -> Result<u64, String> {
    let Some(dtype) = dtype else { return Ok(value.bits()) };
    let mut wide = [0; 8];
    let bytes = encoded(value, dtype)?;
    wide[..bytes.len()].copy_from_slice(&bytes);
    Ok(u64::from_le_bytes(wide))
}
