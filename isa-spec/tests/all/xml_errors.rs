//! Error messages for invalid documents: each names the location, the element and the instruction. Each case
//! edits one place of the fixture.

use isa_spec::diag::render;
use isa_spec::xml::load;
use proptest::prelude::*;

const AMD_FORM: &str = include_str!("../fixtures/amd_form.xml");

/// Returns all messages, rendered, for the fixture with the first `from` replaced.
fn errors(from: &str, to: &str) -> Vec<String> {
    assert!(AMD_FORM.contains(from), "the fixture has no `{from}`");
    let text = AMD_FORM.replacen(from, to, 1);
    match load("isa.xml", &text) {
        Ok(_) => panic!("accepted: `{from}` -> `{to}`"),
        Err((sources, errors)) => {
            for e in &errors {
                if e.span.start as usize == text.len() {
                    continue; // At the end of the file there is no column to point at.
                }
                let (line, column) = sources.line_col(e.span.file, e.span.start);
                assert!(render(&sources, e).contains(&format!("isa.xml:{line}:{column}")), "{e:?}");
            }
            errors.iter().map(|e| render(&sources, e)).collect()
        }
    }
}

/// Checks for exactly one message, which contains every one of `parts`.
fn fails(from: &str, to: &str, parts: &[&str]) {
    let all = errors(from, to);
    assert_eq!(all.len(), 1, "{}", all.join("\n"));
    for part in parts {
        assert!(all[0].contains(part), "no `{part}` in\n{}", all[0]);
    }
}

#[test]
fn missing_elements() {
    fails(
        "<Opcode Radix=\"10\">0</Opcode>",
        "",
        &["`InstructionEncoding` lacks `Opcode` (instruction S_MOV_B32)"],
    );
    fails(
        "<DataFormatName>FMT_NUM_B32</DataFormatName>",
        "",
        &["`Operand` lacks `DataFormatName` (instruction S_MOV_B32)"],
    );
    fails("<DataType>bits</DataType>", "", &["`DataFormat` lacks `DataType`"]);
    fails("<ConditionName>default</ConditionName>", "", &["lacks `ConditionName` (encoding ENC_SOP1)"]);
    fails("<Value>106</Value>", "", &["lacks `Value`"]);
    fails(
        "<InstructionName>S_MOV_B32</InstructionName>",
        "<InstructionName/>",
        &["`InstructionName` is empty"],
    );
    fails("<Spec>", "<Spec><ISA/></Spec><!--", &["not well-formed XML"]);
}

#[test]
fn a_missing_section_causes_no_follow_up_errors() {
    let start = AMD_FORM.find("  <DataFormats>").unwrap();
    let end = AMD_FORM.find("  <OperandTypes>").unwrap();
    fails(&AMD_FORM[start..end], "", &["`ISA` lacks `DataFormats`"]);
}

#[test]
fn wrong_numbers() {
    fails("<Opcode Radix=\"10\">0<", "<Opcode Radix=\"10\">zero<", &["`zero` in `Opcode`", "S_MOV_B32"]);
    fails("<Opcode Radix=\"10\">0<", "<Opcode Radix=\"10\">-1<", &["`-1` in `Opcode`"]);
    fails("<Opcode Radix=\"10\">0<", "<Opcode Radix=\"10\">70000<", &["70000 in `Opcode` is above 65535"]);
    fails(
        "<Opcode Radix=\"10\">0<",
        "<Opcode Radix=\"10\">256<",
        &["opcode 256 does not fit the opcode field of ENC_SOP1"],
    );
    fails("<Opcode Radix=\"10\">0<", "<Opcode Radix=\"3\">0<", &["Radix=\"3\" is not 2, 8, 10 or 16"]);
    fails(
        "Radix=\"2\">10111110100000000000000000000000<",
        "Radix=\"2\">2011<",
        &["`2011` in `EncodingIdentifier`"],
    );
    fails(
        "Radix=\"2\">10111110100000000000000000000000<",
        "Radix=\"16\">1be800000<",
        &["wider than the encoding"],
    );
    fails("Radix=\"2\">10111110100000000000000000000000<", "Radix=\"2\">1<", &["bits outside the mask"]);
    fails("Encoding Order=\"-1\"", "Encoding Order=\"first\"", &["Order=\"first\" is not a number"]);
    fails("<OperandSize>32<", "<OperandSize>3.2e1<", &["`3.2e1` in `OperandSize`"]);
    fails("<IsBranch>FALSE<", "<IsBranch>PERHAPS<", &["`PERHAPS` in `IsBranch` is neither TRUE nor FALSE"]);
    fails("Input=\"false\"", "Input=\"no\"", &["`no` in `Operand` is neither TRUE nor FALSE"]);
}

