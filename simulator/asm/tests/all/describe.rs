//! Descriptions of instructions as data.

use wavesim_asm::describe::{
    Operand, find, instruction, instruction_forms, modifiers, plain_name, wait_counters,
};
use wavesim_isa::arch::Arch;

#[test]
fn suffixes_are_stripped_from_names() {
    let names = ["v_add_f32", "v_add_f32_e32", "V_ADD_F32_E64_DPP", "v_add_f32_dpp8", "v_add_f32_dpp16"];
    for name in names {
        assert!(plain_name(name).eq_ignore_ascii_case("v_add_f32"), "{name}");
        assert_eq!(instruction(Arch::Rdna3, name).unwrap().1.name, "V_ADD_F32");
    }
    assert_eq!(plain_name("é_e32"), "é");
}

#[test]
fn unknown_names_get_suggestions() {
    let message = find(&[Arch::Rdna3], "v_add_f33").unwrap_err();
    assert!(message.contains("did you mean `v_add_f32`?"), "{message}");
    let message = find(&[Arch::Rdna3], "s_wait_loadcnt").unwrap_err();
    assert!(message.contains("(rdna4 and cdna5 have it)"), "{message}");
}

#[test]
fn forms_list_operand_fields() {
    let at = instruction(Arch::Rdna3, "v_add_f32").unwrap().0;
    let form = instruction_forms(Arch::Rdna3, at).find(|f| f.encoding == "ENC_VOP2").unwrap();
    assert_eq!((form.opcode, form.bits), (3, 32));
    let places: Vec<String> = form.operands.iter().map(Operand::place).collect();
    assert_eq!(places, ["VDST[24:17]", "SRC0[8:0]", "VSRC1[16:9]"]);
    assert_eq!(form.operands[0].access, "out");
    let fields: Vec<_> = form.fields.iter().map(|(f, value)| (f.name, *value)).collect();
    assert!(fields.contains(&("OP", Some(3))), "{fields:?}");
}

#[test]
fn modifiers_depend_on_the_architecture() {
    let (three, four) = (modifiers(Arch::Rdna3), modifiers(Arch::Rdna4));
    for (name, on_three, on_four) in
        [("glc", true, false), ("scope:", false, true), ("row_shl:", true, true), ("mul:", true, true)]
    {
        assert_eq!((three.contains(name), four.contains(name)), (on_three, on_four), "{name}");
    }
    assert_eq!(wait_counters(Arch::Rdna3), ["vmcnt", "expcnt", "lgkmcnt"]);
    assert!(wait_counters(Arch::Rdna4).is_empty());
}
