//! The interface between compiled code and the engine: the argument of compiled code, and the functions that
//! it calls.

mod resources;
mod turns;

pub use resources::find_resources;
pub use turns::{meet, run_turn, wait};

use crate::access::Ranges;
use crate::kept::{Kept, OfWaves};
use crate::{Form, Place};
use std::mem::{MaybeUninit, offset_of};
use turns::Turns;
use wavesim_engine::interp::Waves;
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
const FLOAT_CONTROL: u32 = 0x1f80;
/// MXCSR.DAZ: denormal sources are treated as zeros.
const DENORMALS_ARE_ZEROS: u32 = 0x40;

/// The argument of compiled code. The pointers in `wave` are those of the current wave.
#[repr(C)]
pub struct Frame {
    wave: OfWave,
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
    pub ranges: Ranges,
    /// A buffer for lanes that are processed one by one, and for the arguments and results of functions of
    /// lanes.
    pub room: MaybeUninit<[u64; 40]>,
    /// MXCSR values: the default, and the default with DAZ.
    denormals: u32,
    no_denormals: u32,
    cx: *mut u8,
    program: *const Program,
    /// The other waves of the workgroup.
    waves: *mut (dyn Waves<'static> + 'static),
    /// The mode that the code is specialised for.
    form: Form,
    /// The wave's MODE. Other waves with the same MODE can run the same code.
    mode: u32,
    /// The code that is running.
    code: Code,
    /// The entry at which it continues.
    entry: u32,
    /// The points at which other waves last resumed in this code, the most recent first: waves that alternate
    /// at barriers mostly resume at one or two points.
    resumed: [ResumePoint; 2],
    /// The entry points of the program.
    places: *const [Place],
    /// The waves that have run in this frame, with their caches.
    known: *mut OfWaves<OfWave>,
    turns: Turns,
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
struct OfWave {
    vectors: *mut LaneVec,
    /// Other fields of the wave are addressed relative to its SGPRs: see [`wave_offset`].
    sgprs: *mut u32,
    /// The flags of the first half's lane vectors. The flags of the second half are [`HALF_BYTES`] away, as
    /// its lane vectors are.
    flags: *mut u8,
    /// The EXEC that the wave's lane masks represent. Compiled code only writes the EXEC registers.
    masked: u64,
    /// The wave's cache.
    kept: *mut Kept,
}

impl OfWave {
    /// # Safety
    /// The context and the table must be valid. The pointers stay valid while the wave is in the context;
    /// nothing else may access their targets meanwhile.
    #[inline(always)]
    unsafe fn new(cx: *mut Cx<'_>, waves: *mut OfWaves<OfWave>) -> OfWave {
        // SAFETY: the contract guarantees valid pointers.
        unsafe {
            let first = file(&*cx, 0);
            let wave: *mut Wave = &mut *(*cx).wave;
            let mut of = OfWave {
                vectors: first.at(0),
                // Derived from a pointer to the whole wave, so that other fields are within its provenance.
                sgprs: wave.byte_add(offset_of!(Wave, sgprs)).cast(),
                flags: first.all_flags(),
                masked: (*wave).exec(),
                kept: std::ptr::null_mut(),
            };
            of.kept = OfWaves::insert(waves, wave, (*wave).id, of);
            of
        }
    }
}

impl OfWave {
    /// Returns the wave.
    #[inline(always)]
    fn wave(&self) -> *mut Wave {
        self.sgprs.wrapping_byte_sub(offset_of!(Wave, sgprs)).cast()
    }
}

impl Frame {
    /// Returns the context, after making the current wave its wave.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame: no other reference to the context may exist.
    #[inline(always)]
    pub unsafe fn cx<'f>(frame: *mut Frame) -> &'f mut Cx<'f> {
        // SAFETY: the contract of `enter` guarantees that the frame points to a valid context.
        unsafe {
            if matches!((*frame).turns, Turns::Ring { behind: true, .. }) {
                Frame::catch_up(frame);
            }
            &mut *(*frame).cx.cast()
        }
    }

