//! Modes of arithmetic that the fast handlers are not made for. MODE governs f32 and other floats by bits of their own, so most operations
//! of a kernel still have a fast handler: those without floats, and those of floats whose bits are as usual. The tables of such modes are
//! put together from others when a wave is first in the mode.

use super::context::{Handlers, Table};
use crate::exec::op::Op;
use crate::isa::OPERATIONS;
use std::sync::OnceLock;

/// What MODE says of f32, and of bf16 but for overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Single {
    /// Nearest even, denormals kept.
    Keep,
    /// Nearest even, denormals flushed.
    Flush,
    /// Another rounding mode, or denormals flushed of sources or results alone.
    Other,
}

impl Single {
    fn of(mode: u32) -> Single {
        match mode & 0x33 {
            0x30 => Single::Keep,
            0 => Single::Flush,
            _ => Single::Other,
        }
    }
}

/// Whether MODE says of the other floats what fast handlers do: nearest even, denormals and overflow as IEEE 754 has them.
fn is_usual(mode: u32) -> bool {
    mode & 0x80_00cc == 0xc0
}

/// Tables for modes without a table of their own, made when they are needed.
pub struct Mixed([OnceLock<Box<Table>>; 12]);

impl Mixed {
    /// None so far.
    pub const fn new() -> Mixed {
        Mixed([const { OnceLock::new() }; 12])
    }

    /// The table for a mode of arithmetic, in waves of 64 (`wide`) or of 32, on a host that has what the fast handlers are compiled for.
    pub(super) fn table(&'static self, tables: &Handlers, mode: u32, wide: bool) -> &'static Table {
        let (single, usual) = (Single::of(mode), is_usual(mode));
        let at = single as usize * 4 + usual as usize * 2 + wide as usize;
        self.0[at].get_or_init(|| Box::new(mixed(tables, single, usual, wide)))
    }
}

impl Default for Mixed {
    fn default() -> Mixed {
        Mixed::new()
    }
}

fn mixed(tables: &Handlers, single: Single, usual: bool, wide: bool) -> Table {
    // What has no f32 is the same in both.
    let fast = match (single == Single::Flush, wide) {
        (false, false) => tables.keep,
        (false, true) => tables.keep_64,
        (true, false) => tables.flush,
        (true, true) => tables.flush_64,
    };
    std::array::from_fn(|code| {
        let slow = OPERATIONS
            .get(code / Op::VARIANTS)
            .is_some_and(|info| info.single && single == Single::Other || info.other_floats && !usual);
        if slow { tables.base[code] } else { fast[code] }
    })
}

#[cfg(test)]
mod tests {
    use super::super::context::{Cx, Flow};
    use super::*;

    /// A table that can be told from others by what its handlers give.
    const fn table(handler: unsafe fn(&mut Cx<'_>, &Op) -> Flow) -> Table {
        [handler; Op::CODES]
    }

    unsafe fn keep(_: &mut Cx<'_>, _: &Op) -> Flow {
        Flow(100)
    }

    unsafe fn flush(_: &mut Cx<'_>, _: &Op) -> Flow {
        Flow(101)
    }

    unsafe fn base(_: &mut Cx<'_>, _: &Op) -> Flow {
        Flow(102)
    }

    static KEEP: Table = table(keep);
    static FLUSH: Table = table(flush);
    static BASE: Table = table(base);
    static TABLES: Handlers = Handlers {
        keep: &KEEP,
        keep_64: &KEEP,
        flush: &FLUSH,
        flush_64: &FLUSH,
        base: &BASE,
        by_mode: &BASE,
        mixed: None,
    };

    static MIXED: Mixed = Mixed::new();

    /// Where the handler of an instruction comes from in a mode: its operation's first variant.
    fn source(name: &str, mode: u32) -> &'static str {
        let at = OPERATIONS.iter().position(|info| info.name == name).expect(name);
        let chosen = MIXED.table(&TABLES, mode, false)[at * Op::VARIANTS];
        let is = |handler: unsafe fn(&mut Cx<'_>, &Op) -> Flow| std::ptr::fn_addr_eq(chosen, handler);
        match (is(keep), is(flush), is(base)) {
            (true, ..) => "keep",
            (_, true, _) => "flush",
            _ => "base",
        }
    }

    #[test]
    fn only_what_a_mode_is_unusual_for_is_slow() {
        const OVERFLOW: u32 = 1 << 23;
        // f32 and others: all flushed; f32 rounded up; f16 rounded down; f16 clamped; results of f32 alone flushed.
        for (mode, f32, f16, bf16) in [
            (0x00, "flush", "base", "base"),
            (0xf1, "base", "keep", "base"),
            (0xf8, "keep", "base", "base"),
            (0xf0 | OVERFLOW, "keep", "base", "base"),
            (0xd0, "base", "keep", "base"),
        ] {
            assert_eq!(source("V_ADD_F32", mode), f32, "{mode:#x}");
            assert_eq!(source("V_ADD_F16", mode), f16, "{mode:#x}");
            assert_eq!(source("V_ADD_F64", mode), f16, "{mode:#x}");
            assert_eq!(source("V_MFMA_F32_32X32X4_2B_BF16", mode), bf16, "{mode:#x}");
            assert_ne!(source("V_ADD3_U32", mode), "base", "{mode:#x}");
            assert_ne!(source("GLOBAL_LOAD_B32", mode), "base", "{mode:#x}");
            let both = if f32 == "base" || f16 == "base" { "base" } else { f32 };
            assert_eq!(source("V_CVT_F32_F16", mode), both, "{mode:#x}");
        }
    }
}
