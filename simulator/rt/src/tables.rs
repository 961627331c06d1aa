//! Handler tables: select the handler of an operation by float mode and wave size. A table is built when a
//! wave first uses its mode: in the executable, and in a process that never needs the table, each entry is a
//! two-byte number.
//!
//! The tables do not know what a handler is (`H`): [`Cx`](super::Cx), which handlers take, selects from them.
//!
//! MODE controls f32 and other floats with separate bits. In modes without fast handlers, most operations of
//! a kernel still have one: those without floats, and those on floats whose bits have the usual values.

use super::float_mode::FloatMode;
use crate::op::{Op, Variant};
use crate::operations::OPERATIONS;
use isa_spec::pcode::builtins::Control;
use std::sync::OnceLock;
use wavesim_isa::arch::Arch;
use wavesim_state::event::Event;
use wavesim_state::host::Avx2;
use wavesim_state::{Wave, Workgroup};

/// A handler table, indexed by the code of an operation.
pub type Table<H> = [H; Op::CODES];

/// See [`Numbered::SHARED`].
const SHARED: u16 = u16::MAX;

/// A handler table in compact form: each handler once, and for each code the number of its handler.
#[derive(Clone, Copy)]
pub struct Numbered<H: 'static> {
    /// The handlers; some may be shared with other tables.
    pub handlers: &'static [H],
    /// Index in `handlers` by code, or [`Numbered::SHARED`].
    pub by_code: &'static [u16; Op::CODES],
}

impl<H: Copy> Numbered<H> {
    /// The operation has the same handler on all hosts: the fast one of [`Tables::keep`].
    pub const SHARED: u16 = SHARED;

    /// Creates a table with the same handler for all codes.
    pub const fn only(handler: &'static [H; 1]) -> Numbered<H> {
        Numbered { handlers: handler, by_code: &[0; Op::CODES] }
    }

    fn at(&self, code: usize) -> Option<H> {
        match self.by_code[code] {
            SHARED => None,
            number => Some(self.handlers[number as usize]),
        }
    }
}

/// The tables to select from, by float mode and wave size.
pub struct Tables<H: 'static> {
    /// Rounds to nearest even, keeps denormals.
    pub keep: Numbered<H>,
    /// As `keep`, for waves of 64 lanes: operations that can, run as two halves of 32 with the handlers of
    /// `keep`.
    pub keep_64: Numbered<H>,
    /// Flushes denormals of f32.
    pub flush: Numbered<H>,
    /// As `flush`, for waves of 64 lanes.
    pub flush_64: Numbered<H>,
    /// Any mode, any host.
    pub base: Numbered<H>,
    /// Used while MODE skips vector instructions or offsets their VGPRs: [`by_mode`](super::by_mode) for all
    /// codes.
    pub by_mode: Numbered<H>,
    /// In other arithmetic modes, fast handlers run the operations that do not need `base`. Must be false if
    /// `base` leaves instructions to the evaluator, which runs whole instructions: it cannot run the rest of
    /// one whose first operation had a handler.
    pub mixed: bool,
    /// What handlers call of the machine.
    pub machine: MachineOps,
}

/// See [`MachineOps::control`].
pub type ControlFn = fn(Arch, &mut Wave, &mut Workgroup, u64, Control, &[u128]) -> Result<u128, Event>;

/// Functions of the machine that handlers reach through a pointer, so that an edit of them compiles no handler
/// again.
#[derive(Clone, Copy)]
pub struct MachineOps {
    /// Runs a control builtin other than [hints and barriers](crate::control). The arguments are the
    /// architecture, the running wave, its workgroup, the number of instructions executed so far, the builtin and
    /// its arguments.
    pub control: ControlFn,
    /// Returns the STATUS register of a wave.
    pub status: fn(Arch, &Wave, &Workgroup) -> u32,
}

/// [`Tables`], and the tables built from them.
pub struct Handlers<H: 'static> {
    tables: Tables<H>,
    base: OnceLock<Box<Table<H>>>,
    by_mode: OnceLock<Box<Table<H>>>,
    /// Tables for hosts with the features that fast handlers are compiled for: see [`FloatMode::index`].
    fast: [OnceLock<Box<Table<H>>>; FloatMode::COUNT],
}

