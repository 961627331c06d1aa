//! Assembly files that refer to symbols of each other: relocatable objects, which LLVM's linker joins.

use super::*;

/// Type of relocatable files in the ELF header (ELF specification, *ELF Header*).
const ET_REL: u8 = 1;

/// Stores `numbers[1] + 2` to the buffer; the sum is computed by a function of the other file.
const BODY: &str = "\
  s_load_b64 s[0:1], s[0:1], 0x0
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, add_two@rel32@lo+4
  s_addc_u32 s5, s5, add_two@rel32@hi+12
  s_swappc_b64 s[6:7], s[4:5]
  v_mov_b32 v0, 0
  v_mov_b32 v1, s8
  s_waitcnt lgkmcnt(0)
  global_store_b32 v0, v1, s[0:1]";

const FUNCTION: &str = "\
.amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"
.text
.globl add_two
.protected add_two
.type add_two,@function
add_two:
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, numbers@rel32@lo+8
  s_addc_u32 s5, s5, numbers@rel32@hi+16
  s_load_b32 s8, s[4:5], 0x0
  s_waitcnt lgkmcnt(0)
  s_add_u32 s8, s8, 2
  s_setpc_b64 s[6:7]
";

#[test]
fn files_that_refer_to_each_other_are_linked_and_run() {
    let dir = folder("relocatable");
    let table = ".data\n.globl numbers\n.protected numbers\nnumbers:\n  .long 30\n  .long 40\n";
    let first = write(&dir, "k.s", assembly(BODY, 8, &format!("{table}{}", metadata("x"))));
    let second = write(&dir, "f.s", FUNCTION);
    let path = |name: &str| dir.join(name).display().to_string();
    let objects = [path("k.o"), path("f.o")];
    for ((source, name), object) in [(&first, "add_two"), (&second, "numbers")].into_iter().zip(&objects) {
        let e = wavesim(&["asm", source, "-o", object]);
        assert_eq!(e.code, 0, "{}", e.err);
        let note = format!("does not define {name}: the output is a relocatable object");
        assert!(e.err.contains(&note), "{}", e.err);
        assert_eq!(std::fs::read(object).unwrap()[16..18], [ET_REL, 0]);
    }
    // An object is linked before it runs.
    refused(&["launch", &objects[0], "--grid", "1", "--block", "32", "--arg", "u32[1]"], &["ld.lld"]);
    // Without `-o` there is no object, and the symbol is an error.
    refused(&["asm", &first], &["add_two"]);
    let linked = path("k.co");
    let linker = Command::new("ld.lld-19").args(["-shared", "-o", &linked]).args(&objects).output();
    let Ok(linker) = linker else {
        println!("skipped: ld.lld-19 is not installed");
        return;
    };
    assert!(linker.status.success(), "{}", String::from_utf8_lossy(&linker.stderr));
    let e = wavesim(&["launch", &linked, "--grid", "1", "--block", "32", "--arg", "out_x: u32[1]"]);
    assert!(e.code == 0 && e.out.contains("42"), "{}{}", e.out, e.err);
}
