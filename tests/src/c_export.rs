//! Functions of `wavesim isa export --format c` as an evaluator of bodies: the header is compiled to a library, whose
//! functions run on the machines of the reference evaluator.

use isa_export::c::ROLES;
use isa_spec::eval::{Machine, Stop};
use isa_spec::pcode::builtins::{Builtin, Control, FIELDS, all};
use isa_spec::pcode::ir::{Role, Semantics, Shape, Space, State};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::{LazyLock, RwLock};
use wavesim::arch::Arch;
use wavesim::isa;

/// The compilers that the header is written for.
pub const COMPILERS: [&str; 2] = ["gcc", "clang-19"];

/// `isa_machine` of the header.
#[repr(C)]
struct CMachine {
    operand: [u128; ROLES.len() + 1],
    written: [u32; ROLES.len() + 1],
    index: [u32; ROLES.len() + 1],
    field: [u32; FIELDS.len()],
    clamp: bool,
    exec: u64,
    exec_out: u64,
    vcc: u64,
    scc: u32,
    m0: u32,
    mode: u32,
    status: u32,
    pc: u64,
    inst_size: u32,
    lane: u32,
    wave_size: u32,
    vgpr_size: u32,
    wave_id: u32,
    lds_size: u32,
    scratch_base: u64,
    shared_base: u64,
    private_base: u64,
    trap_base: u64,
    states: u32,
    stop: bool,
    user: *mut c_void,
    load: extern "C" fn(*mut CMachine, c_int, u64, c_uint) -> u128,
    store: extern "C" fn(*mut CMachine, c_int, u64, c_uint, u128),
    vgpr: extern "C" fn(*mut CMachine, u32, u32) -> u32,
    set_vgpr: extern "C" fn(*mut CMachine, u32, u32, u32),
    sgpr: extern "C" fn(*mut CMachine, u32) -> u32,
    set_sgpr: extern "C" fn(*mut CMachine, u32, u32),
    operand_lane: extern "C" fn(*mut CMachine, c_int, u32, u32) -> u32,
    control: extern "C" fn(*mut CMachine, c_int, *const u128, c_uint) -> u128,
}

/// `isa_instruction` of the header.
#[repr(C)]
struct CInstruction {
    name: *const c_char,
    run: Option<Function>,
    shape: c_int,
    reads: u32,
    writes: u32,
    indexed: u32,
}

type Function = extern "C" fn(*mut CMachine);

/// What `isa_machine.user` points to.
struct User<'a> {
    machine: &'a mut dyn Machine,
    lane: Option<u32>,
    stop: Option<Stop>,
}

/// The functions of bodies, by the bodies' addresses, which are those of the loaded pseudocode.
static FUNCTIONS: LazyLock<RwLock<HashMap<usize, Function>>> = LazyLock::new(Default::default);

/// The slot of the mask that a body writes.
const VCC_OUT: usize = ROLES.len();

/// A program that checks the size of the machine and returns the instructions.
pub fn source(arch: Arch, header: &str) -> String {
    let name = arch.table().name;
    format!(
        "#define ISA_TABLES\n#include \"{header}\"\n\
         const isa_instruction *instructions(void);\nsize_t machine_size(void);\n\
         const isa_instruction *instructions(void)\n{{\n    return {name}_instructions;\n}}\n\
         size_t machine_size(void)\n{{\n    return sizeof(isa_machine);\n}}\n"
    )
}

