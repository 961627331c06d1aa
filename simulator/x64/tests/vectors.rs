//! Vector instructions with operands in registers and in memory, the other instructions on vectors, and
//! errors.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::{host, run};
use wavesim_x64::inst::{Inst, Mem, Src, V};
use wavesim_x64::{Code, CompileError, Function, Problem, compile};

type Vector = [u32; 8];

const RVM: &[(Code, Option<u8>)] = &[
    (Code::VEX_Vaddps_ymm_ymm_ymmm256, None),
    (Code::VEX_Vsubps_ymm_ymm_ymmm256, None),
    (Code::VEX_Vmulps_ymm_ymm_ymmm256, None),
    (Code::VEX_Vdivps_ymm_ymm_ymmm256, None),
    (Code::VEX_Vminps_ymm_ymm_ymmm256, None),
    (Code::VEX_Vmaxps_ymm_ymm_ymmm256, None),
    (Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8, Some(1)),
    (Code::VEX_Vaddpd_ymm_ymm_ymmm256, None),
    (Code::VEX_Vsubpd_ymm_ymm_ymmm256, None),
    (Code::VEX_Vmulpd_ymm_ymm_ymmm256, None),
    (Code::VEX_Vdivpd_ymm_ymm_ymmm256, None),
    (Code::VEX_Vminpd_ymm_ymm_ymmm256, None),
    (Code::VEX_Vmaxpd_ymm_ymm_ymmm256, None),
    (Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8, Some(2)),
    (Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpcmpeqb_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpcmpgtb_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpminsd_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpmaxud_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpsrlvq_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpsrld_ymm_ymm_xmmm128, None),
    (Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpunpcklqdq_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpshufb_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpmaddubsw_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpmaddwd_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpackssdw_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpackusdw_ymm_ymm_ymmm256, None),
    (Code::VEX_Vpermd_ymm_ymm_ymmm256, None),
    (Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, Some(1)),
    (Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8, Some(0x5a)),
];

const RM: &[(Code, Option<u8>)] = &[
    (Code::VEX_Vsqrtps_ymm_ymmm256, None),
    (Code::VEX_Vsqrtpd_ymm_ymmm256, None),
    (Code::VEX_Vroundps_ymm_ymmm256_imm8, Some(3)),
    (Code::VEX_Vroundpd_ymm_ymmm256_imm8, Some(1)),
    (Code::VEX_Vpslld_ymm_ymm_imm8, Some(3)),
    (Code::VEX_Vpsrld_ymm_ymm_imm8, Some(3)),
    (Code::VEX_Vpsrad_ymm_ymm_imm8, Some(3)),
    (Code::VEX_Vpsllq_ymm_ymm_imm8, Some(3)),
    (Code::VEX_Vpsrlq_ymm_ymm_imm8, Some(3)),
    (Code::VEX_Vpsrldq_ymm_ymm_imm8, Some(3)),
    (Code::VEX_Vpshufd_ymm_ymmm256_imm8, Some(0x1b)),
    (Code::VEX_Vpermq_ymm_ymmm256_imm8, Some(0x4e)),
    (Code::VEX_Vpmovsxdq_ymm_xmmm128, None),
    (Code::VEX_Vpmovzxdq_ymm_xmmm128, None),
    (Code::VEX_Vcvtdq2ps_ymm_ymmm256, None),
    (Code::VEX_Vcvttps2dq_ymm_ymmm256, None),
    (Code::VEX_Vcvtps2pd_ymm_xmmm128, None),
    (Code::VEX_Vcvtpd2ps_xmm_ymmm256, None),
    (Code::VEX_Vcvtph2ps_ymm_xmmm128, None),
    (Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, Some(0)),
    (Code::VEX_Vpmovzxwd_ymm_xmmm128, None),
    (Code::VEX_Vpmovzxbd_ymm_xmmm64, None),
    (Code::VEX_Vcvtdq2pd_ymm_xmmm128, None),
    (Code::VEX_Vcvttpd2dq_xmm_ymmm256, None),
    (Code::VEX_Vpbroadcastq_ymm_xmmm64, None),
    (Code::VEX_Vmovsldup_ymm_ymmm256, None),
    (Code::VEX_Vpabsd_ymm_ymmm256, None),
];

