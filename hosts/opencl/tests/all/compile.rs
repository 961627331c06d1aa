//! Build and link options.

use wavesim_opencl::compile::{creates_library, options, split_words};

#[test]
fn options_are_split_into_words() {
    let list = split_words(r#"  -D A="x y" -DB='"q"' -I /a\ b "" -w"#);
    assert_eq!(list, ["-D", "A=x y", "-DB=\"q\"", "-I", "/a b", "", "-w"]);
    assert_eq!(options("-D A=1 -cl-mad-enable -I dir").unwrap(), ["-DA=1", "-cl-mad-enable", "-Idir"]);
    for wrong in ["-o /tmp/x", "-D", "file.c", "-fplugin=x", "-Xclang", "-fpass-plugin=x", "@f", "-D '' -w"] {
        assert!(options(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn options_of_links() {
    assert_eq!(creates_library("-cl-fast-relaxed-math"), Ok(false));
    assert_eq!(creates_library("-create-library -enable-link-options"), Ok(true));
    let alone = creates_library("-enable-link-options").unwrap_err();
    assert_eq!(alone, "-enable-link-options requires -create-library");
    assert_eq!(creates_library("-cl-std=CL2.0").unwrap_err(), "unknown option -cl-std=CL2.0");
}
