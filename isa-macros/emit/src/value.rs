//! Emits values as Rust expressions, one expression per node.

use crate::name::*;
use isa_lower::ir::*;
use isa_spec::pcode::ir::{Pure, State};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Whether code runs once per lane or once per wave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Once per lane of a lane loop.
    Lane,
    /// Once per wave.
    Wave,
}

impl Scope {
    /// Emits the lane of an access.
    pub fn lane(self) -> TokenStream {
        match self {
            Scope::Lane => quote! { Some(lane) },
            Scope::Wave => quote! { None },
        }
    }

    /// Emits each value as a Rust expression.
    pub fn values<'v>(self, list: impl IntoIterator<Item = &'v Value>) -> Vec<TokenStream> {
        list.into_iter().map(|v| self.value(v)).collect()
    }

    /// Emits a value as a signed Rust integer.
    fn signed(self, value: &Value, width: u32) -> TokenStream {
        let bits = value.host_width.bits();
        let ty = format_ident!("i{bits}");
        let tokens = self.atom(value);
        if width == bits {
            quote! { (#tokens as #ty) }
        } else {
            let shift = bits - width;
            quote! { (((#tokens << #shift) as #ty) >> #shift) }
        }
    }

    /// Emits a value as an operand: in parentheses, unless it is one token.
    pub fn atom(self, value: &Value) -> TokenStream {
        parenthesised(self.value(value))
    }

    fn atoms<'v>(self, list: impl IntoIterator<Item = &'v Value>) -> Vec<TokenStream> {
        list.into_iter().map(|v| self.atom(v)).collect()
    }

    /// Emits a value as an expression, which may need parentheses as an operand.
    pub fn value(self, value: &Value) -> TokenStream {
        let bits = value.host_width.bits();
        let own = host_width(value.host_width);
        match &value.kind {
            ValueKind::Const(bits) => literal(*bits, value.host_width),
            ValueKind::Var(v) => {
                let name = var(*v);
                quote! { #name }
            }
            ValueKind::Element(id, index) => {
                let (name, index) = (local(*id), self.atom(index));
                quote! { #name.get(#index as usize).copied().unwrap_or(0) }
            }
            ValueKind::LaneElement(id, index) => {
                let (name, index) = (each(*id), self.atom(index));
                quote! { #name.get(#index as usize).map_or(0, |row| row[l]) }
            }
            ValueKind::Field(name) => field(name),
            ValueKind::SourceBit { field, source } => {
                let field = match *field {
                    "NEG" => quote! { neg },
                    "NEG_HI" => quote! { neg_hi },
                    "OPSEL" => quote! { op_sel },
                    _ => quote! { op_sel_hi },
                };
                quote! { cx.raw(op).by_source.#field()[#source] }
            }
            ValueKind::OperandNumber(Slot::Fifth) => quote! { cx.raw(op).fifth.number() as u32 },
            ValueKind::OperandNumber(Slot::Source(at)) => quote! { op.src[#at].number() as u32 },
            ValueKind::OperandNumber(Slot::ScalarResult | Slot::VectorResult) => quote! { op.d as u32 },
            ValueKind::State(of) => state(*of),
            ValueKind::LaneBit(Mask::D0) | ValueKind::MaskOperand(Mask::D0) => quote! { m_d0 as #own },
            ValueKind::LaneBit(Mask::Vcc) => quote! { (vcc_in >> l) & 1 },
            ValueKind::LaneBit(Mask::Exec) => quote! { (exec >> l) & 1 },
            ValueKind::MaskOperand(Mask::Vcc) => quote! { ((vcc_in as u64) << lane_base) as #own },
            ValueKind::MaskOperand(Mask::Exec) => quote! { cx.wave.exec() as #own },
            ValueKind::Scalar { slot: at, dwords, how } => {
                let at = slot(*at);
                let value = match (how, dwords) {
                    (Scalar::Direct, 1) => quote! { unsafe { rt::fast_scalar1(cx, #at) } },
                    (Scalar::Direct, 2) => quote! { unsafe { rt::fast_scalar2(cx, #at) } },
                    (_, 1) => quote! { rt::scalar1(cx, #at) },
                    (_, 2) => quote! { rt::scalar2(cx, #at) },
                    _ => quote! { rt::scalar4(cx, #at) },
                };
                match how {
                    Scalar::Modified(source) => {
                        quote! { rt::once_source(cx, op, #source, #value as u128) as #own }
                    }
                    Scalar::Any | Scalar::Direct => quote! { #value as #own },
                }
            }
            ValueKind::StagedLane { role, lane } => {
                let (vecs, lane) = (format_ident!("r_{}", role_name(*role)), self.value(lane));
                quote! { rt::staged_lane(#vecs, #lane, lane_base) }
            }
            ValueKind::StagedDword { role, index } => {
                let (vecs, index) = (format_ident!("r_{}", role_name(*role)), self.atom(index));
                quote! { (*#vecs.add(#index as usize)).0[l] }
            }
            ValueKind::OperandLane { slot: at, lane, index } => {
                let (at, lane, index) = (slot(*at), self.value(lane), self.value(index));
                quote! { rt::operand_lane(cx, #at, #lane, #index) }
            }
            ValueKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.value(lane), self.value(reg));
                quote! { rt::vgpr(cx, #lane, #reg) }
            }
            ValueKind::Sgpr { reg } => {
                let reg = self.value(reg);
                quote! { cx.wave.sgpr(#reg) }
            }
            ValueKind::Load { space, addr, bytes, retry } => {
                let (space, addr, lane) = (variant(space), self.value(addr), self.lane());
                let bytes = *bytes as usize;
                let keep = retry.then(|| quote! { loaded = v; });
                quote! {
                    ({ let addr = #addr; match rt::load::<#bytes>(cx, rt::Space::#space, addr, #lane) { Ok(v) => { #keep v } Err(flow) => return flow } }) as #own
                }
            }
            ValueKind::Loaded { access, dwords } => {
                let loaded = format_ident!("loaded{access}");
                let parts = (0..*dwords as usize).map(|k| match 32 * k as u32 {
                    0 => quote! { (#loaded[#k].0[l] as #own) },
                    shift => quote! { ((#loaded[#k].0[l] as #own) << #shift) },
                });
                quote! { #(#parts)|* }
            }
            ValueKind::VectorRead { read, at } => {
                let name = format_ident!("x{read}");
                match at {
                    VectorAt::Own => quote! { #name[l] },
                    VectorAt::Same => quote! { #name },
                    VectorAt::Lane(lane) => {
                        let lane = self.value(lane);
                        quote! { rt::lane_of(&#name, #lane) }
                    }
                }
            }
            ValueKind::SimdResult { call } => {
                let name = format_ident!("simd{call}");
                quote! { #name.0[l] }
            }
            ValueKind::WordAddress(addr) => {
                let addr = self.value(addr);
                quote! { rt::word_address(#addr) }
            }
            ValueKind::Resize(value) => {
                let value = self.atom(value);
                quote! { #value as #own }
            }
            ValueKind::SignExtend { value, width } => {
                let (value, wide) = (self.signed(value, *width), format_ident!("i{bits}"));
                quote! { #value as #wide as #own }
            }
            ValueKind::Op1(op, x) => self.op1(*op, x),
            ValueKind::Op2(op, a, b) => {
                let (a, b, arg) = (self.atom(a), self.atom(b), self.value(b));
                match op {
                    Op2::Add => quote! { #a.wrapping_add(#arg) },
                    Op2::Sub => quote! { #a.wrapping_sub(#arg) },
                    Op2::Mul => quote! { #a.wrapping_mul(#arg) },
                    Op2::And => quote! { #a & #b },
                    Op2::Or => quote! { #a | #b },
                    Op2::Xor => quote! { #a ^ #b },
                }
            }
            ValueKind::Div { int: Int { width, signed }, remainder, a, b } => {
                let f = format_ident!("{}{bits}", if *remainder { "rem" } else { "div" });
                let (a, b) = (self.value(a), self.value(b));
                quote! { rt::#f(#a, #b, #width, #signed) }
            }
            ValueKind::ShlConst(x, n) => {
                let x = self.atom(x);
                quote! { #x << #n }
            }
            ValueKind::ShrConst(x, n) => {
                let x = self.atom(x);
                quote! { #x >> #n }
            }
            ValueKind::Shl(x, n) => {
                let (f, x, n) = (format_ident!("shl{bits}"), self.value(x), self.value(n));
                quote! { rt::#f(#x, #n) }
            }
            ValueKind::Shr(x, n) => {
                let (f, x, n) = (format_ident!("shr{bits}"), self.value(x), self.value(n));
                quote! { rt::#f(#x, #n) }
            }
            ValueKind::Sar { value, count, width } => {
                let (f, x, n) = (format_ident!("sar{bits}"), self.signed(value, *width), self.value(count));
                quote! { rt::#f(#x, #n) as #own }
            }
            ValueKind::Compare { op, int, a, b } => {
                let ordered = !matches!(op, Compare::Eq | Compare::Ne);
                let side = |v| if int.signed && ordered { self.signed(v, int.width) } else { self.atom(v) };
                let (a, b) = (side(a), side(b));
                let op = match op {
                    Compare::Eq => quote! { == },
                    Compare::Ne => quote! { != },
                    Compare::Lt => quote! { < },
                    Compare::Le => quote! { <= },
                    Compare::Gt => quote! { > },
                    Compare::Ge => quote! { >= },
                };
                quote! { (#a #op #b) as u32 }
            }
            ValueKind::LogicalAnd(a, b) => {
                let (a, b) = (self.atom(a), self.atom(b));
                quote! { (#a != 0 && #b != 0) as u32 }
            }
            ValueKind::LogicalOr(a, b) => {
                let (a, b) = (self.atom(a), self.atom(b));
                quote! { (#a != 0 || #b != 0) as u32 }
            }
            ValueKind::Select(c, a, b) => {
                // Without the hint, a condition on a bit of a mask would compile to a branch per lane instead
                // of a blend.
                let plain = |v: &Value| matches!(v.kind, ValueKind::Var(_) | ValueKind::Const(_));
                let hinted = plain(a) && plain(b);
                let (c, a, b) = (self.atom(c), self.value(a), self.value(b));
                if hinted {
                    quote! { core::hint::select_unpredictable(#c != 0, #a, #b) }
                } else {
                    quote! { if #c != 0 { #a } else { #b } }
                }
            }
            ValueKind::Extract { value, lo } => {
                let (of, all) = (host_width(value.host_width), value.host_width.bits());
                let (value, lo) = (self.value(value), self.value(lo));
                quote! { { let lo = #lo; let v: #of = #value; if lo >= #all { 0 } else { (v >> lo) as #own } } }
            }
            ValueKind::Insert { old, value: new, lo, width } => {
                let (old, new, lo) = (self.value(old), self.atom(new), self.value(lo));
                let mask = literal(low_bits(*width), value.host_width);
                quote! {
                    { let lo = #lo; let v = #new & #mask;
                      let old = #old;
                      if lo >= #bits { old } else { (old & !(#mask << lo)) | (v << lo) } }
                }
            }
            ValueKind::Concat(parts) => {
                let parts = parts.iter().map(|(part, lo)| match (self.atom(part), lo) {
                    (part, 0) => part,
                    (part, lo) => quote! { (#part << #lo) },
                });
                quote! { #(#parts)|* }
            }
            ValueKind::Saturate { value, from, to } => {
                let f = format_ident!("narrow{}", value.host_width.bits());
                let x = self.value(value);
                let (from_width, from_signed, width, signed) = (from.width, from.signed, to.width, to.signed);
                quote! { rt::#f(#x, #from_width, #from_signed, #width, #signed, clamp) as #own }
            }
            ValueKind::Float { op, ty, args } => {
                let (f, args) =
                    (format_ident!("{}_{}", float_name(*op), float_suffix(*ty)), self.values(args));
                quote! { rt::#f(m, #(#args),*) }
            }
            ValueKind::FloatBits { op, ty, value } => {
                let f = format_ident!("{}_{}", float_bits_name(*op), float_suffix(*ty));
                let x = self.value(value);
                quote! { rt::#f(#x) }
            }
            ValueKind::Conversion(conversion, x) => {
                let (f, x) = (format_ident!("{}", conversion_name(*conversion)), self.value(x));
                quote! { rt::#f(m, #x) }
            }
            ValueKind::Convert { value, from, to } => {
                let (x, from, to) = (self.atom(value), ty_token(*from), ty_token(*to));
                quote! { rt::convert(#x as u128, #from, #to, m.env()) as #own }
            }
            ValueKind::Pow { base, power, ty, power_ty } => {
                let (x, y) = (self.atom(base), self.atom(power));
                let (ty, power_ty) = (ty_token(*ty), ty_token(*power_ty));
                quote! { rt::pow(#x as u128, #y as u128, #ty, #power_ty, m.env()) as #own }
            }
            ValueKind::Simd { builtin: Pure::SelectBytes, args, .. } => {
                let args = self.values(args);
                quote! { rt::select_bytes(#(#args),*) }
            }
            ValueKind::Simd { builtin, ty, args } => {
                let (name, args, ty) = (variant(builtin), self.wide(args), ty_token(*ty));
                quote! { rt::pure(rt::Pure::#name, &#args, &[#ty], m.env()) as #own }
            }
            ValueKind::Pure { builtin: Pure::FromFormat, args, .. } => {
                let args = self.values(args);
                quote! { rt::from_format(#(#args),*) }
            }
            ValueKind::Pure { builtin, args, types } => {
                let (name, args) = (variant(builtin), self.wide(args));
                let types = types.iter().map(|ty| ty_token(*ty));
                quote! {
                    rt::pure(rt::Pure::#name, &#args, &[#(#types),*], m.env()) as #own
                }
            }
            ValueKind::Control { builtin, args } => {
                let (name, args) = (variant(builtin), self.wide(args));
                quote! {
                    ({ let args = #args; match rt::control(cx, rt::Control::#name, &args) { Ok(v) => v, Err(flow) => return flow } }) as #own
                }
            }
        }
    }

    /// Emits the arguments of a call that accepts any types.
    pub fn wide(self, args: &[Value]) -> TokenStream {
        let args = self.atoms(args);
        quote! { [#(#args as u128),*] }
    }

    fn op1(self, op: Op1, value: &Value) -> TokenStream {
        let x = self.atom(value);
        let beyond = |width: u32| value.host_width.bits() - width;
        match op {
            Op1::Not => quote! { !#x },
            Op1::Neg => quote! { #x.wrapping_neg() },
            Op1::IsZero => quote! { (#x == 0) as u32 },
            Op1::CountOnes => quote! { #x.count_ones() },
            Op1::LeadingZeros { width } => {
                let extra = beyond(width);
                quote! { #x.leading_zeros() - #extra }
            }
            Op1::TrailingZeros { width } => quote! { #x.trailing_zeros().min(#width) },
            Op1::ReverseBits { width } => {
                let extra = beyond(width);
                quote! { #x.reverse_bits() >> #extra }
            }
        }
    }
}

/// Parenthesises an expression unless it is one token.
fn parenthesised(tokens: TokenStream) -> TokenStream {
    let mut trees = tokens.clone().into_iter();
    match (trees.next(), trees.next()) {
        (Some(_), None) => tokens,
        _ => quote! { (#tokens) },
    }
}

/// Emits a raw encoding field, in 32 bits.
pub fn field(name: &str) -> TokenStream {
    match name {
        "OFFSET" | "SIMM16" | "SIMM4" => quote! { op.imm },
        "OFFSET0" => quote! { op.imm & 0xff },
        "OFFSET1" => quote! { (op.imm >> 8) & 0xff },
        "CLAMP" => quote! { clamp as u32 },
        "SIMM32" => quote! { cx.raw(op).simm32 },
        "NEG" => quote! { cx.raw(op).neg },
        "NEG_HI" => quote! { cx.raw(op).neg_hi },
        "ABS" => quote! { cx.raw(op).abs },
        "OPSEL" => quote! { cx.raw(op).op_sel },
        "OPSEL_HI" => quote! { cx.raw(op).op_sel_hi },
        "IDXEN" => quote! { cx.raw(op).idxen },
        "OFFEN" => quote! { cx.raw(op).offen },
        "FORMAT" => quote! { cx.raw(op).format },
        "SVE" => quote! { cx.raw(op).sve },
        "GLC" => quote! { cx.raw(op).glc },
        "GFX" => quote! { cx.raw(op).gfx },
        "TO_LDS" => quote! { cx.raw(op).to_lds },
        "OMOD" => quote! { cx.raw(op).omod as u32 },
        "CBSZ" => quote! { cx.raw(op).cbsz },
        "ABID" => quote! { cx.raw(op).abid },
        "BLGP" => quote! { cx.raw(op).blgp },
        "SIMM32_HI" => quote! { cx.raw(op).simm32_hi },
        "SCALE_OFFSET" => quote! { cx.raw(op).scale_offset },
        "SCALE_NEG" => quote! { cx.raw(op).scale_neg },
        "SCALE_NEG_HI" => quote! { cx.raw(op).scale_neg_hi },
        "SCALE_OPSEL" => quote! { cx.raw(op).scale_op_sel },
        "SCALE_OPSEL_HI" => quote! { cx.raw(op).scale_op_sel_hi },
        "SCALE_CODE_A" => quote! { cx.raw(op).scale_code_a },
        "SCALE_CODE_B" => quote! { cx.raw(op).scale_code_b },
        "DIM" => quote! { cx.raw(op).image.dim as u32 },
        "DMASK" => quote! { cx.raw(op).image.dmask as u32 },
        "A16" => quote! { cx.raw(op).image.a16 as u32 },
        "D16" => quote! { cx.raw(op).image.d16 as u32 },
        "UNORM" => quote! { cx.raw(op).image.unorm as u32 },
        "R128" => quote! { cx.raw(op).image.r128 as u32 },
        "TFE" => quote! { cx.raw(op).image.tfe as u32 },
        "LWE" => quote! { cx.raw(op).image.lwe as u32 },
        "NSA" => quote! { cx.raw(op).image.nsa as u32 },
        "VADDR0" => quote! { cx.raw(op).image.vaddr[0] as u32 },
        "VADDR1" => quote! { cx.raw(op).image.vaddr[1] as u32 },
        "VADDR2" => quote! { cx.raw(op).image.vaddr[2] as u32 },
        "VADDR3" => quote! { cx.raw(op).image.vaddr[3] as u32 },
        "VADDR4" => quote! { cx.raw(op).image.vaddr[4] as u32 },
        "SAMP" => quote! { cx.raw(op).image.samp as u32 },
        "SUFFIXES" => quote! { cx.raw(op).image.suffixes as u32 },
        "ADDRESS_MASK" => quote! { cx.raw(op).image.address_mask as u32 },
        "DATA_MASK" => quote! { cx.raw(op).image.data_mask as u32 },
        _ => {
            let message = format!("handlers cannot read the encoding field {name}");
            quote! { ::core::compile_error!(#message) }
        }
    }
}

fn state(state: State) -> TokenStream {
    match state {
        State::Exec => quote! { cx.wave.exec() },
        State::ExecLo => quote! { cx.wave.sgprs[rt::EXEC_LO] },
        State::ExecHi => quote! { cx.wave.sgprs[rt::EXEC_HI] },
        State::Vcc => quote! { cx.wave.vcc() },
        State::VccLo => quote! { cx.wave.sgprs[rt::VCC_LO] },
        State::VccHi => quote! { cx.wave.sgprs[rt::VCC_HI] },
        State::Vccz => quote! { (cx.wave.vcc() == 0) as u32 },
        State::Execz => quote! { (cx.wave.exec() == 0) as u32 },
        State::Scc => quote! { cx.wave.scc },
        State::M0 => quote! { cx.wave.sgprs[rt::M0] },
        State::Pc => quote! { cx.wave.code_base.wrapping_add(cx.pc()) },
        State::InstSize => quote! { op.imm },
        State::Mode => quote! { cx.wave.mode },
        State::Status => quote! { rt::status(cx) },
        State::LaneId => quote! { lane },
        State::Wave32 => quote! { (cx.wave.size() == 32) as u32 },
        State::Wave64 => quote! { (cx.wave.size() == 64) as u32 },
        State::WaveSize => quote! { cx.wave.size() },
        State::VgprSize => quote! { cx.wave.vgpr_count() },
        State::WaveId => quote! { cx.wave.id },
        State::LdsSize => quote! { rt::lds_size(cx) },
        State::SharedBase => quote! { wavesim_rt::SHARED_BASE },
        State::PrivateBase => quote! { wavesim_rt::PRIVATE_BASE },
        State::ScratchBase | State::TrapBase => quote! { 0u64 },
    }
}