/// The locations of operands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Operands {
    Registers,
    /// Folded loads.
    Folded,
    /// Spilled, because too many values are live.
    Spilled,
    Constants,
}

const A: Vector =
    [0x3fc0_0000, 0x4060_0000, 0xc0a0_0001, 0x40e8_0000, 0x4060_0000, 7, 0xffff_fff0, 0x3f80_0000];
const B: Vector =
    [0x4060_0000, 0x4060_0000, 0x40a0_0001, 0x4228_3333, 0x4060_0000, 7, 0x4228_3333, 0x4049_0fdb];

/// The initial content of the result's memory.
const UNWRITTEN: Vector = [0x1234_5678; 8];

/// Returns the result of `make` on the operands A, B and A + 1 in the given locations.
fn with(from: Operands, make: impl FnOnce(&mut Function, [V; 3]) -> V) -> Vector {
    let c = A.map(|a| a.wrapping_add(1));
    let mut buffer: Vec<u32> = [A, B, c, UNWRITTEN].concat();
    let mut f = Function::new(2);
    let base = f.param(0);
    let sources = match from {
        Operands::Constants => [f.vconst(A), f.vconst(B), f.vconst(c)],
        _ => [0, 32, 64].map(|at| f.vload(base, at, from == Operands::Folded)),
    };
    let others: Vec<V> =
        (0..if from == Operands::Spilled { 30 } else { 0 }).map(|n| f.splat(false, f.param(n & 1))).collect();
    let d = make(&mut f, sources);
    f.vstore(base, 96, d);
    // These are used more often than the operands, so that they keep their registers.
    for _ in 0..9 {
        others.iter().for_each(|&v| f.vstore(base, 0, v));
    }
    for (&v, at) in sources.iter().zip([0, 32, 64]) {
        if from != Operands::Folded {
            f.vstore(base, at, v);
        }
    }
    f.push(Inst::Return { v: Src::Imm(0) });
    run(&f, buffer.as_mut_ptr() as u64, 0);
    assert_eq!(buffer[..24], [A, B, c].concat(), "the operands are unchanged");
    buffer[24..].try_into().expect("eight words")
}

/// Returns the result, which must be the same for all locations.
#[track_caller]
fn everywhere(name: &str, make: impl Fn(&mut Function, [V; 3]) -> V) -> Vector {
    let expected = with(Operands::Registers, &make);
    for from in [Operands::Folded, Operands::Spilled, Operands::Constants] {
        assert_eq!(with(from, &make), expected, "{name} {from:?}");
    }
    expected
}

#[test]
fn sources_in_memory() {
    if host().is_none() {
        return;
    }
    for &(code, imm) in RVM {
        let made = everywhere(&format!("{code:?}"), |f, [a, b, _]| f.rvm(code, a, b, imm));
        assert_ne!(made, UNWRITTEN, "{code:?}");
        let _ = everywhere(&format!("{code:?}, reversed"), |f, [a, b, _]| f.rvm(code, b, a, imm));
        let _ = everywhere(&format!("{code:?}, one"), |f, [a, ..]| f.rvm(code, a, a, imm));
    }
    for &(code, imm) in RM {
        let made = everywhere(&format!("{code:?}"), |f, [a, ..]| f.rm(code, a, imm));
        assert!(made != A && made != UNWRITTEN, "{code:?}");
    }
}

#[test]
fn narrow_results_have_no_upper_half() {
    if host().is_none() {
        return;
    }
    let made = everywhere("cvtpd2ps", |f, [a, ..]| f.rm(Code::VEX_Vcvtpd2ps_xmm_ymmm256, a, None));
    assert_eq!(made[4..], [0; 4]);
    let made = everywhere("upper_half", |f, [a, ..]| f.upper_half(a));
    assert_eq!(made, [A[4], A[5], A[6], A[7], 0, 0, 0, 0]);
}

fn fma(a: Vector, b: Vector, c: Vector) -> Vector {
    let float = f32::from_bits;
    std::array::from_fn(|i| float(a[i]).mul_add(float(b[i]), float(c[i])).to_bits())
}

