//! Random expressions. All are defined for all values of their operands, and equal on host and device: float
//! operations are exactly rounded ones, and NaNs are only observed as such.

use super::tree::Scalar::{self, *};
use super::tree::{Expr, Ty};
use crate::random::Rng;

/// A variable in scope.
#[derive(Debug, Clone)]
pub struct Variable {
    pub name: String,
    pub ty: Ty,
    /// Whether all work-items of a workgroup have the same value.
    pub uniform: bool,
    pub writable: bool,
}

/// The way in which a phase may access an array in LDS without races.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    None,
    /// Each work-item reads and writes its own element.
    Own,
    /// All read any element.
    Read,
    /// All apply one atomic operation, and ignore its result.
    Atomic(&'static str),
}

/// Arrays in LDS of 256 elements. `a` and `c` are for atomics, too, and `e` and `d` only for these: their
/// elements are sums of small integers, which are exact.
pub const LDS: [(&str, Ty); 10] = [
    ("w", Ty::new(U32, 1)),
    ("b", Ty::new(U8, 1)),
    ("q", Ty::new(I64, 1)),
    ("h", Ty::new(I16, 1)),
    ("f", Ty::new(F32, 1)),
    ("a", Ty::new(U32, 1)),
    ("c", Ty::new(I64, 1)),
    ("x", Ty::new(U32, 4)),
    ("e", Ty::new(F32, 1)),
    ("d", Ty::new(F64, 1)),
];

/// Random expressions, with what they may refer to.
pub struct Expressions<'a> {
    pub rng: &'a mut Rng,
    pub scope: Vec<Variable>,
    /// Functions that may be called: name, result, parameters, and whether they are recursive.
    pub functions: Vec<(String, Ty, Vec<Ty>)>,
    /// Whether the private arrays, LDS and buffers of a kernel are in scope.
    pub in_kernel: bool,
    pub lds: [Access; LDS.len()],
    /// The index of a work-item's own element in LDS.
    pub own: String,
}

/// A vector length.
pub const LANES: [u32; 5] = [2, 3, 4, 8, 16];

