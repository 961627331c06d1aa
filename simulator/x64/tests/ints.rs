//! Integer and control instructions, compared with Rust.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::abi::{Entry, called};
use common::eval::{compare, int1, int2};
use common::operations::{CC, INT1, INT2, WIDTHS};
use common::{host, run};
use wavesim_x64::Function;
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Size, Src, V, Width};

const EDGES: [u64; 12] = [
    0,
    1,
    32,
    33,
    64,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];
/// The locations of an operation's operands.
#[derive(Debug, Clone, Copy)]
enum Operands {
    /// In registers, and used again later.
    UsedLater,
    /// In registers, used for the last time.
    LastUse,
    /// Spilled, because too many values are live.
    Spilled,
    /// Constant.
    Constant,
}

/// Returns the result of `make` on two operands in the given locations.
fn with(from: Operands, a: u64, b: u64, make: impl FnOnce(&mut Function, V, V) -> V) -> u64 {
    let mut f = Function::new(2);
    let (mut x, mut y) = (f.param(0), f.param(1));
    if let Operands::Constant = from {
        (x, y) = (f.iconst(a), f.iconst(b));
    }
    let crowd: Vec<V> = match from {
        Operands::Spilled => {
            (0..20).map(|n| f.int2(Int2::Add, Width::W64, f.param(n & 1), n as i32)).collect()
        }
        _ => Vec::new(),
    };
    let d = make(&mut f, x, y);
    let mut sum = f.iconst(0);
    for &v in crowd.iter().chain(&crowd) {
        sum = f.int2(Int2::Add, Width::W64, sum, v);
    }
    if let Operands::UsedLater | Operands::Spilled = from {
        sum = f.int2(Int2::Add, Width::W64, sum, x);
        sum = f.int2(Int2::Add, Width::W64, sum, y);
    }
    let result = f.int2(Int2::Add, Width::W64, d, sum);
    f.push(Inst::Return { v: result.into() });
    let expected = match from {
        Operands::Spilled => (0..20).fold(0u64, |s, n| {
            s.wrapping_add(if n & 1 == 1 { b } else { a }.wrapping_add(n).wrapping_mul(2))
        }),
        _ => 0,
    };
    let expected = match from {
        Operands::UsedLater | Operands::Spilled => expected.wrapping_add(a).wrapping_add(b),
        _ => expected,
    };
    run(&f, a, b).wrapping_sub(expected)
}

const FROM: [Operands; 4] = [Operands::UsedLater, Operands::LastUse, Operands::Spilled, Operands::Constant];

#[test]
fn operations_on_two() {
    if host().is_none() {
        return;
    }
    for op in INT2 {
        for width in WIDTHS {
            for from in FROM {
                for (a, b) in EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b))) {
                    let expected = int2(op, width, a, b);
                    let got = with(from, a, b, |f, x, y| f.int2(op, width, x, y));
                    assert_eq!(got, expected, "{op:?} {width:?} {from:?} {a:#x} {b:#x}");
                    // The result replaces the last operand.
                    let got = with(from, b, a, |f, x, y| f.int2(op, width, y, x));
                    assert_eq!(got, expected, "{op:?} {width:?} {from:?} {a:#x} {b:#x}, reversed");
                    let imm = b as i32;
                    let got = with(from, a, b, |f, x, _| f.int2(op, width, x, imm));
                    assert_eq!(
                        got,
                        int2(op, width, a, imm as i64 as u64),
                        "{op:?} {width:?} {from:?} {a:#x} {imm:#x}"
                    );
                }
            }
        }
    }
}

/// A value that is assigned twice shares a register with an operand.
#[test]
fn results_in_sources() {
    if host().is_none() {
        return;
    }
    for op in INT2 {
        for width in WIDTHS {
            for (a, b) in EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b))) {
                let mut f = Function::new(2);
                let (x, y) = (f.param(0), f.param(1));
                f.push(Inst::Int2 { op, width, d: y, a: x, b: y.into() });
                f.push(Inst::Return { v: y.into() });
                assert_eq!(run(&f, a, b), int2(op, width, a, b), "{op:?} {width:?} {a:#x} {b:#x}");
                let mut f = Function::new(2);
                let y = f.param(1);
                let x = f.iconst(a);
                f.push(Inst::Int2 { op, width, d: y, a: x, b: y.into() });
                f.push(Inst::Return { v: y.into() });
                assert_eq!(run(&f, a, b), int2(op, width, a, b), "{op:?} {width:?} {a:#x} {b:#x}, known");
            }
        }
    }
}

#[test]
fn operations_on_one() {
    if host().is_none() {
        return;
    }
    for op in INT1 {
        for width in WIDTHS {
            for from in FROM {
                for a in EDGES {
                    let got = with(from, a, 5, |f, x, _| f.int1(op, width, x));
                    assert_eq!(got, int1(op, width, a), "{op:?} {width:?} {from:?} {a:#x}");
                }
            }
        }
    }
}

