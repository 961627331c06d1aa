//! Tests of overlays on the fixture: additions, corrections and errors.

use isa_spec::canonical;
use isa_spec::diag::{Diagnostic, render};
use isa_spec::source::SourceMap;
use isa_spec::xml::model::Spec;
use isa_spec::xml::{apply_overlay, load, to_tables};

const AMD_FORM: &str = include_str!("../fixtures/amd_form.xml");

const TRIPLE: &str = r#"
  <Instruction>
   <InstructionName>V_TRIPLE_U32</InstructionName>
   <InstructionEncodings>
    <InstructionEncoding>
     <EncodingName>ENC_VOP2</EncodingName>
     <EncodingCondition>default</EncodingCondition>
     <Opcode>60</Opcode>
     <Operands>
      <Operand Input="false" Output="true"><FieldName>VDST</FieldName><DataFormatName>FMT_NUM_B32</DataFormatName><OperandType>OPR_VGPR</OperandType><OperandSize>32</OperandSize></Operand>
      <Operand Input="true" Output="false"><FieldName>SRC0</FieldName><DataFormatName>FMT_NUM_B32</DataFormatName><OperandType>OPR_SRC</OperandType><OperandSize>32</OperandSize></Operand>
     </Operands>
    </InstructionEncoding>
   </InstructionEncodings>
  </Instruction>"#;

fn overlay(body: &str) -> String {
    format!("<Overlay Architectures=\"rdna3 test\">\n{body}\n</Overlay>")
}

fn apply(text: &str) -> (Spec, SourceMap, Result<bool, Vec<Diagnostic>>) {
    let mut spec = load("base.xml", AMD_FORM).unwrap_or_else(|_| panic!("the fixture is refused"));
    let mut sources = SourceMap::default();
    sources.add("base.xml", AMD_FORM);
    let file = sources.add("overlay.xml", text);
    let result = apply_overlay(&sources, file, "test", &mut spec);
    (spec, sources, result)
}

fn applied(body: &str) -> Spec {
    let (spec, sources, result) = apply(&overlay(body));
    match result {
        Ok(done) => assert!(done),
        Err(errors) => panic!("{}", errors.iter().map(|e| render(&sources, e)).collect::<String>()),
    }
    spec
}

/// Checks for exactly one message, in the overlay, which contains every part.
fn refused(body: &str, parts: &[&str]) {
    let (_, sources, result) = apply(&overlay(body));
    let errors = result.expect_err("accepted");
    let shown: Vec<String> = errors.iter().map(|e| render(&sources, e)).collect();
    assert_eq!(shown.len(), 1, "{}", shown.join("\n"));
    for part in ["overlay.xml:"].iter().chain(parts) {
        assert!(shown[0].contains(part), "no `{part}` in\n{}", shown[0]);
    }
}

/// A user's change: an overlay and a pseudocode block, without Rust.
#[test]
fn an_added_instruction_has_encoding_operands_and_semantics() {
    let spec = applied(&format!("<Instructions Reason=\"ours\">{TRIPLE}</Instructions>"));
    let table = to_tables(&spec, "test");
    let inst = table.instruction("V_TRIPLE_U32").unwrap();
    let [entry] = table.entries_of(inst) else { panic!() };
    assert_eq!((entry.opcode, inst.group()), (60, "NOT_ASSIGNED"));
    // The decoder recognises the word by its identifier: ENCODING 0, OP 60.
    let vop2 = &table.encodings[entry.enc as usize];
    assert!(vop2.identifiers.contains(&(60 << 25)));

    let mut sources = SourceMap::default();
    let pcode = sources.add("triple.pcode", "instruction V_TRIPLE_U32 {\n  D0.u32 = S0.u32 * 3U;\n}\n");
    let (set, diagnostics) = canonical::load_set(&sources, &[pcode], &[table]);
    assert!(
        diagnostics.is_empty(),
        "{}",
        diagnostics.iter().map(|d| render(&sources, d)).collect::<String>()
    );
    assert_eq!(set.operations[0].name, "V_TRIPLE_U32");
}

#[test]
fn a_known_name_is_replaced_in_its_place() {
    let new = TRIPLE.replace("V_TRIPLE_U32", "V_ADD3_U32");
    let spec = applied(&format!("<Instructions Reason=\"wrong in the base\">{new}</Instructions>"));
    assert_eq!(spec.instructions.len(), 7);
    assert_eq!(spec.instructions[4].name, "V_ADD3_U32");
    assert_eq!(spec.instructions[4].encodings.len(), 1);
}

