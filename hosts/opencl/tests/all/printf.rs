//! Formatting of kernels' messages.

use wavesim_opencl::printf::messages;

#[test]
fn messages_are_formatted() {
    let formats = ["1:0:only\\n", "2:4:4:8:4:16:%5d|%s|%.2f|%v4hld %%\\72 x", "9:bad"].map(String::from);
    let mut bytes = 2u32.to_le_bytes().to_vec();
    bytes.extend((-7i32).to_le_bytes());
    bytes.extend(b"text\0\0\0\0");
    bytes.extend(1.25f32.to_le_bytes());
    bytes.extend([1i32, -2, 3, 4].iter().flat_map(|v| v.to_le_bytes()));
    bytes.extend(1u32.to_le_bytes());
    let out = String::from_utf8(messages(&formats, &bytes)).unwrap();
    assert_eq!(out, "   -7|text|1.25|1,-2,3,4 %: xonly\n");
    // A truncated message, and one with an unknown format.
    assert_eq!(messages(&formats, &bytes[..20]), b"");
    assert_eq!(messages(&formats, &7u32.to_le_bytes()), b"");
}
