//! Vectors without a register that several instructions in a row read.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::{host, run};
use wavesim_x64::inst::{Class, Inst, Mem, Src, V};
use wavesim_x64::{Code, Function, compile};

const ADD: Code = Code::VEX_Vpaddd_ymm_ymm_ymmm256;

type Vector = [u32; 8];

/// Loads `count` vectors, which stay in registers.
fn load(f: &mut Function, count: i32) -> Vec<V> {
    let base = f.param(0);
    let one = |n: i32| {
        let d = f.fresh(Class::Vec);
        f.push(Inst::VecLoad { d, from: Mem { base, disp: 32 * n }, foldable: false });
        d
    };
    (0..count).map(one).collect()
}

fn store(f: &mut Function, vectors: &[V]) {
    let base = f.param(1);
    for (n, &v) in (0..).zip(vectors) {
        f.push(Inst::VecStore { to: Mem { base, disp: 32 * n }, v });
    }
    f.push(Inst::Return { v: Src::Imm(0) });
}

/// Runs a function that loads from its first argument and stores to its second one.
fn results(f: &Function, from: &[Vector], count: usize) -> Vec<Vector> {
    let mut to = vec![[0; 8]; count];
    run(f, from.as_ptr() as u64, to.as_mut_ptr() as u64);
    to
}

fn inputs(count: u32) -> Vec<Vector> {
    (0..count).map(|n| std::array::from_fn(|i| 1000 * n + i as u32)).collect()
}

/// A function that adds the constants to twelve vectors in turn.
fn sums(constants: &[u32]) -> Function {
    let mut f = Function::new(2);
    let mut out = load(&mut f, 12);
    for (n, c) in constants.iter().enumerate() {
        let c = f.vconst([*c; 8]);
        out[n % 12] = f.rvm(ADD, out[n % 12], c, None);
    }
    store(&mut f, &out);
    f
}

#[test]
fn constants() {
    let Some(host) = host() else { return };
    let all =
        [[7; 36], std::array::from_fn(|n| 7 + n as u32 % 2), std::array::from_fn(|n| 7 + (n as u32 / 5) % 3)];
    for constants in all {
        let from = inputs(12);
        let mut expected = from.clone();
        for (n, c) in constants.iter().enumerate() {
            expected[n % 12] = expected[n % 12].map(|word| word + c);
        }
        assert_eq!(results(&sums(&constants), &from, 12), expected, "{constants:?}");
    }
    // Operands are registers, without the displacement of an operand in memory: at least three bytes shorter. The
    // second constant takes 32 bytes.
    let size = |constants: &[u32]| compile(&sums(constants), &host).expect("compiles").bytes().len();
    let [same, alternating] = [size(&all[0]), size(&all[1])];
    assert!(same + 32 + 3 * 30 <= alternating, "{same} {alternating}");
}

/// The number of rounds in which [`mix`] reads each vector.
const ROUNDS: u32 = 12;

/// Adds as many vectors as there are registers, `ROUNDS` times to each: a vector that is live and not read meanwhile
/// gets no register.
fn mix(f: &mut Function, vectors: &mut [V]) {
    for _ in 0..ROUNDS {
        vectors.iter_mut().for_each(|v| *v = f.rvm(ADD, *v, *v, None));
    }
}

/// A vector on the stack that is assigned between reads.
#[test]
fn assigned_vectors() {
    if host().is_none() {
        return;
    }
    let mut f = Function::new(2);
    let spilled = f.fresh(Class::Vec);
    let first = load(&mut f, 1)[0];
    f.assign(spilled, first);
    let mut out = load(&mut f, 14);
    mix(&mut f, &mut out);
    out[..4].iter_mut().for_each(|v| *v = f.rvm(ADD, *v, spilled, None));
    // Read and assigned by one instruction.
    f.push(Inst::Rvm { code: ADD, d: spilled, a: out[0], b: spilled, imm: None });
    out[4..8].iter_mut().for_each(|v| *v = f.rvm(ADD, *v, spilled, None));
    let constant = f.vconst([9; 8]);
    f.assign(spilled, constant);
    out[8..12].iter_mut().for_each(|v| *v = f.rvm(ADD, *v, spilled, None));
    mix(&mut f, &mut out);
    store(&mut f, &out);
    let from = inputs(14);
    let mixed: Vec<Vector> = from.iter().map(|v| v.map(|word| word << ROUNDS)).collect();
    let sum: Vector = std::array::from_fn(|i| mixed[0][i].wrapping_add(2 * from[0][i]));
    let expected: Vec<Vector> = (0..14)
        .map(|n| {
            let more = [from[0], sum, [9; 8], [0; 8]][n / 4];
            std::array::from_fn(|i| mixed[n][i].wrapping_add(more[i]) << ROUNDS)
        })
        .collect();
    assert_eq!(results(&f, &from, 14), expected);
}

/// Memory that is stored to between loads of it, which are folded into their uses.
#[test]
fn stored_memory() {
    if host().is_none() {
        return;
    }
    let mut f = Function::new(2);
    let mut out = load(&mut f, 14);
    let from = Mem { base: f.param(0), disp: 0 };
    for half in 0..2 {
        let d = f.fresh(Class::Vec);
        f.push(Inst::VecLoad { d, from, foldable: true });
        mix(&mut f, &mut out);
        out[5 * half..][..5].iter_mut().for_each(|v| *v = f.rvm(ADD, *v, d, None));
        f.push(Inst::VecStore { to: from, v: out[1] });
    }
    store(&mut f, &out);
    let from = inputs(14);
    let mut memory = from[0];
    let mut expected = from.clone();
    for half in 0..2 {
        expected.iter_mut().for_each(|v| *v = v.map(|word| word << ROUNDS));
        expected[5 * half..][..5].iter_mut().for_each(|v| *v = add(*v, memory));
        memory = expected[1];
    }
    assert_eq!(results(&f, &from, 14), expected);
}

fn add(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|i| a[i].wrapping_add(b[i]))
}

/// A label starts a block, which may be entered without the scratch register's value.
#[test]
fn labels() {
    if host().is_none() {
        return;
    }
    let mut f = Function::new(2);
    let vectors = load(&mut f, 10);
    let label = f.label();
    let mut out = Vec::new();
    for (n, v) in vectors.into_iter().enumerate() {
        if n == 5 {
            let first = out[0];
            f.branch_unless_any(first, first, label);
            f.push(Inst::Label(label));
        }
        let c = f.vconst([7; 8]);
        out.push(f.rvm(ADD, v, c, None));
    }
    store(&mut f, &out);
    let from = inputs(10);
    let expected: Vec<Vector> = from.iter().map(|v| v.map(|word| word + 7)).collect();
    assert_eq!(results(&f, &from, 10), expected);
}
