//! The tables of tiled layouts, without the code that reads them.

use isa_spec::arith::tiling;

const TABLES: [&str; 3] = [
    include_str!("../../../data/layout/rdna3.txt"),
    include_str!("../../../data/layout/rdna35.txt"),
    include_str!("../../../data/layout/rdna4.txt"),
];

/// Every line has a layout, in which each element of a block has a place of its own: over the bits of coordinates inside a
/// block, the exclusive ors have full rank.
#[test]
fn every_layout_is_a_bijection_of_its_block() {
    let mut count = 0;
    for (table, text) in (0..).zip(TABLES) {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split([' ', ':', 'x']).filter(|word| !word.is_empty()).collect();
            let [samples, bytes, width, height, depth] =
                [2, 3, 4, 5, 6].map(|k| words[k].parse::<u32>().unwrap().ilog2());
            for mode in words[0].split(',') {
                let mode = mode.trim_end_matches(char::is_alphabetic).parse().unwrap();
                let key = tiling::key(mode, words[1] == "thick", samples, bytes);
                let tile = tiling::tile(table, key).unwrap_or_else(|| panic!("{line}"));
                assert_eq!((tile.size, tile.bytes), ([width, height, depth], bytes), "{line}");
                let bits = (0..width).chain((0..height).map(|bit| 16 + bit));
                let bits = bits.chain((0..depth).map(|bit| 32 + bit)).chain((0..samples).map(|bit| 48 + bit));
                let mut basis: Vec<u32> = Vec::new();
                for bit in bits {
                    let mut offset = tile.offset(1 << bit);
                    basis.iter().for_each(|other| offset = offset.min(offset ^ other));
                    assert!(offset != 0, "bit {bit} of {line}");
                    basis.push(offset);
                }
                assert_eq!(basis.len() as u32 + bytes, tile.bits(), "{line}");
                count += 1;
            }
        }
    }
    assert!(count >= 315, "{count}");
}
