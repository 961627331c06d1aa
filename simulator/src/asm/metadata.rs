//! `.amdgpu_metadata`: the block's YAML as the MessagePack of a code object's note (LLVM AMDGPUUsage, *Code Object Metadata*).

use rmpv::Value;
use yaml_rust2::{Yaml, YamlLoader};

/// Nesting deeper than this is an error, not a stack overflow.
const MAX_DEPTH: usize = 32;

/// The note's payload.
pub fn message_pack(text: &str) -> Result<Vec<u8>, String> {
    let documents = YamlLoader::load_from_str(text).map_err(|e| e.to_string())?;
    let Some(root) = documents.first() else { return Err("the block is empty".to_string()) };
    let mut out = Vec::new();
    rmpv::encode::write_value(&mut out, &value(root, 0)?).map_err(|e| e.to_string())?;
    Ok(out)
}

fn value(yaml: &Yaml, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err("the block nests too deeply".to_string());
    }
    Ok(match yaml {
        Yaml::Integer(v) => Value::from(*v),
        Yaml::Real(v) => Value::from(v.parse::<f64>().map_err(|_| format!("`{v}` is no number"))?),
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
