//! Files that refer to symbols of other files become relocatable objects with LLVM's relocations.

use object::read::{Object, ObjectSection, ObjectSymbol, RelocationTarget};
use std::collections::BTreeMap;
use std::process::Command;
use wavesim_asm::Options;
use wavesim_assembler::{read, relocatable};
use wavesim_isa::arch::Arch;

const SOURCE: &str = r#"
.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
.text
.globl helper
.type helper,@function
helper:
  s_getpc_b64 s[0:1]
  s_add_u32 s0, s0, other@rel32@lo+4
  s_addc_u32 s1, s1, other@rel32@hi+12
  s_getpc_b64 s[2:3]
  s_add_u32 s2, s2, table@gotpcrel32@lo+4
  s_addc_u32 s3, s3, table@gotpcrel32@hi+12
  s_mov_b32 s4, other@abs32@lo
  s_mov_b32 s5, other@abs32@hi-8
  s_mov_b32 s6, other
  s_mov_b32 s7, local-helper
  s_mov_b32 s8, numbers@rel32@lo
  s_mov_b32 s9, table-local
  s_branch local
  s_branch k
  s_add_u32 s2, s2, helper@rel32@lo+4
local:
  s_setpc_b64 s[30:31]
.globl k
.p2align 8
.type k,@function
k:
  s_mov_b32 s0, k
  s_endpgm
.end:
.size k, .end-k
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 1
  .amdhsa_next_free_sgpr 8
.end_amdhsa_kernel
.data
numbers:
  .long other
  .quad other+16
  .quad local
  .long other-.
  .quad other-numbers
  .long table@rel32@lo
  .long numbers@abs32@lo
  .quad table@rel64
  .long table@gotpcrel
.Lspot:
  .long .Lspot@gotpcrel
  .quad weak
.weak weak
.quad k
.long 7
.section .debug_x,"",@progbits
  .long other
  .quad local+4
"#;

/// Relocations as `section+offset type symbol+addend`; sections stand for local symbols.
fn relocations(bytes: &[u8]) -> Vec<String> {
    let file = object::File::parse(bytes).unwrap();
    let mut out = Vec::new();
    for section in file.sections() {
        for (offset, r) in section.relocations() {
            let object::RelocationFlags::Elf { r_type } = r.flags() else { panic!() };
            let RelocationTarget::Symbol(index) = r.target() else { panic!() };
            let symbol = file.symbol_by_index(index).unwrap();
            let name = match symbol.kind() {
                object::SymbolKind::Section => file
                    .section_by_index(symbol.section_index().unwrap())
                    .unwrap()
                    .name()
                    .unwrap()
                    .to_string(),
                _ => symbol.name().unwrap().to_string(),
            };
            out.push(format!("{}+{offset:#x} {r_type} {name}{:+}", section.name().unwrap(), r.addend()));
        }
    }
    out.sort();
    out
}

/// Symbols by name: section, value, binding and visibility.
fn symbols(bytes: &[u8]) -> BTreeMap<String, String> {
    let file = object::File::parse(bytes).unwrap();
    let named = file.symbols().filter(|s| !s.name().unwrap().is_empty());
    let text = |s: &object::Symbol| {
        let section =
            s.section_index().map(|at| file.section_by_index(at).unwrap().name().unwrap().to_string());
        format!("{section:?} {:#x} {:?} {}", s.address(), s.flags(), s.is_undefined())
    };
    named.map(|s| (s.name().unwrap().to_string(), text(&s))).collect()
}

fn contents(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let file = object::File::parse(bytes).unwrap();
    let own = file.sections().filter(|s| [".text", ".data", ".debug_x"].contains(&s.name().unwrap()));
    own.map(|s| (s.name().unwrap().to_string(), s.data().unwrap().to_vec())).collect()
}

fn assembled(text: &str) -> Result<Vec<u8>, Vec<String>> {
    let options = Options::new(Arch::Rdna3);
    let (mut program, errors) = read(text, &options);
    assert!(errors.is_empty(), "{errors:?}");
    relocatable::write(&mut program, &options).map_err(|e| e.iter().map(|e| e.error.to_string()).collect())
}

#[test]
fn undefined_symbols_are_found() {
    let options = Options::new(Arch::Rdna3);
    let names = read(SOURCE, &options).0.undefined_symbols();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["other", "table"]);
}

#[test]
fn relocations_are_those_of_llvm() {
    let dir = std::env::temp_dir().join(format!("wavesim-relocatable-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, object) = (dir.join("x.s"), dir.join("x.o"));
    std::fs::write(&source, SOURCE).unwrap();
    let status = Command::new("llvm-mc-19")
        .args(["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-filetype=obj", "-o"])
        .args([&object, &source])
        .status();
    let Ok(status) = status else {
        println!("skipped: llvm-mc-19 is not installed");
        return;
    };
    assert!(status.success());
    let llvm = std::fs::read(&object).unwrap();
    let ours = assembled(SOURCE).unwrap();
    std::fs::write(dir.join("ours.o"), &ours).unwrap();
    assert_eq!(relocations(&ours), relocations(&llvm));
    assert_eq!(symbols(&ours), symbols(&llvm));
    assert_eq!(contents(&ours), contents(&llvm));
    // Tools read the file without complaint.
    if let Ok(out) =
        Command::new("llvm-readelf-19").args(["-r", "-s", "-S", "-h"]).arg(dir.join("ours.o")).output()
    {
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && error.is_empty(), "{error}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_llvm_refuses_is_refused() {
    for (line, message) in [
        ("s_branch elsewhere", "undefined label `elsewhere`"),
        (".quad other*2", "no relocation expresses this"),
        (".quad helper-other", "no relocation expresses this"),
        (".short other", "an address does not fit 2 bytes"),
    ] {
        let errors = assembled(&format!(".text\nhelper: s_endpgm\n{line}\n")).unwrap_err();
        assert!(errors.len() == 1 && errors[0].contains(message), "{line}: {errors:?}");
    }
}
