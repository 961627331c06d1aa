//! Bytes of global memory, LDS and scratch.
//!
//! Memory references are addresses (`0x700000000000`), `lds+0x40` and `scratch:WAVE:LANE+0x8`.

use super::protocol::MemoryArguments;
use super::session::{Answer, Session};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use wavesim_debug::expr::{Focus, Space};

/// Maximum number of bytes that one request reads.
const LIMIT: u64 = 1 << 20;

impl Session<'_, '_> {
    pub fn read_memory(&mut self, arguments: MemoryArguments) -> Answer {
        let (space, focus, at) = self.bytes_at(&arguments)?;
        let count = arguments.count.min(LIMIT) as usize;
        let mut bytes = vec![0; count];
        let all = space.read(&self.debugger.timeline, focus, at, &mut bytes).is_ok();
        if !all {
            // Return the bytes up to the first one that does not exist.
            let one =
                |k: &usize| space.read(&self.debugger.timeline, focus, at + *k as u64, &mut [0]).is_ok();
            let len = (0..count).take_while(one).count();
            bytes.truncate(len);
            if len > 0 {
                space.read(&self.debugger.timeline, focus, at, &mut bytes)?;
            }
        }
        let missing = arguments.count - bytes.len() as u64;
        let mut body = json!({"address": format!("0x{at:x}")});
        if !bytes.is_empty() {
            body["data"] = json!(STANDARD.encode(&bytes));
        }
        if missing > 0 {
            body["unreadableBytes"] = json!(missing);
        }
        Ok(body)
    }

    pub fn write_memory(&mut self, arguments: MemoryArguments) -> Answer {
        let (space, focus, at) = self.bytes_at(&arguments)?;
        let bytes = STANDARD.decode(&arguments.data).map_err(|e| format!("the data is not base64: {e}"))?;
        self.debugger.write_bytes(space, focus, at, &bytes)?;
        Ok(json!({"bytesWritten": bytes.len()}))
    }

    fn bytes_at(&self, arguments: &MemoryArguments) -> Result<(Space, Focus, u64), String> {
        let text = arguments.memory_reference.trim();
        let (base, offset) = text.split_once('+').unwrap_or((text, "0"));
        let wrong = || format!("`{text}` is not a reference to memory");
        let focus = self.debugger.focus;
        let (space, focus, start) = if base == "lds" {
            (Space::Lds, focus, 0)
        } else if let Some(owner) = base.strip_prefix("scratch:") {
            let (wave, lane) = owner.split_once(':').ok_or_else(wrong)?;
            let wave = wave.parse().ok().filter(|w| *w < self.debugger.timeline.waves()).ok_or_else(wrong)?;
            let size = self.debugger.timeline.wave(wave).size();
            let lane = lane.parse().ok().filter(|l| *l < size).ok_or_else(wrong)?;
            (Space::Scratch, Focus { wave, lane }, 0)
        } else {
            (Space::Global, focus, number(base).ok_or_else(wrong)?)
        };
        let at = start.wrapping_add(number(offset).ok_or_else(wrong)?).wrapping_add_signed(arguments.offset);
        Ok((space, focus, at))
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