/// Loads a library that was compiled from [`source`], and makes [`evaluate`] use its functions.
pub fn load_library(arch: Arch, library: &Path) -> Result<usize, String> {
    let path = CString::new(library.display().to_string()).map_err(|e| e.to_string())?;
    let symbol = |handle: *mut c_void, name: &CStr| {
        // SAFETY: `handle` is that of an open library, and the name ends with a zero.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if found.is_null() { Err(format!("{} has no {name:?}", library.display())) } else { Ok(found) }
    };
    // SAFETY: the library was compiled from generated functions, without initialisers. It stays loaded.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(format!("{} cannot be loaded", library.display()));
    }
    // SAFETY: `source` defines both functions with these types.
    let (instructions, size) = unsafe {
        (
            std::mem::transmute::<*mut c_void, extern "C" fn() -> *const CInstruction>(symbol(
                handle,
                c"instructions",
            )?),
            std::mem::transmute::<*mut c_void, extern "C" fn() -> usize>(symbol(handle, c"machine_size")?),
        )
    };
    if size() != size_of::<CMachine>() {
        return Err(format!("isa_machine has {} bytes, not {}", size(), size_of::<CMachine>()));
    }
    let mut functions = FUNCTIONS.write().unwrap_or_else(|e| e.into_inner());
    let mut at = instructions();
    let mut count = 0;
    loop {
        // SAFETY: the table ends with an entry that has no name; `at` has not passed it.
        let one = unsafe { &*at };
        let Some(run) = one.run else { return Ok(count) };
        // SAFETY: names are constants of the library that end with a zero.
        let name = unsafe { CStr::from_ptr(one.name) }.to_string_lossy();
        let index = arch.table().instructions.iter().position(|inst| inst.name == name);
        let operation = index.and_then(|at| isa::number(arch, at)).and_then(isa::operation);
        let operation = operation.ok_or(format!("{name} has no body"))?;
        functions.insert(std::ptr::from_ref(&operation.sem) as usize, run);
        count += 1;
        // SAFETY: as above.
        at = unsafe { at.add(1) };
    }
}

