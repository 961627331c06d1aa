//! Text kernels and assembly.

use crate::client::{Client, lines, renamed, uri};
use lsp_server::Message;
use serde_json::{Value, json};

const ADD: &str = include_str!("../../../../examples/vector_add.rdna");
const SCALE: &str = include_str!("../../../../examples/scale.s");
const RACE: &str = include_str!("../../../../examples/broken/missing_wait.rdna");

/// Line and column of the `n`th occurrence of a text.
fn place(text: &str, wanted: &str, n: usize) -> (u32, u32) {
    let at = text.match_indices(wanted).nth(n).expect("the text").0;
    let line = text[..at].matches('\n').count();
    let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
    (line as u32, (at - start) as u32)
}

#[test]
fn diagnostics_while_typing() {
    let mut client = Client::new();
    client.open("a.rdna", "rdna", ADD);
    assert_eq!(client.diagnosed("a.rdna"), []);
    let (line, column) = place(ADD, "v_add_f32", 0);
    client.edit("a.rdna", [line, column, line, column + 9], "v_ad_f32");
    let found = client.diagnosed("a.rdna");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0, found[0].1), (line as u64, column as u64));
    assert!(found[0].2.contains("did you mean `v_add_f32`"), "{found:?}");
    client.edit("a.rdna", [line, column, line, column + 8], "v_add_f32");
    assert_eq!(client.diagnosed("a.rdna"), []);
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri("a.rdna")}}));
    let gone = client.at("textDocument/hover", "a.rdna", 0, 0, json!({}));
    assert_eq!(gone, Err(format!("{} is not open", uri("a.rdna"))));
}

/// Assembly for other machines has the same extension.
#[test]
fn assembly_of_other_machines_is_left_alone() {
    let mut client = Client::new();
    client.open("x.s", "asm", "main:\n  movq %rax, %rbx\n  ret\n");
    assert_eq!(client.diagnosed("x.s"), []);
    client.open("g.s", "asm", &SCALE.replace("s_endpgm", "s_endpgn"));
    let found = client.diagnosed("g.s");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].2.contains("s_endpgm"), "{found:?}");
    client.open("p.as", "plaintext", "addi x1, x2\n");
    assert_eq!(client.diagnosed("p.as").len(), 1);
}

#[test]
fn hover_shows_instructions_registers_labels_and_constants() {
    let mut client = Client::new();
    client.open("a.rdna", "rdna", ADD);
    let mut hover = |wanted: &str, n: usize| {
        let (line, column) = place(ADD, wanted, n);
        let found = client.at("textDocument/hover", "a.rdna", line, column, json!({})).expect("a hover");
        found["contents"]["value"].as_str().unwrap_or_default().to_string()
    };
    let add = hover("v_add_f32", 0);
    assert!(add.contains("D0.f32 = S0.f32 + S1.f32"), "{add}");
    assert!(add.contains("ENC_VOP2, opcode 3, 32 bits"), "{add}");
    assert!(add.contains("(VALU) reads v[2:3] and writes v2"), "{add}");
    let v2 = hover("v2, v2", 0);
    assert_eq!(v2, "**v2**\n\n- v2: written in line 26; read in line 27");
    let s5 = hover("s5, v0", 0);
    assert_eq!(s5, "**s5**\n\n- s5: written in line 16; read in line 17");
    let pointer = hover("s[3:4], 0", 0);
    assert!(
        pointer.contains("- s3: written at the launch or in other code; read in line 13, 14, 15"),
        "{pointer}"
    );
    assert!(hover("done ", 0).contains("s_endpgm"));
    assert_eq!(hover("N, v0", 0), "**N**, line 5 = 100");
}

