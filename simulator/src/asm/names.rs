//! Names of operand values, from the ISA description: `OPR_SRC` calls 256 `v0` and 242 `1.0`.

use crate::arch::Arch;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The ISA description's name for the code that stands for a literal.
pub const LITERAL: &str = "src_literal";

/// The predefined values of one operand type, both ways.
#[derive(Debug, Default)]
pub struct TypeNames {
    values: HashMap<&'static str, u32>,
    names: HashMap<u32, &'static str>,
}

impl TypeNames {
    /// `literal`: the architecture's code of one. Types of lane selects and barrier numbers list constants and no literal, though
    /// their instructions have forms with one; such a form has no other source that could name it.
    fn new(list: &[(&'static str, u32)], literal: Option<u32>) -> TypeNames {
        let mut all = list.to_vec();
        let unlisted = literal.filter(|code| list.iter().all(|v| v.1 != *code));
        if let (Some(code), true) = (unlisted, list.iter().any(|v| v.0 == "1")) {
            all.push((LITERAL, code));
        }
        TypeNames {
            values: all.iter().copied().collect(),
            names: all.iter().rev().map(|&(name, value)| (value, name)).collect(),
        }
    }

    pub fn value(&self, name: &str) -> Option<u32> {
        self.values.get(name).copied()
    }

    pub fn name(&self, value: u32) -> Option<&'static str> {
        self.names.get(&value).copied()
    }

    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied()
    }
}

static NAMES: LazyLock<Vec<Vec<TypeNames>>> = LazyLock::new(|| {
    let of = |arch: Arch| {
        let types = arch.table().operand_types;
        let literal = types.iter().flat_map(|t| t.values).find(|v| v.0 == LITERAL).map(|v| v.1);
        types.iter().map(|t| TypeNames::new(t.values, literal)).collect()
    };
    Arch::ALL.into_iter().map(of).collect()
});

/// By index of the operand type.
pub fn names(arch: Arch, ty: u8) -> &'static TypeNames {
    &NAMES[arch as usize][ty as usize]
}