/// Runs a body by its C function.
pub fn evaluate(sem: &Semantics, machine: &mut dyn Machine, lane: Option<u32>) -> Result<(), Stop> {
    let run =
        FUNCTIONS.read().unwrap_or_else(|e| e.into_inner()).get(&(std::ptr::from_ref(sem) as usize)).copied();
    let Some(run) = run else {
        // Images are not exported.
        assert!(sem.ignores_mode, "a body without a function");
        return isa_spec::eval::eval(sem, machine, lane);
    };
    let uses = &sem.uses;
    let mut m = prepare(sem, machine, lane);
    // SAFETY: a reference to a value of this function is erased for the time of the call, in which only the functions
    // below use it.
    let machine: &mut (dyn Machine + 'static) = unsafe { std::mem::transmute(machine) };
    let mut user = User { machine, lane, stop: None };
    m.user = (&raw mut user).cast();
    run(&raw mut m);
    if let Some(stop) = user.stop {
        return Err(stop);
    }
    let machine = user.machine;
    for (at, role) in ROLES.iter().enumerate().filter(|(_, role)| uses.writes.contains(role)) {
        let at = if *role == Role::Vcc { VCC_OUT } else { at };
        let width = m.written[at];
        if width > 0 {
            machine.set_operand(*role, lane, m.operand[at] & isa_spec::arith::mask(width), width);
        }
    }
    let exec = if sem.shape == Shape::Lane { m.exec_out } else { m.exec };
    let states = [
        (State::Exec, exec),
        (State::Vcc, m.vcc),
        (State::Scc, m.scc as u64),
        (State::M0, m.m0 as u64),
        (State::Pc, m.pc),
        (State::Mode, m.mode as u64),
    ];
    for (bit, (state, value)) in states.into_iter().enumerate() {
        if m.states >> bit & 1 == 1 {
            machine.set_state(state, value as u128)?;
        }
    }
    Ok(())
}

/// The machine before the body: all that it may read.
fn prepare(sem: &Semantics, machine: &mut dyn Machine, lane: Option<u32>) -> CMachine {
    let uses = &sem.uses;
    let state = |machine: &mut dyn Machine, state| machine.state(state, lane) as u64;
    let mut m = CMachine {
        operand: [0; ROLES.len() + 1],
        written: [0; ROLES.len() + 1],
        index: [0; ROLES.len() + 1],
        field: [0; FIELDS.len()],
        clamp: machine.clamp(),
        exec: state(machine, State::Exec),
        exec_out: machine.state_destination(State::Exec) as u64,
        vcc: state(machine, State::Vcc),
        scc: state(machine, State::Scc) as u32,
        m0: state(machine, State::M0) as u32,
        mode: state(machine, State::Mode) as u32,
        status: state(machine, State::Status) as u32,
        pc: state(machine, State::Pc),
        inst_size: state(machine, State::InstSize) as u32,
        lane: lane.unwrap_or(0),
        wave_size: state(machine, State::WaveSize) as u32,
        vgpr_size: state(machine, State::VgprSize) as u32,
        wave_id: state(machine, State::WaveId) as u32,
        lds_size: state(machine, State::LdsSize) as u32,
        scratch_base: state(machine, State::ScratchBase),
        shared_base: state(machine, State::SharedBase),
        private_base: state(machine, State::PrivateBase),
        trap_base: state(machine, State::TrapBase),
        states: 0,
        stop: false,
        user: std::ptr::null_mut(),
        load: load_bytes,
        store: store_bytes,
        vgpr,
        set_vgpr,
        sgpr,
        set_sgpr,
        operand_lane,
        control,
    };
    for (at, role) in ROLES.iter().enumerate() {
        let (read, written) = (uses.reads.contains(role), uses.writes.contains(role));
        if read {
            m.operand[at] = machine.operand(*role, lane);
        }
        if written && (!read || *role == Role::Vcc) {
            let at = if *role == Role::Vcc { VCC_OUT } else { at };
            m.operand[at] = machine.destination(*role, lane);
        }
        if uses.indexed.contains(role) {
            m.index[at] = machine.operand_index(*role);
        }
    }
    for (at, (name, _)) in FIELDS.iter().enumerate().filter(|(_, (name, _))| uses.fields.contains(name)) {
        m.field[at] = machine.field(name);
    }
    m
}

/// Calls a function of the evaluator's machine, unless it has stopped.
fn call<R: Default>(
    m: *mut CMachine,
    run: impl FnOnce(&mut dyn Machine, Option<u32>) -> Result<R, Stop>,
) -> R {
    // SAFETY: the C functions pass the pointer that `evaluate` has given them, whose `user` points to a `User` of the
    // same function. No other reference to either exists while a C function runs.
    let (m, user) = unsafe { (&mut *m, &mut *(*m).user.cast::<User<'_>>()) };
    if user.stop.is_some() {
        return R::default();
    }
    match run(user.machine, user.lane) {
        Ok(value) => value,
        Err(stop) => {
            user.stop = Some(stop);
            m.stop = true;
            R::default()
        }
    }
}

/// Address spaces, in the header's order.
const SPACES: [Space; 7] =
    [Space::Global, Space::Flat, Space::Lds, Space::Scratch, Space::Buffer, Space::Scalar, Space::Word];

extern "C" fn load_bytes(m: *mut CMachine, space: c_int, address: u64, bytes: c_uint) -> u128 {
    call(m, |machine, lane| machine.load(SPACES[space as usize], address, bytes, lane))
}

extern "C" fn store_bytes(m: *mut CMachine, space: c_int, address: u64, bytes: c_uint, value: u128) {
    call(m, |machine, lane| machine.store(SPACES[space as usize], address, bytes, value, lane))
}

extern "C" fn vgpr(m: *mut CMachine, lane: u32, number: u32) -> u32 {
    call(m, |machine, _| Ok(machine.vgpr(lane, number)))
}

extern "C" fn set_vgpr(m: *mut CMachine, lane: u32, number: u32, value: u32) {
    call(m, |machine, _| {
        machine.set_vgpr(lane, number, value);
        Ok(())
    })
}

extern "C" fn sgpr(m: *mut CMachine, number: u32) -> u32 {
    call(m, |machine, _| Ok(machine.sgpr(number)))
}

extern "C" fn set_sgpr(m: *mut CMachine, number: u32, value: u32) {
    call(m, |machine, _| {
        machine.set_sgpr(number, value);
        Ok(())
    })
}

extern "C" fn operand_lane(m: *mut CMachine, role: c_int, lane: u32, index: u32) -> u32 {
    call(m, |machine, _| Ok(machine.operand_lane(ROLES[role as usize], lane, index)))
}

extern "C" fn control(m: *mut CMachine, builtin: c_int, arguments: *const u128, count: c_uint) -> u128 {
    let controls: Vec<Control> = all()
        .filter_map(|def| match def.builtin {
            Builtin::Control(one) => Some(one),
            Builtin::Pure(_) => None,
        })
        .collect();
    let arguments: &[u128] = match count {
        0 => &[],
        // SAFETY: the C functions pass an array of this length.
        _ => unsafe { std::slice::from_raw_parts(arguments, count as usize) },
    };
    call(m, |machine, _| machine.control(controls[builtin as usize], arguments))
}
