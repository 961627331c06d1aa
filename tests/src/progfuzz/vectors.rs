//! Random expressions of vector types.

use super::expr::{Expressions, LANES};
use super::tree::Scalar::*;
use super::tree::{Expr, Ty};

impl Expressions<'_> {
    /// What integer and float vectors have in common.
    pub(super) fn vector(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        let (lanes, element) = (ty.lanes, Ty::from(ty.scalar));
        match self.rng.below(8) {
            0 => self.op(ty, &format!("(({ty})($0))"), [element], size, uniform),
            1 if lanes <= 4 => {
                let operands: Vec<Expr> = (0..lanes).map(|_| self.any(element, size / 2, uniform)).collect();
                let list: Vec<String> = (0..lanes).map(|i| format!("${i}")).collect();
                Expr::new(ty, format!("(({ty})({}))", list.join(", ")), operands)
            }
            2 if lanes % 2 == 0 && lanes > 2 => {
                let half = Ty { lanes: lanes / 2, ..ty };
                self.op(ty, &format!("(({ty})($0, $1))"), [half, half], size, uniform)
            }
            3 if lanes != 3 => {
                let t = format!("({{ {ty} v_ = $0; v_[($1) & {}] = $2; v_; }})", lanes - 1);
                self.op(ty, &t, [ty, U32.into(), element], size, uniform)
            }
            4 if lanes == 2 || lanes == 4 || lanes == 8 => {
                let double = Ty { lanes: lanes * 2, ..ty };
                let part = self.rng.pick(&["lo", "hi", "even", "odd"]);
                self.op(ty, &format!("(($0).{part})"), [double], size, uniform)
            }
            5 => self.op(ty, "((($0) < ($1)) ? ($2) : ($3))", [ty, ty, ty, ty], size, uniform),
            6 => {
                let list: Vec<String> =
                    (0..lanes).map(|_| self.rng.below(2 * lanes as u64).to_string()).collect();
                let t = format!("__builtin_shufflevector(($0), ($1), {})", list.join(", "));
                self.op(ty, &t, [ty, ty], size, uniform)
            }
            _ => {
                let from = self.rng.pick(&LANES);
                let digits: String = (0..lanes)
                    .map(|_| char::from_digit(self.rng.below(from as u64) as u32, 16).unwrap_or('0'))
                    .collect();
                self.op(ty, &format!("(($0).s{digits})"), [Ty { lanes: from, ..ty }], size, uniform)
            }
        }
    }

    pub(super) fn int_vector(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        let u = ty.of(ty.scalar.unsigned());
        let bits = ty.scalar.bits() - 1;
        let two = |g: &mut Self, t: &str| g.op(ty, t, [ty, ty], size, uniform);
        match self.rng.below(16) {
            13..=15 => self.vector_function(ty, size, uniform),
            0..=2 => {
                let sign = self.rng.pick(&["+", "-", "*"]);
                two(self, &format!("AS({ty}, AS({u}, $0) {sign} AS({u}, $1))"))
            }
            3 => {
                let sign = self.rng.pick(&["&", "|", "^", "& ~"]);
                two(self, &format!("(($0) {sign}($1))"))
            }
            4 => {
                let t =
                    self.rng.pick(&["AS(TY, AS(UN, $0) << AS(UN, ($1) & BITS))", "(($0) >> (($1) & BITS))"]);
                let name = ty.scalar.name();
                let bits = format!("(({ty})({name}){bits})");
                two(
                    self,
                    &t.replace("TY", &ty.to_string()).replace("UN", &u.to_string()).replace("BITS", &bits),
                )
            }
            5 => {
                let f = self.rng.pick(&["min", "max", "add_sat", "sub_sat"]);
                let f = if f == "sub_sat" && matches!(ty.scalar, U16 | U8) { "max" } else { f };
                two(self, &format!("__builtin_elementwise_{f}(({ty})($0), ({ty})($1))"))
            }
            6 => {
                let from = self.integer();
                self.op(ty, &format!("__builtin_convertvector(($0), {ty})"), [ty.of(from)], size, uniform)
            }
            7 if ty.lanes != 3 => {
                // The same bits in elements of another size, or in one integer.
                let total = ty.lanes * ty.scalar.bits();
                let other = self.integer();
                match total / other.bits() {
                    lanes @ (1 | 2 | 4 | 8 | 16) => {
                        let from = Ty::new(other, lanes);
                        self.op(ty, &format!("AS({ty}, ({from})($0))"), [from], size, uniform)
                    }
                    _ => self.vector(ty, size, uniform),
                }
            }
            8 => {
                let name = ty.scalar.name();
                let guard = format!("((($1) & ({ty})({name})63) | ({ty})({name})1)");
                let sign = self.rng.pick(&["/", "%"]);
                let (of, mask) = self.dividend(ty, size / 2, uniform);
                let by = self.any(ty, size / 2, uniform);
                Expr::new(ty, format!("((($0){mask}) {sign} {guard})"), vec![of, by])
            }
            9 => self.load(ty, size, uniform),
            _ => self.vector(ty, size, uniform),
        }
    }

    pub(super) fn float_vector(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        let two = |g: &mut Self, t: &str| g.op(ty, t, [ty, ty], size, uniform);
        match self.rng.below(12) {
            0..=2 => self.sum(ty, size, uniform),
            3 | 4 => two(self, "(($0) * ($1))"),
            5 if ty.scalar != F16 => self.op(
                ty,
                &format!("__builtin_elementwise_fma(({ty})($0), ({ty})($1), ({ty})($2))"),
                [ty, ty, ty],
                size,
                uniform,
            ),
            6 => {
                let f = self.rng.pick(&["abs", "floor", "trunc", "ceil"]);
                self.op(ty, &format!("__builtin_elementwise_{f}(({ty})($0))"), [ty], size, uniform)
            }
            7 => {
                let f = self.rng.pick(&["min", "max"]);
                let zero = ty.scalar.name();
                two(self, &format!("(__builtin_elementwise_{f}(({ty})($0), ({ty})($1)) + ({zero})0)"))
            }
            8 => self.converted(ty, size, uniform),
            9 => self.op(ty, "(-($0))", [ty], size, uniform),
            _ => self.vector(ty, size, uniform),
        }
    }
}
