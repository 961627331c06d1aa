//! Wrong allocations of small functions, each with the message of the check.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::host;
use std::fmt::Write;
use wavesim_x64::inst::{Class, Inst, V};
use wavesim_x64::mutate::{Mutation, mutate};
use wavesim_x64::{Function, verify};

fn function(lines: &str) -> Function {
    let text = format!("function(i0, i1) {{\n{lines}\n}}");
    let f = Function::parse(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(verify(&f), Ok(()));
    f
}

/// Returns the value with a number.
fn value(f: &Function, n: usize) -> V {
    let assigned = f.insts().iter().filter_map(|inst| match inst {
        Inst::Const { d, .. } | Inst::Int2 { d, .. } | Inst::Move { d, .. } | Inst::VecConst { d, .. } => {
            Some(*d)
        }
        Inst::VecLoad { d, .. } | Inst::Load { d, .. } | Inst::Rvm { d, .. } => Some(*d),
        _ => None,
    });
    f.params().iter().copied().chain(assigned).find(|v| v.index() == n).expect("assigned")
}

/// Checks that the allocation is right as it is, and that one of the errors with the mutation contains a message.
#[track_caller]
fn caught(f: &Function, mutation: Mutation, expected: &str) {
    let Some(host) = host() else { return };
    let unchanged = mutate(f, Mutation::None, &host).expect("an allocation");
    assert_eq!(unchanged.checked, Ok(()));
    let mutant = mutate(f, mutation, &host).expect("the mutation changes something");
    let errors: Vec<String> =
        mutant.checked.expect_err("the check fails").iter().map(ToString::to_string).collect();
    assert!(errors.iter().any(|error| error.contains(expected)), "{errors:#?}");
}

#[test]
fn short_live_range() {
    let f = function("i2 = load.8 [i0]\ni3 = load.8 [i1]\ni4 = mul.64 i3, i3\ni5 = add.64 i4, i2\nreturn i5");
    caught(&f, Mutation::ShortenRange(value(&f, 2)), "`i5 = add.64 i4, i2`: i2 is read from");
}

#[test]
fn one_register_for_two_values() {
    let f = function("i2 = add.64 i0, 1\ni3 = add.64 i1, 2\ni4 = mul.64 i2, i3\nreturn i4");
    let shared = Mutation::ShareRegister(value(&f, 2), value(&f, 3));
    caught(&f, shared, "`i4 = mul.64 i2, i3`: i2 is read from");
}

/// A value that is defined in front of a loop, and read at its beginning only.
#[test]
fn live_ranges_without_loops() {
    let f = function(
        "i2 = mul.64 i0, i0\nL0:\ni3 = add.64 i2, i1\ni4 = mul.64 i3, 3\ni5 = mul.64 i4, i4\ni1 = add.64 i5, i4\n\
         branch.ne.64 i1, 5, L0\nreturn i1",
    );
    caught(&f, Mutation::ForgetLoops, "i2 is read from");
}

/// A location that holds the value on one path only.
#[test]
fn joins() {
    let f = function(
        "i2 = load.8 [i0]\nbranch.eq.32 i1, 0, L0\ni3 = load.8 [i1]\nstore.8 [i1], i3\nL0:\nstore.8 [i1 + 8], i2\n\
         return 0",
    );
    caught(&f, Mutation::ShortenRange(value(&f, 2)), "which holds nothing known");
}

#[test]
fn calls() {
    let f = function("i2 = mul.64 i0, 3\ni3 = call 0x1000(i1)\ni4 = add.64 i2, i3\nreturn i4");
    caught(&f, Mutation::ForgetCalls, "`i4 = add.64 i2, i3`: i2 is read from");
    caught(&f, Mutation::ForgetCalleeSaved, "i2 cannot be in Register");
}

#[test]
fn cold_calls() {
    let f = function("i2 = mul.64 i0, 3\ncold_call 0x1000(i1)\nreturn i2");
    caught(&f, Mutation::DropSaves(0), "`return i2`: i2 is read from");
}

/// More values than registers.
fn spilled(class: char) -> Function {
    let mut text = String::new();
    for n in 2..40 {
        match class {
            'i' => writeln!(text, "i{n} = load.8 [i0 + {}]", 8 * n),
            _ => writeln!(text, "v{n} = vload [i0 + {}]", 32 * n),
        }
        .expect("text");
    }
    for n in (2..40).rev() {
        match class {
            'i' => writeln!(text, "store.8 [i1 + {}], i{n}", 8 * n),
            _ => writeln!(text, "vstore [i1 + {}], v{n}", 32 * n),
        }
        .expect("text");
    }
    function(&format!("{text}return 0"))
}

#[test]
fn one_slot_for_all_values() {
    caught(&spilled('i'), Mutation::ShareSlots(Class::Int), "is read from slot0, which holds");
    caught(&spilled('v'), Mutation::ShareSlots(Class::Vec), "is read from vslot0, which holds");
}

/// A vector on the stack that is loaded once for several instructions, and then assigned.
#[test]
fn shared_vectors() {
    let mut text = "v2 = vload [i0]\n".to_string();
    let mut add = |line: String| writeln!(text, "{line}").expect("text");
    (3..17).for_each(|n| add(format!("v{n} = vload [i0 + {}]", 32 * n)));
    // So many reads that these vectors get the registers.
    (0..200).for_each(|k| add(format!("v{n} = vpaddd v{n}, v{n}", n = 3 + k % 14)));
    (3..8).for_each(|n| add(format!("v{n} = vpaddd v{n}, v2")));
    add("v2 = vpaddd v3, v2".into());
    (8..13).for_each(|n| add(format!("v{n} = vpaddd v{n}, v2")));
    (0..200).for_each(|k| add(format!("v{n} = vpaddd v{n}, v{n}", n = 3 + k % 14)));
    (2..17).for_each(|n| add(format!("vstore [i1 + {}], v{n}", 32 * n)));
    let f = function(&format!("{text}return 0"));
    let expected = "v2 is read from the scratch register, which holds nothing known";
    caught(&f, Mutation::ShareAcross(0), expected);
}

#[test]
fn flags() {
    let f = function("i2 = compare.eq.32 i0, 0\ni3 = select i2, i0, i1\ni4 = add.64 i2, i3\nreturn i4");
    caught(&f, Mutation::KeepInFlags(0), "`i4 = add.64 i2, i3`: i2 is only in the flags");
    let f = function("i2 = compare.eq.32 i0, 0\ni3 = mul.64 i0, i1\nbranch.ne.32 i2, 0, L0\nL0:\nreturn i3");
    caught(&f, Mutation::KeepInFlags(0), "which the next instruction does not test");
}

#[test]
fn left_out() {
    let f = function("i2 = mul.64 i0, 3\nstore.8 [i1], i2\nreturn 0");
    caught(&f, Mutation::Drop(0), "`i2 = mul.64 i0, 3`: the instruction is left out, but has an effect");
    caught(&f, Mutation::Drop(1), "`store.8 [i1], i2`: the instruction is left out, but has an effect");
}

#[test]
fn rematerialised() {
    let f = function(
        "i2 = const 0x5\nbranch.eq.32 i0, 0, L0\ni2 = const 0x6\nL0:\ni3 = mul.64 i2, i1\nreturn i3",
    );
    caught(&f, Mutation::Rematerialise(value(&f, 2)), "i2 is not rematerialised as it is assigned");
    let f = function("v2 = vload [i0]\nvstore [i0], v2\nvstore [i1], v2\nreturn 0");
    caught(&f, Mutation::Rematerialise(value(&f, 2)), "v2 is not rematerialised as it is assigned");
}
