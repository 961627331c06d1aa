//! `.amdgpu_metadata`: converts the block's YAML to the MessagePack of a code object's note (LLVM
//! AMDGPUUsage, *Code Object Metadata*).

use rmpv::Value;
use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::{Yaml, YamlLoader};

/// Maximum nesting depth; deeper nesting is an error instead of a stack overflow.
const MAX_DEPTH: usize = 32;

/// Returns the payload of the note.
pub fn message_pack(text: &str) -> Result<Vec<u8>, String> {
    bounded(text)?;
    let documents = YamlLoader::load_from_str(text).map_err(|e| e.to_string())?;
    let Some(root) = documents.first() else { return Err("the block is empty".to_string()) };
    let mut out = Vec::new();
    rmpv::encode::write_value(&mut out, &value(root, 0)?).map_err(|e| e.to_string())?;
    Ok(out)
}

/// Rejects inputs for which the YAML loader has no limits: it recurses, and copies aliased nodes.
fn bounded(text: &str) -> Result<(), String> {
    let mut parser = Parser::new_from_str(text);
    let mut depth = 0usize;
    loop {
        match parser.next_token().map_err(|e| e.to_string())?.0 {
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth = depth.saturating_sub(1),
            Event::Alias(_) => return Err("aliases (`*name`) are not supported here".to_string()),
            Event::StreamEnd => return Ok(()),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err("the block nests too deeply".to_string());
        }
    }
}

fn value(yaml: &Yaml, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err("the block nests too deeply".to_string());
    }
    Ok(match yaml {
        Yaml::Integer(v) => Value::from(*v),
        Yaml::Real(v) => Value::from(v.parse::<f64>().map_err(|_| format!("`{v}` is not a number"))?),
        Yaml::String(v) => Value::from(v.as_str()),
        Yaml::Boolean(v) => Value::from(*v),
        Yaml::Null => Value::Nil,
        Yaml::Array(list) => {
            Value::Array(list.iter().map(|v| value(v, depth + 1)).collect::<Result<_, _>>()?)
        }
        Yaml::Hash(map) => {
            let pair = |(k, v): (&Yaml, &Yaml)| Ok::<_, String>((value(k, depth + 1)?, value(v, depth + 1)?));
            Value::Map(map.iter().map(pair).collect::<Result<_, _>>()?)
        }
        Yaml::Alias(_) | Yaml::BadValue => return Err("the block refers to itself".to_string()),
    })
}
