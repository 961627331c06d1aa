//! The loader accepts the forms of AMD's published files and of AMD's schema document, which differ.
//! `fixtures/amd_form.xml` has the form of the files; each test changes it to another accepted form or checks
//! the meaning of a form.

use isa_spec::diag::render;
use isa_spec::tables::{ArchTable, Cond, CondOp, Role};
use isa_spec::xml::model::{CondExpr, Spec};
use isa_spec::xml::{load, normalize, to_tables};

const AMD_FORM: &str = include_str!("../fixtures/amd_form.xml");

fn spec_of(text: &str) -> Spec {
    load("amd_form.xml", text).unwrap_or_else(|(sources, errors)| {
        let shown: Vec<String> = errors.iter().map(|e| render(&sources, e)).collect();
        panic!("{}", shown.join("\n"))
    })
}

fn table_of(text: &str) -> &'static ArchTable {
    let mut spec = spec_of(text);
    normalize(&mut spec);
    to_tables(&spec, "test")
}

/// Checks that replacing every `from`, which must occur, does not change the fixture's table.
fn same(edits: &[(&str, &str)]) {
    let mut text = AMD_FORM.to_string();
    for (from, to) in edits {
        assert!(text.contains(from), "the fixture has no `{from}`");
        text = text.replace(from, to);
    }
    assert_eq!(table_of(&text), table_of(AMD_FORM), "{edits:?}");
}

#[test]
fn spellings_of_the_schema_document() {
    same(&[("CondtionExpression", "ConditionExpression")]);
    same(&[
        ("<OperandType>OPR", "<OperantType>OPR"),
        ("</OperandType>\n         <", "</OperantType>\n         <"),
    ]);
    same(&[
        ("EncodingCondition>default<", "ConditionName>default<"),
        (">default</EncodingCondition>", ">default</ConditionName>"),
    ]);
    same(&[
        ("<PredefinedValue>", "<OperandPredefinedValue>"),
        ("</PredefinedValue>", "</OperandPredefinedValue>"),
    ]);
    same(&[("TRUE", "True"), ("FALSE", "False")]);
    same(&[("=\"true\"", "=\"True\""), ("=\"false\"", "=\"False\"")]);
}

#[test]
fn optional_elements_may_be_absent() {
    same(&[("  <License>MIT</License>\n", "")]);
    same(&[("   <ArchitectureId>8</ArchitectureId>\n", "")]);
    same(&[(" Radix=\"10\"", "")]);
    same(&[(" Radix=\"2\"", "")]);
    same(&[("     <IsConditionalBranch>FALSE</IsConditionalBranch>\n", "")]);
    same(&[("    <BitCount>256</BitCount>\n", "")]);
    same(&[(" RangeCount=\"1\"", "")]);
    same(&[(" IsConditional=\"FALSE\"", "")]);
}

#[test]
fn numbers_in_other_radices() {
    same(&[("<Opcode Radix=\"10\">261<", "<Opcode Radix=\"16\">0x105<")]);
    same(&[("<Opcode Radix=\"10\">261<", "<Opcode Radix=\"2\">100000101<")]);
    same(&[("<Opcode Radix=\"10\">261<", "<Opcode Radix=\"8\">405<")]);
    same(&[("Radix=\"2\">10111110100000000000000000000000<", "Radix=\"16\">be800000<")]);
}

#[test]
fn comments_line_ends_and_unknown_elements_do_not_matter() {
    same(&[("\n", "\r\n")]);
    same(&[("<BitCount>32</BitCount>", "<BitCount>3<!-- thirty-two -->2</BitCount>")]);
    same(&[("<Description>What", "<Novelty a=\"1\"><b/></Novelty><Description>What")]);
}

#[test]
fn sections_in_any_order() {
    let cut = |tag: &str| {
        let start = AMD_FORM.find(&format!("  <{tag}>")).unwrap();
        let close = format!("</{tag}>\n");
        (start, AMD_FORM.find(&close).unwrap() + close.len())
    };
    let (start, end) = cut("Encodings");
    let mut text = AMD_FORM.to_string();
    text.replace_range(start..end, "");
    let text =
        text.replace("  <FunctionalGroups>", &format!("{}  <FunctionalGroups>", &AMD_FORM[start..end]));
    assert_eq!(table_of(&text), table_of(AMD_FORM));
}

