//! The list of data formats.

use std::collections::BTreeSet;
use wavesim_isa::arch::Arch;
use wavesim_isa::operand::{Constants, FORMATS};

#[test]
fn formats_are_sorted() {
    assert!(FORMATS.is_sorted_by(|a, b| a.0 < b.0));
}

/// A new name in a description must be classified; a name that no description has any more is removed.
#[test]
fn the_formats_of_all_descriptions_are_listed() {
    let tables = Arch::ALL.into_iter().map(|arch| arch.table());
    let described: BTreeSet<&str> = tables.flat_map(|t| t.formats.iter().map(|f| f.name)).collect();
    let listed: BTreeSet<&str> = FORMATS.iter().map(|row| row.0).collect();
    let missing: Vec<_> = described.difference(&listed).collect();
    let unused: Vec<_> = listed.difference(&described).collect();
    assert!(missing.is_empty() && unused.is_empty(), "not listed: {missing:?}, not used: {unused:?}");
}

/// Exactly the formats whose operands accept constants list how these expand.
#[test]
fn constants_are_classified_where_operands_accept_them() {
    let mut accepting = BTreeSet::new();
    for table in Arch::ALL.into_iter().map(|arch| arch.table()) {
        let signatures = table.entries.iter().map(|entry| table.signatures[entry.sig as usize]);
        for operand in signatures.flatten().filter(|operand| operand.input) {
            let values = table.operand_types[operand.ty as usize].values;
            if values.iter().any(|(name, _)| matches!(*name, "64" | "0.5" | "src_literal")) {
                accepting.insert(table.formats[operand.format as usize].name);
            }
        }
    }
    let listed: BTreeSet<_> =
        FORMATS.iter().filter(|row| row.2 != Constants::Never).map(|row| row.0).collect();
    assert_eq!(listed, accepting);
}
