//! The command `set`: changes registers and memory.

use super::{Debugger, Done};
use crate::expr::{self, Register, Value};
use crate::timeline::Edit;

impl Debugger<'_> {
    pub(super) fn set(&mut self, text: &str) -> Done {
        let (place, value) = text.split_once('=').ok_or("expected `set PLACE = VALUE`")?;
        let place = place.trim();
        let value = expr::evaluate(value, &self.timeline, self.focus)?;
        let wave = self.focus.wave;
        let wide = self.timeline.wave(wave).size == 64;
        let (name, index) = match place.strip_suffix(']').and_then(|t| t.rsplit_once('[')) {
            Some((name, index)) if expr::register(place, wide, self.arch()).is_none() => {
                match expr::evaluate(index, &self.timeline, self.focus)? {
                    Value::Int(v) => (name, Some(v as u64)),
                    Value::Float(_) => return Err("an index must be an integer".to_string()),
                }
            }
            _ => (place, None),
        };
        let edits: Vec<Edit> = match expr::register(name, wide, self.arch()) {
            Some(Register::Sgpr(first, n)) => (0..n.min(2))
                .map(|k| Edit::Sgpr { wave, code: first + k, value: (value.bits() >> (32 * k)) as u32 })
                .collect(),
            Some(Register::Vgpr(register, _)) => {
                let w = self.timeline.wave(wave);
                let lanes: Vec<u32> = match index {
                    Some(lane) if lane < w.size as u64 => vec![lane as u32],
                    Some(lane) => return Err(format!("there is no lane {lane}")),
                    None => (0..w.size).filter(|l| w.exec() >> l & 1 == 1).collect(),
                };
                let value = value.bits() as u32;
                lanes.into_iter().map(|lane| Edit::Vgpr { wave, lane, register, value }).collect()
            }
            Some(Register::Scc) => vec![Edit::Scc { wave, value: value.bits() as u32 }],
            Some(Register::Pc) => {
                let pc = self.timeline.prepared.program.pc_at(value.bits());
                if self.timeline.prepared.program.inst_at(pc).is_none() {
                    return Err(format!("no instruction begins at 0x{:x}", value.bits()));
                }
                vec![Edit::Pc { wave, value: pc }]
            }
            Some(_) => return Err(format!("{name} cannot be set")),
            None => self.memory_edits(name, index, value)?,
        };
        for edit in edits {
            self.timeline.edit(edit).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    pub(super) fn memory_edits(
        &self,
        name: &str,
        index: Option<u64>,
        value: Value,
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
        let mut bytes = Vec::new();
        let number = match value {
            Value::Int(v) => wavesim_array::Num::Int(v),
            Value::Float(v) => wavesim_array::Num::Float(v),
        };
        buffer.dtype.encode(number, &mut bytes).map_err(|e| e.to_string())?;
        let at = buffer.address + index * size;
        Ok((at..).zip(bytes).map(|(address, value)| Edit::Memory { address, value }).collect())
    }
}
