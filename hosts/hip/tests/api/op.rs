//! Operations of streams and graphs.

use amdhip64::ffi::Memory;
use amdhip64::gpu::Gpu;
use amdhip64::op::{Copy, Fill, Op, Pitched, Work};
use amdhip64::status::Status;

fn memory(bytes: &mut [u8]) -> Memory {
    // SAFETY: the tests access only memory inside `bytes`, while it is alive.
    unsafe { Memory::at(bytes.as_mut_ptr().expose_provenance() as u64) }
}

#[test]
fn a_panic_is_a_sticky_failure() {
    let gpu: &'static Gpu = &Vec::leak(Gpu::open_all().unwrap())[0];
    // A fill with elements of 0 bytes panics. The API rejects such fills.
    let to = Pitched::linear(memory(&mut [0]));
    let fill = Op::Fill(Fill { to, value: 0, size: 0, width: 1, height: 1, depth: 1 });
    // SAFETY: it writes nothing.
    let fill = unsafe { Work::new(fill) };
    let stream = gpu.streams.find(0).unwrap();
    gpu.enqueue(&stream, fill.clone()).unwrap();
    assert_eq!(gpu.wait().err().map(|f| f.status), Some(Status::LAUNCH_FAILURE));
    gpu.reset();
    assert_eq!(gpu.run(&stream, fill).err().map(|f| f.status), Some(Status::LAUNCH_FAILURE));
}

#[test]
fn pitched_regions_are_copied_and_filled() {
    let mut from: Vec<u8> = (0..24).collect();
    let mut to = [0; 24];
    let (a, b) = (memory(&mut from), memory(&mut to));
    let copy = Copy {
        to: Pitched { at: b, pitch: 3, slice: 12 },
        from: Pitched { at: a.offset(1), pitch: 4, slice: 12 },
        width: 2,
        height: 2,
        depth: 2,
    };
    // SAFETY: the rows are inside the arrays.
    unsafe { copy.run() };
    assert_eq!(to[..6], [1, 2, 0, 5, 6, 0]);
    assert_eq!(to[12..18], [13, 14, 0, 17, 18, 0]);
    assert_eq!(copy.from.extent(2, 2, 2), 18);
    let fill = Fill { to: Pitched::rows(b, 8), value: 0x0201, size: 2, width: 2, height: 2, depth: 1 };
    // SAFETY: as above.
    unsafe { fill.run() };
    assert_eq!(to[..12], [1, 2, 1, 2, 6, 0, 0, 0, 1, 2, 1, 2]);
}
