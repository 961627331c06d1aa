//! Line tables of code objects.

use object::{Object, ObjectSection};
use std::ops::Range;
use wavesim_loader::line_table::{LineTable, within};

/// The addresses of the code.
const TEXT: Range<u64> = 0x1600..0x1700;

fn lines(name: &str, change: impl Fn(&mut Vec<u8>)) -> LineTable {
    let path = format!("{}/../../tests/filetests/check/objects/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    LineTable::read(&object::File::parse(&*bytes).unwrap(), TEXT)
}

#[test]
fn names_are_relative_to_the_compilers_folder() {
    let names = [
        ("/src", "/src/a.cl", "a.cl"),
        ("/src/", "/src//b/a.cl", "b/a.cl"),
        ("/src", "/srcs/a.cl", "/srcs/a.cl"),
        ("", "/a.cl", "/a.cl"),
        ("C:\\src", "C:\\src\\a.cl", "a.cl"),
    ];
    for (folder, path, name) in names {
        assert_eq!(within(folder, path), name, "{folder} {path}");
    }
}

/// DWARF 5 and compressed DWARF 4 have the same contents.
#[test]
fn addresses_map_to_lines() {
    for name in ["neighbours.gfx1100.co", "neighbours.compressed.co"] {
        let table = lines(name, |_| {});
        let place = |address| table.line(address).map(|l| (l.line, l.column));
        assert_eq!(place(0x1640), Some((3, 15)), "{name}");
        assert_eq!(place(0x1644), Some((3, 15)), "{name}: inside of an instruction's row");
        assert_eq!(place(0x1648), Some((5, 14)), "{name}");
        assert_eq!((place(0x15fc), place(0x1664)), (None, None), "{name}: outside of the function");
        let file = &table.files()[table.line(0x1640).unwrap().file as usize];
        assert_eq!((&*file.name, &*file.path), ("neighbours.cl", "/src/neighbours.cl"), "{name}");
    }
}

/// Damaged tables yield lines of existing files or none.
#[test]
fn corrupt_line_tables_are_not_errors() {
    let at = |bytes: &[u8], name: &str| {
        let file = object::File::parse(bytes).unwrap();
        let (start, len) = file.section_by_name(name).unwrap().file_range().unwrap();
        start as usize..(start + len) as usize
    };
    for section in [".debug_line", ".debug_info", ".debug_abbrev", ".debug_line_str"] {
        for step in 0..64 {
            let table = lines("neighbours.gfx1100.co", |bytes| {
                let range = at(bytes, section);
                let byte = range.start + step * range.len() / 64;
                bytes[byte] ^= 1 << (step % 8);
            });
            let mut found = TEXT.filter_map(|address| table.line(address));
            assert!(found.all(|l| (l.file as usize) < table.files().len()));
        }
    }
}
