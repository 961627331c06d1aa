//! Instruction kinds by name, and pass counts of matrix instructions: `kinds.txt`, parsed once.

use isa_spec::pattern::matches;
use std::sync::LazyLock;
use wavesim_isa::arch::Arch;

/// The table.
const TEXT: &str = include_str!("kinds.txt");

/// The kinds of an instruction, and its pass count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds {
    bits: u32,
    /// Number of passes of a matrix instruction; 0 for other instructions.
    pub passes: u32,
    /// Vector instructions that must be between a matrix instruction of CDNA 5 and one that depends on it: a matrix
    /// instruction, and another one.
    pub gap: [u32; 2],
}

/// A line of the table: the first word, and the remaining ones.
type Line = (&'static str, Vec<&'static str>);

/// Lines of the table without comments.
struct Table {
    kinds: Vec<Line>,
    passes: Vec<Line>,
    gaps: Vec<Line>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let bare = TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines = bare.filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.collect()))
    });
    let (passes, lines): (Vec<Line>, Vec<Line>) = lines.partition(|(name, _)| *name == "passes");
    let (gaps, kinds) = lines.into_iter().partition(|(name, _)| *name == "gap");
    Table { kinds, passes, gaps }
});

fn matches_any(patterns: &[&str], name: &str) -> bool {
    let excluded = |pattern: &&str| pattern.strip_prefix('!').is_some_and(|pattern| matches(pattern, name));
    patterns.iter().any(|pattern| matches(pattern, name)) && !patterns.iter().any(excluded)
}

impl Kinds {
    /// Returns the kinds of the instruction with this name.
    pub fn of(name: &str, arch: Arch) -> Kinds {
        let Table { kinds, passes, gaps } = &*TABLE;
        let bits = kinds.iter().enumerate().filter(|(_, (_, patterns))| matches_any(patterns, name));
        let bits = bits.fold(0, |bits, (at, _)| bits | 1 << at);
        let mut passes = passes.iter().filter(|(_, rest)| matches_any(&rest[1..], name));
        let passes = passes.find_map(|(_, rest)| rest[0].parse().ok());
        let mut gaps = gaps.iter().filter(|(_, rest)| matches_any(&rest[2..], name));
        let gap = gaps.next().map(|(_, rest)| [rest[0], rest[1]].map(|n| n.parse().unwrap_or(0)));
        let gap = gap.filter(|_| arch.facts().hazards.coexecution).unwrap_or_default();
        let kinds = Kinds { bits, passes: passes.unwrap_or(0), gap };
        let rules = arch.facts().hazards.wait_states;
        let slower = rules.is_some_and(|rules| rules.slow_double_products) && kinds.is("dgemm_16");
        Kinds { passes: kinds.passes << u32::from(slower), ..kinds }
    }

    /// Adjusts the passes for the formats that an instruction's fields select: an 8-bit factor doubles them.
    pub fn with_formats(self, field: impl Fn(&str) -> u32) -> Kinds {
        // The formats of A and B (CDNA5 manual, *WMMA*); 0 and 1 have 8 bits.
        let formats = || [field("OP_SEL"), field("OP_SEL_HI") | field("OP_SEL_HI_2") << 2];
        if self.gap != [0; 2] && self.is("formats") && formats().iter().any(|format| *format < 2) {
            return Kinds { gap: self.gap.map(|n| n + 4), ..self };
        }
        let doubled = self.is("formats") && (field("CBSZ") < 2 || field("BLGP") < 2);
        Kinds { passes: self.passes << u32::from(doubled), ..self }
    }

    /// Returns whether the instruction is of the kind with this name.
    pub fn is(self, kind: &str) -> bool {
        TABLE.kinds.iter().position(|(name, _)| *name == kind).is_some_and(|at| self.bits >> at & 1 != 0)
    }
}

