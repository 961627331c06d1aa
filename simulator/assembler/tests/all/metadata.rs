//! Metadata in YAML.

use wavesim_assembler::metadata::message_pack;

#[test]
fn bombs_are_rejected() {
    let refused = |text: &str| message_pack(text).unwrap_err();
    let aliases: String = (1..40).map(|k| format!("a{k}: &a{k} [*a{0}, *a{0}]\n", k - 1)).collect();
    assert!(refused(&format!("a0: &a0 [x, x]\n{aliases}")).contains("aliases"));
    assert!(refused(&"{a: ".repeat(100)).contains("nests too deeply"));
    let deep: String = (0..2_000).map(|k| format!("{}a:\n", " ".repeat(k))).collect();
    assert!(refused(&deep).contains("nests too deeply"));
    // The YAML scanner has a limit of its own.
    for text in ["[", "{a: ", "- ", "? "] {
        assert!(message_pack(&text.repeat(20_000)).is_err(), "{text}");
    }
}
