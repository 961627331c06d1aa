//! Names of operand values, from the ISA description: `OPR_SRC` calls 256 `v0` and 242 `1.0`.

use crate::arch::Arch;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The predefined values of one operand type, both ways.
#[derive(Debug, Default)]
pub struct TypeNames {
    values: HashMap<&'static str, u32>,
    names: HashMap<u32, &'static str>,
}

impl TypeNames {
    fn new(list: &[(&'static str, u32)]) -> TypeNames {
        TypeNames {
            values: list.iter().copied().collect(),
            names: list.iter().rev().map(|&(name, value)| (value, name)).collect(),
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
    let of = |arch: Arch| arch.table().operand_types.iter().map(|t| TypeNames::new(t.values)).collect();
    Arch::ALL.into_iter().map(of).collect()
});

/// By index of the operand type.
pub fn names(arch: Arch, ty: u8) -> &'static TypeNames {
    &NAMES[arch as usize][ty as usize]
}
