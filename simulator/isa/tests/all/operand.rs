//! Operand codes.

use isa_spec::tables::Role;
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::decode;
use wavesim_isa::operand::{EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};
use wavesim_isa::operand::{OperandKind, binding, code};

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

/// Either half of the address of scratch names all of it in an operand of 64 bits, and itself in one of 32.
#[test]
fn the_address_of_scratch_is_whole_in_wide_operands() {
    let read = |words: &[u32]| {
        let inst = decode(Arch::Cdna5, words).unwrap();
        let binding = binding(Arch::Cdna5, inst.entry);
        let source = binding.operands.iter().find(|o| o.role == Role::S0).unwrap();
        let code = code(Arch::Cdna5, source, binding.value(&inst, source).unwrap());
        [0, 1].map(|index| binding.constant(&inst, code, source, index))
    };
    let (low, high) = (0, 1 << 26);
    // v_add_nc_u64_e32 v[0:1], src_flat_scratch_base_lo or _hi, v[2:3]; s_mov_b32 s0.
    assert_eq!([0x5000_04e6, 0x5000_04e7].map(|word| read(&[word])), [[low, high]; 2]);
    assert_eq!([0xbe80_00e6, 0xbe80_00e7].map(|word| read(&[word])[0]), [low, high]);
}

/// The descriptions list no vector register for scalar addresses, descriptors and scalar offsets: handlers
/// read them once for all lanes.
#[test]
fn scalar_address_operands_are_no_vector_registers() {
    for arch in Arch::AMD {
        let (table, mut found) = (arch.table(), 0);
        let is_vector =
            |name: &str| name.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok());
        let lists_vectors =
            table.operand_types.iter().any(|ty| ty.values.iter().any(|(name, _)| is_vector(name)));
        assert!(lists_vectors, "{}: vector registers have other names", arch.name());
        for (number, entry) in table.entries.iter().enumerate() {
            let name = table.instructions[entry.inst as usize].name;
            let scalar = |role: Role| matches!(role, Role::SAddr | Role::SOffset);
            let binding = binding(arch, number as u16);
            for operand in binding.operands.iter().chain(&binding.y).filter(|operand| scalar(operand.role)) {
                let is_scalar = matches!(operand.kind, OperandKind::Code | OperandKind::Number { .. });
                assert!(is_scalar, "{}: {name} {:?}", arch.name(), operand.kind);
                let own =
                    table.signatures[entry.sig as usize].iter().filter(|sig| sig.field == operand.field);
                for sig in own {
                    let values = table.operand_types[sig.ty as usize].values;
                    let vector = values.iter().find(|(name, _)| is_vector(name));
                    assert_eq!(vector, None, "{}: {name}", arch.name());
                    found += 1;
                }
            }
        }
        assert!(found > 100, "{}: {found}", arch.name());
    }
}