#[test]
fn wrong_layouts() {
    let op = "<BitCount>8</BitCount><BitOffset>8</BitOffset>";
    fails(
        op,
        "<BitCount>8</BitCount><BitOffset>25</BitOffset>",
        &["field OP reaches past the encoding's 32 bits"],
    );
    fails(op, "<BitCount>0</BitCount><BitOffset>8</BitOffset>", &["an empty bit range"]);
    fails(op, "<BitCount>99999999999999999999999999</BitCount><BitOffset>8</BitOffset>", &["in `BitCount`"]);
    fails("RangeCount=\"1\"", "RangeCount=\"2\"", &["RangeCount=\"2\", but 1 ranges"]);
    let twice =
        errors("<FieldName>SDST</FieldName>\n       <Desc", "<FieldName>OP</FieldName>\n       <Desc");
    assert!(twice[0].contains("duplicate field OP"), "{}", twice[0]);
}

#[test]
fn dangling_references() {
    let name = "<EncodingName>ENC_SOP1</EncodingName>\n       <EncodingCondition>";
    let wrong = name.replace("SOP1", "SOP7");
    fails(name, &wrong, &["unknown encoding `ENC_SOP7` (instruction S_MOV_B32)", "did you mean `ENC_SOP1`?"]);
    fails(
        "<EncodingCondition>default<",
        "<EncodingCondition>has_literal<",
        &["unknown condition `has_literal`"],
    );
    fails(
        "<FieldName>SDST</FieldName>\n         ",
        "<FieldName>SDTS</FieldName>",
        &["unknown field `SDTS` (instruction S_MOV_B32)", "did you mean `SDST`?"],
    );
    fails(
        "<DataFormatName>FMT_NUM_B64</DataFormatName>\n         ",
        "<DataFormatName>FMT_B64</DataFormatName>",
        &["unknown data format `FMT_B64` (instruction S_LOAD_B64)"],
    );
    fails(
        "<OperandType>OPR_SSRC<",
        "<OperandType>OPR_SSSRC<",
        &["unknown operand type `OPR_SSSRC` (instruction S_MOV_B32)", "did you mean `OPR_SSRC`?"],
    );
}

#[test]
fn duplicates_name_both_places() {
    fails(
        "<InstructionName>S_NOT_B32<",
        "<InstructionName>S_MOV_B32<",
        &["duplicate instruction S_MOV_B32", "first here"],
    );
    fails(
        "<Opcode Radix=\"10\">1<",
        "<Opcode Radix=\"10\">0<",
        &["opcode 0 of ENC_SOP1 under default is used by S_MOV_B32 and S_NOT_B32", "S_MOV_B32 here"],
    );
    // Within one instruction, too.
    fails(
        "<EncodingCondition>has_lit_1<",
        "<EncodingCondition>has_lit_0<",
        &["opcode 261 of VOP3_INST_LITERAL under has_lit_0"],
    );
    fails("<DataFormatName>FMT_IMG<", "<DataFormatName>FMT_NUM_B64<", &["duplicate data format FMT_NUM_B64"]);
    fails("<OperandTypeName>OPR_HWREG<", "<OperandTypeName>OPR_SRC<", &["duplicate operand type OPR_SRC"]);
    let twice = errors(
        "<EncodingName>VOP2_VOP_DPP16</EncodingName>\n    <B",
        "<EncodingName>ENC_VOP2</EncodingName>\n    <B",
    );
    assert!(twice[0].contains("duplicate encoding ENC_VOP2"), "{}", twice[0]);
}

