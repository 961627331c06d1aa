//! Loading of images.

use wavesim_loader::image::{Image, LoadImageError, Relocation, Segment};
use wavesim_machine::memory::Memory;

fn image(relocations: Vec<Relocation>) -> Image {
    let segment = Segment { address: 0x10, data: vec![1, 2, 3, 4], size: 32, writable: true };
    Image { segments: vec![segment], relocations }
}

#[test]
fn relocations_use_the_load_address() {
    let low = Relocation { at: 0x18, bytes: 8, value: 0x14, from_base: true, high: false };
    let high = Relocation { at: 0x20, bytes: 4, high: true, ..low };
    let plain =
        Relocation { at: 0x24, bytes: 4, value: 0xffff_ffff_0000_0007, from_base: false, high: false };
    let mut memory = Memory::new(1 << 16).unwrap();
    memory.alloc(1, 1, "something before").unwrap();
    let base = image(vec![low, high, plain]).load(&mut memory).unwrap();
    assert_eq!(memory.load_value(base + 0x10, 8), Ok(0x0403_0201));
    assert_eq!(memory.load_value(base + 0x18, 8), Ok(base as u128 + 0x14));
    assert_eq!(memory.load_value(base + 0x20, 4), Ok((base as u128 + 0x14) >> 32));
    assert_eq!(memory.load_value(base + 0x24, 4), Ok(7));
    let outside = Relocation { at: u64::MAX - 2, ..low };
    let wrong = image(vec![outside]).load(&mut memory).unwrap_err();
    assert_eq!(wrong, LoadImageError::Relocation(u64::MAX - 2));
}

#[test]
fn bytes_are_read_from_segments() {
    let image = image(Vec::new());
    assert_eq!(image.bytes(0x12, 2), Some(&[3, 4][..]));
    assert!(image.bytes(0x12, 3).is_none() && image.bytes(0xf, 1).is_none());
    assert!(image.bytes(u64::MAX, 1).is_none() && image.size() == 0x30);
}
