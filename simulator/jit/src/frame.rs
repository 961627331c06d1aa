//! What compiled code is called with, and what it calls: the handlers of the interpreter.

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

/// Bytes of a lane vector: lanes lie one after the other.
pub const LANE_VEC_BYTES: usize = size_of::<LaneVec>();
/// Distance of the two halves of a wave of 64 in its register file.
pub const HALF_BYTES: usize = LANE_VECS * LANE_VEC_BYTES;

/// MXCSR as Rust code has it: nearest even, no exceptions, denormals kept (Intel SDM, volume 1, 10.2.3).
const FLOAT_CONTROL: u32 = 0x1f80;
/// Its bit for denormals of sources.
const DENORMALS_ARE_ZEROS: u32 = 0x40;

/// The argument of compiled code. Pointers go to the wave that runs.
#[repr(C)]
pub struct Frame {
    wave: OfWave,
    /// `Cx::instructions`.
    instructions: *mut u64,
    /// The count of instructions at which the turn is over.
    end: u64,
    /// Instructions before the straight line, less those that lie before it in the program: with the number of an
    /// operation it is the count.
    base: u64,
    /// Where to go, after a jump.
    jump: u64,
    /// The operation that stopped, or the one to go on with.
    op: *const Op,
    /// The workgroup's LDS.
    lds: *mut u8,
    lds_bytes: u64,
    /// Global memory that was accessed last.
    pub ranges: Ranges,
    /// For lanes that are taken one by one, and arguments of functions of lanes.
    pub room: MaybeUninit<[u64; 40]>,
    /// The host's float control, MXCSR, as it is, and with denormals of sources taken for zeros.
    denormals: u32,
    no_denormals: u32,
    cx: *mut u8,
    program: *const Program,
    /// Whose turn it is where a wave waits.
    waves: *mut (dyn Waves<'static> + 'static),
    /// What the code is made for.
    form: Form,
    /// MODE of the wave: others that have it are of the same form.
    mode: u32,
    /// The code.
    code: Code,
    /// Where it goes on with another wave.
    entry: u32,
    /// Where other waves resumed in this code, the last one first: waves that take turns at barriers mostly resume at one or two places.
    resumed: [ResumePoint; 2],
    /// Where code begins.
    places: *const [Place],
    /// Waves that have run, and what is known of them.
    known: *mut OfWaves<OfWave>,
    turns: Turns,
}

/// Where a wave resumed.
#[derive(Clone, Copy)]
struct ResumePoint {
    pc: u64,
    /// Of the operation there.
    number: u32,
    /// Of the code.
    entry: u32,
}

impl ResumePoint {
    /// No PC.
    const NOWHERE: ResumePoint = ResumePoint { pc: u64::MAX, number: 0, entry: 0 };
}

/// The wave that runs.
#[repr(C)]
#[derive(Clone, Copy)]
struct OfWave {
    vectors: *mut LaneVec,
    /// Other fields of the wave are addressed relative to these: [`of_wave`].
    sgprs: *mut u32,
    /// Of the lane vectors of the first half; those of the second are as far away as its lane vectors are.
    flags: *mut u8,
    /// EXEC as its lane masks have it. Compiled code writes the registers only.
    masked: u64,
    /// What is known of it.
    kept: *mut Kept,
}

