//! What stores have left in memory: to tell two waves that store the same value from two that store different ones.

use std::collections::HashMap;
use wavesim_engine::observe::Done;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::memory::Memory;

const PAGE: u64 = 4096;

/// Bytes as the last store to them left them.
#[derive(Default)]
pub struct Values {
    lds: Vec<u8>,
    /// Of global memory, by number; made where they are touched.
    pages: HashMap<u64, Box<[u8; PAGE as usize]>>,
    scratchpad: Vec<u8>,
}

impl Values {
    /// A workgroup begins: its LDS holds nothing known. Global memory keeps what it had.
    pub fn start(&mut self) {
        self.lds.clear();
    }

    /// Exchanges the LDS that it follows.
    pub fn swap_lds(&mut self, lds: &mut Vec<u8>) {
        std::mem::swap(&mut self.lds, lds);
    }

    /// Whether a store, which is done, has left its bytes as an earlier store had.
    pub fn unchanged(&mut self, a: &Access, done: &Done<'_>, memory: &Memory) -> bool {
        let Some(now) = present(a, done, memory, &mut self.scratchpad) else { return false };
        match a.place {
            Place::Lds => {
                let at = a.address as usize;
                self.lds.get(at..at + now.len()).is_some_and(|before| before == now)
            }
            _ => {
                let mut at = a.address;
                now.iter().all(|byte| {
                    let page = self.pages.get(&(at / PAGE));
                    let before = page.map(|page| page[(at % PAGE) as usize]);
                    at += 1;
                    before == Some(*byte)
                })
            }
        }
    }

    /// Takes over what a store has left.
    pub fn record(&mut self, a: &Access, done: &Done<'_>, memory: &Memory) {
        if a.place == Place::Lds {
            self.lds.resize(done.lds.len(), 0);
        }
        let Some(now) = present(a, done, memory, &mut self.scratchpad) else { return };
        if a.place == Place::Lds {
            let at = a.address as usize;
            if let Some(bytes) = self.lds.get_mut(at..at + now.len()) {
                bytes.copy_from_slice(now);
            }
            return;
        }
        let (mut at, mut rest) = (a.address, now);
        while !rest.is_empty() {
            let from = (at % PAGE) as usize;
            let len = rest.len().min(PAGE as usize - from);
            let page = self.pages.entry(at / PAGE).or_insert_with(|| Box::new([0; PAGE as usize]));
            page[from..from + len].copy_from_slice(&rest[..len]);
            rest = &rest[len..];
            at += len as u64;
        }
    }
}

/// The bytes of an access as they are now.
fn present<'b>(a: &Access, done: &'b Done<'_>, memory: &Memory, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    let len = a.len_bytes() as usize;
    match a.place {
        Place::Lds => done.lds.get(a.address as usize..)?.get(..len),
        Place::Global => {
            buffer.resize(len, 0);
            memory.read(a.address, buffer).ok()?;
            Some(buffer)
        }
        _ => None,
    }
}