    /// # Safety
    /// As for [`Frame::cx`].
    #[inline(never)]
    unsafe fn catch_up(frame: *mut Frame) {
        // SAFETY: the contract guarantees a valid frame with a valid context.
        unsafe {
            if let Turns::Ring { ring, behind } = &mut (*frame).turns {
                (*(*frame).waves).catch_up(&mut *(*frame).cx.cast(), ring.turn());
                *behind = false;
            }
        }
    }
}

/// The flow of a bailout: the code is not made for what follows, and the interpreter continues at
/// [`Frame::op`].
pub const REFUSED: Flow = Flow(u32::MAX);

/// The flow after a switch to another wave that has no code: the wave in the context continues at its PC.
pub const SWITCHED: Flow = Flow(u32::MAX - 1);

/// Compiled code continues with another wave.
pub const TURN: Flow = Flow(u32::MAX - 3);

/// Execution continues in [`Frame::code`], which belongs to another unit, with the wave in the frame.
pub const CHAIN: Flow = Flow(u32::MAX - 4);

/// As [`SWITCHED`], but no wave is ready in this round.
pub const OVER: Flow = Flow(u32::MAX - 2);

/// Offsets of fields of [`Frame`], for compiled code.
pub mod at {
    use super::{Frame, offset_of};
    pub const DENORMALS: i32 = offset_of!(Frame, denormals) as i32;
    pub const NO_DENORMALS: i32 = offset_of!(Frame, no_denormals) as i32;
    pub const KEPT: i32 = offset_of!(Frame, wave.kept) as i32;
    pub const LDS: i32 = offset_of!(Frame, lds) as i32;
    pub const LDS_BYTES: i32 = offset_of!(Frame, lds_bytes) as i32;
    pub const RANGES: i32 = offset_of!(Frame, ranges) as i32;
    pub const ROOM: i32 = offset_of!(Frame, room) as i32;
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
pub mod of_wave {
    use super::{Wave, offset_of};
    const fn from_sgprs(at: usize) -> i32 {
        at as i32 - offset_of!(Wave, sgprs) as i32
    }
    pub const SCC: i32 = from_sgprs(offset_of!(Wave, scc));
    pub const MODE: i32 = from_sgprs(offset_of!(Wave, mode));
    /// The address of the code, for computed jumps.
    pub const CODE_BASE: i32 = from_sgprs(offset_of!(Wave, code_base));
    /// The addresses that instructions accessed last, for prefetching.
    pub const LAST_ADDRESSES: i32 = from_sgprs(offset_of!(Wave, last_addresses));
}

/// Compiled code. Takes the frame and the number of an entry, and returns a [`Flow`].
///
/// Only x86-64 hosts have any: [`crate::UnsupportedHost`] reports others.
#[cfg(target_arch = "x86_64")]
pub type Code = unsafe extern "sysv64" fn(*mut Frame, u32) -> u32;
/// Code that is never created.
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
pub struct Ended {
    /// [`Flow::NEXT`]: continue with [`Exit::op`]; otherwise that operation returned this flow.
    pub flow: Flow,
    /// See [`Exit::flow`].
    pub op: *const Op,
    /// The number of the first operation of the straight-line region.
    pub start: u32,
    /// The operation at which the last unit was entered.
    pub begin: usize,
}

/// Where and how compiled code is entered.
pub struct Start<'p> {
    pub code: Code,
    /// The number of the code's entry.
    pub entry: u32,
    /// The number of the first operation of the straight-line region.
    pub start: u32,
    /// The mode that the code is specialised for.
    pub form: Form,
    /// The program.
    pub program: &'p Program,
    /// The entry points of the program.
    pub places: &'p [Place],
}