#[test]
fn completion_offers_what_fits() {
    let mut client = Client::new();
    let text = ADD.replace("s_waitcnt vmcnt(0)", "s_waitcnt ");
    client.open("a.rdna", "rdna", &text);
    let labels = |list: Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|i| Some(i["label"].as_str()?.to_string())).collect()
    };
    let (line, column) = place(&text, "v_add_f32", 0);
    let list = client.at("textDocument/completion", "a.rdna", line, column + 3, json!({})).expect("items");
    let item =
        list.as_array().into_iter().flatten().find(|i| i["label"] == "v_fma_f32").cloned().expect("an item");
    let item = client.request("completionItem/resolve", item).expect("an item");
    assert!(
        item["documentation"]["value"].as_str().is_some_and(|t| t.contains("fma(S0.f32, S1.f32, S2.f32)"))
    );
    let (line, column) = place(&text, "s_waitcnt \n", 0);
    let found =
        labels(client.at("textDocument/completion", "a.rdna", line, column + 10, json!({})).expect("items"));
    for wanted in ["vmcnt(0)", "done", "N", "v0", "s[6:7]", "offset:"] {
        assert!(found.iter().any(|l| l == wanted), "{wanted}: {found:?}");
    }
    let header = labels(client.at("textDocument/completion", "a.rdna", 8, 0, json!({})).expect("items"));
    assert!(header.contains(&"local = ".to_string()) && !header.contains(&"v_add_f32".to_string()));
    let comment = client.at("textDocument/completion", "a.rdna", 0, 5, json!({})).expect("items");
    assert_eq!(labels(comment), [""; 0]);
}

#[test]
fn labels_and_constants_have_definitions_and_references() {
    let mut client = Client::new();
    client.open("a.rdna", "rdna", ADD);
    let (line, column) = place(ADD, "done ", 0);
    let found =
        client.at("textDocument/definition", "a.rdna", line, column, json!({})).expect("a definition");
    assert_eq!(lines(&found), [27]);
    let all = json!({"context": {"includeDeclaration": true}});
    let found = client.at("textDocument/references", "a.rdna", line, column, all).expect("references");
    assert_eq!(lines(&found), [19, 27]);
    let rename = json!({"newName": "exit"});
    let edit = client.at("textDocument/rename", "a.rdna", line, column, rename).expect("edits");
    assert_eq!(
        renamed(ADD, "a.rdna", &edit),
        ADD.replace("execz done", "execz exit").replace("done:", "exit:")
    );
    let mut refused =
        |name: &str| client.at("textDocument/rename", "a.rdna", line, column, json!({"newName": name}));
    assert_eq!(refused("N"), Err("`N` is already defined".to_string()));
    assert!(refused("v1").is_err() && refused("1x").is_err() && refused("").is_err());
}

/// s5 has two live ranges: the first element of the workgroup, then the saved EXEC, which nothing reads.
#[test]
fn registers_are_renamed_in_their_live_range() {
    let mut client = Client::new();
    client.open("a.rdna", "rdna", ADD);
    let (line, column) = place(ADD, "s5, s0", 0);
    let all = json!({"context": {"includeDeclaration": true}});
    let found = client.at("textDocument/references", "a.rdna", line, column, all).expect("references");
    assert_eq!(lines(&found), [15, 16]);
    let edit =
        client.at("textDocument/rename", "a.rdna", line, column, json!({"newName": "s20"})).expect("edits");
    let expected = ADD.replace("s5, s0", "s20, s0").replace("s5, v0", "s20, v0");
    assert_eq!(renamed(ADD, "a.rdna", &edit), expected);
    // The pair moves as a whole.
    let (line, column) = place(ADD, "s[8:9]", 1);
    let edit = client
        .at("textDocument/rename", "a.rdna", line, column, json!({"newName": "s[14:15]"}))
        .expect("edits");
    assert_eq!(renamed(ADD, "a.rdna", &edit), ADD.replace("s[8:9]", "s[14:15]"));

    let mut refused = |wanted: &str, n: usize, new: &str| {
        let (line, column) = place(ADD, wanted, n);
        let result = client.at("textDocument/rename", "a.rdna", line, column, json!({"newName": new}));
        result.expect_err("an error")
    };
    // s[6:7] hold another pointer.
    let taken = refused("s[8:9]", 1, "s[6:7]");
    assert!(taken.contains("the new registers are in use"), "{taken}");
    let missing = refused("s[8:9]", 1, "s[200:201]");
    assert!(missing.contains("would have an error"), "{missing}");
    assert!(refused("s[8:9]", 1, "v[14:15]").contains("2 SGPRs"));
    assert!(refused("s[3:4]", 0, "s[14:15]").contains("from the launch"));
    assert!(refused("vcc_lo", 0, "s9").contains("no number"));
}

