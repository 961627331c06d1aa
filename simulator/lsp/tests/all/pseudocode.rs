//! Pseudocode.

use crate::client::{Client, lines, renamed};
use serde_json::json;

const TEXT: &str = "function twice(x) {\n  return x + x;\n}\n\ninstruction V_ADD_F32 {\n  D0.f32 = twice(S0.f32) + fma(S0.f32, S1.f32, S1.f32);\n}\n";

#[test]
fn diagnostics_point_at_the_error() {
    let mut client = Client::new();
    client.open("a.pcode", "pcode", TEXT);
    assert_eq!(client.diagnosed("a.pcode"), []);
    client.edit("a.pcode", [5, 11, 5, 16], "twise");
    let found = client.diagnosed("a.pcode");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0, found[0].1), (5, 11));
    assert!(found[0].2.contains("twise"), "{found:?}");
}

#[test]
fn functions_have_definitions_references_and_names() {
    let mut client = Client::new();
    client.open("a.pcode", "pcode", TEXT);
    let found = client.at("textDocument/definition", "a.pcode", 5, 12, json!({})).expect("a definition");
    assert_eq!(lines(&found), [0]);
    let edit =
        client.at("textDocument/rename", "a.pcode", 0, 10, json!({"newName": "double_of"})).expect("edits");
    assert_eq!(renamed(TEXT, "a.pcode", &edit), TEXT.replace("twice", "double_of"));
    assert!(client.at("textDocument/rename", "a.pcode", 0, 10, json!({"newName": "fma"})).is_err());
    assert!(client.at("textDocument/rename", "a.pcode", 4, 14, json!({"newName": "V_X"})).is_err());
}

#[test]
fn hover_and_completion_know_builtins_and_instructions() {
    let mut client = Client::new();
    client.open("a.pcode", "pcode", TEXT);
    let mut hover = |line, column| {
        let found = client.at("textDocument/hover", "a.pcode", line, column, json!({})).expect("a hover");
        found["contents"]["value"].as_str().unwrap_or_default().to_string()
    };
    assert!(hover(5, 28).starts_with("**fma**: "), "{}", hover(5, 28));
    assert!(hover(5, 12).contains("function twice(x)"));
    assert!(hover(4, 14).contains("ENC_VOP2"));
    let list = client.at("textDocument/completion", "a.pcode", 5, 2, json!({})).expect("items");
    let labels: Vec<&str> =
        list.as_array().into_iter().flatten().filter_map(|i| i["label"].as_str()).collect();
    assert!(labels.contains(&"twice") && labels.contains(&"fma") && labels.contains(&"instruction"));
    let tokens = client.of("textDocument/semanticTokens/full", "a.pcode");
    assert_eq!(tokens["data"][3], 3);
}