/// The bits of `case` put each operand in a register or a constant, and make the result replace one of them
/// or none.
fn fma_of(words: [Vector; 3], case: usize) -> Vector {
    let mut f = Function::new(2);
    let base = f.param(0);
    let sources: [V; 3] = std::array::from_fn(|n| match case >> n & 1 {
        0 => f.vload(base, 32 * n as i32, false),
        _ => f.vconst(words[n]),
    });
    let d = match case >> 3 {
        0 => f.fma(false, sources[0], sources[1], sources[2]),
        n => {
            let d = sources[n - 1];
            f.push(Inst::Fma { wide: false, d, a: sources[0], b: sources[1], c: sources[2] });
            d
        }
    };
    f.vstore(base, 96, d);
    for (n, &v) in sources.iter().enumerate().filter(|&(n, _)| case >> 3 != n + 1) {
        f.vstore(base, 32 * n as i32, v);
    }
    f.push(Inst::Return { v: Src::Imm(0) });
    let mut buffer = [words[0], words[1], words[2], UNWRITTEN].concat();
    run(&f, buffer.as_mut_ptr() as u64, 0);
    assert_eq!(buffer[..24], words.concat(), "the operands are unchanged");
    buffer[24..].try_into().expect("eight words")
}

#[test]
fn multiply_and_add() {
    if host().is_none() {
        return;
    }
    let (a, b) = ([1.5f32.to_bits(), 2, 3, 4, 5, 6, 7, 8], [2.5f32.to_bits(); 8]);
    let c = [0x3f80_0001; 8];
    for case in 0..8 * 4 {
        assert_eq!(fma_of([a, b, c], case), fma(a, b, c), "{case:#b}");
    }
    let wide = everywhere("fma of doubles", |f, [a, b, c]| f.fma(true, a, b, c));
    let at = |v: Vector| f64::from_bits(u64::from(v[0]) | u64::from(v[1]) << 32);
    let expected = at(A).mul_add(at(B), at(A.map(|a| a.wrapping_add(1)))).to_bits();
    assert_eq!(wide[..2], [expected as u32, (expected >> 32) as u32]);
}

/// The resulting NaN does not depend on the locations of values.
#[test]
fn multiply_and_add_of_nans() {
    if host().is_none() {
        return;
    }
    let [a, b, c] = [0x7fc0_0001u32, 0x7fc0_0002, 0x7fc0_0003].map(|nan| [nan; 8]);
    let one = [1f32.to_bits(); 8];
    for (sources, expected) in
        [([a, b, c], a), ([a, b, one], a), ([a, one, c], a), ([one, b, c], b), ([one, one, c], c)]
    {
        for case in 0..8 * 4 {
            assert_eq!(fma_of(sources, case), expected, "{sources:x?} {case:#b}");
        }
    }
}

#[test]
fn blends() {
    if host().is_none() {
        return;
    }
    let narrow = everywhere("blend", |f, [a, b, _]| f.blend(false, a, b, a));
    assert_eq!(narrow, std::array::from_fn(|i| if A[i] >> 31 == 1 { B[i] } else { A[i] }));
    let wide = everywhere("blend of 64 bits", |f, [a, b, c]| f.blend(true, a, b, c));
    let sign = |i: usize| A[i | 1] >> 31 == 1;
    assert_eq!(wide, std::array::from_fn(|i| if sign(i) { B[i] } else { A[i].wrapping_add(1) }));
}

/// Result, offsets and mask are in different registers, whichever of them are in registers at all.
#[test]
fn gathers() {
    if host().is_none() {
        return;
    }
    let table: Vec<u32> = (0..64).map(|n| 0x100 + n).collect();
    let offsets: Vector = std::array::from_fn(|lane| 4 * (lane as u32 * 13 % 32));
    for count in [0, 30] {
        for (dies, spilled) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut buffer = [&offsets[..], &UNWRITTEN, &[0; 8]].concat();
            let mut f = Function::new(2);
            let (base, from) = (f.param(0), f.param(1));
            let at = f.vload(base, 0, false);
            let others: Vec<V> = (0..count).map(|n| f.splat(false, f.param(n & 1))).collect();
            let keep = |f: &mut Function| others.iter().for_each(|&v| f.vstore(base, 64, v));
            (0..9).for_each(|_| keep(&mut f));
            let d = f.fresh(wavesim_x64::inst::Class::Vec);
            f.push(Inst::Gather { d, from: Mem { base: from, disp: 8 }, offsets: at });
            if spilled {
                (0..9).for_each(|_| keep(&mut f));
            }
            f.vstore(base, 32, d);
            if !dies {
                f.vstore(base, 0, at);
            }
            keep(&mut f);
            f.push(Inst::Return { v: Src::Imm(0) });
            run(&f, buffer.as_mut_ptr() as u64, table.as_ptr() as u64);
            assert_eq!(buffer[..8], offsets);
            let expected: Vector = std::array::from_fn(|lane| table[offsets[lane] as usize / 4 + 2]);
            assert_eq!(buffer[8..16], expected, "{count} {dies} {spilled}");
        }
    }
}

