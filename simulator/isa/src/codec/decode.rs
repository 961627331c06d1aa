//! The decoder: converts microcode words to an [`Inst`], using an index that is built once per architecture.

use super::condition::Predicate;
use crate::arch::Arch;
use crate::inst::Inst;
use isa_spec::tables::{ArchTable, Encoding, Entry, EntryId, Field, MAX_FIELDS, OperandSig};
use std::sync::LazyLock;

/// The reason why words cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum DecodeError {
    /// No encoding and opcode match the first word.
    #[error("0x{word:08x} is not an instruction of {arch}")]
    Unknown { word: u32, arch: &'static str },
    /// The instruction is longer than the given words.
    #[error("the instruction starting with 0x{word:08x} needs {needed} words, {given} are given")]
    Truncated { word: u32, needed: usize, given: usize },
}

const NONE: EntryId = EntryId::MAX;

/// Decoding information for one encoding.
pub(super) struct DecodeInfo {
    words: usize,
    /// The fixed bits of the encoding, without the opcode.
    mask: u128,
    pub(super) value: u128,
    opcode: Vec<BitRange>,
    /// Bit ranges of the fields that are not fixed.
    pub(super) ranges: Vec<BitRange>,
    /// The valid bits of each field's value.
    pub(super) valid_bits: [u32; MAX_FIELDS],
    /// Initial field values, which contain the fixed fields.
    fixed: [u32; MAX_FIELDS],
    /// The encoding's conditions.
    conditions: Vec<Predicate>,
    /// Entry by opcode.
    by_opcode: Vec<EntryId>,
    /// Whether all forms of an opcode's instruction are in this encoding, as with a mandatory literal. The
    /// condition is then ignored.
    only_encoding: Vec<bool>,
    /// Shift of each field's value: register fields narrower than 7 bits count register groups.
    pub(super) shift: [u8; MAX_FIELDS],
    pub(super) vopd: Option<Vopd>,
}

/// Field indices of VOPD's second half.
pub(super) struct Vopd {
    /// OPY.
    pub op_y: usize,
    /// VDSTX.
    pub dst_x: usize,
    /// VDSTY.
    pub dst_y: usize,
    /// VDSTY lacks its low bit, which is the inverse of VDSTX's.
    pub parity: bool,
    /// Entry by the opcode of the second half; `by_opcode` has the first halves.
    seconds: Vec<EntryId>,
    literal: bool,
}

/// The decoding information of an encoding, given by its index in the architecture's table.
pub(super) fn encoding(arch: Arch, enc: u8) -> &'static DecodeInfo {
    let index = &INDEX[arch as usize];
    &index.encs[index.positions[enc as usize] as usize]
}

/// A bit range of an instruction that belongs to a field.
pub(super) struct BitRange {
    pub(super) field: u8,
    /// Index of the 64-bit half.
    half: u8,
    /// Bit positions in the half and in the field's value.
    from: u8,
    to: u8,
    mask: u32,
}

impl BitRange {
    /// The ranges of a field whose value is shifted by `shift`. No range crosses the 64-bit boundary.
    fn of(index: usize, field: &Field, shift: u8) -> Vec<BitRange> {
        let mut ranges = Vec::new();
        let mut to = shift;
        for &(offset, count) in field.ranges {
            let (mut offset, mut left) = (offset, count);
            while left > 0 {
                let (half, from) = (offset / 64, offset % 64);
                let len = left.min(64 - from).min(32);
                let mask = u32::MAX >> (32 - len);
                ranges.push(BitRange { field: index as u8, half, from, to, mask });
                (offset, left, to) = (offset + len, left - len, to + len);
            }
        }
        ranges
    }

    #[inline(always)]
    fn value(&self, halves: [u64; 2]) -> u32 {
        ((halves[self.half as usize & 1] >> (self.from & 63)) as u32 & self.mask) << (self.to & 31)
    }

    /// The inverse of `value`: sets the bits for a field value.
    #[inline(always)]
    pub(super) fn insert(&self, halves: &mut [u64; 2], value: u32) {
        halves[self.half as usize & 1] |= ((value >> (self.to & 31) & self.mask) as u64) << (self.from & 63);
    }
}

