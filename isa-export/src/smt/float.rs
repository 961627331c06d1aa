//! Float arithmetic on bit patterns, by the rules of `isa_spec::arith`: which NaN an operation returns, what MODE
//! flushes, and the rounding.

use super::term::{FloatOp, Rounding, Term, Terms};
use isa_spec::arith::{self, FloatEnv, Format, Round};
use isa_spec::eval;
use isa_spec::pcode::ir::{BinOp, Ty};

/// Builds float arithmetic in an environment.
pub(super) struct Floats<'t> {
    pub terms: &'t mut Terms,
    pub env: FloatEnv,
}

/// Returns the format of a float type.
///
/// # Panics
///
/// If the type is not a float: the checker of pseudocode types float operations.
pub(super) fn format_of(ty: Ty) -> Format {
    Format::of(ty).expect("a float operation has a float type")
}

/// Returns the number of fraction bits of a format.
pub(super) fn fraction_bits(ty: Ty) -> u32 {
    format_of(ty).frac_bits
}

pub(super) fn rounding(round: Round) -> Rounding {
    match round {
        Round::NearestEven => Rounding::NearestEven,
        Round::Up => Rounding::Positive,
        Round::Down => Rounding::Negative,
        Round::Zero => Rounding::Zero,
    }
}

impl Floats<'_> {
    fn constant(&mut self, bits: u128, ty: Ty) -> Term {
        self.terms.constant(bits, ty.width())
    }

    /// The magnitude: all bits but the sign.
    fn magnitude(&mut self, x: Term, ty: Ty) -> Term {
        let magnitude = self.terms.extract(x, 0, ty.width() - 1);
        self.terms.zero_extend(magnitude, ty.width())
    }

    pub fn sign(&mut self, x: Term, ty: Ty) -> Term {
        self.terms.extract(x, ty.width() - 1, 1)
    }

    pub fn is_nan(&mut self, x: Term, ty: Ty) -> Term {
        let infinity = self.constant(arith::infinity(ty), ty);
        let magnitude = self.magnitude(x, ty);
        self.terms.ult(infinity, magnitude)
    }

    pub fn is_infinite(&mut self, x: Term, ty: Ty) -> Term {
        let infinity = self.constant(arith::infinity(ty), ty);
        let magnitude = self.magnitude(x, ty);
        self.terms.eq(infinity, magnitude)
    }

    fn quiet_bit(&mut self, x: Term, ty: Ty) -> Term {
        self.terms.extract(x, fraction_bits(ty) - 1, 1)
    }

    pub fn is_quiet_nan(&mut self, x: Term, ty: Ty) -> Term {
        let (nan, quiet) = (self.is_nan(x, ty), self.quiet_bit(x, ty));
        self.terms.and(nan, quiet)
    }

    pub fn is_signal_nan(&mut self, x: Term, ty: Ty) -> Term {
        let (nan, quiet) = (self.is_nan(x, ty), self.quiet_bit(x, ty));
        let loud = self.terms.not(quiet);
        self.terms.and(nan, loud)
    }

    /// The exponent field is zero.
    fn has_no_exponent(&mut self, x: Term, ty: Ty) -> Term {
        let fraction = fraction_bits(ty);
        let exponent = self.terms.extract(x, fraction, ty.width() - 1 - fraction);
        let zero = self.terms.constant(0, ty.width() - 1 - fraction);
        self.terms.eq(exponent, zero)
    }

    pub fn is_denormal(&mut self, x: Term, ty: Ty) -> Term {
        let small = self.has_no_exponent(x, ty);
        let fraction = self.terms.extract(x, 0, fraction_bits(ty));
        let none = self.terms.constant(0, fraction_bits(ty));
        let zero = self.terms.eq(fraction, none);
        let number = self.terms.not(zero);
        self.terms.and(small, number)
    }

    pub fn is_zero(&mut self, x: Term, ty: Ty) -> Term {
        let magnitude = self.magnitude(x, ty);
        let zero = self.constant(0, ty);
        self.terms.eq(magnitude, zero)
    }

    /// Denormals become the zero of their sign.
    fn flush(&mut self, x: Term, ty: Ty) -> Term {
        let small = self.has_no_exponent(x, ty);
        let sign = self.constant(1 << (ty.width() - 1), ty);
        let zero = self.terms.and(x, sign);
        self.terms.ite(small, zero, x)
    }

    pub fn flush_input(&mut self, x: Term, ty: Ty) -> Term {
        if self.env.flush_in(ty) { self.flush(x, ty) } else { x }
    }

    fn flush_output(&mut self, x: Term, ty: Ty) -> Term {
        if self.env.flush_out(ty) { self.flush(x, ty) } else { x }
    }

    /// NaNs become quiet.
    pub fn quiet(&mut self, x: Term, ty: Ty) -> Term {
        let nan = self.is_nan(x, ty);
        let quiet = self.make_quiet(x, ty);
        self.terms.ite(nan, quiet, x)
    }

    fn make_quiet(&mut self, nan: Term, ty: Ty) -> Term {
        let bit = self.constant(1 << (fraction_bits(ty) - 1), ty);
        self.terms.or(nan, bit)
    }

    fn default_nan(&mut self, ty: Ty) -> Term {
        let infinity = arith::infinity(ty);
        let bits = eval::binary(BinOp::Sub, infinity, infinity, ty, ty, &FloatEnv::KEEP);
        self.constant(bits, ty)
    }

    /// The result of an operation of one format: the first NaN operand, the default NaN of an invalid operation,
    /// or what the theory says. Operands are flushed before, the result after.
    fn operation(&mut self, ty: Ty, operands: &[Term], op: FloatOp) -> Term {
        let inputs: Vec<Term> = operands.iter().map(|x| self.flush_input(*x, ty)).collect();
        let result = self.terms.float(op, inputs, ty.width());
        let invalid = self.is_nan(result, ty);
        let (default, flushed) = (self.default_nan(ty), self.flush_output(result, ty));
        let number = self.terms.ite(invalid, default, flushed);
        operands.iter().rev().fold(number, |rest, x| {
            let (nan, quiet) = (self.is_nan(*x, ty), self.make_quiet(*x, ty));
            self.terms.ite(nan, quiet, rest)
        })
    }

    fn round_of(&self, ty: Ty) -> Rounding {
        rounding(self.env.round(ty))
    }

    pub fn add(&mut self, a: Term, b: Term, ty: Ty) -> Term {
        let round = self.round_of(ty);
        self.operation(ty, &[a, b], FloatOp::Add(ty, round))
    }

    /// A NaN operand keeps its sign.
    pub fn sub(&mut self, a: Term, b: Term, ty: Ty) -> Term {
        let sign = self.constant(1 << (ty.width() - 1), ty);
        let (nan, negative) = (self.is_nan(b, ty), self.terms.xor(b, sign));
        let other = self.terms.ite(nan, b, negative);
        self.add(a, other, ty)
    }

    pub fn mul(&mut self, a: Term, b: Term, ty: Ty) -> Term {
        let round = self.round_of(ty);
        self.operation(ty, &[a, b], FloatOp::Mul(ty, round))
    }

    pub fn div(&mut self, a: Term, b: Term, ty: Ty) -> Term {
        let round = self.round_of(ty);
        self.operation(ty, &[a, b], FloatOp::Div(ty, round))
    }

    pub fn fma(&mut self, a: Term, b: Term, c: Term, ty: Ty) -> Term {
        let round = self.round_of(ty);
        self.operation(ty, &[a, b, c], FloatOp::Fma(ty, round))
    }

    pub fn less(&mut self, a: Term, b: Term, ty: Ty) -> Term {
        let (a, b) = (self.flush_input(a, ty), self.flush_input(b, ty));
        self.terms.float(FloatOp::Less(ty), vec![a, b], 1)
    }

    pub fn equal(&mut self, a: Term, b: Term, ty: Ty) -> Term {
        let (a, b) = (self.flush_input(a, ty), self.flush_input(b, ty));
        self.terms.float(FloatOp::Equal(ty), vec![a, b], 1)
    }

    /// The result is an operand, so that only operands are flushed.
    pub fn min_max(&mut self, a: Term, b: Term, ty: Ty, max: bool, nan_wins: bool) -> Term {
        let (a, b) = (self.flush_input(a, ty), self.flush_input(b, ty));
        let less = self.terms.float(FloatOp::Less(ty), vec![a, b], 1);
        let equal = self.terms.float(FloatOp::Equal(ty), vec![a, b], 1);
        let negative = self.sign(a, ty);
        let on_tie = if max { self.terms.not(negative) } else { negative };
        let order = if max {
            let not = self.terms.not(less);
            let unequal = self.terms.not(equal);
            self.terms.and(not, unequal)
        } else {
            less
        };
        let first = self.terms.ite(equal, on_tie, order);
        let number = self.terms.ite(first, a, b);
        let (nan_a, nan_b) = (self.is_nan(a, ty), self.is_nan(b, ty));
        let (quiet_a, quiet_b) = (self.make_quiet(a, ty), self.make_quiet(b, ty));
        let both = self.terms.and(nan_a, nan_b);
        let (only_a, only_b) = if nan_wins { (quiet_a, quiet_b) } else { (b, a) };
        let rest = self.terms.ite(nan_b, only_b, number);
        let rest = self.terms.ite(nan_a, only_a, rest);
        self.terms.ite(both, quiet_a, rest)
    }

    /// Rounds to an integral number; a zero keeps the sign.
    pub fn integral(&mut self, x: Term, ty: Ty, round: Round) -> Term {
        let x = self.flush_input(x, ty);
        let result = self.terms.float(FloatOp::Integral(ty, rounding(round)), vec![x], ty.width());
        // The theory has no rule for the sign of a zero that results.
        let sign = self.constant(1 << (ty.width() - 1), ty);
        let zero = self.terms.and(x, sign);
        let is_zero = self.is_zero(result, ty);
        let number = self.terms.ite(is_zero, zero, result);
        let (nan, quiet) = (self.is_nan(x, ty), self.make_quiet(x, ty));
        self.terms.ite(nan, quiet, number)
    }

    /// Converts between formats. A NaN keeps its sign and the upper bits of its payload.
    pub fn convert(&mut self, x: Term, from: Ty, to: Ty, quiet: bool, round: Round) -> Term {
        let x = self.flush_input(x, from);
        let op = FloatOp::Convert { from, to, rounding: rounding(round) };
        let result = self.terms.float(op, vec![x], to.width());
        let number = self.flush_output(result, to);
        let (wide, narrow) = (fraction_bits(from), fraction_bits(to));
        let fraction = self.terms.extract(x, 0, wide);
        let payload = if narrow >= wide {
            let zeros = narrow - wide;
            let fraction = self.terms.zero_extend(fraction, narrow);
            let count = self.terms.constant(zeros as u128, narrow);
            self.terms.shl(fraction, count)
        } else {
            self.terms.extract(fraction, wide - narrow, narrow)
        };
        let infinity = self.terms.constant(arith::infinity(to) >> narrow, to.width() - 1 - narrow);
        let magnitude = self.terms.concat(infinity, payload);
        let sign = self.sign(x, from);
        let nan = self.terms.concat(sign, magnitude);
        let nan = if quiet { self.make_quiet(nan, to) } else { nan };
        let is_nan = self.is_nan(x, from);
        self.terms.ite(is_nan, nan, number)
    }

    /// Rounds to an integer and saturates; a NaN returns 0.
    pub fn integer(&mut self, x: Term, ty: Ty, width: u32, signed: bool, round: Round) -> Term {
        let x = self.flush_input(x, ty);
        let whole = self.terms.float(FloatOp::Integral(ty, rounding(round)), vec![x], ty.width());
        let magnitude = self.magnitude(whole, ty);
        let negative = self.sign(x, ty);
        let bits = if signed { width - 1 } else { width };
        let limit = self.constant(arith::constant((bits as f64).exp2(), ty), ty);
        let below = self.terms.ult(magnitude, limit);
        let too_large = self.terms.not(below);
        let op = FloatOp::ToInt { from: ty, width, signed, rounding: Rounding::Zero };
        let inside = self.terms.float(op, vec![whole], width);
        let zero = self.terms.constant(0, width);
        let max = self.terms.constant(arith::mask(bits), width);
        let min = self.terms.constant(if signed { 1 << (width - 1) } else { 0 }, width);
        let largest = self.terms.ite(negative, min, max);
        let value = self.terms.ite(too_large, largest, inside);
        let value = if signed { value } else { self.terms.ite(negative, zero, value) };
        let nan = self.is_nan(x, ty);
        self.terms.ite(nan, zero, value)
    }

    pub fn number_of(&mut self, value: Term, signed: bool, to: Ty) -> Term {
        let op = FloatOp::FromInt { signed, to, rounding: self.round_of(to) };
        self.terms.float(op, vec![value], to.width())
    }
}
