//! Relocations in code objects written by the assembler (`filetests/asm/ok/relocations.s`). The kernel must
//! find its tables on every architecture. LLVM's relocations for the same file give the expected value of
//! every field after linking and loading.

use object::read::{Relocation, RelocationTarget};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use wavesim_tests::{root, wavesim};

fn source() -> PathBuf {
    root().join("tests/filetests/asm/ok/relocations.s")
}

fn temporary(name: &str) -> String {
    // Tests run concurrently. The thread's name, which is that of the test, makes the file name unique.
    let thread = std::thread::current();
    let name = &format!("{}.{name}", thread.name().unwrap_or_default().replace("::", "."));
    crate::temporary(module_path!(), name).display().to_string()
}

/// Returns the code object written by `wavesim asm`.
fn assembled(mcpu: &str) -> Vec<u8> {
    let out = temporary(&format!("relocations.{mcpu}.co"));
    let (code, text) = wavesim(&["asm", &source().display().to_string(), "--mcpu", mcpu, "-o", &out]);
    assert_eq!(code, 0, "{text}");
    std::fs::read(out).unwrap()
}

#[test]
fn kernels_find_their_tables() {
    for mcpu in ["gfx1100", "gfx1150", "gfx1201"] {
        assembled(mcpu);
        // Both the assembly file and the code object.
        for file in [source().display().to_string(), temporary(&format!("relocations.{mcpu}.co"))] {
            let (code, out) = wavesim(&[
                "run",
                &file,
                "--mcpu",
                mcpu,
                "--grid",
                "1",
                "--block",
                "1",
                "--arg",
                "out_y: i32[8]",
                "--json",
            ]);
            let json: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
            assert_eq!(code, 0, "{mcpu}: {out}");
            let expected = serde_json::json!([101, 201, 300, 103, 302, 0, 301, 8]);
            assert_eq!(json["outputs"]["out_y"]["data"], expected, "{mcpu} {file}");
        }
    }
}

/// Relocation types (LLVM AMDGPUUsage, *Relocation Records*).
const ABS32_LO: u32 = 1;
const ABS32_HI: u32 = 2;
const ABS64: u32 = 3;
const REL32: u32 = 4;
const REL64: u32 = 5;
const ABS32: u32 = 6;
const GOTPCREL32_LO: u32 = 8;
const GOTPCREL32_HI: u32 = 9;
const REL32_LO: u32 = 10;
const REL32_HI: u32 = 11;
const RELATIVE64: u32 = 13;

fn kind(relocation: &Relocation) -> u32 {
    match relocation.flags() {
        RelocationFlags::Elf { r_type } => r_type,
        other => panic!("{other:?}"),
    }
}

/// A linked file, and its dynamic relocations: type and target address, by the address of the field.
struct Linked<'d> {
    file: object::File<'d>,
    loader: BTreeMap<u64, (u32, u64)>,
}

impl<'d> Linked<'d> {
    fn read(bytes: &'d [u8]) -> Linked<'d> {
        let file = object::File::parse(bytes).unwrap();
        let mut loader = BTreeMap::new();
        for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let base = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    let table = object::Object::dynamic_symbol_table(&file).unwrap();
                    object::ObjectSymbolTable::symbol_by_index(&table, index).unwrap().address()
                }
                _ => 0,
            };
            let address = base.wrapping_add(relocation.addend() as u64);
            assert!(loader.insert(at, (kind(&relocation), address)).is_none(), "twice at 0x{at:x}");
        }
        Linked { file, loader }
    }

    fn section(&self, name: &str) -> u64 {
        self.file.section_by_name(name).unwrap_or_else(|| panic!("no {name}")).address()
    }

    fn symbol(&self, name: &str) -> Option<u64> {
        self.file.symbols().find(|s| s.name() == Ok(name)).map(|s| s.address())
    }

    fn field(&self, address: u64, len: usize) -> u64 {
        let data = self.file.sections().find_map(|s| s.data_range(address, len as u64).ok().flatten());
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(data.expect("in a section"));
        u64::from_le_bytes(bytes)
    }
}

/// Checks a field for which LLVM's assembler emits a relocation to a symbol at `value` (`None` if undefined).
/// Returns an error message if the field is wrong.
fn check(ours: &Linked, kind: u32, offset: u64, value: Option<u64>, addend: i64) -> Result<(), String> {
    let target = value.unwrap_or(0).wrapping_add(addend as u64);
    let relative = target.wrapping_sub(offset);
    let holds = |len: usize, expected: u64| match ours.field(offset, len) {
        found if found == expected && !ours.loader.contains_key(&offset) => Ok(()),
        found => Err(format!("0x{found:x}, not 0x{expected:x}")),
    };
    let loaded = |kinds: &[u32]| match (ours.loader.get(&offset), value) {
        (Some((kind, address)), Some(_)) if kinds.contains(kind) && *address == target => Ok(()),
        (None, None) if ours.field(offset, 8) == 0 => Ok(()),
        (found, _) => Err(format!("{found:x?}, not one of {kinds:?} to 0x{target:x}")),
    };
    match kind {
        REL32 | REL32_LO => holds(4, relative & 0xffff_ffff),
        REL32_HI => holds(4, relative >> 32),
        REL64 => holds(8, relative),
        ABS64 => loaded(&[ABS64, RELATIVE64]),
        ABS32 | ABS32_LO | ABS32_HI => loaded(&[kind]),
        GOTPCREL32_LO | GOTPCREL32_HI => {
            // The distance to the GOT entry that holds the symbol.
            let table = ours.file.section_by_name(".got").ok_or("no .got")?;
            let entry = (table.address()..table.address() + table.size()).step_by(8).find(|entry| {
                let distance = entry.wrapping_add(addend as u64).wrapping_sub(offset);
                let half = if kind == GOTPCREL32_LO { distance & 0xffff_ffff } else { distance >> 32 };
                let right = match value {
                    Some(value) => ours.loader.get(entry).is_some_and(|(_, address)| *address == value),
                    None => !ours.loader.contains_key(entry) && ours.field(*entry, 8) == 0,
                };
                right && holds(4, half).is_ok()
            });
            entry.map(|_| ()).ok_or(format!("0x{:x} leads to no such entry", ours.field(offset, 4)))
        }
        other => Err(format!("type {other} is not expected")),
    }
}

