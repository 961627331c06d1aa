//! The interface between compiled code and the engine: the argument of compiled code, and the functions that
//! it calls.

mod atomics;
mod check;
mod find_range;
mod resources;
mod wave_switch;

pub use atomics::{Atomic, Update, run_atomic};
pub use check::{check_offsets, check_range, check_resources, find_violation};
pub use find_range::{FOUND_SLOT, find_range};
pub use resources::cache_resources;
pub use wave_switch::{arrive_at_barrier, end_wave, run_and_switch, wait_for_barrier};

use crate::mode::CodeMode;
use crate::ranges::RangeCache;
use crate::wave_cache::{WaveCache, WaveCaches};
use std::mem::{MaybeUninit, offset_of};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use wave_switch::SchedulerState;
use wavesim_engine::interp::Waves;
use wavesim_isa::relative::VGPR_MSBS;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{Cx, Flow, file};
use wavesim_machine::state::wave::LANE_VECS;
use wavesim_machine::state::{LaneVec, Wave};

/// The size of a lane vector, whose lanes are contiguous.
pub const LANE_VEC_BYTES: usize = size_of::<LaneVec>();
/// The distance between the two halves of a wave64 in its register file.
pub const HALF_BYTES: usize = LANE_VECS * LANE_VEC_BYTES;

/// The MXCSR that Rust code expects: round to nearest even, exceptions masked, denormals kept (Intel SDM,
/// volume 1, 10.2.3).
const MXCSR_DEFAULT: u32 = 0x1f80;
/// MXCSR.DAZ: denormal sources are treated as zeros.
const MXCSR_DAZ: u32 = 0x40;

/// The argument of compiled code. The pointers in `wave` are those of the current wave.
#[repr(C)]
pub struct Frame {
    wave: WavePointers,
    /// `Cx::instructions`.
    instructions: *mut u64,
    /// The instruction count at which the turn ends.
    end: u64,
    /// The instruction count at the start of the straight-line region, minus the number of its first
    /// operation: the sum with an operation's number is the count at that operation.
    base: u64,
    /// The target of a jump.
    jump: u64,
    /// The operation that stopped, or the one to continue with.
    op: *const Op,
    /// The workgroup's LDS.
    lds: *mut u8,
    lds_bytes: u64,
    /// Global memory ranges that were accessed last.
    pub ranges: RangeCache,
    /// A buffer for lanes that are processed one by one, and for the arguments and results of functions of
    /// lanes.
    pub lane_buffer: MaybeUninit<[u64; 40]>,
    /// MXCSR values: the default, and the default with DAZ.
    mxcsr_default: u32,
    mxcsr_daz: u32,
    cx: *mut u8,
    program: *const Program,
    /// The other waves of the workgroup.
    waves: *mut (dyn Waves<'static> + 'static),
    /// The mode that the code is specialised for.
    mode: CodeMode,
    /// The wave's MODE. Other waves with the same MODE can run the same code.
    wave_mode: u32,
    /// The code that is running.
    code: Code,
    /// The entry at which it continues.
    entry: u32,
    /// The points at which other waves last resumed in this code, the most recent first: waves that alternate
    /// at barriers mostly resume at one or two points.
    resumed: [ResumePoint; 2],
    /// The entry points of the program.
    entries: *const [EntryPoint],
    /// The waves that have run in this frame, with their caches.
    wave_caches: *mut WaveCaches<WavePointers>,
    scheduler: SchedulerState,
    /// The bits of MODE that units track: those that extend VGPR numbers, or none. While code runs, MODE has earlier
    /// ones; see [`sync_vgpr_msbs`].
    tracked_mode: u32,
}

/// A point at which a wave resumed.
#[derive(Clone, Copy)]
struct ResumePoint {
    pc: u64,
    /// The number of the operation at `pc`.
    number: u32,
    /// The entry of the code.
    entry: u32,
}

impl ResumePoint {
    /// Matches no PC.
    const NOWHERE: ResumePoint = ResumePoint { pc: u64::MAX, number: 0, entry: 0 };
}

/// Pointers into the state of a wave.
#[repr(C)]
#[derive(Clone, Copy)]
struct WavePointers {
    vectors: *mut LaneVec,
    /// Other fields of the wave are addressed relative to its SGPRs: see [`wave_offset`].
    sgprs: *mut u32,
    /// The flags of the first half's lane vectors. The flags of the second half are [`HALF_BYTES`] away, as
    /// its lane vectors are.
    flags: *mut u8,
    /// The EXEC that the wave's lane masks represent. Compiled code only writes the EXEC registers.
    mask_exec: u64,
    /// The wave's cache.
    cache: *mut WaveCache,
}

