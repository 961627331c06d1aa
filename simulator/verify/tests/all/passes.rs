//! The lowering of typed bodies to lane loops, and the passes over them: a sample of all operations, or all, and planted
//! faults.

use crate::proven::{self, Known, List};
use isa_lower::ir::{Body, Fast, Handlers, LaneLoop, Op1, Op2, Step, Stmt, Value, ValueKind};
use isa_lower::visit::each_value_mut;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wavesim_machine::isa::{OPERATIONS, operation};
use wavesim_prove::Solver;
use wavesim_verify::{PassAnswer, digest_of_passes, verify_passes, verify_passes_with};

/// A linear congruence, so that cases are reproducible.
fn next(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*seed >> 33) % below
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The passes over all operations but those that were proven before. `WAVESIM_EVERY` is the inverse of a share of operations
/// that are proven anew (1: all), `WAVESIM_SEED` (or the seed of other random tests) chooses the sample, `WAVESIM_OP` is a part
/// of the names of the only operations. `BLESS=1` writes the list of what is proven.
#[test]
fn passes_keep_what_operations_compute() {
    let Ok(solver) = Solver::find(Duration::from_secs(8)) else {
        println!("skipped: no SMT solver");
        return;
    };
    let every = number("WAVESIM_EVERY");
    let seed = number("WAVESIM_SEED").or(number("PROPTEST_RNG_SEED")).unwrap_or(1);
    let only = std::env::var("WAVESIM_OP").unwrap_or_default().to_uppercase();
    let anew = every.is_some() || !only.is_empty();
    let (before, mut now) = (if anew { List::new() } else { proven::read() }, List::new());
    let blessing = wavesim_golden::blessing() && only.is_empty() && every.unwrap_or(1) == 1;
    let start = Instant::now();
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut unknown, mut refused) = (Vec::new(), BTreeMap::<String, usize>::new());
    let (mut failures, mut operations, mut undecided) = (Vec::new(), 0, 0);
    for at in 0..OPERATIONS.len() {
        let mut seed = seed << 20 ^ at as u64;
        next(&mut seed, 2);
        let Some(operation) = operation(at as u16) else { continue };
        let name = &operation.name;
        if !name.contains(&only) || next(&mut seed, every.unwrap_or(1)) != 0 {
            continue;
        }
        let digest = digest_of_passes(operation).unwrap_or_else(|why| panic!("{name}: {why}"));
        if let Some(known) = before.get(&digest) {
            undecided += (*known == Known::Undecided) as usize;
            now.insert(digest, *known);
            continue;
        }
        operations += 1;
        let passes = match verify_passes(operation, &solver) {
            Ok(passes) => passes,
            Err(why) => {
                failures.push(format!("{name}: {why}"));
                continue;
            }
        };
        let (failed, left) = (failures.len(), unknown.len());
        for pass in passes {
            match pass.answer {
                PassAnswer::Equal => *done.entry(pass.name).or_default() += 1,
                PassAnswer::Unknown(why) => unknown.push(format!("{name}, {}: {why}", pass.name)),
                PassAnswer::Differ { result, inputs } => {
                    failures.push(format!("{name}: {} changes {result} for {inputs:x?}", pass.name));
                }
                PassAnswer::Refused(why) => {
                    if !only.is_empty() {
                        println!("{name}, {}: {why}", pass.name);
                    }
                    *refused.entry(why).or_default() += 1;
                }
            }
        }
        if failures.len() == failed {
            now.insert(digest, if unknown.len() == left { Known::Proven } else { Known::Undecided });
            if blessing && operations % 50 == 0 {
                // A run that is interrupted goes on where it ended.
                proven::write(&before.iter().chain(&now).map(|(digest, known)| (*digest, *known)).collect());
            }
        }
    }
    println!(
        "{operations} operations that were not proven before, in {:?}: {done:?} proven, unknown: {unknown:#?}, refused: \
         {refused:#?}; {} known before, {undecided} of them undecided",
        start.elapsed(),
        before.len()
    );
    if blessing {
        proven::write(&now);
    }
    assert!(failures.is_empty(), "{failures:#?}");
    let total: usize = done.values().sum();
    assert!(!anew || !only.is_empty() || total as u64 >= 400 / every.unwrap_or(1), "{total} proven");
    // Two that are new may be hard; what is known is not counted.
    assert!(unknown.len() * 5 <= total.max(10), "{unknown:#?}");
}

