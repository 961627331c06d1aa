//! Operands of vector instructions, by the names of their codes: what the encoder is built with has no table of them.

use crate::encode::Kind;
use iced_x86::Code;
use std::sync::atomic::{AtomicU8, Ordering};

/// Kinds of up to three operands, without an immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    kinds: u8,
}

const KNOWN: u8 = 0x80;
const COMMUTES: u8 = 0x40;
const MEMORY: u8 = 0x20;

/// More than there are codes.
static SHAPES: [AtomicU8; 8192] = [const { AtomicU8::new(0) }; 8192];

/// Operations on integers whose sources may be swapped. Those on floats may not: which NaN results depends on the order.
const COMMUTATIVE: [&str; 20] = [
    "Vpaddb", "Vpaddw", "Vpaddd", "Vpaddq", "Vpmulld", "Vpmullw", "Vpmuludq", "Vpmuldq", "Vpand", "Vpor",
    "Vpxor", "Vandps", "Vorps", "Vxorps", "Vandpd", "Vorpd", "Vxorpd", "Vpmaddwd", "Vpcmpeqd", "Vpcmpeqq",
];

impl Shape {
    pub fn of(code: Code) -> Shape {
        let known = SHAPES.get(code as usize);
        match known.map_or(0, |known| known.load(Ordering::Relaxed)) {
            0 => {
                let kinds = Shape::read(&format!("{code:?}"));
                if let Some(known) = known {
                    known.store(kinds, Ordering::Relaxed);
                }
                Shape { kinds }
            }
            kinds => Shape { kinds },
        }
    }

    /// As `VEX_Vpmovsxdq_ymm_xmmm128`.
    fn read(name: &str) -> u8 {
        let mut parts = name.split('_').skip(1);
        let mnemonic = parts.next().unwrap_or_default();
        let mut kinds = KNOWN;
        for (n, part) in parts.filter(|part| !part.starts_with("imm")).take(3).enumerate() {
            if part.starts_with('x') {
                kinds |= 1 << n;
            }
            // The last one counts: `VEX_Vcvtps2ph_xmmm128_ymm_imm8` stores.
            kinds = kinds & !MEMORY | if part.len() > 3 { MEMORY } else { 0 };
        }
        let minmax = mnemonic.starts_with("Vpmin") || mnemonic.starts_with("Vpmax");
        if minmax || COMMUTATIVE.contains(&mnemonic) {
            kinds |= COMMUTES;
        }
        kinds
    }

    /// Of the `n`-th operand.
    pub fn kind(self, n: usize) -> Kind {
        if self.kinds >> n & 1 == 1 { Kind::Xmm } else { Kind::Ymm }
    }

    /// Whether the last may be memory.
    pub fn takes_memory(self) -> bool {
        self.kinds & MEMORY != 0
    }

    pub fn commutes(self) -> bool {
        self.kinds & COMMUTES != 0
    }
}
