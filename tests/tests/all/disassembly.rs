//! Tests of `wavesim disasm`: accepted and rejected files, and round trips through the assembler.

use isa_spec::tables::EntryId;
use object::{Object, ObjectSection};
use std::path::{Path, PathBuf};
use std::process::Command;
use wavesim::arch::Arch;
use wavesim::asm::Options;
use wavesim::codec::{decode, encode};
use wavesim::loader::assembly::AssemblyOptions;
use wavesim_tests::legal::{Random, random_inst};
use wavesim_tests::{root, shared, wavesim};

/// Writes a temporary file.
fn file(name: &str, bytes: &[u8]) -> String {
    let path = crate::temporary(module_path!(), name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

fn disasm(path: &str, more: &[&str]) -> (u8, String) {
    wavesim(&[&["disasm", path], more].concat())
}

fn code_object(name: &str) -> String {
    root().join("tests/filetests/code_objects").join(name).display().to_string()
}

#[test]
fn bundles_are_opened_for_the_target() {
    // A compressed bundle for all three targets.
    let bundle = code_object("relocated/relocated.bundle");
    for (mcpu, own, foreign) in [
        ("gfx1100", "s_waitcnt ", "s_wait_"),
        ("gfx1150", "s_waitcnt ", "s_wait_"),
        ("gfx1201", "s_wait_", "s_waitcnt "),
    ] {
        let (code, text) = disasm(&bundle, &["--mcpu", mcpu]);
        assert!(code == 0 && text.contains(own) && !text.contains(foreign), "{mcpu}: {text}");
        assert!(text.contains("s_endpgm"), "{text}");
    }
    assert_eq!(disasm(&bundle, &[]), disasm(&bundle, &["--arch", "rdna3"]), "the first that fits");
    let (code, text) = disasm(&bundle, &["--mcpu", "gfx1103"]);
    assert!(code == 2 && text.contains("no code object for gfx1103 in the bundle; it has gfx1100"), "{text}");
    // An uncompressed bundle, whose entry has the offset and size of the object and its id.
    let object = std::fs::read(code_object("vadd/vadd.gfx1150.co")).unwrap();
    let id = b"hipv4-amdgcn-amd-amdhsa--gfx1150";
    let mut plain = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    for number in [1, 56 + id.len(), object.len(), id.len()] {
        plain.extend((number as u64).to_le_bytes());
    }
    plain.extend(id);
    plain.extend(&object);
    let alone = disasm(&code_object("vadd/vadd.gfx1150.co"), &["--offsets", "--words"]);
    assert_eq!(disasm(&file("plain.bundle", &plain), &["--offsets", "--words"]), alone);
    assert!(alone.0 == 0 && alone.1.starts_with("vadd:\n"), "{}", alone.1);
}

#[test]
fn other_files_are_rejected() {
    let host = std::env::current_exe().unwrap().display().to_string();
    let object = std::fs::read(code_object("vadd/vadd.gfx1100.co")).unwrap();
    let mut old = object.clone();
    old[48] = 0x3f;
    let mut cut = object.clone();
    cut.truncate(40);
    for (path, expected) in [
        (host, if cfg!(target_os = "linux") { "not for an AMD GPU" } else { "this is" }),
        (
            file("text.bin", b"v_mov_b32 v0, v1\n"),
            "this is text (`wavesim asm` assembles, --hex reads hex digits)",
        ),
        (file("bitcode.bc", b"BC\xc0\xde\x35\x14\0\0"), "this is LLVM bitcode"),
        (file("archive.a", b"!<arch>\n\0\0\0\0"), "this is an archive"),
        (file("package", &[0x10, 0xff, 0x10, 0xad, 1, 0, 0, 0]), "this is an offload package"),
        (file("gfx90a.co", &old), "processor 0x3f of e_flags is not one of rdna3, rdna3.5, rdna4"),
        (file("cut.co", &cut), "not a code object: "),
        (file("cut.bundle", b"__CLANG_OFFLOAD_BUNDLE__\x01"), "bundle: the header is truncated"),
    ] {
        let (code, text) = disasm(&path, &["--mcpu", "gfx1100"]);
        assert!(code == 2 && text.contains(expected) && text.contains(&path), "{path}: {text}");
        // Commands that run kernels report the same errors for binary files.
        if !path.ends_with("text.bin") {
            let (code, text) = wavesim(&["run", &path, "--mcpu", "gfx1100"]);
            assert!(code == 2 && text.contains(expected), "{path}: {text}");
        }
    }
    let (code, text) = disasm(&code_object("vadd/vadd.gfx1100.co"), &["--mcpu", "gfx1201"]);
    assert!(code == 2 && text.contains("the code object is for rdna3, not gfx1201"), "{text}");
    // Raw machine code has no magic number: any unrecognised file is treated as such.
    assert_eq!(disasm(&file("words.bin", &[0, 0, 0xb0, 0xbf]), &[]), (0, "\ts_endpgm\n".to_string()));
}

/// Returns the `.text` section of a code object.
fn text_section(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    file.section_by_name(".text").unwrap().data().unwrap().to_vec()
}

/// Disassembles a code object, assembles the text, and compares `.text`. Returns its number of words.
fn round_trip(path: &Path) -> Result<usize, String> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let (code, text) = disasm(&path.display().to_string(), &[]);
    if code != 0 {
        return Err(format!("{name}: {text}"));
    }
    let mut parts = name.split('.').skip(1);
    let arch = parts.next().and_then(Arch::from_mcpu);
    let wide = parts.next() == Some("w64") || arch.is_some_and(Arch::is_cdna);
    let wave = if wide { 64 } else { 32 };
    let reading = AssemblyOptions { arch, wave: Some(wave), ..AssemblyOptions::default() };
    let (mut program, options, mut errors) = reading.read(&name, &text);
    errors.extend(program.link(&options));
    if let Some(error) = errors.first() {
        return Err(error.to_string());
    }
    let expected = text_section(path);
    let ours = &program.sections[0].bytes;
    match ours.iter().zip(&expected).position(|(a, b)| a != b) {
        Some(at) => Err(format!("{name}: .text differs at 0x{at:x}")),
        None if ours.len() != expected.len() => Err(format!("{name}: another length")),
        None => Ok(ours.len() / 4),
    }
}

/// Returns the code objects below a directory, sorted by name.
fn objects(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(objects(&path));
        } else if path.extension().is_some_and(|e| e == "co") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn code_objects_round_trip() {
    let mut all = objects(&root().join("tests/filetests/code_objects"));
    assert!(all.len() >= 13, "{all:?}");
    match shared("kernels") {
        Some(folder) => all.extend(objects(&folder)),
        None => println!("only the repository's code objects: no kernels in WAVESIM_SHARED or ../shared"),
    }
    let (mut failures, mut words) = (Vec::new(), 0);
    for path in &all {
        match round_trip(path) {
            Ok(count) => words += count,
            Err(e) => failures.push(e),
        }
    }
    println!("{} of {} code objects, {words} words", all.len() - failures.len(), all.len());
    let shown = failures.len().min(10);
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures[..shown].join("\n"));
}