fn body_of(lanes: &mut isa_lower::ir::Lanes) -> Option<&mut LaneLoop> {
    lanes.steps.iter_mut().find_map(|step| match step {
        Step::Loop(lane) => Some(lane),
        _ => None,
    })
}

/// Changes the `at`th operation of some kinds to a similar one; returns whether there are so many.
fn plant(body: &mut [Stmt], index: usize) -> bool {
    let (mut number, mut done) = (0, false);
    each_value_mut(body, &mut |value: &mut Value| {
        let new = match &value.kind {
            ValueKind::Op2(op, a, b) => {
                let op = match op {
                    Op2::Add => Op2::Sub,
                    Op2::Sub => Op2::Add,
                    // Such as a mask that is forgotten.
                    Op2::And => Op2::Or,
                    Op2::Or => Op2::Xor,
                    Op2::Xor => Op2::Or,
                    Op2::Mul => Op2::Add,
                };
                ValueKind::Op2(op, a.clone(), b.clone())
            }
            ValueKind::SignExtend { value, .. } => ValueKind::Resize(value.clone()),
            ValueKind::ShrConst(a, count) if *count > 0 => ValueKind::ShrConst(a.clone(), count - 1),
            ValueKind::Sar { value, count, .. } => ValueKind::Shr(value.clone(), count.clone()),
            ValueKind::Op1(Op1::Not, a) => ValueKind::Op1(Op1::Neg, a.clone()),
            ValueKind::Select(cond, a, b) => ValueKind::Select(cond.clone(), b.clone(), a.clone()),
            _ => return,
        };
        if number == index {
            value.kind = new;
            done = true;
        }
        number += 1;
    });
    done
}

/// A pass that goes wrong, in the handler that it changes.
fn break_pass(pass: &str, handlers: &mut Handlers, index: usize) -> bool {
    if let (Fast::Lanes(lanes), "simd") = (&mut handlers.fast, pass) {
        // Other arguments of a call that is hoisted.
        let calls = lanes.steps.iter_mut().find_map(|step| match step {
            Step::Simd { calls, .. } => calls.first_mut(),
            _ => None,
        });
        return calls.filter(|args| index + 1 < args.len()).map(|args| args.swap(index, index + 1)).is_some();
    }
    match (&mut handlers.fast, &mut handlers.general) {
        (Fast::Lanes(lanes), _) => body_of(lanes).is_some_and(|lane| plant(&mut lane.body, index)),
        (Fast::Scalar(once), _) => plant(&mut once.body, index),
        (_, Body::Lanes(lanes)) => body_of(lanes).is_some_and(|lane| plant(&mut lane.body, index)),
        (_, Body::Once(once)) => plant(&mut once.body, index),
    }
}

/// Faults in what a pass makes of an operation are found.
#[test]
fn planted_faults_in_passes_are_found() {
    let Ok(solver) = Solver::find(Duration::from_secs(8)) else {
        println!("skipped: no SMT solver");
        return;
    };
    let (mut found, mut harmless) = (0, Vec::new());
    for (name, pass) in [
        ("V_ADD3_U32", "lower"),
        ("V_BFE_I32", "lower"),
        ("V_PK_ADD_U16", "lower"),
        ("S_BFE_I32", "lower"),
        ("V_SUB_NC_U32", "fast"),
        ("V_ALIGNBIT_B32", "fast"),
        ("S_LSHL1_ADD_U32", "fast"),
        ("V_PERM_B32", "simd"),
    ] {
        let operation = (0..OPERATIONS.len())
            .filter_map(|at| operation(at as u16))
            .find(|operation| operation.name == name)
            .unwrap_or_else(|| panic!("{name} exists"));
        for at in 0..8 {
            let mut planted = false;
            let passes = verify_passes_with(operation, &solver, &mut |stage, handlers| {
                if stage == pass {
                    planted = break_pass(pass, handlers, at);
                }
            });
            if !planted {
                break;
            }
            let passes = passes.unwrap_or_else(|why| panic!("{name}: {why}"));
            match passes.into_iter().find(|one| one.name == pass).map(|one| one.answer) {
                Some(PassAnswer::Differ { .. }) => found += 1,
                answer => harmless.push(format!("{name} {pass} {at}: {answer:?}")),
            }
        }
    }
    println!("{found} faults found; harmless: {harmless:#?}");
    // Such as OR in place of XOR of bits that are never both set.
    assert!(found >= 25 && harmless.len() * 3 <= found, "{found} found, but not {harmless:#?}");
}