struct Index {
    table: &'static ArchTable,
    encs: Vec<DecodeInfo>,
    /// Position in `encs` by the encoding's index in the table.
    positions: Vec<u16>,
    /// Encodings to try, in order, by the top 9 bits of the first word.
    by_top: Vec<Vec<u16>>,
}

static INDEX: LazyLock<Vec<Index>> =
    LazyLock::new(|| Arch::ALL.into_iter().map(|a| build(a.table())).collect());

fn build(table: &'static ArchTable) -> Index {
    let mut order: Vec<usize> = (0..table.encodings.len()).collect();
    order.sort_by_key(|&at| table.encodings[at].order);
    let mut encs = Vec::new();
    let mut positions = vec![0; order.len()];
    let mut by_top = vec![Vec::new(); 512];
    for at in order {
        let encoding = &table.encodings[at];
        let op_width = encoding.op_field.map_or(0, |f| encoding.fields[f as usize].width());
        let find = |name: &str| encoding.fields.iter().position(|f| f.name == name);
        let entries = || table.entries.iter().enumerate().filter(|(_, e)| e.enc as usize == at);
        // Of a dual instruction, operations may be possible in one half only.
        let writes = |entry: &Entry, field: Option<usize>| {
            let own = |o: &OperandSig| o.field.map(usize::from) == field;
            field.is_none() || table.signatures[entry.sig as usize].iter().any(own)
        };
        let opcodes = |field: Option<usize>| {
            let mut by_opcode = vec![NONE; 1 << op_width.min(16)];
            for (id, entry) in entries().filter(|(_, e)| writes(e, field)) {
                // VOPD's second half has more opcodes than the first.
                if entry.opcode as usize >= by_opcode.len() {
                    by_opcode.resize(entry.opcode as usize + 1, NONE);
                }
                by_opcode[entry.opcode as usize] = id as EntryId;
            }
            by_opcode
        };
        let by_opcode = opcodes(find("VDSTX"));
        let only_encoding = by_opcode
            .iter()
            .map(|&id| {
                id != NONE && {
                    let inst = &table.instructions[table.entries[id as usize].inst as usize];
                    table.entries_of(inst).iter().all(|e| e.enc as usize == at)
                }
            })
            .collect();
        let (mut mask, mut value) = (0, 0);
        for field in encoding.fields {
            if let Some(fixed) = field.fixed {
                mask = field.insert(mask, u32::MAX);
                value = field.insert(value, fixed);
            }
        }
        // Of the other fixed bits, the decoder takes any.
        mask &= encoding.mask;
        let mut shift = [0; MAX_FIELDS];
        for entry in table.entries.iter().filter(|e| e.enc as usize == at) {
            for operand in table.signatures[entry.sig as usize] {
                let Some(field) = operand.field else { continue };
                let width = encoding.fields[field as usize].width();
                if table.operand_types[operand.ty as usize].name.starts_with("OPR_SREG") && width < 7 {
                    shift[field as usize] = 7 - width as u8;
                }
            }
        }
        let vopd = match (find("OPY"), find("VDSTX"), find("VDSTY")) {
            (Some(op_y), Some(dst_x), Some(dst_y)) => {
                let parity = encoding.fields[dst_y].width() < encoding.fields[dst_x].width();
                let (seconds, literal) = (opcodes(Some(dst_y)), find("LITERAL").is_some());
                Some(Vopd { op_y, dst_x, dst_y, parity, seconds, literal })
            }
            _ => None,
        };
        let (top_mask, top_value) = ((mask >> 23) as u32 & 0x1ff, (value >> 23) as u32 & 0x1ff);
        for (top, list) in by_top.iter_mut().enumerate() {
            if top as u32 & top_mask == top_value {
                list.push(encs.len() as u16);
            }
        }
        let words = encoding.bits as usize / 32;
        let (ranges, fixed) = ranges(encoding, &shift);
        let mut valid_bits = [0; MAX_FIELDS];
        for range in &ranges {
            valid_bits[range.field as usize] |= range.mask << range.to;
        }
        positions[at] = encs.len() as u16;
        let opcode =
            encoding.op_field.map_or(Vec::new(), |f| BitRange::of(0, &encoding.fields[f as usize], 0));
        let conditions =
            encoding.conditions.iter().map(|c| Predicate::new(&c.expr, encoding.fields)).collect();
        encs.push(DecodeInfo {
            words,
            mask,
            value,
            opcode,
            ranges,
            valid_bits,
            fixed,
            conditions,
            by_opcode,
            only_encoding,
            shift,
            vopd,
        });
    }
    Index { table, encs, positions, by_top }
}

