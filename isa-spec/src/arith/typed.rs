//! Typed entry points for compiled code: `f32_add(a, b, env)` and the like on native integers.

use super::FloatEnv;
use crate::pcode::ir::Ty;

macro_rules! typed {
    ($($prefix:ident $bits:ty, $ty:expr;)*) => { $( pub mod $prefix {
        use super::{FloatEnv, Ty};
        const TY: Ty = $ty;
        type B = $bits;
        pub fn add(a: B, b: B, env: &FloatEnv) -> B { crate::arith::add(a as u128, b as u128, TY, env) as B }
        pub fn sub(a: B, b: B, env: &FloatEnv) -> B { crate::arith::sub(a as u128, b as u128, TY, env) as B }
        pub fn mul(a: B, b: B, env: &FloatEnv) -> B { crate::arith::mul(a as u128, b as u128, TY, env) as B }
        pub fn div(a: B, b: B, env: &FloatEnv) -> B { crate::arith::div_float(a as u128, b as u128, TY, env) as B }
        pub fn fma(a: B, b: B, c: B, env: &FloatEnv) -> B { crate::arith::fma(a as u128, b as u128, c as u128, TY, env) as B }
    } )* };
}

typed! {
    f16 u16, Ty::F16;
    bf16 u16, Ty::BF16;
    f32 u32, Ty::F32;
    f64 u64, Ty::F64;
}
