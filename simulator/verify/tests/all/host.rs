//! The terms of host operations have the values that host code computes.

#![cfg(target_arch = "x86_64")]

use isa_export::smt::{Sort, Tape, Term, Terms};
use wavesim_verify::host::{self, Vector};
use wavesim_x64::inst::{Cc, Inst, Int1, Int2, Mem, Src, Width};
use wavesim_x64::{Code, Function, Host, Memory, compile};

/// The offsets of sources and of the result in the memory that functions get.
const A: i32 = 0;
const B: i32 = 32;
const MASK: i32 = 64;
const RESULT: i32 = 96;

/// Runs a function on memory of 32 words.
fn run(function: &Function, words: &mut [u32; 32]) {
    let host = Host::detect().expect("checked before");
    let mut memory = Memory::new();
    let entry = memory.add(compile(function, &host).expect("code")).expect("memory");
    // SAFETY: the entry is that of a function of one integer with the System V calling convention, whose code lives in
    // `memory`; it accesses the 32 words at its argument only.
    let call: extern "sysv64" fn(u64) -> u64 = unsafe { std::mem::transmute(entry) };
    call(words.as_mut_ptr().addr() as u64);
    std::hint::black_box(&*words);
}

/// A number without a pattern, often a special one.
fn word(seed: &mut u64) -> u32 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let value = (*seed >> 32) as u32;
    match *seed >> 20 & 15 {
        0 => 0,
        1 => u32::MAX,
        2 => 0x8000_0000,
        3 => value & 63,
        4 => 0x7fff_8000,
        5 => 0x8080_7f7f,
        6 => value & 0xff,
        _ => value,
    }
}

/// A function under test: what it computes as host code and as terms.
struct Case<'a> {
    name: String,
    function: Function,
    /// The words of the result, of the words of both sources and of the mask.
    terms: &'a dyn Fn(&mut Terms, &[Vector; 3]) -> Vec<Term>,
}

fn compare(case: &Case<'_>, seed: &mut u64) {
    let mut terms = Terms::default();
    let mut vector =
        |name: &str| -> Vector { std::array::from_fn(|k| terms.var(&format!("{name}{k}"), Sort::Bits(32))) };
    let sources = [vector("a"), vector("b"), vector("m")];
    let results = (case.terms)(&mut terms, &sources);
    let tape = Tape::of(&terms, &results).expect("no memory");
    for _ in 0..40 {
        let mut words = [0; 32];
        words[..24].iter_mut().for_each(|to| *to = word(seed));
        // Equal elements are what comparisons need.
        if word(seed).is_multiple_of(3) {
            words[9] = words[1];
            words[12] = words[4];
            words[13] = words[5];
        }
        let value = |name: &str| {
            let base = match &name[..1] {
                "a" => 0,
                "b" => 8,
                _ => 16,
            };
            words[base + name[1..].parse::<usize>().expect("a number")] as u128
        };
        let inputs: Vec<u128> = tape.inputs().iter().map(|(name, _)| value(name)).collect();
        let mut scratch = Vec::new();
        let expected: Vec<u32> = tape.run(&inputs, &mut scratch).map(|value| value as u32).collect();
        let before = words;
        run(&case.function, &mut words);
        assert_eq!(words[24..][..expected.len()], expected, "{} of {before:x?}", case.name);
    }
}

/// A function that loads both vectors and the mask, and stores a vector.
fn vectors(make: impl Fn(&mut Function, [wavesim_x64::inst::V; 3]) -> wavesim_x64::inst::V) -> Function {
    let mut f = Function::new(1);
    let base = f.param(0);
    let loaded = [A, B, MASK].map(|at| f.vload(base, at, false));
    let d = make(&mut f, loaded);
    f.push(Inst::VecStore { to: Mem { base, disp: RESULT }, v: d });
    f.push(Inst::Return { v: Src::Imm(0) });
    f
}

#[test]
fn vector_instructions() {
    if Host::detect().is_err() {
        println!("skipped: no AVX2");
        return;
    }
    let (mut seed, mut count) = (1, 0);
    for code in Code::ALL {
        let known = {
            let mut t = Terms::default();
            let zero: Vector = [t.constant(0, 32); 8];
            match code.sources() {
                1 => host::rm(&mut t, *code, &zero, Some(0)).is_ok(),
                _ => host::rvm(&mut t, *code, &zero, &zero, Some(0)).is_ok(),
            }
        };
        if !known {
            continue;
        }
        count += 1;
        for round in 0..if code.has_imm() { 24 } else { 2 } {
            let imm = code.has_imm().then(|| {
                if round < 8 { [0, 1, 7, 16, 31, 32, 63, 255][round] } else { word(&mut seed) as u8 }
            });
            // The two bits that zero a half, and the choice of a half, are all there is.
            let imm = imm.map(|n| match code {
                Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8 => n & 1,
                _ => n,
            });
            let function = vectors(|f, [a, b, _]| match code.sources() {
                1 => f.rm(*code, b, imm),
                _ => f.rvm(*code, a, b, imm),
            });
            let terms = |t: &mut Terms, [a, b, _]: &[Vector; 3]| {
                let result = match code.sources() {
                    1 => host::rm(t, *code, b, imm),
                    _ => host::rvm(t, *code, a, b, imm),
                };
                result.expect("known").to_vec()
            };
            compare(&Case { name: format!("{} {imm:?}", code.name()), function, terms: &terms }, &mut seed);
        }
    }
    assert!(count > 50, "{count} instructions");
}

