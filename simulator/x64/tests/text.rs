//! Functions as text: what is printed can be read, and errors in text name the line.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::Rng;
use common::operations::{CC, INT1, INT2, SIZES, WIDTHS};
use proptest::prelude::*;
use wavesim_x64::inst::{Class, Inst, Mem, Src, V};
use wavesim_x64::{Code, Function};

/// Returns any instruction with operands of the right classes.
fn any_inst(rng: &mut Rng, f: &mut Function, ints: &[V], vecs: &[V], constants: u32) -> Inst {
    let labels: Vec<_> = (0..3).map(|_| f.label()).collect();
    let (d, a) = (rng.pick(ints), rng.pick(ints));
    let (vd, va, vb, vc) = (rng.pick(vecs), rng.pick(vecs), rng.pick(vecs), rng.pick(vecs));
    let disp = if rng.one_in(3) { 0 } else { rng.word() as i32 };
    let from = Mem { base: rng.pick(ints), disp };
    let high = Mem { base: rng.pick(ints), disp: i32::MIN };
    let b = if rng.one_in(2) { Src::Imm(rng.word() as i32) } else { Src::Value(rng.pick(ints)) };
    let (width, wide, to) = (rng.pick(&WIDTHS), rng.one_in(2), labels[0]);
    let function = rng.word();
    match rng.below(33) {
        0 => Inst::Const { d, bits: rng.word() },
        1 => Inst::Move { d, a },
        2 => Inst::Move { d: vd, a: va },
        3 => Inst::Int2 { op: rng.pick(&INT2), width, d, a, b },
        4 => Inst::Int1 { op: rng.pick(&INT1), width, d, a },
        5 => Inst::Compare { cc: rng.pick(&CC), width, d, a, b },
        6 => Inst::Select { d, cond: a, a: rng.pick(ints), b: rng.pick(ints) },
        7 => Inst::Load { size: rng.pick(&SIZES), d, from },
        8 => Inst::Store { size: rng.pick(&SIZES), to: from, v: b },
        9 => Inst::Call { function, args: vec![b, Src::Value(a), b][..rng.below(4)].to_vec(), d: Some(d) },
        10 => Inst::Call { function, args: vec![b], d: None },
        11 => Inst::ColdCall { function, arg: a },
        12 => Inst::Return { v: b },
        13 => Inst::Label(to),
        14 => Inst::Jump(to),
        15 => Inst::Branch { cc: rng.pick(&CC), width, a, b, to },
        16 => Inst::BranchAny { a: va, b: vb, none: wide, to },
        17 => Inst::Table { index: a, to: labels },
        18 => Inst::VecConst { d: vd, constant: rng.below(constants as usize) as u32 },
        19 => Inst::VecLoad { d: vd, from, foldable: wide },
        20 => Inst::VecStore { to: from, v: va },
        21 => Inst::VecStream { to: from, v: va },
        22 => Inst::SplatLoad { d: vd, from },
        23 => Inst::Fma { wide, d: vd, a: va, b: vb, c: vc },
        24 => Inst::Blend { wide, d: vd, a: va, b: vb, mask: vc },
        25 => Inst::UpperHalf { d: vd, b: va },
        26 => Inst::Splat { wide, d: vd, a },
        27 => Inst::LowInt { d, a: va },
        28 => Inst::SignBits { d, a: va },
        29 => Inst::LoadHalves { d: vd, low: from, high },
        30 => Inst::StoreHalves { v: va, low: from, high },
        31 => Inst::Gather { d: vd, from, offsets: va },
        _ => {
            if rng.one_in(4) {
                return if wide { Inst::Prefetch { from } } else { Inst::LoadMxcsr { from } };
            }
            let code = rng.pick(Code::ALL);
            let imm = code.has_imm().then(|| rng.word() as u8);
            match code.sources() {
                1 => Inst::Rm { code, d: vd, b: vb, imm },
                _ => Inst::Rvm { code, d: vd, a: va, b: vb, imm },
            }
        }
    }
}

