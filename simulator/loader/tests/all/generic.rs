//! Data files.

use wavesim_loader::generic::{data, raw_data};

#[test]
fn data_lines_parse() {
    let text = "0: 7\n0x10:-1 # a comment\n\n 0b11 : 0xffffffff";
    assert_eq!(data(text).unwrap(), [(0, 7), (16, u32::MAX), (3, u32::MAX)]);
    let errors = data("1 2\n0: x\n-1: 2\n5: 0x1ffffffff").unwrap_err();
    let found: Vec<_> = errors.iter().map(|e| (e.line, e.column, &e.error.message[..])).collect();
    assert_eq!(
        found,
        [
            (1, 1, "a line of data is an address, `:` and a value"),
            (2, 4, "`x` is not a value"),
            (3, 1, "-1 does not fit 32 bits"),
            (4, 4, "8589934591 does not fit 32 bits"),
        ]
    );
}

#[test]
fn raw_words_are_little_endian() {
    assert_eq!(raw_data(&[1, 0, 0, 0, 2, 1]), [(0, 1), (1, 0x102)]);
}
