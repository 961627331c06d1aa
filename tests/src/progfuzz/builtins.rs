//! Random calls of functions of OpenCL C and of builtins of AMD's compilers, which `prelude.cl` defines for
//! the host.

use super::expr::{Expressions, LANES};
use super::tree::Scalar::{self, *};
use super::tree::{Expr, Ty};

impl Expressions<'_> {
    /// A call of an integer function.
    pub(super) fn integer_function(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        let (name, u, bits) = (s.name(), s.unsigned().name(), s.bits());
        let t = match self.rng.below(17) {
            0 => "hadd_TY($0, $1)",
            1 => "rhadd_TY($0, $1)",
            2 => "((TY)abs_diff_TY($0, $1))",
            3 | 4 => "mul_hi_TY($0, $1)",
            5 => "mad_hi_TY($0, $1, $2)",
            6 | 7 => "mad_sat_TY($0, $1, $2)",
            8 => "bitselect_TY($0, $1, $2)",
            9 => "((TY)clz_TY($0))",
            10 => "((TY)ctz_TY($0))",
            11 => "({ TY r_; UN o_ = __builtin_add_overflow((TY)($0), (TY)($1), &r_); (TY)((UN)r_ + o_); })",
            12 => "({ TY r_; UN o_ = __builtin_sub_overflow((TY)($0), (TY)($1), &r_); (TY)((UN)r_ ^ o_); })",
            13 => "({ TY r_; UN o_ = __builtin_mul_overflow((TY)($0), (TY)($1), &r_); (TY)((UN)r_ - o_); })",
            // Median, minimum and maximum of three.
            14 => {
                "({ TY a_ = $0, b_ = $1, c_ = $2, low_ = MIN(a_, b_), high_ = MAX(a_, b_); MAX(low_, MIN(high_, c_)); })"
            }
            15 => "MAX(MAX((TY)($0), (TY)($1)), (TY)($2))",
            _ if bits > 8 => return self.upsample(s, size, uniform),
            _ => "MIN((TY)($0), MIN((TY)($1), (TY)($2)))",
        };
        let t = t.replace("MIN", "__builtin_elementwise_min").replace("MAX", "__builtin_elementwise_max");
        let ty = s.into();
        self.op(ty, &t.replace("TY", name).replace("UN", u), [ty, ty, ty], size, uniform)
    }

    /// An integer of two halves.
    fn upsample(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        let half = match s.bits() {
            16 => U8,
            32 => U16,
            _ => U32,
        };
        let (u, h, bits) = (s.unsigned().name(), half.name(), half.bits());
        let t = format!("(({})(({u})(({u})({h})($0) << {bits}) | ({h})($1)))", s.name());
        self.op(s.into(), &t, [half.into(), half.into()], size, uniform)
    }

    /// A builtin of AMD's compilers.
    pub(super) fn target_builtin(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        const WORD: [&str; 12] = [
            "sbfe($0, $1, $2)",
            "sad_hi_u8($0, $1, $2)",
            "sad_u16($0, $1, $2)",
            "msad_u8($0, $1, $2)",
            "udot4($0, $1, $2)",
            "udot8($0, $1, $2)",
            "sdot4($0, $1, $2)",
            "sdot8($0, $1, $2)",
            "usdot4($0, $1, $2)",
            "usdot8($0, $1, $2)",
            "(($0) + ($1) + ($2))",
            "((($0) ^ ($1)) + ($2))",
        ];
        let name = s.name();
        match self.rng.below(8) {
            0 => {
                let f = self.rng.pick(&["qsad", "mqsad"]);
                let t = format!("(({name}){f}($0, $1, $2))");
                self.op(s.into(), &t, [U64.into(), U32.into(), U64.into()], size, uniform)
            }
            1 => {
                let vector = Ty::new(U32, 4);
                let lane = self.rng.below(4);
                let t = format!("(({name})mqsad_u32($0, $1, $2).s{lane})");
                self.op(s.into(), &t, [U64.into(), U32.into(), vector], size, uniform)
            }
            _ => {
                let t = format!("(({name}){})", self.rng.pick(&WORD));
                let i = U32.into();
                self.op(s.into(), &t, [i, i, i], size, uniform)
            }
        }
    }

    /// A call of a float function with exact results.
    pub(super) fn float_function(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        let ty = Ty::from(s);
        let choice = self.rng.below(6);
        if choice == 0 && s != F64 {
            let t = format!("med3_{}($0, $1, $2)", s.name());
            return self.op(ty, &t, [ty, ty, ty], size, uniform);
        }
        if choice == 1 {
            // Between 0 and 1, which is a modifier of instructions.
            let t = "({ TY x_ = $0; x_ = x_ != x_ ? (TY)0 : x_; \
                     __builtin_elementwise_min(__builtin_elementwise_max(x_, (TY)0), (TY)1) + (TY)0; })";
            return self.op(ty, &t.replace("TY", s.name()), [ty], size, uniform);
        }
        let rounding = self.rng.pick(&["rtz", "rtp", "rtn"]);
        match s {
            F16 if choice == 2 => {
                let element = self.rng.pick(&["x", "y"]);
                let f = F32.into();
                self.op(ty, &format!("(pkrtz($0, $1).{element} + (f16)0)"), [f, f], size, uniform)
            }
            F16 => self.op(ty, &format!("f16_{rounding}($0)"), [F32.into()], size, uniform),
            F32 if choice == 2 => {
                let h = F16.into();
                let t = "__builtin_elementwise_fma((f32)($0), (f32)($1), (f32)($2))";
                let third = self.rng.pick(&[F16, F32]).into();
                self.op(ty, t, [h, h, third], size, uniform)
            }
            F32 if choice < 5 => self.op(ty, &format!("f32_{rounding}($0)"), [F64.into()], size, uniform),
            _ => {
                let part = self.rng.below(2);
                self.op(ty, &format!("frexp_{}($0, {part})", s.name()), [ty], size, uniform)
            }
        }
    }

    /// Rounding before a conversion to an integer.
    pub(super) fn rounding(&mut self) -> &'static str {
        self.rng.pick(&[
            "",
            "",
            "__builtin_elementwise_rint",
            "__builtin_elementwise_ceil",
            "__builtin_elementwise_floor",
        ])
    }

    /// A test for kinds of floats. Quiet and signalling NaNs are not distinguished.
    pub(super) fn float_class(&mut self, size: u32, uniform: bool) -> Expr {
        let ty = self.rng.pick(&Scalar::FLOATS).into();
        let mask = (self.rng.below(256) << 2) | self.rng.pick(&[0, 3]);
        self.op(I32.into(), &format!("__builtin_isfpclass($0, {mask})"), [ty], size, uniform)
    }

    /// A function of integer vectors.
    pub(super) fn vector_function(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        let u = ty.of(ty.scalar.unsigned());
        let wide = match (ty.scalar.bits(), ty.scalar.is_signed()) {
            (8, true) => I16,
            (8, false) => U16,
            (16, true) => I32,
            (16, false) => U32,
            (_, true) => I64,
            (_, false) => U64,
        };
        let t = match self.rng.below(7) {
            0 => "({ TY a_ = $0, b_ = $1; (a_ >> ONE) + (b_ >> ONE) + (a_ & b_ & ONE); })".to_string(),
            1 => "({ TY a_ = $0, b_ = $1; (a_ >> ONE) + (b_ >> ONE) + ((a_ | b_) & ONE); })".to_string(),
            2 => "({ TY a_ = $0, b_ = $1; AS(TY, a_ > b_ ? AS(UN, a_) - AS(UN, b_) : AS(UN, b_) - AS(UN, a_)); })".to_string(),
            3 => "({ TY a_ = $0, b_ = $1, c_ = $2; (a_ & ~c_) | (b_ & c_); })".to_string(),
            4 => format!("AS(TY, ($0) {} ($1))", self.rng.pick(&["<", ">=", "==", "!="])),
            5 if ty.scalar.bits() < 64 => format!(
                "__builtin_convertvector((__builtin_convertvector($0, WIDE) * __builtin_convertvector($1, WIDE)) >> {}, TY)",
                ty.scalar.bits()
            ),
            _ if ty.lanes.is_power_of_two() && ty.lanes <= 8 => {
                let lanes = ty.lanes;
                let element = |i: u32| format!("v_[m_[{i}] & {}]", lanes - 1);
                let list: Vec<String> = (0..lanes).map(element).collect();
                format!("({{ TY v_ = $0; UN m_ = AS(UN, $1); (TY)({}); }})", list.join(", "))
            }
            _ => "__builtin_elementwise_max((TY)($0), __builtin_elementwise_min((TY)($1), (TY)($2)))".to_string(),
        };
        let one = format!("({ty})({})1", ty.scalar.name());
        let t = t.replace("TY", &ty.to_string()).replace("UN", &u.to_string()).replace("ONE", &one);
        self.op(ty, &t.replace("WIDE", &ty.of(wide).to_string()), [ty, ty, ty], size, uniform)
    }

    /// A test of all elements of a vector.
    pub(super) fn vector_condition(&mut self, size: u32, uniform: bool) -> Expr {
        let ty = Ty::new(self.scalar(), self.rng.pick(&[LANES[0], LANES[2], LANES[3]]));
        let f = self.rng.pick(&["or", "and"]);
        let compare = self.rng.pick(&["<", ">", "==", "!="]);
        self.op(
            I32.into(),
            &format!("(__builtin_reduce_{f}(($0) {compare} ($1)) != 0)"),
            [ty, ty],
            size,
            uniform,
        )
    }
}