impl OfWave {
    /// # Safety
    /// A valid context and table. Pointers are valid as long as the wave is in it, and nothing but them refers to what they point to.
    #[inline(always)]
    unsafe fn new(cx: *mut Cx<'_>, waves: *mut OfWaves<OfWave>) -> OfWave {
        // SAFETY: by the contract.
        unsafe {
            let first = file(&*cx, 0);
            let wave: *mut Wave = &mut *(*cx).wave;
            let mut of = OfWave {
                vectors: first.at(0),
                // Derived from the pointer to the whole wave, so that other fields may be reached from it.
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
    /// The wave.
    #[inline(always)]
    fn wave(&self) -> *mut Wave {
        self.sgprs.wrapping_byte_sub(offset_of!(Wave, sgprs)).cast()
    }
}

impl Frame {
    /// The wave that runs.
    pub fn wave_ptr(&self) -> *mut Wave {
        self.wave.wave()
    }

    /// The context, with the wave that runs.
    ///
    /// # Safety
    /// Called by compiled code with its frame: nothing else refers to the context now.
    #[inline(always)]
    pub unsafe fn cx<'f>(frame: *mut Frame) -> &'f mut Cx<'f> {
        // SAFETY: by the contract of `enter`.
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
        // SAFETY: by the contract.
        unsafe {
            if let Turns::Ring { ring, behind } = &mut (*frame).turns {
                (*(*frame).waves).sync_context(&mut *(*frame).cx.cast(), ring.turn());
                *behind = false;
            }
        }
    }
}

/// What compiled code returns before something that it is not made for: [`Frame::op`] and what follows are the interpreter's.
pub const REFUSED: Flow = Flow(u32::MAX);

/// What compiled code returns after other waves had their turns: the wave in the context goes on from its PC.
pub const SWITCHED: Flow = Flow(u32::MAX - 1);

/// Compiled code goes on with another wave.
pub const TURN: Flow = Flow(u32::MAX - 3);

/// Execution continues in [`Frame::code`], which is another unit's, with the wave in the frame.
pub const CHAIN: Flow = Flow(u32::MAX - 4);

/// As [`SWITCHED`], and no wave is ready in this round.
pub const OVER: Flow = Flow(u32::MAX - 2);

/// Offsets in [`Frame`], for code that is made.
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
    /// Its address of the code, for jumps that are computed.
    pub const CODE_BASE: i32 = from_sgprs(offset_of!(Wave, code_base));
    /// The streams that instructions access, for prefetching.
    pub const STREAMS: i32 = from_sgprs(offset_of!(Wave, streams));
}

/// Compiled code: takes the frame and which of its entries to begin at, gives a [`Flow`].
///
/// Of other hosts than x86-64 there is none: [`crate::Refused`] says so.
#[cfg(target_arch = "x86_64")]
pub type Code = unsafe extern "sysv64" fn(*mut Frame, u32) -> u32;
/// Code that is never made.
#[cfg(not(target_arch = "x86_64"))]
pub type Code = unsafe extern "C" fn(*mut Frame, u32) -> u32;

/// A function that compiled code calls.
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

/// How a piece of compiled code ended.
pub struct Ended {
    /// [`Flow::NEXT`]: go on with [`Ended::op`]; otherwise that operation gave it.
    pub flow: Flow,
    /// See [`Ended::flow`].
    pub op: *const Op,
    /// Number of the operation that the straight line began with.
    pub start: u32,
    /// The operation at which the last unit was entered.
    pub begin: usize,
}

/// Where compiled code begins.
pub struct Start<'p> {
    pub code: Code,
    /// Which of its entries it is.
    pub entry: u32,
    /// Number of the operation that the straight line began with.
    pub start: u32,
    /// What the code is made for.
    pub form: Form,
    /// The program.
    pub program: &'p Program,
    /// Where code for it begins.
    pub places: &'p [Place],
}

/// Runs compiled code. The turn is over when the count of instructions comes to `end`, which is that of another wave's turn afterwards if
/// others had theirs.
///
/// # Safety
/// The code was made for the program, the float mode and the wave size of `cx`, whose operations stay in place, and
/// `entry` is one of its entries.
pub unsafe fn enter<'a>(
    cx: &mut Cx<'a>,
    Start { code, entry, start, form, program, places }: Start<'_>,
    end: &mut u64,
    waves: &mut dyn Waves<'a>,
) -> Ended {
    // SAFETY: the lifetimes alone change. It is used by `switch_wave` only, with the context, whose lifetime is `'a` as it is here.
    let waves = unsafe {
        std::mem::transmute::<*mut (dyn Waves<'a> + '_), *mut (dyn Waves<'static> + 'static)>(waves)
    };
    let raw: *mut Cx<'_> = cx;
    // SAFETY: a valid context; from here on it is reached by this pointer alone, here and in the functions that code calls.
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
        // Otherwise handlers have left the wave as it is to be.
        if flow != SWITCHED && flow != OVER && frame.wave.masked != (*raw).wave.exec() {
            (*raw).wave.rebuild_masks();
        }
        (*raw).jump = frame.jump;
        Ended { flow, op: frame.op, start: (*raw).instructions.wrapping_sub(frame.base) as u32, begin }
    }
}

/// Chains units: where code has ended before an operation, or jumped to one, another unit that has code for it continues in this frame. Gives
/// the operation's number in the program.
///
/// # Safety
/// As for [`run_handlers`], after the code has ended.
unsafe fn chain(frame: *mut Frame, flow: Flow) -> Option<usize> {
    // SAFETY: by the contract, and that of `enter`. The wave's mode is what it was: what changes it gives another flow.
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
        // As the interpreter, which ends turns at jumps.
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

/// EXEC is in registers; handlers have it as lane masks, too.
///
/// # Safety
/// The frame has this wave.
#[inline(always)]
unsafe fn take_exec(frame: *mut Frame, wave: &mut Wave) {
    let exec = wave.exec();
    // SAFETY: by the contract.
    unsafe {
        if exec != (*frame).wave.masked {
            wave.rebuild_masks();
            (*frame).wave.masked = exec;
        }
    }
}

called! {
    /// Runs `count` operations by their handlers, or up to the first that does not just go on, which is in [`Frame::op`]
    /// then.
    ///
    /// # Safety
    /// Called by compiled code with its frame, and with operations of the program.
    pub unsafe fn run_handlers(frame: *mut Frame, mut op: *const Op, count: u32) -> u32 {
        // SAFETY: by the contract of `enter`: the frame has its context, and nothing else refers to that now. Operations
        // keep to the invariants of lowered code (`exec::validate`).
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
