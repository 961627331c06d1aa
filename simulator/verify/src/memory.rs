//! The memory that compiled code accesses: the frame, the registers of the wave, and tables. Each is at an address of its
//! own, which is a constant.

use crate::{VerifyError, unsupported};
use isa_export::smt::{Sort, Term, Terms};
use std::collections::BTreeMap;
use std::mem::offset_of;
use wavesim_machine::state::wave::{ALL_VGPRS, LANE_VECS, SGPRS as SCALARS};
use wavesim_machine::state::{LaneVec, Wave};
use wavesim_prove::{Register, Setup, initial_of_wave};

type Result<T> = std::result::Result<T, VerifyError>;

/// The argument of compiled code.
pub const FRAME: u64 = 0x1_0000_0000;
/// The lane vectors.
const VECTORS: u64 = 0x2_0000_0000;
/// The SGPRs; other fields of the wave are addressed from there.
const SCALARS_AT: u64 = 0x3_0000_0000;
/// The flags of lane vectors.
const FLAGS: u64 = 0x5_0000_0000;
/// The table of the bits of the lanes.
pub const LANE_BITS: u64 = 0x7000_0000_0000;

/// The size of each.
const SIZE: u64 = 1 << 24;

const LANE_VEC: u64 = size_of::<LaneVec>() as u64;
const HALF: u64 = LANE_VECS as u64 * LANE_VEC;

/// Words of 32 bits that were written or read, by their addresses.
#[derive(Clone, Default)]
pub struct Memory {
    words: BTreeMap<u64, Term>,
}

/// A place in the wave.
fn register(address: u64) -> Option<(u32, Register)> {
    if let Some(offset) = address.checked_sub(VECTORS).filter(|offset| *offset < 2 * HALF) {
        let (half, offset) = (offset / HALF, offset % HALF);
        let number = offset / LANE_VEC;
        let lane = 32 * half + offset % LANE_VEC / 4;
        return (number < ALL_VGPRS as u64).then_some((lane as u32, Register::Vector(number as u32)));
    }
    let offset = address.wrapping_sub(SCALARS_AT) as i64;
    if offset == offset_of!(Wave, scc) as i64 - offset_of!(Wave, sgprs) as i64 {
        return Some((0, Register::Scc));
    }
    let code = u32::try_from(offset).ok()? / 4;
    (code < SCALARS as u32).then_some((0, Register::Scalar(code)))
}

impl Memory {
    /// The word at an address.
    fn word(&mut self, terms: &mut Terms, setup: &Setup, address: u64) -> Result<Term> {
        if let Some(word) = self.words.get(&address) {
            return Ok(*word);
        }
        let word = start(terms, setup, address)?;
        self.words.insert(address, word);
        Ok(word)
    }

    /// Loads bytes: 1, 2 or a multiple of 4, and extends them with zeros to at least 64 bits.
    pub fn load(&mut self, terms: &mut Terms, setup: &Setup, address: u64, bytes: u64) -> Result<Term> {
        if bytes < 4 {
            if address % 4 + bytes > 4 {
                return unsupported("an access across words");
            }
            let word = self.word(terms, setup, address & !3)?;
            let part = terms.extract(word, 8 * (address % 4) as u32, 8 * bytes as u32);
            return Ok(terms.zero_extend(part, 64));
        }
        if !address.is_multiple_of(4) {
            return unsupported("an access across words");
        }
        let mut value = self.word(terms, setup, address)?;
        for k in 1..bytes / 4 {
            let high = self.word(terms, setup, address + 4 * k)?;
            value = terms.concat(high, value);
        }
        Ok(if terms.width(value) < 64 { terms.zero_extend(value, 64) } else { value })
    }

    /// Stores the low bytes of a value.
    pub fn store(
        &mut self,
        terms: &mut Terms,
        setup: &Setup,
        address: u64,
        bytes: u64,
        value: Term,
    ) -> Result<()> {
        if bytes < 4 {
            if address % 4 + bytes > 4 {
                return unsupported("an access across words");
            }
            let word = self.word(terms, setup, address & !3)?;
            let part = terms.extract(value, 0, 8 * bytes as u32);
            let word = terms.replace(word, part, 8 * (address % 4) as u32);
            self.words.insert(address & !3, word);
            return Ok(());
        }
        if !address.is_multiple_of(4) {
            return unsupported("an access across words");
        }
        // What lies outside of all objects is no place to write.
        start(terms, setup, address)?;
        for k in 0..bytes / 4 {
            let word = terms.extract(value, 32 * k as u32, 32);
            self.words.insert(address + 4 * k, word);
        }
        Ok(())
    }

    /// The registers that were read or written, with their values.
    pub fn registers(&self) -> impl Iterator<Item = ((u32, Register), Term)> {
        self.words.iter().filter_map(|(at, word)| Some((register(*at)?, *word)))
    }
}

/// A word at the start.
fn start(terms: &mut Terms, setup: &Setup, at: u64) -> Result<Term> {
    let half = |terms: &mut Terms, value: u64, high: bool| {
        terms.constant((if high { value >> 32 } else { value & 0xffff_ffff }) as u128, 32)
    };
    if let Some(place) = register(at) {
        let (lane, register) = place;
        let value = initial_of_wave(terms, setup, lane, register);
        return Ok(terms.zero_extend(value, 32));
    }
    let inside = |base: u64| at.checked_sub(base).filter(|offset| *offset < SIZE);
    if let Some(offset) = inside(FRAME) {
        let high = offset % 8 == 4;
        return Ok(match offset / 8 {
            0 => half(terms, VECTORS, high),
            1 => half(terms, SCALARS_AT, high),
            2 => half(terms, FLAGS, high),
            // Of the rest nothing is known.
            _ => terms.var(&format!("frame.{offset}"), Sort::Bits(32)),
        });
    }
    if inside(FLAGS).is_some() {
        // No fact is known of any register.
        return Ok(terms.constant(0, 32));
    }
    if let Some(offset) = inside(LANE_BITS).filter(|offset| *offset < 128) {
        return Ok(terms.constant(1 << (offset / 4), 32));
    }
    if let Some(offset) = inside(VECTORS) {
        return Ok(terms.var(&format!("temporary.{offset}"), Sort::Bits(32)));
    }
    unsupported(format!("an access at {at:#x}"))
}