#[test]
fn comparisons() {
    if host().is_none() {
        return;
    }
    for cc in CC {
        for width in WIDTHS {
            for from in FROM {
                for (a, b) in EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b))) {
                    let expected = compare(cc, width, a, b);
                    let got = with(from, a, b, |f, x, y| f.compare(cc, width, x, y));
                    assert_eq!(got, expected.into(), "{cc:?} {width:?} {from:?} {a:#x} {b:#x}");
                    let expected_imm = compare(cc, width, a, b as i32 as i64 as u64);
                    let got = with(from, a, b, |f, x, _| f.compare(cc, width, x, b as i32));
                    assert_eq!(
                        got,
                        expected_imm.into(),
                        "{cc:?} {width:?} {from:?} {a:#x} {b:#x}, immediate"
                    );
                    let got = with(from, a, b, |f, x, y| {
                        let cond = f.compare(cc, width, x, y);
                        f.select(cond, x, y)
                    });
                    assert_eq!(
                        got,
                        if expected { a } else { b },
                        "{cc:?} {width:?} {from:?} {a:#x} {b:#x}, select"
                    );
                    let got = with(from, a, b, |f, x, y| branch(f, cc, width, x, y, false));
                    assert_eq!(got, expected.into(), "{cc:?} {width:?} {from:?} {a:#x} {b:#x}, branch");
                    let got = with(from, a, b, |f, x, y| branch(f, cc, width, x, y, true));
                    assert_eq!(
                        got,
                        expected.into(),
                        "{cc:?} {width:?} {from:?} {a:#x} {b:#x}, branch by a value"
                    );
                }
            }
        }
    }
}

fn branch(f: &mut Function, cc: Cc, width: Width, x: V, y: V, value: bool) -> V {
    let d = f.fresh(Class::Int);
    let (yes, end) = (f.label(), f.label());
    if value {
        let cond = f.compare(cc, width, x, y);
        f.branch(Cc::Ne, Width::W64, cond, 0, yes);
    } else {
        f.branch(cc, width, x, y, yes);
    }
    f.push(Inst::Const { d, bits: 0 });
    f.push(Inst::Jump(end));
    f.push(Inst::Label(yes));
    f.push(Inst::Const { d, bits: 1 });
    f.push(Inst::Label(end));
    d
}

#[test]
fn selects_by_values() {
    if host().is_none() {
        return;
    }
    for from in FROM {
        for (a, b) in [(0, 7), (1, 7), (1 << 40, 7)] {
            let expected = if a != 0 { b } else { a };
            assert_eq!(with(from, a, b, |f, x, y| f.select(x, y, x)), expected, "{from:?} {a:#x}");
            let other = if a != 0 { a } else { b };
            assert_eq!(with(from, a, b, |f, x, y| f.select(x, x, y)), other, "{from:?} {a:#x}");
        }
    }
}

#[test]
fn memory_of_each_size() {
    if host().is_none() {
        return;
    }
    for (size, mask) in [(Size::B1, 0xff), (Size::B2, 0xffff), (Size::B4, 0xffff_ffff), (Size::B8, u64::MAX)]
    {
        for from in FROM {
            for v in EDGES {
                let mut buffer = [0x1111_1111_1111_1111u64; 3];
                let at = buffer.as_mut_ptr() as u64;
                let got = with(from, at, v, |f, x, y| {
                    f.store(size, x, 8, y);
                    f.store(size, x, 16, v as i32);
                    f.load(size, x, 8)
                });
                assert_eq!(got, v & mask, "{size:?} {from:?}");
                assert_eq!(buffer[1], 0x1111_1111_1111_1111 & !mask | v & mask, "{size:?} {from:?}");
                assert_eq!(
                    buffer[2],
                    0x1111_1111_1111_1111 & !mask | v as i32 as i64 as u64 & mask,
                    "{size:?} {from:?}"
                );
            }
        }
    }
}

#[test]
fn tables() {
    if host().is_none() {
        return;
    }
    let mut f = Function::new(2);
    let labels: Vec<_> = (0..5).map(|_| f.label()).collect();
    f.push(Inst::Table { index: f.param(0), to: labels.clone() });
    for (n, label) in labels.into_iter().enumerate() {
        f.push(Inst::Label(label));
        f.push(Inst::Return { v: Src::Imm(10 + n as i32) });
    }
    for index in EDGES.into_iter().chain(0..7) {
        assert_eq!(run(&f, index, 0), 10 + index.min(4), "{index:#x}");
    }
}