#[test]
fn other_operations_on_vectors() {
    if Host::detect().is_err() {
        println!("skipped: no AVX2");
        return;
    }
    let mut seed = 2;
    for wide in [false, true] {
        let function = vectors(|f, [a, b, mask]| {
            let d = f.fresh(wavesim_x64::inst::Class::Vec);
            f.push(Inst::Blend { wide, d, a, b, mask });
            d
        });
        let terms = |t: &mut Terms, [a, b, mask]: &[Vector; 3]| host::blend(t, wide, a, b, mask).to_vec();
        compare(&Case { name: format!("blend {wide}"), function, terms: &terms }, &mut seed);
    }
    let mut f = Function::new(1);
    let base = f.param(0);
    let a = f.vload(base, A, false);
    let d = f.fresh(wavesim_x64::inst::Class::Int);
    f.push(Inst::SignBits { d, a });
    f.store(wavesim_x64::inst::Size::B4, base, RESULT, Src::Value(d));
    f.push(Inst::Return { v: Src::Imm(0) });
    let terms = |t: &mut Terms, [a, ..]: &[Vector; 3]| {
        let bits = host::sign_bits(t, a);
        vec![t.extract(bits, 0, 32)]
    };
    compare(&Case { name: "sign_bits".into(), function: f, terms: &terms }, &mut seed);
}

/// A function that loads two integers and stores one.
fn integers(make: impl Fn(&mut Function, [wavesim_x64::inst::V; 2]) -> wavesim_x64::inst::V) -> Function {
    use wavesim_x64::inst::{Class, Size};
    let mut f = Function::new(1);
    let base = f.param(0);
    let loaded = [A, B].map(|disp| {
        let d = f.fresh(Class::Int);
        f.push(Inst::Load { size: Size::B8, d, from: Mem { base, disp } });
        d
    });
    let d = make(&mut f, loaded);
    f.store(Size::B8, base, RESULT, Src::Value(d));
    f.push(Inst::Return { v: Src::Imm(0) });
    f
}

/// The words of an integer result of both integers.
fn on_integers(
    t: &mut Terms,
    sources: &[Vector; 3],
    op: impl Fn(&mut Terms, Term, Term) -> Term,
) -> Vec<Term> {
    let (a, b) = (t.concat(sources[0][1], sources[0][0]), t.concat(sources[1][1], sources[1][0]));
    let value = op(t, a, b);
    vec![t.extract(value, 0, 32), t.extract(value, 32, 32)]
}

#[test]
fn integer_operations() {
    use wavesim_x64::inst::Class;
    if Host::detect().is_err() {
        println!("skipped: no AVX2");
        return;
    }
    let mut seed = 3;
    for width in [Width::W32, Width::W64] {
        for op in
            [Int2::Add, Int2::Sub, Int2::Mul, Int2::And, Int2::Or, Int2::Xor, Int2::Shl, Int2::Shr, Int2::Sar]
        {
            let function = integers(|f, [a, b]| f.int2(op, width, a, b));
            let terms = |t: &mut Terms, sources: &[Vector; 3]| {
                on_integers(t, sources, |t, a, b| host::int2(t, op, width, a, b))
            };
            compare(&Case { name: format!("{op:?} {width:?}"), function, terms: &terms }, &mut seed);
        }
        for op in [
            Int1::Not,
            Int1::Neg,
            Int1::CountOnes,
            Int1::LeadingZeros,
            Int1::TrailingZeros,
            Int1::SwapBytes,
            Int1::SignExtend32,
            Int1::ZeroExtend32,
        ] {
            // Extensions are of one width: sign extension to 64 bits, zero extension of 32.
            if op == Int1::SignExtend32 && width == Width::W32 {
                continue;
            }
            let function = integers(|f, [a, _]| f.int1(op, width, a));
            let terms = |t: &mut Terms, sources: &[Vector; 3]| {
                on_integers(t, sources, |t, a, _| host::int1(t, op, width, a))
            };
            compare(&Case { name: format!("{op:?} {width:?}"), function, terms: &terms }, &mut seed);
        }
        for cc in [Cc::Eq, Cc::Ne, Cc::LtS, Cc::LeS, Cc::GtS, Cc::GeS, Cc::LtU, Cc::LeU, Cc::GtU, Cc::GeU] {
            let function = integers(|f, [a, b]| f.compare(cc, width, a, b));
            let terms = |t: &mut Terms, sources: &[Vector; 3]| {
                on_integers(t, sources, |t, a, b| {
                    let bit = host::compare(t, cc, width, a, b);
                    t.zero_extend(bit, 64)
                })
            };
            compare(&Case { name: format!("{cc:?} {width:?}"), function, terms: &terms }, &mut seed);
        }
    }
    let function = integers(|f, [a, b]| {
        let d = f.fresh(Class::Int);
        f.push(Inst::Select { d, cond: a, a, b });
        d
    });
    let terms = |t: &mut Terms, sources: &[Vector; 3]| {
        on_integers(t, sources, |t, a, b| {
            let zero = t.constant(0, 64);
            let none = t.eq(a, zero);
            t.ite(none, b, a)
        })
    };
    compare(&Case { name: "select".into(), function, terms: &terms }, &mut seed);
}