fn any_function(seed: u64, length: usize) -> Function {
    let rng = &mut Rng(seed);
    let mut f = Function::new(rng.below(7));
    let mut ints: Vec<V> = f.params().to_vec();
    let mut vecs = Vec::new();
    for _ in 0..2 + rng.below(20) {
        ints.push(f.fresh(Class::Int));
        vecs.push(f.fresh(Class::Vec));
    }
    for &v in &ints[..rng.below(3)] {
        f.pin(v);
    }
    let constants = 1 + rng.below(4) as u32;
    for n in 0..constants {
        let words = if rng.one_in(2) { [n; 8] } else { [n, rng.word() as u32, 0, u32::MAX, 1, 2, 3, n] };
        vecs.push(f.vconst(words));
    }
    for _ in 0..length {
        let inst = any_inst(rng, &mut f, &ints, &vecs, constants);
        f.push(inst);
    }
    f
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_can_be_read(seed in any::<u64>(), length in 0usize..80) {
        let f = any_function(seed, length);
        let text = f.to_string();
        let read = Function::parse(&text).map_err(|errors| TestCaseError::fail(format!("{errors:?}\n{text}")))?;
        prop_assert_eq!(&read, &f, "{}", text);
        prop_assert_eq!(read.to_string(), text);
    }

    /// Neither the reader nor the verifier panics on what is nearly a function.
    #[test]
    fn corrupted_text(seed in any::<u64>(), changes in 1usize..8) {
        let rng = &mut Rng(seed);
        let mut text = any_function(seed, 20).to_string();
        for _ in 0..changes {
            let at = rng.below(text.len());
            let piece = rng.pick(&["", "i3", "v99", "L1", ", ", "0x", "}", "-1", ".", "\n", " = ", "é"]);
            if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
                text.replace_range(at..at + 1, piece);
            }
        }
        if let Ok(f) = Function::parse(&text) {
            let _ = wavesim_x64::verify(&f);
            prop_assert_eq!(Function::parse(&f.to_string()), Ok(f));
        }
    }
}

/// Every vector instruction has a name of its own, given the number of its operands.
#[test]
fn names_are_unique() {
    let mut seen = std::collections::HashSet::new();
    for code in Code::ALL {
        assert!(seen.insert((code.name(), code.sources())), "{code:?}");
    }
}

#[test]
fn comments_and_spaces_are_ignored() {
    let text = "; A sum.\nfunction(i0,i1){\n  i2=add.32 i0 ,-5 ; wraps\n\n return i2\n}\n";
    let f = Function::parse(text).expect("a function");
    assert_eq!(f.to_string(), "function(i0, i1) {\n    i2 = add.32 i0, -5\n    return i2\n}\n");
}

#[test]
fn errors_name_lines() {
    let cases = [
        ("", "line 1: the function does not end: ``"),
        ("function() {\n  return 0", "line 2: the function does not end: `return 0`"),
        ("function() {\n}\nreturn 0", "line 3: text behind the function: `return 0`"),
        ("return 0", "line 1: expected `function`: `return 0`"),
        ("function(i0) {\n  i1 = add.16 i0, 1\n}", "line 2: expected one of 32, 64: `i1 = add.16 i0, 1`"),
        ("function(i0) {\n  v0 = splat.32 i0\n}", "line 2: value 0 has two classes: `v0 = splat.32 i0`"),
        (
            "function(i0) {\n  v1 = vadd v1, v2\n}",
            "line 2: `vadd` is not an instruction with a result and 2 values: `v1 = vadd v1, v2`",
        ),
        (
            "function(i0) {\n  store.8 [i0 * 8], 1\n}",
            "line 2: expected a displacement, found `*`: `store.8 [i0 * 8], 1`",
        ),
        ("function(i0) {\n  return i0, 1\n}", "line 2: unexpected `,`: `return i0, 1`"),
        ("function(i0) {\n  jump 5\n}", "line 2: `5` is not a label: `jump 5`"),
        ("function(i0) {\n  i1 = move\n}", "line 2: the line ends early: `i1 = move`"),
        ("function(i0) {\n  c0 = 1, 2\n}", "line 2: a constant has eight words, or one for all: `c0 = 1, 2`"),
        (
            "function(i0) {\n  c1 = 1, 2\n}",
            "line 2: constants are numbered in order: expected `c0`: `c1 = 1, 2`",
        ),
    ];
    for (text, expected) in cases {
        let errors = Function::parse(text).expect_err(text);
        assert_eq!(errors[0].to_string(), expected);
    }
    // All errors are reported.
    let errors = Function::parse("function() {\n  x\n  y\n  return 0\n}").expect_err("two errors");
    assert_eq!(errors.iter().map(|error| error.line).collect::<Vec<_>>(), [2, 3]);
}
