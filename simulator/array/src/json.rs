//! Arrays as JSON: `{"dtype": "f32", "shape": [4, 4], "data": […]}`, with flat row-major data.

use super::{Array, DType, Num};
use serde_json::{Value, json};

/// Converts an array to JSON.
pub fn array(a: &Array) -> Value {
    let data: Vec<Value> = a.values().map(|n| number(a.dtype, n)).collect();
    json!({ "dtype": a.dtype.name(), "shape": a.shape, "data": data })
}

/// Converts an element to JSON. Floats are numbers, `"nan"`, `"inf"` or `"-inf"`; 64-bit integers are
/// hexadecimal strings of their bits, since they may exceed 2^53.
pub fn number(dtype: DType, n: Num) -> Value {
    match n {
        Num::Float(v) if v.is_nan() => "nan".into(),
        Num::Float(v) if v.is_infinite() => if v > 0.0 { "inf" } else { "-inf" }.into(),
        Num::Float(v) => v.into(),
        Num::Decimal(v) => v.to_f64().into(),
        Num::Int(v) if dtype.size() == 8 => format!("{:x}", v as u64).into(),
        Num::Int(v) => (v as i64).into(),
        Num::Bits(v) => format!("{v:x}").into(),
    }
}