#[test]
fn loops_carry_values() {
    if host().is_none() {
        return;
    }
    let mut f = Function::new(2);
    let (n, seed) = (f.param(0), f.param(1));
    // More values than registers, carried across the iterations of two loops.
    let values: Vec<V> = (0..20).map(|k| f.int2(Int2::Add, Width::W64, seed, k)).collect();
    let (outer, inner) = (f.label(), f.label());
    let i = f.fresh(Class::Int);
    let j = f.fresh(Class::Int);
    f.assign(i, n);
    f.push(Inst::Label(outer));
    f.push(Inst::Const { d: j, bits: 3 });
    f.push(Inst::Label(inner));
    for k in 0..20 {
        let (d, a) = (values[k], values[(k + 7) % 20]);
        f.push(Inst::Int2 { op: Int2::Mul, width: Width::W64, d, a: d, b: Src::Imm(3) });
        f.push(Inst::Int2 { op: Int2::Xor, width: Width::W64, d, a: d, b: a.into() });
    }
    f.push(Inst::Int2 { op: Int2::Sub, width: Width::W64, d: j, a: j, b: Src::Imm(1) });
    f.branch(Cc::Ne, Width::W64, j, 0, inner);
    f.push(Inst::Int2 { op: Int2::Sub, width: Width::W64, d: i, a: i, b: Src::Imm(1) });
    f.branch(Cc::GtS, Width::W64, i, 0, outer);
    let mut sum = f.int2(Int2::Add, Width::W64, n, seed);
    for &v in &values {
        sum = f.int2(Int2::Add, Width::W64, sum, v);
    }
    f.push(Inst::Return { v: sum.into() });

    let mut expected: Vec<u64> = (0..20).map(|k| 1000 + k).collect();
    for _ in 0..5 * 3 {
        for k in 0..20 {
            expected[k] = expected[k].wrapping_mul(3) ^ expected[(k + 7) % 20];
        }
    }
    assert_eq!(run(&f, 5, 1000), expected.iter().fold(1005, |s: u64, v| s.wrapping_add(*v)));
}

called! {
    fn eight(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) -> u64 {
        // Clobbers vector registers, too.
        let floats = [a as f32; 64].map(f32::sqrt);
        std::hint::black_box(floats);
        let args = [a, b, c, d, e, f, g, h];
        args.into_iter().zip(1..).fold(0, |sum: u64, (arg, n)| sum.wrapping_add(arg.wrapping_mul(n)))
    }
}

#[test]
fn calls_leave_live_values() {
    if host().is_none() {
        return;
    }
    let mut f = Function::new(2);
    let values: Vec<V> = (0..20).map(|k| f.int2(Int2::Add, Width::W64, f.param(0), k)).collect();
    let vectors: Vec<V> = (0..20).map(|k| f.splat(true, values[k])).collect();
    // The argument registers form cycles.
    let address = eight as *const () as u64;
    let args = [7, 6, 5, 4, 3, 2, 1, 0].map(|k: usize| Src::Value(values[k]));
    let first = f.call(address, &args);
    let args = [
        Src::Value(f.param(1)),
        Src::Value(f.param(0)),
        Src::Imm(-1),
        first.into(),
        Src::Imm(0),
        Src::Imm(1),
    ];
    let args = args.into_iter().chain([Src::Value(values[19]), Src::Imm(2)]).collect::<Vec<_>>();
    let second = f.call(address, &args);
    let mut sum = f.int2(Int2::Add, Width::W64, first, second);
    for (&v, &w) in values.iter().zip(&vectors) {
        let low = f.low_int(w);
        sum = f.int2(Int2::Add, Width::W64, sum, v);
        sum = f.int2(Int2::Mul, Width::W64, sum, 3);
        sum = f.int2(Int2::Add, Width::W64, sum, low);
    }
    f.push(Inst::Return { v: sum.into() });
    let (a, b) = (100u64, 9u64);
    let first = (0..8u64).map(|k| (8 - k) * (a + k)).sum::<u64>();
    let second = b.wrapping_add(2 * a).wrapping_sub(3).wrapping_add(4 * first + 6 + 7 * (a + 19) + 16);
    let expected =
        (0..20).fold(first + second, |s: u64, k| s.wrapping_add(a + k).wrapping_mul(3).wrapping_add(a + k));
    assert_eq!(run(&f, a, b), expected);
}

/// Unread values are eliminated, including those that only other unread values use.
#[test]
fn unread_values_are_dropped() {
    let Some(host) = host() else { return };
    let bytes = |unread: usize| {
        let mut f = Function::new(2);
        let mut v = f.param(1);
        for _ in 0..unread {
            v = f.load(Size::B8, v, 8);
            let w = f.splat(true, v);
            let w = f.upper_half(w);
            v = f.low_int(w);
        }
        f.push(Inst::Return { v: f.param(0).into() });
        wavesim_x64::compile(&f, &host).expect("compiles").bytes().len()
    };
    assert!(bytes(1000) <= bytes(1));
}

#[test]
fn memory_of_several_functions() {
    let Some(host) = host() else { return };
    let mut memory = wavesim_x64::Memory::new();
    let entries: Vec<_> = (0..50)
        .map(|n| {
            let mut f = Function::new(2);
            f.push(Inst::Return { v: Src::Imm(n) });
            memory.add(wavesim_x64::compile(&f, &host).expect("compiles")).expect("memory")
        })
        .collect();
    for (n, entry) in entries.into_iter().enumerate() {
        // SAFETY: the entry is that of a function of two integers with the System V calling convention, whose
        // code lives in `memory`.
        let call: Entry = unsafe { std::mem::transmute(entry) };
        assert_eq!(call(0, 0), n as u64);
    }
    assert!(memory.bytes() >= 50);
}
