//! Programs with very many instructions and literals: each vector or scalar instruction has a distinct
//! literal, and jumps exceed the 16-bit range of branches. They run as text kernels, and through the
//! assembler and the code object loader. The generator also computes the expected result.

use wavesim::arch::Arch;
use wavesim::array::{Array, DType};
use wavesim::loader::assembly::AssemblyOptions;
use wavesim::loader::code_object;
use wavesim::loader::request::{ArgumentValue, Request};
use wavesim::memory::Memory;
use wavesim::sched::dispatch;
use wavesim_tests::random::Rng;
use wavesim_tests::{Setup, run, words};

const SIZES: [usize; 4] = [60, 300, 9_000, 100_000];
const LANES: u32 = 32;

/// Size in bytes of an instruction with a literal, and of a jump sequence.
const INSTRUCTION: i64 = 8;
const JUMP: i64 = 20;

/// The expected values of the vector register (uniform) and the scalar register.
#[derive(Default)]
struct State {
    v2: u32,
    s10: u32,
}

/// Returns the text of the `number`th instruction, and applies its effect to `state`.
fn instruction(number: usize, state: &mut State) -> String {
    let literal = (number as u32).wrapping_mul(0x9e37_79b1) ^ 0x1234_5678;
    let State { v2, s10 } = state;
    match Rng(number as u64).below(6) {
        0 => {
            *v2 = v2.wrapping_add(literal);
            format!("  v_add_nc_u32_e32 v2, 0x{literal:x}, v2\n")
        }
        1 => {
            *v2 ^= literal;
            format!("  v_xor_b32_e32 v2, 0x{literal:x}, v2\n")
        }
        2 => {
            *v2 = literal.wrapping_sub(*v2);
            format!("  v_sub_nc_u32_e32 v2, 0x{literal:x}, v2\n")
        }
        3 => {
            *s10 = s10.wrapping_add(literal);
            format!("  s_add_u32 s10, s10, 0x{literal:x}\n")
        }
        4 => {
            *s10 ^= literal;
            format!("  s_xor_b32 s10, 0x{literal:x}, s10\n")
        }
        _ => {
            *s10 = s10.wrapping_mul(literal);
            format!("  s_mul_i32 s10, s10, 0x{literal:x}\n")
        }
    }
}

/// Returns a PC-relative jump to `distance` bytes after its end.
fn jump(distance: i64) -> String {
    let distance = distance + JUMP - 4;
    let high = if distance < 0 { -1 } else { 0 };
    let low = distance as u32;
    format!(
        "  s_getpc_b64 s[12:13]\n  s_add_u32 s12, s12, 0x{low:x}\n  s_addc_u32 s13, s13, {high}\n  s_setpc_b64 s[12:13]\n"
    )
}

/// Returns a body of three parts, the last of which is executed before the second, and the final register
/// values.
fn body(count: usize) -> (String, State) {
    let third = count / 3;
    let size = third as i64 * INSTRUCTION;
    let mut state = State::default();
    let mut part = |first: usize| {
        (first..first + third).map(|number| instruction(number, &mut state)).collect::<String>()
    };
    let (first, third, second) = (part(0), part(2 * third), part(third));
    let [over, to_the_end, back] = [size + JUMP, size + JUMP, -2 * (size + JUMP)].map(jump);
    ([first, over, second, to_the_end, third, back].concat(), state)
}

/// Returns the expected output: the sum of both registers and the lane index.
fn expected(state: &State) -> Vec<u32> {
    (0..LANES).map(|lane| state.v2.wrapping_add(state.s10).wrapping_add(lane)).collect()
}

fn text_kernel(count: usize) {
    let (body, state) = body(count);
    let source = format!(
        "---\nout_y: u32[{LANES}]\nlocal = {LANES}, 1, 1\nglobal = 1, 1, 1\n---\n  s_load_b64 s[6:7], s[3:4], 0x0\n  \
         v_lshlrev_b32 v1, 2, v0\n  v_mov_b32 v2, 0\n  s_mov_b32 s10, 0\n{}  v_add_nc_u32 v2, s10, v2\n  v_add_nc_u32 v2, v0, v2\n  \
         s_waitcnt lgkmcnt(0)\n  global_store_b32 v1, v2, s[6:7]\n  s_endpgm\n",
        body
    );
    let outputs = run(&source, &Setup::default()).unwrap_or_else(|e| panic!("{count}: {e}"));
    assert_eq!(words(&outputs["out_y"]), expected(&state), "{count} constants");
}

fn code_object(count: usize, arch: Arch) {
    let (body, state) = body(count);
    let wait = if arch == Arch::Rdna4 { "s_wait_kmcnt 0x0" } else { "s_waitcnt lgkmcnt(0)" };
    let source = format!(
        ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\n  s_load_b64 s[6:7], s[0:1], 0x0\n  v_lshlrev_b32_e32 v1, 2, v0\n  \
         v_mov_b32_e32 v2, 0\n  s_mov_b32 s10, 0\n{}  v_add_nc_u32_e32 v2, s10, v2\n  v_add_nc_u32_e32 v2, v0, v2\n  {wait}\n  \
         global_store_b32 v1, v2, s[6:7]\n  s_endpgm\n.section .rodata,\"a\"\n.amdhsa_kernel k\n  .amdhsa_next_free_vgpr 8\n  \
         .amdhsa_next_free_sgpr 16\n  .amdhsa_user_sgpr_kernarg_segment_ptr 1\n  .amdhsa_kernarg_size 8\n  \
         .amdhsa_wavefront_size32 1\n.end_amdhsa_kernel\n",
        body
    );
    let reading = AssemblyOptions { arch: Some(arch), ..AssemblyOptions::default() };
    let object = match reading.assemble("k.s", &source) {
        Ok(assembled) => assembled.object,
        Err(errors) => panic!("{count}: {}", errors[0]),
    };
    let kernel = code_object::load(&object, "k").unwrap();
    let out = Array::zeros(DType::U32, &[LANES as u64]).unwrap();
    let request = Request {
        grid: [1, 1, 1],
        block: [LANES, 1, 1],
        dynamic_lds: 0,
        args: vec![("y".to_string(), ArgumentValue::Buffer(out))],
        outputs: Vec::new(),
    };
    let prepared = request.prepare(&kernel, Memory::new(16 << 20).unwrap()).unwrap();
    dispatch::run(&prepared.dispatch(10_000_000), &prepared.memory)
        .unwrap_or_else(|e| panic!("{count}: {e}"));
    let found = prepared.buffer("y").unwrap().read(&prepared.memory).unwrap();
    assert_eq!(words(&found), expected(&state), "{count} constants, {}", arch.name());
}

#[test]
fn text_kernels() {
    SIZES.into_iter().for_each(text_kernel);
}

#[test]
fn code_objects() {
    for count in SIZES {
        code_object(count, if count % 2 == 0 { Arch::Rdna3 } else { Arch::Rdna4 });
    }
    code_object(9_000, Arch::Rdna4);
}
