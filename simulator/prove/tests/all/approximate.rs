//! What is known of approximate instructions.

use super::ask;
use isa_export::smt::{Setting, Sort, Tape, Terms, arithmetic};
use isa_spec::arith::FloatEnv;
use isa_spec::eval;
use isa_spec::pcode::builtins::Pure;
use isa_spec::pcode::ir::Ty;
use wavesim_isa::arch::Arch;
use wavesim_prove::{Setup, Verdict};

/// Operands of a format: special ones, their neighbours, and random ones.
fn operands(width: u32) -> Vec<u128> {
    let mut all = Vec::new();
    let infinity: u128 = match width {
        16 => 0x7c00,
        32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    };
    let one = 1 << (width - 1);
    for base in [0, infinity, infinity / 2, 1 << (width / 2)] {
        all.extend((-3..=3_i128).map(|k| base.wrapping_add_signed(k) & (one - 1)));
    }
    let mut seed = 1_u64;
    for _ in 0..400 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        all.push((seed ^ seed >> 29) as u128 & (one - 1));
    }
    all.iter().flat_map(|bits| [*bits, *bits | one]).collect()
}

/// Where a fact determines the value or its sign, it is that of the evaluator.
#[test]
fn facts_hold_of_the_evaluator() {
    let setting = Setting { env: FloatEnv::KEEP, uninterpreted_float: false, max_terms: usize::MAX };
    let (mut known, mut signs) = (0, 0);
    for builtin in [Pure::Rcp, Pure::Rsq, Pure::Sqrt, Pure::Exp2, Pure::Log2] {
        for ty in [Ty::F16, Ty::F32, Ty::F64] {
            let mut terms = Terms::default();
            let x = terms.var("x", Sort::Bits(ty.width()));
            let value = arithmetic::pure(&mut terms, setting, builtin, &[x], &[ty], ty.width());
            // The unknown function with two arbitrary values: what is the same with both is a fact.
            let unknown = terms
                .reachable(&[value])
                .into_iter()
                .find(|term| matches!(terms.node(*term).op, isa_export::smt::Op::Apply(_)))
                .expect("an unknown function");
            let mut tape = |bits: u128| {
                let bits = terms.constant(bits, ty.width());
                let value = terms.substituted(value, &[(unknown, bits)].into_iter().collect());
                Tape::of(&terms, &[value]).expect("no memory")
            };
            let tapes = [tape(0), tape(u128::MAX)];
            for operand in operands(ty.width()) {
                let [a, b] = [0, 1].map(|k: usize| {
                    let inputs: Vec<u128> = tapes[k].inputs().iter().map(|_| operand).collect();
                    tapes[k].run(&inputs, &mut Vec::new()).next().expect("a value")
                });
                let expected = eval::pure(builtin, &[operand], &[ty], &FloatEnv::KEEP, false);
                let fixed = !(a ^ b) & ((1 << (ty.width() - 1) << 1) - 1);
                assert_eq!(a & fixed, expected & fixed, "{builtin:?} {ty} {operand:#x}");
                known += usize::from(a == b);
                signs += usize::from(a != b && fixed != 0);
            }
        }
    }
    assert!(known > 1000 && signs > 1000, "{known} {signs}");
}

#[test]
fn facts_are_used() {
    let setup = Setup::new(Arch::Rdna3, 32);
    let sign = ["v_rcp_f32 v0, v1; v_and_b32 v0, 0x80000000, v0", "v_and_b32 v0, 0x80000000, v1"];
    for (texts, assume, equal) in [
        (sign, vec!["(v1 & 0x7fffffff) <= 0x7f800000"], true),
        (["v_rcp_f32 v0, v1", "v_mov_b32 v0, 0xff800000"], vec!["v1 == 0x80000000"], true),
        (["v_sqrt_f32 v0, v1", "v_mov_b32 v0, 0xffc00000"], vec!["v1 > 0x80800000 && v1 < 0xff800000"], true),
        (["v_rcp_f32 v0, v1", "v_rcp_f32 v0, v2"], vec!["v1 == v2"], true),
        // The value for 1 is not documented.
        (["v_rcp_f32 v0, v1", "v_mov_b32 v0, 1.0"], vec!["v1 == 0x3f800000"], false),
    ] {
        let Some(verdict) = ask(setup.clone(), texts, &assume, None) else { return };
        let verdict = verdict.expect("an answer");
        assert_eq!(verdict == Verdict::Equal, equal, "{texts:?}: {verdict:?}");
    }
}
