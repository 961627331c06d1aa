//! Operand codes.

use wavesim_isa::arch::Arch;
use wavesim_isa::operand::{EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};

/// Register numbers agree with the ISA descriptions.
#[test]
fn register_numbers_match_the_descriptions() {
    let numbers = [
        ("s0", 0),
        ("s105", VCC_LO - 1),
        ("vcc_lo", VCC_LO),
        ("vcc_hi", VCC_HI),
        ("ttmp0", TTMP.start),
        ("ttmp15", TTMP.end - 1),
        ("null", NULL),
        ("m0", M0),
        ("exec_lo", EXEC_LO),
        ("exec_hi", EXEC_HI),
    ];
    for arch in Arch::RDNA {
        for (name, number) in numbers {
            let types = arch.table().operand_types.iter();
            let listed: Vec<u32> =
                types.flat_map(|t| t.values.iter()).filter(|v| v.0 == name).map(|v| v.1).collect();
            assert!(!listed.is_empty(), "{}: no operand is {name}", arch.name());
            assert!(listed.iter().all(|n| *n as usize == number), "{}: {name} {listed:?}", arch.name());
        }
    }
}
