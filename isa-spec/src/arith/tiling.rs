//! Tiled layouts of images: the tables in `data/layout`, in which each bit of the offset in a block is the exclusive
//! or of bits of the coordinates.

use std::sync::LazyLock;

/// The tables, by the number that the pseudocode's function `tiling` returns.
const TABLES: [&str; 3] = [
    include_str!("../../layout/rdna3.txt"),
    include_str!("../../layout/rdna35.txt"),
    include_str!("../../layout/rdna4.txt"),
];

/// The layout of a block: a line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// The logarithms of width, height and depth in elements.
    pub size: [u32; 3],
    /// The logarithm of the bytes of an element.
    pub bytes: u32,
    /// Levels of elements of less than four bytes share the tail if those of four bytes would (modes Z of RDNA 3).
    pub depth_order: bool,
    /// The places of levels in the tail are known.
    pub tail: bool,
    /// For each bit of the offset above those in an element: the bits of a place ([`place`]) whose exclusive or it is.
    masks: Vec<u64>,
}

/// The bits of a key: `sw_mode` in [4:0], an image with depth in [5], the logarithm of samples in [7:6], that of the
/// bytes of an element in [10:8].
const KEYS: usize = 1 << 11;

type Table = Vec<Option<Tile>>;

static PARSED: LazyLock<[Table; 3]> = LazyLock::new(|| TABLES.map(parse));

/// The number of a layout in a table, of a `sw_mode` and the logarithms of samples and of the bytes of an element.
pub fn key(mode: u32, depth: bool, samples: u32, bytes: u32) -> u32 {
    mode | u32::from(depth) << 5 | samples << 6 | bytes << 8
}

/// Column, row, slice or layer, and sample, in elements.
pub fn place(x: u32, y: u32, z: u32, sample: u32) -> u64 {
    x as u64 & 0xffff | (y as u64 & 0xffff) << 16 | (z as u64 & 0xffff) << 32 | (sample as u64) << 48
}

/// Reads a table; lines that are wrong have no layout, which the tests of the tables find.
fn parse(text: &str) -> Table {
    let mut table = vec![None; KEYS];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((modes, tile, depths, samples)) = parse_line(line) else { continue };
        for mode in modes.split(',') {
            let number = mode.trim_end_matches(char::is_alphabetic);
            let Ok(number) = number.parse::<u32>() else { continue };
            let tile = Tile { depth_order: mode.ends_with('z'), tail: !mode.ends_with('n'), ..tile.clone() };
            for depth in depths {
                if let Some(entry) = table.get_mut(key(number, *depth, samples, tile.bytes) as usize) {
                    *entry = Some(tile.clone());
                }
            }
        }
    }
    table
}

/// The modes of a line, its layout, whether it is for images without or with depth, and the logarithm of samples.
fn parse_line(line: &str) -> Option<(&str, Tile, &'static [bool], u32)> {
    let (what, bits) = line.split_once(':')?;
    let what: Vec<&str> = what.split_whitespace().collect();
    let [modes, kind, samples, bytes, size] = what[..] else { return None };
    let log = |text: &str| text.parse::<u32>().ok()?.checked_ilog2();
    let size: Vec<u32> = size.split('x').filter_map(log).collect();
    let mask = |bit: &str| bit.split('^').map(term).sum::<Option<u64>>();
    let masks = bits.split_whitespace().map(mask).collect::<Option<Vec<u64>>>()?;
    let tile =
        Tile { size: size.try_into().ok()?, bytes: log(bytes)?, depth_order: false, tail: true, masks };
    let depths: &[bool] = match kind {
        "flat" => &[false],
        "thin" => &[false, true],
        "thick" => &[true],
        _ => return None,
    };
    Some((modes, tile, depths, log(samples)?))
}

/// The bit of a place that a name such as `y3` means.
fn term(name: &str) -> Option<u64> {
    let first = match name.get(..1)? {
        "x" => 0,
        "y" => 16,
        "z" => 32,
        "s" => 48,
        _ => return None,
    };
    Some(1 << (first + name.get(1..)?.parse::<u32>().ok().filter(|bit| *bit < 16)?))
}

/// The layout of a block; `None` if the key is none of the table's.
pub fn tile(table: u32, key: u32) -> Option<&'static Tile> {
    PARSED.get(table as usize)?.get(key as usize)?.as_ref()
}

impl Tile {
    /// The logarithm of the bytes of a block.
    pub fn bits(&self) -> u32 {
        self.bytes + self.masks.len() as u32
    }

    /// The offset of an element in its block.
    pub fn offset(&self, place: u64) -> u32 {
        let bit = |(at, mask): (usize, &u64)| ((place & mask).count_ones() & 1) << at;
        self.masks.iter().enumerate().map(bit).sum::<u32>() << self.bytes
    }
}

/// A block's logarithms: of its bytes in [7:0], of its width in [15:8], height in [23:16] and depth in [29:24];
/// [`Tile::depth_order`] in [30], and in [31] that places in the tail are not known. 0 without a layout.
pub fn tile_block(table: u32, key: u32) -> u32 {
    tile(table, key).map_or(0, |tile| {
        let [width, height, depth] = tile.size;
        let flags = u32::from(tile.depth_order) << 30 | u32::from(!tile.tail) << 31;
        tile.bits() | width << 8 | height << 16 | depth << 24 | flags
    })
}

/// The offset of an element in its block, in bytes; 0 without a layout.
pub fn tile_offset(table: u32, key: u32, place: u64) -> u32 {
    tile(table, key).map_or(0, |tile| tile.offset(place))
}