impl Expressions<'_> {
    pub fn scalar(&mut self) -> Scalar {
        if self.rng.chance(3) {
            self.rng.pick(&[U32, I32, U32, F32, U64])
        } else {
            self.rng.pick(&Scalar::ALL)
        }
    }

    pub fn integer(&mut self) -> Scalar {
        if self.rng.chance(3) { U32 } else { self.rng.pick(&Scalar::INTEGERS) }
    }

    /// An expression of a type, with at most about `size` operations. If `uniform`, all work-items of a
    /// workgroup compute the same value.
    pub fn any(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        if size == 0 || self.rng.chance(9) {
            return self.leaf(ty, uniform);
        }
        let size = size - 1;
        if self.rng.chance(9)
            && ty.lanes == 1
            && let Some(call) = self.call(ty, size, uniform)
        {
            return call;
        }
        match (ty.lanes, ty.scalar.is_float()) {
            (1, false) => self.int(ty.scalar, size, uniform),
            (1, true) => self.float(ty.scalar, size, uniform),
            (_, false) => self.int_vector(ty, size, uniform),
            (_, true) => self.float_vector(ty, size, uniform),
        }
    }

    pub(super) fn many<const N: usize>(&mut self, types: [Ty; N], size: u32, uniform: bool) -> Vec<Expr> {
        let each = size * 2 / (N as u32 + 1);
        let mut operands: Vec<Expr> = types.into_iter().map(|ty| self.any(ty, each, uniform)).collect();
        if N > 1 && self.rng.chance(5) {
            operands[N - 1] = self.constant(types[N - 1]);
        }
        operands
    }

    pub(super) fn op<const N: usize>(
        &mut self,
        ty: Ty,
        text: &str,
        types: [Ty; N],
        size: u32,
        uniform: bool,
    ) -> Expr {
        let operands = self.many(types, size, uniform);
        Expr::new(ty, text, operands)
    }

    pub fn leaf(&mut self, ty: Ty, uniform: bool) -> Expr {
        let fits = |v: &&Variable| v.ty == ty && (v.uniform || !uniform);
        let names: Vec<&Variable> = self.scope.iter().filter(fits).collect();
        if !names.is_empty() && !self.rng.chance(3) {
            let index = self.rng.below(names.len() as u64) as usize;
            return Expr::new(ty, names[index].name.clone(), Vec::new());
        }
        if self.rng.chance(3) {
            return self.load(ty, 0, uniform);
        }
        let mut constant = self.constant(ty);
        if ty.scalar.is_float() {
            // See `sum`: a variable may be known to be 0.
            constant.text = constant.text.replace(")0.0", ")1.0").replace("0x0u", "0x1u");
        }
        constant
    }

    /// A constant, by preference one with an inline encoding, or at a limit of its type.
    pub fn constant(&mut self, ty: Ty) -> Expr {
        if ty.lanes > 1 {
            let count = if self.rng.chance(2) { 1 } else { ty.lanes };
            let all: Vec<String> = (0..count).map(|_| self.constant(ty.scalar.into()).text).collect();
            return Expr::new(ty, format!("(({ty})({}))", all.join(", ")), Vec::new());
        }
        let name = ty.scalar.name();
        let text = if ty.scalar.is_float() {
            const NEAT: [&str; 14] = [
                "0.0",
                "0.5",
                "1.0",
                "2.0",
                "4.0",
                "-0.5",
                "-1.0",
                "-2.0",
                "-4.0",
                "-0.0",
                "1.5",
                "0.15915494",
                "10.0",
                "3.0",
            ];
            // LLVM 19 takes -0 for 0 where it joins two halves.
            let neat = match self.rng.pick(&NEAT) {
                "-0.0" if ty.scalar == F16 => "-1.0",
                neat => neat,
            };
            if self.rng.chance(4) {
                format!("make_{name}(({})0x{:x}u)", ty.scalar.unsigned().name(), self.bits(ty.scalar))
            } else {
                format!("(({name}){}{})", neat, if ty.scalar == F64 { "" } else { "f" })
            }
        } else {
            format!("(({name})0x{:x}ul)", self.bits(ty.scalar))
        };
        Expr::new(ty, text, Vec::new())
    }

    /// Bits of a scalar: limits, small numbers, single bits, masks, or noise.
    pub fn bits(&mut self, scalar: Scalar) -> u64 {
        let mask = u64::MAX >> (64 - scalar.bits());
        let bits = match self.rng.below(7) {
            0 => self.rng.below(65),
            1 => (self.rng.below(17) as i64).wrapping_neg() as u64,
            2 => 1 << self.rng.below(64),
            3 => (1 << self.rng.below(64)) - 1,
            4 => self.rng.pick(&[0x8000_0000_8000_8080, 0x7fff_ffff_7fff_7f7f, 0xff00_ff00_ff00_ff00]),
            5 => self.rng.dword() as u64 | (self.rng.dword() as u64) << 32,
            _ => self.rng.bits(),
        };
        bits & mask
    }

    fn call(&mut self, ty: Ty, size: u32, uniform: bool) -> Option<Expr> {
        // Work-items that call different functions have different values.
        let names: Vec<usize> = (0..self.functions.len()).filter(|i| self.functions[*i].1 == ty).collect();
        if names.is_empty() {
            return None;
        }
        let (name, _, parameters) =
            self.functions[names[self.rng.below(names.len() as u64) as usize]].clone();
        let each = size / 2;
        let mut operands: Vec<Expr> = vec![self.any(U32.into(), each.min(1), uniform)];
        operands.extend(parameters.iter().map(|p| self.any(*p, each.min(3), uniform)));
        let list: Vec<String> = (1..operands.len()).map(|i| format!("${i}")).collect();
        let twins: Vec<String> = names
            .iter()
            .map(|i| &self.functions[*i])
            .filter(|f| f.2 == parameters && f.0 != name)
            .map(|f| f.0.clone())
            .collect();
        let target = match twins.first() {
            Some(twin) => {
                operands.push(self.any(U32.into(), 1, uniform));
                let callee = format!("((${} & 1) ? {name} : {twin})", operands.len() - 1);
                if uniform { callee } else { format!("CALLEE({callee})") }
            }
            None => name,
        };
        Some(Expr::new(ty, format!("{target}(in, ($0) & 3, {})", list.join(", ")), operands))
    }

    /// A condition of any kind, as an `int`.
    pub fn condition(&mut self, size: u32, uniform: bool) -> Expr {
        let compare = self.rng.pick(&["<", "<=", ">", ">=", "==", "!="]);
        match self.rng.below(8) {
            6 => self.float_class(size, uniform),
            7 => self.vector_condition(size, uniform),
            0 => self.op(I32.into(), "(($0) && ($1))", [I32.into(), U32.into()], size, uniform),
            1 => self.op(I32.into(), "(($0) || ($1))", [I32.into(), U64.into()], size, uniform),
            2 => self.op(I32.into(), "(((u32)($0) & 3) != 0)", [U32.into()], size, uniform),
            _ => {
                let ty = self.scalar().into();
                self.op(I32.into(), &format!("(($0) {compare} ($1))"), [ty, ty], size, uniform)
            }
        }
    }

    fn int(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        let ty = Ty::from(s);
        let (name, u, bits) = (s.name(), s.unsigned().name(), s.bits());
        let choice = self.rng.below(30);
        let text = |t: &str| t.replace("TY", name).replace("UN", u).replace("BITS", &(bits - 1).to_string());
        let two = |g: &mut Self, t: &str| g.op(ty, &text(t), [ty, ty], size, uniform);
        match choice {
            0..=2 => {
                let sign = self.rng.pick(&["+", "-", "+"]);
                two(self, &format!("((TY)((UN)($0) {sign} (UN)($1)))"))
            }
            3 | 4 => two(self, "((TY)(1u * (UN)($0) * (UN)($1)))"),
            5 | 6 => {
                let sign = self.rng.pick(&["&", "|", "^", "& ~", "^ ~"]);
                two(self, &format!("((TY)(($0) {sign}($1)))"))
            }
            7 => {
                let count = if self.rng.chance(2) {
                    "$1".to_string()
                } else {
                    self.rng.below(bits as u64).to_string()
                };
                let t = self.rng.pick(&[
                    "((TY)(((UN)($0) + 0u) << ((COUNT) & BITS)))",
                    "((TY)(($0) >> ((COUNT) & BITS)))",
                    "((TY)((UN)($0) >> ((COUNT) & BITS)))",
                    "({ UN x_ = (UN)($0); u32 n_ = (COUNT) & BITS; (TY)((UN)((x_ + 0u) << n_) | (UN)(x_ >> (-n_ & BITS))); })",
                ]);
                let t = text(&t.replace("COUNT", &count));
                if count == "$1" {
                    self.op(ty, &t, [ty, U32.into()], size, uniform)
                } else {
                    self.op(ty, &t, [ty], size, uniform)
                }
            }
            8 => {
                let by = if self.rng.chance(2) { self.constant(ty) } else { self.any(ty, size / 2, uniform) };
                let t = self.rng.pick(&["/", "%"]);
                let bad = if s.is_signed() { "y_ == 0 || y_ == -1" } else { "y_ == 0" };
                let (of, mask) = self.dividend(ty, size / 2, uniform);
                let t = text(&format!("({{ TY x_ = $0{mask}; TY y_ = $1; (TY)({bad} ? x_ : x_ {t} y_); }})"));
                Expr::new(ty, t, vec![of, by])
            }
            9 => {
                let f = self.rng.pick(&["min", "max", "add_sat", "sub_sat"]);
                // LLVM 19 on CDNA exchanges the operands of saturated 16-bit differences (SDWA).
                let f = if f == "sub_sat" && matches!(s, U16 | U8) { "min" } else { f };
                two(self, &format!("__builtin_elementwise_{f}((TY)($0), (TY)($1))"))
            }
            10 if s.is_signed() => {
                self.op(ty, &text("__builtin_elementwise_abs((TY)($0))"), [ty], size, uniform)
            }
            10 | 11 => self.bit_trick(s, size, uniform),
            12 => self.select(ty, size, uniform),
            13 | 14 => {
                let from = self.integer();
                self.op(ty, &text("((TY)($0))"), [from.into()], size, uniform)
            }
            15 => self.integer_of_float(s, size, uniform),
            16 => self.saturated(s, size, uniform),
            17..=19 => self.load(ty, size, uniform),
            20 => self.element(ty, size, uniform),
            21 => {
                let lanes = self.rng.pick(&LANES);
                let f = self.rng.pick(&["add", "xor", "or", "and", "min", "max"]);
                // Vectors of three have no reductions by shuffles; signed sums could overflow.
                let lanes = if lanes == 3 { 4 } else { lanes };
                let of = Ty::new(if f == "add" { s.unsigned() } else { s }, lanes);
                self.op(ty, &text(&format!("((TY)__builtin_reduce_{f}($0))")), [of], size, uniform)
            }
            22 => {
                let condition = self.condition(size, uniform);
                Expr::new(ty, text("((TY)($0))"), vec![condition])
            }
            26 | 27 => self.integer_function(s, size, uniform),
            28 => self.target_builtin(s, size, uniform),
            _ => self.idiom(s, size, uniform),
        }
    }

    /// A dividend, and what must be applied to it. LLVM 19 divides unsigned numbers as floats if it knows that
    /// they are small or greater than -2^24, as if the latter were negative.
    pub(super) fn dividend(&mut self, ty: Ty, size: u32, uniform: bool) -> (Expr, String) {
        match ty.scalar {
            U32 | U64 if self.rng.chance(3) => {
                let index = self.index(size, uniform);
                (Expr::new(ty, format!("LOAD(GLB, {ty}, in + (($0) & 2047))"), vec![index]), String::new())
            }
            U32 | U64 => {
                let mask =
                    format!(" & ({ty})({}){:#x}ul", ty.scalar.name(), u64::MAX >> (65 - ty.scalar.bits()));
                (self.any(ty, size, uniform), mask)
            }
            _ => (self.any(ty, size, uniform), String::new()),
        }
    }

    fn bit_trick(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        let ty = Ty::from(s);
        let (name, u, bits) = (s.name(), s.unsigned().name(), s.bits());
        let t = match self.rng.below(6) {
            0 => "((TY)__builtin_popcountl((UN)($0)))".to_string(),
            1 => format!("((TY)(__builtin_clzl((u64)(UN)($0) | 1) - {}))", 64 - bits),
            2 => format!("((TY)__builtin_ctzl((u64)(UN)($0) | 1ul << {}))", bits - 1),
            3 => format!("((TY)__builtin_bitreverse{bits}((UN)($0)))"),
            4 if bits > 8 => format!("((TY)__builtin_bswap{bits}((UN)($0)))"),
            4 => "((TY)-(u32)($0))".to_string(),
            _ => "((TY)~($0))".to_string(),
        };
        self.op(ty, &t.replace("TY", name).replace("UN", u), [ty], size, uniform)
    }

    /// Shapes that compilers turn into single instructions, and builtins.
    fn idiom(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        const WORD: [&str; 22] = [
            "perm($0, $1, $2)",
            "sad_u8($0, $1, $2)",
            "alignbyte($0, $1, $2)",
            "alignbit($0, $1, $2)",
            "lerp($0, $1, $2)",
            "bfe($0, $1, $2)",
            "((((u32)($0) << 8) >> 8) * (((u32)($1) << 8) >> 8) + (u32)($2))",
            "((u32)((i32)((u32)($0) << 8) >> 8) * (u32)((i32)((u32)($1) << 8) >> 8) + ($2))",
            "((u32)(((u64)(u32)($0) * (u32)($1)) >> 32) + ($2))",
            "((u32)(((i64)(i32)($0) * (i32)($1)) >> 32) ^ ($2))",
            "((($0) & ($1)) | (~($0) & ($2)))",
            "((($0) & ($1)) | (($0) & ($2)) | (($1) & ($2)))",
            "(($0) ^ ($1) ^ ($2))",
            "((($0) + ($1)) << (($2) & 31))",
            "((($0) << (($1) & 31)) + ($2))",
            "((($0) & 0xff) | (($1) & 0xff) << 8 | ($2) << 16)",
            "((($0) & 0xffff0000u) | (($1) >> 16))",
            "__builtin_elementwise_max(__builtin_elementwise_min((u32)($0), (u32)($1)), (u32)($2))",
            "((($0) >> (($1) & 31)) & 0x1f)",
            "({ u32 a_ = $0, b_ = $1; ((a_ & 255) * (b_ & 255) + (a_ >> 8 & 255) * (b_ >> 8 & 255) + (a_ >> 16 & 255) * (b_ >> 16 & 255) + ((a_ >> 24) * (b_ >> 24))) ^ ($2); })",
            "({ u32 a_ = $0, b_ = $1; (a_ > b_ ? a_ - b_ : b_ - a_) + ($2); })",
            "({ u32 a_ = $0, b_ = $1; (u32)((i32)(i16)a_ * (i16)b_) + (u32)((i32)(i16)(a_ >> 16) * (i16)(b_ >> 16)) + ($2); })",
        ];
        const LONG: [&str; 7] = [
            "((u64)(u32)($0) * (u32)($1) + ($2))",
            "((u64)((i64)(i32)($0) * (i32)($1)) + ($2))",
            "(((u64)(u32)($0) << 32) | (u32)($1) ^ ($2))",
            "((($0) << (($1) & 7)) + ($2))",
            "({ u64 a_ = $0, b_ = a_ + ($1); (b_ < a_) + ($2); })",
            "((u64)((i64)((u64)($0) << 20) >> 20) * ($1) - ($2))",
            "((($0) >> (($1) & 63)) | (($2) << (($1) & 31)))",
        ];
        let (list, inner): (&[&str], Scalar) =
            if matches!(s, U64 | I64) { (&LONG, U64) } else { (&WORD, U32) };
        let i = inner.into();
        let t = self.rng.pick(list);
        self.op(s.into(), &format!("(({}){t})", s.name()), [i, i, i], size, uniform)
    }

    /// `condition ? a : b`.
    pub(super) fn select(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        let condition = self.condition(size / 2, uniform);
        let mut operands = vec![condition];
        operands.extend(self.many([ty, ty], size, uniform));
        Expr::new(ty, "(($0) ? ($1) : ($2))", operands)
    }

    /// A conversion of a float, whose value outside of the integer's range is a limit.
    fn integer_of_float(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        let f = self.rng.pick(&Scalar::FLOATS);
        if self.rng.chance(3) {
            let t = format!("(({})bits_{}($0))", s.name(), f.name());
            return self.op(s.into(), &t, [f.into()], size, uniform);
        }
        let limit = 2f64.powi(s.bits() as i32 - s.is_signed() as i32);
        let compare = if f == F64 { F64 } else { F32 };
        let (low, least, greatest) = match s.is_signed() {
            true => {
                (format!("c_ >= -{limit:?}"), format!("1ul << {}", s.bits() - 1), u64::MAX >> (65 - s.bits()))
            }
            false => ("c_ > -1.0".to_string(), "0".to_string(), u64::MAX >> (64 - s.bits())),
        };
        // In f32, -129 and so on are far from the limit's neighbours: comparisons are exact.
        let (n, c, name, rounding) = (f.name(), compare.name(), s.name(), self.rounding());
        let t = format!(
            "({{ {n} x_ = {rounding}($0); {c} c_ = x_; {low} && c_ < ({c}){limit:?} ? ({name})x_ : c_ != c_ ? ({name})0 : c_ < 0 ? ({name})({least}) : ({name}){greatest}ul; }})"
        );
        self.op(s.into(), &t, [f.into()], size, uniform)
    }

    /// A saturated conversion of a wider signed integer.
    fn saturated(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        let from = if s.bits() < 32 { self.rng.pick(&[I32, I16, I64]) } else { I64 };
        let (low, high) = match (s.is_signed(), s.bits()) {
            (_, 64) => (0, i64::MAX),
            (true, bits) => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            (false, bits) => (0, (1i64 << bits) - 1),
        };
        let (low, high) = match from.bits() <= s.bits() {
            true => (low.max(-0x8000), high.min(0x7fff)),
            false => (low, high),
        };
        let (n, f) = (s.name(), from.name());
        let t = format!(
            "({{ {f} x_ = $0; ({n})(x_ < ({f}){low} ? ({f}){low} : x_ > ({f}){high}l ? ({f}){high}l : x_); }})"
        );
        self.op(s.into(), &t, [from.into()], size, uniform)
    }

    /// An element of a vector, at a constant or at any position.
    fn element(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        let lanes = self.rng.pick(&LANES);
        let vector = Ty { lanes, ..ty };
        if lanes != 3 && self.rng.chance(3) {
            let t = format!("({{ {vector} v_ = $0; v_[($1) & {}]; }})", lanes - 1);
            return self.op(ty, &t, [vector, U32.into()], size, uniform);
        }
        let t = format!("($0).s{:x}", self.rng.below(lanes as u64));
        self.op(ty, &t, [vector], size, uniform)
    }

    fn float(&mut self, s: Scalar, size: u32, uniform: bool) -> Expr {
        let ty = Ty::from(s);
        let name = s.name();
        let text = |t: &str| t.replace("TY", name);
        let two = |g: &mut Self, t: &str| g.op(ty, &text(t), [ty, ty], size, uniform);
        match self.rng.below(22) {
            20 | 21 => self.float_function(s, size, uniform),
            0..=2 => self.sum(ty, size, uniform),
            3 | 4 => two(self, "(($0) * ($1))"),
            5 => {
                let f = if s == F16 {
                    "fma_f16($0, $1, $2)"
                } else {
                    "__builtin_elementwise_fma((TY)($0), (TY)($1), (TY)($2))"
                };
                self.op(ty, &text(f), [ty, ty, ty], size, uniform)
            }
            6 => self.op(ty, "(-($0))", [ty], size, uniform),
            7 => {
                let f = self.rng.pick(&["abs", "floor", "ceil", "trunc", "rint", "roundeven"]);
                self.op(ty, &text(&format!("__builtin_elementwise_{f}((TY)($0))")), [ty], size, uniform)
            }
            // The sign of a zero is undefined.
            8 => {
                let f = self.rng.pick(&["min", "max"]);
                two(self, &format!("(__builtin_elementwise_{f}((TY)($0), (TY)($1)) + (TY)0)"))
            }
            9 if s != F16 => two(self, "(($0) / ($1))"),
            10 if s != F16 => self.op(ty, &text("__builtin_elementwise_sqrt((TY)($0))"), [ty], size, uniform),
            // The sign of a NaN is undefined.
            11 => two(
                self,
                "({ TY x_ = $0, y_ = $1; __builtin_elementwise_copysign(x_, y_ != y_ ? (TY)1 : y_); })",
            ),
            12 => self.select(ty, size, uniform),
            13 | 14 => self.converted(ty, size, uniform),
            15 | 16 => self.load(ty, size, uniform),
            17 => self.element(ty, size, uniform),
            18 if s != F16 => {
                let f = if s == F32 {
                    "__builtin_ldexpf($0, (i32)($1) % 300)"
                } else {
                    "__builtin_ldexp($0, (i32)($1) % 2200)"
                };
                self.op(ty, f, [ty, I32.into()], size, uniform)
            }
            // Not `x < y ? x : y`, which LLVM 19 makes a minimum that may return -0 where `y` is 0.
            _ => two(self, "({ TY x_ = $0, y_ = $1; x_ < y_ ? x_ : y_ + (TY)1; })"),
        }
    }

    /// A sum or difference of floats. LLVM 19 replaces `0 - x` by `-x` where another operation can negate its
    /// operand, which differs for a zero: minuends are not constants.
    pub(super) fn sum(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        let mut sign = self.rng.pick(&["+", "-"]);
        let mut operands = self.many([ty, ty], size, uniform);
        let constant = |e: &Expr| e.operands.is_empty() && e.text.starts_with(['(', 'm']);
        if sign == "-" && constant(&operands[0]) {
            operands.swap(0, 1);
            sign = if constant(&operands[0]) { "+" } else { "-" };
        }
        Expr::new(ty, format!("(($0) {sign} ($1))"), operands)
    }

    /// A conversion to floats, of the same number of lanes.
    pub(super) fn converted(&mut self, ty: Ty, size: u32, uniform: bool) -> Expr {
        let from = loop {
            let from = self.scalar();
            // LLVM converts wider integers to f16 by way of f32, with two roundings.
            if from != ty.scalar && (ty.scalar != F16 || from.is_float() || from.bits() < 32) {
                break from;
            }
        };
        // LLVM 19 fuses a product and its conversion to f16, which loses the sign of a zero.
        let zero = if ty.scalar == F16 { " + (f16)0" } else { "" };
        let t = match ty.lanes {
            1 => format!("(({ty})($0){zero})"),
            _ => format!("(__builtin_convertvector(($0), {ty}){zero})"),
        };
        self.op(ty, &t, [ty.of(from)], size, uniform)
    }
}
