//! Functions that break one rule each, as text.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use wavesim_x64::inst::{Class, Inst, Int2, Mem, Src, V, Width};
use wavesim_x64::{Code, Function, Problem, verify};

/// Returns the messages of all errors of a function with these lines.
fn errors(lines: &str) -> Vec<String> {
    let text = format!("function(i0, i1) {{\n{lines}\n}}");
    let f = Function::parse(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
    match verify(&f) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn check(lines: &str, expected: &[&str]) {
    assert_eq!(errors(lines), expected, "{lines}");
}

#[test]
fn operands() {
    check("i2 = add.32 i0, i1\nreturn i2", &[]);
    check("v2 = splat.32 i0\nv3 = move v2\nvstore [i1], v3\nreturn 0", &[]);
    // The text form gives each value one class, so that a wrong class is one of the operand.
    check(
        "v2 = splat.32 i0\ni3 = add.32 v2, 1\nreturn i3",
        &["instruction 1, `i3 = add.32 v2, 1`: value 2 must be an integer"],
    );
    check("v2 = move i0\nreturn 0", &["instruction 0, `v2 = move i0`: value 0 must be a vector"]);
    check(
        "v2 = low_int i0\nreturn 0",
        &[
            "instruction 0, `v2 = low_int i0`: value 2 must be an integer",
            "instruction 0, `v2 = low_int i0`: value 0 must be a vector",
        ],
    );
    check(
        "v2 = splat.32 i0\nvstore [v2], v2\nreturn 0",
        &["instruction 1, `vstore [v2], v2`: value 2 must be an integer"],
    );
    check(
        "v2 = vconst c0\nreturn 0",
        &["instruction 0, `v2 = vconst c0`: constant c0 is not one of this function"],
    );
    check(
        "v2 = splat.32 i0\nv3 = vpslld v2\nreturn 0",
        &["instruction 1, `v3 = vpslld v2`: the instruction requires an immediate, or has none"],
    );
    check(
        "v2 = splat.32 i0\nv3 = vpaddd v2, v2, #1\nreturn 0",
        &["instruction 1, `v3 = vpaddd v2, v2, #1`: the instruction requires an immediate, or has none"],
    );
    check("table i0\nreturn 0", &["instruction 0, `table i0`: a jump table has no labels"]);
    let mut f = Function::new(7);
    f.push(Inst::Return { v: Src::Imm(0) });
    let errors = verify(&f).expect_err("seven parameters");
    assert_eq!(errors[0].problem, Problem::Parameters(7));
    // A value of another function, and an instruction with the other number of operands.
    let mut f = Function::new(1);
    let mut other = Function::new(30);
    let v = other.fresh(Class::Vec);
    f.push(Inst::Rvm { code: Code::VEX_Vpslld_ymm_ymm_imm8, d: v, a: v, b: v, imm: Some(1) });
    f.push(Inst::Return { v: Src::Imm(0) });
    let errors: Vec<_> = verify(&f).expect_err("no such value").into_iter().map(|e| e.problem).collect();
    let unknown = Problem::UnknownValue(v);
    assert_eq!(errors, [unknown.clone(), unknown.clone(), unknown, Problem::OperandCount]);
}

#[test]
fn labels() {
    check("jump L0\nL0:\nreturn 0", &[]);
    check("jump L0\nreturn 0", &["instruction 0, `jump L0`: label L0 is jumped to but never bound"]);
    check("L0:\nL0:\njump L0", &["instruction 1, `L0:`: label L0 is bound twice"]);
    let mut f = Function::new(1);
    let label = (0..3).map(|_| Function::label(&mut Function::clone(&f))).next().expect("a label");
    f.push(Inst::Jump(label));
    assert_eq!(verify(&f).expect_err("no label")[0].problem, Problem::UnknownLabel(label));
}

#[test]
fn ends() {
    check("i2 = move i0", &["instruction 0, `i2 = move i0`: control reaches the end of the function"]);
    check("", &["control reaches the end of the function"]);
    // It does not where the end cannot be reached.
    check("return 0\ni2 = move i0", &[]);
}

#[test]
fn assigned_on_every_path() {
    let both = "branch.eq.32 i0, 0, L0\ni2 = const 0x1\njump L1\nL0:\ni2 = const 0x2\nL1:\nreturn i2";
    check(both, &[]);
    let one = "branch.eq.32 i0, 0, L0\ni2 = const 0x1\nL0:\nreturn i2";
    check(one, &["instruction 3, `return i2`: value 2 is not assigned on every path"]);
    // In a loop, too: the first iteration reads what none has assigned.
    let around = "i2 = const 0x1\nL0:\ni4 = add.32 i3, i2\ni3 = move i4\nbranch.ne.32 i3, 9, L0\nreturn 0";
    assert_eq!(
        errors(around).last().map(String::as_str),
        Some("instruction 2, `i4 = add.32 i3, i2`: value 3 is not assigned on every path")
    );
    // Code that cannot be reached may read anything.
    check("return 0\nreturn i2", &[]);
}

/// A value that is first assigned behind a loop header, in the order of the code, does not keep its value until the
/// next iteration, though every path assigns it before it is read.
#[test]
fn first_assigned_in_a_loop() {
    let text = "jump L1\nL0:\nbranch.eq.32 i0, 0, L2\nL1:\ni2 = const 0x5\njump L0\nL2:\nreturn i2";
    check(
        text,
        &[
            "instruction 1, `L0:`: value 2 is first assigned behind this loop header, and read in a later iteration",
        ],
    );
    // Assigned in front of it as well.
    check(&format!("i2 = const 0x1\n{text}"), &[]);
    // That another iteration reads it first does not help: that read may be eliminated.
    let read = "jump L1\nL0:\ni3 = add.32 i2, 1\nbranch.eq.32 i0, 0, L2\nL1:\ni2 = const 0x5\njump L0\nL2:\nreturn i2";
    assert_eq!(errors(read).len(), 1);
    // Assigned anew in each iteration.
    check("L0:\ni2 = load.4 [i0]\ni3 = add.32 i2, 1\nbranch.ne.32 i3, 9, L0\nreturn i3", &[]);
}

#[test]
fn foldable_loads() {
    let lines = |between: &str| {
        format!("v2 = splat.32 i1\nv3 = vload.foldable [i0 + 32]\n{between}\nvstore [i1], v3\nreturn 0")
    };
    let broken = |text: &str, position: usize| {
        let expected = format!(
            "instruction {position}, `vstore [i1], v3`: value 3 is a foldable load whose memory or base address may \
             have been written since"
        );
        assert_eq!(errors(text), [expected], "{text}");
    };
    for other in ["vstore [i0 + 64], v2", "vstore [i0], v2", "store.8 [i0 + 24], 1", "store.1 [i0 + 64], 1"] {
        check(&lines(other), &[]);
    }
    let halves = "store_halves v2, [i0 + 96], [i0 + 60]";
    let overlapping = [
        "vstore [i0 + 63], v2",
        "vstream [i0 + 1], v2",
        "store.8 [i0 + 25], 1",
        "store.1 [i0 + 63], 1",
        halves,
    ];
    for store in overlapping.into_iter().chain(["i0 = add.64 i0, 32"]) {
        broken(&lines(store), 3);
    }
    // A store on one of two paths, and one in the next iteration.
    broken(&lines("branch.eq.32 i1, 0, L0\nvstore [i0 + 32], v2\nL0:"), 5);
    broken(
        "v2 = splat.32 i1\nv3 = vload.foldable [i0]\nL0:\nvstore [i1], v3\nvstore [i0], v2\n\
         branch.ne.32 i1, 0, L0\nreturn 0",
        3,
    );
    // An instruction reads before it writes.
    check("v3 = vload.foldable [i0]\nvstore [i0], v3\nreturn 0", &[]);
}

/// What is hoisted in front of a loop does not change in it.
#[test]
fn hoisted_operands() {
    let make = |assign: bool| {
        let mut f = Function::new(1);
        let base = f.param(0);
        let (a, count) = (f.vload(base, 0, false), f.iconst(3));
        f.begin_loop();
        let head = f.label();
        f.push(Inst::Label(head));
        let sum = f.rvm(Code::VEX_Vpaddd_ymm_ymm_ymmm256, a, a, None);
        f.vstore(base, 0, sum);
        if assign {
            f.assign(a, sum);
        }
        f.push(Inst::Int2 { op: Int2::Sub, width: Width::W64, d: count, a: count, b: Src::Imm(1) });
        f.branch(wavesim_x64::inst::Cc::Ne, Width::W64, count, 0, head);
        f.end_loop();
        f.push(Inst::Return { v: Src::Imm(0) });
        (f, a)
    };
    assert_eq!(verify(&make(false).0), Ok(()));
    if cfg!(debug_assertions) {
        let (f, a) = make(true);
        assert_eq!(verify(&f).expect_err("assigned in the loop")[0].problem, Problem::NotInvariant(a));
    }
    let mut f = Function::new(1);
    f.push(Inst::VecLoad {
        d: V::clone(&f.param(0)),
        from: Mem { base: f.param(0), disp: 0 },
        foldable: false,
    });
    f.begin_loop();
    let errors: Vec<_> = verify(&f).expect_err("open").into_iter().map(|e| e.problem).collect();
    let class = Problem::Class { v: f.param(0), expected: Class::Vec };
    assert_eq!(errors, [Problem::OpenLoop, class]);
}
