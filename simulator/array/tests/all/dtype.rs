//! Element types.

use wavesim_array::ArrayError;
use wavesim_array::dtype::{DType, Num};

fn bytes(t: DType, n: Num) -> Result<Vec<u8>, ArrayError> {
    let mut out = Vec::new();
    t.encode(n, &mut out).map(|()| out)
}

#[test]
fn integers_must_be_in_range_and_bit_patterns_in_width() {
    assert_eq!(bytes(DType::I8, Num::Int(-128)).unwrap(), [0x80]);
    assert!(bytes(DType::I8, Num::Int(128)).is_err());
    assert_eq!(bytes(DType::I8, Num::Bits(0xff)).unwrap(), [0xff]);
    assert!(bytes(DType::I8, Num::Bits(0x100)).is_err());
    assert!(bytes(DType::U32, Num::Int(-1)).is_err());
    assert_eq!(bytes(DType::U64, Num::Int(u64::MAX as i128)).unwrap(), [0xff; 8]);
    assert_eq!(bytes(DType::I64, Num::Bits(u64::MAX)).unwrap(), [0xff; 8]);
    assert!(bytes(DType::I32, Num::Float(3.5)).is_err());
    assert_eq!(bytes(DType::I32, Num::Float(3.0)).unwrap(), [3, 0, 0, 0]);
}

#[test]
fn floats_round_to_nearest_even() {
    // 1 + 2^-8 is halfway between two bf16 values.
    assert_eq!(bytes(DType::BF16, Num::Float(1.00390625)).unwrap(), 0x3f80u16.to_le_bytes());
    assert_eq!(bytes(DType::BF16, Num::Float(1.01171875)).unwrap(), 0x3f82u16.to_le_bytes());
    assert_eq!(bytes(DType::F32, Num::Int(16_777_217)).unwrap(), 16_777_216f32.to_le_bytes());
}

#[test]
fn small_types_round_trip() {
    for t in DType::ALL.into_iter().filter(|t| t.size() <= 2) {
        for bits in 0..1u32 << (t.size() * 8) {
            let b = &bits.to_le_bytes()[..t.size()];
            let n = t.decode(b);
            if !n.as_f64().is_nan() {
                assert_eq!(bytes(t, n).unwrap(), b, "{} {bits:x}", t.name());
            }
        }
    }
}