#[test]
fn fields_hold_what_llvm_has_relocations_for() {
    for mcpu in ["gfx1100", "gfx1201"] {
        let object = temporary(&format!("relocations.{mcpu}.o"));
        let result = Command::new("llvm-mc-19")
            .args(["-triple=amdgcn-amd-amdhsa", "-filetype=obj", &format!("-mcpu={mcpu}"), "-o", &object])
            .arg(source())
            .status();
        let Ok(status) = result else {
            println!("skipped: llvm-mc-19 is not installed");
            return;
        };
        assert!(status.success());
        let (bytes, linked) = (std::fs::read(&object).unwrap(), assembled(mcpu));
        let llvm = object::File::parse(&*bytes).unwrap();
        let ours = Linked::read(&linked);
        let (mut kinds, mut failures, mut loader) = (BTreeMap::new(), Vec::new(), 0);
        for section in llvm.sections() {
            for (offset, relocation) in section.relocations() {
                let name = section.name().unwrap();
                // The descriptor has a different alignment.
                let RelocationTarget::Symbol(index) = relocation.target() else { panic!("no symbol") };
                let symbol = llvm.symbol_by_index(index).unwrap();
                let value =
                    match symbol.section_index().filter(|_| symbol.kind() == object::SymbolKind::Section) {
                        Some(section) => {
                            Some(ours.section(llvm.section_by_index(section).unwrap().name().unwrap()))
                        }
                        None => ours.symbol(symbol.name().unwrap()),
                    };
                let (kind, at) = (kind(&relocation), ours.section(name) + offset);
                *kinds.entry(kind).or_insert(0) += 1;
                loader += usize::from(matches!(kind, ABS64 | ABS32 | ABS32_LO | ABS32_HI) && value.is_some());
                if let Err(e) = check(&ours, kind, at, value, relocation.addend()) {
                    failures.push(format!("{name}+0x{offset:x} type {kind}: {e}"));
                }
            }
        }
        assert!(failures.is_empty(), "{mcpu}:\n{}", failures.join("\n"));
        for kind in
            [ABS32, ABS32_LO, ABS32_HI, ABS64, REL32, REL64, GOTPCREL32_LO, GOTPCREL32_HI, REL32_LO, REL32_HI]
        {
            assert!(kinds.contains_key(&kind), "{kinds:?}");
        }
        // The only dynamic relocation left is the GOT entry that is not zero.
        assert_eq!(ours.loader.len(), loader + 1, "{:x?}", ours.loader);
        if let Ok(out) = Command::new("llvm-readelf-19")
            .args(["-r", "--dyn-syms", "-d", "-l", &temporary(&format!("relocations.{mcpu}.co"))])
            .output()
        {
            let (text, error) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
            assert!(out.status.success() && error.is_empty(), "{error}");
            assert_eq!(text.matches("R_AMDGPU_").count(), ours.loader.len(), "{text}");
            assert!(text.contains("TEXTREL"), "{text}");
        }
    }
}

/// Assembles a file with a single error. Returns its line and message.
fn refused(statement: &str) -> String {
    let path = temporary("refused.s");
    let text = format!(
        ".text\n.globl k\nk: s_endpgm\n{statement}\n.rodata\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 1\n\
         .amdhsa_next_free_sgpr 1\n.end_amdhsa_kernel\n"
    );
    std::fs::write(&path, text).unwrap();
    let (code, out) = wavesim(&["asm", &path, "--mcpu", "gfx1100", "--json"]);
    assert_eq!(code, 2, "{statement}: {out}");
    let error = out.lines().find_map(|l| {
        serde_json::from_str::<serde_json::Value>(l).unwrap()["error"].as_str().map(str::to_string)
    });
    error.unwrap_or_else(|| panic!("{statement}: {out}"))
}

#[test]
fn what_no_relocation_says_is_refused() {
    let moves = "this depends on the load address";
    for (statement, expected) in [
        (".short k", "an address does not fit 2 bytes (`.quad` has room for one)"),
        (".quad k * 2", moves),
        (".quad k & 0xff", moves),
        (".long 5 - k", moves),
        (".byte k - . + 300", "does not fit 1 bytes"),
        ("s_movk_i32 s0, k", "this depends on the load address; expected a number"),
        (".quad k@rel32", "there is no relocation specifier `@rel32` (there are @gotpcrel32@lo,"),
        (".long missing@gotpcrel32@lo", "`missing` is neither a register nor a defined symbol"),
        (".quad k@abs32@lo", "half of an address takes 4 bytes"),
    ] {
        let error = refused(statement);
        assert!(error.contains(expected), "{statement}: {error}");
    }
    // Raw machine code has no loader that could apply relocations.
    let path = temporary("raw.s");
    std::fs::write(&path, "a: s_mov_b32 s0, a@abs32@lo\n.rodata\n.long 1\n").unwrap();
    let (code, out) = wavesim(&["asm", &path, "-o", &temporary("raw.bin")]);
    assert!(code == 2 && out.contains(".text+0x4 needs a relocation"), "{out}");
}
