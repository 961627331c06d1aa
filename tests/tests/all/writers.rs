//! All files that users get are written by `wavesim_files`, which replaces a file only by a complete one.

use crate::names_in_rust::walk;
use wavesim_tests::root;

/// Code that creates or changes files.
const WRITERS: [&str; 9] = [
    "fs::write(",
    "File::create",
    "File::options",
    "OpenOptions",
    "fs::copy(",
    "fs::rename(",
    "fs::hard_link(",
    "save_history",
    "append_history",
];

/// Files with such code, and why.
const ALLOWED: [(&str, &str); 6] = [
    ("simulator/files/src/output.rs", "the one that all others use"),
    ("hosts/runtime/src/debug/mod.rs", "the terminal"),
    ("hosts/runtime/src/ipc.rs", "memory that another process shares"),
    ("simulator/clang/src/cache.rs", "sets the time at which an entry was used"),
    (
        "simulator/clang/src/platform.rs",
        "copies in a temporary folder that only the compiler reads, where there are no links",
    ),
    ("simulator/clang/src/lib.rs", "a temporary folder that only the compiler reads"),
];

#[test]
fn outputs_are_written_by_one_module() {
    let (mut found, mut used) = (Vec::new(), Vec::new());
    for folder in ["capi/src", "hosts", "isa-macros", "isa-spec/src", "simulator"] {
        walk(&root().join(folder), &mut |path, text| {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
            // Build scripts write into cargo's folder.
            if name.ends_with("build.rs") {
                return;
            }
            for (number, line) in (1..).zip(text.lines().map(|line| line.trim_start())) {
                let writes = !line.starts_with("//") && WRITERS.iter().any(|writer| line.contains(writer));
                match ALLOWED.iter().find(|allowed| allowed.0 == name) {
                    _ if !writes => {}
                    Some(allowed) => used.push(allowed.0),
                    None => found.push(format!("{name}:{number}: {line}")),
                }
            }
        });
    }
    assert!(found.is_empty(), "use wavesim_files::write, write_all or create:\n{}", found.join("\n"));
    for (name, reason) in ALLOWED {
        assert!(used.contains(&name), "{name} writes no files ({reason}): remove it from the list");
    }
}