#[test]
fn branches_on_common_bits() {
    if host().is_none() {
        return;
    }
    for (a, b, jumps) in [([0; 8], [7; 8], 0), ([8; 8], [7; 8], 0), ([0, 0, 0, 0, 0, 0, 0, 9], [1; 8], 1)] {
        for constants in [false, true] {
            let mut f = Function::new(2);
            let base = f.param(0);
            let b_v = if constants { f.vconst(b) } else { f.vload(base, 32, true) };
            let a_v = if constants { f.vconst(a) } else { f.vload(base, 0, false) };
            let taken = f.label();
            f.branch_if_any(a_v, b_v, taken);
            f.push(Inst::Return { v: Src::Imm(0) });
            f.push(Inst::Label(taken));
            f.push(Inst::Return { v: Src::Imm(1) });
            let mut buffer = [a, b].concat();
            assert_eq!(run(&f, buffer.as_mut_ptr() as u64, 0), jumps, "{a:?} {b:?}");
        }
    }
}

#[test]
fn halves() {
    if host().is_none() {
        return;
    }
    let mut f = Function::new(2);
    let (x, y) = (f.param(0), f.param(1));
    let v = f.fresh(wavesim_x64::inst::Class::Vec);
    f.push(Inst::LoadHalves { d: v, low: Mem { base: y, disp: 4 }, high: Mem { base: x, disp: 8 } });
    f.push(Inst::StoreHalves { v, low: Mem { base: x, disp: 32 }, high: Mem { base: y, disp: 36 } });
    f.push(Inst::Return { v: Src::Imm(0) });
    let (mut one, mut two) = ([0u32; 16], [0u32; 16]);
    for i in 0..16 {
        (one[i], two[i]) = (i as u32, 100 + i as u32);
    }
    run(&f, one.as_mut_ptr() as u64, two.as_mut_ptr() as u64);
    assert_eq!(one[8..12], [101, 102, 103, 104]);
    assert_eq!(two[9..13], [2, 3, 4, 5]);
}

#[test]
fn float_control() {
    if host().is_none() {
        return;
    }
    // Rounds up, then to nearest again.
    let mut buffer = [0x5f80u32, 0x1f80];
    let mut f = Function::new(2);
    let base = f.param(0);
    f.push(Inst::LoadMxcsr { from: Mem { base, disp: 0 } });
    let third = f.vconst([1f32.to_bits(); 8]);
    let three = f.vconst([3f32.to_bits(); 8]);
    let up = f.rvm(Code::VEX_Vdivps_ymm_ymm_ymmm256, third, three, None);
    f.push(Inst::LoadMxcsr { from: Mem { base, disp: 4 } });
    let down = f.rvm(Code::VEX_Vdivps_ymm_ymm_ymmm256, third, three, None);
    let (up, down) = (f.low_int(up), f.low_int(down));
    let d = f.int2(wavesim_x64::inst::Int2::Sub, wavesim_x64::inst::Width::W32, up, down);
    f.push(Inst::Return { v: d.into() });
    // 1/3 to nearest is already the upper neighbour: up and nearest agree, toward zero is one less.
    assert_eq!(run(&f, buffer.as_mut_ptr() as u64, 0), 0);
    buffer[0] = 0x7f80;
    assert_eq!(run(&f, buffer.as_mut_ptr() as u64, 0), u64::from(u32::MAX));
}