impl WavePointers {
    /// Returns the pointers to the context's wave, and inserts the wave into the table, as one
    /// that runs this code.
    ///
    /// # Safety
    /// The context and the table must be valid. The pointers stay valid while the wave is in the context;
    /// nothing else may access their targets meanwhile.
    #[inline(always)]
    unsafe fn new(cx: *mut Cx<'_>, waves: *mut WaveCaches<WavePointers>, code: Code) -> WavePointers {
        // SAFETY: the contract guarantees valid pointers.
        unsafe {
            let first = file(&*cx, 0);
            let wave: *mut Wave = &mut *(*cx).wave;
            let mut pointers = WavePointers {
                vectors: first.at(0),
                // Derived from a pointer to the whole wave, so that other fields are within its provenance.
                sgprs: wave.byte_add(offset_of!(Wave, sgprs)).cast(),
                flags: first.all_flags(),
                mask_exec: (*wave).exec(),
                cache: std::ptr::null_mut(),
            };
            pointers.cache = WaveCaches::insert(waves, wave, (*wave).id, code as usize, pointers);
            pointers
        }
    }
}

impl WavePointers {
    /// Returns the wave.
    #[inline(always)]
    fn wave(&self) -> *mut Wave {
        self.sgprs.wrapping_byte_sub(offset_of!(Wave, sgprs)).cast()
    }
}

impl Frame {
    /// Returns the current wave.
    pub fn wave_ptr(&self) -> *mut Wave {
        self.wave.wave()
    }

    /// Returns the context, after making the current wave its wave.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame: no other reference to the context may exist.
    #[inline(always)]
    pub unsafe fn cx<'f>(frame: *mut Frame) -> &'f mut Cx<'f> {
        // SAFETY: the contract of `enter` guarantees that the frame points to a valid context.
        unsafe {
            if matches!((*frame).scheduler, SchedulerState::Shared { stale: true, .. }) {
                Frame::sync_context(frame);
            }
            &mut *(*frame).cx.cast()
        }
    }

    /// # Safety
    /// As for [`Frame::cx`].
    #[inline(never)]
    unsafe fn sync_context(frame: *mut Frame) {
        // SAFETY: the contract guarantees a valid frame with a valid context.
        unsafe {
            if let SchedulerState::Shared { scheduler, stale } = &mut (*frame).scheduler {
                (*(*frame).waves).sync_context(&mut *(*frame).cx.cast(), scheduler.turn());
                *stale = false;
            }
        }
    }
}

/// The flow of a bailout: the code is not made for what follows, and the interpreter continues at
/// [`Frame::op`].
pub const BAILOUT: Flow = Flow(u32::MAX);

/// The flow after a switch to another wave that has no code: the wave in the context continues at its PC.
pub const SWITCHED: Flow = Flow(u32::MAX - 1);

/// Compiled code continues with another wave.
pub const RESUME: Flow = Flow(u32::MAX - 3);

/// Execution continues in [`Frame::code`], which belongs to another unit, with the wave in the frame.
pub const CHAIN: Flow = Flow(u32::MAX - 4);

/// As [`SWITCHED`], but no wave is ready in this round.
pub const OVER: Flow = Flow(u32::MAX - 2);

/// Offsets of fields of [`Frame`], for compiled code.
pub mod frame_offset {
    use super::{Frame, offset_of};
    pub const MXCSR_DEFAULT: i32 = offset_of!(Frame, mxcsr_default) as i32;
    pub const MXCSR_DAZ: i32 = offset_of!(Frame, mxcsr_daz) as i32;
    pub const WAVE_CACHE: i32 = offset_of!(Frame, wave.cache) as i32;
    pub const LDS: i32 = offset_of!(Frame, lds) as i32;
    pub const LDS_BYTES: i32 = offset_of!(Frame, lds_bytes) as i32;
    pub const RANGES: i32 = offset_of!(Frame, ranges) as i32;
    pub const LANE_BUFFER: i32 = offset_of!(Frame, lane_buffer) as i32;
    pub const VECTORS: i32 = offset_of!(Frame, wave.vectors) as i32;
    pub const SGPRS: i32 = offset_of!(Frame, wave.sgprs) as i32;
    pub const FLAGS: i32 = offset_of!(Frame, wave.flags) as i32;
    pub const INSTRUCTIONS: i32 = offset_of!(Frame, instructions) as i32;
    pub const END: i32 = offset_of!(Frame, end) as i32;
    pub const BASE: i32 = offset_of!(Frame, base) as i32;
    pub const JUMP: i32 = offset_of!(Frame, jump) as i32;
    pub const ENTRY: i32 = offset_of!(Frame, entry) as i32;
    pub const OP: i32 = offset_of!(Frame, op) as i32;
}

