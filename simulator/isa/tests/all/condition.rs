//! Encoding conditions compiled for the decoder.

use proptest::prelude::*;
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::condition::Predicate;

proptest! {
    /// Every compiled condition agrees with its expression.
    #[test]
    fn predicates_agree_with_their_expressions(random in any::<[u64; 2]>(), special in 0usize..24) {
        for arch in Arch::ALL {
            for encoding in arch.table().encodings {
                // Most conditions compare a field to 255, which random bits rarely produce.
                let mut bits = random[0] as u128 | (random[1] as u128) << 64;
                if let Some(field) = encoding.fields.get(special) {
                    bits = field.insert(bits, 255);
                }
                let halves = [bits as u64, (bits >> 64) as u64];
                let values: Vec<u32> = encoding.fields.iter().map(|field| field.extract(bits)).collect();
                for condition in encoding.conditions {
                    let test = Predicate::new(&condition.expr, encoding.fields);
                    prop_assert_eq!(test.holds(halves), condition.expr.eval(&values) != 0);
                }
            }
        }
    }
}

#[test]
fn rdna_conditions_compile_to_masks() {
    for arch in [Arch::Rdna3, Arch::Rdna35, Arch::Rdna4] {
        for encoding in arch.table().encodings {
            for condition in encoding.conditions {
                let test = Predicate::new(&condition.expr, encoding.fields);
                assert!(!matches!(test, Predicate::Expression(..)), "{} {}", encoding.name, condition.name);
            }
        }
    }
}
