//! Random control flow, compared with an evaluator; and the check of allocations, tested with wrong ones.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::graph::{graph, same_results};
use common::{Rng, host};
use proptest::prelude::*;
use std::collections::BTreeMap;
use wavesim_x64::inst::{Class, Inst, V};
use wavesim_x64::mutate::{Mutation, mutate};
use wavesim_x64::{Function, compile, verify};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_control_flow(seed in any::<u64>()) {
        let Some(host) = host() else { return Ok(()) };
        let f = graph(seed);
        prop_assert_eq!(verify(&f), Ok(()));
        let text = f.to_string();
        prop_assert_eq!(&Function::parse(&text), &Ok(f.clone()));
        let allocated = mutate(&f, Mutation::None, &host).expect("an allocation");
        prop_assert!(allocated.checked.is_ok(), "{:?}\n{}", allocated.checked, text);
        let code = compile(&f, &host).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert!(same_results(&f, code, seed), "{}", text);
    }
}

/// Returns a function's text after some changes: lines left out, repeated or moved, and names of values, labels and
/// registers' classes exchanged.
fn changed(text: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    for _ in 0..1 + rng.below(4) {
        let (at, to) = (1 + rng.below(lines.len() - 2), 1 + rng.below(lines.len() - 2));
        match rng.below(4) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(to, lines[at].clone()),
            2 => lines.swap(at, to),
            _ => {
                // Another value or label of the same kind.
                let words = |line: &str| -> Vec<String> {
                    let parts = line.split(|c: char| !c.is_ascii_alphanumeric());
                    parts.filter(|word| word.starts_with(['i', 'v', 'L'])).map(String::from).collect()
                };
                let (old, new) = (words(&lines[at]), words(&lines[to]));
                if let (false, false) = (old.is_empty(), new.is_empty()) {
                    let old = &old[rng.below(old.len())];
                    let new = &new[rng.below(new.len())];
                    lines[at] = lines[at].replacen(old.as_str(), new, 1);
                }
            }
        }
        if lines.len() < 4 {
            break;
        }
    }
    lines.join("\n")
}

/// What the verifier accepts is allocated rightly, and nothing else panics. Such functions do not run: they may access
/// any memory, and need not end.
#[test]
fn changed_functions() {
    let Some(host) = host() else { return };
    let (mut valid, mut invalid) = (0, 0);
    for seed in 0..3000u64 {
        let text = changed(&graph(seed % 500).to_string(), &mut Rng(seed));
        let Ok(f) = Function::parse(&text) else { continue };
        if verify(&f).is_err() {
            invalid += 1;
            continue;
        }
        valid += 1;
        let allocated = mutate(&f, Mutation::None, &host).expect("an allocation");
        assert_eq!(allocated.checked, Ok(()), "{seed}\n{f}");
        compile(&f, &host).unwrap_or_else(|error| panic!("{seed}: {error}\n{f}"));
    }
    assert!(valid > 300 && invalid > 300, "{valid} {invalid}");
}

/// Returns a random mutation.
fn mutation(rng: &mut Rng, f: &Function) -> Mutation {
    let v = |rng: &mut Rng| {
        // A value that is assigned: `written` is not public.
        let all: Vec<V> = f.insts().iter().filter_map(result).collect();
        rng.pick(&all)
    };
    match rng.below(12) {
        0 => Mutation::ShortenRange(v(rng)),
        1 => Mutation::ForgetLoops,
        2 => Mutation::ForgetCalls,
        3 => Mutation::ShareRegister(v(rng), v(rng)),
        4 => Mutation::ShareSlots(Class::Int),
        5 => Mutation::ShareSlots(Class::Vec),
        6 => Mutation::ShareLonger(rng.below(3)),
        7 => Mutation::ShareAcross(rng.below(3)),
        8 => Mutation::DropSaves(rng.below(3)),
        9 => {
            let all = (0..f.insts().len()).filter(|&i| matches!(f.insts()[i], Inst::Compare { .. }));
            let all: Vec<usize> = all.collect();
            Mutation::KeepInFlags(if all.is_empty() { 0 } else { rng.pick(&all) })
        }
        10 => Mutation::Drop(rng.below(f.insts().len())),
        _ => Mutation::Rematerialise(v(rng)),
    }
}

fn result(inst: &Inst) -> Option<V> {
    let mut found = None;
    if let Inst::Const { d, .. }
    | Inst::Move { d, .. }
    | Inst::Int2 { d, .. }
    | Inst::Select { d, .. }
    | Inst::Load { d, .. }
    | Inst::VecConst { d, .. }
    | Inst::VecLoad { d, .. }
    | Inst::Rm { d, .. }
    | Inst::Rvm { d, .. }
    | Inst::Blend { d, .. }
    | Inst::Splat { d, .. }
    | Inst::LowInt { d, .. } = inst
    {
        found = Some(*d);
    }
    found
}

/// A wrong allocation either fails the check, or happens to compute the same: where two values share a register
/// whose live ranges do not overlap, or a loop's value is not needed in the next iteration.
#[test]
fn wrong_allocations_are_found() {
    let Some(host) = host() else { return };
    let cases = std::env::var("WAVESIM_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    // For each kind of mutation, how many failed the check, and how many passed.
    let mut found: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for seed in 0..cases {
        let f = graph(seed % 300);
        let mutation = mutation(&mut Rng(seed ^ 0x5555), &f);
        let Some(mutant) = mutate(&f, mutation, &host) else { continue };
        let name = format!("{mutation:?}");
        let kind = name.split('(').next().unwrap_or_default().to_string();
        let passes = mutant.checked.is_ok();
        found.entry(kind).or_default()[usize::from(passes)] += 1;
        if passes {
            let code = mutant.code.unwrap_or_else(|error| panic!("{mutation:?}: {error}\n{f}"));
            assert!(same_results(&f, code, seed), "{mutation:?} of {seed} passes the check\n{f}");
        }
    }
    for (kind, [failed, passed]) in &found {
        println!("{kind}: {failed} fail the check, {passed} compute the same");
    }
    assert_eq!(found.len(), 11, "{found:?}");
    assert!(found.values().all(|[failed, _]| *failed > 0), "{found:?}");
}
