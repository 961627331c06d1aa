//! Lines of assembly files and their locations.

use wavesim_assembler::source::{SourceLine, Sources};

#[test]
fn comments_become_spaces() {
    let text = "a ; x\nb // y\nc /* 1 */ d\n.ascii \"; // /*\" ; z\ne /* é\nf */ g\n.amdgpu_metadata\n x: 'a;b'\n.end_amdgpu_metadata\nh;";
    let expected = [
        "a ",
        "b ",
        "c         d",
        ".ascii \"; // /*\" ",
        "e     ",
        "     g",
        ".amdgpu_metadata",
        " x: 'a;b'",
        ".end_amdgpu_metadata",
        "h",
    ];
    let mut sources = Sources::default();
    let lines = sources.add("k.s", text);
    assert_eq!(lines.iter().map(|l| &l.text[..]).collect::<Vec<_>>(), expected);
}

#[test]
fn backtraces_of_lines() {
    let mut sources = Sources::default();
    let main = sources.add("k.s", "a\nb\nc");
    let expansion = |s: &mut Sources, what: &str, line: &SourceLine, via: u32, inline: bool| {
        let from = s.location(line, via);
        s.add_expansion(what.to_string(), from, inline)
    };
    let rept = expansion(&mut sources, ".rept", &main[1], 0, true);
    assert_eq!(sources.main_line(sources.location(&main[2], rept)), 3);
    let gid = expansion(&mut sources, "macro gid", &main[2], rept, false);
    let inner = sources.location(&main[0], gid);
    assert_eq!(sources.main_line(inner), 3);
    assert_eq!(sources.backtrace(inner), ["in macro gid, at k.s:3", "in .rept, at k.s:2"]);
    assert_eq!(sources.depth(inner), 2);
}