#[test]
fn extend_keeps_the_old_encodings() {
    let new = TRIPLE
        .replace("V_TRIPLE_U32", "V_ADD3_U32")
        .replace("<Instruction>", "<Instruction Extend=\"true\">");
    let spec = applied(&format!("<Instructions Reason=\"also in VOP2\">{new}</Instructions>"));
    assert_eq!(spec.instructions[4].encodings.len(), 3);
}

#[test]
fn formats_types_and_removal() {
    let spec = applied(
        "<DataFormats Reason=\"new\"><DataFormat><DataFormatName>FMT_NUM_F8</DataFormatName><DataType>float</DataType></DataFormat></DataFormats>
         <OperandTypes Reason=\"new\"><OperandType><OperandTypeName>OPR_PC</OperandTypeName></OperandType></OperandTypes>
         <RemoveInstruction Name=\"S_NOT_B32\" Reason=\"not on this machine\"/>",
    );
    assert!(spec.formats.iter().any(|f| f.name == "FMT_NUM_F8"));
    assert!(spec.operand_types.iter().any(|t| t.name == "OPR_PC"));
    assert!(spec.instructions.iter().all(|i| i.name != "S_NOT_B32"));
}

#[test]
fn an_overlay_of_other_architectures_changes_nothing() {
    let text = overlay(&format!("<Instructions Reason=\"r\">{TRIPLE}</Instructions>"))
        .replace("rdna3 test", "rdna3,tests");
    let (spec, _, result) = apply(&text);
    assert_eq!(result, Ok(false));
    assert_eq!(spec.instructions.len(), 7);
}