/// Offsets of fields of a wave, relative to its SGPRs.
pub mod wave_offset {
    use super::{Wave, offset_of};
    const fn from_sgprs(offset: usize) -> i32 {
        offset as i32 - offset_of!(Wave, sgprs) as i32
    }
    pub const SCC: i32 = from_sgprs(offset_of!(Wave, scc));
    pub const MODE: i32 = from_sgprs(offset_of!(Wave, mode));
    /// The address of the code, for computed jumps.
    pub const CODE_BASE: i32 = from_sgprs(offset_of!(Wave, code_base));
}

/// Where an operation's code is entered.
#[derive(Default)]
pub struct EntryPoint {
    /// The function, or null.
    pub code: AtomicPtr<()>,
    /// The number of the function's entry, and above it, MODE's bits that extend VGPR numbers there: code is entered
    /// with the same bits only. It is written once, before `code`.
    entry: AtomicU32,
    /// The number of short visits in sequence: see [`EntryPoint::count_visit`].
    short_visits: AtomicU32,
}

/// The bits of [`EntryPoint::entry`] that are MODE's.
const ENTRY_MSBS: u32 = 0xff << 24;
/// The distance between them and those in MODE.
const MSBS_UP: u32 = ENTRY_MSBS.trailing_zeros() - VGPR_MSBS.trailing_zeros();

impl EntryPoint {
    /// Sets the code, the number of its entry, and MODE's bits that extend VGPR numbers there.
    pub fn set(&self, code: Code, entry: u32, msbs: u32) {
        self.entry.store(entry | msbs << MSBS_UP, Ordering::Relaxed);
        self.code.store(code as *mut (), Ordering::Release);
    }

    /// Returns the code and the number of its entry, if there is code.
    #[inline(always)]
    pub fn code(&self) -> Option<(Code, u32)> {
        let code = self.code.load(Ordering::Acquire);
        if code.is_null() {
            return None;
        }
        // SAFETY: the only non-null pointers stored here are functions of this type, whose code `Host` keeps
        // alive.
        let code = unsafe { std::mem::transmute::<*mut (), Code>(code) };
        Some((code, self.entry.load(Ordering::Relaxed) & !ENTRY_MSBS))
    }

    /// Returns whether the code is for these bits of MODE.
    #[inline(always)]
    pub fn has_msbs(&self, bits: u32) -> bool {
        self.entry.load(Ordering::Relaxed) & ENTRY_MSBS == bits << MSBS_UP
    }

    /// Counts a visit of the code that was entered here, which executed so many instructions, of all the waves
    /// that ran. Returns whether entering has not been worthwhile for a long time.
    #[inline(always)]
    pub fn count_visit(&self, instructions: u64) -> bool {
        let before = self.short_visits.load(Ordering::Relaxed);
        if instructions >= WORTHWHILE_VISIT {
            if before != 0 {
                self.short_visits.store(0, Ordering::Relaxed);
            }
            return false;
        }
        let rest = before >= MAX_SHORT_VISITS;
        self.short_visits.store(if rest { 0 } else { before + 1 }, Ordering::Relaxed);
        rest
    }
}

/// The number of instructions from which a visit of compiled code is worthwhile: for fewer, entering and leaving
/// it costs more than it saves.
const WORTHWHILE_VISIT: u64 = 12;
/// The number of visits in sequence that are not, after which an entry point rests.
const MAX_SHORT_VISITS: u32 = 1000;

/// Compiled code. Takes the frame and the number of an entry, and returns a [`Flow`].
///
/// Hosts that are neither x86-64 nor aarch64 have none: [`crate::UnsupportedHost`] reports them.
#[cfg(target_arch = "x86_64")]
pub type Code = unsafe extern "sysv64" fn(*mut Frame, u32) -> u32;
/// Compiled code, likewise.
#[cfg(not(target_arch = "x86_64"))]
pub type Code = unsafe extern "C" fn(*mut Frame, u32) -> u32;

