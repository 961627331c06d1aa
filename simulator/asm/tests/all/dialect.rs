//! The tables of LLVM's dialect.

use isa_spec::pattern::matches;
use wavesim_asm::dialect::{ArchSet, NAMES, RAYS, TRAITS, Trait};
use wavesim_isa::arch::Arch;

/// Every row matches an instruction.
#[test]
fn every_pattern_matches_an_instruction() {
    let found = |archs: ArchSet, pattern: &str| {
        let archs = Arch::AMD.into_iter().filter(|a| archs.has(*a));
        archs.flat_map(|a| a.table().instructions).any(|i| matches(pattern, i.name))
    };
    for (t, archs, patterns) in TRAITS {
        for pattern in *patterns {
            assert!(found(*archs, pattern), "{t:?}: {pattern}");
        }
    }
    for (name, ..) in RAYS {
        assert!(found(ArchSet::Any, name), "{name}");
    }
    for (archs, name, _) in NAMES {
        assert!(found(archs, name), "{name}");
    }
}

/// Every trait occurs in the table.
#[test]
fn every_trait_has_a_row() {
    let mut rows: Vec<u8> = TRAITS.iter().map(|(t, ..)| *t as u8).collect();
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows, (0..=Trait::ReciprocalOfInteger as u8).collect::<Vec<u8>>());
}

#[test]
fn stars_match_any_characters() {
    assert!(matches("V_*_B*", "V_MOV_B32"));
    assert!(matches("A*", "A"));
    assert!(matches("*_2ADDR_*", "DS_LOAD_2ADDR_B32"));
    assert!(!matches("V_MAX3_*16", "V_MAX3_F32"));
    assert!(!matches("V_MOV", "V_MOV_B32"));
}
