//! Hidden arguments.

use wavesim_isa::arch::Arch;
use wavesim_isa::descriptor::{self, Descriptor};
use wavesim_loader::abi::{self, Services, Shape, write_hidden_arguments};
use wavesim_loader::code_object;

#[test]
fn hidden_arguments_overwrite_the_segment() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/filetests/code_objects/dynlds");
    let bytes = std::fs::read(format!("{folder}/dynlds.gfx1100.co")).unwrap();
    let kernel = code_object::load(&bytes, "dynlds").unwrap();
    let shape = Shape { offset: [7, 8, 9], ..Shape::new([4, 3, 1], [32, 2, 1], 256) };
    let mut kernarg = vec![0xff; kernel.kernarg_size() as usize];
    write_hidden_arguments(&kernel, &shape, &Services::default(), &mut kernarg);
    let value = |kind: &str| {
        let arg = kernel.args.iter().flatten().find(|arg| arg.kind == kind).unwrap();
        let bytes = &kernarg[arg.offset as usize..][..arg.size as usize];
        bytes.iter().rev().fold(0, |n, byte| n << 8 | *byte as u64)
    };
    for (kind, values) in [
        ("hidden_block_count", [4, 3, 1]),
        ("hidden_group_size", [32, 2, 1]),
        ("hidden_remainder", [0; 3]),
        ("hidden_global_offset", [7, 8, 9]),
    ] {
        assert_eq!(["x", "y", "z"].map(|dim| value(&format!("{kind}_{dim}"))), values, "{kind}");
    }
    assert_eq!((value("hidden_grid_dims"), value("hidden_dynamic_lds_size")), (2, 256));
}

/// FP16_OVFL is bit 26 of the descriptor's first resource dword, and bit 23 of MODE (LLVM AMDGPUUsage, *Kernel
/// Descriptor*).
#[test]
fn mode_has_the_overflow_bit_of_the_descriptor() {
    let mut d = Descriptor::ZERO;
    d.set(descriptor::RSRC1, 1 << 26 | 0xc0 << 12);
    for arch in [Arch::Rdna3, Arch::Cdna3, Arch::Cdna5] {
        assert_eq!(abi::mode(arch, &d), 1 << 23 | 0xc0, "{}", arch.name());
    }
}
