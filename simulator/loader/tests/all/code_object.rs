//! Metadata of code objects that were linked from several files.

use std::sync::Arc;
use wavesim_loader::code_object::{CodeObject, LoadError, kernels, load, some_of};

fn linked() -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/filetests/code_objects/linked");
    std::fs::read(format!("{folder}/linked.gfx1100.co")).unwrap()
}

/// Encodes a note: the sizes of name and contents, the type, and both padded to words.
fn note(kind: u32, name: &[u8], contents: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    for word in [name.len() as u32, contents.len() as u32, kind] {
        note.extend(word.to_le_bytes());
    }
    for part in [name, contents] {
        note.extend(part);
        note.resize(note.len().next_multiple_of(4), 0);
    }
    note
}

/// Encodes the metadata of one kernel: a map with a list of maps (MessagePack).
fn metadata(kernel: &str, kernarg_size: u8) -> Vec<u8> {
    let text = |text: &str| [&[0xd9, text.len() as u8], text.as_bytes()].concat();
    let size = text(".kernarg_segment_size");
    let kernel = [&[0x82], &text(".name")[..], &text(kernel), &size, &[kernarg_size]].concat();
    [&[0x81], &text("amdhsa.kernels")[..], &[0x91], &kernel].concat()
}

/// Replaces the contents of the note section of an ELF file, whose header is patched to refer to its end.
fn with_notes(mut file: Vec<u8>, notes: &[u8]) -> Vec<u8> {
    const SHT_NOTE: u64 = 7;
    let word = |file: &[u8], at: usize, len: usize| {
        file[at..at + len].iter().rev().fold(0, |n, b| n << 8 | *b as u64)
    };
    let (sections, size, count) = (word(&file, 40, 8), word(&file, 58, 2), word(&file, 60, 2));
    let mut headers = (0..count).map(|n| (sections + n * size) as usize);
    let header = headers.find(|at| word(&file, at + 4, 4) == SHT_NOTE).unwrap();
    let at = file.len() as u64;
    file.extend(notes);
    file[header + 24..header + 32].copy_from_slice(&at.to_le_bytes());
    file[header + 32..header + 40].copy_from_slice(&(notes.len() as u64).to_le_bytes());
    file
}

#[test]
fn all_kernels_of_a_linked_code_object_have_metadata() {
    let file = linked();
    assert_eq!(kernels(&file).unwrap(), ["first", "second"]);
    let (first, second) = (load(&file, "first").unwrap(), load(&file, "second").unwrap());
    assert_eq!((first.kernarg_size(), first.explicit_args().count()), (0, 0));
    // The descriptor has no size.
    assert_eq!((second.kernarg_size(), second.explicit_args().count()), (24, 3));
}

/// Libraries have thousands of kernels, each of which must not cost a copy of the file, or a look at all metadata.
#[test]
fn kernels_share_what_their_code_object_has_once() {
    let object = CodeObject::read(&linked()).unwrap();
    assert!(object.kernels().eq(["first", "second"]));
    let (first, second) = (object.kernel("first").unwrap(), object.kernel("second").unwrap());
    assert!(Arc::ptr_eq(&first.image, &second.image) && Arc::ptr_eq(&first.text.1, &second.text.1));
    assert!(Arc::ptr_eq(&first.labels, &second.labels) && Arc::ptr_eq(&first.lines, &second.lines));
    // What `load` reads is the same.
    for (kernel, name) in [(first, "first"), (second, "second")] {
        let alone = load(&linked(), name).unwrap();
        assert_eq!((&kernel.text, kernel.entry, &kernel.labels), (&alone.text, alone.entry, &alone.labels));
        assert_eq!(kernel.kernarg_size(), alone.kernarg_size());
        assert_eq!(format!("{:?}", kernel.args), format!("{:?}", alone.args));
    }
    // Without contents, kernels have the same addresses.
    let bare = object.clone().without_contents();
    assert_eq!(bare.kernel("second").unwrap().entry, object.kernel("second").unwrap().entry);
    assert_eq!(bare.module.image.constant(0), object.module.image.constant(0));
    assert!(matches!(object.kernel("third"), Err(LoadError::NoKernel { .. })));
}

#[test]
fn all_notes_of_a_section_are_read() {
    const METADATA: u32 = 32;
    let many = (0..748u32).flat_map(|n| note(METADATA, b"AMDGPU\0", &metadata(&format!("kernel{n}"), 1)));
    let own = note(METADATA, b"AMDGPU\0", &metadata("second", 24));
    let foreign =
        [note(3, b"GNU\0", b"build id"), note(METADATA, b"other\0", &metadata("second", 1))].concat();
    let damaged = note(METADATA, b"AMDGPU\0", b"\xff\xff");
    let notes = [foreign, damaged, many.collect(), own].concat();
    let size =
        |notes: &[u8]| load(&with_notes(linked(), notes), "second").map(|kernel| kernel.kernarg_size());
    assert_eq!(size(&notes).unwrap(), 24);
    // Truncated sections lose the incomplete note. Without notes, there is no metadata.
    for cut in 4..40 {
        let error = size(&notes[..notes.len() - cut]).unwrap_err();
        assert!(matches!(&error, LoadError::Bad(text) if text.contains("`second`")), "{error}");
    }
    let mut huge = note(METADATA, b"AMDGPU\0", b"");
    huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    for none in [&huge[..], &huge[..10], &[]] {
        assert_eq!(size(none).unwrap(), 0);
    }
}

#[test]
fn long_names_are_listed_without_a_comparison() {
    let names = |length: usize| ["a", "b"].map(|c| format!("{}1", c.repeat(length))).to_vec();
    let asked = |length: usize| format!("{}2", "b".repeat(length));
    let listed = |length| some_of(&names(length), &asked(length));
    assert!(listed(50).starts_with("`b"), "{}", listed(50));
    // Names of a library's generator: thousands of hundreds of characters.
    assert!(listed(500).starts_with("`a"), "{}", listed(500));
}
