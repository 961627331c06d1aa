//! JSON Schema, as far as the schemas of the tree use it.

use serde_json::Value;

/// Checks a value against a schema (`whole` has the definitions); a keyword that no schema of the tree uses is a panic.
pub fn check(whole: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{value}: {what}"));
    let list = |schema: &Value| schema.as_array().unwrap().clone();
    for (keyword, limit) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "title" | "$defs" => {}
            "$ref" => {
                let pointer = limit.as_str().unwrap().strip_prefix('#').unwrap();
                check(whole, whole.pointer(pointer).unwrap(), value)?;
            }
            "type" => {
                let fits = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "number" => value.is_number(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "null" => value.is_null(),
                    other => panic!("type {other}"),
                };
                if !limit.as_array().map_or_else(|| fits(limit), |names| names.iter().any(fits)) {
                    return wrong(&format!("not of type {limit}"));
                }
            }
            "const" if value != limit => return wrong(&format!("not {limit}")),
            "enum" if !list(limit).contains(value) => return wrong(&format!("not one of {limit}")),
            "const" | "enum" => {}
            "minimum" if value.as_f64() < limit.as_f64() => return wrong("too small"),
            "maximum" if value.as_f64() > limit.as_f64() => return wrong("too large"),
            "minLength" if value.as_str().is_some_and(|s| (s.len() as u64) < limit.as_u64().unwrap()) => {
                return wrong("too short");
            }
            "minItems" if value.as_array().is_some_and(|a| (a.len() as u64) < limit.as_u64().unwrap()) => {
                return wrong("too few items");
            }
            "maxItems" if value.as_array().is_some_and(|a| a.len() as u64 > limit.as_u64().unwrap()) => {
                return wrong("too many items");
            }
            "minimum" | "maximum" | "minLength" | "minItems" | "maxItems" => {}
            "pattern" => {
                assert_eq!(limit, "^([0-9a-fA-F]{2})*$");
                let text = value.as_str().unwrap_or_default();
                if !text.len().is_multiple_of(2) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return wrong("not pairs of hexadecimal digits");
                }
            }
            "items" => {
                value.as_array().into_iter().flatten().try_for_each(|item| check(whole, limit, item))?;
            }
            "required" => {
                for key in list(limit) {
                    if value.get(key.as_str().unwrap()).is_none() {
                        return wrong(&format!("without {key}"));
                    }
                }
            }
            "properties" => {
                for (key, schema) in limit.as_object().unwrap() {
                    value.get(key).map_or(Ok(()), |member| check(whole, schema, member))?;
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (key, member) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(key)) {
                        continue;
                    }
                    match limit {
                        Value::Bool(false) => return wrong(&format!("unknown key {key}")),
                        schema => check(whole, schema, member)?,
                    }
                }
            }
            "oneOf" | "anyOf" => {
                let results: Vec<_> = list(limit).iter().map(|one| check(whole, one, value)).collect();
                let fits = results.iter().filter(|result| result.is_ok()).count();
                if fits == 0 || keyword == "oneOf" && fits > 1 {
                    return wrong(&format!("fits {fits} of {}: {results:?}", results.len()));
                }
            }
            other => panic!("the keyword {other} is not supported here"),
        }
    }
    Ok(())
}