#[test]
fn conditions() {
    fails(
        "<id val=\"SSRC0\"/>",
        "<id val=\"SRC0\"/>",
        &["the condition names `SRC0`, which is not a field (encoding ENC_SOP1)", "did you mean `SSRC0`?"],
    );
    fails("<op type=\"!=\">", "<op type=\"=!\">", &["unknown operator `=!` (encoding ENC_SOP1)"]);
    fails("<lit val=\"255\"/>", "", &["operator `!=` has 1 arguments"]);
    fails("<lit val=\"255\"/>", "<lit val=\"many\"/>", &["`many` is not a number"]);
    fails("<lit val=\"255\"/>", "<lot/>", &["unexpected element `lot` in a condition"]);
    let deep = format!("{}<lit val=\"1\"/>{}", "<op type=\"!\">".repeat(100), "</op>".repeat(100));
    fails("<lit val=\"1\"/>", &deep, &["nested deeper than 64"]);
}

#[test]
fn several_faults_give_several_messages() {
    let text = AMD_FORM
        .replace("<FieldName>SDST</FieldName>\n         ", "<FieldName>SDTS</FieldName>\n         ")
        .replace("<OperandType>OPR_SSRC<", "<OperandType>OPR_SSSRC<");
    let Err((_, errors)) = load("isa.xml", &text) else { panic!() };
    assert_eq!(errors.len(), 4);
}

#[test]
fn hostile_documents() {
    let none = |text: &str| assert!(load("isa.xml", text).is_err(), "{}", &text[..text.len().min(80)]);
    none("");
    none("\u{feff}");
    none("é");
    none("<Spec>é");
    none("<Spec/>");
    none("<spec></spec>");
    none(&"<a>".repeat(100_000));
    none(&format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000)));
    none("<!DOCTYPE a [<!ENTITY b \"c\"><!ENTITY d \"&b;&b;\">]><Spec>&d;</Spec>");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Deletions and replacements anywhere: the result is a document or messages that can be rendered, never
    /// a panic.
    #[test]
    fn mutations_never_panic(edits in prop::collection::vec((0..AMD_FORM.len(), 0..40usize, any::<prop::sample::Index>(), 0..60usize), 1..6)) {
        let mut bytes = AMD_FORM.as_bytes().to_vec();
        for (at, cut, from, len) in edits {
            let at = at.min(bytes.len());
            let end = (at + cut).min(bytes.len());
            let start = from.index(AMD_FORM.len());
            let piece = &AMD_FORM.as_bytes()[start..(start + len).min(AMD_FORM.len())];
            bytes.splice(at..end, piece.iter().copied());
        }
        check_no_panic(&String::from_utf8_lossy(&bytes));
    }

    /// Changed numbers and names inside well-formed XML reach the checks after the parser.
    #[test]
    fn changed_texts_never_panic(picks in prop::collection::vec((any::<prop::sample::Index>(), "[-0-9A-Za-z_]{0,24}"), 1..4)) {
        let places: Vec<(usize, usize)> = AMD_FORM
            .match_indices('>')
            .filter_map(|(at, _)| Some((at + 1, at + 1 + AMD_FORM[at + 1..].find('<')?)))
            .filter(|&(a, b)| !AMD_FORM[a..b].trim().is_empty())
            .collect();
        let mut chosen: Vec<_> = picks.iter().map(|(i, text)| (places[i.index(places.len())], text)).collect();
        chosen.sort();
        chosen.dedup_by_key(|c| c.0);
        let mut text = AMD_FORM.to_string();
        for ((a, b), new) in chosen.into_iter().rev() {
            text.replace_range(a..b, new);
        }
        check_no_panic(&text);
    }
}

fn check_no_panic(text: &str) {
    match load("isa.xml", text) {
        Ok(mut spec) => {
            isa_spec::xml::normalize(&mut spec);
            let table = isa_spec::xml::to_tables(&spec, "test");
            for encoding in table.encodings {
                for field in encoding.fields {
                    let _ = field.extract(field.insert(0, u32::MAX));
                }
            }
        }
        Err((sources, errors)) => {
            for e in &errors {
                let _ = render(&sources, e);
            }
        }
    }
}