/// Patterns select the operands, names and forms of existing instructions to change.
#[test]
fn existing_instructions_are_amended() {
    let find = |spec: &Spec, name: &str| spec.instructions.iter().find(|i| i.name == name).cloned();
    let plain = applied("");
    let spec = applied(
        "<Operands Of=\"S_NOT_*\" Output=\"true\" SizeBelow=\"64\" Preserves=\"true\" Reason=\"r\">\
           <OperandSize>16</OperandSize><DataFormatName>FMT_NUM_B64</DataFormatName></Operands>\
         <Alias Of=\"S_NOT_B32\" Name=\"S_INVERT\" Reason=\"r\"/>",
    );
    let (before, after) = (find(&plain, "S_NOT_B32").unwrap(), find(&spec, "S_NOT_B32").unwrap());
    assert!(after.aliases.contains(&"S_INVERT".to_string()));
    for (old, new) in before.encodings.iter().zip(&after.encodings) {
        assert_eq!(old.operands.len(), new.operands.len());
        for (old, new) in old.operands.iter().zip(&new.operands) {
            if old.output && old.size < 64 {
                assert_eq!((new.size, new.format.as_str(), new.preserves), (16, "FMT_NUM_B64", true));
            } else {
                assert_eq!(old, new);
            }
        }
    }
    // Everything not selected is unchanged.
    let others = |spec: &Spec| {
        spec.instructions.iter().filter(|i| !i.name.starts_with("S_NOT_")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(others(&plain), others(&spec));

    let spec = applied(
        "<Operands Of=\"S_NOT_B32\" Output=\"true\" Reason=\"r\"><OperandType>OPR_SSRC</OperandType></Operands>",
    );
    let types = |spec: &Spec| {
        let inst = find(spec, "S_NOT_B32").unwrap();
        let outputs = inst.encodings.into_iter().flat_map(|e| e.operands).filter(|o| o.output && !o.implicit);
        outputs.map(|o| o.ty).collect::<Vec<_>>()
    };
    assert!(types(&plain).iter().all(|ty| ty != "OPR_SSRC"), "{:?}", types(&plain));
    assert!(types(&spec).iter().all(|ty| ty == "OPR_SSRC"), "{:?}", types(&spec));

    // A form that is removed and added again has the same condition, opcode, and as many operands.
    let spec = applied(
        "<RemoveEncodings Of=\"V_SUBREV_F32\" Encodings=\"VOP2_VOP_DPP16\" Reason=\"r\"/>\
         <AddEncoding Of=\"V_SUBREV_F32\" Encoding=\"VOP2_VOP_DPP16\" Condition=\"has_dpp16\" From=\"ENC_VOP2\" Reason=\"r\"/>",
    );
    let lanes = |spec: &Spec| {
        let inst = find(spec, "V_SUBREV_F32").unwrap();
        let form = inst.encodings.into_iter().find(|e| e.encoding == "VOP2_VOP_DPP16").unwrap();
        (form.condition, form.opcode, form.operands.len())
    };
    assert_eq!(lanes(&plain), lanes(&spec));

    let encoding = &before.encodings[0].encoding;
    let spec = applied(&format!("<RemoveEncodings Of=\"S_NOT_B32\" Encodings=\"{encoding}\" Reason=\"r\"/>"));
    let left = find(&spec, "S_NOT_B32").map_or(0, |i| i.encodings.len());
    assert_eq!(left, before.encodings.iter().filter(|e| e.encoding != *encoding).count());
}

#[test]
fn faults() {
    refused(&format!("<Instructions>{TRIPLE}</Instructions>"), &["`Instructions` lacks a `Reason`"]);
    refused(&format!("<Instructions Reason=\" \">{TRIPLE}</Instructions>"), &["lacks a `Reason`"]);
    refused("<Instruction Reason=\"r\"/>", &["unexpected element `Instruction`", "expected `Instructions`"]);
    refused(
        "<RemoveInstruction Name=\"S_NOT_B23\" Reason=\"r\"/>",
        &["unknown instruction `S_NOT_B23`", "did you mean `S_NOT_B32`?"],
    );
    refused(
        "<Operands Output=\"true\" Reason=\"r\"/>",
        &["`Operands` lacks the attribute `Of`: names of instructions, in which `*` stands for any text"],
    );
    refused(
        "<Operands Of=\"S_NOT_B32 S_NOT_B23*\" Reason=\"r\"/>",
        &["unknown instruction `S_NOT_B23*`", "did you mean `S_NOT_B32`?"],
    );
    refused(
        "<Operands Of=\"S_NOT_B32\" Format=\"FMT_NUM_B64\" Preserves=\"true\" Reason=\"r\"/>",
        &["this `Operands` changes nothing"],
    );
    refused("<Operands Of=\"S_NOT_B32\" Preserves=\"yes\" Reason=\"r\"/>", &["`yes`"]);
    refused("<Alias Of=\"S_NOT_B32\" Reason=\"r\"/>", &["`Alias` lacks the attribute `Name`"]);
    refused("<Alias Of=\"*\" Name=\"X\" Reason=\"r\"/>", &["`Of` names more than one instruction"]);
    refused(
        "<AddEncoding Of=\"S_NOT_B32\" Condition=\"c\" From=\"ENC_SOP1\" Reason=\"r\"/>",
        &["`AddEncoding` lacks the attribute `Encoding`"],
    );
    refused(
        "<AddEncoding Of=\"S_NOT_B32\" Encoding=\"X\" Condition=\"c\" From=\"ENC_SOP9\" Reason=\"r\"/>",
        &["S_NOT_B32 has no form in the encoding `ENC_SOP9`"],
    );
    refused(
        "<RemoveEncodings Of=\"S_NOT_B32\" Encodings=\"*SDWA*\" Reason=\"r\"/>",
        &["this `RemoveEncodings` changes nothing"],
    );
    refused(
        "<IgnoredField Encoding=\"ENC_SOP\" Field=\"SDST\" Reason=\"r\"/>",
        &["unknown encoding `ENC_SOP`"],
    );
    refused(
        "<IgnoredField Encoding=\"ENC_SOP1\" Field=\"SDTS\" Reason=\"r\"/>",
        &["ENC_SOP1 has no field `SDTS`"],
    );
    refused(
        "<IgnoredField Encoding=\"ENC_SOP1\" Field=\"SDST\" Reason=\"r\"/>",
        &["this `IgnoredField` changes nothing"],
    );
    let in_list =
        |edit: &dyn Fn(&str) -> String| format!("<Instructions Reason=\"r\">{}</Instructions>", edit(TRIPLE));
    refused(
        &in_list(&|t| t.replace("<Instruction>", "<Instruction Extend=\"true\">")),
        &["unknown instruction `V_TRIPLE_U32`"],
    );
    refused(
        &in_list(&|t| t.replace("ENC_VOP2", "ENC_VOP9")),
        &["unknown encoding `ENC_VOP9` (instruction V_TRIPLE_U32)"],
    );
    refused(
        &in_list(&|t| t.replace(">60<", ">5<")),
        &["opcode 5 of ENC_VOP2 under default is used by V_SUBREV_F32 and V_TRIPLE_U32"],
    );
    refused(
        &in_list(&|t| t.replace(">60<", ">64<")),
        &["opcode 64 does not fit the opcode field of ENC_VOP2"],
    );
    let (_, _, result) = apply("<Overlay/>");
    assert!(result.unwrap_err()[0].message.contains("lacks the attribute `Architectures`"));
}
