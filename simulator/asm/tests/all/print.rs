//! The disassembler.

use wavesim_asm::{NoSymbols, Options, listing, parse, print};
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::decode;

#[test]
fn exact_printing_preserves_literals() {
    let options = Options::new(Arch::Rdna3);
    for (words, llvm, exact) in [
        (&[0x8205_ff05, 0][..], "s_addc_u32 s5, s5, 0", "s_addc_u32 s5, s5, lit(0x0)"),
        (&[0x0600_02ff, 0x3f80_0000], "v_add_f32_e32 v0, 1.0, v1", "v_add_f32_e32 v0, lit(0x3f800000), v1"),
        (&[0x0600_02ff, 0x3f80_0001], "v_add_f32_e32 v0, 0x3f800001, v1", "v_add_f32_e32 v0, 0x3f800001, v1"),
        (&[0x6400_02ff, 0x3c00], "v_add_f16_e32 v0, 1.0, v1", "v_add_f16_e32 v0, lit(0x3c00), v1"),
        (
            &[0xd503_0100, 0x2002_02ff, 5],
            "v_add_f32_e64 v0, -|5|, v1",
            "v_add_f32_e64 v0, -abs(lit(0x5)), v1",
        ),
    ] {
        let inst = decode(Arch::Rdna3, words).unwrap();
        assert_eq!(print::instruction(&inst, &options), llvm);
        assert_eq!(listing::exact(words, &inst, &options, None), exact);
        let back = parse(exact, &options, &NoSymbols).unwrap_or_else(|e| panic!("{exact}: {e}"));
        assert_eq!(wavesim_isa::codec::encode(Arch::Rdna3, &back.inst).unwrap()[..], *words, "{exact}");
    }
}

/// A matrix product with OP_SEL set, which it does not use, and an SGPR pair that starts at an odd
/// register.
#[test]
fn words_without_a_text_print_as_numbers() {
    let options = Options::new(Arch::Rdna3);
    for (words, text) in [
        (
            &[0xcc40_4800, 0x1c22_1108][..],
            ".long 0xcc404800, 0x1c221108 // v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[8:15], v[8:15]",
        ),
        (&[0xbe81_0103], ".long 0xbe810103 // s_mov_b64 s[1:2], s[3:4]"),
    ] {
        let inst = decode(Arch::Rdna3, words).unwrap();
        assert_eq!(listing::exact(words, &inst, &options, None), text);
    }
}

/// Codes without a name do not parse as something else.
#[test]
fn reserved_codes_do_not_parse_as_constants() {
    let options = Options::new(Arch::Rdna3);
    let inst = decode(Arch::Rdna3, &[0x8449_c4da]).unwrap();
    let text = print::instruction(&inst, &options);
    assert_eq!(text, "s_lshl_b32 s73, <code 218>, -4");
    assert!(parse(&text, &options, &NoSymbols).is_err());
}

/// A register or constant in place of a vector register is printed with a comment on the error.
#[test]
fn invalid_operands_are_annotated() {
    let options = Options::new(Arch::Rdna4);
    for (words, operand) in [
        ([0xcc46_4020, 0x1c82_04f2], "1.0/*Invalid immediate*/"),
        ([0xcc46_4020, 0x1c82_0403], "s[2:3]/*Invalid register, operand has 'VReg_64' register class*/"),
        ([0xcc46_4020, 0x1882_0500], "s[32:39]/*Invalid register, operand has 'VReg_256' register class*/"),
    ] {
        let text = print::instruction(&decode(Arch::Rdna4, &words).unwrap(), &options);
        assert!(text.contains(operand), "{text}");
        assert!(parse(&text, &options, &NoSymbols).is_err());
    }
}

#[test]
fn versions_print_as_names_or_numbers_with_flags() {
    let options = Options::new(Arch::Rdna4);
    for (word, text) in [
        (0xb080_4009, "s_version UC_VERSION_GFX12|UC_VERSION_W32_BIT"),
        (0xb080_6021, "s_version (33|UC_VERSION_W64_BIT)|UC_VERSION_W32_BIT"),
        (0xb080_0100, "s_version 0x100"),
    ] {
        let inst = decode(Arch::Rdna4, &[word]).unwrap();
        assert_eq!(print::instruction(&inst, &options), text);
        let back = parse(text, &options, &NoSymbols).unwrap();
        assert_eq!(wavesim_isa::codec::encode(Arch::Rdna4, &back.inst).unwrap()[..], [word]);
    }
}