/// Declares a function that compiled code calls.
macro_rules! called {
    ($(#[$meta:meta])* pub unsafe fn $name:ident($($args:tt)*) -> $result:ty $body:block) => {
        #[cfg(target_arch = "x86_64")]
        $(#[$meta])*
        pub unsafe extern "sysv64" fn $name($($args)*) -> $result $body

        #[cfg(not(target_arch = "x86_64"))]
        $(#[$meta])*
        pub unsafe extern "C" fn $name($($args)*) -> $result $body
    };
}
pub(crate) use called;

/// The result of running compiled code.
pub struct Exit {
    /// [`Flow::NEXT`]: continue with [`Exit::op`]; otherwise that operation returned this flow.
    pub flow: Flow,
    /// See [`Exit::flow`].
    pub op: *const Op,
    /// The number of the first operation of the straight-line region.
    pub start: u32,
    /// The number of instructions executed.
    pub executed: u64,
}

/// Where and how compiled code is entered.
pub struct EntryArgs<'p> {
    pub code: Code,
    /// The number of the code's entry.
    pub entry: u32,
    /// The number of the first operation of the straight-line region.
    pub start: u32,
    /// The mode that the code is specialised for.
    pub mode: CodeMode,
    /// The program.
    pub program: &'p Program,
    /// The entry points of the program.
    pub entries: &'p [EntryPoint],
    /// Units track MODE's bits that extend VGPR numbers.
    pub tracks_msbs: bool,
}

/// Runs compiled code. The turn ends when the instruction count reaches `end`; if other waves have run, `end`
/// is that of the current wave's turn afterwards.
///
/// # Safety
/// The code must have been compiled for the program, float mode and wave size of `cx`; the program's
/// operations must not have moved; and `entry` must be one of the code's entries.
pub unsafe fn enter<'a>(
    cx: &mut Cx<'a>,
    EntryArgs { code, entry, start, mode, program, entries, tracks_msbs }: EntryArgs<'_>,
    end: &mut u64,
    waves: &mut dyn Waves<'a>,
) -> Exit {
    // SAFETY: only the lifetimes change. `waves` is used only together with the context, whose lifetime is
    // `'a`, too.
    let waves = unsafe {
        std::mem::transmute::<*mut (dyn Waves<'a> + '_), *mut (dyn Waves<'static> + 'static)>(waves)
    };
    let before = cx.instructions + (cx.op.number - start) as u64;
    let raw: *mut Cx<'_> = cx;
    // SAFETY: the context is valid. From here on it is accessed only through this pointer, here and in
    // functions that the code calls.
    unsafe {
        let lds: *mut [u8] = &raw mut *(*raw).lds;
        let mut wave_caches = WaveCaches::empty();
        let wave_caches = &raw mut wave_caches;
        let mut frame = Frame {
            wave: WavePointers::new(raw, wave_caches, code),
            instructions: &raw mut (*raw).instructions,
            end: *end,
            base: (*raw).instructions.wrapping_sub(start as u64),
            jump: 0,
            op: (*raw).op,
            lds: lds.cast(),
            lds_bytes: lds.len() as u64,
            ranges: RangeCache::empty(),
            lane_buffer: MaybeUninit::uninit(),
            mxcsr_default: MXCSR_DEFAULT,
            mxcsr_daz: MXCSR_DEFAULT | MXCSR_DAZ,
            cx: raw.cast(),
            program,
            waves,
            mode,
            wave_mode: (*raw).wave.mode,
            code,
            entry,
            resumed: [ResumePoint::NOWHERE; 2],
            entries,
            wave_caches,
            scheduler: SchedulerState::Unknown,
            tracked_mode: if tracks_msbs { VGPR_MSBS } else { 0 },
        };
        let frame = &raw mut frame;
        let flow = loop {
            let flow = Flow(((*frame).code)(frame, (*frame).entry));
            if flow != CHAIN && chain(frame, flow).is_none() {
                break flow;
            }
        };
        Frame::cx(frame);
        let frame = &*frame;
        *end = frame.end;
        // Code has written the bits that it tracks, or another wave has replaced its own.
        if tracks_msbs {
            (*raw).refresh_mode();
        }
        // After a switch, handlers have already rebuilt the masks.
        if flow != SWITCHED && flow != OVER && frame.wave.mask_exec != (*raw).wave.exec() {
            (*raw).wave.rebuild_masks();
        }
        (*raw).jump = frame.jump;
        let start = (*raw).instructions.wrapping_sub(frame.base) as u32;
        // After a switch, the count is up to date, and the operation is an earlier one.
        let region =
            if flow == SWITCHED || flow == OVER { 0 } else { (*frame.op).number.wrapping_sub(start) };
        let executed = ((*raw).instructions + region as u64).saturating_sub(before);
        Exit { flow, op: frame.op, start, executed }
    }
}

/// Chains units: if code has ended before an operation or jumped to one for which another unit has code, that
/// code continues in this frame. Otherwise returns `None`.
///
/// # Safety
/// As for [`run_handlers`], after the code has returned.
unsafe fn chain(frame: *mut Frame, flow: Flow) -> Option<()> {
    // SAFETY: the contract, and that of `enter`, guarantee a valid frame and program. The wave's mode has not
    // changed: operations that change it return another flow.
    unsafe {
        let program = &*(*frame).program;
        let op = &*(*frame).op;
        let (next, count) = match flow {
            Flow::NEXT => (op, None),
            Flow::JUMP => {
                (program.op_at((*frame).jump)?, Some((*frame).base.wrapping_add(op.complete() as u64)))
            }
            _ => return None,
        };
        // The interpreter ends turns at jumps, too.
        if count.is_some_and(|count| count >= (*frame).end) {
            return None;
        }
        let slot = (&(*(*frame).entries)).get(program.index_of(next))?;
        let (code, entry) = slot.code()?;
        if !slot.has_msbs((*(*frame).wave.wave()).mode & (*frame).tracked_mode) {
            return None;
        }
        if (*frame).tracked_mode != 0 {
            // The code that has ended has written the bits.
            Frame::cx(frame).refresh_mode();
        }
        if let Some(count) = count {
            *(*frame).instructions = count;
            (*frame).base = count.wrapping_sub(next.number as u64);
        }
        ((*frame).code, (*frame).entry, (*frame).resumed) = (code, entry, [ResumePoint::NOWHERE; 2]);
        (*(*frame).wave.cache).enter_unit(code as usize);
        Some(())
    }
}

/// Rebuilds the wave's lane masks if EXEC has changed: compiled code writes EXEC in registers, handlers read
/// the masks.
///
/// # Safety
/// `wave` must be the current wave of the frame.
#[inline(always)]
unsafe fn sync_lane_masks(frame: *mut Frame, wave: &mut Wave) {
    let exec = wave.exec();
    // SAFETY: the contract guarantees a valid frame.
    unsafe {
        if exec != (*frame).wave.mask_exec {
            wave.rebuild_masks();
            (*frame).wave.mask_exec = exec;
        }
    }
}

called! {
    /// Writes MODE's bits that extend VGPR numbers, which code tracks instead, and selects the handlers for them. Code
    /// calls it before handlers.
    ///
    /// # Safety
    /// As for [`run_handlers`].
    pub unsafe fn sync_vgpr_msbs(frame: *mut Frame, bits: u32) -> u32 {
        // SAFETY: the contract of `enter` guarantees that the frame has a valid context, which nothing else
        // references now.
        unsafe {
            let cx = Frame::cx(frame);
            let mode = cx.wave.mode & !VGPR_MSBS | bits;
            if cx.wave.mode != mode {
                cx.wave.mode = mode;
                cx.refresh_mode();
            }
            0
        }
    }
}

/// Returns whether code continues after an operation that may have written MODE, whose value was `before`: whether what
/// code is specialised for has not changed.
///
/// # Safety
/// As for [`run_handlers`].
#[cold]
#[inline(never)]
unsafe fn continues_after(frame: *mut Frame, cx: &Cx<'_>, before: u32) -> bool {
    // SAFETY: the contract guarantees a valid frame.
    unsafe {
        let tracked = (*frame).tracked_mode;
        let same = CodeMode::of(cx, tracked != 0).map(CodeMode::index) == Some((*frame).mode.index());
        if !same || (cx.wave.mode ^ before) & tracked != 0 {
            return false;
        }
        (*frame).wave_mode = cx.wave.mode;
        true
    }
}

called! {
    /// Runs the handlers of `count` operations, up to the first that returns another flow than
    /// [`Flow::NEXT`]; [`Frame::op`] is set to that operation. An operation that writes MODE, but nothing that code is
    /// specialised for, is one that returns [`Flow::NEXT`].
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, and with operations of the program.
    pub unsafe fn run_handlers(frame: *mut Frame, mut op: *const Op, count: u32) -> u32 {
        // SAFETY: the contract of `enter` guarantees that the frame has a valid context, which nothing else
        // references now. The operations satisfy the invariants of lowered code (`exec::validate`).
        unsafe {
            let cx = Frame::cx(frame);
            sync_lane_masks(frame, cx.wave);
            let mut flow = Flow::NEXT;
            for _ in 0..count {
                cx.op = &*op;
                let mode = cx.wave.mode;
                flow = cx.handlers.get_unchecked((*op).code as usize)(cx, &*op);
                if flow != Flow::NEXT {
                    if flow != Flow::MODE || !continues_after(frame, cx, mode) {
                        (*frame).op = op;
                        break;
                    }
                    flow = Flow::NEXT;
                }
                op = op.add(1);
            }
            (*frame).wave.mask_exec = cx.wave.exec();
            (*frame).jump = cx.jump;
            flow.0
        }
    }
}