impl<H: Copy> Handlers<H> {
    /// Creates the set; tables are built on first use.
    ///
    /// # Safety
    /// Each table has, at the code of an operation, a handler of this operation for the table's modes and
    /// wave sizes. Handlers of `base` and `by_mode`, and those of `keep` that `base` shares, run on any host;
    /// the others require what [`Avx2`] proves.
    pub const unsafe fn new(tables: Tables<H>) -> Handlers<H> {
        Handlers {
            tables,
            base: OnceLock::new(),
            by_mode: OnceLock::new(),
            fast: [const { OnceLock::new() }; FloatMode::COUNT],
        }
    }

    /// Returns what handlers call of the machine.
    pub(super) fn machine(&'static self) -> &'static MachineOps {
        &self.tables.machine
    }

    /// Returns the table for hosts without the features that fast handlers are compiled for.
    pub(super) fn base(&'static self) -> &'static Table<H> {
        self.base.get_or_init(|| self.made(|_| &self.tables.base))
    }

    /// Returns the table for use while MODE skips vector instructions or offsets their VGPRs.
    pub(super) fn by_mode(&'static self) -> &'static Table<H> {
        self.by_mode.get_or_init(|| self.made(|_| &self.tables.by_mode))
    }

    /// Returns the table for an arithmetic mode, in waves of 64 lanes (`wave64`) or of 32, on a host with the
    /// features that fast handlers are compiled for.
    #[inline(always)]
    pub(super) fn fast(&'static self, _: Avx2, mode: FloatMode, wave64: bool) -> &'static Table<H> {
        match self.fast[mode.index(wave64)].get() {
            Some(table) => table,
            None => self.make_fast(mode, wave64),
        }
    }

    #[cold]
    fn make_fast(&'static self, mode: FloatMode, wave64: bool) -> &'static Table<H> {
        let tables = &self.tables;
        if !mode.is_fast() && !tables.mixed {
            return self.base();
        }
        // Operations without f32 are the same in both.
        let fast = match (mode.flushes(), wave64) {
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
        self.fast[mode.index(wave64)].get_or_init(|| self.made(of))
    }

    /// Builds a table that takes the handler of each code from the table that `of` returns.
    fn made(&self, of: impl Fn(usize) -> &'static Numbered<H>) -> Box<Table<H>> {
        let shared = |code: usize| {
            let fast = code - code % Op::VARIANTS + Variant::Fast as usize;
            self.tables.keep.at(fast).expect("a handler, not another table's")
        };
        // Collected, because an array would be built on the stack and copied.
        let table = (0..Op::CODES).map(|code| of(code).at(code).unwrap_or_else(|| shared(code)));
        table.collect::<Box<[H]>>().try_into().unwrap_or_else(|_| unreachable!("a handler for each code"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::{Cx, Flow, Handler, Handlers, Numbered, Tables};
    use super::FloatMode;
    use super::MachineOps;
    use super::OPERATIONS;
    use super::{Avx2, Op, Variant};

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
        machine: MachineOps { control: |_, _, _, _, _, _| Ok(0), status: |_, _, _| 0 },
    };

    // SAFETY: no handler of it is called.
    static HANDLERS: Handlers = unsafe { Handlers::new(TABLES) };

    fn is(chosen: Handler, handler: unsafe fn(&mut Cx<'_>, &Op) -> Flow) -> bool {
        std::ptr::fn_addr_eq(chosen, handler)
    }

    /// Returns which table provides the handler of an instruction in a mode, for the first variant of its
    /// operation.
    fn source(name: &str, mode: u32) -> &'static str {
        let at = OPERATIONS.iter().position(|info| info.name == name).expect(name);
        // SAFETY: no handler selected with it is called.
        let avx2 = unsafe { Avx2::assume() };
        let chosen = HANDLERS.fast(avx2, FloatMode::of(mode), false)[at * Op::VARIANTS];
        match (is(chosen, keep), is(chosen, flush), is(chosen, base)) {
            (true, ..) => "keep",
            (_, true, _) => "flush",
            _ => "base",
        }
    }

    #[test]
    fn only_what_a_mode_is_unusual_for_is_slow() {
        const OVERFLOW: u32 = 1 << 23;
        // f32 and others: all flushed; f32 rounded up; f16 rounded down; f16 clamped on overflow; only f32
        // results flushed.
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