/// Lanes that are inactive at a write keep the older value, which belongs to the same range once they are active
/// again.
#[test]
fn a_write_to_some_lanes_does_not_end_the_older_value() {
    let text = "---\nout_x: u32[32]\nlocal = 32\n---\n\
        v_mov_b32 v1, 1\n\
        s_mov_b32 s8, exec_lo\n\
        v_cmpx_gt_u32 16, v0\n\
        v_mov_b32 v1, 2\n\
        s_mov_b32 exec_lo, s8\n\
        v_mov_b32 v2, v1\n\
        v_mov_b32 v1, 3\n\
        v_mov_b32 v3, v1\n\
        s_endpgm\n";
    let mut client = Client::new();
    client.open("a.rdna", "rdna", text);
    assert_eq!(client.diagnosed("a.rdna"), []);
    let all = json!({"context": {"includeDeclaration": true}});
    let first = client.at("textDocument/references", "a.rdna", 4, 10, all.clone()).expect("references");
    assert_eq!(lines(&first), [4, 7, 9]);
    let second = client.at("textDocument/references", "a.rdna", 10, 10, all).expect("references");
    assert_eq!(lines(&second), [10, 11]);
}

/// A loop: the value of an iteration is read by the next one.
#[test]
fn live_ranges_follow_loops() {
    let text = "---\nlocal = 32\n---\n\
        s_mov_b32 s4, 0\n\
        again:\n\
        s_add_u32 s4, s4, 1\n\
        s_cmp_lt_u32 s4, 9\n\
        s_cbranch_scc1 again\n\
        s_mov_b32 s4, 7\n\
        s_mov_b32 s5, s4\n\
        s_endpgm\n";
    let mut client = Client::new();
    client.open("a.rdna", "rdna", text);
    let edit = client.at("textDocument/rename", "a.rdna", 5, 10, json!({"newName": "s9"})).expect("edits");
    let expected = "s_mov_b32 s9, 0\nagain:\ns_add_u32 s9, s9, 1\ns_cmp_lt_u32 s9, 9\ns_cbranch_scc1 again\ns_mov_b32 s4, 7\n";
    let found = renamed(text, "a.rdna", &edit);
    assert!(found.contains(expected), "{found}");
    let hints = client.of("textDocument/inlayHint", "a.rdna");
    let labels: Vec<&str> =
        hints.as_array().into_iter().flatten().filter_map(|h| h["label"].as_str()).collect();
    assert_eq!(labels, ["live: nothing", "live: s4"]);
}

#[test]
fn runs_and_checks_show_their_results() {
    let mut client = Client::new();
    client.open("a.rdna", "rdna", ADD);
    let lenses = client.of("textDocument/codeLens", "a.rdna");
    let commands: Vec<&str> =
        lenses.as_array().into_iter().flatten().filter_map(|l| l["command"]["command"].as_str()).collect();
    assert_eq!(commands, ["wavesim.run", "wavesim.check", "wavesim.debug"]);
    assert_eq!(lenses[0]["range"]["start"]["line"], 3);
    let command = |lens: &Value| json!({"command": lens["command"]["command"], "arguments": lens["command"]["arguments"]});
    let ran = client.request("workspace/executeCommand", command(&lenses[0])).expect("a run");
    assert_eq!(ran["outputs"][0]["name"], "out_c");
    assert_eq!(ran["fault"], Value::Null);
    let shown = client
        .others
        .iter()
        .any(|m| matches!(m, Message::Notification(n) if n.method == "window/showMessage"));
    let refreshed = client
        .others
        .iter()
        .any(|m| matches!(m, Message::Request(r) if r.method == "workspace/inlayHint/refresh"));
    assert!(shown && refreshed, "{:?}", client.others);
    let hints = client.of("textDocument/inlayHint", "a.rdna");
    let labels: Vec<(u64, &str)> = hints
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|h| Some((h["position"]["line"].as_u64()?, h["label"].as_str()?)))
        .collect();
    assert!(labels.contains(&(25, "v2 = [0.5, 1.5, 2.5, 3.5, …]")), "{labels:?}");
    assert!(labels.contains(&(15, "s5 = 0x0")), "{labels:?}");
    // An edit makes them untrue.
    client.edit("a.rdna", [0, 0, 0, 0], "; x\n");
    let hints = client.of("textDocument/inlayHint", "a.rdna");
    assert!(
        hints
            .as_array()
            .into_iter()
            .flatten()
            .all(|h| h["label"].as_str().is_some_and(|l| l.starts_with("live:")))
    );

    client.open("race.rdna", "rdna", RACE);
    let launch = json!({"uri": uri("race.rdna")});
    let checked = client
        .request("workspace/executeCommand", json!({"command": "wavesim.check", "arguments": [launch]}));
    assert_eq!(checked.expect("a check")["findings"][0]["check"], "waits");
    let diagnostics = &client.diagnostics[&uri("race.rdna")];
    assert_eq!(diagnostics[0]["source"], "wavesim check");
    assert_eq!(diagnostics[0]["severity"], 1);
    let unknown = client.request("workspace/executeCommand", json!({"command": "x", "arguments": []}));
    assert!(unknown.is_err_and(|e| e.contains("wavesim.run")));
}