/// Errors of the code generator itself, and the same errors where functions are verified first.
#[test]
fn errors_are_typed() {
    let Some(host) = host() else { return };
    let problem = |error: &CompileError| match error {
        CompileError::Invalid(errors) => Some(errors[0].problem.clone()),
        _ => None,
    };
    let mut f = Function::new(0);
    let label = f.label();
    f.push(Inst::Jump(label));
    let error = compile(&f, &host).expect_err("no label");
    assert!(matches!(error, CompileError::Label(0)) || problem(&error) == Some(Problem::Unbound(label)));
    let mut f = Function::new(1);
    f.push(Inst::Table { index: f.param(0), to: Vec::new() });
    let error = compile(&f, &host).expect_err("no labels");
    assert!(matches!(error, CompileError::EmptyTable) || problem(&error) == Some(Problem::EmptyTable));
    let mut f = Function::new(1);
    let v = f.vload(f.param(0), 0, false);
    let d = f.rvm(Code::VEX_Vpshufd_ymm_ymmm256_imm8, v, v, None);
    f.vstore(f.param(0), 0, d);
    let error = compile(&f, &host).expect_err("no such form");
    assert!(matches!(error, CompileError::Operands(_)) || problem(&error) == Some(Problem::OperandCount));
    let mut f = Function::new(1);
    let many: Vec<V> = (0..40_000).map(|n| f.vload(f.param(0), n, false)).collect();
    many.iter().for_each(|&v| f.vstore(f.param(0), 0, v));
    f.push(Inst::Return { v: Src::Imm(0) });
    assert!(matches!(compile(&f, &host), Err(CompileError::Frame(_))));
}

/// A stack frame of more than a page.
#[test]
fn large_frames() {
    if host().is_none() {
        return;
    }
    let mut f = Function::new(2);
    let base = f.param(0);
    let many: Vec<V> = (0..2000).map(|n| f.vload(base, 4 * n, false)).collect();
    many.iter().enumerate().for_each(|(n, &v)| f.vstore(base, 4 * (1999 - n as i32), v));
    f.push(Inst::Return { v: f.param(1).into() });
    let mut buffer: Vec<u32> = (0..2007).collect();
    assert_eq!(run(&f, buffer.as_mut_ptr() as u64, 5), 5);
    let mut expected: Vec<u32> = (0..2007).collect();
    for n in 0..2000u32 {
        let at = 1999 - n as usize;
        expected[at..at + 8].copy_from_slice(&(n..n + 8).collect::<Vec<_>>());
    }
    assert_eq!(buffer, expected);
}

/// The operands of every vector instruction: the encoder accepts registers of these classes, and memory where the
/// table says so.
#[test]
fn every_code_is_encoded() {
    let Some(host) = host() else { return };
    for &code in Code::ALL {
        // Sources in registers, and one that is folded from memory.
        for foldable in [false, true] {
            let mut f = Function::new(2);
            let base = f.param(0);
            let (a, b) = (f.vload(base, 0, false), f.vload(base, 32, foldable));
            let imm = code.has_imm().then_some(1);
            let d = match code.sources() {
                1 => f.rm(code, b, imm),
                _ => f.rvm(code, a, b, imm),
            };
            f.vstore(base, 64, d);
            f.push(Inst::Return { v: Src::Imm(0) });
            compile(&f, &host).unwrap_or_else(|error| panic!("{code:?}: {error}"));
        }
    }
}

/// Sources that the table allows to be swapped can be.
#[test]
fn commutative_codes() {
    if host().is_none() {
        return;
    }
    let mut rng = common::Rng(1);
    let mut count = 0;
    for &code in Code::ALL.iter().filter(|code| code.is_commutative()) {
        count += 1;
        for _ in 0..50 {
            let inputs: [u32; 16] = std::array::from_fn(|_| rng.word() as u32 >> (rng.word() & 31));
            let result = |swapped: bool| {
                let mut f = Function::new(2);
                let (a, b) = (f.vload(f.param(0), 0, false), f.vload(f.param(0), 32, false));
                let d = if swapped { f.rvm(code, b, a, None) } else { f.rvm(code, a, b, None) };
                f.vstore(f.param(1), 0, d);
                f.push(Inst::Return { v: Src::Imm(0) });
                let mut to = [0u32; 8];
                run(&f, inputs.as_ptr() as u64, to.as_mut_ptr() as u64);
                to
            };
            assert_eq!(result(false), result(true), "{code:?}");
        }
    }
    assert!(count > 15, "{count}");
}
