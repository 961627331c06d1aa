//! Kernel descriptors.

use wavesim_isa::descriptor::*;

/// Fields are at the bits documented by LLVM, and setting one does not affect its neighbours.
#[test]
fn fields_are_little_endian_bit_fields() {
    let mut d = Descriptor::ZERO;
    d.set(USER_SGPR_COUNT, 15);
    d.set(WORKGROUP_IDS[0], 1);
    d.set(WORKITEM_ID, 2);
    assert_eq!(d.bytes()[52..56], [0x9e, 0x10, 0, 0]);
    assert_eq!(d.get(RSRC2), 0x109e);
    d.set(USER_SGPR_COUNT, 0xffff_ffe0);
    assert_eq!(d.get(RSRC2), 0x1080, "bits beyond the width are dropped");
    d.set(KERNARG_PRELOAD_OFFSET, 3);
    d.set(KERNARG_PRELOAD_LENGTH, 5);
    d.set(WAVEFRONT_SIZE32, 1);
    assert_eq!(d.bytes()[56..60], [0, 4, 0x85, 1]);
    d.set(GROUP_SEGMENT_FIXED_SIZE, u32::MAX);
    assert_eq!((d.get(GROUP_SEGMENT_FIXED_SIZE), d.get(PRIVATE_SEGMENT_FIXED_SIZE)), (u32::MAX, 0));
    d.set_entry_offset(-256);
    assert_eq!(d.entry_offset(), -256);
    assert_eq!(Descriptor::from(*d.bytes()), d);
}