#[test]
fn assembly_has_lenses_at_kernels_and_runs_with_arguments() {
    let mut client = Client::new();
    client.open("scale.s", "asm", SCALE);
    assert_eq!(client.diagnosed("scale.s"), []);
    let lenses = client.of("textDocument/codeLens", "scale.s");
    assert_eq!(lenses[0]["command"]["arguments"][0]["kernel"], "scale");
    let launch = json!({
        "uri": uri("scale.s"), "kernel": "scale", "grid": [1, 1, 1], "block": [32, 1, 1],
        "args": ["x:f32[32]=arange(32)", "out_y:f32[32]", "2.0", "i32=32"],
    });
    let ran =
        client.request("workspace/executeCommand", json!({"command": "wavesim.run", "arguments": [launch]}));
    let ran = ran.expect("a run");
    assert_eq!(ran["fault"], Value::Null, "{ran}");
    assert_eq!(ran["outputs"][0]["name"], "out_y");
    let outline = client.of("textDocument/documentSymbol", "scale.s");
    let names: Vec<&str> =
        outline.as_array().into_iter().flatten().filter_map(|s| s["name"].as_str()).collect();
    assert_eq!(names, ["kernel", "done"]);
}

#[test]
fn semantic_tokens_cover_the_text() {
    let mut client = Client::new();
    client.open("a.rdna", "rdna", "---\nlocal = 32\n---\n  v_mov_b32 v1, 0x1 ; é\nx:\n");
    let found = client.of("textDocument/semanticTokens/full", "a.rdna");
    let data: Vec<u64> = found["data"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let tokens: Vec<&[u64]> = data.chunks(5).collect();
    // Lines and columns are differences: `v_mov_b32` is a function (4), v1 a variable (6), 0x1 a number (2).
    assert_eq!(tokens[4], [1, 2, 9, 4, 0]);
    assert_eq!(tokens[5], [0, 10, 2, 6, 0]);
    assert_eq!(tokens[6], [0, 4, 3, 2, 0]);
    assert_eq!(tokens[7], [0, 4, 3, 0, 0]);
    assert_eq!(tokens[8], [1, 0, 1, 9, 0]);
}

/// Settings apply to files that name no architecture.
#[test]
fn settings_choose_the_architecture() {
    let mut client = Client::with_settings(json!({"arch": "gfx1201", "liveRegisters": false}));
    let text = "---\nlocal = 32\n---\ns_wait_loadcnt 0\ns_endpgm\n";
    client.open("a.rdna", "rdna", text);
    assert_eq!(client.diagnosed("a.rdna"), []);
    assert_eq!(client.of("textDocument/inlayHint", "a.rdna"), json!([]));
    client.notify("workspace/didChangeConfiguration", json!({"settings": {"wavesim": {"arch": "rdna3"}}}));
    assert_eq!(client.diagnosed("a.rdna").len(), 1);
}