#[test]
fn the_model_keeps_what_the_tables_drop() {
    let spec = spec_of(AMD_FORM);
    assert_eq!(spec.document.license, "MIT");
    assert_eq!(spec.document.schema_version, "1.1.1");
    assert_eq!(spec.architecture.id, Some(8));
    assert_eq!(spec.encodings[0].order, -1);
    assert_eq!(spec.encodings[0].description, "Encoding ENC_SOP1.");
    assert_eq!(spec.instructions[2].description, "What V_SUBREV_F32 does.");
    assert_eq!(spec.functional_groups[1].description, "Vector.");
    let literal = spec.encodings[2].fields.iter().find(|f| f.name == "LITERAL").unwrap();
    assert!(literal.conditional);
    let sbase = spec.encodings[6].fields.iter().find(|f| f.name == "SBASE").unwrap();
    assert_eq!(sbase.ranges[0].padding, 1);
    let float = spec.formats.iter().find(|f| f.name == "FMT_NUM_F32").unwrap();
    assert_eq!((float.bits, float.fields.len()), (Some(32), 3));
    // The type mark of a condition's comparison.
    let Some(CondExpr::Op { op, ty: Some(mark), .. }) = &spec.encodings[0].conditions[0].expr else {
        panic!()
    };
    assert_eq!((op.as_str(), mark.base.as_str(), mark.size), ("!=", "U", Some(1)));
    // `Padding` as a plain number.
    let plain =
        AMD_FORM.replace("<Padding><BitCount>1</BitCount><Value>0</Value></Padding>", "<Padding>1</Padding>");
    assert_eq!(spec_of(&plain).encodings[6].fields[2].ranges[0].padding, 1);
}

#[test]
fn operand_types() {
    let table = table_of(AMD_FORM);
    let find = |name: &str| table.operand_types.iter().find(|t| t.name == name).unwrap();
    assert_eq!(find("OPR_SSRC").subtypes, ["OPR_SDST", "OPR_SIMM32"]);
    assert_eq!(find("OPR_SDST").values, [("s0", 0), ("vcc_lo", 106), ("null", 124)]);
    let hwreg = find("OPR_HWREG");
    assert_eq!(hwreg.parts.iter().map(|p| p.name).collect::<Vec<_>>(), ["ID", "OFFSET", "SIZE"]);
    assert_eq!(hwreg.parts[0].values, [("hw_reg_mode", 1)]);
    assert_eq!(hwreg.parts[2].ranges, [(11, 5)]);
}

#[test]
fn constant_fields_and_the_opcode_field() {
    let table = table_of(AMD_FORM);
    let global = table.encodings.iter().find(|e| e.name == "ENC_FLAT_GLOBAL").unwrap();
    let fixed: Vec<_> = global.fields.iter().filter_map(|f| Some((f.name, f.fixed?))).collect();
    // The opcode field is not a constant field although the encoding has only one opcode.
    assert_eq!(fixed, [("ENCODING", 0b110111), ("SEG", 2)]);
    assert_eq!(global.fields[global.op_field.unwrap() as usize].name, "OP");
}

#[test]
fn a_field_may_be_split() {
    let table = table_of(AMD_FORM);
    let global = table.encodings.iter().find(|e| e.name == "ENC_FLAT_GLOBAL").unwrap();
    let offset = global.fields.iter().find(|f| f.name == "OFFSET").unwrap();
    assert_eq!(offset.ranges, [(0, 12), (14, 1)]);
    assert_eq!(offset.insert(0, 0x1abc), 1 << 14 | 0xabc);
    assert_eq!(offset.extract(1 << 14 | 1 << 13 | 0xabc), 0x1abc);
    // `Order` decides, not the position in the file.
    let a = "<Range Order=\"0\"><BitCount>12</BitCount><BitOffset>0</BitOffset></Range>";
    let b = "<Range Order=\"1\"><BitCount>1</BitCount><BitOffset>14</BitOffset></Range>";
    same(&[(&format!("{a}{b}"), &format!("{b}{a}"))]);
}

#[test]
fn literal_variants_become_one_entry_with_the_sources_in_place() {
    let table = table_of(AMD_FORM);
    let subrev = table.instruction("V_SUBREV_F32").unwrap();
    assert_eq!(subrev.aliases(), ["V_RSUB_F32"]);
    let forms: Vec<String> = table.entries_of(subrev).iter().map(|e| form(table, e)).collect();
    assert_eq!(
        forms,
        [
            "ENC_VOP2 default VDST:D0 SRC0:S0 VSRC1:S1",
            "VOP2_INST_LITERAL has_lit VDST:D0 SRC0:S0 VSRC1:S1",
            "VOP2_VOP_DPP16 has_dpp16 VDST:D0 VSRC0:S0 VSRC1:S1",
            "ENC_VOP3 default VDST:D0 SRC0:S0 SRC1:S1",
            "VOP3_INST_LITERAL has_lit VDST:D0 SRC0:S0 SRC1:S1",
        ]
    );
    let add3 = table.instruction("V_ADD3_U32").unwrap();
    assert_eq!(
        form(table, &table.entries_of(add3)[1]),
        "VOP3_INST_LITERAL has_lit VDST:D0 SRC0:S0 SRC1:S1 SRC2:S2"
    );
}

#[test]
fn the_merged_literal_condition_is_any_of_the_variants() {
    let table = table_of(AMD_FORM);
    let vop3 = table.encodings.iter().find(|e| e.name == "VOP3_INST_LITERAL").unwrap();
    let [condition] = vop3.conditions else { panic!("{:?}", vop3.conditions) };
    assert_eq!(condition.name, "has_lit");
    let Cond::Op(CondOp::Or, [_, Cond::Op(CondOp::And, both)]) = condition.expr else {
        panic!("{condition:?}")
    };
    let src0 = vop3.fields.iter().position(|f| f.name == "SRC0").unwrap() as u8;
    assert_eq!(both[0], Cond::Op(CondOp::Eq, &[Cond::Field(2), Cond::Lit(255)]));
    assert_eq!(src0, 2);
}

