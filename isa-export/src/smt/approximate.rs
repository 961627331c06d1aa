//! What hardware approximates: unknown functions, of which the facts hold that `docs/accuracy.md` lists under *Special
//! values*. The manuals give them with the instructions; the bound on the error is not among them, because no theory has
//! the true value.

use super::builtin::Operators;
use super::float::{Floats, fraction_bits};
use super::term::Term;
use isa_spec::arith;
use isa_spec::eval;
use isa_spec::pcode::builtins::Pure;
use isa_spec::pcode::ir::Ty;

impl Operators<'_> {
    /// A reciprocal, root, power or logarithm. Its value for a zero, an infinity, a NaN or a number that it is not defined
    /// for is that of the evaluator; for others the sign is known.
    pub(super) fn approximate(&mut self, builtin: Pure, a: Term, ty: Ty) -> Term {
        let width = ty.width();
        let sign = Floats { terms: self.terms, env: self.setting.env }.sign(a, ty);
        let unknown = self.terms.apply(&format!("{}.{ty}", builtin.def().name), vec![a], width);
        let magnitude = self.terms.extract(unknown, 0, width - 1);
        let positive = self.terms.bool(false);
        let mut value = match builtin {
            Pure::Rcp => self.terms.concat(sign, magnitude),
            Pure::Rsq | Pure::Sqrt | Pure::Exp2 => self.terms.concat(positive, magnitude),
            _ => unknown,
        };
        let env = self.setting.env;
        let of = |bits: u128| eval::pure(builtin, &[bits], &[ty], &env, false);
        let (one, infinity) = (1 << (width - 1), arith::infinity(ty));
        if matches!(builtin, Pure::Rsq | Pure::Sqrt | Pure::Log2) {
            // Negative numbers that are not flushed to zero.
            let exponent = self.terms.extract(a, fraction_bits(ty), width - 1 - fraction_bits(ty));
            let zero = self.terms.constant(0, self.terms.width(exponent));
            let small = self.terms.eq(exponent, zero);
            let normal = self.terms.not(small);
            let negative = self.terms.and(sign, normal);
            let undefined = self.terms.constant(of(one | infinity), width);
            value = self.terms.ite(negative, undefined, value);
            // Of the small ones nothing is known.
            let small = self.terms.and(sign, small);
            value = self.terms.ite(small, unknown, value);
        }
        for special in [0, one, infinity, one | infinity] {
            let bits = self.terms.constant(special, width);
            let here = self.terms.eq(a, bits);
            let result = self.terms.constant(of(special), width);
            value = self.terms.ite(here, result, value);
        }
        let mut floats = Floats { terms: self.terms, env: self.setting.env };
        let (nan, quiet) = (floats.is_nan(a, ty), floats.quiet(a, ty));
        self.terms.ite(nan, quiet, value)
    }
}
