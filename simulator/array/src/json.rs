//! Machine output: `{"dtype": "f32", "shape": [4, 4], "data": […]}`, data flat and row-major.

use super::{Array, DType, Num};
use serde_json::{Value, json};

pub fn array(a: &Array) -> Value {
    let data: Vec<Value> = a.values().map(|n| number(a.dtype, n)).collect();
    json!({ "dtype": a.dtype.name(), "shape": a.shape, "data": data })
}

/// An element. Floats by value, `"nan"`, `"inf"`, `"-inf"`; 64-bit integers, which may exceed 2^53, as the hex string of their bits.
pub fn number(dtype: DType, n: Num) -> Value {
    match n {
        Num::Float(v) if v.is_nan() => "nan".into(),
        Num::Float(v) if v.is_infinite() => if v > 0.0 { "inf" } else { "-inf" }.into(),
        Num::Float(v) => v.into(),
        Num::Int(v) if dtype.size() == 8 => format!("{:x}", v as u64).into(),
        Num::Int(v) => (v as i64).into(),
        Num::Bits(v) => format!("{v:x}").into(),
    }
}