/// The bit ranges and the fixed values of an encoding's fields.
fn ranges(encoding: &Encoding, shift: &[u8; MAX_FIELDS]) -> (Vec<BitRange>, [u32; MAX_FIELDS]) {
    let (mut ranges, mut fixed) = (Vec::new(), [0; MAX_FIELDS]);
    for (at, field) in encoding.fields.iter().enumerate() {
        match field.fixed {
            Some(value) => fixed[at] = value << shift[at],
            None => ranges.extend(BitRange::of(at, field, shift[at])),
        }
    }
    (ranges, fixed)
}

/// Decodes the instruction at the start of `words`.
pub fn decode(arch: Arch, words: &[u32]) -> Result<Inst, DecodeError> {
    let index = &INDEX[arch as usize];
    let Some(&first) = words.first() else {
        return Err(DecodeError::Truncated { word: 0, needed: 1, given: 0 });
    };
    let word = |at: usize| words.get(at).copied().unwrap_or(0) as u64;
    let halves = [first as u64 | word(1) << 32, word(2) | word(3) << 32];
    let mut short = None;
    for &at in &index.by_top[(first >> 23) as usize] {
        let enc = &index.encs[at as usize];
        if (first ^ enc.value as u32) & enc.mask as u32 != 0 {
            continue;
        }
        if let Some(inst) = try_encoding(index, enc, halves, words.len(), &mut short) {
            return Ok(inst);
        }
    }
    Err(match short {
        Some(needed) => DecodeError::Truncated { word: first, needed, given: words.len() },
        None => DecodeError::Unknown { word: first, arch: arch.name() },
    })
}

fn try_encoding(
    index: &Index,
    enc: &DecodeInfo,
    halves: [u64; 2],
    given: usize,
    short: &mut Option<usize>,
) -> Option<Inst> {
    let opcode = enc.opcode.iter().fold(0, |opcode, range| opcode | range.value(halves));
    let entry_id = *enc.by_opcode.get(opcode as usize)?;
    if entry_id == NONE {
        return None;
    }
    let entry = &index.table.entries[entry_id as usize];
    let mut holds = enc.vopd.is_none() && enc.only_encoding[opcode as usize]
        || enc.conditions.get(entry.cond as usize)?.holds(halves);
    if !holds && enc.vopd.is_none() {
        return None;
    }
    let mut fields = enc.fixed;
    for range in &enc.ranges {
        if let Some(value) = fields.get_mut(range.field as usize) {
            *value |= range.value(halves);
        }
    }
    let mut entry_y = NONE;
    if let Some(vopd) = &enc.vopd {
        entry_y = *vopd.seconds.get(fields[vopd.op_y] as usize)?;
        if entry_y == NONE {
            return None;
        }
        // If one half has a mandatory literal, the instruction has the literal form even if no source is a
        // literal.
        if vopd.literal && !holds {
            let plain = |e: &&DecodeInfo| e.vopd.as_ref().is_some_and(|v| v.parity && !v.literal);
            let base = index.encs.iter().find(plain);
            let is_in = |list: &[EntryId], op: u32| list.get(op as usize).is_some_and(|&e| e != NONE);
            let first = base.is_some_and(|b| is_in(&b.by_opcode, opcode));
            let second = base.and_then(|b| b.vopd.as_ref());
            holds = !first || !second.is_some_and(|v| is_in(&v.seconds, fields[vopd.op_y]));
        }
        if vopd.parity {
            fields[vopd.dst_y] = fields[vopd.dst_y] << 1 | (fields[vopd.dst_x] & 1 ^ 1);
        }
    }
    if !holds {
        return None;
    }
    if given < enc.words {
        short.get_or_insert(enc.words);
        return None;
    }
    let bits = halves[0] as u128 | (halves[1] as u128) << 64;
    if (bits ^ enc.value) & enc.mask != 0 {
        return None;
    }
    Some(Inst { entry: entry_id, entry_y, size: enc.words as u8 * 4, fields })
}
