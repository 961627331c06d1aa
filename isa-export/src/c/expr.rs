//! Expressions in C. Values of at most 64 bits are of type `isa_u64`, others of type `isa_u128`; the bits beyond a
//! value's width are zero.

use super::body::Writer;
use super::names::{control, field, operand, role, space};
use isa_spec::arith::mask;
use isa_spec::pcode::ir::*;

/// Returns the C type of values of a width.
pub(super) fn c_type(width: u32) -> &'static str {
    if width <= 64 { "isa_u64" } else { "isa_u128" }
}

/// A constant.
pub(super) fn constant(value: u128, width: u32) -> String {
    if width > 64 {
        return format!("isa_wide(UINT64_C({:#x}), UINT64_C({:#x}))", (value >> 64) as u64, value as u64);
    }
    match value {
        0..=9 => format!("UINT64_C({value})"),
        _ => format!("UINT64_C({value:#x})"),
    }
}

/// Clears the bits beyond a width of a text whose type is that of the width.
fn masked(text: &str, width: u32) -> String {
    match width {
        64 | 128 => text.to_string(),
        _ if width > 64 => format!("({text} & isa_mask({width}))"),
        _ => format!("({text} & {})", constant(mask(width), width)),
    }
}

/// Truncates, or extends with zeros.
pub(super) fn fit(text: String, from: u32, to: u32) -> String {
    let cast = c_type(from) != c_type(to);
    let text = if cast { format!("({})({text})", c_type(to)) } else { text };
    if to < from {
        masked(&text, to)
    } else if cast {
        format!("({text})")
    } else {
        text
    }
}

/// `width` bits from bit `lo` on of a value of `of` bits; those beyond its end are zero.
pub(super) fn part(text: &str, of: u32, lo: u32, width: u32) -> String {
    let text = if lo == 0 { text.to_string() } else { format!("({text} >> {lo})") };
    let cast = c_type(of) != c_type(width);
    let text = if cast { format!("(({})({text}))", c_type(width)) } else { text };
    if width < of - lo { masked(&text, width) } else { text }
}

/// The text of a function with a result of 128 bits.
fn narrowed(call: String, width: u32) -> String {
    if width <= 64 { format!("(isa_u64){call}") } else { call }
}

/// A condition as a value.
fn flag(condition: String) -> String {
    format!("(isa_u64)({condition})")
}

/// The address of a float format.
pub(super) fn format_of(ty: Ty) -> &'static str {
    match ty {
        Ty::F16 => "&isa_f16",
        Ty::BF16 => "&isa_bf16",
        Ty::F64 => "&isa_f64",
        Ty::FP8 => "&isa_fp8",
        Ty::BF8 => "&isa_bf8",
        _ => "&isa_f32",
    }
}