/// Returns the number of registers for 32 numbers of a format that CBSZ or BLGP selects (CDNA 4 manual,
/// *8-bit and Smaller Matrix Operations and Layouts*).
pub fn registers_of_format(format: u32) -> u16 {
    match format {
        0 | 1 => 8,
        2 | 3 => 6,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pattern of the table matches an instruction.
    #[test]
    fn every_pattern_matches_an_instruction() {
        let names: Vec<&str> = [Arch::Cdna3, Arch::Cdna4, Arch::Cdna5]
            .into_iter()
            .flat_map(|a| a.table().instructions)
            .map(|i| i.name)
            .collect();
        for (_, patterns) in TABLE.kinds.iter().chain(&TABLE.passes).chain(&TABLE.gaps) {
            for pattern in patterns.iter().filter(|p| p.parse::<u32>().is_err()) {
                let pattern = pattern.trim_start_matches('!');
                assert!(names.iter().any(|name| matches(pattern, name)), "{pattern}");
            }
        }
    }

    /// Pass counts as in the manuals' notes on the instructions.
    #[test]
    fn passes_match_the_manuals() {
        for (name, passes) in [
            ("V_MFMA_F32_4X4X1_16B_F32", 2),
            ("V_MFMA_I32_4X4X4_16B_I8", 2),
            ("V_MFMA_F32_16X16X16_F16", 4),
            ("V_MFMA_F32_16X16X8_XF32", 4),
            ("V_SMFMAC_F32_16X16X32_BF16", 4),
            ("V_MFMA_F64_4X4X4_4B_F64", 4),
            ("V_MFMA_F32_16X16X1_4B_F32", 8),
            ("V_MFMA_F32_16X16X4_F32", 8),
            ("V_MFMA_F64_16X16X4_F64", 8),
            ("V_SMFMAC_I32_32X32X32_I8", 8),
            ("V_MFMA_F32_32X32X2_F32", 16),
            ("V_MFMA_F32_32X32X4_2B_BF16", 16),
            ("V_ADD_F32", 0),
        ] {
            assert_eq!(Kinds::of(name, Arch::Cdna3).passes, passes, "{name}");
        }
        assert_eq!(Kinds::of("V_MFMA_F64_16X16X4_F64", Arch::Cdna4).passes, 16);
        // Formats of 8 bits take twice as long as others.
        let mixed = Kinds::of("V_MFMA_F32_32X32X64_F8F6F4", Arch::Cdna4);
        assert_eq!(mixed.with_formats(|field| if field == "CBSZ" { 4 } else { 1 }).passes, 16);
        assert_eq!(mixed.with_formats(|_| 2).passes, 8);
    }

    /// Distances as in LLVM's hazard recognizer.
    #[test]
    fn gaps_match_llvm() {
        for (name, gap) in [
            ("V_WMMA_F32_16X16X32_F16", [5, 4]),
            ("V_WMMA_F32_32X16X128_F4", [5, 4]),
            ("V_WMMA_I32_16X16X64_IU8", [9, 8]),
            ("V_SWMMAC_F32_16X16X64_BF16", [3, 2]),
            ("V_SWMMAC_I32_16X16X128_IU8", [5, 4]),
            ("V_WMMA_F32_16X16X4_F32", [0, 0]),
            ("V_ADD_F32", [0, 0]),
        ] {
            assert_eq!(Kinds::of(name, Arch::Cdna5).gap, gap, "{name}");
        }
        assert_eq!(Kinds::of("V_WMMA_F32_16X16X16_F16", Arch::Rdna4).gap, [0, 0]);
        let scaled = Kinds::of("V_WMMA_SCALE_F32_16X16X128_F8F6F4", Arch::Cdna5);
        assert_eq!(scaled.with_formats(|field| if field == "OP_SEL" { 4 } else { 2 }).gap, [5, 4]);
        assert_eq!(scaled.with_formats(|field| if field == "OP_SEL" { 0 } else { 2 }).gap, [9, 8]);
    }

    /// Every matrix instruction is of exactly one of the three kinds.
    #[test]
    fn matrix_instructions_have_one_kind() {
        for arch in Arch::CDNA {
            for name in arch.table().instructions.iter().map(|i| i.name).filter(|n| n.contains("MFMA")) {
                let kinds = Kinds::of(name, arch);
                let count = ["dgemm", "sgemm", "xdl"].into_iter().filter(|kind| kinds.is(kind)).count();
                assert!(count == 1 && kinds.passes > 0, "{name}");
            }
        }
    }
}
