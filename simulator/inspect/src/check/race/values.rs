//! What stores have left in memory: to tell two waves that store the same value from two that store different ones.

use super::super::shadow_memory::{RECENT, slot};
use wavesim_engine::observe::Done;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::memory::Memory;

const PAGE: u64 = 4096;

/// Pages that are found without the index.
struct Recent(Box<[(u64, usize); RECENT]>);

impl Default for Recent {
    fn default() -> Recent {
        Recent(Box::new([(u64::MAX, 0); RECENT]))
    }
}

/// Bytes as the last store to them left them.
#[derive(Default)]
pub struct Values {
    lds: Vec<u8>,
    /// Of global memory; made where they are touched.
    pages: Vec<Box<[u8]>>,
    /// Index in `pages` by number of the page.
    index: foldhash::HashMap<u64, usize>,
    /// Pages of recent stores, with their index.
    recent: Recent,
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
                    let page = self.index.get(&(at / PAGE)).map(|&page| &self.pages[page]);
                    let before = page.map(|page| page[(at % PAGE) as usize]);
                    at += 1;
                    before == Some(*byte)
                })
            }
        }
    }

    /// Takes over what a store has left.
    #[inline]
    pub fn record(&mut self, a: &Access, done: &Done<'_>, memory: &Memory) {
        let len = a.len_bytes() as usize;
        match a.place {
            Place::Lds => {
                if self.lds.len() != done.lds.len() {
                    self.lds.resize(done.lds.len(), 0);
                }
                let range = a.address as usize..a.address as usize + len;
                if let (Some(before), Some(now)) = (self.lds.get_mut(range.clone()), done.lds.get(range)) {
                    before.copy_from_slice(now);
                }
            }
            Place::Global => {
                let (mut at, mut rest) = (a.address, len);
                while rest > 0 {
                    let from = (at % PAGE) as usize;
                    let len = rest.min(PAGE as usize - from);
                    // What cannot be read was not stored.
                    let _ = memory.read(at, &mut self.page(at / PAGE)[from..from + len]);
                    rest -= len;
                    at += len as u64;
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn page(&mut self, number: u64) -> &mut [u8] {
        let at = match self.recent.0[slot(number)] {
            (recent, at) if recent == number => at,
            _ => self.find_or_make(number),
        };
        &mut self.pages[at]
    }

    #[inline(never)]
    fn find_or_make(&mut self, number: u64) -> usize {
        let pages = &mut self.pages;
        let at = *self.index.entry(number).or_insert_with(|| {
            pages.push(vec![0; PAGE as usize].into());
            pages.len() - 1
        });
        self.recent.0[slot(number)] = (number, at);
        at
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
