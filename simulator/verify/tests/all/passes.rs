//! The lowering of typed bodies to lane loops, and the passes over them: a sample of all operations, or all, and planted
//! faults.

use isa_lower::ir::{Body, Fast, Handlers, LaneLoop, Op1, Op2, Step, Stmt, Value, ValueKind};
use isa_lower::visit::each_value_mut;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wavesim_machine::isa::{OPERATIONS, operation};
use wavesim_prove::Solver;
use wavesim_verify::{PassAnswer, verify_passes, verify_passes_with};

/// A linear congruence, so that cases are reproducible.
fn next(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*seed >> 33) % below
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// `WAVESIM_EVERY` is the inverse of the share of operations that are proven (1: all), `WAVESIM_SEED` (or the seed of other
/// random tests) chooses the sample, `WAVESIM_OP` is a part of the names of the only operations.
#[test]
fn passes_keep_what_operations_compute() {
    let Ok(solver) = Solver::find(Duration::from_secs(8)) else {
        println!("skipped: no SMT solver");
        return;
    };
    let every = number("WAVESIM_EVERY").unwrap_or(10);
    let seed = number("WAVESIM_SEED").or(number("PROPTEST_RNG_SEED")).unwrap_or(1);
    let only = std::env::var("WAVESIM_OP").unwrap_or_default().to_uppercase();
    let start = Instant::now();
    let mut proven: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut unknown, mut refused) = (Vec::new(), BTreeMap::<String, usize>::new());
    for at in 0..OPERATIONS.len() {
        let mut seed = seed << 20 ^ at as u64;
        next(&mut seed, 2);
        let Some(operation) = operation(at as u16) else { continue };
        let name = &operation.name;
        if !name.contains(&only) || next(&mut seed, every) != 0 {
            continue;
        }
        let passes = match verify_passes(operation, &solver) {
            Ok(passes) => passes,
            Err(why) => panic!("{name}: {why}"),
        };
        for pass in passes {
            match pass.answer {
                PassAnswer::Equal => *proven.entry(pass.name).or_default() += 1,
                PassAnswer::Unknown(why) => unknown.push(format!("{name}, {}: {why}", pass.name)),
                PassAnswer::Differ { result, inputs } => {
                    panic!("{name}: {} changes {result} for {inputs:x?}", pass.name)
                }
                PassAnswer::Refused(why) => {
                    if !only.is_empty() {
                        println!("{name}, {}: {why}", pass.name);
                    }
                    *refused.entry(why).or_default() += 1;
                }
            }
        }
    }
    println!("{proven:?} proven in {:?}, unknown: {unknown:#?}, refused: {refused:#?}", start.elapsed());
    let total: usize = proven.values().sum();
    assert!(!only.is_empty() || total as u64 >= 400 / every, "{total} proven");
    assert!(unknown.len() * 5 <= total, "{unknown:#?}");
}

fn body_of(lanes: &mut isa_lower::ir::Lanes) -> Option<&mut LaneLoop> {
    lanes.steps.iter_mut().find_map(|step| match step {
        Step::Loop(lane) => Some(lane),
        _ => None,
    })
}

/// Changes the `at`th operation of some kinds to a similar one; returns whether there are so many.
fn plant(body: &mut [Stmt], at: usize) -> bool {
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
        if number == at {
            value.kind = new;
            done = true;
        }
        number += 1;
    });
    done
}

/// A pass that goes wrong, in the handler that it changes.
fn break_pass(pass: &str, handlers: &mut Handlers, at: usize) -> bool {
    if let (Fast::Lanes(lanes), "simd") = (&mut handlers.fast, pass) {
        // Other arguments of a call that is hoisted.
        let calls = lanes.steps.iter_mut().find_map(|step| match step {
            Step::Simd { calls, .. } => calls.first_mut(),
            _ => None,
        });
        return calls.filter(|args| at + 1 < args.len()).map(|args| args.swap(at, at + 1)).is_some();
    }
    match (&mut handlers.fast, &mut handlers.general) {
        (Fast::Lanes(lanes), _) => body_of(lanes).is_some_and(|lane| plant(&mut lane.body, at)),
        (Fast::Scalar(once), _) => plant(&mut once.body, at),
        (_, Body::Lanes(lanes)) => body_of(lanes).is_some_and(|lane| plant(&mut lane.body, at)),
        (_, Body::Once(once)) => plant(&mut once.body, at),
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
