//! Names of operand values, from the ISA description: `OPR_SRC` calls 256 `v0` and 242 `1.0`.

use super::operand::{RegBase, Special};
use foldhash::HashMap;
use std::sync::{LazyLock, OnceLock};
use wavesim_isa::arch::Arch;

/// The ISA description's name for the code of a literal.
pub const LITERAL: &str = "src_literal";

/// The name for the code of a literal of 64 bits.
pub const LITERAL64: &str = "src_literal64";

/// The smallest inline integer.
const MIN_INLINE: i32 = -16;

/// The predefined values of one operand type: a bidirectional map between names and codes.
#[derive(Debug, Default)]
pub struct TypeNames {
    values: HashMap<&'static str, u32>,
    names: HashMap<u32, &'static str>,
    /// The most frequent names, indexed by number: `v0` to `v255`, `s0` …, `a0` …, and inline integers from
    /// [`MIN_INLINE`].
    vgprs: Vec<Option<u32>>,
    sgprs: Vec<Option<u32>>,
    accs: Vec<Option<u32>>,
    integers: Vec<Option<u32>>,
    /// The code of `v0`, if the codes of all vector registers are consecutive.
    first_vgpr: Option<u32>,
    specials: [Option<u32>; Special::ALL.len()],
    /// The code of a literal, if the type accepts one.
    pub literal: Option<u32>,
    /// The code of a literal of 64 bits, if the type accepts one.
    pub literal64: Option<u32>,
}

impl TypeNames {
    /// `literal` is the architecture's code of a literal. The types of lane selects and barrier numbers list
    /// constants but no literal, although their instructions have forms with one, and no other source of such
    /// a form could hold it; for these types the code is added.
    fn new(list: &[(&'static str, u32)], literal: Option<u32>) -> TypeNames {
        let mut all = list.to_vec();
        let unlisted = literal.filter(|code| list.iter().all(|v| v.1 != *code));
        if let (Some(code), true) = (unlisted, list.iter().any(|v| v.0 == "1")) {
            all.push((LITERAL, code));
        }
        let (mut vgprs, mut sgprs, mut accs) = (vec![None; 256], vec![None; 128], vec![None; 256]);
        let mut integers = vec![None; (64 - MIN_INLINE) as usize + 1];
        for &(name, code) in &all {
            let (list, number) = match name.as_bytes() {
                [b'v', digits @ ..] => (&mut vgprs, number(digits)),
                [b's', digits @ ..] => (&mut sgprs, number(digits)),
                [b'a', digits @ ..] => (&mut accs, number(digits)),
                [b'-', digits @ ..] => (&mut integers, number(digits).map(|n| -n - MIN_INLINE)),
                digits => (&mut integers, number(digits).map(|n| n - MIN_INLINE)),
            };
            let at = number.and_then(|at| usize::try_from(at).ok());
            if let Some(place) = at.and_then(|at| list.get_mut(at)) {
                *place = Some(code);
            }
        }
        let values: HashMap<&'static str, u32> = all.iter().copied().collect();
        let first = vgprs[0].filter(|first| vgprs.iter().zip(*first..).all(|(code, at)| *code == Some(at)));
        TypeNames {
            vgprs,
            first_vgpr: first,
            sgprs,
            accs,
            integers,
            specials: Special::ALL.map(|(_, name)| values.get(name).copied()),
            literal: values.get(LITERAL).copied(),
            literal64: values.get(LITERAL64).copied(),
            names: all.iter().rev().map(|&(name, value)| (value, name)).collect(),
            values,
        }
    }

    /// The code of a name.
    pub fn value(&self, name: &str) -> Option<u32> {
        self.values.get(name).copied()
    }

    /// The code of a register, given by its first 32 bits.
    #[inline]
    pub fn register(&self, base: RegBase) -> Option<u32> {
        match base {
            RegBase::Vgpr(n) => self.vgprs.get(n as usize).copied()?,
            RegBase::Sgpr(n) => self.sgprs.get(n as usize).copied()?,
            RegBase::Acc(n) => self.accs.get(n as usize).copied()?,
            RegBase::Ttmp(n) => self.value(&format!("ttmp{n}")),
            RegBase::Special(special) => self.specials[special as usize],
        }
    }

    /// The code of an inline integer.
    pub fn integer(&self, value: i32) -> Option<u32> {
        self.integers.get(usize::try_from(value.checked_sub(MIN_INLINE)?).ok()?).copied()?
    }

    /// Returns whether the type accepts inline constants or a literal.
    pub fn has_constants(&self) -> bool {
        self.literal.is_some() || self.integer(1).is_some()
    }

    /// The number of the vector register with this code.
    #[inline]
    pub fn vgpr(&self, value: u32) -> Option<u32> {
        value.checked_sub(self.first_vgpr?).filter(|n| *n < 256)
    }

    /// The main name of a code.
    pub fn name(&self, value: u32) -> Option<&'static str> {
        self.names.get(&value).copied()
    }

    /// All names, in unspecified order.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied()
    }
}

/// Parses a number of one to four digits; anything else is `None`.
fn number(digits: &[u8]) -> Option<i32> {
    let plain = matches!(digits.len(), 1..=4) && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| digits.iter().fold(0, |n, digit| 10 * n + (digit - b'0') as i32))
}

/// The names of one architecture: the code of a literal, and the operand types, which are built on first use.
struct Names {
    literal: Option<u32>,
    types: Vec<OnceLock<TypeNames>>,
}

static NAMES: LazyLock<Vec<Names>> = LazyLock::new(|| {
    let of = |arch: Arch| {
        let types = arch.table().operand_types;
        let literal = types.iter().flat_map(|t| t.values).find(|v| v.0 == LITERAL).map(|v| v.1);
        Names { literal, types: types.iter().map(|_| OnceLock::new()).collect() }
    };
    Arch::ALL.into_iter().map(of).collect()
});

/// The names of an operand type, given by its index.
pub fn names(arch: Arch, ty: u8) -> &'static TypeNames {
    let names = &NAMES[arch as usize];
    names.types[ty as usize]
        .get_or_init(|| TypeNames::new(arch.table().operand_types[ty as usize].values, names.literal))
}