impl Writer<'_> {
    /// Returns an expression of `e.ty.width()` bits.
    pub fn expr(&mut self, e: &Expr) -> String {
        let width = e.ty.width();
        match &e.kind {
            ExprKind::Const(bits) => constant(bits & mask(width), width),
            ExprKind::Local(id) => {
                let own = self.sem.locals[*id as usize].ty.width();
                fit(self.local(*id), own, width)
            }
            ExprKind::Element(id, index) => {
                let own = self.sem.locals[*id as usize].ty.width();
                let element = self.element(*id, index);
                fit(element, own, width)
            }
            ExprKind::Operand(one) => operand(role(*one), width),
            ExprKind::OperandIndex(one) => fit(format!("(isa_u64)m->index[{}]", role(*one)), 32, width),
            ExprKind::OperandLane { role: one, lane, index } => {
                let (lane, index) = (self.dword(lane), self.dword(index));
                fit(format!("(isa_u64)m->operand_lane(m, {}, {lane}, {index})", role(*one)), 32, width)
            }
            ExprKind::Field(name) => fit(format!("(isa_u64)m->field[{}]", field(name)), 32, width),
            ExprKind::State(state) => self.state(*state, width),
            ExprKind::Slice { base, lo } => {
                let (of, text) = (base.ty.width(), self.expr(base));
                self.slice(text, of, lo, width)
            }
            ExprKind::Unary(op, a) => {
                let value = self.expr(a);
                match op {
                    UnOp::Not => masked(&format!("~{value}"), width),
                    UnOp::LogicalNot => flag(format!("{value} == 0")),
                    UnOp::Neg if a.ty.is_float() => {
                        format!("({value} ^ {})", constant(1 << (width - 1), width))
                    }
                    UnOp::Neg => masked(&format!("(0 - {value})"), width),
                }
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, width),
            ExprKind::Select(c, a, b) => {
                let (c, a, b) = (self.condition(c), self.expr(a), self.expr(b));
                format!("({c} ? {a} : {b})")
            }
            ExprKind::Convert(a) => self.convert(a, e.ty),
            ExprKind::Bits(a) => fit(self.expr(a), a.ty.width(), width),
            ExprKind::Call(Builtin::Pure(builtin), args) => self.pure(*builtin, args, width),
            ExprKind::Call(Builtin::Control(builtin), args) => fit(self.control(*builtin, args), 128, width),
            ExprKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.dword(lane), self.dword(reg));
                fit(format!("(isa_u64)m->vgpr(m, {lane}, {reg})"), 32, width)
            }
            ExprKind::Sgpr { reg } => {
                let reg = self.dword(reg);
                fit(format!("(isa_u64)m->sgpr(m, {reg})"), 32, width)
            }
            ExprKind::Mem { space, addr } => self.load(*space, addr, width),
            ExprKind::Concat(parts) => {
                let mut lo = 0;
                let mut texts = Vec::new();
                for part in parts.iter().rev() {
                    let text = fit(self.expr(part), part.ty.width(), width);
                    texts.push(if lo == 0 { text } else { format!("{text} << {lo}") });
                    lo += part.ty.width();
                }
                texts.reverse();
                format!("({})", texts.join(" | "))
            }
        }
    }

    /// An expression of type `uint32_t`.
    pub fn dword(&mut self, e: &Expr) -> String {
        format!("(uint32_t){}", self.expr(e))
    }

    /// A C condition.
    pub fn condition(&mut self, e: &Expr) -> String {
        format!("({} != 0)", self.expr(e))
    }

    pub fn element(&mut self, id: LocalId, index: &Expr) -> String {
        let local = &self.sem.locals[id as usize];
        let (width, count) = (local.ty.width(), local.len.unwrap_or(1));
        let index = self.expr(index);
        let name = if width <= 64 { "isa_element64" } else { "isa_element" };
        format!("{name}({}, {count}, {index})", self.local(id))
    }

    pub fn load(&mut self, of: Space, addr: &Expr, width: u32) -> String {
        let address = fit(self.expr(addr), addr.ty.width(), 64);
        fit(format!("m->load(m, {}, {address}, {})", space(of), width.div_ceil(8)), 128, width)
    }

    pub fn control(&mut self, builtin: Control, args: &[Expr]) -> String {
        let texts: Vec<String> = args.iter().map(|a| self.expr(a)).collect();
        let list = match texts.len() {
            0 => "NULL".to_string(),
            _ => format!("(const isa_u128[]){{{}}}", texts.join(", ")),
        };
        format!("m->control(m, {}, {list}, {})", control(builtin), texts.len())
    }

    /// Bits from a position on; those beyond the end are zero.
    pub fn slice(&mut self, text: String, of: u32, lo: &Expr, width: u32) -> String {
        if let ExprKind::Const(lo) = lo.kind {
            return match lo as u32 {
                lo if lo >= of => constant(0, width),
                lo => part(&text, of, lo, width),
            };
        }
        let lo = self.expr(lo);
        let name = if of <= 64 { "isa_shr64" } else { "isa_shr" };
        fit(format!("{name}({text}, {lo})"), if of <= 64 { 64 } else { 128 }, width)
    }

    /// A value of architectural state.
    pub fn state(&mut self, state: State, width: u32) -> String {
        let (text, own) = match state {
            State::Exec => ("m->exec", 64),
            State::ExecLo => ("(m->exec & UINT64_C(0xffffffff))", 32),
            State::ExecHi => ("(m->exec >> 32)", 32),
            State::Vcc => ("m->vcc", 64),
            State::VccLo => ("(m->vcc & UINT64_C(0xffffffff))", 32),
            State::VccHi => ("(m->vcc >> 32)", 32),
            State::Vccz => ("(isa_u64)(m->vcc == 0)", 1),
            State::Execz => ("(isa_u64)(m->exec == 0)", 1),
            State::Scc => ("(isa_u64)m->scc", 1),
            State::M0 => ("(isa_u64)m->m0", 32),
            State::Pc => ("m->pc", 64),
            State::InstSize => ("(isa_u64)m->inst_size", 32),
            State::Mode => ("(isa_u64)m->mode", 32),
            State::Status => ("(isa_u64)m->status", 32),
            State::LaneId => ("(isa_u64)m->lane", 32),
            State::Wave32 => ("(isa_u64)(m->wave_size == 32)", 1),
            State::Wave64 => ("(isa_u64)(m->wave_size == 64)", 1),
            State::WaveSize => ("(isa_u64)m->wave_size", 32),
            State::VgprSize => ("(isa_u64)m->vgpr_size", 32),
            State::WaveId => ("(isa_u64)m->wave_id", 32),
            State::LdsSize => ("(isa_u64)m->lds_size", 32),
            State::ScratchBase => ("m->scratch_base", 64),
            State::SharedBase => ("m->shared_base", 64),
            State::PrivateBase => ("m->private_base", 64),
            State::TrapBase => ("m->trap_base", 64),
        };
        fit(text.to_string(), own, width)
    }

    /// An argument that names MODE as it was when the body started.
    fn mode(&mut self) -> &'static str {
        self.uses_mode = true;
        "mode"
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, width: u32) -> String {
        let (x, y) = (self.expr(a), self.expr(b));
        if a.ty.is_float() {
            return self.float_binary(op, &x, &y, a.ty, b.ty);
        }
        let (own, signed) = (a.ty.width(), a.ty.is_signed());
        let ordered = |x: &str, y: &str, zero: bool| {
            if signed {
                format!("isa_less_signed({x}, {y}, {own})")
            } else if zero {
                format!("isa_less({x}, {y})")
            } else {
                format!("{x} < {y}")
            }
        };
        // Compilers warn of comparisons with constants that are decided.
        let constants = matches!(a.kind, ExprKind::Const(_)) || matches!(b.kind, ExprKind::Const(_));
        let equal = |x: &str, y: &str| {
            if constants { format!("isa_equal({x}, {y})") } else { format!("{x} == {y}") }
        };
        let shifts = if own <= 64 { "64" } else { "" };
        match op {
            BinOp::Add => masked(&format!("({x} + {y})"), width),
            BinOp::Sub => masked(&format!("({x} - {y})"), width),
            BinOp::Mul => masked(&format!("({x} * {y})"), width),
            BinOp::And => format!("({x} & {y})"),
            BinOp::Or => format!("({x} | {y})"),
            BinOp::Xor => format!("({x} ^ {y})"),
            BinOp::Div if signed => narrowed(format!("isa_divide_signed({x}, {y}, {own})"), width),
            BinOp::Div => narrowed(format!("isa_divide({x}, {y}, {own})"), width),
            BinOp::Rem if signed => narrowed(format!("isa_remainder_signed({x}, {y}, {own})"), width),
            BinOp::Rem => narrowed(format!("isa_remainder({x}, {y})"), width),
            BinOp::Pow => {
                let (bits, negative) = (b.ty.width(), b.ty.is_signed());
                narrowed(format!("isa_integer_power({x}, {y}, {bits}, {negative}, {width})"), width)
            }
            BinOp::Shl => format!("isa_shl{shifts}({x}, {y}, {width})"),
            BinOp::Shr if signed => narrowed(format!("isa_sar({x}, {y}, {width})"), width),
            BinOp::Shr => format!("isa_shr{shifts}({x}, {y})"),
            BinOp::Eq => flag(equal(&x, &y)),
            BinOp::Ne | BinOp::Lg => flag(format!("!({})", equal(&x, &y))),
            BinOp::Lt => flag(ordered(&x, &y, constants)),
            BinOp::Gt => flag(ordered(&y, &x, constants)),
            BinOp::Le => flag(format!("!({})", ordered(&y, &x, constants))),
            BinOp::Ge => flag(format!("!({})", ordered(&x, &y, constants))),
            BinOp::LogicalAnd => flag(format!("{x} != 0 && {y} != 0")),
            BinOp::LogicalOr => flag(format!("{x} != 0 || {y} != 0")),
        }
    }

    fn float_binary(&mut self, op: BinOp, x: &str, y: &str, ty: Ty, right: Ty) -> String {
        let (f, mode) = (format_of(ty), self.mode());
        let order = format!("isa_order({f}, {x}, {y}, {mode})");
        match op {
            BinOp::Add => format!("isa_add({f}, {x}, {y}, {mode})"),
            BinOp::Sub => format!("isa_sub({f}, {x}, {y}, {mode})"),
            BinOp::Mul => format!("isa_mul({f}, {x}, {y}, {mode})"),
            BinOp::Div => format!("isa_div({f}, {x}, {y}, {mode})"),
            BinOp::Pow => {
                let power = if right.is_float() { format_of(right) } else { "NULL" };
                format!("isa_float_power({f}, {x}, {y}, {power}, {mode})")
            }
            // The order is -1, 0 or 1, and 2 with a NaN.
            BinOp::Eq => flag(format!("{order} == 0")),
            BinOp::Ne => flag(format!("{order} != 0")),
            BinOp::Lt => flag(format!("{order} < 0")),
            BinOp::Le => flag(format!("{order} <= 0")),
            BinOp::Gt => flag(format!("{order} == 1")),
            BinOp::Ge => flag(format!("(unsigned){order} < 2")),
            BinOp::Lg => flag(format!("({order} & 1) != 0")),
            // The checker does not accept these for floats.
            _ => constant(0, ty.width()),
        }
    }

    fn convert(&mut self, a: &Expr, to: Ty) -> String {
        let (from, text) = (a.ty, self.expr(a));
        let (own, width) = (from.width(), to.width());
        match (from.is_float(), to.is_float()) {
            (false, false) if from.is_signed() && width > own => {
                let name = if width <= 64 { "isa_sign_extend64" } else { "isa_sign_extend" };
                format!("{name}({text}, {own}, {width})")
            }
            (false, false) => fit(text, own, width),
            (true, true) => self.convert_float(&text, from, to, width <= own),
            (true, false) => self.integer_of(&text, from, width, to.is_signed(), "ISA_TOWARD_ZERO"),
            (false, true) => self.float_of(&text, from, to),
        }
    }

    fn convert_float(&mut self, text: &str, from: Ty, to: Ty, quiet: bool) -> String {
        let mode = self.mode();
        format!("isa_convert({}, {}, {text}, {quiet}, {mode})", format_of(from), format_of(to))
    }

    fn integer_of(&mut self, text: &str, from: Ty, width: u32, signed: bool, round: &str) -> String {
        let mode = self.mode();
        let f = format_of(from);
        narrowed(format!("isa_to_integer({f}, {text}, {width}, {signed}, {round}, {mode})"), width)
    }

    fn float_of(&mut self, text: &str, from: Ty, to: Ty) -> String {
        let mode = self.mode();
        let (width, signed) = (from.width(), from.is_signed());
        format!("isa_from_integer({}, {text}, {width}, {signed}, {mode})", format_of(to))
    }

    fn pure(&mut self, builtin: Pure, args: &[Expr], width: u32) -> String {
        let ty = args.first().map_or(Ty::U(32), |a| a.ty);
        let (own, signed, f) = (ty.width(), ty.is_signed(), format_of(ty));
        let texts: Vec<String> = args.iter().map(|a| self.expr(a)).collect();
        let text = |at: usize| texts.get(at).map_or("UINT64_C(0)", String::as_str);
        let (a, b, c) = (text(0), text(1), text(2));
        let list = texts.join(", ");
        let zero = "ISA_TOWARD_ZERO";
        // A function of the format, the arguments and MODE.
        let in_mode = |this: &mut Self, name: &str| format!("{name}({f}, {list}, {})", this.mode());
        let test = |name: &str| format!("(isa_u64){name}({f}, {a})");
        let integral =
            |this: &mut Self, round: &str| format!("isa_integral({f}, {a}, {round}, {})", this.mode());
        let approximate =
            |this: &mut Self, name: &str| format!("isa_approximate({name}, {f}, {a}, {})", this.mode());
        let min_max = |this: &mut Self, max: bool, nan: bool| {
            format!("isa_min_max({f}, {a}, {b}, {max}, {nan}, {})", this.mode())
        };
        let narrow = |to: u32, signed_to: bool, clamp: &str| {
            narrowed(format!("isa_narrow({a}, {own}, {signed}, {to}, {signed_to}, {clamp})"), width)
        };
        let norm =
            |this: &mut Self, signed: bool| format!("isa_to_norm({f}, {a}, {signed}, 16, {})", this.mode());
        match builtin {
            Pure::Fma => in_mode(self, "isa_fma"),
            Pure::FmaRtz => {
                let mode = self.mode();
                format!("isa_fma({f}, {list}, isa_with_round({mode}, {zero}))")
            }
            Pure::FmaNearest => format!("isa_fma({f}, {list}, ISA_KEEP)"),
            Pure::FmaLdexp => in_mode(self, "isa_fma_ldexp"),
            Pure::Abs if ty.is_float() => format!("({a} & {})", constant(mask(own - 1), own)),
            Pure::Abs if signed => narrowed(format!("isa_absolute({a}, {own})"), width),
            Pure::Abs => a.to_string(),
            Pure::Floor => integral(self, "ISA_DOWN"),
            Pure::Ceil => integral(self, "ISA_UP"),
            Pure::Trunc => integral(self, zero),
            Pure::Rndne => integral(self, "ISA_NEAREST"),
            Pure::Fract => in_mode(self, "isa_fract"),
            Pure::Sqrt => in_mode(self, "isa_sqrt"),
            Pure::Rcp => in_mode(self, "isa_rcp"),
            Pure::Rsq => in_mode(self, "isa_rsq"),
            Pure::Exp2 => approximate(self, "ISA_EXP2"),
            Pure::Log2 => approximate(self, "ISA_LOG2"),
            Pure::Sin => approximate(self, "ISA_SIN"),
            Pure::Cos => approximate(self, "ISA_COS"),
            Pure::Tanh => approximate(self, "ISA_TANH"),
            Pure::Ldexp => in_mode(self, "isa_ldexp"),
            Pure::FrexpExp => in_mode(self, "isa_frexp_exp"),
            Pure::FrexpMant | Pure::Mantissa => in_mode(self, "isa_frexp_mant"),
            Pure::Exponent => format!("isa_exponent_field({f}, {a})"),
            Pure::Sign => part(a, own, own - 1, width),
            Pure::IsNan => test("isa_is_nan"),
            Pure::IsSignalNan => test("isa_is_signal_nan"),
            Pure::IsQuietNan => test("isa_is_quiet_nan"),
            Pure::IsInf => test("isa_is_infinite"),
            Pure::IsDenorm => test("isa_is_denormal"),
            Pure::CvtToQuietNan => format!("isa_quiet({f}, {a})"),
            Pure::Minimum => min_max(self, false, true),
            Pure::Maximum => min_max(self, true, true),
            Pure::MinimumNumber => min_max(self, false, false),
            Pure::MaximumNumber => min_max(self, true, false),
            Pure::SignExt => narrowed(format!("isa_sign_extend({a}, {own}, 64)"), width),
            Pure::SignExtFromBit => narrowed(format!("isa_sign_extend_from({a}, {b}, {own})"), width),
            Pure::CountOnes => format!("isa_count_ones({a})"),
            Pure::CountLeadingZeros => format!("isa_leading_zeros({a}, {own})"),
            Pure::CountTrailingZeros => format!("isa_trailing_zeros({a}, {own})"),
            Pure::ReverseBits => narrowed(format!("isa_reverse_bits({a}, {own})"), width),
            Pure::SelectBytes => format!("isa_select_bytes({a}, {b}, {c})"),
            Pure::F32ToF16 => self.convert_float(a, ty, Ty::F16, true),
            Pure::Bf16ToF32 => format!("({a} << 16)"),
            Pure::F16ToF32 | Pure::F64ToF32 | Pure::Fp8ToF32 | Pure::Bf8ToF32 => {
                self.convert_float(a, ty, Ty::F32, true)
            }
            Pure::F32ToF64 => self.convert_float(a, ty, Ty::F64, true),
            Pure::F32ToBf16 => self.convert_float(a, ty, Ty::BF16, true),
            Pure::F32ToFp8 => self.convert_float(a, ty, Ty::FP8, true),
            Pure::F32ToBf8 => self.convert_float(a, ty, Ty::BF8, true),
            Pure::F32ToF16Rtz => {
                let mode = self.mode();
                format!("isa_convert({f}, &isa_f16, {a}, true, isa_with_round({mode}, {zero}))")
            }
            Pure::F32ToFp8Sr | Pure::F32ToBf8Sr => {
                let to = if builtin == Pure::F32ToFp8Sr { "&isa_fp8" } else { "&isa_bf8" };
                format!("isa_to_float8_stochastic({to}, {list}, {})", self.mode())
            }
            Pure::F32ToI32 | Pure::F64ToI32 => self.integer_of(a, ty, 32, true, zero),
            Pure::F32ToU32 | Pure::F64ToU32 => self.integer_of(a, ty, 32, false, zero),
            Pure::F16ToI16 => self.integer_of(a, ty, 16, true, zero),
            Pure::F16ToU16 => self.integer_of(a, ty, 16, false, zero),
            Pure::F32ToU8 => {
                let round = format!("isa_rounding({f}, {})", self.mode());
                self.integer_of(a, ty, 8, false, &round)
            }
            Pure::I32ToF32 | Pure::U32ToF32 => self.float_of(a, ty, Ty::F32),
            Pure::I32ToF64 | Pure::U32ToF64 => self.float_of(a, ty, Ty::F64),
            Pure::I16ToF16 | Pure::U16ToF16 => self.float_of(a, ty, Ty::F16),
            Pure::F16ToSnorm | Pure::F32ToSnorm => norm(self, true),
            Pure::F16ToUnorm | Pure::F32ToUnorm => norm(self, false),
            Pure::U8ToU32 | Pure::U4ToU32 | Pure::U16ToU32 => a.to_string(),
            Pure::I16ToI32 => format!("isa_sign_extend64({a}, 16, 32)"),
            Pure::U32ToU16 => narrow(16, false, "true"),
            Pure::I32ToI16 => narrow(16, true, "true"),
            Pure::ClampU16 => narrow(16, false, "m->clamp"),
            Pure::ClampI16 => narrow(16, true, "m->clamp"),
            Pure::ClampU32 => narrow(32, false, "m->clamp"),
            Pure::ClampI32 => narrow(32, true, "m->clamp"),
            Pure::ClampU64 => narrow(64, false, "m->clamp"),
            Pure::ClampI64 => narrow(64, true, "m->clamp"),
            Pure::TrigPreop => format!("isa_trig_preop({list}, {})", self.mode()),
            Pure::FormatBlock | Pure::BlockFormat | Pure::BlockTexel | Pure::TileBlock | Pure::TileOffset => {
                unreachable!(
                    "only bodies of the texture unit, which are not exported, read compressed blocks"
                )
            }
            Pure::FormatBytes => format!("isa_format_bytes({a})"),
            Pure::FromFormat => format!("isa_from_format({list})"),
            Pure::ToFormat => format!("isa_to_format({list})"),
            Pure::FromFormat16 => format!("isa_from_format16({list})"),
            Pure::ToFormat16 => format!("isa_to_format16({list})"),
        }
    }
}