/// Runs compiled code. The turn ends when the instruction count reaches `end`; if other waves have run, `end`
/// is that of the current wave's turn afterwards.
///
/// # Safety
/// The code must have been compiled for the program, float mode and wave size of `cx`; the program's
/// operations must not have moved; and `entry` must be one of the code's entries.
pub unsafe fn enter<'a>(
    cx: &mut Cx<'a>,
    Start { code, entry, start, form, program, places }: Start<'_>,
    end: &mut u64,
    waves: &mut dyn Waves<'a>,
) -> Ended {
    // SAFETY: only the lifetimes change. `waves` is used only together with the context, whose lifetime is
    // `'a`, too.
    let waves = unsafe {
        std::mem::transmute::<*mut (dyn Waves<'a> + '_), *mut (dyn Waves<'static> + 'static)>(waves)
    };
    let raw: *mut Cx<'_> = cx;
    // SAFETY: the context is valid. From here on it is accessed only through this pointer, here and in
    // functions that the code calls.
    unsafe {
        let lds: *mut [u8] = &raw mut *(*raw).lds;
        let mut known = OfWaves::none();
        let known = &raw mut known;
        let mut frame = Frame {
            wave: OfWave::new(raw, known),
            instructions: &raw mut (*raw).instructions,
            end: *end,
            base: (*raw).instructions.wrapping_sub(start as u64),
            jump: 0,
            op: (*raw).op,
            lds: lds.cast(),
            lds_bytes: lds.len() as u64,
            ranges: Ranges::none(),
            room: MaybeUninit::uninit(),
            denormals: FLOAT_CONTROL,
            no_denormals: FLOAT_CONTROL | DENORMALS_ARE_ZEROS,
            cx: raw.cast(),
            program,
            waves,
            form,
            mode: (*raw).wave.mode,
            code,
            entry,
            resumed: [ResumePoint::NOWHERE; 2],
            places,
            known,
            turns: Turns::Unknown,
        };
        let frame = &raw mut frame;
        let mut begin = program.index_of(&*(*frame).op);
        let flow = loop {
            let flow = Flow(((*frame).code)(frame, (*frame).entry));
            if flow != CHAIN {
                match chain(frame, flow) {
                    Some(next) => begin = next,
                    None => break flow,
                }
            }
        };
        Frame::cx(frame);
        let frame = &*frame;
        *end = frame.end;
        // After a switch, handlers have already rebuilt the masks.
        if flow != SWITCHED && flow != OVER && frame.wave.masked != (*raw).wave.exec() {
            (*raw).wave.rebuild_masks();
        }
        (*raw).jump = frame.jump;
        Ended { flow, op: frame.op, start: (*raw).instructions.wrapping_sub(frame.base) as u32, begin }
    }
}

/// Chains units: if code has ended before an operation or jumped to one for which another unit has code, that
/// code continues in this frame. Returns the operation's number in the program.
///
/// # Safety
/// As for [`run_handlers`], after the code has returned.
unsafe fn chain(frame: *mut Frame, flow: Flow) -> Option<usize> {
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
        let begin = program.index_of(next);
        let (code, entry) = (&(*(*frame).places)).get(begin)?.trusted_code()?;
        if let Some(count) = count {
            *(*frame).instructions = count;
            (*frame).base = count.wrapping_sub(next.number as u64);
        }
        ((*frame).code, (*frame).entry, (*frame).resumed) = (code, entry, [ResumePoint::NOWHERE; 2]);
        Some(begin)
    }
}

/// Rebuilds the wave's lane masks if EXEC has changed: compiled code writes EXEC in registers, handlers read
/// the masks.
///
/// # Safety
/// `wave` must be the current wave of the frame.
#[inline(always)]
unsafe fn take_exec(frame: *mut Frame, wave: &mut Wave) {
    let exec = wave.exec();
    // SAFETY: the contract guarantees a valid frame.
    unsafe {
        if exec != (*frame).wave.masked {
            wave.rebuild_masks();
            (*frame).wave.masked = exec;
        }
    }
}

called! {
    /// Runs the handlers of `count` operations, up to the first that returns another flow than
    /// [`Flow::NEXT`]; [`Frame::op`] is set to that operation.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, and with operations of the program.
    pub unsafe fn run_handlers(frame: *mut Frame, mut op: *const Op, count: u32) -> u32 {
        // SAFETY: the contract of `enter` guarantees that the frame has a valid context, which nothing else
        // references now. The operations satisfy the invariants of lowered code (`exec::validate`).
        unsafe {
            let cx = Frame::cx(frame);
            take_exec(frame, cx.wave);
            let mut flow = Flow::NEXT;
            for _ in 0..count {
                cx.op = &*op;
                flow = cx.handlers.get_unchecked((*op).code as usize)(cx, &*op);
                if flow != Flow::NEXT {
                    (*frame).op = op;
                    break;
                }
                op = op.add(1);
            }
            (*frame).wave.masked = cx.wave.exec();
            (*frame).jump = cx.jump;
            flow.0
        }
    }
}
