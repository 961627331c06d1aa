//! Bundles of code objects.

use wavesim_isa::arch::Arch;
use wavesim_loader::bundle::{is_bundle, select, size};
use wavesim_loader::code_object::TargetRequest;

const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED: &[u8] = b"CCOB";
/// Compilers align consecutive bundles to pages.
const PAGE: usize = 4096;

fn bundle(list: &[(&str, &[u8])]) -> Vec<u8> {
    let header: usize = 32 + list.iter().map(|(id, _)| 24 + id.len()).sum::<usize>();
    let (mut out, mut data) = (MAGIC.to_vec(), Vec::new());
    out.extend((list.len() as u64).to_le_bytes());
    for (id, object) in list {
        for n in [header + data.len(), object.len(), id.len()] {
            out.extend((n as u64).to_le_bytes());
        }
        out.extend(id.bytes());
        data.extend_from_slice(object);
    }
    out.extend(data);
    out
}

fn request(processor: Option<&str>, arch: Option<Arch>) -> TargetRequest {
    TargetRequest { processor: processor.map(str::to_string), arch }
}

const LIST: [(&str, &[u8]); 4] = [
    ("host-x86_64-unknown-linux--", b""),
    ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", b"cdna"),
    ("hipv4-amdgcn-amd-amdhsa--gfx1101", b"one"),
    ("hip-amdgcn-amd-amdhsa-unknown-gfx12-generic", b"generic"),
];

fn check(bytes: &[u8]) {
    let select = |w| select(bytes, &w).map(|object| object.into_owned()).map_err(|e| e.to_string());
    assert_eq!(select(request(None, None)).unwrap(), b"one");
    assert_eq!(select(request(Some("gfx1101"), None)).unwrap(), b"one");
    assert_eq!(select(request(None, Some(Arch::Rdna4))).unwrap(), b"generic");
    assert_eq!(select(request(Some("gfx1201"), None)).unwrap(), b"generic");
    let wrong = select(request(Some("gfx1150"), Some(Arch::Rdna35))).unwrap_err();
    assert_eq!(wrong, "no code object for gfx1150 in the bundle; it has gfx90a, gfx1101, gfx12-generic");
}

#[test]
fn entries_are_selected_by_target() {
    check(&bundle(&LIST));
    // Padding, followed by the next bundle.
    let mut two = bundle(&LIST[..2]);
    two.resize(PAGE, 0);
    two.extend(bundle(&LIST[2..]));
    check(&two);
    assert_eq!(*select(b"\x7fELF and so on", &request(None, None)).unwrap(), *b"\x7fELF and so on");
}

fn zlib(content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn compressed(version: u16, method: u16, size: u64, packed: &[u8]) -> Vec<u8> {
    let mut out = COMPRESSED.to_vec();
    out.extend(version.to_le_bytes());
    out.extend(method.to_le_bytes());
    let total = packed.len() as u64 + [0, 20, 24, 32][version as usize];
    match version {
        1 => out.extend((size as u32).to_le_bytes()),
        2 => out.extend([(total as u32).to_le_bytes(), (size as u32).to_le_bytes()].concat()),
        _ => out.extend([total.to_le_bytes(), size.to_le_bytes()].concat()),
    }
    out.extend([0; 8]);
    out.extend_from_slice(packed);
    out
}

#[test]
fn compressed_bundles_are_decompressed() {
    let plain = bundle(&LIST);
    let zstd = ruzstd::encoding::compress_to_vec(&plain[..], ruzstd::encoding::CompressionLevel::Fastest);
    for version in 1..=3 {
        for (method, packed) in [(0, zlib(&plain)), (1, zstd.clone())] {
            check(&compressed(version, method, plain.len() as u64, &packed));
            for size in [0, plain.len() as u64 - 1, plain.len() as u64 + 1] {
                let wrong =
                    select(&compressed(version, method, size, &packed), &request(None, None)).unwrap_err();
                assert!(wrong.to_string().contains("stated size"), "{wrong}");
            }
        }
    }
    let wrong = select(&compressed(3, 7, 5, b"x"), &request(None, None)).unwrap_err();
    assert!(wrong.to_string().contains("method 7 is unknown"), "{wrong}");
}

#[test]
fn size_is_computed_from_headers() {
    let plain = bundle(&LIST);
    let packed = compressed(2, 0, plain.len() as u64, &zlib(&plain));
    for whole in [plain, packed, compressed(3, 0, 5, b"packed")] {
        let mut reader = |at: usize, len: usize| {
            assert!(at + len <= whole.len(), "{len} bytes at {at} of {}", whole.len());
            whole[at..at + len].to_vec()
        };
        assert_eq!(size(&mut reader), Some(whole.len()));
    }
    assert_eq!(size(&mut |_, len| vec![b'x'; len]), None);
}

#[test]
fn corrupt_bundles_are_errors() {
    let plain = bundle(&LIST);
    let packed = compressed(2, 0, plain.len() as u64, &zlib(&plain));
    for whole in [&plain, &packed] {
        for len in 0..whole.len() - 8 {
            if is_bundle(&whole[..len]) {
                assert!(select(&whole[..len], &request(Some("gfx12-generic"), None)).is_err(), "{len}");
            }
        }
    }
    let mut many = plain.clone();
    many[24..32].fill(0xff);
    assert!(select(&many, &request(None, None)).is_err());
}