/// Includes words with unused bits set, or with operands that the hardware does not accept.
#[test]
fn arbitrary_words_round_trip() {
    for arch in Arch::AMD {
        let (options, mut random) = (Options::new(arch), Random(5));
        let mut words = Vec::new();
        for entry in 0..arch.table().entries.len() as EntryId {
            let inst = random_inst(&options, entry, &mut random);
            let Some(legal) = inst.and_then(|i| encode(arch, &i).ok()) else { continue };
            for bit in 0..legal.len() * 32 {
                let mut changed = legal.to_vec();
                changed[bit / 32] ^= 1 << (bit % 32);
                // The length must be unchanged, so that the next instruction is decoded at its start.
                if decode(arch, &changed).is_ok_and(|inst| inst.size as usize == 4 * changed.len()) {
                    words.extend(changed);
                }
            }
        }
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let (code, text) = disasm(&file(&format!("{arch:?}.bin"), &bytes), &["--arch", arch.name()]);
        assert_eq!(code, 0);
        let reading = AssemblyOptions {
            arch: Some(arch),
            wave: Some(arch.wave_sizes()[0]),
            ..AssemblyOptions::default()
        };
        let (mut program, options, mut errors) = reading.read("listing.s", &text);
        errors.extend(program.link(&options));
        assert!(errors.is_empty(), "{}: {} errors, first {}", arch.name(), errors.len(), errors[0]);
        let back = &program.sections[0].bytes;
        let differs = back.iter().zip(&bytes).position(|(a, b)| a != b);
        assert!(differs.is_none() && back.len() == bytes.len(), "{}: at {differs:x?}", arch.name());
        // Most of the words are still printed as instructions.
        let long = text.matches("\t.long").count();
        assert!(
            long > 1000 && long * 2 < text.lines().count(),
            "{}: {long} of {}",
            arch.name(),
            text.lines().count()
        );
    }
}

#[test]
fn unlinked_objects_are_disassembled() {
    let source =
        file("unlinked.s", b"a:\n s_nop 1\n s_endpgm\n.section .text.more,\"ax\"\nb:\n s_branch b\n");
    let object = crate::temporary(module_path!(), "unlinked.o").display().to_string();
    let result = Command::new("llvm-mc-19")
        .args(["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-filetype=obj", "-o", &object, &source])
        .status();
    let Ok(status) = result else {
        println!("skipped: llvm-mc-19 is not installed");
        return;
    };
    assert!(status.success());
    let expected = "a:\n\ts_nop 1\n\ts_endpgm\nb:\n\ts_branch b\n";
    assert_eq!(disasm(&object, &[]), (0, expected.to_string()));
}
