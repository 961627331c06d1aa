//! The JSON schema of launch descriptions (`docs/launch.schema.json`), its description, and the files of the tree.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wavesim_tests::root;
use wavesim_tests::schema::check;

fn schema() -> Value {
    serde_json::from_str(&std::fs::read_to_string(root().join("docs/launch.schema.json")).unwrap()).unwrap()
}

fn valid(value: &Value) -> Result<(), String> {
    let schema = schema();
    check(&schema, &schema, value)
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "node_modules", ".git", "dist"].contains(&&*name) {
            find(&path, found);
        } else if name.ends_with(".json") && !name.ends_with(".schema.json") {
            found.push(path);
        }
    }
}

/// The example of the documentation.
fn example() -> Value {
    let text = std::fs::read_to_string(root().join("docs/launch-format.md")).unwrap();
    serde_json::from_str(text.split("```json\n").nth(1).unwrap().split("```").next().unwrap()).unwrap()
}

#[test]
fn all_launch_files_fit_the_schema() {
    let mut files = Vec::new();
    find(&root(), &mut files);
    let mut checked = 0;
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
        if value.get("schema").and_then(Value::as_str).is_some_and(|s| s.starts_with("wavesim-launch")) {
            valid(&value).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            checked += 1;
        }
    }
    assert!(checked >= 6, "{checked}");
    valid(&example()).unwrap();
}

/// What the schema rejects, the loader rejects too, and the other way round.
#[test]
fn the_schema_agrees_with_the_loader() {
    let wanted = wavesim::loader::launch::TargetSelection::target("gfx1100");
    let loads = |value: &Value| {
        let (launch, _) = wavesim::loader::launch::parse(&value.to_string(), &wanted)?;
        let files = wavesim::files::Files::any();
        let folder = root().join("tests/filetests/code_objects/vadd");
        wavesim::loader::launch::request(&launch, &folder, &files, 1 << 30).map(drop)
    };
    let argument = |argument: Value| json!({"args": [argument]});
    let buffer = |init: Value| {
        argument(json!({"name": "a", "kind": "buffer", "dtype": "f32", "shape": [4], "init": init}))
    };
    let good = [
        json!({"notes": "anything", "dynamic_lds": 16}),
        json!({"per_target": {"gfx1100": {"block": [32, 1, 1], "notes": "as above"}}}),
        buffer(json!({"zeros": true})),
        buffer(json!({"fill": "-inf"})),
        buffer(json!({"arange": {"start": 1, "step": -0.5}})),
        argument(json!({"name": "s", "kind": "struct", "bytes": "00fF", "layout": "a note"})),
        argument(json!({"name": "l", "kind": "local", "size": 64})),
        argument(json!({"name": "n", "kind": "scalar", "dtype": "u64", "value": u64::MAX})),
        argument(
            json!({"name": "t", "kind": "image", "type": "image2d", "format": "rgba8unorm", "size": [4, 2],
                        "init": {"zeros": true}}),
        ),
        argument(json!({"name": "s", "kind": "sampler", "properties": ["linear", "repeat"]})),
    ];
    let bad = [
        json!({"schema": "wavesim-launch-2"}),
        json!({"kernel": 5}),
        json!({"grid": [1, 1]}),
        json!({"block": [1, 1, -1]}),
        json!({"dynamic_lds": 1u64 << 32}),
        json!({"code": {"gfx1100": 1}}),
        json!({"per_target": {"gfx1100": {"block": [32]}}}),
        json!({"expected": [{"arg": "c", "file": "c.npy"}]}),
        buffer(json!({})),
        buffer(json!({"zeros": true, "fill": 1})),
        buffer(json!({"fill": "many"})),
        buffer(json!({"arange": {"start": 1}})),
        argument(json!({"name": "s", "kind": "struct", "bytes": "0g"})),
        argument(json!({"name": "l", "kind": "local", "size": -1})),
        argument(json!({"name": "n", "kind": "scalar", "dtype": "float", "value": 1})),
        argument(json!({"name": "n", "kind": "number", "dtype": "f32", "value": 1})),
        argument(json!({"kind": "local", "size": 1})),
        argument(
            json!({"name": "t", "kind": "image", "type": "image4d", "format": "rgba8unorm", "size": [4, 2],
                        "init": {"zeros": true}}),
        ),
        argument(json!({"name": "t", "kind": "image", "type": "image2d", "format": "rgba8unorm", "size": 8,
                        "init": {"zeros": true}})),
        argument(json!({"name": "s", "kind": "sampler", "properties": "linear"})),
    ];
    for (changes, fits) in good.iter().map(|g| (g, true)).chain(bad.iter().map(|b| (b, false))) {
        let mut value = example();
        value["args"] = json!([]);
        value["expected"] = json!([]);
        for (key, change) in changes.as_object().unwrap() {
            value[key] = change.clone();
        }
        assert_eq!(valid(&value).is_ok(), fits, "schema: {changes}: {:?}", valid(&value));
        let loaded = loads(&value);
        assert_eq!(loaded.is_ok(), fits, "loader: {changes}: {loaded:?}");
    }
}

#[test]
fn the_documentation_names_every_key() {
    let text = std::fs::read_to_string(root().join("docs/launch-format.md")).unwrap();
    fn names(schema: &Value, found: &mut Vec<String>) {
        // A key may be called `properties`, too: its schema is no map of schemas.
        let properties = schema.get("properties").and_then(Value::as_object);
        if let Some(properties) = properties.filter(|map| map.values().all(Value::is_object)) {
            found.extend(properties.keys().cloned());
        }
        match schema {
            Value::Object(map) => map.values().for_each(|v| names(v, found)),
            Value::Array(list) => list.iter().for_each(|v| names(v, found)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    names(&schema(), &mut all);
    assert!(all.len() > 15);
    for name in all {
        assert!(text.contains(&format!("`{name}`")) || text.contains(&format!("\"{name}\"")), "{name}");
    }
    for dtype in schema()["$defs"]["dtype"]["enum"].as_array().unwrap() {
        assert!(wavesim::array::DType::from_name(dtype.as_str().unwrap()).is_some(), "{dtype}");
    }
}
