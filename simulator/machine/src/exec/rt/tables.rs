//! Tables of handlers: which one runs an operation, by float mode and lanes of a wave. A table is put together when a wave is first in its
//! mode: in the executable, and in the memory of a process that never needs it, each handler is a number of two bytes.
//!
//! MODE governs f32 and other floats by bits of their own. In modes that the fast handlers are not made for, most operations of a kernel
//! still have one: those without floats, and those of floats whose bits are as usual.

use super::context::Handler;
use crate::exec::op::{Op, Variant};
use crate::isa::OPERATIONS;
use crate::state::host::Avx2;
use std::sync::OnceLock;

/// Handlers by the code of operations.
pub type Table = [Handler; Op::CODES];

/// A table in its compact form: each handler once, and by code the number of the one that runs it.
#[derive(Clone, Copy)]
pub struct Numbered {
    /// The handlers, some of which may be those of other tables.
    pub handlers: &'static [Handler],
    /// Places in `handlers`, or [`Numbered::SHARED`].
    pub by_code: &'static [u16; Op::CODES],
}

impl Numbered {
    /// The operation's handler is the same for all hosts: the fast one of [`Tables::keep`].
    pub const SHARED: u16 = u16::MAX;

    /// The same handler for all.
    pub const fn only(handler: &'static [Handler; 1]) -> Numbered {
        Numbered { handlers: handler, by_code: &[0; Op::CODES] }
    }

    fn at(&self, code: usize) -> Option<Handler> {
        match self.by_code[code] {
            Numbered::SHARED => None,
            number => Some(self.handlers[number as usize]),
        }
    }
}

/// The tables to choose from, by float mode and lanes of a wave.
pub struct Tables {
    /// Round to nearest even, denormals kept.
    pub keep: Numbered,
    /// As `keep`, for waves of 64: what can runs as two halves of 32, by the handlers of `keep`.
    pub keep_64: Numbered,
    /// Denormals of f32 flushed.
    pub flush: Numbered,
    /// As `flush`, for waves of 64.
    pub flush_64: Numbered,
    /// Any mode, any host.
    pub base: Numbered,
    /// While MODE skips vector instructions or offsets their VGPRs: [`by_mode`](super::by_mode) everywhere.
    pub by_mode: Numbered,
    /// Whether, in other modes of arithmetic, fast handlers run what `base` is not needed for. Not if `base` leaves instructions to the
    /// evaluator, which runs them whole: not what remains of one whose first operation had a handler.
    pub mixed: bool,
}

/// [`Tables`], and what was made of them.
pub struct Handlers {
    tables: Tables,
    base: OnceLock<Box<Table>>,
    by_mode: OnceLock<Box<Table>>,
    /// On hosts that have what the fast handlers are compiled for: see [`Arithmetic::place`].
    fast: [OnceLock<Box<Table>>; Arithmetic::COUNT],
}

impl Handlers {
    /// None is made yet.
    ///
    /// # Safety
    /// Each table has, by the code of an operation, a handler of this operation in the table's modes and wave sizes. Those of `base` and
    /// `by_mode`, and those of `keep` that `base` shares, run on any host; the others need what [`Avx2`] says.
    pub const unsafe fn new(tables: Tables) -> Handlers {
        Handlers {
            tables,
            base: OnceLock::new(),
            by_mode: OnceLock::new(),
            fast: [const { OnceLock::new() }; Arithmetic::COUNT],
        }
    }

