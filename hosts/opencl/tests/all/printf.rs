//! Formatting of kernels' messages.

fn messages(formats: &[String], bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    wavesim_services::messages::messages(formats, bytes, &mut |part| text.extend_from_slice(part));
    text
}

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

#[test]
fn malformed_formats_are_harmless() {
    let formats = [
        // A vector of a billion elements, and an argument of the largest size.
        "1:1:4:a %v999999999d b",
        &format!("2:1:{}:%d", usize::MAX),
        "3:0:50 %",
    ];
    let formats = formats.map(String::from);
    let message = |number: u32| [number.to_le_bytes(), 7u32.to_le_bytes()].concat();
    assert_eq!(messages(&formats, &message(1)), b"a %v999999999d b");
    assert_eq!(messages(&formats, &message(2)), b"");
    assert_eq!(messages(&formats, &3u32.to_le_bytes()), b"50 %");
}