#[test]
fn a_literal_that_is_an_operand_stays_one() {
    let table = table_of(AMD_FORM);
    let fmaak = table.instruction("V_FMAAK_F32").unwrap();
    let [entry] = table.entries_of(fmaak) else { panic!() };
    assert_eq!(form(table, entry), "VOP2_INST_LITERAL default VDST:D0 SRC0:S0 VSRC1:S1 LITERAL:Imm");
}

#[test]
fn roles_by_field() {
    let table = table_of(AMD_FORM);
    let first = |name| form(table, &table.entries_of(table.instruction(name).unwrap())[0]);
    assert_eq!(first("S_LOAD_B64"), "ENC_SMEM default SDATA:D0 SBASE:SAddr SOFFSET:SOffset");
    assert_eq!(first("GLOBAL_LOAD_B32"), "ENC_FLAT_GLOBAL default VDST:D0 ADDR:VAddr SADDR:SAddr");
    assert_eq!(first("S_NOT_B32"), "ENC_SOP1 default SDST:D0 SSRC0:S0 -:State");
}

/// `ENCODING condition FIELD:Role …`
fn form(table: &'static ArchTable, entry: &isa_spec::tables::Entry) -> String {
    let encoding = &table.encodings[entry.enc as usize];
    let mut out = format!("{} {}", encoding.name, encoding.conditions[entry.cond as usize].name);
    for operand in table.signatures[entry.sig as usize] {
        let field = operand.field.map_or("-", |at| encoding.fields[at as usize].name);
        let role: Role = operand.role;
        out += &format!(" {field}:{role:?}");
    }
    out
}

// ---- schema 1.2.0

#[test]
fn conditions_of_schema_1_2() {
    same(&[("has_lit_0_has_lit_1", "has_lit_0&amp;has_lit_1")]);
    let absent = "!has_lit64_0&amp;!has_lit64_1&amp;!has_lit_0&amp;!has_lit_1<";
    let name = format!("ConditionName>{absent}");
    let form = format!("EncodingCondition>{absent}");
    same(&[("ConditionName>default<", &name), ("EncodingCondition>default<", &form)]);
    // The attribute and element that the schema adds.
    same(&[("<EncodingCondition>has_lit_0<", "<EncodingCondition Id=\"11\">has_lit_0<")]);
    same(&[("</ConditionName>", "</ConditionName>\n      <ConditionId>3</ConditionId>")]);
}

#[test]
fn a_field_outside_of_a_list() {
    let at = AMD_FORM.find("<op type=\"!=\">").unwrap();
    let end = at + AMD_FORM[at..].find("</CondtionExpression>").unwrap();
    let comparison = &AMD_FORM[at..end];
    let field = &comparison[comparison.find("<op type=\".fieldderef\">").unwrap()..];
    let field = &field[..field.find("<lit").unwrap()];
    let list = |values: &[u32]| {
        let lits: String = values.iter().map(|v| format!("<lit val=\"{v}\"><ty/></lit>")).collect();
        format!("<op type=\".notwithin\">{field}<op type=\".cons_array\">{lits}<ty/></op><ty/></op>")
    };
    same(&[(comparison, &list(&[255]))]);
    let expr = |text: &str| {
        let table = table_of(&AMD_FORM.replace(comparison, text));
        format!("{:?}", table.encodings[0].conditions[0].expr)
    };
    let both = format!("<op type=\"&amp;&amp;\">{comparison}{}</op>", comparison.replace("255", "254"));
    assert_eq!(expr(&list(&[255, 254])), expr(&both));
    for (wrong, message) in [
        (list(&[]), "an empty `.cons_array`"),
        (list(&[1]).replace(".cons_array", "=="), "`.notwithin` needs a `.cons_array`"),
    ] {
        let Err((_, errors)) = load("amd_form.xml", &AMD_FORM.replace(comparison, &wrong)) else { panic!() };
        assert!(errors[0].message.starts_with(message), "{errors:?}");
    }
}

#[test]
fn literals_of_64_bits_become_one_entry_too() {
    let text = AMD_FORM
        .replace("has_lit_0_has_lit_1", "has_lit64_0&amp;has_lit64_1")
        .replace("has_lit_", "has_lit64_")
        .replace("_INST_LITERAL<", "_INST_LITERAL64<")
        .replace("FieldName>LITERAL<", "FieldName>LITERAL64<");
    let table = table_of(&text);
    let add3 = table.instruction("V_ADD3_U32").unwrap();
    assert_eq!(
        form(table, &table.entries_of(add3)[1]),
        "VOP3_INST_LITERAL64 has_lit64 VDST:D0 SRC0:S0 SRC1:S1 SRC2:S2"
    );
    let vop3 = table.encodings.iter().find(|e| e.name == "VOP3_INST_LITERAL64").unwrap();
    assert_eq!(vop3.conditions.iter().map(|c| c.name).collect::<Vec<_>>(), ["has_lit64"]);
}