    /// For hosts without what the fast handlers are compiled for.
    pub(super) fn base(&'static self) -> &'static Table {
        self.base.get_or_init(|| self.made(|_| &self.tables.base))
    }

    /// While MODE skips vector instructions or offsets their VGPRs.
    pub(super) fn by_mode(&'static self) -> &'static Table {
        self.by_mode.get_or_init(|| self.made(|_| &self.tables.by_mode))
    }

    /// For a mode of arithmetic, in waves of 64 (`wide`) or of 32, on a host that has what the fast handlers are compiled for.
    #[inline(always)]
    pub(super) fn fast(&'static self, _: Avx2, mode: Arithmetic, wide: bool) -> &'static Table {
        match self.fast[mode.place(wide)].get() {
            Some(table) => table,
            None => self.make_fast(mode, wide),
        }
    }

    #[cold]
    fn make_fast(&'static self, mode: Arithmetic, wide: bool) -> &'static Table {
        let tables = &self.tables;
        if !mode.is_fast() && !tables.mixed {
            return self.base();
        }
        // What has no f32 is the same in both.
        let fast = match (mode.single == Single::Flush, wide) {
            (false, false) => &tables.keep,
            (false, true) => &tables.keep_64,
            (true, false) => &tables.flush,
            (true, true) => &tables.flush_64,
        };
        let is_slow = |code: usize| {
            let info = OPERATIONS.get(code / Op::VARIANTS);
            !mode.is_fast() && info.is_some_and(|info| mode.is_slow(info.single, info.other_floats))
        };
        let of = |code| if is_slow(code) { &tables.base } else { fast };
        self.fast[mode.place(wide)].get_or_init(|| self.made(of))
    }

    /// A table with the handlers that these have for a code.
    fn made(&self, of: impl Fn(usize) -> &'static Numbered) -> Box<Table> {
        let shared = |code: usize| {
            let fast = code - code % Op::VARIANTS + Variant::Fast as usize;
            self.tables.keep.at(fast).expect("a handler, not another table's")
        };
        // Collected, because an array would be made on the stack and copied.
        let table = (0..Op::CODES).map(|code| of(code).at(code).unwrap_or_else(|| shared(code)));
        table.collect::<Box<[Handler]>>().try_into().expect("a handler for each code")
    }
}

/// What MODE says of arithmetic, as far as handlers differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arithmetic {
    single: Single,
    /// Other floats are rounded to nearest even, and denormals and overflow are as IEEE 754 has them.
    usual: bool,
}

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

impl Arithmetic {
    /// Denormals kept, and all as usual.
    pub const KEEP: Arithmetic = Arithmetic { single: Single::Keep, usual: true };
    /// Denormals of f32 flushed, and all others as usual.
    pub const FLUSH: Arithmetic = Arithmetic { single: Single::Flush, usual: true };

    /// Combinations of all, and of wave sizes.
    const COUNT: usize = 12;

    pub fn of(mode: u32) -> Arithmetic {
        let single = match mode & 0x33 {
            0x30 => Single::Keep,
            0 => Single::Flush,
            _ => Single::Other,
        };
        Arithmetic { single, usual: mode & 0x80_00cc == 0xc0 }
    }

    fn place(self, wide: bool) -> usize {
        self.single as usize * 4 + self.usual as usize * 2 + wide as usize
    }

    /// Whether fast handlers are made for it.
    fn is_fast(self) -> bool {
        self.usual && self.single != Single::Other
    }

    /// Whether an operation on f32 or other floats has no fast handler in this mode.
    fn is_slow(self, single: bool, other_floats: bool) -> bool {
        single && self.single == Single::Other || other_floats && !self.usual
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::{Cx, Flow};
    use super::*;

    unsafe fn keep(_: &mut Cx<'_>, _: &Op) -> Flow {
        Flow(100)
    }

    unsafe fn flush(_: &mut Cx<'_>, _: &Op) -> Flow {
        Flow(101)
    }

    unsafe fn base(_: &mut Cx<'_>, _: &Op) -> Flow {
        Flow(102)
    }

    const TABLES: Tables = Tables {
        keep: Numbered::only(&[keep]),
        keep_64: Numbered::only(&[keep]),
        flush: Numbered::only(&[flush]),
        flush_64: Numbered::only(&[flush]),
        base: Numbered::only(&[base]),
        by_mode: Numbered::only(&[base]),
        mixed: true,
    };

    // SAFETY: no handler of it is called.
    static HANDLERS: Handlers = unsafe { Handlers::new(TABLES) };

    fn is(chosen: Handler, handler: unsafe fn(&mut Cx<'_>, &Op) -> Flow) -> bool {
        std::ptr::fn_addr_eq(chosen, handler)
    }

    /// Where the handler of an instruction comes from in a mode: its operation's first variant.
    fn source(name: &str, mode: u32) -> &'static str {
        let at = OPERATIONS.iter().position(|info| info.name == name).expect(name);
        // SAFETY: no handler that is chosen by it is called.
        let avx2 = unsafe { Avx2::assume() };
        let chosen = HANDLERS.fast(avx2, Arithmetic::of(mode), false)[at * Op::VARIANTS];
        match (is(chosen, keep), is(chosen, flush), is(chosen, base)) {
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

    /// All variants of an operation share the handler of the fast one.
    #[test]
    fn shared_handlers_are_the_fast_ones_of_the_usual_mode() {
        const OPERATION: usize = 1;
        static BY_CODE: [[u16; Op::CODES]; 2] = {
            let mut numbers = [[0; Op::CODES]; 2];
            let mut variant = 0;
            while variant < Op::VARIANTS {
                numbers[0][OPERATION * Op::VARIANTS + variant] = Numbered::SHARED;
                variant += 1;
            }
            numbers[1][OPERATION * Op::VARIANTS + Variant::Fast as usize] = 1;
            numbers
        };
        static SHARING: Handlers = {
            let base = Numbered { handlers: &[base], by_code: &BY_CODE[0] };
            let keep = Numbered { handlers: &[flush, keep], by_code: &BY_CODE[1] };
            // SAFETY: no handler of it is called.
            unsafe { Handlers::new(Tables { base, keep, ..TABLES }) }
        };
        let made = SHARING.base();
        for (code, handler) in made.iter().enumerate() {
            let expected = if code / Op::VARIANTS == OPERATION { keep } else { base };
            assert!(is(*handler, expected), "{code}");
        }
    }
}
